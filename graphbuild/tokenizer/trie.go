package tokenizer

import (
	"cmp"
	"slices"
	"sort"
)

// entry is a text with its token ID.
type entry struct {
	text string
	id   int32
}

// trie finds the entries that a text begins with. Edges lie in the order of
// their labels, those of a node next to each other.
type trie struct {
	nodes  []trieNode
	labels []byte
	to     []int32 // node that an edge leads to
}

type trieNode struct {
	id          int32 // of the entry that ends here, or -1
	first, last int32 // its edges are first ≤ e < last
}

// newTrie sorts entries in place. Of equal texts the last counts; an empty one
// is ignored.
func newTrie(entries []entry) *trie {
	slices.SortStableFunc(entries, func(a, b entry) int { return cmp.Compare(a.text, b.text) })
	type job struct {
		node        int32
		first, last int // entries below the node
		depth       int // bytes they share
	}
	t := &trie{nodes: []trieNode{{id: -1}}}
	for jobs := []job{{last: len(entries)}}; len(jobs) > 0; {
		j := jobs[len(jobs)-1]
		jobs = jobs[:len(jobs)-1]
		for j.first < j.last && len(entries[j.first].text) == j.depth {
			if j.depth > 0 {
				t.nodes[j.node].id = entries[j.first].id
			}
			j.first++
		}
		t.nodes[j.node].first = int32(len(t.labels))
		for i := j.first; i < j.last; {
			label := entries[i].text[j.depth]
			n := sort.Search(j.last-i, func(k int) bool { return entries[i+k].text[j.depth] > label })
			node := int32(len(t.nodes))
			t.nodes = append(t.nodes, trieNode{id: -1})
			t.labels = append(t.labels, label)
			t.to = append(t.to, node)
			jobs = append(jobs, job{node, i, i + n, j.depth + 1})
			i += n
		}
		t.nodes[j.node].last = int32(len(t.labels))
	}
	return t
}

// step returns the node that label leads to, or -1.
func (t *trie) step(node int32, label byte) int32 {
	n := t.nodes[node]
	lo, hi := n.first, n.last
	for lo < hi {
		mid := (lo + hi) / 2
		switch l := t.labels[mid]; {
		case l == label:
			return t.to[mid]
		case l < label:
			lo = mid + 1
		default:
			hi = mid
		}
	}
	return -1
}

// longest returns the longest entry that s begins with: its ID and length, or
// -1 and 0.
func (t *trie) longest(s string) (id int32, length int) {
	id = -1
	node := int32(0)
	for i := range len(s) {
		if node = t.step(node, s[i]); node < 0 {
			break
		}
		if found := t.nodes[node].id; found >= 0 {
			id, length = found, i+1
		}
	}
	return id, length
}

// find returns the ID of the entry that is s, or -1.
func (t *trie) find(s string) int32 {
	node := int32(0)
	for i := 0; i < len(s) && node >= 0; i++ {
		node = t.step(node, s[i])
	}
	if node < 0 {
		return -1
	}
	return t.nodes[node].id
}
