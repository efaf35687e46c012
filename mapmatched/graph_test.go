package mapmatched

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
)

func mustGraph(t testing.TB, edges []Edge, opts *GraphOptions) *Graph {
	t.Helper()
	g, err := NewGraph(edges, opts)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// randomEdges joins nodes n0, n1, … with edges of weights that do not add up
// exactly, among them loops and parallel edges.
func randomEdges(r *rand.Rand, nodes, edges int) []Edge {
	list := make([]Edge, edges)
	for i := range list {
		list[i] = Edge{
			From:   fmt.Sprint("n", r.IntN(nodes)),
			To:     fmt.Sprint("n", r.IntN(nodes)),
			Weight: 0.01 + 3*r.Float64(),
			Type:   []EdgeType{EdgeNext, EdgeLink, EdgeKNN}[r.IntN(3)],
		}
		if i > 0 && r.IntN(5) == 0 {
			list[i].From, list[i].To = list[i-1].To, list[i-1].From
		}
	}
	return list
}

// bellmanFord is the distance from one chunk to every other: edges are relaxed
// in the order given until nothing changes.
func bellmanFord(edges []Edge, opts GraphOptions, source string) map[string]float64 {
	d := map[string]float64{source: 0}
	relax := func(from, to string, w float64) bool {
		base, reached := d[from]
		if !reached || base+w > opts.MaximumDistance {
			return false
		}
		if old, reached := d[to]; reached && old <= base+w {
			return false
		}
		d[to] = base + w
		return true
	}
	for changed := true; changed; {
		changed = false
		for _, e := range edges {
			changed = relax(e.From, e.To, e.Weight) || changed
			if !opts.Directed {
				changed = relax(e.To, e.From, e.Weight) || changed
			}
		}
	}
	return d
}

func TestDistances(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 21))
		edges := randomEdges(r, 30, 10+r.IntN(90))
		opts := GraphOptions{Nodes: []string{"alone", "n1"}, MaximumDistance: 0.5 + 5*r.Float64(), Directed: seed%2 == 0}
		shared := mustGraph(t, edges, &opts)
		ids := append(shared.Nodes(), "unknown")
		for _, source := range ids {
			truth := bellmanFord(edges, opts, source)
			want := make([]float64, len(ids))
			for j, id := range ids {
				want[j] = opts.MaximumDistance
				if d, reached := truth[id]; reached {
					want[j] = d
				}
			}
			got := make([]float64, len(ids))
			if err := shared.Distances(t.Context(), []string{source}, ids, got); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, want) {
				t.Fatalf("seed %d: from %s to %v\n got %v\nwant %v", seed, source, ids, got, want)
			}
			// One at a time, with other questions in between, and on a graph
			// that was asked nothing before.
			for range 4 {
				j := r.IntN(len(ids))
				noise := make([]float64, 2)
				if err := shared.Distances(t.Context(), []string{ids[r.IntN(len(ids))]}, []string{ids[r.IntN(len(ids))], source}, noise); err != nil {
					t.Fatal(err)
				}
				for _, g := range []*Graph{shared, mustGraph(t, edges, &opts)} {
					var one [1]float64
					if err := g.Distances(t.Context(), []string{source}, ids[j:j+1], one[:]); err != nil {
						t.Fatal(err)
					}
					if one[0] != want[j] {
						t.Fatalf("seed %d: from %s to %s alone %v, want %v", seed, source, ids[j], one[0], want[j])
					}
				}
			}
			near, err := shared.Neighborhood(t.Context(), source, opts.MaximumDistance/2)
			if err != nil {
				t.Fatal(err)
			}
			var around []Neighbor
			for _, id := range ids[:len(ids)-1] {
				if d, reached := truth[id]; reached && d <= opts.MaximumDistance/2 && id != source {
					around = append(around, Neighbor{id, d})
				}
			}
			slices.SortStableFunc(around, func(a, b Neighbor) int { return compareFloats(a.Distance, b.Distance) })
			if len(near)+len(around) > 0 && !slices.Equal(near, around) {
				t.Fatalf("seed %d: neighborhood of %s\n got %v\nwant %v", seed, source, near, around)
			}
		}
	}
}

// What a search for given chunks finds is what a search for all chunks finds,
// bit for bit, on graphs in which many paths are nearly of the same length.
func TestDistancesAgreeWithNeighborhoods(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 28))
		g := mustGraph(t, randomEdges(r, 400, 800+r.IntN(1600)), &GraphOptions{MaximumDistance: 1 + 6*r.Float64(), Directed: seed%2 == 0})
		ids := g.Nodes()
		pick := func() []string {
			var list []string
			for range 1 + r.IntN(20) {
				list = append(list, ids[r.IntN(len(ids))])
			}
			return list
		}
		for range 10 {
			from, to := pick(), pick()
			got := make([]float64, len(from)*len(to))
			if err := g.Distances(t.Context(), from, to, got); err != nil {
				t.Fatal(err)
			}
			for i, source := range from {
				near, err := g.Neighborhood(t.Context(), source, math.Inf(1))
				if err != nil {
					t.Fatal(err)
				}
				want := map[string]float64{source: 0}
				for _, n := range near {
					want[n.ChunkID] = n.Distance
				}
				for j, target := range to {
					d, reached := want[target]
					if !reached {
						d = g.MaximumDistance()
					}
					if got[i*len(to)+j] != d {
						t.Fatalf("seed %d: from %s to %s: %v, want %v", seed, source, target, got[i*len(to)+j], d)
					}
				}
			}
		}
	}
}

func TestDistancesBatch(t *testing.T) {
	g := mustGraph(t, []Edge{{From: "a", To: "b", Weight: 1}, {From: "b", To: "c", Weight: 2}}, &GraphOptions{MaximumDistance: 4})
	from := []string{"c", "?", "a", "c", "!"}
	to := []string{"a", "c", "?", "a", "b", "?"}
	want := []float64{
		3, 0, 4, 3, 2, 4,
		4, 4, 0, 4, 4, 0,
		0, 3, 4, 0, 1, 4,
		3, 0, 4, 3, 2, 4,
		4, 4, 4, 4, 4, 4,
	}
	got := slices.Repeat([]float64{math.NaN()}, len(want))
	if err := g.Distances(t.Context(), from, to, got); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	for _, c := range []struct{ from, to []string }{{nil, nil}, {from, nil}, {nil, to}} {
		if err := g.Distances(t.Context(), c.from, c.to, nil); err != nil {
			t.Errorf("%d × %d distances: %v", len(c.from), len(c.to), err)
		}
	}
	err := g.Distances(t.Context(), from, to, got[1:])
	if want := "graph: 30 distances asked for (5 from × 6 to), but dst holds 29"; err == nil || err.Error() != want {
		t.Errorf("short dst: %v, want %s", err, want)
	}
}

func TestMaximumDistanceCounts(t *testing.T) {
	edges := []Edge{{From: "a", To: "b", Weight: 0.1}, {From: "b", To: "c", Weight: 0.2}}
	sum := 0.1
	sum += 0.2 // 0.30000000000000004
	for _, c := range []struct {
		maximum float64
		want    []Neighbor
	}{
		{sum, []Neighbor{{"b", 0.1}, {"c", sum}}},
		{math.Nextafter(sum, 0), []Neighbor{{"b", 0.1}}},
		{0.1, []Neighbor{{"b", 0.1}}},
		{0.05, []Neighbor{}},
	} {
		g := mustGraph(t, edges, &GraphOptions{MaximumDistance: c.maximum})
		got, err := g.Neighborhood(t.Context(), "a", math.Inf(1))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("maximum %v: neighborhood %v, want %v", c.maximum, got, c.want)
		}
		var d [1]float64
		if err := g.Distances(t.Context(), []string{"a"}, []string{"c"}, d[:]); err != nil {
			t.Fatal(err)
		}
		if want := min(sum, c.maximum); d[0] != want {
			t.Errorf("maximum %v: distance %v, want %v", c.maximum, d[0], want)
		}
	}
}

func TestSearchStopsEarly(t *testing.T) {
	var edges []Edge
	for i := range 1000 {
		edges = append(edges, Edge{From: fmt.Sprintf("%04d", i), To: fmt.Sprintf("%04d", i+1), Weight: 1.0 / 256})
	}
	g := mustGraph(t, edges, nil)
	s := newSearch(g.NumNodes())
	for _, c := range []struct {
		targets []int32
		settled int
	}{
		{[]int32{503, 499, 503, unknownNode}, 7}, // both sides of the source up to 3 away
		{[]int32{500}, 1},
		{[]int32{0}, 1001},
		{[]int32{unknownNode}, 0},
	} {
		s.targets, s.settled = c.targets, nil
		if err := s.run(t.Context(), &g.arcs, 500, g.maximum, true); err != nil {
			t.Fatal(err)
		}
		if n := len(s.settled); n > c.settled || n < c.settled-1 {
			t.Errorf("targets %v: %d nodes settled, want %d", c.targets, n, c.settled)
		}
		for _, target := range c.targets {
			if target == unknownNode {
				continue
			}
			if want := math.Abs(float64(target)-500) / 256; s.seen[target] != s.epoch || s.dist[target] != want {
				t.Errorf("targets %v: distance to %d is %v, want %v", c.targets, target, s.dist[target], want)
			}
		}
	}
}

func TestParallelEdgesAndLoops(t *testing.T) {
	edges := []Edge{
		{"b", "a", 3, EdgeLink}, {"a", "b", 2, EdgeNext}, {"a", "b", 2, EdgeKNN}, {"a", "b", 5, EdgeParent},
		{"a", "a", 0.5, EdgeNext}, {"c", "c", 1, EdgeNext}, {"d", "c", 1, EdgeSection},
	}
	for _, c := range []struct {
		directed bool
		want     []Edge
		back     float64 // from b to a
	}{
		{false, []Edge{{"a", "b", 2, EdgeKNN}, {"c", "d", 1, EdgeSection}}, 2},
		{true, []Edge{{"a", "b", 2, EdgeKNN}, {"b", "a", 3, EdgeLink}, {"d", "c", 1, EdgeSection}}, 3},
	} {
		for seed := range uint64(10) {
			r := rand.New(rand.NewPCG(seed, 22))
			r.Shuffle(len(edges), func(i, j int) { edges[i], edges[j] = edges[j], edges[i] })
			g := mustGraph(t, edges, &GraphOptions{Directed: c.directed})
			var got []Edge
			for e, err := range g.Edges(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, e)
			}
			if !slices.Equal(got, c.want) || g.NumEdges() != len(c.want) {
				t.Errorf("directed %t: %d edges %v, want %v", c.directed, g.NumEdges(), got, c.want)
			}
			if g.Directed() != c.directed || g.MaximumDistance() != DefaultMaximumDistance || g.NumNodes() != 4 {
				t.Errorf("directed %t, maximum %v, %d nodes", g.Directed(), g.MaximumDistance(), g.NumNodes())
			}
			d := make([]float64, 4)
			if err := g.Distances(t.Context(), []string{"a", "b"}, []string{"a", "b"}, d); err != nil {
				t.Fatal(err)
			}
			if want := []float64{0, 2, c.back, 0}; !slices.Equal(d, want) {
				t.Errorf("directed %t: distances %v, want %v", c.directed, d, want)
			}
		}
	}
}

func TestEdgesStop(t *testing.T) {
	g := mustGraph(t, randomEdges(rand.New(rand.NewPCG(1, 23)), 20, 60), nil)
	seen := 0
	for _, err := range g.Edges(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if seen++; seen == 3 {
			break
		}
	}
	if seen != 3 {
		t.Errorf("%d edges, stopped at 3", seen)
	}
	var last error
	seen = 0
	for _, last = range g.Edges(expiring(t.Context(), 2)) {
		seen++
	}
	if !errors.Is(last, context.Canceled) || seen == 0 || seen > g.NumEdges() {
		t.Errorf("%d of %d edges and then %v, want it cancelled after two nodes", seen, g.NumEdges(), last)
	}
}

func TestSearchEpochWraps(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 24))
	g := mustGraph(t, randomEdges(r, 40, 120), &GraphOptions{MaximumDistance: 3})
	s := newSearch(g.NumNodes())
	run := func(s *Search, source int32, stop bool) []float64 {
		s.targets = []int32{3, 5, 7}
		if err := s.run(t.Context(), &g.arcs, source, g.maximum, stop); err != nil {
			t.Fatal(err)
		}
		d := slices.Repeat([]float64{-1}, g.NumNodes())
		for v := range d {
			if s.seen[v] == s.epoch && (!stop || slices.Contains(s.targets, int32(v))) {
				d[v] = s.dist[v]
			}
		}
		return d
	}
	for v := range int32(20) { // stamps that a wrapped epoch would take for its own
		run(s, v, v%2 == 0)
	}
	s.epoch = math.MaxUint32 - 5
	for v := range int32(20) {
		stop := v%2 == 1
		if got, want := run(s, v, stop), run(newSearch(g.NumNodes()), v, stop); !slices.Equal(got, want) {
			t.Fatalf("epoch %d, from node %d:\n got %v\nwant %v", s.epoch, v, got, want)
		}
	}
	if s.epoch >= 20 {
		t.Fatalf("the epoch is %d and never wrapped", s.epoch)
	}
}

func TestNeighborhood(t *testing.T) {
	edges := []Edge{
		{From: "m", To: "z", Weight: 1}, {From: "m", To: "b", Weight: 1}, {From: "m", To: "y", Weight: 1},
		{From: "m", To: "a", Weight: 2}, {From: "b", To: "c", Weight: 1}, {From: "m", To: "near", Weight: 0.5},
		{From: "c", To: "far", Weight: 100},
	}
	g := mustGraph(t, edges, &GraphOptions{MaximumDistance: 3})
	for _, c := range []struct {
		id     string
		radius float64
		want   []Neighbor
	}{
		{"m", 1, []Neighbor{{"near", 0.5}, {"b", 1}, {"y", 1}, {"z", 1}}},
		{"m", math.Nextafter(1, 0), []Neighbor{{"near", 0.5}}},
		{"m", 2, []Neighbor{{"near", 0.5}, {"b", 1}, {"y", 1}, {"z", 1}, {"a", 2}, {"c", 2}}},
		{"c", 1000, []Neighbor{{"b", 1}, {"m", 2}, {"near", 2.5}, {"y", 3}, {"z", 3}}},
		{"m", 0, nil},
		{"m", -1, nil},
		{"far", 3, nil},
		{"unknown", 3, nil},
	} {
		got, err := g.Neighborhood(t.Context(), c.id, c.radius)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("neighborhood of %s within %v: %v, want %v", c.id, c.radius, got, c.want)
		}
	}
	if got, err := g.Neighborhood(t.Context(), "m", math.NaN()); !errors.Is(err, ErrNonFinite) || got != nil {
		t.Errorf("radius NaN: %v, error %v", got, err)
	}
}

func TestNewGraphFaults(t *testing.T) {
	good := Edge{From: "a", To: "b", Weight: 1}
	for _, c := range []struct {
		name  string
		edges []Edge
		opts  *GraphOptions
		is    error
		want  string
	}{
		{"no from", []Edge{good, {To: "b", Weight: 1}}, nil, ErrEmptyChunkID, `graph: edge 1 ("" to "b"): empty chunk ID`},
		{"no to", []Edge{{From: "a", Weight: 1}}, nil, ErrEmptyChunkID, `graph: edge 0 ("a" to ""): empty chunk ID`},
		{"zero weight", []Edge{good, good, {From: "c", To: "d"}}, nil, ErrDistance, `graph: edge 2 ("c" to "d"): weight 0: distance out of range: weights are positive`},
		{"negative weight", []Edge{{From: "c", To: "d", Weight: -2}}, nil, ErrDistance, `graph: edge 0 ("c" to "d"): weight -2: distance out of range: weights are positive`},
		{"bad loop", []Edge{{From: "c", To: "c", Weight: -2}}, nil, ErrDistance, `graph: edge 0 ("c" to "c"): weight -2: distance out of range: weights are positive`},
		{"NaN", []Edge{{From: "c", To: "d", Weight: math.NaN()}}, nil, ErrNonFinite, `graph: edge 0 ("c" to "d"): weight NaN: value is not finite`},
		{"infinite", []Edge{{From: "c", To: "d", Weight: math.Inf(1)}}, nil, ErrNonFinite, `graph: edge 0 ("c" to "d"): weight +Inf: value is not finite`},
		{"node without ID", []Edge{good}, &GraphOptions{Nodes: []string{"x", ""}}, ErrEmptyChunkID, "graph: node 1: empty chunk ID"},
		{"negative maximum", []Edge{good}, &GraphOptions{MaximumDistance: -1}, ErrInvalidConfig, "graph: maximum distance -1: invalid configuration: give a positive finite number"},
		{"infinite maximum", nil, &GraphOptions{MaximumDistance: math.Inf(1)}, ErrInvalidConfig, "graph: maximum distance +Inf: invalid configuration: give a positive finite number"},
		{"NaN maximum", nil, &GraphOptions{MaximumDistance: math.NaN()}, ErrInvalidConfig, "graph: maximum distance NaN: invalid configuration: give a positive finite number"},
	} {
		g, err := NewGraph(c.edges, c.opts)
		if g != nil || !errors.Is(err, c.is) || err.Error() != c.want {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
}

func TestEmptyGraph(t *testing.T) {
	g := mustGraph(t, nil, nil)
	var d [4]float64
	if err := g.Distances(t.Context(), []string{"a", "b"}, []string{"a", "c"}, d[:]); err != nil {
		t.Fatal(err)
	}
	if want := [4]float64{0, 10, 10, 10}; d != want {
		t.Errorf("distances %v, want %v", d, want)
	}
	for e, err := range g.Edges(t.Context()) {
		t.Errorf("edge %v, error %v in a graph of none", e, err)
	}
}

// expiringContext is done after a number of looks at it.
type expiringContext struct {
	context.Context
	looks *atomic.Int64
}

func expiring(parent context.Context, looks int64) expiringContext {
	c := expiringContext{parent, new(atomic.Int64)}
	c.looks.Store(looks)
	return c
}

func (c expiringContext) Err() error {
	if c.looks.Add(-1) < 0 {
		return context.Canceled
	}
	return nil
}

func TestSearchIsCancelledInTheMiddle(t *testing.T) {
	var edges []Edge
	for i := range 5 * checkEvery {
		edges = append(edges, Edge{From: "hub", To: fmt.Sprint("rim", i), Weight: 1})
	}
	edges = append(edges, Edge{From: "rim0", To: "end", Weight: 1}) // settled last
	g := mustGraph(t, edges, nil)
	ask := func(ctx context.Context) ([]float64, error) {
		d := make([]float64, 4)
		err := g.Distances(ctx, []string{"rim1", "rim2"}, []string{"elsewhere", "end"}, d)
		return d, err
	}
	want, err := ask(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(want, []float64{10, 3, 10, 3}) {
		t.Fatalf("distances %v, want 10 to an unknown chunk and 3 over the hub", want)
	}
	for looks := range int64(10) {
		if _, err := ask(expiring(t.Context(), looks)); !errors.Is(err, context.Canceled) {
			t.Errorf("distances with a context done after %d looks: %v", looks, err)
		}
		if looks < 5 {
			near, err := g.Neighborhood(expiring(t.Context(), looks), "hub", 5)
			if !errors.Is(err, context.Canceled) || near != nil {
				t.Errorf("neighborhood with a context done after %d looks: %d chunks, error %v", looks, len(near), err)
			}
		}
		if got, err := ask(t.Context()); err != nil || !slices.Equal(got, want) {
			t.Fatalf("after a cancelled search: %v, error %v, want %v", got, err, want)
		}
	}
}

func TestGraphRefusesDoneContext(t *testing.T) {
	g := mustGraph(t, []Edge{{From: "a", To: "b", Weight: 1}}, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := g.Distances(ctx, []string{"a"}, []string{"b"}, make([]float64, 1)); !errors.Is(err, context.Canceled) {
		t.Errorf("distances: %v", err)
	}
	for _, id := range []string{"a", "unknown"} {
		if near, err := g.Neighborhood(ctx, id, 1); !errors.Is(err, context.Canceled) {
			t.Errorf("neighborhood of %s: %v, error %v", id, near, err)
		}
	}
	for _, err := range g.Edges(ctx) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("edges: %v", err)
		}
	}
}

func TestGraphConcurrently(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 25))
	g := mustGraph(t, randomEdges(r, 60, 200), &GraphOptions{MaximumDistance: 4})
	ids := g.Nodes()
	want := make([]float64, len(ids)*len(ids))
	if err := g.Distances(t.Context(), ids, ids, want); err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for worker := range 8 {
		group.Go(func() {
			r := rand.New(rand.NewPCG(uint64(worker), 26))
			for range 100 {
				i, j := r.IntN(len(ids)), r.IntN(len(ids))
				var got [2]float64
				if err := g.Distances(t.Context(), ids[i:i+1], []string{ids[j], ids[i]}, got[:]); err != nil {
					t.Error(err)
				}
				if got[0] != want[i*len(ids)+j] || got[1] != 0 {
					t.Errorf("from %s to %s: %v, want %v", ids[i], ids[j], got[0], want[i*len(ids)+j])
				}
				near, err := g.Neighborhood(t.Context(), ids[i], 2)
				if err != nil {
					t.Error(err)
				}
				for _, n := range near {
					if k, _ := slices.BinarySearch(ids, n.ChunkID); n.Distance != want[i*len(ids)+k] {
						t.Errorf("%s near %s: %v, want %v", n.ChunkID, ids[i], n.Distance, want[i*len(ids)+k])
					}
				}
			}
		})
	}
	group.Wait()
}

func TestDistancesAllocateNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 27))
	g := mustGraph(t, randomEdges(r, 500, 2000), &GraphOptions{MaximumDistance: 4})
	from, to := g.Nodes()[:50], g.Nodes()[100:150]
	d := make([]float64, len(from)*len(to))
	allocations := testing.AllocsPerRun(50, func() {
		if err := g.Distances(t.Context(), from, to, d); err != nil {
			t.Fatal(err)
		}
	})
	// None, unless the pool lost the scratch, as the race detector makes it do.
	if allocations > 10 && !raceDetector {
		t.Errorf("%v allocations for 50 searches", allocations)
	}
}
