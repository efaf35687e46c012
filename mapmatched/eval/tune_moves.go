package eval

import (
	"context"
	"math"
	"slices"

	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/policy"
)

// moveCounts is how often each move was made, and how often it would have been
// made had the next chunk been drawn evenly from its candidates.
type moveCounts struct {
	made, even [moves]float64
}

func (n *moveCounts) add(other *moveCounts) {
	for m := range n.made {
		n.made[m] += other.made[m]
		n.even[m] += other.even[m]
	}
}

// pseudoCount of each move, so that one that was never seen is dear, not
// impossible.
const pseudoCount = 1

// shareParts is what shares are whole numbers of.
const shareParts = 1_000_000

// shares turns counts into the tables p and q of a policy (spec of
// transition_v1), rounded to six decimals. What rounding leaves goes to the
// largest share, so that each table sums to 1.
func (n *moveCounts) shares() (p, q map[string]float64) {
	return shares(n.made), shares(n.even)
}

func shares(counts [moves]float64) map[string]float64 {
	total := 0.0
	for _, c := range counts {
		total += c + pseudoCount
	}
	table := map[string]float64{}
	rest, largest := shareParts, 0
	for m, c := range counts {
		parts := max(1, int(math.Round(shareParts*(c+pseudoCount)/total)))
		table[string(tuneMoves[m])] = float64(parts) / shareParts
		rest -= parts
		if c > counts[largest] {
			largest = m
		}
	}
	key := string(tuneMoves[largest])
	table[key] = math.Round(shareParts*table[key]+float64(rest)) / shareParts
	return table
}

// labelledMoves counts the moves from gold to gold. Where a turn has several, a
// pair of golds counts its share. The even draw is from the candidates that a
// model finds.
func labelledMoves(ctx context.Context, tr *track, m *tuneModel) (*moveCounts, error) {
	n := &moveCounts{}
	var before []int32
	err := m.decode(ctx, tr, func(turn int, _ []int32, c *column) {
		var now []int32
		for _, g := range tr.turns[turn].gold {
			if !slices.ContainsFunc(now, func(at int32) bool { return at == g.at }) {
				now = append(now, g.at)
			}
		}
		if len(now) == 0 {
			return
		}
		for _, from := range before {
			for _, to := range now {
				n.made[tr.space.move(from, to)] += 1 / float64(len(before)*len(now))
			}
			if c != nil {
				for _, to := range c.at {
					n.even[tr.space.move(from, to)] += 1 / float64(len(before)*len(c.at))
				}
			}
		}
		before = now
	})
	return n, err
}

// expectedMoves counts the moves that a conversation is expected to have made
// under a model, by the marginals of pairs of the forward–backward algorithm
// (Rabiner 1989), and returns the log of its evidence: the E step of
// expectation–maximisation without labels.
func expectedMoves(ctx context.Context, tr *track, m *tuneModel) (*moveCounts, float64, error) {
	var columns []column
	err := m.decode(ctx, tr, func(_ int, _ []int32, c *column) {
		if c != nil {
			columns = append(columns, column{slices.Clone(c.at), slices.Clone(c.emission), nil, c.scale, slices.Clone(c.cost)})
		}
	})
	if err != nil || len(columns) == 0 {
		return &moveCounts{}, 0, err
	}
	beta := m.p.Decode.TransitionWeight
	n := &moveCounts{}
	// score of going from candidate i of the column before to candidate j of t
	step := func(t, i, j int) float64 {
		c := &columns[t]
		return c.emission[j] - beta*(c.scale*m.cost[tr.space.move(columns[t-1].at[i], c.at[j])]+c.cost[i])
	}
	columns[0].forward = columns[0].emission
	for t := 1; t < len(columns); t++ {
		c := &columns[t]
		terms := make([]float64, len(columns[t-1].at))
		for j := range c.at {
			for i := range terms {
				terms[i] = columns[t-1].forward[i] + step(t, i, j)
			}
			c.forward = append(c.forward, logSumExp(terms))
		}
	}
	evidence := logSumExp(columns[len(columns)-1].forward)
	backward := make([]float64, len(columns[len(columns)-1].at))
	for t := len(columns) - 1; t > 0; t-- {
		c, earlier := &columns[t], make([]float64, len(columns[t-1].at))
		terms := make([]float64, len(c.at))
		for i, from := range columns[t-1].at {
			marginal := 0.0
			for j, to := range c.at {
				terms[j] = step(t, i, j) + backward[j]
				pair := mapmatched.Exp(columns[t-1].forward[i] + terms[j] - evidence)
				n.made[tr.space.move(from, to)] += pair
				marginal += pair
			}
			for _, to := range c.at {
				n.even[tr.space.move(from, to)] += marginal / float64(len(c.at))
			}
			earlier[i] = logSumExp(terms)
		}
		backward = earlier
	}
	return n, evidence, nil
}

// logSumExp is log Σ exp(x).
func logSumExp(x []float64) float64 {
	highest := slices.Max(x)
	sum := 0.0
	for _, v := range x {
		sum += mapmatched.Exp(v - highest)
	}
	return highest + mapmatched.Log(sum)
}

// EMStep is a step of expectation–maximisation.
type EMStep struct {
	Evidence float64            `json:"evidence"` // log evidence of a turn, mean
	P        map[string]float64 `json:"p"`
	Q        map[string]float64 `json:"q"`
}

// The end of expectation–maximisation: when no share moves by more, or after so
// many steps.
const (
	emTolerance = 5e-4
	emSteps     = 30
)

// learnMoves finds transition.p and transition.q without labels, from those of
// the policy on.
func learnMoves(ctx context.Context, tracks []track, p *policy.Policy, gammas []float64, workers int) (*policy.Policy, []EMStep, error) {
	var steps []EMStep
	for range emSteps {
		counts, evidences := make([]*moveCounts, len(tracks)), make([]float64, len(tracks))
		err := forEach(ctx, len(tracks), workers, func(ctx context.Context, i int) error {
			model, err := newTuneModel(p, gammas)
			if err == nil {
				counts[i], evidences[i], err = expectedMoves(ctx, &tracks[i], model)
			}
			return err
		}, nil)
		if err != nil {
			return nil, nil, err
		}
		total, evidence, turns := &moveCounts{}, 0.0, 0
		for i := range counts {
			total.add(counts[i])
			evidence += evidences[i]
			turns += len(tracks[i].turns)
		}
		next := *p
		next.Transition.P, next.Transition.Q = total.shares()
		steps = append(steps, EMStep{round(evidence / float64(max(turns, 1))), next.Transition.P, next.Transition.Q})
		moved := 0.0
		for _, m := range tuneMoves {
			moved = max(moved, math.Abs(next.Transition.P[string(m)]-p.Transition.P[string(m)]), math.Abs(next.Transition.Q[string(m)]-p.Transition.Q[string(m)]))
		}
		p = &next
		if moved <= emTolerance {
			break
		}
	}
	return p, steps, nil
}

// countMoves counts the moves from gold to gold of conversations.
func countMoves(ctx context.Context, tracks []track, p *policy.Policy, gammas []float64, workers int) (*MoveTable, error) {
	counts := make([]*moveCounts, len(tracks))
	err := forEach(ctx, len(tracks), workers, func(ctx context.Context, i int) error {
		model, err := newTuneModel(p, gammas)
		if err == nil {
			counts[i], err = labelledMoves(ctx, &tracks[i], model)
		}
		return err
	}, nil)
	if err != nil {
		return nil, err
	}
	total := &moveCounts{}
	for _, n := range counts {
		total.add(n)
	}
	table := &MoveTable{}
	table.P, table.Q = total.shares()
	return table, nil
}
