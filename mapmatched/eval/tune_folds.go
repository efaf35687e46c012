package eval

import (
	"hash/fnv"
	"strings"
)

// dealFolds deals the conversations of all sets into folds. Conversations that
// share a turn (its question, reply and gold), as one does that was joined from
// others, are dealt together, so that nothing is fitted on what it is reported
// on. A group is dealt by its smallest ID, so that it is in the same fold
// whatever else is in the sets.
func dealFolds(sets []TuneSet, folds int) [][]int {
	type node struct{ set, conversation int }
	var nodes []node
	var parent []int
	find := func(i int) int {
		for parent[i] != i {
			parent[i] = parent[parent[i]]
			i = parent[i]
		}
		return i
	}
	id := func(i int) string { return sets[nodes[i].set].World.data.Conversations[nodes[i].conversation].ID }
	first := map[string]int{} // node of the first conversation with a turn
	for s := range sets {
		for c := range sets[s].World.data.Conversations {
			own := len(nodes)
			nodes, parent = append(nodes, node{s, c}), append(parent, own)
			for _, t := range sets[s].World.data.Conversations[c].Turns {
				if len(t.Gold) == 0 {
					continue
				}
				key := strings.Join(append(t.GoldIDs(), t.Query, t.Answer), "\x00")
				other, known := first[key]
				if !known {
					first[key] = own
					continue
				}
				a, b := find(own), find(other)
				if a == b {
					continue
				}
				if id(b) < id(a) { // the root has the smallest ID
					a, b = b, a
				}
				parent[b] = a
			}
		}
	}
	out := make([][]int, len(sets))
	for s := range sets {
		out[s] = make([]int, len(sets[s].World.data.Conversations))
	}
	for i, n := range nodes {
		out[n.set][n.conversation] = foldOf(id(find(i)), folds)
	}
	return out
}

// foldOf deals an ID into a fold.
func foldOf(id string, folds int) int {
	h := fnv.New64a()
	_, _ = h.Write([]byte(id)) // a hash never fails
	return int(h.Sum64() % uint64(folds))
}
