package policy

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
)

// Canonical returns the canonical form: the whole effective policy, defaults
// filled in, as JSON without white space, keys and numbers as RFC 8785 (JSON
// Canonicalization Scheme) writes them: keys sorted by UTF-16 code unit, and a
// number in the shortest digits that read back to it, so that 60, 60.0 and 6e1
// are one. It ends without a newline. Schema is part of it; name, description,
// digest and evidence, on which no result depends, are not.
//
// A number that is not finite, which Validate refuses, has no such form and is
// written as null.
func (p *Policy) Canonical() []byte {
	var w jsonWriter
	w.value(digested(p), 0)
	return w.Bytes()
}

// Digest returns the SHA-256 of the canonical form in 64 lower-case
// hexadecimal digits. It is the same whatever format, order, spacing and
// comments the policy was written with.
func (p *Policy) Digest() string {
	sum := sha256.Sum256(p.Canonical())
	return hex.EncodeToString(sum[:])
}

// digested is the part of a policy that its digest depends on.
func digested(p *Policy) map[string]any {
	m := compared(p)
	// Sections that came after the first release are no part of a policy that
	// does not depart from what was so before: its digest stays what it was.
	if p.Reply == DefaultReply() {
		delete(m, "reply")
	}
	if p.Proposals == DefaultProposals() {
		delete(m, "proposals")
	}
	return m
}

// jsonWriter writes trees as RFC 8785 does, or with that form's values and
// some indentation.
type jsonWriter struct {
	bytes.Buffer
	indent string
}

func (w *jsonWriter) value(v any, depth int) {
	switch v := v.(type) {
	case map[string]any:
		w.WriteByte('{')
		for i, key := range canonicalKeys(v) {
			w.item(i, depth+1)
			w.text(key)
			w.WriteByte(':')
			if w.indent != "" {
				w.WriteByte(' ')
			}
			w.value(v[key], depth+1)
		}
		w.end(len(v), depth, '}')
	case []any:
		w.WriteByte('[')
		for i, item := range v {
			w.item(i, depth+1)
			w.value(item, depth+1)
		}
		w.end(len(v), depth, ']')
	case string:
		w.text(v)
	case bool:
		w.WriteString(strconv.FormatBool(v))
	case int64:
		w.WriteString(numberText(float64(v)))
	case float64:
		w.WriteString(numberText(v))
	default:
		w.WriteString("null")
	}
}

// item goes to the place of an item of a list or mapping.
func (w *jsonWriter) item(i, depth int) {
	if i > 0 {
		w.WriteByte(',')
	}
	w.line(depth)
}

// end closes a list or mapping of n items.
func (w *jsonWriter) end(n, depth int, bracket byte) {
	if n > 0 {
		w.line(depth)
	}
	w.WriteByte(bracket)
}

func (w *jsonWriter) line(depth int) {
	if w.indent != "" {
		w.WriteString("\n" + strings.Repeat(w.indent, depth))
	}
}

// text writes a string with the escapes that are needed and no others.
func (w *jsonWriter) text(s string) {
	const hexDigits = "0123456789abcdef"
	w.WriteByte('"')
	for _, r := range s {
		switch r {
		case '"', '\\':
			w.WriteByte('\\')
			w.WriteRune(r)
		case '\b':
			w.WriteString(`\b`)
		case '\f':
			w.WriteString(`\f`)
		case '\n':
			w.WriteString(`\n`)
		case '\r':
			w.WriteString(`\r`)
		case '\t':
			w.WriteString(`\t`)
		default:
			if r < ' ' {
				w.WriteString(`\u00` + string([]byte{hexDigits[r>>4], hexDigits[r&15]}))
			} else {
				w.WriteRune(r)
			}
		}
	}
	w.WriteByte('"')
}

// canonicalKeys sorts keys by UTF-16 code unit.
func canonicalKeys(m map[string]any) []string {
	keys := sortedKeys(m)
	slices.SortStableFunc(keys, func(a, b string) int {
		return slices.Compare(utf16.Encode([]rune(a)), utf16.Encode([]rune(b)))
	})
	return keys
}

// numberText writes a number as ECMAScript does: the shortest digits that read
// back to it, with an exponent below 1e-6 and from 1e21 on. −0 is 0.
func numberText(x float64) string {
	abs := math.Abs(x)
	switch {
	case math.IsNaN(x) || math.IsInf(x, 0):
		return "null"
	case x == 0:
		return "0"
	case abs >= 1e-6 && abs < 1e21:
		return strconv.FormatFloat(x, 'f', -1, 64)
	}
	digits, exponent, _ := strings.Cut(strconv.FormatFloat(x, 'e', -1, 64), "e")
	return digits + "e" + exponent[:1] + strings.TrimLeft(exponent[1:], "0")
}
