package langchaingo

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/mapmatched/mmplug/mapmatched"
)

// ScoreKind says what the Score of a retriever's documents is. Scores become
// raw emissions, of which higher is better; a float32 counts as the shortest
// decimal that it prints as, so a distance of 0.1 is a score of 0.9.
type ScoreKind string

// The kinds, with the emission for a score x.
const (
	// ScoreSimilarity is a number of which higher is better, such as a cosine,
	// an inner product or BM25: x.
	ScoreSimilarity ScoreKind = "similarity"
	// ScoreCertainty is Weaviate's (1 + cosine)/2, from 0 to 1: x.
	ScoreCertainty ScoreKind = "certainty"
	// ScoreCosineDistance is 1 − cosine, from 0 to 2: 1 − x.
	ScoreCosineDistance ScoreKind = "distance:cosine"
	// ScoreEuclideanDistance is at least 0: −x.
	ScoreEuclideanDistance ScoreKind = "distance:euclidean"
	// ScoreSquaredEuclideanDistance is at least 0: −x.
	ScoreSquaredEuclideanDistance ScoreKind = "distance:squared-euclidean"
	// ScoreManhattanDistance is at least 0: −x.
	ScoreManhattanDistance ScoreKind = "distance:manhattan"
	// ScoreNegativeInnerProduct is an inner product with its sign changed, so
	// that lower is better: −x.
	ScoreNegativeInnerProduct ScoreKind = "distance:negative-inner-product"
	// ScoreNone is for retrievers that set no score. Emission is by rank, from
	// 1, in the order of the documents: −ln(rank) (rank_log_v1). As an energy
	// that is Zipf's law, p ∝ 1/rank: the first ranks differ most, all differ,
	// and the value of a rank does not depend on how many documents there are.
	// Documents of the same text have the rank of the first one.
	ScoreNone ScoreKind = "none"
)

// scoreKinds lists the kinds in the order to print them.
var scoreKinds = []ScoreKind{
	ScoreSimilarity, ScoreCertainty, ScoreCosineDistance, ScoreEuclideanDistance,
	ScoreSquaredEuclideanDistance, ScoreManhattanDistance, ScoreNegativeInnerProduct, ScoreNone,
}

// Validate refuses what is not one of the kinds, the empty one included.
func (k ScoreKind) Validate() error {
	names := make([]string, len(scoreKinds))
	for i, known := range scoreKinds {
		if k == known {
			return nil
		}
		names[i] = string(known)
	}
	return fmt.Errorf("%w: score kind %q; say what the scores of the documents are: one of %s",
		mapmatched.ErrInvalidConfig, string(k), strings.Join(names, ", "))
}

// slack is how far rounding may carry a score beyond the range of its kind.
const slack = 1e-3

// emission converts a score, or for ScoreNone a rank from 1, to a raw
// emission. A score outside the range of the kind is an error: the kind is
// wrong, then.
func (k ScoreKind) emission(score float32, rank int) (float64, error) {
	if k == ScoreNone {
		return 0 - mapmatched.Log(float64(rank)), nil
	}
	x := decimal(score)
	low, high := math.Inf(-1), math.Inf(1)
	switch k {
	case ScoreCertainty:
		low, high = 0, 1
	case ScoreCosineDistance:
		low, high = 0, 2
	case ScoreEuclideanDistance, ScoreSquaredEuclideanDistance, ScoreManhattanDistance:
		low = 0
	}
	if x < low-slack || x > high+slack {
		return 0, fmt.Errorf("%w: score %v is not of kind %q (%v to %v); say what the scores are with another kind",
			mapmatched.ErrInvalidConfig, x, string(k), low, high)
	}
	switch k {
	case ScoreSimilarity, ScoreCertainty:
		return x, nil
	case ScoreCosineDistance:
		return 1 - x, nil
	}
	return 0 - x, nil // 0 rather than −0
}

// decimal is the shortest decimal number that reads as x. Most stores send
// scores as decimals, which float32 then rounds.
func decimal(x float32) float64 {
	if x == float32(int32(x)) {
		return float64(x) + 0 // a whole number, 0 rather than −0
	}
	var buffer [24]byte
	d, err := strconv.ParseFloat(string(strconv.AppendFloat(buffer[:0], float64(x), 'g', -1, 32)), 64)
	if err != nil {
		return float64(x) // NaN and infinities parse; nothing else is printed
	}
	return d
}
