package mapmatched

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"sync"
)

// DefaultMaximumDistance is where a graph clamps distances unless told
// otherwise.
const DefaultMaximumDistance = 10.0

// GraphOptions are the settings of NewGraph. The zero value is an undirected
// graph with the default maximum distance.
type GraphOptions struct {
	// Nodes are chunks to include even when no edge names them.
	Nodes []string
	// MaximumDistance clamps every distance; positive and finite. Zero means
	// DefaultMaximumDistance.
	MaximumDistance float64
	// Directed makes an edge passable from From to To only.
	Directed bool
}

// Graph is a CorpusGraph in memory: interned IDs, compressed adjacency, and a
// shortest-path search that stops at the maximum distance. It never changes
// after NewGraph and is safe for concurrent use.
type Graph struct {
	ids      []string         // ascending, so that node order is ID order
	index    map[string]int32 // node of an ID
	arcs     Adjacency
	back     Adjacency  // arcs turned round
	types    []EdgeType // by Arc.Type, ascending
	edges    int
	directed bool
	maximum  float64
	scratch  sync.Pool // of *Search
}

// NewGraph builds a graph from edges. Both ends of an edge become nodes. Of
// parallel edges the shortest is kept (of equally short ones, the type that
// sorts first), and an edge from a chunk to itself has no effect. Errors name
// the edge: an empty ID (ErrEmptyChunkID) or a weight that is not positive and
// finite (ErrNonFinite or ErrDistance).
func NewGraph(edges []Edge, opts *GraphOptions) (*Graph, error) {
	if opts == nil {
		opts = &GraphOptions{}
	}
	g := &Graph{directed: opts.Directed, maximum: opts.MaximumDistance}
	if g.maximum == 0 {
		g.maximum = DefaultMaximumDistance
	}
	if !(g.maximum > 0) || math.IsInf(g.maximum, 0) {
		return nil, fmt.Errorf("graph: maximum distance %v: %w: give a positive finite number", opts.MaximumDistance, ErrInvalidConfig)
	}
	if err := g.intern(edges, opts.Nodes); err != nil {
		return nil, err
	}
	g.connect(edges)
	g.back = g.arcs
	if g.directed {
		g.back = g.arcs.reversed()
	}
	g.scratch.New = func() any { return newSearch(len(g.ids)) }
	return g, nil
}

// intern checks the edges and numbers the nodes in ascending order of ID.
func (g *Graph) intern(edges []Edge, nodes []string) error {
	g.index = make(map[string]int32, len(nodes))
	add := func(id string) {
		if _, known := g.index[id]; !known {
			g.index[id] = 0
			g.ids = append(g.ids, id)
		}
	}
	kinds := map[EdgeType]struct{}{}
	for i, id := range nodes {
		if id == "" {
			return fmt.Errorf("graph: node %d: %w", i, ErrEmptyChunkID)
		}
		add(id)
	}
	for i, e := range edges {
		switch {
		case e.From == "" || e.To == "":
			return fmt.Errorf("graph: edge %d (%q to %q): %w", i, e.From, e.To, ErrEmptyChunkID)
		case math.IsNaN(e.Weight) || math.IsInf(e.Weight, 0):
			return fmt.Errorf("graph: edge %d (%q to %q): weight %v: %w", i, e.From, e.To, e.Weight, ErrNonFinite)
		case e.Weight <= 0:
			return fmt.Errorf("graph: edge %d (%q to %q): weight %v: %w: weights are positive", i, e.From, e.To, e.Weight, ErrDistance)
		}
		add(e.From)
		add(e.To)
		kinds[e.Type] = struct{}{}
	}
	if len(g.ids) > math.MaxInt32-1 || 2*len(edges) > math.MaxInt32-1 {
		return fmt.Errorf("graph: %d nodes and %d edges are more than a graph in memory holds", len(g.ids), len(edges))
	}
	slices.Sort(g.ids)
	for i, id := range g.ids {
		g.index[id] = int32(i)
	}
	for kind := range kinds {
		g.types = append(g.types, kind)
	}
	slices.Sort(g.types)
	return nil
}

// connect fills the adjacency.
func (g *Graph) connect(edges []Edge) {
	type link struct {
		from int32
		Arc
	}
	links := make([]link, 0, len(edges))
	for _, e := range edges {
		kind, _ := slices.BinarySearch(g.types, e.Type)
		l := link{g.index[e.From], Arc{e.Weight, g.index[e.To], int32(kind)}}
		if l.from == l.To {
			continue
		}
		if !g.directed && l.from > l.To {
			l.from, l.To = l.To, l.from
		}
		links = append(links, l)
	}
	slices.SortFunc(links, func(a, b link) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.To, b.To),
			cmp.Compare(a.Weight, b.Weight), cmp.Compare(a.Type, b.Type))
	})
	links = slices.CompactFunc(links, func(a, b link) bool { return a.from == b.from && a.To == b.To })
	g.edges = len(links)
	if !g.directed {
		for _, l := range links[:g.edges] {
			links = append(links, link{l.To, Arc{l.Weight, l.from, l.Type}})
		}
	}
	slices.SortFunc(links, func(a, b link) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.Weight, b.Weight), cmp.Compare(a.To, b.To))
	})
	first, arcs := make([]int32, len(g.ids)+1), make([]Arc, len(links))
	for i, l := range links {
		arcs[i] = l.Arc
		first[l.from+1] = int32(i + 1)
	}
	for v := 1; v < len(first); v++ {
		first[v] = max(first[v], first[v-1])
	}
	g.arcs = Adjacency{first, arcs}
}

// MaximumDistance implements CorpusGraph.
func (g *Graph) MaximumDistance() float64 { return g.maximum }

// Directed reports whether edges are passable one way only.
func (g *Graph) Directed() bool { return g.directed }

// NumNodes is the number of chunks in the graph.
func (g *Graph) NumNodes() int { return len(g.ids) }

// NumEdges is the number of edges, an undirected edge counting once.
func (g *Graph) NumEdges() int { return g.edges }

// Nodes returns the chunk IDs in ascending order.
func (g *Graph) Nodes() []string { return slices.Clone(g.ids) }

// EdgeTypes returns the types of edges by their number in an Arc, ascending.
func (g *Graph) EdgeTypes() []EdgeType { return slices.Clone(g.types) }

// Adjacency returns the arcs of the graph, which are not to be changed. Node v
// is the chunk Nodes()[v].
func (g *Graph) Adjacency() *Adjacency { return &g.arcs }

// Edges implements EdgeLister: ascending by From and To, an undirected edge
// once with From < To.
func (g *Graph) Edges(ctx context.Context) iter.Seq2[Edge, error] {
	return func(yield func(Edge, error) bool) {
		var arcs []Arc
		for v := range g.ids {
			if err := ctx.Err(); err != nil {
				yield(Edge{}, err)
				return
			}
			arcs = append(arcs[:0], g.arcs.Arcs[g.arcs.First[v]:g.arcs.First[v+1]]...)
			slices.SortFunc(arcs, func(a, b Arc) int { return cmp.Compare(a.To, b.To) })
			for _, a := range arcs {
				if !g.directed && int(a.To) < v {
					continue
				}
				if !yield(Edge{g.ids[v], g.ids[a.To], a.Weight, g.types[a.Type]}, nil) {
					return
				}
			}
		}
	}
}

// Distances implements CorpusGraph. Each distance is summed along the path
// from the source on, so the same question has the same bits whatever was
// asked before.
func (g *Graph) Distances(ctx context.Context, from, to []string, dst []float64) error {
	if len(dst) != len(from)*len(to) {
		return fmt.Errorf("graph: %d distances asked for (%d from × %d to), but dst holds %d", len(from)*len(to), len(from), len(to), len(dst))
	}
	s := g.scratch.Get().(*Search)
	defer g.scratch.Put(s)
	s.targets = s.targets[:0]
	for _, id := range to {
		node, known := g.index[id]
		if !known {
			node = unknownNode
		}
		s.targets = append(s.targets, node)
	}
	if err := s.approach(ctx, &g.back, g.maximum); err != nil {
		return err
	}
	s.prune = true
	defer func() { s.prune = false }()
	for i, id := range from {
		if err := ctx.Err(); err != nil {
			return err
		}
		row := dst[i*len(to) : (i+1)*len(to)]
		node, known := g.index[id]
		if !known {
			for j, other := range to {
				row[j] = g.maximum
				if other == id {
					row[j] = 0
				}
			}
			continue
		}
		if err := s.run(ctx, &g.arcs, node, g.maximum, true); err != nil {
			return err
		}
		for j, target := range s.targets {
			row[j] = g.maximum
			if target != unknownNode && s.seen[target] == s.epoch {
				row[j] = s.dist[target]
			}
		}
	}
	return nil
}

// Neighborhood implements CorpusGraph. A negative radius reaches nothing and
// NaN is an error (ErrNonFinite).
func (g *Graph) Neighborhood(ctx context.Context, chunkID string, radius float64) ([]Neighbor, error) {
	if math.IsNaN(radius) {
		return nil, fmt.Errorf("graph: neighborhood of %q: radius %v: %w", chunkID, radius, ErrNonFinite)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	source, known := g.index[chunkID]
	if !known || radius < 0 {
		return nil, nil
	}
	s := g.scratch.Get().(*Search)
	defer g.scratch.Put(s)
	if err := s.run(ctx, &g.arcs, source, min(radius, g.maximum), false); err != nil {
		return nil, err
	}
	found := make([]Neighbor, 0, len(s.settled))
	for _, node := range s.settled {
		if node != source {
			found = append(found, Neighbor{g.ids[node], s.dist[node]})
		}
	}
	slices.SortFunc(found, func(a, b Neighbor) int {
		return cmp.Or(cmp.Compare(a.Distance, b.Distance), strings.Compare(a.ChunkID, b.ChunkID))
	})
	return found, nil
}

// ShortestPath returns the edges of a shortest path between two chunks in the
// order they are passed, From to To. Their weights add up, from the first on,
// to the distance. It is empty when the chunks are the same, out of reach or
// unknown.
func (g *Graph) ShortestPath(ctx context.Context, from, to string) ([]Edge, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	source, known := g.index[from]
	target, alsoKnown := g.index[to]
	if !known || !alsoKnown {
		return nil, nil
	}
	s := g.scratch.Get().(*Search)
	defer g.scratch.Put(s)
	if err := s.Reach(ctx, &g.arcs, source, g.maximum, []int32{target}); err != nil {
		return nil, err
	}
	var edges []Edge
	at := source
	for _, i := range s.Path(&g.arcs, target) {
		a := g.arcs.Arcs[i]
		edges = append(edges, Edge{g.ids[at], g.ids[a.To], a.Weight, g.types[a.Type]})
		at = a.To
	}
	return edges, nil
}
