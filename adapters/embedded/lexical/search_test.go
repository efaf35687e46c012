package lexical

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mapmatched/mmplug/mapmatched"
)

func build(t testing.TB, texts []string) *Index {
	t.Helper()
	return buildUnder(t, DefaultBM25(), texts)
}

func buildUnder(t testing.TB, p BM25, texts []string) *Index {
	t.Helper()
	x, err := Build(t.Context(), p, len(texts), func(i int) string { return texts[i] })
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func search(t testing.TB, x *Index, query string, limit int) []Hit {
	t.Helper()
	hits, err := x.Search(t.Context(), QueryTerms(query), limit)
	if err != nil {
		t.Fatal(err)
	}
	return hits
}

// naive is BM25 as it is written in books: it looks at every word of every text.
func naive(p BM25, texts []string, query string) []float64 {
	docs := make([][]string, len(texts))
	total := 0
	for i, t := range texts {
		docs[i] = Analyze(t)
		total += len(docs[i])
	}
	avgdl := float64(total) / float64(len(texts))
	count := func(words []string, w string) (n float64) {
		for _, x := range words {
			if x == w {
				n++
			}
		}
		return n
	}
	scores := make([]float64, len(texts))
	for _, w := range Analyze(query) { // repeats counted
		n := 0.0
		for _, d := range docs {
			if count(d, w) > 0 {
				n++
			}
		}
		idf := math.Log(1 + (float64(len(docs))-n+0.5)/(n+0.5))
		for i, d := range docs {
			tf := count(d, w)
			if tf > 0 {
				scores[i] += idf * tf * (p.K1 + 1) / (tf + p.K1*(1-p.B+p.B*float64(len(d))/avgdl))
			}
		}
	}
	return scores
}

// corpus makes texts of words w0, w1, …, the low numbers far more often.
func corpus(r *rand.Rand, texts, words, vocabulary int) []string {
	zipf := rand.NewZipf(r, 1.1, 2, uint64(vocabulary-1))
	out := make([]string, texts)
	for i := range out {
		w := make([]string, words/2+r.IntN(words+1))
		for j := range w {
			w[j] = fmt.Sprintf("w%d", zipf.Uint64())
		}
		out[i] = strings.Join(w, " ")
	}
	return out
}

func TestSearchEqualsNaiveBM25(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	under := []BM25{DefaultBM25(), {K1: 2, B: 0}, {K1: 2, B: 1}, {}, {K1: 0.5, B: 0.3}, {K1: MaxK1, B: 0.75}}
	for round := range 600 {
		p := under[round%len(under)]
		texts := corpus(r, 1+r.IntN(40), r.IntN(25), 30)
		query := corpus(r, 1, 6, 33)[0]
		x := buildUnder(t, p, texts)
		scores := naive(p, texts, query)
		var want []Hit
		for i, s := range scores {
			if s > 0 {
				want = append(want, Hit{Position: uint32(i), Score: s})
			}
		}
		got := search(t, x, query, len(texts))
		if len(got) != len(want) {
			t.Fatalf("round %d: %d hits, want %d", round, len(got), len(want))
		}
		for i, h := range got {
			if w := scores[h.Position]; math.Abs(h.Score-w) > 1e-12*max(1, w) {
				t.Fatalf("round %d: chunk %d scores %v, want %v", round, h.Position, h.Score, w)
			}
			if i > 0 && (got[i-1].Score < h.Score || got[i-1].Score == h.Score && got[i-1].Position >= h.Position) {
				t.Fatalf("round %d: hits %v and %v are out of order", round, got[i-1], h)
			}
		}
		// A smaller limit gives a prefix, bit for bit.
		limit := r.IntN(len(texts) + 1)
		if cut := search(t, x, query, limit); !slices.Equal(cut, got[:min(limit, len(got))]) {
			t.Fatalf("round %d: limit %d gives %v, all are %v", round, limit, cut, got)
		}
		if cut := search(t, x, query, 1+round%3); !slices.Equal(cut, got[:min(1+round%3, len(got))]) {
			t.Fatalf("round %d: limit %d gives %v, all are %v", round, 1+round%3, cut, got)
		}
		// The order of the words does not matter, bit for bit.
		words := strings.Fields(query)
		r.Shuffle(len(words), func(i, j int) { words[i], words[j] = words[j], words[i] })
		if other := search(t, x, strings.Join(words, " "), len(texts)); !slices.Equal(other, got) {
			t.Fatalf("round %d: %q and %v differ", round, query, words)
		}
		// Scores of all positions are those of Search, bit for bit.
		positions := make([]uint32, len(texts))
		for i := range positions {
			positions[i] = uint32(len(texts) - 1 - i)
		}
		all, err := x.Scores(t.Context(), QueryTerms(query), positions)
		if err != nil {
			t.Fatal(err)
		}
		found := map[uint32]float64{}
		for _, h := range got {
			found[h.Position] = h.Score
		}
		for i, p := range positions {
			if all[i] != found[p] {
				t.Fatalf("round %d: Scores gives chunk %d %v, Search %v", round, p, all[i], found[p])
			}
		}
	}
}

// Skipping the postings of common terms changes nothing: a search with a limit
// is the beginning of the search without one, bit for bit.
func TestPruningKeepsTheTop(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 11))
	x := build(t, corpus(r, 3000, 30, 2000))
	pruned := 0
	for _, q := range corpus(r, 300, 5, 2000) {
		all := search(t, x, q, 3000)
		for _, limit := range []int{1, 5, 20} {
			if got := search(t, x, q, limit); !slices.Equal(got, all[:min(limit, len(all))]) {
				t.Fatalf("query %q, limit %d: %v, all begin with %v", q, limit, got, all[:min(limit, len(all))])
			}
		}
		// The accumulators of the last search are still in the pool, except
		// where the race detector empties it on purpose.
		acc := x.pool.Get().(*accumulators)
		if n := len(acc.touched); n > 0 && n < len(all) {
			pruned++
		}
		x.pool.Put(acc)
	}
	if pruned == 0 {
		t.Error("no search left any chunk out: the test tests nothing")
	}
}

func TestParametersOfBM25(t *testing.T) {
	const idf = 1.5
	for _, c := range []struct {
		p          BM25
		tf, length int
		want       float64 // of average length 10
	}{
		{BM25{}, 5, 40, idf},                         // repeats and length do not count
		{BM25{K1: 2}, 2, 40, idf * 6 / 4},            // length does not count
		{BM25{K1: 2, B: 1}, 2, 20, idf * 6 / 6},      // twice the length, twice k1
		{BM25{K1: 2, B: 0.5}, 2, 20, idf * 6 / 5},    // half of that
		{DefaultBM25(), 1, 10, idf},                  // one in a chunk of average length
		{BM25{K1: MaxK1, B: 0}, 3, 7, idf * 2.99999}, // nearly the number itself
	} {
		if got := c.p.Impact(idf, c.tf, c.length, 10); math.Abs(got-c.want) > 1e-5 {
			t.Errorf("%+v: a chunk of %d with %d gets %v, want %v", c.p, c.length, c.tf, got, c.want)
		}
	}
	for _, c := range []struct {
		p    BM25
		want string
	}{
		{BM25{K1: -1}, "k1 of BM25 is -1"}, {BM25{K1: math.NaN()}, "k1 of BM25 is NaN"}, {BM25{K1: 2 * MaxK1}, "between 0 and 1000000"},
		{BM25{B: -0.5}, "b of BM25 is -0.5"}, {BM25{B: 1.5}, "b of BM25 is 1.5"}, {BM25{B: math.NaN()}, "b of BM25 is NaN"},
	} {
		if _, err := Build(t.Context(), c.p, 0, nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: error %v, want one with %q", c.p, err, c.want)
		}
	}
}

func TestHandComputedScore(t *testing.T) {
	x := build(t, []string{"road road map", "map", "noise"})
	// N = 3, avgdl = 5/3. "road": n = 1, tf 2 in a chunk of 3 tokens.
	idf := math.Log(1 + 2.5/1.5)
	want := idf * 2 * 2.2 / (2 + 1.2*(0.25+0.75*3/(5.0/3)))
	hits := search(t, x, "road", 10)
	if len(hits) != 1 || hits[0].Position != 0 || math.Abs(hits[0].Score-want) > 1e-15 {
		t.Errorf("got %v, want chunk 0 with %v", hits, want)
	}
	if got, known := x.IDF("road"); !known || math.Abs(got-idf) > 1e-15 {
		t.Errorf("IDF(road) = %v, %v, want %v", got, known, idf)
	}
	if got, known := x.IDF("absent"); known || got != 0 {
		t.Errorf("IDF(absent) = %v, %v", got, known)
	}
	if df, err := x.DocumentFrequency("map"); df != 2 || err != nil {
		t.Errorf("DocumentFrequency(map) = %d, %v", df, err)
	}
}

func TestCJK(t *testing.T) {
	x := build(t, []string{"我离开故乡已经二十年了。", "今天天气很好。", "English text about a home town."})
	if hits := search(t, x, "故乡", 10); len(hits) != 1 || hits[0].Position != 0 {
		t.Errorf("故乡 finds %v, want chunk 0", hits)
	}
	for _, foreign := range []string{"безопасность", "東京", "unrelated"} {
		if hits := search(t, x, foreign, 10); len(hits) != 0 {
			t.Errorf("%s finds %v", foreign, hits)
		}
	}
}

func TestNothingToFind(t *testing.T) {
	for _, texts := range [][]string{nil, {""}, {"", "the of"}, {"alpha"}} {
		x := build(t, texts)
		for _, query := range []string{"", "the", "…", "zzz"} {
			if hits := search(t, x, query, 10); len(hits) != 0 {
				t.Errorf("%q in %q finds %v", query, texts, hits)
			}
		}
		if hits := search(t, x, "alpha", 0); len(hits) != 0 {
			t.Errorf("limit 0 finds %v", hits)
		}
		if hits := search(t, x, "alpha", -1); len(hits) != 0 {
			t.Errorf("limit -1 finds %v", hits)
		}
	}
}

func TestWeights(t *testing.T) {
	x := build(t, []string{"alpha beta", "beta", "alpha"})
	terms := func(w ...WeightedTerm) []Hit {
		t.Helper()
		hits, err := x.Search(t.Context(), w, 10)
		if err != nil {
			t.Fatal(err)
		}
		return hits
	}
	one, half := terms(WeightedTerm{"alpha", 1}), terms(WeightedTerm{"alpha", 0.5})
	for i := range one {
		if half[i].Score != one[i].Score/2 || half[i].Position != one[i].Position {
			t.Errorf("weight 0.5 gives %v, weight 1 %v", half[i], one[i])
		}
	}
	if got := terms(WeightedTerm{"alpha", 1}, WeightedTerm{"beta", 0}); !slices.Equal(got, one) {
		t.Errorf("a term of weight 0 changes %v to %v", one, got)
	}
	if got := terms(WeightedTerm{"alpha", 0.5}, WeightedTerm{"alpha", 0.5}); !slices.Equal(got, one) {
		t.Errorf("a term in two halves changes %v to %v", one, got)
	}
	if got, want := terms(QueryTerms("alpha alpha")...), terms(WeightedTerm{"alpha", 2}); !slices.Equal(got, want) {
		t.Errorf("a repeated word gives %v, weight 2 %v", got, want)
	}
	for _, c := range []struct {
		weight float64
		want   error
	}{
		{math.NaN(), mapmatched.ErrNonFinite}, {math.Inf(1), mapmatched.ErrNonFinite},
		{-1, mapmatched.ErrInvalidConfig}, {math.MaxFloat64, mapmatched.ErrNonFinite},
	} {
		given := []WeightedTerm{{"alpha", c.weight}, {"alpha", c.weight}}
		if _, err := x.Search(t.Context(), given, 10); !errors.Is(err, c.want) {
			t.Errorf("Search with weight %v: %v, want %v", c.weight, err, c.want)
		}
		if _, err := x.Scores(t.Context(), given, []uint32{0}); !errors.Is(err, c.want) {
			t.Errorf("Scores with weight %v: %v, want %v", c.weight, err, c.want)
		}
	}
}

func TestSearchStopsWithContext(t *testing.T) {
	x := build(t, []string{"alpha"})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := x.Search(ctx, QueryTerms("alpha"), 1); !errors.Is(err, context.Canceled) {
		t.Errorf("Search: %v", err)
	}
	if _, err := x.Scores(ctx, QueryTerms("alpha"), []uint32{0}); !errors.Is(err, context.Canceled) {
		t.Errorf("Scores: %v", err)
	}
	if _, err := Build(ctx, DefaultBM25(), 1, func(int) string { return "" }); !errors.Is(err, context.Canceled) {
		t.Errorf("Build: %v", err)
	}
}

// Searches at the same time use different accumulators.
func TestConcurrentSearches(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	x := build(t, corpus(r, 200, 20, 50))
	queries := corpus(r, 8, 5, 50)
	want := make([][]Hit, len(queries))
	for i, q := range queries {
		want[i] = search(t, x, q, 20)
	}
	var wg sync.WaitGroup
	for i, q := range queries {
		wg.Go(func() {
			for range 50 {
				got, err := x.Search(t.Context(), QueryTerms(q), 20)
				if err != nil || !slices.Equal(got, want[i]) {
					t.Errorf("query %q: %v, %v, alone it is %v", q, got, err, want[i])
					return
				}
			}
		})
	}
	wg.Wait()
}

// When the stamp wraps round, sums of old searches do not come back.
func TestStampWraps(t *testing.T) {
	a := &accumulators{sums: make([]accumulator, 2), stamp: math.MaxUint32 - 1}
	l := list{WeightedTerm: WeightedTerm{"x", 1}, postings: postings{chunks: []uint32{1}, impacts: []float64{3}}}
	for range 3 {
		a.begin()
		if err := a.add(t.Context(), l, true); err != nil {
			t.Fatal(err)
		}
		if a.sums[1].sum != 3 || !slices.Equal(a.touched, []uint32{1}) {
			t.Fatalf("stamp %d: sum %v, touched %v", a.stamp, a.sums[1].sum, a.touched)
		}
	}
}

func TestDamagedArrays(t *testing.T) {
	good := build(t, []string{"alpha beta", "beta"}).Arrays()
	for _, c := range []struct {
		name   string
		damage func(*Arrays)
	}{
		{"negative chunks", func(a *Arrays) { a.Chunks = -1 }},
		{"half a dictionary entry", func(a *Arrays) { a.Dictionary = a.Dictionary[:4] }},
		{"fewer impacts than postings", func(a *Arrays) { a.Impacts = a.Impacts[:1] }},
		{"term beyond the terms", func(a *Arrays) { a.Dictionary[0], a.Dictionary[3] = 1<<40, 1<<41 }},
		{"term ends before it begins", func(a *Arrays) { a.Dictionary[3] = 1 }},
		{"postings beyond the file", func(a *Arrays) { a.Dictionary[1], a.Dictionary[4] = 1<<40, 1<<41 }},
		{"chunk beyond the corpus", func(a *Arrays) { a.Postings[0], a.Postings[1], a.Postings[2] = 9, 9, 9 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := good
			a.Dictionary = slices.Clone(a.Dictionary)
			a.Postings = slices.Clone(a.Postings)
			c.damage(&a)
			x, err := New(a)
			if err == nil {
				_, err = x.Search(t.Context(), QueryTerms("alpha beta"), 5)
			}
			if !errors.Is(err, ErrDamaged) {
				t.Errorf("got %v, want ErrDamaged", err)
			}
		})
	}
}

// Whatever the arrays hold, a search returns or fails; it never panics.
func FuzzArrays(f *testing.F) {
	f.Add(2, []byte("alphabeta"), uint64(5), uint64(1), uint64(9), uint64(3), uint32(0), uint32(1), 1.0, 3.0)
	f.Add(1, []byte(""), uint64(1<<63), uint64(0), uint64(0), uint64(1<<63), uint32(7), uint32(7), math.NaN(), -1.0)
	f.Fuzz(func(t *testing.T, chunks int, terms []byte, e0, p0, e1, p1 uint64, c0, c1 uint32, m0, m1 float64) {
		x, err := New(Arrays{
			Chunks: chunks % 100, Terms: terms, Dictionary: []uint64{e0, p0, math.Float64bits(m0), e1, p1, math.Float64bits(m1)},
			Postings: []uint32{c0, c1, c0}, Impacts: []float64{1, 2, 3},
		})
		if err != nil {
			return
		}
		query := []WeightedTerm{{"alpha", 1}, {"beta", 1}, {string(terms), 1}}
		hits, err := x.Search(t.Context(), query, 3)
		if err != nil && !errors.Is(err, ErrDamaged) {
			t.Fatal(err)
		}
		for _, h := range hits {
			if int(h.Position) >= chunks%100 {
				t.Fatalf("hit %v in %d chunks", h, chunks%100)
			}
		}
		_, _ = x.Scores(t.Context(), query, []uint32{c0, c1}) // must not panic
		x.IDF("alpha")
	})
}

func ExampleIndex_Search() {
	texts := []string{
		"A map matcher snaps a noisy track to roads.",
		"Roads are edges of a graph.",
		"The weather is nice.",
	}
	x, err := Build(context.Background(), DefaultBM25(), len(texts), func(i int) string { return texts[i] })
	if err != nil {
		fmt.Println(err)
		return
	}
	hits, err := x.Search(context.Background(), QueryTerms("roads of the graph"), 10)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, h := range hits {
		fmt.Printf("%.4f %s\n", h.Score, texts[h.Position])
	}
	// Output:
	// 1.5674 Roads are edges of a graph.
	// 0.3729 A map matcher snaps a noisy track to roads.
}

func BenchmarkSearch(b *testing.B) {
	for _, c := range []struct{ chunks, limit int }{{10_000, 20}, {50_000, 20}} {
		r := rand.New(rand.NewPCG(1, 1))
		x := build(b, corpus(r, c.chunks, 80, 30_000))
		queries := corpus(r, 64, 6, 30_000)
		terms := make([][]WeightedTerm, len(queries))
		for i, q := range queries {
			terms[i] = QueryTerms(q)
		}
		b.Run(fmt.Sprintf("chunks=%d/limit=%d", c.chunks, c.limit), func(b *testing.B) {
			b.ReportAllocs()
			postings, i := 0, 0
			for b.Loop() {
				if _, err := x.Search(b.Context(), terms[i%len(terms)], c.limit); err != nil {
					b.Fatal(err)
				}
				i++
			}
			for _, q := range terms {
				for _, t := range q {
					df, err := x.DocumentFrequency(t.Term)
					if err != nil {
						b.Fatal(err)
					}
					postings += df
				}
			}
			b.ReportMetric(float64(postings)/float64(len(terms)), "postings/op")
		})
	}
}

func BenchmarkAnalyze(b *testing.B) {
	text := strings.Repeat("The decoder finds the most plausible path of chunks through all turns. ", 100)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		Analyze(text)
	}
}
