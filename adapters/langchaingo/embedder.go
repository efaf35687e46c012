package langchaingo

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"

	"github.com/tmc/langchaingo/embeddings"

	"github.com/mapmatched/mmplug/mapmatched"
)

// DefaultBatchSize is how many texts an [Embedder] sends at once when nothing
// else is set. It is below the batch of langchaingo's own embedders, so that
// every reply of the service is checked by itself.
const DefaultBatchSize = 256

// EmbedderOptions set an [Embedder]. The zero value, and nil, mean the
// defaults.
type EmbedderOptions struct {
	// BatchSize is the most texts of one call, at least 1; 0 means
	// DefaultBatchSize. Set it to the limit of the service when that is less.
	BatchSize int
	// Query embeds the texts as queries, one a call, for models that embed
	// queries and documents in different ways.
	Query bool
}

// Embedder is a mapmatched.Embedder over an embedder of langchaingo.
type Embedder struct {
	name  string
	inner embeddings.Embedder
	batch int
	query bool
}

// NewEmbedder wraps an embedder of langchaingo. The name is the embedder's in
// errors.
func NewEmbedder(name string, e embeddings.Embedder, opts *EmbedderOptions) (*Embedder, error) {
	if e == nil {
		return nil, fail("new embedder", mapmatched.KindInvalid, "embedder %q: no embedder", name)
	}
	if opts == nil {
		opts = &EmbedderOptions{}
	}
	if opts.BatchSize < 0 {
		return nil, fail("new embedder", mapmatched.KindInvalid, "embedder %q: %w: BatchSize is %d, want at least 1, or 0 for %d",
			name, mapmatched.ErrInvalidConfig, opts.BatchSize, DefaultBatchSize)
	}
	w := &Embedder{name: name, inner: e, batch: opts.BatchSize, query: opts.Query}
	if w.batch == 0 {
		w.batch = DefaultBatchSize
	}
	return w, nil
}

// Embed implements mapmatched.Embedder: one vector for each text, all of one
// dimension and finite. Whatever else the service returns is an error that says
// for which texts. The texts are not changed, which some embedders of
// langchaingo do. No texts are no vectors, and no call.
func (e *Embedder) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	vectors := make([][]float32, 0, len(texts))
	for len(vectors) < len(texts) {
		first := len(vectors)
		batch := slices.Clone(texts[first:min(first+e.batch, len(texts))])
		reply, err := e.call(ctx, batch)
		what := fmt.Sprintf("embedder %q: texts %d to %d of %d", e.name, first, first+len(batch)-1, len(texts))
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, failed(ctx, "embed", what, err)
		}
		if len(reply) != len(batch) {
			return nil, fail("embed", mapmatched.KindInvalid, "%s: %d vectors came back for %d texts; is the batch beyond the limit of the service?", what, len(reply), len(batch))
		}
		vectors = append(vectors, reply...)
		for i, v := range reply {
			if err := checkVector(v, len(vectors[0])); err != nil {
				return nil, fail("embed", mapmatched.KindInvalid, "embedder %q: text %d of %d: %w", e.name, first+i, len(texts), err)
			}
		}
	}
	return vectors, nil
}

func (e *Embedder) call(ctx context.Context, batch []string) ([][]float32, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if !e.query {
		return e.inner.EmbedDocuments(ctx, batch)
	}
	vectors := make([][]float32, len(batch))
	for i, text := range batch {
		var err error
		if vectors[i], err = embedQuery(ctx, e.inner, text); err != nil {
			return nil, err
		}
	}
	return vectors, nil
}

// embedQuery calls EmbedQuery, which in langchaingo indexes the service's
// reply without looking whether there is anything in it.
func embedQuery(ctx context.Context, e embeddings.Embedder, text string) (vector []float32, err error) {
	defer func() {
		r := recover()
		if fault, ok := r.(runtime.Error); ok {
			vector, err = nil, fmt.Errorf("the embedder panicked, as on an empty reply: %w", fault)
		} else if r != nil {
			panic(r)
		}
	}()
	return e.EmbedQuery(ctx, text)
}

func checkVector(v []float32, dimension int) error {
	if len(v) == 0 {
		return fmt.Errorf("the vector is empty")
	}
	if len(v) != dimension {
		return fmt.Errorf("the vector has dimension %d, the first one has %d; do all come from one model?", len(v), dimension)
	}
	for i, x := range v {
		if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
			return fmt.Errorf("component %d of the vector is %v: %w", i, x, mapmatched.ErrNonFinite)
		}
	}
	return nil
}

// AsEmbedder wraps a mapmatched.Embedder for use in langchaingo, such as by a
// vector store. The texts it is given are not changed, and a reply that does
// not have one vector for each text, all of one dimension and finite, is an
// error.
func AsEmbedder(e mapmatched.Embedder) embeddings.Embedder { return outward{e} }

type outward struct{ inner mapmatched.Embedder }

// EmbedDocuments implements embeddings.Embedder.
func (o outward) EmbedDocuments(ctx context.Context, texts []string) ([][]float32, error) {
	if len(texts) == 0 {
		return nil, nil
	}
	vectors, err := o.inner.Embed(ctx, slices.Clone(texts))
	if err != nil {
		return nil, err
	}
	if len(vectors) != len(texts) {
		return nil, fail("embed", mapmatched.KindInvalid, "%d vectors came back for %d texts", len(vectors), len(texts))
	}
	for i, v := range vectors {
		if err := checkVector(v, len(vectors[0])); err != nil {
			return nil, fail("embed", mapmatched.KindInvalid, "text %d of %d: %w", i, len(texts), err)
		}
	}
	return vectors, nil
}

// EmbedQuery implements embeddings.Embedder.
func (o outward) EmbedQuery(ctx context.Context, text string) ([]float32, error) {
	vectors, err := o.EmbedDocuments(ctx, []string{text})
	if err != nil {
		return nil, err
	}
	return vectors[0], nil
}
