package policy

import (
	"context"
	"errors"

	"github.com/mapmatched/mmplug/mapmatched"
)

// ReplyRecord is what the last reply said about the chunk that a turn goes on
// from.
type ReplyRecord struct {
	Best    string  `json:"best"`     // the chunk that the reply fits best
	ChunkID string  `json:"chunk_id"` // the chunk that the turn goes on from
	Fit     float64 `json:"fit"`      // how well the reply fits that one, in [0, 1]
	Cost    float64 `json:"cost"`     // of going on from it, before β
}

// heard is what the words of the last reply find.
type heard struct {
	list []mapmatched.Candidate // best first, never empty
	fit  map[string]float64     // by chunk ID, min–max normalised over the list; others have 0
}

// hear searches for the last reply, where the policy reads something into it
// and the turn before has a chunk that it may have been made from. A search that
// fails is a part that did not take part.
func (r *Retriever) hear(ctx context.Context, q mapmatched.Query) error {
	t := r.turn
	if r.policy.Reply.Stage != StageActive || len(q.Path) == 0 || q.Path[len(q.Path)-1] == "" {
		return nil
	}
	terms := countTerms(r.parts.Analyze(t.query.Answer), 1)
	if len(terms) == 0 {
		return nil
	}
	asked, err := r.contextQuery(ctx, ArmAnswer, q, t.query.Answer, nil)
	var list []mapmatched.Candidate
	if err == nil {
		list, err = r.fused(ctx, t, withTerms(r.parts.Arms, terms), asked, DefaultArmLimit, "reply/")
	}
	if err == nil {
		err = fusable(list)
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		t.degrade(Degraded{q.Turn, string(KindReply), errors.Is(err, context.DeadlineExceeded), err})
	case len(list) > 0:
		t.heard = &heard{list, fits(list)}
	}
	return nil
}

// fits is how well each chunk of a list fits, by chunk ID.
func fits(list []mapmatched.Candidate) map[string]float64 {
	low, high := list[0].Score, list[0].Score
	for i := range list {
		low, high = min(low, list[i].Score), max(high, list[i].Score)
	}
	fit := make(map[string]float64, len(list))
	for i := range list {
		fit[list[i].ChunkID] = minMax(list[i].Score, low, high)
	}
	return fit
}

// replyGraph charges for going on from a chunk that the last reply does not
// fit. The charge is the same for whichever chunk comes next.
type replyGraph struct {
	mapmatched.CorpusGraph
	retriever *Retriever
}

// MaximumDistance implements mapmatched.CorpusGraph: the largest cost.
func (g *replyGraph) MaximumDistance() float64 {
	return g.CorpusGraph.MaximumDistance() + g.retriever.policy.Reply.Weight
}

// Distances implements mapmatched.CorpusGraph.
func (g *replyGraph) Distances(ctx context.Context, from, to []string, dst []float64) error {
	if err := g.CorpusGraph.Distances(ctx, from, to, dst); err != nil {
		return err
	}
	heard := g.retriever.turn.heard
	if heard == nil {
		return nil
	}
	for i, id := range from {
		cost, err := g.retriever.policy.Reply.Cost(heard.fit[id])
		if err != nil {
			return err
		}
		for j := range to {
			dst[i*len(to)+j] += cost
		}
	}
	return nil
}

// replied records what the reply said about the chunk that the turn goes on
// from.
func (r *Retriever) replied(t *turnState, a *Answer) {
	if t.heard == nil || t.from == "" {
		return
	}
	record := &ReplyRecord{Best: t.heard.list[0].ChunkID, ChunkID: t.from, Fit: t.heard.fit[t.from]}
	var err error
	if record.Cost, err = r.policy.Reply.Cost(record.Fit); err != nil {
		t.degrade(Degraded{a.Turn, string(KindReply), false, err})
		return
	}
	a.Reply = record
}
