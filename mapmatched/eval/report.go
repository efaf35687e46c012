package eval

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/mapmatched/mmplug/adapters/embedded/lexical"
	"github.com/mapmatched/mmplug/policy"
)

// ReportSchema is the value of the key "schema" of reports.
const ReportSchema = "mmplug.eval/1"

// Defaults of RunOptions.
const (
	DefaultSamples = 1000
	DefaultSeed    = 1
)

// The gates, see Report.Gates.
const (
	gateMetric         = NDCG3
	gateStandaloneLoss = 0.02
)

// RunOptions are the settings of Run. The zero value, and nil, are the defaults.
type RunOptions struct {
	MeasureOptions
	// Samples is how many bootstrap draws are made; 0 means 1000.
	Samples int
	// Seed of the draws; 0 means 1.
	Seed uint64
	// Tool is recorded in the report, such as "mmplug 0.1.0".
	Tool string
}

// Validate reports every value that is out of range.
func (o *RunOptions) Validate() error {
	if o == nil {
		return nil
	}
	errs := []error{o.MeasureOptions.Validate()}
	if o.Samples < 0 {
		errs = append(errs, fmt.Errorf("samples is %d: it is at least 1, or 0 for %d", o.Samples, DefaultSamples))
	}
	return errors.Join(errs...)
}

// Report is what an evaluation found. Numbers are rounded to six decimals. It
// has nothing in it that differs between two runs of the same files and
// settings.
type Report struct {
	Schema        string            `json:"schema"` // ReportSchema
	Tool          string            `json:"tool"`
	Data          DataReport        `json:"data"`
	Scope         Scope             `json:"scope"`
	Arm           Arm               `json:"arm"`
	Replies       bool              `json:"replies"` // whether policies see the assistant's replies
	Lexical       LexicalReport     `json:"lexical"` // of the baselines; a policy has its own
	Model         *ModelReport      `json:"model"`   // what made the vectors; null when words alone are searched
	Depth         int               `json:"depth"`
	Bootstrap     BootstrapReport   `json:"bootstrap"`
	MedianEntropy float64           `json:"median_entropy"` // nats, see Slices
	Slices        []SliceReport     `json:"slices"`
	Methods       []MethodReport    `json:"methods"` // pointwise first
	Gates         []Gate            `json:"gates"`   // of every policy that is no ablation
	Versions      map[string]string `json:"versions"`
}

// DataReport identifies a data set.
type DataReport struct {
	Name          string `json:"name"`
	Format        string `json:"format"`
	SHA256        string `json:"sha256"` // see Data.Digest
	Files         []File `json:"files"`
	Chunks        int    `json:"chunks"`
	Documents     int    `json:"documents"`
	Conversations int    `json:"conversations"`
	Turns         int    `json:"turns"`
	ScoredTurns   int    `json:"scored_turns"`
}

// LexicalReport says how words are cut and scored.
type LexicalReport struct {
	Version         string  `json:"version"`
	K1              float64 `json:"k1"`
	B               float64 `json:"b"`
	StopwordsSHA256 string  `json:"stopwords_sha256"`
}

// ModelReport identifies an embedding model.
type ModelReport struct {
	Provider      string `json:"provider"`
	Model         string `json:"model"`
	Revision      string `json:"revision"`
	Dimension     int    `json:"dimension"`
	Normalization string `json:"normalization"`
}

// BootstrapReport says how intervals were drawn.
type BootstrapReport struct {
	Unit       string  `json:"unit"` // what is drawn: conversations
	Samples    int     `json:"samples"`
	Seed       uint64  `json:"seed"`
	Generator  string  `json:"generator"`
	Confidence float64 `json:"confidence"`
}

// SliceReport describes a slice.
type SliceReport struct {
	Name          string `json:"name"`
	Description   string `json:"description"`
	Turns         int    `json:"turns"`
	Conversations int    `json:"conversations"`
}

// MethodReport is what was measured of a method.
type MethodReport struct {
	Name     string        `json:"name"`
	Kind     string        `json:"kind"` // "baseline", "policy", "ablation", or "held out" in a tuning report
	Policy   *PolicyReport `json:"policy"`
	Graph    GraphSource   `json:"graph,omitempty"`    // of a policy
	Rewriter string        `json:"rewriter,omitempty"` // model of the baseline llm
	Slices   []MethodSlice `json:"slices"`
}

// PolicyReport identifies a policy.
type PolicyReport struct {
	Name   string `json:"name"`
	Digest string `json:"digest"`
	Frozen bool   `json:"frozen"`
}

// MethodSlice has the metrics of a method on a slice.
type MethodSlice struct {
	Slice   string              `json:"slice"`
	Metrics map[Metric]Interval `json:"metrics"`
	// Delta is the paired difference to pointwise; nil for pointwise.
	Delta map[Metric]Interval `json:"delta_to_pointwise,omitempty"`
}

// Gate is a condition on the difference between a policy and pointwise: better
// on follow-ups, and not worse by more than 0.02 where a turn stands alone. The
// slices are those by the labels of the data, or where it has none those by
// entropy.
type Gate struct {
	Method string   `json:"method"`
	Slice  string   `json:"slice"`
	Metric Metric   `json:"metric"`
	Delta  Interval `json:"delta"`
	Wanted string   `json:"wanted"` // "> 0" or ">= -0.02"
	Holds  bool     `json:"holds"`  // of the mean
}

// Run measures methods on a world and reports. Pointwise is measured too, first,
// when it is not among them.
func Run(ctx context.Context, w *World, methods []Method, opts *RunOptions) (*Report, error) {
	if opts == nil {
		opts = &RunOptions{}
	}
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	methods = slices.Clone(methods)
	at := slices.IndexFunc(methods, func(m Method) bool { return m.Baseline == Pointwise })
	if at < 0 {
		methods = append(methods, Method{Name: Pointwise, Baseline: Pointwise})
		at = len(methods) - 1
	}
	pointwise := methods[at]
	methods = slices.Insert(slices.Delete(methods, at, at+1), 0, pointwise)
	results, err := Measure(ctx, w, methods, &opts.MeasureOptions)
	if err != nil {
		return nil, err
	}
	return NewReport(ctx, w, results, opts)
}

// NewReport reports results, of which those of pointwise come first. It cuts
// slices, draws intervals and applies the gates.
func NewReport(ctx context.Context, w *World, results []Results, opts *RunOptions) (*Report, error) {
	if opts == nil {
		opts = &RunOptions{}
	}
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	if len(results) == 0 || results[0].Method.Baseline != Pointwise {
		return nil, errors.New("report: the first results are not those of pointwise")
	}
	samples, seed := opts.Samples, opts.Seed
	if samples == 0 {
		samples = DefaultSamples
	}
	if seed == 0 {
		seed = DefaultSeed
	}
	list, median := Slices(w.data, &results[0])
	r := &Report{Schema: ReportSchema, Tool: opts.Tool, Data: dataReport(w.data), Scope: w.scope, Arm: w.arm, Replies: w.replies,
		Lexical: LexicalReport{lexical.AnalyzerTag, lexical.K1, lexical.B, lexical.StopwordsSHA256}, Depth: opts.depth(),
		Bootstrap: BootstrapReport{"conversation", samples, seed, "math/rand/v2 PCG", Confidence}, MedianEntropy: round(median),
		Methods: make([]MethodReport, len(results)), Gates: []Gate{}, Versions: versions()}
	if v := w.vectors; v != nil {
		r.Model = &ModelReport{v.Identity.Provider, v.Identity.Model, v.Identity.Revision, v.Identity.Dimension, v.Identity.Normalization}
	}
	for i := range list {
		s := &list[i]
		r.Slices = append(r.Slices, SliceReport{s.Name, s.Description, s.Turns, s.Conversations})
	}
	if r.Data.ScoredTurns == 0 {
		return nil, errors.New("report: no turn has a gold chunk, so there is nothing to score")
	}
	bootstrap := NewBootstrap(len(w.data.Conversations), samples, seed)
	reference := make([][len(Scores{})]sample, len(list))
	err := forEach(ctx, len(list), opts.Workers, func(_ context.Context, i int) error {
		reference[i] = bootstrap.samples(&results[0], &list[i])
		return nil
	}, nil)
	if err != nil {
		return nil, err
	}
	err = forEach(ctx, len(results), opts.Workers, func(ctx context.Context, i int) error {
		m := methodReport(&results[i].Method)
		for s := range list {
			if err := ctx.Err(); err != nil {
				return err
			}
			own := bootstrap.samples(&results[i], &list[s])
			slice := MethodSlice{Slice: list[s].Name, Metrics: map[Metric]Interval{}}
			if i > 0 {
				slice.Delta = map[Metric]Interval{}
			}
			for k, metric := range Metrics() {
				slice.Metrics[metric] = own[k].interval().rounded()
				if i > 0 {
					slice.Delta[metric] = own[k].minus(reference[s][k]).interval().rounded()
				}
			}
			m.Slices = append(m.Slices, slice)
		}
		r.Methods[i] = m
		return nil
	}, nil)
	if err != nil {
		return nil, err
	}
	for i := range r.Methods {
		if r.Methods[i].Kind == "policy" {
			r.Gates = append(r.Gates, gates(&r.Methods[i])...)
		}
	}
	return r, nil
}

func dataReport(d *Data) DataReport {
	all, scored := d.Turns()
	return DataReport{d.Name, d.Format, d.Digest(), d.Files, len(d.Corpus.Chunks), d.Corpus.Documents(), len(d.Conversations), all, scored}
}

// versions are the tags of the formulas that a report depends on beside its
// policies.
func versions() map[string]string {
	return map[string]string{"decode": policy.DecodeV1, "context": policy.ContextV1, "transition": policy.TransitionV1, "reply": policy.ReplyV1,
		"proposals": policy.ProposalsV1, "fusion": policy.HybridFusionPreV1, "lexical": lexical.AnalyzerTag}
}

func methodReport(m *Method) MethodReport {
	r := MethodReport{Name: m.Name, Kind: "baseline", Rewriter: m.Model}
	if m.Policy != nil {
		r.Kind, r.Graph = "policy", m.source()
		r.Policy = &PolicyReport{m.Policy.Name, m.Policy.Digest(), m.Policy.Frozen()}
	}
	switch {
	case m.Ablation:
		r.Kind = "ablation"
	case m.Policy == nil && m.Baseline == "":
		r.Kind = "held out" // see Tune
	}
	return r
}

// Slice returns what was measured on a slice, nil when there is no such slice.
func (m *MethodReport) Slice(name string) *MethodSlice {
	for i := range m.Slices {
		if m.Slices[i].Slice == name {
			return &m.Slices[i]
		}
	}
	return nil
}

// gates applies the gates to a policy. A slice without turns has none.
func gates(m *MethodReport) []Gate {
	followUp, standalone := m.Slice(SliceFollowUp), m.Slice(SliceStandalone)
	if followUp == nil || standalone == nil {
		followUp, standalone = m.Slice(SliceFollowUpEntropy), m.Slice(SliceStandaloneEntropy)
	}
	var list []Gate
	if followUp != nil {
		delta := followUp.Delta[gateMetric]
		list = append(list, Gate{m.Name, followUp.Slice, gateMetric, delta, "> 0", delta.Mean > 0})
	}
	if standalone != nil {
		delta := standalone.Delta[gateMetric]
		list = append(list, Gate{m.Name, standalone.Slice, gateMetric, delta, fmt.Sprintf(">= -%v", gateStandaloneLoss), delta.Mean >= -gateStandaloneLoss})
	}
	return list
}

// Hold reports whether every gate holds.
func (r *Report) Hold() bool {
	return !slices.ContainsFunc(r.Gates, func(g Gate) bool { return !g.Holds })
}

// String implements fmt.Stringer.
func (g Gate) String() string {
	verb := "holds"
	if !g.Holds {
		verb = "does not hold"
	}
	return fmt.Sprintf("%s: %s on %s against pointwise is %+.3f, wanted %s: it %s", g.Method, g.Metric, g.Slice, g.Delta.Mean, g.Wanted, verb)
}

// WriteJSON writes the report as JSON, indented, with a newline at its end.
func (r *Report) WriteJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(r)
}

// round rounds to six decimals, never to −0.
func round(x float64) float64 { return math.Round(x*1e6)/1e6 + 0 }

func (i Interval) rounded() Interval { return Interval{round(i.Mean), round(i.Low), round(i.High)} }
