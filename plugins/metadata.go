package plugins

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// encodeMetadata writes metadata as JSON. Whole floats keep a point, so that
// they come back as floats and integers as integers.
func encodeMetadata(m map[string]any) ([]byte, error) {
	if m == nil {
		return nil, nil
	}
	b, err := json.Marshal(marked(m))
	if err != nil {
		return nil, fmt.Errorf("metadata: %w", err)
	}
	return b, nil
}

// marked replaces floats without fraction in what JSON decoding makes.
func marked(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, value := range v {
			out[key] = marked(value)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, value := range v {
			out[i] = marked(value)
		}
		return out
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1e21 {
			return json.Number(strconv.FormatFloat(v, 'f', 1, 64))
		}
	}
	return v
}

// decodeMetadata reads metadata. A number without point and exponent is an
// int64, or a uint64 beyond that; all others are float64. encoding/json can
// keep numbers apart like this too, but takes several times as long, which is
// most of the time of a call.
func decodeMetadata(b []byte) (map[string]any, error) {
	b = bytes.TrimSpace(b)
	switch {
	case len(b) == 0:
		return nil, nil
	case b[0] != '{' || !json.Valid(b):
		return nil, errors.New("metadata is not a JSON object")
	}
	r := metadataReader{text: b}
	m := r.object()
	return m, r.err
}

// metadataReader reads JSON that is known to be valid.
type metadataReader struct {
	text []byte // what is left
	err  error  // the first number that is beyond float64
}

// next skips white space, and then one byte if it is c.
func (r *metadataReader) next(c byte) bool {
	for len(r.text) > 0 && (r.text[0] == ' ' || r.text[0] == '\t' || r.text[0] == '\n' || r.text[0] == '\r') {
		r.text = r.text[1:]
	}
	if r.text[0] != c {
		return false
	}
	r.text = r.text[1:]
	return true
}

func (r *metadataReader) object() map[string]any {
	m := map[string]any{}
	r.next('{')
	for !r.next('}') {
		r.next(',')
		r.next('"')
		key := r.string()
		r.next(':')
		m[key] = r.value()
	}
	return m
}

func (r *metadataReader) value() any {
	switch {
	case r.next('"'):
		return r.string()
	case r.text[0] == '{':
		return r.object()
	case r.next('['):
		list := []any{}
		for !r.next(']') {
			r.next(',')
			list = append(list, r.value())
		}
		return list
	case r.text[0] == 't':
		r.text = r.text[len("true"):]
		return true
	case r.text[0] == 'f':
		r.text = r.text[len("false"):]
		return false
	case r.text[0] == 'n':
		r.text = r.text[len("null"):]
		return nil
	}
	return r.number()
}

// string reads the rest of a string, after its first quote.
func (r *metadataReader) string() string {
	end, plain := 0, true
	for ; r.text[end] != '"'; end++ {
		if r.text[end] == '\\' {
			end++
			plain = false
		}
	}
	text := r.text[:end]
	r.text = r.text[end+1:]
	if plain && utf8.Valid(text) {
		return string(text)
	}
	quoted := append(append([]byte{'"'}, text...), '"')
	var out string
	_ = json.Unmarshal(quoted, &out) // it is valid
	return out
}

func (r *metadataReader) number() any {
	end := 0
	for end < len(r.text) && strings.IndexByte("+-.0123456789eE", r.text[end]) >= 0 {
		end++
	}
	text := string(r.text[:end])
	r.text = r.text[end:]
	if !strings.ContainsAny(text, ".eE") {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return n
		}
		if n, err := strconv.ParseUint(text, 10, 64); err == nil {
			return n
		}
	}
	x, err := strconv.ParseFloat(text, 64)
	if err != nil && r.err == nil {
		r.err = fmt.Errorf("metadata: the number %s is beyond float64", cut(text, 40))
	}
	return x
}
