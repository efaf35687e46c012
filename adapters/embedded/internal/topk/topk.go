// Package topk keeps the best few of many scored positions.
package topk

import "slices"

// Hit is a position with its score.
type Hit struct {
	Position uint32
	Score    float64
}

// better orders hits: higher score first, then lower position. No two hits of
// one search have the same position, so the order is total.
func better(a, b Hit) bool {
	if a.Score != b.Score {
		return a.Score > b.Score
	}
	return a.Position < b.Position
}

// Heap keeps the limit best hits pushed into it, the worst of them at the
// root. Scores must not be NaN. A limit below 1 keeps nothing.
type Heap struct {
	limit int
	hits  []Hit
}

// New returns an empty heap for the limit best of at most total hits.
func New(limit, total int) *Heap {
	limit = max(0, min(limit, total))
	return &Heap{limit: limit, hits: make([]Hit, 0, limit)}
}

// Push offers a hit.
func (h *Heap) Push(hit Hit) {
	switch {
	case len(h.hits) < h.limit:
		h.hits = append(h.hits, hit)
		h.up(len(h.hits) - 1)
	case h.limit > 0 && better(hit, h.hits[0]):
		h.hits[0] = hit
		h.down()
	}
}

// Bound returns the score of the worst hit kept and whether the heap is full: a
// hit with a lower score is then not kept.
func (h *Heap) Bound() (score float64, full bool) {
	if h.limit == 0 || len(h.hits) < h.limit {
		return 0, false
	}
	return h.hits[0].Score, true
}

// Sorted returns the hits kept, best first. The heap is used up by it.
func (h *Heap) Sorted() []Hit {
	slices.SortFunc(h.hits, func(a, b Hit) int {
		if better(a, b) {
			return -1
		}
		return 1
	})
	return h.hits
}

func (h *Heap) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !better(h.hits[parent], h.hits[i]) {
			return
		}
		h.hits[parent], h.hits[i] = h.hits[i], h.hits[parent]
		i = parent
	}
}

func (h *Heap) down() {
	for i := 0; ; {
		worst := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(h.hits); child++ {
			if better(h.hits[worst], h.hits[child]) {
				worst = child
			}
		}
		if worst == i {
			return
		}
		h.hits[i], h.hits[worst] = h.hits[worst], h.hits[i]
		i = worst
	}
}
