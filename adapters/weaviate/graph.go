package weaviate

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/mapmatched/mmplug/internal/rings"
	"github.com/mapmatched/mmplug/mapmatched"
)

// GraphOptions are the settings of [OpenGraph]. The zero value, and nil, are an
// undirected graph of all edges of a class.
type GraphOptions struct {
	Connection
	Place

	// MaximumDistance clamps every distance; 0 is that of the corpus identity, or
	// 10 where the class has none.
	MaximumDistance float64
	// Directed makes edges passable in their direction only.
	Directed bool
	// Types are the types of edges to use, none for all. Of a class that this
	// package did not write, the types are the names of the reference
	// properties.
	Types []mapmatched.EdgeType
	// Weight is the length of a reference of a class that this package did not
	// write; 0 means 1. The edges of one that it wrote have their own.
	Weight float64
}

// Validate reports every value that is out of range.
func (o *GraphOptions) Validate() error {
	if o == nil {
		return nil
	}
	f := slices.Concat(o.Connection.faults(), o.Place.faults())
	if !finite(o.MaximumDistance) || o.MaximumDistance < 0 {
		f.add("MaximumDistance is %v, want a positive finite number, or 0", o.MaximumDistance)
	}
	if !finite(o.Weight) || o.Weight < 0 {
		f.add("Weight is %v, want a positive finite number, or 0 for 1", o.Weight)
	}
	return f.err()
}

var (
	_ mapmatched.CorpusGraph      = (*Graph)(nil)
	_ mapmatched.EdgeLister       = (*Graph)(nil)
	_ mapmatched.HealthChecker    = (*Graph)(nil)
	_ mapmatched.CorpusIdentifier = (*Graph)(nil)
	_ mapmatched.RecordLister     = (*Graph)(nil)
)

// Graph is the corpus graph of a class: the edges that this package wrote, or
// the references of another class to itself. It asks for the edges of many
// chunks at once, ring by ring. It is safe for concurrent use.
//
// An undirected graph of a class that this package wrote expects every edge in
// the records of both its ends. Of another class, references are also followed
// against their direction.
type Graph struct {
	*rings.Graph
	source *edgeSource
}

// OpenGraph opens the corpus graph of a class. The address is the host and port
// of the HTTP interface.
func OpenGraph(ctx context.Context, address, class string, opts *GraphOptions) (*Graph, error) {
	const op = "open"
	if opts == nil {
		opts = &GraphOptions{}
	}
	if err := opts.Validate(); err != nil {
		return nil, classify(op, err)
	}
	st, err := openStore(ctx, address, class, &opts.Connection, opts.Place)
	if err != nil {
		return nil, classify(op, err)
	}
	source := &edgeSource{store: *st, weight: opts.Weight, directed: opts.Directed}
	if source.weight == 0 {
		source.weight = 1
	}
	err = source.choose(opts.Types)
	maximum := opts.MaximumDistance
	if maximum == 0 {
		maximum = st.class.identity.MaximumDistance
	}
	var graph *rings.Graph
	if err == nil {
		graph, err = rings.New(source, &rings.Options{MaximumDistance: maximum, Directed: opts.Directed, Types: opts.Types, Adapter: adapterName})
	}
	if err != nil {
		return nil, classify(op, errors.Join(err, st.server.close()))
	}
	return &Graph{graph, source}, nil
}

// edgeSource implements rings.Source.
type edgeSource struct {
	store
	weight     float64
	directed   bool
	references []string // of a class that this package did not write
}

// choose finds the references to follow.
func (s *edgeSource) choose(types []mapmatched.EdgeType) error {
	if s.class.own {
		if s.id != propertyChunkID {
			return fmt.Errorf("the edges of class %s are between chunk IDs: leave IDProperty %q out", s.class.name, s.id)
		}
		return nil
	}
	known := s.class.references()
	if len(known) == 0 {
		return fmt.Errorf("class %s has no references to itself, so it is no graph; its properties are %s", s.class.name, s.class.propertyNames())
	}
	for _, t := range types {
		if !slices.Contains(known, string(t)) {
			return fmt.Errorf("class %s has no reference %q to itself; it has %q", s.class.name, t, known)
		}
		s.references = append(s.references, string(t))
	}
	if len(types) == 0 {
		s.references = known
	}
	return nil
}

// Edges implements rings.Source.
func (s *edgeSource) Edges(ctx context.Context, chunkIDs []string) ([][]mapmatched.Edge, error) {
	const op = "edges"
	byID := make(map[string][]mapmatched.Edge, len(chunkIDs))
	var err error
	if s.class.own {
		err = s.ownEdges(ctx, chunkIDs, byID)
	} else {
		err = s.referenceEdges(ctx, chunkIDs, byID)
	}
	if err != nil {
		return nil, classify(op, err)
	}
	edges := make([][]mapmatched.Edge, len(chunkIDs))
	for i, id := range chunkIDs {
		edges[i] = byID[id]
	}
	return edges, nil
}

func (s *edgeSource) ownEdges(ctx context.Context, chunkIDs []string, byID map[string][]mapmatched.Edge) error {
	r := &search{class: s.class, tenant: s.tenant, properties: append(s.idProperties(), propertyEdges)}
	return s.each(ctx, chunkIDs, r, func(id string, h *hit) error {
		stored, _ := h.properties[propertyEdges].(string)
		edges, err := decodeEdges(id, stored)
		byID[id] = append([]mapmatched.Edge{}, edges...)
		return err
	})
}

// referenceEdges follows references, and against them where the graph is
// undirected.
func (s *edgeSource) referenceEdges(ctx context.Context, chunkIDs []string, byID map[string][]mapmatched.Edge) error {
	r := &search{class: s.class, tenant: s.tenant, properties: s.idProperties(), references: s.references, targetID: s.id}
	uuids := make([]string, 0, len(chunkIDs))
	err := s.each(ctx, chunkIDs, r, func(id string, h *hit) error {
		uuids = append(uuids, h.uuid)
		byID[id] = append([]mapmatched.Edge{}, s.outgoing(id, h)...)
		return nil
	})
	if err != nil || s.directed {
		return err
	}
	asked := make(map[string]bool, len(chunkIDs))
	for _, id := range chunkIDs {
		asked[id] = true
	}
	for _, name := range s.references {
		if err := s.incoming(ctx, name, uuids, asked, byID); err != nil {
			return err
		}
	}
	return nil
}

func (s *edgeSource) outgoing(id string, h *hit) []mapmatched.Edge {
	var edges []mapmatched.Edge
	for _, name := range s.references {
		for _, t := range h.references[name] {
			if to := s.targetChunk(t); to != "" {
				edges = append(edges, mapmatched.Edge{From: id, To: to, Weight: s.weight, Type: mapmatched.EdgeType(name)})
			}
		}
	}
	return edges
}

func (s *edgeSource) targetChunk(t target) string {
	if s.id == uuidProperty {
		return t.uuid
	}
	return t.id
}

// incoming finds who refers to some objects by one property.
func (s *edgeSource) incoming(ctx context.Context, name string, uuids []string, asked map[string]bool, byID map[string][]mapmatched.Edge) error {
	r := &search{class: s.class, tenant: s.tenant, properties: s.idProperties(), references: []string{name}, targetID: s.id}
	return s.server.among(ctx, r, []string{name, s.class.name, uuidProperty}, uuids, true, func(part []string, hits []hit, cut bool) error {
		if cut {
			return fmt.Errorf("object %s of class %s is referred to by %d others or more, and the server shows no more: use a directed graph", part[0], s.class.name, len(hits))
		}
		for i := range hits {
			from := s.chunkID(&hits[i])
			for _, t := range hits[i].references[name] {
				if to := s.targetChunk(t); from != "" && slices.Contains(part, t.uuid) && asked[to] {
					byID[to] = append(byID[to], mapmatched.Edge{From: to, To: from, Weight: s.weight, Type: mapmatched.EdgeType(name)})
				}
			}
		}
		return nil
	})
}

// Edges implements mapmatched.EdgeLister, in the order of the UUIDs of the
// objects.
func (g *Graph) Edges(ctx context.Context) iter.Seq2[mapmatched.Edge, error] {
	const op = "edges"
	return func(yield func(mapmatched.Edge, error) bool) {
		listed := map[[2]string]bool{} // of a class that keeps an edge at either end
		for r, err := range g.source.records(ctx, "", g.source.weight) {
			var edges []mapmatched.Edge
			if err == nil && r.Chunk.ID != "" {
				edges, err = g.listed(r, listed)
			}
			if err != nil {
				yield(mapmatched.Edge{}, classify(op, err))
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

// listed is what the edges of a record add to the list.
func (g *Graph) listed(r mapmatched.Record, seen map[[2]string]bool) ([]mapmatched.Edge, error) {
	if g.source.class.own || g.source.directed {
		return g.Listed(r.Chunk.ID, r.Edges)
	}
	var edges []mapmatched.Edge
	for _, e := range r.Edges {
		ends := [2]string{min(e.From, e.To), max(e.From, e.To)}
		if e.From == e.To || seen[ends] || !slices.Contains(g.source.references, string(e.Type)) {
			continue
		}
		seen[ends] = true
		edges = append(edges, mapmatched.Edge{From: ends[0], To: ends[1], Weight: e.Weight, Type: e.Type})
	}
	return edges, nil
}

// Records implements mapmatched.RecordLister: every object in the order of the
// UUIDs, with the vector without a name.
func (g *Graph) Records(ctx context.Context) iter.Seq2[mapmatched.Record, error] {
	return func(yield func(mapmatched.Record, error) bool) {
		for r, err := range g.source.records(ctx, "", g.source.weight) {
			if err == nil && r.Chunk.ID == "" {
				continue
			}
			if !yield(r, classify("records", err)) || err != nil {
				return
			}
		}
	}
}

// Health implements mapmatched.HealthChecker.
func (g *Graph) Health(ctx context.Context) error { return g.source.Health(ctx) }

// CorpusIdentity implements mapmatched.CorpusIdentifier.
func (g *Graph) CorpusIdentity(ctx context.Context) (mapmatched.CorpusIdentity, error) {
	return g.source.CorpusIdentity(ctx)
}

// Close ends running calls and frees the connections. It may be called twice.
func (g *Graph) Close() error {
	return errors.Join(g.Graph.Close(), g.source.Close())
}
