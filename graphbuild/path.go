package graphbuild

import (
	"context"

	"github.com/mapmatched/mmplug/mapmatched"
)

// ShortestPath returns the edges of a shortest path between two chunks, as
// mapmatched.Graph.ShortestPath does.
func (g *GraphFile) ShortestPath(ctx context.Context, from, to string) ([]mapmatched.Edge, error) {
	var edges []mapmatched.Edge
	err := g.do(ctx, "shortest path", func() error {
		source, target := g.find(from), g.find(to)
		if source < 0 || target < 0 {
			return nil
		}
		s := g.scratch.Get().(*fileScratch)
		defer g.scratch.Put(s)
		if err := s.search.Reach(ctx, &g.adj, source, g.header.maximum, []int32{target}); err != nil {
			return err
		}
		at := source
		for _, i := range s.search.Path(&g.adj, target) {
			a := g.adj.Arcs[i]
			edges = append(edges, mapmatched.Edge{
				From: string(g.id(at)), To: string(g.id(a.To)), Weight: a.Weight, Type: g.meta.EdgeTypes[a.Type],
			})
			at = a.To
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return edges, nil
}
