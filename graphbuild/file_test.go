package graphbuild

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mapmatched/mmplug/internal/disk"
	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/mapmatched/adaptertest"
)

var allMethods = []DistanceMethod{DistancesSearch, DistancesTable, DistancesLabels}

// writeTestGraph writes and opens a graph file.
func writeTestGraph(t testing.TB, in GraphInput, opts *WriteGraphOptions) (*GraphFile, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "g.mmg")
	if _, err := WriteGraph(t.Context(), path, in, opts); err != nil {
		t.Fatal(err)
	}
	g, err := OpenGraph(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	return g, path
}

func TestGraphFileConforms(t *testing.T) {
	for _, method := range append(allMethods, DistancesAuto) {
		t.Run(cmpOr(string(method), "auto"), func(t *testing.T) {
			dir, made := t.TempDir(), 0
			adaptertest.Graph(t, adaptertest.GraphHarness{
				New: func(spec adaptertest.GraphSpec) (mapmatched.CorpusGraph, error) {
					made++
					path := filepath.Join(dir, fmt.Sprint(made, ".mmg"))
					in := GraphInput{Nodes: spec.Nodes, Edges: spec.Edges, Directed: spec.Directed, MaximumDistance: spec.MaximumDistance}
					if _, err := WriteGraph(t.Context(), path, in, &WriteGraphOptions{Distances: method}); err != nil {
						return nil, err
					}
					return OpenGraph(t.Context(), path, nil)
				},
			})
		})
	}
}

func cmpOr(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// weightings are ways to draw weights, each with another kind of rounding and
// of ties.
var weightings = []struct {
	name string
	draw func(r *rand.Rand) float64
}{
	{"any", func(r *rand.Rand) float64 { return 0.01 + r.Float64() }},
	{"decimal", func(r *rand.Rand) float64 { return float64(1+r.IntN(9)) / 10 }},
	{"dyadic", func(r *rand.Rand) float64 { return float64(1+r.IntN(64)) / 64 }},
	{"one", func(*rand.Rand) float64 { return 1 }},
	{"third", func(*rand.Rand) float64 { return 1.0 / 3 }},
	{"tiny and not", func(r *rand.Rand) float64 { return []float64{1e-6, 1e-6, 0.3, 0.7, r.Float64() + 1e-9}[r.IntN(5)] }},
	{"lost in the sum", func(r *rand.Rand) float64 { return []float64{1e-17, 1e-16, 0.3, 5e-324, 0.1 + r.Float64()}[r.IntN(5)] }},
	{"float32", func(r *rand.Rand) float64 { return float64(r.Float32()) + 0x1p-30 }},
}

func randomInput(r *rand.Rand, nodes, edges int, draw func(*rand.Rand) float64) GraphInput {
	in := GraphInput{MaximumDistance: 0.5 + 3*r.Float64(), Directed: r.IntN(2) == 0}
	for range edges {
		a := r.IntN(nodes)
		b := r.IntN(nodes)
		if r.IntN(2) == 0 {
			b = (a + 1 + r.IntN(4)) % nodes
		}
		in.Edges = append(in.Edges, mapmatched.Edge{
			From: fmt.Sprintf("chunk %d", a), To: fmt.Sprintf("chunk %d", b), Weight: draw(r),
			Type: []mapmatched.EdgeType{mapmatched.EdgeNext, mapmatched.EdgeLink, ""}[r.IntN(3)],
		})
	}
	in.Nodes = []string{"alone", "chunk 1"}
	return in
}

// TestMethodsHaveTheBitsOfTheSearch compares all three with mapmatched.Graph,
// whose distances are tested against Bellman and Ford.
func TestMethodsHaveTheBitsOfTheSearch(t *testing.T) {
	for _, w := range weightings {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			answered, pairs := 0, 0
			for seed := range uint64(12) {
				r := rand.New(rand.NewPCG(seed, 41))
				nodes := 10 + r.IntN(90)
				in := randomInput(r, nodes, nodes*(1+r.IntN(4)), w.draw)
				truth, err := mapmatched.NewGraph(in.Edges, &mapmatched.GraphOptions{Nodes: in.Nodes, Directed: in.Directed, MaximumDistance: in.MaximumDistance})
				if err != nil {
					t.Fatal(err)
				}
				ids := append(truth.Nodes(), "unknown")
				r.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
				from := slices.Concat(ids, ids[:1])
				want := make([]float64, len(from)*len(ids))
				if err := truth.Distances(t.Context(), from, ids, want); err != nil {
					t.Fatal(err)
				}
				for _, method := range allMethods {
					g, _ := writeTestGraph(t, in, &WriteGraphOptions{Distances: method})
					if got := g.Method().Method; got != method {
						t.Fatalf("method %s, want %s", got, method)
					}
					got := make([]float64, len(want))
					if err := g.Distances(t.Context(), from, ids, got); err != nil {
						t.Fatal(err)
					}
					for i := range want {
						if math.Float64bits(got[i]) != math.Float64bits(want[i]) {
							t.Fatalf("seed %d, %s, directed %t: from %q to %q: %v, want %v", seed, method, in.Directed, from[i/len(ids)], ids[i%len(ids)], got[i], want[i])
						}
					}
					for range 200 { // few targets against long rows
						i := r.IntN(len(ids))
						var to []string
						var expect []float64
						for range r.IntN(4) {
							j := r.IntN(len(ids))
							to, expect = append(to, ids[j]), append(expect, want[i*len(ids)+j])
						}
						got := make([]float64, len(to))
						if err := g.Distances(t.Context(), ids[i:i+1], to, got); err != nil || !slices.Equal(got, expect) {
							t.Fatalf("seed %d, %s: from %q to %q: %v, want %v, error %v", seed, method, ids[i], to, got, expect, err)
						}
					}
					for _, id := range ids {
						for _, radius := range []float64{0, in.MaximumDistance / 3, in.MaximumDistance, math.Inf(1)} {
							near, err := g.Neighborhood(t.Context(), id, radius)
							if err != nil {
								t.Fatal(err)
							}
							expect, err := truth.Neighborhood(t.Context(), id, radius)
							if err != nil {
								t.Fatal(err)
							}
							if len(near)+len(expect) > 0 && !slices.Equal(near, expect) {
								t.Fatalf("seed %d, %s: neighborhood of %q within %v:\n got %v\nwant %v", seed, method, id, radius, near, expect)
							}
						}
					}
					if method == DistancesLabels {
						a, p := answeredByLabels(t, g)
						answered, pairs = answered+a, pairs+p
					}
				}
			}
			share := float64(answered) / float64(pairs)
			t.Logf("labels answer %.3f of the pairs without a search", share)
			least := map[string]float64{"any": 0.99, "dyadic": 1, "one": 1, "float32": 0.99}[w.name]
			if share < least {
				t.Errorf("labels answer %v of the pairs without a search, want %v at least", share, least)
			}
		})
	}
}

// answeredByLabels counts the pairs for which no search is needed.
func answeredByLabels(t *testing.T, g *GraphFile) (answered, pairs int) {
	t.Helper()
	all := make([]int32, g.NumNodes())
	for v := range all {
		all[v] = int32(v)
	}
	dst := make([]float64, len(all)*len(all))
	if err := g.labels.answer(t.Context(), newLabelScratch(len(all)), all, all, dst); err != nil {
		t.Fatal(err)
	}
	for _, d := range dst {
		if d != openCell {
			answered++
		}
	}
	return answered, len(dst)
}

func TestGraphFileHasWhatWasWritten(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 42))
	for _, directed := range []bool{false, true} {
		in := randomInput(r, 60, 150, weightings[0].draw)
		in.Directed, in.MaximumDistance = directed, 2
		in.Provenance = Provenance{Method: "knn_v1", Recall: 0.995, Parameters: map[string]string{"k": "10", "a": "<b> & é"}, Tool: "test"}
		truth, err := mapmatched.NewGraph(in.Edges, &mapmatched.GraphOptions{Nodes: in.Nodes, Directed: directed, MaximumDistance: 2})
		if err != nil {
			t.Fatal(err)
		}
		var want []mapmatched.Edge
		for e, err := range truth.Edges(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, e)
		}
		for _, method := range allMethods {
			g, _ := writeTestGraph(t, in, &WriteGraphOptions{Distances: method})
			var got []mapmatched.Edge
			for e, err := range g.Edges(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, e)
			}
			if !slices.Equal(got, want) || !slices.Equal(g.Nodes(), truth.Nodes()) {
				t.Errorf("directed %t, %s: %d nodes and %d edges, want %d and %d", directed, method, len(g.Nodes()), len(got), truth.NumNodes(), len(want))
			}
			if g.NumNodes() != truth.NumNodes() || g.NumEdges() != len(want) || g.Directed() != directed || g.MaximumDistance() != 2 {
				t.Errorf("%d nodes, %d edges, directed %t, maximum %v", g.NumNodes(), g.NumEdges(), g.Directed(), g.MaximumDistance())
			}
			if p := g.Provenance(); p.Method != "knn_v1" || p.Recall != 0.995 || p.Parameters["a"] != "<b> & é" || p.Tool != "test" {
				t.Errorf("provenance %+v", p)
			}
			if err := g.Check(t.Context()); err != nil {
				t.Error(err)
			}
			for _, ids := range [][2]string{{want[0].From, want[7].To}, {"alone", want[0].From}, {"unknown", "alone"}, {"alone", "alone"}} {
				a, err := g.ShortestPath(t.Context(), ids[0], ids[1])
				if err != nil {
					t.Fatal(err)
				}
				b, err := truth.ShortestPath(t.Context(), ids[0], ids[1])
				if err != nil || !slices.Equal(a, b) {
					t.Errorf("path %v: %v, want %v, error %v", ids, a, b, err)
				}
			}
		}
	}
}

func TestWriteGraphIsDeterministic(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 43))
	in := randomInput(r, 300, 900, weightings[0].draw)
	shuffled := in
	shuffled.Edges = slices.Clone(in.Edges)
	r.Shuffle(len(in.Edges), func(i, j int) {
		shuffled.Edges[i], shuffled.Edges[j] = shuffled.Edges[j], shuffled.Edges[i]
	})
	shuffled.Nodes = append([]string{"alone"}, in.Nodes...)
	for _, method := range allMethods {
		var files [][]byte
		for _, c := range []struct {
			in    GraphInput
			procs int
		}{{in, 1}, {in, 5}, {shuffled, 2}} {
			before := runtime.GOMAXPROCS(c.procs)
			_, path := writeTestGraph(t, c.in, &WriteGraphOptions{Distances: method})
			runtime.GOMAXPROCS(before)
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, b)
		}
		if !bytes.Equal(files[0], files[1]) || !bytes.Equal(files[0], files[2]) {
			t.Errorf("%s: the same graph gave different files", method)
		}
	}
}

// smallGraph is a graph file small enough to be damaged in every place.
func smallGraph(t testing.TB, method DistanceMethod, directed bool, weight float64) []byte {
	t.Helper()
	edge := func(a, b string, w float64) mapmatched.Edge {
		return mapmatched.Edge{From: a, To: b, Weight: w, Type: mapmatched.EdgeNext}
	}
	_, path := writeTestGraph(t, GraphInput{
		Edges:    []mapmatched.Edge{edge("a", "b", weight), edge("b", "c", 0.5), edge("c", "d", 0.25), edge("a", "d", 0.75)},
		Nodes:    []string{"x"},
		Directed: directed, MaximumDistance: 2,
	}, &WriteGraphOptions{Distances: method})
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestEveryChangedBitIsNoticed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "g.mmg")
	for _, method := range allMethods {
		whole := smallGraph(t, method, false, 0.1)
		for i := range whole {
			for bit := range 8 {
				if bit != i%8 && (method != DistancesTable || i >= headerSize) {
					continue // one bit of each byte will do, but for one header
				}
				b := bytes.Clone(whole)
				b[i] ^= 1 << bit
				renew(t, path, b)
				g, err := OpenGraph(t.Context(), path, nil)
				if err == nil {
					t.Fatalf("%s: bit %d of byte %d of %d changed and nothing noticed", method, bit, i, len(whole))
				}
				if kind := mapmatched.KindOf(err); g != nil || kind != mapmatched.KindCorrupt && kind != mapmatched.KindInvalid {
					t.Fatalf("byte %d: graph %v, kind %q, error %v", i, g, kind, err)
				}
			}
		}
	}
}

func TestEveryTruncationIsNoticed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "g.mmg")
	for _, method := range allMethods {
		whole := smallGraph(t, method, true, 0.1)
		for n := range len(whole) + 1 {
			b := append(bytes.Clone(whole[:n]), make([]byte, n/len(whole))...) // the last one has a byte too many
			renew(t, path, b)
			for _, skip := range []bool{false, true} {
				g, err := OpenGraph(t.Context(), path, &OpenGraphOptions{SkipChecksums: skip})
				if err == nil || g != nil {
					t.Fatalf("%s: %d of %d bytes: no error", method, n, len(whole))
				}
				if strings.ContainsAny(err.Error(), "\n\r") || !strings.Contains(err.Error(), path) {
					t.Fatalf("%d bytes: error %q", n, err)
				}
			}
		}
	}
}

func TestOpenGraphErrors(t *testing.T) {
	dir := t.TempDir()
	good := smallGraph(t, DistancesTable, false, 1)
	other := bytes.Clone(good)
	other[8] = 2
	for _, c := range []struct {
		name, content string
		kind          mapmatched.Kind
		want          string
	}{
		{"empty", "", mapmatched.KindInvalid, `graph: open: PATH: not a graph file: it does not begin with "mmgraph\n": make one with mmplug graph build`},
		{"text", "source,target\n", mapmatched.KindInvalid, `graph: open: PATH: not a graph file: it does not begin with "mmgraph\n": make one with mmplug graph build`},
		{"pointer", "version https://git-lfs.github.com/spec/v1\noid", mapmatched.KindInvalid, `graph: open: PATH: not a graph file: it is a Git LFS pointer: fetch the file with git lfs pull`},
		{"version", string(other), mapmatched.KindInvalid, `graph: open: PATH: stale index: it has format version 2 and this program reads 1: build it again`},
		{"cut", string(good[:700]), mapmatched.KindCorrupt, fmt.Sprintf(`graph: open: PATH: graph file is damaged: header: the file has 700 bytes, wanted %d`, len(good))},
	} {
		path := filepath.Join(dir, c.name)
		if err := os.WriteFile(path, []byte(c.content), 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := OpenGraph(t.Context(), path, nil)
		if want := strings.ReplaceAll(c.want, "PATH", path); err == nil || err.Error() != want || mapmatched.KindOf(err) != c.kind {
			t.Errorf("%s: %v (%s), want %s (%s)", c.name, err, mapmatched.KindOf(err), want, c.kind)
		}
	}
	if _, err := OpenGraph(t.Context(), filepath.Join(dir, "none"), nil); !errors.Is(err, fs.ErrNotExist) || mapmatched.KindOf(err) != mapmatched.KindNotFound {
		t.Errorf("missing file: %v", err)
	}
	if _, err := OpenGraph(t.Context(), dir, nil); mapmatched.KindOf(err) != mapmatched.KindInvalid {
		t.Errorf("directory: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	path := filepath.Join(dir, "good")
	if err := os.WriteFile(path, good, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenGraph(ctx, path, nil); !errors.Is(err, context.Canceled) || mapmatched.KindOf(err) != mapmatched.KindDeadline {
		t.Errorf("cancelled: %v", err)
	}
}

func TestWriteGraphErrors(t *testing.T) {
	edges := []mapmatched.Edge{{From: "a", To: "b", Weight: 1}}
	dir := t.TempDir()
	for _, c := range []struct {
		name string
		path string
		in   GraphInput
		opts WriteGraphOptions
		want string
	}{
		{"weight", "g", GraphInput{Edges: []mapmatched.Edge{{From: "a", To: "b", Weight: -1}}}, WriteGraphOptions{}, `weight -1`},
		{"maximum", "g", GraphInput{MaximumDistance: -1}, WriteGraphOptions{}, `maximum distance -1`},
		{"method", "g", GraphInput{}, WriteGraphOptions{Distances: "magic"}, `there is no distance method "magic": use ["search" "table" "labels"]`},
		{"limit", "g", GraphInput{}, WriteGraphOptions{TableLimit: -1}, `the limit is -1 bytes`},
		{"recall", "g", GraphInput{Provenance: Provenance{Recall: 2}}, WriteGraphOptions{}, `recall 2 is not in [0, 1]`},
		{"text", "g", GraphInput{Provenance: Provenance{Parameters: map[string]string{"a": "\xff"}}}, WriteGraphOptions{}, `not UTF-8`},
		{"type", "g", GraphInput{Edges: []mapmatched.Edge{{From: "a", To: "b", Weight: 1, Type: "\xff"}}}, WriteGraphOptions{}, `edge type "\xff" is not UTF-8`},
		{"table too large", "g", GraphInput{Edges: edges}, WriteGraphOptions{Distances: DistancesTable, TableLimit: 10}, `over the limit of 10 bytes: raise the limit`},
		{"labels too large", "g", GraphInput{Edges: edges}, WriteGraphOptions{Distances: DistancesLabels, TableLimit: 10}, `labels take more than the limit of 10 bytes: raise the limit`},
		{"labels out of range", "g", GraphInput{Edges: edges, MaximumDistance: 1e40}, WriteGraphOptions{Distances: DistancesLabels}, `labels need a maximum distance between 1e-30 and 1e30`},
		{"no directory", "none/g", GraphInput{Edges: edges}, WriteGraphOptions{}, `none does not exist: make it or give another name`},
		{"a directory", "", GraphInput{Edges: edges}, WriteGraphOptions{}, `not a regular file: give another name`},
	} {
		_, err := WriteGraph(t.Context(), filepath.Join(dir, c.path), c.in, &c.opts)
		if err == nil || !strings.Contains(err.Error(), c.want) || mapmatched.KindOf(err) == "" {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
		if c.name == "no directory" && mapmatched.KindOf(err) != mapmatched.KindNotFound {
			t.Errorf("%s: kind %s", c.name, mapmatched.KindOf(err))
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) > 0 {
		t.Errorf("failed writes left %v, error %v", entries, err)
	}
}

func TestWriteGraphReplacesInOneStep(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "g.mmg")
	one := GraphInput{Edges: []mapmatched.Edge{{From: "a", To: "b", Weight: 1}}}
	two := GraphInput{Edges: []mapmatched.Edge{{From: "a", To: "b", Weight: 2}}}
	if _, err := WriteGraph(t.Context(), path, one, nil); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("g.mmg", filepath.Join(dir, "link")); err != nil {
		t.Skip(err)
	}
	if err := os.WriteFile(filepath.Join(dir, ".g.mmg.mmplug-new"), []byte("left by a killed writer, longer than what follows"), 0o644); err != nil {
		t.Fatal(err)
	}
	old, err := OpenGraph(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close() //nolint:errcheck // only read
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}

	if _, err := WriteGraph(expiring(t.Context(), 1), path, two, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	unlock, err := disk.Lock(filepath.Join(dir, ".g.mmg.mmplug-lock"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := WriteGraph(t.Context(), path, two, nil); !errors.Is(err, errBusy) || mapmatched.KindOf(err) != mapmatched.KindUnavailable {
		t.Errorf("beside another writer: %v", err)
	}
	unlock()
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
		t.Errorf("failed writes changed the file, error %v", err)
	}

	if _, err := WriteGraph(t.Context(), filepath.Join(dir, "link"), two, nil); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(filepath.Join(dir, "link")); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("the link was replaced: %v, error %v", info.Mode(), err)
	}
	fresh, err := OpenGraph(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer fresh.Close() //nolint:errcheck // only read
	for want, g := range map[float64]*GraphFile{1: old, 2: fresh} {
		var d [1]float64
		if err := g.Distances(t.Context(), []string{"a"}, []string{"b"}, d[:]); err != nil || d[0] != want {
			t.Errorf("distance %v, want %v, error %v", d[0], want, err)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("the directory holds %v, error %v", entries, err)
	}
}

// expiringContext is done after a number of looks at it.
type expiringContext struct {
	context.Context
	mu    *sync.Mutex
	looks *int
}

func expiring(parent context.Context, looks int) context.Context {
	return expiringContext{parent, new(sync.Mutex), &looks}
}

func (c expiringContext) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if *c.looks--; *c.looks < 0 {
		return context.Canceled
	}
	return c.Context.Err()
}

func TestFileCutWhileOpen(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("how a system reports a file that was cut is known for Linux")
	}
	var in GraphInput
	for i := range 3000 {
		in.Edges = append(in.Edges, mapmatched.Edge{From: fmt.Sprintf("%05d", i), To: fmt.Sprintf("%05d", i+1), Weight: 0.1})
	}
	for _, method := range allMethods {
		g, path := writeTestGraph(t, in, &WriteGraphOptions{Distances: method})
		if err := os.Truncate(path, 4096); err != nil {
			t.Fatal(err)
		}
		err := g.Distances(t.Context(), []string{"00900"}, []string{"00901"}, make([]float64, 1))
		if mapmatched.KindOf(err) != mapmatched.KindCorrupt {
			t.Errorf("%s: %v", method, err)
		}
	}
}

func TestGraphFileConcurrently(t *testing.T) {
	in := randomInput(rand.New(rand.NewPCG(5, 44)), 80, 240, weightings[0].draw)
	for _, method := range allMethods {
		g, _ := writeTestGraph(t, in, &WriteGraphOptions{Distances: method})
		ids := g.Nodes()
		want := make([]float64, len(ids)*len(ids))
		if err := g.Distances(t.Context(), ids, ids, want); err != nil {
			t.Fatal(err)
		}
		var group sync.WaitGroup
		for worker := range 8 {
			group.Go(func() {
				r := rand.New(rand.NewPCG(uint64(worker), 45))
				for range 50 {
					i, j := r.IntN(len(ids)), r.IntN(len(ids))
					var d [2]float64
					err := g.Distances(t.Context(), ids[i:i+1], []string{ids[j], ids[i]}, d[:])
					if errors.Is(err, mapmatched.ErrClosed) {
						continue
					}
					if err != nil || d[0] != want[i*len(ids)+j] || d[1] != 0 {
						t.Errorf("%s: from %s to %s: %v, want %v, error %v", method, ids[i], ids[j], d, want[i*len(ids)+j], err)
					}
				}
				if worker == 0 {
					if err := g.Close(); err != nil {
						t.Error(err)
					}
				}
			})
		}
		group.Wait()
		if err := g.Health(t.Context()); !errors.Is(err, mapmatched.ErrClosed) || g.Nodes() != nil {
			t.Errorf("after Close: %v", err)
		}
	}
}
