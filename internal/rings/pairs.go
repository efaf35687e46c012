package rings

import "math"

// pairs are the distances that are asked for. Each from is a start of the
// search; in an undirected graph each to is one as well, whose distances bound
// from below what is still unknown at the far end (bidirectional search after
// Pohl 1971).
type pairs struct {
	s        *search
	from, to []string
	starts   []int   // start of a row
	ends     []int   // start of a column; nil when directed
	targets  []int32 // chunk of a column
	rows     []int   // the starts that rows have, each once
	columns  []int   // the columns with different chunks, each once
	nearF    []float64
	nearB    []float64
	reach    []float64 // by start, how near a chunk must be to be fetched
}

func newPairs(s *search, from, to []string) *pairs {
	p := &pairs{s: s, from: from, to: to}
	startOf := map[int32]int{}
	add := func(v int32) (k int, first bool) {
		k, known := startOf[v]
		if !known {
			k = s.start(v)
			startOf[v] = k
		}
		return k, !known
	}
	for _, id := range from {
		k, first := add(s.node(id))
		p.starts = append(p.starts, k)
		if first {
			p.rows = append(p.rows, k)
		}
	}
	column := map[int32]bool{}
	for j, id := range to {
		v := s.node(id)
		p.targets = append(p.targets, v)
		if !s.g.directed {
			k, _ := add(v)
			p.ends = append(p.ends, k)
		}
		if !column[v] {
			column[v] = true
			p.columns = append(p.columns, j)
		}
	}
	p.nearF = make([]float64, len(s.starts))
	p.nearB = make([]float64, len(to))
	p.reach = make([]float64, len(s.starts))
	return p
}

// best is the shortest distance known from start k to column j, and the
// maximum distance when there is none within.
func (p *pairs) best(k, j int) float64 {
	return min(p.s.dist[k][p.targets[j]], p.s.g.maximum)
}

// limits says for every start how far a distance from it still matters: as far
// as the longest of the distances asked for that is known, with some room
// because the two ends round differently.
func (p *pairs) limits() []float64 {
	limits := make([]float64, len(p.s.starts))
	for k := range p.s.starts {
		p.s.grow(k)
	}
	for _, k := range p.rows {
		for _, j := range p.columns {
			room := p.best(k, j) * slack
			limits[k] = max(limits[k], room)
			if p.ends != nil {
				limits[p.ends[j]] = max(limits[p.ends[j]], room)
			}
		}
	}
	return limits
}

// slack is more than rounding can make of a sum along any path.
const slack = 1 + 1e-6

// need lists the chunks to fetch. A better path from x to y that is not known
// yet passes an edge that is not known, between two chunks that are to be
// fetched; so it is at least as long as from x to the nearest such chunk and
// from the nearest such chunk to y. Of a directed graph only the former is
// known.
func (p *pairs) need() []int32 {
	room := slack
	if p.s.exact {
		room = 1
	}
	for _, k := range p.rows {
		p.nearF[k] = p.s.nearestOfFrontier(k)
	}
	if p.ends != nil {
		for _, j := range p.columns {
			p.nearB[j] = p.s.nearestOfFrontier(p.ends[j])
		}
	}
	for k := range p.reach {
		p.reach[k] = math.Inf(-1)
	}
	for _, k := range p.rows {
		for _, j := range p.columns {
			best := p.best(k, j) * room
			p.reach[k] = max(p.reach[k], best-p.nearB[j])
			if p.ends != nil {
				p.reach[p.ends[j]] = max(p.reach[p.ends[j]], best-p.nearF[k])
			}
		}
	}
	var need []int32
	for _, v := range p.s.frontier {
		for k, reach := range p.reach {
			if p.s.dist[k][v] < reach {
				need = append(need, v)
				break
			}
		}
	}
	return need
}

// write gives the distances row by row.
func (p *pairs) write(dst []float64) {
	for i, k := range p.starts {
		for j := range p.targets {
			dst[i*len(p.to)+j] = p.best(k, j)
		}
	}
}
