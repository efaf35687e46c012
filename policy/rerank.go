package policy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mapmatched/mmplug/mapmatched"
)

// PartRerank is the score part of a candidate that holds what the reranker
// said.
const PartRerank = "rerank"

// RerankOutcome is what became of the order of a turn.
type RerankOutcome string

// The outcomes.
const (
	RerankedOff      RerankOutcome = "off"      // the mode is off
	RerankedEmpty    RerankOutcome = "empty"    // there was nothing to rerank
	RerankedPending  RerankOutcome = "pending"  // the order as given; the answer comes beside
	RerankedKept     RerankOutcome = "kept"     // the answer could not be used: the order as given
	RerankedReranked RerankOutcome = "reranked" // the order of the reranker
)

// RerankRecord says what became of the order of a turn, and why.
type RerankRecord struct {
	Version string        `json:"version"` // tag of the formula
	Mode    RerankMode    `json:"mode"`
	Outcome RerankOutcome `json:"outcome"`
	Reason  string        `json:"reason,omitempty"` // why the order was kept
	Pairs   int           `json:"pairs"`            // candidates given to the reranker
}

// RerankResult is an order with its record.
type RerankResult struct {
	Order  []mapmatched.Candidate
	Record RerankRecord
}

// Rerank lets r put the first p.Pairs candidates, which are best first, in a
// new order; those after them stay behind them. The score of a candidate stays
// what it was, and PartRerank is what r made of it. Equal scores keep the order
// given.
//
// The order is kept, and the record says why, when r is nil, does not answer
// within the budget or before ctx is done, fails or panics, or when its answer
// is not one finite score for each candidate it was given. r is never called
// without candidates.
//
// In the mode deferred Rerank returns the order given at once, and a channel
// that receives one result, after the budget at the latest, and is closed. It
// need not be read. In the other modes later is nil. candidates are not
// changed, and a reranker that does not return when its context is done delays
// nobody.
func Rerank(ctx context.Context, r mapmatched.Reranker, q mapmatched.Query, candidates []mapmatched.Candidate, p RerankParameters) (order []mapmatched.Candidate, record RerankRecord, later <-chan RerankResult) {
	record = RerankRecord{Version: p.Version, Mode: p.Mode, Outcome: RerankedOff}
	given := slices.Clone(candidates)
	switch {
	case p.Mode != RerankSync && p.Mode != RerankDeferred:
		return given, record, nil
	case len(given) == 0:
		record.Outcome = RerankedEmpty
		return given, record, nil
	case r == nil:
		record.Outcome, record.Reason = RerankedKept, "there is no reranker"
		return given, record, nil
	}
	record.Pairs = min(p.Pairs, len(given))
	if p.Mode == RerankSync {
		result := rerankWithin(ctx, r, q, given, p, record)
		return result.Order, result.Record, nil
	}
	delivered := make(chan RerankResult, 1)
	go func(own []mapmatched.Candidate, record RerankRecord) {
		delivered <- rerankWithin(ctx, r, q, own, p, record)
		close(delivered)
	}(slices.Clone(given), record)
	record.Outcome = RerankedPending
	return given, record, delivered
}

// rerankWithin waits for an answer, but not longer than the budget.
func rerankWithin(ctx context.Context, r mapmatched.Reranker, q mapmatched.Query, given []mapmatched.Candidate, p RerankParameters, record RerankRecord) RerankResult {
	budget := time.Duration(p.BudgetMS) * time.Millisecond
	limited, cancel := context.WithTimeout(ctx, budget)
	defer cancel()
	type reply struct {
		scored []mapmatched.Scored
		err    error
	}
	replies := make(chan reply, 1)
	asked := slices.Clone(given[:record.Pairs])
	go func() {
		scored, err := callReranker(limited, r, q, asked)
		replies <- reply{scored, err}
	}()
	var answer reply
	select {
	case answer = <-replies:
	case <-limited.Done():
		select {
		case answer = <-replies: // it was ready as well
		default:
			answer.err = limited.Err()
		}
	}
	if answer.err != nil && ctx.Err() == nil && limited.Err() != nil {
		answer.err = fmt.Errorf("no answer within %v", budget)
	}
	order, err := given, answer.err
	if err == nil {
		order, err = reorder(given, record.Pairs, answer.scored)
	}
	if err != nil {
		record.Outcome, record.Reason = RerankedKept, err.Error()
		return RerankResult{given, record}
	}
	record.Outcome = RerankedReranked
	return RerankResult{order, record}
}

// callReranker turns a panic into an error.
func callReranker(ctx context.Context, r mapmatched.Reranker, q mapmatched.Query, c []mapmatched.Candidate) (scored []mapmatched.Scored, err error) {
	defer func() {
		if v := recover(); v != nil {
			scored, err = nil, fmt.Errorf("the reranker panicked: %v", v)
		}
	}()
	return r.Rerank(ctx, q, c)
}

// reorder sorts the first pairs candidates by their scores. It is an error
// unless there is exactly one finite score for each.
func reorder(given []mapmatched.Candidate, pairs int, scored []mapmatched.Scored) ([]mapmatched.Candidate, error) {
	scores := make(map[string]float64, len(scored))
	for _, s := range scored {
		if _, twice := scores[s.ChunkID]; twice {
			return nil, fmt.Errorf("the reranker scored chunk %q twice", s.ChunkID)
		}
		if !finite(s.Score) {
			return nil, fmt.Errorf("the reranker scored chunk %q with %v", s.ChunkID, s.Score)
		}
		scores[s.ChunkID] = s.Score
	}
	order := slices.Clone(given)
	for i := range pairs {
		c := &order[i]
		score, answered := scores[c.ChunkID]
		if !answered {
			return nil, fmt.Errorf("the reranker did not score chunk %q", c.ChunkID)
		}
		parts := make(map[string]float64, len(c.Parts)+1)
		for key, part := range c.Parts {
			parts[key] = part
		}
		parts[PartRerank] = score
		c.Parts = parts
	}
	if len(scored) != pairs {
		return nil, fmt.Errorf("the reranker scored %d chunks, of which only %d were given to it", len(scored), pairs)
	}
	slices.SortStableFunc(order[:pairs], func(a, b mapmatched.Candidate) int {
		return cmp.Compare(b.Parts[PartRerank], a.Parts[PartRerank])
	})
	return order, nil
}

// Err is the reason as an error where the order was kept, else nil.
func (r RerankRecord) Err() error {
	if r.Outcome != RerankedKept {
		return nil
	}
	return errors.New("rerank: " + r.Reason)
}
