package mapmatched

import (
	"errors"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
)

// bigSum is the sum rounded once. 4,000 bits hold every float64 sum exactly.
func bigSum(values []float64) float64 {
	total := new(big.Float).SetPrec(4000)
	for _, v := range values {
		total.Add(total, new(big.Float).SetFloat64(v))
	}
	sum, _ := total.Float64()
	return sum
}

func TestExactSum(t *testing.T) {
	const half = 0x1p-53 // half a unit in the last place of 1
	for _, c := range []struct {
		name   string
		values []float64
		want   float64
	}{
		{"nothing", nil, 0},
		{"one", []float64{-2.5}, -2.5},
		{"tenths", slices.Repeat([]float64{0.1}, 10), 1},
		{"cancelled", []float64{1e200, 1, -1e200}, 1},
		{"cancelled twice", []float64{1e200, 1e100, 1, -1e200, -1e100, -1}, 0},
		{"lost in between", []float64{1, 1e100, 1, -1e100}, 2},
		{"tie to even below", []float64{1, half}, 1},
		{"tie to even above", []float64{1 + 2*half, half}, 1 + 4*half},
		{"just above a tie", []float64{1, half, 0x1p-106}, 1 + 2*half},
		{"just below a tie", []float64{1 + 2*half, half, -0x1p-106}, 1 + 2*half},
		{"far above a tie", []float64{1, half, 5e-324}, 1 + 2*half},
		{"far below a tie", []float64{1 + 2*half, half, -5e-324}, 1 + 2*half},
		{"negative tie", []float64{-1, -half, -5e-324}, -1 - 2*half},
		{"subnormal", []float64{5e-324, 5e-324, -5e-324}, 5e-324},
		{"to the largest", []float64{math.MaxFloat64 / 2, math.MaxFloat64 / 2}, math.MaxFloat64},
	} {
		if want := bigSum(c.values); want != c.want {
			t.Fatalf("%s: the expected value %v is not the exact %v", c.name, c.want, want)
		}
		if got := exactSum(c.values); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// wild draws numbers that are hard to add: of any size, with cancelling
// partners, and with halves of the last place.
func wild(r *rand.Rand, n, exponents int) []float64 {
	var values []float64
	for len(values) < n {
		v := math.Ldexp(r.Float64()*2-1, r.IntN(2*exponents)-exponents)
		values = append(values, v)
		switch r.IntN(4) {
		case 0:
			values = append(values, -v)
		case 1:
			values = append(values, math.Ldexp(v, -53))
		case 2:
			values = append(values, math.Nextafter(-v, 0))
		}
	}
	r.Shuffle(len(values), func(i, j int) { values[i], values[j] = values[j], values[i] })
	return values
}

func TestExactSumOfWildNumbers(t *testing.T) {
	for seed := range uint64(4000) {
		r := rand.New(rand.NewPCG(seed, 11))
		values := wild(r, 1+r.IntN(40), []int{2, 60, 1000}[r.IntN(3)])
		if got, want := exactSum(values), bigSum(values); got != want {
			t.Fatalf("seed %d: sum of %v is %v, want %v", seed, values, got, want)
		}
	}
}

func TestNormalize(t *testing.T) {
	const tiny = 5e-324
	for _, c := range []struct {
		name           string
		scores         []float64
		zscore, center []float64
	}{
		{"nothing", nil, []float64{}, []float64{}},
		{"one", []float64{7.3}, []float64{0}, []float64{0}},
		{"two", []float64{1, 3}, []float64{-1, 1}, []float64{-1, 1}},
		{"quarters", []float64{0, 4, 4, 0}, []float64{-1, 1, 1, -1}, []float64{-2, 2, 2, -2}},
		{"all equal", []float64{0.1, 0.1, 0.1}, []float64{0, 0, 0}, []float64{0, 0, 0}},
		{"all equal and large", slices.Repeat([]float64{1.7e308}, 3), []float64{0, 0, 0}, []float64{0, 0, 0}},
		{"all equal and negative", slices.Repeat([]float64{-0.7}, 7), make([]float64, 7), make([]float64, 7)},
		{"all zero", []float64{0, math.Copysign(0, -1)}, []float64{0, 0}, []float64{0, 0}},
		{"1e200", []float64{1e200, -1e200}, []float64{1, -1}, []float64{1e200, -1e200}},
		{"1e200 around 1", []float64{1e200, 1, -1e200}, []float64{math.Sqrt(1.5), math.Sqrt(2.0/3) * 1e-200, -math.Sqrt(1.5)}, []float64{1e200, 2.0 / 3, -1e200}},
		{"1e308", []float64{1e308, 1.5e308, 1e308, 1.5e308}, []float64{-1, 1, -1, 1}, []float64{-2.5e307, 2.5e307, -2.5e307, 2.5e307}},
		{"the largest", []float64{math.MaxFloat64, -math.MaxFloat64}, []float64{1, -1}, []float64{math.MaxFloat64, -math.MaxFloat64}},
		{"1e-300", []float64{1e-300, 3e-300}, []float64{-1, 1}, []float64{-1e-300, 1e-300}},
		{"subnormal", []float64{2 * tiny, 6 * tiny}, []float64{-1, 1}, []float64{-2 * tiny, 2 * tiny}},
		{"large and subnormal", []float64{1e300, -1e300, -tiny}, []float64{math.Sqrt(1.5), -math.Sqrt(1.5), 0}, []float64{1e300, -1e300, 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for normalization, want := range map[Normalization][]float64{NormalizeZScore: c.zscore, NormalizeCenter: c.center, NormalizeNone: c.scores} {
				before := slices.Clone(c.scores)
				got, err := Normalize(c.scores, normalization)
				if err != nil {
					t.Errorf("%s: %v", normalization, err)
					continue
				}
				same := len(got) == len(want)
				for i := range got {
					same = same && (got[i] == want[i] || want[i] != 0 && math.Abs(got[i]/want[i]-1) < 5e-16)
				}
				if !same {
					t.Errorf("%s of %v: %v, want %v", normalization, c.scores, got, want)
				}
				if !slices.Equal(before, c.scores) {
					t.Errorf("%s changed its input %v to %v", normalization, before, c.scores)
				}
			}
		})
	}
}

// bigZScores is the z-score with hundreds of digits.
func bigZScores(scores []float64) (z []float64, spread float64) {
	const digits = 5000
	number := func(v float64) *big.Float { return new(big.Float).SetPrec(digits).SetFloat64(v) }
	count := number(float64(len(scores)))
	mean := number(0)
	for _, r := range scores {
		mean.Add(mean, number(r))
	}
	mean.Quo(mean, count)
	variance := number(0)
	for _, r := range scores {
		d := number(r)
		d.Sub(d, mean)
		variance.Add(variance, d.Mul(d, d))
	}
	std := number(0).Sqrt(variance.Quo(variance, count))
	largest := 0.0
	for _, r := range scores {
		d := number(r)
		d.Sub(d, mean)
		v, _ := d.Quo(d, std).Float64()
		z = append(z, v)
		largest = max(largest, math.Abs(r))
	}
	spread, _ = number(largest).Quo(number(largest), std).Float64()
	return z, spread
}

func TestZScoreOfWildNumbers(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 12))
		scores := wild(r, 2+r.IntN(12), []int{3, 60, 1020}[r.IntN(3)])
		offset := math.Ldexp(r.Float64(), r.IntN(30))
		shift := r.IntN(1900) - 980 // to any scale at once
		for i := range scores {
			if r.IntN(2) == 0 && math.Abs(scores[i]) < 1e10 {
				scores[i] = math.Ldexp(scores[i]+offset, min(shift, 980))
			}
		}
		if allEqual(scores) {
			continue
		}
		got, err := Normalize(scores, NormalizeZScore)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		want, spread := bigZScores(scores)
		for i := range want {
			// A rounded mean may be off by its last place, which matters as
			// much as the scores are larger than their spread.
			if math.Abs(got[i]-want[i]) > 1e-15*(4+4*spread) {
				t.Fatalf("seed %d: z-scores of %v\n got %v\nwant %v", seed, scores, got, want)
			}
		}
	}
}

func TestNormalizeNoNegativeZero(t *testing.T) {
	zero := math.Copysign(0, -1)
	for _, scores := range [][]float64{
		{zero},
		{zero, zero},
		{1, zero, -1},
		{1e300, zero, -1e300},
		{1e300, -5e-324, -1e300},
		{5e-324, 1e-323},
		{-5e-324, 0, 0},
	} {
		for _, normalization := range []Normalization{NormalizeZScore, NormalizeCenter} {
			got, err := Normalize(scores, normalization)
			if err != nil {
				t.Fatal(err)
			}
			for i, v := range got {
				if v == 0 && math.Signbit(v) {
					t.Errorf("%s of %v: score %d is a negative zero", normalization, scores, i)
				}
			}
		}
	}
}

func TestNormalizeFaults(t *testing.T) {
	for _, c := range []struct {
		name          string
		scores        []float64
		normalization Normalization
		is            error
		want          string
	}{
		{"NaN", []float64{1, math.NaN()}, NormalizeZScore, ErrNonFinite, "score 1 is NaN: value is not finite"},
		{"infinite", []float64{math.Inf(1)}, NormalizeNone, ErrNonFinite, "score 0 is +Inf: value is not finite"},
		{"minus infinite", []float64{0, 0, math.Inf(-1)}, NormalizeCenter, ErrNonFinite, "score 2 is -Inf: value is not finite"},
		{"center too far", []float64{1.7e308, -1.7e308, -1.7e308}, NormalizeCenter, ErrNonFinite, "centered score 0: value is not finite"},
		{"unknown", []float64{1}, "z-score", ErrInvalidConfig, `score normalization "z-score": invalid configuration: use zscore, center or none`},
	} {
		got, err := Normalize(c.scores, c.normalization)
		if err == nil || got != nil {
			t.Errorf("%s: %v and error %v, want only an error", c.name, got, err)
			continue
		}
		if !errors.Is(err, c.is) || err.Error() != c.want {
			t.Errorf("%s: %q, want %q", c.name, err, c.want)
		}
	}
}

func TestEmissionEntropy(t *testing.T) {
	for _, c := range []struct {
		name     string
		weighted []float64
		want     float64
	}{
		{"nothing", nil, 0},
		{"one", []float64{-3}, 0},
		{"two equal", []float64{5, 5}, math.Ln2},
		{"four equal", []float64{-1, -1, -1, -1}, 2 * math.Ln2},
		{"one to three", []float64{0, math.Log(3)}, 2*math.Ln2 - 0.75*math.Log(3)},
		{"certain", []float64{0, -1e6}, 0},
		{"huge", []float64{1e308, -1e308, 1e308}, math.Ln2},
		{"huge and equal", []float64{-1.7e308, -1.7e308}, math.Ln2},
		{"apart by more than fits", []float64{1.7e308, -1.7e308}, 0},
	} {
		got := EmissionEntropy(c.weighted)
		if math.Abs(got-c.want) > 1e-15 || math.Signbit(got) {
			t.Errorf("%s: entropy %v, want %v", c.name, got, c.want)
		}
	}
}

func TestEmissionEntropyProperties(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 13))
		weighted := make([]float64, 1+r.IntN(60))
		scale := math.Ldexp(1, r.IntN(60)-30)
		for i := range weighted {
			weighted[i] = math.Round(r.NormFloat64()*64) / 64 * scale
		}
		got := EmissionEntropy(weighted)
		if !(got >= 0) || math.Signbit(got) || got > math.Log(float64(len(weighted)))+1e-14 {
			t.Fatalf("seed %d: entropy %v of %d scores", seed, got, len(weighted))
		}
		// A constant added to all changes nothing; powers of two keep it exact.
		shifted := slices.Clone(weighted)
		for i := range shifted {
			shifted[i] += scale * 1024
		}
		if other := EmissionEntropy(shifted); other != got {
			t.Fatalf("seed %d: entropy %v, after adding a constant %v", seed, got, other)
		}
		slices.Reverse(shifted)
		if other := EmissionEntropy(shifted); math.Abs(other-got) > 1e-14 {
			t.Fatalf("seed %d: entropy %v, backwards %v", seed, got, other)
		}
	}
}
