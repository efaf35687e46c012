package eval

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// metricNames are the metrics as people write them.
var metricNames = map[Metric]string{NDCG3: "nDCG@3", NDCG5: "nDCG@5", Recall5: "Recall@5", Recall20: "Recall@20", Hit1: "hit@1", MRR: "MRR"}

// WriteMarkdown writes the report for people: what was measured on what, nDCG@3
// by slice, the other metrics, the differences to pointwise and the gates.
func (r *Report) WriteMarkdown(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# Evaluation on %s\n\n", cell(r.Data.Name))
	fmt.Fprintf(&b, "%d scored turns of %d in %d conversations; %d chunks of %d documents; scope `%s`, arm `%s`, %d chunks ranked a turn. ",
		r.Data.ScoredTurns, r.Data.Turns, r.Data.Conversations, r.Data.Chunks, r.Data.Documents, r.Scope, r.Arm, r.Depth)
	if !r.Replies {
		b.WriteString("The assistant's replies are withheld. ")
	}
	fmt.Fprintf(&b, "Intervals are %g%% percentile bootstrap intervals over conversations (%d draws, seed %d); differences are paired.\n\n",
		100*r.Bootstrap.Confidence, r.Bootstrap.Samples, r.Bootstrap.Seed)

	b.WriteString("| slice | turns | conversations | what |\n|---|---:|---:|---|\n")
	for _, s := range r.Slices {
		fmt.Fprintf(&b, "| %s | %d | %d | %s |\n", s.Name, s.Turns, s.Conversations, cell(s.Description))
	}
	r.table(&b, "nDCG@3 by slice", func(m *MethodReport, s string) string {
		return interval(m.Slice(s).Metrics[NDCG3], "%.3f")
	}, 0)
	r.table(&b, "nDCG@3 against pointwise by slice", func(m *MethodReport, s string) string {
		return interval(m.Slice(s).Delta[NDCG3], "%+.3f")
	}, 1)

	b.WriteString("\n## All metrics, all scored turns\n\n| method |")
	for _, metric := range Metrics() {
		fmt.Fprintf(&b, " %s |", metricNames[metric])
	}
	b.WriteString("\n|---|" + strings.Repeat("---:|", len(Metrics())) + "\n")
	for i := range r.Methods {
		fmt.Fprintf(&b, "| %s |", cell(r.Methods[i].Name))
		for _, metric := range Metrics() {
			fmt.Fprintf(&b, " %.3f |", r.Methods[i].Slice(SliceAll).Metrics[metric].Mean)
		}
		b.WriteString("\n")
	}
	if len(r.Gates) > 0 {
		b.WriteString("\n## Gates\n\n| policy | slice | nDCG@3 against pointwise | wanted | holds |\n|---|---|---:|---|---|\n")
		for _, g := range r.Gates {
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", cell(g.Method), g.Slice, interval(g.Delta, "%+.3f"), g.Wanted, yesNo(g.Holds))
		}
	}
	b.WriteString("\n## Made from\n\n")
	fmt.Fprintf(&b, "* data: `%s`, SHA-256 `%s`\n", r.Data.Format, r.Data.SHA256)
	for _, f := range r.Data.Files {
		fmt.Fprintf(&b, "  * %s, %d bytes, `%s`\n", cell(f.Name), f.Bytes, f.SHA256)
	}
	fmt.Fprintf(&b, "* words: `%s`, k1 %v, b %v\n", r.Lexical.Version, r.Lexical.K1, r.Lexical.B)
	if m := r.Model; m != nil {
		fmt.Fprintf(&b, "* vectors: %s %s, revision %s, %d components\n", cell(m.Provider), cell(m.Model), cell(m.Revision), m.Dimension)
	}
	for i := range r.Methods {
		if p := r.Methods[i].Policy; p != nil && r.Methods[i].Kind == "policy" {
			fmt.Fprintf(&b, "* policy %s: digest `%s`\n", cell(r.Methods[i].Name), p.Digest)
		}
		if model := r.Methods[i].Rewriter; model != "" {
			fmt.Fprintf(&b, "* rewriter: %s\n", cell(model))
		}
	}
	fmt.Fprintf(&b, "* tool: %s\n", cell(r.Tool))
	_, err := io.WriteString(w, b.String())
	return err
}

// table writes a table of methods by slices, from the method of an index on.
func (r *Report) table(b *strings.Builder, title string, value func(m *MethodReport, slice string) string, from int) {
	if from >= len(r.Methods) {
		return
	}
	fmt.Fprintf(b, "\n## %s\n\n| method |", title)
	for _, s := range r.Slices {
		fmt.Fprintf(b, " %s |", s.Name)
	}
	b.WriteString("\n|---|" + strings.Repeat("---:|", len(r.Slices)) + "\n")
	for i := range r.Methods[from:] {
		m := &r.Methods[from+i]
		fmt.Fprintf(b, "| %s |", cell(m.Name))
		for _, s := range r.Slices {
			fmt.Fprintf(b, " %s |", value(m, s.Name))
		}
		b.WriteString("\n")
	}
}

// interval is a mean with its interval.
func interval(i Interval, format string) string {
	return fmt.Sprintf(format+" ["+format+", "+format+"]", i.Mean, i.Low, i.High)
}

func yesNo(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
}

// cell is a text that may stand in a cell of a Markdown table.
func cell(text string) string {
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return slices.Contains([]rune("\r\n\t"), r) }), " ")
	return strings.NewReplacer("|", `\|`, "<", "&lt;", "`", "'").Replace(text)
}
