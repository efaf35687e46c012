package policy

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestFormulas(t *testing.T) {
	all := Formulas()
	seen := map[string]bool{}
	for i, f := range all {
		if f.Tag == "" || f.Kind == "" || f.Summary == "" || f.Code == "" || strings.Contains(f.Summary, "\n") {
			t.Errorf("%+v lacks something", f)
		}
		if seen[f.Tag] {
			t.Errorf("%s is there twice", f.Tag)
		}
		seen[f.Tag] = true
		if i > 0 && (f.Kind < all[i-1].Kind || f.Kind == all[i-1].Kind && f.Tag < all[i-1].Tag) {
			t.Errorf("%s comes after %s", f.Tag, all[i-1].Tag)
		}
		if got, err := Formula(f.Tag); err != nil || got != f {
			t.Errorf("Formula(%s) = %+v (%v)", f.Tag, got, err)
		}
		if got, err := FormulaOf(f.Kind, f.Tag); err != nil || got != f {
			t.Errorf("FormulaOf(%s, %s) = %+v (%v)", f.Kind, f.Tag, got, err)
		}
	}
	for _, tag := range []string{"decode_v1", "decay_v1", "decay_exact_v1", "geometric_v1", "hybrid_fusion_pre_v1", "rrf_v1", "lexical_pre_v2",
		"m7_chunk_pre_v1", "fixed_v1", "markdown_v1", "rerank_policy_pre_v1", "activation_pre_v1", "cluster_shadow_pre_v1", "context_v1", "transition_v1", "knn_v1"} {
		if !seen[tag] {
			t.Errorf("%s is missing", tag)
		}
	}
	all[0].Tag = "changed"
	if slices.Contains(tagsOf(""), "changed") {
		t.Error("a change to the list reached the registry")
	}
}

func TestUnknownFormula(t *testing.T) {
	for _, c := range []struct {
		kind Kind
		tag  string
		want string
	}{
		{KindDecay, "decay_v2", `unknown formula: decay version is "decay_v2", it must be decay_exact_v1 or decay_v1; did you mean "decay_v1"?`},
		{KindFusion, "RRF_v1", `unknown formula: fusion version is "RRF_v1", it must be geometric_v1, hybrid_fusion_pre_v1 or rrf_v1; did you mean "rrf_v1"?`},
		{KindFusion, "decay_v1", `unknown formula: fusion version is "decay_v1", it must be geometric_v1, hybrid_fusion_pre_v1 or rrf_v1 ("decay_v1" is of the kind decay)`},
		{KindDecode, "something else", `unknown formula: decode version is "something else", it must be decode_v1`},
		{KindDecode, "", `unknown formula: decode version is "", it must be decode_v1`},
	} {
		if _, err := FormulaOf(c.kind, c.tag); !errors.Is(err, ErrUnknownFormula) || err.Error() != c.want {
			t.Errorf("error %v\nwant  %s", err, c.want)
		}
	}
	_, err := Formula("contxet_v1")
	if !errors.Is(err, ErrUnknownFormula) || !strings.Contains(err.Error(), `unknown formula "contxet_v1"; did you mean "context_v1"?; known are activation_pre_v1, fixed_v1,`) {
		t.Errorf("error %v", err)
	}
}

func TestNearest(t *testing.T) {
	known := []string{"alpha", "min_score", "k", "arms"}
	for word, want := range map[string]string{
		"alhpa": "alpha", "Alpha": "alpha", "alpha": "alpha", "minscore": "min_score", "kk": "", "K": "k", "arm": "arms", "beta": "", "": "",
	} {
		if got := nearest(word, known); got != want {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "abc", 3}, {"abc", "", 3}, {"abc", "acb", 1}, {"abc", "abc", 0}, {"kitten", "sitting", 3}, {"ab", "ba", 1}} {
		if got := edits(c.a, c.b); got != c.want {
			t.Errorf("%q to %q: %d edits, want %d", c.a, c.b, got, c.want)
		}
	}
}
