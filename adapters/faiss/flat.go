package faiss

import (
	"context"
	"math"

	"github.com/mapmatched/mmplug/internal/kernel"
)

// checkEvery is how many vectors a search compares between two looks at its
// context.
const checkEvery = 1024

// flat are vectors one after the other.
type flat struct {
	head header
	data []float32
}

func (f *flat) header() *header    { return &f.head }
func (f *flat) len() int           { return f.head.count }
func (f *flat) label(at int) int64 { return int64(at) }
func (f *flat) describe() string   { return typeNames[f.head.code] }
func (f *flat) row(at int) []float32 {
	return rowOf(f.data, at, f.head.dimension)
}

func (f *flat) search(ctx context.Context, query []float32, k int, name func(int64) int64) ([]Hit, error) {
	b := newBest(k, f.len())
	id := func(at int) int64 { return named(name, int64(at)) }
	if err := newScan(f.head.metric, query).rows(ctx, b, f.data, id); err != nil {
		return nil, err
	}
	return b.sorted(), nil
}

func rowOf(data []float32, at, dimension int) []float32 {
	return data[at*dimension : (at+1)*dimension : (at+1)*dimension]
}

func named(name func(int64) int64, label int64) int64 {
	if name == nil {
		return label
	}
	return name(label)
}

// score compares two vectors: their inner product as kernel.Dot has it, or the
// negated square of their Euclidean distance, summed in float64. It has the
// same bits on every machine.
func score(metric Metric, a, b []float32) float64 {
	if metric == MetricInnerProduct {
		return float64(kernel.Dot(a, b))
	}
	return 0 - squaredL2(a, b) // not −x, which makes −0 of 0
}

// squaredL2 is the square of the Euclidean distance of two vectors of one
// length.
func squaredL2(a, b []float32) float64 {
	b = b[:len(a)]
	var s0, s1, s2, s3 float64
	for len(a) >= 4 && len(b) >= 4 {
		d0 := float64(a[0]) - float64(b[0])
		d1 := float64(a[1]) - float64(b[1])
		d2 := float64(a[2]) - float64(b[2])
		d3 := float64(a[3]) - float64(b[3])
		s0 += float64(d0 * d0)
		s1 += float64(d1 * d1)
		s2 += float64(d2 * d2)
		s3 += float64(d3 * d3)
		a, b = a[4:], b[4:]
	}
	for i := range a {
		d := float64(a[i]) - float64(b[i])
		s0 += float64(d * d)
	}
	return (s0 + s1) + (s2 + s3)
}

// scan compares one query with rows of vectors.
type scan struct {
	metric Metric
	query  []float32
	length float64 // of the query, squared, as kernel.Dot has it
	bounds errorBounds
}

func newScan(metric Metric, query []float32) *scan {
	return &scan{
		metric: metric, query: query, length: float64(kernel.Dot(query, query)),
		bounds: newErrorBounds(len(query), kernel.DotError(len(query))),
	}
}

// rows offers all rows of a matrix to b. id names a row.
func (s *scan) rows(ctx context.Context, b *best, data []float32, id func(at int) int64) error {
	if b.limit == 0 {
		return ctx.Err()
	}
	d := len(s.query)
	count := len(data) / d
	for from := 0; from < count; from += checkEvery {
		if err := ctx.Err(); err != nil {
			return err
		}
		for at := from; at < min(from+checkEvery, count); at++ {
			row := rowOf(data, at, d)
			if s.metric == MetricInnerProduct {
				v := float64(kernel.Dot(s.query, row))
				if b.full() && v < b.worst().Score {
					continue
				}
				if err := offer(b, id(at), v); err != nil {
					return err
				}
				continue
			}
			// The kernel knows inner products alone: they rule out most rows, and
			// the rest is measured.
			if b.full() {
				length := float64(kernel.Dot(row, row))
				least := s.bounds.leastSquaredL2(s.length, length, float64(kernel.Dot(s.query, row)))
				if least > -b.worst().Score {
					continue
				}
			}
			if err := offer(b, id(at), score(s.metric, s.query, row)); err != nil {
				return err
			}
		}
	}
	return nil
}

// offer pushes a hit after a check of its ID and that its score is finite.
func offer(b *best, id int64, score float64) error {
	if err := checkID(id); err != nil {
		return err
	}
	if math.IsNaN(score) || math.IsInf(score, 0) {
		return damaged("the score of ID %d is %v: its vector, or its product with the query, is not finite", id, score)
	}
	b.push(Hit{ID: id, Score: score})
	return nil
}

// checkID reports the ID of a vector that has none. Those of the file were
// checked when it was opened.
func checkID(id int64) error {
	if id < 0 {
		return damaged("a vector has no valid ID: the file was changed while it was open; write another file and rename it, then open that")
	}
	return nil
}

// errorBounds bound how far products in float32 are from the exact ones.
type errorBounds struct {
	relative float64 // to the product of the lengths
	absolute float64 // where numbers are so small that they lose digits
}

// newErrorBounds makes the bounds for products of a relative error, and lengths
// by kernel.Dot.
func newErrorBounds(dimension int, relative float64) errorBounds {
	return errorBounds{
		relative: relative + kernel.DotError(dimension),
		absolute: math.Ldexp(float64(dimension), -140),
	}
}

// tooLong is from where on sums of squares in float32 may overflow on the way.
const tooLong = 1e38

// leastSquaredL2 returns what the square of a distance is at least, given the
// squares of the lengths and the inner product: |a|² + |b|² − 2ab, less three
// times the error, which is relative to |a|² + |b|² ≥ 2|a||b|.
func (e errorBounds) leastSquaredL2(a, b, product float64) float64 {
	sum := a + b
	if !(sum < tooLong) {
		return math.Inf(-1)
	}
	return sum - 2*product - 4*e.relative*sum - e.absolute
}
