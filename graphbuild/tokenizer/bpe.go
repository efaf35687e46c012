package tokenizer

import (
	"container/heap"
	"fmt"
)

// bpe is byte-pair encoding (Sennrich et al. 2016): pairs of neighbours are
// merged, those with the lowest rank first and of equal ones the leftmost.
type bpe struct {
	vocab        map[string]int32
	merges       map[pair]merged
	prefix       string // of characters that do not begin a piece
	suffix       string // of the character that ends a piece
	unk          string // "" where unknown characters are dropped
	fuseUnk      bool
	ignoreMerges bool        // a piece in the vocabulary is taken whole
	bytes        *byteTokens // nil without byte fallback
}

type pair struct{ left, right int32 }

type merged struct{ rank, id int32 }

func newMerges(vocab map[string]int32, list [][2]string, prefix string) (map[pair]merged, error) {
	merges := make(map[pair]merged, len(list))
	for rank, m := range list {
		var ids [3]int32
		right := m[1]
		if len(right) >= len(prefix) {
			right = right[len(prefix):]
		}
		for i, text := range []string{m[0], m[1], m[0] + right} {
			id, ok := vocab[text]
			if !ok {
				return nil, fmt.Errorf("model: merge %d of %q and %q needs token %q, which the vocabulary lacks; export the tokenizer again",
					rank, m[0], m[1], text)
			}
			ids[i] = id
		}
		merges[pair{ids[0], ids[1]}] = merged{int32(rank), ids[2]}
	}
	return merges, nil
}

// symbol is a token that may still be merged, in a list of them.
type symbol struct {
	token
	previous, next int // -1 at the ends
}

func (m *bpe) tokenize(s string, emit func(int32, int, int)) error {
	if m.ignoreMerges {
		if id, ok := m.vocab[s]; ok {
			emit(id, 0, len(s))
			return nil
		}
	}
	symbols, err := m.symbols(s)
	if err != nil {
		return err
	}
	m.merge(symbols)
	for _, sym := range symbols {
		if sym.id >= 0 {
			emit(sym.id, sym.from, sym.to)
		}
	}
	return nil
}

// symbols are the characters of s.
func (m *bpe) symbols(s string) ([]symbol, error) {
	symbols := make([]symbol, 0, len(s))
	add := func(id int32, from, to int) {
		n := len(symbols)
		symbols = append(symbols, symbol{token{id, from, to}, n - 1, n + 1})
	}
	unknown := -1 // where unknown characters begin that are to be one token
	for i := 0; i < len(s); {
		from := i
		i += runeLen(s[i:])
		text := s[from:i]
		if from > 0 && m.prefix != "" {
			text = m.prefix + text
		}
		if i == len(s) && m.suffix != "" {
			text += m.suffix
		}
		if id, ok := m.vocab[text]; ok {
			add(id, from, i)
			unknown = -1
			continue
		}
		if m.bytes.spell(text) {
			for k := range len(text) {
				at := min(from+k, i-1)
				add(m.bytes[text[k]], at, at+1)
			}
			unknown = -1
			continue
		}
		if m.unk == "" {
			continue
		}
		if unknown >= 0 && m.fuseUnk {
			symbols[unknown].to = i
			continue
		}
		id, ok := m.vocab[m.unk]
		if !ok {
			return nil, fmt.Errorf("character %q is unknown and the unknown token %q is not in the vocabulary; add it to the tokenizer file",
				s[from:i], m.unk)
		}
		unknown = len(symbols)
		add(id, from, i)
	}
	if len(symbols) > 0 {
		symbols[len(symbols)-1].next = -1
	}
	return symbols, nil
}

// candidate is a merge of the symbol at position left with the next one.
type candidate struct {
	merged
	left int
}

type candidates []candidate

func (c candidates) Len() int { return len(c) }
func (c candidates) Less(i, j int) bool {
	return c[i].rank < c[j].rank || c[i].rank == c[j].rank && c[i].left < c[j].left
}
func (c candidates) Swap(i, j int) { c[i], c[j] = c[j], c[i] }
func (c *candidates) Push(x any)   { *c = append(*c, x.(candidate)) }
func (c *candidates) Pop() any {
	last := (*c)[len(*c)-1]
	*c = (*c)[:len(*c)-1]
	return last
}

// merge joins symbols as long as a pair can be merged. What was joined to the
// left of it gets ID -1.
func (m *bpe) merge(symbols []symbol) {
	find := func(left int) (merged, bool) {
		if left < 0 || symbols[left].next < 0 {
			return merged{}, false
		}
		found, ok := m.merges[pair{symbols[left].id, symbols[symbols[left].next].id}]
		return found, ok
	}
	var queue candidates
	for i := range symbols {
		if found, ok := find(i); ok {
			queue = append(queue, candidate{found, i})
		}
	}
	heap.Init(&queue)
	for len(queue) > 0 {
		c := heap.Pop(&queue).(candidate)
		left := &symbols[c.left]
		if left.id < 0 {
			continue
		}
		if now, ok := find(c.left); !ok || now.id != c.id {
			continue // one of the two has become part of something else
		}
		right := &symbols[left.next]
		left.id, left.to, left.next = c.id, right.to, right.next
		right.id = -1
		if left.next >= 0 {
			symbols[left.next].previous = c.left
		}
		for _, at := range []int{left.previous, c.left} {
			if found, ok := find(at); ok {
				heap.Push(&queue, candidate{found, at})
			}
		}
	}
}
