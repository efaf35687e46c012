package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/mapmatched/registry"
	"github.com/mapmatched/mmplug/policy"
)

// lastFirst turns the order of the candidates round, unless it is broken.
type lastFirst struct{ broken bool }

func (r lastFirst) Rerank(_ context.Context, _ mapmatched.Query, c []mapmatched.Candidate) ([]mapmatched.Scored, error) {
	if r.broken {
		return nil, errors.New("out of order")
	}
	scored := make([]mapmatched.Scored, len(c))
	for i := range c {
		scored[i] = mapmatched.Scored{ChunkID: c[i].ChunkID, Score: float64(i)}
	}
	return scored, nil
}

func init() {
	registry.RegisterReranker("lastfirst", registry.RerankerOpener{
		Doc: registry.Doc{Summary: "turns the order round, for tests", Example: "lastfirst:x", Parameters: []registry.Parameter{{Name: "broken", Usage: "true to fail"}}},
		Open: func(_ context.Context, _ registry.Location, p *registry.Params) (mapmatched.Reranker, error) {
			r := lastFirst{p.String("broken", "") == "true"}
			return r, p.Err()
		},
	})
}

type rerankedTurn struct {
	Ranking  []mapmatched.RankedChunk
	Reranked *struct {
		Mode, Outcome, Reason string
		Pairs                 int
		Order                 []string
		Deferred              *struct {
			Outcome string
			Order   []string
		}
	}
}

func (r *rerankedTurn) ranking() []string {
	var ids []string
	for _, c := range r.Ranking {
		ids = append(ids, c.ChunkID)
	}
	return ids
}

func TestAskReranked(t *testing.T) {
	idx := handbookIdx(t)
	sync := policyFile(t, "sync.policy.yaml", func(p *policy.Policy) { p.Rerank.Mode, p.Rerank.BudgetMS = policy.RerankSync, 60_000 })
	deferred := policyFile(t, "deferred.policy.yaml", func(p *policy.Policy) { p.Rerank.Mode, p.Rerank.BudgetMS = policy.RerankDeferred, 60_000 })
	ask := func(policy, url string, more ...string) []string {
		return append([]string{"ask", "--index", idx, "--policy", policy, "--reranker", url, "How do I renew a token?"}, more...)
	}
	first := func(args []string, wantErr string) *rerankedTurn {
		t.Helper()
		r := mmplug(t, "", args...)
		if r.code != exitOK || !strings.Contains(r.err, wantErr) || wantErr == "" && r.err != "" {
			t.Fatalf("exit status %d, standard error %q, want %q in it", r.code, r.err, wantErr)
		}
		turn := &unmarshal[struct{ Turns []rerankedTurn }](t, r.out).Turns[0]
		if turn.Reranked == nil || len(turn.Ranking) < 2 {
			t.Fatalf("%s: too few candidates, or no word of the reranker", r.out)
		}
		return turn
	}

	turn := first(ask(sync, "lastfirst:x", "--json"), "")
	order := turn.ranking()
	slices.Reverse(order)
	if r := turn.Reranked; r.Mode != "sync" || r.Outcome != "reranked" || r.Pairs != len(order) || !slices.Equal(r.Order, order) || r.Deferred != nil {
		t.Errorf("sync: %+v, want the order %v", r, order)
	}
	if out := fine(t, "", ask(sync, "lastfirst:x")...); !strings.Contains(out, "reranked  "+order[0]+", ") {
		t.Errorf("sync: output lacks the first of %v:\n%s", order, out)
	}

	turn = first(ask(sync, "lastfirst:x?broken=true", "--json"), "turn 0: rerank: out of order")
	if r := turn.Reranked; r.Outcome != "kept" || r.Reason != "out of order" || !slices.Equal(r.Order, turn.ranking()) {
		t.Errorf("broken: %+v, want the order kept", r)
	}

	turn = first(ask(deferred, "lastfirst:x", "--json"), "")
	if r := turn.Reranked; r.Outcome != "pending" || !slices.Equal(r.Order, turn.ranking()) || r.Deferred == nil || r.Deferred.Outcome != "reranked" || !slices.Equal(r.Deferred.Order, order) {
		t.Errorf("deferred: %+v, want the order given and, beside it, %v", r, order)
	}
	if out := fine(t, "", ask(deferred, "lastfirst:x")...); !strings.Contains(out, "reranked  "+order[0]+", ") {
		t.Errorf("deferred: output lacks the first of %v:\n%s", order, out)
	}
	if out := fine(t, "", ask(deferred, "lastfirst:x?broken=true")...); !strings.Contains(out, "rerank: out of order") {
		t.Errorf("deferred and broken: output says nothing of it:\n%s", out)
	}
}

func TestRerankerRefused(t *testing.T) {
	idx := handbookIdx(t)
	sync := policyFile(t, "sync.policy.yaml", func(p *policy.Policy) { p.Rerank.Mode = policy.RerankSync })
	fails(t, exitUsage, "", []string{"ask", "--index", idx, "--reranker", "lastfirst:x", "renew"}, "never asks a reranker", "leave out --reranker")
	fails(t, exitFailed, "", []string{"ask", "--index", idx, "--policy", sync, "renew"}, "rerank.mode is sync", "--reranker")
	fails(t, exitFailed, "", []string{"ask", "--index", idx, "--policy", sync, "--reranker", "nowhere:x", "renew"}, `unknown scheme "nowhere"`, "lastfirst")
}
