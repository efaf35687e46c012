package onnx

import (
	"errors"
	"math"
	"testing"

	"github.com/mapmatched/mmplug/mapmatched"
)

func TestPool(t *testing.T) {
	states := []float32{3, -4, 1, 0, 2, 10} // of three tokens
	for p, want := range map[pooling][]float64{
		poolMean: {6 / math.Sqrt(72), 6 / math.Sqrt(72)},
		poolCLS:  {0.6, -0.8},
		poolMax:  {3 / math.Sqrt(109), 10 / math.Sqrt(109)},
	} {
		got, err := p.pool(states, 2)
		if err != nil {
			t.Fatal(err)
		}
		near(t, string(p), got, want, 1e-7)
	}
}

func TestPoolFaults(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, test := range []struct {
		p      pooling
		states []float32
		want   string
	}{
		{poolMean, []float32{1, -2, -1, 2}, "the vector is zero and has no direction"},
		{poolCLS, []float32{0, 0, 1, 1}, "the vector is zero and has no direction"},
		{poolMean, []float32{1, 1, 1, nan}, "component 1 of the vector is NaN: value is not finite"},
		{poolMax, []float32{1, 1, nan, 1}, "component 0 of the vector is NaN: value is not finite"},
		{poolMax, []float32{1, inf, 1, 1}, "component 1 of the vector is +Inf: value is not finite"},
	} {
		_, err := test.p.pool(test.states, 2)
		if err == nil || err.Error() != test.want || errors.Is(err, mapmatched.ErrNonFinite) == (test.want[0] == 't') {
			t.Errorf("%s of %v: %v", test.p, test.states, err)
		}
	}
}
