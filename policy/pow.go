package policy

import "math"

// pow returns x^y for x and y in (0, 1], the exact value rounded to the
// nearest float64 but for cases too close to call at about 100 bits. So it is
// monotone in x, and it has the same bits on every machine, which math.Pow
// does not promise: its exponential is written in assembly on some.
// mapmatched.Pow has the same bits everywhere too, but an error of a few units
// in the last place, with which a score could fall where a similarity rises.
func pow(x, y float64) float64 {
	return expDouble(mulDouble(logDouble(x), double{y, 0}))
}

// double is the unevaluated sum of two float64, of which low is at most half a
// unit in the last place of high (Dekker 1971, "A floating-point technique for
// extending the available precision").
type double struct{ high, low float64 }

// ln2 to 107 bits.
var ln2 = double{0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56}

// addExact is a + b without error (Knuth's two-sum).
func addExact(a, b float64) double {
	sum := a + b
	t := sum - a
	return double{sum, (a - (sum - t)) + (b - t)}
}

// mulExact is a·b without error.
func mulExact(a, b float64) double {
	p := float64(a * b)
	return double{p, math.FMA(a, b, -p)}
}

func addDouble(a, b double) double {
	s := addExact(a.high, b.high)
	return addExact(s.high, s.low+(a.low+b.low))
}

func mulDouble(a, b double) double {
	p := mulExact(a.high, b.high)
	return addExact(p.high, p.low+(float64(a.high*b.low)+float64(a.low*b.high)))
}

func divDouble(a, b double) double {
	q := a.high / b.high
	rest := addDouble(a, mulDouble(b, double{-q, 0}))
	return addExact(q, rest.high/b.high)
}

// logDouble is ln x for x > 0, from x = 2^e·m with m near 1 and
// ln m = 2·artanh s, s = (m − 1)/(m + 1).
func logDouble(x float64) double {
	m, e := math.Frexp(x)
	if m < math.Sqrt2/2 {
		m, e = 2*m, e-1
	}
	s := divDouble(double{m - 1, 0}, addExact(m, 1))
	square := mulDouble(s, s)
	const terms = 22 // s² < 0.0295, and 0.0295^22 < 2^-111
	var sum double
	for k := terms; k >= 0; k-- {
		sum = addDouble(mulDouble(sum, square), divDouble(double{1, 0}, double{float64(2*k + 1), 0}))
	}
	ln := mulDouble(s, sum)
	ln = double{2 * ln.high, 2 * ln.low}
	return addDouble(mulDouble(ln2, double{float64(e), 0}), ln)
}

// expDouble is e^t, rounded.
func expDouble(t double) float64 {
	k := math.Round(t.high / ln2.high)
	r := addDouble(t, mulDouble(ln2, double{-k, 0}))
	const terms = 26 // |r| < 0.35, and 0.35^26/26! < 2^-127
	sum := double{1, 0}
	for n := terms; n > 0; n-- {
		sum = addDouble(double{1, 0}, divDouble(mulDouble(r, sum), double{float64(n), 0}))
	}
	return math.Ldexp(sum.high, int(k))
}
