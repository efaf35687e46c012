package policy

import (
	"fmt"
	"math"
	"slices"

	"github.com/mapmatched/mmplug/mapmatched"
)

// WeightedTerm is a term of a query with what it counts for: the weight
// multiplies what the term adds to a score. It is finite and ≥ 0.
type WeightedTerm struct {
	Term   string
	Weight float64
}

// Conversation is what context_v1 reads of a conversation.
type Conversation struct {
	Query    string   // words of the turn
	History  []string // queries of the earlier turns, oldest first
	Answer   string   // the assistant's last reply, "" when the caller has none
	Feedback Feedback // the chunk decoded for the turn before
}

// Feedback is what a decoded chunk gives to the next turn.
type Feedback struct {
	Title string   // title of the chunk, "" for none
	Terms []string // its salient terms, spelled as the analyzer spells them, most salient first
}

// ArmTerms are the terms of the arms of a turn, each in ascending order and
// each term once; nil for an arm that is disabled or has none.
type ArmTerms struct {
	Raw, History, Answer, Feedback []WeightedTerm
}

// ContextTerms computes the arms of a turn in their lexical form. A term counts
// as often as a text has it, times:
//
//   - Raw: the weight of the arm, for the terms of the query;
//   - History: the weight of the arm times γ^a, for the terms of the query of a
//     turns ago, the current one being 0 turns ago. A term of several turns
//     counts for the largest of these, not for their sum;
//   - Answer: the weight of the arm, for the terms of the last reply;
//   - Feedback: the weight of the arm, for the terms of the title and the first
//     a.FeedbackTerms of the salient terms, each once.
//
// With only Raw enabled and weight 1 these are the terms of a plain search.
// analyze cuts a text into terms, repeats kept; it must not be nil.
func ContextTerms(a Arms, c Conversation, analyze func(text string) []string) ArmTerms {
	var t ArmTerms
	if a.Raw.Enabled {
		t.Raw = countTerms(analyze(c.Query), a.Raw.Weight)
	}
	if a.History.Enabled {
		t.History = countTerms(analyze(c.Query), a.History.Weight)
		weight := a.History.Weight
		for _, text := range slices.Backward(c.History) {
			if weight *= a.Gamma; weight == 0 {
				break
			}
			t.History = maxTerms(t.History, countTerms(analyze(text), weight))
		}
	}
	if a.Answer.Enabled && c.Answer != "" {
		t.Answer = countTerms(analyze(c.Answer), a.Answer.Weight)
	}
	if a.Feedback.Enabled {
		terms := slices.Concat(analyze(c.Feedback.Title), c.Feedback.Terms[:min(len(c.Feedback.Terms), a.FeedbackTerms)])
		slices.Sort(terms)
		t.Feedback = countTerms(slices.Compact(terms), a.Feedback.Weight)
	}
	return t
}

// Emission is (1−g)·raw + g·context, the score of a candidate behind a gate g
// in [0, 1]. g = 0 is raw and g = 1 is context, bit for bit.
func Emission(raw, context, g float64) float64 {
	switch g {
	case 0:
		return raw
	case 1:
		return context
	}
	return float64((1-g)*raw) + float64(g*context)
}

// HistoryVector is the dense form of the history arm: Σ γ^a·v_a, summed from
// the current query on and scaled to length 1, where v_0 is the current
// query's vector and history has those of the earlier turns, oldest first. A
// nil vector in history is left out. It is an error when dimensions differ, a
// component is not finite, or the sum is 0.
func HistoryVector(current []float32, history [][]float32, gamma float64) ([]float32, error) {
	sum := make([]float64, len(current))
	add := func(v []float32, weight float64, where string) error {
		if len(v) != len(sum) {
			return fmt.Errorf("history vector: %s has dimension %d, the query %d: embed both with one model", where, len(v), len(sum))
		}
		for i, x := range v {
			if !finite(float64(x)) {
				return fmt.Errorf("history vector: component %d of %s is %v: %w", i, where, x, mapmatched.ErrNonFinite)
			}
			sum[i] += float64(weight * float64(x))
		}
		return nil
	}
	if err := add(current, 1, "the query"); err != nil {
		return nil, err
	}
	weight := 1.0
	for turn, v := range slices.Backward(history) {
		weight *= gamma
		if v == nil || weight == 0 {
			continue
		}
		if err := add(v, weight, fmt.Sprintf("turn %d", turn)); err != nil {
			return nil, err
		}
	}
	largest := 0.0
	for _, x := range sum {
		largest = max(largest, math.Abs(x))
	}
	if largest == 0 || !finite(largest) {
		return nil, fmt.Errorf("history vector: the turns sum to a vector of length %v, which has no direction", largest)
	}
	squares := 0.0
	for i := range sum {
		sum[i] /= largest
		squares += float64(sum[i] * sum[i])
	}
	norm := math.Sqrt(squares)
	out := make([]float32, len(sum))
	for i, x := range sum {
		out[i] = float32(x / norm)
	}
	return out, nil
}

// countTerms lists the distinct words in ascending order, each with the number
// of times it occurs times weight.
func countTerms(words []string, weight float64) []WeightedTerm {
	words = slices.Clone(words)
	slices.Sort(words)
	var terms []WeightedTerm
	for i := 0; i < len(words); {
		j := i + 1
		for j < len(words) && words[j] == words[i] {
			j++
		}
		terms = append(terms, WeightedTerm{words[i], float64(j-i) * weight})
		i = j
	}
	return terms
}

// maxTerms merges two lists; a term of both counts for its larger weight.
func maxTerms(a, b []WeightedTerm) []WeightedTerm {
	return mergeTerms(a, b, func(x, y float64) float64 { return max(x, y) })
}

// mergeTerms merges two ascending lists; a term that one lacks has weight 0
// there.
func mergeTerms(a, b []WeightedTerm, weight func(x, y float64) float64) []WeightedTerm {
	var out []WeightedTerm
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(b) == 0 || len(a) > 0 && a[0].Term < b[0].Term:
			out = append(out, WeightedTerm{a[0].Term, weight(a[0].Weight, 0)})
			a = a[1:]
		case len(a) == 0 || b[0].Term < a[0].Term:
			out = append(out, WeightedTerm{b[0].Term, weight(0, b[0].Weight)})
			b = b[1:]
		default:
			out = append(out, WeightedTerm{a[0].Term, weight(a[0].Weight, b[0].Weight)})
			a, b = a[1:], b[1:]
		}
	}
	return out
}
