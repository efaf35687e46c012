package tokenizer

import (
	"errors"
	"math"
)

// unigram takes the pieces whose log probabilities have the highest sum (Kudo
// 2018, "Subword Regularization").
type unigram struct {
	pieces *trie
	scores []float64 // by ID
	unk    int32     // -1 where there is none
	bytes  *byteTokens

	unkScore float64
}

// unkPenalty is how much worse than the worst piece an unknown character is.
const unkPenalty = 10

func newUnigram(pieces []string, scores []float64, unk int32, byteFallback bool) *unigram {
	entries := make([]entry, len(pieces))
	lowest := math.Inf(1)
	for i, p := range pieces {
		entries[i] = entry{p, int32(i)}
		lowest = min(lowest, scores[i])
	}
	m := &unigram{pieces: newTrie(entries), scores: scores, unk: unk, unkScore: lowest - unkPenalty}
	if byteFallback {
		m.bytes = newByteTokens(func(s string) (int32, bool) {
			id := m.pieces.find(s)
			return id, id >= 0
		})
	}
	return m
}

// best is the best way to cut the text before a place.
type best struct {
	score float64
	id    int32
	from  int // where the last piece begins, -1 where the place is not reached
}

func (m *unigram) tokenize(s string, emit func(int32, int, int)) error {
	cuts := make([]best, len(s)+1)
	for i := range cuts {
		cuts[i].from = -1
	}
	reach := func(to int, id int32, score float64, from int) {
		if c := &cuts[to]; c.from < 0 || score > c.score {
			*c = best{score, id, from}
		}
	}
	for at := 0; at < len(s); {
		before := cuts[at].score
		char := runeLen(s[at:])
		single := false
		node := int32(0)
		for i := at; i < len(s); i++ {
			if node = m.pieces.step(node, s[i]); node < 0 {
				break
			}
			if id := m.pieces.nodes[node].id; id >= 0 {
				reach(i+1, id, m.scores[id]+before, at)
				single = single || i+1 == at+char
			}
		}
		if !single {
			if m.unk < 0 {
				return errors.New("a character is unknown and the model has no unk_id; add one to the tokenizer file")
			}
			reach(at+char, m.unk, m.unkScore+before, at)
		}
		at += char
	}
	return m.emit(s, cuts, emit)
}

// emit reads the cuts backwards. Unknown pieces next to each other are one.
func (m *unigram) emit(s string, cuts []best, emit func(int32, int, int)) error {
	var tokens []token
	for to := len(s); to > 0; {
		c := cuts[to]
		if last := len(tokens) - 1; last >= 0 && c.id == m.unk && tokens[last].id == m.unk {
			tokens[last].from = c.from
		} else {
			tokens = append(tokens, token{c.id, c.from, to})
		}
		to = c.from
	}
	for i := len(tokens) - 1; i >= 0; i-- {
		t := tokens[i]
		text := s[t.from:t.to]
		if t.id == m.unk && m.pieces.find(text) < 0 && m.bytes.spell(text) {
			for k := range len(text) {
				emit(m.bytes[text[k]], t.from, t.to)
			}
			continue
		}
		emit(t.id, t.from, t.to)
	}
	return nil
}
