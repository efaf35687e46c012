package mapmatched

import "context"

const unknownNode = int32(-1)

// search is the scratch of one bounded shortest-path search (Dijkstra 1959
// with a lazy 4-ary heap). Labels are valid where seen equals epoch, so a new
// search starts without clearing anything.
type search struct {
	epoch   uint32
	seen    []uint32  // epoch in which dist was last written
	wanted  []uint32  // epoch in which the node was a target not yet settled
	dist    []float64 // from the source
	heap    []label
	settled []int32 // nodes in the order they were settled, source first
	targets []int32
}

type label struct {
	dist float64
	node int32
}

func newSearch(nodes int) *search {
	return &search{
		seen:   make([]uint32, nodes),
		wanted: make([]uint32, nodes),
		dist:   make([]float64, nodes),
	}
}

// checkEvery is how many settled nodes pass between two looks at the context.
const checkEvery = 4096

// run labels every node within bound (inclusive) of source with its distance.
// With stop, it ends as soon as all s.targets are settled.
func (g *Graph) run(ctx context.Context, s *search, source int32, bound float64, stop bool) error {
	s.epoch++
	if s.epoch == 0 { // wrapped: old stamps could look new
		clear(s.seen)
		clear(s.wanted)
		s.epoch = 1
	}
	epoch := s.epoch
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
	s.settled = s.settled[:0]
	s.heap = append(s.heap[:0], label{0, source})
	s.seen[source], s.dist[source] = epoch, 0
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
		for _, a := range g.arcs[g.first[top.node]:g.first[top.node+1]] {
			d := top.dist + a.weight
			if d > bound {
				break // arcs are in ascending weight
			}
			if s.seen[a.to] != epoch || d < s.dist[a.to] {
				s.seen[a.to], s.dist[a.to] = epoch, d
				s.push(label{d, a.to})
			}
		}
	}
	return nil
}

func (s *search) push(l label) {
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

func (s *search) pop() label {
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
