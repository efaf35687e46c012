package graphbuild

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/mapmatched/mmplug/mapmatched"
)

func graphOf(t *testing.T, opts mapmatched.GraphOptions, edges ...mapmatched.Edge) *mapmatched.Graph {
	t.Helper()
	g, err := mapmatched.NewGraph(edges, &opts)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// chain joins n chunks in a row by edges of length 1.
func chain(n int) []mapmatched.Edge {
	var edges []mapmatched.Edge
	for i := 1; i < n; i++ {
		edges = append(edges, mapmatched.Edge{From: fmt.Sprintf("c%04d", i-1), To: fmt.Sprintf("c%04d", i), Weight: 1, Type: mapmatched.EdgeNext})
	}
	return edges
}

func TestMeasure(t *testing.T) {
	edge := func(from, to string, weight float64, typ mapmatched.EdgeType) mapmatched.Edge {
		return mapmatched.Edge{From: from, To: to, Weight: weight, Type: typ}
	}
	for _, c := range []struct {
		name    string
		opts    mapmatched.GraphOptions
		edges   []mapmatched.Edge
		want    Stats
		verdict string
	}{
		{
			name:    "empty",
			want:    Stats{EdgesByType: []TypeCount{}, MaximumDistance: 10},
			verdict: "The graph is empty.",
		},
		{
			name:    "one node",
			opts:    mapmatched.GraphOptions{Nodes: []string{"a"}},
			want:    Stats{Nodes: 1, EdgesByType: []TypeCount{}, MaximumDistance: 10, Isolated: 1, Components: 1, LargestComponent: 1, Sources: 1},
			verdict: "The graph has a single chunk: there is nowhere to move.",
		},
		{
			name: "no edges",
			opts: mapmatched.GraphOptions{Nodes: []string{"a", "b", "c"}},
			want: Stats{Nodes: 3, EdgesByType: []TypeCount{}, MaximumDistance: 10, Isolated: 3, Components: 3, LargestComponent: 1,
				Disconnected: 1, Sources: 3, ClampedShare: 1},
			verdict: "No two chunks are joined: every move costs the same, so the graph tells the decoder nothing. Add links or a kNN graph.",
		},
		{
			// a–b–c in a row, d–e apart, f alone. Within 2: a reaches b and c,
			// b reaches a and c, c reaches both, d and e each other; a–c are
			// exactly the maximum apart.
			name:  "components, an isolated node and a pair exactly at the maximum",
			opts:  mapmatched.GraphOptions{MaximumDistance: 2, Nodes: []string{"f"}},
			edges: []mapmatched.Edge{edge("a", "b", 1, "next"), edge("b", "c", 1, "next"), edge("d", "e", 0.5, "link")},
			want: Stats{Nodes: 6, Edges: 3, EdgesByType: []TypeCount{{"link", 1}, {"next", 2}}, MaximumDistance: 2,
				Degree: Degree{Least: 0, Median: 1, Mean: 1, Most: 2}, Isolated: 1, Components: 3, LargestComponent: 3,
				Disconnected: 22.0 / 30, Sources: 6, MeanReach: 8.0 / 6, ClampedShare: 24.0 / 30},
			verdict: "The graph falls into 3 components, the largest of 3 chunks, so 73.3% of the pairs can never be reached; 80.0% are out of reach of each other. A higher maximum distance does not join components: add links or a kNN graph.",
		},
		{
			// From a: b, c. From b: c. From c: none.
			name:  "directed",
			opts:  mapmatched.GraphOptions{Directed: true},
			edges: []mapmatched.Edge{edge("a", "b", 1, ""), edge("b", "c", 1, "")},
			want: Stats{Nodes: 3, Edges: 2, EdgesByType: []TypeCount{{"", 2}}, Directed: true, MaximumDistance: 10,
				Degree: Degree{Least: 1, Median: 1, Mean: 4.0 / 3, Most: 2}, Components: 1, LargestComponent: 3,
				Sources: 3, MeanReach: 1, ClampedShare: 0.5},
			verdict: "A chunk reaches 1 of 2 others within 10; 50.0% of the pairs are out of reach, where a move is a jump. For fewer jumps raise k or add links.",
		},
		{
			name:  "everything near",
			edges: []mapmatched.Edge{edge("a", "b", 1, "next"), edge("b", "c", 1, "next")},
			want: Stats{Nodes: 3, Edges: 2, EdgesByType: []TypeCount{{"next", 2}}, MaximumDistance: 10,
				Degree: Degree{Least: 1, Median: 1, Mean: 4.0 / 3, Most: 2}, Components: 1, LargestComponent: 3,
				Sources: 3, MeanReach: 2},
			verdict: "Nearly every chunk is within 10 of every other: moves are never out of reach, only longer or shorter.",
		},
		{
			name:  "every edge as long as the maximum",
			opts:  mapmatched.GraphOptions{MaximumDistance: 1},
			edges: []mapmatched.Edge{edge("a", "b", 1, "next"), edge("b", "c", 1, "next")},
			want: Stats{Nodes: 3, Edges: 2, EdgesByType: []TypeCount{{"next", 2}}, MaximumDistance: 1,
				Degree: Degree{Least: 1, Median: 1, Mean: 4.0 / 3, Most: 2}, Components: 1, LargestComponent: 3,
				Sources: 3, MeanReach: 4.0 / 3, ClampedShare: 1},
			verdict: "No chunk is nearer to another than the maximum distance 1, so every move costs the same: raise it.",
		},
		{
			name:  "edges beyond the maximum",
			opts:  mapmatched.GraphOptions{MaximumDistance: 1},
			edges: []mapmatched.Edge{edge("a", "b", 0.5, "next"), edge("b", "c", 7, "next"), edge("c", "d", 7, "next")},
			want: Stats{Nodes: 4, Edges: 3, EdgesByType: []TypeCount{{"next", 3}}, MaximumDistance: 1,
				Degree: Degree{Least: 1, Median: 1, Mean: 1.5, Most: 2}, Components: 1, LargestComponent: 4,
				Sources: 4, MeanReach: 0.5, ClampedShare: 10.0 / 12},
			verdict: "A chunk reaches 0.5 others within 1, so nearly every move costs the same: raise the maximum distance or add links.",
		},
		{
			// Two threes: 6 of 15 pairs are joined, and no maximum joins the others.
			name: "components",
			edges: []mapmatched.Edge{
				edge("a", "b", 1, "next"), edge("b", "c", 1, "next"),
				edge("x", "y", 1, "next"), edge("y", "z", 1, "next"),
			},
			want: Stats{Nodes: 6, Edges: 4, EdgesByType: []TypeCount{{"next", 4}}, MaximumDistance: 10,
				Degree: Degree{Least: 1, Median: 1, Mean: 4.0 / 3, Most: 2}, Components: 2, LargestComponent: 3, Disconnected: 18.0 / 30,
				Sources: 6, MeanReach: 2, ClampedShare: 18.0 / 30},
			verdict: "The graph falls into 2 components, the largest of 3 chunks, so 60.0% of the pairs can never be reached; 60.0% are out of reach of each other. A higher maximum distance does not join components: add links or a kNN graph.",
		},
		{
			// One chunk alone is 4 of the 10 pairs, and not why most are out of reach.
			name: "components that matter less", opts: mapmatched.GraphOptions{MaximumDistance: 2, Nodes: []string{"x"}},
			edges: []mapmatched.Edge{edge("a", "b", 1, "next"), edge("b", "c", 9, "next"), edge("c", "d", 9, "next"), edge("d", "e", 1, "next"), edge("e", "f", 9, "next"), edge("f", "g", 9, "next")},
			want: Stats{Nodes: 8, Edges: 6, EdgesByType: []TypeCount{{"next", 6}}, MaximumDistance: 2,
				Degree: Degree{Least: 0, Median: 2, Mean: 1.5, Most: 2}, Isolated: 1, Components: 2, LargestComponent: 7, Disconnected: 14.0 / 56,
				Sources: 8, MeanReach: 0.5, ClampedShare: 52.0 / 56},
			verdict: "A chunk reaches 0.5 others within 2, so nearly every move costs the same: raise the maximum distance or add links.",
		},
		{
			name:  "half of the chunks without an edge",
			opts:  mapmatched.GraphOptions{Nodes: []string{"x", "y"}},
			edges: []mapmatched.Edge{edge("a", "b", 1, "knn")},
			want: Stats{Nodes: 4, Edges: 1, EdgesByType: []TypeCount{{"knn", 1}}, MaximumDistance: 10,
				Degree: Degree{Least: 0, Median: 0, Mean: 0.5, Most: 1}, Isolated: 2, Components: 3, LargestComponent: 2,
				Disconnected: 10.0 / 12, Sources: 4, MeanReach: 0.5, ClampedShare: 10.0 / 12},
			verdict: "50.0% of the chunks have no edge at all: join them by links or a kNN graph.",
		},
		{
			// Of parallel edges the shortest counts, whatever its direction.
			name:  "parallel edges",
			opts:  mapmatched.GraphOptions{MaximumDistance: 3},
			edges: []mapmatched.Edge{edge("a", "b", 2, "link"), edge("b", "a", 1, "next"), edge("a", "b", 5, "knn")},
			want: Stats{Nodes: 2, Edges: 1, EdgesByType: []TypeCount{{"next", 1}}, MaximumDistance: 3,
				Degree: Degree{Least: 1, Median: 1, Mean: 1, Most: 1}, Components: 1, LargestComponent: 2,
				Sources: 2, MeanReach: 1},
			verdict: "Nearly every chunk is within 3 of every other: moves are never out of reach, only longer or shorter.",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Measure(t.Context(), graphOf(t, c.opts, c.edges...))
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(*got, c.want) {
				t.Errorf("got  %+v\nwant %+v", *got, c.want)
			}
			if got.Verdict() != c.verdict {
				t.Errorf("verdict %q, want %q", got.Verdict(), c.verdict)
			}
		})
	}
}

// A graph of more than 256 nodes is measured from 256 of them, spread evenly,
// and whatever the order of its edges the figures are the same.
func TestMeasureSamples(t *testing.T) {
	const n = 1000
	edges := chain(n)
	got, err := Measure(t.Context(), graphOf(t, mapmatched.GraphOptions{MaximumDistance: 5}, edges...))
	if err != nil {
		t.Fatal(err)
	}
	// Source i is node i*n/256; a node at position p reaches 5 on each side.
	reached, below := 0, 0
	for i := range statsSources {
		p := i * n / statsSources
		reached += min(p, 5) + min(n-1-p, 5)
		below += min(p, 4) + min(n-1-p, 4)
	}
	pairs := statsSources * (n - 1)
	if got.Sources != statsSources || got.MeanReach != float64(reached)/statsSources || got.ClampedShare != float64(pairs-below)/float64(pairs) {
		t.Errorf("got %+v, want reach %v", got, float64(reached)/statsSources)
	}
	if v, want := got.Verdict(), "A chunk reaches about 10 of 999 others within 5 (from a sample of 256); 99.2% of the pairs are out of reach, where a move is a jump. For fewer jumps raise k or add links."; v != want || !got.Sampled() {
		t.Errorf("verdict %q, want %q", v, want)
	}
	slices.Reverse(edges)
	again, err := Measure(t.Context(), graphOf(t, mapmatched.GraphOptions{MaximumDistance: 5}, edges...))
	if err != nil || !reflect.DeepEqual(got, again) {
		t.Errorf("edges in another order give %+v, %v, not %+v", again, err, got)
	}
}

func TestPercent(t *testing.T) {
	for share, want := range map[float64]string{
		0: "0.0%", 1e-9: "<0.1%", 0.0004: "<0.1%", 0.001: "0.1%", 0.03999: "4.0%", 0.5: "50.0%", 0.9994: "99.9%", 0.9999: ">99.9%", 1: "100.0%",
	} {
		if got := Percent(share); got != want {
			t.Errorf("%v is %s, want %s", share, got, want)
		}
	}
}

func TestMeasureCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Measure(ctx, graphOf(t, mapmatched.GraphOptions{}, chain(5)...)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}
