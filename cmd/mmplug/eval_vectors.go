package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/mapmatched/mmplug/adapters/embedded"
	"github.com/mapmatched/mmplug/graphbuild"
	"github.com/mapmatched/mmplug/mapmatched/eval"
	"github.com/mapmatched/mmplug/policy"
)

// evalVectorFlags say where vectors come from, and what is searched by.
type evalVectorFlags struct {
	arm, embed             string
	vectors, ids           string
	queryVectors, queryIDs string
}

func (f *evalVectorFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.arm, "arm", "", "what candidates are found by: lexical, dense or hybrid (default lexical, hybrid with vectors)")
	cmd.Flags().Var((*modelSpec)(&f.embed), "embed", "embed chunks and questions with this model: "+embedUsage)
	cmd.Flags().StringVar(&f.vectors, "vectors", "", "instead: vectors of the chunks (.npy)")
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
	case files > 0 && f.embed != "":
		return errors.New("vectors come from --embed or from files: leave out one")
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
	if f.vectors != "" {
		v, err := f.read()
		return v, nil, err
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
	id := model.identity
	bar := newProgress(std.err, "embedding", began)
	v, err := eval.Embed(ctx, data, model, policy.VectorIdentity{Provider: id.Provider, Model: id.Model, Revision: id.Revision, Normalization: id.Normalization}, cache, bar.update)
	bar.done()
	if err != nil {
		model.close()
		return nil, nil, err
	}
	model.warnTruncated(std.err, len(data.Corpus.Chunks))
	return v, model, nil
}

// read reads the vectors from files. What made them is not known, so their
// digests are their revision.
func (f *evalVectorFlags) read() (*eval.Vectors, error) {
	v := &eval.Vectors{Identity: policy.VectorIdentity{Provider: "file", Model: filepath.Base(f.vectors), Normalization: embedded.NormalizationL2}}
	var err error
	if v.Identity.Revision, err = fileDigest(f.vectors); err != nil {
		return nil, err
	}
	for _, part := range []struct {
		vectors, ids string
		add          func(graphbuild.VectorSource) error
	}{{f.vectors, f.ids, v.AddChunks}, {f.queryVectors, f.queryIDs, v.AddTurns}} {
		file, err := graphbuild.OpenVectors(part.vectors, part.ids)
		if err != nil {
			return nil, err
		}
		if err := errors.Join(part.add(file), file.Close()); err != nil {
			return nil, fmt.Errorf("%s: %w", part.vectors, err)
		}
	}
	return v, nil
}
