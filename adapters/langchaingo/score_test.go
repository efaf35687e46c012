package langchaingo

import (
	"math"
	"testing"
	"testing/quick"
)

func TestEmission(t *testing.T) {
	for _, tt := range []struct {
		kind  ScoreKind
		score float32
		rank  int
		want  float64
	}{
		{ScoreSimilarity, 0.1, 0, 0.1},
		{ScoreSimilarity, -3.5, 0, -3.5},
		{ScoreCertainty, 0.95, 0, 0.95},
		{ScoreCertainty, 1.0000001, 0, 1.0000001},
		{ScoreCosineDistance, 0.1, 0, 0.9},
		{ScoreCosineDistance, 2, 0, -1},
		{ScoreCosineDistance, -0.0000001, 0, 1.0000001},
		{ScoreEuclideanDistance, 5, 0, -5},
		{ScoreSquaredEuclideanDistance, 25, 0, -25},
		{ScoreManhattanDistance, 7, 0, -7},
		{ScoreNegativeInnerProduct, -0.75, 0, 0.75},
		{ScoreNone, 123, 1, 0},
		{ScoreNone, 0, 2, -math.Ln2},
	} {
		got, err := tt.kind.emission(tt.score, tt.rank)
		if err != nil || got != tt.want || math.Signbit(got) && got == 0 {
			t.Errorf("%s of %v, rank %d: %v, error %v; want %v", tt.kind, tt.score, tt.rank, got, err, tt.want)
		}
	}
	for _, tt := range []struct {
		kind  ScoreKind
		score float32
	}{
		{ScoreCertainty, 1.5}, {ScoreCertainty, -0.5}, {ScoreCosineDistance, 2.5}, {ScoreCosineDistance, -0.5},
		{ScoreEuclideanDistance, -1}, {ScoreSquaredEuclideanDistance, -1}, {ScoreManhattanDistance, -1},
	} {
		if got, err := tt.kind.emission(tt.score, 0); err == nil {
			t.Errorf("%s of %v: %v, want an error", tt.kind, tt.score, got)
		}
	}
}

// decimal keeps the value as a float32, and with it the order.
func TestDecimal(t *testing.T) {
	if err := quick.Check(func(bits uint32) bool {
		x := math.Float32frombits(bits)
		return float32(decimal(x)) == x || x != x && math.IsNaN(decimal(x))
	}, &quick.Config{MaxCount: 20_000}); err != nil {
		t.Error(err)
	}
	for x, want := range map[float32]float64{0.1: 0.1, 0.4: 0.4, 1: 1, 16777216: 16777216, 3.4e38: 3.4e38, 1e-40: 1e-40} {
		if got := decimal(x); got != want {
			t.Errorf("decimal(%v) = %v, want %v", x, got, want)
		}
	}
}

func TestEveryKindIsValid(t *testing.T) {
	for _, k := range scoreKinds {
		if err := k.Validate(); err != nil {
			t.Error(err)
		}
	}
}
