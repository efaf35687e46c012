package mapmatched

import (
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// traceTolerance is how far apart two scores of a trace may be and still count
// as the same.
const traceTolerance = 1e-9

// TraceDiff is what differs between two traces, the first and the second.
type TraceDiff struct {
	// Settings lists what the traces were made with and differs: schema, score
	// model, policy and options. When there is any, scores of the two are not
	// comparable.
	Settings []TraceDifference `json:"settings,omitempty"`

	// Whole lists differences of the traces as a whole: the number of turns,
	// the mode, the revised turns and the committed turn.
	Whole []TraceDifference `json:"whole,omitempty"`

	// Turns has the turns that differ, in order, among those that both traces
	// have.
	Turns []TurnDifference `json:"turns,omitempty"`

	compared int // turns that both traces have
}

// TurnDifference is what differs at one turn.
type TurnDifference struct {
	TurnIndex   int               `json:"turn_index"`
	Differences []TraceDifference `json:"differences"` // never empty
}

// TraceDifference is one thing that two traces have different values of, as
// text ready to print: "none" for an absent value.
type TraceDifference struct {
	Name   string `json:"name"`
	First  string `json:"first"`
	Second string `json:"second"`
}

// DiffTraces compares two traces turn by turn. Scores differ when they are
// more than 1e-9 apart. Candidates are compared only where both traces have
// them, and then the first difference of a turn's candidates is reported.
// Neither trace is changed or re-scored.
func DiffTraces(a, b *Trace) *TraceDiff {
	d := &TraceDiff{compared: min(len(a.Steps), len(b.Steps))}

	var settings differences
	settings.name("schema", a.Schema, b.Schema)
	settings.name("score model", a.ScoreModel, b.ScoreModel)
	settings.name("policy", a.PolicyDigest, b.PolicyDigest)
	settings.options(a.Options, b.Options)
	d.Settings = settings

	var whole differences
	whole.text("number of turns", strconv.Itoa(len(a.Steps)), strconv.Itoa(len(b.Steps)))
	whole.text("mode", modeText(a.FixedLag), modeText(b.FixedLag))
	whole.text("revised prior turns", turnsText(a.RevisedPriorIndices), turnsText(b.RevisedPriorIndices))
	whole.text("committed through turn",
		committedText(a.CommittedThroughIndex), committedText(b.CommittedThroughIndex))
	d.Whole = whole

	for i := range d.compared {
		var turn differences
		turn.step(&a.Steps[i], &b.Steps[i])
		if len(turn) > 0 {
			d.Turns = append(d.Turns, TurnDifference{TurnIndex: a.Steps[i].TurnIndex, Differences: turn})
		}
	}
	return d
}

// Empty reports whether the traces agree in everything that was compared.
func (d *TraceDiff) Empty() bool {
	return len(d.Settings) == 0 && len(d.Whole) == 0 && len(d.Turns) == 0
}

// String says in plain words what differs, one difference a line and the
// settings first, because scores made with different ones cannot be compared.
// There is no newline at the end.
func (d *TraceDiff) String() string {
	if d.Empty() {
		return fmt.Sprintf("the traces agree in all %s", countTurns(d.compared))
	}
	var lines []string
	if len(d.Settings) > 0 {
		lines = append(lines, "the traces were made with different settings, so their scores are not comparable")
	} else {
		lines = append(lines, "the traces were made with the same settings, so their scores are comparable")
	}
	for _, x := range d.Settings {
		lines = append(lines, x.String())
	}
	for _, x := range d.Whole {
		lines = append(lines, x.String())
	}
	for _, turn := range d.Turns {
		for _, x := range turn.Differences {
			lines = append(lines, fmt.Sprintf("turn %d: %s", turn.TurnIndex, x))
		}
	}
	lines = append(lines, fmt.Sprintf("%d of %s in both traces differ", len(d.Turns), countTurns(d.compared)))
	return strings.Join(lines, "\n")
}

// String prints the difference as one clause.
func (x TraceDifference) String() string {
	return fmt.Sprintf("%s is %s in the first, %s in the second", x.Name, x.First, x.Second)
}

// countTurns spells a number of turns.
func countTurns(n int) string {
	if n == 1 {
		return "1 turn"
	}
	return strconv.Itoa(n) + " turns"
}

// differences collects what differs.
type differences []TraceDifference

// add adds a difference.
func (d *differences) add(name, a, b string) {
	*d = append(*d, TraceDifference{Name: name, First: a, Second: b})
}

// text adds a difference when the texts, ready to print, differ.
func (d *differences) text(name, a, b string) {
	if a != b {
		d.add(name, a, b)
	}
}

// name adds a difference when the names differ, "none" for an empty one.
func (d *differences) name(name, a, b string) {
	if a != b {
		d.add(name, orNone(a), orNone(b))
	}
}

// score adds a difference when the numbers are more than traceTolerance apart.
// They are printed in full, so that what differs can be seen.
func (d *differences) score(name string, a, b float64) {
	if a != b && !(math.Abs(a-b) <= traceTolerance) {
		d.add(name, fullNumber(a), fullNumber(b))
	}
}

// parts adds the differences of named scores, in order of name.
func (d *differences) parts(name string, a, b map[string]float64) {
	all := maps.Clone(a)
	if all == nil {
		all = map[string]float64{}
	}
	maps.Copy(all, b)
	for _, part := range slices.Sorted(maps.Keys(all)) {
		label := name + " " + escapeText(part)
		va, inA := a[part]
		vb, inB := b[part]
		switch {
		case inA && inB:
			d.score(label, va, vb)
		case inA:
			d.add(label, fullNumber(va), "none")
		default:
			d.add(label, "none", fullNumber(vb))
		}
	}
}

// options adds the options that differ. Options that one trace did not record
// may be any, which counts as a difference.
func (d *differences) options(a, b *Options) {
	if a == nil || b == nil {
		recorded := func(o *Options) string {
			if o == nil {
				return "not recorded"
			}
			return "recorded"
		}
		d.text("set of options", recorded(a), recorded(b))
		return
	}
	listA, listB := optionList(a), optionList(b)
	for i := range listA {
		if listA[i].name == "fixed_lag" {
			continue // the mode says it, and scores mean the same in every mode
		}
		d.text("option "+listA[i].name, listA[i].value, listB[i].value)
	}
}

// step adds what differs between two steps of one turn.
func (d *differences) step(a, b *TraceStep) {
	d.text("turn index", strconv.Itoa(a.TurnIndex), strconv.Itoa(b.TurnIndex))
	if a.Query != b.Query {
		d.add("query", strconv.Quote(a.Query), strconv.Quote(b.Query))
	}
	d.name("gap", a.Gap, b.Gap)
	d.name("break", a.Break, b.Break)
	d.name("chunk", a.ChunkID, b.ChunkID)
	if a.Gap == "" && b.Gap == "" {
		d.name("move", string(a.Move), string(b.Move))
		d.score("raw emission score", a.RawEmissionScore, b.RawEmissionScore)
		d.score("normalized emission score", a.NormalizedEmissionScore, b.NormalizedEmissionScore)
		d.score("weighted emission score", a.WeightedEmissionScore, b.WeightedEmissionScore)
		d.score("graph distance", a.GraphDistance, b.GraphDistance)
		d.score("weighted transition cost", a.WeightedTransitionCost, b.WeightedTransitionCost)
		d.score("emission entropy", a.EmissionEntropy, b.EmissionEntropy)
		d.score("normalized emission margin", a.NormalizedEmissionMargin, b.NormalizedEmissionMargin)
		d.score("confidence", a.Confidence, b.Confidence)
		d.score("posterior entropy", a.PosteriorEntropy, b.PosteriorEntropy)
		d.parts("score part", a.ScoreParts, b.ScoreParts)
	}
	d.score("cumulative score", a.CumulativeScore, b.CumulativeScore)
	if len(a.Candidates) > 0 && len(b.Candidates) > 0 {
		d.candidates(a.Candidates, b.Candidates)
	}
}

// candidates adds the first difference between the candidates of a turn.
func (d *differences) candidates(a, b []TraceCandidate) {
	var found differences
	found.text("number of candidates", strconv.Itoa(len(a)), strconv.Itoa(len(b)))
	for i := 0; i < min(len(a), len(b)) && len(found) == 0; i++ {
		x, y := &a[i], &b[i]
		name := fmt.Sprintf("candidate %d", i)
		found.name(name, x.ChunkID, y.ChunkID)
		name += " (" + escapeText(x.ChunkID) + ") "
		found.score(name+"raw emission score", x.RawEmissionScore, y.RawEmissionScore)
		found.score(name+"normalized emission score", x.NormalizedEmissionScore, y.NormalizedEmissionScore)
		found.score(name+"weighted emission score", x.WeightedEmissionScore, y.WeightedEmissionScore)
		found.name(name+"predecessor", x.PredecessorChunkID, y.PredecessorChunkID)
		found.score(name+"graph distance", x.GraphDistance, y.GraphDistance)
		found.score(name+"weighted transition cost", x.WeightedTransitionCost, y.WeightedTransitionCost)
		found.score(name+"best path score", x.BestPathScore, y.BestPathScore)
		found.score(name+"posterior", x.Posterior, y.Posterior)
		found.parts(name+"score part", x.ScoreParts, y.ScoreParts)
	}
	*d = append(*d, found[:min(len(found), 1)]...)
}

// namedValue is a value with its name, both as text.
type namedValue struct{ name, value string }

// optionList returns every option by its name in the exchange form, in order;
// "default" for one that is not set.
func optionList(o *Options) []namedValue {
	v := reflect.ValueOf(o).Elem()
	list := make([]namedValue, v.NumField())
	for i := range list {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		list[i] = namedValue{name, "default"}
		if field := v.Field(i); !field.IsNil() {
			list[i].value = escapeText(fmt.Sprint(field.Elem().Interface()))
		}
	}
	return list
}

// orNone escapes a text, "none" when it is empty.
func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return escapeText(s)
}

// fullNumber prints a number so that it reads back to the same bits.
func fullNumber(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
