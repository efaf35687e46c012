package eval

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/policy"
)

// tunable is a number of a policy that the search moves.
type tunable struct {
	name string
	step float64 // standard deviation of a change, in the scale of get
	get  func(p *policy.Policy) float64
	set  func(p *policy.Policy, v float64)
}

// The smallest value of what is moved on a logarithmic scale.
const leastLog = 1e-3

// onLog is a number above 0 that is moved by factors.
func onLog(name string, step float64, at func(p *policy.Policy) *float64) tunable {
	return tunable{name, step,
		func(p *policy.Policy) float64 { return mapmatched.Log(max(*at(p), leastLog)) },
		func(p *policy.Policy, v float64) { *at(p) = digits(max(mapmatched.Exp(v), leastLog)) }}
}

// onLine is a number of either sign.
func onLine(name string, step float64, at func(p *policy.Policy) *float64) tunable {
	return tunable{name, step, func(p *policy.Policy) float64 { return *at(p) }, func(p *policy.Policy, v float64) { *at(p) = digits(v) }}
}

// digits rounds to four significant digits, which is more than tuning knows.
func digits(v float64) float64 {
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 4, 64), 64)
	if err != nil {
		panic(err) // what FormatFloat wrote is a number
	}
	return rounded + 0
}

// tunables are the numbers that are moved. The step of each is about what it
// takes to change some answers.
func tunables() []tunable {
	list := []tunable{
		onLog("decode.emission_weight", 0.25, func(p *policy.Policy) *float64 { return &p.Decode.EmissionWeight }),
		onLog("arms.raw.weight", 0.3, func(p *policy.Policy) *float64 { return &p.Arms.Raw.Weight }),
		onLog("arms.answer.weight", 0.3, func(p *policy.Policy) *float64 { return &p.Arms.Answer.Weight }),
		onLine("arms.gate.bias", 0.5, func(p *policy.Policy) *float64 { return &p.Arms.Gate.Bias }),
		onLine("arms.gate.terms", 0.08, func(p *policy.Policy) *float64 { return &p.Arms.Gate.Terms }),
		onLine("arms.gate.idf", 0.03, func(p *policy.Policy) *float64 { return &p.Arms.Gate.IDF }),
		onLine("arms.gate.referring", 1, func(p *policy.Policy) *float64 { return &p.Arms.Gate.Referring }),
		onLog("reply.weight", 0.3, func(p *policy.Policy) *float64 { return &p.Reply.Weight }),
		onLog("decode.transition_weight", 0.1, func(p *policy.Policy) *float64 { return &p.Decode.TransitionWeight }),
	}
	for _, m := range tuneMoves {
		if m == policy.MoveJump {
			continue
		}
		list = append(list, tunable{"transition." + string(m), 0.5,
			func(p *policy.Policy) float64 { return moveCost(p, m) - moveCost(p, policy.MoveJump) },
			func(p *policy.Policy, v float64) { setMoveCost(p, m, v) }})
	}
	return list
}

func moveCost(p *policy.Policy, m policy.Move) float64 {
	return mapmatched.Log(p.Transition.Q[string(m)]) - mapmatched.Log(p.Transition.P[string(m)])
}

// setMoveCost changes transition.p so that a move costs v more than a jump,
// those of the other moves staying what they are.
func setMoveCost(p *policy.Policy, m policy.Move, v float64) {
	jump := moveCost(p, policy.MoveJump)
	weights, total := [moves]float64{}, 0.0
	for i, other := range tuneMoves {
		cost := moveCost(p, other) - jump
		if other == m {
			cost = v
		}
		weights[i] = p.Transition.Q[string(other)] * mapmatched.Exp(-cost)
		total += weights[i]
	}
	for i := range weights { // shares adds a pseudo-count, which is for counts
		weights[i] = weights[i]/total*shareParts - pseudoCount
	}
	p.Transition.P = shares(weights)
}

// choice is a setting of a policy that has few values.
type choice struct {
	name   string
	values int
	set    func(p *policy.Policy, i int)
}

// choices are the settings that are tried.
func choices(gammas []float64) []choice {
	ranks := []mapmatched.RankBy{mapmatched.RankByFilteredPosterior, mapmatched.RankByMaxMarginal}
	limits, survivors := []int{10, 20, 30, 50}, []int{5, 10, 20}
	return []choice{
		{"arms.gamma", len(gammas), func(p *policy.Policy, i int) { p.Arms.Gamma = gammas[i] }},
		{"decode.rank_by", len(ranks), func(p *policy.Policy, i int) { p.Decode.RankBy = ranks[i] }},
		{"decode.candidate_limit", len(limits), func(p *policy.Policy, i int) { p.Decode.CandidateLimit = limits[i] }},
		{"proposals.survivors", len(survivors), func(p *policy.Policy, i int) { p.Proposals.Survivors = survivors[i] }},
	}
}

// clonePolicy copies a policy with the tables that tuning writes.
func clonePolicy(p *policy.Policy) *policy.Policy {
	own := *p
	own.Transition.P, own.Transition.Q = map[string]float64{}, map[string]float64{}
	for _, m := range tuneMoves {
		own.Transition.P[string(m)], own.Transition.Q[string(m)] = p.Transition.P[string(m)], p.Transition.Q[string(m)]
	}
	return &own
}

// sumOf is the best candidate with its numbers moved from the current ones by
// the sum of what the candidates that are better than before moved them by.
func sumOf(current, best *policy.Policy, candidates []*policy.Policy, values []float64, before float64) *policy.Policy {
	p := clonePolicy(best)
	for _, t := range tunables() {
		moved := 0.0
		for i, c := range candidates {
			if values[i] > before {
				moved += t.get(c) - t.get(current)
			}
		}
		t.set(p, t.get(current)+moved)
	}
	return p
}

// gains is the summed difference to pointwise of some turns, and their number,
// by slice: all, follow-up, standalone, topic switch.
type gains [4]struct{ sum, turns float64 }

func (g *gains) add(delta float64, in sliceSet) {
	for i, counts := range []bool{true, in&inFollowUp != 0, in&inStandalone != 0, in&inSwitch != 0} {
		if counts {
			g[i].sum += delta
			g[i].turns++
		}
	}
}

func (g *gains) mean(i int) float64 { return g[i].sum / max(g[i].turns, 1) }

// The objective of a set: what follow-ups gain, and half of what all turns gain;
// losses where a turn stands alone count four times from a small gain on, and those
// at switches of topic as they are.
const (
	allShare         = 0.5
	standaloneMargin = 0.005
	standalonePrice  = 4
	switchPrice      = 1
)

func (g *gains) objective() float64 {
	u := g.mean(1) + allShare*g.mean(0)
	if g[2].turns > 0 {
		u -= standalonePrice * max(0, standaloneMargin-g.mean(2))
	}
	return u - switchPrice*max(0, -g.mean(3))
}

// searchSet is a data set of a search.
type searchSet struct {
	tracks []track
	folds  []int // by conversation
	weight float64
}

// search looks for the parameters with the highest objective.
type search struct {
	sets     []searchSet
	gammas   []float64
	seed     uint64
	workers  int
	standard []float64 // of the tunables, which the search is drawn back to
}

// regularization is what a step away from the default costs, squared.
const regularization = 2e-4

// measure is the objective of a policy on some folds.
func (s *search) measure(ctx context.Context, p *policy.Policy, folds func(fold int) bool) (float64, error) {
	model, err := newTuneModel(p, s.gammas)
	if err != nil {
		return 0, err
	}
	total := 0.0
	for i := range s.sets {
		set := &s.sets[i]
		var g gains
		for c := range set.tracks {
			if !folds(set.folds[c]) {
				continue
			}
			turns := set.tracks[c].turns
			err := model.decode(ctx, &set.tracks[c], func(turn int, ranking []int32, _ *column) {
				if t := &turns[turn]; t.scored {
					g.add(t.ndcg3(ranking)-t.pointwise, t.slices)
				}
			})
			if err != nil {
				return 0, err
			}
		}
		total += set.weight * g.objective()
	}
	for i, t := range tunables() {
		away := (t.get(p) - s.standard[i]) / t.step
		total -= regularization * away * away
	}
	return total, nil
}

// The search.
const (
	offspring       = 10   // of a generation
	changeShare     = 0.3  // of the tunables that an offspring changes
	chooseShare     = 0.15 // of the offspring that change a choice
	growStep        = 1.15
	shrinkStep      = 0.94
	leastStep       = 0.15
	mostStep        = 2
	searchStream    = 0x73656172636820
	searchPatience  = 40 // generations without a better validation
	mostGenerations = 160
)

// Generation is a step of the search that found something better.
type Generation struct {
	Generation int      `json:"generation"`
	Fit        float64  `json:"fit"`                  // objective of what was fitted on
	Validation *float64 `json:"validation,omitempty"` // objective of what was held out to stop early
	policy     *policy.Policy
}

// run is an evolution strategy: each generation is drawn around the best
// parameters so far, and the sum of the changes that were good is tried as well. It
// stops after most generations, or when the validation folds, unless nil, have
// not improved for some. The draws depend on the seed and stream alone.
func (s *search) run(ctx context.Context, from *policy.Policy, fit, validation func(fold int) bool, most int, stream uint64, progress func()) ([]Generation, error) {
	random := rand.New(rand.NewPCG(s.seed, searchStream+stream))
	list, options := tunables(), choices(s.gammas)
	current := from
	best, err := s.measure(ctx, current, fit)
	if err != nil {
		return nil, err
	}
	likedAt, liked := 0, math.Inf(-1)
	var curve []Generation
	note := func(generation int) error {
		step := Generation{generation, round(best), nil, current}
		if validation != nil {
			v, err := s.measure(ctx, current, validation)
			if err != nil {
				return err
			}
			step.Validation = new(round(v))
			if v > liked {
				likedAt, liked = generation, v
			}
		}
		curve = append(curve, step)
		return nil
	}
	if err := note(0); err != nil {
		return nil, err
	}
	scale := 1.0
	for generation := 1; generation <= most; generation++ {
		if validation != nil && generation-likedAt > searchPatience {
			break
		}
		candidates, values := make([]*policy.Policy, offspring), make([]float64, offspring)
		for i := range candidates {
			candidates[i] = clonePolicy(current)
			for _, t := range list {
				if random.Float64() < changeShare {
					t.set(candidates[i], t.get(candidates[i])+scale*t.step*random.NormFloat64())
				}
			}
			if random.Float64() < chooseShare {
				option := options[random.IntN(len(options))]
				option.set(candidates[i], random.IntN(option.values))
			}
		}
		err := forEach(ctx, offspring, s.workers, func(ctx context.Context, i int) (err error) {
			values[i], err = s.measure(ctx, candidates[i], fit)
			return err
		}, nil)
		if err != nil {
			return nil, err
		}
		at := slices.Index(values, slices.Max(values))
		if values[at] > best {
			sum := sumOf(current, candidates[at], candidates, values, best)
			value, err := s.measure(ctx, sum, fit)
			if err != nil {
				return nil, err
			}
			if value > values[at] {
				candidates[at], values[at] = sum, value
			}
			current, best = candidates[at], values[at]
			scale = min(scale*growStep, mostStep)
			if err := note(generation); err != nil {
				return nil, err
			}
		} else {
			scale = max(scale*shrinkStep, leastStep)
		}
		if progress != nil {
			progress()
		}
	}
	return curve, nil
}
