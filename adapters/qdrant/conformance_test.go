package qdrant_test

import (
	"testing"
	"time"

	"github.com/mapmatched/mmplug/adapters/qdrant"
	"github.com/mapmatched/mmplug/integration/qdranttest"
	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/mapmatched/adaptertest"
)

func TestConformance(t *testing.T) {
	for _, c := range []struct {
		name    string
		write   qdrant.WriterOptions
		open    qdrant.Options
		harness adaptertest.ProviderHarness
	}{
		{name: "unnamed", harness: adaptertest.ProviderHarness{AlwaysHits: true}},
		{name: "named", write: qdrant.WriterOptions{Vector: "dense"}, open: qdrant.Options{Vector: "dense"}, harness: adaptertest.ProviderHarness{AlwaysHits: true}},
		{name: "euclid", write: qdrant.WriterOptions{Distance: qdrant.DistanceEuclid}, harness: adaptertest.ProviderHarness{AlwaysHits: true}},
		{name: "sparse", write: qdrant.WriterOptions{Sparse: "terms"}, open: qdrant.Options{Vector: "terms", SparseEncoder: qdrant.TermQuery}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := server(t)
			c.harness.New = func(corpus adaptertest.Corpus) (mapmatched.CandidateProvider, error) {
				client := s.client(nil)
				name := s.write(client, &c.write, corpusRecords(corpus)...)
				opts := c.open
				opts.Embedder = corpus
				return qdrant.NewProvider(t.Context(), client, name, &opts)
			}
			adaptertest.Provider(t, c.harness)
		})
	}
}

func TestConformanceHybrid(t *testing.T) {
	s := server(t)
	adaptertest.Provider(t, adaptertest.ProviderHarness{
		AlwaysHits: true,
		New: func(corpus adaptertest.Corpus) (mapmatched.CandidateProvider, error) {
			client := s.client(nil)
			name := s.write(client, &qdrant.WriterOptions{Sparse: "terms"}, corpusRecords(corpus)...)
			dense := s.open(client, name, &qdrant.Options{Embedder: corpus})
			sparse := s.open(client, name, &qdrant.Options{Vector: "terms", SparseEncoder: qdrant.TermQuery})
			return qdrant.NewHybridProvider(qdrant.Fusion{Method: qdrant.FusionDBSF}, dense, sparse)
		},
	})
}

// TestConformanceSilent gives the suite a server that does not answer queries.
func TestConformanceSilent(t *testing.T) {
	s, stalled := faulty(t, nil), faulty(t, nil)
	open := func(s *target, corpus adaptertest.Corpus) (mapmatched.CandidateProvider, error) {
		client := s.client(nil)
		return qdrant.NewProvider(t.Context(), client, s.write(client, nil, corpusRecords(corpus)...), &qdrant.Options{Embedder: corpus})
	}
	stalled.fake.Inject(qdranttest.Fault{Method: "Points/Query", Delay: time.Hour})
	adaptertest.Provider(t, adaptertest.ProviderHarness{
		AlwaysHits: true,
		New:        func(corpus adaptertest.Corpus) (mapmatched.CandidateProvider, error) { return open(s, corpus) },
		Stalled:    func(corpus adaptertest.Corpus) (mapmatched.CandidateProvider, error) { return open(stalled, corpus) },
	})
}
