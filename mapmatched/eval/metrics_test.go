package eval

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// golds makes golds of grade 1.
func golds(ids ...string) []Gold {
	var list []Gold
	for _, id := range ids {
		list = append(list, Gold{ChunkID: id, Grade: 1})
	}
	return list
}

func near(a, b float64) bool { return math.Abs(a-b) < 1e-9 }

func TestScoreByHand(t *testing.T) {
	const l3, l5, l6 = 1.5849625007211562, 2.321928094887362, 2.584962500721156 // log2 of 3, 5, 6
	for _, c := range []struct {
		name    string
		gold    []Gold
		ranking []string
		want    Scores // ndcg_3, ndcg_5, recall_5, recall_20, hit_1, mrr
	}{
		{"first", golds("a"), []string{"a", "x"}, Scores{1, 1, 1, 1, 1, 1}},
		{"second", golds("a"), []string{"x", "a"}, Scores{1 / l3, 1 / l3, 1, 1, 0, 0.5}},
		{"third", golds("a"), []string{"x", "y", "a"}, Scores{0.5, 0.5, 1, 1, 0, 1. / 3}},
		{"fourth", golds("a"), []string{"x", "y", "z", "a"}, Scores{0, 1 / l5, 1, 1, 0, 0.25}},
		{"sixth", golds("a"), []string{"1", "2", "3", "4", "5", "a"}, Scores{0, 0, 0, 1, 0, 1. / 6}},
		{"nowhere", golds("a"), []string{"x"}, Scores{}},
		{"no ranking", golds("a"), nil, Scores{}},
		{"two of two", golds("a", "b"), []string{"x", "a", "y", "b"},
			Scores{(1 / l3) / (1 + 1/l3), (1/l3 + 1/l5) / (1 + 1/l3), 1, 1, 0, 0.5}},
		{"more golds than ranks", golds("a", "b", "c", "d"), []string{"a", "b", "c", "d"},
			Scores{1, 1, 1, 1, 1, 1}},
		{"one of four", golds("a", "b", "c", "d"), []string{"d"},
			Scores{1 / (1 + 1/l3 + 0.5), 1 / (1 + 1/l3 + 0.5 + 1/l5), 0.25, 0.25, 1, 1}},
		// Gains are linear in the grade: 1 and 3 at ranks 1 and 3, best 3, 1.
		{"grades", []Gold{{"a", 1, nil}, {"b", 3, nil}}, []string{"a", "x", "b"},
			Scores{(1 + 3*0.5) / (3 + 1/l3), (1 + 3*0.5) / (3 + 1/l3), 1, 1, 1, 1}},
		{"six golds", golds("a", "b", "c", "d", "e", "f"), []string{"1", "2", "3", "4", "f"},
			Scores{0, (1 / l6) / (1 + 1/l3 + 0.5 + 1/l5 + 1/l6), 1. / 6, 1. / 6, 0, 0.2}},
		{"equivalent alone", []Gold{{"a", 1, []string{"e"}}}, []string{"e", "x"}, Scores{1, 1, 1, 1, 1, 1}},
		{"equivalent and gold count once", []Gold{{"a", 1, []string{"e"}}}, []string{"e", "a"}, Scores{1, 1, 1, 1, 1, 1}},
		{"the later one keeps its rank", []Gold{{"a", 1, []string{"e"}}, {"b", 1, nil}}, []string{"a", "e", "b"},
			Scores{(1 + 0.5) / (1 + 1/l3), (1 + 0.5) / (1 + 1/l3), 1, 1, 1, 1}},
		{"a gold is no equivalent of another", []Gold{{"a", 1, []string{"b"}}, {"b", 2, nil}}, []string{"b"},
			Scores{2 / (2 + 1/l3), 2 / (2 + 1/l3), 0.5, 0.5, 1, 1}},
	} {
		got := Score(c.gold, c.ranking)
		for k := range got {
			if !near(got[k], c.want[k]) {
				t.Errorf("%s: %s is %v, wanted %v", c.name, Metrics()[k], got[k], c.want[k])
			}
		}
	}
}

// trecEval computes the metrics from what trec_eval's documentation says of
// ndcg_cut, recall, success and recip_rank, on a relevance vector by rank, in a
// way that shares nothing with Score.
func trecEval(grades map[string]int, ranking []string) Scores {
	relevance := func(k int) []float64 {
		list := make([]float64, k)
		for i := range min(k, len(ranking)) {
			list[i] = float64(grades[ranking[i]])
		}
		return list
	}
	ideal := func(k int) []float64 {
		list := make([]float64, 0, k)
		for _, g := range grades {
			list = append(list, float64(g))
		}
		slices.Sort(list)
		slices.Reverse(list)
		return append(list, make([]float64, k)...)[:k]
	}
	dcg := func(list []float64) (sum float64) {
		for i, g := range list {
			sum += g / math.Log2(float64(i)+2)
		}
		return sum
	}
	recall := func(k int) (share float64) {
		for _, g := range relevance(k) {
			if g > 0 {
				share += 1 / float64(len(grades))
			}
		}
		return share
	}
	var reciprocal float64
	for i := len(ranking) - 1; i >= 0; i-- {
		if grades[ranking[i]] > 0 {
			reciprocal = 1 / float64(i+1)
		}
	}
	success := 0.0
	if relevance(1)[0] > 0 {
		success = 1
	}
	return Scores{dcg(relevance(3)) / dcg(ideal(3)), dcg(relevance(5)) / dcg(ideal(5)), recall(5), recall(20), success, reciprocal}
}

func TestScoreIsTrecEval(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	for range 3000 {
		var ranking []string
		for _, i := range random.Perm(40)[:random.IntN(40)] {
			ranking = append(ranking, fmt.Sprint(i))
		}
		grades := map[string]int{}
		var gold []Gold
		for _, i := range random.Perm(40)[:1+random.IntN(8)] {
			id := fmt.Sprint(i)
			grades[id] = 1 + random.IntN(4)
			gold = append(gold, Gold{ChunkID: id, Grade: grades[id]})
		}
		got, want := Score(gold, ranking), trecEval(grades, ranking)
		for k := range got {
			if !near(got[k], want[k]) {
				t.Fatalf("gold %v, ranking %v: %s is %v, wanted %v", grades, ranking, Metrics()[k], got[k], want[k])
			}
		}
	}
}

// Moving a gold up past a chunk that is none never lowers a metric, and a chunk
// that stands for a gold is worth what the gold is.
func TestScoreProperties(t *testing.T) {
	random := rand.New(rand.NewPCG(8, 8))
	for range 2000 {
		ids := random.Perm(30)
		gold := golds(fmt.Sprint(ids[0]), fmt.Sprint(ids[1]), fmt.Sprint(ids[2]))
		var ranking []string
		for _, i := range random.Perm(30) {
			ranking = append(ranking, fmt.Sprint(i))
		}
		before := Score(gold, ranking)
		at := 1 + random.IntN(29)
		isGold := func(id string) bool {
			return slices.ContainsFunc(gold, func(g Gold) bool { return g.ChunkID == id })
		}
		if isGold(ranking[at]) && !isGold(ranking[at-1]) {
			moved := slices.Clone(ranking)
			moved[at], moved[at-1] = moved[at-1], moved[at]
			for k, after := range Score(gold, moved) {
				if after < before[k] {
					t.Fatalf("%s fell from %v to %v when a gold moved up", Metrics()[k], before[k], after)
				}
			}
		}
		alias := slices.Clone(ranking)
		alias[slices.Index(alias, gold[1].ChunkID)] = "alias"
		gold[1].Equivalents = []string{"alias"}
		if got := Score(gold, alias); got != before {
			t.Fatalf("with an equivalent in place of the gold %v, wanted %v", got, before)
		}
	}
}

func ExampleScore() {
	gold := []Gold{{ChunkID: "renewal", Grade: 1}}
	s := Score(gold, []string{"fees", "renewal", "opening-hours"})
	fmt.Printf("nDCG@3 %.3f, hit@1 %.0f, MRR %.2f\n", s.Of(NDCG3), s.Of(Hit1), s.Of(MRR))
	// Output: nDCG@3 0.631, hit@1 0, MRR 0.50
}

func BenchmarkScore(b *testing.B) {
	var ranking []string
	for i := range 100 {
		ranking = append(ranking, fmt.Sprint(i))
	}
	gold := golds("3", "40")
	for b.Loop() {
		Score(gold, ranking)
	}
}
