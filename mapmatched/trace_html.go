package mapmatched

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode"
)

// HTMLOptions say how a trace becomes a page. The zero value is usable.
type HTMLOptions struct {
	// Title heads the page, "Conversation trace" when empty.
	Title string

	// MaxCandidates is how many candidates of a turn the trellis draws, best
	// raw score first, at least 1; 0 means 12. The decoded chunk is always
	// drawn, and the tables have every candidate.
	MaxCandidates int
}

// The defaults of HTMLOptions.
const (
	defaultHTMLTitle         = "Conversation trace"
	defaultHTMLMaxCandidates = 12
)

// How many runes of a text the page shows.
const (
	maxQueryRunes = 400
	maxTextRunes  = 320
)

//go:embed trace.html.tmpl
var traceHTML string

var traceTemplate = template.Must(template.New("trace").Parse(traceHTML))

// WriteHTML writes the trace as one page that needs nothing else: styles,
// script and the trellis (as SVG) are inside, it requests nothing, and without
// scripts it only loses the highlighting of the path under the pointer. It
// follows the reader's light or dark scheme. All texts of the trace are
// escaped. The same trace and options give the same bytes. Nil options are the
// zero value; a negative MaxCandidates is ErrInvalidConfig.
//
// The trellis has a column for every turn with the turn's candidates by raw
// score, the share of all paths that go through each (its posterior), the
// decoded path, the pointwise winner of every turn, the best predecessor of
// every candidate, and what each move of the path cost. A step without
// candidates shows the decoded chunk alone.
func (t *Trace) WriteHTML(w io.Writer, o *HTMLOptions) error {
	var options HTMLOptions
	if o != nil {
		options = *o
	}
	if options.MaxCandidates < 0 {
		return fmt.Errorf("trace: MaxCandidates is %d; it must be 1 or more, or 0 for %d: %w",
			options.MaxCandidates, defaultHTMLMaxCandidates, ErrInvalidConfig)
	}
	if options.Title == "" {
		options.Title = defaultHTMLTitle
	}
	if options.MaxCandidates == 0 {
		options.MaxCandidates = defaultHTMLMaxCandidates
	}
	var page bytes.Buffer
	if err := traceTemplate.Execute(&page, t.htmlPage(&options)); err != nil {
		return fmt.Errorf("trace: cannot render the page: %w", err)
	}
	if _, err := w.Write(page.Bytes()); err != nil {
		return fmt.Errorf("trace: cannot write the page: %w", err)
	}
	return nil
}

// htmlPage is what the template shows.
type htmlPage struct {
	Title    string
	Facts    []namedValue // the trace in short
	Trellis  *htmlTrellis
	Notes    []string // gaps and breaks with their reasons
	Turns    []htmlTurn
	Settings []namedValue
}

// htmlTurn is a row of the table of turns.
type htmlTurn struct {
	Index      int
	Query      string
	Gap        string
	Chunk      string
	Text       string
	Verdict    verdict
	Move       string
	Raw        string
	Normalized string
	Emission   string
	Distance   string
	Cost       string
	Cumulative string
	Confidence string
	Entropy    string
	Margin     string
	Parts      string
	Candidates []htmlCandidate
}

// htmlCandidate is a row of the table of a turn's candidates.
type htmlCandidate struct {
	Rank        int // from 1
	Chunk       string
	Text        string
	Decoded     bool
	Pointwise   bool
	Raw         string
	Normalized  string
	Posterior   string
	BestPath    string
	Predecessor string
	Distance    string
	Cost        string
	Parts       string
}

// Name and Value serve the template.
func (v namedValue) Name() string  { return v.name }
func (v namedValue) Value() string { return v.value }

// verdict compares the decoded chunk of a turn with its pointwise winner.
type verdict struct {
	Text      string // "" where there is nothing to compare
	Overruled bool   // the decoded chunk is not the pointwise winner
}

// htmlPage gathers the page of a trace.
func (t *Trace) htmlPage(o *HTMLOptions) *htmlPage {
	ranked := make([][]TraceCandidate, len(t.Steps))
	p := &htmlPage{Title: elide(o.Title, maxTextRunes)}
	var overruled []int
	for i := range t.Steps {
		s := &t.Steps[i]
		ranked[i] = byRawScore(s.Candidates)
		turn := s.htmlTurn(ranked[i])
		if turn.Verdict.Overruled {
			overruled = append(overruled, s.TurnIndex)
		}
		if s.Gap != "" {
			p.Notes = append(p.Notes, fmt.Sprintf("Gap at turn %d: %s", s.TurnIndex, escapeText(s.Gap)))
		}
		if s.Break != "" {
			p.Notes = append(p.Notes, fmt.Sprintf("Break at turn %d: %s", s.TurnIndex, escapeText(s.Break)))
		}
		p.Turns = append(p.Turns, turn)
	}
	p.Trellis = newHTMLTrellis(t, ranked, o.MaxCandidates)
	p.Facts = []namedValue{
		{"Turns", fmt.Sprint(len(t.Steps))},
		{"Differs from the pointwise winner at", turnsPhrase(overruled)},
		{"Mode", modeText(t.FixedLag)},
		{"Earlier turns revised by the last", turnsPhrase(t.RevisedPriorIndices)},
		{"Committed through turn", committedText(t.CommittedThroughIndex)},
	}
	if n := len(t.Steps); n > 0 {
		p.Facts = append(p.Facts, namedValue{"Path score", formatScore(t.Steps[n-1].CumulativeScore)})
	}
	p.Settings = t.settings()
	return p
}

// settings lists what the trace was made with, as far as it says so.
func (t *Trace) settings() []namedValue {
	var list []namedValue
	for _, v := range []namedValue{
		{"schema", t.Schema}, {"score model", t.ScoreModel}, {"policy", t.PolicyDigest},
	} {
		if v.value != "" {
			list = append(list, namedValue{v.name, escapeText(v.value)})
		}
	}
	if t.Options != nil {
		for _, v := range optionList(t.Options) {
			if v.value != "default" {
				list = append(list, v)
			}
		}
	}
	return list
}

// htmlTurn gathers the row of a step whose candidates are ranked.
func (s *TraceStep) htmlTurn(ranked []TraceCandidate) htmlTurn {
	row := htmlTurn{
		Index:      s.TurnIndex,
		Query:      elide(s.Query, maxQueryRunes),
		Cumulative: formatScore(s.CumulativeScore),
		Verdict:    s.verdict(ranked),
	}
	if s.Gap != "" {
		row.Gap = escapeText(s.Gap)
		return row
	}
	row.Chunk = escapeText(s.ChunkID)
	row.Move = escapeText(string(s.Move))
	row.Raw = formatScore(s.RawEmissionScore)
	row.Normalized = formatScore(s.NormalizedEmissionScore)
	row.Emission = formatScore(s.WeightedEmissionScore)
	row.Distance = formatScore(s.GraphDistance)
	row.Cost = formatScore(s.WeightedTransitionCost)
	row.Confidence = percent(s.Confidence)
	row.Entropy = formatScore(s.EmissionEntropy)
	row.Margin = formatScore(s.NormalizedEmissionMargin)
	row.Parts = partsText(s.ScoreParts)
	for i := range ranked {
		c := &ranked[i]
		decoded := c.ChunkID == s.ChunkID
		if decoded {
			row.Text = elide(c.Text, maxTextRunes)
		}
		row.Candidates = append(row.Candidates, htmlCandidate{
			Rank: i + 1, Chunk: escapeText(c.ChunkID), Text: elide(c.Text, maxTextRunes),
			Decoded: decoded, Pointwise: i == 0,
			Raw: formatScore(c.RawEmissionScore), Normalized: formatScore(c.NormalizedEmissionScore),
			Posterior: percent(c.Posterior), BestPath: formatScore(c.BestPathScore),
			Predecessor: escapeText(c.PredecessorChunkID),
			Distance:    formatScore(c.GraphDistance), Cost: formatScore(c.WeightedTransitionCost),
			Parts: partsText(c.ScoreParts),
		})
	}
	return row
}

// verdict says how the decoded chunk ranks among the candidates, or, where
// they are not recorded, what its margin says.
func (s *TraceStep) verdict(ranked []TraceCandidate) verdict {
	if s.Gap != "" {
		return verdict{}
	}
	rank := rankOf(ranked, s.ChunkID)
	switch {
	case rank > 0:
		return verdict{Text: fmt.Sprintf("picks rank %d", rank), Overruled: rank > 1}
	case s.NormalizedEmissionMargin < 0:
		return verdict{Text: "not top hit", Overruled: true}
	default:
		return verdict{Text: "top hit"}
	}
}

// byRawScore returns the candidates by raw score, best first; ties keep their
// order, so the first is the pointwise winner.
func byRawScore(c []TraceCandidate) []TraceCandidate {
	ranked := slices.Clone(c)
	slices.SortStableFunc(ranked, func(a, b TraceCandidate) int {
		switch {
		case a.RawEmissionScore > b.RawEmissionScore:
			return -1
		case a.RawEmissionScore < b.RawEmissionScore:
			return 1
		}
		return 0
	})
	return ranked
}

// rankOf returns the rank of a chunk, from 1, or 0 when it is not there.
func rankOf(ranked []TraceCandidate, id string) int {
	return 1 + slices.IndexFunc(ranked, func(c TraceCandidate) bool { return c.ChunkID == id })
}

// turnsPhrase names turns in words, and only counts them when they are many.
func turnsPhrase(turns []int) string {
	switch n := len(turns); {
	case n == 0:
		return "none"
	case n == 1:
		return "turn " + turnsText(turns)
	case n > 8:
		return countTurns(n)
	}
	return "turns " + turnsText(turns)
}

// percent prints a probability in whole percent. Zero, which a decoded chunk
// never has, means that it was not recorded and prints as nothing.
func percent(p float64) string {
	switch {
	case !(p > 0):
		return ""
	case p < 0.01:
		return "<1%"
	case p > 0.99 && p < 1:
		return ">99%"
	}
	return fmt.Sprintf("%.0f%%", 100*min(p, 1))
}

// partsText prints named scores in order of name.
func partsText(parts map[string]float64) string {
	cells := make([]string, 0, len(parts))
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		cells = append(cells, escapeText(name)+" "+formatScore(parts[name]))
	}
	return strings.Join(cells, ", ")
}

// elide puts a text on one line, without control characters, and cuts it to at
// most limit runes, the last of which is then an ellipsis.
func elide(s string, limit int) string {
	words := strings.FieldsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) })
	runes := []rune(strings.Join(words, " "))
	if len(runes) <= limit {
		return string(runes)
	}
	return strings.TrimRight(string(runes[:limit-1]), " ") + "…"
}
