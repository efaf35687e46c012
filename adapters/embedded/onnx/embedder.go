package onnx

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/mapmatched/mmplug/adapters/embedded"
	"github.com/mapmatched/mmplug/mapmatched"
)

// Embedder is a mapmatched.Embedder over a local model. It is safe for
// concurrent use. Close it when it is no longer needed.
type Embedder struct {
	dir         *directory
	identity    embedded.VectorIdentity
	maxTokens   int
	batchTokens int

	truncated atomic.Int64

	mu      sync.RWMutex // held for reading while the encoder runs
	encoder encoder      // nil once closed
}

// encoder runs a model.
type encoder interface {
	// encode returns the states of all tokens of rows texts, width tokens each:
	// rows·width·dimension numbers, row-major. mask is 1 at tokens and 0 at
	// padding. It is safe for concurrent use and returns early, with an error,
	// when ctx is done.
	encode(ctx context.Context, ids, mask []int64, rows, width int) ([]float32, error)
	close() error
}

// Open opens the model in a directory and runs it once.
//
// Errors are of type *mapmatched.Error: of kind unavailable when the program was
// built without onnxruntime or its library cannot be loaded, not found when the
// library, the directory or a file of it is missing, corrupt when a file is
// damaged or a Git LFS pointer, invalid when the model is one that the package
// cannot use, with what it is.
func Open(ctx context.Context, dir string, opts *Options) (*Embedder, error) {
	if opts == nil {
		opts = &Options{}
	}
	e, err := open(ctx, dir, *opts)
	if err != nil {
		return nil, classify("open", err)
	}
	return e, nil
}

func open(ctx context.Context, dir string, opts Options) (*Embedder, error) {
	if err := errors.Join(opts.Validate(), ctx.Err()); err != nil {
		return nil, err
	}
	d, err := openDirectory(dir)
	if err != nil {
		return nil, err
	}
	maxTokens, err := d.maxTokens(opts.MaxTokens)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	newEncoder, err := loadRuntime(opts.Library)
	if err != nil {
		return nil, err
	}
	if err := d.readModel(opts.ModelFile); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	encoder, err := newEncoder(d, cmp.Or(opts.Threads, DefaultThreads))
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %w", dir, d.modelFile, err)
	}
	d.model = nil // the encoder has it now
	e := newEmbedder(d, encoder, maxTokens, opts)
	if err := e.try(ctx); err != nil {
		_ = e.Close() // the other error says more
		return nil, fmt.Errorf("%s: %s: %w", dir, d.modelFile, err)
	}
	return e, nil
}

// maxTokens is how many tokens of a text are used, given what was asked for.
func (d *directory) maxTokens(asked int) (int, error) {
	n := cmp.Or(asked, DefaultMaxTokens)
	if d.limit > 0 && n > d.limit {
		if asked > 0 {
			return 0, fmt.Errorf("%w: MaxTokens is %d and the model takes %d: give at most that", mapmatched.ErrInvalidConfig, asked, d.limit)
		}
		n = d.limit
	}
	if special := len(d.before) + len(d.after); n <= special {
		return 0, fmt.Errorf("%w: MaxTokens is %d, and %d of them are special tokens: give more", mapmatched.ErrInvalidConfig, n, special)
	}
	return n, nil
}

func newEmbedder(d *directory, enc encoder, maxTokens int, opts Options) *Embedder {
	named := 0
	if standard, err := d.maxTokens(0); err != nil || maxTokens != standard {
		named = maxTokens
	}
	return &Embedder{
		dir: d, encoder: enc, maxTokens: maxTokens,
		batchTokens: cmp.Or(opts.BatchTokens, DefaultBatchTokens),
		identity: embedded.VectorIdentity{
			Provider: Scheme, Model: cmp.Or(opts.Name, d.name), Revision: d.revision(named),
			Dimension: d.dimension, Normalization: embedded.NormalizationL2,
		},
	}
}

// Identity says what makes the vectors: provider "onnx", the name of the model,
// its dimension, and as revision the SHA-256 of the lines "SHA-256  path" (as
// sha256sum prints them) of the directory's files that were read, the model
// included, in the order of their paths. Behind them is a line "max_tokens N"
// when Options.MaxTokens is another number than would be used without it.
func (e *Embedder) Identity() embedded.VectorIdentity { return e.identity }

// MaxTokens is how many tokens of a text are used, special tokens included.
func (e *Embedder) MaxTokens() int { return e.maxTokens }

// Truncated is how many of the texts embedded so far were longer than MaxTokens.
// What is behind that is not in their vectors.
func (e *Embedder) Truncated() int { return int(e.truncated.Load()) }

// Close frees the model. It waits for calls of the model under way. Embed fails
// with mapmatched.ErrClosed afterwards; closing again does nothing.
func (e *Embedder) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.encoder == nil {
		return nil
	}
	err := e.encoder.close()
	e.encoder = nil
	if err != nil {
		return classify("close", err)
	}
	return nil
}

// Embed implements mapmatched.Embedder: one vector of unit length for each text.
// Texts of like length go through the model together; the vectors come in the
// order of the texts. No texts are no vectors. An error names the text.
func (e *Embedder) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	vectors, err := e.embed(ctx, texts)
	if err != nil {
		return nil, classify("embed", err)
	}
	return vectors, nil
}

// tokenized is a text ready for the model.
type tokenized struct {
	at  int // position of the text
	ids []int64
}

func (e *Embedder) embed(ctx context.Context, texts []string) ([][]float32, error) {
	list, cut := make([]tokenized, len(texts)), 0
	for i, text := range texts {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		ids, whole, err := e.tokens(text)
		if err != nil {
			return nil, fmt.Errorf("text %d of %d: %w", i+1, len(texts), err)
		}
		if !whole {
			cut++
		}
		list[i] = tokenized{i, ids}
	}
	slices.SortStableFunc(list, func(a, b tokenized) int { return len(a.ids) - len(b.ids) })
	vectors := make([][]float32, len(texts))
	for len(list) > 0 {
		n := 1
		for n < len(list) && (n+1)*len(list[n].ids) <= e.batchTokens {
			n++
		}
		if err := e.batch(ctx, list[:n], vectors); err != nil {
			return nil, err
		}
		list = list[n:]
	}
	e.truncated.Add(int64(cut))
	return vectors, nil
}

// tokens returns the tokens of a text as the model gets them, and whether those
// are all of it.
func (e *Embedder) tokens(text string) (ids []int64, whole bool, err error) {
	tokens, err := e.dir.tokenizer.Encode(strings.TrimSpace(text))
	if err != nil {
		return nil, false, err
	}
	before, after := e.dir.before, e.dir.after
	most := e.maxTokens - len(before) - len(after)
	whole = len(tokens) <= most
	tokens = tokens[:min(len(tokens), most)]
	ids = make([]int64, 0, len(before)+len(tokens)+len(after))
	for _, id := range before {
		ids = append(ids, int64(id))
	}
	for _, t := range tokens {
		ids = append(ids, int64(t.ID))
	}
	for _, id := range after {
		ids = append(ids, int64(id))
	}
	if len(ids) == 0 {
		return nil, false, errors.New("it has no tokens, so there is nothing to embed")
	}
	return ids, whole, nil
}

// batch embeds texts in one call of the model, the longest last.
func (e *Embedder) batch(ctx context.Context, list []tokenized, vectors [][]float32) error {
	width := len(list[len(list)-1].ids)
	ids, mask := make([]int64, len(list)*width), make([]int64, len(list)*width)
	for row, text := range list {
		copy(ids[row*width:], text.ids)
		for i := range text.ids {
			mask[row*width+i] = 1
		}
	}
	states, err := e.encode(ctx, ids, mask, len(list), width)
	if err != nil {
		return err
	}
	d := e.dir.dimension
	for row, text := range list {
		first := row * width * d
		if vectors[text.at], err = e.dir.pooling.pool(states[first:first+len(text.ids)*d], d); err != nil {
			return fmt.Errorf("text %d of %d: %w", text.at+1, len(vectors), err)
		}
	}
	return nil
}

// encode calls the model and checks how much it returns.
func (e *Embedder) encode(ctx context.Context, ids, mask []int64, rows, width int) ([]float32, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	e.mu.RLock()
	defer e.mu.RUnlock()
	if e.encoder == nil {
		return nil, mapmatched.ErrClosed
	}
	states, err := e.encoder.encode(ctx, ids, mask, rows, width)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, err
	case len(states) != rows*width*e.dir.dimension:
		return nil, fmt.Errorf("the model returns %d numbers for %d tokens and the pooling configuration says %d for each: take both from one model",
			len(states), rows*width, e.dir.dimension)
	}
	return states, nil
}

// try runs the model once.
func (e *Embedder) try(ctx context.Context) error {
	ids := []int64{0}
	for _, id := range slices.Concat(e.dir.before, e.dir.after) {
		ids = append(ids, int64(id))
	}
	mask := make([]int64, len(ids))
	for i := range mask {
		mask[i] = 1
	}
	_, err := e.encode(ctx, ids, mask, 1, len(ids))
	return err
}
