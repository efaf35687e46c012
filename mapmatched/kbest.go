package mapmatched

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
)

// ScoredPath is a path through a whole conversation.
type ScoredPath struct {
	ChunkIDs   []string // one a turn, "" at a gap
	Candidates []int    // position of the candidate in each turn, −1 at a gap
	Score      float64
}

// KBest returns the k paths of highest score through a trellis, all distinct,
// by descending score; equal scores are in lexicographic order of candidate
// positions. There may be fewer than k. It is the list Viterbi algorithm
// (Seshadri & Sundberg 1994): every candidate keeps the k best ways to reach
// it.
func KBest(ctx context.Context, t *Trellis, k int) ([]ScoredPath, error) {
	if k < 1 {
		return nil, fmt.Errorf("k best: k is %d: %w: it must be at least 1", k, ErrInvalidConfig)
	}
	if err := t.check(); err != nil {
		return nil, err
	}
	// A way is one of the best ways to reach a candidate. Its order is its
	// place among all ways of its turn by candidate positions from the first
	// turn on, so comparing two orders compares two paths.
	type way struct {
		score    float64
		at       int // candidate
		previous int // index of a way of the turn before
		order    int
	}
	better := func(a, b way) int { return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.order, b.order)) }
	ways := make([][]way, len(t.Columns)) // kept ways of each turn, nil at gaps
	last := -1
	for i := range t.Columns {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		c := &t.Columns[i]
		n := len(c.ChunkIDs)
		if n == 0 {
			continue
		}
		var found []way
		if last < 0 {
			for x, e := range c.Emission {
				found = append(found, way{0 + e, x, -1, x})
			}
		} else {
			row := make(map[int]int, len(c.From))
			for r, y := range c.From {
				row[y] = r
			}
			for w, before := range ways[last] {
				r, allowed := row[before.at]
				if !allowed {
					continue
				}
				for x, e := range c.Emission {
					cost := 0.0
					if c.Distance != nil {
						cost = float64(t.TransitionWeight * c.Distance[r*n+x])
					}
					found = append(found, way{before.score + (e - cost), x, w, before.order*n + x})
				}
			}
		}
		slices.SortFunc(found, better)
		kept := make([]int, n)
		found = slices.DeleteFunc(found, func(w way) bool { kept[w.at]++; return kept[w.at] > k })
		// Number the ways anew, so that orders stay small.
		byOrder := make([]int, len(found))
		for w := range byOrder {
			byOrder[w] = w
		}
		slices.SortFunc(byOrder, func(a, b int) int { return cmp.Compare(found[a].order, found[b].order) })
		for order, w := range byOrder {
			found[w].order = order
		}
		ways[i], last = found, i
	}
	if last < 0 {
		return []ScoredPath{emptyPath(len(t.Columns))}, nil
	}
	paths := make([]ScoredPath, 0, min(k, len(ways[last])))
	for w, end := range ways[last][:min(k, len(ways[last]))] {
		if math.IsNaN(end.score) || math.IsInf(end.score, 0) {
			return nil, fmt.Errorf("k best: path score %v: %w", end.score, ErrNonFinite)
		}
		p := emptyPath(len(t.Columns))
		p.Score = end.score
		for i := last; i >= 0; i-- {
			if ways[i] != nil {
				p.Candidates[i] = ways[i][w].at
				p.ChunkIDs[i] = t.Columns[i].ChunkIDs[ways[i][w].at]
				w = ways[i][w].previous
			}
		}
		paths = append(paths, p)
	}
	return paths, nil
}

// emptyPath is the path through turns without candidates.
func emptyPath(turns int) ScoredPath {
	return ScoredPath{ChunkIDs: make([]string, turns), Candidates: slices.Repeat([]int{-1}, turns)}
}
