package eval

import (
	"context"
	"fmt"
	"sync"

	"github.com/mapmatched/mmplug/graphbuild"
	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/policy"
)

// corpusGraph is a corpus graph that remembers what it was asked: the chunks
// that conversations pass by are few, and every method asks for them again.
type corpusGraph struct {
	*mapmatched.Graph
	edges    *policy.EdgeList
	position map[string]uint32

	mu   sync.RWMutex
	rows map[string]map[string]float64 // distances below the maximum from a chunk
}

// newGraph joins the chunks of an index.
func (w *World) newGraph(ctx context.Context, ix *index, p *policy.Policy, source GraphSource) (*corpusGraph, error) {
	edges, err := w.edges(ctx, ix, p, source)
	if err != nil {
		return nil, fmt.Errorf("graph %s: %w", source, err)
	}
	nodes := make([]string, len(ix.chunks))
	for i, c := range ix.chunks {
		nodes[i] = c.ID
	}
	g := &corpusGraph{position: ix.position, rows: map[string]map[string]float64{}}
	g.Graph, err = mapmatched.NewGraph(edges, &mapmatched.GraphOptions{Nodes: nodes, MaximumDistance: p.Graph.MaximumDistance})
	if err != nil {
		return nil, fmt.Errorf("graph %s: %w", source, err)
	}
	if g.edges, err = policy.NewEdgeList(g.Edges(ctx), false); err != nil {
		return nil, fmt.Errorf("graph %s: %w", source, err)
	}
	return g, nil
}

func (w *World) edges(ctx context.Context, ix *index, p *policy.Policy, source GraphSource) ([]mapmatched.Edge, error) {
	weight := func(t mapmatched.EdgeType) float64 { return p.Graph.Weights[string(t)] } // 0 is the default
	opts := graphbuild.StructureOptions{Next: weight(mapmatched.EdgeNext), Parent: weight(mapmatched.EdgeParent),
		Section: weight(mapmatched.EdgeSection), Link: weight(mapmatched.EdgeLink)}
	switch source {
	case GraphStructure:
	case GraphNoLinks:
		opts.Link = -1
	case GraphNext:
		opts.Parent, opts.Section, opts.Link = -1, -1, -1
	case GraphNone:
		return nil, nil
	case GraphKNN:
		if ix.vectors == nil {
			return nil, errNoVectors
		}
		ids := make([]string, len(ix.chunks))
		for i, c := range ix.chunks {
			ids[i] = c.ID
		}
		return graphbuild.KNN(ctx, ids, ix.vectors, &graphbuild.KNNOptions{
			K: p.Graph.K, MaximumDistance: p.Graph.MaximumDistance, MinimumEdgeDistance: p.Graph.MinimumEdgeDistance})
	default:
		return nil, fmt.Errorf("there is no such source of edges: use %s, %s, %s, %s or %s", GraphStructure, GraphNoLinks, GraphNext, GraphKNN, GraphNone)
	}
	chunks := make([]mapmatched.Chunk, len(ix.chunks))
	for i, c := range ix.chunks {
		chunks[i] = c.Chunk
	}
	return graphbuild.Structure(chunks, ix.links(), &opts)
}

// links resolves the links of chunks: each leads to the first chunk of a
// document. Links to documents outside the index lead nowhere.
func (ix *index) links() []graphbuild.ResolvedLink {
	first := map[string]*Chunk{}
	for _, c := range ix.chunks {
		if f := first[c.Document]; f == nil || c.Ordinal < f.Ordinal {
			first[c.Document] = c
		}
	}
	var links []graphbuild.ResolvedLink
	for _, c := range ix.chunks {
		for _, document := range c.Links {
			if to := first[document]; to != nil && to != c {
				links = append(links, graphbuild.ResolvedLink{From: c.ID, To: to.ID})
			}
		}
	}
	return links
}

// Distances implements mapmatched.CorpusGraph with the bits of mapmatched.Graph.
func (g *corpusGraph) Distances(ctx context.Context, from, to []string, dst []float64) error {
	if len(dst) != len(from)*len(to) {
		return g.Graph.Distances(ctx, from, to, dst) // says so
	}
	maximum := g.MaximumDistance()
	for i, a := range from {
		row, err := g.row(ctx, a)
		if err != nil {
			return err
		}
		for j, b := range to {
			d, near := row[b]
			switch {
			case a == b:
				d = 0
			case !near:
				d = maximum
			}
			dst[i*len(to)+j] = d
		}
	}
	return nil
}

// row returns the distances from a chunk to those that are nearer than the
// maximum.
func (g *corpusGraph) row(ctx context.Context, from string) (map[string]float64, error) {
	g.mu.RLock()
	row, known := g.rows[from]
	g.mu.RUnlock()
	if known {
		return row, nil
	}
	near, err := g.Neighborhood(ctx, from, g.MaximumDistance())
	if err != nil {
		return nil, err
	}
	row = make(map[string]float64, len(near))
	for _, n := range near {
		row[n.ChunkID] = n.Distance
	}
	g.mu.Lock()
	g.rows[from] = row
	g.mu.Unlock()
	return row, nil
}
