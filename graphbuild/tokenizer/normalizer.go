package tokenizer

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// normalizer rewrites text before it is cut.
type normalizer func(aligned) aligned

func sequence(steps []normalizer) normalizer {
	return func(a aligned) aligned {
		for _, step := range steps {
			a = step(a)
		}
		return a
	}
}

// keep drops the characters that fail the test.
func keep(test func(rune) bool) normalizer {
	return mapRunes(func(r rune) rune {
		if test(r) {
			return r
		}
		return -1
	})
}

// mapRunes replaces characters one by one, and drops those that become -1.
func mapRunes(f func(rune) rune) normalizer {
	return func(a aligned) aligned {
		same := func(r rune) bool { return f(r) != r }
		if strings.IndexFunc(a.s, same) < 0 {
			return a
		}
		w := newRewriter(a)
		for !w.done() {
			if r := f(w.next()); r < 0 {
				w.skip()
			} else {
				w.put(r)
			}
		}
		return w.result()
	}
}

// lowercase maps every character on its own, so a final sigma is not special.
func lowercase(a aligned) aligned {
	if isASCII(a.s) {
		a.s = strings.ToLower(a.s)
		return a
	}
	w := newRewriter(a)
	for !w.done() {
		r := w.next()
		w.put(toLower(r))
		if r == 'İ' { // the one character whose lower case is two
			w.insert('\u0307')
		}
	}
	return w.result()
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

func toLower(r rune) rune {
	if r < utf8.RuneSelf {
		if 'A' <= r && r <= 'Z' {
			r += 'a' - 'A'
		}
		return r
	}
	return unicode.ToLower(r)
}

// stripAccents drops all combining marks.
func stripAccents() normalizer {
	return keep(func(r rune) bool { return r < 0x300 || !unicode.Is(unicode.M, r) })
}

func strip(left, right bool) normalizer {
	return func(a aligned) aligned {
		from, to := 0, len(a.s)
		if right {
			to = len(strings.TrimRightFunc(a.s, unicode.IsSpace))
		}
		if left {
			from = to - len(strings.TrimLeftFunc(a.s[:to], unicode.IsSpace))
		}
		return a.trim(from, to)
	}
}

// prepend writes prefix before text that is not empty. It shares the place of
// the first character.
func prepend(prefix string) normalizer {
	return func(a aligned) aligned {
		if a.s == "" || prefix == "" {
			return a
		}
		w := newRewriter(a)
		for _, r := range prefix {
			w.write(r, a.at[0])
		}
		w.copy(len(a.s))
		return w.result()
	}
}

// replace writes content where p matches, in the place of the last character
// of the match.
func replace(p pattern, content string) normalizer {
	return func(a aligned) aligned {
		matches := p.find(a.s)
		if len(matches) == 0 {
			return a
		}
		w := newRewriter(a)
		for _, m := range matches {
			w.copy(m[0] - w.pos)
			w.pos = m[1]
			for _, r := range content {
				w.insert(r)
			}
		}
		w.copy(len(a.s) - w.pos)
		return w.result()
	}
}

// nmt drops control characters and turns the many kinds of white space into
// spaces, as the translation models of SentencePiece do.
func nmt() normalizer {
	return mapRunes(func(r rune) rune {
		switch {
		case r >= 0x01 && r <= 0x08, r == 0x0B, r >= 0x0E && r <= 0x1F, r == 0x7F, r == 0x8F, r == 0x9F:
			return -1
		case r == '\t', r == '\n', r == '\f', r == '\r', r == 0x1680, r >= 0x200B && r <= 0x200F,
			r == 0x2028, r == 0x2029, r == 0x2581, r == 0xFEFF, r == 0xFFFD:
			return ' '
		}
		return r
	})
}
