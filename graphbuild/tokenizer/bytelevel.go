package tokenizer

import "strings"

// byteRunes are the characters that stand for bytes in byte-level vocabularies:
// the printable ones of Latin-1 for themselves, the others in order from
// U+0100 on.
var byteRunes = func() (table [256]rune) {
	next := rune(0x100)
	for b := range table {
		r := rune(b)
		if r >= '!' && r <= '~' || r >= 0xA1 && r <= 0xAC || r >= 0xAE {
			table[b] = r
		} else {
			table[b] = next
			next++
		}
	}
	return table
}()

// wordExpression is how GPT-2 cuts text.
const wordExpression = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+` + runsTail

// byteLevel cuts text into words, unless plain, and writes each as the
// characters that stand for its bytes.
func byteLevel(prefixSpace, plain bool) (pretokenizer, error) {
	words, err := compile(wordExpression)
	if err != nil {
		return nil, err
	}
	return func(pieces []aligned) []aligned {
		out := make([]aligned, 0, len(pieces))
		for _, a := range pieces {
			if prefixSpace && !strings.HasPrefix(a.s, " ") {
				a = prepend(" ")(a)
			}
			if plain {
				out = append(out, a)
			} else {
				out = cut(out, a, words.find(a.s), isolated, false)
			}
		}
		for i, a := range out {
			out[i] = spellBytes(a)
		}
		return out
	}, nil
}

func spellBytes(a aligned) aligned {
	w := rewriter{src: a, s: make([]byte, 0, 2*len(a.s)), at: make([]extent, 0, 2*len(a.s))}
	for i := range len(a.s) {
		w.write(byteRunes[a.s[i]], a.at[i])
	}
	return w.result()
}
