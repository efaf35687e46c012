package adaptertest

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/mapmatched/mmplug/mapmatched"
)

// graphSpecs are small graphs, each with one difficulty. The weights are
// multiples of 1/64 with exact sums, so that every summation order and float32
// give the same bits.
func graphSpecs() []GraphSpec {
	edge := func(from, to string, weight float64) mapmatched.Edge {
		return mapmatched.Edge{From: from, To: to, Weight: weight, Type: mapmatched.EdgeLink}
	}
	return []GraphSpec{
		{Name: "a path of exactly the maximum", MaximumDistance: 3, Nodes: []string{"a", "b", "c", "d", "e"},
			Edges: []mapmatched.Edge{edge("a", "b", 1), edge("b", "c", 1.5), edge("c", "d", 0.5), edge("d", "e", 0.25)}},
		{Name: "edges longer than the maximum", MaximumDistance: 4, Nodes: []string{"a", "b", "c", "e", "f", "g", "h"},
			Edges: []mapmatched.Edge{edge("a", "b", 9), edge("a", "c", 2), edge("c", "b", 1.5), edge("e", "f", 9), edge("g", "h", 4)}},
		{Name: "directed", MaximumDistance: 8, Directed: true, Nodes: []string{"a", "b", "c", "d"},
			Edges: []mapmatched.Edge{edge("a", "b", 1), edge("b", "c", 2), edge("c", "a", 4), edge("a", "d", 0.5)}},
		{Name: "two ways of different length", MaximumDistance: 8, Directed: true, Nodes: []string{"a", "b", "c"},
			Edges: []mapmatched.Edge{edge("a", "b", 1), edge("b", "a", 3), edge("c", "b", 1)}},
		{Name: "parallel edges", MaximumDistance: 8, Nodes: []string{"a", "b", "c"},
			Edges: []mapmatched.Edge{edge("a", "b", 3), edge("a", "b", 1), edge("b", "a", 2), edge("b", "c", 0.5), edge("c", "b", 1)}},
		{Name: "edges from a chunk to itself", MaximumDistance: 8, Nodes: []string{"a", "b"},
			Edges: []mapmatched.Edge{edge("a", "a", 0.5), edge("a", "b", 1), edge("b", "b", 2)}},
		{Name: "isolated chunks and islands", MaximumDistance: 2, Nodes: []string{"a", "alone", "b", "x", "y"},
			Edges: []mapmatched.Edge{edge("a", "b", 1), edge("x", "y", 0.5)}},
		{Name: "no edges", MaximumDistance: 1, Nodes: []string{"a", "b"}},
		{Name: "equal distances", MaximumDistance: 8, Nodes: []string{"B", "a", "a1", "a10", "a2", "hub", "ä"},
			Edges: []mapmatched.Edge{edge("hub", "a2", 1), edge("ä", "hub", 1), edge("hub", "a10", 1), edge("B", "hub", 1), edge("hub", "a1", 1), edge("hub", "a", 1)}},
		{Name: "awkward IDs", MaximumDistance: 8, Nodes: []string{" ", "100%", "a b#c?d/e", `back\slash`, `q"uote`, "故乡"},
			Edges: []mapmatched.Edge{edge(" ", "100%", 1), edge("100%", "a b#c?d/e", 1), edge(`back\slash`, "a b#c?d/e", 1), edge(`back\slash`, `q"uote`, 1), edge("故乡", `q"uote`, 1)}},
		randomSpec("random", 90, false),
		randomSpec("random directed", 120, true),
	}
}

// decimalSpec is a chain whose length depends in its last bit on the end from
// which it is summed.
func decimalSpec() GraphSpec {
	spec := GraphSpec{Name: "decimal weights", MaximumDistance: 8, Nodes: []string{"a", "b", "c", "d"}}
	for i, weight := range []float64{0.1, 0.2, 0.3} {
		spec.Edges = append(spec.Edges, mapmatched.Edge{From: spec.Nodes[i], To: spec.Nodes[i+1], Weight: weight, Type: mapmatched.EdgeNext})
	}
	return spec
}

// randomSpec draws a graph of 40 nodes from a fixed stream of random numbers:
// weights in [0.5, 3.5), maximum distance 4.
func randomSpec(name string, edges int, directed bool) GraphSpec {
	const nodes = 40
	rng := rand.New(rand.NewPCG(uint64(nodes), uint64(edges)))
	spec := GraphSpec{Name: name, MaximumDistance: 4, Directed: directed}
	for i := range nodes {
		spec.Nodes = append(spec.Nodes, fmt.Sprintf("chunk-%d", i))
	}
	types := []mapmatched.EdgeType{mapmatched.EdgeNext, mapmatched.EdgeLink, mapmatched.EdgeKNN}
	for i := range edges {
		from, to := rng.IntN(nodes), rng.IntN(nodes)
		weight := 0.5 + float64(rng.IntN(3*64))/64
		spec.Edges = append(spec.Edges, mapmatched.Edge{From: spec.Nodes[from], To: spec.Nodes[to], Weight: weight, Type: types[i%len(types)]})
	}
	return spec
}

// lengths is the reference: the shortest path from one chunk to every other
// one, without a clamp, by relaxing all edges until nothing changes (Bellman
// and Ford). Sums run from the source on. Chunks out of reach have none.
func (spec GraphSpec) lengths(from string) map[string]float64 {
	dist := map[string]float64{from: 0}
	relax := func(a, b string, weight float64) bool {
		start, reached := dist[a]
		if !reached {
			return false
		}
		if old, reached := dist[b]; reached && old <= start+weight {
			return false
		}
		dist[b] = start + weight
		return true
	}
	for changed := true; changed; {
		changed = false
		for _, e := range spec.Edges {
			changed = relax(e.From, e.To, e.Weight) || changed
			if !spec.Directed {
				changed = relax(e.To, e.From, e.Weight) || changed
			}
		}
	}
	return dist
}

// distances is the right answer to Distances, row by row.
func (spec GraphSpec) distances(from, to []string) []float64 {
	out := make([]float64, 0, len(from)*len(to))
	for _, f := range from {
		lengths := spec.lengths(f)
		for _, t := range to {
			d, reached := lengths[t]
			if !reached {
				d = math.Inf(1)
			}
			out = append(out, min(d, spec.MaximumDistance))
		}
	}
	return out
}

// neighborhood is the right answer to Neighborhood.
func (spec GraphSpec) neighborhood(id string, radius float64) []mapmatched.Neighbor {
	var out []mapmatched.Neighbor
	lengths := spec.lengths(id)
	for _, other := range spec.Nodes {
		if d, reached := lengths[other]; reached && other != id && d <= min(radius, spec.MaximumDistance) {
			out = append(out, mapmatched.Neighbor{ChunkID: other, Distance: d})
		}
	}
	slices.SortFunc(out, compareNeighbors)
	return out
}

// compareNeighbors orders by distance and then by chunk ID.
func compareNeighbors(a, b mapmatched.Neighbor) int {
	return cmp.Or(cmp.Compare(a.Distance, b.Distance), cmp.Compare(a.ChunkID, b.ChunkID))
}
