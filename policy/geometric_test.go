package policy

import (
	"encoding/json"
	"errors"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/mapmatched/mmplug/mapmatched"
)

// The values of pow and of the golden scores were worked out with sixty decimal
// digits and rounded to float64.
func TestPow(t *testing.T) {
	for _, c := range []struct{ x, y, want float64 }{
		{0.81, 0.5, 0.9},
		{0.49, 0.5, 0.7},
		{0.3, 0.6, 0x1.f13f63c03331ep-2},
		{1e-300, 0.4, 0x1.4a8729fc3dd5ep-399},
		{math.SmallestNonzeroFloat64, 0.5, 0x1p-537},
		{0.9999999999999999, 0.6, 0x1.fffffffffffffp-1},
		{0.5, 1.0 / 3, 0x1.965fea53d6e3dp-1},
		{0.1, 1e-17, 1},
		{0.123456789, 0.987654321, 0x1.037449eb3b218p-3},
		{1, 0.6, 1},
		{0.25, 1, 0.25},
	} {
		if got := pow(c.x, c.y); got != c.want {
			t.Errorf("pow(%v, %v) = %x, want %x", c.x, c.y, got, c.want)
		}
	}
}

// TestPowIsCorrectlyRounded squares and takes fourth powers back with many
// digits: y = x^(1/2) lies between the neighbours of the result.
func TestPowIsCorrectlyRounded(t *testing.T) {
	r := rand.New(rand.NewPCG(19, 23))
	for range 20000 {
		x := math.Ldexp(1-r.Float64(), -r.IntN(60))
		got := pow(x, 0.5)
		if want := math.Sqrt(x); got != want {
			t.Fatalf("pow(%v, 0.5) = %x, want %x", x, got, want)
		}
		fourth := pow(x, 0.25)
		above := new(big.Float).SetPrec(300).SetFloat64(fourth)
		half := new(big.Float).SetPrec(300).SetFloat64(math.Nextafter(fourth, 2) - fourth)
		half.Quo(half, big.NewFloat(2))
		below := new(big.Float).Sub(above, half)
		above.Add(above, half)
		for _, f := range []*big.Float{above, below} {
			f.Mul(f, f)
			f.Mul(f, f)
		}
		exact := new(big.Float).SetFloat64(x)
		if exact.Cmp(above) > 0 || exact.Cmp(below) < 0 {
			t.Fatalf("pow(%v, 0.25) = %x is not the nearest", x, fourth)
		}
	}
}

func TestGeometricByHand(t *testing.T) {
	for _, c := range []struct {
		name              string
		sim, decay, alpha float64
		want              float64
	}{
		{"square roots: 0.9 times 0.7", 0.81, 0.49, 0.5, 0.63},
		{"square roots: 0.5 times 0.5", 0.25, 0.25, 0.5, 0.25},
		{"alpha 0 returns decay before any pow", 0, 0.3, 0, 0.3},
		{"alpha 0 returns decay whatever the similarity", 0.1, 0.7, 0, 0.7},
		{"alpha 1 returns sim before any pow", 0.123456789, 0.3, 1, 0.123456789},
		{"alpha 1 and no similarity", 0, 0.3, 1, 0},
		{"similarity 0 is 0", 0, 0.5, 0.6, 0},
		{"a negative cosine is clamped to 0", -0.4, 0.5, 0.6, 0},
		{"a cosine that rounding left above 1 is clamped", 1.0000001, 1, 0.6, 1},
		{"both 1", 1, 1, 0.6, 1},
	} {
		if got := Geometric(c.sim, c.decay, c.alpha); got != c.want || math.Signbit(got) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	for _, c := range [][3]float64{{math.NaN(), 0.5, 0.6}, {0.5, 0, 0.6}, {0.5, 1.1, 0.6}, {0.5, math.NaN(), 0.6}, {0.5, 0.5, -0.1}, {0.5, 0.5, 1.1}, {0.5, 0.5, math.NaN()}} {
		if got := Geometric(c[0], c[1], c[2]); !math.IsNaN(got) {
			t.Errorf("Geometric(%v) = %v, want NaN", c, got)
		}
	}
}

func TestGeometricIsInTheUnitIntervalAndMonotone(t *testing.T) {
	r := rand.New(rand.NewPCG(29, 31))
	unit := func() float64 { return math.Ldexp(1-r.Float64(), -r.IntN(12)*r.IntN(2)) }
	for range 20000 {
		sim, decay, alpha := unit(), unit(), []float64{0, 1, 0.6, r.Float64()}[r.IntN(4)]
		s := Geometric(sim, decay, alpha)
		if !(s > 0 && s <= 1) {
			t.Fatalf("S(%v, %v, %v) = %v", sim, decay, alpha, s)
		}
		if lo, hi := min(sim, decay), max(sim, decay); s < lo*(1-1e-15) || s > hi*(1+1e-15) {
			t.Fatalf("S(%v, %v, %v) = %v is not between the two", sim, decay, alpha, s)
		}
		for _, up := range []func(float64) float64{
			func(x float64) float64 { return math.Nextafter(x, 2) },
			func(x float64) float64 { return x + r.Float64()*(1-x) },
		} {
			if more := Geometric(min(up(sim), 1), decay, alpha); more < s {
				t.Fatalf("S fell from %v to %v when sim rose from %v", s, more, sim)
			}
			if more := Geometric(sim, min(up(decay), 1), alpha); more < s {
				t.Fatalf("S fell from %v to %v when decay rose from %v", s, more, decay)
			}
		}
	}
}

func TestGeometricScoreNormativeCases(t *testing.T) {
	u := DefaultFusion()
	u.MinScore = 0.04
	both := GeometricQuery{Vector: true, Expanded: true}
	for _, c := range []struct {
		name  string
		query GeometricQuery
		chunk GeometricChunk
		want  float64
		parts map[string]float64
	}{
		{"a reached chunk is fused", both, GeometricChunk{Similarity: new(0.81), Decay: 0.49},
			Geometric(0.81, 0.49, 0.6), map[string]float64{"sim": 0.81, "decay": 0.49}},
		{"a query may override alpha", GeometricQuery{true, true, new(0.5)}, GeometricChunk{Similarity: new(0.81), Decay: 0.49},
			0.63, map[string]float64{"sim": 0.81, "decay": 0.49}},
		{"no vector clause: S is decay", GeometricQuery{Expanded: true}, GeometricChunk{Decay: 0.49},
			0.49, map[string]float64{"decay": 0.49}},
		{"no vector clause: a similarity that happens to be there is not used", GeometricQuery{Expanded: true}, GeometricChunk{Similarity: new(0.9), Decay: 0.49},
			0.49, map[string]float64{"decay": 0.49}},
		{"no vector clause: a primary has the decay of a root", GeometricQuery{Expanded: true}, GeometricChunk{Primary: true, Decay: 1},
			1, map[string]float64{"decay": 1}},
		{"a chunk without an embedding has sim min_score", both, GeometricChunk{Decay: 0.49},
			Geometric(0.04, 0.49, 0.6), map[string]float64{"sim": 0.04, "decay": 0.49}},
		{"no expansion: S is sim and decay is not substituted by 1", GeometricQuery{Vector: true}, GeometricChunk{Similarity: new(0.3)},
			0.3, map[string]float64{"sim": 0.3}},
		{"no expansion: nor for a primary", GeometricQuery{Vector: true}, GeometricChunk{Primary: true, Similarity: new(0.3), Decay: 1},
			0.3, map[string]float64{"sim": 0.3}},
		{"no expansion: alpha 0 does not turn to decay", GeometricQuery{Vector: true, Alpha: new(0.0)}, GeometricChunk{Similarity: new(0.3)},
			0.3, map[string]float64{"sim": 0.3}},
		{"primaries are never fused", both, GeometricChunk{Primary: true, Similarity: new(0.3), Decay: 1},
			0.3, map[string]float64{"sim": 0.3, "decay": 1}},
		{"primaries are never fused, with alpha 0 neither", GeometricQuery{true, true, new(0.0)}, GeometricChunk{Primary: true, Similarity: new(0.3), Decay: 1},
			0.3, map[string]float64{"sim": 0.3, "decay": 1}},
		{"similarity is clamped", both, GeometricChunk{Primary: true, Similarity: new(-0.3), Decay: 1},
			0, map[string]float64{"sim": 0, "decay": 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, parts, err := u.GeometricScore(c.query, c.chunk)
			if err != nil || got != c.want {
				t.Errorf("%v (%v), want %v", got, err, c.want)
			}
			if g, w := asJSON(t, parts), asJSON(t, c.parts); g != w {
				t.Errorf("parts %s, want %s", g, w)
			}
		})
	}
	t.Run("min_score is 0 by default", func(t *testing.T) {
		standard := DefaultFusion()
		if got, _, err := standard.GeometricScore(both, GeometricChunk{Decay: 0.9}); got != 0 || err != nil {
			t.Errorf("%v (%v), want 0", got, err)
		}
	})
}

func TestGeometricScoreFaults(t *testing.T) {
	u := DefaultFusion()
	both := GeometricQuery{Vector: true, Expanded: true}
	for _, c := range []struct {
		name  string
		query GeometricQuery
		chunk GeometricChunk
		want  error
	}{
		{"neither clause", GeometricQuery{}, GeometricChunk{Decay: 1}, mapmatched.ErrInvalidConfig},
		{"alpha above 1", GeometricQuery{true, true, new(1.5)}, GeometricChunk{Decay: 1}, mapmatched.ErrInvalidConfig},
		{"alpha NaN", GeometricQuery{true, true, new(math.NaN())}, GeometricChunk{Decay: 1}, mapmatched.ErrInvalidConfig},
		{"decay 0", both, GeometricChunk{}, mapmatched.ErrInvalidConfig},
		{"decay above 1", both, GeometricChunk{Decay: 1.5}, mapmatched.ErrInvalidConfig},
		{"similarity NaN", both, GeometricChunk{Similarity: new(math.NaN()), Decay: 1}, mapmatched.ErrNonFinite},
		{"similarity infinite", both, GeometricChunk{Similarity: new(math.Inf(1)), Decay: 1}, mapmatched.ErrNonFinite},
	} {
		if _, _, err := u.GeometricScore(c.query, c.chunk); !errors.Is(err, c.want) {
			t.Errorf("%s: error %v, want %v", c.name, err, c.want)
		}
	}
}

// goldenSimilarity of the chunks that the query of the golden graph reaches.
func goldenSimilarity(id string) (float64, bool) {
	sim, known := map[string]float64{"b": 0.8, "c": 0.81, "d": 0.05, "f": 0.6, "g": 0.64, "h": 0.3, "j": 1, "k": 0.5, "l": 0.25}[id]
	return sim, known
}

// TestGeometricGoldenGraph scores the golden graph from its one primary a,
// cosine 0.9, with α = 0.6. By hand, with goldenReached for the decays, for
// instance g: 0.64^0.6 · 0.81^0.4 = 0.76509… · 0.91916… = 0.70323…; the last
// digits are those of two correctly rounded powers and one rounded product.
func TestGeometricGoldenGraph(t *testing.T) {
	g := mustEdgeList(t, false, goldenEdges()...)
	for _, c := range []struct{ version, want string }{
		{DecayV1, `[["a",0.9],["b",0.7583910658558927],["f",0.7056474135148041],["g",0.7032374523800452],["c",0.6624749229822867],` +
			`["j",0.5253055608807534],["l",0.3468943519009197],["k",0.30049220937458304],["h",0.25508490012515816],["d",0.10801887518911553]]`},
		{DecayExactV1, `[["j",0.9191661188401216],["a",0.9],["b",0.7583910658558927],["f",0.7056474135148041],["g",0.7032374523800452],` +
			`["c",0.6624749229822867],["k",0.5257935160051118],["l",0.3468943519009197],["h",0.25508490012515816],["d",0.10801887518911553]]`},
	} {
		reached := mustExpand(t, g, []string{"a"}, goldenDecay(c.version), nil)
		u := DefaultFusion()
		u.Version = GeometricV1
		primaries := []mapmatched.Candidate{{ChunkID: "a", Score: 0.9, Parts: map[string]float64{"arm": 1}}}
		fused, err := u.FuseExpanded(GeometricQuery{Vector: true, Expanded: true}, primaries, reached, goldenSimilarity, 100)
		if err != nil {
			t.Fatal(err)
		}
		pairs := make([][2]any, len(fused))
		for i, f := range fused {
			pairs[i] = [2]any{f.ChunkID, f.Score}
		}
		if got := asJSON(t, pairs); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.version, got, c.want)
		}
		first := slices.IndexFunc(fused, func(f mapmatched.Candidate) bool { return f.ChunkID == "a" })
		if got, want := asJSON(t, fused[first].Parts), `{"arm":1,"decay":1,"sim":0.9}`; got != want {
			t.Errorf("parts of the primary %s, want %s", got, want)
		}
		if len(primaries[0].Parts) != 1 || primaries[0].Score != 0.9 {
			t.Errorf("the primary given was changed: %v", primaries[0])
		}
	}
}

func TestFuseExpandedCutsInTotalAndOrdersTies(t *testing.T) {
	u := DefaultFusion()
	reached := []Reached{{"z", 1, 0, "z"}, {"b", 0.5, 1, "z"}, {"a", 0.5, 1, "z"}, {"c", 0.25, 2, "z"}}
	primaries := []mapmatched.Candidate{{ChunkID: "z", Score: 1}, {ChunkID: "z", Score: 0.2}}
	for limit, want := range [][]string{{}, {"z"}, {"z", "a"}, {"z", "a", "b"}, {"z", "a", "b", "c"}, {"z", "a", "b", "c"}} {
		fused, err := u.FuseExpanded(GeometricQuery{Expanded: true}, primaries, reached, nil, limit)
		if err != nil {
			t.Fatal(err)
		}
		if got := chunkIDs(fused); !slices.Equal(got, want) {
			t.Errorf("limit %d: %q, want %q", limit, got, want)
		}
	}
	if _, err := u.FuseExpanded(GeometricQuery{Expanded: true}, nil, []Reached{{"bad", 2, 1, "z"}}, nil, 5); err == nil {
		t.Error("a decay of 2 was accepted")
	}
	if _, err := u.FuseExpanded(GeometricQuery{Vector: true}, []mapmatched.Candidate{{ChunkID: "x", Score: math.NaN()}}, nil, nil, 5); !errors.Is(err, mapmatched.ErrNonFinite) {
		t.Errorf("error %v for a primary with score NaN", err)
	}
}

func asJSON(t testing.TB, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func chunkIDs(candidates []mapmatched.Candidate) []string {
	ids := make([]string, len(candidates))
	for i, c := range candidates {
		ids[i] = c.ChunkID
	}
	return ids
}
