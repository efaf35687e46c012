package graphbuild

import (
	"context"
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

func newTestKNNGraph(t testing.TB, ids []string, vectors [][]float32, opts *KNNOptions) *KNNGraph {
	t.Helper()
	source, err := newSliceSource(ids, vectors)
	if err != nil {
		t.Fatal(err)
	}
	g, err := NewKNNGraph(context.Background(), source, opts)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// checkKNNGraph compares a graph with one that is built from the same chunks.
func checkKNNGraph(t testing.TB, g *KNNGraph, content map[string][]float32, opts *KNNOptions) {
	t.Helper()
	ids := sortedKeys(content)
	vectors := make([][]float32, len(ids))
	for i, id := range ids {
		vectors[i] = content[id]
	}
	want, err := KNN(context.Background(), ids, vectors, opts)
	if err != nil {
		t.Fatal(err)
	}
	if got := g.Edges(); len(got)+len(want) > 0 && !reflect.DeepEqual(got, want) {
		t.Fatalf("%d chunks: edges\n%swant\n%s", len(ids), edgeText(got), edgeText(want))
	}
	if g.Len() != len(ids) {
		t.Fatalf("%d chunks, want %d", g.Len(), len(ids))
	}
}

// Whatever is done to a graph, it equals one that is built anew.
func TestKNNGraphEqualsRebuild(t *testing.T) {
	ctx := context.Background()
	r := rand.New(rand.NewPCG(9, 9))
	for round := range 80 {
		size := 1 // of the graph and of changes: lists are made in other ways in a large one
		if round%4 == 3 {
			size = 10
		}
		opts := &KNNOptions{K: 1 + r.IntN(6), MaximumDistance: 0.9 + float64(r.IntN(2)), MinimumEdgeDistance: 1e-6}
		dim := 1 + r.IntN(6)
		vector := func() []float32 {
			v := make([]float32, dim)
			for {
				zero := true
				for j := range v {
					switch round % 3 {
					case 0:
						v[j] = float32(r.NormFloat64())
					default: // many ties and copies
						v[j] = float32(r.IntN(5) - 2)
					}
					zero = zero && v[j] == 0
				}
				if !zero {
					return v
				}
			}
		}
		content := map[string][]float32{}
		var ids []string
		var vectors [][]float32
		for range r.IntN(30 * size) {
			id := fmt.Sprintf("c%d", r.IntN(1000))
			if content[id] == nil {
				content[id] = vector()
				ids, vectors = append(ids, id), append(vectors, content[id])
			}
		}
		g := newTestKNNGraph(t, ids, vectors, opts)
		checkKNNGraph(t, g, content, opts)
		for range 25 {
			there := sortedKeys(content)
			r.Shuffle(len(there), func(i, j int) { there[i], there[j] = there[j], there[i] })
			there = there[:min(len(there), r.IntN(6*(1+(size-1)*r.IntN(2))))]
			ids, vectors = nil, nil
			var err error
			switch r.IntN(3) {
			case 0:
				for range r.IntN(5 * (1 + (size-1)*r.IntN(2))) {
					id := fmt.Sprintf("c%d", r.IntN(1000))
					if content[id] == nil {
						content[id] = vector()
						ids, vectors = append(ids, id), append(vectors, content[id])
					}
				}
				err = g.Add(ctx, ids, vectors)
			case 1:
				for _, id := range there {
					content[id] = vector()
					vectors = append(vectors, content[id])
				}
				err = g.Replace(ctx, there, vectors)
			case 2:
				for _, id := range there {
					delete(content, id)
				}
				err = g.Delete(ctx, there)
			}
			if err != nil {
				t.Fatal(err)
			}
			checkKNNGraph(t, g, content, opts)
		}
		// To nothing, and back with another dimension.
		if err := g.Delete(ctx, sortedKeys(content)); err != nil {
			t.Fatal(err)
		}
		checkKNNGraph(t, g, nil, opts)
		if err := g.Add(ctx, []string{"x", "y"}, [][]float32{{1, 2, 3, 4, 5, 6, 7}, {1, 1, 1, 1, 1, 1, 1}}); err != nil {
			t.Fatal(err)
		}
		checkKNNGraph(t, g, map[string][]float32{"x": {1, 2, 3, 4, 5, 6, 7}, "y": {1, 1, 1, 1, 1, 1, 1}}, opts)
	}
}

// Slots of deleted chunks are used again.
func TestKNNGraphStaysSmall(t *testing.T) {
	ctx := context.Background()
	g := newTestKNNGraph(t, []string{"a", "b", "c"}, [][]float32{{1, 0}, {0, 1}, {1, 1}}, nil)
	for i := range 100 {
		id := fmt.Sprint(i)
		if err := g.Add(ctx, []string{id}, [][]float32{{1, float32(i)}}); err != nil {
			t.Fatal(err)
		}
		if err := g.Delete(ctx, []string{id}); err != nil {
			t.Fatal(err)
		}
		if err := g.Replace(ctx, []string{"b"}, [][]float32{{float32(i), 1}}); err != nil {
			t.Fatal(err)
		}
	}
	if len(g.slots) != 4 {
		t.Errorf("%d slots", len(g.slots))
	}
}

func TestKNNGraphNeighbors(t *testing.T) {
	g := newTestKNNGraph(t, []string{"c", "b", "a", "d"}, [][]float32{{1, 0}, {1, 0}, {3, 4}, {-1, 0}}, &KNNOptions{K: 2})
	want := []mapmatched.Neighbor{{ChunkID: "c", Distance: 0}, {ChunkID: "a", Distance: 0.4}}
	got := g.Neighbors("b")
	if len(got) != 2 || got[0] != want[0] || got[1].ChunkID != "a" || !close9(got[1].Distance, 0.4) {
		t.Errorf("neighbours %v, want %v", got, want)
	}
	if got := g.Neighbors("z"); got != nil {
		t.Errorf("neighbours of an unknown chunk: %v", got)
	}
}

// A method that fails has changed nothing.
func TestKNNGraphErrors(t *testing.T) {
	ctx := context.Background()
	ids, vectors := randomVectors(rand.New(rand.NewPCG(1, 3)), 40, 3)
	content := map[string][]float32{}
	for i, id := range ids {
		content[id] = vectors[i]
	}
	opts := &KNNOptions{K: 3}
	g := newTestKNNGraph(t, ids, vectors, opts)
	first := ids[0]
	one := [][]float32{{1, 2, 3}}
	done, cancel := context.WithCancel(ctx)
	cancel()
	for _, c := range []struct {
		name string
		do   func() error
		want string
		is   error
	}{
		{"add twice", func() error { return g.Add(ctx, []string{first}, one) }, "is in the graph already; replace it", nil},
		{"add one twice", func() error { return g.Add(ctx, []string{"n", "n"}, [][]float32{{1, 2, 3}, {1, 2, 3}}) }, `add: chunk ID "n" is at row 0 and at row 1`, nil},
		{"replace unknown", func() error { return g.Replace(ctx, []string{first, "n"}, [][]float32{{1, 2, 3}, {1, 2, 3}}) }, `replace: row 1: chunk "n" is not in the graph; add it`, nil},
		{"delete unknown", func() error { return g.Delete(ctx, []string{first, "n"}) }, `delete: row 1: chunk "n" is not in the graph`, nil},
		{"delete twice", func() error { return g.Delete(ctx, []string{first, first}) }, "or given twice", nil},
		{"dimension", func() error { return g.Add(ctx, []string{"n"}, [][]float32{{1, 2}}) }, `add: row 0 (chunk "n") has 2 dimensions, the vectors of the graph have 3`, nil},
		{"not finite", func() error {
			return g.Replace(ctx, []string{first}, [][]float32{{1, float32(math.NaN()), 3}})
		}, "is NaN in dimension 1", mapmatched.ErrNonFinite},
		{"zero", func() error { return g.Add(ctx, []string{"n"}, [][]float32{{0, 0, 0}}) }, "zero vector", nil},
		{"empty ID", func() error { return g.Add(ctx, []string{""}, one) }, "empty chunk ID", mapmatched.ErrEmptyChunkID},
		{"count", func() error { return g.Add(ctx, []string{"n"}, nil) }, "1 chunk IDs and 0 vectors", nil},
		{"cancelled add", func() error { return g.Add(done, []string{"n"}, one) }, "", context.Canceled},
		{"cancelled replace", func() error { return g.Replace(done, []string{first}, one) }, "", context.Canceled},
		{"cancelled delete", func() error { return g.Delete(done, []string{first}) }, "", context.Canceled},
	} {
		err := c.do()
		if err == nil || !strings.Contains(err.Error(), c.want) || c.is != nil && !errors.Is(err, c.is) {
			t.Errorf("%s: error %v, want %q", c.name, err, c.want)
		}
		checkKNNGraph(t, g, content, opts)
	}
	source, err := newSliceSource(ids, vectors)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := NewKNNGraph(ctx, source, &KNNOptions{Method: KNNApproximate}); !errors.Is(err, mapmatched.ErrInvalidConfig) {
		t.Errorf("approximate: error %v", err)
	}
	if _, err := NewKNNGraph(ctx, source, &KNNOptions{K: -1}); !errors.Is(err, mapmatched.ErrInvalidConfig) {
		t.Errorf("K of -1: error %v", err)
	}
	if _, err := NewKNNGraph(done, source, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: error %v", err)
	}
}

func ExampleKNNGraph() {
	ctx := context.Background()
	source := exampleVectors{[]string{"kites", "sails", "soup"}, [][]float32{{0.9, 0.1}, {0.8, 0.3}, {0.1, 0.9}}}
	g, err := NewKNNGraph(ctx, source, &KNNOptions{K: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := g.Add(ctx, []string{"stew"}, [][]float32{{0.2, 0.9}}); err != nil {
		fmt.Println(err)
		return
	}
	for _, e := range g.Edges() {
		fmt.Printf("%s %s %.3f\n", e.From, e.To, e.Weight)
	}
	// Output:
	// kites sails 0.031
	// soup stew 0.006
}

func BenchmarkKNNGraph(b *testing.B) {
	ctx := context.Background()
	ids, vectors, _ := blobs(rand.New(rand.NewPCG(1, 1)), 2000, 384, 50, 0.5)
	extra, more, _ := blobs(rand.New(rand.NewPCG(1, 2)), 20, 384, 50, 0.5)
	for i := range extra {
		extra[i] = "extra-" + extra[i]
	}
	b.Run("rebuild/chunks=2000", func(b *testing.B) {
		for b.Loop() {
			if _, err := KNN(ctx, ids, vectors, nil); err != nil {
				b.Fatal(err)
			}
		}
	})
	for _, n := range []int{1, 20} {
		b.Run(fmt.Sprintf("add and delete/chunks=2000/changed=%d", n), func(b *testing.B) {
			g := newTestKNNGraph(b, ids, vectors, nil)
			for b.Loop() {
				if err := g.Add(ctx, extra[:n], more[:n]); err != nil {
					b.Fatal(err)
				}
				if err := g.Delete(ctx, slices.Clone(extra[:n])); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
