package rings

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/mapmatched/adaptertest"
)

// memory is a source in memory that counts its calls.
type memory struct {
	edges  map[string][]mapmatched.Edge
	calls  atomic.Int64
	chunks atomic.Int64
	before func(ctx context.Context, ids []string) error // nil for nothing
}

// newMemory keeps undirected edges at both ends.
func newMemory(nodes []string, edges []mapmatched.Edge, directed bool) *memory {
	m := &memory{edges: map[string][]mapmatched.Edge{}}
	for _, id := range nodes {
		m.edges[id] = []mapmatched.Edge{}
	}
	for _, e := range edges {
		m.edges[e.From] = append(m.edges[e.From], e)
		if m.edges[e.To] == nil {
			m.edges[e.To] = []mapmatched.Edge{}
		}
		if !directed && e.From != e.To {
			e.From, e.To = e.To, e.From
			m.edges[e.From] = append(m.edges[e.From], e)
		}
	}
	return m
}

func (m *memory) Edges(ctx context.Context, ids []string) ([][]mapmatched.Edge, error) {
	m.calls.Add(1)
	m.chunks.Add(int64(len(ids)))
	if m.before != nil {
		if err := m.before(ctx, ids); err != nil {
			return nil, err
		}
	}
	out := make([][]mapmatched.Edge, len(ids))
	for i, id := range ids {
		if list, known := m.edges[id]; known {
			out[i] = append([]mapmatched.Edge{}, list...)
		}
	}
	return out, ctx.Err()
}

func mustGraph(t testing.TB, source Source, opts *Options) *Graph {
	t.Helper()
	g, err := New(source, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	return g
}

func mustReference(t testing.TB, edges []mapmatched.Edge, opts *mapmatched.GraphOptions) *mapmatched.Graph {
	t.Helper()
	g, err := mapmatched.NewGraph(edges, opts)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestConformance(t *testing.T) {
	for _, cache := range []int64{0, -1, 2000} {
		t.Run(fmt.Sprint("cache=", cache), func(t *testing.T) {
			adaptertest.Graph(t, adaptertest.GraphHarness{
				New: func(spec adaptertest.GraphSpec) (mapmatched.CorpusGraph, error) {
					return New(newMemory(spec.Nodes, spec.Edges, spec.Directed), &Options{MaximumDistance: spec.MaximumDistance, Directed: spec.Directed, CacheBytes: cache})
				},
				Stalled: func(spec adaptertest.GraphSpec) (mapmatched.CorpusGraph, error) {
					m := newMemory(spec.Nodes, spec.Edges, spec.Directed)
					m.before = func(ctx context.Context, _ []string) error { <-ctx.Done(); return ctx.Err() }
					return New(m, &Options{MaximumDistance: spec.MaximumDistance, Directed: spec.Directed})
				},
			})
		})
	}
}

// weightings draw weights, from exact sums and many ties to neither.
var weightings = []struct {
	name string
	draw func(r *rand.Rand) float64
}{
	{"one", func(*rand.Rand) float64 { return 1 }},
	{"quarters", func(r *rand.Rand) float64 { return float64(1+r.IntN(8)) / 4 }},
	{"tenths", func(r *rand.Rand) float64 { return float64(1+r.IntN(9)) / 10 }},
	{"uniform", func(r *rand.Rand) float64 { return 1e-6 + 2*r.Float64() }},
	{"wide", func(r *rand.Rand) float64 { return math.Exp(r.NormFloat64() * 4) }},
	{"mixed", func(r *rand.Rand) float64 {
		if r.IntN(20) == 0 {
			return 0.1 * float64(1+r.IntN(5))
		}
		return 0.5
	}},
}

func randomEdges(r *rand.Rand, nodes, edges int, draw func(*rand.Rand) float64) []mapmatched.Edge {
	types := []mapmatched.EdgeType{mapmatched.EdgeNext, mapmatched.EdgeLink, mapmatched.EdgeKNN}
	list := make([]mapmatched.Edge, edges)
	for i := range list {
		list[i] = mapmatched.Edge{From: fmt.Sprint("c", r.IntN(nodes)), To: fmt.Sprint("c", r.IntN(nodes)), Weight: draw(r), Type: types[r.IntN(3)]}
	}
	return list
}

// question draws chunks, some of them unknown and some twice.
func question(r *rand.Rand, nodes, n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprint("c", r.IntN(nodes+2))
	}
	return ids
}

func TestEqualsGraphInMemory(t *testing.T) {
	for _, w := range weightings {
		for _, directed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/directed=%v", w.name, directed), func(t *testing.T) {
				for seed := range uint64(25) {
					r := rand.New(rand.NewPCG(seed, 7))
					nodes := 2 + r.IntN(60)
					edges := randomEdges(r, nodes, r.IntN(3*nodes), w.draw)
					maximum := []float64{0.3, 1, 2.5, 4, 10, 1000}[r.IntN(6)]
					want := mustReference(t, edges, &mapmatched.GraphOptions{MaximumDistance: maximum, Directed: directed})
					source := newMemory(nil, edges, directed)
					g := mustGraph(t, source, &Options{MaximumDistance: maximum, Directed: directed, CacheBytes: []int64{-1, 0, 1500, 6000}[r.IntN(4)]})
					for range 12 {
						compareDistances(t, g, want, question(r, nodes, 1+r.IntN(6)), question(r, nodes, 1+r.IntN(6)))
						compareNeighborhood(t, g, want, question(r, nodes, 1)[0], []float64{0.5, 1, maximum, math.Inf(1), maximum * r.Float64()}[r.IntN(5)])
						if t.Failed() {
							t.Fatalf("seed %d, maximum %v", seed, maximum)
						}
						if r.IntN(5) == 0 {
							g.Forget()
						}
					}
				}
			})
		}
	}
}

func compareDistances(t testing.TB, g, want mapmatched.CorpusGraph, from, to []string) {
	t.Helper()
	got, expected := make([]float64, len(from)*len(to)), make([]float64, len(from)*len(to))
	if err := errors.Join(g.Distances(t.Context(), from, to, got), want.Distances(t.Context(), from, to, expected)); err != nil {
		t.Fatal(err)
	}
	for i := range got {
		if math.Float64bits(got[i]) != math.Float64bits(expected[i]) {
			t.Errorf("distance from %s to %s: %v, want %v", from[i/len(to)], to[i%len(to)], got[i], expected[i])
		}
	}
}

func compareNeighborhood(t testing.TB, g, want mapmatched.CorpusGraph, id string, radius float64) {
	t.Helper()
	got, err1 := g.Neighborhood(t.Context(), id, radius)
	expected, err2 := want.Neighborhood(t.Context(), id, radius)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, expected) {
		t.Errorf("neighborhood of %s within %v: %v, want %v", id, radius, got, expected)
	}
}

// FuzzEqualsGraphInMemory reads a small graph and a question from bytes, three
// for each edge: its ends and its weight.
func FuzzEqualsGraphInMemory(f *testing.F) {
	f.Add([]byte("abcbcdcde"), uint8(40), false, uint16(100))
	f.Add([]byte("\x00\x01\x10\x01\x02\x11\x02\x00\x12"), uint8(3), true, uint16(0))
	f.Fuzz(func(t *testing.T, raw []byte, tenths uint8, directed bool, cache uint16) {
		var edges []mapmatched.Edge
		for ; len(raw) >= 3 && len(edges) < 100; raw = raw[3:] {
			edges = append(edges, mapmatched.Edge{From: fmt.Sprint(raw[0] % 16), To: fmt.Sprint(raw[1] % 16), Weight: float64(1+int(raw[2])) / 30})
		}
		maximum := float64(1+int(tenths)) / 10
		want := mustReference(t, edges, &mapmatched.GraphOptions{MaximumDistance: maximum, Directed: directed})
		g := mustGraph(t, newMemory(nil, edges, directed), &Options{MaximumDistance: maximum, Directed: directed, CacheBytes: int64(cache) - 1})
		var all []string
		for i := range 17 {
			all = append(all, fmt.Sprint(i))
		}
		for i := range 17 {
			compareDistances(t, g, want, all[i:i+1], all[(i*5)%17:])
			compareNeighborhood(t, g, want, all[i], maximum)
		}
		compareDistances(t, g, want, all, all)
	})
}

// hops is by how many edges, at the fewest, a path within maximum leads from
// one of from to the farthest such chunk. It goes ring by ring.
func hops(edges []mapmatched.Edge, from []string, maximum float64, directed bool) int {
	most := 0
	for _, id := range from {
		dist := map[string]float64{id: 0}
		ring := map[string]float64{id: 0}
		for depth := 0; len(ring) > 0; depth++ {
			most = max(most, depth)
			next := map[string]float64{}
			for _, e := range edges {
				for range 2 {
					if at, ok := ring[e.From]; ok {
						d := at + e.Weight
						old, known := dist[e.To]
						if d <= maximum && (!known || d < old) {
							dist[e.To], next[e.To] = d, d
						}
					}
					if directed {
						break
					}
					e.From, e.To = e.To, e.From
				}
			}
			ring = next
		}
	}
	return most
}

func TestRoundTrips(t *testing.T) {
	chain := func(n int, weight float64) []mapmatched.Edge {
		var edges []mapmatched.Edge
		for i := range n {
			edges = append(edges, mapmatched.Edge{From: fmt.Sprint("c", i), To: fmt.Sprint("c", i+1), Weight: weight})
		}
		return edges
	}
	for _, c := range []struct {
		name     string
		edges    []mapmatched.Edge
		from, to []string
		directed bool
		trips    int64
	}{
		{"nothing to find", chain(9, 1), []string{"c1"}, []string{"c1"}, false, 0},
		{"unknown", chain(9, 1), []string{"x"}, []string{"y"}, false, 1},
		{"1 hop", chain(9, 1), []string{"c1"}, []string{"c2"}, false, 1},
		{"2 hops", chain(9, 1), []string{"c1"}, []string{"c3"}, false, 1},
		{"3 hops", chain(9, 1), []string{"c1"}, []string{"c4"}, false, 2},
		{"8 hops", chain(9, 1), []string{"c1"}, []string{"c9"}, false, 4},
		{"8 hops of a tenth", chain(9, 0.1), []string{"c1"}, []string{"c9"}, false, 5}, // the chain goes on
		{"9 hops and 5", chain(9, 1), []string{"c0", "c4"}, []string{"c9"}, false, 3},  // c4 is in the middle of both
		{"1 hop directed", chain(9, 1), []string{"c1"}, []string{"c2"}, true, 1},
		{"3 hops directed", chain(9, 1), []string{"c1"}, []string{"c4"}, true, 3},
		{"against the direction", chain(3, 1), []string{"c3"}, []string{"c1"}, true, 1},
		{"too far", chain(30, 1), []string{"c0"}, []string{"c29"}, false, 5},
		{"one long edge beside short ones", append(chain(4, 0.5), mapmatched.Edge{From: "c0", To: "c4", Weight: 2}), []string{"c0"}, []string{"c4"}, false, 2},
	} {
		source := newMemory(nil, c.edges, c.directed)
		g := mustGraph(t, source, &Options{Directed: c.directed})
		want := mustReference(t, c.edges, &mapmatched.GraphOptions{Directed: c.directed})
		compareDistances(t, g, want, c.from, c.to)
		if got := source.calls.Load(); got != c.trips {
			t.Errorf("%s: %d round trips, want %d", c.name, got, c.trips)
		}
		compareDistances(t, g, want, c.from, c.to)
		if c.name == "unknown" {
			c.trips *= 2 // the store may know the chunk by now
		}
		if got := source.calls.Load(); got != c.trips {
			t.Errorf("%s: asked again, %d round trips in all, want %d", c.name, got, c.trips)
		}
	}
	source := newMemory(nil, chain(9, 1), false)
	g := mustGraph(t, source, nil)
	for _, c := range []struct {
		radius float64
		trips  int64
	}{{0, 0}, {0.5, 1}, {1, 1}, {1.5, 2}, {2, 2}, {4, 4}, {10, 6}} { // c4 has 5 chunks to one side
		g.Forget()
		source.calls.Store(0)
		if _, err := g.Neighborhood(t.Context(), "c4", c.radius); err != nil {
			t.Fatal(err)
		}
		if got := source.calls.Load(); got != c.trips {
			t.Errorf("neighborhood within %v: %d round trips, want %d", c.radius, got, c.trips)
		}
	}
}

// TestRoundTripsOfRandomGraphs counts the rings: one for the chunks asked for
// and one for every further hop within the maximum distance, at most.
func TestRoundTripsOfRandomGraphs(t *testing.T) {
	for _, w := range weightings {
		for seed := range uint64(20) {
			r := rand.New(rand.NewPCG(seed, 9))
			nodes, directed := 20+r.IntN(60), seed%2 == 1
			edges := randomEdges(r, nodes, nodes+r.IntN(nodes), w.draw)
			source := newMemory(nil, edges, directed)
			g := mustGraph(t, source, &Options{MaximumDistance: 4, Directed: directed, CacheBytes: -1})
			from, to := question(r, nodes, 3), question(r, nodes, 3)
			if err := g.Distances(t.Context(), from, to, make([]float64, 9)); err != nil {
				t.Fatal(err)
			}
			most := hops(edges, from, 4, directed)
			if !directed {
				most = max(most, hops(edges, to, 4, directed))
			}
			if got := source.calls.Load(); got > int64(most)+1 {
				t.Errorf("%s, seed %d: %d round trips for %d hops", w.name, seed, got, most)
			}
			source.calls.Store(0)
			if _, err := g.Neighborhood(t.Context(), from[0], 4); err != nil {
				t.Fatal(err)
			}
			if got, most := source.calls.Load(), hops(edges, from[:1], 4, directed); got > int64(most)+1 {
				t.Errorf("%s, seed %d: %d round trips for a neighborhood of %d hops", w.name, seed, got, most)
			}
		}
	}
}

// TestEndsRoundDifferently: a path whose halves, each summed from its own end,
// add up to more than the path summed from one end to the other is shorter than
// an edge of that length, and is found.
func TestEndsRoundDifferently(t *testing.T) {
	const tiny = 8.0 / (1 << 52) // between the halves, the least weight there is
	weights := []float64{0.7, 0.9, 0.4, 0.8, 0.2, 0.3, 0.3, tiny, 0.8, 0.1, 0.6, 0.6, 0.8, 0.1, 0.1}
	var edges []mapmatched.Edge
	for i, w := range weights {
		edges = append(edges, mapmatched.Edge{From: fmt.Sprint("c", i), To: fmt.Sprint("c", i+1), Weight: w})
	}
	edges = append(edges, mapmatched.Edge{From: "c0", To: "c15", Weight: 6.7})
	g := mustGraph(t, newMemory(nil, edges, false), &Options{MaximumDistance: 8})
	compareDistances(t, g, mustReference(t, edges, &mapmatched.GraphOptions{MaximumDistance: 8}), []string{"c0", "c15"}, []string{"c15", "c0"})
	d := make([]float64, 1)
	if err := g.Distances(t.Context(), []string{"c0"}, []string{"c15"}, d); err != nil || d[0] != 6.699999999999999 {
		t.Errorf("distance %v with error %v, want 6.699999999999999", d[0], err)
	}
}

func TestOptions(t *testing.T) {
	for _, maximum := range []float64{-1, math.NaN(), math.Inf(1)} {
		_, err := New(newMemory(nil, nil, false), &Options{MaximumDistance: maximum, Adapter: "store"})
		if !errors.Is(err, mapmatched.ErrInvalidConfig) || mapmatched.KindOf(err) != mapmatched.KindInvalid || !strings.HasPrefix(err.Error(), "store: open: ") {
			t.Errorf("maximum distance %v: error %v, want one of the configuration", maximum, err)
		}
	}
	g := mustGraph(t, newMemory(nil, nil, false), nil)
	if g.MaximumDistance() != mapmatched.DefaultMaximumDistance || g.Directed() || g.cache.budget != DefaultCacheBytes {
		t.Errorf("defaults are maximum %v, directed %v, cache %d", g.MaximumDistance(), g.Directed(), g.cache.budget)
	}
}

func TestTypes(t *testing.T) {
	edges := []mapmatched.Edge{
		{From: "a", To: "b", Weight: 1, Type: mapmatched.EdgeKNN},
		{From: "a", To: "b", Weight: 3, Type: mapmatched.EdgeNext},
		{From: "b", To: "c", Weight: math.NaN(), Type: mapmatched.EdgeLink}, // bad, but of no type asked for
	}
	g := mustGraph(t, newMemory(nil, edges, false), &Options{Types: []mapmatched.EdgeType{mapmatched.EdgeNext}})
	want := mustReference(t, edges[1:2], nil)
	compareDistances(t, g, want, []string{"a", "b", "c"}, []string{"a", "b", "c"})
}

func TestBadEdges(t *testing.T) {
	for _, c := range []struct {
		edge mapmatched.Edge
		want error
	}{
		{mapmatched.Edge{From: "a", To: "b", Weight: 0}, mapmatched.ErrDistance},
		{mapmatched.Edge{From: "a", To: "b", Weight: -1}, mapmatched.ErrDistance},
		{mapmatched.Edge{From: "a", To: "b", Weight: 1e-300}, mapmatched.ErrDistance},
		{mapmatched.Edge{From: "a", To: "b", Weight: math.NaN()}, mapmatched.ErrNonFinite},
		{mapmatched.Edge{From: "a", To: "b", Weight: math.Inf(1)}, mapmatched.ErrNonFinite},
		{mapmatched.Edge{From: "a", To: "", Weight: 1}, mapmatched.ErrEmptyChunkID},
		{mapmatched.Edge{From: "other", To: "b", Weight: 1}, errCorrupt},
	} {
		source := newMemory([]string{"a", "b", "c"}, nil, false)
		source.edges["a"] = []mapmatched.Edge{c.edge}
		g := mustGraph(t, source, nil)
		err := g.Distances(t.Context(), []string{"a"}, []string{"b"}, make([]float64, 1))
		var typed *mapmatched.Error
		if !errors.Is(err, c.want) || !errors.As(err, &typed) || typed.Kind != mapmatched.KindCorrupt || strings.Contains(err.Error(), "\n") {
			t.Errorf("%+v: error %v of kind %q, want %v of kind corrupt", c.edge, err, mapmatched.KindOf(err), c.want)
		}
		if err := g.Distances(t.Context(), []string{"b"}, []string{"c"}, make([]float64, 1)); err != nil {
			t.Errorf("%+v: a question beside it fails: %v", c.edge, err)
		}
		if _, err := g.Listed("a", source.edges["a"]); !errors.Is(err, c.want) {
			t.Errorf("%+v: listed with error %v, want %v", c.edge, err, c.want)
		}
	}
}

func TestListed(t *testing.T) {
	edges := []mapmatched.Edge{
		{From: "m", To: "z", Weight: 2, Type: "b"},
		{From: "m", To: "a", Weight: 1, Type: "b"},
		{From: "m", To: "m", Weight: 1, Type: "b"},
		{From: "m", To: "z", Weight: 2, Type: "a"},
		{From: "m", To: "z", Weight: 3, Type: "a"},
	}
	for _, c := range []struct {
		opts Options
		want []mapmatched.Edge
	}{
		{Options{}, []mapmatched.Edge{{From: "m", To: "z", Weight: 2, Type: "a"}}},
		{Options{Directed: true}, []mapmatched.Edge{{From: "m", To: "a", Weight: 1, Type: "b"}, {From: "m", To: "z", Weight: 2, Type: "a"}}},
		{Options{Types: []mapmatched.EdgeType{"b"}}, []mapmatched.Edge{{From: "m", To: "z", Weight: 2, Type: "b"}}},
	} {
		g := mustGraph(t, newMemory(nil, nil, false), &c.opts)
		before := slices.Clone(edges)
		got, err := g.Listed("m", edges)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%+v: %v with error %v, want %v", c.opts, got, err, c.want)
		}
		if !slices.Equal(edges, before) {
			t.Errorf("%+v: the list that was given is changed", c.opts)
		}
	}
}

func TestSourceErrors(t *testing.T) {
	edges := []mapmatched.Edge{{From: "a", To: "b", Weight: 1}, {From: "b", To: "c", Weight: 1}}
	source := newMemory(nil, edges, false)
	g := mustGraph(t, source, nil)
	ask := func() error { return g.Distances(t.Context(), []string{"a"}, []string{"c"}, make([]float64, 1)) }
	broken := errors.New("broken")
	typed := &mapmatched.Error{Op: "get", Adapter: "store", Kind: mapmatched.KindUnauthenticated, Err: broken}
	for _, c := range []struct {
		err  error
		kind mapmatched.Kind
	}{{broken, mapmatched.KindUnavailable}, {typed, mapmatched.KindUnauthenticated}} {
		source.before = func(context.Context, []string) error { return c.err }
		if err := ask(); !errors.Is(err, broken) || mapmatched.KindOf(err) != c.kind {
			t.Errorf("error %v of kind %q, want %v of kind %q", err, mapmatched.KindOf(err), c.err, c.kind)
		}
	}
	source.before = nil
	if err := ask(); err != nil {
		t.Errorf("after the errors: %v", err)
	}
	short := mustGraph(t, shortSource{}, nil)
	if err := short.Distances(t.Context(), []string{"a"}, []string{"c"}, make([]float64, 1)); err == nil || !strings.Contains(err.Error(), "1 lists came for 2 chunks") {
		t.Errorf("error %v, want the lists counted", err)
	}
}

type shortSource struct{}

func (shortSource) Edges(context.Context, []string) ([][]mapmatched.Edge, error) {
	return make([][]mapmatched.Edge, 1), nil
}

// TestUnknownChunksAreNotKept: a chunk written after a first question is found.
func TestUnknownChunksAreNotKept(t *testing.T) {
	source := newMemory(nil, nil, false)
	g := mustGraph(t, source, nil)
	d := make([]float64, 1)
	for _, want := range []float64{10, 2} {
		if err := g.Distances(t.Context(), []string{"a"}, []string{"b"}, d); err != nil || d[0] != want {
			t.Errorf("distance %v with error %v, want %v", d[0], err, want)
		}
		source.edges["a"] = []mapmatched.Edge{{From: "a", To: "b", Weight: 2}}
		source.edges["b"] = []mapmatched.Edge{{From: "b", To: "a", Weight: 2}}
	}
	source.edges["a"][0].Weight, source.edges["b"][0].Weight = 1, 1
	g.Forget()
	if err := g.Distances(t.Context(), []string{"a"}, []string{"b"}, d); err != nil || d[0] != 1 {
		t.Errorf("after Forget: distance %v with error %v, want 1", d[0], err)
	}
}

func TestCacheBudget(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	const nodes = 300
	edges := randomEdges(r, nodes, 900, weightings[3].draw)
	const budget = 20_000
	g := mustGraph(t, newMemory(nil, edges, false), &Options{CacheBytes: budget, MaximumDistance: 2})
	for range 40 {
		ids := question(r, nodes, 5)
		if err := g.Distances(t.Context(), ids, ids, make([]float64, 25)); err != nil {
			t.Fatal(err)
		}
		var used int64
		for e := g.cache.order.Front(); e != nil; e = e.Next() {
			used += e.Value.(*entry).size
		}
		if used != g.cache.used || used > budget || g.cache.order.Len() != len(g.cache.entries) {
			t.Fatalf("%d bytes in %d entries, counted as %d in %d, budget %d", used, g.cache.order.Len(), g.cache.used, len(g.cache.entries), budget)
		}
	}
	if g.cache.used < budget/2 {
		t.Errorf("%d bytes in use, want near %d", g.cache.used, budget)
	}
	none := mustGraph(t, newMemory(nil, edges, false), &Options{CacheBytes: -1})
	if _, err := none.Neighborhood(t.Context(), "c1", 1); err != nil || len(none.cache.entries) != 0 {
		t.Errorf("error %v, %d entries in a cache that is off", err, len(none.cache.entries))
	}
}

// TestLeastRecentlyUsedGoesFirst keeps two chunks of equal size.
func TestLeastRecentlyUsedGoesFirst(t *testing.T) {
	source := newMemory([]string{"a", "b", "c"}, nil, false)
	g := mustGraph(t, source, &Options{CacheBytes: 2 * (entryBytes + 1)})
	for _, step := range []struct {
		id    string
		trips int64
	}{{"a", 1}, {"b", 2}, {"a", 2}, {"c", 3}, {"a", 3}, {"b", 4}} {
		if _, err := g.Neighborhood(t.Context(), step.id, 1); err != nil {
			t.Fatal(err)
		}
		if got := source.calls.Load(); got != step.trips {
			t.Errorf("after %q: %d round trips, want %d", step.id, got, step.trips)
		}
	}
}

// TestConcurrentFetchesAreShared lets 64 callers ask the same while the source
// waits for all of them.
func TestConcurrentFetchesAreShared(t *testing.T) {
	edges := []mapmatched.Edge{{From: "a", To: "b", Weight: 1}, {From: "b", To: "c", Weight: 1}}
	source := newMemory(nil, edges, false)
	g := mustGraph(t, source, nil)
	const callers = 64
	release := make(chan struct{})
	source.before = func(ctx context.Context, _ []string) error {
		select {
		case <-release:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			d := make([]float64, 1)
			if err := g.Distances(t.Context(), []string{"a"}, []string{"c"}, d); err != nil || d[0] != 2 {
				t.Errorf("distance %v with error %v, want 2", d[0], err)
			}
		})
	}
	for waiting := 0; waiting < callers; {
		g.mu.Lock()
		if fl := g.flights["a"]; fl != nil {
			waiting = fl.waiting
		}
		g.mu.Unlock()
		runtime.Gosched()
	}
	close(release)
	wg.Wait()
	if got := source.calls.Load(); got != 1 {
		t.Errorf("%d round trips, want 1", got)
	}
}

// TestOneCallerGivesUp: whoever started the fetch may leave, and the other one
// still gets the answer; when both leave, the source is told.
func TestOneCallerGivesUp(t *testing.T) {
	source := newMemory([]string{"a", "b"}, []mapmatched.Edge{{From: "a", To: "b", Weight: 1}}, false)
	g := mustGraph(t, source, nil)
	started, release, ended := make(chan struct{}, 2), make(chan struct{}), make(chan struct{}, 2)
	source.before = func(ctx context.Context, _ []string) error {
		started <- struct{}{}
		select {
		case <-release:
			return nil
		case <-ctx.Done():
			ended <- struct{}{}
			return ctx.Err()
		}
	}
	ask := func(ctx context.Context) chan error {
		done := make(chan error, 1)
		go func() { done <- g.Distances(ctx, []string{"a"}, []string{"b"}, make([]float64, 1)) }()
		return done
	}
	waitFor := func(n int) {
		for waiting := -1; waiting != n; {
			g.mu.Lock()
			if fl := g.flights["a"]; fl != nil {
				waiting = fl.waiting
			}
			g.mu.Unlock()
			runtime.Gosched()
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	first := ask(ctx)
	<-started
	second := ask(t.Context())
	waitFor(2)
	cancel()
	if err := <-first; !errors.Is(err, context.Canceled) {
		t.Errorf("the first caller got %v, want context.Canceled", err)
	}
	close(release)
	if err := <-second; err != nil {
		t.Errorf("the second caller got %v", err)
	}

	g.Forget()
	release = make(chan struct{})
	ctx, cancel = context.WithCancel(t.Context())
	first, second = ask(ctx), ask(ctx)
	<-started
	waitFor(2)
	cancel()
	for _, done := range []chan error{first, second} {
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("error %v, want context.Canceled", err)
		}
	}
	<-ended
	close(release)
	if err := g.Distances(t.Context(), []string{"a"}, []string{"b"}, make([]float64, 1)); err != nil {
		t.Errorf("after a fetch that was given up: %v", err)
	}
}

// TestForgetDuringAFetch: what was on its way then is used by those who wait and
// not kept.
func TestForgetDuringAFetch(t *testing.T) {
	source := newMemory([]string{"a"}, nil, false)
	g := mustGraph(t, source, nil)
	started, release := make(chan struct{}, 2), make(chan struct{})
	source.before = func(context.Context, []string) error {
		started <- struct{}{}
		<-release
		return nil
	}
	done := make(chan error, 1)
	go func() { _, err := g.Neighborhood(t.Context(), "a", 1); done <- err }()
	<-started
	g.Forget()
	close(release)
	if err := <-done; err != nil {
		t.Error(err)
	}
	if _, err := g.Neighborhood(t.Context(), "a", 1); err != nil || source.calls.Load() != 2 {
		t.Errorf("error %v, %d round trips, want 2", err, source.calls.Load())
	}
}

// TestCloseEndsFetches: also those that Forget took off the list.
func TestCloseEndsFetches(t *testing.T) {
	source := newMemory([]string{"a", "b"}, nil, false)
	g := mustGraph(t, source, nil)
	started := make(chan struct{}, 1)
	source.before = func(ctx context.Context, _ []string) error {
		started <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	}
	done := make(chan error, 1)
	go func() { _, err := g.Neighborhood(t.Context(), "a", 1); done <- err }()
	<-started
	g.Forget()
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; !errors.Is(err, mapmatched.ErrClosed) || mapmatched.KindOf(err) != mapmatched.KindUnavailable {
		t.Errorf("error %v of kind %q, want ErrClosed of kind unavailable", err, mapmatched.KindOf(err))
	}
}

// TestManyAtOnce asks 64 goroutines random questions with a small cache, some
// of them under contexts that end, beside errors of the source.
func TestManyAtOnce(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	const nodes = 120
	edges := randomEdges(r, nodes, 240, weightings[2].draw)
	want := mustReference(t, edges, &mapmatched.GraphOptions{MaximumDistance: 3})
	source := newMemory(nil, edges, false)
	var n atomic.Int64
	broken := errors.New("broken")
	source.before = func(context.Context, []string) error {
		if n.Add(1)%50 == 0 {
			return broken
		}
		return nil
	}
	g := mustGraph(t, source, &Options{MaximumDistance: 3, CacheBytes: 8000})
	var wg sync.WaitGroup
	for worker := range 64 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(worker), 5))
			for range 8 {
				ctx, cancel := context.WithCancel(t.Context())
				if r.IntN(4) == 0 {
					go cancel()
				}
				if r.IntN(10) == 0 {
					g.Forget()
				}
				from, to := question(r, nodes, 4), question(r, nodes, 4)
				got, expected := make([]float64, 16), make([]float64, 16)
				err := g.Distances(ctx, from, to, got)
				cancel()
				switch {
				case errors.Is(err, context.Canceled), errors.Is(err, broken):
					continue
				case err != nil:
					t.Error(err)
				}
				if err := want.Distances(t.Context(), from, to, expected); err != nil {
					t.Error(err)
				}
				if !slices.Equal(got, expected) {
					t.Errorf("distances from %v to %v: %v, want %v", from, to, got, expected)
				}
			}
		})
	}
	wg.Wait()
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.flights) > 0 {
		t.Errorf("%d chunks are still being fetched", len(g.flights))
	}
}

// TestDanglingEdges: a chunk that only an edge names is passable from where
// the edge is kept.
func TestDanglingEdges(t *testing.T) {
	source := newMemory([]string{"a"}, nil, false)
	source.edges["a"] = []mapmatched.Edge{{From: "a", To: "gone", Weight: 2}}
	g := mustGraph(t, source, nil)
	want := mustReference(t, source.edges["a"], nil)
	compareDistances(t, g, want, []string{"a", "gone"}, []string{"gone", "a"})
	compareNeighborhood(t, g, want, "a", 10)
}
