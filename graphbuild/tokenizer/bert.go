package tokenizer

import "unicode"

// bertNormalizer puts the steps of BERT's text cleaning together.
func bertNormalizer(cleanText, chinese, accents, lower bool) normalizer {
	var steps []normalizer
	if cleanText {
		steps = append(steps, bertClean())
	}
	if chinese {
		steps = append(steps, spaceChinese)
	}
	if accents {
		steps = append(steps, form(nfd), keep(func(r rune) bool { return r < 0x300 || !unicode.Is(unicode.Mn, r) }))
	}
	if lower {
		steps = append(steps, lowercase)
	}
	return sequence(steps)
}

func bertClean() normalizer {
	return mapRunes(func(r rune) rune {
		switch {
		case r > ' ' && r < 0x7F:
			return r
		case unicode.IsSpace(r) && (!unicode.Is(unicode.Cc, r) || r == '\t' || r == '\n' || r == '\r'):
			return ' '
		case r == 0, r == 0xFFFD, unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co):
			return -1
		}
		return r
	})
}

// spaceChinese sets every ideograph apart from its neighbours.
func spaceChinese(a aligned) aligned {
	found := false
	for _, r := range a.s {
		if found = isIdeograph(r); found {
			break
		}
	}
	if !found {
		return a
	}
	w := newRewriter(a)
	for !w.done() {
		r := w.next()
		if !isIdeograph(r) {
			w.put(r)
			continue
		}
		w.put(' ')
		w.insert(r)
		w.insert(' ')
	}
	return w.result()
}

// isIdeograph reports what the reference implementation takes for Chinese: the
// CJK unified ideographs, extensions A to E (without the first 256 of E) and
// the compatibility ideographs.
func isIdeograph(r rune) bool {
	return r >= 0x3400 && (r <= 0x4DBF || r >= 0x4E00 && r <= 0x9FFF || r >= 0xF900 && r <= 0xFAFF ||
		r >= 0x20000 && r <= 0x2A6DF || r >= 0x2A700 && r <= 0x2B81F ||
		r >= 0x2B920 && r <= 0x2CEAF || r >= 0x2F800 && r <= 0x2FA1F)
}
