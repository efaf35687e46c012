package tokenizer

import "unicode/utf8"

// extent is a range of bytes of the original text.
type extent struct{ from, to int32 }

// aligned is normalised text that knows, for each of its bytes, the character
// of the original text that the byte came from.
type aligned struct {
	s    string
	at   []extent // one per byte of s, ascending
	base int32    // where the stretch of original text begins that s was made from
}

// align makes aligned text of original text that begins at byte base of the
// whole.
func align(s string, base int) aligned {
	at := make([]extent, len(s))
	for i := 0; i < len(s); {
		n := runeLen(s[i:])
		e := extent{int32(base + i), int32(base + i + n)}
		for range n {
			at[i] = e
			i++
		}
	}
	return aligned{s: s, at: at, base: int32(base)}
}

func runeLen(s string) int {
	if s[0] < utf8.RuneSelf {
		return 1
	}
	_, n := utf8.DecodeRuneInString(s)
	return n
}

// original returns the range of the original text that the bytes from up to
// to, at least one, came from.
func (a aligned) original(from, to int) extent {
	return extent{a.at[from].from, a.at[to-1].to}
}

// slice is the part of a from one byte up to another, as a text of its own.
func (a aligned) slice(from, to int) aligned {
	base := a.base
	if from < to {
		base = a.at[from].from
	}
	return aligned{s: a.s[from:to], at: a.at[from:to], base: base}
}

// trim is the part of a from one byte up to another, still standing for the
// whole stretch of original text.
func (a aligned) trim(from, to int) aligned {
	return aligned{s: a.s[from:to], at: a.at[from:to], base: a.base}
}

// rewriter makes aligned text out of aligned text, character by character.
type rewriter struct {
	src aligned
	pos int // the next character of src
	s   []byte
	at  []extent
}

func newRewriter(src aligned) *rewriter {
	return &rewriter{src: src, s: make([]byte, 0, len(src.s)), at: make([]extent, 0, len(src.s))}
}

func (w *rewriter) done() bool { return w.pos >= len(w.src.s) }

// next is the character the rewriter stands at.
func (w *rewriter) next() rune {
	r, _ := utf8.DecodeRuneInString(w.src.s[w.pos:])
	return r
}

// skip leaves the next character out.
func (w *rewriter) skip() {
	if !w.done() {
		w.pos += runeLen(w.src.s[w.pos:])
	}
}

// put writes r in place of the next character.
func (w *rewriter) put(r rune) {
	if w.done() {
		w.insert(r)
		return
	}
	e := w.src.at[w.pos]
	w.skip()
	w.write(r, e)
}

// insert writes r beside the character just passed, whose place in the
// original text it shares.
func (w *rewriter) insert(r rune) {
	e := extent{w.src.base, w.src.base}
	if w.pos > 0 {
		e = w.src.at[w.pos-1]
	}
	w.write(r, e)
}

func (w *rewriter) write(r rune, e extent) {
	before := len(w.s)
	w.s = utf8.AppendRune(w.s, r)
	for range len(w.s) - before {
		w.at = append(w.at, e)
	}
}

// copy writes the next n bytes as they are.
func (w *rewriter) copy(n int) {
	w.s = append(w.s, w.src.s[w.pos:w.pos+n]...)
	w.at = append(w.at, w.src.at[w.pos:w.pos+n]...)
	w.pos += n
}

func (w *rewriter) result() aligned {
	return aligned{s: string(w.s), at: w.at, base: w.src.base}
}
