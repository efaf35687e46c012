package weaviate

import (
	"strconv"
	"strings"
)

// query builds a GraphQL document. Texts are escaped as GraphQL wants it, which
// is not how Go quotes: it knows no \a, \x and \U.
type query struct{ b strings.Builder }

// raw appends what is no value: names that were checked, and punctuation.
func (q *query) raw(s string) { q.b.WriteString(s) }

// text appends a string value.
func (q *query) text(s string) {
	const hex = "0123456789abcdef"
	q.b.WriteByte('"')
	start := 0
	for i := range len(s) {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' && c != 0x7f {
			continue
		}
		q.b.WriteString(s[start:i])
		start = i + 1
		switch c {
		case '"', '\\':
			q.b.WriteByte('\\')
			q.b.WriteByte(c)
		case '\n':
			q.b.WriteString(`\n`)
		default:
			q.b.WriteString(`\u00`)
			q.b.WriteByte(hex[c>>4])
			q.b.WriteByte(hex[c&15])
		}
	}
	q.b.WriteString(s[start:])
	q.b.WriteByte('"')
}

// texts appends a list of strings.
func (q *query) texts(list []string) {
	q.raw("[")
	for i, s := range list {
		if i > 0 {
			q.raw(",")
		}
		q.text(s)
	}
	q.raw("]")
}

// number appends a finite number.
func (q *query) number(x float64) { q.raw(strconv.FormatFloat(x, 'g', -1, 64)) }

// vector appends the components of a vector.
func (q *query) vector(v []float32) {
	buffer := make([]byte, 0, 16*len(v)+2)
	buffer = append(buffer, '[')
	for i, x := range v {
		if i > 0 {
			buffer = append(buffer, ',')
		}
		buffer = strconv.AppendFloat(buffer, float64(x), 'g', -1, 32)
	}
	q.b.Write(append(buffer, ']'))
}

func (q *query) String() string { return q.b.String() }
