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

// search keeps the max(ef, k) best nodes in view and goes on from the best of
// them until all have been gone on from. It finds what libfaiss finds, or more:
// that stops earlier when k is above ef.
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
	// Two heaps of nodes: view, the worst at the root, and those to go on from,
	// the best at the root, for which scores are turned round.
	view, open := newBest(max(x.ef, k), x.len()), &best{limit: x.len()}
	met := make([]uint64, (x.len()+63)/64)
	meet := func(s seen) {
		if h := (Hit{ID: int64(s.node), Score: s.score}); !view.full() || h.better(view.worst()) {
			view.push(h)
			open.push(Hit{ID: ^h.ID, Score: -h.Score})
		}
	}
	met[start.node/64] |= 1 << (start.node % 64)
	meet(start)
	for len(open.hits) > 0 {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		next := open.pop()
		next.ID, next.Score = ^next.ID, -next.Score
		if view.full() && view.worst().better(next) {
			break // out of view, and so are all that are left
		}
		err := x.around(int(next.ID), 0, func(neighbor int) error {
			if met[neighbor/64]&(1<<(neighbor%64)) != 0 {
				return nil
			}
			met[neighbor/64] |= 1 << (neighbor % 64)
			s, err := x.measure(query, neighbor)
			if err == nil {
				meet(s)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	b := newBest(k, x.len())
	for _, h := range view.hits {
		b.push(Hit{ID: named(name, h.ID), Score: h.Score})
	}
	return b.sorted(), nil
}

func (x *hnsw) batch(ctx context.Context, queries [][]float32, k int, name func(int64) int64) ([][]Hit, error) {
	if x.exact {
		return x.storage.batch(ctx, queries, k, name)
	}
	return oneByOne(ctx, x, queries, k, name)
}
