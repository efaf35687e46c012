package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mapmatched/mmplug/mapmatched/eval"
	"github.com/mapmatched/mmplug/policy"
)

// tuneFlags are the flags of mmplug tune.
type tuneFlags struct {
	corpora, conversations      []string
	scopes, weights, replies    []string
	synthetic                   bool
	base, name, out, report     string
	folds, generations, samples int
	seed                        uint64
	freeze, asJSON              bool
}

func newTune(std stdio) *cobra.Command {
	var flags tuneFlags
	cmd := &cobra.Command{
		Use:   "tune --corpus C --conversations V --out FILE.policy.yaml",
		Short: "Make a policy from conversations",
		Long: `Search for the parameters of a policy on labelled conversations: weights, the gate
of the context arms, what kinds of moves cost, the order of ranking. Conversations
are dealt into folds, and what is reported of each fold comes from a policy that
was not tuned on it. The same files, settings and seed give the same policy.

Several sets are tuned on together: give --corpus, --conversations, --scope,
--replies and --weight once for each, in the same order.

No policy is written that falls below searching each turn alone on any slice by
the whole of a 95% interval; the report says on which (exit status 3). Where the
topic switches, which no turn shows beforehand, up to 0.1 may be lost. Without any label only the costs of moves
are learnt, by expectation–maximisation, and nothing can be measured.`,
		Example: `  mmplug tune --corpus corpus.jsonl --conversations log.jsonl --out team.policy.yaml --report tuning
  mmplug tune --synthetic --out try.policy.yaml`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := flags.check(); err != nil {
				return usageError{err}
			}
			return flags.run(cmd.Context(), std)
		},
	}
	f := cmd.Flags()
	f.StringArrayVar(&flags.corpora, "corpus", nil, "file of the chunks (corpus.jsonl); repeated for each set")
	f.StringArrayVar(&flags.conversations, "conversations", nil, "file of the conversations (conversations.jsonl); repeated for each set")
	f.StringArrayVar(&flags.scopes, "scope", nil, "which chunks compete: all, domain or doc_scope; once for all sets, or repeated for each (default all)")
	f.StringArrayVar(&flags.replies, "replies", nil, "whether the assistant's replies are passed: yes or no; once for all sets, or repeated for each (default yes)")
	f.StringArrayVar(&flags.weights, "weight", nil, "what a set counts; once for all sets, or repeated for each (default 1)")
	f.BoolVar(&flags.synthetic, "synthetic", false, "make data of known structure from the seed instead of reading files")
	f.StringVar(&flags.base, "policy", policy.Plain, "policy to begin from: a file, or the name of one that is built in")
	f.StringVar(&flags.name, "name", "", "name of the new policy (default: from the file name)")
	f.StringVarP(&flags.out, "out", "o", "", "policy file to write (.yaml, .json or .toml)")
	f.StringVar(&flags.report, "report", "", "directory to write report.json and report.md to")
	f.IntVar(&flags.folds, "folds", eval.DefaultFolds, "folds that conversations are dealt into")
	f.IntVar(&flags.generations, "generations", eval.DefaultGenerations, "most generations of a search")
	f.IntVar(&flags.samples, "bootstrap-samples", eval.DefaultSamples, "bootstrap draws of conversations")
	f.Uint64Var(&flags.seed, "seed", eval.DefaultSeed, "seed of the search, the draws and --synthetic")
	f.BoolVar(&flags.freeze, "freeze", false, "freeze the policy on its report; needs --report")
	f.BoolVar(&flags.asJSON, "json", false, "print the report as JSON")
	_ = cmd.MarkFlagDirname("report") // for completion; the flag is there
	return cmd
}

// check reports what is wrong with the flags.
func (f *tuneFlags) check() error {
	var errs []error
	fault := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	switch {
	case f.synthetic && len(f.corpora)+len(f.conversations) > 0:
		fault("--synthetic has no --corpus and --conversations")
	case !f.synthetic && len(f.corpora) == 0 && len(f.conversations) == 0:
		fault("say what to tune on: --corpus and --conversations, or --synthetic")
	case len(f.corpora) != len(f.conversations):
		fault("%s and %s: give both once for each set", count(len(f.corpora), "--corpus", "--corpus"), count(len(f.conversations), "--conversations", "--conversations"))
	}
	sets := max(len(f.corpora), 1)
	for _, list := range []struct {
		name   string
		values []string
	}{{"--scope", f.scopes}, {"--weight", f.weights}, {"--replies", f.replies}} {
		if n := len(list.values); n > 1 && n != sets {
			fault("%s is given %d times for %s: give it once, or once for each", list.name, n, count(sets, "set", "sets"))
		}
	}
	for _, scope := range f.scopes {
		if !slices.Contains(eval.Scopes(), eval.Scope(scope)) {
			fault("--scope is %q: it is all, domain or doc_scope", scope)
		}
	}
	for _, replies := range f.replies {
		if replies != "yes" && replies != "no" {
			fault("--replies is %q: it is yes or no", replies)
		}
	}
	for _, weight := range f.weights {
		if w, err := strconv.ParseFloat(weight, 64); err != nil || !(w > 0 && w <= 1e6) {
			fault("--weight is %q: it is a number above 0", weight)
		}
	}
	if f.out == "" {
		fault("say where to write the policy: --out FILE.policy.yaml")
	} else if _, err := policy.FormatOf(f.out); err != nil {
		fault("--out %s: %w", f.out, err)
	}
	if f.freeze && f.report == "" {
		fault("--freeze rests on a report: give --report DIR")
	}
	if f.samples < 1 {
		fault("--bootstrap-samples is %d: it is at least 1", f.samples)
	}
	if f.generations < 1 {
		fault("--generations is %d: it is at least 1", f.generations)
	}
	if f.folds < 3 {
		fault("--folds is %d: it is at least 3", f.folds)
	}
	if f.seed == 0 {
		fault("--seed is 0: it is at least 1")
	}
	return errors.Join(errs...)
}

// of is the value of a set, where one value counts for all.
func of(values []string, set int, fallback string) string {
	switch {
	case len(values) == 0:
		return fallback
	case len(values) == 1:
		return values[0]
	}
	return values[set]
}

// load reads the sets.
func (f *tuneFlags) load(ctx context.Context) ([]eval.TuneSet, error) {
	var sets []eval.TuneSet
	for i := range max(len(f.corpora), 1) {
		var data *eval.Data
		var err error
		if f.synthetic {
			data, err = eval.Synthetic(&eval.SyntheticOptions{Seed: f.seed})
		} else {
			data, err = eval.Load(ctx, f.corpora[i], f.conversations[i])
		}
		if err != nil {
			return nil, err
		}
		world, err := eval.NewWorld(data, &eval.WorldOptions{Scope: eval.Scope(of(f.scopes, i, string(eval.ScopeAll))), NoReplies: of(f.replies, i, "yes") == "no"})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", data.Name, err)
		}
		weight, err := strconv.ParseFloat(of(f.weights, i, "1"), 64)
		if err != nil {
			return nil, err
		}
		sets = append(sets, eval.TuneSet{World: world, Weight: weight})
	}
	return sets, nil
}

// run tunes, reports and writes the policy.
func (f *tuneFlags) run(ctx context.Context, std stdio) error {
	began := time.Now()
	if isThere(f.out) {
		return fmt.Errorf("%s is there already: give another name for the tuned policy", f.out)
	}
	if f.report != "" {
		if err := os.MkdirAll(f.report, 0o777); err != nil {
			return cannot("write", f.report, err)
		}
		if path := filepath.Join(f.report, "report.json"); isThere(path) {
			return fmt.Errorf("%s is there already, and a policy may be frozen on it: give another directory", path)
		}
	}
	for _, path := range f.targets() { // before any time is spent
		if err := checkTarget(path); err != nil {
			return cannot("write", path, err)
		}
	}
	base, err := usePolicy(f.base)
	if err != nil {
		return err
	}
	sets, err := f.load(ctx)
	if err != nil {
		return err
	}
	name := f.name
	if name == "" {
		name, _, _ = strings.Cut(filepath.Base(f.out), ".")
	}
	version, _ := toolVersion()
	bar := newProgress(std.err, "tuning", began)
	tuned, err := eval.Tune(ctx, base.Policy, sets, &eval.TuneOptions{Name: name, Folds: f.folds, Generations: f.generations,
		Samples: f.samples, Seed: f.seed, Tool: "mmplug " + version, Progress: bar.update})
	bar.done()
	if err != nil {
		return err
	}
	if f.report != "" {
		for _, part := range []struct {
			name  string
			write func(io.Writer) error
		}{{"report.json", tuned.Report.WriteJSON}, {"report.md", tuned.Report.WriteMarkdown}} {
			if err := writeFile(std, filepath.Join(f.report, part.name), part.write); err != nil {
				return err
			}
		}
	}
	if f.asJSON {
		if err := tuned.Report.WriteJSON(std.out); err != nil {
			return err
		}
	} else if err := printTuning(std, tuned.Report); err != nil {
		return err
	}
	if refused := tuned.Report.Refused; len(refused) > 0 {
		return checkError{fmt.Errorf("no policy is written, because it may be worse than searching each turn alone: %s", strings.Join(refused, "; "))}
	}
	if f.freeze && len(tuned.Report.Sets) == 0 {
		return checkError{errors.New("no policy is frozen without evidence: the conversations have no labels, so nothing was measured; leave out --freeze")}
	}
	return f.write(std, tuned.Policy)
}

func isThere(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// targets are the files that are written.
func (f *tuneFlags) targets() []string {
	if f.report == "" {
		return []string{f.out}
	}
	return []string{f.out, filepath.Join(f.report, "report.json"), filepath.Join(f.report, "report.md")}
}

// write writes the policy, frozen on the report if that is asked for.
func (f *tuneFlags) write(std stdio, p *policy.Policy) error {
	if f.freeze {
		evidence, err := policy.EvidenceOf(filepath.Join(f.report, "report.json"))
		if err != nil {
			return err
		}
		p.StatedDigest, p.Evidence = p.Digest(), evidence
	}
	format, err := policy.FormatOf(f.out)
	if err != nil {
		return err
	}
	data, err := p.Encode(format)
	if err != nil {
		return err
	}
	err = writeFile(std, f.out, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
	if err != nil || f.asJSON {
		return err
	}
	_, err = fmt.Fprintf(std.out, "\n%s: policy %s, digest %s\n", f.out, p.Name, p.Digest())
	return err
}

// printTuning shows a person what the folds are worth.
func printTuning(std stdio, r *eval.TuneReport) error {
	if len(r.EM) > 0 {
		last := r.EM[len(r.EM)-1]
		var rows [][]string
		for _, move := range []policy.Move{policy.MoveStay, policy.MoveNext, policy.MovePrevious, policy.MoveSection, policy.MoveDocument, policy.MoveJump} {
			rows = append(rows, []string{string(move), fmt.Sprintf("%.3f", last.P[string(move)]), fmt.Sprintf("%.3f", last.Q[string(move)])})
		}
		fmt.Fprintf(std.out, "No labels: moves learnt in %s of expectation–maximisation; context arms, gate, reply and proposals\n"+ //nolint:errcheck // the sink tells
			"are on as the base has them, or else where every search begins. Nothing was measured.\n\n", count(len(r.EM), "step", "steps"))
		return table(std.out, []string{"move", "made", "by chance"}, rows, 1, 2)
	}
	var rows [][]string
	for _, set := range r.Sets {
		for i, s := range set.Slices {
			held := set.Methods[1].Slices[i]
			delta := held.Delta[eval.NDCG3]
			name := printable(set.Data.Name)
			if !set.Replies {
				name += ", no replies"
			}
			rows = append(rows, []string{name, s.Name, strconv.Itoa(s.Turns), fmt.Sprintf("%.3f", set.Methods[0].Slices[i].Metrics[eval.NDCG3].Mean),
				fmt.Sprintf("%.3f", held.Metrics[eval.NDCG3].Mean), fmt.Sprintf("%+.3f (%+.3f to %+.3f)", delta.Mean, delta.Low, delta.High)})
		}
	}
	fmt.Fprintf(std.out, "nDCG@3 of conversations by policies that were not tuned on them (%d folds)\n\n", r.Folds) //nolint:errcheck // the sink tells
	return table(std.out, []string{"set", "slice", "turns", "pointwise", "held out", "difference"}, rows, 2, 3, 4)
}
