package policy

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// ShadowReport sums up shadow records, one row for each part and version, in
// ascending order.
type ShadowReport struct {
	Rows    []ShadowRow `json:"rows"`
	Skipped int         `json:"skipped"` // lines that were no records
}

// ShadowRow sums up what one formula would have done.
type ShadowRow struct {
	Part     string         `json:"part"`
	Version  string         `json:"version"`
	Turns    int            `json:"turns"`    // records, errors included
	Errors   int            `json:"errors"`   // records without an outcome
	Differed int            `json:"differed"` // outcomes that were not what was in effect
	Outcomes []OutcomeCount `json:"outcomes"` // by outcome, ascending
	Values   int            `json:"values"`   // records with a value; the following are 0 when there are none
	Mean     float64        `json:"mean"`
	Minimum  float64        `json:"minimum"`
	Maximum  float64        `json:"maximum"`
}

// OutcomeCount is how often an outcome came up.
type OutcomeCount struct {
	Outcome string `json:"outcome"`
	Turns   int    `json:"turns"`
}

// maxShadowLine is the longest line that is read; what is longer is skipped.
const maxShadowLine = DefaultShadowLogBytes

// ReadShadowLog calls yield for every record of a log, in order, and returns
// the number of lines that hold none: not JSON, not valid, or too long. An
// error is one of r or of yield, which ends the reading.
func ReadShadowLog(r io.Reader, yield func(ShadowRecord) error) (skipped int, err error) {
	reader := bufio.NewReaderSize(r, 64<<10)
	for {
		line, tooLong, err := readLine(reader)
		last := errors.Is(err, io.EOF)
		if err != nil && !last {
			return skipped, fmt.Errorf("shadow log: %w", err)
		}
		if text := bytes.TrimSpace(line); tooLong {
			skipped++
		} else if len(text) > 0 {
			var record ShadowRecord
			decoder := json.NewDecoder(bytes.NewReader(text))
			decoder.DisallowUnknownFields()
			if decoder.Decode(&record) != nil || decoder.InputOffset() != int64(len(text)) || record.Validate() != nil {
				skipped++
			} else if err := yield(record); err != nil {
				return skipped, err
			}
		}
		if last {
			return skipped, nil
		}
	}
}

// readLine reads up to and with the next line feed. Of a line that is too long
// nothing is returned.
func readLine(r *bufio.Reader) (line []byte, tooLong bool, err error) {
	for {
		piece, err := r.ReadSlice('\n')
		if tooLong = tooLong || len(line)+len(piece) > maxShadowLine; tooLong {
			line = nil
		} else {
			line = append(line, piece...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, tooLong, err
		}
	}
}

// NewShadowReport sums up the logs read from sources, in their order.
func NewShadowReport(sources ...io.Reader) (*ShadowReport, error) {
	report := &ShadowReport{Rows: []ShadowRow{}}
	for _, source := range sources {
		skipped, err := ReadShadowLog(source, func(r ShadowRecord) error {
			report.add(r)
			return nil
		})
		if err != nil {
			return nil, err
		}
		report.Skipped += skipped
	}
	return report, nil
}

// add counts a record.
func (s *ShadowReport) add(r ShadowRecord) {
	at, found := slices.BinarySearchFunc(s.Rows, r, func(row ShadowRow, r ShadowRecord) int {
		return cmp.Or(strings.Compare(row.Part, r.Part), strings.Compare(row.Version, r.Version))
	})
	if !found {
		s.Rows = slices.Insert(s.Rows, at, ShadowRow{Part: r.Part, Version: r.Version, Outcomes: []OutcomeCount{}})
	}
	row := &s.Rows[at]
	row.Turns++
	if r.Error != "" {
		row.Errors++
		return
	}
	if r.Outcome != r.Applied {
		row.Differed++
	}
	at, found = slices.BinarySearchFunc(row.Outcomes, r.Outcome, func(o OutcomeCount, name string) int {
		return strings.Compare(o.Outcome, name)
	})
	if !found {
		row.Outcomes = slices.Insert(row.Outcomes, at, OutcomeCount{Outcome: r.Outcome})
	}
	row.Outcomes[at].Turns++
	if r.Value != nil {
		row.Values++
		if row.Values == 1 {
			row.Minimum, row.Maximum = *r.Value, *r.Value
		}
		n := float64(row.Values)
		row.Mean += *r.Value/n - row.Mean/n // never out of range, as the sum could be
		row.Minimum, row.Maximum = min(row.Minimum, *r.Value), max(row.Maximum, *r.Value)
	}
}

// WriteText writes the report as a table.
func (s *ShadowReport) WriteText(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	var b strings.Builder
	b.WriteString("part\tversion\tturns\terrors\tdiffered\tmean\tminimum\tmaximum\toutcomes\n")
	for _, row := range s.Rows {
		outcomes := make([]string, len(row.Outcomes))
		for i, o := range row.Outcomes {
			outcomes[i] = fmt.Sprintf("%s %d", printable(o.Outcome), o.Turns)
		}
		values := "-\t-\t-"
		if row.Values > 0 {
			values = fmt.Sprintf("%.6g\t%.6g\t%.6g", row.Mean, row.Minimum, row.Maximum)
		}
		fmt.Fprintf(&b, "%s\t%s\t%d\t%d\t%d\t%s\t%s\n", printable(row.Part), printable(row.Version), row.Turns, row.Errors, row.Differed, values, strings.Join(outcomes, ", "))
	}
	if s.Skipped > 0 {
		fmt.Fprintf(&b, "skipped lines: %d\n", s.Skipped)
	}
	if _, err := io.WriteString(table, b.String()); err != nil {
		return err
	}
	return table.Flush()
}

// printable quotes a text that would upset a terminal or the columns.
func printable(text string) string {
	if text == "" || strings.ContainsFunc(text, func(r rune) bool { return !strconv.IsPrint(r) }) {
		return strconv.Quote(text)
	}
	return text
}
