package langchaingo_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/tmc/langchaingo/embeddings"

	"github.com/mapmatched/mmplug/adapters/langchaingo"
	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/mapmatched/adaptertest"
)

// service is an embedding service: one vector a text, which tells its length
// and the size of the batch it came in.
type service struct {
	batches [][]string
	reply   func(texts []string) ([][]float32, error)
}

func (s *service) CreateEmbedding(_ context.Context, texts []string) ([][]float32, error) {
	s.batches = append(s.batches, slices.Clone(texts))
	if s.reply != nil {
		return s.reply(texts)
	}
	var vectors [][]float32
	for _, text := range texts {
		vectors = append(vectors, []float32{float32(len(text)), 1})
	}
	return vectors, nil
}

func client(t *testing.T, s *service) embeddings.Embedder {
	t.Helper()
	e, err := embeddings.NewEmbedder(s)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestEmbedder(t *testing.T) {
	s := &service{}
	e, err := langchaingo.NewEmbedder("letters", client(t, s), &langchaingo.EmbedderOptions{BatchSize: 2})
	if err != nil {
		t.Fatal(err)
	}
	texts := []string{"a", "b\nc", "dd", "", "eeeee"}
	before := slices.Clone(texts)
	vectors, err := e.Embed(t.Context(), texts)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(texts, before) {
		t.Errorf("the texts became %q", texts)
	}
	var lengths []float32
	for _, v := range vectors {
		lengths = append(lengths, v[0])
	}
	if !slices.Equal(lengths, []float32{1, 3, 2, 0, 5}) {
		t.Errorf("vectors of texts of length %v", lengths)
	}
	if len(s.batches) != 3 || len(s.batches[2]) != 1 {
		t.Errorf("batches %q, want two, two and one", s.batches)
	}
	if vectors, err := e.Embed(t.Context(), nil); len(vectors) != 0 || err != nil || len(s.batches) != 3 {
		t.Errorf("no texts: %v, error %v, %d batches", vectors, err, len(s.batches))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := e.Embed(ctx, texts); !errors.Is(err, context.Canceled) || len(s.batches) != 3 {
		t.Errorf("error %v after %d batches, want that the context was cancelled and no call", err, len(s.batches))
	}
}

func TestEmbedderFaults(t *testing.T) {
	down := errors.New("no service")
	nan := float32(math.NaN())
	for _, tt := range []struct {
		name  string
		query bool
		reply func([]string) ([][]float32, error)
		want  string
		kind  mapmatched.Kind
	}{
		{"fewer vectors", false, func([]string) ([][]float32, error) { return [][]float32{{1}, {2}}, nil },
			`embedder "e": texts 0 to 2 of 5: 2 vectors came back for 3 texts`, mapmatched.KindInvalid},
		{"fewer and then more, the right sum", false, func(texts []string) ([][]float32, error) {
			return slices.Repeat([][]float32{{1}}, map[string]int{"t0": 2, "t3": 3}[texts[0]]), nil
		}, "2 vectors came back for 3 texts", mapmatched.KindInvalid},
		{"none", false, func([]string) ([][]float32, error) { return nil, nil }, "0 vectors came back for 3 texts", mapmatched.KindInvalid},
		{"none for a query", true, func([]string) ([][]float32, error) { return nil, nil }, "the embedder panicked", mapmatched.KindUnavailable},
		{"another dimension", false, func(texts []string) ([][]float32, error) {
			return [][]float32{{1, 2}, {3, 4}, {5}}[:len(texts)], nil
		}, `text 2 of 5: the vector has dimension 1, the first one has 2`, mapmatched.KindInvalid},
		{"empty", false, func(texts []string) ([][]float32, error) { return make([][]float32, len(texts)), nil }, "text 0 of 5: the vector is empty", mapmatched.KindInvalid},
		{"not finite", false, func(texts []string) ([][]float32, error) {
			return slices.Repeat([][]float32{{1, nan}}, len(texts)), nil
		}, "component 1 of the vector is NaN", mapmatched.KindInvalid},
		{"down", false, func([]string) ([][]float32, error) { return nil, down }, "no service", mapmatched.KindUnavailable},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e, err := langchaingo.NewEmbedder("e", client(t, &service{reply: tt.reply}), &langchaingo.EmbedderOptions{BatchSize: 3, Query: tt.query})
			if err != nil {
				t.Fatal(err)
			}
			_, err = e.Embed(t.Context(), []string{"t0", "t1", "t2", "t3", "t4"})
			if err == nil || !strings.Contains(err.Error(), tt.want) || mapmatched.KindOf(err) != tt.kind {
				t.Errorf("error %v of kind %q, want %q of kind %q", err, mapmatched.KindOf(err), tt.want, tt.kind)
			}
		})
	}
	if _, err := langchaingo.NewEmbedder("e", nil, nil); err == nil {
		t.Error("no embedder was accepted")
	}
	if _, err := langchaingo.NewEmbedder("e", client(t, &service{}), &langchaingo.EmbedderOptions{BatchSize: -1}); err == nil || !strings.Contains(err.Error(), "BatchSize is -1") {
		t.Errorf("error %v for a negative batch", err)
	}
}

func TestQueryEmbedder(t *testing.T) {
	s := &service{}
	e, err := langchaingo.NewEmbedder("e", client(t, s), &langchaingo.EmbedderOptions{Query: true})
	if err != nil {
		t.Fatal(err)
	}
	vectors, err := e.Embed(t.Context(), []string{"a", "bb"})
	if err != nil || len(vectors) != 2 || vectors[1][0] != 2 || len(s.batches) != 2 {
		t.Errorf("vectors %v, batches %q, error %v; want one call a text", vectors, s.batches, err)
	}
}

// embedFunc is a mapmatched.Embedder made of a function.
type embedFunc func(context.Context, []string) ([][]float32, error)

func (f embedFunc) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	return f(ctx, texts)
}

func TestAsEmbedder(t *testing.T) {
	careless := langchaingo.AsEmbedder(embedFunc(func(_ context.Context, texts []string) ([][]float32, error) {
		var vectors [][]float32
		for i := range texts {
			vectors = append(vectors, []float32{float32(len(texts[i]))})
			texts[i] = "changed"
		}
		return vectors, nil
	}))
	texts := []string{"a", "bb"}
	vectors, err := careless.EmbedDocuments(t.Context(), texts)
	if err != nil || len(vectors) != 2 || vectors[1][0] != 2 || texts[0] != "a" {
		t.Errorf("vectors %v of texts that are now %q, error %v", vectors, texts, err)
	}
	if v, err := careless.EmbedQuery(t.Context(), "ccc"); err != nil || v[0] != 3 {
		t.Errorf("vector %v, error %v", v, err)
	}
	if vectors, err := careless.EmbedDocuments(t.Context(), nil); len(vectors) != 0 || err != nil {
		t.Errorf("no texts: %v, error %v", vectors, err)
	}
	short := langchaingo.AsEmbedder(embedFunc(func(context.Context, []string) ([][]float32, error) { return nil, nil }))
	if _, err := short.EmbedQuery(t.Context(), "a"); err == nil || !strings.Contains(err.Error(), "0 vectors came back for 1 texts") {
		t.Errorf("error %v for no vectors", err)
	}
	for want, vectors := range map[string][][]float32{
		"text 1 of 2: the vector has dimension 1": {{1, 2}, {3}},
		"text 0 of 2: the vector is empty":        {{}, {}},
		"text 1 of 2: component 0":                {{1}, {float32(math.NaN())}},
	} {
		bad := langchaingo.AsEmbedder(embedFunc(func(context.Context, []string) ([][]float32, error) { return vectors, nil }))
		if _, err := bad.EmbedDocuments(t.Context(), texts); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	// There and back again.
	corpus := adaptertest.NewCorpus()
	round, err := langchaingo.NewEmbedder("round", langchaingo.AsEmbedder(corpus), nil)
	if err != nil {
		t.Fatal(err)
	}
	vectors, err = round.Embed(t.Context(), []string{corpus.Chunks[0].Text})
	if err != nil || !slices.Equal(vectors[0], corpus.Vectors[0]) {
		t.Errorf("vector %v, error %v; want that of the corpus", vectors, err)
	}
}
