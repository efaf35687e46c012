package rings

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/mapmatched/mmplug/mapmatched"
)

// Source is a store that keeps with every chunk the edges that begin there.
type Source interface {
	// Edges returns, for each of chunkIDs in their order, the edges that begin
	// at it (From is the chunk), and nil for a chunk that the store does not
	// know. The IDs are distinct. One call is one round trip, or as few as the
	// limits of the store allow. It returns promptly when ctx is done and is
	// safe for concurrent use. The caller keeps the slices.
	Edges(ctx context.Context, chunkIDs []string) ([][]mapmatched.Edge, error)
}

// Graph is a mapmatched.CorpusGraph over a source. It is safe for concurrent
// use. Calls that need the same chunk at the same time fetch it once.
//
// Every error is a *mapmatched.Error. One in the middle of a call leaves the
// graph as it was, and the next call may succeed.
type Graph struct {
	source   Source
	adapter  string
	maximum  float64
	directed bool
	types    map[mapmatched.EdgeType]bool // nil for all
	fetcher
}

// New makes a graph over a source. The error is of kind invalid and lists
// every option that is out of range.
func New(source Source, opts *Options) (*Graph, error) {
	if opts == nil {
		opts = &Options{}
	}
	g := &Graph{source: source, maximum: opts.MaximumDistance, directed: opts.Directed, adapter: cmp.Or(opts.Adapter, "rings")}
	if err := opts.Validate(); err != nil {
		return nil, &mapmatched.Error{Op: "open", Adapter: g.adapter, Kind: mapmatched.KindInvalid, Err: err}
	}
	if g.maximum == 0 {
		g.maximum = mapmatched.DefaultMaximumDistance
	}
	if len(opts.Types) > 0 {
		g.types = map[mapmatched.EdgeType]bool{}
		for _, t := range opts.Types {
			g.types[t] = true
		}
	}
	g.init(opts.CacheBytes)
	return g, nil
}

// MaximumDistance implements mapmatched.CorpusGraph.
func (g *Graph) MaximumDistance() float64 { return g.maximum }

// Directed reports whether edges are passable one way only.
func (g *Graph) Directed() bool { return g.directed }

// Distances implements mapmatched.CorpusGraph. Each distance is summed along
// the path from the source on, so the same question has the same bits whatever
// was asked or fetched before.
func (g *Graph) Distances(ctx context.Context, from, to []string, dst []float64) error {
	const op = "distances"
	if len(dst) != len(from)*len(to) {
		return g.fail(op, fmt.Errorf("%d distances asked for (%d from × %d to), but dst holds %d", len(from)*len(to), len(from), len(to), len(dst)))
	}
	if err := g.ready(ctx); err != nil {
		return g.fail(op, err)
	}
	if len(dst) == 0 {
		return nil
	}
	s := newSearch(g)
	p := newPairs(s, from, to)
	for {
		if err := s.relax(ctx, p.limits()); err != nil {
			return g.fail(op, err)
		}
		need := p.need()
		if len(need) == 0 {
			p.write(dst)
			return nil
		}
		if err := s.expand(ctx, need); err != nil {
			return g.fail(op, err)
		}
	}
}

// Neighborhood implements mapmatched.CorpusGraph. A negative radius reaches
// nothing and NaN is an error (ErrNonFinite).
func (g *Graph) Neighborhood(ctx context.Context, chunkID string, radius float64) ([]mapmatched.Neighbor, error) {
	const op = "neighborhood"
	if math.IsNaN(radius) {
		return nil, g.fail(op, fmt.Errorf("of %q: radius %v: %w", chunkID, radius, mapmatched.ErrNonFinite))
	}
	if err := g.ready(ctx); err != nil {
		return nil, g.fail(op, err)
	}
	radius = min(radius, g.maximum)
	if radius <= 0 { // every edge has a length
		return nil, nil
	}
	s := newSearch(g)
	s.start(s.node(chunkID))
	limits := []float64{math.Nextafter(radius, math.Inf(1))} // the radius itself counts
	for {
		if err := s.relax(ctx, limits); err != nil {
			return nil, g.fail(op, err)
		}
		need := s.frontierWithin(0, radius)
		if len(need) == 0 {
			break
		}
		if err := s.expand(ctx, need); err != nil {
			return nil, g.fail(op, err)
		}
	}
	var found []mapmatched.Neighbor
	for v, d := range s.dist[0] {
		if v != 0 && d <= radius {
			found = append(found, mapmatched.Neighbor{ChunkID: s.ids[v], Distance: d})
		}
	}
	slices.SortFunc(found, func(a, b mapmatched.Neighbor) int {
		return cmp.Or(cmp.Compare(a.Distance, b.Distance), strings.Compare(a.ChunkID, b.ChunkID))
	})
	return found, nil
}

// Listed is what an EdgeLister of the store lists for a chunk, given the edges
// kept with it: checked, without those of other types, of parallel edges the
// shortest, by To; of an undirected graph only those with From < To.
func (g *Graph) Listed(chunkID string, edges []mapmatched.Edge) ([]mapmatched.Edge, error) {
	kept, err := g.checked(chunkID, edges)
	if err != nil {
		return nil, g.fail("edges", err)
	}
	if !g.directed {
		kept = slices.DeleteFunc(kept, func(e mapmatched.Edge) bool { return e.To < e.From })
	}
	return kept, nil
}

// checked looks at the edges of a chunk, whoever filtered them before: the
// shortest of parallel ones of the types asked for (of equally short ones, the
// type that sorts first), by To, without those from the chunk to itself.
func (g *Graph) checked(chunkID string, edges []mapmatched.Edge) ([]mapmatched.Edge, error) {
	kept := make([]mapmatched.Edge, 0, len(edges))
	for _, e := range edges {
		if g.types != nil && !g.types[e.Type] {
			continue
		}
		switch {
		case e.From != chunkID:
			return nil, fmt.Errorf("%w: edge from %q to %q came with chunk %q", errCorrupt, e.From, e.To, chunkID)
		case e.To == "":
			return nil, fmt.Errorf("%w: edge from %q: %w", errCorrupt, e.From, mapmatched.ErrEmptyChunkID)
		case math.IsNaN(e.Weight) || math.IsInf(e.Weight, 0):
			return nil, fmt.Errorf("%w: edge from %q to %q: weight %v: %w: write the chunk again", errCorrupt, e.From, e.To, e.Weight, mapmatched.ErrNonFinite)
		case e.Weight < g.maximum*leastShare:
			return nil, fmt.Errorf("%w: edge from %q to %q: weight %v: %w: write the chunk again with a weight of at least %.3g, the maximum distance / 2^52", errCorrupt, e.From, e.To, e.Weight, mapmatched.ErrDistance, g.maximum*leastShare)
		}
		if e.To != chunkID {
			kept = append(kept, e)
		}
	}
	slices.SortFunc(kept, func(a, b mapmatched.Edge) int {
		return cmp.Or(strings.Compare(a.To, b.To), cmp.Compare(a.Weight, b.Weight), cmp.Compare(a.Type, b.Type))
	})
	return slices.CompactFunc(kept, func(a, b mapmatched.Edge) bool { return a.To == b.To }), nil
}

// leastShare of the maximum distance is the least weight of an edge: any less
// might be lost in a sum, and a ring at the very radius could have more chunks
// at the same distance behind it.
const leastShare = 1.0 / (1 << 52)

// errCorrupt: the store holds an edge that cannot be right.
var errCorrupt = errors.New("bad edge in the store")

// fail makes the error of an operation, its kind found from its cause. An
// error that has a kind keeps it.
func (g *Graph) fail(op string, err error) error {
	if mapmatched.KindOf(err) != "" {
		return err
	}
	kind := mapmatched.KindInvalid
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		kind = mapmatched.KindDeadline
	case errors.Is(err, errCorrupt):
		kind = mapmatched.KindCorrupt
	case errors.Is(err, mapmatched.ErrClosed), errors.Is(err, errSource):
		kind = mapmatched.KindUnavailable
	}
	return &mapmatched.Error{Op: op, Adapter: g.adapter, Kind: kind, Err: err}
}
