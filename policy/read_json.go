package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
)

// readJSON reads one JSON value with the lines of its parts.
func readJSON(data []byte) (*branch, []*Problem) {
	lines := newLineTable(data)
	if tooDeep(data) {
		return nil, []*Problem{{Err: errNesting}}
	}
	var whole json.RawMessage
	if err := json.Unmarshal(data, &whole); err != nil {
		p := &Problem{Err: fmt.Errorf("not JSON: %w", err)}
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			p.Line = lines.at(int(max(syntax.Offset-1, 0)))
		}
		return nil, []*Problem{p}
	}
	r := jsonReader{decoder: json.NewDecoder(bytes.NewReader(data)), lines: lines}
	r.decoder.UseNumber()
	b := r.value("", 0)
	return b, r.problems
}

// jsonReader turns the tokens of JSON that is known to be well formed into
// branches.
type jsonReader struct {
	decoder  *json.Decoder
	lines    lineTable
	problems []*Problem
}

// token returns the next token and its line.
func (r *jsonReader) token() (json.Token, int) {
	t, _ := r.decoder.Token() // well formed, as readJSON has checked
	return t, r.lines.at(int(max(r.decoder.InputOffset()-1, 0)))
}

func (r *jsonReader) value(path string, depth int) *branch {
	t, line := r.token()
	b := &branch{line: line}
	switch t := t.(type) {
	case nil:
		b.shape = shapeNull
	case bool:
		b.shape, b.text = shapeBool, fmt.Sprint(t)
	case json.Number:
		b.shape, b.text = shapeNumber, t.String()
	case string:
		b.shape, b.text = shapeText, t
	case json.Delim:
		if depth == MaxNesting {
			r.problems = append(r.problems, &Problem{Line: line, Key: path, Err: errNesting})
		}
		b.shape = shapeList
		if t == '{' {
			b.shape = shapeMapping
		}
		seen := map[string]int{}
		for r.decoder.More() {
			if b.shape == shapeList {
				b.items = append(b.items, r.value(join(path, strconv.Itoa(len(b.items))), depth+1))
				continue
			}
			t, line := r.token()
			key := t.(string)
			value := r.value(join(path, key), depth+1)
			if first, twice := seen[key]; twice {
				r.problems = append(r.problems, duplicate(join(path, key), line, first))
				continue
			}
			seen[key] = line
			b.entries = append(b.entries, entry{key, line, value})
		}
		r.token() // the closing bracket
	}
	return b
}
