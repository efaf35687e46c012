package graphbuild

import (
	"context"
	"fmt"
	"slices"

	"github.com/mapmatched/mmplug/mapmatched"
)

// statsSources is from how many nodes Measure searches to estimate reach.
const statsSources = 256

// Stats describe a corpus graph.
type Stats struct {
	Nodes            int         `json:"nodes"`
	Edges            int         `json:"edges"`
	EdgesByType      []TypeCount `json:"edges_by_type"` // ascending by type
	Directed         bool        `json:"directed"`
	MaximumDistance  float64     `json:"maximum_distance"`
	Degree           Degree      `json:"degree"`
	Isolated         int         `json:"isolated_nodes"` // without any edge
	Components       int         `json:"components"`     // connected when directions are ignored
	LargestComponent int         `json:"largest_component"`
	Sources          int         `json:"sources"`       // nodes from which reach was measured
	MeanReach        float64     `json:"mean_reach"`    // other nodes within the maximum distance of a node
	ClampedShare     float64     `json:"clamped_share"` // pairs of nodes at the maximum distance or beyond, in [0, 1]
}

// TypeCount is how many edges have a type.
type TypeCount struct {
	Type  mapmatched.EdgeType `json:"type"`
	Count int                 `json:"count"`
}

// Degree describes how many edges a node has, counting both ends of an edge.
type Degree struct {
	Least  int     `json:"least"`
	Median int     `json:"median"` // the lower one of two
	Mean   float64 `json:"mean"`
	Most   int     `json:"most"`
}

// Measure describes a graph. Reach and clamped pairs are measured from every
// node, or from 256 evenly spaced ones of a larger graph.
func Measure(ctx context.Context, g ListedGraph) (*Stats, error) {
	nodes := g.Nodes()
	s := &Stats{
		Nodes: len(nodes), Edges: g.NumEdges(), Directed: g.Directed(),
		MaximumDistance: g.MaximumDistance(), EdgesByType: []TypeCount{},
	}
	if len(nodes) == 0 {
		return s, nil
	}
	degrees := make([]int, len(nodes))
	parts := newParts(len(nodes))
	position := make(map[string]int, len(nodes))
	for i, id := range nodes {
		position[id] = i
	}
	for e, err := range g.Edges(ctx) {
		if err != nil {
			return nil, err
		}
		from, to := position[e.From], position[e.To]
		degrees[from]++
		degrees[to]++
		parts.join(from, to)
		i, known := slices.BinarySearchFunc(s.EdgesByType, e.Type, func(t TypeCount, kind mapmatched.EdgeType) int {
			if t.Type < kind {
				return -1
			} else if t.Type > kind {
				return 1
			}
			return 0
		})
		if !known {
			s.EdgesByType = slices.Insert(s.EdgesByType, i, TypeCount{Type: e.Type})
		}
		s.EdgesByType[i].Count++
	}
	sizes := make([]int, len(nodes))
	for i, d := range degrees {
		if d == 0 {
			s.Isolated++
		}
		sizes[parts.root(i)]++
	}
	for _, n := range sizes {
		if n > 0 {
			s.Components++
		}
		s.LargestComponent = max(s.LargestComponent, n)
	}
	slices.Sort(degrees)
	total := 0
	for _, d := range degrees {
		total += d
	}
	s.Degree = Degree{degrees[0], degrees[(len(degrees)-1)/2], float64(total) / float64(len(degrees)), degrees[len(degrees)-1]}

	s.Sources = min(len(nodes), statsSources)
	reached, below := 0, 0
	for i := range s.Sources {
		near, err := g.Neighborhood(ctx, nodes[i*len(nodes)/s.Sources], s.MaximumDistance)
		if err != nil {
			return nil, err
		}
		reached += len(near)
		for _, n := range near {
			if n.Distance < s.MaximumDistance {
				below++
			}
		}
	}
	s.MeanReach = float64(reached) / float64(s.Sources)
	if len(nodes) > 1 {
		pairs := s.Sources * (len(nodes) - 1)
		s.ClampedShare = float64(pairs-below) / float64(pairs)
	}
	return s, nil
}

// Verdict says in plain words what the graph is good for.
func (s *Stats) Verdict() string {
	switch {
	case s.Nodes == 0:
		return "The graph is empty."
	case s.Nodes == 1:
		return "The graph has a single chunk: there is nowhere to move."
	case s.Edges == 0:
		return "No two chunks are joined: every move costs the same, so the graph tells the decoder nothing. Add links or a kNN graph."
	case s.Isolated*5 > s.Nodes:
		return fmt.Sprintf("%.0f%% of the chunks have no edge at all: join them by links or a kNN graph.", 100*float64(s.Isolated)/float64(s.Nodes))
	case s.ClampedShare == 1:
		return fmt.Sprintf("No chunk is nearer to another than the maximum distance %g, so every move costs the same: raise it.", s.MaximumDistance)
	case s.MeanReach < 1:
		return fmt.Sprintf("A chunk reaches %.2g others within %g, so nearly every move costs the same: raise the maximum distance or add links.", s.MeanReach, s.MaximumDistance)
	case s.ClampedShare < 0.01:
		return fmt.Sprintf("Nearly every chunk is within %g of every other: moves are never out of reach, only longer or shorter.", s.MaximumDistance)
	}
	return fmt.Sprintf("A chunk reaches %.0f of %d others within %g; %.4g%% of the pairs are out of reach, where a move is a jump. For fewer jumps raise k or add links.",
		s.MeanReach, s.Nodes-1, s.MaximumDistance, 100*s.ClampedShare)
}

// parts is a union-find over positions.
type parts []int

func newParts(n int) parts {
	p := make(parts, n)
	for i := range p {
		p[i] = i
	}
	return p
}

func (p parts) root(i int) int {
	for p[i] != i {
		p[i] = p[p[i]]
		i = p[i]
	}
	return i
}

func (p parts) join(a, b int) { p[p.root(a)] = p.root(b) }
