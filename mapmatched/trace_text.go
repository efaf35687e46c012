package mapmatched

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// gapCell stands for the chunk of a gap.
const gapCell = "(gap)"

// traceColumns are the columns of the table of Text, in order.
var traceColumns = []string{
	"turn", "chunk", "raw", "normalized", "emission", "distance", "transition", "entropy", "margin", "cumulative",
}

// Text renders the trace for a terminal: four lines on the path and the mode,
// a blank line and a table of one row a turn. Below the table, after another
// blank line, every gap and every break has a line with its reason. There is
// no newline at the end.
//
// Numbers have six significant digits and no negative zero. A gap has "(gap)"
// for its chunk and "-" for the numbers that it does not have. Control
// characters and other runes that print nothing are escaped as in Go source,
// so a chunk ID cannot steer the terminal; columns are aligned by rune count.
func (t *Trace) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "path: %s\n", pathText(t.PathChunkIDs))
	fmt.Fprintf(&b, "mode: %s\n", modeText(t.FixedLag))
	fmt.Fprintf(&b, "revised prior turns: %s\n", turnsText(t.RevisedPriorIndices))
	fmt.Fprintf(&b, "committed through turn: %s\n\n", committedText(t.CommittedThroughIndex))

	rows := make([][]string, len(t.Steps))
	var notes []string
	for i := range t.Steps {
		s := &t.Steps[i]
		rows[i] = stepCells(s)
		if s.Gap != "" {
			notes = append(notes, fmt.Sprintf("gap at turn %d: %s", s.TurnIndex, escapeText(s.Gap)))
		}
		if s.Break != "" {
			notes = append(notes, fmt.Sprintf("break at turn %d: %s", s.TurnIndex, escapeText(s.Break)))
		}
	}
	b.WriteString(textTable(traceColumns, rows))
	if len(notes) > 0 {
		b.WriteString("\n\n" + strings.Join(notes, "\n"))
	}
	return b.String()
}

// stepCells returns the row of a step under traceColumns.
func stepCells(s *TraceStep) []string {
	cells := []string{strconv.Itoa(s.TurnIndex), gapCell}
	numbers := []float64{
		s.RawEmissionScore, s.NormalizedEmissionScore, s.WeightedEmissionScore, s.GraphDistance,
		s.WeightedTransitionCost, s.EmissionEntropy, s.NormalizedEmissionMargin,
	}
	if s.Gap == "" {
		cells[1] = escapeText(s.ChunkID)
	}
	for _, v := range numbers {
		if s.Gap == "" {
			cells = append(cells, formatScore(v))
		} else {
			cells = append(cells, "-")
		}
	}
	return append(cells, formatScore(s.CumulativeScore))
}

// textTable lays out rows under a header that is underlined with dashes. The
// header and the chunk column are aligned left, the other cells right. No line
// ends in a space.
func textTable(header []string, rows [][]string) string {
	widths := make([]int, len(header))
	for c, name := range header {
		widths[c] = utf8.RuneCountInString(name)
		for _, row := range rows {
			widths[c] = max(widths[c], utf8.RuneCountInString(row[c]))
		}
	}
	line := func(cells []string, left func(c int) bool) string {
		var b strings.Builder
		for c, cell := range cells {
			if c > 0 {
				b.WriteString("  ")
			}
			pad := strings.Repeat(" ", widths[c]-utf8.RuneCountInString(cell))
			if left(c) {
				b.WriteString(cell + pad)
			} else {
				b.WriteString(pad + cell)
			}
		}
		return strings.TrimRight(b.String(), " ")
	}
	dashes := make([]string, len(header))
	for c := range header {
		dashes[c] = strings.Repeat("-", widths[c])
	}
	all := func(int) bool { return true }
	lines := []string{line(header, all), line(dashes, all)}
	for _, row := range rows {
		lines = append(lines, line(row, func(c int) bool { return header[c] == "chunk" }))
	}
	return strings.Join(lines, "\n")
}

// pathText joins the chunks of a path with arrows.
func pathText(ids []string) string {
	if len(ids) == 0 {
		return "none"
	}
	cells := make([]string, len(ids))
	for i, id := range ids {
		cells[i] = gapCell
		if id != "" {
			cells[i] = escapeText(id)
		}
	}
	return strings.Join(cells, " -> ")
}

// modeText names the decoding mode of a fixed lag, nil meaning full.
func modeText(lag *int) string {
	if lag == nil {
		return "full"
	}
	return "fixed-lag " + strconv.Itoa(*lag)
}

// turnsText lists turn indices, "none" when there are none.
func turnsText(turns []int) string {
	if len(turns) == 0 {
		return "none"
	}
	cells := make([]string, len(turns))
	for i, v := range turns {
		cells[i] = strconv.Itoa(v)
	}
	return strings.Join(cells, ", ")
}

// committedText prints the last committed turn, "none" for nil.
func committedText(turn *int) string {
	if turn == nil {
		return "none"
	}
	return strconv.Itoa(*turn)
}

// formatScore prints a number with six significant digits, negative zero as 0.
func formatScore(v float64) string {
	if v == 0 {
		return "0"
	}
	return fmt.Sprintf("%.6g", v)
}

// escapeText replaces the runes of s that do not print (control and format
// characters, line separators, private use) and bytes that are not UTF-8 with
// their escapes in Go source. A backslash stays as it is.
func escapeText(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case unicode.IsGraphic(r):
			b.WriteRune(r)
		default:
			quoted := strconv.QuoteRune(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		}
		i += size
	}
	return b.String()
}
