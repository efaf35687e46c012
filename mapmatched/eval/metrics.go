package eval

import (
	"math"
	"slices"

	"github.com/mapmatched/mmplug/mapmatched"
)

// Metric is a measure of a ranking, in [0, 1].
type Metric string

// The metrics, as trec_eval defines them:
//
//   - NDCG3 and NDCG5 (ndcg_cut): Σ grade/log2(rank + 1) over the first 3 or 5
//     ranks, divided by the same of the best order of all golds;
//   - Recall5 and Recall20 (recall): the share of the golds that are in the
//     first 5 or 20;
//   - Hit1 (success_1): whether the first is a gold;
//   - MRR (recip_rank): 1/rank of the first gold, 0 when there is none.
//
// A chunk that is equivalent to a gold counts as that gold, with its grade. Each
// gold counts once, at the first chunk that counts as it; a later one keeps its
// rank and gains nothing. So the best order has as many hits as there are golds,
// and no ranking is better than it.
const (
	NDCG3    Metric = "ndcg_3"
	NDCG5    Metric = "ndcg_5"
	Recall5  Metric = "recall_5"
	Recall20 Metric = "recall_20"
	Hit1     Metric = "hit_1"
	MRR      Metric = "mrr"
)

// Metrics lists the metrics in the order of reports.
func Metrics() []Metric { return []Metric{NDCG3, NDCG5, Recall5, Recall20, Hit1, MRR} }

// Scores are the metrics of a turn, in the order of Metrics.
type Scores [6]float64

// Of returns one of them. It panics when there is no such metric.
func (s *Scores) Of(m Metric) float64 { return s[slices.Index(Metrics(), m)] }

// Score measures a ranking of chunk IDs, best first, by the golds of a turn,
// of which there is at least one.
func Score(gold []Gold, ranking []string) Scores {
	own := make(map[string]int, len(gold)) // index of the gold that a chunk counts as
	for i, g := range gold {
		own[g.ChunkID] = i
	}
	for i, g := range gold {
		for _, id := range g.Equivalents {
			if _, taken := own[id]; !taken {
				own[id] = i
			}
		}
	}
	counted := make([]bool, len(gold))
	var gain3, gain5, found5, found20, first float64
	for i, id := range ranking {
		g, relevant := own[id]
		if !relevant || counted[g] {
			continue
		}
		counted[g] = true
		rank := i + 1
		gain := float64(gold[g].Grade) / discount(rank)
		if rank <= 3 {
			gain3 += gain
		}
		if rank <= 5 {
			gain5 += gain
			found5++
		}
		if rank <= 20 {
			found20++
		}
		if first == 0 {
			first = 1 / float64(rank)
		}
	}
	hit := 0.0
	if first == 1 {
		hit = 1
	}
	n := float64(len(gold))
	return Scores{gain3 / bestGain(gold, 3), gain5 / bestGain(gold, 5), found5 / n, found20 / n, hit, first}
}

// discount of a rank, from 1.
func discount(rank int) float64 {
	if rank <= len(discounts) {
		return discounts[rank-1]
	}
	return mapmatched.Log(float64(rank+1)) / math.Ln2
}

// discounts are those of the first ranks: log2(rank + 1), exact where it is a
// whole number.
var discounts = [7]float64{1, log2(3), 2, log2(5), log2(6), log2(7), 3}

func log2(x float64) float64 { return mapmatched.Log(x) / math.Ln2 }

// bestGain is the gain of the golds in the best order, cut at a rank.
func bestGain(gold []Gold, cut int) float64 {
	grades := make([]int, len(gold))
	for i, g := range gold {
		grades[i] = g.Grade
	}
	slices.SortFunc(grades, func(a, b int) int { return b - a })
	sum := 0.0
	for i, grade := range grades[:min(cut, len(grades))] {
		sum += float64(grade) / discount(i+1)
	}
	return sum
}
