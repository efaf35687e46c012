package rerank

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/mapmatched/mmplug/mapmatched"
)

// stored is a store of vectors.
type stored map[string][]float32

func (s stored) Vectors(_ context.Context, ids []string) ([][]float32, error) {
	if s == nil {
		return nil, errBroken
	}
	vectors := make([][]float32, 0, len(ids))
	for _, id := range ids {
		if v, known := s[id]; known || id != "lost" {
			vectors = append(vectors, v)
		}
	}
	return vectors, nil
}

var errBroken = errors.New("broken")

func TestMMR(t *testing.T) {
	// Against the question {red: 1, blue: 1}, of length √2:
	//   a {red, blue}: cos 1
	//   b {red, blue}: cos 1, and 1 to a
	//   c {red}: 1/√2 to the question, a and b
	//   d {green}: 0 to all
	candidates := texts("red blue", "blue red", "red", "green")
	half := math.Sqrt(0.5)
	for _, c := range []struct {
		lambda *float64
		want   []mapmatched.Scored
	}{
		{new(1.0), []mapmatched.Scored{{ChunkID: "a", Score: 1}, {ChunkID: "b", Score: 1}, {ChunkID: "c", Score: half}, {ChunkID: "d"}}},
		{new(0.0), []mapmatched.Scored{{ChunkID: "a"}, {ChunkID: "d"}, {ChunkID: "c", Score: -half}, {ChunkID: "b", Score: -1}}},
		{new(0.5), []mapmatched.Scored{{ChunkID: "a", Score: 0.5}, {ChunkID: "b"}, {ChunkID: "c"}, {ChunkID: "d"}}},
		{nil, []mapmatched.Scored{{ChunkID: "a", Score: 0.7}, {ChunkID: "b", Score: 0.7 - 0.3}, {ChunkID: "c", Score: 0.7*half - 0.3*half}, {ChunkID: "d"}}},
		{new(0.25), []mapmatched.Scored{{ChunkID: "a", Score: 0.25}, {ChunkID: "d"}, {ChunkID: "c", Score: -0.5 * half}, {ChunkID: "b", Score: -0.5}}},
	} {
		got, err := MMR{Lambda: c.lambda}.Rerank(t.Context(), mapmatched.Query{Text: "red blue"}, candidates)
		if err != nil || !near(got, c.want) {
			t.Errorf("λ %v: %v, error %v, want %v", c.lambda, got, err, c.want)
		}
	}
}

func near(got, want []mapmatched.Scored) bool {
	return slices.EqualFunc(got, want, func(a, b mapmatched.Scored) bool {
		return a.ChunkID == b.ChunkID && math.Abs(a.Score-b.Score) <= 1e-15
	})
}

func TestMMRByVectors(t *testing.T) {
	// cos to the query (1, 0): a 1, b 0.8, c −1; a–b 0.8, a–c −1, b–c −0.8.
	vectors := stored{"a": {2, 0}, "b": {4, 3}, "c": {-1, 0}}
	candidates := texts("x", "x", "x")
	q := mapmatched.Query{Text: "x", Vector: []float32{1, 0}}
	got, err := MMR{Lambda: new(0.5), Vectors: vectors}.Rerank(t.Context(), q, candidates)
	// After a: b 0.4 − 0.4 = 0; c −0.5 + 0.5 = 0, behind b. After b, the
	// greater of −1 and −0.8: c −0.5 + 0.4.
	want := []mapmatched.Scored{{ChunkID: "a", Score: 0.5}, {ChunkID: "b"}, {ChunkID: "c", Score: -0.1}}
	if err != nil || !near(got, want) {
		t.Errorf("%v, error %v, want %v", got, err, want)
	}

	byTerms, err := MMR{}.Rerank(t.Context(), q, candidates)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		m    MMR
		q    mapmatched.Query
	}{
		{"a chunk without vector", MMR{Vectors: stored{"a": {2, 0}, "b": {4, 3}}}, q},
		{"a query without vector", MMR{Vectors: vectors}, mapmatched.Query{Text: "x"}},
	} {
		if got, err := c.m.Rerank(t.Context(), c.q, candidates); err != nil || !slices.Equal(got, byTerms) {
			t.Errorf("%s: %v, error %v, want %v", c.name, got, err, byTerms)
		}
	}
	for _, c := range []struct {
		name, want string
		vectors    stored
		candidates []mapmatched.Candidate
	}{
		{"dimension", `chunk "b" has 1 dimensions, that of the query 2`, stored{"a": {2, 0}, "b": {4}, "c": {1, 0}}, candidates},
		{"infinite", `chunk "c": value is not finite`, stored{"a": {2, 0}, "b": {4, 3}, "c": {float32(math.Inf(1)), 0}}, candidates},
		{"too few", "0 vectors for 1 chunks", stored{}, []mapmatched.Candidate{{ChunkID: "lost"}}},
	} {
		if _, err := (MMR{Vectors: c.vectors}).Rerank(t.Context(), q, c.candidates); err == nil || !strings.Contains(err.Error(), c.want) || mapmatched.KindOf(err) != mapmatched.KindInvalid {
			t.Errorf("%s: error %v of kind %q, want %q", c.name, err, mapmatched.KindOf(err), c.want)
		}
	}
	if _, err := (MMR{Vectors: stored(nil)}).Rerank(t.Context(), q, candidates); !errors.Is(err, errBroken) {
		t.Errorf("error %v, want the store's own", err)
	}
}

// randomTexts are candidates of few different words, so that there are ties.
func randomTexts(r *rand.Rand, n int) []mapmatched.Candidate {
	words := []string{"red", "blue", "green", "sea", "sky", "故乡"}
	list := make([]string, n)
	for i := range list {
		for range r.IntN(5) {
			list[i] += words[r.IntN(len(words))] + " "
		}
	}
	c := texts(list...)
	for i := range c {
		c[i].ChunkID = fmt.Sprint("chunk ", i)
	}
	return c
}

// Sorting by score, equal scores in the order given, is the order of
// selection, and each selection is the best there was by the definition.
func TestMMRSelection(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for round := range 300 {
		candidates := randomTexts(r, 1+r.IntN(12))
		query := randomTexts(r, 1)[0].Text
		lambda := float64(r.IntN(5)) / 4
		got, err := MMR{Lambda: &lambda}.Rerank(t.Context(), mapmatched.Query{Text: query}, candidates)
		if err != nil {
			t.Fatal(err)
		}
		position := map[string]int{}
		for i := range candidates {
			position[candidates[i].ChunkID] = i
		}
		for i := 1; i < len(got); i++ {
			if got[i].Score > got[i-1].Score {
				t.Fatalf("round %d: score rises at %d: %v", round, i, got)
			}
			if got[i].Score == got[i-1].Score && position[got[i].ChunkID] < position[got[i-1].ChunkID] {
				t.Fatalf("round %d: a tie at %d is not in the order given: %v", round, i, got)
			}
		}
		axis := map[string]int{}
		sim := func(a, b string) float64 { return cosine(countTerms(a, axis), countTerms(b, axis)) }
		value := func(c *mapmatched.Candidate, selected []mapmatched.Scored) float64 {
			most := 0.0
			for i, s := range selected {
				if v := sim(c.Text, candidates[position[s.ChunkID]].Text); i == 0 || v > most {
					most = v
				}
			}
			return lambda*sim(query, c.Text) - (1-lambda)*most
		}
		for i, s := range got {
			if want := value(&candidates[position[s.ChunkID]], got[:i]); math.Abs(s.Score-want) > 1e-15 {
				t.Fatalf("round %d: %s scores %v, by the definition %v", round, s.ChunkID, s.Score, want)
			}
			for _, later := range got[i+1:] {
				if v := value(&candidates[position[later.ChunkID]], got[:i]); v > s.Score+1e-15 {
					t.Fatalf("round %d: %s was selected at %d with %v, %s has %v", round, s.ChunkID, i, s.Score, later.ChunkID, v)
				}
			}
		}
	}
}

func ExampleMMR() {
	scored, err := MMR{Lambda: new(0.5)}.Rerank(context.Background(), mapmatched.Query{Text: "renew a token"}, []mapmatched.Candidate{
		{ChunkID: "a", Score: 3, Text: "Renew the token."},
		{ChunkID: "copy of a", Score: 2, Text: "Renew the token!"},
		{ChunkID: "b", Score: 1, Text: "A token, once expired, needs a new login."},
	})
	if err != nil {
		fmt.Println(err)
	}
	for _, s := range scored {
		fmt.Printf("%s %.3f\n", s.ChunkID, s.Score)
	}
	// Output:
	// a 0.500
	// copy of a 0.000
	// b 0.000
}

func BenchmarkRerank(b *testing.B) {
	r := rand.New(rand.NewPCG(3, 4))
	candidates := make([]mapmatched.Candidate, 100)
	for i := range candidates {
		var text strings.Builder
		for text.Len() < 1<<10 {
			fmt.Fprintf(&text, "word%d ", r.IntN(2000))
		}
		candidates[i] = mapmatched.Candidate{ChunkID: fmt.Sprint(i), Text: text.String()}
	}
	q := mapmatched.Query{Text: candidates[0].Text[:60]}
	for _, reranker := range []mapmatched.Reranker{Overlap{}, MMR{}} {
		b.Run(fmt.Sprintf("%T/candidates=100", reranker), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := reranker.Rerank(b.Context(), q, candidates); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
