package mapmatched

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

// conversation is a random small problem. Scores and weights are multiples of
// 1/8, so that without normalisation all sums are exact and ties are real.
type conversation struct {
	edges   []Edge
	options GraphOptions
	turns   [][]Candidate
	cfg     Config
}

func randomConversation(r *rand.Rand, turns, candidates int) conversation {
	ids := []string{"a", "b", "c", "d", "e", "f", "g"}
	eighth := func(n int) float64 { return float64(1+r.IntN(n)) / 8 }
	c := conversation{options: GraphOptions{MaximumDistance: eighth(32), Directed: r.IntN(2) == 0}}
	for range r.IntN(12) {
		c.edges = append(c.edges, Edge{From: ids[r.IntN(6)], To: ids[r.IntN(6)], Weight: eighth(16)})
	}
	for range 1 + r.IntN(turns) {
		var turn []Candidate
		for _, i := range r.Perm(len(ids))[:r.IntN(candidates+1)] {
			turn = append(turn, Candidate{ChunkID: ids[i], Score: float64(r.IntN(9)-4) / 4})
		}
		c.turns = append(c.turns, turn)
	}
	c.cfg = Config{
		EmissionWeight:     []*float64{nil, new(0.0), new(0.5), new(2.0)}[r.IntN(4)],
		TransitionWeight:   []*float64{nil, new(0.0), new(0.25), new(3.0)}[r.IntN(4)],
		ScoreNormalization: []Normalization{NormalizeNone, NormalizeNone, NormalizeCenter, NormalizeZScore}[r.IntN(4)],
		FixedLag:           []*int{nil, nil, new(0), new(1), new(2), new(7)}[r.IntN(6)],
		CandidateLimit:     []int{0, 3}[r.IntN(2)],
		Temperature:        []float64{0, 0.5, 3}[r.IntN(3)],
	}
	if r.IntN(3) == 0 {
		c.cfg.BreakDistance = []float64{c.options.MaximumDistance, c.options.MaximumDistance / 2}[r.IntN(2)]
	}
	return c
}

func (c *conversation) graph(t testing.TB) *Graph {
	t.Helper()
	g, err := NewGraph(c.edges, &c.options)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func (c *conversation) session(t testing.TB, change func(*Config)) *Session {
	t.Helper()
	cfg := c.cfg
	if change != nil {
		change(&cfg)
	}
	s, err := NewSession(nil, c.graph(t), &cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// oracle decodes by listing all paths. It shares nothing with the decoder but
// Normalize, which has its own tests.
type oracle struct {
	conversation
	lambda, beta, tau float64
	emission          [][]float64
	committed         []int // −2 where free
	path              []int
	shortest          map[[2]string]float64
}

func newOracle(c conversation) *oracle {
	o := &oracle{conversation: c, lambda: 1, beta: 1, tau: 1}
	if c.cfg.EmissionWeight != nil {
		o.lambda = *c.cfg.EmissionWeight
	}
	if c.cfg.TransitionWeight != nil {
		o.beta = *c.cfg.TransitionWeight
	}
	if c.cfg.Temperature != 0 {
		o.tau = c.cfg.Temperature
	}
	for i, turn := range c.turns {
		if c.cfg.CandidateLimit > 0 && len(turn) > c.cfg.CandidateLimit {
			c.turns[i] = turn[:c.cfg.CandidateLimit]
		}
	}
	return o
}

// distance is Floyd and Warshall's.
func (o *oracle) distance(from, to string) float64 {
	if from == to {
		return 0
	}
	nodes := []string{"a", "b", "c", "d", "e", "f", "g"}
	at := func(x, y string) float64 {
		if v, ok := o.shortest[[2]string{x, y}]; ok {
			return v
		}
		return math.Inf(1)
	}
	if o.shortest != nil {
		return min(at(from, to), o.options.MaximumDistance)
	}
	d := map[[2]string]float64{}
	o.shortest = d
	for _, e := range o.edges {
		d[[2]string{e.From, e.To}] = min(at(e.From, e.To), e.Weight)
		if !o.options.Directed {
			d[[2]string{e.To, e.From}] = min(at(e.To, e.From), e.Weight)
		}
	}
	for _, k := range nodes {
		for _, x := range nodes {
			for _, y := range nodes {
				d[[2]string{x, y}] = min(at(x, y), at(x, k)+at(k, y))
			}
		}
	}
	return min(at(from, to), o.options.MaximumDistance)
}

// cost of moving to candidate x of a turn, from candidate y of an earlier one.
func (o *oracle) cost(before, y, turn, x int) float64 {
	if o.cfg.BreakDistance > 0 {
		isBreak := true
		for yy, from := range o.turns[before] {
			if o.cfg.FixedLag != nil && before+*o.cfg.FixedLag < turn && o.committed[before] != yy {
				continue // another one had been committed when the turn came
			}
			for _, to := range o.turns[turn] {
				if o.distance(from.ChunkID, to.ChunkID) < o.cfg.BreakDistance {
					isBreak = false
				}
			}
		}
		if isBreak {
			return 0
		}
	}
	return o.beta * o.distance(o.turns[before][y].ChunkID, o.turns[turn][x].ChunkID)
}

// paths yields every path through the first n turns that is still open.
func (o *oracle) paths(n int, yield func(path []int, score float64)) {
	path := make([]int, n)
	var walk func(turn, before int, score float64)
	walk = func(turn, before int, score float64) {
		if turn == n {
			yield(slices.Clone(path), score)
			return
		}
		if len(o.turns[turn]) == 0 {
			path[turn] = -1
			walk(turn+1, before, score)
			return
		}
		for x := range o.turns[turn] {
			if c := o.committed[turn]; c >= -1 && c != x {
				continue
			}
			gain := o.emission[turn][x]
			if before >= 0 && o.beta != 0 {
				gain -= o.cost(before, path[before], turn, x)
			}
			path[turn] = x
			walk(turn+1, turn, score+gain)
		}
	}
	walk(0, -1, 0)
}

// answer is what is true after a turn.
type answer struct {
	path      []int
	score     float64
	best      map[int]float64 // best path score by candidate of the last turn
	posterior []map[int]float64
	revised   []int
	ranked    []ScoredPath
}

func (o *oracle) ask(t *testing.T) answer {
	t.Helper()
	turn := len(o.emission)
	var raw []float64
	for _, c := range o.turns[turn] {
		raw = append(raw, c.Score)
	}
	normalization := o.cfg.ScoreNormalization
	normalized, err := Normalize(raw, normalization)
	if err != nil {
		t.Fatal(err)
	}
	for i := range normalized {
		normalized[i] *= o.lambda
	}
	o.emission = append(o.emission, normalized)
	o.committed = append(o.committed, -2)
	a := answer{score: math.Inf(-1)}
	o.paths(turn+1, func(path []int, score float64) {
		a.ranked = append(a.ranked, ScoredPath{Candidates: path, Score: score})
		if score > a.score || score == a.score && o.before(path, a.path) {
			a.path, a.score = path, score
		}
	})
	o.weigh(&a)
	slices.SortStableFunc(a.ranked, func(x, y ScoredPath) int {
		if x.Score != y.Score {
			return compareFloats(y.Score, x.Score)
		}
		return slices.Compare(x.Candidates, y.Candidates)
	})
	for i, x := range o.path {
		if a.path[i] != x {
			a.revised = append(a.revised, i)
		}
	}
	o.path = a.path
	o.commit(&a)
	return a
}

// weigh works out best path scores and posteriors of the paths still open.
func (o *oracle) weigh(a *answer) {
	turn := len(o.emission) - 1
	a.best, a.posterior = map[int]float64{}, nil
	for range turn + 1 {
		a.posterior = append(a.posterior, map[int]float64{})
	}
	total := 0.0
	o.paths(turn+1, func(path []int, score float64) {
		if _, seen := a.best[path[turn]]; !seen || score > a.best[path[turn]] {
			a.best[path[turn]] = score
		}
		p := math.Exp(score / o.tau)
		total += p
		for i, x := range path {
			a.posterior[i][x] += p
		}
	})
	for _, m := range a.posterior {
		for x := range m {
			m[x] /= total
		}
	}
}

// commit fixes what the turn commits. That is part of what its ranking is
// given, unless it is the turn itself.
func (o *oracle) commit(a *answer) {
	turn := len(o.emission) - 1
	if o.cfg.FixedLag != nil && turn >= *o.cfg.FixedLag {
		o.committed[turn-*o.cfg.FixedLag] = o.path[turn-*o.cfg.FixedLag]
		if *o.cfg.FixedLag > 0 {
			o.weigh(a)
		}
	}
}

func compareFloats(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// before reports whether path a wins a tie against b: the earlier candidate of
// the last turn on which they differ.
func (o *oracle) before(a, b []int) bool {
	for i := len(a) - 1; i >= 0; i-- {
		if a[i] != b[i] {
			return a[i] < b[i]
		}
	}
	return false
}

func close9(a, b float64) bool { return math.Abs(a-b) <= 1e-9 }

func TestAllPaths(t *testing.T) {
	for seed := range uint64(1500) {
		c := randomConversation(rand.New(rand.NewPCG(seed, 1)), 5, 4)
		exact := c.cfg.ScoreNormalization == NormalizeNone
		s := c.session(t, nil)
		o := newOracle(c)
		for i, turn := range c.turns {
			got, err := s.Observe(t.Context(), "", turn)
			if err != nil {
				t.Fatalf("seed %d turn %d: %v", seed, i, err)
			}
			open := slices.Clone(o.committed)
			want := o.ask(t)
			fail := func(format string, args ...any) {
				t.Helper()
				t.Fatalf("seed %d turn %d of %v\n%+v: %s", seed, i, c.turns, s.options(), fmt.Sprintf(format, args...))
			}
			if exact && got.TotalScore != want.score || !close9(got.TotalScore, want.score) {
				fail("total %v, want %v", got.TotalScore, want.score)
			}
			if !exact {
				// Rounding may break a tie otherwise; then both paths are best.
				o.path = positions(c.turns, s.Path())
				o.commit(&want)
				score, allowed := 0.0, false
				trial := &oracle{conversation: c, lambda: o.lambda, beta: o.beta, tau: o.tau, emission: o.emission, committed: append(open, -2), shortest: o.shortest}
				trial.paths(i+1, func(path []int, s float64) {
					if slices.Equal(path, o.path) {
						score, allowed = s, true
					}
				})
				if !allowed || !close9(score, want.score) {
					fail("path %v scores %v, want %v", o.path, score, want.score)
				}
			} else if path := positions(c.turns, s.Path()); !slices.Equal(path, want.path) {
				fail("path %v, want %v", path, want.path)
			} else if !slices.Equal(got.RevisedPriorIndices, want.revised) {
				fail("revised %v, want %v", got.RevisedPriorIndices, want.revised)
			}
			for _, r := range got.Ranking {
				if !close9(r.PathScore, want.best[r.Position]) {
					fail("ranking score of %d %v, want %v", r.Position, r.PathScore, want.best[r.Position])
				}
				if !close9(r.Posterior, want.posterior[i][r.Position]) {
					fail("posterior of %d %v, want %v", r.Position, r.Posterior, want.posterior[i][r.Position])
				}
			}
			if len(turn) > 0 {
				if end := want.path[i]; exact && !close9(got.Confidence, want.posterior[i][end]) {
					fail("confidence %v, want %v", got.Confidence, want.posterior[i][end])
				}
			}
			if !slices.IsSortedFunc(got.Ranking, func(a, b Ranked) int {
				if a.PathScore == b.PathScore && o.beta != 0 {
					return a.Position - b.Position
				}
				return compareFloats(b.PathScore, a.PathScore)
			}) && exact {
				fail("ranking %v", got.Ranking)
			}
			if c.cfg.FixedLag == nil {
				for turn := range i + 1 {
					marginals, err := s.Posterior(turn)
					if err != nil {
						t.Fatal(err)
					}
					sum := 0.0
					for x, m := range marginals {
						sum += m.Score
						if !close9(m.Score, want.posterior[turn][x]) {
							fail("posterior of turn %d: %v, want %v", turn, marginals, want.posterior[turn])
						}
					}
					if len(marginals) > 0 && !close9(sum, 1) {
						fail("posterior of turn %d sums to %v", turn, sum)
					}
				}
				k := 1 + int(seed%7)
				best, err := s.KBest(t.Context(), k)
				if err != nil {
					t.Fatal(err)
				}
				if len(best) != min(k, len(want.ranked)) {
					fail("%d best paths of %d, asked for %d", len(best), len(want.ranked), k)
				}
				for j, p := range best {
					if exact && !slices.Equal(p.Candidates, want.ranked[j].Candidates) || !close9(p.Score, want.ranked[j].Score) {
						fail("path %d of the best is %v, want %v", j, p, want.ranked[j])
					}
				}
			}
		}
		checkTrace(t, s)
	}
}

// positions turns a path of chunk IDs into one of candidates.
func positions(turns [][]Candidate, path []string) []int {
	var list []int
	for i, id := range path {
		list = append(list, slices.IndexFunc(turns[i], func(c Candidate) bool { return c.ChunkID == id }))
	}
	return list
}

// sortedKeys fails unless the keys of every object are in order.
func sortedKeys(t *testing.T, raw []byte) {
	t.Helper()
	var tree any
	if err := json.Unmarshal(raw, &tree); err != nil {
		t.Fatal(err)
	}
	sorted, err := json.Marshal(tree) // maps are written in key order
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(sorted, raw) {
		t.Fatalf("keys are not in order:\n%s\nwant\n%s", raw, sorted)
	}
}

// checkTrace holds what is true of every trace.
func checkTrace(t *testing.T, s *Session) {
	t.Helper()
	trace := s.DetailedTrace()
	cumulative := 0.0
	for i, step := range trace.Steps {
		if step.TurnIndex != i || step.ChunkID != trace.PathChunkIDs[i] {
			t.Fatalf("step %d: %+v", i, step)
		}
		cumulative += step.WeightedEmissionScore - step.WeightedTransitionCost
		if step.CumulativeScore != cumulative {
			t.Fatalf("step %d: cumulative %v, want %v", i, step.CumulativeScore, cumulative)
		}
	}
	if cumulative != s.total {
		t.Fatalf("trace sums to %v, total %v", cumulative, s.total)
	}
	raw, err := json.Marshal(trace)
	if err != nil {
		t.Fatal(err)
	}
	sortedKeys(t, raw)
	back, err := ReadTrace(bytes.NewReader(raw))
	if err != nil {
		t.Fatalf("%v in %s", err, raw)
	}
	again, err := json.Marshal(back)
	if err != nil || !bytes.Equal(raw, again) {
		t.Fatalf("trace reads back as\n%s\nnot\n%s (%v)", again, raw, err)
	}
}

// play feeds all turns and returns what can be seen after each.
func play(t *testing.T, s *Session, turns [][]Candidate) []string {
	t.Helper()
	var seen []string
	for _, turn := range turns {
		result, err := s.Observe(t.Context(), "", turn)
		if err != nil {
			t.Fatal(err)
		}
		seen = append(seen, show(t, result, s))
	}
	return seen
}

func show(t *testing.T, result *Result, s *Session) string {
	t.Helper()
	trace, err := json.Marshal(s.Trace())
	if err != nil {
		t.Fatal(err)
	}
	answer, err := json.Marshal(result)
	if err != nil {
		t.Fatal(err)
	}
	return string(answer) + string(trace)
}

func TestProperties(t *testing.T) {
	for seed := range uint64(150) {
		c := randomConversation(rand.New(rand.NewPCG(seed, 2)), 12, 6)
		stream := c.session(t, nil)
		seen := play(t, stream, c.turns)

		for n := range c.turns { // streaming = batch
			batch := c.session(t, nil)
			if got := play(t, batch, c.turns[:n+1])[n]; got != seen[n] {
				t.Fatalf("seed %d: prefix of %d turns decoded alone\n%s\nstreamed\n%s", seed, n+1, got, seen[n])
			}
		}
		if trellis, err := stream.Trellis(); err != nil {
			t.Fatal(err)
		} else if d, err := (Viterbi{}).Decode(t.Context(), trellis); err != nil {
			t.Fatal(err)
		} else if got := positions(c.turns, stream.Path()); !slices.Equal(got, d.Path) {
			t.Fatalf("seed %d: batch decoder %v, stream %v", seed, d.Path, got)
		}

		other := c.session(t, func(cfg *Config) { cfg.Decoder = Viterbi{} }) // the same behind the boundary
		for i, turn := range c.turns {
			result, err := other.Observe(t.Context(), "", turn)
			if err != nil {
				t.Fatal(err)
			}
			if got := show(t, result, other); got != seen[i] {
				t.Fatalf("seed %d turn %d: through the Decoder boundary\n%s\nbuilt in\n%s", seed, i, got, seen[i])
			}
		}

		wide := play(t, c.session(t, func(cfg *Config) { cfg.Beam = 6 }), c.turns) // beam ≥ C is exact
		full := play(t, c.session(t, func(cfg *Config) { cfg.FixedLag = nil }), c.turns)
		long := play(t, c.session(t, func(cfg *Config) { cfg.FixedLag = new(len(c.turns)) }), c.turns)
		for i := range c.turns {
			if stripOptions(wide[i]) != stripOptions(seen[i]) {
				t.Fatalf("seed %d turn %d: beam of 6\n%s\nexact\n%s", seed, i, wide[i], seen[i])
			}
			if stripOptions(long[i]) != stripOptions(full[i]) {
				t.Fatalf("seed %d turn %d: long lag\n%s\nfull\n%s", seed, i, long[i], full[i])
			}
		}

		plain := c.session(t, func(cfg *Config) { cfg.TransitionWeight = new(0.0) }) // β = 0 is pointwise
		play(t, plain, c.turns)
		for i, id := range plain.Path() {
			if want := pointwise(stream.columns[i].Column); id != want {
				t.Fatalf("seed %d turn %d: β = 0 gives %q, pointwise %q", seed, i, id, want)
			}
		}
	}
}

// stripOptions cuts what may differ: the options, and the lag by another name.
func stripOptions(s string) string {
	var result Result
	decoder := json.NewDecoder(bytes.NewBufferString(s))
	var trace Trace
	if err := decoder.Decode(&result); err != nil {
		panic(err)
	}
	if err := decoder.Decode(&trace); err != nil {
		panic(err)
	}
	trace.Options, trace.FixedLag = nil, nil
	raw, err := json.Marshal([]any{result, trace})
	if err != nil {
		panic(err)
	}
	return string(raw)
}

func pointwise(c Column) string {
	best := -1
	for x, e := range c.Emission {
		if best < 0 || e > c.Emission[best] {
			best = x
		}
	}
	if best < 0 {
		return ""
	}
	return c.ChunkIDs[best]
}

func TestConstantsCancel(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 3))
		c := randomConversation(r, 8, 5)
		c.cfg.ScoreNormalization = []Normalization{NormalizeCenter, NormalizeZScore}[r.IntN(2)]
		shifted := c
		shifted.turns = nil
		for _, turn := range c.turns {
			by := float64(r.IntN(100)-50) * 8
			var moved []Candidate
			for _, candidate := range turn {
				candidate.Score += by
				moved = append(moved, candidate)
			}
			shifted.turns = append(shifted.turns, moved)
		}
		a, b := c.session(t, nil), shifted.session(t, nil)
		play(t, a, c.turns)
		play(t, b, shifted.turns)
		// A tie that rounding breaks may go either way, so scores decide.
		if !close9(a.total, b.total) {
			t.Fatalf("seed %d: %v and %v after adding constants", seed, a.total, b.total)
		}
	}
}

func TestReleaseChangesNothing(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 4))
		c := randomConversation(r, 60, 5)
		all := c.session(t, func(cfg *Config) { cfg.RetainTurns = -1 })
		few := c.session(t, func(cfg *Config) { cfg.RetainTurns = 1 + r.IntN(4) })
		for i, turn := range c.turns {
			want, err := all.Observe(t.Context(), "", turn)
			if err != nil {
				t.Fatal(err)
			}
			got, err := few.Observe(t.Context(), "", turn)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("seed %d turn %d: with release\n%+v\nwithout\n%+v", seed, i, got, want)
			}
			a, b := few.Trace(), all.Trace()
			for k := range a.Steps {
				if k < few.base { // keeps the confidence it had
					a.Steps[k].Confidence, a.Steps[k].PosteriorEntropy = b.Steps[k].Confidence, b.Steps[k].PosteriorEntropy
				}
			}
			if !reflect.DeepEqual(a, b) {
				t.Fatalf("seed %d turn %d: trace with release\n%+v\nwithout\n%+v", seed, i, a, b)
			}
			if few.FinalThroughIndex() != all.FinalThroughIndex() {
				t.Fatalf("seed %d turn %d: final through %d with release, %d without", seed, i, few.FinalThroughIndex(), all.FinalThroughIndex())
			}
		}
	}
}

func TestFinalTurnsStay(t *testing.T) {
	for seed := range uint64(200) {
		c := randomConversation(rand.New(rand.NewPCG(seed, 5)), 20, 5)
		s := c.session(t, nil)
		var final []string
		for _, turn := range c.turns {
			if _, err := s.Observe(t.Context(), "", turn); err != nil {
				t.Fatal(err)
			}
			path := s.Path()
			if !slices.Equal(path[:len(final)], final) {
				t.Fatalf("seed %d: %v were final, now %v", seed, final, path)
			}
			final = path[:s.FinalThroughIndex()+1]
		}
	}
}

func TestRestoredSessionContinues(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 6))
		c := randomConversation(r, 30, 5)
		retain := 1 + r.IntN(5)
		beam := r.IntN(3)
		var backend Decoder
		if beam == 0 && r.IntN(3) == 0 {
			backend = Viterbi{}
		}
		change := func(cfg *Config) { cfg.RetainTurns, cfg.Beam, cfg.Decoder, cfg.Corpus = retain, beam, backend, "x" }
		want, got := c.session(t, change), c.session(t, change)
		for i, turn := range c.turns {
			a, err := want.Observe(t.Context(), "turn", turn)
			if err != nil {
				t.Fatal(err)
			}
			b, err := got.Observe(t.Context(), "turn", turn)
			if err != nil {
				t.Fatal(err)
			}
			if x, y := show(t, b, got), show(t, a, want); x != y {
				t.Fatalf("seed %d turn %d: restored\n%s\nnever away\n%s", seed, i, x, y)
			}
			var file, again bytes.Buffer
			if err := got.Save(&file); err != nil {
				t.Fatal(err)
			}
			cfg := c.cfg
			change(&cfg)
			raw := bytes.Clone(file.Bytes())
			got, err = RestoreSession(&file, nil, c.graph(t), &cfg)
			if err != nil {
				t.Fatalf("seed %d turn %d: %v in %s", seed, i, err, raw)
			}
			if err := got.Save(&again); err != nil || !bytes.Equal(again.Bytes(), raw) {
				t.Fatalf("seed %d turn %d: saved again as\n%s\nnot\n%s (%v)", seed, i, again.Bytes(), raw, err)
			}
			if x, y := show(t, nil, got), show(t, nil, want); x != y {
				t.Fatalf("seed %d turn %d: restored trace\n%s\nwant\n%s", seed, i, x, y)
			}
		}
	}
}

// wrong is a decoder that differs in one way.
type wrong func(*Decoding)

func (f wrong) Decode(ctx context.Context, t *Trellis) (Decoding, error) {
	d, err := Viterbi{}.Decode(ctx, t)
	f(&d)
	return d, err
}

func TestCompareDecoders(t *testing.T) {
	c := conversation{turns: [][]Candidate{{{ChunkID: "a", Score: 1}, {ChunkID: "b"}}, {}, {{ChunkID: "b", Score: 1}, {ChunkID: "c"}}}}
	s := c.session(t, nil)
	play(t, s, c.turns)
	trellis, err := s.Trellis()
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		what string
		f    func(*Decoding)
		want string
	}{
		{"the same", func(*Decoding) {}, "<nil>"},
		{"short path", func(d *Decoding) { d.Path = d.Path[1:] }, "after 1 turns, turn 0: paths of 1 and 0 turns"},
		{"other candidate", func(d *Decoding) {
			if len(d.Path) == 3 {
				d.Path[2] = 1 - d.Path[2]
			}
		}, `after 3 turns, turn 2: path through "b" and "c"`},
		{"other score", func(d *Decoding) { d.Scores[1] += 1e-3 }, "after 1 turns, turn 0: best path to candidate 1 scores -1 and -0.999"},
		{"score within tolerance", func(d *Decoding) { d.Scores[1] += 1e-10 }, "<nil>"},
		{"no scores", func(d *Decoding) { d.Scores = nil }, "after 1 turns, turn 0: 2 and 0 scores"},
	} {
		d, err := CompareDecoders(t.Context(), Viterbi{}, wrong(test.f), trellis, 1e-9)
		if err != nil {
			t.Fatal(err)
		}
		got := "<nil>"
		if d != nil {
			got = d.String()
		}
		if got != test.want {
			t.Errorf("%s: %s, want %s", test.what, got, test.want)
		}
	}
}
