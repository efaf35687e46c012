//go:build linux || darwin

package kernel

import (
	"math/rand/v2"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// guarded returns n numbers that lie between two pages that may not be read:
// the numbers end where the second begins, or begin where the first ends.
func guarded(t *testing.T, n int, atEnd bool) []float32 {
	t.Helper()
	page := unix.Getpagesize()
	size := (n*4 + page - 1) / page * page
	b, err := unix.Mmap(-1, 0, size+2*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Munmap(b); err != nil {
			t.Error(err)
		}
	})
	for _, guard := range [][]byte{b[:page], b[page+size:]} {
		if err := unix.Mprotect(guard, unix.PROT_NONE); err != nil {
			t.Fatal(err)
		}
	}
	first := page
	if atEnd {
		first += size - n*4
	}
	return unsafe.Slice((*float32)(unsafe.Pointer(&b[first])), n)
}

// Nothing outside of the vectors, the panels and the block is touched: a read
// or write there would end the program.
func TestGuardPages(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(9, 10))
		for _, atEnd := range []bool{false, true} {
			dst := (*Block)(guarded(t, len(Block{}), atEnd))
			for n := range 131 {
				if n == 0 {
					continue
				}
				a, b := guarded(t, n, atEnd), guarded(t, n, !atEnd)
				fill(r, a, inputs[0].next)
				fill(r, b, inputs[0].next)
				if got, want := Dot(a, b), dotInOrder(a, b); got != want {
					t.Fatalf("n = %d: %v, want %v", n, got, want)
				}
				x, y := guarded(t, PanelLen(1, n), atEnd), guarded(t, PanelLen(1, n), !atEnd)
				fill(r, x, inputs[0].next)
				fill(r, y, inputs[0].next)
				var want Block
				Products(&want, x, y)
				Products(dst, x, y)
				if *dst != want {
					t.Fatalf("n = %d: other products in guarded memory", n)
				}
			}
		}
	})
}
