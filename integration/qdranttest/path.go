package qdranttest

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/qdrant/go-client/qdrant"
)

// path is a parsed payload key such as country.cities[].population or
// "key with.dots"[0].
type path []step

// step is one part of a path: a key, an element or all elements of a list.
type step struct {
	kind  stepKind
	key   string
	index int
}

type stepKind uint8

const (
	stepKey stepKind = iota
	stepIndex
	stepAll
)

func parsePath(text string) (path, error) {
	fault := invalidArgument("Invalid json path: '%s'", text)
	key, rest, ok := cutKey(text)
	if !ok {
		return nil, fault
	}
	parsed := path{{key: key}}
	for rest != "" {
		switch {
		case rest[0] == '.':
			if key, rest, ok = cutKey(rest[1:]); !ok {
				return nil, fault
			}
			parsed = append(parsed, step{key: key})
		case strings.HasPrefix(rest, "[]"):
			parsed = append(parsed, step{kind: stepAll})
			rest = rest[2:]
		case rest[0] == '[':
			digits, after, found := strings.Cut(rest[1:], "]")
			index, err := strconv.ParseUint(digits, 10, 31)
			if !found || err != nil {
				return nil, fault
			}
			parsed = append(parsed, step{kind: stepIndex, index: int(index)})
			rest = after
		default:
			return nil, fault
		}
	}
	return parsed, nil
}

// cutKey reads one key, quoted or not, from the start of text.
func cutKey(text string) (key, rest string, ok bool) {
	if strings.HasPrefix(text, `"`) {
		key, rest, ok = strings.Cut(text[1:], `"`)
		return key, rest, ok && !strings.Contains(key, `\`)
	}
	end := strings.IndexFunc(text, func(r rune) bool { return !isKeyRune(r) })
	if end < 0 {
		end = len(text)
	}
	return text[:end], text[end:], end > 0
}

func isKeyRune(r rune) bool {
	return r == '_' || r == '-' || unicode.IsLetter(r) || unicode.IsNumber(r)
}

// String writes a path so that equal paths have equal texts.
func (p path) String() string {
	var b strings.Builder
	for i, s := range p {
		switch s.kind {
		case stepIndex:
			b.WriteString("[" + strconv.Itoa(s.index) + "]")
			continue
		case stepAll:
			b.WriteString("[]")
			continue
		}
		if i > 0 {
			b.WriteByte('.')
		}
		if s.key == "" || strings.ContainsFunc(s.key, func(r rune) bool { return r == utf8.RuneError || !isKeyRune(r) }) {
			b.WriteString(`"` + s.key + `"`)
		} else {
			b.WriteString(s.key)
		}
	}
	return b.String()
}

// values returns what a payload has at a path. A list counts as one value; only
// [] takes it apart.
func (p path) values(payload map[string]*qdrant.Value) []*qdrant.Value {
	first, found := payload[p[0].key]
	if !found {
		return nil
	}
	return p[1:].collect(first, nil)
}

func (p path) collect(v *qdrant.Value, into []*qdrant.Value) []*qdrant.Value {
	if len(p) == 0 {
		return append(into, v)
	}
	switch p[0].kind {
	case stepKey:
		if next, found := v.GetStructValue().GetFields()[p[0].key]; found {
			into = p[1:].collect(next, into)
		}
	case stepIndex:
		if list := v.GetListValue().GetValues(); p[0].index < len(list) {
			into = p[1:].collect(list[p[0].index], into)
		}
	case stepAll:
		for _, element := range v.GetListValue().GetValues() {
			into = p[1:].collect(element, into)
		}
	}
	return into
}

// forElements is the path of the elements of a list: it ends in [].
func (p path) forElements() path {
	if p[len(p)-1].kind == stepAll {
		return p
	}
	return append(slices.Clone(p), step{kind: stepAll})
}

// startsWith says whether p begins with prefix.
func (p path) startsWith(prefix path) bool {
	return len(p) >= len(prefix) && slices.Equal(p[:len(prefix)], prefix)
}
