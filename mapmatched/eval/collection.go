package eval

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/mapmatched/mmplug/adapters/embedded/lexical"
	"github.com/mapmatched/mmplug/internal/kernel"
	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/policy"
)

// Collection is the chunks that compete for a conversation. It is safe for
// concurrent use.
type Collection struct {
	*index
	graph   *corpusGraph
	arm     Arm
	vectors *Vectors // of the world, nil without
	only    []uint32 // positions that compete, ascending; nil for all
}

// Len is how many chunks compete.
func (c *Collection) Len() int {
	if c.only != nil {
		return len(c.only)
	}
	return len(c.chunks)
}

// Parts returns what a conversation under the policy is made of. The policy is
// the one, or one with the same sections lexical and graph as the one, that the
// collection was made for.
func (c *Collection) Parts(p *policy.Policy) (policy.Parts, error) {
	arms, err := c.Arms(p)
	if err != nil {
		return policy.Parts{}, err
	}
	parts := policy.Parts{Arms: arms, Graph: c.graph, Edges: c.graph.edges, Chunks: c, Analyze: lexical.Analyze, IDF: c.words.IDF,
		Identify: func(context.Context) (policy.IndexIdentity, error) { return c.Identity(), nil }}
	if c.vectors != nil {
		parts.Vectors = c
		parts.Embedder = c.vectors.Embedder
	}
	return parts, nil
}

// Identity says what the collection was made from, in the words of a policy. It
// does not say how documents were cut: the data did that.
func (c *Collection) Identity() policy.IndexIdentity {
	id := policy.IndexIdentity{Lexical: &policy.LexicalIdentity{
		Version: lexical.AnalyzerTag, K1: c.bm25.K1, B: c.bm25.B, StopwordsSHA256: lexical.StopwordsSHA256}}
	if c.vectors != nil {
		id.Vectors = &c.vectors.Identity
	}
	return id
}

// Arms returns what finds the candidates of a policy: the arms of its section
// fusion when it pins vectors, else those of the world.
func (c *Collection) Arms(p *policy.Policy) ([]policy.FusedArm, error) {
	words := policy.FusedArm{Name: policy.ArmLexical, Provider: wordSearch{c}}
	dense := policy.FusedArm{Name: policy.ArmDense, Provider: denseSearch{c}}
	if p.Vectors.Provider == "" {
		switch c.arm {
		case ArmDense:
			return []policy.FusedArm{dense}, nil
		case ArmHybrid:
			return []policy.FusedArm{dense, words}, nil
		}
		return []policy.FusedArm{words}, nil
	}
	if c.vectors == nil {
		return nil, fmt.Errorf("policy %s pins the vectors of model %q: %w", p.Name, p.Vectors.Model, errNoVectors)
	}
	var arms []policy.FusedArm
	for _, arm := range []policy.FusedArm{dense, words} {
		if _, fused := p.Fusion.Arms[arm.Name]; fused {
			arms = append(arms, arm)
		}
	}
	return arms, nil
}

// Words returns the provider of the lexical arm. It is a policy.TermSearcher
// too.
func (c *Collection) Words() mapmatched.CandidateProvider { return wordSearch{c} }

// Graph returns the corpus graph. It remembers the distances it was asked for.
func (c *Collection) Graph() mapmatched.CorpusGraph { return c.graph }

// IDF returns the inverse document frequency of a term, spelled as
// lexical.Analyze spells it, false when no chunk of the index has it.
func (c *Collection) IDF(term string) (float64, bool) { return c.words.IDF(term) }

// Chunks implements mapmatched.ChunkFetcher.
func (c *Collection) Chunks(_ context.Context, chunkIDs []string) ([]mapmatched.Chunk, error) {
	chunks := make([]mapmatched.Chunk, 0, len(chunkIDs))
	for _, id := range chunkIDs {
		if at, found := c.position[id]; found {
			chunks = append(chunks, c.chunks[at].Chunk)
		}
	}
	return chunks, nil
}

// Vectors implements mapmatched.VectorFetcher.
func (c *Collection) Vectors(_ context.Context, chunkIDs []string) ([][]float32, error) {
	vectors := make([][]float32, len(chunkIDs))
	for i, id := range chunkIDs {
		if at, found := c.position[id]; found && c.index.vectors != nil {
			vectors[i] = c.index.vectors[at]
		}
	}
	return vectors, nil
}

// candidates makes candidates of hits. Their metadata is shared and only read.
func (c *Collection) candidates(hits []lexical.Hit) []mapmatched.Candidate {
	found := make([]mapmatched.Candidate, len(hits))
	for i, h := range hits {
		found[i] = c.found[h.Position]
		found[i].Score = h.Score
	}
	return found
}

// searchTerms finds the best chunks for weighted terms by BM25, those without
// any of the terms left out.
func (c *Collection) searchTerms(ctx context.Context, terms []lexical.WeightedTerm, limit int) ([]mapmatched.Candidate, error) {
	if c.only == nil {
		hits, err := c.words.Search(ctx, terms, limit)
		return c.candidates(hits), err
	}
	scores, err := c.words.Scores(ctx, terms, c.only)
	if err != nil {
		return nil, err
	}
	return c.candidates(c.best(scores, limit, true)), nil
}

// best orders the chunks that compete by score and then position, scores being
// in the order of only, or of all positions. With positive set, scores of 0 and
// less are left out.
func (c *Collection) best(scores []float64, limit int, positive bool) []lexical.Hit {
	hits := make([]lexical.Hit, 0, len(scores))
	for i, s := range scores {
		if positive && s <= 0 {
			continue
		}
		at := uint32(i)
		if c.only != nil {
			at = c.only[i]
		}
		hits = append(hits, lexical.Hit{Position: at, Score: s})
	}
	slices.SortFunc(hits, func(a, b lexical.Hit) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Position, b.Position))
	})
	return hits[:min(len(hits), max(limit, 0))]
}

// wordSearch is the lexical arm.
type wordSearch struct{ *Collection }

// Candidates implements mapmatched.CandidateProvider.
func (w wordSearch) Candidates(ctx context.Context, q mapmatched.Query, limit int) ([]mapmatched.Candidate, error) {
	return w.searchTerms(ctx, lexical.QueryTerms(q.Text), limit)
}

// SearchTerms implements policy.TermSearcher.
func (w wordSearch) SearchTerms(ctx context.Context, terms []policy.WeightedTerm, limit int) ([]mapmatched.Candidate, error) {
	own := make([]lexical.WeightedTerm, len(terms))
	for i, t := range terms {
		own[i] = lexical.WeightedTerm(t)
	}
	return w.searchTerms(ctx, own, limit)
}

// ScoreChunks implements mapmatched.ChunkScorer.
func (w wordSearch) ScoreChunks(ctx context.Context, q mapmatched.Query, chunkIDs []string) ([]mapmatched.Scored, error) {
	scored, positions := w.competing(chunkIDs)
	scores, err := w.words.Scores(ctx, lexical.QueryTerms(q.Text), positions)
	for i, s := range scores {
		scored[i].Score = s
	}
	return scored, err
}

// competing returns those of the chunks that compete, without a score, and their
// positions.
func (c *Collection) competing(chunkIDs []string) (scored []mapmatched.Scored, positions []uint32) {
	scored, positions = []mapmatched.Scored{}, []uint32{}
	for _, id := range chunkIDs {
		at, found := c.position[id]
		if found && c.only != nil {
			_, found = slices.BinarySearch(c.only, at)
		}
		if found {
			scored = append(scored, mapmatched.Scored{ChunkID: id})
			positions = append(positions, at)
		}
	}
	return scored, positions
}

// denseSearch is the dense arm: an exact scan.
type denseSearch struct{ *Collection }

// Candidates implements mapmatched.CandidateProvider. A query without a vector
// is embedded.
func (d denseSearch) Candidates(ctx context.Context, q mapmatched.Query, limit int) ([]mapmatched.Candidate, error) {
	query, err := d.query(ctx, q)
	if err != nil || query == nil {
		return nil, err
	}
	scores := make([]float64, d.Len())
	for i := range scores {
		if i%1024 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		at := i
		if d.only != nil {
			at = int(d.only[i])
		}
		scores[i] = float64(kernel.Dot(query, d.index.vectors[at]))
	}
	return d.candidates(d.best(scores, limit, false)), nil
}

// ScoreChunks implements mapmatched.ChunkScorer.
func (d denseSearch) ScoreChunks(ctx context.Context, q mapmatched.Query, chunkIDs []string) ([]mapmatched.Scored, error) {
	query, err := d.query(ctx, q)
	if err != nil || query == nil {
		return nil, err
	}
	scored, positions := d.competing(chunkIDs)
	for i, at := range positions {
		scored[i].Score = float64(kernel.Dot(query, d.index.vectors[at]))
	}
	return scored, nil
}

// query is the vector of a query, of unit length; nil for one without words.
func (d denseSearch) query(ctx context.Context, q mapmatched.Query) ([]float32, error) {
	v, err := mapmatched.QueryVector(ctx, q, d.vectors.Embedder, "eval")
	if err != nil || v == nil {
		return nil, err
	}
	unit, err := unitLength(v)
	if err != nil {
		return nil, fmt.Errorf("the query vector: %w", err)
	}
	if want := d.vectors.Identity.Dimension; len(unit) != want {
		return nil, fmt.Errorf("the query vector has %d components and those of the chunks %d", len(unit), want)
	}
	return unit, nil
}
