package adaptertest

import (
	"context"
	"errors"
	"iter"
	"math"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mapmatched/mmplug/mapmatched"
)

func TestMemoryGraph(t *testing.T) {
	Graph(t, GraphHarness{New: func(spec GraphSpec) (mapmatched.CorpusGraph, error) {
		return mapmatched.NewGraph(spec.Edges, &mapmatched.GraphOptions{
			Nodes: spec.Nodes, MaximumDistance: spec.MaximumDistance, Directed: spec.Directed})
	}})
}

// tableGraph is a plain graph that does all that a graph can do. The fields are
// its methods, so that a test can break one of them.
type tableGraph struct {
	spec   GraphSpec
	closed atomic.Bool

	maximum      func() float64
	distances    func(ctx context.Context, from, to []string, dst []float64) error
	neighborhood func(ctx context.Context, id string, radius float64) ([]mapmatched.Neighbor, error)
	edges        func(ctx context.Context) iter.Seq2[mapmatched.Edge, error]
	health       func(ctx context.Context) error
	close        func() error
}

func newTableGraph(spec GraphSpec) *tableGraph {
	g := &tableGraph{spec: spec}
	g.maximum = func() float64 { return spec.MaximumDistance }
	g.distances, g.neighborhood, g.edges, g.health = g.plainDistances, g.plainNeighborhood, g.plainEdges, g.usable
	g.close = func() error { g.closed.Store(true); return nil }
	return g
}

func (g *tableGraph) MaximumDistance() float64 { return g.maximum() }
func (g *tableGraph) Distances(ctx context.Context, from, to []string, dst []float64) error {
	return g.distances(ctx, from, to, dst)
}
func (g *tableGraph) Neighborhood(ctx context.Context, id string, radius float64) ([]mapmatched.Neighbor, error) {
	return g.neighborhood(ctx, id, radius)
}
func (g *tableGraph) Edges(ctx context.Context) iter.Seq2[mapmatched.Edge, error] {
	return g.edges(ctx)
}
func (g *tableGraph) Health(ctx context.Context) error { return g.health(ctx) }
func (g *tableGraph) Close() error                     { return g.close() }

func (g *tableGraph) usable(ctx context.Context) error {
	if g.closed.Load() {
		return mapmatched.ErrClosed
	}
	return ctx.Err()
}

func (g *tableGraph) plainDistances(ctx context.Context, from, to []string, dst []float64) error {
	if len(dst) != len(from)*len(to) {
		return errors.New("dst has the wrong length")
	}
	for i := range from {
		if err := g.usable(ctx); err != nil {
			return err
		}
		copy(dst[i*len(to):], g.spec.distances(from[i:i+1], to))
	}
	return nil
}

func (g *tableGraph) plainNeighborhood(ctx context.Context, id string, radius float64) ([]mapmatched.Neighbor, error) {
	if err := g.usable(ctx); err != nil {
		return nil, err
	}
	return g.spec.neighborhood(id, radius), nil
}

func (g *tableGraph) plainEdges(ctx context.Context) iter.Seq2[mapmatched.Edge, error] {
	return func(yield func(mapmatched.Edge, error) bool) {
		for _, e := range g.spec.Edges {
			if err := g.usable(ctx); err != nil {
				yield(mapmatched.Edge{}, err)
				return
			}
			if !yield(e, nil) {
				return
			}
		}
	}
}

// tableHarness makes table graphs, each changed by f.
func tableHarness(f func(g *tableGraph)) GraphHarness {
	return GraphHarness{
		New: func(spec GraphSpec) (mapmatched.CorpusGraph, error) {
			g := newTableGraph(spec)
			f(g)
			return g, nil
		},
		Stalled: func(spec GraphSpec) (mapmatched.CorpusGraph, error) {
			g := newTableGraph(spec)
			g.distances = func(ctx context.Context, _, _ []string, _ []float64) error { <-ctx.Done(); return ctx.Err() }
			g.neighborhood = func(ctx context.Context, _ string, _ float64) ([]mapmatched.Neighbor, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return g, nil
		},
	}
}

func TestGraphSuiteHoldsForATableGraph(t *testing.T) {
	h := tableHarness(func(*tableGraph) {})
	Graph(t, h)
	for _, r := range CheckGraph(t.Context(), h) {
		if r.Skipped != "" {
			t.Errorf("%s: skipped (%s) although the graph can do it", r.Check, r.Skipped)
		}
	}
}

// editedDistances returns a break that changes each distance.
func editedDistances(edit func(g *tableGraph, from, to string, d float64) float64) func(g *tableGraph) {
	return func(g *tableGraph) {
		g.distances = func(ctx context.Context, from, to []string, dst []float64) error {
			if err := g.plainDistances(ctx, from, to, dst); err != nil {
				return err
			}
			for i := range dst {
				dst[i] = edit(g, from[i/len(to)], to[i%len(to)], dst[i])
			}
			return nil
		}
	}
}

// editedNeighbors returns a break that changes the neighbors.
func editedNeighbors(edit func(g *tableGraph, id string, radius float64, got []mapmatched.Neighbor) []mapmatched.Neighbor) func(g *tableGraph) {
	return func(g *tableGraph) {
		g.neighborhood = func(ctx context.Context, id string, radius float64) ([]mapmatched.Neighbor, error) {
			got, err := g.plainNeighborhood(ctx, id, radius)
			if err != nil {
				return nil, err
			}
			return edit(g, id, radius, got), nil
		}
	}
}

// otherGraph returns a break that answers from a changed copy of the graph.
func otherGraph(change func(spec *GraphSpec)) func(g *tableGraph) {
	return func(g *tableGraph) {
		other := g.spec
		other.Edges = slices.Clone(other.Edges)
		change(&other)
		g.distances = newTableGraph(other).plainDistances
	}
}

// edgeList yields edges.
func edgeList(edges ...mapmatched.Edge) iter.Seq2[mapmatched.Edge, error] {
	return func(yield func(mapmatched.Edge, error) bool) {
		for _, e := range edges {
			if !yield(e, nil) {
				return
			}
		}
	}
}

// graphBreaks are faults, each with the check that has to find it.
var graphBreaks = []struct {
	name, check string
	change      func(g *tableGraph)
}{
	{"no maximum", "maximum distance", func(g *tableGraph) { g.maximum = func() float64 { return math.Inf(1) } }},
	{"cells not written", "distances", func(g *tableGraph) {
		g.distances = func(ctx context.Context, _, _ []string, _ []float64) error { return g.usable(ctx) }
	}},
	{"no clamp", "distances", otherGraph(func(spec *GraphSpec) { spec.MaximumDistance = 1000 })},
	{"infinity for unreachable", "distances", editedDistances(func(g *tableGraph, _, _ string, d float64) float64 {
		if d == g.spec.MaximumDistance {
			return math.Inf(1)
		}
		return d
	})},
	{"clamp one way only", "distances", editedDistances(func(g *tableGraph, from, to string, d float64) float64 {
		if from < to && d == g.spec.MaximumDistance {
			return d + 1
		}
		return d
	})},
	{"direction ignored", "distances", otherGraph(func(spec *GraphSpec) { spec.Directed = false })},
	{"everything directed", "distances", otherGraph(func(spec *GraphSpec) { spec.Directed = true })},
	{"columns for rows", "distances", func(g *tableGraph) {
		g.distances = func(ctx context.Context, from, to []string, dst []float64) error {
			return g.plainDistances(ctx, to, from, dst)
		}
	}},
	{"last of parallel edges", "distances", otherGraph(func(spec *GraphSpec) {
		last := map[[2]string]int{}
		for i, e := range spec.Edges {
			e = spec.oriented(e)
			last[[2]string{e.From, e.To}] = i
		}
		var kept []mapmatched.Edge
		for i, e := range spec.Edges {
			o := spec.oriented(e)
			if last[[2]string{o.From, o.To}] == i {
				kept = append(kept, e)
			}
		}
		spec.Edges = kept
	})},
	{"a way to itself has a length", "distances", editedDistances(func(g *tableGraph, from, to string, d float64) float64 {
		if from == to && slices.ContainsFunc(g.spec.Edges, func(e mapmatched.Edge) bool { return e.From == from && e.To == from }) {
			return 0.5
		}
		return d
	})},
	{"number of edges for length", "distances", otherGraph(func(spec *GraphSpec) {
		for i := range spec.Edges {
			spec.Edges[i].Weight = 1
		}
	})},
	{"summed from the far end", "sum runs along the path", func(g *tableGraph) {
		g.distances = func(ctx context.Context, from, to []string, dst []float64) error {
			for i, f := range from {
				for j, t := range to {
					if err := g.plainDistances(ctx, []string{t}, []string{f}, dst[i*len(to)+j:][:1]); err != nil {
						return err
					}
				}
			}
			return nil
		}
	}},
	{"an unknown chunk is far from itself", "unknown chunks", editedDistances(func(g *tableGraph, from, _ string, d float64) float64 {
		if !slices.Contains(g.spec.Nodes, from) {
			return g.spec.MaximumDistance
		}
		return d
	})},
	{"unknown chunks are alike", "unknown chunks", editedDistances(func(g *tableGraph, from, to string, d float64) float64 {
		if !slices.Contains(g.spec.Nodes, from) && !slices.Contains(g.spec.Nodes, to) {
			return 0
		}
		return d
	})},
	{"an unknown chunk is an error", "unknown chunks", func(g *tableGraph) {
		g.neighborhood = func(ctx context.Context, id string, radius float64) ([]mapmatched.Neighbor, error) {
			if !slices.Contains(g.spec.Nodes, id) {
				return nil, errBroken
			}
			return g.plainNeighborhood(ctx, id, radius)
		}
	}},
	{"an unknown chunk has neighbors", "unknown chunks", editedNeighbors(func(g *tableGraph, id string, _ float64, got []mapmatched.Neighbor) []mapmatched.Neighbor {
		if id == unknownChunk {
			return []mapmatched.Neighbor{{ChunkID: g.spec.Nodes[0], Distance: g.spec.MaximumDistance}}
		}
		return got
	})},
	{"each chunk answered once", "chunks asked twice", func(g *tableGraph) {
		g.distances = func(ctx context.Context, from, to []string, dst []float64) error {
			if err := g.plainDistances(ctx, from, to, dst); err != nil {
				return err
			}
			for j := range to {
				if slices.Index(to, to[j]) < j {
					dst[j] = math.NaN()
				}
			}
			return nil
		}
	}},
	{"an empty question is an error", "nothing asked", func(g *tableGraph) {
		g.distances = func(ctx context.Context, from, to []string, dst []float64) error {
			if len(from) == 0 || len(to) == 0 {
				return errBroken
			}
			return g.plainDistances(ctx, from, to, dst)
		}
	}},
	{"an empty question panics", "nothing asked", func(g *tableGraph) {
		g.distances = func(ctx context.Context, from, to []string, dst []float64) error {
			_ = dst[0]
			return g.plainDistances(ctx, from, to, dst)
		}
	}},
	{"a short dst panics", "wrong length of dst", func(g *tableGraph) {
		g.distances = func(ctx context.Context, from, to []string, dst []float64) error {
			return g.plainDistances(ctx, from, to, dst[:len(from)*len(to)])
		}
	}},
	{"a long dst is half written", "wrong length of dst", func(g *tableGraph) {
		g.distances = func(ctx context.Context, from, to []string, dst []float64) error {
			if len(dst) < len(from)*len(to) {
				return errBroken
			}
			return g.plainDistances(ctx, from, to, dst[:len(from)*len(to)])
		}
	}},
	{"a long dst for nothing", "wrong length of dst", func(g *tableGraph) {
		g.distances = func(ctx context.Context, from, to []string, dst []float64) error {
			if len(from) == 0 {
				return nil
			}
			return g.plainDistances(ctx, from, to, dst)
		}
	}},
	{"the way back from a cache", "same bits whatever was asked before", func(g *tableGraph) {
		cache := map[[2]string]float64{}
		editedDistances(func(_ *tableGraph, from, to string, d float64) float64 {
			if back, ok := cache[[2]string{to, from}]; ok {
				return back
			}
			cache[[2]string{from, to}] = d
			return d
		})(g)
	}},
	{"sources sorted in place", "question is left alone", func(g *tableGraph) {
		g.distances = func(ctx context.Context, from, to []string, dst []float64) error {
			err := g.plainDistances(ctx, from, to, dst)
			slices.Sort(from)
			return err
		}
	}},
	{"targets overwritten", "question is left alone", func(g *tableGraph) {
		g.distances = func(ctx context.Context, from, to []string, dst []float64) error {
			err := g.plainDistances(ctx, from, to, dst)
			slices.Reverse(to)
			return err
		}
	}},
	{"bound left out", "neighborhood", editedNeighbors(func(_ *tableGraph, _ string, radius float64, got []mapmatched.Neighbor) []mapmatched.Neighbor {
		return slices.DeleteFunc(got, func(n mapmatched.Neighbor) bool { return n.Distance == radius })
	})},
	{"maximum left out", "neighborhood", editedNeighbors(func(g *tableGraph, _ string, _ float64, got []mapmatched.Neighbor) []mapmatched.Neighbor {
		return slices.DeleteFunc(got, func(n mapmatched.Neighbor) bool { return n.Distance == g.spec.MaximumDistance })
	})},
	{"radius beyond the maximum", "neighborhood", func(g *tableGraph) {
		other := g.spec
		other.MaximumDistance = 1000
		g.neighborhood = newTableGraph(other).plainNeighborhood
	}},
	{"itself a neighbor", "neighborhood", editedNeighbors(func(_ *tableGraph, id string, _ float64, got []mapmatched.Neighbor) []mapmatched.Neighbor {
		return append([]mapmatched.Neighbor{{ChunkID: id}}, got...)
	})},
	{"farthest first", "neighborhood", editedNeighbors(func(_ *tableGraph, _ string, _ float64, got []mapmatched.Neighbor) []mapmatched.Neighbor {
		slices.Reverse(got)
		return got
	})},
	{"ties by position", "neighborhood", editedNeighbors(func(_ *tableGraph, _ string, _ float64, got []mapmatched.Neighbor) []mapmatched.Neighbor {
		for i := 1; i < len(got); i++ {
			if got[i].Distance == got[i-1].Distance {
				got[i], got[i-1] = got[i-1], got[i]
				break
			}
		}
		return got
	})},
	{"wrong distances of neighbors", "neighborhood", editedNeighbors(func(_ *tableGraph, _ string, _ float64, got []mapmatched.Neighbor) []mapmatched.Neighbor {
		for i := range got {
			got[i].Distance /= 2
		}
		return got
	})},
	{"direct neighbors only", "neighborhood", editedNeighbors(func(g *tableGraph, id string, _ float64, got []mapmatched.Neighbor) []mapmatched.Neighbor {
		return slices.DeleteFunc(got, func(n mapmatched.Neighbor) bool {
			return !slices.ContainsFunc(g.spec.Edges, func(e mapmatched.Edge) bool {
				return e.From == id && e.To == n.ChunkID || e.To == id && e.From == n.ChunkID
			})
		})
	})},
	{"negative means unlimited", "neighborhood radius", func(g *tableGraph) {
		g.neighborhood = func(ctx context.Context, id string, radius float64) ([]mapmatched.Neighbor, error) {
			if radius < 0 {
				radius = math.Inf(1)
			}
			return g.plainNeighborhood(ctx, id, radius)
		}
	}},
	{"NaN means unlimited", "neighborhood radius", func(g *tableGraph) {
		g.neighborhood = func(ctx context.Context, id string, radius float64) ([]mapmatched.Neighbor, error) {
			if radius != radius {
				radius = math.Inf(1)
			}
			return g.plainNeighborhood(ctx, id, radius)
		}
	}},
	{"one buffer for all results", "neighborhood is not shared", func(g *tableGraph) {
		buffer := make([]mapmatched.Neighbor, 100)
		editedNeighbors(func(_ *tableGraph, _ string, _ float64, got []mapmatched.Neighbor) []mapmatched.Neighbor {
			return buffer[:copy(buffer, got)]
		})(g)
	}},
	{"a cache without copies", "neighborhood is not shared", func(g *tableGraph) {
		cache := map[string][]mapmatched.Neighbor{}
		editedNeighbors(func(_ *tableGraph, id string, _ float64, got []mapmatched.Neighbor) []mapmatched.Neighbor {
			if cached, ok := cache[id]; ok {
				return cached
			}
			cache[id] = got
			return got
		})(g)
	}},
	{"one call at a time", "concurrent use", func(g *tableGraph) {
		meet := make(chan struct{})
		g.distances = func(ctx context.Context, from, to []string, dst []float64) error {
			select {
			case meet <- struct{}{}:
				return errBroken
			case <-meet:
				return errBroken
			case <-time.After(10 * time.Millisecond):
			}
			return g.plainDistances(ctx, from, to, dst)
		}
	}},
	{"context ignored", "context done before", func(g *tableGraph) {
		g.distances = func(_ context.Context, from, to []string, dst []float64) error {
			return g.plainDistances(context.Background(), from, to, dst)
		}
	}},
	{"neighborhood ignores the context", "context done before", func(g *tableGraph) {
		g.neighborhood = func(_ context.Context, id string, radius float64) ([]mapmatched.Neighbor, error) {
			return g.plainNeighborhood(context.Background(), id, radius)
		}
	}},
	{"edges ignore the context", "context done before", func(g *tableGraph) {
		g.edges = func(context.Context) iter.Seq2[mapmatched.Edge, error] { return g.plainEdges(context.Background()) }
	}},
	{"rows missing when cancelled", "context done in the middle", func(g *tableGraph) {
		g.distances = func(ctx context.Context, from, to []string, dst []float64) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			rows := 0
			for rows < len(from) && ctx.Err() == nil {
				rows++
			}
			return g.plainDistances(context.Background(), from[:rows], to, dst[:rows*len(to)])
		}
	}},
	{"edges end when cancelled", "context done in the middle", func(g *tableGraph) {
		g.edges = func(ctx context.Context) iter.Seq2[mapmatched.Edge, error] {
			return func(yield func(mapmatched.Edge, error) bool) {
				if err := ctx.Err(); err != nil {
					yield(mapmatched.Edge{}, err)
					return
				}
				for _, e := range g.spec.Edges {
					if ctx.Err() != nil || !yield(e, nil) {
						return
					}
				}
			}
		}
	}},
	{"Close twice panics", "close", func(g *tableGraph) {
		quit := make(chan struct{})
		g.close = func() error { g.closed.Store(true); close(quit); return nil }
	}},
	{"Close closes nothing", "close", func(g *tableGraph) { g.close = func() error { return nil } }},
	{"panic beside Close", "close while busy", func(g *tableGraph) {
		g.neighborhood = func(ctx context.Context, id string, radius float64) ([]mapmatched.Neighbor, error) {
			if g.closed.Load() {
				panic("use after close")
			}
			return g.plainNeighborhood(ctx, id, radius)
		}
	}},
	{"never in health", "health", func(g *tableGraph) { g.health = func(context.Context) error { return errBroken } }},
	{"edges both ways", "edges", func(g *tableGraph) {
		g.edges = func(context.Context) iter.Seq2[mapmatched.Edge, error] {
			both := slices.Clone(g.spec.Edges)
			for _, e := range g.spec.Edges {
				e.From, e.To = e.To, e.From
				both = append(both, e)
			}
			return edgeList(both...)
		}
	}},
	{"an edge missing", "edges", func(g *tableGraph) {
		g.edges = func(context.Context) iter.Seq2[mapmatched.Edge, error] {
			return edgeList(g.spec.Edges[:max(0, len(g.spec.Edges)-1)]...)
		}
	}},
	{"edges without type", "edges", func(g *tableGraph) {
		g.edges = func(context.Context) iter.Seq2[mapmatched.Edge, error] {
			plain := slices.Clone(g.spec.Edges)
			for i := range plain {
				plain[i].Type = ""
			}
			return edgeList(plain...)
		}
	}},
	{"edges turned round", "edges", func(g *tableGraph) {
		g.edges = func(context.Context) iter.Seq2[mapmatched.Edge, error] {
			turned := slices.Clone(g.spec.Edges)
			for i, e := range turned {
				turned[i].From, turned[i].To = e.To, e.From
			}
			return edgeList(turned...)
		}
	}},
	{"longest of parallel edges", "edges", func(g *tableGraph) {
		g.edges = func(context.Context) iter.Seq2[mapmatched.Edge, error] {
			return edgeList(slices.DeleteFunc(slices.Clone(g.spec.Edges), func(e mapmatched.Edge) bool {
				return slices.ContainsFunc(g.spec.Edges, func(o mapmatched.Edge) bool {
					e, o := g.spec.oriented(e), g.spec.oriented(o)
					return e.From == o.From && e.To == o.To && e.Weight < o.Weight
				})
			})...)
		}
	}},
	{"another order each time", "edges in a fixed order", func(g *tableGraph) {
		calls := 0
		g.edges = func(context.Context) iter.Seq2[mapmatched.Edge, error] {
			calls++
			return edgeList(append(slices.Clone(g.spec.Edges[calls:]), g.spec.Edges[:calls]...)...)
		}
	}},
}

func TestGraphSuiteFindsFaults(t *testing.T) {
	caught := map[string]bool{}
	for _, b := range graphBreaks {
		t.Run(b.check+"/"+b.name, func(t *testing.T) {
			caught[b.check] = expectFault(t, graphResult(t, tableHarness(b.change), b.check)) || caught[b.check]
		})
	}
	t.Run("stores that differ", func(t *testing.T) {
		stores := 0
		h := tableHarness(func(g *tableGraph) {
			stores++
			if stores%2 == 0 {
				slices.Reverse(g.spec.Edges)
			}
		})
		expectFault(t, graphResult(t, h, "edges in a fixed order"))
	})
	t.Run("deaf while stalled", func(t *testing.T) {
		h := tableHarness(func(*tableGraph) {})
		h.Patience = 50 * time.Millisecond
		h.Stalled = func(spec GraphSpec) (mapmatched.CorpusGraph, error) {
			g := newTableGraph(spec)
			block := make(chan struct{})
			t.Cleanup(func() { close(block) })
			g.distances = func(context.Context, []string, []string, []float64) error { <-block; return nil }
			return g, nil
		}
		const check = "context done while the store is silent"
		caught[check] = expectFault(t, graphResult(t, h, check))
	})
	for _, c := range graphChecks {
		if !caught[c.name] {
			t.Errorf("no fault of this test is found by the check %q", c.name)
		}
	}
}

// graphResult runs one check.
func graphResult(t *testing.T, h GraphHarness, name string) Result {
	t.Helper()
	i := slices.IndexFunc(graphChecks, func(c graphCheck) bool { return c.name == name })
	if i < 0 {
		t.Fatalf("there is no check %q", name)
	}
	return h.check(t.Context(), graphChecks[i])
}

func TestGraphSuiteAllowsATolerance(t *testing.T) {
	h := tableHarness(editedDistances(func(g *tableGraph, _, _ string, d float64) float64 {
		return min(float64(float32(d*(1+1e-7))), g.spec.MaximumDistance)
	}))
	expectFault(t, graphResult(t, h, "distances"))
	h.Tolerance = 1e-5
	for _, name := range []string{"distances", "concurrent use", "sum runs along the path"} {
		if r := graphResult(t, h, name); r.Err != nil {
			t.Errorf("%s: %v", name, r.Err)
		}
	}
}

// bareGraph hides all capabilities but the required ones.
type bareGraph struct{ mapmatched.CorpusGraph }

func TestGraphSuiteSkipsWhatIsAbsent(t *testing.T) {
	want := []string{"close", "close while busy", "context done while the store is silent", "edges", "edges in a fixed order", "health"}
	directed := false
	h := GraphHarness{
		New: func(spec GraphSpec) (mapmatched.CorpusGraph, error) {
			directed = directed || spec.Directed
			return bareGraph{newTableGraph(spec)}, nil
		},
		UndirectedOnly: true,
	}
	var skipped []string
	for _, r := range CheckGraph(t.Context(), h) {
		if r.Err != nil {
			t.Errorf("%s: %v", r.Check, r.Err)
		}
		if r.Skipped != "" {
			skipped = append(skipped, r.Check)
		}
	}
	slices.Sort(skipped)
	if !slices.Equal(skipped, want) {
		t.Errorf("skipped %q, want %q", skipped, want)
	}
	if directed {
		t.Error("a store for undirected graphs was asked for a directed one")
	}
}

// TestReference compares the reference with distances worked out by hand and
// with another algorithm (Floyd and Warshall).
func TestReference(t *testing.T) {
	spec := graphSpecs()[0]
	got := spec.distances([]string{"a", "e"}, []string{"a", "b", "d", "e", "?"})
	if want := []float64{0, 1, 3, 3, 3, 3, 2.25, 0.25, 0, 3}; !slices.Equal(got, want) {
		t.Errorf("%s: %v, want %v", spec.Name, got, want)
	}
	wantNear := []mapmatched.Neighbor{{ChunkID: "b", Distance: 1}, {ChunkID: "c", Distance: 2.5}, {ChunkID: "d", Distance: 3}}
	if near := spec.neighborhood("a", 10); !slices.Equal(near, wantNear) {
		t.Errorf("%s: neighborhood %v, want %v", spec.Name, near, wantNear)
	}
	chain := decimalSpec()
	if got := chain.distances([]string{"a", "d"}, []string{"a", "d"}); got[1] != 0.6000000000000001 || got[2] != 0.6 {
		t.Errorf("%s: %v there and %v back, want 0.6000000000000001 and 0.6", chain.Name, got[1], got[2])
	}
	for _, spec := range graphSpecs() {
		n := len(spec.Nodes)
		d := make([]float64, n*n)
		for i := range d {
			d[i] = math.Inf(1)
			if i/n == i%n {
				d[i] = 0
			}
		}
		for _, e := range spec.Edges {
			i, j := slices.Index(spec.Nodes, e.From), slices.Index(spec.Nodes, e.To)
			d[i*n+j] = min(d[i*n+j], e.Weight)
			if !spec.Directed {
				d[j*n+i] = min(d[j*n+i], e.Weight)
			}
		}
		for k := range n {
			for i := range n {
				for j := range n {
					d[i*n+j] = min(d[i*n+j], d[i*n+k]+d[k*n+j])
				}
			}
		}
		for i := range d {
			d[i] = min(d[i], spec.MaximumDistance)
		}
		if !slices.Equal(spec.distances(spec.Nodes, spec.Nodes), d) {
			t.Errorf("%s: the reference disagrees with Floyd and Warshall", spec.Name)
		}
	}
}
