package mapmatched

import "math"

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
// from nothing when prev is nil. work holds len(c.From) numbers.
func (c *Column) forward(dst, prev, work []float64, beta, temperature float64) {
	c.logEmission(dst, temperature)
	if prev != nil {
		n := len(c.ChunkIDs)
		shared := 0.0
		if c.Distance == nil {
			for k, y := range c.From {
				work[k] = prev[y]
			}
			shared = logSumExp(work)
		}
		for x := range dst {
			incoming := shared
			if c.Distance != nil {
				for k, y := range c.From {
					work[k] = prev[y] - float64(beta*c.Distance[k*n+x])/temperature
				}
				incoming = logSumExp(work)
			}
			dst[x] += incoming
		}
	}
	normalizeLog(dst)
}

// backward computes the message to the candidates of the column before, of
// which there are len(dst), from the message that c has from its later turns.
// work holds len(c.ChunkIDs) numbers.
func (c *Column) backward(dst, later, work []float64, beta, temperature float64) {
	for y := range dst {
		dst[y] = math.Inf(-1)
	}
	n := len(c.ChunkIDs)
	gain := make([]float64, n)
	c.logEmission(gain, temperature)
	for x := range gain {
		gain[x] += later[x]
	}
	for k, y := range c.From {
		for x := range work {
			work[x] = gain[x]
			if c.Distance != nil {
				work[x] -= float64(beta*c.Distance[k*n+x]) / temperature
			}
		}
		dst[y] = logSumExp(work)
	}
	normalizeLog(dst)
}

// normalizeLog makes the probabilities whose logarithms are given sum to 1.
// When all of them vanished, which takes costs beyond 1e308, they are made
// even.
func normalizeLog(logs []float64) {
	total := logSumExp(logs)
	if math.IsInf(total, 0) || math.IsNaN(total) {
		for i := range logs {
			logs[i] = -Log(float64(len(logs)))
		}
		return
	}
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
