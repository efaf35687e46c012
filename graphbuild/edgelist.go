package graphbuild

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"path"
	"strconv"
	"strings"

	"github.com/mapmatched/mmplug/mapmatched"
)

// EdgeFormat is a form of files of edges.
type EdgeFormat string

// The forms that [ReadEdges] reads.
const (
	EdgesCSV      EdgeFormat = "csv"       // comma-separated (RFC 4180)
	EdgesTSV      EdgeFormat = "tsv"       // the same with tabs for commas
	EdgesJSONL    EdgeFormat = "jsonl"     // a JSON object a line
	EdgesNodeLink EdgeFormat = "node-link" // one JSON object with nodes and links
)

// EdgeFormatOf returns the form that a file of that name has: .csv, .tsv or
// .tab, .jsonl or .ndjson, .json, whatever the case of the letters. Any other
// extension is an error.
func EdgeFormatOf(name string) (EdgeFormat, error) {
	switch ext := strings.ToLower(path.Ext(name)); ext {
	case ".csv":
		return EdgesCSV, nil
	case ".tsv", ".tab":
		return EdgesTSV, nil
	case ".jsonl", ".ndjson":
		return EdgesJSONL, nil
	case ".json":
		return EdgesNodeLink, nil
	default:
		return "", fmt.Errorf("%s: extension %q is no form of edges; name the file .csv, .tsv, .jsonl or .json (node-link)", name, ext)
	}
}

// EdgeList is what a file of edges holds.
type EdgeList struct {
	Nodes    []string          // chunks that the file lists, in its order; node-link only
	Edges    []mapmatched.Edge // in the order of the file
	Directed bool              // node-link with "directed": true
}

// DefaultEdgeWeight is the length of the edges of a file without weights.
const DefaultEdgeWeight = 1.0

// maxEdgeLine is the limit of a line of JSON, in bytes.
const maxEdgeLine = 1 << 20

// ReadEdges reads a list of edges. IDs are chunk IDs, never empty; weights are
// lengths, positive and finite.
//
// CSV and TSV: a first record that names one column from or source and one to
// or target is a header, of which the other columns may be weight or distance,
// and type, in any order and case. Without a header the columns are from, to,
// weight and type, the last two of which may be left out.
//
// JSONL: objects with source or from, target or to, and if wanted distance or
// weight, and type. This is what "mmplug graph export --format jsonl" writes.
//
// Node-link: one object with nodes, each with an id and whatever else; links or
// edges, each with source, target and if wanted weight or distance, type, and
// key; directed, false if left out; multigraph and graph, which are not looked
// at. An ID may be a whole number. Links name listed nodes only.
//
// In a file without any weights all edges have the length [DefaultEdgeWeight];
// where some have a weight, all need one. A type that is left out is empty.
// Edges may repeat and may lead from a chunk to itself: [Union] and
// mapmatched.NewGraph sort that out. A byte order mark is skipped.
//
// Everything else is an error that names the line and the column or field: an
// unknown or repeated column or key, a missing one, a wrong type, a weight out
// of range, text that is not UTF-8.
func ReadEdges(r io.Reader, format EdgeFormat) (*EdgeList, error) {
	switch format {
	case EdgesCSV:
		return readEdgesCSV(r, ',')
	case EdgesTSV:
		return readEdgesCSV(r, '\t')
	case EdgesJSONL:
		return readEdgesJSONL(r)
	case EdgesNodeLink:
		return readNodeLink(r)
	}
	return nil, fmt.Errorf("%w: there is no form of edges %q; use %q, %q, %q or %q",
		mapmatched.ErrInvalidConfig, format, EdgesCSV, EdgesTSV, EdgesJSONL, EdgesNodeLink)
}

var utf8BOM = []byte("\uFEFF")

// weightCheck sees to it that all edges have a weight, or none.
type weightCheck struct {
	first string // where the first edge is, "" before it
	has   bool   // whether that has a weight
}

func (w *weightCheck) see(where string, has bool) error {
	if w.first == "" {
		w.first, w.has = where, has
	}
	if has == w.has {
		return nil
	}
	with, without := w.first, where
	if has {
		with, without = where, w.first
	}
	return fmt.Errorf("%s: there is no weight, but %s has one; give all edges a weight or none", without, with)
}

// parseWeight reads a weight.
func parseWeight(text string) (float64, error) {
	v, err := strconv.ParseFloat(text, 64)
	switch {
	case errors.Is(err, strconv.ErrRange) || err == nil && (math.IsInf(v, 0) || math.IsNaN(v)):
		return 0, fmt.Errorf("%w: it is %s; weights are positive and finite", mapmatched.ErrNonFinite, clipText(text))
	case err != nil:
		return 0, fmt.Errorf("%q is not a number", clipText(text))
	case v <= 0:
		return 0, fmt.Errorf("%w: it is %s; weights are positive", mapmatched.ErrDistance, clipText(text))
	}
	return v, nil
}

// clipText shortens text for a message.
func clipText(s string) string {
	const most = 60
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// edgeFields are the fields of an edge in JSON. A nil field was left out.
type edgeFields struct {
	from, to, weight, kind *json.RawMessage
}

// take notes a field and reports whether there is one of that name.
func (f *edgeFields) take(key string, value json.RawMessage) (known bool, err error) {
	var at **json.RawMessage
	switch key {
	case "source", "from":
		at = &f.from
	case "target", "to":
		at = &f.to
	case "weight", "distance":
		at = &f.weight
	case "type":
		at = &f.kind
	default:
		return false, nil
	}
	if *at != nil {
		return true, fmt.Errorf("field %q: this was given already, maybe by its other name; give it once", key)
	}
	*at = &value
	return true, nil
}

// edge makes an edge of the fields. id reads an ID.
func (f *edgeFields) edge(id func(json.RawMessage) (string, error)) (mapmatched.Edge, error) {
	e := mapmatched.Edge{Weight: DefaultEdgeWeight}
	for _, end := range []struct {
		name string
		raw  *json.RawMessage
		to   *string
	}{{"source", f.from, &e.From}, {"target", f.to, &e.To}} {
		if end.raw == nil {
			return e, fmt.Errorf("there is no field %q; an edge needs both ends", end.name)
		}
		var err error
		if *end.to, err = id(*end.raw); err != nil {
			return e, fmt.Errorf("field %q: %w", end.name, err)
		}
	}
	if f.weight != nil {
		if c := (*f.weight)[0]; c != '-' && (c < '0' || c > '9') {
			return e, fmt.Errorf("field \"weight\": %s is not a number", clipText(string(*f.weight)))
		}
		var err error
		if e.Weight, err = parseWeight(string(*f.weight)); err != nil {
			return e, fmt.Errorf("field \"weight\": %w", err)
		}
	}
	if f.kind != nil {
		kind, err := jsonString(*f.kind)
		if err != nil {
			return e, fmt.Errorf("field \"type\": %w", err)
		}
		e.Type = mapmatched.EdgeType(kind)
	}
	return e, nil
}

// jsonString reads a JSON string.
func jsonString(raw json.RawMessage) (string, error) {
	if raw[0] != '"' {
		return "", fmt.Errorf("%s is not a string", clipText(string(raw)))
	}
	var s string
	err := json.Unmarshal(raw, &s)
	return s, err
}

// jsonID reads an ID that is a string.
func jsonID(raw json.RawMessage) (string, error) {
	s, err := jsonString(raw)
	if err == nil && s == "" {
		err = mapmatched.ErrEmptyChunkID
	}
	return s, err
}

// jsonNodeID reads an ID that is a string or a whole number.
func jsonNodeID(raw json.RawMessage) (string, error) {
	digits := strings.TrimPrefix(string(raw), "-")
	if digits != "" && strings.Trim(digits, "0123456789") == "" {
		return string(raw), nil
	}
	id, err := jsonID(raw)
	if err != nil && !errors.Is(err, mapmatched.ErrEmptyChunkID) {
		err = fmt.Errorf("%s is neither a string nor a whole number", clipText(string(raw)))
	}
	return id, err
}

// eachField reads a JSON object from d and calls field with each key, in
// order. A repeated key is an error.
func eachField(d *json.Decoder, field func(key string) error) error {
	if t, err := d.Token(); err != nil {
		return err
	} else if t != json.Delim('{') {
		return fmt.Errorf("%v is not an object", tokenText(t))
	}
	seen := map[string]bool{}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return err
		}
		key := t.(string) // the keys of an object are strings
		if seen[key] {
			return fmt.Errorf("field %q is given twice", clipText(key))
		}
		seen[key] = true
		if err := field(key); err != nil {
			return err
		}
	}
	_, err := d.Token()
	return err
}

// eachElement reads a JSON array from d and calls element before each element.
func eachElement(d *json.Decoder, element func(i int) error) error {
	if t, err := d.Token(); err != nil {
		return err
	} else if t != json.Delim('[') {
		return fmt.Errorf("%v is not a list", tokenText(t))
	}
	for i := 0; d.More(); i++ {
		if err := element(i); err != nil {
			return err
		}
	}
	_, err := d.Token()
	return err
}

func tokenText(t json.Token) string {
	switch t := t.(type) {
	case nil:
		return "null"
	case string:
		return strconv.Quote(clipText(t))
	}
	return fmt.Sprint(t)
}

// rawValue reads the next JSON value.
func rawValue(d *json.Decoder) (json.RawMessage, error) {
	var raw json.RawMessage
	err := d.Decode(&raw)
	return raw, err
}

// unexpectedEnd makes the end of a JSON text in the middle an error of its own.
func unexpectedEnd(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the JSON ends in the middle; write the file again")
	}
	return err
}

// lineOf returns the line of an offset, from 1, and its column in bytes, from 1.
func lineOf(text []byte, offset int64) (line, column int) {
	before := text[:min(max(offset, 0), int64(len(text)))]
	return bytes.Count(before, []byte("\n")) + 1, len(before) - (bytes.LastIndexByte(before, '\n') + 1) + 1
}

// syntaxOffset returns where a JSON text is wrong, or otherwise.
func syntaxOffset(err error, otherwise int64) int64 {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return cmp.Or(syntax.Offset, otherwise)
	}
	return otherwise
}
