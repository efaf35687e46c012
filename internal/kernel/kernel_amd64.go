//go:build amd64 && !purego

package kernel

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

// level is a set of instructions.
type level int

const (
	levelGo level = iota
	levelAVX2
	levelAVX512
)

// best is the highest level of the machine, active the one in use.
var (
	best   = detect()
	active = best
)

func detect() level {
	switch {
	case cpu.X86.HasAVX512F && cpu.X86.HasAVX2 && cpu.X86.HasFMA:
		return levelAVX512
	case cpu.X86.HasAVX2 && cpu.X86.HasFMA:
		return levelAVX2
	}
	return levelGo
}

// Instructions names the instructions in use: go, avx2, avx512 or neon.
func Instructions() string { return [...]string{"go", "avx2", "avx512"}[active] }

// dot reads no more with AVX-512 than with AVX2: both load two vectors for one
// multiplication, and memory sets the pace.
func dot(a, b []float32) float32 {
	if active >= levelAVX2 {
		return dotAVX2(unsafe.SliceData(a), unsafe.SliceData(b), len(a))
	}
	return dotGo(a, b)
}

func products(dst *Block, a, b []float32) {
	switch dim := len(a) / PanelRows; active {
	case levelAVX512:
		productsAVX512(dst, unsafe.SliceData(a), unsafe.SliceData(b), dim)
	case levelAVX2:
		productsAVX2(dst, unsafe.SliceData(a), unsafe.SliceData(b), dim)
	default:
		productsGo(dst, a, b)
	}
}

// dotAVX2 is Dot of n elements.
//
//go:noescape
func dotAVX2(a, b *float32, n int) float32

// productsAVX2 is Products of panels of dim·PanelRows elements.
//
//go:noescape
func productsAVX2(dst *Block, a, b *float32, dim int)

// productsAVX512 is Products of panels of dim·PanelRows elements.
//
//go:noescape
func productsAVX512(dst *Block, a, b *float32, dim int)
