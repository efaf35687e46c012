package eval

import (
	"math/rand/v2"
	"slices"
)

// Confidence is the share of the draws that an interval covers.
const Confidence = 0.95

// bootstrapStream is the second seed of the generator, so that other uses of one
// seed draw other numbers.
const bootstrapStream = 0x626f6f7473747261

// Bootstrap is a set of draws of conversations with replacement, each as many as
// there are. Everything is measured on the same draws, so differences are
// paired.
type Bootstrap struct {
	draws [][]int32 // indexes of conversations
}

// NewBootstrap draws samples times from so many conversations, by the PCG
// generator of math/rand/v2.
func NewBootstrap(conversations, samples int, seed uint64) *Bootstrap {
	random := rand.New(rand.NewPCG(seed, bootstrapStream))
	b := &Bootstrap{make([][]int32, samples)}
	for i := range b.draws {
		b.draws[i] = make([]int32, conversations)
		for j := range b.draws[i] {
			b.draws[i][j] = int32(random.IntN(conversations))
		}
	}
	return b
}

// Interval is a mean over turns with its percentile bootstrap interval.
type Interval struct {
	Mean float64 `json:"mean"`
	Low  float64 `json:"low"`  // 2.5% of the draws are below
	High float64 `json:"high"` // 2.5% of the draws are above
}

// sample is a metric of every draw, and of the data itself.
type sample struct {
	mean  float64
	draws []float64 // of the draws that have a turn of the slice, in order
}

// sums are the metrics of the turns of a slice, by conversation.
type sums struct {
	scores []Scores
	turns  []float64
}

func sumsOf(r *Results, s *Slice) sums {
	u := sums{make([]Scores, len(r.Conversations)), make([]float64, len(r.Conversations))}
	for i, list := range r.Conversations {
		for j := range list {
			if !s.In[i][j] {
				continue
			}
			u.turns[i]++
			for k, x := range list[j].Scores {
				u.scores[i][k] += x
			}
		}
	}
	return u
}

// samples measures the turns of a slice on the data and on every draw: the mean
// over the turns of the drawn conversations. A draw without a turn of the slice
// is left out.
func (b *Bootstrap) samples(r *Results, s *Slice) [len(Scores{})]sample {
	u := sumsOf(r, s)
	everyone := make([]int32, len(u.turns))
	for i := range everyone {
		everyone[i] = int32(i)
	}
	var out [len(Scores{})]sample
	all, _ := u.mean(everyone)
	for k := range out {
		out[k] = sample{all[k], make([]float64, 0, len(b.draws))}
	}
	for _, draw := range b.draws {
		if m, any := u.mean(draw); any {
			for k := range out {
				out[k].draws = append(out[k].draws, m[k])
			}
		}
	}
	return out
}

// mean is that of the turns of conversations, and whether there are any.
func (u *sums) mean(conversations []int32) (mean Scores, any bool) {
	turns := 0.0
	for _, i := range conversations {
		turns += u.turns[i]
		for k, x := range u.scores[i] {
			mean[k] += x
		}
	}
	for k := range mean {
		mean[k] /= max(turns, 1)
	}
	return mean, turns > 0
}

// interval is the percentile interval of a sample.
func (s sample) interval() Interval {
	sorted := slices.Sorted(slices.Values(s.draws))
	tail := (1 - Confidence) / 2
	return Interval{s.mean, quantile(sorted, tail), quantile(sorted, 1-tail)}
}

// minus is the difference of two samples of one slice, draw by draw.
func (s sample) minus(other sample) sample {
	d := sample{s.mean - other.mean, make([]float64, len(s.draws))}
	for i := range d.draws {
		d.draws[i] = s.draws[i] - other.draws[i]
	}
	return d
}

// quantile of ascending values, interpolated between the two nearest (type 7 of
// Hyndman and Fan 1996); 0 of none.
func quantile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	at := q * float64(len(sorted)-1)
	low := int(at)
	if low+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	return sorted[low] + float64((at-float64(low))*(sorted[low+1]-sorted[low]))
}

// Delta is the paired difference of a metric between two results of one data
// set on a slice: a − b.
func (b *Bootstrap) Delta(m Metric, x, y *Results, s *Slice) Interval {
	k := slices.Index(Metrics(), m)
	return b.samples(x, s)[k].minus(b.samples(y, s)[k]).interval()
}
