package topk

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// The heap keeps what sorting everything and cutting would keep.
func TestHeapEqualsSortAndCut(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		n, limit := r.IntN(40), r.IntN(12)-1
		all := make([]Hit, n)
		for i := range all {
			all[i] = Hit{Position: uint32(i), Score: float64(r.IntN(5))} // many ties
		}
		r.Shuffle(n, func(i, j int) { all[i], all[j] = all[j], all[i] })
		h := New(limit, max(limit, n))
		for _, hit := range all {
			h.Push(hit)
		}
		want := slices.Clone(all)
		slices.SortFunc(want, func(a, b Hit) int {
			if a.Score > b.Score || a.Score == b.Score && a.Position < b.Position {
				return -1
			}
			return 1
		})
		want = want[:max(0, min(limit, n))]
		bound, full := h.Bound()
		if full != (limit > 0 && n >= limit && n > 0) || full && bound != want[len(want)-1].Score {
			t.Fatalf("limit %d of %v: bound %v, %v", limit, all, bound, full)
		}
		if got := h.Sorted(); !slices.Equal(got, want) {
			t.Fatalf("limit %d of %v: got %v, want %v", limit, all, got, want)
		}
	}
}

// A limit far beyond the number of hits costs no memory.
func TestHeapWithHugeLimit(t *testing.T) {
	h := New(1<<62, 3)
	if c := cap(h.hits); c != 3 {
		t.Fatalf("capacity %d, want 3", c)
	}
}
