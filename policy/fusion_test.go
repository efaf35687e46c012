package policy

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/mapmatched/mmplug/mapmatched"
)

// list makes candidates from "id score" pairs.
func list(pairs ...any) []mapmatched.Candidate {
	var out []mapmatched.Candidate
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, mapmatched.Candidate{ChunkID: pairs[i].(string), Score: pairs[i+1].(float64)})
	}
	return out
}

func fusion(version string, arms map[string]FusionArm) Fusion {
	u := DefaultFusion()
	u.Version = version
	if arms != nil {
		u.Arms = arms
	}
	return u
}

func mustFuse(t testing.TB, u Fusion, arms ...ArmList) []mapmatched.Candidate {
	t.Helper()
	fused, err := u.Fuse(arms, math.MaxInt)
	if err != nil {
		t.Fatal(err)
	}
	return fused
}

func TestFuseHybrid(t *testing.T) {
	for _, c := range []struct {
		name           string
		dense, lexical []mapmatched.Candidate
		want           string // id score pairs
	}{
		{"min-max per arm, weighted sum: b is 0.7·0.5 + 0.3·1", list("a", 0.9, "b", 0.7, "c", 0.5), list("b", 12.0, "a", 4.0),
			"a 0.7, b 0.65, c 0"},
		{"a candidate absent from an arm gets 0 from it", list("a", 0.9, "b", 0.5), list("c", 3.0, "a", 1.0),
			"a 0.7, c 0.3, b 0"},
		{"an arm with one candidate gives it 1", list("a", 0.9), list("b", 3.0, "a", 1.0),
			"a 0.7, b 0.3"},
		{"an arm with equal scores gives each 1", list("a", 0.2, "b", 0.2), list("c", 3.0, "d", 1.0),
			"a 0.7, b 0.7, c 0.3, d 0"},
		{"one negative candidate is present all the same", list("a", -4.0), nil, "a 0.7"},
		{"an empty arm adds nothing and its weight is not redistributed", nil, list("c", 3.0, "a", 1.0),
			"c 0.3, a 0"},
		{"all arms empty", nil, nil, ""},
		{"duplicates inside an arm: the best rank is kept", list("a", 0.9, "b", 0.7, "a", 0.1), list("b", 1.0),
			"a 0.7, b 0.3"},
		{"the range of scores may be that of float64", list("a", math.MaxFloat64, "b", 0.0, "c", -math.MaxFloat64), nil,
			"a 0.7, b 0.35, c 0"},
		{"scores may be next to each other", list("a", math.Nextafter(0.5, 1), "b", 0.5), nil, "a 0.7, b 0"},
		{"scores may be subnormal", list("a", math.SmallestNonzeroFloat64, "b", 0.0), nil, "a 0.7, b 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			fused := mustFuse(t, fusion(HybridFusionPreV1, nil), ArmList{ArmDense, c.dense}, ArmList{ArmLexical, c.lexical})
			if got := scoreText(fused); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestFuseRRF(t *testing.T) {
	u := fusion(RRFV1, nil)
	fused := mustFuse(t, u, ArmList{ArmDense, list("a", 0.9, "b", 0.7, "a", 0.1, "c", 0.0)}, ArmList{ArmLexical, list("c", 5.0, "a", 5.0)})
	// Ranks start at 1 and k is 60. The repeated a takes no rank, so c is third.
	dense, lexical := u.Arms[ArmDense].Weight, u.Arms[ArmLexical].Weight
	want := map[string]float64{"a": dense/61 + lexical/62, "b": dense / 62, "c": dense/63 + lexical/61}
	if got := chunkIDs(fused); !slices.Equal(got, []string{"a", "c", "b"}) {
		t.Errorf("order %q", got)
	}
	for _, c := range fused {
		if c.Score != want[c.ChunkID] {
			t.Errorf("%s: %v, want %v", c.ChunkID, c.Score, want[c.ChunkID])
		}
	}
	u.K = 0
	fused = mustFuse(t, u, ArmList{ArmDense, list("a", 0.9, "b", 0.7)})
	if got := scoreText(fused); got != "a 0.7, b 0.35" {
		t.Errorf("k = 0: %s, want the first rank to count twice the second", got)
	}
}

func TestFuseListsAllSourcesInParts(t *testing.T) {
	dense := list("a", 0.9, "b", 0.5)
	dense[0].Parts = map[string]float64{PartSimilarity: 0.9, PartDecay: 1}
	fused := mustFuse(t, fusion(HybridFusionPreV1, nil), ArmList{ArmLexical, list("b", 12.0, "a", 4.0)}, ArmList{ArmDense, dense})
	for i, want := range []string{
		`{"arm_dense":1,"arm_lexical":0,"dense.decay":1,"dense.sim":0.9,"raw_dense":0.9,"raw_lexical":4}`,
		`{"arm_dense":0,"arm_lexical":1,"raw_dense":0.5,"raw_lexical":12}`,
	} {
		if got := asJSON(t, fused[i].Parts); got != want {
			t.Errorf("%s: %s, want %s", fused[i].ChunkID, got, want)
		}
	}
	only := mustFuse(t, fusion(RRFV1, nil), ArmList{ArmLexical, list("b", 12.0)})
	if got, want := asJSON(t, only[0].Parts), fmt.Sprintf(`{"arm_lexical":%v,"raw_lexical":12}`, 1.0/61); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// in puts a candidate into a document.
func in(document string, ordinal any, id string, score float64) mapmatched.Candidate {
	return mapmatched.Candidate{ChunkID: id, Score: score, Metadata: map[string]any{MetadataDocument: document, MetadataOrdinal: ordinal}}
}

func TestFuseOrder(t *testing.T) {
	tied := []mapmatched.Candidate{
		in("p", 10, "z1", 1), in("p", 9, "z2", 1), in("n", 11, "z3", 1), in("p", int64(2), "z4", 1), in("p", 2.5, "z5", 1),
		in("p", 9, "a9", 1), {ChunkID: "zz", Score: 1}, {ChunkID: "none", Score: 1},
	}
	// No parent sorts first, then n, then p by ordinal as a number, then by ID.
	want := []string{"none", "zz", "z3", "z4", "z5", "a9", "z2", "z1"}
	r := rand.New(rand.NewPCG(1, 3))
	for range 20 {
		r.Shuffle(len(tied), func(i, j int) { tied[i], tied[j] = tied[j], tied[i] })
		if got := chunkIDs(mustFuse(t, fusion(HybridFusionPreV1, nil), ArmList{ArmDense, tied})); !slices.Equal(got, want) {
			t.Fatalf("order %q, want %q", got, want)
		}
	}
	fused := mustFuse(t, fusion(HybridFusionPreV1, nil), ArmList{ArmDense, []mapmatched.Candidate{in("a", 0, "x", 2), in("b", 0, "y", 3)}})
	if got := chunkIDs(fused); !slices.Equal(got, []string{"y", "x"}) {
		t.Errorf("order %q: the score comes before the parent", got)
	}
}

func TestFuseTextAndMetadata(t *testing.T) {
	a, b := in("doc", 1, "x", 1), in("other", 2, "x", 1)
	a.Text = ""
	b.Text = "words"
	fused := mustFuse(t, fusion(HybridFusionPreV1, nil), ArmList{ArmLexical, []mapmatched.Candidate{b}}, ArmList{ArmDense, []mapmatched.Candidate{a}})
	if fused[0].Text != "words" || fused[0].Metadata[MetadataDocument] != "doc" {
		t.Errorf("text %q and metadata %v, want those of the first arm that has them", fused[0].Text, fused[0].Metadata)
	}
}

func TestFuseLimit(t *testing.T) {
	arm := ArmList{ArmDense, list("a", 3.0, "b", 2.0, "c", 1.0)}
	u := fusion(HybridFusionPreV1, nil)
	for limit, want := range map[int]int{-1: 0, 0: 0, 1: 1, 3: 3, 9: 3} {
		fused, err := u.Fuse([]ArmList{arm}, limit)
		if err != nil || len(fused) != want {
			t.Errorf("limit %d: %d candidates (%v), want %d", limit, len(fused), err, want)
		}
	}
}

func TestFuseFaults(t *testing.T) {
	two := []ArmList{{ArmDense, list("a", 1.0)}, {ArmLexical, list("a", 1.0)}}
	weights := func(dense, lexical float64) Fusion {
		return fusion(HybridFusionPreV1, map[string]FusionArm{ArmDense: {Weight: dense}, ArmLexical: {Weight: lexical}})
	}
	for _, c := range []struct {
		name string
		u    Fusion
		arms []ArmList
		is   error
		want string
	}{
		{"all weights 0", weights(0, 0), two, mapmatched.ErrInvalidConfig, "fusion.arms is"},
		{"a negative weight", weights(-1, 2), two, mapmatched.ErrInvalidConfig, "fusion.arms.dense.weight is -1"},
		{"weight NaN", weights(math.NaN(), 2), two, mapmatched.ErrInvalidConfig, "fusion.arms.dense.weight is NaN"},
		{"an infinite weight", weights(1, math.Inf(1)), two, mapmatched.ErrInvalidConfig, "fusion.arms.lexical.weight is +Inf"},
		{"an arm without a weight", DefaultFusion(), []ArmList{{"sparse", nil}}, mapmatched.ErrInvalidConfig, `no arm "sparse" in fusion.arms, which has dense, lexical`},
		{"an arm given twice", DefaultFusion(), []ArmList{two[0], two[0]}, mapmatched.ErrInvalidConfig, `arm "dense" is given twice`},
		{"a formula that fuses no arms", fusion(GeometricV1, nil), two, mapmatched.ErrInvalidConfig, "geometric_v1"},
		{"score NaN", DefaultFusion(), []ArmList{{ArmDense, list("x", math.NaN())}}, mapmatched.ErrNonFinite, `arm "dense", chunk "x": score NaN`},
		{"an infinite score", DefaultFusion(), []ArmList{{ArmDense, list("x", math.Inf(-1))}}, mapmatched.ErrNonFinite, `arm "dense", chunk "x": score -Inf`},
		{"no chunk ID", DefaultFusion(), []ArmList{{ArmDense, list("a", 1.0, "", 0.5)}}, mapmatched.ErrEmptyChunkID, `arm "dense", candidate 1`},
		{"a sum out of range", weights(math.MaxFloat64, math.MaxFloat64), two, mapmatched.ErrNonFinite, `chunk "a": fused score +Inf`},
	} {
		t.Run(c.name, func(t *testing.T) {
			fused, err := c.u.Fuse(c.arms, 10)
			if !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.want) || fused != nil {
				t.Errorf("%v and error %v, want one with %q", fused, err, c.want)
			}
		})
	}
}

func TestFuseZeroWeightListsWithoutCounting(t *testing.T) {
	u := fusion(HybridFusionPreV1, map[string]FusionArm{ArmDense: {Weight: 1}, ArmLexical: {Weight: 0}})
	fused := mustFuse(t, u, ArmList{ArmDense, list("a", 2.0, "b", 1.0)}, ArmList{ArmLexical, list("c", 2.0, "b", 1.0)})
	if got := scoreText(fused); got != "a 1, b 0, c 0" {
		t.Errorf("got %s", got)
	}
}

// naiveFuse is the definition, in another shape.
func naiveFuse(u Fusion, arms []ArmList) map[string]float64 {
	total := map[string]float64{}
	sorted := slices.Clone(arms)
	slices.SortFunc(sorted, func(a, b ArmList) int { return strings.Compare(a.Name, b.Name) })
	for _, arm := range sorted {
		var kept []mapmatched.Candidate
		for _, c := range arm.Candidates {
			if !slices.Contains(chunkIDs(kept), c.ChunkID) {
				kept = append(kept, c)
			}
		}
		low, high := math.Inf(1), math.Inf(-1)
		for _, c := range kept {
			low, high = math.Min(low, c.Score), math.Max(high, c.Score)
		}
		for i, c := range kept {
			w := u.Arms[arm.Name].Weight
			switch {
			case u.Version == RRFV1:
				total[c.ChunkID] += w / (u.K + float64(i+1))
			case low == high:
				total[c.ChunkID] += w
			default:
				total[c.ChunkID] += w * ((c.Score - low) / (high - low))
			}
		}
	}
	return total
}

func TestFuseProperties(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 8))
	for range 2000 {
		u := fusion([]string{HybridFusionPreV1, RRFV1}[r.IntN(2)], map[string]FusionArm{"a": {Weight: r.Float64()}, "b": {Weight: r.Float64() * 3}, "c": {Weight: 0.5}})
		var arms []ArmList
		for _, name := range []string{"a", "b", "c"} {
			arm := ArmList{Name: name}
			for range r.IntN(12) {
				arm.Candidates = append(arm.Candidates, mapmatched.Candidate{ChunkID: fmt.Sprintf("c%d", r.IntN(15)), Score: float64(r.IntN(5)) * r.Float64()})
			}
			slices.SortStableFunc(arm.Candidates, func(x, y mapmatched.Candidate) int {
				if x.Score != y.Score {
					return map[bool]int{true: -1, false: 1}[x.Score > y.Score]
				}
				return 0
			})
			arms = append(arms, arm)
		}
		fused := mustFuse(t, u, arms...)
		want := naiveFuse(u, arms)
		if len(fused) != len(want) {
			t.Fatalf("%d candidates, want %d", len(fused), len(want))
		}
		for i, c := range fused {
			if math.Abs(c.Score-want[c.ChunkID]) > 1e-12 {
				t.Fatalf("%s: %v, want %v", c.ChunkID, c.Score, want[c.ChunkID])
			}
			if i > 0 && (c.Score > fused[i-1].Score || c.Score == fused[i-1].Score && c.ChunkID < fused[i-1].ChunkID) {
				t.Fatalf("%v comes after %v", c, fused[i-1])
			}
			if u.Version == HybridFusionPreV1 {
				if most := u.Arms["a"].Weight + u.Arms["b"].Weight + 0.5; c.Score < 0 || c.Score > most+1e-12 {
					t.Fatalf("score %v is not between 0 and the sum of weights %v", c.Score, most)
				}
			}
		}
		// Neither the order of the arms, nor where they were cut, matters.
		shuffled := slices.Clone(arms)
		r.Shuffle(3, func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		limit := r.IntN(len(fused) + 2)
		again, err := u.Fuse(shuffled, limit)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := asJSON(t, again), asJSON(t, fused[:min(limit, len(fused))]); got != want && len(again) > 0 {
			t.Fatalf("in another order:\n got %s\nwant %s", got, want)
		}
	}
}

func TestParentScoreIsItsBestChunk(t *testing.T) {
	got := ParentScores([]mapmatched.Candidate{in("p", 0, "p0", 0.2), in("q", 0, "q0", 0.9), in("p", 1, "p1", 0.9), in("p", 2, "p2", 0.1), {ChunkID: "alone", Score: 0.5}})
	want := []mapmatched.Scored{{ChunkID: "p", Score: 0.9}, {ChunkID: "q", Score: 0.9}, {ChunkID: "alone", Score: 0.5}}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// scoreText spells candidates as "a 0.7, b 0.35", to twelve digits.
func scoreText(candidates []mapmatched.Candidate) string {
	texts := make([]string, len(candidates))
	for i, c := range candidates {
		texts[i] = fmt.Sprintf("%s %.12g", c.ChunkID, c.Score)
	}
	return strings.Join(texts, ", ")
}

// A shorter list is the beginning of a longer one, and Scores are the scores of
// Fuse, whatever the limit.
func TestScoresAreThoseOfFuse(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 150))
	for range 200 {
		arm := func() []mapmatched.Candidate {
			var out []mapmatched.Candidate
			for range r.IntN(60) {
				out = append(out, mapmatched.Candidate{ChunkID: fmt.Sprint(r.IntN(80)), Score: float64(r.IntN(6))})
			}
			return out
		}
		u := fusion([]string{HybridFusionPreV1, RRFV1}[r.IntN(2)], nil)
		arms := []ArmList{{ArmDense, arm()}, {ArmLexical, arm()}}
		all, err := u.Fuse(arms, 1000)
		if err != nil {
			t.Fatal(err)
		}
		limit := r.IntN(len(all) + 2)
		cut, err := u.Fuse(arms, limit)
		if err != nil || asJSON(t, cut) != asJSON(t, all[:min(limit, len(all))]) {
			t.Fatalf("the best %d are %s, want the beginning of %s (%v)", limit, scoreText(cut), scoreText(all), err)
		}
		scores, err := u.Scores(arms, limit)
		if err != nil || len(scores) != len(cut) {
			t.Fatalf("%d scores, want %d (%v)", len(scores), len(cut), err)
		}
		for i, s := range scores {
			if s.ChunkID != cut[i].ChunkID || s.Score != cut[i].Score {
				t.Fatalf("score %d is %+v, want that of %+v", i, s, cut[i])
			}
		}
	}
	unknown := fusion("none", nil)
	if _, err := unknown.Scores(nil, 1); err == nil {
		t.Error("scores by an unknown formula")
	}
}
