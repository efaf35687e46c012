package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mapmatched/mmplug/adapters/embedded"
	"github.com/mapmatched/mmplug/adapters/embedded/onnx"
	_ "github.com/mapmatched/mmplug/adapters/langchaingo" // embedding services
	"github.com/mapmatched/mmplug/graphbuild"
	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/mapmatched/registry"
	"github.com/mapmatched/mmplug/policy"
)

// embedUsage says what --embed takes.
const embedUsage = "a sentence-transformers directory with an ONNX model, or a URL such as langchaingo:ollama?model=NAME"

// modelSpec is the value of --embed. An empty one, as an unset variable of the
// shell leaves it, is refused rather than taken for none.
type modelSpec string

// String implements pflag.Value.
func (m *modelSpec) String() string { return string(*m) }

// Type implements pflag.Value.
func (*modelSpec) Type() string { return "string" }

// Set implements pflag.Value.
func (m *modelSpec) Set(s string) error {
	if strings.TrimSpace(s) == "" {
		return errors.New("it names no model; give " + embedUsage)
	}
	*m = modelSpec(s)
	return nil
}

// embedding is a model with the identity of its vectors.
type embedding struct {
	mapmatched.Embedder
	spec     string                  // what --embed said
	identity embedded.VectorIdentity // its dimension is 0 until the first vectors are there
}

// openEmbedding opens the model that --embed names: a directory or a URL.
func openEmbedding(ctx context.Context, spec string) (*embedding, error) {
	e := &embedding{spec: spec}
	var err error
	if _, missing := os.Stat(spec); missing == nil {
		var model *onnx.Embedder
		if model, err = onnx.Open(ctx, spec, nil); err == nil {
			e.Embedder = model
		}
	} else if strings.Contains(spec, ":") {
		e.Embedder, err = registry.OpenEmbedder(ctx, spec)
	} else {
		err = fmt.Errorf("--embed %s: there is no such directory; give %s", spec, embedUsage)
	}
	if err != nil {
		return nil, err
	}
	e.identity = identityOf(e.Embedder, spec)
	return e, nil
}

// identityOf is what an embedder says of itself, or what its URL says: the
// parameter model is the model, what is before the parameters the provider.
// Without that parameter, what follows the scheme is the model. With it, the
// parameter revision is the revision.
func identityOf(e mapmatched.Embedder, spec string) embedded.VectorIdentity {
	if known, ok := e.(interface {
		Identity() embedded.VectorIdentity
	}); ok {
		return known.Identity()
	}
	place, query, _ := strings.Cut(spec, "?")
	scheme, rest, _ := strings.Cut(place, ":")
	id := embedded.VectorIdentity{Provider: strings.ToLower(scheme), Model: rest, Normalization: embedded.NormalizationL2}
	if values, err := url.ParseQuery(query); err == nil && values.Get("model") != "" {
		id.Provider, id.Model, id.Revision = id.Provider+":"+rest, values.Get("model"), values.Get("revision")
	}
	return id
}

// close frees the model, if there is one.
func (e *embedding) close() {
	if e == nil {
		return
	}
	if c, ok := e.Embedder.(io.Closer); ok {
		c.Close() //nolint:errcheck // the program has what it wanted of it
	}
}

// truncated says how many texts were longer than the model takes, and how many
// tokens that is; 0 for models that do not say.
func (e *embedding) truncated() (texts, tokens int) {
	if e == nil {
		return 0, 0
	}
	if m, ok := e.Embedder.(interface {
		Truncated() int
		MaxTokens() int
	}); ok {
		return m.Truncated(), m.MaxTokens()
	}
	return 0, 0
}

// warnTruncated tells of the chunks that are in the vectors in part only.
func (e *embedding) warnTruncated(w io.Writer, chunks int) {
	texts, tokens := e.truncated()
	if texts == 0 {
		return
	}
	verb := "are"
	if texts == 1 {
		verb = "is"
	}
	fmt.Fprintf(w, "warning: %d of %s %s longer than %d tokens; the rest is not in the vectors\n", texts, count(chunks, "chunk", "chunks"), verb, tokens) //nolint:errcheck // stderr may be gone
}

// embedBatch is how many chunks are embedded between two steps of the bar.
const embedBatch = 64

// vectors embeds the texts of chunks.
func (e *embedding) vectors(ctx context.Context, std stdio, began time.Time, chunks []mapmatched.Chunk) ([][]float32, error) {
	bar := newProgress(std.err, "embedding", began)
	defer bar.done()
	vectors := make([][]float32, 0, len(chunks))
	for len(vectors) < len(chunks) {
		got, err := e.batch(ctx, chunks, len(vectors))
		if err != nil {
			return nil, err
		}
		vectors = append(vectors, got...)
		bar.update(len(vectors), len(chunks))
	}
	return vectors, nil
}

// batch embeds the texts of the next embedBatch chunks, or those that are left,
// from position first on.
func (e *embedding) batch(ctx context.Context, chunks []mapmatched.Chunk, first int) ([][]float32, error) {
	batch := chunks[first:min(first+embedBatch, len(chunks))]
	texts := make([]string, len(batch))
	for i := range batch {
		texts[i] = batch[i].Text
	}
	got, err := e.Embed(ctx, texts)
	if err == nil && len(got) != len(texts) {
		err = fmt.Errorf("the embedder returned %d vectors for %d texts", len(got), len(texts))
	}
	if err != nil {
		return nil, fmt.Errorf("cannot embed chunks %d to %d of %d, from %q on: %w", first+1, first+len(batch), len(chunks), batch[0].ID, err)
	}
	return got, nil
}

// vectorFlags are the flags of mmplug index that add vectors.
type vectorFlags struct {
	embed string
	knn   int
}

func (f *vectorFlags) add(cmd *cobra.Command) {
	cmd.Flags().Var((*modelSpec)(&f.embed), "embed", "embed the chunks with this model: "+embedUsage)
	cmd.Flags().IntVar(&f.knn, "knn", 0, "join each chunk to this many nearest ones by --embed (default none)")
}

// open opens the model that the flags name, nil without one.
func (f *vectorFlags) open(ctx context.Context) (*embedding, error) {
	switch {
	case f.knn < 0:
		return nil, usageError{fmt.Errorf("--knn is %d: give 1 or more, or 0 for none", f.knn)}
	case f.knn > 0 && f.embed == "":
		return nil, usageError{errors.New("--knn joins chunks by their vectors: give a model with --embed")}
	case f.embed == "":
		return nil, nil
	}
	return openEmbedding(ctx, f.embed)
}

// addVectors gives an index the vectors of its chunks and, with knn above 0, the
// edges to each chunk's nearest ones. Without a model it does nothing.
func (e *embedding) addVectors(ctx context.Context, std stdio, began time.Time, in *embedded.Input, knn int) error {
	if e == nil {
		return nil
	}
	vectors, err := e.vectors(ctx, std, began, in.Chunks)
	if err != nil {
		return err
	}
	in.Vectors, in.VectorIdentity = vectors, e.identity
	if knn == 0 {
		return nil
	}
	ids := make([]string, len(in.Chunks))
	for i := range in.Chunks {
		ids[i] = in.Chunks[i].ID
	}
	bar := newProgress(std.err, "joining", began)
	defer bar.done()
	edges, err := graphbuild.KNN(ctx, ids, vectors, &graphbuild.KNNOptions{K: knn, Progress: bar.update})
	if err != nil {
		return err
	}
	in.Edges = slices.Concat(in.Edges, edges)
	return nil
}

// pinned refuses a model that is not the one a policy pins, and a policy that
// pins one when there is none. The dimension is compared when it is known.
func (e *embedding) pinned(p *policy.Policy) error {
	v := p.Vectors
	switch {
	case v.Provider == "":
		return nil
	case e == nil:
		return fmt.Errorf("policy %s pins the vectors of model %q: give that model with --embed", p.Name, v.Model)
	}
	got, want := e.identity, embedded.VectorIdentity{Provider: v.Provider, Model: v.Model, Revision: v.Revision, Dimension: v.Dimension, Normalization: v.Normalization}
	if got.Dimension == 0 {
		got.Dimension = want.Dimension
	}
	if diff := got.Differences(want); diff != nil {
		return fmt.Errorf("policy %s pins another model than --embed %s: %s; give the pinned one, or pin this one", p.Name, e.spec, strings.Join(diff, "; "))
	}
	return nil
}

// armFlags are the flags of the commands that ask an index.
type armFlags struct {
	arm, embed string
}

func (f *armFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.arm, "arm", "", "how passages are found: lexical, by words, or dense, by vectors (default lexical, dense with --embed)")
	cmd.Flags().Var((*modelSpec)(&f.embed), "embed", "embed the questions with the model that made the index: "+embedUsage)
}

// open opens an index to be asked in the way of the flags. The model, nil when
// questions are not embedded, is closed after the index.
func (f *armFlags) open(ctx context.Context, dir string) (*embedded.Index, *embedding, error) {
	arm := embedded.Arm(f.arm)
	switch {
	case arm == "" && f.embed != "":
		arm = embedded.ArmDense
	case arm == embedded.ArmLexical && f.embed != "":
		return nil, nil, usageError{errors.New("--embed is for the dense arm: leave out one of --embed and --arm lexical")}
	case arm == embedded.ArmDense && f.embed == "":
		return nil, nil, usageError{errors.New("the dense arm embeds the questions: give the model that made the index with --embed")}
	case arm != "" && arm != embedded.ArmLexical && arm != embedded.ArmDense:
		return nil, nil, usageError{fmt.Errorf("there is no arm %q: --arm is %s or %s", arm, embedded.ArmLexical, embedded.ArmDense)}
	}
	if arm != embedded.ArmDense {
		x, err := embedded.Open(ctx, dir, &embedded.Options{Arm: arm})
		return x, nil, err
	}
	model, err := openEmbedding(ctx, f.embed)
	if err != nil {
		return nil, nil, err
	}
	x, err := embedded.Open(ctx, dir, &embedded.Options{Arm: arm, Embedder: model})
	if err == nil {
		if err = model.made(dir, x.Manifest()); err != nil {
			x.Close() //nolint:errcheck // only read
		}
	}
	if err != nil {
		model.close()
		return nil, nil, err
	}
	return x, model, nil
}

// made refuses an index with the vectors of another model.
func (e *embedding) made(dir string, m embedded.Manifest) error {
	want := e.identity
	if want.Dimension == 0 { // the index itself compares it with the first question's
		want.Dimension = m.Vectors.Dimension
	}
	if diff := m.Vectors.Differences(want); diff != nil {
		return fmt.Errorf("%s: %w: its vectors are of another model than --embed %s: %s; give the model that made them, or index again with this one",
			dir, mapmatched.ErrStaleIndex, e.spec, strings.Join(diff, "; "))
	}
	return nil
}
