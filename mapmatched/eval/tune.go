package eval

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/policy"
)

// Defaults of TuneOptions.
const (
	DefaultFolds       = 5
	DefaultGenerations = mostGenerations
)

// HeldOut is the name of the method of a tuning report in which every
// conversation is ranked by the policy of the fold that did not see it.
const HeldOut = "held_out"

// TuneSet is conversations to tune on.
type TuneSet struct {
	World *World
	// Weight of the set beside others; 0 means 1.
	Weight float64
}

// TuneOptions are the settings of Tune. The zero value, and nil, are the
// defaults.
type TuneOptions struct {
	// Name of the tuned policy; "" means "tuned".
	Name string
	// Folds that conversations are dealt into; 0 means 5, at least 3.
	Folds int
	// Generations of the search, at most; 0 means 160.
	Generations int
	// Seed of the search and of the bootstrap draws; 0 means 1.
	Seed uint64
	// Samples is how many bootstrap draws are made; 0 means 1000.
	Samples int
	// Workers is how many cores are used; 0 means all. It has no influence on
	// results.
	Workers int
	// Tool is recorded in the report.
	Tool string
	// Progress is told how many steps of all are done; nil tells nobody. Early
	// stopping leaves steps out.
	Progress func(done, total int)
}

// Validate reports every value that is out of range.
func (o *TuneOptions) Validate() error {
	if o == nil {
		return nil
	}
	var errs []error
	if o.Folds != 0 && o.Folds < 3 {
		errs = append(errs, fmt.Errorf("folds is %d: it is at least 3 (to fit, to stop early and to report), or 0 for %d", o.Folds, DefaultFolds))
	}
	if o.Generations < 0 {
		errs = append(errs, fmt.Errorf("generations is %d: it is at least 1, or 0 for %d", o.Generations, DefaultGenerations))
	}
	if o.Samples < 0 {
		errs = append(errs, fmt.Errorf("samples is %d: it is at least 1, or 0 for %d", o.Samples, DefaultSamples))
	}
	if o.Workers < 0 {
		errs = append(errs, fmt.Errorf("workers is %d: it is at least 1, or 0 for all cores", o.Workers))
	}
	return errors.Join(errs...)
}

// Tuned is what tuning made.
type Tuned struct {
	Policy *policy.Policy
	Report *TuneReport
}

// tuneGammas are the γ of the history arm that are tried.
var tuneGammas = []float64{0.3, 0.5, 0.7}

// tuneLags are the lags that are compared when the search is over; −1 is full
// decoding.
var tuneLags = []int{0, 1, 2, 4}

// Tune makes a policy from conversations. With labels it searches for λ, β, the
// weights and γ of the context arms, the gate, the costs of moves, the weight of
// the reply, the candidate limit, the survivors and the order of ranking by the
// mean nDCG@3 against pointwise of follow-ups and of all turns, minding turns
// that stand alone and switches of topic, drawn back towards the base; and for
// the lag when that is done. Conversations are dealt into folds, those that
// share a turn into the same one. Each fold is
// reported by a policy that was fitted on others, and stopped early where
// further ones like it best; the tuned policy is fitted on all, for as many
// generations as the validation of all folds together likes best.
//
// Without any label it learns the costs of moves by expectation–maximisation and
// leaves the rest where the search would begin. There is nothing to report then.
//
// The base gives what is not tuned, and where the search begins. Stages that are
// off in it are switched on, at values that were chosen on government pages,
// Wikipedia and recipes. Report.Refused says why the policy should not
// be used, when it should not.
func Tune(ctx context.Context, base *policy.Policy, sets []TuneSet, opts *TuneOptions) (*Tuned, error) {
	if opts == nil {
		opts = &TuneOptions{}
	}
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	if len(sets) == 0 {
		return nil, errors.New("tune: there are no conversations")
	}
	start, err := startOf(base, opts.Name)
	if err != nil {
		return nil, err
	}
	t, err := newTuning(ctx, start, sets, opts)
	if err != nil {
		return nil, err
	}
	t.report.Base = NamedPolicy{base.Name, base.Digest()}
	if t.scored == 0 {
		return t.unlabelled(ctx)
	}
	return t.labelled(ctx)
}

// The values that a search begins from where the base has nothing to say.
func beginStages(p *policy.Policy) {
	if p.Arms.Stage == policy.StageOff {
		p.Arms = policy.DefaultArms()
		p.Arms.Raw.Weight, p.Arms.Answer = 0.85, policy.Arm{Enabled: true, Weight: 1.2}
		p.Arms.Gate = policy.Gate{Bias: 1.5, IDF: -0.1, Referring: 3.5, ScaleTransition: true}
		p.Decode.EmissionWeight = 0.5
		p.Decode.RankBy = mapmatched.RankByFilteredPosterior
	}
	if len(p.Transition.P) == 0 {
		p.Transition.Q = map[string]float64{"stay": 0.02, "next": 0.02, "previous": 0.02, "section": 0.03, "document": 0.08, "jump": 0.83}
		p.Transition.P = map[string]float64{"stay": 0.04, "next": 0.15, "previous": 0.01, "section": 0.1, "document": 0.43, "jump": 0.27}
	}
	if p.Reply.Stage == policy.StageOff {
		p.Reply = policy.DefaultReply()
		p.Reply.Weight = 2.5
	}
	if p.Proposals.Stage == policy.StageOff {
		p.Proposals = policy.DefaultProposals()
	}
	p.Arms.Stage, p.Arms.Gate.Stage = policy.StageActive, policy.StageActive
	p.Transition.Stage, p.Reply.Stage, p.Proposals.Stage = policy.StageActive, policy.StageActive, policy.StageActive
}

// startOf is the policy that tuning begins from.
func startOf(base *policy.Policy, name string) (*policy.Policy, error) {
	if err := base.Validate(); err != nil {
		return nil, fmt.Errorf("tune: policy %s: %w", base.Name, err)
	}
	p := *base
	p.StatedDigest, p.Evidence, p.Description = "", "", ""
	if p.Name = name; name == "" {
		p.Name = "tuned"
	}
	var errs []error
	refuse := func(key string, value any, want string) {
		errs = append(errs, fmt.Errorf("%s is %v: tuning begins from %s", key, value, want))
	}
	for _, move := range slices.Sorted(maps.Keys(p.Transition.P)) {
		if !slices.Contains(tuneMoves[:], policy.Move(move)) {
			refuse("transition.p", move, "stay, next, previous, section, document and jump")
		}
	}
	if n := len(p.Transition.P); n > 0 && n < moves {
		refuse("transition.p", fmt.Sprintf("%d moves", n), "all of stay, next, previous, section, document and jump, or none")
	}
	for _, c := range []struct {
		key    string
		refuse bool
		value  any
		want   string
	}{
		{"transition.keep_distance", p.Transition.KeepDistance, true, "false"},
		{"arms.feedback.enabled", p.Arms.Stage != policy.StageOff && p.Arms.Feedback.Enabled, true, "false"},
		{"arms.gate.entropy", p.Arms.Gate.Entropy != 0, p.Arms.Gate.Entropy, "0"},
		{"decode.score_normalization", p.Decode.ScoreNormalization != mapmatched.NormalizeZScore, p.Decode.ScoreNormalization, string(mapmatched.NormalizeZScore)},
		{"decode.beam", p.Decode.Beam != 0, p.Decode.Beam, "0"},
		{"decode.break_distance", p.Decode.BreakDistance != 0, p.Decode.BreakDistance, "0"},
		{"decode.temperature", p.Decode.Temperature != 1, p.Decode.Temperature, "1"},
		{"decode.transition_weight", p.Decode.TransitionWeight == 0, 0, "a weight above 0"},
		{"decode.emission_weight", p.Decode.EmissionWeight == 0, 0, "a weight above 0"},
		{"fusion.version", p.Fusion.Version != policy.HybridFusionPreV1, p.Fusion.Version, policy.HybridFusionPreV1},
		{"rerank.mode", p.Rerank.Mode != policy.RerankOff, p.Rerank.Mode, string(policy.RerankOff)},
	} {
		if c.refuse {
			refuse(c.key, c.value, c.want)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("tune: policy %s: %w", base.Name, err)
	}
	beginStages(&p)
	for _, arm := range []struct {
		key string
		*policy.Arm
	}{{"raw", &p.Arms.Raw}, {"history", &p.Arms.History}, {"answer", &p.Arms.Answer}} {
		if !arm.Enabled {
			return nil, fmt.Errorf("tune: policy %s: arms.%s.enabled is false: tuning begins from true, and may make its weight small", base.Name, arm.key)
		}
	}
	if gamma := p.Arms.Gamma; !slices.Contains(tuneGammas, gamma) {
		p.Arms.Gamma = 0.5
	}
	return &p, p.Validate()
}

// tuning is a run of Tune.
type tuning struct {
	search
	opts   *TuneOptions
	sets   []TuneSet
	base   *policy.Policy
	report *TuneReport
	scored int

	pointwise []*Results // by set
	done      int
	total     int
}

func newTuning(ctx context.Context, start *policy.Policy, sets []TuneSet, opts *TuneOptions) (*tuning, error) {
	folds, generations, seed := opts.Folds, opts.Generations, opts.Seed
	if folds == 0 {
		folds = DefaultFolds
	}
	if generations == 0 {
		generations = DefaultGenerations
	}
	if seed == 0 {
		seed = DefaultSeed
	}
	t := &tuning{opts: opts, sets: sets, base: start, total: len(sets) + (folds+1)*generations}
	t.gammas, t.seed, t.workers = tuneGammas, seed, opts.Workers
	t.report = &TuneReport{Schema: TuneSchema, Tool: opts.Tool, Folds: folds, Generations: generations, Seed: seed, Versions: versions(), Refused: []string{}}
	for _, tunable := range tunables() {
		t.standard = append(t.standard, tunable.get(start))
	}
	dealt := dealFolds(sets, folds)
	for i := range sets {
		tracks, list, pointwise, err := newTracks(ctx, sets[i].World, start, t.gammas, t.workers)
		if err != nil {
			return nil, fmt.Errorf("tune: set %d: %w", i+1, err)
		}
		weight := sets[i].Weight
		if weight == 0 {
			weight = 1
		}
		set := searchSet{tracks: tracks, weight: weight, folds: dealt[i]}
		present := map[int]bool{}
		for c := range tracks {
			if len(pointwise.Conversations[c]) > 0 {
				present[dealt[i][c]] = true
			}
		}
		if findSlice(list, SliceAll).Turns > 0 && len(present) < folds {
			return nil, fmt.Errorf("tune: the %d conversations of %s have labels in %d of %d folds, into which they are dealt by ID: give more of them",
				len(tracks), sets[i].World.data.Name, len(present), folds)
		}
		t.scored += findSlice(list, SliceAll).Turns
		t.search.sets = append(t.search.sets, set)
		t.pointwise = append(t.pointwise, pointwise)
		data := TuneData{dataReport(sets[i].World.data), sets[i].World.scope, sets[i].World.arm, sets[i].World.replies, weight, nil}
		if data.ScoredTurns > 0 {
			if data.Moves, err = countMoves(ctx, tracks, start, t.gammas, t.workers); err != nil {
				return nil, fmt.Errorf("tune: set %d: %w", i+1, err)
			}
		}
		t.report.Data = append(t.report.Data, data)
		t.step()
	}
	return t, nil
}

func (t *tuning) step() {
	t.done++
	if t.opts.Progress != nil {
		t.opts.Progress(min(t.done, t.total), t.total)
	}
}

// unlabelled learns what can be learnt without labels.
func (t *tuning) unlabelled(ctx context.Context) (*Tuned, error) {
	var tracks []track
	for i := range t.search.sets {
		tracks = append(tracks, t.search.sets[i].tracks...)
	}
	p, steps, err := learnMoves(ctx, tracks, t.base, t.gammas, t.workers)
	if err != nil {
		return nil, err
	}
	p.Description = "moves learnt by expectation–maximisation from unlabelled conversations"
	t.report.EM = steps
	return t.finish(p)
}

func (t *tuning) finish(p *policy.Policy) (*Tuned, error) {
	if err := p.Validate(); err != nil {
		return nil, fmt.Errorf("tune: %w", err)
	}
	t.report.Policy = NamedPolicy{p.Name, p.Digest()}
	for i, tunable := range tunables() {
		t.report.Parameters = append(t.report.Parameters, TunedParameter{Name: tunable.name, Step: tunable.step, Start: round(t.standard[i]), Tuned: round(tunable.get(p))})
	}
	for _, run := range t.report.Runs {
		if run.Fold == nil {
			continue
		}
		own := inForce(run.Curve, run.Taken).policy
		for i, tunable := range tunables() {
			t.report.Parameters[i].Folds = append(t.report.Parameters[i].Folds, round(tunable.get(own)))
		}
	}
	t.step()
	return &Tuned{p, t.report}, nil
}

// labelled searches, and reports by folds.
func (t *tuning) labelled(ctx context.Context) (*Tuned, error) {
	folds := t.report.Folds
	curves := make([][]Generation, folds)
	for fold := range folds {
		validation := (fold + 1) % folds
		var err error
		curves[fold], err = t.run(ctx, t.base, func(f int) bool { return f != fold && f != validation }, func(f int) bool { return f == validation },
			t.report.Generations, uint64(fold), t.step)
		if err != nil {
			return nil, err
		}
		t.done = max(t.done, len(t.sets)+(fold+1)*t.report.Generations)
	}
	// A fold is stopped where the validation of the others says, which is on
	// other conversations than its own.
	byFold := make([]*policy.Policy, folds)
	for fold := range folds {
		var others [][]Generation
		for f, curve := range curves {
			if (f+1)%folds != fold {
				others = append(others, curve)
			}
		}
		at := inForce(curves[fold], likedBest(others))
		byFold[fold] = at.policy
		t.report.Runs = append(t.report.Runs, TuneRun{new(fold), at.Generation, curves[fold]})
	}
	curve, err := t.run(ctx, t.base, func(int) bool { return true }, nil, max(likedBest(curves), 1), uint64(folds), t.step)
	if err != nil {
		return nil, err
	}
	last := curve[len(curve)-1]
	p := last.policy
	t.report.Runs = append(t.report.Runs, TuneRun{nil, last.Generation, curve})
	p.Description = fmt.Sprintf("tuned on %d scored turns of %d sets", t.scored, len(t.sets))
	if p, err = t.lag(ctx, p); err != nil {
		return nil, err
	}
	for fold, own := range byFold { // reported as the policy is used
		byFold[fold] = clonePolicy(own)
		byFold[fold].Decode.FixedLag = p.Decode.FixedLag
	}
	for i := range t.sets {
		report, err := t.reportOf(ctx, i, p, byFold)
		if err != nil {
			return nil, err
		}
		t.report.Sets = append(t.report.Sets, report)
		t.report.Refused = append(t.report.Refused, refusals(report)...)
	}
	return t.finish(p)
}

// likedBest is the generation with the highest mean validation of all folds.
func likedBest(curves [][]Generation) int {
	last := 0
	for _, curve := range curves {
		last = max(last, curve[len(curve)-1].Generation)
	}
	best, bestMean := 0, math.Inf(-1)
	for generation := range last + 1 {
		mean := 0.0
		for _, curve := range curves {
			mean += *inForce(curve, generation).Validation / float64(len(curves))
		}
		if mean > bestMean {
			best, bestMean = generation, mean
		}
	}
	return best
}

// inForce is the step of a curve whose policy is the best one at a generation.
func inForce(curve []Generation, generation int) *Generation {
	at := 0
	for at+1 < len(curve) && curve[at+1].Generation <= generation {
		at++
	}
	return &curve[at]
}

// lagGain is what a lag has to be better by to be taken: deciding early is no
// end in itself.
const lagGain = 0.01

// lag compares lags by what conversations get, and takes the best one.
func (t *tuning) lag(ctx context.Context, p *policy.Policy) (*policy.Policy, error) {
	best, bestValue := p, 0.0
	for i := range len(tuneLags) + 1 {
		own := clonePolicy(p)
		own.Decode.FixedLag = nil // first, as the one to beat
		if i > 0 {
			own.Decode.FixedLag = new(tuneLags[i-1])
		}
		value := 0.0
		for s := range t.sets {
			results, err := Measure(ctx, t.sets[s].World, []Method{PolicyMethod(own)}, &MeasureOptions{Workers: t.workers})
			if err != nil {
				return nil, err
			}
			var g gains
			set := &t.search.sets[s]
			for c, turns := range results[0].Conversations {
				for _, r := range turns {
					turn := &set.tracks[c].turns[r.Turn]
					g.add(r.Scores.Of(NDCG3)-turn.pointwise, turn.slices)
				}
			}
			value += set.weight * g.objective()
		}
		t.report.Lags = append(t.report.Lags, TunedLag{own.Decode.FixedLag, round(value)})
		if i == 0 || value > bestValue+lagGain {
			best, bestValue = own, value
		}
	}
	return best, nil
}

// reportOf is the evaluation of a set: pointwise, the policies of the folds on
// what they did not see, and the tuned policy on everything.
func (t *tuning) reportOf(ctx context.Context, set int, p *policy.Policy, byFold []*policy.Policy) (*Report, error) {
	w := t.sets[set].World
	folds := t.search.sets[set].folds
	heldOut := Results{Method{Name: HeldOut}, make([][]TurnResult, len(folds))}
	err := forEach(ctx, len(folds), t.workers, func(ctx context.Context, i int) (err error) {
		method := PolicyMethod(byFold[folds[i]])
		heldOut.Conversations[i], err = measureOne(ctx, w, &method, &w.data.Conversations[i], DefaultDepth)
		return err
	}, nil)
	if err != nil {
		return nil, err
	}
	results, err := Measure(ctx, w, []Method{PolicyMethod(p)}, &MeasureOptions{Workers: t.workers})
	if err != nil {
		return nil, err
	}
	opts := &RunOptions{Samples: t.opts.Samples, Seed: t.report.Seed, Tool: t.opts.Tool}
	opts.Workers = t.workers
	return NewReport(ctx, w, []Results{*t.pointwise[set], heldOut, results[0]}, opts)
}

// switchLoss is what may be lost where the topic switches. These slices are told
// apart by where the answer is, not by what a turn looks like: whatever expects
// conversations to stay loses there some of what it wins elsewhere. They are
// reported apart, and bounded.
const switchLoss = 0.1

// refusals says on what the policies of the folds are worse than pointwise: a
// slice on which the whole interval of the difference is below 0, or below
// −switchLoss where the topic switches, or a gate that does not hold.
func refusals(r *Report) []string {
	var list []string
	for i := range r.Methods {
		m := &r.Methods[i]
		if m.Name != HeldOut {
			continue
		}
		for _, s := range m.Slices {
			least := 0.0
			if slices.Contains([]string{SliceTopicSwitch, SliceSeamSwitch, SliceSeamReturn}, s.Slice) {
				least = -switchLoss
			}
			if d := s.Delta[NDCG3]; d.High < least {
				list = append(list, fmt.Sprintf("%s: on %s nDCG@3 falls below pointwise by %.3f (95%% interval %+.3f to %+.3f)", r.Data.Name, s.Slice, -d.Mean, d.Low, d.High))
			}
		}
		for _, g := range gates(m) {
			if !g.Holds {
				list = append(list, r.Data.Name+": "+g.String())
			}
		}
	}
	return list
}
