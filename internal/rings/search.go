package rings

import (
	"context"
	"math"
	"slices"
)

// search is one question's view of the graph: the chunks seen so far, numbered
// in the order seen, the arcs fetched so far, and for each start the shortest
// known distance to every chunk.
//
// Distances are sums from the start on, each edge rounded once. Such a sum
// never falls when its beginning grows or an edge is added, so the labels of
// Dijkstra 1959, corrected as more arcs become known, end at the least sum over
// all paths: the same bits in whatever order the arcs came.
type search struct {
	g        *Graph
	index    map[string]int32
	ids      []string
	out      [][]step // of fetched chunks; of others, the known edges turned round
	state    []state
	frontier []int32 // seen and not fetched, in the order seen
	changed  []int32 // have steps that no start has tried
	isNew    []bool  // is in changed
	starts   []int32
	dist     [][]float64 // by start, then by chunk; +Inf when not known
	exact    bool        // every weight so far is a multiple of 2^-20, and sums are exact
	heap     []label
}

type step struct {
	weight float64
	to     int32
}

type label struct {
	dist float64
	node int32
}

type state uint8

const (
	seen    state = iota
	fetched       // the store gave its arcs
	absent        // the store does not know it
)

func newSearch(g *Graph) *search {
	return &search{g: g, index: map[string]int32{}, exact: g.maximum <= 1<<31}
}

// node numbers a chunk.
func (s *search) node(id string) int32 {
	v, known := s.index[id]
	if !known {
		v = int32(len(s.ids))
		s.index[id] = v
		s.ids = append(s.ids, id)
		s.out = append(s.out, nil)
		s.state = append(s.state, seen)
		s.isNew = append(s.isNew, false)
		s.frontier = append(s.frontier, v)
	}
	return v
}

// start adds a start and returns its number.
func (s *search) start(v int32) int {
	s.starts = append(s.starts, v)
	s.dist = append(s.dist, nil)
	k := len(s.starts) - 1
	s.grow(k)
	s.dist[k][v] = 0
	return k
}

// grow gives start k a distance for every chunk seen.
func (s *search) grow(k int) {
	more := len(s.ids) - len(s.dist[k])
	s.dist[k] = slices.Grow(s.dist[k], more)
	for range more {
		s.dist[k] = append(s.dist[k], math.Inf(1))
	}
}

// expand fetches chunks of the frontier, in one round trip.
func (s *search) expand(ctx context.Context, need []int32) error {
	ids := make([]string, len(need))
	for i, v := range need {
		ids[i] = s.ids[v]
	}
	lists, err := s.g.fetch(ctx, ids)
	if err != nil {
		return err
	}
	for i, v := range need {
		if lists[i] == nil {
			s.state[v] = absent
			continue
		}
		s.state[v] = fetched
		s.out[v] = make([]step, 0, len(lists[i])) // the edges turned round are among them
		s.change(v)
		for _, a := range lists[i] {
			s.exact = s.exact && isCoarse(a.weight)
			to := s.node(a.to)
			s.out[v] = append(s.out[v], step{a.weight, to})
			if !s.g.directed && s.state[to] != fetched {
				s.out[to] = append(s.out[to], step{a.weight, v})
				s.change(to)
			}
		}
	}
	rest := s.frontier[:0]
	for _, v := range s.frontier {
		if s.state[v] == seen {
			rest = append(rest, v)
		}
	}
	s.frontier = rest
	return nil
}

// isCoarse reports whether sums with w up to 2^32 are exact.
func isCoarse(w float64) bool {
	return w*(1<<20) == math.Trunc(w*(1<<20))
}

func (s *search) change(v int32) {
	if !s.isNew[v] {
		s.isNew[v] = true
		s.changed = append(s.changed, v)
	}
}

// checkEvery is how many labels pass between two looks at the context.
const checkEvery = 4096

// relax brings the distances from every start up to date, as far as they are
// below its limit. A limit never rises from one call to the next.
func (s *search) relax(ctx context.Context, limits []float64) error {
	for k := range s.starts {
		s.grow(k)
		dist, limit := s.dist[k], limits[k]
		for _, v := range s.changed {
			if dist[v] < limit {
				s.push(label{dist[v], v})
			}
		}
		for n := 1; len(s.heap) > 0; n++ {
			if n%checkEvery == 0 {
				if err := ctx.Err(); err != nil {
					return err
				}
			}
			top := s.pop()
			if top.dist > dist[top.node] {
				continue
			}
			for _, st := range s.out[top.node] {
				if d := top.dist + st.weight; d < limit && d < dist[st.to] {
					dist[st.to] = d
					if len(s.out[st.to]) > 0 {
						s.push(label{d, st.to})
					}
				}
			}
		}
	}
	for _, v := range s.changed {
		s.isNew[v] = false
	}
	s.changed = s.changed[:0]
	return nil
}

// frontierWithin lists the chunks to fetch that are nearer than reach to start k.
func (s *search) frontierWithin(k int, reach float64) []int32 {
	var need []int32
	for _, v := range s.frontier {
		if s.dist[k][v] < reach {
			need = append(need, v)
		}
	}
	return need
}

// nearestOfFrontier is the distance from start k to the nearest chunk to
// fetch, +Inf when there is none.
func (s *search) nearestOfFrontier(k int) float64 {
	least := math.Inf(1)
	for _, v := range s.frontier {
		least = min(least, s.dist[k][v])
	}
	return least
}

func (s *search) push(l label) {
	s.heap = append(s.heap, l)
	i := len(s.heap) - 1
	for i > 0 {
		parent := (i - 1) / 2
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
	n := len(s.heap) - 1
	last := s.heap[n]
	s.heap = s.heap[:n]
	i := 0
	for child := 1; child < n; child = 2*i + 1 {
		if child+1 < n && s.heap[child+1].dist < s.heap[child].dist {
			child++
		}
		if last.dist <= s.heap[child].dist {
			break
		}
		s.heap[i] = s.heap[child]
		i = child
	}
	if n > 0 {
		s.heap[i] = last
	}
	return top
}
