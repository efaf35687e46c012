package adaptertest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/mapmatched/mmplug/mapmatched"
)

var graphChecks = []graphCheck{
	{"maximum distance", checkMaximumDistance},
	{"distances", checkDistances},
	{"sum runs along the path", checkSummation},
	{"unknown chunks", checkUnknownChunks},
	{"chunks asked twice", checkAskedTwice},
	{"nothing asked", checkNothingAsked},
	{"wrong length of dst", checkWrongLength},
	{"same bits whatever was asked before", checkSameBits},
	{"question is left alone", checkQuestionUntouched},
	{"neighborhood", checkNeighborhood},
	{"neighborhood radius", checkRadius},
	{"neighborhood is not shared", checkNeighborhoodNotShared},
	{"concurrent use", checkConcurrentDistances},
	{"context done before", checkGraphDone},
	{"context done in the middle", checkGraphMiddle},
	{"context done while the store is silent", checkGraphSilent},
	{"close", checkGraphClose},
	{"close while busy", checkGraphCloseBusy},
	{"health", func(s graphSuite, g mapmatched.CorpusGraph) error { return checkHealth(s.ctx, g) }},
	{"edges", checkEdges},
	{"edges in a fixed order", checkEdgeOrder},
}

// each runs f on a store for every graph that the harness can make.
func (s graphSuite) each(f func(spec GraphSpec, g mapmatched.CorpusGraph) error) error {
	for _, spec := range graphSpecs() {
		if spec.Directed && s.UndirectedOnly {
			continue
		}
		if err := s.with(spec, f); err != nil {
			return fmt.Errorf("graph %q: %w", spec.Name, err)
		}
	}
	return nil
}

// with runs f on a store of its own. The store sees copies of the lists.
func (s graphSuite) with(spec GraphSpec, f func(spec GraphSpec, g mapmatched.CorpusGraph) error) error {
	given := spec
	given.Nodes, given.Edges = slices.Clone(spec.Nodes), slices.Clone(spec.Edges)
	g, err := s.New(given)
	if err != nil {
		return fmt.Errorf("the harness made no store: %w", err)
	}
	if closer, ok := g.(io.Closer); ok {
		defer func() { _ = closer.Close() }() // closing is checked elsewhere
	}
	return f(spec, g)
}

// ask fills dst with NaN first, so that a cell that is not written shows.
func (s graphSuite) ask(ctx context.Context, g mapmatched.CorpusGraph, from, to []string) ([]float64, error) {
	dst := make([]float64, len(from)*len(to))
	for i := range dst {
		dst[i] = math.NaN()
	}
	if err := g.Distances(ctx, from, to, dst); err != nil {
		return nil, fmt.Errorf("distances from %q to %q: %w", from, to, err)
	}
	return dst, nil
}

// compare asks for distances and compares them with the reference.
func (s graphSuite) compare(ctx context.Context, spec GraphSpec, g mapmatched.CorpusGraph, from, to []string) error {
	got, err := s.ask(ctx, g, from, to)
	if err != nil {
		return err
	}
	for i, want := range spec.distances(from, to) {
		if !s.near(got[i], want) || got[i] > spec.MaximumDistance {
			return fmt.Errorf("distance from %q to %q: %v, want %v", from[i/len(to)], to[i%len(to)], got[i], want)
		}
	}
	return nil
}

// near compares within the tolerance; NaN is near nothing.
func (s graphSuite) near(got, want float64) bool {
	return got == want || math.Abs(got-want) <= s.Tolerance
}

func checkMaximumDistance(s graphSuite, _ mapmatched.CorpusGraph) error {
	return s.each(func(spec GraphSpec, g mapmatched.CorpusGraph) error {
		if got := g.MaximumDistance(); got != spec.MaximumDistance {
			return fmt.Errorf("maximum distance %v, want %v", got, spec.MaximumDistance)
		}
		return nil
	})
}

func checkDistances(s graphSuite, _ mapmatched.CorpusGraph) error {
	return s.each(func(spec GraphSpec, g mapmatched.CorpusGraph) error {
		if err := s.compare(s.ctx, spec, g, spec.Nodes, spec.Nodes); err != nil {
			return err
		}
		half := len(spec.Nodes) / 2 // not square, so that rows and columns cannot be mistaken
		return s.compare(s.ctx, spec, g, spec.Nodes[half:], spec.Nodes)
	})
}

func checkSummation(s graphSuite, _ mapmatched.CorpusGraph) error {
	if s.Tolerance > 0 {
		return skip("the harness allows a tolerance")
	}
	return s.with(decimalSpec(), func(spec GraphSpec, g mapmatched.CorpusGraph) error {
		return s.compare(s.ctx, spec, g, spec.Nodes, spec.Nodes)
	})
}

func checkUnknownChunks(s graphSuite, g mapmatched.CorpusGraph) error {
	ids := []string{unknownChunk, s.spec.Nodes[0], "another unknown chunk"}
	if err := s.compare(s.ctx, s.spec, g, ids, ids); err != nil {
		return err
	}
	got, err := g.Neighborhood(s.ctx, unknownChunk, s.spec.MaximumDistance)
	if err != nil {
		return fmt.Errorf("neighborhood of an unknown chunk: %w", err)
	}
	if len(got) > 0 {
		return fmt.Errorf("neighborhood of an unknown chunk: %v, want none", got)
	}
	return nil
}

func checkAskedTwice(s graphSuite, g mapmatched.CorpusGraph) error {
	n := s.spec.Nodes
	return s.compare(s.ctx, s.spec, g, []string{n[3], n[1], n[3], n[3]}, []string{n[1], n[2], n[1], n[3], n[2]})
}

func checkNothingAsked(s graphSuite, g mapmatched.CorpusGraph) error {
	for _, ids := range [][2][]string{{nil, nil}, {s.spec.Nodes[:2], nil}, {nil, s.spec.Nodes[:2]}, {{}, {}}} {
		if err := g.Distances(s.ctx, ids[0], ids[1], nil); err != nil {
			return fmt.Errorf("distances from %q to %q: %w", ids[0], ids[1], err)
		}
	}
	return nil
}

func checkWrongLength(s graphSuite, g mapmatched.CorpusGraph) error {
	from, to := s.spec.Nodes[:2], s.spec.Nodes[2:5]
	for _, length := range []int{0, 5, 7} {
		if err := g.Distances(s.ctx, from, to, make([]float64, length)); err == nil {
			return fmt.Errorf("dst of length %d for 2 × 3 distances: no error", length)
		}
	}
	if err := g.Distances(s.ctx, nil, to, make([]float64, 1)); err == nil {
		return errors.New("dst of length 1 for 0 × 3 distances: no error")
	}
	return nil
}

func checkSameBits(s graphSuite, g mapmatched.CorpusGraph) error {
	specs := []GraphSpec{s.spec, decimalSpec()}
	for _, spec := range specs {
		err := s.with(spec, func(spec GraphSpec, g mapmatched.CorpusGraph) error {
			want, err := s.ask(s.ctx, g, spec.Nodes, spec.Nodes)
			if err != nil {
				return err
			}
			return s.with(spec, func(spec GraphSpec, fresh mapmatched.CorpusGraph) error {
				return s.askInPieces(spec, fresh, want)
			})
		})
		if err != nil {
			return fmt.Errorf("graph %q: %w", spec.Name, err)
		}
	}
	return nil
}

// askInPieces asks a fresh store for one pair at a time, backwards, with other
// questions in between.
func (s graphSuite) askInPieces(spec GraphSpec, g mapmatched.CorpusGraph, want []float64) error {
	n := len(spec.Nodes)
	for k := n*n - 1; k >= 0; k-- {
		from, to := spec.Nodes[k/n], spec.Nodes[k%n]
		if k%7 == 0 {
			if _, err := g.Neighborhood(s.ctx, to, spec.MaximumDistance/2); err != nil {
				return err
			}
		}
		got, err := s.ask(s.ctx, g, []string{from}, []string{to})
		if err != nil {
			return err
		}
		if math.Float64bits(got[0]) != math.Float64bits(want[k]) {
			return fmt.Errorf("distance from %q to %q: %v alone, %v among others", from, to, got[0], want[k])
		}
	}
	return nil
}

func checkQuestionUntouched(s graphSuite, g mapmatched.CorpusGraph) error {
	from, to := slices.Clone(s.spec.Nodes), slices.Clone(s.spec.Nodes[5:])
	slices.Reverse(from)
	fromBefore, toBefore := slices.Clone(from), slices.Clone(to)
	if _, err := s.ask(s.ctx, g, from, to); err != nil {
		return err
	}
	if !slices.Equal(from, fromBefore) || !slices.Equal(to, toBefore) {
		return errors.New("the call changed the IDs it was given")
	}
	return nil
}

func checkNeighborhood(s graphSuite, _ mapmatched.CorpusGraph) error {
	return s.each(func(spec GraphSpec, g mapmatched.CorpusGraph) error {
		for _, id := range spec.Nodes {
			for _, radius := range []float64{0, 0.25, 0.5, 1, 1.5, 2, spec.MaximumDistance, spec.MaximumDistance + 1, math.Inf(1)} {
				got, err := g.Neighborhood(s.ctx, id, radius)
				if err != nil {
					return fmt.Errorf("neighborhood of %q within %v: %w", id, radius, err)
				}
				if err := s.sameNeighbors(got, spec.neighborhood(id, radius)); err != nil {
					return fmt.Errorf("neighborhood of %q within %v: %w", id, radius, err)
				}
			}
		}
		return nil
	})
}

// sameNeighbors compares chunks and distances and expects got in order.
func (s graphSuite) sameNeighbors(got, want []mapmatched.Neighbor) error {
	if len(got) != len(want) {
		return fmt.Errorf("%v, want %v", got, want)
	}
	if !slices.IsSortedFunc(got, compareNeighbors) {
		return fmt.Errorf("%v is not ordered by distance and then by chunk ID", got)
	}
	byID := func(a, b mapmatched.Neighbor) int {
		return compareNeighbors(mapmatched.Neighbor{ChunkID: a.ChunkID}, mapmatched.Neighbor{ChunkID: b.ChunkID})
	}
	g, w := slices.SortedFunc(slices.Values(got), byID), slices.SortedFunc(slices.Values(want), byID)
	for i := range g {
		if g[i].ChunkID != w[i].ChunkID || !s.near(g[i].Distance, w[i].Distance) {
			return fmt.Errorf("%v, want %v", got, want)
		}
	}
	return nil
}

func checkRadius(s graphSuite, g mapmatched.CorpusGraph) error {
	for _, radius := range []float64{-1, math.Inf(-1), math.NaN()} {
		for _, id := range []string{s.spec.Nodes[0], unknownChunk} {
			if got, _ := g.Neighborhood(s.ctx, id, radius); len(got) > 0 {
				return fmt.Errorf("neighborhood of %q within %v: %v, want none", id, radius, got)
			}
		}
	}
	return nil
}

func checkNeighborhoodNotShared(s graphSuite, g mapmatched.CorpusGraph) error {
	for _, id := range s.spec.Nodes {
		want := s.spec.neighborhood(id, s.spec.MaximumDistance)
		first, err := g.Neighborhood(s.ctx, id, s.spec.MaximumDistance)
		if err != nil {
			return err
		}
		for _, other := range s.spec.Nodes[:3] {
			if _, err := g.Neighborhood(s.ctx, other, s.spec.MaximumDistance); err != nil {
				return err
			}
		}
		if err := s.sameNeighbors(first, want); err != nil {
			return fmt.Errorf("neighborhood of %q after later calls: %w", id, err)
		}
		for i := range first {
			first[i] = mapmatched.Neighbor{ChunkID: "changed by the caller", Distance: -1}
		}
		second, err := g.Neighborhood(s.ctx, id, s.spec.MaximumDistance)
		if err != nil {
			return err
		}
		if err := s.sameNeighbors(second, want); err != nil {
			return fmt.Errorf("neighborhood of %q after a change to an earlier result: %w", id, err)
		}
	}
	return nil
}

func checkConcurrentDistances(s graphSuite, g mapmatched.CorpusGraph) error {
	return parallel(8, func(worker int) error {
		for n := range 8 {
			from := s.spec.Nodes[worker+n : worker+n+4]
			if err := s.compare(s.ctx, s.spec, g, from, s.spec.Nodes); err != nil {
				return fmt.Errorf("asked beside others: %w", err)
			}
			got, err := g.Neighborhood(s.ctx, from[0], 2)
			if err != nil {
				return err
			}
			if err := s.sameNeighbors(got, s.spec.neighborhood(from[0], 2)); err != nil {
				return fmt.Errorf("neighborhood of %q asked beside others: %w", from[0], err)
			}
		}
		return nil
	})
}

// operations are all calls of a graph, each compared with the right answer.
func (s graphSuite) operations(g mapmatched.CorpusGraph) []operation {
	from := s.spec.Nodes[:6]
	ops := []operation{
		{"Distances", func(ctx context.Context) error { return s.compare(ctx, s.spec, g, from, s.spec.Nodes) }},
		{"Neighborhood", func(ctx context.Context) error {
			got, err := g.Neighborhood(ctx, from[0], s.spec.MaximumDistance)
			if err != nil {
				return err
			}
			return s.sameNeighbors(got, s.spec.neighborhood(from[0], s.spec.MaximumDistance))
		}},
	}
	if lister, ok := g.(mapmatched.EdgeLister); ok {
		ops = append(ops, operation{"Edges", func(ctx context.Context) error {
			edges, err := listEdges(ctx, lister)
			if err != nil {
				return err
			}
			return s.sameEdges(s.spec, edges)
		}})
	}
	if checker, ok := g.(mapmatched.HealthChecker); ok {
		ops = append(ops, operation{"Health", checker.Health})
	}
	return ops
}

func checkGraphDone(s graphSuite, g mapmatched.CorpusGraph) error {
	return checkDone(s.ctx, s.Patience, s.operations(g))
}

func checkGraphMiddle(s graphSuite, g mapmatched.CorpusGraph) error {
	return checkMiddle(s.ctx, s.Patience, s.operations(g))
}

func checkGraphSilent(s graphSuite, _ mapmatched.CorpusGraph) error {
	if s.Stalled == nil {
		return skip("the harness makes no stalled graph")
	}
	g, err := s.Stalled(s.spec)
	if err != nil {
		return fmt.Errorf("the harness made no stalled store: %w", err)
	}
	if closer, ok := g.(io.Closer); ok {
		defer func() { _ = closer.Close() }() // closing is checked elsewhere
	}
	return checkSilent(s.ctx, s.Patience, s.operations(g)[:2])
}

func checkGraphClose(s graphSuite, g mapmatched.CorpusGraph) error {
	return checkClose(s.ctx, g, s.operations(g))
}

func checkGraphCloseBusy(s graphSuite, g mapmatched.CorpusGraph) error {
	return checkCloseWhileBusy(s.ctx, g, s.operations(g))
}

// listEdges collects edges up to the first error.
func listEdges(ctx context.Context, lister mapmatched.EdgeLister) ([]mapmatched.Edge, error) {
	var edges []mapmatched.Edge
	for e, err := range lister.Edges(ctx) {
		if err != nil {
			return nil, fmt.Errorf("edges: %w", err)
		}
		edges = append(edges, e)
	}
	return edges, nil
}

func checkEdges(s graphSuite, g mapmatched.CorpusGraph) error {
	if _, ok := g.(mapmatched.EdgeLister); !ok {
		return skip("the graph does not implement EdgeLister")
	}
	return s.each(func(spec GraphSpec, g mapmatched.CorpusGraph) error {
		edges, err := listEdges(s.ctx, g.(mapmatched.EdgeLister))
		if err != nil {
			return err
		}
		return s.sameEdges(spec, edges)
	})
}

// sameEdges expects every edge listed to be one of the graph, none twice, and
// the shortest edge of every two joined chunks to be there.
func (s graphSuite) sameEdges(spec GraphSpec, got []mapmatched.Edge) error {
	left := make([]mapmatched.Edge, 0, len(spec.Edges))
	shortest := map[[2]string]float64{}
	for _, e := range spec.Edges {
		e = spec.oriented(e)
		left = append(left, e)
		ends := [2]string{e.From, e.To}
		if old, seen := shortest[ends]; !seen || e.Weight < old {
			shortest[ends] = e.Weight
		}
	}
	found := map[[2]string]bool{}
	for _, e := range got {
		e = spec.oriented(e)
		i := slices.IndexFunc(left, func(l mapmatched.Edge) bool {
			return l.From == e.From && l.To == e.To && l.Type == e.Type && s.near(e.Weight, l.Weight)
		})
		if i < 0 {
			return fmt.Errorf("edges: %+v is not an edge of the graph or is listed twice", e)
		}
		left = slices.Delete(left, i, i+1)
		ends := [2]string{e.From, e.To}
		found[ends] = found[ends] || s.near(e.Weight, shortest[ends])
	}
	for _, e := range spec.Edges {
		e = spec.oriented(e)
		if e.From != e.To && !found[[2]string{e.From, e.To}] {
			return fmt.Errorf("edges: the shortest edge from %q to %q is missing", e.From, e.To)
		}
	}
	return nil
}

// oriented gives an undirected edge one way to be written.
func (spec GraphSpec) oriented(e mapmatched.Edge) mapmatched.Edge {
	if !spec.Directed && e.From > e.To {
		e.From, e.To = e.To, e.From
	}
	return e
}

func checkEdgeOrder(s graphSuite, g mapmatched.CorpusGraph) error {
	lister, ok := g.(mapmatched.EdgeLister)
	if !ok {
		return skip("the graph does not implement EdgeLister")
	}
	want, err := listEdges(s.ctx, lister)
	if err != nil {
		return err
	}
	expect := func(g mapmatched.CorpusGraph, whose string) error {
		got, err := listEdges(s.ctx, g.(mapmatched.EdgeLister))
		if err != nil {
			return err
		}
		if !slices.Equal(got, want) {
			return fmt.Errorf("%s lists its edges in another order", whose)
		}
		return nil
	}
	for range 3 {
		if err := expect(g, "the same graph"); err != nil {
			return err
		}
	}
	for _, err := range lister.Edges(s.ctx) { // to stop early must be possible
		if err != nil {
			return fmt.Errorf("edges: %w", err)
		}
		break
	}
	return s.with(s.spec, func(_ GraphSpec, other mapmatched.CorpusGraph) error {
		return expect(other, "a second store with the same edges")
	})
}
