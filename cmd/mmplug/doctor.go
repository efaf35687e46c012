package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/mapmatched/registry"
)

func newDoctor(std stdio) *cobra.Command {
	var d doctor
	var policyName string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor URL…",
		Short: "Check that stores and graphs can be used",
		Long: `Open each store or graph and report what it needs in order to work: that it is
reached, what it is, that it answers. With --policy, whether it was made under
that policy; with --embed, whether its vectors are of that model.

The exit status is 3 when a check failed, and 1 when something cannot be opened.`,
		Example: `  mmplug doctor qdrant://localhost:6334/docs --policy team.policy.yaml --embed models/minilm
  mmplug doctor embedded:docs.idx graph:docs.mmg`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			var err error
			if policyName != "" {
				if d.policy, err = usePolicy(policyName); err != nil {
					return err
				}
				ctx = d.policy.trusting(ctx)
			}
			if d.embed != "" {
				if d.model, err = openEmbedding(ctx, d.embed); err != nil {
					return err
				}
				defer d.model.close()
			}
			var reports []diagnosis
			for _, at := range args {
				reports = append(reports, d.examine(ctx, at))
				if err := ctx.Err(); err != nil {
					return err
				}
			}
			if err := printDiagnoses(std, reports, asJSON); err != nil {
				return err
			}
			return verdict(reports)
		},
	}
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	cmd.Flags().StringVar(&policyName, "policy", "", policyUsage+"; compare the store with it")
	cmd.Flags().Var((*modelSpec)(&d.embed), "embed", "compare the vectors with this model's: "+embedUsage)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// doctor is what stores are compared with.
type doctor struct {
	embed  string
	policy *usedPolicy // nil for none
	model  *embedding  // nil for none
}

// diagnosis is what was found out about a store or graph.
type diagnosis struct {
	URL      string               `json:"url"`
	Opened   bool                 `json:"opened"`
	OK       bool                 `json:"ok"` // opened, and no check failed
	Findings []mapmatched.Finding `json:"findings"`
}

func (d *diagnosis) add(check string, status mapmatched.Status, hint, format string, args ...any) {
	d.Findings = append(d.Findings, mapmatched.Finding{Check: check, Status: status, Detail: oneLine(fmt.Sprintf(format, args...)), Hint: hint})
}

// failed adds a failure and reports whether there was one.
func (d *diagnosis) failed(check string, err error) bool {
	if err != nil {
		d.add(check, mapmatched.StatusFailed, "", "%v", err)
	}
	return err != nil
}

// withoutSecrets is a URL as it can be shown when it was not opened, and so may
// have in it what does not belong there: without user and parameters.
func withoutSecrets(at string) string {
	place, _, _ := strings.Cut(at, "?")
	scheme, rest, hosted := strings.Cut(place, "://")
	if !hosted {
		return place
	}
	return scheme + "://" + rest[strings.LastIndex(rest, "@")+1:]
}

// cannotOpen adds that something does not open: as a matter of reach where it
// is one.
func (d *diagnosis) cannotOpen(err error) {
	switch mapmatched.KindOf(err) {
	case mapmatched.KindUnavailable, mapmatched.KindDeadline, mapmatched.KindUnauthenticated:
		d.failed("reach", err)
	default:
		d.failed("open", err)
	}
}

// examine checks what a URL opens: a provider, a graph, or both.
func (d *doctor) examine(ctx context.Context, at string) (r diagnosis) {
	r = diagnosis{URL: at, Findings: []mapmatched.Finding{}}
	defer func() {
		if !r.Opened {
			r.URL = withoutSecrets(at)
		}
	}()
	switch graphOnly := opens(registry.KindGraph, at) && !opens(registry.KindProvider, at); {
	case graphOnly:
		graph, err := registry.OpenGraph(ctx, at)
		if err != nil {
			r.cannotOpen(err)
			break
		}
		r.Opened = true
		r.add("open", mapmatched.StatusOK, "", "it opens as a graph")
		d.examineGraph(ctx, &r, at, graph)
		closeAll(graph)
	default:
		provider, err := registry.OpenProvider(ctx, at)
		if err != nil {
			r.cannotOpen(err)
			break
		}
		r.Opened = true
		d.examineProvider(ctx, &r, at, provider)
		closeAll(provider)
	}
	r.OK = r.Opened && !slices.ContainsFunc(r.Findings, func(f mapmatched.Finding) bool { return f.Status == mapmatched.StatusFailed })
	return r
}

func (d *doctor) examineProvider(ctx context.Context, r *diagnosis, at string, provider mapmatched.CandidateProvider) {
	if diagnoser, ok := provider.(mapmatched.Diagnoser); ok {
		r.Findings = append(r.Findings, diagnoser.Diagnose(ctx)...)
	} else {
		r.add("open", mapmatched.StatusOK, "", "it opens as a provider")
		d.health(ctx, r, provider)
		d.sample(ctx, r, provider)
	}
	if graphAt := graphURL(at); graphAt != "" {
		graph, err := registry.OpenGraph(ctx, graphAt)
		if err != nil {
			status := mapmatched.StatusWarning
			if mapmatched.KindOf(err) == mapmatched.KindNotFound {
				status = mapmatched.StatusSkipped
			}
			r.add("graph", status, "name another graph with --graph in conversations", "none opens here: %v", err)
		} else {
			d.examineGraph(ctx, r, graphAt, graph)
			closeAll(graph)
		}
	}
	if d.policy != nil || d.model != nil {
		d.compare(ctx, r, at, provider)
	}
}

// health asks whether something can answer, if it can tell.
func (d *doctor) health(ctx context.Context, r *diagnosis, v any) {
	if healthy, ok := v.(mapmatched.HealthChecker); ok && !r.failed("health", healthy.Health(ctx)) {
		r.add("health", mapmatched.StatusOK, "", "it can answer")
	}
}

// sampleText is what a store is asked.
const sampleText = "How does it begin?"

// sample asks a store that has no checks of its own. Which chunks it finds does
// not matter.
func (d *doctor) sample(ctx context.Context, r *diagnosis, provider mapmatched.CandidateProvider) {
	const check = "sample query"
	q := mapmatched.Query{Text: sampleText}
	if d.model != nil {
		vectors, err := d.model.batch(ctx, []mapmatched.Chunk{{ID: "sample query", Text: sampleText}}, 0)
		if r.failed(check, err) {
			return
		}
		q.Vector = vectors[0]
	}
	began := time.Now()
	found, err := provider.Candidates(ctx, q, 10)
	switch {
	case err != nil && d.model == nil && mapmatched.KindOf(err) == mapmatched.KindInvalid:
		r.add(check, mapmatched.StatusSkipped, "give the model of its vectors with --embed", "%v", err)
	case !r.failed(check, err):
		r.add(check, mapmatched.StatusOK, "", "%s in %v", count(len(found), "chunk", "chunks"), time.Since(began).Round(10*time.Microsecond))
	}
}

// examineGraph follows an edge of a graph, where it lists any, and compares it
// with the policy.
func (d *doctor) examineGraph(ctx context.Context, r *diagnosis, at string, graph mapmatched.CorpusGraph) {
	const check = "graph"
	d.health(ctx, r, graph)
	if lister, ok := graph.(mapmatched.EdgeLister); !ok {
		r.add(check, mapmatched.StatusOK, "", "maximum distance %v; it does not list its edges", graph.MaximumDistance())
	} else {
		d.followEdge(ctx, r, check, graph, lister)
	}
	if d.policy != nil {
		if !r.failed("graph policy", fitsGraph(at, graph, d.policy.Policy)) {
			r.add("graph policy", mapmatched.StatusOK, "", "its maximum distance is that of policy %s", d.policy.Name)
		}
	}
}

func (d *doctor) followEdge(ctx context.Context, r *diagnosis, check string, graph mapmatched.CorpusGraph, lister mapmatched.EdgeLister) {
	for e, err := range lister.Edges(ctx) {
		distance := make([]float64, 1)
		if err == nil {
			err = graph.Distances(ctx, []string{e.From}, []string{e.To}, distance)
		}
		if err == nil && !(distance[0] <= e.Weight) {
			err = fmt.Errorf("the edge from %q to %q has weight %v and their distance is %v", e.From, e.To, e.Weight, distance[0])
		}
		if !r.failed(check, err) {
			r.add(check, mapmatched.StatusOK, "", "maximum distance %v; from %q to %q it is %v", graph.MaximumDistance(), e.From, e.To, distance[0])
		}
		return
	}
	r.add(check, mapmatched.StatusWarning, "index with a policy that joins chunks, or name another graph with --graph in conversations", "it has no edges")
}

// compare checks what the store was made by against the policy and the model.
func (d *doctor) compare(ctx context.Context, r *diagnosis, at string, provider mapmatched.CandidateProvider) {
	used := d.policy
	if used == nil {
		used = &usedPolicy{name: "FILE"} // its identity is asked for the sake of the model
	}
	identity, err := storeIdentity(ctx, used, provider)
	if err != nil {
		for _, check := range d.comparisons() {
			r.add(check, mapmatched.StatusSkipped, "", "what it was made by could not be asked: %v", err)
		}
		return
	}
	if d.policy != nil {
		switch {
		case identity == nil && d.policy.Vectors.Provider != "":
			r.add("policy", mapmatched.StatusFailed, "write the corpus with mmplug index --to", "policy %s pins the vectors of model %q, and nothing says what made those of the store", d.policy.Name, d.policy.Vectors.Model)
		case identity == nil:
			r.add("policy", mapmatched.StatusWarning, "see for yourself that documents were cut as the policy says", "it does not say what it was made by")
		case !r.failed("policy", d.policy.Fits(*identity)):
			r.add("policy", mapmatched.StatusOK, "", "it was made under policy %s", d.policy.Name)
		}
	}
	if d.model == nil {
		return
	}
	if identity == nil {
		d.tryModel(ctx, r, provider)
		return
	}
	err = d.model.madeStore(at, identity.Vectors)
	if err == nil && d.model.identity.Dimension == 0 {
		var vectors [][]float32
		vectors, err = d.model.batch(ctx, []mapmatched.Chunk{{ID: "sample", Text: sampleText}}, 0)
		if err == nil && len(vectors[0]) != identity.Vectors.Dimension {
			err = fmt.Errorf("%w: its vectors have %d dimensions, those of --embed %s have %d: give the model that made them, or write the corpus again", mapmatched.ErrStaleIndex, identity.Vectors.Dimension, d.embed, len(vectors[0]))
		}
	}
	if !r.failed("embedder", err) {
		r.add("embedder", mapmatched.StatusOK, "", "its vectors are of that model, %d dimensions", identity.Vectors.Dimension)
	}
}

// comparisons are the checks of compare.
func (d *doctor) comparisons() []string {
	var checks []string
	if d.policy != nil {
		checks = append(checks, "policy")
	}
	if d.model != nil {
		checks = append(checks, "embedder")
	}
	return checks
}

// tryModel asks with a vector of the model, which tells whether the dimension
// fits where nothing says what made the vectors of the store.
func (d *doctor) tryModel(ctx context.Context, r *diagnosis, provider mapmatched.CandidateProvider) {
	const check = "embedder"
	vectors, err := d.model.batch(ctx, []mapmatched.Chunk{{ID: "sample query", Text: sampleText}}, 0)
	if err == nil {
		_, err = provider.Candidates(ctx, mapmatched.Query{Text: sampleText, Vector: vectors[0]}, 1)
	}
	if !r.failed(check, err) {
		r.add(check, mapmatched.StatusWarning, "see for yourself that this model made its vectors", "it takes vectors of %d dimensions, and does not say what made its own", len(vectors[0]))
	}
}

func printDiagnoses(std stdio, reports []diagnosis, asJSON bool) error {
	if asJSON {
		return writeJSON(std.out, map[string]any{"ok": !slices.ContainsFunc(reports, func(r diagnosis) bool { return !r.OK }), "stores": reports})
	}
	for i, r := range reports {
		space := "\n"
		if i == 0 {
			space = ""
		}
		if _, err := fmt.Fprintf(std.out, "%s%s\n", space, printable(r.URL)); err != nil {
			return err
		}
		var rows [][]string
		for _, f := range r.Findings {
			detail, hint := wrapped(printable(f.Detail), detailWidth), wrapped(printable(f.Hint), hintWidth)
			for i := range max(len(detail), len(hint)) {
				row := []string{"", "", lineOf(detail, i), lineOf(hint, i)}
				if i == 0 {
					row[0], row[1] = f.Check, string(f.Status)
				}
				rows = append(rows, row)
			}
		}
		if err := table(std.out, []string{"check", "status", "detail", "hint"}, rows); err != nil {
			return err
		}
	}
	return nil
}

// The columns that a detail and a hint may take in the table.
const (
	detailWidth = 80
	hintWidth   = 40
)

// wrapped is a text in lines of at most so many columns, but for longer words;
// one empty line for an empty text.
func wrapped(text string, most int) []string {
	lines := []string{""}
	for _, word := range strings.Fields(text) {
		last := &lines[len(lines)-1]
		switch {
		case *last == "":
			*last = word
		case columns(*last)+1+columns(word) <= most:
			*last += " " + word
		default:
			lines = append(lines, word)
		}
	}
	return lines
}

// lineOf is line i, "" behind the last.
func lineOf(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return ""
}

// verdict is nil when everything opened and no check failed.
func verdict(reports []diagnosis) error {
	var failed, closed []string
	for _, r := range reports {
		switch {
		case !r.Opened:
			closed = append(closed, r.URL)
		case !r.OK:
			failed = append(failed, r.URL)
		}
	}
	switch {
	case len(closed) > 0:
		return fmt.Errorf("cannot open %s", strings.Join(closed, ", "))
	case len(failed) > 0:
		return checkError{errors.New("a check failed: " + strings.Join(failed, ", "))}
	}
	return nil
}
