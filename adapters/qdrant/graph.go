package qdrant

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"

	pb "github.com/qdrant/go-client/qdrant"

	"github.com/mapmatched/mmplug/internal/rings"
	"github.com/mapmatched/mmplug/mapmatched"
)

// The capabilities of a graph.
var (
	_ mapmatched.CorpusGraph      = (*Graph)(nil)
	_ mapmatched.EdgeLister       = (*Graph)(nil)
	_ mapmatched.ChunkFetcher     = (*Graph)(nil)
	_ mapmatched.VectorFetcher    = (*Graph)(nil)
	_ mapmatched.RecordLister     = (*Graph)(nil)
	_ mapmatched.NeighborLister   = (*Graph)(nil)
	_ mapmatched.HealthChecker    = (*Graph)(nil)
	_ mapmatched.CorpusIdentifier = (*Graph)(nil)
	_ mapmatched.RecordLister     = (*Provider)(nil)
	_ mapmatched.NeighborLister   = (*Provider)(nil)
)

// GraphOptions are the settings of a [Graph]. The zero value, and nil, are the
// defaults.
type GraphOptions struct {
	// MaximumDistance clamps every distance; positive and finite. 0 means what
	// the identity of the collection says, and mapmatched.DefaultMaximumDistance
	// when it says nothing. Another one than the identity's is refused.
	MaximumDistance float64
	// Directed makes an edge passable from the chunk that keeps it only.
	Directed bool
	// Types are the types of the edges to use; empty for all.
	Types []mapmatched.EdgeType
	// CacheBytes bounds the memory for edges already fetched. 0 means 64 MiB;
	// negative keeps none.
	CacheBytes int64
	// Vector is the name of the dense vector that Records, Vectors and
	// NearestNeighbors are about. "" is the unnamed one, or the only one.
	Vector string
	// Keys say where in the payload the parts of a chunk are.
	Keys PayloadKeys
}

// Validate reports every value that is out of range.
func (o *GraphOptions) Validate() error {
	if o == nil {
		return nil
	}
	errs := []error{o.Keys.Validate()}
	if !(o.MaximumDistance >= 0) || math.IsInf(o.MaximumDistance, 0) {
		errs = append(errs, invalidConfig("MaximumDistance is %v, want a positive finite number, or 0 for that of the collection", o.MaximumDistance))
	}
	if o.Keys.Edges == NoKey {
		errs = append(errs, invalidConfig("PayloadKeys.Edges is %q, but a graph is made of what is there: give its key", NoKey))
	}
	return errors.Join(errs...)
}

// Graph is the corpus graph whose edges are in the payload of a collection,
// each chunk with those that begin at it: a list of objects with "to",
// "weight" and "type". An undirected edge is kept with both of its chunks.
//
// It is searched ring by ring, with one call of the server a ring: for
// distances from both sides, so that n round trips know all paths of up to 2n
// edges. Edges once fetched are kept within a budget of memory; after the
// collection was written to, Forget drops them. It is safe for concurrent use.
type Graph struct {
	*store
	search *rings.Graph
}

// NewGraph makes a graph over a collection of the server. It reads what the
// collection is: its errors say when the server is away and when there is no
// such collection, and a maximum distance that is not the one the collection
// was written with is mapmatched.ErrStaleIndex.
//
// The client stays the caller's: closing the graph does not close it.
func NewGraph(ctx context.Context, c *Client, collection string, opts *GraphOptions) (*Graph, error) {
	const op = "open"
	if opts == nil {
		opts = &GraphOptions{}
	}
	if err := opts.Validate(); err != nil {
		return nil, typed(op, mapmatched.KindInvalid, err)
	}
	info, err := c.collection(ctx, op, collection)
	if err != nil {
		return nil, err
	}
	maximum, written := opts.MaximumDistance, info.identity.MaximumDistance
	switch {
	case written > 0 && maximum == 0:
		maximum = written
	case written > 0 && maximum != written:
		return nil, invalid(op, "%s: %w: its edges were made for maximum distance %v and %v is asked for: leave it out, or write the collection again", info.where, mapmatched.ErrStaleIndex, written, maximum)
	}
	vector := opts.Vector
	if vector == "" {
		vector = info.onlyDense()
	} else if _, err := info.vector(op, vector); err != nil {
		return nil, err
	}
	g := &Graph{store: &store{client: c, name: collection, keys: opts.Keys.withDefaults(), vectorName: vector}}
	g.info.Store(info)
	g.search, err = rings.New(edgeSource{g.store}, &rings.Options{
		MaximumDistance: maximum, Directed: opts.Directed, Types: opts.Types, CacheBytes: opts.CacheBytes, Adapter: adapterName,
	})
	return g, err
}

// onlyDense is the name of the one dense vector of a collection, "" when there
// is none or more than one.
func (i *collectionInfo) onlyDense() string {
	name, found := "", false
	for _, v := range i.vectors {
		if v.kind != kindDense {
			continue
		}
		if found {
			return ""
		}
		name, found = v.name, true
	}
	return name
}

// MaximumDistance implements mapmatched.CorpusGraph.
func (g *Graph) MaximumDistance() float64 { return g.search.MaximumDistance() }

// Directed reports whether edges are passable one way only.
func (g *Graph) Directed() bool { return g.search.Directed() }

// Distances implements mapmatched.CorpusGraph, with the bits of
// mapmatched.Graph.
func (g *Graph) Distances(ctx context.Context, from, to []string, dst []float64) error {
	return g.search.Distances(ctx, from, to, dst)
}

// Neighborhood implements mapmatched.CorpusGraph. A negative radius reaches
// nothing and NaN is an error (ErrNonFinite).
func (g *Graph) Neighborhood(ctx context.Context, chunkID string, radius float64) ([]mapmatched.Neighbor, error) {
	return g.search.Neighborhood(ctx, chunkID, radius)
}

// Forget drops the edges that are kept in memory, so that later calls see what
// was written to the collection since.
func (g *Graph) Forget() { g.search.Forget() }

// Edges implements mapmatched.EdgeLister: in the order of the server's point
// IDs and then by To, of parallel edges the shortest, an undirected edge once,
// with From < To. It streams the collection, and nothing follows an error.
func (g *Graph) Edges(ctx context.Context) iter.Seq2[mapmatched.Edge, error] {
	return func(yield func(mapmatched.Edge, error) bool) {
		const op = "edges"
		request := &pb.ScrollPoints{WithPayload: include(g.keys.ChunkID, g.keys.Edges)}
		for point, err := range g.scroll(ctx, op, request) {
			var edges []mapmatched.Edge
			if err == nil {
				edges, err = g.listed(op, point)
			}
			if err != nil {
				yield(mapmatched.Edge{}, err)
				return
			}
			for _, e := range edges {
				if !yield(e, nil) {
					return
				}
			}
		}
	}
}

// listed reads the edges of a point that a listing has.
func (g *Graph) listed(op string, point *pb.RetrievedPoint) ([]mapmatched.Edge, error) {
	id := chunkID(point.GetId(), point.GetPayload(), g.keys.ChunkID)
	edges, err := edgeList(id, point.GetPayload()[g.keys.Edges])
	if err != nil {
		return nil, typed(op, mapmatched.KindCorrupt, fmt.Errorf("collection %q on %s: %w: write the chunk again", g.name, g.client.address, err))
	}
	return g.search.Listed(id, edges)
}

// Close ends the use of the graph: running calls end, later ones fail with
// mapmatched.ErrClosed. A client that the graph opened itself is closed, one
// that it was given is not. Closing again does nothing.
func (g *Graph) Close() error {
	return errors.Join(g.search.Close(), g.close())
}
