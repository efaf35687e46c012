package policy

import (
	"context"
	"errors"

	"github.com/mapmatched/mmplug/mapmatched"
)

// expand makes the context by decayed expansion from the decoded chunk: that
// chunk, what was reached from it by descending score, then the turn's other
// candidates in provider order; cut to context.limit.
//
// With a query vector and stored vectors there are similarities, and a reached
// chunk scores by geometric_v1; a candidate is a hit of the query itself and
// scores its similarity. Without, the score is the decay.
func (r *Retriever) expand(ctx context.Context, t *turnState, a *Answer) {
	if r.policy.Decay.Stage != StageActive || a.ChunkID == "" {
		return
	}
	if r.parts.DecayDifferences {
		r.compareDecay(ctx, t, a)
	}
	list, err := r.decayed(ctx, t.query, a)
	if err != nil {
		t.degrade(Degraded{a.Turn, "decay", isTimeout(err), err})
		return
	}
	if limit := r.policy.Context.Limit; limit != nil && len(list) > *limit {
		list = list[:*limit]
	}
	a.Context, a.ContextModel = list, GeometricV1
	a.ContextChunkIDs = make([]string, len(list))
	for i, c := range list {
		a.ContextChunkIDs[i] = c.ChunkID
	}
}

// compareDecay notes where the two formulas of decay disagree.
func (r *Retriever) compareDecay(ctx context.Context, t *turnState, a *Answer) {
	differences, err := CompareDecay(ctx, r.parts.Edges, []string{a.ChunkID}, r.policy.Decay, nil)
	if err == nil {
		err = r.session.Note("decay_differences", differences)
	}
	if err != nil {
		t.degrade(Degraded{a.Turn, "decay_differences", isTimeout(err), err})
	}
}

func isTimeout(err error) bool { return errors.Is(err, context.DeadlineExceeded) }

func (r *Retriever) decayed(ctx context.Context, q Query, a *Answer) ([]mapmatched.Candidate, error) {
	decoded := a.Decoded().Candidate
	reached, err := Expand(ctx, r.parts.Edges, []string{decoded.ChunkID}, r.policy.Decay, nil)
	if err != nil {
		return nil, err
	}
	cosines, err := r.cosines(ctx, q, reached)
	if err != nil {
		return nil, err
	}
	similarity := func(id string) (float64, bool) {
		cosine, known := cosines[id]
		return cosine, known
	}
	query := GeometricQuery{Vector: cosines != nil, Expanded: true, Alpha: q.Alpha}
	byID := map[string]mapmatched.Candidate{}
	inOrder := make([]mapmatched.Candidate, len(a.Ranking)) // of the provider
	for _, ranked := range a.Ranking {
		byID[ranked.ChunkID] = ranked.Candidate
		inOrder[ranked.Position] = ranked.Candidate
	}
	primary := func(c mapmatched.Candidate) mapmatched.Candidate {
		c.Score = r.policy.Fusion.MinScore
		if cosine, known := similarity(c.ChunkID); known {
			c.Score = cosine
		}
		return c
	}
	// The first reached is the root.
	primaries := []mapmatched.Candidate{primary(decoded)}
	for _, n := range reached[1:] {
		if c, hit := byID[n.ChunkID]; hit && query.Vector {
			primaries = append(primaries, primary(c))
		}
	}
	scored, err := r.policy.Fusion.FuseExpanded(query, primaries, reached, similarity, len(reached))
	if err != nil {
		return nil, err
	}
	list := make([]mapmatched.Candidate, 1, len(scored)+len(inOrder))
	seen := map[string]bool{}
	for _, c := range scored {
		seen[c.ChunkID] = true
		if c.ChunkID == decoded.ChunkID {
			list[0] = c
			continue
		}
		if hit, found := byID[c.ChunkID]; found {
			c.Text, c.Metadata = hit.Text, hit.Metadata
		}
		list = append(list, c)
	}
	for _, c := range inOrder {
		if !seen[c.ChunkID] {
			list = append(list, c)
		}
	}
	return list, nil
}

// cosines are the similarities of the query with chunks that have a vector; nil
// when the query has none, or there are no vectors.
func (r *Retriever) cosines(ctx context.Context, q Query, reached []Reached) (map[string]float64, error) {
	if q.Vector == nil || r.parts.Vectors == nil {
		return nil, nil
	}
	ids := make([]string, len(reached))
	for i, n := range reached {
		ids[i] = n.ChunkID
	}
	vectors, err := r.parts.Vectors.Vectors(ctx, ids)
	if err != nil {
		return nil, err
	}
	cosines := make(map[string]float64, len(ids))
	for i, v := range vectors[:min(len(vectors), len(ids))] {
		if v == nil {
			continue
		}
		if cosines[ids[i]], err = cosineOf(q.Vector, v); err != nil {
			return nil, err
		}
	}
	return cosines, nil
}
