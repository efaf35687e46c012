package graphbuild

import (
	"context"
	"slices"

	"github.com/mapmatched/mmplug/mapmatched"
)

// edges joins every chunk to the k nearest others: what a row has found, with
// every row standing for all chunks that have its vector.
func (r *rowSet) edges(ctx context.Context, found *neighbours, k int, o KNNOptions) ([]mapmatched.Edge, error) {
	// Each edge is listed at its lesser end, by position in the order of IDs.
	lists := make([][]nearest, r.len())
	err := forEach(ctx, r.len(), nil, func() func(int) {
		m := r.newMeasure()
		return func(u int) { lists[u] = r.chunksNear(m, int32(u), found.of(u), k) }
	})
	if err != nil {
		return nil, err
	}
	start := make([]int, len(r.order)+1)
	r.eachPair(lists, k, func(from, _ int32, _ float64) { start[from+1]++ })
	for i := range r.order {
		start[i+1] += start[i]
	}
	pairs := make([]nearest, start[len(r.order)])
	next := slices.Clone(start)
	r.eachPair(lists, k, func(from, to int32, distance float64) {
		pairs[next[from]] = nearest{distance, to}
		next[from]++
	})
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	total := 0
	for from := range r.order {
		list := pairs[start[from]:start[from+1]]
		slices.SortFunc(list, func(a, b nearest) int { return int(a.row) - int(b.row) })
		next[from] = len(slices.Compact(list))
		total += next[from]
	}
	edges := make([]mapmatched.Edge, 0, total)
	for from, row := range r.order {
		for _, to := range pairs[start[from] : start[from]+next[from]] {
			edges = append(edges, mapmatched.Edge{
				From: r.source.ID(int(row)), To: r.source.ID(int(r.order[to.row])), Type: mapmatched.EdgeKNN,
				Weight: min(max(to.distance, o.MinimumEdgeDistance), o.MaximumDistance),
			})
		}
	}
	return edges, ctx.Err()
}

// chunksNear returns the chunks nearest to the vector of row u, by position in
// the order of IDs: k of them, and one more if u may be among them.
func (r *rowSet) chunksNear(m *measure, u int32, found []nearest, k int) []nearest {
	if r.len() == len(r.order) {
		return found
	}
	own := r.copiesOf(u)
	if len(own) > 1 {
		found = append(slices.Clone(found), nearest{m.distance(u, u), u})
	}
	near := make([]nearest, 0, len(found))
	for _, n := range found {
		copies := r.copiesOf(n.row)
		for _, chunk := range copies[:min(len(copies), k+1)] {
			near = append(near, nearest{n.distance, chunk})
		}
	}
	slices.SortFunc(near, closer)
	return slices.Clip(near[:min(len(near), k+1)])
}

func (r *rowSet) copiesOf(u int32) []int32 { return r.copies[r.copyStart[u]:r.copyStart[u+1]] }

// eachPair calls do for each chunk and each of the k nearest others of its row,
// lesser position first.
func (r *rowSet) eachPair(lists [][]nearest, k int, do func(from, to int32, distance float64)) {
	for u := range lists {
		for _, chunk := range r.copiesOf(int32(u)) {
			left := k
			for _, n := range lists[u] {
				if n.row == chunk {
					continue
				}
				if left == 0 {
					break
				}
				left--
				do(min(chunk, n.row), max(chunk, n.row), n.distance)
			}
		}
	}
}
