package tokenizer

import (
	"slices"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// unicodeForm is one of the Unicode normalisation forms: how it decomposes,
// and whether it composes again.
type unicodeForm struct {
	whole     norm.Form // to see what is in the form already
	decompose norm.Form
	compose   bool
}

var (
	nfc  = unicodeForm{norm.NFC, norm.NFD, true}
	nfd  = unicodeForm{norm.NFD, norm.NFD, false}
	nfkc = unicodeForm{norm.NFKC, norm.NFKD, true}
	nfkd = unicodeForm{norm.NFKD, norm.NFKD, false}
)

// edit is a character to write. change says what becomes of the text it is
// written into: 0 takes the place of the next character, 1 is inserted, and -n
// takes the place of the next and drops n more.
type edit struct {
	r      rune
	change int
	class  uint8 // canonical combining class
}

// form brings text into a Unicode normalisation form.
func form(f unicodeForm) normalizer {
	return func(a aligned) aligned {
		if f.whole.IsNormalString(a.s) {
			return a
		}
		edits := f.edits(a.s)
		w := newRewriter(a)
		for _, e := range edits {
			if e.change > 0 {
				w.insert(e.r)
				continue
			}
			w.put(e.r)
			for range -e.change {
				w.skip()
			}
		}
		return w.result()
	}
}

// edits decomposes s, puts marks in canonical order and composes them again.
func (f unicodeForm) edits(s string) []edit {
	edits := make([]edit, 0, len(s))
	starter := 0 // where the marks since the last starter begin
	flush := func() {
		slices.SortStableFunc(edits[starter:], func(a, b edit) int { return int(a.class) - int(b.class) })
		starter = len(edits)
	}
	for i := 0; i < len(s); {
		n := runeLen(s[i:])
		change := 0
		for _, r := range f.decompose.String(s[i : i+n]) {
			class := combiningClass(r)
			if class == 0 {
				flush()
			}
			edits = append(edits, edit{r, change, class})
			change = 1
			if class == 0 {
				starter = len(edits)
			}
		}
		i += n
	}
	flush()
	if f.compose {
		edits = composeEdits(edits)
	}
	return edits
}

// composeEdits joins starters with the characters after them, as long as no
// mark of the same or a higher class stands between.
func composeEdits(edits []edit) []edit {
	out := edits[:0]
	base := -1 // the starter in out that may still take marks
	for _, e := range edits {
		if base >= 0 {
			blocked := len(out) > base+1 && out[len(out)-1].class >= e.class
			if r, ok := compose(out[base].r, e.r); ok && !blocked {
				out[base].r = r
				out[base].change += e.change - 1
				continue
			}
		}
		if e.class == 0 {
			base = len(out)
		}
		out = append(out, e)
	}
	return out
}

func compose(a, b rune) (rune, bool) {
	var buf [2 * utf8.UTFMax]byte
	mark := utf8.AppendRune(buf[:0], b)
	if norm.NFC.Properties(mark).BoundaryBefore() {
		return 0, false
	}
	pair := utf8.AppendRune(utf8.AppendRune(buf[:0], a), b)
	if norm.NFC.IsNormal(pair) {
		return 0, false
	}
	composed := norm.NFC.Bytes(pair)
	r, n := utf8.DecodeRune(composed)
	return r, n == len(composed)
}

func combiningClass(r rune) uint8 {
	if r < 0x300 {
		return 0
	}
	var buf [utf8.UTFMax]byte
	return norm.NFD.Properties(utf8.AppendRune(buf[:0], r)).CCC()
}
