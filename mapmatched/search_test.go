package mapmatched

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestSearchSettlesInAscendingDistance(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 31))
		edges := randomEdges(r, 200, 900)
		for i := range edges { // weights over ten powers of ten, so that some buckets are full and most empty
			edges[i].Weight *= math.Pow(10, float64(-r.IntN(11)))
		}
		g := mustGraph(t, edges, &GraphOptions{MaximumDistance: 2, Directed: seed%2 == 1})
		s := NewSearch(g.NumNodes())
		for v := range int32(g.NumNodes()) {
			for _, bound := range []float64{0, 5e-324, 1e-9, 0.01, 2} {
				if err := s.Within(t.Context(), g.Adjacency(), v, bound); err != nil {
					t.Fatal(err)
				}
				truth := bellmanFord(edges, GraphOptions{MaximumDistance: bound, Directed: g.Directed()}, g.ids[v])
				if len(s.Settled()) != len(truth) || s.Settled()[0] != v {
					t.Fatalf("seed %d: %d nodes within %v of node %d, want %d", seed, len(s.Settled()), bound, v, len(truth))
				}
				last := 0.0
				for _, u := range s.Settled() {
					d, found := s.Distance(u)
					if !found || d != truth[g.ids[u]] || d < last {
						t.Fatalf("seed %d: distance from %d to %d is %v after %v, want %v", seed, v, u, d, last, truth[g.ids[u]])
					}
					last = d
				}
			}
		}
	}
}

func TestSearchDistanceOfNodesNotFound(t *testing.T) {
	g := mustGraph(t, []Edge{{From: "a", To: "b", Weight: 1}, {From: "c", To: "d", Weight: 1}}, nil)
	s := NewSearch(g.NumNodes())
	if err := s.Reach(t.Context(), g.Adjacency(), 0, 10, []int32{-1, 1, 3}); err != nil {
		t.Fatal(err)
	}
	for node, want := range map[int32]bool{-1: false, 0: true, 1: true, 2: false, 3: false} {
		if d, found := s.Distance(node); found != want || !found && d != 0 {
			t.Errorf("node %d: distance %v, found %t, want %t", node, d, found, want)
		}
	}
}

func TestShortestPathAddsUpToTheDistance(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 32))
		g := mustGraph(t, randomEdges(r, 40, 100), &GraphOptions{MaximumDistance: 4, Directed: seed%2 == 0})
		ids := append(g.Nodes(), "unknown")
		for _, from := range ids {
			d := make([]float64, len(ids))
			if err := g.Distances(t.Context(), []string{from}, ids, d); err != nil {
				t.Fatal(err)
			}
			near, err := g.Neighborhood(t.Context(), from, 4)
			if err != nil {
				t.Fatal(err)
			}
			for i, to := range ids {
				path, err := g.ShortestPath(t.Context(), from, to)
				if err != nil {
					t.Fatal(err)
				}
				reached := slices.ContainsFunc(near, func(n Neighbor) bool { return n.ChunkID == to })
				if reached != (len(path) > 0) {
					t.Fatalf("seed %d: path from %s to %s is %v, in reach: %t", seed, from, to, path, reached)
				}
				if !reached {
					continue
				}
				sum, at := 0.0, from
				for _, e := range path {
					if e.From != at {
						t.Fatalf("seed %d: path from %s to %s has a gap: %v", seed, from, to, path)
					}
					sum, at = sum+e.Weight, e.To
				}
				if sum != d[i] || at != to {
					t.Fatalf("seed %d: path from %s to %s is %v long, distance %v: %v", seed, from, to, sum, d[i], path)
				}
			}
		}
	}
}
