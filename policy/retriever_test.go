package policy

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mapmatched/mmplug/mapmatched"
)

// playPlain answers a conversation by the decoder alone.
func playPlain(t *testing.T, p *Policy, parts Parts, provider mapmatched.CandidateProvider) ([]*mapmatched.Result, *mapmatched.Session) {
	t.Helper()
	cfg, err := p.Config()
	if err != nil {
		t.Fatal(err)
	}
	cfg.Corpus = parts.Corpus
	s, err := mapmatched.NewSession(provider, parts.Graph, cfg)
	if err != nil {
		t.Fatal(err)
	}
	var results []*mapmatched.Result
	for _, text := range talk {
		r, err := s.Ask(t.Context(), mapmatched.Query{Text: text, Vector: letters(text)})
		if err != nil {
			t.Fatal(err)
		}
		results = append(results, r)
	}
	return results, s
}

func TestOneArmWithoutActiveStagesIsThePureDecoder(t *testing.T) {
	w := newWorld()
	parts := w.full(t)
	for name, p := range map[string]*Policy{
		"defaults": newPolicy(nil),
		"lag, beam, other weights": newPolicy(func(p *Policy) {
			p.Decode.FixedLag, p.Decode.Beam, p.Decode.TransitionWeight = new(2), 3, 0.3
			p.Decode.RankBy = mapmatched.RankByFilteredPosterior
		}),
		"only raw words": newPolicy(func(p *Policy) {
			p.Arms.Stage, p.Arms.History.Enabled, p.Arms.Raw.Weight = StageActive, false, 3
			p.Arms.Gate.Stage, p.Arms.Gate.Bias = StageActive, -1e9 // shut
		}),
	} {
		want, session := playPlain(t, p, parts, lexicalArm{w})
		r := mustNew(t, p, parts)
		for i, text := range talk {
			got := mustAsk(t, r, text)
			if !reflect.DeepEqual(got.Result, want[i]) {
				t.Errorf("%s: turn %d: %+v, want %+v", name, i, got.Result, want[i])
			}
			if got.PolicyDigest != p.Digest() || got.Activation != Emit || len(got.Degraded) > 0 || len(got.Order) != len(got.Ranking) {
				t.Errorf("%s: turn %d: %+v", name, i, got)
			}
		}
		mine, theirs := r.Session().DetailedTrace(), session.DetailedTrace()
		if mine.PolicyDigest != p.Digest() {
			t.Errorf("%s: the trace has the digest %q", name, mine.PolicyDigest)
		}
		for i := range mine.Steps { // with a shut gate its value is noted
			mine.Steps[i].Notes = nil
		}
		if asJSON(t, mine) != asJSON(t, theirs) {
			t.Errorf("%s: the traces differ: %s", name, mapmatched.DiffTraces(mine, theirs))
		}
		if name == "defaults" && traceText(t, r.Session()) != asJSON(t, theirs) {
			t.Errorf("%s: the trace has notes", name)
		}
	}
}

// What runs in shadow has no effect at all, also when it fails.
func TestShadowChangesNothing(t *testing.T) {
	w := newWorld()
	p := newPolicy(allShadow)
	for name, prepare := range map[string]func(parts *Parts){
		"all stages": func(parts *Parts) { parts.Shadow = newPolicy(allActive) },
		"stages without what they need": func(parts *Parts) {
			parts.Edges, parts.Chunks, parts.Vectors, parts.Clusters = nil, nil, nil, nil
		},
		"a log that is closed": func(parts *Parts) { _ = parts.Log.Close() },
	} {
		parts := w.full(t)
		want, session := playPlain(t, p, parts, lexicalArm{w})
		log, records := openLog(t)
		parts.Log = log
		prepare(&parts)
		r := mustNew(t, p, parts)
		for i, text := range talk {
			got := mustAsk(t, r, text)
			if !reflect.DeepEqual(got.Result, want[i]) || got.Activation != Emit || got.Context != nil || got.Rerank != nil || got.Gate != nil {
				t.Errorf("%s: turn %d: %+v, want %+v", name, i, got, want[i])
			}
			if closed := strings.Contains(name, "closed"); closed != errors.Is(got.LogErr, mapmatched.ErrClosed) {
				t.Errorf("%s: turn %d: log error %v", name, i, got.LogErr)
			}
		}
		if got := traceText(t, r.Session()); got != traceText(t, session) {
			t.Errorf("%s: the trace differs:\n%s\n%s", name, got, traceText(t, session))
		}
		all := records()
		switch name {
		case "all stages":
			for _, part := range []Kind{KindActivation, KindClustering, KindContext, KindDecay, KindTransition, PartPolicy} {
				of := ofPart(all, string(part))
				if len(of) != len(talk) {
					t.Errorf("%d records of %s, want one for each of %d turns", len(of), part, len(talk))
				}
				for _, record := range of {
					if record.Error != "" || record.Session != "talk" || record.Policy != p.Digest() {
						t.Errorf("record %s", asJSON(t, record))
					}
				}
			}
			if len(ofPart(all, string(KindJudgement))) < len(talk)-1 { // a turn finds nothing
				t.Error("judgements are missing")
			}
			differed := 0
			for _, record := range ofPart(all, PartPolicy) {
				if record.Version != newPolicy(allActive).Digest() {
					t.Errorf("the shadow policy's digest is not the version: %s", record.Version)
				}
				if record.Outcome != record.Applied {
					differed++
				}
			}
			if differed == 0 {
				t.Error("the shadow policy never differed, so this shows little")
			}
		case "stages without what they need":
			for part, want := range map[Kind]string{KindDecay: "needs the edges", KindTransition: "places of chunks", KindJudgement: "no vectors"} {
				of, turns := ofPart(all, string(part)), len(talk)
				if part == KindJudgement {
					turns = 1 // said once, when the conversation begins
				}
				if len(of) != turns || !strings.Contains(of[0].Error, want) {
					t.Errorf("%s: %d records, the first %+v; want the reason %q", part, len(of), of, want)
				}
			}
		}
	}
}

func TestWithoutALogNothingRunsInShadow(t *testing.T) {
	w := newWorld()
	parts := w.full(t)
	asked := 0
	parts.Arms = []FusedArm{{ArmLexical, providerFunc(func(ctx context.Context, q mapmatched.Query, limit int) ([]mapmatched.Candidate, error) {
		asked++
		return lexicalArm{w}.Candidates(ctx, q, limit)
	})}}
	r := mustNew(t, newPolicy(allShadow), parts)
	mustAsk(t, r, talk[0])
	if asked != 1 {
		t.Errorf("the arm was asked %d times", asked)
	}
	parts.Shadow = newPolicy(nil)
	if _, err := New(t.Context(), newPolicy(nil), parts); err == nil || !strings.Contains(err.Error(), "a shadow policy needs a shadow log") {
		t.Errorf("a shadow policy without a log: %v", err)
	}
}

// §14: a follow-up is found by what was said before, and by its own words on
// the first turn.
func TestContextArmsFindFollowUps(t *testing.T) {
	w := newWorld()
	p := newPolicy(func(p *Policy) { p.Arms.Stage, p.Decode.TransitionWeight = StageActive, 0 })
	for name, arm := range map[string]mapmatched.CandidateProvider{
		"terms":      lexicalArm{w},
		"plain text": providerFunc(lexicalArm{w}.Candidates),
		"vectors":    denseArm{w},
	} {
		parts := w.full(t)
		parts.Arms = []FusedArm{{"only", arm}}
		r := mustNew(t, p, parts)
		first := mustAsk(t, r, "the life of a password in a lease")
		raw, err := arm.Candidates(t.Context(), mapmatched.Query{Text: "the life of a password in a lease", Vector: letters("the life of a password in a lease")}, 20)
		if err != nil || asJSON(t, raw) != asJSON(t, first.Order) || first.Gate.Applied != 0 {
			t.Errorf("%s: the first turn is not searched by its own words alone: %+v", name, first.Gate)
		}
		second := mustAsk(t, r, "renew")
		if second.ChunkID != "lease/1" && name != "vectors" {
			t.Errorf("%s: %q after a question on leases finds %s", name, "renew", second.ChunkID)
		}
		decoded := second.Decoded().Parts
		for _, part := range []string{"arm_raw", "arm_history"} {
			if _, given := decoded[part]; !given {
				t.Errorf("%s: score parts %v lack %s", name, decoded, part)
			}
		}
		if len(notes(r)["gate"]) > 0 != (second.Gate != nil) {
			t.Errorf("%s: notes %v, gate %v", name, notes(r), second.Gate)
		}
	}
}

// Emission is (1−g)·raw + g·context: between the two ends, and equal to them at
// g = 0 and g = 1.
func TestGateMixesRawAndContext(t *testing.T) {
	w := newWorld()
	play := func(bias float64) *Answer {
		p := newPolicy(func(p *Policy) {
			p.Arms.Stage, p.Arms.Gate.Stage, p.Arms.Gate.Bias, p.Decode.TransitionWeight = StageActive, StageActive, bias, 0
			p.Arms.Raw.Weight = 0.5
		})
		r := mustNew(t, p, w.parts(t))
		mustAsk(t, r, "the life of a password in a lease")
		return mustAsk(t, r, "renew token")
	}
	scores := func(a *Answer) map[string]float64 {
		m := map[string]float64{}
		for _, c := range a.Order {
			m[c.ChunkID] = c.Score
		}
		return m
	}
	open, shut, half := play(1e9), play(-1e9), play(0)
	if open.Gate.Applied != 1 || shut.Gate.Applied != 0 || half.Gate.Applied != 0.5 {
		t.Fatalf("gates %v, %v, %v", open.Gate.Applied, shut.Gate.Applied, half.Gate.Applied)
	}
	raw, err := lexicalArm{w}.Candidates(t.Context(), mapmatched.Query{Text: "renew token"}, 20)
	if err != nil || asJSON(t, raw) != asJSON(t, shut.Order) {
		t.Errorf("a shut gate gives %s, want the raw list %s (%v)", asJSON(t, shut.Order), asJSON(t, raw), err)
	}
	low, high := math.Inf(1), math.Inf(-1)
	for _, c := range raw {
		low, high = min(low, c.Score), max(high, c.Score)
	}
	rawScores, context := map[string]float64{}, scores(open)
	for _, c := range raw {
		rawScores[c.ChunkID] = minMax(c.Score, low, high)
	}
	for id, got := range scores(half) {
		if want := Emission(rawScores[id], context[id], 0.5); math.Abs(got-want) > 1e-12 {
			t.Errorf("%s: emission %v, want %v of raw %v and context %v", id, got, want, rawScores[id], context[id])
		}
	}
}

func TestGateMayScaleTransitions(t *testing.T) {
	w := newWorld()
	cost := func(scale bool) float64 {
		p := newPolicy(func(p *Policy) {
			p.Arms.Stage, p.Arms.Gate.Stage, p.Arms.Gate.ScaleTransition = StageActive, StageActive, scale
		})
		provider, err := mapmatched.NewSliceProvider([][]mapmatched.Candidate{list("token/0", 1.0), list("token/1", 1.0)})
		if err != nil {
			t.Fatal(err)
		}
		parts := w.parts(t)
		parts.Arms = []FusedArm{{"slices", provider}}
		r := mustNew(t, p, parts)
		mustAsk(t, r, "how long does a token last")
		mustAsk(t, r, "renew")
		return r.Session().Trace().Steps[1].WeightedTransitionCost
	}
	if plain, scaled := cost(false), cost(true); plain != 1 || scaled != 0.5 {
		t.Errorf("cost %v, and %v with β·g for g = 0.5", plain, scaled)
	}
}

// §15: the path maximises the objective with the costs of moves as they are,
// negative ones too. The shift that makes them distances changes no argmax.
func TestTransitionCostsDecideThePathWhateverTheirShift(t *testing.T) {
	w := newWorld()
	rng := rand.New(rand.NewPCG(4, 15))
	for range 60 {
		p := newPolicy(func(p *Policy) {
			p.Transition, p.Decode.ScoreNormalization = moves(), mapmatched.NormalizeNone
			p.Transition.KeepDistance = rng.IntN(2) == 0
			p.Decode.TransitionWeight = rng.Float64()
			for _, table := range []map[string]float64{p.Transition.P, p.Transition.Q} {
				sum := 0.0
				for _, m := range sortedKeys(table) {
					table[m] = 0.01 + rng.Float64()
					sum += table[m]
				}
				for m := range table {
					table[m] /= sum
				}
			}
		})
		turns := make([][]mapmatched.Candidate, 4)
		for i := range turns {
			for _, x := range rng.Perm(len(w.chunks))[:3] {
				turns[i] = append(turns[i], mapmatched.Candidate{ChunkID: w.chunks[x].ID, Score: rng.Float64()})
			}
		}
		provider, err := mapmatched.NewSliceProvider(turns)
		if err != nil {
			t.Fatal(err)
		}
		parts := w.parts(t)
		parts.Arms = []FusedArm{{"slices", provider}}
		r := mustNew(t, p, parts)
		for i := range turns {
			a := mustAsk(t, r, fmt.Sprint(i))
			if i == 0 && a.Move != nil || i > 0 && (a.Move == nil || a.Move.Shift != r.moves.shift || len(notes(r)["transition"]) == 0) {
				t.Errorf("turn %d: move %+v, notes %v", i, a.Move, notes(r))
			}
		}
		place := map[string]Place{}
		for _, c := range w.chunks {
			place[c.ID] = PlaceOf(c)
		}
		score := func(path []string) float64 {
			sum := 0.0
			for i, id := range path {
				for _, c := range turns[i] {
					if c.ChunkID == id {
						sum += c.Score
					}
				}
				if i == 0 {
					continue
				}
				edge := mapmatched.EdgeType("")
				for _, e := range w.edges {
					if e.Type == mapmatched.EdgeLink && (e.From == path[i-1] && e.To == id || e.To == path[i-1] && e.From == id) {
						edge = e.Type
					}
				}
				d := make([]float64, 1)
				if err := parts.Graph.Distances(t.Context(), path[i-1:i], path[i:i+1], d); err != nil {
					t.Fatal(err)
				}
				record, err := p.Transition.Evaluate(place[path[i-1]], place[id], edge, d[0])
				if err != nil {
					t.Fatal(err)
				}
				sum -= p.Decode.TransitionWeight * record.Cost
				if !p.Transition.KeepDistance && record.Cost != record.MoveCost {
					t.Fatalf("record %+v", record)
				}
			}
			return sum
		}
		best := math.Inf(-1)
		var walk func(path []string)
		walk = func(path []string) {
			if len(path) == len(turns) {
				best = max(best, score(path))
				return
			}
			for _, c := range turns[len(path)] {
				walk(append(path[:len(path):len(path)], c.ChunkID))
			}
		}
		walk(nil)
		if got := score(r.Session().Path()); math.Abs(got-best) > 1e-9 {
			t.Errorf("the path %v scores %v without the shift, the best %v", r.Session().Path(), got, best)
		}
		for _, step := range r.Session().Trace().Steps {
			if step.WeightedTransitionCost < 0 || step.GraphDistance > r.moves.MaximumDistance() {
				t.Errorf("step %+v", step)
			}
		}
	}
}

// "p = q gives no effect."
func TestMovesAsFrequentAsChanceHaveNoEffect(t *testing.T) {
	w := newWorld()
	p := newPolicy(func(p *Policy) {
		p.Transition = moves()
		p.Transition.P = p.Transition.Q
	})
	alone := newPolicy(func(p *Policy) { p.Decode.TransitionWeight = 0 })
	a, b := mustNew(t, p, w.parts(t)), mustNew(t, alone, w.parts(t))
	for _, text := range talk {
		if x, y := mustAsk(t, a, text), mustAsk(t, b, text); x.ChunkID != y.ChunkID || x.Move != nil && (x.Move.MoveCost != 0 || x.Move.Shift != 0) {
			t.Errorf("%q: %s and move %+v, pointwise %s", text, x.ChunkID, x.Move, y.ChunkID)
		}
	}
}

// §6 in retrieval: the context is expanded by decay, with score parts, and the
// extremes of α are the parts themselves.
func TestDecayExpandsTheContext(t *testing.T) {
	w := newWorld()
	p := newPolicy(func(p *Policy) { p.Decay.Stage = StageActive })
	r := mustNew(t, p, w.parts(t))
	const text = "an access token proves identity"
	for _, alpha := range []*float64{nil, new(0.0), new(1.0)} {
		a, err := r.Ask(t.Context(), Query{Text: text, Vector: letters(text), Alpha: alpha})
		if err != nil {
			t.Fatal(err)
		}
		if a.ContextModel != GeometricV1 || a.Context[0].ChunkID != "token/0" || joined(chunkIDs(a.Context)) != joined(a.ContextChunkIDs) {
			t.Fatalf("context %v of model %q", chunkIDs(a.Context), a.ContextModel)
		}
		root := a.Context[0]
		if root.Parts[PartDecay] != 1 || root.Score != root.Parts[PartSimilarity] {
			t.Errorf("the decoded chunk is fused: %+v", root)
		}
		reached := 0
		for _, c := range a.Context[1:] {
			decay, scored := c.Parts[PartDecay]
			if !scored || a.Decoded() != nil && isCandidate(a, c.ChunkID) {
				continue
			}
			reached++
			sim := c.Parts[PartSimilarity]
			want := Geometric(sim, decay, 0.6)
			if alpha != nil {
				want = []float64{decay, sim}[int(*alpha)]
			}
			if c.Score != want {
				t.Errorf("α %v: %s scores %v, want %v of sim %v and decay %v", alpha, c.ChunkID, c.Score, want, sim, decay)
			}
		}
		if reached == 0 {
			t.Error("nothing was reached that the query did not find")
		}
	}
	if !bytes.Contains(notes(r)["context"], []byte(`"score_model":"geometric_v1"`)) || !bytes.Contains(notes(r)["context"], []byte(`"decay":0.7`)) {
		t.Errorf("note %s", notes(r)["context"])
	}
	words, err := r.Ask(t.Context(), Query{Text: text})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range words.Context {
		if decay, scored := c.Parts[PartDecay]; scored && c.Score != decay {
			t.Errorf("without a vector clause %s scores %v, want its decay %v", c.ChunkID, c.Score, decay)
		}
	}
	if _, err := r.Ask(t.Context(), Query{Text: text, Alpha: new(1.5)}); !errors.Is(err, mapmatched.ErrInvalidConfig) {
		t.Errorf("α 1.5: %v", err)
	}
	p.Context.Limit = new(2)
	if a := mustAsk(t, mustNew(t, p, w.parts(t)), text); len(a.Context) != 2 || len(a.ContextChunkIDs) != 2 {
		t.Errorf("context %v over the limit", a.ContextChunkIDs)
	}
}

func isCandidate(a *Answer, id string) bool {
	for _, c := range a.Ranking {
		if c.ChunkID == id {
			return true
		}
	}
	return false
}

func TestRerankOfAnAnswer(t *testing.T) {
	w := newWorld()
	parts := w.full(t)
	log, records := openLog(t)
	parts.Log = log
	p := newPolicy(func(p *Policy) { p.Rerank.Mode = RerankSync })
	r := mustNew(t, p, parts)
	a := mustAsk(t, r, "renew token")
	if a.Rerank.Outcome != RerankedReranked || joined(chunkIDs(a.Order)) != "key/1 lease/1 token/0 token/1 token/2" || a.Ranking[0].ChunkID != a.ChunkID {
		t.Errorf("record %+v, order %v, ranking begins with %s", a.Rerank, chunkIDs(a.Order), a.Ranking[0].ChunkID)
	}
	if note := string(notes(r)["rerank"]); !strings.Contains(note, `"outcome":"reranked"`) {
		t.Errorf("note %s", note)
	}
	parts.Reranker = rerankBy(func(mapmatched.Candidate) float64 { return math.NaN() })
	kept := mustNew(t, p, parts)
	a = mustAsk(t, kept, "renew token")
	if a.Rerank.Outcome != RerankedKept || a.Order[0].ChunkID != a.ChunkID || !strings.Contains(string(notes(kept)["rerank"]), `"outcome":"kept"`) {
		t.Errorf("record %+v, order %v", a.Rerank, chunkIDs(a.Order))
	}
	called := false
	parts.Reranker = rerankBy(func(mapmatched.Candidate) float64 { called = true; return 0 })
	empty := mustNew(t, p, parts)
	if a = mustAsk(t, empty, "nothing"); called || a.Rerank.Outcome != RerankedEmpty {
		t.Errorf("an empty turn: called %t, record %+v", called, a.Rerank)
	}

	p.Rerank.Mode = RerankDeferred
	parts.Reranker = rerankBy(func(c mapmatched.Candidate) float64 { return -c.Score })
	later := mustNew(t, p, parts)
	a = mustAsk(t, later, "renew token")
	beside := <-a.Later
	if a.Rerank.Outcome != RerankedPending || a.Order[0].ChunkID != a.ChunkID || beside.Order[0].ChunkID != "key/1" {
		t.Errorf("record %+v, order %v, then %v", a.Rerank, chunkIDs(a.Order), chunkIDs(beside.Order))
	}
	if err := later.Close(); err != nil {
		t.Fatal(err)
	}
	all := ofPart(records(), string(KindRerank))
	if len(all) != 3 || all[0].Outcome != all[0].Applied || all[1].Error == "" || all[2].Outcome == all[2].Applied {
		t.Errorf("records %s", asJSON(t, all))
	}
}

// §12 in retrieval: the gate acts when it is active and its state is kept.
func TestActivationGateOfAConversation(t *testing.T) {
	w := newWorld()
	p := newPolicy(func(p *Policy) { p.Activation.Stage = StageActive })
	p.Activation.TOn, p.Activation.TOff = 0.9, 0.8
	r := mustNew(t, p, w.parts(t))
	state := ActivationState{}
	seen := map[Activation]bool{}
	for i, text := range talk {
		a := mustAsk(t, r, text)
		want, err := p.Activation.Step(state, i, min(a.Confidence, 1), nil)
		if err != nil {
			t.Fatal(err)
		}
		state = want.State
		seen[a.Activation] = true
		if a.Activation != want.State.Activation || string(notes(r)["activation"]) != `"`+string(a.Activation)+`"` {
			t.Errorf("turn %d: %s for confidence %v, want %s; note %s", i, a.Activation, a.Confidence, want.State.Activation, notes(r)["activation"])
		}
	}
	if len(seen) < 2 {
		t.Errorf("always %v, which shows little", seen)
	}
}

// A dead arm degrades visibly, in the answer and in the trace.
func TestDeadArmIsSaidInAnswerAndTrace(t *testing.T) {
	w := newWorld()
	dead := errors.New("connection refused")
	parts := w.parts(t)
	parts.Arms = []FusedArm{{ArmDense, fails(dead)}, {ArmLexical, lexicalArm{w}}}
	p := newPolicy(func(p *Policy) { p.Arms.Stage, p.Decay.Stage = StageActive, StageActive })
	for name, arm := range p.Fusion.Arms {
		arm.TimeoutMS = 0
		p.Fusion.Arms[name] = arm
	}
	parts.Edges = failingEdges{dead}
	r := mustNew(t, p, parts)
	mustAsk(t, r, "the life of a password in a lease")
	a := mustAsk(t, r, "renew lease")
	var names []string
	for _, d := range a.Degraded {
		names = append(names, d.Arm)
		if !errors.Is(d.Err, dead) || d.Turn != 1 {
			t.Errorf("%v", d)
		}
	}
	if joined(names) != "decay dense history/dense" || !strings.HasPrefix(a.ChunkID, "lease/") || len(a.ContextChunkIDs) == 0 {
		t.Errorf("degraded %v, chunk %s, context %v", names, a.ChunkID, a.ContextChunkIDs)
	}
	const note = `[{"arm":"decay","timed_out":false},{"arm":"dense","timed_out":false},{"arm":"history/dense","timed_out":false}]`
	if got := string(notes(r)["degraded"]); got != note {
		t.Errorf("note %s, want %s", got, note)
	}
	if a.Decoded().Parts["history."+PartDegraded+ArmDense] != 1 {
		t.Errorf("score parts %v", a.Decoded().Parts)
	}

	parts.Arms = []FusedArm{{ArmDense, fails(dead)}, {ArmLexical, fails(dead)}}
	r = mustNew(t, p, parts)
	if _, err := r.Ask(t.Context(), Query{Text: "renew"}); !errors.Is(err, dead) || !strings.Contains(err.Error(), "turn 0") || r.Session().Turns() != 0 {
		t.Errorf("no arm answers: %v, %d turns", err, r.Session().Turns())
	}
}

type failingEdges struct{ err error }

func (f failingEdges) Links(context.Context, []string) ([][]Link, error) { return nil, f.err }

// A slow arm is left out after its timeout.
func TestSlowArmTimesOut(t *testing.T) {
	w := newWorld()
	parts := w.parts(t)
	parts.Arms = []FusedArm{{ArmDense, sleeps(time.Hour, nil)}, {ArmLexical, lexicalArm{w}}}
	p := newPolicy(func(p *Policy) { p.Fusion.Arms = map[string]FusionArm{ArmDense: {0.7, 1}, ArmLexical: {0.3, 0}} })
	a := mustAsk(t, mustNew(t, p, parts), "renew lease")
	if len(a.Degraded) != 1 || !a.Degraded[0].TimedOut || a.ChunkID != "lease/1" {
		t.Errorf("degraded %v, chunk %s", a.Degraded, a.ChunkID)
	}
}

// §10: an index that does not fit is refused at the start and at every turn,
// with the fields that differ and the way out.
func TestVectorIdentityIsCheckedAtEveryOpenAndQuery(t *testing.T) {
	w := newWorld()
	p := newPolicy(func(p *Policy) {
		p.Vectors = Vectors{"onnx", "e5", "1", dimension, NormalizationL2, 256}
	})
	good := IndexIdentity{
		Vectors: &VectorIdentity{"onnx", "e5", "1", dimension, NormalizationL2}, ChunkPolicy: p.ChunkPolicy(),
		Lexical: &LexicalIdentity{LexicalPreV2, 1.2, 0.75, DefaultStopwordsSHA256}, Rebuild: "mmplug index docs",
	}
	for name, c := range map[string]struct {
		change func(x *IndexIdentity)
		want   string
	}{
		"provider":      {func(x *IndexIdentity) { x.Vectors.Provider = "http" }, `vectors.provider is "http", the policy says "onnx"`},
		"model":         {func(x *IndexIdentity) { x.Vectors.Model = "bge" }, `vectors.model is "bge", the policy says "e5"`},
		"revision":      {func(x *IndexIdentity) { x.Vectors.Revision = "" }, `vectors.revision is "", the policy says "1"`},
		"dimension":     {func(x *IndexIdentity) { x.Vectors.Dimension = 3 }, `vectors.dimension is 3, the policy says 16`},
		"normalization": {func(x *IndexIdentity) { x.Vectors.Normalization = "" }, `vectors.normalization is ""`},
		"no vectors":    {func(x *IndexIdentity) { x.Vectors = nil }, `there are no vectors, the policy says vectors.model "e5"`},
		"chunk policy":  {func(x *IndexIdentity) { x.ChunkPolicy = "fixed_v1 limit=9 bytes" }, `the chunk policy is "fixed_v1 limit=9 bytes", the policy says "markdown_v1+text_v1+html_v1"`},
		"stopwords":     {func(x *IndexIdentity) { x.Lexical.StopwordsSHA256 = "0" }, `lexical.stopwords_sha256 is "0"`},
		"k1":            {func(x *IndexIdentity) { x.Lexical.K1 = 2 }, `lexical.k1 is 2, the policy says 1.2`},
	} {
		bad := good
		bad.Vectors, bad.Lexical = new(*good.Vectors), new(*good.Lexical)
		c.change(&bad)
		now := bad
		parts := w.parts(t)
		parts.Identify = func(context.Context) (IndexIdentity, error) { return now, nil }
		stale := func(when string, err error) {
			t.Helper()
			if !errors.Is(err, mapmatched.ErrStaleIndex) || !strings.Contains(err.Error(), c.want) || !strings.HasSuffix(err.Error(), ": build it again with mmplug index docs") {
				t.Errorf("%s, %s: %v, want %q", name, when, err, c.want)
			}
		}
		_, err := New(t.Context(), p, parts)
		stale("at the start", err)
		now = good
		r := mustNew(t, p, parts)
		mustAsk(t, r, talk[0])
		now = bad
		_, err = r.Ask(t.Context(), Query{Text: talk[1]})
		stale("at a turn", err)
		if r.Session().Turns() != 1 {
			t.Errorf("%s: a refused turn counts", name)
		}
		now = good
		mustAsk(t, r, talk[1])
	}
	parts := w.parts(t)
	if _, err := New(t.Context(), p, parts); err == nil || !strings.Contains(err.Error(), "nothing says what made the vectors") {
		t.Errorf("vectors without identity: %v", err)
	}
	parts.Identify = func(context.Context) (IndexIdentity, error) { return good, nil }
	r := mustNew(t, p, parts)
	if _, err := r.Ask(t.Context(), Query{Text: "x", Vector: make([]float32, 3)}); err == nil || !strings.Contains(err.Error(), "3 components, vectors.dimension is 16") {
		t.Errorf("a query of another dimension: %v", err)
	}
}

func TestChunkPolicyNamesWhatMakesChunksAndEdges(t *testing.T) {
	sum := strings.Repeat("ab", 32)
	for want, change := range map[string]func(p *Policy){
		"markdown_v1+text_v1+html_v1":                              nil,
		"markdown_v1+text_v1+html_v1 limit=99 bytes":               func(p *Policy) { p.Chunking.Limit = 99 },
		"fixed_v1 limit=2000 bytes":                                func(p *Policy) { p.Chunking.Version = FixedV1 },
		"m7_chunk_pre_v1 limit=512 tokens tokenizer=sha256:" + sum: func(p *Policy) { p.Chunking = Chunking{M7ChunkPreV1, 512, UnitTokens, "t.json", sum} },
		"markdown_v1+text_v1+html_v1 maximum_distance=4 link=3 next=1": func(p *Policy) {
			p.Graph.MaximumDistance, p.Graph.Weights = 4, map[string]float64{"next": 1, "link": 3}
		},
	} {
		if got := newPolicy(change).ChunkPolicy(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	moved := newPolicy(func(p *Policy) { p.Chunking = Chunking{M7ChunkPreV1, 512, UnitTokens, "elsewhere/t.json", sum} })
	if got := moved.ChunkPolicy(); !strings.HasSuffix(got, sum) || strings.Contains(got, "elsewhere") {
		t.Errorf("%q depends on where the tokenizer is", got)
	}
}

// A conversation that was saved and restored goes on bit for bit, with its
// activation, its feedback and what runs in shadow.
func TestSavedConversationGoesOnBitForBit(t *testing.T) {
	w := newWorld()
	p, other := newPolicy(allActive), newPolicy(func(p *Policy) { p.Name, p.Arms.Stage = "other", StageActive })
	ask := func(r *Retriever, i int) string {
		t.Helper()
		a, err := r.Ask(t.Context(), Query{Text: talk[i], Vector: letters(talk[i]), Answer: "a reply about keys"})
		if err != nil {
			t.Fatal(err)
		}
		return asJSON(t, []any{a.Result, a.Order, a.Context, a.Gate, a.Move, a.Activation})
	}
	log, records := openLog(t)
	parts := w.full(t)
	parts.Log, parts.Shadow = log, other
	whole := mustNew(t, p, parts)
	var want []string
	for i := range talk {
		want = append(want, ask(whole, i))
	}
	uninterrupted := records()

	log, records = openLog(t)
	parts.Log = log
	r := mustNew(t, p, parts)
	for i := range talk {
		var file bytes.Buffer
		if err := r.Save(&file); err != nil {
			t.Fatal(err)
		}
		var err error
		if r, err = Restore(t.Context(), &file, p, parts); err != nil {
			t.Fatal(err)
		}
		if got := ask(r, i); got != want[i] {
			t.Errorf("turn %d: %s, want %s", i, got, want[i])
		}
	}
	if traceText(t, r.Session()) != traceText(t, whole.Session()) {
		t.Error("the traces differ")
	}
	if got := records(); asJSON(t, got) != asJSON(t, uninterrupted) {
		t.Errorf("the logs differ:\n%s\n%s", asJSON(t, got), asJSON(t, uninterrupted))
	}
	var file bytes.Buffer
	if err := r.Save(&file); err != nil {
		t.Fatal(err)
	}
	trace, err := ReadConversationTrace(bytes.NewReader(file.Bytes()))
	if err != nil || asJSON(t, trace) != traceText(t, r.Session()) {
		t.Errorf("the trace of the file: %v", err)
	}
	if _, err := Restore(t.Context(), bytes.NewReader(file.Bytes()), other, parts); err == nil ||
		!strings.Contains(err.Error(), "made under policy test with the digest "+p.Digest()+", not under other with "+other.Digest()) {
		t.Errorf("under another policy: %v", err)
	}
	for name, bad := range map[string]string{
		"cut": file.String()[:file.Len()/2], "empty": "", "another schema": `{"schema":"x"}`, "unknown key": `{"x":1}`,
		"twice":      file.String() + "{}",
		"activation": strings.Replace(file.String(), `"activation":{"activation":"`, `"activation":{"activation":"un`, 1),
		"vectors":    strings.Replace(file.String(), `"vectors":[[`, `"vectors":[[1],[`, 1),
	} {
		if _, err := Restore(t.Context(), strings.NewReader(bad), p, parts); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzRestore(f *testing.F) {
	w := newWorld()
	p := newPolicy(func(p *Policy) { p.Arms.Stage, p.Activation.Stage = StageActive, StageActive })
	r := mustNew(f, p, w.parts(f))
	mustAsk(f, r, talk[0])
	var file bytes.Buffer
	if err := r.Save(&file); err != nil {
		f.Fatal(err)
	}
	f.Add(file.Bytes())
	f.Add([]byte(`{"schema":"mmplug.conversation/1","session":null}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := Restore(t.Context(), bytes.NewReader(data), p, w.parts(t))
		if err != nil {
			return
		}
		if _, err := r.Ask(t.Context(), Query{Text: "renew"}); err != nil && len(r.memory.vectors) == 0 {
			t.Errorf("a conversation that was accepted does not go on: %v", err)
		}
	})
}

// Stored traces keep what made them, and a comparison says when two were made
// under different policies.
func TestTraceDiffSaysThatPoliciesDiffer(t *testing.T) {
	w := newWorld()
	trace := func(p *Policy) *mapmatched.Trace {
		r := mustNew(t, p, w.parts(t))
		for _, text := range talk {
			mustAsk(t, r, text)
		}
		stored, err := mapmatched.ReadTrace(strings.NewReader(asJSON(t, r.Session().Trace())))
		if err != nil {
			t.Fatal(err)
		}
		if stored.PolicyDigest != p.Digest() || stored.ScoreModel != DecodeV1 {
			t.Errorf("digest %q, model %q", stored.PolicyDigest, stored.ScoreModel)
		}
		return stored
	}
	a, b := newPolicy(nil), newPolicy(func(p *Policy) { p.Arms.Stage = StageActive })
	diff := mapmatched.DiffTraces(trace(a), trace(b)).String()
	for _, want := range []string{"different settings, so their scores are not comparable", "policy is " + a.Digest() + " in the first, " + b.Digest() + " in the second"} {
		if !strings.Contains(diff, want) {
			t.Errorf("%s\nlacks %q", diff, want)
		}
	}
	if same := mapmatched.DiffTraces(trace(a), trace(a)); !same.Empty() {
		t.Errorf("the same policy: %s", same)
	}
}

// A turn that fails leaves the conversation as it was.
func TestTurnsAreTransactional(t *testing.T) {
	w := newWorld()
	for _, p := range []*Policy{newPolicy(nil), newPolicy(allActive)} {
		parts := w.full(t)
		broken := errors.New("disk on fire")
		var fail error
		parts.Arms = []FusedArm{{ArmLexical, providerFunc(func(ctx context.Context, q mapmatched.Query, limit int) ([]mapmatched.Candidate, error) {
			if fail != nil {
				return nil, fail
			}
			return lexicalArm{w}.Candidates(ctx, q, limit)
		})}}
		r, calm := mustNew(t, p, parts), mustNew(t, p, parts)
		for _, text := range talk {
			var before, after bytes.Buffer
			if err := r.Save(&before); err != nil {
				t.Fatal(err)
			}
			fail = broken
			if _, err := r.Ask(t.Context(), Query{Text: text}); !errors.Is(err, broken) {
				t.Errorf("error %v", err)
			}
			fail = nil
			stopped, cancel := context.WithCancel(t.Context())
			cancel()
			if _, err := r.Ask(stopped, Query{Text: text}); !errors.Is(err, context.Canceled) {
				t.Errorf("error %v", err)
			}
			if err := r.Save(&after); err != nil || after.String() != before.String() {
				t.Errorf("a failed turn changed the conversation (%v)", err)
			}
			if x, y := mustAsk(t, r, text), mustAsk(t, calm, text); asJSON(t, x.Result) != asJSON(t, y.Result) {
				t.Errorf("%+v after a failure, else %+v", x.Result, y.Result)
			}
		}
	}
}

func TestNewReportsAllThatIsMissing(t *testing.T) {
	p := newPolicy(allActive)
	p.Fusion.Version = GeometricV1
	graph, err := mapmatched.NewGraph(nil, &mapmatched.GraphOptions{MaximumDistance: 4})
	if err != nil {
		t.Fatal(err)
	}
	_, err = New(t.Context(), p, Parts{Graph: graph})
	for _, want := range []string{
		"no arm finds candidates", "fusion.version is geometric_v1", "transition.stage is active", "decay.stage is active", "clustering.stage is active",
		"rerank.mode is sync", "the graph's maximum distance is 4, graph.maximum_distance is 10",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v lacks %q", err, want)
		}
	}
	p.Decode.BreakDistance = 10
	if err := p.Validate(); err == nil || !strings.Contains(err.Error(), "decode.break_distance is 10: it must be 0 when transition.stage is active") {
		t.Errorf("breaks by the cost of moves: %v", err)
	}
	w := newWorld()
	parts := w.full(t)
	parts.Edges = nil
	if _, err := New(t.Context(), newPolicy(func(p *Policy) { p.Transition = moves() }), parts); err == nil || !strings.Contains(err.Error(), "moves by edge type") {
		t.Errorf("moves by edge type without edges: %v", err)
	}
	if _, err := New(t.Context(), newPolicy(func(p *Policy) { p.Decode.Temperature = 0 }), parts); !errors.Is(err, mapmatched.ErrInvalidConfig) {
		t.Errorf("an invalid policy: %v", err)
	}
	parts.Arms = append(parts.Arms, FusedArm{"third", lexicalArm{w}})
	if _, err := New(t.Context(), newPolicy(nil), parts); err == nil || !strings.Contains(err.Error(), `arm "third" is not in fusion.arms`) {
		t.Errorf("an arm that the policy does not know: %v", err)
	}
}

func TestClustersAreAFeature(t *testing.T) {
	w := newWorld()
	parts := w.full(t)
	log, records := openLog(t)
	parts.Log = log
	r := mustNew(t, newPolicy(func(p *Policy) { p.Clustering.Stage = StageActive }), parts)
	plain := mustNew(t, newPolicy(func(p *Policy) { p.Clustering.Stage = StageOff }), w.full(t))
	for _, text := range []string{"renew token", "revoke token"} {
		a, b := mustAsk(t, r, text), mustAsk(t, plain, text)
		for i, c := range a.Ranking {
			if c.Score != b.Ranking[i].Score || c.ChunkID != b.Ranking[i].ChunkID {
				t.Errorf("%q: the cluster of %s counts in its score", text, c.ChunkID)
			}
			want := 0.0
			if a.Turn > 0 && strings.HasPrefix(c.ChunkID, "token/") {
				want = 1
			}
			if got, given := c.Parts[PartSameCluster]; got != want || !given {
				t.Errorf("turn %d, %s: %v", a.Turn, c.ChunkID, c.Parts)
			}
		}
	}
	of := ofPart(records(), string(KindClustering))
	if len(of) != 2 || of[0].Outcome != "none" || of[1].Outcome != "same" || of[1].Applied != "same" {
		t.Errorf("records %s", asJSON(t, of))
	}
}

func TestJudgementOfAnAnswerIsLogged(t *testing.T) {
	w := newWorld()
	w.chunks = append(w.chunks, mapmatched.Chunk{ID: "token/1b", Document: "token", Title: "token", Ordinal: 3, Text: w.chunks[1].Text})
	w.extra["token/1"] = map[string]any{MetadataDigest: "old", MetadataRevision: 1}
	w.extra["token/1b"] = map[string]any{MetadataDigest: "new", MetadataRevision: 2}
	parts := w.parts(t)
	log, records := openLog(t)
	parts.Log = log
	p := newPolicy(func(p *Policy) { p.Judgement.Stage, p.Judgement.CosineThreshold = StageShadow, 0.999 })
	mustAsk(t, mustNew(t, p, parts), "renew token")
	of := ofPart(records(), string(KindJudgement))
	if len(of) != 1 || of[0].Outcome != string(SuggestSupersede) || joined(of[0].Sources) != "token/1b token/1" || of[0].Policy != p.Digest() ||
		len(of[0].Support) != 3 || *of[0].Value != 1 || of[0].Version != JudgementPreV1 {
		t.Errorf("records %s", asJSON(t, of))
	}
}

// Without digests in the metadata the texts of the chunks are compared, whether
// they come with the candidates or not; a revision is only known when the
// metadata has one.
func TestJudgementComparesTexts(t *testing.T) {
	for _, c := range []struct {
		name      string
		text      string // of the second chunk, "" for that of the first
		revisions bool
		bare      bool // candidates come without texts
		want      Suggestion
		sources   string
	}{
		{"the same text", "", false, false, SuggestMerge, "token/1 token/1b"},
		{"the same text, stored", "", false, true, SuggestMerge, "token/1 token/1b"},
		{"other texts", "renew token before expiry with a call refresh", false, false, SuggestKeep, "token/1 token/1b"},
		{"other texts, stored", "renew token before expiry with a call refresh", false, true, SuggestKeep, "token/1 token/1b"},
		{"other texts with revisions", "renew token before expiry with a call refresh", true, false, SuggestSupersede, "token/1b token/1"},
	} {
		w := newWorld()
		w.chunks = append(w.chunks, mapmatched.Chunk{ID: "token/1b", Document: "token", Title: "token", Ordinal: 3, Text: cmp.Or(c.text, w.chunks[1].Text)})
		if c.revisions {
			w.extra["token/1"] = map[string]any{MetadataRevision: 1}
			w.extra["token/1b"] = map[string]any{MetadataRevision: 2}
		}
		parts := w.parts(t)
		if c.bare {
			parts.Arms = []FusedArm{{ArmLexical, providerFunc(func(ctx context.Context, q mapmatched.Query, limit int) ([]mapmatched.Candidate, error) {
				list, err := lexicalArm{w}.Candidates(ctx, q, limit)
				for i := range list {
					list[i].Text = ""
				}
				return list, err
			})}}
		}
		log, records := openLog(t)
		parts.Log = log
		p := newPolicy(func(p *Policy) { p.Judgement.Stage, p.Judgement.CosineThreshold = StageShadow, 0.999 })
		mustAsk(t, mustNew(t, p, parts), "renew token")
		of := ofPart(records(), string(KindJudgement))
		if len(of) != 1 || of[0].Outcome != string(c.want) || joined(of[0].Sources) != c.sources || of[0].Error != "" {
			t.Errorf("%s: records %s", c.name, asJSON(t, of))
		}
	}
}

// The two formulas of decay are compared in the trace when that is asked for,
// and answers stay as they are.
func TestDecayDifferencesAreNoted(t *testing.T) {
	w := newWorld()
	p := newPolicy(func(p *Policy) {
		p.Decay.Stage, p.Decay.Weights = StageActive, map[string]float64{"next": 0.9, "link": 0.1}
	})
	// A link across what two steps join.
	w.edges = append(w.edges, mapmatched.Edge{From: "token/0", To: "token/2", Weight: 1, Type: mapmatched.EdgeLink})
	parts := w.parts(t)
	plain := mustNew(t, p, parts)
	parts.DecayDifferences = true
	r := mustNew(t, p, parts)
	want := mustAsk(t, plain, talk[0])
	got := mustAsk(t, r, talk[0])
	if got.ChunkID != "token/0" || joined(got.ContextChunkIDs) != joined(want.ContextChunkIDs) {
		t.Errorf("%s with %v, else %s with %v", got.ChunkID, got.ContextChunkIDs, want.ChunkID, want.ContextChunkIDs)
	}
	const note = `[{"chunk_id":"token/2","decay_exact_v1":0.81,"decay_v1":0.1,"hops_exact_v1":2,"hops_v1":1}]`
	if text := string(notes(r)["decay_differences"]); text != note {
		t.Errorf("noted %s, want %s", text, note)
	}
	if _, noted := notes(plain)["decay_differences"]; noted {
		t.Error("noted without being asked for")
	}
}

// Different conversations run in parallel, and one serves its callers in turn.
func TestRetrieverServesCallersInTurn(t *testing.T) {
	w := newWorld()
	r := mustNew(t, newPolicy(allActive), w.full(t))
	done := make(chan error)
	for i := range 8 {
		go func() {
			_, err := r.Ask(t.Context(), Query{Text: talk[i%len(talk)]})
			done <- err
		}()
	}
	for range 8 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if r.Session().Turns() != 8 {
		t.Errorf("%d turns", r.Session().Turns())
	}
}

// The trace of a turn with everything active is JSON with sorted keys.
func TestNotesOfATrace(t *testing.T) {
	w := newWorld()
	r := mustNew(t, newPolicy(allActive), w.full(t))
	mustAsk(t, r, talk[0])
	mustAsk(t, r, "renew it")
	var names []string
	for _, name := range sortedKeys(notes(r)) {
		names = append(names, name)
		var v any
		if err := json.Unmarshal(notes(r)[name], &v); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if joined(names) != "activation context gate rerank transition" {
		t.Errorf("notes %v", names)
	}
}

func BenchmarkAsk(b *testing.B) {
	w := newWorld()
	for name, change := range map[string]func(*Policy){"plain": nil, "active": allActive} {
		b.Run("policy="+name, func(b *testing.B) {
			p := newPolicy(change)
			p.Decode.FixedLag = new(2)
			r := mustNew(b, p, w.full(b))
			for i := 0; b.Loop(); i++ {
				if _, err := r.Ask(b.Context(), Query{Text: talk[i%2]}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// β = 0 decides every turn alone, whatever was said before.
func TestZeroTransitionWeightIsPointwise(t *testing.T) {
	w := newWorld()
	r := mustNew(t, newPolicy(func(p *Policy) { p.Decode.TransitionWeight, p.Transition = 0, moves() }), w.parts(t))
	for _, text := range talk {
		a := mustAsk(t, r, text)
		if best := a.Pointwise(); best != nil && best.ChunkID != a.ChunkID {
			t.Errorf("%q: %s, pointwise %s", text, a.ChunkID, best.ChunkID)
		}
	}
}

// Providers that know only plain text receive one query for each arm, and of
// the history what has not faded.
func TestPlainTextProvidersGetOneQueryForEachArm(t *testing.T) {
	w := newWorld()
	var mu sync.Mutex
	var asked []string
	parts := w.parts(t)
	parts.Arms = []FusedArm{{"plain", providerFunc(func(_ context.Context, q mapmatched.Query, _ int) ([]mapmatched.Candidate, error) {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, q.Text)
		return list("token/0", 1.0), nil
	})}}
	p := newPolicy(func(p *Policy) {
		p.Arms.Stage, p.Arms.Answer.Enabled, p.Arms.Feedback.Enabled, p.Arms.FeedbackTerms = StageActive, true, true, 2
	})
	r := mustNew(t, p, parts)
	for i := range 8 {
		asked = nil
		if _, err := r.Ask(t.Context(), Query{Text: fmt.Sprintf("question %d", i), Answer: "a reply"}); err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(asked)
	want := []string{"a reply", "question 3\nquestion 4\nquestion 5\nquestion 6\nquestion 7", "question 7", "token\naccess an"}
	if !slices.Equal(asked, want) {
		t.Errorf("asked %q, want %q", asked, want)
	}
}

// TestAlone: what the words of the turn find first, whatever the context says.
func TestAlone(t *testing.T) {
	w := newWorld()
	for name, change := range map[string]func(p *Policy){"plain": nil, "contextual": allActive} {
		p := newPolicy(change)
		p.Rerank.Mode = RerankOff
		r := mustNew(t, p, w.full(t))
		for i, text := range talk {
			a := mustAsk(t, r, text)
			alone, err := lexicalArm{w}.Candidates(t.Context(), mapmatched.Query{Text: text}, 1)
			if err != nil {
				t.Fatal(err)
			}
			if (a.Alone == nil) != (len(alone) == 0) || a.Alone != nil && a.Alone.ChunkID != alone[0].ChunkID {
				t.Errorf("%s, turn %d: %v, want %v", name, i, a.Alone, alone)
			}
		}
	}
}
