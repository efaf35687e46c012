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
	Disconnected     float64     `json:"disconnected_share"` // pairs of nodes in different components, in [0, 1]; never sampled
	Sources          int         `json:"sources"`            // nodes from which reach was measured
	MeanReach        float64     `json:"mean_reach"`         // other nodes within the maximum distance of a node
	ClampedShare     float64     `json:"clamped_share"`      // pairs of nodes at the maximum distance or beyond, in [0, 1]
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
	sizes, connected := make([]int, len(nodes)), 0.0
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
		connected += float64(n) * float64(n-1)
	}
	if pairs := float64(len(nodes)) * float64(len(nodes)-1); pairs > 0 {
		s.Disconnected = (pairs - connected) / pairs
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

// Sampled reports whether reach was measured from some nodes only.
func (s *Stats) Sampled() bool { return s.Sources < s.Nodes }

// Percent writes a share for people, with one decimal, and never as 0.0% or
// 100.0% what is not quite that.
func Percent(share float64) string {
	text := fmt.Sprintf("%.1f%%", 100*share)
	switch {
	case share > 0 && text == "0.0%":
		return "<0.1%"
	case share < 1 && text == "100.0%":
		return ">99.9%"
	}
	return text
}

// Verdict says in plain words what the graph is good for.
func (s *Stats) Verdict() string {
	no, about, sample := "No chunk", "", ""
	if s.Sampled() {
		no, about, sample = fmt.Sprintf("None of %d sampled chunks", s.Sources), "about ", fmt.Sprintf(" (from a sample of %d)", s.Sources)
	}
	switch {
	case s.Nodes == 0:
		return "The graph is empty."
	case s.Nodes == 1:
		return "The graph has a single chunk: there is nowhere to move."
	case s.Edges == 0:
		return "No two chunks are joined: every move costs the same, so the graph tells the decoder nothing. Add links or a kNN graph."
	case s.Isolated*5 > s.Nodes:
		return fmt.Sprintf("%s of the chunks have no edge at all: join them by links or a kNN graph.", Percent(float64(s.Isolated)/float64(s.Nodes)))
	case s.ClampedShare == 1:
		return fmt.Sprintf("%s is nearer to another than the maximum distance %g, so every move costs the same: raise it.", no, s.MaximumDistance)
	case s.ClampedShare < 0.01:
		return fmt.Sprintf("Nearly every chunk is within %g of every other%s: moves are never out of reach, only longer or shorter.", s.MaximumDistance, sample)
	case 2*s.Disconnected >= s.ClampedShare:
		return fmt.Sprintf("The graph falls into %d components, the largest of %d chunks, so %s of the pairs can never be reached; %s are out of reach of each other%s. A higher maximum distance does not join components: add links or a kNN graph.",
			s.Components, s.LargestComponent, Percent(s.Disconnected), Percent(s.ClampedShare), sample)
	case s.MeanReach < 1:
		return fmt.Sprintf("A chunk reaches %s%.2g others within %g%s, so nearly every move costs the same: raise the maximum distance or add links.", about, s.MeanReach, s.MaximumDistance, sample)
	}
	return fmt.Sprintf("A chunk reaches %s%.0f of %d others within %g%s; %s of the pairs are out of reach, where a move is a jump. For fewer jumps raise k or add links.",
		about, s.MeanReach, s.Nodes-1, s.MaximumDistance, sample, Percent(s.ClampedShare))
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
