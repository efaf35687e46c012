package tokenizer

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// pretokenizer cuts text into the pieces that the model sees one at a time.
type pretokenizer func([]aligned) []aligned

// behavior says what becomes of what a pattern matched.
type behavior string

const (
	removed            behavior = "Removed"
	isolated           behavior = "Isolated"
	mergedWithPrevious behavior = "MergedWithPrevious"
	mergedWithNext     behavior = "MergedWithNext"
	contiguous         behavior = "Contiguous"
)

func (b behavior) known() bool {
	return slices.Contains([]behavior{removed, isolated, mergedWithPrevious, mergedWithNext, contiguous}, b)
}

// split cuts each piece by a pattern; invert takes what did not match for what
// did.
func split(p pattern, b behavior, invert bool) pretokenizer {
	return func(pieces []aligned) []aligned {
		out := make([]aligned, 0, len(pieces))
		for _, a := range pieces {
			out = cut(out, a, p.find(a.s), b, invert)
		}
		return out
	}
}

// part is a stretch of a piece, matched or between matches.
type part struct {
	from, to int
	match    bool
}

func cut(out []aligned, a aligned, matches [][2]int, b behavior, invert bool) []aligned {
	if len(matches) == 0 && (!invert || b != removed) {
		if a.s != "" {
			out = append(out, a)
		}
		return out
	}
	parts := make([]part, 0, 2*len(matches)+1)
	at := 0
	for _, m := range matches {
		if m[0] > at {
			parts = append(parts, part{at, m[0], invert})
		}
		parts = append(parts, part{m[0], m[1], !invert})
		at = m[1]
	}
	if at < len(a.s) {
		parts = append(parts, part{at, len(a.s), invert})
	}
	parts = merge(parts, b)
	out = slices.Grow(out, len(parts))
	for _, p := range parts {
		if p.from < p.to {
			out = append(out, a.slice(p.from, p.to))
		}
	}
	return out
}

// merge joins parts as b says, in place.
func merge(parts []part, b behavior) []part {
	switch b {
	case removed:
		return slices.DeleteFunc(parts, func(p part) bool { return p.match })
	case contiguous:
		return join(parts, func(before, p part) bool { return before.match == p.match })
	case mergedWithPrevious:
		return join(parts, func(before, p part) bool { return p.match && !before.match })
	case mergedWithNext:
		return join(parts, func(before, p part) bool { return before.match && !p.match })
	}
	return parts
}

// join puts neighbours together. The test sees them as they were cut.
func join(parts []part, together func(before, p part) bool) []part {
	var out []part
	for i, p := range parts {
		if i > 0 && together(parts[i-1], p) {
			out[len(out)-1].to = p.to
		} else {
			out = append(out, p)
		}
	}
	return out
}

func pretokenizers(steps []pretokenizer) pretokenizer {
	return func(pieces []aligned) []aligned {
		for _, step := range steps {
			pieces = step(pieces)
		}
		return pieces
	}
}

func whitespaceSplit() pretokenizer { return split(runes(unicode.IsSpace), removed, false) }

// whitespace keeps runs of word characters and runs of other characters that
// are not white space.
func whitespace() pretokenizer {
	class := func(r rune) int {
		switch {
		case unicode.IsSpace(r):
			return 0
		case isWord(r):
			return 1
		}
		return 2
	}
	return func(pieces []aligned) []aligned {
		var out []aligned
		for _, a := range pieces {
			from, current := 0, 0
			for i, r := range a.s {
				if c := class(r); c != current {
					if current != 0 {
						out = append(out, a.slice(from, i))
					}
					from, current = i, c
				}
			}
			if current != 0 {
				out = append(out, a.slice(from, len(a.s)))
			}
		}
		return out
	}
}

// bertPretokenizer cuts at white space and around punctuation.
func bertPretokenizer() pretokenizer {
	return pretokenizers([]pretokenizer{whitespaceSplit(), split(runes(isPunctuation), isolated, false)})
}

func isPunctuation(r rune) bool {
	if r < utf8.RuneSelf {
		return '!' <= r && r <= '/' || ':' <= r && r <= '@' || '[' <= r && r <= '`' || '{' <= r && r <= '~'
	}
	return unicode.IsPunct(r)
}

func digits(individual bool) pretokenizer {
	if individual {
		return split(runes(unicode.IsNumber), isolated, false)
	}
	return split(runes(unicode.IsNumber), contiguous, false)
}

// metaspace marks where words begin: the marker takes the place of spaces and
// is put before text as scheme says.
func metaspace(marker, scheme string, cutWords bool) pretokenizer {
	spaces := replace(literal(" "), marker)
	mark := prepend(marker)
	words := split(literal(marker), mergedWithNext, false)
	return func(pieces []aligned) []aligned {
		out := make([]aligned, 0, len(pieces))
		for _, a := range pieces {
			a = spaces(a)
			if (scheme == "always" || scheme == "first" && a.base == 0) && !strings.HasPrefix(a.s, marker) {
				a = mark(a)
			}
			if a.s != "" {
				out = append(out, a)
			}
		}
		if cutWords {
			out = words(out)
		}
		return out
	}
}
