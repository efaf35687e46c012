package faiss

import "slices"

// Hit is a vector that a search found.
type Hit struct {
	ID    int64   // FAISS ID
	Score float64 // higher is better: the inner product, or the negated distance (L2 squared)
}

// better orders hits: higher score first, then lower ID.
func (h Hit) better(than Hit) bool {
	if h.Score != than.Score {
		return h.Score > than.Score
	}
	return h.ID < than.ID
}

// best keeps the limit best hits pushed into it in a heap, the worst at the
// root.
type best struct {
	limit int
	hits  []Hit
}

// newBest returns an empty heap for the limit best of at most total hits.
func newBest(limit, total int) *best {
	limit = max(0, min(limit, total))
	return &best{limit: limit, hits: make([]Hit, 0, limit)}
}

// full reports whether a hit has to be better than worst to be kept.
func (b *best) full() bool { return len(b.hits) == b.limit }

// worst is the worst hit that is kept; there is one.
func (b *best) worst() Hit { return b.hits[0] }

// push offers a hit.
func (b *best) push(h Hit) {
	switch {
	case len(b.hits) < b.limit:
		b.hits = append(b.hits, h)
		for i := len(b.hits) - 1; i > 0; {
			parent := (i - 1) / 2
			if !b.hits[parent].better(b.hits[i]) {
				return
			}
			b.hits[parent], b.hits[i] = b.hits[i], b.hits[parent]
			i = parent
		}
	case b.limit > 0 && h.better(b.hits[0]):
		b.hits[0] = h
		b.sink()
	}
}

// sink moves the root down to its place.
func (b *best) sink() {
	for i := 0; ; {
		child := 2*i + 1
		if child >= len(b.hits) {
			return
		}
		if child+1 < len(b.hits) && b.hits[child].better(b.hits[child+1]) {
			child++
		}
		if !b.hits[i].better(b.hits[child]) {
			return
		}
		b.hits[i], b.hits[child] = b.hits[child], b.hits[i]
		i = child
	}
}

// sorted returns the hits, best first. The heap is used up by it.
func (b *best) sorted() []Hit {
	sortHits(b.hits)
	return b.hits
}

func sortHits(hits []Hit) {
	slices.SortFunc(hits, func(a, b Hit) int {
		switch {
		case a.better(b):
			return -1
		case b.better(a):
			return 1
		}
		return 0
	})
}

// pop removes the worst hit and returns it; there is one.
func (b *best) pop() Hit {
	root := b.hits[0]
	last := len(b.hits) - 1
	b.hits[0] = b.hits[last]
	b.hits = b.hits[:last]
	b.sink()
	return root
}
