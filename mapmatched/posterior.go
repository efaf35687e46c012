package mapmatched

import (
	"math"
	"slices"
)

// The path posterior gives a path the probability exp(score/τ), normalised
// over all paths that the commitments leave open. forward and backward hold
// the messages of the forward–backward algorithm (Baum et al. 1970) as
// logarithms; forward messages are normalised to sum to 1 at every turn.

// logEmission is λ·s/τ shifted so that the best candidate has 0, which changes
// no posterior and cannot overflow.
func (c *Column) logEmission(dst []float64, temperature float64) {
	top := math.Inf(-1)
	for _, e := range c.Emission {
		top = max(top, e)
	}
	for x, e := range c.Emission {
		dst[x] = (e - top) / temperature
	}
}

// forward computes this column's message from that of the column before, or
// from nothing when prev is nil. work holds len(c.From)+len(c.ChunkIDs) numbers.
func (c *Column) forward(dst, prev, work []float64, beta, temperature float64) {
	c.logEmission(dst, temperature)
	if prev != nil && c.Distance != nil { // what all paths pay alike cancels out
		from, sums := work[:len(c.From)], work[len(c.From):]
		for k, y := range c.From {
			from[k] = Exp(prev[y])
		}
		clear(sums)
		moves := c.moves(beta, temperature)
		n := len(c.ChunkIDs)
		for k, p := range from {
			for x, d := range c.Distance[k*n : (k+1)*n] {
				sums[x] += float64(p * moves.weight(d))
			}
		}
		for x, sum := range sums {
			if sum >= vanishing {
				dst[x] += Log(sum)
				continue
			}
			for k, y := range c.From {
				from[k] = prev[y] + moves.log(c.Distance[k*n+x])
			}
			dst[x] += logSumExp(from)
			for k, y := range c.From { // as it was
				from[k] = Exp(prev[y])
			}
		}
	}
	normalizeLog(dst)
}

// backward computes the message to the candidates of the column before, of
// which there are len(dst), from the message that c has from its later turns.
// work holds 2·len(c.ChunkIDs) numbers.
func (c *Column) backward(dst, later, work []float64, beta, temperature float64) {
	for y := range dst {
		dst[y] = math.Inf(-1)
	}
	n := len(c.ChunkIDs)
	gain, onward := work[:n], work[n:]
	c.logEmission(gain, temperature)
	for x := range gain {
		gain[x] += later[x]
	}
	normalizeLog(gain)
	for x, l := range gain {
		onward[x] = Exp(l)
	}
	moves := c.moves(beta, temperature)
	for k, y := range c.From {
		if c.Distance == nil {
			dst[y] = 0
			continue
		}
		row := c.Distance[k*n : (k+1)*n]
		sum := 0.0
		for x, d := range row {
			sum += float64(onward[x] * moves.weight(d))
		}
		if sum >= vanishing {
			dst[y] = Log(sum)
			continue
		}
		terms := make([]float64, n)
		for x, d := range row {
			terms[x] = gain[x] + moves.log(d)
		}
		dst[y] = logSumExp(terms)
	}
	normalizeLog(dst)
}

// vanishing is a sum of products of probabilities below which too many of them
// may have become 0, so that it is worked out in logarithms.
const vanishing = 1e-280

// moves is exp(−β·d/τ) for the distances of a column, up to a factor that is
// common to all of them: the nearest move weighs 1. The farthest distance,
// which most pairs have, is looked up.
type moves struct {
	rate, near, far, farWeight float64
}

func (c *Column) moves(beta, temperature float64) moves {
	if len(c.Distance) == 0 {
		return moves{}
	}
	m := moves{rate: beta / temperature, near: slices.Min(c.Distance), far: slices.Max(c.Distance)}
	m.farWeight = Exp(m.log(m.far))
	return m
}

func (m *moves) log(d float64) float64 {
	if d == m.near {
		return 0 // also where the rate is beyond the range of a float64
	}
	return -float64(m.rate * (d - m.near))
}

func (m *moves) weight(d float64) float64 {
	switch d {
	case m.far:
		return m.farWeight
	case m.near:
		return 1
	}
	return Exp(m.log(d))
}

// normalizeLog makes the probabilities whose logarithms are given sum to 1.
// When all of them vanished, which takes costs beyond 1e308, they are made
// even.
func normalizeLog(logs []float64) {
	top := slices.Max(logs)
	if math.IsInf(top, 0) || math.IsNaN(top) {
		for i := range logs {
			logs[i] = -Log(float64(len(logs)))
		}
		return
	}
	for i := range logs { // first, so that a large top does not absorb the rest
		logs[i] -= top
	}
	total := logSumExp(logs)
	for i := range logs {
		logs[i] -= total
	}
}

// logSumExp is ln Σ exp(v), −Inf for no values.
func logSumExp(values []float64) float64 {
	top := math.Inf(-1)
	for _, v := range values {
		top = max(top, v)
	}
	if math.IsInf(top, 0) || math.IsNaN(top) {
		return top
	}
	total := 0.0
	for _, v := range values {
		if d := v - top; d > -746 { // exp is 0 below
			total += Exp(d)
		}
	}
	return top + Log(total)
}

// logEntropy is the entropy in nats of probabilities given as logarithms.
func logEntropy(logs []float64) float64 {
	entropy := 0.0
	for _, l := range logs {
		if p := Exp(l); p > 0 {
			entropy -= float64(p * l)
		}
	}
	return max(entropy, 0) + 0
}
