package mapmatched

import (
	"fmt"
	"math"
)

// Normalization is how the raw scores of a turn become comparable.
type Normalization string

// The normalisations.
const (
	// NormalizeZScore is (r − mean)/std with the population standard
	// deviation; all scores equal gives 0 for each. It is the default.
	NormalizeZScore Normalization = "zscore"
	// NormalizeCenter is r − mean; all scores equal gives 0 for each.
	NormalizeCenter Normalization = "center"
	// NormalizeNone leaves scores as they are.
	NormalizeNone Normalization = "none"
)

// Normalize returns the normalised scores of one turn. Mean and variance are
// exactly rounded sums, and finite input does not overflow on the way. An
// error (ErrNonFinite) says which score, or which result, is not finite.
func Normalize(scores []float64, n Normalization) ([]float64, error) {
	for i, r := range scores {
		if math.IsNaN(r) || math.IsInf(r, 0) {
			return nil, fmt.Errorf("score %d is %v: %w", i, r, ErrNonFinite)
		}
	}
	out := make([]float64, len(scores))
	if err := normalizeInto(out, scores, n); err != nil {
		return nil, err
	}
	return out, nil
}

// normalizeInto is Normalize for scores known to be finite; dst may not
// overlap them.
func normalizeInto(dst, scores []float64, n Normalization) error {
	if n == NormalizeNone {
		copy(dst, scores)
		return nil
	}
	if n != NormalizeZScore && n != NormalizeCenter {
		return fmt.Errorf("score normalization %q: %w: use zscore, center or none", n, ErrInvalidConfig)
	}
	clear(dst)
	if allEqual(scores) {
		return nil
	}
	// Work near 1 when the sums or squares could leave the range of a
	// float64. Scaling by a power of two is exact and cancels out.
	largest := 0.0
	for _, r := range scores {
		largest = max(largest, math.Abs(r))
	}
	exponent := 0
	if _, e := math.Frexp(largest); e > 480 || e < -400 {
		exponent = e
	}
	count := float64(len(scores))
	for i, r := range scores {
		dst[i] = math.Ldexp(r, -exponent)
	}
	mean := exactSum(dst) / count
	for i, r := range dst {
		dst[i] = (r - mean) + 0 // adding 0 turns −0 into 0
	}
	if n == NormalizeCenter {
		for i, d := range dst {
			dst[i] = math.Ldexp(d, exponent) + 0
			if math.IsInf(dst[i], 0) {
				return fmt.Errorf("centered score %d: %w", i, ErrNonFinite)
			}
		}
		return nil
	}
	squares := make([]float64, len(dst))
	for i, d := range dst {
		squares[i] = float64(d * d)
	}
	std := math.Sqrt(exactSum(squares) / count)
	for i, d := range dst {
		dst[i] = d/std + 0
	}
	return nil
}

func allEqual(scores []float64) bool {
	for _, r := range scores {
		if r != scores[0] {
			return false
		}
	}
	return true
}

// exactSum returns the sum of values rounded once, as if computed exactly
// (Shewchuk 1997, "Adaptive precision floating-point arithmetic": the running
// sum is kept as non-overlapping partial sums of growing size). The values are
// finite and their sum must be in range.
func exactSum(values []float64) float64 {
	var room [16]float64
	partials := room[:0]
	for _, x := range values {
		kept := 0
		for _, y := range partials {
			if math.Abs(x) < math.Abs(y) {
				x, y = y, x
			}
			high := x + y
			if low := y - (high - x); low != 0 {
				partials[kept] = low
				kept++
			}
			x = high
		}
		partials = append(partials[:kept], x)
	}
	if len(partials) == 0 {
		return 0
	}
	last := len(partials) - 1
	sum, rest := partials[last], 0.0
	for last > 0 {
		last--
		x := sum
		sum = x + partials[last]
		if rest = partials[last] - (sum - x); rest != 0 {
			break
		}
	}
	// An exact tie was rounded to even; what is left below decides whether
	// that was the right side.
	if last > 0 && (rest < 0) == (partials[last-1] < 0) {
		double := rest * 2
		if up := sum + double; double == up-sum {
			sum = up
		}
	}
	return sum
}

// EmissionEntropy is the Shannon entropy in nats of the softmax of weighted
// emission scores (λ·s): how ambiguous a turn is when taken alone. It is 0 for
// one candidate or none and at most ln(len(weighted)).
func EmissionEntropy(weighted []float64) float64 {
	if len(weighted) < 2 {
		return 0
	}
	top := math.Inf(-1)
	for _, w := range weighted {
		top = max(top, w)
	}
	terms := make([]float64, len(weighted))
	for i, w := range weighted {
		terms[i] = Exp(w - top)
	}
	total := exactSum(terms)
	for i, t := range terms {
		terms[i] = 0
		if p := t / total; p > 0 {
			terms[i] = float64(p * Log(p))
		}
	}
	return max(-exactSum(terms), 0) + 0 // adding 0 turns −0 into 0
}
