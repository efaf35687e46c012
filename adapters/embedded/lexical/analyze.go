package lexical

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// AnalyzerTag names what [Analyze] does. An index made under another tag is
// stale.
const AnalyzerTag = "lexical_pre_v2"

// Analyze cuts a text into terms, in the order of the text, repeats kept:
//
//   - The text is brought to Unicode form NFKC and lower case, so full-width
//     letters, ligatures and decomposed accents equal their plain forms.
//     Variation selectors and invisible format characters (soft hyphen, joiners,
//     byte order mark) are dropped, except the zero-width space, which separates.
//   - A run of Han, Hiragana, Katakana and Hangul, in any mixture and with the
//     prolonged sound mark, becomes its overlapping pairs of characters; a run
//     of one character becomes that character. Marks stay with their character.
//   - Everything else is cut into runs of letters, numbers and the marks on
//     them. All other characters separate: apostrophes ("model's" gives
//     "model" and "s"), underscores ("max_distance" gives "max" and
//     "distance"), hyphens and points ("v1.2" gives "v1" and "2"). Scripts
//     that put no spaces between words, such as Thai, give one term a run.
//   - Stopwords (see [Stopwords]) are left out.
//
// Bytes that are not UTF-8 separate. A text without terms gives none.
func Analyze(text string) []string {
	s := fold(text)
	terms := make([]string, 0, len(s)/8)
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case isCJK(r):
			var size int
			size, terms = appendPairs(terms, s[i:])
			i += size
		case isWord(r):
			end := wordEnd(s, i+size)
			if w := s[i:end]; !isStopword[w] {
				terms = append(terms, w)
			}
			i = end
		default:
			i += size
		}
	}
	return terms
}

// fold brings a text to the form that is cut into terms. Lower case can undo
// the composition of a letter and its mark, hence the second normalisation.
func fold(text string) string {
	s := norm.NFKC.String(strings.ToLower(norm.NFKC.String(text)))
	if strings.ContainsFunc(s, invisible) {
		s = strings.Map(func(r rune) rune {
			if invisible(r) {
				return -1
			}
			return r
		}, s)
	}
	return s
}

func invisible(r rune) bool {
	const softHyphen, zeroWidthSpace = 0xAD, 0x200B
	if r < softHyphen || r == zeroWidthSpace {
		return false
	}
	return unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Variation_Selector, r)
}

func isCJK(r rune) bool {
	const firstHangul, prolongedSound = 0x1100, 0x30FC
	if r < firstHangul {
		return false
	}
	return r == prolongedSound ||
		unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul) && isWord(r)
}

// isWord reports whether r can begin a term.
func isWord(r rune) bool {
	if r < utf8.RuneSelf {
		return 'a' <= r && r <= 'z' || '0' <= r && r <= '9' || 'A' <= r && r <= 'Z'
	}
	return unicode.IsLetter(r) || unicode.IsNumber(r)
}

// wordEnd returns where the word ends that goes on at i.
func wordEnd(s string, i int) int {
	for i < len(s) {
		r, size := utf8.DecodeRuneInString(s[i:])
		if !isWord(r) && !unicode.IsMark(r) || isCJK(r) {
			break
		}
		i += size
	}
	return i
}

// appendPairs appends the character pairs of the run that s begins with, or its
// only character, and returns the length of the run in bytes.
func appendPairs(terms []string, s string) (int, []string) {
	previous, current, end := 0, 0, 0 // where the last two characters begin
	for end < len(s) {
		r, size := utf8.DecodeRuneInString(s[end:])
		if isCJK(r) {
			if current > 0 {
				terms = append(terms, s[previous:end])
			}
			previous, current = current, end
		} else if !unicode.IsMark(r) {
			break
		}
		end += size
	}
	return end, append(terms, s[previous:end])
}
