package embedded

import (
	"context"

	"github.com/mapmatched/mmplug/adapters/embedded/internal/topk"
	"github.com/mapmatched/mmplug/adapters/embedded/lexical"
	"github.com/mapmatched/mmplug/mapmatched"
)

// The capabilities of an index.
var (
	_ mapmatched.CandidateProvider = (*Index)(nil)
	_ mapmatched.ChunkScorer       = (*Index)(nil)
	_ mapmatched.ChunkFetcher      = (*Index)(nil)
	_ mapmatched.VectorFetcher     = (*Index)(nil)
	_ mapmatched.EdgeLister        = (*Index)(nil)
	_ mapmatched.HealthChecker     = (*Index)(nil)
)

// WeightedTerm is a term of a query with what it counts for.
type WeightedTerm = lexical.WeightedTerm

// Candidates implements mapmatched.CandidateProvider with the arm the index was
// opened for. Lexical scores are BM25, above 0 (see package lexical); dense
// scores are cosines in [−1, 1] up to rounding. Equal scores are ordered by
// position. A query without words, or for the dense arm without text and
// vector, has no candidates, and a limit below 1 returns none.
//
// A candidate has its text and the metadata document, title, section
// (strings), ordinal, start and end (ints).
func (x *Index) Candidates(ctx context.Context, q mapmatched.Query, limit int) ([]mapmatched.Candidate, error) {
	const op = "candidates"
	if x.opts.Arm != ArmDense {
		return x.search(ctx, op, func() ([]topk.Hit, error) {
			return x.lexical.Search(ctx, lexical.QueryTerms(q.Text), limit)
		})
	}
	v, err := x.queryVector(ctx, op, q)
	if err != nil {
		return nil, err
	}
	return x.search(ctx, op, func() ([]topk.Hit, error) { return x.searchDense(ctx, v, limit) })
}

// SearchTerms returns the at most limit best chunks for weighted terms, as
// Candidates does for the words of a text, whatever arm the index was opened
// for. Terms are spelled as lexical.Analyze spells them; unknown ones count
// nothing.
func (x *Index) SearchTerms(ctx context.Context, terms []WeightedTerm, limit int) ([]mapmatched.Candidate, error) {
	return x.search(ctx, "search terms", func() ([]topk.Hit, error) {
		return x.lexical.Search(ctx, terms, limit)
	})
}

// search runs a search and fetches what it found.
func (x *Index) search(ctx context.Context, op string, run func() ([]topk.Hit, error)) ([]mapmatched.Candidate, error) {
	var found []mapmatched.Candidate
	err := x.do(ctx, op, func() error {
		hits, err := run()
		if err != nil {
			return err
		}
		found = make([]mapmatched.Candidate, len(hits))
		for i, h := range hits {
			if i%checkEvery == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			c, err := x.chunk(h.Position)
			if err != nil {
				return err
			}
			found[i] = mapmatched.Candidate{ChunkID: c.ID, Score: h.Score, Text: c.Text, Metadata: map[string]any{
				"document": c.Document, "title": c.Title, "section": c.Section,
				"ordinal": c.Ordinal, "start": c.Start, "end": c.End,
			}}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return found, nil
}

// ScoreChunks implements mapmatched.ChunkScorer with the scores of Candidates,
// bit for bit. A chunk that Candidates does not return because it has none of
// the words scores 0. For an empty query of the dense arm there are no scores.
func (x *Index) ScoreChunks(ctx context.Context, q mapmatched.Query, chunkIDs []string) ([]mapmatched.Scored, error) {
	const op = "score chunks"
	score := func(positions []uint32) ([]float64, error) {
		return x.lexical.Scores(ctx, lexical.QueryTerms(q.Text), positions)
	}
	if x.opts.Arm == ArmDense {
		v, err := x.queryVector(ctx, op, q)
		if v == nil || err != nil {
			return []mapmatched.Scored{}, err
		}
		score = func(positions []uint32) ([]float64, error) { return x.cosines(ctx, v, positions) }
	}
	scored := make([]mapmatched.Scored, 0, len(chunkIDs))
	err := x.do(ctx, op, func() error {
		positions := make([]uint32, 0, len(chunkIDs))
		err := x.each(ctx, chunkIDs, func(i int, position uint32) error {
			positions = append(positions, position)
			scored = append(scored, mapmatched.Scored{ChunkID: chunkIDs[i]})
			return nil
		})
		if err != nil {
			return err
		}
		scores, err := score(positions)
		for i, s := range scores {
			scored[i].Score = s
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return scored, nil
}

// IDF returns the inverse document frequency of a term, spelled as
// lexical.Analyze spells it, and true; or 0 and false when no chunk has the
// term or the index is closed.
func (x *Index) IDF(term string) (idf float64, known bool) {
	err := x.do(context.Background(), "idf", func() error {
		idf, known = x.lexical.IDF(term)
		return nil
	})
	if err != nil {
		return 0, false
	}
	return idf, known
}
