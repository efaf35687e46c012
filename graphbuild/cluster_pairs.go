package graphbuild

import (
	"context"
	"math"
	"sync"
	"sync/atomic"

	"github.com/mapmatched/mmplug/internal/kernel"
)

// pairsPerRow is how many pairs within a threshold are kept, for each row.
const pairsPerRow = 256

// nearPairs are the pairs of rows within a threshold, and perhaps some that are
// a little farther.
type nearPairs struct {
	kept         bool // whether they are listed, both ways
	start, other []int32

	// The rows that chains of pairs join, each part ascending.
	partStart, members []int32
}

// of lists the rows that are in a pair with row u.
func (p *nearPairs) of(u int32) []int32 { return p.other[p.start[u]:p.start[u+1]] }

// parts is the number of parts.
func (p *nearPairs) parts() int { return len(p.partStart) - 1 }

// part lists the rows of a part.
func (p *nearPairs) part(i int) []int32 { return p.members[p.partStart[i]:p.partStart[i+1]] }

// pairFinder is what a worker has found.
type pairFinder struct {
	joined parts
	pairs  [][2]int32
}

// pairsWithin finds the pairs of rows whose distance is at most a threshold.
func (r *rowSet) pairsWithin(ctx context.Context, threshold float64, p *progress) (*nearPairs, error) {
	n := r.len()
	all := r.all()
	panels, err := r.packAll(ctx, all)
	if err != nil {
		return nil, err
	}
	// 1e-9 is more than the rounding of a mean of float64 distances.
	least := 1 - threshold - r.scoreError() - 1e-9
	bound := float32(least)
	if float64(bound) > least {
		bound = math.Nextafter32(bound, float32(math.Inf(-1)))
	}
	count := panelsOf(n)
	work := tilePairs((count + tilePanels - 1) / tilePanels)
	p.stage(progressTotal*4/10, len(work))
	var (
		lock    sync.Mutex
		finders []*pairFinder
		found   atomic.Int64
		most    = int64(n) * pairsPerRow
	)
	err = forEach(ctx, len(work), p, func() func(int) {
		f := &pairFinder{joined: newParts(n)}
		lock.Lock()
		finders = append(finders, f)
		lock.Unlock()
		var block kernel.Block
		return func(at int) {
			first, second := int(work[at][0])*tilePanels, int(work[at][1])*tilePanels
			before := len(f.pairs)
			keep := found.Load() <= most
			for i := first; i < min(first+tilePanels, count); i++ {
				for j := max(i, second); j < min(second+tilePanels, count); j++ {
					kernel.Products(&block, kernel.Panel(panels, i, r.dim), kernel.Panel(panels, j, r.dim))
					f.see(&block, bound, int32(i*kernel.PanelRows), int32(j*kernel.PanelRows), int32(n), keep)
				}
			}
			if found.Add(int64(len(f.pairs)-before)) > most {
				f.pairs = nil
			}
		}
	})
	if err != nil {
		return nil, err
	}
	near := &nearPairs{kept: found.Load() <= most}
	joined := newParts(n)
	for _, f := range finders {
		for u := range n {
			joined.join(u, f.joined.root(u))
		}
	}
	near.setParts(joined)
	if near.kept {
		near.setPairs(n, finders)
	}
	return near, nil
}

// see notes the pairs of two panels, which begin at rows a and b, whose product
// is at least bound.
func (f *pairFinder) see(block *kernel.Block, bound float32, a, b, n int32, keep bool) {
	for i := range int32(kernel.PanelRows) {
		u := a + i
		if u >= n {
			return
		}
		for j, score := range (*[kernel.PanelRows]float32)(block[i*kernel.PanelRows:]) {
			v := b + int32(j)
			if score < bound || v <= u || v >= n {
				continue
			}
			if keep {
				f.pairs = append(f.pairs, [2]int32{u, v})
			}
			f.joined.join(int(u), int(v))
		}
	}
}

// setParts groups the rows by what they are joined to.
func (p *nearPairs) setParts(joined parts) {
	part := make([]int32, len(joined))
	number := make([]int32, len(joined)) // of the part with that root, from 1
	count := int32(0)
	for u := range joined {
		root := joined.root(u)
		if number[root] == 0 {
			count++
			number[root] = count
		}
		part[u] = number[root] - 1
	}
	p.partStart, p.members = groupBy(part, int(count))
}

// setPairs lists the pairs by row.
func (p *nearPairs) setPairs(n int, finders []*pairFinder) {
	p.start = make([]int32, n+1)
	for _, f := range finders {
		for _, pair := range f.pairs {
			p.start[pair[0]+1]++
			p.start[pair[1]+1]++
		}
	}
	for u := range n {
		p.start[u+1] += p.start[u]
	}
	p.other = make([]int32, p.start[n])
	next := append([]int32(nil), p.start...)
	for _, f := range finders {
		for _, pair := range f.pairs {
			for side, u := range pair {
				p.other[next[u]] = pair[1-side]
				next[u]++
			}
		}
	}
}
