package policy

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mapmatched/mmplug/mapmatched"
)

// rerankerFunc is a reranker that is a function.
type rerankerFunc func(ctx context.Context, q mapmatched.Query, c []mapmatched.Candidate) ([]mapmatched.Scored, error)

func (f rerankerFunc) Rerank(ctx context.Context, q mapmatched.Query, c []mapmatched.Candidate) ([]mapmatched.Scored, error) {
	return f(ctx, q, c)
}

// scores is a reranker that answers with "id score" pairs.
func scores(pairs ...any) rerankerFunc {
	return func(context.Context, mapmatched.Query, []mapmatched.Candidate) ([]mapmatched.Scored, error) {
		var out []mapmatched.Scored
		for _, c := range list(pairs...) {
			out = append(out, mapmatched.Scored{ChunkID: c.ChunkID, Score: c.Score})
		}
		return out, nil
	}
}

// waits answers after a while, whether its context is done or not.
func waits(d time.Duration, then rerankerFunc) rerankerFunc {
	return func(ctx context.Context, q mapmatched.Query, c []mapmatched.Candidate) ([]mapmatched.Scored, error) {
		time.Sleep(d)
		return then(ctx, q, c)
	}
}

func reranking(mode RerankMode) RerankParameters {
	p := DefaultRerank()
	p.Mode = mode
	return p
}

func TestRerankSync(t *testing.T) {
	given := list("a", 3.0, "b", 2.0, "c", 1.0)
	given[1].Parts = map[string]float64{"sim": 0.5}
	order, record, later := Rerank(t.Context(), scores("c", 0.1, "b", 9.0, "a", 0.1), mapmatched.Query{}, given, reranking(RerankSync))
	if later != nil || scoreText(order) != "b 2, a 3, c 1" {
		t.Errorf("order %s: by the reranker's scores, ties as given, scores kept", scoreText(order))
	}
	if want := (RerankRecord{RerankPolicyPreV1, RerankSync, RerankedReranked, "", 3}); record != want || record.Err() != nil {
		t.Errorf("record %+v, want %+v", record, want)
	}
	if got, want := asJSON(t, order[0].Parts), `{"rerank":9,"sim":0.5}`; got != want {
		t.Errorf("parts %s, want %s", got, want)
	}
	if scoreText(given) != "a 3, b 2, c 1" || len(given[1].Parts) != 1 {
		t.Errorf("the candidates given were changed: %v", given)
	}
}

func TestRerankPairs(t *testing.T) {
	p := reranking(RerankSync)
	p.Pairs = 2
	r := rerankerFunc(func(_ context.Context, _ mapmatched.Query, c []mapmatched.Candidate) ([]mapmatched.Scored, error) {
		if !slices.Equal(chunkIDs(c), []string{"a", "b"}) {
			t.Errorf("given %q, want the best two", chunkIDs(c))
		}
		return []mapmatched.Scored{{ChunkID: "b", Score: -1}, {ChunkID: "a", Score: -2}}, nil
	})
	order, record, _ := Rerank(t.Context(), r, mapmatched.Query{}, list("a", 4.0, "b", 3.0, "c", 2.0, "d", 1.0), p)
	if got := chunkIDs(order); !slices.Equal(got, []string{"b", "a", "c", "d"}) || record.Pairs != 2 || record.Outcome != RerankedReranked {
		t.Errorf("order %q, record %+v", got, record)
	}
}

func TestRerankKeepsTheOrderGiven(t *testing.T) {
	for _, c := range []struct {
		name     string
		reranker mapmatched.Reranker
		reason   string
	}{
		{"timeout", waits(501*time.Millisecond, scores("b", 2.0, "a", 1.0)), "no answer within 500ms"},
		{"crash", rerankerFunc(func(context.Context, mapmatched.Query, []mapmatched.Candidate) ([]mapmatched.Scored, error) {
			return nil, errors.New("the plugin is gone")
		}), "the plugin is gone"},
		{"panic", rerankerFunc(func(context.Context, mapmatched.Query, []mapmatched.Candidate) ([]mapmatched.Scored, error) {
			panic("index out of range")
		}), "the reranker panicked: index out of range"},
		{"wrong ID", scores("b", 2.0, "x", 1.0), `the reranker did not score chunk "a"`},
		{"additional ID", scores("b", 2.0, "a", 1.0, "x", 3.0), "the reranker scored 3 chunks, of which only 2 were given to it"},
		{"an ID twice", scores("b", 2.0, "b", 1.0), `the reranker scored chunk "b" twice`},
		{"NaN", scores("b", math.NaN(), "a", 1.0), `the reranker scored chunk "b" with NaN`},
		{"an infinite score", scores("b", math.Inf(1), "a", 1.0), `the reranker scored chunk "b" with +Inf`},
		{"missing answers", scores("b", 2.0), `the reranker did not score chunk "a"`},
		{"no answers", scores(), `the reranker did not score chunk "a"`},
		{"no reranker", nil, "there is no reranker"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				order, record, _ := Rerank(t.Context(), c.reranker, mapmatched.Query{}, list("a", 2.0, "b", 1.0), reranking(RerankSync))
				if scoreText(order) != "a 2, b 1" || record.Outcome != RerankedKept || record.Reason != c.reason {
					t.Errorf("order %s, record %+v, want reason %q", scoreText(order), record, c.reason)
				}
				for _, candidate := range order {
					if _, marked := candidate.Parts[PartRerank]; marked {
						t.Errorf("%s carries a part of an answer that was refused", candidate.ChunkID)
					}
				}
				if err := record.Err(); err == nil || err.Error() != "rerank: "+c.reason {
					t.Errorf("Err %v", err)
				}
				time.Sleep(time.Second) // let the late reranker end inside of the bubble
			})
		})
	}
}

func TestRerankWithinTheBudgetCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		order, record, _ := Rerank(t.Context(), waits(499*time.Millisecond, scores("b", 2.0, "a", 1.0)), mapmatched.Query{}, list("a", 2.0, "b", 1.0), reranking(RerankSync))
		if !slices.Equal(chunkIDs(order), []string{"b", "a"}) || record.Outcome != RerankedReranked {
			t.Errorf("order %q, record %+v", chunkIDs(order), record)
		}
	})
}

func TestRerankCallerGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		order, record, _ := Rerank(ctx, waits(time.Hour, scores()), mapmatched.Query{}, list("a", 2.0, "b", 1.0), reranking(RerankSync))
		if scoreText(order) != "a 2, b 1" || !strings.Contains(record.Reason, "deadline") || strings.Contains(record.Reason, "500ms") {
			t.Errorf("order %s, record %+v", scoreText(order), record)
		}
		time.Sleep(2 * time.Hour)
	})
}

func TestRerankerIsNotCalledForAnEmptyTurnOrWhenOff(t *testing.T) {
	r := rerankerFunc(func(context.Context, mapmatched.Query, []mapmatched.Candidate) ([]mapmatched.Scored, error) {
		t.Error("the reranker was called")
		return nil, nil
	})
	for _, c := range []struct {
		mode    RerankMode
		given   []mapmatched.Candidate
		outcome RerankOutcome
	}{
		{RerankOff, list("a", 1.0), RerankedOff}, {RerankOff, nil, RerankedOff}, {"", list("a", 1.0), RerankedOff},
		{RerankSync, nil, RerankedEmpty}, {RerankDeferred, nil, RerankedEmpty},
	} {
		order, record, later := Rerank(t.Context(), r, mapmatched.Query{}, c.given, reranking(c.mode))
		if later != nil || len(order) != len(c.given) || record.Outcome != c.outcome || record.Err() != nil {
			t.Errorf("%s with %d candidates: %d, %+v", c.mode, len(c.given), len(order), record)
		}
	}
}

func TestRerankDeferredDeliversBesideTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		given := list("a", 2.0, "b", 1.0)
		order, record, later := Rerank(t.Context(), waits(400*time.Millisecond, scores("b", 2.0, "a", 1.0)), mapmatched.Query{}, given, reranking(RerankDeferred))
		if d := time.Since(begin); d != 0 { // the clock of the bubble
			t.Errorf("the answer took %v", d)
		}
		if scoreText(order) != "a 2, b 1" || record.Outcome != RerankedPending {
			t.Errorf("order %s, record %+v", scoreText(order), record)
		}
		order[0].ChunkID, given[0].ChunkID = "changed", "changed"
		result, open := <-later
		if !open || !slices.Equal(chunkIDs(result.Order), []string{"b", "a"}) || result.Record.Outcome != RerankedReranked || result.Record.Mode != RerankDeferred {
			t.Errorf("result %+v (%v)", result, open)
		}
		if _, open = <-later; open {
			t.Error("the channel is still open")
		}
	})
}

func TestRerankDeferredNeedNotBeRead(t *testing.T) {
	// synctest fails the test if the goroutine stays behind.
	synctest.Test(t, func(t *testing.T) {
		_, _, later := Rerank(t.Context(), waits(time.Hour, scores()), mapmatched.Query{}, list("a", 2.0), reranking(RerankDeferred))
		time.Sleep(500 * time.Millisecond)
		synctest.Wait()
		if result := <-later; result.Record.Outcome != RerankedKept || result.Record.Reason != "no answer within 500ms" {
			t.Errorf("record %+v after the budget", result.Record)
		}
		_, _, _ = Rerank(t.Context(), scores("a", 1.0), mapmatched.Query{}, list("a", 2.0), reranking(RerankDeferred))
		time.Sleep(2 * time.Hour)
	})
}

func ExampleRerank() {
	candidates := []mapmatched.Candidate{{ChunkID: "tides", Score: 0.9}, {ChunkID: "moon", Score: 0.8}}
	parameters := DefaultRerank()
	parameters.Mode = RerankSync
	_, record, _ := Rerank(context.Background(), scores("tides", 1.0), mapmatched.Query{}, candidates, parameters)
	fmt.Println(record.Outcome, record.Reason)
	// Output: kept the reranker did not score chunk "moon"
}
