package kernel

import "fmt"

// lanes is how many partial sums Dot has.
const lanes = 32

// Dot returns the inner product of two vectors of one length, 0 for vectors of
// no length. It panics when the lengths differ.
//
// The order of the sum is fixed, products are rounded before they are added (no
// fused multiply-add), and so the bits are the same on every machine, except
// for those of a NaN:
//
//  1. Element i is added to partial sum i mod 32 as long as whole blocks of 32
//     last, and then as long as whole blocks of 8 last.
//  2. The partial sums are added as vectors of 8, (v0 + v1) + (v2 + v3), and
//     the 8 of that by halves: elements 4 apart, then 2 apart, then 1 apart.
//  3. The up to 7 elements that are left are added one by one.
//
// With u = 2⁻²⁴ the error is at most [DotError](n)·Σ|aᵢbᵢ| + n·2⁻¹⁴⁹, if no
// partial sum overflows.
func Dot(a, b []float32) float32 {
	if len(a) != len(b) {
		panic(fmt.Sprintf("kernel: vectors of %d and %d elements", len(a), len(b)))
	}
	return dot(a, b)
}

// DotError returns the relative error of [Dot] for vectors of n elements:
// m·u/(1 − m·u), where m = n/32 + 16 bounds the number of roundings that one
// product goes through.
func DotError(n int) float64 { return gamma(n/lanes + 16) }

// gamma bounds the relative error of n roundings to float32 in a row (Higham,
// Accuracy and Stability of Numerical Algorithms, lemma 3.1), +Inf beyond what
// the lemma covers.
func gamma(n int) float64 {
	const unit = 1.0 / (1 << 24)
	if float64(n)*unit >= 1 {
		return inf
	}
	return float64(n) * unit / (1 - float64(n)*unit)
}

func dotGo(a, b []float32) float32 {
	b = b[:len(a)]
	var sums [lanes]float32
	for len(a) >= lanes {
		// Eight at a time, so that the sums stay in registers.
		for part := 0; part < lanes; part += 8 {
			addProducts((*[8]float32)(sums[part:]), (*[8]float32)(a[part:]), (*[8]float32)(b[part:]))
		}
		a, b = a[lanes:], b[lanes:]
	}
	for part := 0; len(a) >= 8; part += 8 {
		addProducts((*[8]float32)(sums[part:]), (*[8]float32)(a), (*[8]float32)(b))
		a, b = a[8:], b[8:]
	}
	var eight [8]float32
	for i := range eight {
		eight[i] = (sums[i] + sums[i+8]) + (sums[i+16] + sums[i+24])
	}
	sum := ((eight[0] + eight[4]) + (eight[2] + eight[6])) + ((eight[1] + eight[5]) + (eight[3] + eight[7]))
	for i := range a {
		sum += float32(a[i] * b[i])
	}
	return sum
}

func addProducts(sums, a, b *[8]float32) {
	sums[0] += float32(a[0] * b[0])
	sums[1] += float32(a[1] * b[1])
	sums[2] += float32(a[2] * b[2])
	sums[3] += float32(a[3] * b[3])
	sums[4] += float32(a[4] * b[4])
	sums[5] += float32(a[5] * b[5])
	sums[6] += float32(a[6] * b[6])
	sums[7] += float32(a[7] * b[7])
}
