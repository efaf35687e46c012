//go:build !(amd64 || arm64) || purego

package kernel

// level is a set of instructions; here there is the Go code alone.
type level int

const levelGo level = 0

var (
	best   = levelGo
	active = best
)

// Instructions names the instructions in use: go, avx2, avx512 or neon.
func Instructions() string { return [...]string{"go"}[active] }

func dot(a, b []float32) float32 { return dotGo(a, b) }

func products(dst *Block, a, b []float32) { productsGo(dst, a, b) }
