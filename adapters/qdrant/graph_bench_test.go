package qdrant_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	pb "github.com/qdrant/go-client/qdrant"

	"github.com/mapmatched/mmplug/adapters/qdrant"
	"github.com/mapmatched/mmplug/mapmatched"
)

// BenchmarkGraphFetch fetches a chunk and its 50 neighbors, ring by ring,
// beside the same two calls of the client alone.
func BenchmarkGraphFetch(b *testing.B) {
	s := newGraphServer(b, nil)
	nodes, edges := []string{"hub"}, []mapmatched.Edge(nil)
	for i := range 50 {
		nodes = append(nodes, fmt.Sprint("leaf", i))
		edges = append(edges, mapmatched.Edge{From: "hub", To: nodes[i+1], Weight: 1, Type: mapmatched.EdgeLink})
		for j := range 5 {
			edges = append(edges, mapmatched.Edge{From: nodes[i+1], To: fmt.Sprint("leaf", (i+j+1)%50), Weight: 2, Type: mapmatched.EdgeKNN})
		}
	}
	name := s.writeAs(s.collection(), mapmatched.CorpusIdentity{Dimension: 1, MaximumDistance: 2}, nil, graphRecords(nodes, edges, false)...)
	b.Run("raw", func(b *testing.B) {
		raw, payload := s.raw(), pb.NewWithPayloadInclude("chunk_id", "edges")
		ids := make([]*pb.PointId, len(nodes))
		for i, id := range nodes {
			ids[i] = pb.NewIDUUID(qdrant.PointUUID(id))
		}
		b.ReportAllocs()
		for b.Loop() {
			for _, ring := range [][]*pb.PointId{ids[:1], ids[1:]} {
				if _, err := raw.Get(b.Context(), &pb.GetPoints{CollectionName: name, Ids: ring, WithPayload: payload}); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
	b.Run("graph", func(b *testing.B) {
		g := mustGraph(b, s, name, &qdrant.GraphOptions{CacheBytes: -1})
		b.ReportAllocs()
		for b.Loop() {
			near, err := g.Neighborhood(b.Context(), "hub", 1.5)
			if err != nil || len(near) != 50 {
				b.Fatal(len(near), err)
			}
		}
	})
}

// BenchmarkGraphDistances asks for the distances of a turn: all fetched, and all
// in memory.
func BenchmarkGraphDistances(b *testing.B) {
	const n = 2000
	s := newGraphServer(b, nil)
	r := rand.New(rand.NewPCG(1, 1))
	var nodes []string
	var edges []mapmatched.Edge
	for i := range n { // documents of 10 chunks in a row, and a link from every chunk
		nodes = append(nodes, fmt.Sprint("c", i))
		if i%10 > 0 {
			edges = append(edges, mapmatched.Edge{From: nodes[i-1], To: nodes[i], Weight: 1, Type: mapmatched.EdgeNext})
		}
		edges = append(edges, mapmatched.Edge{From: nodes[i], To: fmt.Sprint("c", r.IntN(n)), Weight: 3, Type: mapmatched.EdgeLink})
	}
	name := s.writeAs(s.collection(), mapmatched.CorpusIdentity{Dimension: 1, MaximumDistance: 6}, nil, graphRecords(nodes, edges, false)...)
	var turn []string
	for range 40 {
		turn = append(turn, nodes[r.IntN(n)])
	}
	for _, c := range []struct {
		name  string
		cache int64
	}{{"fetched", -1}, {"cached", 0}} {
		b.Run("candidates=20/"+c.name, func(b *testing.B) {
			g := mustGraph(b, s, name, &qdrant.GraphOptions{CacheBytes: c.cache})
			dst := make([]float64, 400)
			if err := g.Distances(b.Context(), turn[:20], turn[20:], dst); err != nil {
				b.Fatal(err)
			}
			if s.fake != nil {
				s.fake.ResetCalls()
			}
			b.ReportAllocs()
			for b.Loop() {
				if err := g.Distances(b.Context(), turn[:20], turn[20:], dst); err != nil {
					b.Fatal(err)
				}
			}
			if s.fake != nil {
				b.ReportMetric(float64(s.fake.Calls()["Points/Get"])/float64(b.N), "trips/op")
			}
		})
	}
}
