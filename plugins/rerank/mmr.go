package rerank

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/mapmatched/mmplug/mapmatched"
)

// DefaultLambda is the λ of an MMR that does not say another.
const DefaultLambda = 0.7

// MMR reranks by maximal marginal relevance (Carbonell & Goldstein 1998): one
// after the other it selects the candidate d with the greatest
//
//	λ·sim(q, d) − (1−λ)·max over the selected s of sim(d, s)
//
// which is also its score; the maximum is 0 while nothing is selected. Ties go
// to the candidate that comes first. Scores never rise from one selection to
// the next, and sorting the candidates by score, equal ones in the order given,
// is the order of selection.
//
// sim is the cosine of the term counts of two texts (see [Terms]), from 0 to 1,
// and 0 where one has no terms. Where Vectors is set, the query has a vector and
// the store has one for every candidate, it is the cosine of these vectors,
// from −1 to 1, instead. The zero value is ready for use.
type MMR struct {
	// Lambda is λ, from 0 (only variety) to 1 (only relevance); nil means
	// DefaultLambda.
	Lambda *float64
	// Vectors knows the vectors of the chunks; nil means terms are compared.
	Vectors mapmatched.VectorFetcher
}

// Validate reports what is wrong with the options.
func (m MMR) Validate() error {
	if l := m.lambda(); !(l >= 0 && l <= 1) {
		return fmt.Errorf("lambda is %v: it must be from 0 to 1", l)
	}
	return nil
}

func (m MMR) lambda() float64 {
	if m.Lambda == nil {
		return DefaultLambda
	}
	return *m.Lambda
}

// Rerank implements mapmatched.Reranker in O(len(c)²) comparisons. A vector
// that is not finite, or of another dimension than the query's, is an error.
func (m MMR) Rerank(ctx context.Context, q mapmatched.Query, c []mapmatched.Candidate) ([]mapmatched.Scored, error) {
	const adapter = "mmr"
	if err := m.Validate(); err != nil {
		return nil, &mapmatched.Error{Op: "rerank", Adapter: adapter, Kind: mapmatched.KindInvalid, Err: err}
	}
	if err := check(adapter, c); err != nil {
		return nil, err
	}
	points, err := m.points(ctx, q, c)
	if err != nil {
		return nil, err
	}
	lambda := m.lambda()
	query := points[len(c)]
	points = points[:len(c)]
	relevance := make([]float64, len(c))
	nearest := make([]float64, len(c)) // similarity to the nearest selected
	selected := make([]bool, len(c))
	for i, p := range points {
		relevance[i] = float64(lambda * cosine(query, p))
	}
	scored := make([]mapmatched.Scored, 0, len(c))
	for range c {
		if err := done(ctx, adapter); err != nil {
			return nil, err
		}
		best, bestValue := -1, 0.0
		for i := range points {
			if selected[i] {
				continue
			}
			if v := relevance[i] - float64((1-lambda)*nearest[i]); best < 0 || v > bestValue {
				best, bestValue = i, v
			}
		}
		selected[best] = true
		scored = append(scored, mapmatched.Scored{ChunkID: c[best].ChunkID, Score: bestValue})
		for i, p := range points {
			if selected[i] {
				continue
			}
			if s := cosine(p, points[best]); len(scored) == 1 || s > nearest[i] {
				nearest[i] = s
			}
		}
	}
	return scored, nil
}

// point is something to compare: coordinates on ascending axes, the others 0.
type point struct {
	axes   []int // nil when there is a coordinate on every axis
	values []float64
	square float64 // squared length
}

// points are the candidates and, last, the query.
func (m MMR) points(ctx context.Context, q mapmatched.Query, c []mapmatched.Candidate) ([]point, error) {
	if m.Vectors != nil && len(q.Vector) > 0 {
		points, err := m.vectors(ctx, q, c)
		if points != nil || err != nil {
			return points, err
		}
	}
	axis := map[string]int{}
	points := make([]point, 0, len(c)+1)
	for i := range c {
		points = append(points, countTerms(c[i].Text, axis))
	}
	return append(points, countTerms(q.Text, axis)), nil
}

// vectors are the points of the store, nil when one is missing.
func (m MMR) vectors(ctx context.Context, q mapmatched.Query, c []mapmatched.Candidate) ([]point, error) {
	ids := make([]string, len(c))
	for i := range c {
		ids[i] = c[i].ChunkID
	}
	stored, err := m.Vectors.Vectors(ctx, ids)
	if err != nil {
		return nil, err
	}
	invalid := func(format string, args ...any) error {
		return &mapmatched.Error{Op: "rerank", Adapter: "mmr", Kind: mapmatched.KindInvalid, Err: fmt.Errorf(format, args...)}
	}
	if len(stored) != len(c) {
		return nil, invalid("the store returned %d vectors for %d chunks", len(stored), len(c))
	}
	points := make([]point, 0, len(c)+1)
	for i, v := range append(stored[:len(c):len(c)], q.Vector) {
		name := "of the query"
		if i < len(c) {
			name = fmt.Sprintf("of chunk %q", ids[i])
		}
		if v == nil {
			return nil, nil
		}
		if len(v) != len(q.Vector) {
			return nil, invalid("the vector %s has %d dimensions, that of the query %d: embed both by one model", name, len(v), len(q.Vector))
		}
		p := point{values: make([]float64, len(v))}
		for j, x := range v {
			p.values[j] = float64(x)
			p.square += float64(p.values[j] * p.values[j])
		}
		if math.IsNaN(p.square) || math.IsInf(p.square, 0) {
			return nil, invalid("the vector %s: %w", name, mapmatched.ErrNonFinite)
		}
		points = append(points, p)
	}
	return points, nil
}

// countTerms counts the terms of a text. axis numbers the terms.
func countTerms(text string, axis map[string]int) point {
	counts := map[int]float64{}
	for _, term := range Terms(text) {
		a, known := axis[term]
		if !known {
			a = len(axis)
			axis[term] = a
		}
		counts[a]++
	}
	p := point{axes: slices.Sorted(maps.Keys(counts)), values: make([]float64, len(counts))}
	for i, a := range p.axes {
		p.values[i] = counts[a]
		p.square += float64(counts[a] * counts[a])
	}
	return p
}

// cosine of two points, 0 where one has no length.
func cosine(a, b point) float64 {
	product := 0.0
	if a.axes == nil {
		for i, x := range a.values {
			product += float64(x * b.values[i])
		}
	}
	for i, j := 0, 0; i < len(a.axes) && j < len(b.axes); {
		switch {
		case a.axes[i] < b.axes[j]:
			i++
		case a.axes[i] > b.axes[j]:
			j++
		default:
			product += float64(a.values[i] * b.values[j])
			i++
			j++
		}
	}
	if product == 0 {
		return 0
	}
	return max(-1, min(1, product/math.Sqrt(a.square*b.square)))
}
