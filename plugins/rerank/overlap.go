package rerank

import (
	"context"
	"fmt"

	"github.com/mapmatched/mmplug/mapmatched"
)

// Measure is how an overlap of two sets of terms becomes a score from 0 to 1.
type Measure string

// The measures, of the terms Q of the question and C of a chunk.
const (
	// Jaccard is |Q ∩ C| / |Q ∪ C|: a short chunk that answers is before a
	// long one that answers too. After Jaccard (1901).
	Jaccard Measure = "jaccard"
	// Coverage is |Q ∩ C| / |Q|: the share of the question that the chunk
	// has, however long it is.
	Coverage Measure = "coverage"
)

// Overlap scores a candidate by the content terms (see [Terms]) that its text
// shares with the question. A term counts once however often it occurs, and
// every term counts the same. A score is 0 where nothing is shared, where a
// candidate has no text and where the question has no content terms. The zero
// value is ready for use.
type Overlap struct {
	// Measure; "" means Jaccard.
	Measure Measure
}

// Validate reports what is wrong with the options.
func (o Overlap) Validate() error {
	switch o.Measure {
	case "", Jaccard, Coverage:
		return nil
	}
	return fmt.Errorf("measure is %q: it must be %q or %q", o.Measure, Jaccard, Coverage)
}

// Rerank implements mapmatched.Reranker. It looks at the text of the turn
// alone, not at its history, in O(length of all texts).
func (o Overlap) Rerank(ctx context.Context, q mapmatched.Query, c []mapmatched.Candidate) ([]mapmatched.Scored, error) {
	const adapter = "overlap"
	if err := o.Validate(); err != nil {
		return nil, &mapmatched.Error{Op: "rerank", Adapter: adapter, Kind: mapmatched.KindInvalid, Err: err}
	}
	if err := check(adapter, c); err != nil {
		return nil, err
	}
	question := setOf(Terms(q.Text))
	scored := make([]mapmatched.Scored, len(c))
	for i := range c {
		if err := done(ctx, adapter); err != nil {
			return nil, err
		}
		scored[i] = mapmatched.Scored{ChunkID: c[i].ChunkID, Score: o.score(question, setOf(Terms(c[i].Text)))}
	}
	bestFirst(scored)
	return scored, nil
}

func (o Overlap) score(question, chunk map[string]bool) float64 {
	shared := 0
	for term := range question {
		if chunk[term] {
			shared++
		}
	}
	if shared == 0 {
		return 0
	}
	if o.Measure == Coverage {
		return float64(shared) / float64(len(question))
	}
	return float64(shared) / float64(len(question)+len(chunk)-shared)
}
