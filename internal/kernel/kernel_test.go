package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// eachLevel runs a test with every set of instructions that the machine has.
func eachLevel(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	defer func() { active = best }()
	for active = levelGo; active <= best; active++ {
		t.Run(Instructions(), test)
	}
}

// inputs are the kinds of numbers that vectors are filled with.
var inputs = []struct {
	name string
	next func(r *rand.Rand) float32
}{
	{"normal", func(r *rand.Rand) float32 { return float32(r.NormFloat64()) }},
	{"wide", func(r *rand.Rand) float32 { return float32(math.Ldexp(r.NormFloat64(), r.IntN(60)-30)) }},
	{"denormal", func(r *rand.Rand) float32 { return math.Float32frombits(r.Uint32()>>9 | r.Uint32()&(1<<31)) }},
	{"tiny products", func(r *rand.Rand) float32 { return float32(math.Ldexp(r.NormFloat64(), r.IntN(20)-75)) }},
	{"any finite", func(r *rand.Rand) float32 {
		for {
			if f := math.Float32frombits(r.Uint32()); !special(f) {
				return f
			}
		}
	}},
	{"any bits", func(r *rand.Rand) float32 { return math.Float32frombits(r.Uint32()) }},
	{"special", func(r *rand.Rand) float32 {
		if r.IntN(40) > 0 {
			return float32(r.NormFloat64())
		}
		return []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), 0, float32(math.Copysign(0, -1))}[r.IntN(5)]
	}},
}

func special(f float32) bool { return math.IsNaN(float64(f)) || math.IsInf(float64(f), 0) }

func fill(r *rand.Rand, v []float32, next func(*rand.Rand) float32) []float32 {
	for i := range v {
		v[i] = next(r)
	}
	return v
}

// same says whether two results are equal bit for bit, or both NaN.
func same(a, b float32) bool {
	return math.Float32bits(a) == math.Float32bits(b) || a != a && b != b
}

// exact is the inner product in float64 and the sum of the magnitudes.
func exact(a, b []float32) (sum, magnitude float64) {
	for i := range a {
		p := float64(a[i]) * float64(b[i])
		sum += p
		magnitude += math.Abs(p)
	}
	return sum, magnitude
}

// checkError holds a product of n elements to its bound.
func checkError(t *testing.T, got float32, a, b []float32, relative float64) {
	t.Helper()
	want, magnitude := exact(a, b)
	switch {
	case math.IsNaN(want):
		if got == got {
			t.Fatalf("n = %d: %v, want NaN", len(a), got)
		}
	case magnitude > math.MaxFloat32: // a partial sum may overflow
	case math.Abs(float64(got)-want) > relative*magnitude*(1+1e-12)+float64(len(a))*0x1p-149:
		t.Fatalf("n = %d: %v, want %v ± %v", len(a), got, want, relative*magnitude)
	}
}

func sizes() []int {
	n := make([]int, 0, 140)
	for i := range 131 {
		n = append(n, i)
	}
	return append(n, 255, 384, 768, 1023)
}

func TestDot(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 2))
		for _, kind := range inputs {
			for _, n := range sizes() {
				for offset := range 4 { // not aligned to vectors
					a := fill(r, make([]float32, n+offset), kind.next)[offset:]
					b := fill(r, make([]float32, n+2*offset), kind.next)[2*offset:]
					got := Dot(a, b)
					if want := dotGo(a, b); !same(got, want) {
						t.Fatalf("%s, n = %d: %x, the Go code gives %x", kind.name, n, math.Float32bits(got), math.Float32bits(want))
					}
					if back := Dot(b, a); !same(got, back) {
						t.Fatalf("%s, n = %d: %v one way and %v the other", kind.name, n, got, back)
					}
					checkError(t, got, a, b, DotError(n))
				}
			}
		}
	})
}

// dotInOrder is the order of the sum as Dot documents it.
func dotInOrder(a, b []float32) float32 {
	var sums [32]float32
	n := len(a)
	blocks, eights := n/32*32, n/8*8
	for i := range blocks {
		sums[i%32] += float32(a[i] * b[i])
	}
	for i := blocks; i < eights; i++ {
		sums[i-blocks] += float32(a[i] * b[i])
	}
	var v [8]float32
	for i := range v {
		v[i] = (sums[i] + sums[8+i]) + (sums[16+i] + sums[24+i])
	}
	for apart := 4; apart > 0; apart /= 2 {
		for i := range apart {
			v[i] += v[i+apart]
		}
	}
	for i := eights; i < n; i++ {
		v[0] += float32(a[i] * b[i])
	}
	return v[0]
}

func TestDotOrder(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(3, 4))
		for _, n := range sizes() {
			a, b := fill(r, make([]float32, n), inputs[0].next), fill(r, make([]float32, n), inputs[0].next)
			if got, want := Dot(a, b), dotInOrder(a, b); !same(got, want) {
				t.Fatalf("n = %d: %v, want %v", n, got, want)
			}
		}
	})
}

// fused returns a·b + c rounded once: the sum is rounded to odd in float64,
// after which rounding to float32 is right (Boldo, Melquiond 2008).
func fused(a, b, c float32) float32 {
	p, d := float64(a)*float64(b), float64(c)
	s := p + d
	if math.IsNaN(s) || math.IsInf(s, 0) {
		return float32(s)
	}
	v := s - p
	if rest := (p - (s - v)) + (d - v); rest != 0 && math.Float64bits(s)&1 == 0 {
		s = math.Nextafter(s, math.Inf(int(math.Copysign(1, rest))))
	}
	return float32(s)
}

func TestProducts(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(5, 6))
		for _, kind := range inputs {
			for _, n := range sizes() {
				offset := r.IntN(4)
				a := fill(r, make([]float32, PanelLen(16, n)+offset), kind.next)[offset:]
				b := fill(r, make([]float32, PanelLen(16, n)+2*offset), kind.next)[2*offset:]
				var got, back Block
				Products(&got, a, b)
				Products(&back, b, a)
				x, y := make([]float32, n), make([]float32, n)
				for i := range PanelRows {
					for j := range PanelRows {
						var want float32
						for k := range n {
							x[k], y[k] = a[k*PanelRows+i], b[k*PanelRows+j]
							if active == levelGo {
								want += float32(x[k] * y[k])
							} else {
								want = fused(x[k], y[k], want)
							}
						}
						p := got[i*PanelRows+j]
						if !same(p, want) {
							t.Fatalf("%s, n = %d, rows %d and %d: %v, want %v", kind.name, n, i, j, p, want)
						}
						if !same(p, back[j*PanelRows+i]) {
							t.Fatalf("%s, n = %d, rows %d and %d: other bits with the panels exchanged", kind.name, n, i, j)
						}
						checkError(t, p, x, y, ProductError(n))
					}
				}
			}
		}
	})
}

func TestSetRow(t *testing.T) {
	const rows, dim = 35, 3
	panels := make([]float32, PanelLen(rows, dim))
	if len(panels) != 48*dim {
		t.Fatalf("%d elements for %d rows of %d", len(panels), rows, dim)
	}
	for i := range rows {
		SetRow(panels, i, []float32{float32(i), 1, 3}, 0.5)
	}
	one := make([]float32, PanelLen(1, dim))
	SetRow(one, 7, []float32{2, 1, 0}, 1)
	for at := range 3 {
		var got Block
		Products(&got, Panel(panels, at, dim), one)
		for i := range PanelRows {
			var want float32
			if row := at*PanelRows + i; row < rows {
				want = float32(row) + 0.5
			}
			if p := got[i*PanelRows+7]; p != want {
				t.Errorf("row %d: product %v, want %v", at*PanelRows+i, p, want)
			}
			if p := got[i*PanelRows+6]; p != 0 {
				t.Errorf("row %d: product %v with a row that is not set", at*PanelRows+i, p)
			}
		}
	}
	ClearRow(one, 7, dim)
	for i, v := range one {
		if v != 0 {
			t.Errorf("element %d is %v after its row was cleared", i, v)
		}
	}
}

func TestPanics(t *testing.T) {
	for name, call := range map[string]func(){
		"dot":         func() { Dot(make([]float32, 3), make([]float32, 4)) },
		"products":    func() { Products(new(Block), make([]float32, 16), make([]float32, 32)) },
		"part panels": func() { Products(new(Block), make([]float32, 17), make([]float32, 17)) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			call()
		})
	}
}

func TestErrorBounds(t *testing.T) {
	if e := ProductError(384); !(e > 385*0x1p-24 && e < 386*0x1p-24) {
		t.Errorf("ProductError(384) is %v", e)
	}
	if e := ProductError(1 << 24); !math.IsInf(e, 1) {
		t.Errorf("ProductError(1<<24) is %v, want +Inf", e)
	}
	if e := DotError(384); !(e > 28*0x1p-24 && e < 29*0x1p-24) {
		t.Errorf("DotError(384) is %v", e)
	}
}

func eachLevelBench(b *testing.B, dim int, flops int, run func()) {
	defer func() { active = best }()
	for active = levelGo; active <= best; active++ {
		b.Run(fmt.Sprintf("instructions=%s/dim=%d", Instructions(), dim), func(b *testing.B) {
			for b.Loop() {
				run()
			}
			b.ReportMetric(float64(flops)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
		})
	}
}

func BenchmarkDot(b *testing.B) {
	r := rand.New(rand.NewPCG(7, 8))
	for _, dim := range []int{384, 1024} {
		x, y := fill(r, make([]float32, dim), inputs[0].next), fill(r, make([]float32, dim), inputs[0].next)
		var sink float32
		eachLevelBench(b, dim, 2*dim, func() { sink += Dot(x, y) })
		_ = sink
	}
}

func BenchmarkProducts(b *testing.B) {
	r := rand.New(rand.NewPCG(7, 8))
	for _, dim := range []int{384, 1024} {
		// 16 panels with 16 panels, as for two tiles of a matrix.
		const tiles = 16
		x := fill(r, make([]float32, PanelLen(tiles*PanelRows, dim)), inputs[0].next)
		y := fill(r, make([]float32, PanelLen(tiles*PanelRows, dim)), inputs[0].next)
		var dst Block
		eachLevelBench(b, dim, 2*dim*tiles*tiles*len(dst), func() {
			for i := range tiles {
				for j := range tiles {
					Products(&dst, Panel(x, j, dim), Panel(y, i, dim))
				}
			}
		})
	}
}
