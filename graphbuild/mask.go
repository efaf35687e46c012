package graphbuild

import "strings"

// The parser takes time in the square of these two, which no page needs.
const (
	maxParagraph = 32 << 10 // bytes of a paragraph in which links are looked for
	maxQuotes    = 32       // depth of nested block quotes
)

// mask returns a copy of text for the parser, byte for byte in the same place,
// without the signs that make it slow: the "[", "*" and "_" of a paragraph
// beyond maxParagraph bytes and the ">" of block quotes beyond maxQuotes deep.
// A space ends a link that reaches there. A paragraph ends at a blank line, a
// heading or a list item.
func mask(text string) []byte {
	b := []byte(text)
	paragraph := 0 // where it started
	for at := 0; at < len(b); {
		end := lineEnd(text, at)
		line := strings.TrimLeft(text[at:end], " \t\r\n")
		if line == "" || startsBlock(line) {
			paragraph = at
		}
		quotes := 0
		for i := at; i < end && strings.IndexByte("> \t", b[i]) >= 0; i++ {
			if b[i] == '>' {
				if quotes++; quotes > maxQuotes {
					b[i] = 'x'
				}
			}
		}
		for i := max(at, paragraph+maxParagraph); i < end; i++ {
			switch {
			case i == paragraph+maxParagraph && b[i] != '\n':
				b[i] = ' '
			case b[i] == '[' || b[i] == '*' || b[i] == '_':
				b[i] = 'x'
			}
		}
		at = end
	}
	return b
}

// startsBlock reports whether line begins like a heading or a list item.
func startsBlock(line string) bool {
	marker, _, ok := strings.Cut(line, " ")
	return ok && (strings.Trim(marker, "#") == "" || marker == "-" || marker == "+" || marker == "*")
}
