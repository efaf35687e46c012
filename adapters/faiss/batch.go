package faiss

import (
	"context"
	"math"

	"github.com/mapmatched/mmplug/internal/kernel"
)

// batchQueries is how many queries are compared with a panel of vectors at a
// time: their panels of 384 dimensions fit in a second-level cache.
const batchQueries = 256

// leastBatch is from how many queries on panels are faster than one query after
// the other.
const leastBatch = 10

// oneByOne is the batch of indexes that look at other vectors for each query.
func oneByOne(ctx context.Context, n node, queries [][]float32, k int, name func(int64) int64) ([][]Hit, error) {
	out := make([][]Hit, len(queries))
	for i, q := range queries {
		var err error
		if out[i], err = n.search(ctx, q, k, name); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (f *flat) batch(ctx context.Context, queries [][]float32, k int, name func(int64) int64) ([][]Hit, error) {
	if len(queries) < leastBatch || k < 1 || f.len() == 0 {
		return oneByOne(ctx, f, queries, k, name)
	}
	out := make([][]Hit, 0, len(queries))
	for len(queries) > 0 {
		n := min(batchQueries, len(queries))
		hits, err := f.batchPanels(ctx, queries[:n], k, name)
		if err != nil {
			return nil, err
		}
		out = append(out, hits...)
		queries = queries[n:]
	}
	return out, nil
}

// batchPanels multiplies panels of queries with panels of vectors. The products
// rule out most vectors; the rest is measured as in search, so the scores have
// the same bits.
func (f *flat) batchPanels(ctx context.Context, queries [][]float32, k int, name func(int64) int64) ([][]Hit, error) {
	d := f.head.dimension
	panels := make([]float32, kernel.PanelLen(len(queries), d))
	found, lengths := make([]*best, len(queries)), make([]length, len(queries))
	for i, q := range queries {
		kernel.SetRow(panels, i, q, 1)
		found[i], lengths[i] = newBest(k, f.len()), lengthOf(q)
	}
	bounds := newErrorBounds(d, kernel.DotError(d)+kernel.ProductError(d))
	panel := make([]float32, kernel.PanelLen(1, d))
	var block kernel.Block
	var rowLengths [kernel.PanelRows]length
	for from := 0; from < f.len(); from += kernel.PanelRows {
		if from%checkEvery == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		rows := min(kernel.PanelRows, f.len()-from)
		f.pack(panel, from, rows)
		for j := range rows {
			rowLengths[j] = lengthOf(f.row(from + j))
		}
		for p := 0; p < len(queries); p += kernel.PanelRows {
			kernel.Products(&block, kernel.Panel(panels, p/kernel.PanelRows, d), panel)
			for i := p; i < min(p+kernel.PanelRows, len(queries)); i++ {
				b, products := found[i], block[(i-p)*kernel.PanelRows:][:rows]
				for j, product := range products {
					if b.full() && f.ruledOut(bounds, b.worst().Score, lengths[i], rowLengths[j], float64(product)) {
						continue
					}
					at := from + j
					if err := offer(b, named(name, int64(at)), score(f.head.metric, queries[i], f.row(at))); err != nil {
						return nil, err
					}
				}
			}
		}
	}
	out := make([][]Hit, len(queries))
	for i, b := range found {
		out[i] = b.sorted()
	}
	return out, nil
}

// length is the length of a vector, by kernel.Dot.
type length struct{ square, root float64 }

func lengthOf(v []float32) length {
	square := float64(kernel.Dot(v, v))
	return length{square, math.Sqrt(square)}
}

// ruledOut reports whether a row with a product and the lengths is worse than
// worst for sure.
func (f *flat) ruledOut(bounds errorBounds, worst float64, query, row length, product float64) bool {
	if f.head.metric == MetricL2 {
		return bounds.leastSquaredL2(query.square, row.square, product) > -worst
	}
	// Twice the error, for those of the lengths; a product that may have
	// overflowed says nothing.
	most := query.root * row.root
	return most < tooLong && product+2*bounds.relative*most+bounds.absolute < worst
}

// pack interleaves rows into a panel and clears the rest of it.
func (f *flat) pack(panel []float32, from, rows int) {
	d := f.head.dimension
	if rows < kernel.PanelRows {
		for j := range kernel.PanelRows {
			if j < rows {
				kernel.SetRow(panel, j, f.row(from+j), 1)
			} else {
				kernel.ClearRow(panel, j, d)
			}
		}
		return
	}
	// Four rows at a time, so that a store is not alone in its cache line.
	for j := 0; j < kernel.PanelRows; j += 4 {
		r0, r1, r2, r3 := f.row(from+j), f.row(from + j + 1)[:d], f.row(from + j + 2)[:d], f.row(from + j + 3)[:d]
		to := panel[j:]
		for i, x := range r0 {
			if i >= len(r1) || i >= len(r2) || i >= len(r3) {
				break
			}
			p := (*[4]float32)(to[i*kernel.PanelRows:])
			p[0], p[1], p[2], p[3] = x, r1[i], r2[i], r3[i]
		}
	}
}
