//go:build arm64 && !purego

package kernel

import "unsafe"

// level is a set of instructions.
type level int

const (
	levelGo level = iota
	levelNEON
)

// best is the highest level of the machine, active the one in use. Every
// machine that Go supports has NEON.
var (
	best   = levelNEON
	active = best
)

// Instructions names the instructions in use: go, avx2, avx512 or neon.
func Instructions() string { return [...]string{"go", "neon"}[active] }

func dot(a, b []float32) float32 {
	if active == levelNEON {
		return dotNEON(unsafe.SliceData(a), unsafe.SliceData(b), len(a))
	}
	return dotGo(a, b)
}

func products(dst *Block, a, b []float32) {
	if active == levelNEON {
		productsNEON(dst, unsafe.SliceData(a), unsafe.SliceData(b), len(a)/PanelRows)
		return
	}
	productsGo(dst, a, b)
}

// dotNEON is Dot of n elements.
//
//go:noescape
func dotNEON(a, b *float32, n int) float32

// productsNEON is Products of panels of dim·PanelRows elements.
//
//go:noescape
func productsNEON(dst *Block, a, b *float32, dim int)
