package policy

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

func ExampleDiff() {
	plain, other := Default(), Default()
	other.Decode.TransitionWeight = 0.5
	other.Decode.FixedLag = new(2)
	other.Decay.Weights["link"] = 0.9
	other.Fusion.Version = RRFV1
	delete(other.Fusion.Arms, ArmLexical)
	other.Name = "names make no difference"
	for _, change := range Diff(plain, other) {
		fmt.Println(change)
	}
	// Output:
	// decode.transition_weight 1 → 0.5
	// decode.fixed_lag null → 2
	// decay.weights.link (not set) → 0.9
	// fusion.version hybrid_fusion_pre_v1 → rrf_v1
	// fusion.arms.lexical.timeout_ms 1000 → (not set)
	// fusion.arms.lexical.weight 0.3 → (not set)
}

func TestDiffTexts(t *testing.T) {
	a, b := Default(), Default()
	a.Vectors.Model, b.Vectors.Model = "", "null"
	a.Vectors.Revision, b.Vectors.Revision = "1", "r 2"
	b.Plugins = []Plugin{{"x", "y"}}
	var got []string
	for _, c := range Diff(a, b) {
		got = append(got, c.String())
	}
	want := []string{`vectors.model "" → "null"`, `vectors.revision "1" → r 2`, "plugins.0.name (not set) → x", "plugins.0.sha256 (not set) → y"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestDiffAndDigest: there are changes exactly when the digests differ, and
// the other way round they are the same with old and new swapped.
func TestDiffAndDigest(t *testing.T) {
	equal := 0
	for seed := range uint64(120) {
		r := rand.New(rand.NewPCG(seed, 32))
		a := randomPolicy(r)
		b := *a
		if r.IntN(3) > 0 {
			b = *randomPolicy(r)
		} else {
			b.Name = "other"
			equal++
		}
		there, back := Diff(a, &b), Diff(&b, a)
		if (len(there) == 0) != (a.Digest() == b.Digest()) {
			t.Fatalf("seed %d: %d changes, digests %s and %s", seed, len(there), a.Digest(), b.Digest())
		}
		for i := range back {
			back[i].Old, back[i].New = back[i].New, back[i].Old
		}
		if !slices.Equal(there, back) {
			t.Fatalf("seed %d: %v, back %v", seed, there, back)
		}
	}
	if equal < 20 {
		t.Errorf("only %d equal pairs", equal)
	}
	for _, path := range knownPaths() {
		p := Default()
		if disturb(p, path) && p.Digest() != Default().Digest() {
			if changes := Diff(Default(), p); len(changes) == 0 || changes[0].Key[:min(len(path), len(changes[0].Key))] != path {
				t.Errorf("%s changed: %v", path, changes)
			}
		}
	}
}
