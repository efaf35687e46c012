package qdranttest

import "math"

// diversify chooses points by maximal marginal relevance: the most similar to
// the query first, then again and again the one with the largest
//
//	λ·similarity(query) − (1 − λ)·max similarity(chosen)
//
// where similarities are higher-is-better (minus the distance, squared for
// Euclid) and λ is 1 − diversity. Points keep the scores they came with, so the
// list is not sorted by score. Candidates without the vector are dropped. As on
// the real server the last of equal values wins, where a chosen candidate leaves
// its place to the last one.
func (v *view) diversify(using string, query vector, candidates []scored, lambda float32, limit int) []scored {
	known := map[pointID]bool{}
	var list []scored
	for _, c := range candidates {
		if _, has := c.p.vectors[using]; has && !known[c.p.id] {
			known[c.p.id] = true
			list = append(list, c)
		}
	}
	if len(list) < 2 {
		return list[:min(limit, len(list))]
	}
	d := v.vectors.distance(using)
	between := func(a, b vector) float32 {
		if a.sparse != nil {
			dot, _ := dotSparse(a.sparse, b.sparse)
			return dot
		}
		return pairSimilarity(d, a, b)
	}
	relevance := make([]float32, len(list))
	closest := make([]float32, len(list)) // to a chosen point
	remaining := make([]int, len(list))
	for i, c := range list {
		relevance[i] = between(query, c.p.vectors[using])
		closest[i] = float32(math.Inf(-1))
		remaining[i] = i
	}
	var chosen []scored
	for len(chosen) < limit && len(remaining) > 0 {
		best, bestValue := -1, float32(0)
		for at, i := range remaining {
			value := relevance[i]
			if len(chosen) > 0 {
				value = lambda*relevance[i] - (1-lambda)*closest[i]
			}
			if best < 0 || compareScores(value, bestValue) >= 0 {
				best, bestValue = at, value
			}
		}
		taken := remaining[best]
		chosen = append(chosen, list[taken])
		remaining[best] = remaining[len(remaining)-1]
		remaining = remaining[:len(remaining)-1]
		for _, i := range remaining {
			if s := between(list[i].p.vectors[using], list[taken].p.vectors[using]); compareScores(s, closest[i]) > 0 {
				closest[i] = s
			}
		}
	}
	return chosen
}
