package tokenizer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// charsmap is the table of a SentencePiece normaliser: a double-array trie of
// the texts to replace and the replacements, each ended by a zero byte.
//
// A unit of the array has the byte that leads to it in bits 0–7, a flag that a
// text ends in bit 8, and the distance to its children in bits 10–30, shifted
// by eight where bit 9 is set. The unit a text ends at has bit 31 set and the
// place of the replacement in the other bits.
type charsmap struct {
	units        []uint32
	replacements string
}

// parseCharsmap reads four bytes of length, the array and the replacements.
func parseCharsmap(data []byte) (*charsmap, error) {
	if len(data) < 4 {
		return nil, fmt.Errorf("precompiled_charsmap has %d bytes, too few for its own length; export the tokenizer again", len(data))
	}
	size := int64(binary.LittleEndian.Uint32(data))
	data = data[4:]
	if size%4 != 0 || size > int64(len(data)) {
		return nil, fmt.Errorf("precompiled_charsmap says its trie has %d bytes, but %d follow; export the tokenizer again", size, len(data))
	}
	m := &charsmap{units: make([]uint32, size/4), replacements: string(data[size:])}
	for i := range m.units {
		m.units[i] = binary.LittleEndian.Uint32(data[4*i:])
	}
	if len(m.units) == 0 {
		return nil, errors.New("precompiled_charsmap has an empty trie; export the tokenizer again")
	}
	if !utf8.ValidString(m.replacements) {
		return nil, errors.New("precompiled_charsmap holds text that is not UTF-8; export the tokenizer again")
	}
	return m, nil
}

// lookup returns the replacement of the shortest entry that s begins with.
func (m *charsmap) lookup(s string) (string, bool) {
	pos := childOffset(m.units[0])
	for i := range len(s) {
		pos ^= uint32(s[i])
		if s[i] == 0 || int64(pos) >= int64(len(m.units)) {
			return "", false
		}
		unit := m.units[pos]
		if unit&(1<<31|0xFF) != uint32(s[i]) {
			return "", false
		}
		pos ^= childOffset(unit)
		if unit>>8&1 == 0 {
			continue
		}
		if int64(pos) >= int64(len(m.units)) {
			return "", false
		}
		at := int(m.units[pos] & (1<<31 - 1))
		if at > len(m.replacements) || at < len(m.replacements) && !utf8.RuneStart(m.replacements[at]) {
			return "", false
		}
		text, _, _ := strings.Cut(m.replacements[at:], "\x00")
		return text, true
	}
	return "", false
}

func childOffset(unit uint32) uint32 { return unit >> 10 << (unit & (1 << 9) >> 6) }

// maxCluster is the length in bytes below which a grapheme cluster is looked
// up whole before its characters are.
const maxCluster = 6

// normalize replaces grapheme clusters, or else their characters.
func (m *charsmap) normalize(a aligned) aligned {
	w := newRewriter(a)
	state := -1
	var cluster string
	for rest := a.s; rest != ""; {
		cluster, rest, _, state = uniseg.FirstGraphemeClusterInString(rest, state)
		if len(cluster) < maxCluster {
			if text, ok := m.lookup(cluster); ok {
				w.substitute(utf8.RuneCountInString(cluster), text)
				continue
			}
		}
		for i := 0; i < len(cluster); {
			n := runeLen(cluster[i:])
			if text, ok := m.lookup(cluster[i : i+n]); ok {
				w.substitute(1, text)
			} else {
				w.copy(n)
			}
			i += n
		}
	}
	return w.result()
}

// substitute writes text in the place of the next n characters: one for one as
// far as they go, and the rest beside the last.
func (w *rewriter) substitute(n int, text string) {
	for _, r := range text {
		if n > 0 {
			w.put(r)
			n--
		} else {
			w.insert(r)
		}
	}
	for range n {
		w.skip()
	}
}
