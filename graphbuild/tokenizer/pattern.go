package tokenizer

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// pattern finds stretches of text: ranges of bytes, ascending, apart.
type pattern interface {
	find(s string) [][2]int
}

// literal finds a text.
type literal string

func (l literal) find(s string) [][2]int {
	var found [][2]int
	for at := 0; ; {
		i := strings.Index(s[at:], string(l))
		if i < 0 {
			return found
		}
		found = append(found, [2]int{at + i, at + i + len(l)})
		at += i + len(l)
	}
}

// runes finds characters, each on its own.
type runes func(rune) bool

func (f runes) find(s string) [][2]int {
	var found [][2]int
	for i, r := range s {
		if f(r) {
			found = append(found, [2]int{i, i + utf8.RuneLen(r)})
		}
	}
	return found
}

// expression finds what a regular expression does. Where runs is not 0, that
// subexpression is a run of white space that leaves its last character to what
// follows.
type expression struct {
	re   *regexp.Regexp
	runs int
}

func (e expression) find(s string) [][2]int {
	var found [][2]int
	if e.runs == 0 {
		for _, m := range e.re.FindAllStringIndex(s, -1) {
			found = append(found, [2]int{m[0], m[1]})
		}
		return found
	}
	for at := 0; at < len(s); {
		m := e.re.FindStringSubmatchIndex(s[at:])
		if m == nil {
			break
		}
		from, to := at+m[0], at+m[1]
		if m[2*e.runs] >= 0 && to < len(s) {
			// The run is followed by something that is not white space.
			if _, n := utf8.DecodeLastRuneInString(s[from:to]); from < to-n {
				to -= n
			}
		}
		if from == to { // an empty match says nothing: step over a character
			at = to + runeLen(s[to:])
			continue
		}
		found = append(found, [2]int{from, to})
		at = to
	}
	return found
}

// runsTail ends most expressions of byte-level tokenizers. The first half
// looks ahead, which the regexp package does not; the two together are a run
// of white space without its last character where something else follows.
const runsTail = `|\s+(?!\S)|\s+`

// compile translates a regular expression of the Oniguruma library, in which
// \s, \d and \w are meant for all of Unicode. What has no translation is an
// error.
func compile(source string) (pattern, error) {
	body, tail := strings.CutSuffix(source, runsTail)
	translated, err := translate(body, tail)
	if err != nil {
		return nil, fmt.Errorf("regular expression %q: %w", source, err)
	}
	if tail {
		translated += `|(?P<runs>` + spaceClass + `+)`
	}
	re, err := regexp.Compile("(?m)" + translated)
	if err != nil {
		return nil, fmt.Errorf("regular expression %q is not supported: %w", source, err)
	}
	return expression{re, max(0, re.SubexpIndex("runs"))}, nil
}

// The inside of classes of characters for \s, \d, \w and their opposites.
const (
	inSpace    = `\x{9}-\x{D}\x{20}\x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000}`
	inNotSpace = `\x{0}-\x{8}\x{E}-\x{1F}\x{21}-\x{84}\x{86}-\x{9F}\x{A1}-\x{167F}\x{1681}-\x{1FFF}\x{200B}-\x{2027}` +
		`\x{202A}-\x{202E}\x{2030}-\x{205E}\x{2060}-\x{2FFF}\x{3001}-\x{10FFFF}`
	inWord     = `\p{L}\p{M}\p{N}\p{Pc}`
	spaceClass = `[` + inSpace + `]`
)

// translate writes the regular expression for the regexp package. searched
// says that the search starts anew after each match, where anchors would not
// mean the same.
func translate(source string, searched bool) (string, error) {
	var out strings.Builder
	class := false // between [ and ]
	for i := 0; i < len(source); i++ {
		c := source[i]
		rest := source[i:]
		switch {
		case c == '\\' && i+1 < len(source):
			i++
			text, err := translateEscape(source[i], class, rest, searched)
			if err != nil {
				return "", err
			}
			out.WriteString(text)
			continue
		case class && (c == '[' || strings.HasPrefix(rest, "&&")):
			return "", fmt.Errorf("a class inside a class, at %q, is not supported", rest)
		case class:
			class = c != ']'
		case c == '[':
			class = true
			for _, start := range []string{"[^]", "[]", "[^", "["} {
				if strings.HasPrefix(rest, start) {
					out.WriteString(strings.Replace(start, "]", `\]`, 1))
					i += len(start) - 1
					break
				}
			}
			continue
		case strings.HasPrefix(rest, "(?") && !strings.HasPrefix(rest, "(?:") && !strings.HasPrefix(rest, "(?i:") && !strings.HasPrefix(rest, "(?i)"):
			return "", fmt.Errorf("the group at %q is not supported; of look-ahead only %q at the end is", rest, runsTail)
		case searched && (c == '^' || c == '$'):
			return "", fmt.Errorf("an anchor together with %q is not supported", runsTail)
		case strings.HasPrefix(rest, "{,"):
			return "", fmt.Errorf("the repetition at %q is not supported", rest)
		}
		out.WriteByte(c)
	}
	return out.String(), nil
}

func translateEscape(c byte, class bool, rest string, searched bool) (string, error) {
	var inside string
	switch c {
	case 's':
		inside = inSpace
	case 'S':
		inside = inNotSpace
	case 'd':
		inside = `\p{Nd}`
	case 'D':
		inside = `\P{Nd}`
	case 'w':
		inside = inWord
	case 'W':
		if !class {
			return `[^` + inWord + `]`, nil
		}
		return "", fmt.Errorf(`\W in a class, at %q, is not supported`, rest)
	case 'b', 'B', 'z', 'A', 'G', 'Q', 'C':
		if !searched && (c == 'z' || c == 'A') {
			return `\` + string(rune(c)), nil
		}
		return "", fmt.Errorf("the escape at %q is not supported", rest)
	case 'x':
		if !strings.HasPrefix(rest, `\x{`) {
			return "", fmt.Errorf("the byte at %q is not supported; only \\x{…} is", rest)
		}
		return `\x`, nil
	default:
		return `\` + string([]byte{c}), nil // the rest of a longer character follows
	}
	if class {
		return inside, nil
	}
	return `[` + inside + `]`, nil
}

// isWord reports letters, marks, digits, connectors and joiners, the word
// characters of Unicode's regular expressions.
func isWord(r rune) bool {
	if r < utf8.RuneSelf {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_'
	}
	return unicode.In(r, unicode.L, unicode.M, unicode.Nd, unicode.Nl, unicode.Pc,
		unicode.Other_Alphabetic, unicode.Join_Control)
}
