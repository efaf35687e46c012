package tokenizer

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// addedToken is a text that is a token wherever it stands.
type addedToken struct {
	ID         int    `json:"id"`
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"` // not inside a word
	LStrip     bool   `json:"lstrip"`      // with the white space before it
	RStrip     bool   `json:"rstrip"`      // with the white space after it
	Normalized bool   `json:"normalized"`  // sought in normalised text
	Special    bool   `json:"special"`
}

// addedTokens finds added tokens, the first and longest.
type addedTokens struct {
	tokens []addedToken
	texts  *trie     // IDs are positions in tokens
	begin  [256]bool // the bytes that tokens begin with
}

func newAddedTokens(tokens []addedToken, n normalizer) *addedTokens {
	entries := make([]entry, len(tokens))
	for i, t := range tokens {
		text := t.Content
		if n != nil {
			text = n(align(text, 0)).s
		}
		entries[i] = entry{text, int32(i)}
	}
	t := &addedTokens{tokens: tokens, texts: newTrie(entries)}
	for _, e := range entries {
		if e.text != "" {
			t.begin[e.text[0]] = true
		}
	}
	return t
}

// span is a stretch of text that is an added token, or still to be cut where
// token is -1.
type span struct {
	aligned
	token int
}

func (t *addedTokens) split(out []span, a aligned) []span {
	from := 0 // what is before is written
	for i := 0; i < len(a.s) && len(t.tokens) > 0; {
		if !t.begin[a.s[i]] {
			i++
			continue
		}
		n, length := t.texts.longest(a.s[i:])
		if n < 0 {
			i++
			continue
		}
		token := t.tokens[n]
		start, stop := i, i+length
		i = stop
		if token.SingleWord && (endsInWord(a.s[:start]) || beginsWithWord(a.s[stop:])) {
			continue
		}
		if token.LStrip {
			start = max(from, len(strings.TrimRightFunc(a.s[:start], unicode.IsSpace)))
		}
		if token.RStrip {
			stop = len(a.s) - len(strings.TrimLeftFunc(a.s[stop:], unicode.IsSpace))
			i = stop
		}
		if from < start {
			out = append(out, span{a.slice(from, start), -1})
		}
		out = append(out, span{a.slice(start, stop), token.ID})
		from = stop
	}
	if from < len(a.s) {
		out = append(out, span{a.slice(from, len(a.s)), -1})
	}
	return out
}

func endsInWord(s string) bool {
	r, n := utf8.DecodeLastRuneInString(s)
	return n > 0 && isWord(r)
}

func beginsWithWord(s string) bool {
	r, n := utf8.DecodeRuneInString(s)
	return n > 0 && isWord(r)
}
