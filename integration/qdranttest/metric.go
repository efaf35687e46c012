package qdranttest

import (
	"math"

	"github.com/qdrant/go-client/qdrant"
)

// similarity compares two rows so that higher is better under every metric: the
// distances are negative, and Euclid is squared.
func similarity(d qdrant.Distance, a, b []float32) float32 {
	var sum float32
	switch d {
	case qdrant.Distance_Euclid:
		for i, x := range a {
			sum -= (x - b[i]) * (x - b[i])
		}
	case qdrant.Distance_Manhattan:
		for i, x := range a {
			sum -= float32(math.Abs(float64(x - b[i])))
		}
	default:
		for i, x := range a {
			sum += x * b[i]
		}
	}
	return sum
}

// smallBetter says whether scores are distances.
func smallBetter(d qdrant.Distance) bool {
	return d == qdrant.Distance_Euclid || d == qdrant.Distance_Manhattan
}

// visible turns a similarity into the score clients see.
func visible(d qdrant.Distance, s float32) float32 {
	switch d {
	case qdrant.Distance_Euclid:
		return float32(math.Sqrt(math.Abs(float64(s))))
	case qdrant.Distance_Manhattan:
		return float32(math.Abs(float64(s)))
	}
	return s
}

// passes says whether a visible score is better than the threshold of a vector
// search. A score that equals it is not.
func passes(d qdrant.Distance, score, threshold float32) bool {
	if smallBetter(d) {
		return score < threshold
	}
	return score > threshold
}

// maxSim is the sum over the query's rows of the best similarity to a row of the
// stored multivector.
func maxSim(d qdrant.Distance, query, stored [][]float32) float32 {
	var sum float32
	for _, q := range query {
		best := float32(math.Inf(-1))
		for _, row := range stored {
			if s := similarity(d, q, row); s > best {
				best = s
			}
		}
		sum += best
	}
	return sum
}

// dotSparse is the dot product; overlap says whether an index is in both.
func dotSparse(a, b *sparseVector) (sum float32, overlap bool) {
	for i, j := 0, 0; i < len(a.indices) && j < len(b.indices); {
		switch {
		case a.indices[i] < b.indices[j]:
			i++
		case a.indices[i] > b.indices[j]:
			j++
		default:
			sum += a.values[i] * b.values[j]
			overlap = true
			i++
			j++
		}
	}
	return sum, overlap
}

// inverseFrequency is the idf weight of an index that df of n vectors have:
// ln(1 + (n − df + 0.5)/(df + 0.5)).
func inverseFrequency(n, df int) float32 {
	return float32(math.Log(float64((float32(n)-float32(df)+0.5)/(float32(df)+0.5) + 1)))
}

// compareScores orders floats with NaN above everything else, as Qdrant does.
func compareScores(a, b float32) int {
	switch {
	case a != a && b != b:
		return 0
	case a != a:
		return 1
	case b != b:
		return -1
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}
