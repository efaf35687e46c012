package policy

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/mapmatched/mmplug/mapmatched"
)

// PartProposed is the score part of a candidate that the graph proposed: 1.
const PartProposed = "proposed"

// found is what a turn was searched for.
type found struct {
	list  []mapmatched.Candidate // best first, longer than a turn takes where more is known
	fused bool                   // by a formula that says what a chunk counts that no arm found: 0
}

// propose takes the limit best of what was found and adds what the graph
// proposes: for each survivor of the turn before, best first, the survivor
// itself and its neighbourhood. A proposal has the score that it was found
// with. One that was not found has what the formula gives it, which is 0, where
// lists were fused; else the provider is asked, and what it does not know is
// left out.
func (r *Retriever) propose(ctx context.Context, q mapmatched.Query, f found, limit int) ([]mapmatched.Candidate, error) {
	list, rest := f.list[:min(len(f.list), limit)], f.list[min(len(f.list), limit):]
	p := &r.policy.Proposals
	if p.Stage != StageActive || len(r.memory.survivors) == 0 {
		return list, nil
	}
	ids, err := r.proposed(ctx, list)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil: // the turn has candidates without
		r.turn.degrade(Degraded{q.Turn, string(KindProposals), errors.Is(err, context.DeadlineExceeded), err})
		return list, nil
	}
	known := make(map[string]*mapmatched.Candidate, len(rest))
	for i := range rest {
		known[rest[i].ChunkID] = &rest[i]
	}
	var ask []string
	for _, id := range ids {
		if known[id] == nil {
			ask = append(ask, id)
		}
	}
	added, err := r.unfound(ctx, q, ask, f.fused)
	if err != nil {
		return nil, err
	}
	for i := range added {
		known[added[i].ChunkID] = &added[i]
	}
	list = list[:len(list):len(list)]
	for _, id := range ids {
		c := known[id]
		if c == nil {
			continue
		}
		proposal := *c
		if proposal.Parts = maps.Clone(c.Parts); proposal.Parts == nil {
			proposal.Parts = map[string]float64{}
		}
		proposal.Parts[PartProposed] = 1
		list = append(list, proposal)
	}
	return list, nil
}

// proposed lists the chunks that the graph proposes beside those in list.
func (r *Retriever) proposed(ctx context.Context, list []mapmatched.Candidate) ([]string, error) {
	p := &r.policy.Proposals
	seen := make(map[string]bool, len(list)+p.Limit)
	for i := range list {
		seen[list[i].ChunkID] = true
	}
	var ids []string
	add := func(id string) {
		if !seen[id] && len(ids) < p.Limit {
			seen[id] = true
			ids = append(ids, id)
		}
	}
	for _, survivor := range r.memory.survivors {
		if add(survivor); len(ids) == p.Limit {
			break
		}
		if p.Radius == 0 {
			continue
		}
		near, err := r.parts.Graph.Neighborhood(ctx, survivor, p.Radius)
		if err != nil {
			return nil, fmt.Errorf("the neighbourhood of %q: %w", survivor, err)
		}
		for _, n := range near {
			add(n.ChunkID)
		}
	}
	return ids, nil
}

// unfound makes candidates of chunks that were not found. A provider that
// cannot score chunks it is given does not take part.
func (r *Retriever) unfound(ctx context.Context, q mapmatched.Query, ids []string, fused bool) ([]mapmatched.Candidate, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	list := make([]mapmatched.Candidate, 0, len(ids))
	if fused {
		for _, id := range ids {
			list = append(list, mapmatched.Candidate{ChunkID: id})
		}
	} else {
		arm := r.parts.Arms[0]
		scorer, ok := arm.Provider.(mapmatched.ChunkScorer)
		if !ok {
			r.turn.degrade(Degraded{q.Turn, string(KindProposals), false, fmt.Errorf("arm %q does not score chunks that it is given", arm.Name)})
			return nil, nil
		}
		scores, err := scorer.ScoreChunks(ctx, q, ids)
		if err != nil {
			return nil, fmt.Errorf("proposals: %w", err)
		}
		for _, s := range scores {
			list = append(list, mapmatched.Candidate{ChunkID: s.ChunkID, Score: s.Score})
		}
	}
	return list, r.describe(ctx, list)
}

// describe adds texts and places to candidates, as far as they are known.
func (r *Retriever) describe(ctx context.Context, list []mapmatched.Candidate) error {
	if r.parts.Chunks == nil {
		return nil
	}
	ids := make([]string, len(list))
	at := make(map[string]int, len(list))
	for i := range list {
		ids[i], at[list[i].ChunkID] = list[i].ChunkID, i
	}
	chunks, err := r.parts.Chunks.Chunks(ctx, ids)
	if err != nil {
		return fmt.Errorf("proposals: texts of chunks: %w", err)
	}
	for _, c := range chunks {
		if i, asked := at[c.ID]; asked {
			list[i].Text = c.Text
			list[i].Metadata = map[string]any{
				"document": c.Document, "title": c.Title, "section": c.Section, "ordinal": c.Ordinal, "start": c.Start, "end": c.End,
			}
		}
	}
	return nil
}
