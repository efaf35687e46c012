package eval

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// TuneSchema is the value of the key "schema" of tuning reports.
const TuneSchema = "mmplug.tune/1"

// TuneReport is how a policy was tuned, and what it is worth on conversations
// that it was not tuned on. It has nothing in it that differs between two runs
// of the same files and settings.
type TuneReport struct {
	Schema      string            `json:"schema"` // TuneSchema
	Tool        string            `json:"tool"`
	Base        NamedPolicy       `json:"base"`
	Policy      NamedPolicy       `json:"policy"`
	Seed        uint64            `json:"seed"`
	Folds       int               `json:"folds"`
	Generations int               `json:"generations"` // most of a run
	Data        []TuneData        `json:"data"`
	Parameters  []TunedParameter  `json:"parameters"`
	Runs        []TuneRun         `json:"runs,omitempty"` // one a fold, and that on all conversations
	Lags        []TunedLag        `json:"lags,omitempty"`
	EM          []EMStep          `json:"em,omitempty"`   // without labels
	Sets        []*Report         `json:"sets,omitempty"` // with labels, one a set
	Refused     []string          `json:"refused"`        // why the policy should not be used; empty when it may
	Versions    map[string]string `json:"versions"`
}

// NamedPolicy is a policy by name and digest.
type NamedPolicy struct {
	Name   string `json:"name"`
	Digest string `json:"digest"`
}

// TuneData is a set of conversations.
type TuneData struct {
	DataReport
	Scope   Scope   `json:"scope"`
	Arm     Arm     `json:"arm"`
	Replies bool    `json:"replies"` // whether policies see the assistant's replies
	Weight  float64 `json:"weight"`
	// Moves are those from gold to gold, for the record: the search finds its own.
	// nil without labels.
	Moves *MoveTable `json:"moves,omitempty"`
}

// MoveTable is how often conversations make each move, and how often they would
// if the next chunk were drawn evenly from its candidates.
type MoveTable struct {
	P map[string]float64 `json:"p"`
	Q map[string]float64 `json:"q"`
}

// TunedParameter is a number that was tuned. Weights are given by their
// logarithm, moves by what they cost more than a jump.
type TunedParameter struct {
	Name  string    `json:"name"`
	Step  float64   `json:"step"`  // by which it is moved at first
	Start float64   `json:"start"` // where the search began: the base, where that has the stage on
	Tuned float64   `json:"tuned"`
	Folds []float64 `json:"folds,omitempty"`
}

// TuneRun is a run of the search.
type TuneRun struct {
	Fold  *int         `json:"fold"`  // that was held out; null for the run on all conversations
	Taken int          `json:"taken"` // generation whose policy was taken
	Curve []Generation `json:"curve"`
}

// TunedLag is a lag with the objective that it reaches.
type TunedLag struct {
	Lag       *int    `json:"lag"` // null is full decoding
	Objective float64 `json:"objective"`
}

// WriteJSON writes the report as JSON, indented, with a newline at its end.
func (r *TuneReport) WriteJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(r)
}

// WriteMarkdown writes the report for people.
func (r *TuneReport) WriteMarkdown(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# Tuning of policy %s\n\nFrom policy %s (`%s`) to `%s`, seed %d.\n", cell(r.Policy.Name), cell(r.Base.Name), r.Base.Digest, r.Policy.Digest, r.Seed)
	b.WriteString("\n| set | scope | replies | weight | conversations | scored turns | SHA-256 |\n|---|---|---|---:|---:|---:|---|\n")
	for _, d := range r.Data {
		fmt.Fprintf(&b, "| %s | %s | %s | %v | %d | %d | `%s` |\n", cell(d.Name), d.Scope, yesNo(d.Replies), d.Weight, d.Conversations, d.ScoredTurns, d.SHA256)
	}
	for i, d := range r.Data {
		if d.Moves == nil {
			continue
		}
		if i == 0 {
			b.WriteString("\nMoves from gold to gold, and by chance:\n\n| set |")
			for _, m := range tuneMoves {
				fmt.Fprintf(&b, " %s |", m)
			}
			b.WriteString("\n|---|" + strings.Repeat("---:|", moves) + "\n")
		}
		fmt.Fprintf(&b, "| %s |", cell(d.Name))
		for _, m := range tuneMoves {
			fmt.Fprintf(&b, " %.3f (%.3f) |", d.Moves.P[string(m)], d.Moves.Q[string(m)])
		}
		b.WriteString("\n")
	}
	if len(r.EM) > 0 {
		fmt.Fprintf(&b, "\nThere are no labels: the costs of moves were learnt in %d steps of expectation–maximisation, and nothing was measured.\n", len(r.EM))
	}
	for _, set := range r.Sets {
		fmt.Fprintf(&b, "\n## nDCG@3 on %s\n\n| slice | turns | pointwise | held out | against pointwise | tuned on all |\n|---|---:|---:|---:|---:|---:|\n", cell(set.Data.Name)+map[bool]string{false: ", replies withheld"}[set.Replies])
		for i, s := range set.Slices {
			held := set.Methods[1].Slices[i]
			fmt.Fprintf(&b, "| %s | %d | %.3f | %.3f | %s | %.3f |\n", s.Name, s.Turns, set.Methods[0].Slices[i].Metrics[NDCG3].Mean,
				held.Metrics[NDCG3].Mean, interval(held.Delta[NDCG3], "%+.3f"), set.Methods[2].Slices[i].Metrics[NDCG3].Mean)
		}
	}
	if len(r.Sets) > 0 {
		fmt.Fprintf(&b, "\nHeld out: every conversation by a policy that was fitted on others (%d folds). Tuned on all: the policy that was written, on what it was fitted on.\n", r.Folds)
	}
	b.WriteString("\n## Parameters\n\n| parameter | start | tuned | folds |\n|---|---:|---:|---|\n")
	for _, p := range r.Parameters {
		var folds []string
		for _, v := range p.Folds {
			folds = append(folds, fmt.Sprintf("%.3g", v))
		}
		fmt.Fprintf(&b, "| %s | %.4g | %.4g | %s |\n", p.Name, p.Start, p.Tuned, strings.Join(folds, ", "))
	}
	b.WriteString("\nWeights by their natural logarithm, moves by what they cost more than a jump.\n")
	if len(r.Lags) > 0 {
		b.WriteString("\n| lag | objective |\n|---|---:|\n")
		for _, l := range r.Lags {
			lag := "full"
			if l.Lag != nil {
				lag = fmt.Sprint(*l.Lag)
			}
			fmt.Fprintf(&b, "| %s | %.4f |\n", lag, l.Objective)
		}
	}
	for i, reason := range r.Refused {
		if i == 0 {
			b.WriteString("\n## Refused\n\n")
		}
		fmt.Fprintf(&b, "* %s\n", cell(reason))
	}
	_, err := io.WriteString(w, b.String())
	return err
}
