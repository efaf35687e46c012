package graphbuild

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mapmatched/mmplug/mapmatched"
)

// edgeColumn is what a column of a list of edges holds.
type edgeColumn int

const (
	columnFrom edgeColumn = iota
	columnTo
	columnWeight
	columnType
)

var edgeColumnNames = [...]string{"from", "to", "weight", "type"}

// columnOf returns the column of a name, -1 for an unknown one.
func columnOf(name string) edgeColumn {
	switch strings.ToLower(strings.TrimSpace(name)) {
	case "from", "source":
		return columnFrom
	case "to", "target":
		return columnTo
	case "weight", "distance":
		return columnWeight
	case "type":
		return columnType
	}
	return -1
}

// isHeader reports whether a record names the columns.
func isHeader(record []string) bool {
	has := func(c edgeColumn) bool {
		return slices.ContainsFunc(record, func(name string) bool { return columnOf(name) == c })
	}
	return has(columnFrom) && has(columnTo)
}

// headerColumns returns the columns that a header names.
func headerColumns(record []string) ([]edgeColumn, error) {
	columns := make([]edgeColumn, len(record))
	for i, name := range record {
		c := columnOf(name)
		if c < 0 {
			return nil, fmt.Errorf("column %d: %q is no column of edges; the columns are from, to, weight and type", i+1, clipText(name))
		}
		if slices.Contains(columns[:i], c) {
			return nil, fmt.Errorf("column %d: there are two columns for %q", i+1, edgeColumnNames[c])
		}
		columns[i] = c
	}
	return columns, nil
}

// csvReader reads records of valid UTF-8 after a byte order mark, if any.
func csvReader(r io.Reader, comma rune) *csv.Reader {
	b := bufio.NewReader(r)
	if start, err := b.Peek(len(utf8BOM)); err == nil && bytes.Equal(start, utf8BOM) {
		_, _ = b.Discard(len(start)) // they are in the buffer
	}
	records := csv.NewReader(b)
	records.Comma = comma
	records.FieldsPerRecord = -1 // checked with a better message
	records.ReuseRecord = true
	return records
}

// readRecord reads the next record and says on which line it is.
func readRecord(records *csv.Reader) (record []string, line int, err error) {
	record, err = records.Read()
	if err != nil {
		var parse *csv.ParseError
		if errors.As(err, &parse) {
			err = fmt.Errorf("line %d, column %d, of the record that begins on line %d: %w", parse.Line, parse.Column, parse.StartLine, parse.Err)
		}
		return nil, 0, err
	}
	line, _ = records.FieldPos(0)
	for i, field := range record {
		if !utf8.ValidString(field) {
			return nil, 0, fmt.Errorf("line %d, column %d: it is not UTF-8; convert the file to UTF-8", line, i+1)
		}
	}
	return record, line, nil
}

func readEdgesCSV(r io.Reader, comma rune) (*EdgeList, error) {
	records := csvReader(r, comma)
	list := &EdgeList{}
	var columns []edgeColumn
	for {
		record, line, err := readRecord(records)
		if errors.Is(err, io.EOF) {
			return list, nil
		}
		if err != nil {
			return nil, err
		}
		if columns == nil {
			if isHeader(record) {
				if columns, err = headerColumns(record); err != nil {
					return nil, fmt.Errorf("line %d, %w", line, err)
				}
				continue
			}
			if len(record) < 2 || len(record) > len(edgeColumnNames) {
				return nil, fmt.Errorf("line %d: there are %d columns; want from, to, weight and type, or a header that names them", line, len(record))
			}
			columns = []edgeColumn{columnFrom, columnTo, columnWeight, columnType}[:len(record)]
		}
		if len(record) != len(columns) {
			return nil, fmt.Errorf("line %d: there are %d columns, want %d as in the first line", line, len(record), len(columns))
		}
		e := mapmatched.Edge{Weight: DefaultEdgeWeight}
		for i, field := range record {
			switch columns[i] {
			case columnFrom:
				e.From = strings.Clone(field)
			case columnTo:
				e.To = strings.Clone(field)
			case columnWeight:
				e.Weight, err = parseWeight(strings.TrimSpace(field))
			case columnType:
				e.Type = mapmatched.EdgeType(strings.Clone(field))
			}
			if field == "" && columns[i] <= columnTo {
				err = mapmatched.ErrEmptyChunkID
			}
			if err != nil {
				return nil, fmt.Errorf("line %d, column %d (%s): %w", line, i+1, edgeColumnNames[columns[i]], err)
			}
		}
		list.Edges = append(list.Edges, e)
	}
}
