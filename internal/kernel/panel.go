package kernel

import (
	"fmt"
	"math"
)

var inf = math.Inf(1)

// PanelRows is how many vectors a panel holds.
//
// A panel keeps its vectors interleaved: element k of vector r is at
// k·PanelRows + r. The vectors of a matrix are put into panels once and
// multiplied many times; a row that is not set is zero.
const PanelRows = 16

// Block has the products of two panels: element i·PanelRows + j is that of
// vector i of the first and vector j of the second.
type Block = [PanelRows * PanelRows]float32

// PanelLen returns the number of elements of the panels that hold rows vectors
// of dim elements: rows is rounded up to whole panels.
func PanelLen(rows, dim int) int {
	return (rows + PanelRows - 1) / PanelRows * PanelRows * dim
}

// Panel returns the panel at a position of a sequence of panels.
func Panel(panels []float32, at, dim int) []float32 {
	size := PanelRows * dim
	return panels[at*size : (at+1)*size : (at+1)*size]
}

// SetRow puts scale·v at a row of a sequence of panels; the product is made in
// float64 and rounded once. len(v) is the dimension of the panels.
func SetRow(panels []float32, row int, v []float32, scale float64) {
	p := Panel(panels, row/PanelRows, len(v))[row%PanelRows:]
	for i, x := range v {
		p[i*PanelRows] = float32(float64(x) * scale)
	}
}

// ClearRow puts the zero vector at a row of a sequence of panels.
func ClearRow(panels []float32, row, dim int) {
	p := Panel(panels, row/PanelRows, dim)[row%PanelRows:]
	for i := range dim {
		p[i*PanelRows] = 0
	}
}

// Products multiplies each vector of one panel with each of another into dst.
// It panics when the panels differ in size.
//
// Each product is summed from the first element to the last, so exchanging the
// panels exchanges the indexes of dst and changes no bits. The vector
// instructions fuse multiplication and addition and agree with each other bit
// for bit; the Go code rounds products before it adds them.
func Products(dst *Block, a, b []float32) {
	if len(a) != len(b) || len(a)%PanelRows != 0 {
		panic(fmt.Sprintf("kernel: panels of %d and %d elements", len(a), len(b)))
	}
	products(dst, a, b)
}

// ProductError returns the relative error of a product of vectors of n elements
// by [Products]: with e = ProductError(n) the error is at most e·Σ|aᵢbᵢ| +
// n·2⁻¹⁴⁹, if no partial sum overflows. It is +Inf when n is about 2²⁴ or more.
func ProductError(n int) float64 { return gamma(n + 1) }

// productsGo makes 2 by 4 products at a time, whose sums fit in registers.
func productsGo(dst *Block, a, b []float32) {
	for i := 0; i < PanelRows; i += 2 {
		for j := 0; j < PanelRows; j += 4 {
			var s00, s01, s02, s03, s10, s11, s12, s13 float32
			for k := 0; k < len(a); k += PanelRows {
				x, y := (*[2]float32)(a[k+i:]), (*[4]float32)(b[k+j:])
				s00 += float32(x[0] * y[0])
				s01 += float32(x[0] * y[1])
				s02 += float32(x[0] * y[2])
				s03 += float32(x[0] * y[3])
				s10 += float32(x[1] * y[0])
				s11 += float32(x[1] * y[1])
				s12 += float32(x[1] * y[2])
				s13 += float32(x[1] * y[3])
			}
			at := i*PanelRows + j
			*(*[4]float32)(dst[at:]) = [4]float32{s00, s01, s02, s03}
			*(*[4]float32)(dst[at+PanelRows:]) = [4]float32{s10, s11, s12, s13}
		}
	}
}
