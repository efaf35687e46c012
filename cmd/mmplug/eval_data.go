package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/mapmatched/mmplug/mapmatched/eval"
)

// evalDataFlags say which data is measured on.
type evalDataFlags struct {
	format, corpus, conversations, qrels, rewrites string
	synthetic                                      bool
}

func (f *evalDataFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.format, "format", "shared", "form of the data: shared, topiocqa, cast or mtrag")
	cmd.Flags().StringVar(&f.corpus, "corpus", "", "file of the chunks or passages")
	cmd.Flags().StringVar(&f.conversations, "conversations", "", "file of the conversations, topics or queries")
	cmd.Flags().StringVar(&f.qrels, "qrels", "", "cast and mtrag: file of the judgements")
	cmd.Flags().StringVar(&f.rewrites, "rewrites", "", "cast and mtrag: file of queries that stand alone")
	cmd.Flags().BoolVar(&f.synthetic, "synthetic", false, "make data of known structure from the seed instead of reading files")
}

func (f *evalDataFlags) check() error {
	given := map[string]bool{"--corpus": f.corpus != "", "--conversations": f.conversations != "", "--qrels": f.qrels != "", "--rewrites": f.rewrites != ""}
	names := []string{"--corpus", "--conversations", "--qrels", "--rewrites"}
	needs := map[string][2]int{"shared": {2, 2}, "topiocqa": {2, 2}, "cast": {3, 4}, "mtrag": {3, 4}} // how many of names are needed, and allowed
	bounds, known := needs[f.format]
	if !known {
		return fmt.Errorf("--format is %q: it is shared, topiocqa, cast or mtrag", f.format)
	}
	if f.synthetic {
		bounds = [2]int{}
	}
	what := "--format " + f.format
	if f.synthetic {
		what = "--synthetic"
	}
	var errs []error
	for i, name := range names {
		needed, allowed := i < bounds[0], i < bounds[1]
		if f.format == "topiocqa" && name == "--corpus" {
			needed, allowed = false, false
		}
		switch {
		case needed && !given[name]:
			errs = append(errs, fmt.Errorf("%s needs %s", what, name))
		case !allowed && given[name]:
			errs = append(errs, fmt.Errorf("%s has no %s", what, name))
		}
	}
	if len(errs) > 0 && !f.synthetic && f.corpus == "" && f.conversations == "" {
		return errors.New("say what to measure on: --corpus and --conversations, or --synthetic")
	}
	return errors.Join(errs...)
}

func (f *evalDataFlags) load(ctx context.Context, seed uint64) (data *eval.Data, err error) {
	switch {
	case f.synthetic:
		return eval.Synthetic(&eval.SyntheticOptions{Seed: seed})
	case f.format == "topiocqa":
		return eval.LoadTopiOCQA(ctx, f.conversations)
	case f.format == "cast":
		return eval.LoadCAsT(ctx, eval.CAsTFiles{Topics: f.conversations, Passages: f.corpus, Qrels: f.qrels, Rewrites: f.rewrites})
	case f.format == "mtrag":
		return eval.LoadMTRAG(ctx, eval.MTRAGFiles{Corpus: f.corpus, Queries: f.conversations, Qrels: f.qrels, Rewrites: f.rewrites})
	}
	return eval.Load(ctx, f.corpus, f.conversations)
}
