package qdrant_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/mapmatched/mmplug/adapters/qdrant"
	"github.com/mapmatched/mmplug/integration/qdranttest"
	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/mapmatched/adaptertest"
	"github.com/mapmatched/mmplug/policy"
)

// arms opens a dense arm, a sparse one and a dense one behind a filter.
func (s *target) arms(c *qdrant.Client, corpus adaptertest.Corpus) []*qdrant.Provider {
	s.t.Helper()
	name := s.write(c, &qdrant.WriterOptions{Sparse: "terms"}, corpusRecords(corpus)...)
	roads, err := qdrant.ParseFilter([]byte(`{"must":[{"key":"document","match":{"value":"roads"}}]}`))
	if err != nil {
		s.t.Fatal(err)
	}
	return []*qdrant.Provider{
		s.open(c, name, &qdrant.Options{Embedder: corpus}),
		s.open(c, name, &qdrant.Options{Vector: "terms", SparseEncoder: qdrant.TermQuery}),
		s.open(c, name, &qdrant.Options{Embedder: corpus, Filter: roads}),
	}
}

// TestServerFusion: rrf in the server counts ranks from 0 with k = 2, and with
// k = 61 it is rrf_v1.
func TestServerFusion(t *testing.T) {
	s := server(t)
	c := s.client(nil)
	name := s.write(c, &qdrant.WriterOptions{Sparse: "terms"},
		mapmatched.Record{Chunk: mapmatched.Chunk{ID: "both", Text: "bridge"}, Vector: []float32{1, 0}},
		mapmatched.Record{Chunk: mapmatched.Chunk{ID: "dense", Text: "tunnel"}, Vector: []float32{1, 0.5}},
		mapmatched.Record{Chunk: mapmatched.Chunk{ID: "words", Text: "bridge or ferry or a ford"}, Vector: []float32{1, 1}},
	)
	dense, sparse := s.open(c, name, nil), s.open(c, name, &qdrant.Options{Vector: "terms", SparseEncoder: qdrant.TermQuery})
	q := mapmatched.Query{Text: "bridge", Vector: []float32{1, 0}}
	if got := ids(ask(t, sparse, q, 5)); !slices.Equal(got, []string{"both", "words"}) {
		t.Fatalf("by words: %q", got)
	}
	// dense ranks both, dense, words and sparse ranks both, words. dbsf scales a
	// list to (score − mean)/6σ + 1/2 with the deviation of a sample, which of two
	// scores leaves 1/2 ± √2/12 whatever they are.
	cosines := []float64{1, 1 / math.Sqrt(1.25), 1 / math.Sqrt2}
	mean := (cosines[0] + cosines[1] + cosines[2]) / 3
	squares := 0.0
	for _, x := range cosines {
		squares += (x - mean) * (x - mean)
	}
	scaled := func(x float64) float64 { return (x-mean)/(6*math.Sqrt(squares/2)) + 0.5 }
	for _, f := range []struct {
		name   string
		fusion qdrant.Fusion
		want   map[string]float64
		order  []string
	}{
		{"k = 2", qdrant.Fusion{Method: qdrant.FusionRRF}, map[string]float64{"both": 1./2 + 1./2, "words": 1./4 + 1./3, "dense": 1. / 3}, []string{"both", "words", "dense"}},
		{"k = 61 is rrf_v1", qdrant.Fusion{Method: qdrant.FusionRRF, K: 61}, map[string]float64{"both": 1./61 + 1./61, "words": 1./63 + 1./62, "dense": 1. / 62}, []string{"both", "words", "dense"}},
		{"two of each", qdrant.Fusion{Method: qdrant.FusionRRF, Prefetch: 1}, nil, []string{"both", "words", "dense"}},
		{"dbsf", qdrant.Fusion{Method: qdrant.FusionDBSF}, map[string]float64{
			"both": scaled(1) + 0.5 + math.Sqrt2/12, "words": scaled(cosines[2]) + 0.5 - math.Sqrt2/12, "dense": scaled(cosines[1]),
		}, []string{"both", "words", "dense"}},
	} {
		t.Run(f.name, func(t *testing.T) {
			h, err := qdrant.NewHybridProvider(f.fusion, dense, sparse)
			if err != nil {
				t.Fatal(err)
			}
			got := ask(t, h, q, 3)
			if f.want != nil && !slices.Equal(ids(got), f.order) || got[0].ChunkID != "both" || len(got) != 3 {
				t.Errorf("candidates %q, want %q", ids(got), f.order)
			}
			for _, g := range got {
				if want, given := f.want[g.ChunkID]; given && !near(g.Score, want) {
					t.Errorf("%s: score %v, want %v", g.ChunkID, g.Score, want)
				}
			}
			if alone := ask(t, h, mapmatched.Query{Text: "?!", Vector: []float32{1, 0}}, 3); !slices.Equal(ids(alone), []string{"both", "dense", "words"}) {
				t.Errorf("without words: %q", ids(alone))
			}
		})
	}
	for want, fusion := range map[string]qdrant.Fusion{
		`Method is ""`:                   {},
		"no effect on \"dbsf\"":          {Method: qdrant.FusionDBSF, K: 3},
		"Weights are 1 for 2 arms":       {Method: qdrant.FusionRRF, Weights: []float64{1}},
		"Weights are all 0":              {Method: qdrant.FusionRRF, Weights: []float64{0, 0}},
		"want finite numbers of 0":       {Method: qdrant.FusionRRF, Weights: []float64{-1, 2}},
		"Prefetch is -1":                 {Method: qdrant.FusionRRF, Prefetch: -1},
		"K is -1, want 1 or more, or 0 ": {Method: qdrant.FusionRRF, K: -1},
	} {
		_, err := qdrant.NewHybridProvider(fusion, dense, sparse)
		expect(t, err, mapmatched.KindInvalid, want)
	}
	_, err := qdrant.NewHybridProvider(qdrant.Fusion{Method: qdrant.FusionRRF})
	expect(t, err, mapmatched.KindInvalid, "no arms")
	other := s.open(s.client(nil), name, nil)
	_, err = qdrant.NewHybridProvider(qdrant.Fusion{Method: qdrant.FusionRRF}, dense, other)
	expect(t, err, mapmatched.KindInvalid, "share a client and a collection")
}

// TestFusionOfDistances: rrf goes by ranks, so the nearest is first; dbsf adds
// distances up, so it is refused.
func TestFusionOfDistances(t *testing.T) {
	s := server(t)
	c := s.client(nil)
	for _, distance := range []qdrant.Distance{qdrant.DistanceEuclid, qdrant.DistanceManhattan} {
		name := s.write(c, &qdrant.WriterOptions{Distance: distance, Sparse: "terms"}, record("near", 1, 0), record("middle", 2, 0), record("far", 9, 0))
		dense, sparse := s.open(c, name, nil), s.open(c, name, &qdrant.Options{Vector: "terms", SparseEncoder: qdrant.TermQuery})
		_, err := qdrant.NewHybridProvider(qdrant.Fusion{Method: qdrant.FusionDBSF}, sparse, dense)
		expect(t, err, mapmatched.KindInvalid, "arm 1", "farthest first", `fuse with "rrf"`)
		h, err := qdrant.NewHybridProvider(qdrant.Fusion{Method: qdrant.FusionRRF}, dense, sparse)
		if err != nil {
			t.Fatal(err)
		}
		if got := ids(ask(t, h, mapmatched.Query{Text: "none", Vector: []float32{1, 0}}, 3)); !slices.Equal(got, []string{"near", "middle", "far"}) {
			t.Errorf("%s: %q", distance, got)
		}
	}
}

// TestWeights: weights of the server's rrf count for the arms they are given
// for, also when one of them has nothing to ask.
func TestWeights(t *testing.T) {
	s := server(t)
	c := s.client(nil)
	arms := s.arms(c, adaptertest.NewCorpus())
	h, err := qdrant.NewHybridProvider(qdrant.Fusion{Method: qdrant.FusionRRF, Weights: []float64{0, 3}}, arms[0], arms[1])
	if err != nil {
		t.Fatal(err)
	}
	q := mapmatched.Query{Text: "bees store honey"}
	if got := ask(t, h, q, 1); got[0].ChunkID != "orchard/bees" {
		t.Errorf("candidates %q", ids(got))
	}
	apart := mapmatched.Query{Text: "toll in coins"} // and the vector of something else
	vectorsOf, err := adaptertest.NewCorpus().Embed(t.Context(), []string{q.Text})
	if err != nil {
		t.Fatal(err)
	}
	apart.Vector = vectorsOf[0]
	for want, weights := range map[string][]float64{"orchard/bees": {1, 0}, "roads/toll": {0, 1}} {
		w, err := qdrant.NewHybridProvider(qdrant.Fusion{Method: qdrant.FusionRRF, Weights: weights}, arms[0], arms[1])
		if err != nil {
			t.Fatal(err)
		}
		if got := ask(t, w, apart, 1); got[0].ChunkID != want {
			t.Errorf("weights %v: candidates %q, want %q first", weights, ids(got), want)
		}
	}
	chunks, err := h.Chunks(t.Context(), []string{"orchard/bees"})
	vectors, vectorErr := h.Vectors(t.Context(), []string{"orchard/bees"})
	id, idErr := h.CorpusIdentity(t.Context())
	if errors.Join(err, vectorErr, idErr, h.Health(t.Context())) != nil || len(chunks) != 1 || vectors[0] == nil || id.Model != "words" {
		t.Errorf("chunks %v, vectors %v, identity %v, errors %v", chunks, vectors, id, errors.Join(err, vectorErr, idErr))
	}
	if err := errors.Join(h.Close(), h.Close()); err != nil {
		t.Error(err)
	}
	if _, err := h.Candidates(t.Context(), q, 1); !errors.Is(err, mapmatched.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// TestBatchIsOneRoundTrip: three arms of a turn are one round trip, whether
// they are asked together or one by one at the same time, and each finds what it
// finds alone.
func TestBatchIsOneRoundTrip(t *testing.T) {
	s := server(t)
	c := s.client(nil)
	corpus := adaptertest.NewCorpus()
	arms := s.arms(c, corpus)
	b, err := qdrant.NewBatch(arms...)
	if err != nil {
		t.Fatal(err)
	}
	q := mapmatched.Query{Text: "toll in coins"}
	var want [][]mapmatched.Candidate
	for _, arm := range arms {
		want = append(want, ask(t, arm, q, 20))
	}
	calls := func(what string, f func()) {
		t.Helper()
		if s.fake == nil {
			f()
			return
		}
		s.fake.ResetCalls()
		f()
		if got := s.fake.Calls(); !reflect.DeepEqual(got, map[string]int{"Points/QueryBatch": 1}) {
			t.Errorf("%s: calls %v, want one QueryBatch", what, got)
		}
	}
	calls("together", func() {
		lists, err := b.Lists(t.Context(), q, 20)
		if err != nil || !reflect.DeepEqual(lists, want) {
			t.Errorf("lists %v, error %v, want %v", lists, err, want)
		}
	})
	calls("one by one", func() {
		var wg sync.WaitGroup
		for i, arm := range b.Arms() {
			wg.Go(func() {
				got, err := arm.Candidates(t.Context(), q, 20)
				if err != nil || !reflect.DeepEqual(got, want[i]) {
					t.Errorf("arm %d: %v, error %v, want %v", i, got, err, want[i])
				}
			})
		}
		wg.Wait()
	})
	calls("fused under a policy", func() {
		named := b.Arms()
		p, err := policy.NewFusedProvider(policy.Fusion{Version: policy.RRFV1, K: 60, Arms: map[string]policy.FusionArm{
			"dense": {Weight: 1, TimeoutMS: 60_000}, "lexical": {Weight: 1, TimeoutMS: 60_000}, "roads": {Weight: 1},
		}}, []policy.FusedArm{{Name: "dense", Provider: named[0]}, {Name: "lexical", Provider: named[1]}, {Name: "roads", Provider: named[2]}}, &policy.FusedOptions{ArmLimit: 20})
		if err != nil {
			t.Fatal(err)
		}
		if got := ask(t, p, q, 3); got[0].ChunkID != "roads/toll" || !near(got[0].Score, 3./61) {
			t.Errorf("fused: %+v", got)
		}
	})
	if got, err := b.Arms()[0].Candidates(t.Context(), q, 20); err != nil || !reflect.DeepEqual(got, want[0]) {
		t.Errorf("an arm that the others do not follow: %v, error %v", got, err)
	}
	if lists, err := b.Lists(t.Context(), q, 0); err != nil || len(lists) != 3 || lists[0] != nil {
		t.Errorf("no limit: %v, error %v", lists, err)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if _, err := b.Lists(t.Context(), q, 3); !errors.Is(err, mapmatched.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// TestBatchOfSessions: every turn of many sessions is one round trip, as each
// waits until its arms have asked.
func TestBatchOfSessions(t *testing.T) {
	s := faulty(t, nil)
	c := s.client(nil)
	arms := s.arms(c, adaptertest.NewCorpus())
	b, err := qdrant.NewBatch(arms...)
	if err != nil {
		t.Fatal(err)
	}
	b.Patience = time.Hour
	const sessions, turns = 64, 10
	s.fake.ResetCalls()
	var wg sync.WaitGroup
	for i := range sessions {
		wg.Go(func() {
			for turn := range turns {
				q := mapmatched.Query{Text: fmt.Sprint("toll in coins ", i), Turn: turn}
				var asking sync.WaitGroup
				for _, arm := range b.Arms() {
					asking.Go(func() {
						if _, err := arm.Candidates(t.Context(), q, 20); err != nil {
							t.Error(err)
						}
					})
				}
				asking.Wait()
			}
		})
	}
	wg.Wait()
	if got := s.fake.Calls(); !reflect.DeepEqual(got, map[string]int{"Points/QueryBatch": sessions * turns}) {
		t.Errorf("calls %v, want %d of QueryBatch", got, sessions*turns)
	}
	// An arm alone asks while there is time left, and one whose caller leaves
	// leaves nothing behind.
	s.fake.ResetCalls()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
	if got, err := b.Arms()[0].Candidates(ctx, mapmatched.Query{Text: "road"}, 5); err != nil || len(got) == 0 {
		t.Errorf("alone with a deadline: %v, error %v", got, err)
	}
	cancel()
	ctx, cancel = context.WithCancel(t.Context())
	time.AfterFunc(time.Millisecond, cancel)
	if _, err := b.Arms()[0].Candidates(ctx, mapmatched.Query{Text: "road"}, 5); !errors.Is(err, context.Canceled) {
		t.Errorf("left: error %v", err)
	}
	if got := s.fake.Calls(); !reflect.DeepEqual(got, map[string]int{"Points/Query": 1}) {
		t.Errorf("calls %v, want one Query", got)
	}
}

// TestBatchArmsApart: an arm that cannot ask fails alone; one whose caller
// leaves does not take the others with it.
func TestBatchArmsApart(t *testing.T) {
	s := faulty(t, nil)
	c := s.client(nil)
	arms := s.arms(c, adaptertest.NewCorpus())
	b, err := qdrant.NewBatch(arms[0], arms[1])
	if err != nil {
		t.Fatal(err)
	}
	both := func(q mapmatched.Query, ctx0, ctx1 context.Context) (errs [2]error) {
		var wg sync.WaitGroup
		for i, ctx := range []context.Context{ctx0, ctx1} {
			wg.Go(func() { _, errs[i] = b.Arms()[i].Candidates(ctx, q, 5) })
		}
		wg.Wait()
		return errs
	}
	errs := both(mapmatched.Query{Text: "road", Vector: []float32{1}}, t.Context(), t.Context())
	expect(t, errs[0], mapmatched.KindInvalid, "1 dimensions")
	if errs[1] != nil {
		t.Errorf("the arm of words: %v", errs[1])
	}
	defer s.fake.Inject(qdranttest.Fault{Method: "Points/QueryBatch", Delay: 300 * time.Millisecond})()
	for short := range 2 { // whichever arm comes first
		ctxs := [2]context.Context{t.Context(), t.Context()}
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		ctxs[short] = ctx
		errs = both(mapmatched.Query{Text: "road"}, ctxs[0], ctxs[1])
		cancel()
		if !errors.Is(errs[short], context.DeadlineExceeded) || errs[1-short] != nil {
			t.Errorf("errors %v, want arm %d to be over and the other to be answered", errs, short)
		}
	}
}
