package graphbuild

import (
	"context"
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/mapmatched/mmplug/mapmatched"
)

func TestPrune(t *testing.T) {
	star := "a b 1 knn\na c 2 knn\na d 3 knn\na e 4 knn\nb c 1 link\nd e 9 knn"
	for _, c := range []struct {
		name  string
		edges string
		opts  *PruneOptions
		want  string
	}{
		{"nothing", star, nil, star},
		// a wants b and c, b wants a, c wants a, d wants a and e, e wants a and d.
		{"mutual", star, &PruneOptions{Mutual: []MutualRule{{"knn", 2}}}, "a b 1 knn\na c 2 knn\nb c 1 link\nd e 9 knn"},
		{"mutual default", star, &PruneOptions{Mutual: []MutualRule{{Type: "knn"}}}, star},
		{"mutual of another type", star, &PruneOptions{Mutual: []MutualRule{{"link", 1}}}, star},
		{"mutual ties by ID", "a b 1 knn\na c 1 knn\nb c 1 knn", &PruneOptions{Mutual: []MutualRule{{"knn", 1}}}, "a b 1 knn"},
		{"mutual directed", "a b 1 knn\nb a 5 knn\na c 1 knn\nc b 1 knn", &PruneOptions{Directed: true, Mutual: []MutualRule{{"knn", 2}}}, "a b 1 knn\nb a 5 knn"},
		// a b and b c fill b, a c fills a and c; d is alone but for e.
		{"degree", star, &PruneOptions{MaxDegree: 2}, "a b 1 knn\na c 2 knn\nb c 1 link\nd e 9 knn"},
		{"degree 1", star, &PruneOptions{MaxDegree: 1}, "a b 1 knn\nd e 9 knn"},
		{"degree directed", star, &PruneOptions{Directed: true, MaxDegree: 1}, "a b 1 knn\nb c 1 link\nd e 9 knn"},
		// c, d and e lose all and get their shortest back, above a's limit.
		{"least degree", "a b 1 knn\na c 2 knn\na d 3 knn\na e 4 knn\nd e 9 link", &PruneOptions{Mutual: []MutualRule{{"link", 1}}, MaxDegree: 1, MinDegree: 1}, "a b 1 knn\na c 2 knn\nd e 9 link"},
		{"least degree after mutual", star, &PruneOptions{Mutual: []MutualRule{{"knn", 1}}, MinDegree: 1}, "a b 1 knn\na d 3 knn\na e 4 knn\nb c 1 link"},
		{"types to one neighbour", "a b 1 knn\na b 1 link", &PruneOptions{MaxDegree: 1}, "a b 1 knn\na b 1 link"},
		{"degree counts neighbours", "a b 1 knn\na b 1.5 link\na c 2 knn", &PruneOptions{MaxDegree: 2}, "a b 1 knn\na b 1.5 link\na c 2 knn"},
		// The long a b link still joins neighbours; a c finds a full.
		{"degree and a long parallel", "a b 1 knn\na b 9 link\na c 2 knn", &PruneOptions{MaxDegree: 1}, "a b 1 knn\na b 9 link"},
		{"directed degree counts neighbours", "a b 1 knn\na b 2 link\na c 3 knn\na d 4 knn\nb a 5 knn", &PruneOptions{Directed: true, MaxDegree: 2}, "a b 1 knn\na b 2 link\na c 3 knn\nb a 5 knn"},
		// Of a and b the two types to c and d are one neighbour each: a b comes back.
		{"least degree counts neighbours", "a c 1 knn\na c 1 link\na b 9 knn\nb d 1 knn\nb d 1 link", &PruneOptions{Mutual: []MutualRule{{"knn", 1}}, MaxDegree: 3, MinDegree: 2}, "a b 9 knn\na c 1 knn\na c 1 link\nb d 1 knn\nb d 1 link"},
		// a c and b c, knn, lose; c has its neighbours by link, so neither comes back.
		{"least degree without further types", "a c 2 knn\nb c 2 knn\na d 1 knn\nb e 1 knn\na c 3 link\nb c 3 link", &PruneOptions{Mutual: []MutualRule{{"knn", 1}}, MinDegree: 2}, "a c 3 link\na d 1 knn\nb c 3 link\nb e 1 knn"},
		{"least degree by the shortest type", "a b 1 knn\na b 2 link\nc d 1 knn\na d 0.5 knn", &PruneOptions{MaxDegree: 1, MinDegree: 1}, "a b 1 knn\na d 0.5 knn\nc d 1 knn"},
	} {
		t.Run(c.name, func(t *testing.T) {
			edges := edgesOf(t, c.edges)
			slices.Reverse(edges)
			got, err := Prune(edges, c.opts)
			if err != nil {
				t.Fatal(err)
			}
			wantEdges(t, got, c.want)
		})
	}
}

func TestPruneErrors(t *testing.T) {
	for _, c := range []struct {
		edges string
		opts  *PruneOptions
		want  string
	}{
		{"", &PruneOptions{MaxDegree: -1, MinDegree: -2, Mutual: []MutualRule{{"x", -3}, {"x", 1}}},
			"Nearest of the mutual rule for type \"x\" is -3, want 0 for the default or more\ninvalid configuration: there are two mutual rules for type \"x\", want one\ninvalid configuration: MaxDegree is -1, want 0 for no limit or more\ninvalid configuration: MinDegree is -2"},
		{"", &PruneOptions{MaxDegree: 1, MinDegree: 2}, "MinDegree 2 is above MaxDegree 1"},
		{"b a 1 x", nil, `edge "b" to "a" of type "x": undirected edges have From < To`},
		{"a a 1 x", nil, "it leads from a chunk to itself"},
		{"a b 1 x\na b 2 x", nil, "it is there twice"},
		{"a b -1 x", nil, "weight -1"},
	} {
		_, err := Prune(edgesOf(t, c.edges), c.opts)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: error %v, want %q", c.edges, err, c.want)
		}
	}
	if _, err := Prune([]mapmatched.Edge{{To: "a", Weight: 1}}, nil); !errors.Is(err, mapmatched.ErrEmptyChunkID) {
		t.Errorf("error %v", err)
	}
}

// Mutual pruning of a kNN graph leaves the pairs that selected each other.
func TestPruneMutualKNN(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	ids, vectors := randomVectors(r, 80, 6)
	const k = 4
	edges, err := KNN(context.Background(), ids, vectors, &KNNOptions{K: k})
	if err != nil {
		t.Fatal(err)
	}
	selected := map[[2]string]bool{}
	for i, id := range ids {
		near := naiveKNN(ids, vectors, 79, 0, 10)
		near = slices.DeleteFunc(near, func(e mapmatched.Edge) bool { return e.From != id && e.To != id })
		slices.SortFunc(near, func(a, b mapmatched.Edge) int {
			if a.Weight < b.Weight {
				return -1
			}
			return 1
		})
		for _, e := range near[:k] {
			other := e.From
			if other == id {
				other = e.To
			}
			selected[[2]string{id, other}] = true
		}
		if i == 20 { // enough of them, each costs a whole graph
			break
		}
	}
	pruned, err := Prune(edges, &PruneOptions{Mutual: []MutualRule{{mapmatched.EdgeKNN, k}}})
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for i, a := range ids[:21] {
		for _, b := range ids[:i] {
			_, kept := slices.BinarySearchFunc(pruned, mapmatched.Edge{From: min(a, b), To: max(a, b), Type: mapmatched.EdgeKNN}, compareEdges)
			if kept != (selected[[2]string{a, b}] && selected[[2]string{b, a}]) {
				t.Errorf("edge %s to %s is kept: %v", a, b, kept)
			}
			if kept {
				checked++
			}
		}
	}
	if checked == 0 || len(pruned) >= len(edges) {
		t.Errorf("%d pairs kept among those checked, %d of %d edges", checked, len(pruned), len(edges))
	}
}

// neighbourCounts returns how many neighbours each node has, by the edges that
// leave it when they are directed.
func neighbourCounts(edges []mapmatched.Edge, directed bool) map[string]int {
	near := map[[2]string]bool{}
	for _, e := range edges {
		near[[2]string{e.From, e.To}] = true
		if !directed {
			near[[2]string{e.To, e.From}] = true
		}
	}
	d := map[string]int{}
	for pair := range near {
		d[pair[0]]++
	}
	return d
}

func TestPruneDegrees(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	for range 200 {
		directed := r.IntN(2) == 0
		u, err := Union([]UnionSource{{Edges: randomEdges(r, 3+r.IntN(15), r.IntN(80))}}, &UnionOptions{Directed: directed})
		if err != nil {
			t.Fatal(err)
		}
		most := 1 + r.IntN(4)
		least := r.IntN(most + 1)
		capped, err := Prune(u.Edges, &PruneOptions{Directed: directed, MaxDegree: most})
		if err != nil {
			t.Fatal(err)
		}
		got := neighbourCounts(capped, directed)
		for id, d := range got {
			if d > most {
				t.Fatalf("%s has degree %d, want at most %d", id, d, most)
			}
		}
		for _, e := range u.Edges {
			if !slices.Contains(capped, e) && got[e.From] < most && (directed || got[e.To] < most) {
				t.Fatalf("edge %+v is missing", e)
			}
		}
		back, err := Prune(u.Edges, &PruneOptions{Directed: directed, MaxDegree: most, MinDegree: least})
		if err != nil {
			t.Fatal(err)
		}
		before, after := neighbourCounts(u.Edges, directed), neighbourCounts(back, directed)
		for id, d := range before {
			if after[id] < min(d, least) {
				t.Fatalf("%s has degree %d of %d, want at least %d", id, after[id], d, least)
			}
		}
	}
}

func TestJoinIsolated(t *testing.T) {
	nodes := []string{"d", "a", "b", "c", "e", "b"}
	edges := []mapmatched.Edge{{From: "a", To: "d", Weight: 1}, {From: "e", To: "e", Weight: 1}}
	alone := Isolated(nodes, edges)
	if !reflect.DeepEqual(alone, []string{"b", "c", "e"}) {
		t.Fatalf("isolated %q", alone)
	}
	chunks := []mapmatched.Chunk{
		{ID: "c", Document: "x", Ordinal: 2}, {ID: "b", Document: "x", Ordinal: 0}, {ID: "a", Document: "x", Ordinal: 1},
		{ID: "e", Document: "y"}, {ID: "d"},
	}
	joined, left, err := JoinByDocument(alone, chunks, 0.5)
	if err != nil {
		t.Fatal(err)
	}
	wantEdges(t, joined, "a b 0.5 next\na c 0.5 next")
	if !reflect.DeepEqual(left, []string{"e"}) {
		t.Errorf("left %q", left)
	}
	if _, left, _ = JoinByDocument([]string{"z", "d"}, chunks, 1); !reflect.DeepEqual(left, []string{"d", "z"}) {
		t.Errorf("left %q", left)
	}
	if _, _, err := JoinByDocument(alone, chunks, 0); !errors.Is(err, mapmatched.ErrDistance) {
		t.Errorf("error %v", err)
	}

	ctx := context.Background()
	join := func(ids []string, vectors [][]float32, alone ...string) ([]mapmatched.Edge, []string) {
		t.Helper()
		source, err := newSliceSource(ids, vectors)
		if err != nil {
			t.Fatal(err)
		}
		edges, left, err := JoinByVector(ctx, alone, source, nil)
		if err != nil {
			t.Fatal(err)
		}
		return edges, left
	}
	joined, left = join([]string{"d", "b", "a"}, [][]float32{{3, 4}, {1, 0}, {4, 3}}, "b", "z", "d")
	// cos(b, a) = 4/5, cos(d, a) = 24/25.
	if len(joined) != 2 || joined[0].To != "b" || joined[1].To != "d" || joined[0].From != "a" || joined[1].From != "a" ||
		!close9(joined[0].Weight, 0.2) || !close9(joined[1].Weight, 0.04) || joined[0].Type != mapmatched.EdgeKNN {
		t.Errorf("joined %+v", joined)
	}
	if !reflect.DeepEqual(left, []string{"z"}) {
		t.Errorf("left %q", left)
	}
	// Copies of a vector are the nearest of each other; the least ID wins.
	joined, _ = join([]string{"c", "b", "a"}, [][]float32{{1, 0}, {1, 0}, {1, 0}}, "c", "a")
	wantEdges(t, joined, "a b 1e-06 knn\na c 1e-06 knn")
	if joined, left = join([]string{"a"}, [][]float32{{1, 0}}, "a"); joined != nil || !reflect.DeepEqual(left, []string{"a"}) {
		t.Errorf("a chunk alone: %v, %v", joined, left)
	}
	if joined, left = join(nil, nil, "a"); joined != nil || !reflect.DeepEqual(left, []string{"a"}) {
		t.Errorf("no vectors: %v, %v", joined, left)
	}

	// The same as the first neighbour in the whole graph.
	ids, vectors := randomVectors(rand.New(rand.NewPCG(2, 9)), 60, 5)
	copy(vectors[7], vectors[8])
	want, err := KNN(ctx, ids, vectors, &KNNOptions{K: 1})
	if err != nil {
		t.Fatal(err)
	}
	if joined, _ = join(ids, vectors, ids...); !reflect.DeepEqual(joined, want) {
		t.Errorf("joined\n%swant\n%s", edgeText(joined), edgeText(want))
	}
}

func close9(a, b float64) bool { return a-b < 1e-9 && b-a < 1e-9 }
