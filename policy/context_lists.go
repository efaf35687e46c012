package policy

import (
	"context"
	"errors"
	"fmt"

	"github.com/mapmatched/mmplug/mapmatched"
)

// PastTurn is a turn of a conversation that is over.
type PastTurn struct {
	Query  string
	Vector []float32 // embedding of Query, nil when there is none
	Answer string    // the reply to the turn before, "" when there was none
}

// ContextLists searches for the last of the turns what a conversation under the
// policy would fuse for it: the list of every context arm that is enabled, by
// its name, DefaultArmLimit candidates at most. The list of ArmRaw is always
// there. That of ArmFeedback, which depends on what was decoded, never is. An
// arm that does not answer is an error.
func ContextLists(ctx context.Context, p *Policy, parts Parts, turns []PastTurn) (map[string][]mapmatched.Candidate, error) {
	r, err := newRetriever(ctx, p, parts)
	if err != nil {
		return nil, fmt.Errorf("context lists: %w", err)
	}
	last := len(turns) - 1
	if last < 0 {
		return nil, errors.New("context lists: there are no turns")
	}
	q := mapmatched.Query{Text: turns[last].Query, Vector: turns[last].Vector, Turn: last}
	for _, t := range turns[:last] {
		q.History = append(q.History, t.Query)
		r.memory.vectors = append(r.memory.vectors, t.Vector)
	}
	r.turn = &turnState{query: Query{Answer: turns[last].Answer}, scale: 1}
	searches := r.contextSearches(q, ContextTerms(p.Arms, Conversation{q.Text, q.History, turns[last].Answer, Feedback{}}, r.parts.Analyze), DefaultArmLimit)
	searches[ArmRaw] = func(ctx context.Context, q mapmatched.Query, limit int) ([]mapmatched.Candidate, error) {
		return r.fused(ctx, r.turn, r.parts.Arms, q, limit, "")
	}
	lists := map[string][]mapmatched.Candidate{}
	for _, name := range sortedKeys(searches) {
		if lists[name], err = searches[name](ctx, q, DefaultArmLimit); err != nil {
			return nil, fmt.Errorf("context lists: arm %s: %w", name, err)
		}
	}
	if missing := r.turn.missing(); len(missing) > 0 {
		return nil, fmt.Errorf("context lists: %s", missing[0])
	}
	return lists, nil
}
