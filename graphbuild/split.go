package graphbuild

import (
	"strings"
	"unicode/utf8"
)

// nextCut returns where the piece of a section of text that begins at start
// ends, at most maxBytes later. last is the last character of the section that
// is not white space.
//
// A rest that fits is one piece. Otherwise the cut is at the last paragraph
// break that leaves at least a quarter of maxBytes before it and keeps the
// heading together with some of its body; failing that at the last such line
// start, end of a sentence, space, and at last between any two characters.
// Every cut but the last kind has white space before it and none after (line
// starts keep their indentation), so a piece is white space only where runs of
// white space, of half of maxBytes or more, leave no choice.
func nextCut(text string, s section, start, last, maxBytes int) int {
	if s.end-start <= maxBytes {
		return s.end
	}
	hi := start + maxBytes
	// Leave some text to the rest: it must not be white space only.
	if last > start {
		hi = min(hi, last)
	}
	lo := start + maxBytes/4
	// Keep the heading, or leading white space, together with some text.
	first := max(start, s.body)
	if first >= hi {
		first = start
	}
	for first < hi && isSpace(text[first]) {
		first++
	}
	if first < hi {
		lo = max(lo, first)
	}
	for _, isBreak := range []func(string, int) bool{paragraphBreak, lineBreak, sentenceBreak, wordBreak} {
		for p := hi; p > lo; p-- {
			if isBreak(text[start:s.end], p-start) {
				return p
			}
		}
	}
	cut := hi
	for cut > start && !utf8.RuneStart(text[cut]) {
		cut--
	}
	if text[cut-1] == '\r' && text[cut] == '\n' && cut-1 > start {
		cut--
	}
	return cut
}

func isSpace(b byte) bool { return b == ' ' || '\t' <= b && b <= '\r' }

// lastTextRune returns the offset of the last character of s that is not
// white space, or -1.
func lastTextRune(s string) int {
	i := len(s) - 1
	for i >= 0 && isSpace(s[i]) {
		i--
	}
	for i > 0 && !utf8.RuneStart(s[i]) {
		i--
	}
	return i
}

// lineBreak reports whether a line that is not blank starts at p > 0.
func lineBreak(s string, p int) bool {
	if s[p-1] != '\n' {
		return false
	}
	for ; p < len(s) && s[p] != '\n'; p++ {
		if !isSpace(s[p]) {
			return true
		}
	}
	return false
}

// paragraphBreak reports whether a line that is not blank starts at p, after
// one that is.
func paragraphBreak(s string, p int) bool {
	if !lineBreak(s, p) {
		return false
	}
	for p -= 2; p >= 0 && isSpace(s[p]); p-- {
		if s[p] == '\n' {
			return true
		}
	}
	return false
}

// sentenceBreak reports whether a word starts at p after the end of a
// sentence: a full stop, exclamation or question mark with any closing quotes
// and brackets and white space after it, or an ideographic one with nothing
// between.
func sentenceBreak(s string, p int) bool {
	if isSpace(s[p]) || !utf8.RuneStart(s[p]) {
		return false
	}
	before := strings.TrimRight(s[max(0, p-64):p], " \t\n\v\f\r")
	r, size := utf8.DecodeLastRuneInString(before)
	if strings.ContainsRune("。！？；", r) {
		return true
	}
	if !isSpace(s[p-1]) {
		return false
	}
	for size > 0 && strings.ContainsRune("\"')]}»”’", r) {
		before = before[:len(before)-size]
		r, size = utf8.DecodeLastRuneInString(before)
	}
	return strings.ContainsRune(".!?…", r)
}

// wordBreak reports whether a word starts at p after white space.
func wordBreak(s string, p int) bool { return isSpace(s[p-1]) && !isSpace(s[p]) }
