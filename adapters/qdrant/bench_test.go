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
		r.Chunk.Text = strings.Repeat(fmt.Sprintf("some words %d of a chunk ", i), 25)
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
	median := func(d []time.Duration) float64 {
		slices.Sort(d)
		return float64(d[len(d)/2])
	}
	b.ReportMetric(median(times[0])/1e3, "raw-µs")
	b.ReportMetric(median(times[1])/1e3, "adapter-µs")
	b.ReportMetric(100*(median(times[1])/median(times[0])-1), "overhead-%")
}

// BenchmarkArms compares three arms of a turn in one round trip with three.
func BenchmarkArms(b *testing.B) {
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
	q := mapmatched.Query{Text: "words 7 17 27", Vector: query}
	b.Run("one/arms=3/limit=50", func(b *testing.B) {
		batch, err := qdrant.NewBatch(arms...)
		if err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			if _, err := batch.Lists(b.Context(), q, 50); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("three/arms=3/limit=50", func(b *testing.B) {
		for b.Loop() {
			for _, p := range arms {
				if _, err := p.Candidates(b.Context(), q, 50); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
}
