package qdrant_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	pb "github.com/qdrant/go-client/qdrant"

	"github.com/mapmatched/mmplug/adapters/qdrant"
	"github.com/mapmatched/mmplug/mapmatched"
)

// filled writes 2,000 chunks with 128 dimensions and about 600 bytes of text.
func filled(b *testing.B, s *target, c *qdrant.Client) (name string, query []float32) {
	b.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	vector := func() []float32 {
		v := make([]float32, 128)
		for i := range v {
			v[i] = float32(rng.NormFloat64())
		}
		return v
	}
	var all []mapmatched.Record
	for i := range 2000 {
		r := record(fmt.Sprintf("document %d/chunk %d", i/10, i%10), vector()...)
		r.Chunk.Document, r.Chunk.Title, r.Chunk.Section = fmt.Sprint("document ", i/10), "A title", "Part > Section"
		words := make([]string, 60+rng.IntN(60))
		for j := range words {
			words[j] = fmt.Sprint("word", rng.IntN(500))
		}
		r.Chunk.Text = strings.Join(words, " ")
		all = append(all, r)
	}
	return s.write(c, &qdrant.WriterOptions{Sparse: "terms"}, all...), vector()
}

// BenchmarkCandidates compares the adapter with the raw client, which asks the
// same and reads nothing of what comes. The calls take turns, so that whatever
// else the machine does befalls both; overhead-% is the median of the adapter's
// times over that of the client's.
func BenchmarkCandidates(b *testing.B) {
	for _, limit := range []int{10, 50, 200} {
		b.Run(fmt.Sprintf("limit=%d", limit), func(b *testing.B) { benchmarkCandidates(b, limit) })
	}
}

func benchmarkCandidates(b *testing.B, limit int) {
	s := server(b)
	c := s.client(func(o *qdrant.ClientOptions) { o.PoolSize = 1 })
	name, query := filled(b, s, c)
	raw := s.raw()
	p, err := qdrant.NewProvider(b.Context(), c, name, nil)
	if err != nil {
		b.Fatal(err)
	}
	request := &pb.QueryPoints{
		CollectionName: name, Query: pb.NewQueryDense(query), Limit: new(uint64(limit)),
		WithPayload: pb.NewWithPayloadInclude("chunk_id", "text", "title", "section", "document", "ordinal", "start", "end"),
	}
	var times [2][]time.Duration
	for b.Loop() {
		began := time.Now()
		points, err := raw.Query(b.Context(), request)
		times[0] = append(times[0], time.Since(began))
		if err != nil || len(points) != limit {
			b.Fatalf("%d points, error %v", len(points), err)
		}
		began = time.Now()
		got, err := p.Candidates(b.Context(), mapmatched.Query{Vector: query}, limit)
		times[1] = append(times[1], time.Since(began))
		if err != nil || len(got) != limit {
			b.Fatalf("%d candidates, error %v", len(got), err)
		}
	}
	b.ReportMetric(median(times[0])/1e3, "raw-µs")
	b.ReportMetric(median(times[1])/1e3, "adapter-µs")
	b.ReportMetric(100*(median(times[1])/median(times[0])-1), "overhead-%")
}

// BenchmarkArms compares three arms of a turn in one round trip with three, in
// turns; saved-% is how much less the median of the one is than that of the
// three. The scores around the limit are not tied, which would cost more round
// trips either way.
func BenchmarkArms(b *testing.B) {
	b.Run("arms=3/limit=50", benchmarkArms)
}

func benchmarkArms(b *testing.B) {
	const limit = 50
	s := server(b)
	c := s.client(nil)
	name, query := filled(b, s, c)
	var arms []*qdrant.Provider
	for _, opts := range []qdrant.Options{{}, {Vector: "terms", SparseEncoder: qdrant.TermQuery}, {Exact: true}} {
		p, err := qdrant.NewProvider(b.Context(), c, name, &opts)
		if err != nil {
			b.Fatal(err)
		}
		arms = append(arms, p)
	}
	batch, err := qdrant.NewBatch(arms...)
	if err != nil {
		b.Fatal(err)
	}
	q := mapmatched.Query{Text: "word7 word17 word27", Vector: query}
	if s.fake != nil {
		s.fake.ResetCalls()
	}
	var times [2][]time.Duration
	for b.Loop() {
		began := time.Now()
		if _, err := batch.Lists(b.Context(), q, limit); err != nil {
			b.Fatal(err)
		}
		times[0] = append(times[0], time.Since(began))
		began = time.Now()
		for _, p := range arms {
			if got, err := p.Candidates(b.Context(), q, limit); err != nil || len(got) != limit {
				b.Fatalf("%d candidates, error %v", len(got), err)
			}
		}
		times[1] = append(times[1], time.Since(began))
	}
	if n := len(times[0]); s.fake != nil && (s.fake.Calls()["Points/QueryBatch"] != n || s.fake.Calls()["Points/Query"] != 3*n) {
		b.Fatalf("calls %v for %d turns: scores are tied", s.fake.Calls(), n)
	}
	b.ReportMetric(median(times[0])/1e3, "one-µs")
	b.ReportMetric(median(times[1])/1e3, "three-µs")
	b.ReportMetric(100*(1-median(times[0])/median(times[1])), "saved-%")
}

// median of durations in nanoseconds.
func median(d []time.Duration) float64 {
	slices.Sort(d)
	return float64(d[len(d)/2])
}
