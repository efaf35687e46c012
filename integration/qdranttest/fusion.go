package qdranttest

import "math"

// reciprocalRank joins lists by reciprocal rank. A point at position i (from 0) of a list
// with weight w adds 1/((i+1)/w + k − 1), which is 1/(i + k) for w = 1; a weight
// of 0 or less adds nothing.
func reciprocalRank(lists [][]scored, k uint32, weights []float32) ([]scored, error) {
	if len(weights) > 0 && len(weights) != len(lists) {
		return nil, badInput("Validation failed: Number of weights in RRF should match number of pre-fetches: got %d, expected %d", len(weights), len(lists))
	}
	return join(lists, func(list, position int) float32 {
		weight := float32(1)
		if len(weights) > 0 {
			weight = weights[list]
		}
		if weight <= 0 {
			return 0
		}
		return 1 / (float32(position+1)/weight + float32(k) - 1)
	}), nil
}

// distributionBased joins lists by the sum of their normalised scores:
// (s − μ + 3σ)/(6σ) with the mean and the sample standard deviation of the
// list; 0.5 where σ is 0, as for a list of one.
func distributionBased(lists [][]scored) []scored {
	return join(lists, func(list, position int) float32 {
		return normalisedScore(lists[list], lists[list][position].score)
	})
}

func normalisedScore(list []scored, score float32) float32 {
	if len(list) < 2 {
		return 0.5
	}
	var mean, squares float32
	for i, s := range list { // Welford's method
		before := s.score - mean
		mean += before / float32(i+1)
		squares += before * (s.score - mean)
	}
	deviation := float32(math.Sqrt(float64(squares / float32(len(list)-1))))
	low, high := mean-3*deviation, mean+3*deviation
	if low == high {
		return 0.5
	}
	return (score - low) / (high - low)
}

// join adds up what each list gives a point, best first, equal sums by ID.
func join(lists [][]scored, share func(list, position int) float32) []scored {
	at := map[pointID]int{}
	var joined []scored
	for l, list := range lists {
		for i, s := range list {
			if j, seen := at[s.p.id]; seen {
				joined[j].score += share(l, i)
				continue
			}
			at[s.p.id] = len(joined)
			s.score = share(l, i)
			joined = append(joined, s)
		}
	}
	sortScored(joined)
	return joined
}
