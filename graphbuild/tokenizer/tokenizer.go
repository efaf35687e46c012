package tokenizer

import (
	"encoding/json"
	"fmt"
	"math"
	"unicode/utf8"
)

// Token is a token of a text.
type Token struct {
	ID int
	// Start and End are the bytes of the original text, from Start up to
	// but not including End, that the token stands for. They lie between
	// characters. A token that is part of a character has the whole of it,
	// as its neighbours do, so ranges may repeat; they never go backwards.
	Start, End int
}

// Tokenizer cuts text into the tokens of a model. It does not change, and may
// be used by several goroutines at a time.
type Tokenizer struct {
	sha256    string
	raw       *addedTokens // sought in the text as it is
	cooked    *addedTokens // sought in normalised text
	normalize normalizer
	cut       pretokenizer
	model     model
	special   json.RawMessage // the post-processor
}

// SHA256 is the hash of the file that the tokenizer was made from, in lower
// case hexadecimal.
func (t *Tokenizer) SHA256() string { return t.sha256 }

// Encode returns the tokens of text, without the special tokens that a model
// wants around it. A special token that text itself spells out is a token like
// others. Text that is not UTF-8 is an error that names the byte.
func (t *Tokenizer) Encode(text string) ([]Token, error) {
	if err := checkText(text); err != nil {
		return nil, err
	}
	tokens := make([]Token, 0, len(text)/4+1)
	err := t.each(text, func(id int32, e extent) {
		tokens = append(tokens, Token{int(id), int(e.from), int(e.to)})
	})
	if err != nil {
		return nil, err
	}
	return tokens, nil
}

// Count returns how many tokens [Tokenizer.Encode] would.
func (t *Tokenizer) Count(text string) (int, error) {
	if err := checkText(text); err != nil {
		return 0, err
	}
	n := 0
	err := t.each(text, func(int32, extent) { n++ })
	return n, err
}

func checkText(text string) error {
	if len(text) > math.MaxInt32 {
		return fmt.Errorf("text has %d bytes, more than the %d a tokenizer takes; cut it first", len(text), math.MaxInt32)
	}
	if utf8.ValidString(text) {
		return nil
	}
	for i := 0; ; {
		r, n := utf8.DecodeRuneInString(text[i:])
		if r == utf8.RuneError && n <= 1 {
			return fmt.Errorf("text is not UTF-8 at byte %d; convert it to UTF-8", i)
		}
		i += n
	}
}

// each hands out the tokens of text in order.
func (t *Tokenizer) each(text string, emit func(id int32, e extent)) error {
	var spans []span
	for _, raw := range t.raw.split(nil, align(text, 0)) {
		if raw.token >= 0 {
			spans = append(spans, raw)
			continue
		}
		spans = t.cooked.split(spans, t.normalize(raw.aligned))
	}
	var err error
	for _, s := range spans {
		if s.token >= 0 {
			emit(int32(s.token), s.original(0, len(s.s)))
			continue
		}
		for _, piece := range t.cut([]aligned{s.aligned}) {
			err = t.model.tokenize(piece.s, func(id int32, from, to int) {
				emit(id, piece.original(from, to))
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}
