package faiss

import (
	"context"
	"math"
)

// hnsw is a hierarchy of graphs of near vectors (Malkov & Yashunin, Efficient
// and robust approximate nearest neighbor search using hierarchical navigable
// small world graphs, 2018).
//
// The neighbours of node v at level l are in slots offsets[v]+slots[l] to
// offsets[v]+slots[l+1] of neighbors, up to the first negative one.
type hnsw struct {
	head      header
	storage   *flat
	slots     int32s // before each level
	levels    int32s // of each node, from 1
	offsets   int64s
	neighbors int32s
	entry     int // node to begin with, −1 for none
	top       int // its level, from 0
	ef        int // nodes to keep in view
	exact     bool
}

func (x *hnsw) header() *header      { return &x.head }
func (x *hnsw) len() int             { return x.head.count }
func (x *hnsw) label(at int) int64   { return int64(at) }
func (x *hnsw) row(at int) []float32 { return x.storage.row(at) }
func (x *hnsw) describe() string     { return typeNames[x.head.code] }

// check compares the numbers of nodes and levels; nodes are checked when a
// search meets them.
func (x *hnsw) check() error {
	n := x.head.count
	if x.storage.len() != n || x.levels.len() != n || x.offsets.len() != n+1 {
		return damaged("HNSW says %d vectors and has %d, with %d levels and %d offsets", n, x.storage.len(), x.levels.len(), x.offsets.len())
	}
	if n > 0 && (x.entry < 0 || x.entry >= n || x.top < 0 || x.top >= x.slots.len()-1) {
		return damaged("HNSW begins with node %d of %d at level %d of %d", x.entry, n, x.top, x.slots.len()-1)
	}
	if x.ef < 1 {
		return damaged("HNSW says to keep %d nodes in view", x.ef)
	}
	return nil
}

// around calls visit for the neighbours of a node at a level.
func (x *hnsw) around(node, level int, visit func(neighbor int) error) error {
	if int(x.levels.at(node)) <= level || level+1 >= x.slots.len() {
		return damaged("HNSW node %d is met at level %d and has %d", node, level, x.levels.at(node))
	}
	begin := x.offsets.at(node) + int64(x.slots.at(level))
	end := x.offsets.at(node) + int64(x.slots.at(level+1))
	if begin < 0 || end < begin || end > int64(x.neighbors.len()) {
		return damaged("the neighbours of HNSW node %d are %d to %d of %d", node, begin, end, x.neighbors.len())
	}
	for i := begin; i < end; i++ {
		neighbor := int(x.neighbors.at(int(i)))
		switch {
		case neighbor < 0:
			return nil
		case neighbor >= x.len():
			return damaged("HNSW node %d has the neighbour %d of %d", node, neighbor, x.len())
		}
		if err := visit(neighbor); err != nil {
			return err
		}
	}
	return nil
}

// seen is a node with its score.
type seen struct {
	node  int
	score float64
}

// measure scores a node.
func (x *hnsw) measure(query []float32, node int) (seen, error) {
	v := score(x.head.metric, query, x.row(node))
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return seen{}, damaged("the score of HNSW node %d is %v: its vector, or its product with the query, is not finite", node, v)
	}
	return seen{node, v}, nil
}

// descend goes from the top to level 1, on each level to the best node that can
// be reached without a step back.
func (x *hnsw) descend(ctx context.Context, query []float32) (seen, error) {
	at, err := x.measure(query, x.entry)
	for level := x.top; level >= 1 && err == nil; level-- {
		for moved := true; moved && err == nil; {
			if err = ctx.Err(); err != nil {
				break
			}
			moved = false
			err = x.around(at.node, level, func(neighbor int) error {
				s, err := x.measure(query, neighbor)
				if err == nil && s.score > at.score {
					at, moved = s, true
				}
				return err
			})
		}
	}
	return at, err
}

// search walks as libfaiss does by default. Among the nodes it met it keeps the
// max(ef, k) best in view and goes on from the best of those that it has not gone
// on from. It stops when there are none, or when ef nodes that it has gone on
// from are better than the next. The result is the k best of all nodes it met.
//
// A node as good as the worst in a full view stays out of it, as in libfaiss, so
// that equal scores do not make the walk longer; among those met, lower IDs, as
// name has them, win.
func (x *hnsw) search(ctx context.Context, query []float32, k int, name func(int64) int64) ([]Hit, error) {
	if x.exact {
		return x.storage.search(ctx, query, k, name)
	}
	if x.len() == 0 || k < 1 {
		return nil, nil
	}
	start, err := x.descend(ctx, query)
	if err != nil {
		return nil, err
	}
	w := &walk{
		view: newBest(max(x.ef, k), x.len()), open: &best{limit: x.len()}, left: newBest(x.ef, x.len()),
		found: newBest(k, x.len()), met: make([]uint64, (x.len()+63)/64), name: name,
	}
	w.meets(start.node)
	if err := w.meet(start); err != nil {
		return nil, err
	}
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		node, more := w.next(x.ef)
		if !more {
			return w.found.sorted(), nil
		}
		err := x.around(node, 0, func(neighbor int) error {
			if !w.meets(neighbor) {
				return nil
			}
			s, err := x.measure(query, neighbor)
			if err != nil {
				return err
			}
			return w.meet(s)
		})
		if err != nil {
			return nil, err
		}
	}
}

// walk is the state of a search at level 0.
type walk struct {
	view  *best // nodes, by number
	open  *best // nodes to go on from, the best at the root: numbers and scores are turned round
	left  *best // the ef best nodes that were gone on from
	found *best // the result
	met   []uint64
	name  func(int64) int64
}

// meets marks a node as met and reports whether it was not.
func (w *walk) meets(node int) bool {
	word, bit := &w.met[node/64], uint64(1)<<(node%64)
	is := *word&bit == 0
	*word |= bit
	return is
}

// meet takes in a node.
func (w *walk) meet(s seen) error {
	h := Hit{ID: int64(s.node), Score: s.score}
	if !w.view.full() || h.Score > w.view.worst().Score {
		w.view.push(h)
		w.open.push(Hit{ID: ^h.ID, Score: -h.Score})
	}
	if w.found.full() && h.Score < w.found.worst().Score {
		return nil
	}
	return offer(w.found, named(w.name, h.ID), h.Score)
}

// next returns the node to go on from, if there is one.
func (w *walk) next(ef int) (node int, more bool) {
	if len(w.open.hits) == 0 {
		return 0, false
	}
	h := w.open.pop()
	h.ID, h.Score = ^h.ID, -h.Score
	if w.view.full() && w.view.worst().better(h) {
		return 0, false // out of view, and so are all that are left
	}
	if len(w.left.hits) >= ef && w.left.worst().Score > h.Score {
		return 0, false
	}
	w.left.push(h)
	return int(h.ID), true
}

func (x *hnsw) batch(ctx context.Context, queries [][]float32, k int, name func(int64) int64) ([][]Hit, error) {
	if x.exact {
		return x.storage.batch(ctx, queries, k, name)
	}
	return oneByOne(ctx, x, queries, k, name)
}
