package policy

import (
	"context"
	"slices"
	"testing"

	"github.com/mapmatched/mmplug/mapmatched"
)

// A follow-up in a conversation that began elsewhere is searched with the
// questions from there.
func TestHistoryFromBefore(t *testing.T) {
	w := newWorld()
	p := newPolicy(func(p *Policy) {
		p.Arms.Stage = StageActive
		p.Decode.TransitionWeight = 0
	})
	ask := func(history []string) *Answer {
		t.Helper()
		a, err := mustNew(t, p, w.parts(t)).Ask(t.Context(), Query{Text: "renew", History: history})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	// It finds what a conversation finds that asked them itself.
	for _, before := range []string{"what is a lease", "what is an encryption key", "token"} {
		history := []string{"tides and the moon", before}
		own := mustNew(t, p, w.parts(t))
		for _, text := range history {
			mustAsk(t, own, text)
		}
		want, got := mustAsk(t, own, "renew"), ask(history)
		if got.Turn != 0 || got.Gate.Turn != 0 || got.Gate.Applied != 1 || !slices.EqualFunc(got.Ranking, want.Ranking, func(a, b mapmatched.Ranked) bool {
			return a.ChunkID == b.ChunkID && a.Score == b.Score
		}) {
			t.Errorf("after %q: gate %+v, ranking %v; the conversation that asked finds %v", history, got.Gate, rankedIDs(got), rankedIDs(want))
		}
		if alone := ask(nil); slices.Equal(rankedIDs(got), rankedIDs(alone)) {
			t.Errorf("after %q: ranking %v, as without history", history, rankedIDs(got))
		}
	}
	if a := ask(nil); a.Gate.Applied != 0 {
		t.Errorf("gate %+v without history", a.Gate)
	}
	// The conversation's own questions come behind them.
	r := mustNew(t, p, w.parts(t))
	var seen mapmatched.Query
	arm := r.parts.Arms[0].Provider
	r.parts.Arms[0].Provider = providing(func(ctx context.Context, q mapmatched.Query, limit int) ([]mapmatched.Candidate, error) {
		seen = q
		return arm.Candidates(ctx, q, limit)
	})
	for _, text := range []string{"moon", "renew"} {
		if _, err := r.Ask(t.Context(), Query{Text: text, History: []string{"lease"}}); err != nil {
			t.Fatal(err)
		}
	}
	if want := []string{"lease", "moon"}; !slices.Equal(seen.History, want) || len(seen.Path) != 2 || seen.Path[0] != "" || seen.Path[1] == "" || seen.Turn != 1 {
		t.Errorf("query %+v, want history %q with a gap first", seen, want)
	}
}

func TestOrdered(t *testing.T) {
	w := newWorld()
	parts := w.parts(t)
	parts.Reranker = rerankBy(func(c mapmatched.Candidate) float64 { return -c.Score })
	a := mustAsk(t, mustNew(t, newPolicy(func(p *Policy) { p.Rerank.Mode = RerankSync }), parts), "renew token")
	before := rankedIDs(a)
	got := a.Ordered()
	if len(got.Ranking) < 3 || len(got.Ranking) != len(a.Order) || got.ChunkID != a.ChunkID {
		t.Fatalf("ordered %+v of %+v", got, a)
	}
	for i, r := range got.Ranking {
		if r.ChunkID != a.Order[i].ChunkID {
			t.Errorf("place %d has %s, want %s", i, r.ChunkID, a.Order[i].ChunkID)
		}
	}
	if !slices.Equal(rankedIDs(a), before) || slices.Equal(before, rankedIDs(&Answer{Result: got})) {
		t.Errorf("ranking %v became %v, ordered %v", before, rankedIDs(a), rankedIDs(&Answer{Result: got}))
	}
}
