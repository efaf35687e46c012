package mapmatched

import "math"

// The functions of package math may differ in the last bit between processors,
// because they are written in assembly for some and fuse multiplications with
// additions on others. The ones here round every operation, so that results
// which are stored or compared have the same bits everywhere.

// ln 2 in two parts, the first short enough that its product with an exponent
// is exact.
const (
	ln2High = 0x1.62e42feep-1
	ln2Low  = 0x1.a39ef35793c76p-33
)

// Exp returns e**x with the same bits on every machine, within two units in
// the last place. It is 0 below −745.2 and +Inf above 709.8.
func Exp(x float64) float64 {
	switch {
	case math.IsNaN(x):
		return x
	case x > 709.8:
		return math.Inf(1)
	case x < -745.2:
		return 0
	}
	// e**x = 2**k · e**r with |r| ≤ ln(2)/2, where the Taylor series is good
	// to 2**-57 after 13 terms.
	k := math.Round(float64(x * math.Log2E))
	r := (x - float64(k*ln2High)) - float64(k*ln2Low)
	series := 1.0 / 6227020800
	for _, c := range [...]float64{
		1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320,
		1.0 / 5040, 1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, 1.0 / 2,
	} {
		series = float64(series*r) + c
	}
	return math.Ldexp(1+(r+float64(float64(r*r)*series)), int(k))
}

// Log returns the natural logarithm of x with the same bits on every machine,
// within one unit in the last place: −Inf at 0, NaN below.
func Log(x float64) float64 {
	switch {
	case math.IsNaN(x) || math.IsInf(x, 1):
		return x
	case x < 0:
		return math.NaN()
	case x == 0:
		return math.Inf(-1)
	}
	// x = 2**k · (1+f) with 1+f between √½ and √2, and
	// ln(1+f) = f − f²/2 + s·(f²/2 + R), s = f/(2+f),
	// R = Σ 2·s**(2i)/(2i+1) for i ≥ 1.
	mantissa, k := math.Frexp(x)
	if mantissa < math.Sqrt2/2 {
		mantissa *= 2
		k--
	}
	f := mantissa - 1
	s := f / (2 + f)
	square := float64(s * s)
	series := 0.0
	for i := 11; i >= 1; i-- {
		series = float64(square * (series + 2/float64(2*i+1)))
	}
	half := float64(float64(0.5*f) * f)
	exponent := float64(k)
	return float64(exponent*ln2High) - ((half - (float64(s*(half+series)) + float64(exponent*ln2Low))) - f)
}

// Pow returns x**y for x ≥ 0 as Exp(y·Log(x)), with the same bits on every
// machine; its relative error is about |y·ln x|·1e-16. x**0 is 1, 0**y is 0
// for y > 0.
func Pow(x, y float64) float64 {
	switch {
	case y == 0 || x == 1:
		return 1
	case y == 1:
		return x
	}
	return Exp(float64(y * Log(x)))
}
