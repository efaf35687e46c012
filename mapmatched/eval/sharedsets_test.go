package eval

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/mapmatched/mmplug/policy"
)

// sharedSet finds real conversations beside the checkout, or skips the test.
func sharedSet(t testing.TB, set, conversations string) *Data {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		base := filepath.Join(dir, "shared", "data", set)
		if _, err := os.Stat(filepath.Join(base, conversations)); err == nil {
			d, err := Load(t.Context(), filepath.Join(base, "corpus.jsonl"), filepath.Join(base, conversations))
			if err != nil {
				t.Fatal(err)
			}
			return d
		}
		if dir == filepath.Dir(dir) {
			t.Skipf("SKIP: there is no shared/data/%s/%s beside the checkout; put the evaluation data there to measure on it", set, conversations)
		}
		dir = filepath.Dir(dir)
	}
}

// The shared sets are read in full, and their baselines stay where they are.
func TestSharedSets(t *testing.T) {
	for _, s := range []struct {
		set, conversations string
		scope              Scope
		count, turns       int // conversations, and turns with gold
		pointwise, decayed float64
		pointwiseFollowUp  float64
	}{
		{"doc2dial", "conversations.jsonl", ScopeDomain, 410, 2469, .419, .523, .318},
		{"doc2dial", "conversations_stitched.jsonl", ScopeDomain, 203, 2442, .419, .508, .317},
		{"inscit", "conversations.jsonl", ScopeAll, 86, 485, .530, .545, .427},
		{"cookdial", "conversations.jsonl", ScopeDocument, 260, 4114, .146, .188, .138},
	} {
		t.Run(s.set+"/"+s.conversations, func(t *testing.T) {
			d := sharedSet(t, s.set, s.conversations)
			if _, scored := d.Turns(); len(d.Conversations) != s.count || scored != s.turns {
				t.Errorf("%d conversations with %d gold turns, wanted %d and %d", len(d.Conversations), scored, s.count, s.turns)
			}
			w := worldOf(t, d, &WorldOptions{Scope: s.scope})
			results, err := Measure(t.Context(), w, []Method{baseline(t, Pointwise), baseline(t, DecayedHistory)}, nil)
			if err != nil {
				t.Fatal(err)
			}
			list, _ := Slices(d, &results[0])
			check := func(what string, got, want float64) {
				if got < want-.001 || got > want+.001 {
					t.Errorf("%s: nDCG@3 is %.4f, was %.3f when this was written", what, got, want)
				}
			}
			pointwise, _ := results[0].Mean(NDCG3, findSlice(list, SliceAll))
			decayed, _ := results[1].Mean(NDCG3, findSlice(list, SliceAll))
			followUp, _ := results[0].Mean(NDCG3, findSlice(list, SliceFollowUp))
			check("pointwise", pointwise, s.pointwise)
			check("pointwise on follow-ups", followUp, s.pointwiseFollowUp)
			check("decayed history", decayed, s.decayed)
		})
	}
}

// The policy conversational keeps what it promises on the shared sets.
func TestConversationalOnSharedSets(t *testing.T) {
	p, err := policy.Builtin(policy.Conversational)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []struct {
		set, conversations string
		scope              Scope
		followUp           float64 // least difference to pointwise, nDCG@3
	}{
		{"doc2dial", "conversations.jsonl", ScopeDomain, .25},
		{"doc2dial", "conversations_stitched.jsonl", ScopeDomain, .20},
		{"inscit", "conversations.jsonl", ScopeAll, .10},
	} {
		t.Run(s.set+"/"+s.conversations, func(t *testing.T) {
			d := sharedSet(t, s.set, s.conversations)
			w := worldOf(t, d, &WorldOptions{Scope: s.scope})
			results, err := Measure(t.Context(), w, []Method{baseline(t, Pointwise), PolicyMethod(p)}, nil)
			if err != nil {
				t.Fatal(err)
			}
			list, _ := Slices(d, &results[0])
			gain := func(slice string) float64 {
				before, _ := results[0].Mean(NDCG3, findSlice(list, slice))
				after, _ := results[1].Mean(NDCG3, findSlice(list, slice))
				return after - before
			}
			if g := gain(SliceFollowUp); g < s.followUp {
				t.Errorf("follow-ups gain %.4f, wanted %v", g, s.followUp)
			}
			if g := gain(SliceStandalone); g < -.005 {
				t.Errorf("turns that stand alone change by %.4f, wanted at least -0.005", g)
			}
		})
	}
}

func BenchmarkDoc2dial(b *testing.B) {
	d := sharedSet(b, "doc2dial", "conversations.jsonl")
	p := plain(b)
	for b.Loop() {
		// A new world each time: indexes, graphs and distances are part of it.
		w := worldOf(b, d, &WorldOptions{Scope: ScopeDomain})
		methods := []Method{baseline(b, Pointwise), baseline(b, History), baseline(b, DecayedHistory), baseline(b, MMR), PolicyMethod(p)}
		methods = append(methods, Ablations(p, false)[:5]...)
		if _, err := Run(b.Context(), w, methods, nil); err != nil {
			b.Fatal(err)
		}
	}
}
