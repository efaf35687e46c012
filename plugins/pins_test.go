package plugins

import (
	"context"
	"errors"
	"strings"
	"testing"
)

func TestCheckPins(t *testing.T) {
	a, b, c := strings.Repeat("a", 64), strings.Repeat("b", 64), strings.Repeat("c", 64)
	policy := map[string]string{"overlap": strings.ToUpper(a), "mmr": b}
	for _, e := range []struct {
		what  string
		lists []map[string]string
		sum   string
		names []string
		want  string // of the error, "" for none
	}{
		{"nothing is pinned", nil, c, []string{"x"}, ""},
		{"it is pinned", []map[string]string{policy}, a, []string{"overlap"}, ""},
		{"it is pinned under its own name", []map[string]string{policy}, a, []string{"renamed", "overlap"}, ""},
		{"another file", []map[string]string{policy}, c, []string{"overlap"}, "wanted " + a},
		{"another file under another name", []map[string]string{policy}, c, []string{"x"}, "only mmr, overlap"},
		{"the file of another plugin", []map[string]string{policy}, b, []string{"overlap"}, "wanted " + a},
		{"a name of its own that is another's", []map[string]string{policy}, b, []string{"mmr", "overlap"}, "wanted " + a},
		{"two lists, in one of them", []map[string]string{policy, {"x": c}}, a, []string{"overlap"}, "only x"},
		{"two lists, in both", []map[string]string{policy, {"overlap": a}}, a, []string{"overlap"}, ""},
	} {
		err := checkPins(e.lists, "/p/file", e.sum, e.names...)
		if (err != nil) != (e.want != "") || err != nil && (!errors.Is(err, ErrChecksum) || !strings.Contains(err.Error(), e.want) || !strings.Contains(err.Error(), e.sum)) {
			t.Errorf("%s: error %v, want %q", e.what, err, e.want)
		}
	}
}

// TestWithPins: lists add up, those of a caller stay as they are.
func TestWithPins(t *testing.T) {
	ctx := WithPins(context.Background(), nil)
	if ctx != context.Background() {
		t.Error("no pins are another context")
	}
	pins := map[string]string{"a": "1"}
	outer := WithPins(ctx, pins)
	inner, sibling := WithPins(outer, map[string]string{"b": "2"}), WithPins(outer, map[string]string{"c": "3"})
	delete(pins, "a")
	if got := pinsOf(inner); len(got) != 2 || got[0]["a"] != "1" || got[1]["b"] != "2" {
		t.Errorf("pins %v", got)
	}
	if got := pinsOf(sibling); len(got) != 2 || got[1]["c"] != "3" {
		t.Errorf("pins %v", got)
	}
}
