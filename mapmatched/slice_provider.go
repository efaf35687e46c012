package mapmatched

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
)

// SliceProvider is a CandidateProvider whose answers are fixed: the candidates
// of a query are those of its turn, whatever its text. It is for tests,
// examples and candidates that were retrieved elsewhere.
type SliceProvider struct {
	turns [][]Candidate
}

// NewSliceProvider returns a provider that offers turns[q.Turn] for a query q.
// It copies turns and puts each turn's candidates best first; equal scores keep
// the order they are given in. Errors name the turn and the position:
// ErrEmptyChunkID, ErrDuplicateCandidate, ErrNonFinite.
func NewSliceProvider(turns [][]Candidate) (*SliceProvider, error) {
	p := &SliceProvider{turns: make([][]Candidate, len(turns))}
	for t, candidates := range turns {
		seen := make(map[string]bool, len(candidates))
		for i, c := range candidates {
			switch {
			case c.ChunkID == "":
				return nil, fmt.Errorf("turn %d, candidate %d: %w", t, i, ErrEmptyChunkID)
			case seen[c.ChunkID]:
				return nil, fmt.Errorf("turn %d, candidate %d: %w %q", t, i, ErrDuplicateCandidate, c.ChunkID)
			case math.IsNaN(c.Score) || math.IsInf(c.Score, 0):
				return nil, fmt.Errorf("turn %d, candidate %d, chunk %q: score %v: %w", t, i, c.ChunkID, c.Score, ErrNonFinite)
			}
			seen[c.ChunkID] = true
		}
		p.turns[t] = cloneCandidates(candidates)
		slices.SortStableFunc(p.turns[t], func(a, b Candidate) int { return cmp.Compare(b.Score, a.Score) })
	}
	return p, nil
}

// Candidates implements CandidateProvider. A turn that was not given, before
// the first or beyond the last, has no candidates, and neither has a limit of
// zero or less.
func (p *SliceProvider) Candidates(ctx context.Context, q Query, limit int) ([]Candidate, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if q.Turn < 0 || q.Turn >= len(p.turns) || limit <= 0 {
		return nil, nil
	}
	turn := p.turns[q.Turn]
	return cloneCandidates(turn[:min(limit, len(turn))]), nil
}

// cloneCandidates copies candidates with their maps.
func cloneCandidates(in []Candidate) []Candidate {
	out := slices.Clone(in)
	for i := range out {
		out[i].Metadata = maps.Clone(out[i].Metadata)
		out[i].Parts = maps.Clone(out[i].Parts)
	}
	return out
}
