package eval

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/policy"
)

// tuneModel decodes tracks under a policy as policy.Retriever decodes the
// conversations, with the stages that tuning turns on: context arms behind the
// gate, transition costs by kind of move, the reply, and proposals, in full
// mode. Costs are worked out in another order, so the last bits of scores may
// differ; tests hold the rankings together.
//
// It is not safe for concurrent use: it keeps its scratch.
type tuneModel struct {
	p     *policy.Policy
	gamma int            // index of the policy's γ among those prepared
	cost  [moves]float64 // −log(p/q) by move

	// Scratch, by position where the space is that of the track before.
	space   *space
	epoch   int32
	seen    []int32 // epoch in which a chunk was listed
	place   []int32 // its index in the list then
	fitIn   []int32 // epoch in which fit counts
	fit     []float64
	sums    []float64 // by document
	summed  []int32   // epoch in which a sum counts
	list    []hit     // what a turn finds, in no order
	best    []hit     // of list
	order   []int
	weights []float64
	ranked  []int32
	columns [2]column
}

// column is a turn with candidates.
type column struct {
	at       []int32
	emission []float64 // weighted normalised scores
	forward  []float64 // log of the forward message, or the best path score
	scale    float64   // of transition costs into the turn
	cost     []float64 // of going on from each candidate of the turn before, because of the reply; nil for none
}

// newTuneModel returns a model of a policy whose γ is one of gammas.
func newTuneModel(p *policy.Policy, gammas []float64) (*tuneModel, error) {
	m := &tuneModel{p: p, gamma: slices.Index(gammas, p.Arms.Gamma)}
	for i, move := range tuneMoves {
		var err error
		if m.cost[i], err = p.Transition.Cost(move); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (m *tuneModel) enter(s *space) {
	if m.space == s {
		return
	}
	n := len(s.ids)
	m.space, m.epoch = s, 0
	m.seen, m.place, m.fitIn, m.fit = make([]int32, n), make([]int32, n), make([]int32, n), make([]float64, n)
	documents := int32(0)
	for _, d := range s.document {
		documents = max(documents, d+1)
	}
	m.sums, m.summed = make([]float64, documents), make([]int32, documents)
}

// decode ranks the turns of a track. visit is told of every turn in order: its
// ranking, at most 100 chunks, and its column, nil for a turn without
// candidates; both are only good until it returns.
func (m *tuneModel) decode(ctx context.Context, tr *track, visit func(turn int, ranking []int32, c *column)) error {
	m.enter(tr.space)
	var before *column
	var survivors []int32
	gap := false // the turn before has no candidates
	for i := range tr.turns {
		t := &tr.turns[i]
		gate, err := m.p.Arms.Gate.Evaluate(i, t.features)
		if err != nil {
			return err
		}
		c := &m.columns[i%2]
		if before == c {
			c = &m.columns[(i+1)%2]
		}
		c.scale = m.p.Arms.Gate.TransitionWeight(1, gate)
		if err := m.candidates(ctx, t, gate.Applied, survivors, c); err != nil {
			return err
		}
		if len(c.at) == 0 {
			gap = true
			visit(i, nil, nil)
			continue
		}
		m.hear(t, before, gap, c)
		m.forward(before, c)
		gap = false
		m.rank(c)
		visit(i, m.ranked, c)
		survivors = append(survivors[:0], m.ranked[:min(len(m.ranked), m.p.Proposals.Survivors)]...)
		before = c
	}
	return nil
}

// candidates fills the candidates of a turn and their emissions.
func (m *tuneModel) candidates(ctx context.Context, t *trackTurn, g float64, survivors []int32, c *column) error {
	m.fuse(t, g)
	limit := len(m.best)
	c.at, c.emission = c.at[:0], c.emission[:0]
	m.epoch++
	add := func(at int32, score float64) {
		m.seen[at] = m.epoch
		c.at, c.emission = append(c.at, at), append(c.emission, score)
	}
	for _, h := range m.best {
		add(h.at, h.score)
	}
	if len(survivors) > 0 {
		most := limit + m.p.Proposals.Limit
		propose := func(at int32) {
			if len(c.at) == most || m.seen[at] == m.epoch {
				return
			}
			score := 0.0
			if i := int(m.place[at]); i < len(m.list) && m.list[i].at == at {
				score = m.list[i].score
			}
			add(at, score)
		}
		for _, survivor := range survivors {
			if propose(survivor); len(c.at) == most {
				break
			}
			near, err := m.space.neighborhood(ctx, survivor)
			if err != nil {
				return err
			}
			for _, at := range near {
				propose(at)
			}
		}
	}
	if len(c.emission) == 0 {
		return nil
	}
	standardize(c.emission)
	for i := range c.emission {
		c.emission[i] *= m.p.Decode.EmissionWeight
	}
	return nil
}

// fuse fills m.list with what the arms find, m.place with where in it, and
// m.best with the best of it.
func (m *tuneModel) fuse(t *trackTurn, g float64) {
	limit := m.p.Decode.CandidateLimit
	m.list = m.list[:0]
	if g == 0 {
		m.list = append(m.list, t.raw...)
		for i, h := range m.list {
			m.place[h.at] = int32(i)
		}
		m.best = append(m.best[:0], m.list[:min(len(m.list), limit)]...) // ties are the provider's
		return
	}
	m.epoch++
	a := &m.p.Arms
	total := a.Raw.Weight + a.History.Weight + a.Answer.Weight
	for _, arm := range []struct { // in the order of their names
		list       []hit
		own, share float64
	}{{t.answer, 0, a.Answer.Weight / total}, {t.history[m.gamma], 0, a.History.Weight / total}, {t.raw, 1, a.Raw.Weight / total}} {
		weight := policy.Emission(arm.own, arm.share, g)
		if weight <= 0 || len(arm.list) == 0 {
			continue
		}
		high, low := arm.list[0].score, arm.list[len(arm.list)-1].score
		for _, h := range arm.list {
			if m.seen[h.at] != m.epoch {
				m.seen[h.at], m.place[h.at] = m.epoch, int32(len(m.list))
				m.list = append(m.list, hit{h.at, 0})
			}
			counted := 1.0
			if high > low {
				counted = (h.score - low) / (high - low)
			}
			m.list[m.place[h.at]].score += float64(weight * counted)
		}
	}
	m.choose(limit)
}

// choose fills m.best with the best of m.list, best first: by score and then
// position.
func (m *tuneModel) choose(limit int) {
	m.best = m.best[:0]
	for _, h := range m.list {
		at := len(m.best)
		for at > 0 && (m.best[at-1].score < h.score || m.best[at-1].score == h.score && m.best[at-1].at > h.at) {
			at--
		}
		switch {
		case len(m.best) < limit:
			m.best = append(m.best, hit{})
		case at == limit:
			continue
		}
		copy(m.best[at+1:], m.best[at:])
		m.best[at] = h
	}
}

// standardize subtracts the mean and divides by the population standard
// deviation; equal scores become 0.
func standardize(scores []float64) {
	mean, squares := 0.0, 0.0
	for _, s := range scores {
		mean += s
	}
	mean /= float64(len(scores))
	for _, s := range scores {
		squares += float64((s - mean) * (s - mean))
	}
	deviation := math.Sqrt(squares / float64(len(scores)))
	equal := slices.Min(scores) == slices.Max(scores)
	for i := range scores {
		if scores[i] -= mean; equal {
			scores[i] = 0
		} else {
			scores[i] /= deviation
		}
	}
}

// hear fills what the reply costs.
func (m *tuneModel) hear(t *trackTurn, before *column, gap bool, c *column) {
	c.cost = c.cost[:0]
	if before == nil {
		return
	}
	weight := m.p.Reply.Weight
	if gap || len(t.answer) == 0 {
		weight = 0
	}
	m.epoch++
	if weight > 0 {
		high, low := t.answer[0].score, t.answer[len(t.answer)-1].score
		for _, h := range t.answer {
			m.fitIn[h.at], m.fit[h.at] = m.epoch, 1
			if high > low {
				m.fit[h.at] = (h.score - low) / (high - low)
			}
		}
	}
	for _, at := range before.at {
		fit := 0.0
		if m.fitIn[at] == m.epoch {
			fit = m.fit[at]
		}
		c.cost = append(c.cost, float64(weight*(1-fit)))
	}
}

// forward goes on from the column before: by the sum over predecessors, or by
// the best one, as candidates are ranked.
func (m *tuneModel) forward(before, c *column) {
	c.forward = append(c.forward[:0], c.emission...)
	if before == nil {
		return
	}
	beta := m.p.Decode.TransitionWeight
	if m.p.Decode.RankBy == mapmatched.RankByMaxMarginal {
		for j, to := range c.at {
			best := math.Inf(-1)
			for i, from := range before.at {
				best = max(best, before.forward[i]-beta*(c.scale*m.cost[m.space.move(from, to)]+c.cost[i]))
			}
			c.forward[j] += best
		}
	} else {
		m.sumForward(before, c, beta)
	}
	highest := slices.Max(c.forward)
	for j := range c.forward {
		c.forward[j] -= highest
	}
}

// sumForward adds the log of the sum over predecessors. Those of other documents
// all jump, so they are summed once.
func (m *tuneModel) sumForward(before, c *column, beta float64) {
	factor := [moves]float64{}
	for i, cost := range m.cost {
		factor[i] = mapmatched.Exp(-beta * c.scale * cost)
	}
	weights := m.weights[:0]
	highest := math.Inf(-1)
	for i := range before.at {
		weights = append(weights, before.forward[i]-beta*c.cost[i])
		highest = max(highest, weights[i])
	}
	m.weights = weights
	m.epoch++
	total := 0.0
	for i, from := range before.at {
		weights[i] = mapmatched.Exp(weights[i] - highest)
		total += weights[i]
		d := m.space.document[from]
		if m.summed[d] != m.epoch {
			m.summed[d], m.sums[d] = m.epoch, 0
		}
		m.sums[d] += weights[i]
	}
	for j, to := range c.at {
		d := m.space.document[to]
		sum := total * factor[moveJump]
		if m.summed[d] == m.epoch {
			sum = max(total-m.sums[d], 0) * factor[moveJump]
			for i, from := range before.at {
				if m.space.document[from] == d {
					sum += weights[i] * factor[m.space.move(from, to)]
				}
			}
		}
		c.forward[j] += mapmatched.Log(max(sum, math.SmallestNonzeroFloat64))
	}
}

// rank fills m.ranked with the candidates of a column, best first, ties in
// provider order.
func (m *tuneModel) rank(c *column) {
	order := m.order[:0]
	for i := range c.at {
		order = append(order, i)
	}
	m.order = order
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(c.forward[b], c.forward[a]) })
	m.ranked = m.ranked[:0]
	for _, i := range order {
		m.ranked = append(m.ranked, c.at[i])
	}
}
