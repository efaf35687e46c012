package graphbuild

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/mapmatched/mmplug/mapmatched"
)

// edgesOf reads edges from lines of from, to, weight and type.
func edgesOf(t testing.TB, text string) []mapmatched.Edge {
	t.Helper()
	var edges []mapmatched.Edge
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) == "" {
			continue
		}
		var e mapmatched.Edge
		if _, err := fmt.Sscan(line, &e.From, &e.To, &e.Weight, &e.Type); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		edges = append(edges, e)
	}
	return edges
}

func edgeText(edges []mapmatched.Edge) string {
	var b strings.Builder
	for _, e := range edges {
		fmt.Fprintf(&b, "%s %s %v %s\n", e.From, e.To, e.Weight, e.Type)
	}
	return b.String()
}

func wantEdges(t testing.TB, got []mapmatched.Edge, want string) {
	t.Helper()
	if g, w := edgeText(got), edgeText(edgesOf(t, want)); g != w {
		t.Errorf("edges\n%swant\n%s", g, w)
	}
}

func TestUnion(t *testing.T) {
	structure := `
		b a 1 next
		b c 1 next
		c c 1 next
		c d 2 link
	`
	near := `
		a b 0.25 knn
		a c 0.5 knn
		a d 0.125 knn
		b d 0.5 knn
		c d 0.75 knn
		d c 0.25 knn
	`
	for _, c := range []struct {
		name    string
		sources []UnionSource
		opts    *UnionOptions
		nodes   string
		want    string
	}{
		{"nothing", nil, nil, "", ""},
		{"nodes alone", []UnionSource{{Nodes: []string{"z", "a"}}, {Nodes: []string{"a", "m"}}}, nil, "a m z", ""},
		{
			"one", []UnionSource{{Nodes: []string{"e"}, Edges: edgesOf(t, structure)}}, nil, "a b c d e",
			"a b 1 next\nb c 1 next\nc d 2 link",
		},
		{
			"directed", []UnionSource{{Edges: edgesOf(t, structure+near)}}, &UnionOptions{Directed: true}, "a b c d",
			"a b 0.25 knn\na c 0.5 knn\na d 0.125 knn\nb a 1 next\nb c 1 next\nb d 0.5 knn\nc d 0.75 knn\nc d 2 link\nd c 0.25 knn",
		},
		{
			"factors", []UnionSource{
				{Edges: edgesOf(t, structure), TypeFactors: map[mapmatched.EdgeType]float64{"link": 0.5, "knn": 99}},
				{Edges: edgesOf(t, near), Factor: 4, TypeFactors: map[mapmatched.EdgeType]float64{"knn": 2}},
			}, nil, "a b c d",
			"a b 2 knn\na b 1 next\na c 4 knn\na d 1 knn\nb c 1 next\nb d 4 knn\nc d 2 knn\nc d 1 link",
		},
		{
			// a d 0.125 and a b 0.25 (before c d 0.25) fill a; c d fills d and c's
			// first place; b d and a c find a or d full.
			"cap 2", []UnionSource{{Edges: edgesOf(t, structure)}, {Edges: edgesOf(t, near)}}, &UnionOptions{Caps: map[mapmatched.EdgeType]int{"knn": 2}}, "a b c d",
			"a b 0.25 knn\na b 1 next\na d 0.125 knn\nb c 1 next\nc d 0.25 knn\nc d 2 link",
		},
		{
			"cap 1 and 0", []UnionSource{{Edges: edgesOf(t, structure+near)}}, &UnionOptions{Caps: map[mapmatched.EdgeType]int{"knn": 1, "link": 0}}, "a b c d",
			"a b 1 next\na d 0.125 knn\nb c 1 next",
		},
		{
			// Equal lengths: a b before a c before b c.
			"ties", []UnionSource{{Edges: edgesOf(t, "c b 1 x\nc a 1 x\nb a 1 x\nd c 1 x")}}, &UnionOptions{Caps: map[mapmatched.EdgeType]int{"x": 1}}, "a b c d",
			"a b 1 x\nc d 1 x",
		},
		{
			"directed cap", []UnionSource{{Edges: edgesOf(t, near)}}, &UnionOptions{Directed: true, Caps: map[mapmatched.EdgeType]int{"knn": 1}}, "a b c d",
			"a d 0.125 knn\nb d 0.5 knn\nc d 0.75 knn\nd c 0.25 knn",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			u, err := Union(c.sources, c.opts)
			if err != nil {
				t.Fatal(err)
			}
			wantEdges(t, u.Edges, c.want)
			if got := strings.Join(u.Nodes, " "); got != c.nodes {
				t.Errorf("nodes %q, want %q", got, c.nodes)
			}
		})
	}
}

func TestUnionErrors(t *testing.T) {
	edge := func(from, to string, w float64) UnionSource {
		return UnionSource{Name: "links.csv", Edges: []mapmatched.Edge{{From: "a", To: "b", Weight: 1}, {From: from, To: to, Weight: w}}}
	}
	small := edge("a", "c", 1e-300)
	small.Factor = 1e-300
	for _, c := range []struct {
		source UnionSource
		opts   *UnionOptions
		want   string
		is     error
	}{
		{edge("", "b", 1), nil, `links.csv: edge 1 ("" to "b"): empty chunk ID`, mapmatched.ErrEmptyChunkID},
		{edge("a", "b", 0), nil, `links.csv: edge 1 ("a" to "b"): distance out of range: weight 0; weights are positive`, mapmatched.ErrDistance},
		{edge("a", "b", math.NaN()), nil, `weight NaN`, mapmatched.ErrNonFinite},
		{edge("a", "b", math.Inf(1)), nil, `weight +Inf`, mapmatched.ErrNonFinite},
		{small, nil, `edge 1 ("a" to "c"): value is not finite: weight 1e-300 with its factors is 0; choose other factors`, mapmatched.ErrNonFinite},
		{UnionSource{Nodes: []string{"a", ""}}, nil, "source 0: node 1: empty chunk ID", mapmatched.ErrEmptyChunkID},
		{UnionSource{Factor: -1}, nil, "source 0: Factor is -1, want a positive finite number", mapmatched.ErrInvalidConfig},
		{UnionSource{TypeFactors: map[mapmatched.EdgeType]float64{"x": 0}}, nil, `source 0: the factor of edge type "x" is 0`, mapmatched.ErrInvalidConfig},
		{UnionSource{}, &UnionOptions{Caps: map[mapmatched.EdgeType]int{"x": -1}}, `the cap of edge type "x" is -1, want 0 or more`, mapmatched.ErrInvalidConfig},
	} {
		_, err := Union([]UnionSource{c.source}, c.opts)
		if err == nil || !strings.Contains(err.Error(), c.want) || !errors.Is(err, c.is) {
			t.Errorf("error %v, want %q", err, c.want)
		}
	}
}

func randomEdges(r *rand.Rand, nodes, n int) []mapmatched.Edge {
	edges := make([]mapmatched.Edge, n)
	for i := range edges {
		edges[i] = mapmatched.Edge{
			From: fmt.Sprintf("n%d", r.IntN(nodes)), To: fmt.Sprintf("n%d", r.IntN(nodes)),
			Weight: float64(1+r.IntN(5)) / 4, Type: mapmatched.EdgeType([]string{"knn", "link"}[r.IntN(2)]),
		}
	}
	return edges
}

// degrees counts the edges of a type that belong to each node.
func degrees(edges []mapmatched.Edge, kind mapmatched.EdgeType, directed bool) map[string]int {
	d := map[string]int{}
	for _, e := range edges {
		if e.Type != kind {
			continue
		}
		d[e.From]++
		if !directed {
			d[e.To]++
		}
	}
	return d
}

// A cap holds at every node, no edge that is left out had room at both ends,
// and the order of edges does not matter.
func TestUnionCaps(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 8))
	for range 200 {
		edges := randomEdges(r, 2+r.IntN(20), r.IntN(100))
		directed := r.IntN(2) == 0
		limit := r.IntN(5)
		free, err := Union([]UnionSource{{Edges: edges}}, &UnionOptions{Directed: directed})
		if err != nil {
			t.Fatal(err)
		}
		opts := &UnionOptions{Directed: directed, Caps: map[mapmatched.EdgeType]int{"knn": limit}}
		u, err := Union([]UnionSource{{Edges: edges}}, opts)
		if err != nil {
			t.Fatal(err)
		}
		got := degrees(u.Edges, "knn", directed)
		for id, d := range got {
			if d > limit {
				t.Fatalf("%s has %d edges, cap %d", id, d, limit)
			}
		}
		for _, e := range free.Edges {
			if !slices.Contains(u.Edges, e) && (e.Type != "knn" || got[e.From] < limit && (directed || got[e.To] < limit)) {
				t.Fatalf("edge %+v is missing", e)
			}
		}
		shuffled := slices.Clone(edges)
		r.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		half := r.IntN(len(edges) + 1)
		again, err := Union([]UnionSource{{Edges: shuffled[:half]}, {Edges: shuffled[half:]}}, opts)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(u, again) {
			t.Fatal("the order of the edges matters")
		}
		if u.Loops+u.Repeated+u.Capped+len(u.Edges) != len(edges) || u.Capped != len(free.Edges)-len(u.Edges) {
			t.Fatalf("%d loops, %d repeated, %d capped and %d left of %d edges", u.Loops, u.Repeated, u.Capped, len(u.Edges), len(edges))
		}
	}
}

func ExampleUnion() {
	u, err := Union([]UnionSource{
		{Name: "structure", Edges: []mapmatched.Edge{{From: "intro", To: "setup", Weight: 1, Type: mapmatched.EdgeNext}}},
		{Name: "vectors", Factor: 3, Edges: []mapmatched.Edge{
			{From: "intro", To: "usage", Weight: 0.25, Type: mapmatched.EdgeKNN},
			{From: "setup", To: "usage", Weight: 0.5, Type: mapmatched.EdgeKNN},
		}},
	}, &UnionOptions{Caps: map[mapmatched.EdgeType]int{mapmatched.EdgeKNN: 1}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, e := range u.Edges {
		fmt.Println(e.From, e.To, e.Weight, e.Type)
	}
	// Output:
	// intro setup 1 next
	// intro usage 0.75 knn
}
