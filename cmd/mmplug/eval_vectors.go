package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mapmatched/mmplug/adapters/embedded"
	"github.com/mapmatched/mmplug/graphbuild"
	"github.com/mapmatched/mmplug/mapmatched/eval"
	"github.com/mapmatched/mmplug/policy"
)

// evalVectorFlags say where vectors come from, and what is searched by.
type evalVectorFlags struct {
	arm, embed, index      string
	vectors, ids           string
	queryVectors, queryIDs string
}

func (f *evalVectorFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.arm, "arm", "", "what candidates are found by: lexical, dense or hybrid (default lexical, hybrid with vectors)")
	cmd.Flags().Var((*modelSpec)(&f.embed), "embed", "embed chunks and questions with this model, or with --vectors what else is searched by, such as rewritten queries and replies: "+embedUsage)
	cmd.Flags().StringVar(&f.index, "index", "", "take the vectors of the chunks from this index directory; --embed names the model that made it")
	_ = cmd.MarkFlagDirname("index") // for completion; the flag is there
	cmd.Flags().StringVar(&f.vectors, "vectors", "", "vectors of the chunks (.npy), made before")
	cmd.Flags().StringVar(&f.ids, "ids", "", "the chunk ID of each row of --vectors, one a line")
	cmd.Flags().StringVar(&f.queryVectors, "query-vectors", "", "vectors of the questions (.npy)")
	cmd.Flags().StringVar(&f.queryIDs, "query-ids", "", "the turn of each row of --query-vectors, one a line: CONVERSATION/TURN, turns from 1")
}

func (f *evalVectorFlags) check() error {
	files := 0
	for _, path := range []string{f.vectors, f.ids, f.queryVectors, f.queryIDs} {
		if path != "" {
			files++
		}
	}
	switch {
	case f.arm != "" && f.arm != string(eval.ArmLexical) && f.arm != string(eval.ArmDense) && f.arm != string(eval.ArmHybrid):
		return fmt.Errorf("--arm is %q: it is lexical, dense or hybrid", f.arm)
	case f.index != "" && files > 0:
		return errors.New("--index has the vectors of the chunks: leave out the files")
	case f.index != "" && f.embed == "":
		return errors.New("--index has no vectors of the questions: give the model that made it with --embed")
	case files > 0 && files < 4:
		return errors.New("vectors from files need --vectors, --ids, --query-vectors and --query-ids")
	case files == 0 && f.embed == "" && f.arm != "" && f.arm != string(eval.ArmLexical):
		return fmt.Errorf("--arm %s needs vectors: give a model with --embed, or files", f.arm)
	}
	return nil
}

// searched is the arm of the flags.
func (f *evalVectorFlags) searched() eval.Arm {
	if f.arm == "" && (f.embed != "" || f.vectors != "") {
		return eval.ArmHybrid
	}
	return eval.Arm(f.arm)
}

// load returns the vectors of the flags, nil without, and the model to close.
func (f *evalVectorFlags) load(ctx context.Context, std stdio, began time.Time, data *eval.Data, cache string) (*eval.Vectors, *embedding, error) {
	var v *eval.Vectors
	var err error
	if f.vectors != "" {
		if v, err = f.read(std, data); err != nil || f.embed == "" {
			return v, nil, err
		}
	}
	if f.embed == "" {
		return nil, nil, nil
	}
	model, err := openEmbedding(ctx, f.embed)
	if err != nil {
		return nil, nil, err
	}
	if cache != "" {
		cache = filepath.Join(cache, "vectors")
	}
	id := policy.VectorIdentity{Provider: model.identity.Provider, Model: model.identity.Model, Revision: model.identity.Revision, Normalization: model.identity.Normalization}
	if f.index != "" {
		v, err = f.fromIndex(ctx, data, model)
	}
	switch {
	case err != nil:
	case v != nil:
		err = f.others(ctx, std, v, data, model, id, cache)
	default:
		bar := newProgress(std.err, "embedding", began)
		v, err = eval.Embed(ctx, data, model, id, cache, bar.update)
		bar.done()
	}
	if err != nil {
		model.close()
		return nil, nil, err
	}
	model.warnTruncated(std.err, len(data.Corpus.Chunks))
	return v, model, nil
}

// fromIndex reads the vectors of the chunks from an index that the model made.
func (f *evalVectorFlags) fromIndex(ctx context.Context, data *eval.Data, model *embedding) (*eval.Vectors, error) {
	x, err := embedded.Open(ctx, f.index, nil)
	if err != nil {
		return nil, err
	}
	defer x.Close() //nolint:errcheck // only read
	id := x.Manifest().Vectors
	if id == nil {
		return nil, fmt.Errorf("%s: it has no vectors: index with --embed, or leave out --index", f.index)
	}
	if err := model.made(f.index, x.Manifest()); err != nil {
		return nil, err
	}
	ids := make([]string, len(data.Corpus.Chunks))
	for i := range ids {
		ids[i] = data.Corpus.Chunks[i].ID
	}
	vectors, err := x.Vectors(ctx, ids)
	if err != nil {
		return nil, err
	}
	v := &eval.Vectors{Identity: policy.VectorIdentity{Provider: id.Provider, Model: id.Model, Revision: id.Revision, Normalization: id.Normalization}}
	for i, vector := range vectors {
		if vector == nil {
			return nil, fmt.Errorf("%s: it has no vector of chunk %q of the data: index the same chunks, or leave out --index", f.index, ids[i])
		}
		if err := v.AddChunk(ids[i], vector); err != nil {
			return nil, fmt.Errorf("%s: %w", f.index, err)
		}
	}
	return v, nil
}

// alike is the cosine that two vectors of one text by one model have at least.
const alike = 0.95

// others lets the model embed what the files have no vectors of.
func (f *evalVectorFlags) others(ctx context.Context, std stdio, v *eval.Vectors, data *eval.Data, model *embedding, id policy.VectorIdentity, cache string) error {
	similarity, err := v.EmbedOthers(ctx, data, model, id, cache)
	if err != nil {
		return fmt.Errorf("--embed %s and %s: %w", f.embed, f.queryVectors, err)
	}
	if similarity < alike {
		fmt.Fprintf(std.err, "warning: --embed %s gives a question another vector than %s has (cosine %.3f); give the model that made the files\n", //nolint:errcheck // stderr may be gone
			f.embed, f.queryVectors, similarity)
	}
	return nil
}

// read reads the vectors from files. What made them is not known, so their
// digests are their revision.
func (f *evalVectorFlags) read(std stdio, data *eval.Data) (*eval.Vectors, error) {
	v := &eval.Vectors{Identity: policy.VectorIdentity{Provider: "file", Model: filepath.Base(f.vectors), Normalization: embedded.NormalizationL2}}
	var err error
	if v.Identity.Revision, err = fileDigest(f.vectors); err != nil {
		return nil, err
	}
	chunks, turns := map[string]bool{}, map[string]bool{}
	for i := range data.Corpus.Chunks {
		chunks[data.Corpus.Chunks[i].ID] = true
	}
	for i := range data.Conversations {
		c := &data.Conversations[i]
		for t := range c.Turns {
			turns[eval.TurnID(c.ID, t)] = true
		}
	}
	for _, part := range []struct {
		vectors, ids, what string
		known              map[string]bool
		add                func(graphbuild.VectorSource) error
	}{{f.vectors, f.ids, "chunk", chunks, v.AddChunks}, {f.queryVectors, f.queryIDs, "turn", turns, v.AddTurns}} {
		file, err := graphbuild.OpenVectors(part.vectors, part.ids)
		if err != nil {
			return nil, idError{err, part.what}
		}
		err = warnUnknown(std, part.ids, part.what, file, part.known)
		if err == nil {
			if err = part.add(file); err != nil {
				err = fmt.Errorf("%s, with the IDs of %s: %w", part.vectors, part.ids, err)
			}
		}
		if err := errors.Join(err, file.Close()); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// warnUnknown tells of the IDs that the data does not have. It is an error when
// it has none of them.
func warnUnknown(std stdio, path, what string, file graphbuild.VectorSource, known map[string]bool) error {
	unknown, first := 0, ""
	for i := range file.Len() {
		if id := file.ID(i); !known[id] {
			if unknown++; unknown == 1 {
				first = id
			}
		}
	}
	switch {
	case unknown == 0:
	case unknown == file.Len():
		form := "the chunk IDs of --corpus"
		if what == "turn" {
			form = "CONVERSATION/TURN, turns from 1"
		}
		return fmt.Errorf("%s: none of %s, such as %q, is a %s of the data: write %s", path, count(unknown, "ID", "IDs"), first, what, form)
	default:
		fmt.Fprintf(std.err, "warning: %s: %d of %s, such as %q, are no %s of the data; they are left out\n", //nolint:errcheck // stderr may be gone
			path, unknown, count(file.Len(), "ID", "IDs"), first, what)
	}
	return nil
}

// idError is an error about a file of IDs, in the words for what has them.
type idError struct {
	error
	what string
}

func (e idError) Error() string { return strings.ReplaceAll(e.error.Error(), "chunk ID", e.what+" ID") }

func (e idError) Unwrap() error { return e.error }
