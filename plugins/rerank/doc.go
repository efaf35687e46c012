// Package rerank has two rerankers in plain Go: [Overlap], which counts the
// words that question and chunk share, and [MMR], which trades relevance for
// variety. They need no model and are what the plugins mmplug-reranker-overlap
// and mmplug-reranker-mmr serve.
//
// Both return one score for each candidate, best first. Candidates that score
// the same keep the order they were given. They are safe for concurrent use.
package rerank

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/mapmatched/mmplug/mapmatched"
)

// check refuses candidates that no answer can be told apart for.
func check(adapter string, c []mapmatched.Candidate) error {
	seen := make(map[string]bool, len(c))
	for i := range c {
		var err error
		switch id := c[i].ChunkID; {
		case id == "":
			err = fmt.Errorf("candidate %d: %w: give every candidate its ID", i, mapmatched.ErrEmptyChunkID)
		case seen[id]:
			err = fmt.Errorf("candidate %d: chunk %q: %w: give every chunk once", i, id, mapmatched.ErrDuplicateCandidate)
		default:
			seen[id] = true
			continue
		}
		return &mapmatched.Error{Op: "rerank", Adapter: adapter, Kind: mapmatched.KindInvalid, Err: err}
	}
	return nil
}

// done is the error of a call whose context is done, nil before that.
func done(ctx context.Context, adapter string) error {
	if err := ctx.Err(); err != nil {
		return &mapmatched.Error{Op: "rerank", Adapter: adapter, Kind: mapmatched.KindDeadline, Err: err}
	}
	return nil
}

// bestFirst sorts by score; equal scores keep their order.
func bestFirst(scored []mapmatched.Scored) {
	slices.SortStableFunc(scored, func(a, b mapmatched.Scored) int { return cmp.Compare(b.Score, a.Score) })
}
