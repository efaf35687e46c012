package mapmatched

import (
	"cmp"
	"context"
	"math"
	"slices"
)

const unknownNode = int32(-1)

// Arc is one step out of a node: an edge seen from one of its ends.
type Arc struct {
	Weight float64 // positive and finite
	To     int32   // node it leads to
	Type   int32   // number of its edge type
}

// Adjacency is a graph whose nodes are numbers, in compressed form: the arcs
// of node v are Arcs[First[v]:First[v+1]], in ascending weight. An undirected
// edge is two arcs.
type Adjacency struct {
	First []int32
	Arcs  []Arc
}

// Search is the scratch of one bounded shortest-path search at a time
// (Dijkstra 1959), reusable for any number of them. Distances are summed from
// the source on along the path, so the same source and target have the same
// bits whatever was asked before.
//
// The queue has two levels: nodes near the front are in a 4-ary heap, farther
// ones in unordered buckets of equal width, each of which is sorted into the
// heap once its turn has come. Most labels are replaced before that and so
// never are. Labels are valid where seen equals epoch, so a new search starts
// without clearing anything.
type Search struct {
	epoch   uint32
	seen    []uint32  // epoch in which dist was last written
	wanted  []uint32  // epoch in which the node was a target not yet settled
	dist    []float64 // from the source
	ahead   []float64 // to the nearest target, +Inf where none is near, see approach
	near    []int32   // nodes with a finite ahead
	prune   bool      // ahead is of the targets of the searches to come
	heap    []label
	buckets [numBuckets]int32 // first of a list in waiting, -1 for none
	waiting []waitingLabel
	settled []int32 // nodes in the order they were settled, source first
	targets []int32
}

// numBuckets is into how many parts the way up to the bound is cut.
const numBuckets = 512

type label struct {
	dist float64
	node int32
}

type waitingLabel struct {
	label
	next int32 // in the same bucket, -1 for none
}

// NewSearch makes the scratch for graphs of so many nodes.
func NewSearch(nodes int) *Search { return newSearch(nodes) }

func newSearch(nodes int) *Search {
	return &Search{
		seen:   make([]uint32, nodes),
		wanted: make([]uint32, nodes),
		dist:   make([]float64, nodes),
		ahead:  slices.Repeat([]float64{math.Inf(1)}, nodes),
	}
}

// Within finds every node within bound (inclusive) of source.
func (s *Search) Within(ctx context.Context, a *Adjacency, source int32, bound float64) error {
	return s.run(ctx, a, source, bound, false)
}

// Reach finds the distances of targets within bound (inclusive) of source and
// stops with the last of them. Targets may repeat; negative ones are ignored.
// Only the distances of targets are final then.
func (s *Search) Reach(ctx context.Context, a *Adjacency, source int32, bound float64, targets []int32) error {
	s.targets = append(s.targets[:0], targets...)
	return s.run(ctx, a, source, bound, true)
}

// Distance is the distance of a node that the latest search found.
func (s *Search) Distance(node int32) (distance float64, found bool) {
	if node < 0 || s.seen[node] != s.epoch {
		return 0, false
	}
	return s.dist[node], true
}

// Settled are the nodes whose distance the latest search made final, in
// ascending distance, the source first. It is valid until the next search.
func (s *Search) Settled() []int32 { return s.settled }

// Path returns the arcs, by their number in a, of a shortest path from the
// source of the latest search to a node that it settled. Of several shortest
// paths it is the one whose last step comes from the node settled first, and
// so on back to the source. It is nil for the source and for other nodes.
func (s *Search) Path(a *Adjacency, node int32) []int32 {
	place := make(map[int32]int, len(s.settled)) // in the order of settling
	for i, v := range s.settled {
		place[v] = i
	}
	end, known := place[node]
	if !known {
		return nil
	}
	into := map[int32]int32{} // arc by which a node is reached
	from := map[int32]int32{}
	for i, v := range s.settled[:end] {
		for at := a.First[v]; at < a.First[v+1]; at++ {
			arc := a.Arcs[at]
			if there, settled := place[arc.To]; settled && there > i && s.dist[v]+arc.Weight == s.dist[arc.To] {
				if _, reached := into[arc.To]; !reached {
					into[arc.To], from[arc.To] = at, v
				}
			}
		}
	}
	var path []int32
	for v := node; v != s.settled[0]; v = from[v] {
		path = append(path, into[v])
	}
	slices.Reverse(path)
	return path
}

// checkEvery is how many settled nodes pass between two looks at the context.
const checkEvery = 4096

// reversed is the graph with all arcs turned round.
func (a *Adjacency) reversed() Adjacency {
	b := Adjacency{First: make([]int32, len(a.First)), Arcs: make([]Arc, len(a.Arcs))}
	for _, arc := range a.Arcs {
		b.First[arc.To+1]++
	}
	for v := 1; v < len(b.First); v++ {
		b.First[v] += b.First[v-1]
	}
	next := slices.Clone(b.First)
	for v := range len(a.First) - 1 {
		for _, arc := range a.Arcs[a.First[v]:a.First[v+1]] {
			b.Arcs[next[arc.To]] = Arc{arc.Weight, int32(v), arc.Type}
			next[arc.To]++
		}
	}
	for v := range len(b.First) - 1 {
		slices.SortFunc(b.Arcs[b.First[v]:b.First[v+1]], func(x, y Arc) int { return cmp.Compare(x.Weight, y.Weight) })
	}
	return b
}

// slack is more than rounding can make of a sum along any path.
const slack = 1 + 1e-6

// approach labels, in s.ahead, every node within half the bound of s.targets
// with the distance to the nearest of them, so that the searches for them can
// leave out what leads nowhere (bidirectional search after Pohl 1971: of a
// path within the bound, the part before a node or the part after it is within
// half the bound).
func (s *Search) approach(ctx context.Context, back *Adjacency, bound float64) error {
	for _, v := range s.near {
		s.ahead[v] = math.Inf(1)
	}
	s.near, s.heap = s.near[:0], s.heap[:0]
	reach := func(d float64, v int32) {
		if d >= s.ahead[v] {
			return
		}
		if math.IsInf(s.ahead[v], 1) {
			s.near = append(s.near, v)
		}
		s.ahead[v] = d
		s.push(label{d, v})
	}
	for _, t := range s.targets {
		if t != unknownNode {
			reach(0, t)
		}
	}
	half := bound / 2 * slack
	for settled := 1; len(s.heap) > 0; settled++ {
		if settled%checkEvery == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		top := s.pop()
		if top.dist > s.ahead[top.node] {
			continue
		}
		for _, a := range back.Arcs[back.First[top.node]:back.First[top.node+1]] {
			d := top.dist + a.Weight
			if d > half {
				break
			}
			reach(d, a.To)
		}
	}
	return nil
}

// run labels every node within bound (inclusive) of source with its distance.
// With stop, it ends as soon as all s.targets are settled.
func (s *Search) run(ctx context.Context, g *Adjacency, source int32, bound float64, stop bool) error {
	s.epoch++
	if s.epoch == 0 { // wrapped: old stamps could look new
		clear(s.seen)
		clear(s.wanted)
		s.epoch = 1
	}
	epoch := s.epoch
	s.settled = s.settled[:0]
	missing := -1 // never reaches 0
	if stop {
		missing = 0
		for _, t := range s.targets {
			if t != unknownNode && s.wanted[t] != epoch {
				s.wanted[t] = epoch
				missing++
			}
		}
		if missing == 0 {
			return nil
		}
	}
	for i := range s.buckets {
		s.buckets[i] = -1
	}
	s.waiting = s.waiting[:0]
	half, limit := bound, bound
	if s.prune {
		half, limit = bound/2, bound*slack
	}
	front, scale := 0, numBuckets/bound
	s.heap = append(s.heap[:0], label{0, source})
	s.seen[source], s.dist[source] = epoch, 0
	for {
		for len(s.heap) > 0 {
			top := s.pop()
			if top.dist > s.dist[top.node] {
				continue // a shorter label was settled before
			}
			s.settled = append(s.settled, top.node)
			if len(s.settled)%checkEvery == 0 {
				if err := ctx.Err(); err != nil {
					return err
				}
			}
			if stop && s.wanted[top.node] == epoch {
				s.wanted[top.node] = 0
				if missing--; missing == 0 {
					return nil
				}
			}
			for _, a := range g.Arcs[g.First[top.node]:g.First[top.node+1]] {
				d := top.dist + a.Weight
				if d > bound {
					break // arcs are in ascending weight
				}
				if s.seen[a.To] == epoch && d >= s.dist[a.To] {
					continue
				}
				if d > half && d+s.ahead[a.To] > limit {
					continue // no target is near enough behind it
				}
				s.seen[a.To], s.dist[a.To] = epoch, d
				bucket := numBuckets - 1
				if x := d * scale; x < numBuckets { // x never falls as d grows
					bucket = int(x)
				}
				if bucket <= front {
					s.push(label{d, a.To})
					continue
				}
				s.waiting = append(s.waiting, waitingLabel{label{d, a.To}, s.buckets[bucket]})
				s.buckets[bucket] = int32(len(s.waiting) - 1)
			}
		}
		for front++; front < numBuckets && s.buckets[front] < 0; {
			front++
		}
		if front >= numBuckets {
			return nil
		}
		for i := s.buckets[front]; i >= 0; i = s.waiting[i].next {
			if l := s.waiting[i].label; l.dist == s.dist[l.node] {
				s.push(l)
			}
		}
	}
}

func (s *Search) push(l label) {
	s.heap = append(s.heap, l)
	i := len(s.heap) - 1
	for i > 0 {
		parent := (i - 1) / 4
		if s.heap[parent].dist <= l.dist {
			break
		}
		s.heap[i] = s.heap[parent]
		i = parent
	}
	s.heap[i] = l
}

func (s *Search) pop() label {
	top := s.heap[0]
	last := s.heap[len(s.heap)-1]
	s.heap = s.heap[:len(s.heap)-1]
	n := len(s.heap)
	if n == 0 {
		return top
	}
	i := 0
	for {
		child := 4*i + 1
		if child >= n {
			break
		}
		least := child
		for c := child + 1; c < min(child+4, n); c++ {
			if s.heap[c].dist < s.heap[least].dist {
				least = c
			}
		}
		if last.dist <= s.heap[least].dist {
			break
		}
		s.heap[i] = s.heap[least]
		i = least
	}
	s.heap[i] = last
	return top
}
