package mapmatched

import (
	"math"
	"math/rand/v2"
	"testing"
)

// ulps is how many units in the last place of want are between two numbers.
func ulps(got, want float64) float64 {
	if got == want || math.IsNaN(got) && math.IsNaN(want) {
		return 0
	}
	unit := math.Nextafter(math.Abs(want), math.Inf(1)) - math.Abs(want)
	return math.Abs(got-want) / unit
}

func TestElementaryFunctionsAreAccurate(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 200000 {
		x := (r.Float64() - 0.5) * 1400
		if r.IntN(2) == 0 {
			x = r.NormFloat64()
		}
		if u := ulps(Exp(x), math.Exp(x)); u > 2 {
			t.Fatalf("Exp(%v) = %v is %v ulps from %v", x, Exp(x), u, math.Exp(x))
		}
		y := math.Ldexp(0.5+r.Float64(), r.IntN(2000)-1000)
		if r.IntN(2) == 0 {
			y = r.Float64() * 2
		}
		if u := ulps(Log(y), math.Log(y)); u > 2 {
			t.Fatalf("Log(%v) = %v is %v ulps from %v", y, Log(y), u, math.Log(y))
		}
		p, q := r.Float64(), r.Float64()
		if got, want := Pow(p, q), math.Pow(p, q); math.Abs(got-want) > 1e-14*want {
			t.Fatalf("Pow(%v, %v) = %v, want %v", p, q, got, want)
		}
	}
}

func TestElementaryFunctionsAtTheEdges(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for _, c := range []struct {
		what      string
		got, want float64
	}{
		{"Exp(0)", Exp(0), 1},
		{"Exp(-inf)", Exp(-inf), 0},
		{"Exp(inf)", Exp(inf), inf},
		{"Exp(710)", Exp(710), inf},
		{"Exp(-745)", Exp(-745), 5e-324},
		{"Exp(-746)", Exp(-746), 0},
		{"Exp(nan)", Exp(nan), nan},
		{"Log(1)", Log(1), 0},
		{"Log(2)", Log(2), math.Ln2},
		{"Log(0)", Log(0), -inf},
		{"Log(-1)", Log(-1), nan},
		{"Log(inf)", Log(inf), inf},
		{"Log(5e-324)", Log(5e-324), -744.4400719213812},
		{"Log(nan)", Log(nan), nan},
		{"Pow(0, 0)", Pow(0, 0), 1},
		{"Pow(0, 0.6)", Pow(0, 0.6), 0},
		{"Pow(0.3, 1)", Pow(0.3, 1), 0.3},
		{"Pow(1, 0.6)", Pow(1, 0.6), 1},
	} {
		if c.got != c.want && !(math.IsNaN(c.got) && math.IsNaN(c.want)) {
			t.Errorf("%s = %v, want %v", c.what, c.got, c.want)
		}
	}
}

// TestElementaryFunctionsHaveTheirBits fails where a compiler or a processor
// fuses or reorders operations.
func TestElementaryFunctionsHaveTheirBits(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	sum := uint64(14695981039346656037) // FNV-1a over the bits of many results
	for range 20000 {
		x := (r.Float64() - 0.5) * 100
		for _, v := range [...]float64{Exp(x), Log(math.Abs(x)), Pow(r.Float64(), r.Float64())} {
			sum = (sum ^ math.Float64bits(v)) * 1099511628211
		}
	}
	if want := uint64(0xc512d9348ddc1646); sum != want {
		t.Errorf("bits sum to %#x, want %#x", sum, want)
	}
}
