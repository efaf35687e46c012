package graphbuild

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/mapmatched/mmplug/mapmatched"
)

// UnionSource is a graph that takes part in a union.
type UnionSource struct {
	Name  string            // for messages
	Nodes []string          // chunks to keep even if no edge names them
	Edges []mapmatched.Edge // in any order; may repeat
	// Factor multiplies the lengths of all edges: above 1 it makes the source
	// count for less. 0 means 1.
	Factor float64
	// TypeFactors multiply the lengths of the edges of a type, on top of
	// Factor. A type that is not there has the factor 1.
	TypeFactors map[mapmatched.EdgeType]float64
}

// UnionOptions are the settings of [Union]. The zero value, and nil, make an
// undirected union without caps.
type UnionOptions struct {
	// Directed keeps the directions of edges: a to b is not b to a.
	Directed bool
	// Caps are how many edges of a type a node keeps in total; a type that is
	// not there has no cap, and 0 leaves the type out.
	Caps map[mapmatched.EdgeType]int
}

// Joined is a union of graphs.
type Joined struct {
	Nodes []string          // of all sources, ascending
	Edges []mapmatched.Edge // ascending by From, To and Type

	// What became of the other edges of the sources.
	Loops    int // from a chunk to itself
	Repeated int // of the same ends and type as a shorter or equal one
	Capped   int // above a cap
}

// Union joins graphs.
//
// The length of an edge is multiplied by the factors of its source and type. Of
// the edges of one type between two chunks the shortest is kept; edges of
// several types stay side by side (a distance uses the shortest, and a graph file
// keeps that one only), and a cap counts its own type. An edge from a chunk to itself is left
// out.
//
// A cap holds for both ends: the edges of a type are gone through from the
// shortest on, ties by From and then To, and an edge is kept when both its ends
// have kept fewer than the cap until then. In a directed union the cap holds for
// the edges that leave a chunk.
//
// Undirected edges have From < To. The result is the same whatever the order of
// the edges. Errors name the source and the edge, factor or cap: an empty ID,
// and a length, factor or product that is not positive and finite.
func Union(sources []UnionSource, opts *UnionOptions) (*Joined, error) {
	if opts == nil {
		opts = &UnionOptions{}
	}
	if err := validateUnion(sources, opts); err != nil {
		return nil, err
	}
	var edges []mapmatched.Edge
	u := &Joined{}
	nodes := map[string]bool{}
	for i, s := range sources {
		for j, id := range s.Nodes {
			if id == "" {
				return nil, fmt.Errorf("%s: node %d: %w", sourceName(s, i), j, mapmatched.ErrEmptyChunkID)
			}
			nodes[id] = true
		}
		for j, e := range s.Edges {
			weight, err := s.weight(e)
			if err != nil {
				return nil, fmt.Errorf("%s: edge %d (%q to %q): %w", sourceName(s, i), j, e.From, e.To, err)
			}
			e.Weight = weight
			nodes[e.From], nodes[e.To] = true, true
			if !opts.Directed && e.From > e.To {
				e.From, e.To = e.To, e.From
			}
			if e.From == e.To {
				u.Loops++
				continue
			}
			edges = append(edges, e)
		}
	}
	u.Nodes = make([]string, 0, len(nodes))
	for id := range nodes {
		u.Nodes = append(u.Nodes, id)
	}
	slices.Sort(u.Nodes)

	slices.SortFunc(edges, func(a, b mapmatched.Edge) int { return cmp.Or(compareEdges(a, b), cmp.Compare(a.Weight, b.Weight)) })
	all := len(edges)
	edges = slices.CompactFunc(edges, func(a, b mapmatched.Edge) bool { return compareEdges(a, b) == 0 })
	u.Repeated = all - len(edges)
	u.Edges = edges
	if len(opts.Caps) > 0 {
		u.Edges = capTypes(edges, opts)
		u.Capped = len(edges) - len(u.Edges)
	}
	return u, nil
}

func sourceName(s UnionSource, i int) string {
	if s.Name == "" {
		return fmt.Sprintf("source %d", i)
	}
	return s.Name
}

func validateUnion(sources []UnionSource, opts *UnionOptions) error {
	var errs []error
	factor := func(name string, f float64) {
		if !(f > 0) || math.IsInf(f, 0) {
			errs = append(errs, fmt.Errorf("%w: %s is %v, want a positive finite number", mapmatched.ErrInvalidConfig, name, f))
		}
	}
	for i, s := range sources {
		if s.Factor != 0 {
			factor(sourceName(s, i)+": Factor", s.Factor)
		}
		for _, t := range sortedKeys(s.TypeFactors) {
			factor(fmt.Sprintf("%s: the factor of edge type %q", sourceName(s, i), t), s.TypeFactors[t])
		}
	}
	for _, t := range sortedKeys(opts.Caps) {
		if n := opts.Caps[t]; n < 0 {
			errs = append(errs, fmt.Errorf("%w: the cap of edge type %q is %d, want 0 or more", mapmatched.ErrInvalidConfig, t, n))
		}
	}
	return errors.Join(errs...)
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// weight returns the length of an edge in the union.
func (s *UnionSource) weight(e mapmatched.Edge) (float64, error) {
	if err := checkEdge(e); err != nil {
		return 0, err
	}
	w := float64(e.Weight * cmp.Or(s.Factor, 1))
	if f, ok := s.TypeFactors[e.Type]; ok {
		w = float64(w * f)
	}
	if w == 0 || math.IsInf(w, 0) {
		return 0, fmt.Errorf("%w: weight %v with its factors is %v; choose other factors", mapmatched.ErrNonFinite, e.Weight, w)
	}
	return w, nil
}

// checkEdge returns what is wrong with an edge.
func checkEdge(e mapmatched.Edge) error {
	switch {
	case e.From == "" || e.To == "":
		return mapmatched.ErrEmptyChunkID
	case math.IsNaN(e.Weight) || math.IsInf(e.Weight, 0):
		return fmt.Errorf("%w: weight %v", mapmatched.ErrNonFinite, e.Weight)
	case e.Weight <= 0:
		return fmt.Errorf("%w: weight %v; weights are positive", mapmatched.ErrDistance, e.Weight)
	}
	return nil
}

// compareEdges orders edges by From, To and Type.
func compareEdges(a, b mapmatched.Edge) int {
	return cmp.Or(strings.Compare(a.From, b.From), strings.Compare(a.To, b.To), strings.Compare(string(a.Type), string(b.Type)))
}

// capTypes keeps, of edges in the order of compareEdges, those for which both
// ends have room below the cap of the type, the shortest first.
func capTypes(edges []mapmatched.Edge, opts *UnionOptions) []mapmatched.Edge {
	type end struct {
		id   string
		kind mapmatched.EdgeType
	}
	used := map[end]int{}
	keep := make([]bool, len(edges))
	for _, i := range byWeight(edges) {
		e := edges[i]
		most, capped := opts.Caps[e.Type]
		from, to := end{e.From, e.Type}, end{e.To, e.Type}
		if capped && (used[from] >= most || !opts.Directed && used[to] >= most) {
			continue
		}
		keep[i] = true
		used[from]++
		if !opts.Directed {
			used[to]++
		}
	}
	return keepEdges(edges, keep)
}

// byWeight lists the positions of edges, the shortest first, ties by position.
func byWeight(edges []mapmatched.Edge) []int {
	order := make([]int, len(edges))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Or(cmp.Compare(edges[a].Weight, edges[b].Weight), cmp.Compare(a, b)) })
	return order
}

// keepEdges returns the edges that keep says.
func keepEdges(edges []mapmatched.Edge, keep []bool) []mapmatched.Edge {
	var kept []mapmatched.Edge
	for i, e := range edges {
		if keep[i] {
			kept = append(kept, e)
		}
	}
	return kept
}
