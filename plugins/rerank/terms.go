package rerank

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Terms cuts a text into its content terms, in the order of the text, repeats
// kept: runs of letters, numbers and the marks on them, in lower case, without
// English function words. A run of Han, Hiragana, Katakana or Hangul, which
// have no spaces between words, becomes its overlapping pairs of characters; a
// run of one character becomes that character. Everything else separates.
func Terms(text string) []string {
	s := strings.ToLower(text)
	terms := make([]string, 0, len(s)/8)
	word := -1                        // where the word under way begins, −1 for none
	run, previous, current := 0, 0, 0 // characters of the run under way, and where its last two begin
	end := func(i int) {
		if word >= 0 && !functionWords[s[word:i]] {
			terms = append(terms, s[word:i])
		}
		switch run {
		case 0:
		case 1:
			terms = append(terms, s[current:i])
		default:
			terms = append(terms, s[previous:i])
		}
		word, run = -1, 0
	}
	for i, r := range s {
		switch {
		case unspaced(r):
			if word >= 0 {
				end(i)
			}
			if run >= 2 {
				terms = append(terms, s[previous:i])
			}
			run, previous, current = run+1, current, i
		case inWord(r, word >= 0):
			if run > 0 {
				end(i)
			}
			if word < 0 {
				word = i
			}
		default:
			end(i)
		}
	}
	end(len(s))
	return terms
}

// inWord reports whether r begins a word or goes on with one.
func inWord(r rune, begun bool) bool {
	if r < utf8.RuneSelf {
		return 'a' <= r && r <= 'z' || '0' <= r && r <= '9'
	}
	return unicode.IsLetter(r) || unicode.IsNumber(r) || begun && unicode.IsMark(r)
}

// unspaced reports whether r is of a script without spaces between words.
func unspaced(r rune) bool {
	const firstHangul = 0x1100
	return r >= firstHangul && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul) && unicode.IsLetter(r)
}

// functionWords are the English words that every text has.
var functionWords = setOf(strings.Fields(`
a about after again all also am an and any are as at be because been before
being below between both but by can could did do does doing down during each
few for from further had has have having he her here hers him his how i if in
into is it its just me more most my no nor not now of off on once only or other
our ours out over own same she should so some such than that the their theirs
them then there these they this those through to too under until up very was we
were what when where which while who whom why will with would you your yours`))

func setOf(words []string) map[string]bool {
	set := make(map[string]bool, len(words))
	for _, w := range words {
		set[w] = true
	}
	return set
}
