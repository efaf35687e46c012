package tokenizer

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// model turns a piece of text, which is not empty, into tokens. emit takes
// them in order with their bytes of the piece.
type model interface {
	tokenize(s string, emit func(id int32, from, to int)) error
}

// wordLevel knows whole pieces.
type wordLevel struct {
	vocab map[string]int32
	unk   int32 // -1 where there is none
}

func (m *wordLevel) tokenize(s string, emit func(int32, int, int)) error {
	id, ok := m.vocab[s]
	if !ok {
		id = m.unk
	}
	if id < 0 {
		return fmt.Errorf("piece %q is not in the vocabulary, which has no unknown token; add one to the tokenizer file", s)
	}
	emit(id, 0, len(s))
	return nil
}

// wordPiece takes the longest entry that fits, again and again (Wu et al.
// 2016, "Google's Neural Machine Translation System").
type wordPiece struct {
	first, next *trie // entries that begin a piece, and that go on in one
	unk         int32
	maxRunes    int // a longer piece is unknown
}

func newWordPiece(vocab map[string]int32, prefix string, unk int32, maxRunes int) *wordPiece {
	first := make([]entry, 0, len(vocab))
	var next []entry
	for text, id := range vocab { // newTrie sorts
		first = append(first, entry{text, id})
		if rest, ok := strings.CutPrefix(text, prefix); ok {
			next = append(next, entry{rest, id})
		}
	}
	return &wordPiece{newTrie(first), newTrie(next), unk, maxRunes}
}

func (m *wordPiece) tokenize(s string, emit func(int32, int, int)) error {
	if len(s) > m.maxRunes && utf8.RuneCountInString(s) > m.maxRunes {
		emit(m.unk, 0, len(s))
		return nil
	}
	var buf [32]token
	tokens := buf[:0]
	entries := m.first
	for at := 0; at < len(s); entries = m.next {
		id, n := entries.longest(s[at:])
		if id < 0 {
			emit(m.unk, 0, len(s))
			return nil
		}
		tokens = append(tokens, token{id, at, at + n})
		at += n
	}
	for _, t := range tokens {
		emit(t.id, t.from, t.to)
	}
	return nil
}

// token is a token of a piece, with its bytes there.
type token struct {
	id       int32
	from, to int
}

// byteTokens are the IDs of the tokens <0x00> to <0xFF>, -1 where missing.
type byteTokens [256]int32

func newByteTokens(find func(string) (int32, bool)) *byteTokens {
	var t byteTokens
	for b := range t {
		id, ok := find(fmt.Sprintf("<0x%02X>", b))
		if !ok {
			id = -1
		}
		t[b] = id
	}
	return &t
}

// spell reports whether there is a token for each byte of s. There is none in
// a nil t.
func (t *byteTokens) spell(s string) bool {
	if t == nil {
		return false
	}
	for i := range len(s) {
		if t[s[i]] < 0 {
			return false
		}
	}
	return true
}
