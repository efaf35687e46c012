package lexical

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/mapmatched/mmplug/adapters/embedded/internal/topk"
	"github.com/mapmatched/mmplug/mapmatched"
)

// WeightedTerm is a term of a query, spelled as [Analyze] spells it. The
// weight multiplies the impact of the term; it is finite and not negative, and
// 0 leaves the term out.
type WeightedTerm struct {
	Term   string
	Weight float64
}

// Hit is a chunk, by position in the corpus, with its score.
type Hit = topk.Hit

// QueryTerms returns the distinct terms of a text in ascending order, each with
// the number of times the text has it for a weight.
func QueryTerms(text string) []WeightedTerm {
	words := Analyze(text)
	slices.Sort(words)
	var terms []WeightedTerm
	for _, w := range words {
		if n := len(terms); n > 0 && terms[n-1].Term == w {
			terms[n-1].Weight++
			continue
		}
		terms = append(terms, WeightedTerm{w, 1})
	}
	return terms
}

// accumulator is the sum of a chunk for the search that stamped it.
type accumulator struct {
	sum   float64
	stamp uint32
}

// accumulators are the working memory of one search at a time.
type accumulators struct {
	sums    []accumulator
	stamp   uint32
	touched []uint32 // chunks with a sum, in order of first touch
}

// begin makes all sums of earlier searches invalid.
func (a *accumulators) begin() {
	a.touched = a.touched[:0]
	a.stamp++
	if a.stamp == 0 { // wrapped: stamps of 2³² searches ago would look current
		clear(a.sums)
		a.stamp = 1
	}
}

// list is a term of a query with its postings.
type list struct {
	WeightedTerm
	postings
	most float64 // what the term adds to a score at most
	rest float64 // what it and the terms after it add at most
}

// lists returns the terms of a query in the order in which they are summed.
func (x *Index) lists(terms []WeightedTerm) ([]list, error) {
	merged, err := merge(terms)
	if err != nil {
		return nil, err
	}
	out := make([]list, 0, len(merged))
	for _, t := range merged {
		p, err := x.lookup(t.Term)
		if err != nil {
			return nil, err
		}
		if len(p.chunks) > 0 {
			out = append(out, list{WeightedTerm: t, postings: p, most: float64(t.Weight * p.greatest)})
		}
	}
	slices.SortStableFunc(out, func(a, b list) int { return cmp.Compare(b.most, a.most) })
	rest := 0.0
	for i, l := range slices.Backward(out) {
		rest += l.most
		out[i].rest = rest
	}
	return out, nil
}

// slack covers the rounding of sums wherever a bound decides: it is far more
// than a sum of as many terms as a query can have loses.
const slack = 1 + 1e-6

// Search returns the at most limit best chunks for the terms, by descending
// score and then ascending position. Chunks that have none of the terms are
// not returned, and a limit below 1 returns none. A term that is given twice
// counts with the sum of its weights.
//
// Errors: a weight that is negative (mapmatched.ErrInvalidConfig) or not finite,
// or a sum that is not finite (mapmatched.ErrNonFinite), the error of ctx,
// ErrDamaged.
func (x *Index) Search(ctx context.Context, terms []WeightedTerm, limit int) ([]Hit, error) {
	lists, err := x.lists(terms)
	if err != nil || limit < 1 {
		return nil, err
	}
	acc := x.pool.Get().(*accumulators)
	defer x.pool.Put(acc)
	acc.begin()
	for i, l := range lists {
		// Looking for a bound costs as much as the chunks touched so far, so it
		// waits for a term with more postings than that.
		if len(l.chunks) > len(acc.touched) {
			if bound, full := acc.bound(limit); full && bound > l.rest*slack {
				// No chunk outside those touched can still be among the best.
				if err := acc.finish(ctx, lists[i:], bound); err != nil {
					return nil, err
				}
				break
			}
		}
		if err := acc.add(ctx, l, true); err != nil {
			return nil, err
		}
	}
	return acc.best(limit)
}

// bound returns the score of the chunk that is last among the limit best so
// far, and whether there are that many.
func (a *accumulators) bound(limit int) (score float64, full bool) {
	if len(a.touched) < limit {
		return 0, false
	}
	best := topk.New(limit, len(a.touched))
	for _, c := range a.touched {
		best.Push(Hit{Position: c, Score: a.sums[c].sum})
	}
	return best.Bound()
}

// finish adds the rest of the terms to the touched chunks only, and drops those
// that cannot reach the bound any more.
func (a *accumulators) finish(ctx context.Context, lists []list, bound float64) error {
	// Looking a chunk up costs about as much as passing over so many postings.
	const lookup = 16
	for _, l := range lists {
		a.touched = slices.DeleteFunc(a.touched, func(c uint32) bool { return (a.sums[c].sum+l.rest)*slack < bound })
		if err := ctx.Err(); err != nil {
			return err
		}
		if len(a.touched) < len(l.chunks)/lookup {
			for _, c := range a.touched {
				a.sums[c].sum += l.score(c)
			}
		} else if err := a.add(ctx, l, false); err != nil {
			return err
		}
	}
	return nil
}

// score returns what the term adds to the score of a chunk.
func (l *list) score(chunk uint32) float64 {
	at, found := slices.BinarySearch(l.chunks, chunk)
	if !found {
		return 0
	}
	return float64(l.Weight * l.impacts[at])
}

// best returns the best of the touched chunks.
func (a *accumulators) best(limit int) ([]Hit, error) {
	best := topk.New(limit, len(a.touched))
	for _, c := range a.touched {
		sum := a.sums[c].sum
		if err := checkSum(sum, c); err != nil {
			return nil, err
		}
		if sum > 0 {
			best.Push(Hit{Position: c, Score: sum})
		}
	}
	return best.Sorted(), nil
}

// add adds the postings of a term, unless touch is set only those of chunks
// touched before.
func (a *accumulators) add(ctx context.Context, l list, touch bool) error {
	const block = 1 << 16
	for first := 0; first < len(l.chunks); first += block {
		if err := ctx.Err(); err != nil {
			return err
		}
		chunks := l.chunks[first:min(first+block, len(l.chunks))]
		impacts := l.impacts[first:][:len(chunks)]
		for i, c := range chunks {
			if uint(c) >= uint(len(a.sums)) {
				return fmt.Errorf("%w: a posting of term %q names chunk %d of %d", ErrDamaged, l.Term, c, len(a.sums))
			}
			s := &a.sums[c]
			if s.stamp != a.stamp {
				if !touch {
					continue
				}
				s.stamp, s.sum = a.stamp, 0
				a.touched = append(a.touched, c)
			}
			s.sum += float64(l.Weight * impacts[i])
		}
	}
	return nil
}

// Scores returns the scores that Search gives the chunks at the positions, with
// the same bits, in the order of the positions: 0 for a chunk that has none of
// the terms. Errors are those of Search.
func (x *Index) Scores(ctx context.Context, terms []WeightedTerm, positions []uint32) ([]float64, error) {
	lists, err := x.lists(terms)
	if err != nil {
		return nil, err
	}
	scores := make([]float64, len(positions))
	for _, l := range lists {
		for i, p := range positions {
			if i%checkEvery == 0 && ctx.Err() != nil {
				return nil, ctx.Err()
			}
			scores[i] += l.score(p)
		}
	}
	for i, s := range scores {
		if err := checkSum(s, positions[i]); err != nil {
			return nil, err
		}
	}
	return scores, nil
}

func checkSum(sum float64, chunk uint32) error {
	if math.IsNaN(sum) || math.IsInf(sum, 0) {
		return fmt.Errorf("the score of the chunk at position %d is %v: %w", chunk, sum, mapmatched.ErrNonFinite)
	}
	return nil
}

// merge brings the terms of a query to ascending order, each once and none with
// weight 0.
func merge(terms []WeightedTerm) ([]WeightedTerm, error) {
	for _, t := range terms {
		switch {
		case math.IsNaN(t.Weight) || math.IsInf(t.Weight, 0):
			return nil, fmt.Errorf("the weight of term %q is %v: %w", t.Term, t.Weight, mapmatched.ErrNonFinite)
		case t.Weight < 0:
			return nil, fmt.Errorf("the weight of term %q is %v: %w: give a weight of at least 0", t.Term, t.Weight, mapmatched.ErrInvalidConfig)
		}
	}
	sorted := slices.Clone(terms)
	slices.SortStableFunc(sorted, func(a, b WeightedTerm) int { return strings.Compare(a.Term, b.Term) })
	merged := sorted[:0]
	for _, t := range sorted {
		if n := len(merged); n > 0 && merged[n-1].Term == t.Term {
			merged[n-1].Weight += t.Weight
			continue
		}
		merged = append(merged, t)
	}
	return slices.DeleteFunc(merged, func(t WeightedTerm) bool { return t.Weight == 0 }), nil
}
