package langchaingo_test

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"

	"github.com/tmc/langchaingo/schema"
	"github.com/tmc/langchaingo/vectorstores"

	"github.com/mapmatched/mmplug/adapters/langchaingo"
	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/mapmatched/adaptertest"
)

// memoryStore is a vector store over the corpus of the conformance suite, which
// reports scores of one kind. It finds what has a word in common with the
// query, as its vectors count words.
type memoryStore struct {
	corpus adaptertest.Corpus
	score  func(cosine float64) float64
}

// SimilaritySearch implements vectorstores.VectorStore.
func (s memoryStore) SimilaritySearch(ctx context.Context, query string, n int, _ ...vectorstores.Option) ([]schema.Document, error) {
	vectors, err := s.corpus.Embed(ctx, []string{query})
	if err != nil {
		return nil, err
	}
	type hit struct{ chunk, cosine float64 }
	var hits []hit
	for i, v := range s.corpus.Vectors {
		if c := dot(v, vectors[0]); c > 0 {
			hits = append(hits, hit{float64(i), c})
		}
	}
	slices.SortStableFunc(hits, func(a, b hit) int { return cmp.Compare(b.cosine, a.cosine) })
	var documents []schema.Document
	for _, h := range hits[:min(n, len(hits))] {
		documents = append(documents, document(s.corpus.Chunks[int(h.chunk)], float32(s.score(h.cosine))))
	}
	return documents, nil
}

// AddDocuments implements vectorstores.VectorStore.
func (memoryStore) AddDocuments(context.Context, []schema.Document, ...vectorstores.Option) ([]string, error) {
	return nil, nil
}

func document(c mapmatched.Chunk, score float32) schema.Document {
	return schema.Document{
		PageContent: c.Text, Score: score,
		Metadata: map[string]any{"id": c.ID, "document": c.Document, "ordinal": c.Ordinal},
	}
}

func dot(a, b []float32) float64 {
	var sum float64
	for i := range a {
		sum += float64(a[i]) * float64(b[i])
	}
	return min(sum, 1)
}

// kinds are the scores that stores report for a cosine.
var kinds = map[langchaingo.ScoreKind]func(float64) float64{
	langchaingo.ScoreSimilarity:               func(c float64) float64 { return c },
	langchaingo.ScoreCertainty:                func(c float64) float64 { return (1 + c) / 2 },
	langchaingo.ScoreCosineDistance:           func(c float64) float64 { return 1 - c },
	langchaingo.ScoreEuclideanDistance:        func(c float64) float64 { return math.Sqrt(2 - 2*c) },
	langchaingo.ScoreSquaredEuclideanDistance: func(c float64) float64 { return 2 - 2*c },
	langchaingo.ScoreManhattanDistance:        func(c float64) float64 { return 3 * (1 - c) },
	langchaingo.ScoreNegativeInnerProduct:     func(c float64) float64 { return -c },
	langchaingo.ScoreNone:                     func(float64) float64 { return 0 },
}

// fixed is a retriever that returns the same documents for every query.
type fixed []schema.Document

// GetRelevantDocuments implements schema.Retriever.
func (f fixed) GetRelevantDocuments(ctx context.Context, _ string) ([]schema.Document, error) {
	out := slices.Clone(f)
	for i := range out {
		out[i].Metadata = maps.Clone(out[i].Metadata)
	}
	return out, ctx.Err()
}

// retrieverFunc is a retriever made of a function.
type retrieverFunc func(context.Context, string) ([]schema.Document, error)

// GetRelevantDocuments implements schema.Retriever.
func (f retrieverFunc) GetRelevantDocuments(ctx context.Context, query string) ([]schema.Document, error) {
	return f(ctx, query)
}

// doc is a document with an ID.
func doc(id, text string, score float32) schema.Document {
	return schema.Document{PageContent: text, Score: score, Metadata: map[string]any{"id": id}}
}
