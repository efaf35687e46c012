package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mapmatched/mmplug/mapmatched/eval"
	"github.com/mapmatched/mmplug/policy"
)

// evalFlags are the flags of mmplug eval.
type evalFlags struct {
	data      evalDataFlags
	vectors   evalVectorFlags
	rewriter  string
	policies  string
	baselines string
	scope     string
	noReplies bool
	samples   int
	seed      uint64
	depth     int
	out       string
	cache     string
	ablations bool
	gate      bool
	asJSON    bool
}

func newEval(std stdio) *cobra.Command {
	var flags evalFlags
	cmd := &cobra.Command{
		Use:   "eval --corpus C --conversations V",
		Short: "Measure policies and baselines on labelled conversations",
		Long: `Rank the turns of labelled conversations by baselines and policies, and report
nDCG, recall, hit rate and MRR by slice, with bootstrap intervals and paired
differences to searching each turn alone. A policy is followed as mmplug ask
follows it. The same files, settings and seed give the same report, byte for byte.

Forms of data (--format):
  shared    --corpus corpus.jsonl --conversations conversations.jsonl
  topiocqa  --conversations turns.json; its passages are the corpus
  cast      --corpus passages.jsonl --conversations topics.json --qrels qrels.txt
  mtrag     --corpus corpus.jsonl --conversations queries.jsonl --qrels qrels.tsv
--synthetic makes data from the seed and needs no files.

With --gate the exit status is 3 when a policy is not better than pointwise search
on follow-ups, or worse by more than 0.02 on turns that stand alone.`,
		Example: `  mmplug eval --synthetic --policy plain
  mmplug eval --corpus corpus.jsonl --conversations conversations.jsonl --scope domain --policy plain,my.policy.yaml --out report`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := flags.check(); err != nil {
				return usageError{err}
			}
			return flags.run(cmd.Context(), std)
		},
	}
	flags.data.add(cmd)
	flags.vectors.add(cmd)
	f := cmd.Flags()
	f.StringVar(&flags.scope, "scope", string(eval.ScopeAll), "which chunks compete: all, domain (those of the conversation's domain), doc_scope (those of its document)")
	f.BoolVar(&flags.noReplies, "no-replies", false, "withhold the assistant's replies from policies, as for an application that does not pass them")
	f.StringVar(&flags.policies, "policy", policy.Plain, "policies to measure, separated by commas: files, or names of those that are built in")
	f.StringVar(&flags.baselines, "baselines", "default", "baselines to measure, separated by commas: "+strings.Join(eval.Baselines(), ", ")+", or none; pointwise always is (default all but llm that the data and the vectors allow)")
	f.StringVar(&flags.rewriter, "rewriter", "", "language model of the baseline llm: "+rewriterUsage)
	f.IntVar(&flags.samples, "bootstrap-samples", eval.DefaultSamples, "bootstrap draws of conversations")
	f.Uint64Var(&flags.seed, "seed", eval.DefaultSeed, "seed of the draws, and of --synthetic")
	f.IntVar(&flags.depth, "depth", eval.DefaultDepth, "chunks that are ranked for a turn")
	f.BoolVar(&flags.ablations, "ablations", false, "measure variants of each policy too, with one setting changed each")
	f.StringVarP(&flags.out, "out", "o", "", "directory to write report.json, report.md and ndcg_3.svg to")
	f.StringVar(&flags.cache, "cache", "", "directory that keeps what is measured, so that an interrupted run goes on; delete it to free the space")
	f.BoolVar(&flags.gate, "gate", false, "exit with status 3 when a gate does not hold")
	f.BoolVar(&flags.asJSON, "json", false, "print the report as JSON")
	for _, dir := range []string{"out", "cache"} {
		_ = cmd.MarkFlagDirname(dir) // for completion; the flag is there
	}
	return cmd
}

// check reports what is wrong with the flags.
func (f *evalFlags) check() error {
	errs := []error{f.data.check(), f.vectors.check()}
	if !slices.Contains(eval.Scopes(), eval.Scope(f.scope)) {
		errs = append(errs, fmt.Errorf("--scope is %q: it is all, domain or doc_scope", f.scope))
	}
	if f.samples < 1 {
		errs = append(errs, fmt.Errorf("--bootstrap-samples is %d: it is at least 1", f.samples))
	}
	if f.seed == 0 {
		errs = append(errs, errors.New("--seed is 0: it is at least 1"))
	}
	if f.gate && len(splitNames(f.policies)) == 0 {
		errs = append(errs, errors.New("--gate judges policies: name one with --policy"))
	}
	if f.depth < 20 {
		errs = append(errs, fmt.Errorf("--depth is %d: it is at least 20", f.depth))
	}
	return errors.Join(errs...)
}

// run measures and reports.
func (f *evalFlags) run(ctx context.Context, std stdio) error {
	began := time.Now()
	if f.out != "" {
		if err := os.MkdirAll(f.out, 0o777); err != nil {
			return cannot("write", f.out, err)
		}
	}
	data, err := f.data.load(ctx, f.seed)
	if err != nil {
		return err
	}
	vectors, model, err := f.vectors.load(ctx, std, began, data, f.cache)
	if err != nil {
		return err
	}
	defer model.close()
	world, err := eval.NewWorld(data, &eval.WorldOptions{Scope: eval.Scope(f.scope), Vectors: vectors, Arm: f.vectors.searched(), NoReplies: f.noReplies})
	if err != nil {
		return err
	}
	methods, err := f.methods(world, vectors)
	if err != nil {
		return err
	}
	version, _ := toolVersion()
	opts := &eval.RunOptions{Samples: f.samples, Seed: f.seed, Tool: "mmplug " + version}
	opts.Depth, opts.Cache = f.depth, f.cache
	if f.cache != "" {
		if opts.CacheSalt, err = programDigest(); err != nil {
			return err
		}
	}
	bar := newProgress(std.err, "measuring", began)
	opts.Progress = bar.update
	report, err := eval.Run(ctx, world, methods, opts)
	bar.done()
	if err != nil {
		return err
	}
	if err := f.write(std, report, ownSearch(world, methods)); err != nil {
		return err
	}
	if f.gate && !report.Hold() {
		var missed []string
		for _, g := range report.Gates {
			if !g.Holds {
				missed = append(missed, g.String())
			}
		}
		return checkError{errors.New(strings.Join(missed, "; "))}
	}
	return nil
}

// methods are the baselines and policies that the flags name. One that embeds
// texts which have no vectors, without a model, is left out if it is a default
// and else refused.
func (f *evalFlags) methods(world *eval.World, vectors *eval.Vectors) ([]eval.Method, error) {
	var methods []eval.Method
	names := splitNames(f.baselines)
	lacks := func(m *eval.Method) error {
		what := m.Embeds(world)
		if what == "" || vectors == nil || vectors.Embedder != nil {
			return nil
		}
		return usageError{fmt.Errorf("method %s embeds %s, which have no vectors in the files: give the model that made these with --embed, or leave the method out", m.Name, what)}
	}
	switch f.baselines {
	case "default":
		names = []string{eval.Pointwise, eval.History, eval.DecayedHistory, eval.MMR}
		if world.Data().HasRewrites() {
			names = append(names, eval.Rewritten)
		}
		if f.rewriter != "" {
			names = append(names, eval.LLM)
		}
		names = slices.DeleteFunc(names, func(name string) bool { return lacks(&eval.Method{Name: name, Baseline: name}) != nil })
	case "none":
		names = nil
	}
	for _, name := range names {
		m, err := eval.BaselineMethod(name)
		if err != nil {
			return nil, usageError{fmt.Errorf("--baselines: %w", err)}
		}
		if err := lacks(&m); err != nil {
			return nil, err
		}
		if name == eval.LLM {
			if m.Rewrite, m.Model, err = openRewriter(f.rewriter, f.cache); err != nil {
				return nil, err
			}
		}
		methods = append(methods, m)
	}
	for _, name := range splitNames(f.policies) {
		used, err := usePolicy(name)
		if err != nil {
			return nil, err
		}
		m := eval.PolicyMethod(used.Policy)
		if err := lacks(&m); err != nil {
			return nil, err
		}
		methods = append(methods, m)
		if f.ablations {
			methods = append(methods, eval.Ablations(used.Policy, vectors != nil)...)
		}
	}
	return methods, nil
}

// splitNames splits names at commas, without white space around them.
func splitNames(list string) []string {
	var names []string
	for name := range strings.SplitSeq(list, ",") {
		if name = strings.TrimSpace(name); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// programDigest is the SHA-256 of this program, so that another build measures
// anew.
func programDigest() (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", err
	}
	return fileDigest(path)
}

// fileDigest is the SHA-256 of a file, in hexadecimal.
func fileDigest(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close() //nolint:errcheck // only read
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// ownSearch says of which policies the differences to pointwise are not those of
// decoding alone.
func ownSearch(world *eval.World, methods []eval.Method) string {
	var b strings.Builder
	for i := range methods {
		if sections := methods[i].OwnSections(world); len(sections) > 0 && !methods[i].Ablation {
			fmt.Fprintf(&b, "* policy %s finds candidates by its own %s, pointwise by the default: the difference is what that and decoding gain together\n",
				printable(methods[i].Name), strings.Join(sections, " and "))
		}
	}
	return b.String()
}

// write puts the report where the flags say, with notes at the end of the
// Markdown.
func (f *evalFlags) write(std stdio, r *eval.Report, notes string) error {
	markdown := func(w io.Writer) error {
		if err := r.WriteMarkdown(w); err != nil {
			return err
		}
		_, err := io.WriteString(w, notes)
		return err
	}
	if f.out != "" {
		for _, part := range []struct {
			name  string
			write func(io.Writer) error
		}{{"report.json", r.WriteJSON}, {"report.md", markdown}, {"ndcg_3.svg", r.WriteSVG}} {
			if err := writeFile(std, filepath.Join(f.out, part.name), part.write); err != nil {
				return err
			}
		}
	}
	if f.asJSON {
		return r.WriteJSON(std.out)
	}
	return printReport(std, r)
}

// printReport shows a person nDCG@3 by slice, with the difference to pointwise.
func printReport(std stdio, r *eval.Report) error {
	fmt.Fprintf(std.out, "%s: %s of %s, scope %s, %s arm; nDCG@3, and against pointwise\n\n", //nolint:errcheck // the sink tells
		printable(r.Data.Name), count(r.Data.ScoredTurns, "scored turn", "scored turns"), count(r.Data.Conversations, "conversation", "conversations"), r.Scope, r.Arm)
	header, right := []string{"method"}, []int{}
	for i, s := range r.Slices {
		header = append(header, fmt.Sprintf("%s (%d)", s.Name, s.Turns))
		right = append(right, i+1)
	}
	var rows [][]string
	for i := range r.Methods {
		m := &r.Methods[i]
		row := []string{printable(m.Name)}
		for _, s := range m.Slices {
			value := fmt.Sprintf("%.3f", s.Metrics[eval.NDCG3].Mean)
			if s.Delta != nil {
				value += fmt.Sprintf(" %+.3f", s.Delta[eval.NDCG3].Mean)
			}
			row = append(row, value)
		}
		rows = append(rows, row)
	}
	if err := table(std.out, header, rows, right...); err != nil {
		return err
	}
	if len(r.Gates) > 0 {
		fmt.Fprintln(std.out) //nolint:errcheck // the sink tells
	}
	for _, g := range r.Gates {
		fmt.Fprintln(std.out, printable(g.String())) //nolint:errcheck // the sink tells
	}
	return nil
}
