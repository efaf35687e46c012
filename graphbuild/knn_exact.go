package graphbuild

import (
	"context"

	"github.com/mapmatched/mmplug/internal/kernel"
)

// tilePanels is how many panels are compared with how many others in one step:
// two tiles of 384 dimensions fit in a second-level cache.
const tilePanels = 16

// exactNeighbours returns the k nearest others of each row. Each pair of tiles
// is compared once, for both of its sides.
//
// Memory: the vectors once more in float32, and 8·(3k+8) + 16·k bytes a row.
func (r *rowSet) exactNeighbours(ctx context.Context, k int, p *progress) (*neighbours, error) {
	if k == 0 {
		return &neighbours{count: make([]int32, r.len())}, ctx.Err()
	}
	all := r.all()
	panels, err := r.packAll(ctx, all)
	if err != nil {
		return nil, err
	}
	s := newSelection(r, all, k)
	count := panelsOf(len(all))
	work := tilePairs((count + tilePanels - 1) / tilePanels)
	p.stage(progressTotal*9/10, len(work))
	err = forEach(ctx, len(work), p, func() func(int) {
		m := r.newMeasure()
		var (
			block kernel.Block
			a, b  lineup
		)
		return func(at int) {
			first, second := int(work[at][0])*tilePanels, int(work[at][1])*tilePanels
			for i := first; i < min(first+tilePanels, count); i++ {
				a.set(panelRows(all, i), nil)
				for j := max(i, second); j < min(second+tilePanels, count); j++ {
					rows := panelRows(all, j)
					b.set(rows, nil)
					if i == j { // each pair is in the block twice
						b.set(rows, nowhere[:len(rows)])
					}
					kernel.Products(&block, kernel.Panel(panels, i, r.dim), kernel.Panel(panels, j, r.dim))
					s.offerBlock(m, &block, &a, &b)
				}
			}
		}
	})
	if err != nil {
		return nil, err
	}
	p.stage(progressTotal, count)
	return s.finish(ctx, p)
}

// nowhere are the places of rows that select nothing.
var nowhere = [kernel.PanelRows]int32{-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1}

// all lists the rows.
func (r *rowSet) all() []int32 {
	rows := make([]int32, r.len())
	for i := range rows {
		rows[i] = int32(i)
	}
	return rows
}

// tilePairs lists the pairs of tiles (a, b) with a ≤ b, near ones first: they
// raise the bounds of all rows early.
func tilePairs(tiles int) [][2]int32 {
	pairs := make([][2]int32, 0, tiles*(tiles+1)/2)
	for apart := range tiles {
		for a := range tiles - apart {
			pairs = append(pairs, [2]int32{int32(a), int32(a + apart)})
		}
	}
	return pairs
}

// exactFor returns the k nearest others, among all rows, of a few rows.
func (r *rowSet) exactFor(ctx context.Context, few []int32, k int, p *progress) (*neighbours, error) {
	panels, err := r.packAll(ctx, few)
	if err != nil {
		return nil, err
	}
	s := newSelection(r, few, k)
	places := make([]int32, len(few))
	for i := range places {
		places[i] = int32(i)
	}
	all := r.all()
	p.stage(progressTotal*3/10, panelsOf(len(all)))
	err = forEach(ctx, panelsOf(len(all)), p, func() func(int) {
		m := r.newMeasure()
		var (
			block  kernel.Block
			a, b   lineup
			buffer = make([]float32, r.dim)
			panel  = make([]float32, kernel.PanelLen(1, r.dim))
		)
		return func(at int) {
			rows := panelRows(all, at)
			r.pack(panel, rows, buffer)
			b.set(rows, nowhere[:len(rows)])
			for i := range panelsOf(len(few)) {
				a.set(panelRows(few, i), panelRows(places, i))
				kernel.Products(&block, kernel.Panel(panels, i, r.dim), panel)
				s.offerBlock(m, &block, &a, &b)
			}
		}
	})
	if err != nil {
		return nil, err
	}
	return s.finish(ctx, nil)
}
