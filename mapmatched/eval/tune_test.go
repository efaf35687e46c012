package eval

import (
	"bytes"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/policy"
)

// syntheticWorld is the first conversations of synthetic data.
func syntheticWorld(t testing.TB, conversations int, change func(d *Data)) *World {
	t.Helper()
	data, err := Synthetic(&SyntheticOptions{Seed: 5})
	if err != nil {
		t.Fatal(err)
	}
	data.Conversations = data.Conversations[:conversations]
	if change != nil {
		change(data)
	}
	w, err := NewWorld(data, nil)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func unlabel(d *Data) {
	for i := range d.Conversations {
		for j := range d.Conversations[i].Turns {
			d.Conversations[i].Turns[j].Gold = nil
		}
	}
}

func asText(t testing.TB, tuned *Tuned) string {
	t.Helper()
	var b bytes.Buffer
	if err := errors.Join(tuned.Report.WriteJSON(&b), tuned.Report.WriteMarkdown(&b)); err != nil {
		t.Fatal(err)
	}
	encoded, err := tuned.Policy.Encode(policy.YAML)
	if err != nil {
		t.Fatal(err)
	}
	return b.String() + string(encoded)
}

// TestTune: the folds gain on follow-ups, the policy is one that a conversation
// can follow, and neither cores nor a second run change a byte.
func TestTune(t *testing.T) {
	w := syntheticWorld(t, 30, nil)
	base, err := policy.Builtin(policy.Plain)
	if err != nil {
		t.Fatal(err)
	}
	opts := TuneOptions{Name: "mine", Folds: 3, Generations: 4, Samples: 50, Workers: 1}
	steps := 0
	opts.Progress = func(done, total int) {
		if done < steps || done > total {
			t.Errorf("step %d of %d after %d", done, total, steps)
		}
		steps = done
	}
	tuned, err := Tune(t.Context(), base, []TuneSet{{World: w}}, &opts)
	if err != nil {
		t.Fatal(err)
	}
	if err := tuned.Policy.Validate(); err != nil || tuned.Policy.Name != "mine" || tuned.Report.Policy.Digest != tuned.Policy.Digest() {
		t.Errorf("policy %s: %v", tuned.Policy.Name, err)
	}
	if gain := tuned.Report.Sets[0].Methods[1].Slice(SliceFollowUp).Delta[NDCG3]; gain.Mean < 0.05 {
		t.Errorf("held out, follow-ups gain %+v", gain)
	}
	if n := len(tuned.Report.Runs); n != 4 || tuned.Report.Runs[3].Fold != nil {
		t.Errorf("%d runs", n)
	}
	for _, run := range tuned.Report.Runs[:3] {
		if len(run.Curve) == 0 || run.Curve[0].Validation == nil {
			t.Errorf("fold %d: curve %+v", *run.Fold, run.Curve)
		}
	}
	opts.Workers, opts.Progress = 3, nil
	again, err := Tune(t.Context(), base, []TuneSet{{World: w}}, &opts)
	if err != nil {
		t.Fatal(err)
	}
	if a, b := asText(t, tuned), asText(t, again); a != b {
		t.Error("three cores make another report than one")
	}
}

// TestHeldOut: a fold's conversations are ranked by the policy of that fold.
func TestHeldOut(t *testing.T) {
	w := syntheticWorld(t, 12, nil)
	base := policy.Default()
	base.Name = "base"
	start, err := startOf(base, "x")
	if err != nil {
		t.Fatal(err)
	}
	run, err := newTuning(t.Context(), start, []TuneSet{{World: w}}, &TuneOptions{Folds: 3, Samples: 10})
	if err != nil {
		t.Fatal(err)
	}
	policies := []*policy.Policy{tuned(nil), tuned(func(p *policy.Policy) { p.Arms.Stage = policy.StageOff }), tuned(func(p *policy.Policy) { p.Reply.Weight = 9 })}
	report, err := run.reportOf(t.Context(), 0, start, policies)
	if err != nil {
		t.Fatal(err)
	}
	sum, turns := 0.0, 0
	for i := range w.data.Conversations {
		method := PolicyMethod(policies[foldOf(w.data.Conversations[i].ID, 3)])
		results, err := measureOne(t.Context(), w, &method, &w.data.Conversations[i], DefaultDepth)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range results {
			sum += r.Scores.Of(NDCG3)
			turns++
		}
	}
	if got := report.Methods[1]; got.Name != HeldOut || math.Abs(got.Slice(SliceAll).Metrics[NDCG3].Mean-sum/float64(turns)) > 1e-6 {
		t.Errorf("%s: %v, want %v", got.Name, got.Slice(SliceAll).Metrics[NDCG3].Mean, sum/float64(turns))
	}
}

// TestTuneWithoutLabels: expectation–maximisation raises the evidence at every
// step and finds moves that are near those of the labels it does not see.
func TestTuneWithoutLabels(t *testing.T) {
	base := policy.Default()
	base.Name = "base"
	labelled, hidden := syntheticWorld(t, 40, nil), syntheticWorld(t, 40, unlabel)
	tuned, err := Tune(t.Context(), base, []TuneSet{{World: hidden}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(tuned.Report.Sets) != 0 || len(tuned.Report.EM) < 2 || len(tuned.Report.Refused) != 0 {
		t.Fatalf("report %+v", tuned.Report)
	}
	start, err := startOf(base, "x")
	if err != nil {
		t.Fatal(err)
	}
	tracks, _, _, err := newTracks(t.Context(), labelled, start, tuneGammas, 0)
	if err != nil {
		t.Fatal(err)
	}
	model, err := newTuneModel(start, tuneGammas)
	if err != nil {
		t.Fatal(err)
	}
	counts := &moveCounts{}
	for i := range tracks {
		n, err := labelledMoves(t.Context(), &tracks[i], model)
		if err != nil {
			t.Fatal(err)
		}
		counts.add(n)
	}
	p, q := counts.shares()
	for _, m := range tuneMoves {
		own, want := tuned.Policy.Transition, string(m)
		if math.Abs(own.P[want]-p[want]) > 0.15 || math.Abs(own.Q[want]-q[want]) > 0.2 {
			t.Errorf("%s: learnt %.3f by chance %.3f, labelled %.3f by chance %.3f", m, own.P[want], own.Q[want], p[want], q[want])
		}
	}
}

// TestExpectedMoves: forward–backward against the sum over all paths.
func TestExpectedMoves(t *testing.T) {
	w := syntheticWorld(t, 3, nil)
	p := tuned(func(p *policy.Policy) { p.Decode.CandidateLimit, p.Proposals.Survivors, p.Proposals.Limit = 2, 1, 1 })
	tracks, _, _, err := newTracks(t.Context(), w, p, tuneGammas, 0)
	if err != nil {
		t.Fatal(err)
	}
	model, err := newTuneModel(p, tuneGammas)
	if err != nil {
		t.Fatal(err)
	}
	for k := range tracks {
		tr := &tracks[k]
		tr.turns = tr.turns[:min(len(tr.turns), 4)]
		got, evidence, err := expectedMoves(t.Context(), tr, model)
		if err != nil {
			t.Fatal(err)
		}
		var columns []column
		if err := model.decode(t.Context(), tr, func(_ int, _ []int32, c *column) {
			if c != nil {
				own := *c
				own.at, own.emission, own.cost = append([]int32{}, c.at...), append([]float64{}, c.emission...), append([]float64{}, c.cost...)
				columns = append(columns, own)
			}
		}); err != nil {
			t.Fatal(err)
		}
		var want moveCounts
		total := 0.0
		var walk func(turn, last int, weight float64, made [moves]float64)
		walk = func(turn, last int, weight float64, made [moves]float64) {
			if turn == len(columns) {
				total += weight
				for m := range made {
					want.made[m] += weight * made[m]
				}
				return
			}
			c := &columns[turn]
			for j, to := range c.at {
				next, score := made, c.emission[j]
				if turn > 0 {
					m := tr.space.move(columns[turn-1].at[last], to)
					score -= p.Decode.TransitionWeight * (c.scale*model.cost[m] + c.cost[last])
					next[m]++
				}
				walk(turn+1, j, weight*math.Exp(score), next)
			}
		}
		walk(0, 0, 1, [moves]float64{})
		if math.Abs(math.Log(total)-evidence) > 1e-9 {
			t.Errorf("conversation %d: evidence %v, want %v", k, evidence, math.Log(total))
		}
		for m := range want.made {
			if math.Abs(got.made[m]-want.made[m]/total) > 1e-9 {
				t.Errorf("conversation %d: %s expected %v times, want %v", k, tuneMoves[m], got.made[m], want.made[m]/total)
			}
		}
	}
}

// TestSetMoveCost: one move costs what it is told, the others what they did.
func TestSetMoveCost(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		p := tuned(nil)
		m := tuneMoves[random.IntN(moves-1)]
		before := map[policy.Move]float64{}
		for _, other := range tuneMoves {
			before[other] = moveCost(p, other) - moveCost(p, policy.MoveJump)
		}
		before[m] = random.NormFloat64() * 2
		setMoveCost(p, m, before[m])
		if err := p.Validate(); err != nil {
			t.Fatal(err)
		}
		for _, other := range tuneMoves {
			if got := moveCost(p, other) - moveCost(p, policy.MoveJump); math.Abs(got-before[other]) > 0.01 {
				t.Fatalf("%s set to %v: %s costs %v, want %v", m, before[m], other, got, before[other])
			}
		}
	}
}

// TestDealFolds: conversations that share a turn are dealt together, also over
// sets.
func TestDealFolds(t *testing.T) {
	whole := syntheticWorld(t, 40, nil)
	joined := *whole.data
	joined.Conversations = nil
	for i := 0; i+1 < 20; i += 2 {
		a, b := whole.data.Conversations[i], whole.data.Conversations[i+1]
		a.ID = "joined-" + a.ID
		a.Turns = append(append([]Turn{}, a.Turns...), b.Turns...)
		joined.Conversations = append(joined.Conversations, a)
	}
	w, err := NewWorld(&joined, nil)
	if err != nil {
		t.Fatal(err)
	}
	dealt := dealFolds([]TuneSet{{World: whole}, {World: w}}, 5)
	used := map[int]bool{}
	for i := range joined.Conversations {
		if a, b, both := dealt[0][2*i], dealt[0][2*i+1], dealt[1][i]; a != both || b != both {
			t.Errorf("conversation %d is in fold %d, its parts in %d and %d", i, both, a, b)
		}
		used[dealt[1][i]] = true
	}
	if len(used) < 3 {
		t.Errorf("all in %d folds", len(used))
	}
}

func TestDigits(t *testing.T) {
	for _, c := range []struct{ in, want float64 }{{0.123456, 0.1235}, {-1234.56, -1235}, {1e-7, 1e-7}, {0, 0}, {math.Copysign(0, -1), 0}} {
		if got := digits(c.in); got != c.want || math.Signbit(got) != math.Signbit(c.want) {
			t.Errorf("%v becomes %v, want %v", c.in, got, c.want)
		}
	}
}

// TestTunablesRoundTrip: what get reads, set writes.
func TestTunablesRoundTrip(t *testing.T) {
	for _, tunable := range tunables() {
		p := tuned(nil)
		v := tunable.get(p) + tunable.step
		if tunable.set(p, v); math.Abs(tunable.get(p)-v) > 0.01*max(1, math.Abs(v)) {
			t.Errorf("%s: set to %v, reads %v", tunable.name, v, tunable.get(p))
		}
	}
}

// TestRefusals: a slice whose whole interval is below 0, or a gate.
func TestRefusals(t *testing.T) {
	slice := func(name string, mean, low, high float64) MethodSlice {
		return MethodSlice{Slice: name, Delta: map[Metric]Interval{NDCG3: {mean, low, high}}}
	}
	report := func(slices ...MethodSlice) *Report {
		return &Report{Data: DataReport{Name: "set"}, Methods: []MethodReport{{Name: Pointwise}, {Name: HeldOut, Slices: slices}, {Name: "final", Slices: []MethodSlice{slice(SliceAll, -1, -1, -1)}}}}
	}
	for _, c := range []struct {
		name  string
		r     *Report
		wants []string
	}{
		{"good", report(slice(SliceFollowUp, 0.1, 0.05, 0.2), slice(SliceStandalone, -0.01, -0.03, 0.01)), nil},
		{"switch", report(slice(SliceFollowUp, 0.1, 0.05, 0.2), slice(SliceTopicSwitch, -0.15, -0.2, -0.11)), []string{"set: on topic_switch nDCG@3 falls below pointwise by 0.150 (95% interval -0.200 to -0.110)"}},
		{"bounded switch", report(slice(SliceFollowUp, 0.1, 0.05, 0.2), slice(SliceTopicSwitch, -0.15, -0.2, -0.09)), nil},
		{"first turns", report(slice(SliceFollowUp, 0.1, 0.05, 0.2), slice(SliceFirst, -0.1, -0.2, -0.04)), []string{"on first_turn"}},
		{"gates", report(slice(SliceFollowUp, -0.01, -0.1, 0.2), slice(SliceStandalone, -0.03, -0.1, 0.01)), []string{"follow_up against pointwise is -0.010", "standalone against pointwise is -0.030"}},
	} {
		got := refusals(c.r)
		if len(got) != len(c.wants) {
			t.Errorf("%s: %q", c.name, got)
			continue
		}
		for i, want := range c.wants {
			if !strings.Contains(got[i], want) {
				t.Errorf("%s: %q, want %q", c.name, got[i], want)
			}
		}
	}
}

func TestLikedBest(t *testing.T) {
	curve := func(points ...float64) (c []Generation) { // generation, validation
		for i := 0; i < len(points); i += 2 {
			c = append(c, Generation{int(points[i]), 0, new(points[i+1]), nil})
		}
		return c
	}
	for _, c := range []struct {
		want   int
		curves [][]Generation
	}{
		{0, [][]Generation{curve(0, 1), curve(0, 1, 3, 0.5)}},
		{4, [][]Generation{curve(0, 1, 4, 2), curve(0, 1, 3, 1.5, 9, 1)}},
		{9, [][]Generation{curve(0, 1, 4, 2), curve(0, 1, 3, 1.5, 9, 1.6)}},
	} {
		if got := likedBest(c.curves); got != c.want {
			t.Errorf("%d, want %d", got, c.want)
		}
	}
}

func TestTuneErrors(t *testing.T) {
	w := syntheticWorld(t, 6, nil)
	good := func() *policy.Policy {
		p := policy.Default()
		p.Name = "base"
		return p
	}
	with := func(change func(p *policy.Policy)) *policy.Policy { p := good(); change(p); return p }
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		name string
		ctx  context.Context
		base *policy.Policy
		sets []TuneSet
		opts *TuneOptions
		want string
	}{
		{"no sets", t.Context(), good(), nil, nil, "there are no conversations"},
		{"folds", t.Context(), good(), []TuneSet{{World: w}}, &TuneOptions{Folds: 2}, "folds is 2"},
		{"all at once", t.Context(), good(), []TuneSet{{World: w}}, &TuneOptions{Workers: -1, Samples: -1, Generations: -1}, "workers is -1"},
		{"few conversations", t.Context(), good(), []TuneSet{{World: w}}, &TuneOptions{Folds: 40}, "give more of them"},
		{"invalid", t.Context(), with(func(p *policy.Policy) { p.Arms.Gamma = 2 }), []TuneSet{{World: w}}, nil, "arms.gamma"},
		{"normalisation", t.Context(), with(func(p *policy.Policy) { p.Decode.ScoreNormalization = mapmatched.NormalizeNone }), []TuneSet{{World: w}}, nil, "decode.score_normalization"},
		{"edge moves", t.Context(), with(func(p *policy.Policy) {
			p.Transition.P, p.Transition.Q = map[string]float64{"link": 0.5, "jump": 0.5}, map[string]float64{"link": 0.5, "jump": 0.5}
		}), []TuneSet{{World: w}}, nil, "transition.p is link"},
		{"rerank", t.Context(), with(func(p *policy.Policy) { p.Rerank.Mode = policy.RerankSync }), []TuneSet{{World: w}}, nil, "rerank.mode"},
		{"arm", t.Context(), with(func(p *policy.Policy) { p.Arms.Stage = policy.StageActive }), []TuneSet{{World: w}}, nil, "arms.answer.enabled is false"},
		{"cancelled", cancelled, good(), []TuneSet{{World: w}}, nil, "context canceled"},
	} {
		if _, err := Tune(c.ctx, c.base, c.sets, c.opts); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

func BenchmarkTuneModel(b *testing.B) {
	w := syntheticWorld(b, 40, nil)
	p := tuned(nil)
	tracks, _, _, err := newTracks(b.Context(), w, p, tuneGammas, 0)
	if err != nil {
		b.Fatal(err)
	}
	turns := 0
	for i := range tracks {
		turns += len(tracks[i].turns)
	}
	b.Run("model", func(b *testing.B) {
		model, err := newTuneModel(p, tuneGammas)
		if err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			for i := range tracks {
				if err := model.decode(b.Context(), &tracks[i], func(int, []int32, *column) {}); err != nil {
					b.Fatal(err)
				}
			}
		}
		b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*turns), "µs/turn")
	})
	b.Run("retriever", func(b *testing.B) {
		method := PolicyMethod(p)
		for b.Loop() {
			for i := range w.data.Conversations {
				if _, err := method.Rank(b.Context(), w, &w.data.Conversations[i], DefaultDepth); err != nil {
					b.Fatal(err)
				}
			}
		}
		b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*turns), "µs/turn")
	})
}
