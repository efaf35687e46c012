package mapmatched

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
)

// turnOf makes candidates from pairs of chunk ID and score.
func turnOf(pairs ...any) []Candidate {
	var list []Candidate
	for i := 0; i < len(pairs); i += 2 {
		score, isFloat := pairs[i+1].(float64)
		if !isFloat {
			score = float64(pairs[i+1].(int))
		}
		list = append(list, Candidate{ChunkID: pairs[i].(string), Score: score})
	}
	return list
}

// chain is a graph of chunks in a row, one apart.
func chain(t testing.TB, maximum float64, ids ...string) *Graph {
	t.Helper()
	var edges []Edge
	for i := 1; i < len(ids); i++ {
		edges = append(edges, Edge{From: ids[i-1], To: ids[i], Weight: 1, Type: EdgeNext})
	}
	return mustGraph(t, edges, &GraphOptions{Nodes: ids, MaximumDistance: maximum})
}

func mustSession(t testing.TB, p CandidateProvider, g CorpusGraph, cfg *Config) *Session {
	t.Helper()
	s, err := NewSession(p, g, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func observe(t testing.TB, s *Session, pairs ...any) *Result {
	t.Helper()
	result, err := s.Observe(t.Context(), "", turnOf(pairs...))
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func savedBytes(t testing.TB, s *Session) string {
	t.Helper()
	var b bytes.Buffer
	if err := s.Save(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// asker is a provider in one function.
type asker func(ctx context.Context, q Query, limit int) ([]Candidate, error)

func (f asker) Candidates(ctx context.Context, q Query, limit int) ([]Candidate, error) {
	return f(ctx, q, limit)
}

// bentGraph is a graph whose next answers can be bent.
type bentGraph struct {
	*Graph
	distances func(dst []float64) error
	near      func() error
}

func (g *bentGraph) Distances(ctx context.Context, from, to []string, dst []float64) error {
	if err := g.Graph.Distances(ctx, from, to, dst); err != nil || g.distances == nil {
		return err
	}
	return g.distances(dst)
}

func (g *bentGraph) Neighborhood(ctx context.Context, id string, radius float64) ([]Neighbor, error) {
	if g.near != nil {
		return nil, g.near()
	}
	return g.Graph.Neighborhood(ctx, id, radius)
}

// bentDecoder is a backend whose next answer can be bent.
type bentDecoder struct {
	bend func(*Decoding) error
}

func (b *bentDecoder) Decode(ctx context.Context, t *Trellis) (Decoding, error) {
	d, err := Viterbi{}.Decode(ctx, t)
	if err != nil || b.bend == nil {
		return d, err
	}
	return d, b.bend(&d)
}

// failing is a session with everything in reach that can go wrong.
type failing struct {
	*Session
	graph   *bentGraph
	decoder *bentDecoder
	answer  asker // of the provider
	ctx     context.Context
	cancel  context.CancelFunc
}

func newFailing(t *testing.T, cfg Config, backend bool) *failing {
	f := &failing{graph: &bentGraph{Graph: chain(t, 4, "a", "b", "c", "d", "e")}, decoder: &bentDecoder{}}
	f.ctx, f.cancel = context.WithCancel(t.Context())
	t.Cleanup(f.cancel)
	if backend {
		cfg.Decoder = f.decoder
	}
	provider := asker(func(ctx context.Context, q Query, limit int) ([]Candidate, error) { return f.answer(ctx, q, limit) })
	f.Session = mustSession(t, provider, f.graph, &cfg)
	return f
}

func (f *failing) ask(turn []Candidate) (*Result, error) {
	f.answer = func(context.Context, Query, int) ([]Candidate, error) { return turn, nil }
	return f.Ask(f.ctx, Query{Text: "what now?"})
}

var errBroken = errors.New("broken")

func TestFailedTurnChangesNothing(t *testing.T) {
	fine := turnOf("c", 2, "d", 3, "a", 0.5)
	faults := []struct {
		name    string
		backend bool // only with a backend
		fail    func(f *failing) error
		is      error
		want    string
	}{
		{"provider error", false, func(f *failing) error {
			f.answer = func(context.Context, Query, int) ([]Candidate, error) { return nil, errBroken }
			_, err := f.Ask(f.ctx, Query{})
			return err
		}, errBroken, "candidates: broken"},
		{"provider error beside candidates", false, func(f *failing) error {
			f.answer = func(context.Context, Query, int) ([]Candidate, error) { return fine, errBroken }
			_, err := f.Ask(f.ctx, Query{})
			return err
		}, errBroken, "candidates: broken"},
		{"cancelled in the provider", false, func(f *failing) error {
			f.answer = func(context.Context, Query, int) ([]Candidate, error) { f.cancel(); return fine, nil }
			_, err := f.Ask(f.ctx, Query{})
			return err
		}, context.Canceled, "candidates: context canceled"},
		{"cancelled before", false, func(f *failing) error { f.cancel(); _, err := f.ask(fine); return err }, context.Canceled, "context canceled"},
		{"cancelled before Observe", false, func(f *failing) error { f.cancel(); _, err := f.Observe(f.ctx, "", fine); return err }, context.Canceled, "context canceled"},
		{"distances fail", false, func(f *failing) error {
			f.graph.distances = func([]float64) error { return errBroken }
			_, err := f.ask(fine)
			return err
		}, errBroken, "graph distances: broken"},
		{"cancelled in the distances", false, func(f *failing) error {
			f.graph.distances = func([]float64) error { f.cancel(); return nil }
			_, err := f.ask(fine)
			return err
		}, context.Canceled, "context canceled"},
		{"NaN distance", false, func(f *failing) error {
			f.graph.distances = func(dst []float64) error { dst[1] = math.NaN(); return nil }
			_, err := f.ask(fine)
			return err
		}, ErrNonFinite, `to "d" is NaN: value is not finite`},
		{"negative distance", false, func(f *failing) error {
			f.graph.distances = func(dst []float64) error { dst[0] = -1; return nil }
			_, err := f.ask(fine)
			return err
		}, ErrDistance, `to "c" is -1: distance out of range: the graph's maximum is 4`},
		{"distance beyond the maximum", false, func(f *failing) error {
			f.graph.distances = func(dst []float64) error { dst[2] = 4.5; return nil }
			_, err := f.ask(fine)
			return err
		}, ErrDistance, `to "a" is 4.5: distance out of range: the graph's maximum is 4`},
		{"neighborhood fails", false, func(f *failing) error {
			f.graph.near = func() error { return errBroken }
			_, err := f.ask(fine)
			return err
		}, errBroken, `context of "`},
		{"duplicate", false, func(f *failing) error { _, err := f.ask(turnOf("c", 2, "d", 1, "c", 1)); return err }, ErrDuplicateCandidate, `chunk "c": duplicate candidate`},
		{"empty ID", false, func(f *failing) error { _, err := f.ask(turnOf("c", 2, "", 1)); return err }, ErrEmptyChunkID, "candidate 1: empty chunk ID"},
		{"NaN score", false, func(f *failing) error { _, err := f.ask(turnOf("c", 2, "d", math.NaN())); return err }, ErrNonFinite, `chunk "d": score NaN`},
		{"infinite score", false, func(f *failing) error { _, err := f.ask(turnOf("c", math.Inf(-1), "d", 1)); return err }, ErrNonFinite, `chunk "c": score -Inf`},
		{"part not finite", false, func(f *failing) error {
			turn := turnOf("c", 2, "d", 1)
			turn[1].Parts = map[string]float64{"sim": 1, "decay": math.NaN()}
			_, err := f.ask(turn)
			return err
		}, ErrNonFinite, `chunk "d"`},
		{"weight times score overflows", false, func(f *failing) error { _, err := f.ask(turnOf("c", 2, "d", 1e308)); return err }, ErrNonFinite, `chunk "d": emission weight 2 times score 1e+308`},
		{"nothing found", false, func(f *failing) error { _, err := f.ask(nil); return err }, ErrNoCandidates, "no candidates"},
		{"decoder fails", true, func(f *failing) error {
			f.decoder.bend = func(*Decoding) error { return errBroken }
			_, err := f.ask(fine)
			return err
		}, errBroken, "decoder: broken"},
		{"cancelled in the decoder", true, func(f *failing) error {
			f.decoder.bend = func(*Decoding) error { f.cancel(); return nil }
			_, err := f.ask(fine)
			return err
		}, context.Canceled, "decoder: context canceled"},
		{"path too short", true, func(f *failing) error {
			f.decoder.bend = func(d *Decoding) error { d.Path = d.Path[1:]; return nil }
			_, err := f.ask(fine)
			return err
		}, nil, "decoder: path of"},
		{"path through no candidate", true, func(f *failing) error {
			f.decoder.bend = func(d *Decoding) error { d.Path[len(d.Path)-1] = 3; return nil }
			_, err := f.ask(fine)
			return err
		}, nil, "path takes candidate 3 of 3"},
		{"scores not finite", true, func(f *failing) error {
			f.decoder.bend = func(d *Decoding) error { d.Scores[1] = math.Inf(1); return nil }
			_, err := f.ask(fine)
			return err
		}, ErrNonFinite, `chunk "d": accumulated score +Inf`},
	}
	before := [][]Candidate{turnOf("a", 2, "b", 1), turnOf("b", 2, "e", 2.5, "a", 1), turnOf("c", 1)}
	after := [][]Candidate{turnOf("d", 1, "b", 1.25, "a", 1), turnOf("e", 3, "c", 1)}
	base := Config{EmissionWeight: new(2.0), ScoreNormalization: NormalizeNone, OnEmpty: OnEmptyError, PolicyDigest: "p"}
	for _, mode := range []struct {
		name   string
		change func(*Config)
	}{
		{"full", func(*Config) {}},
		{"released", func(c *Config) { c.RetainTurns = 1 }},
		{"lag 0", func(c *Config) { c.FixedLag = new(0) }},
		{"lag 2", func(c *Config) { c.FixedLag = new(2) }},
		{"beam", func(c *Config) { c.Beam = 2 }},
		{"backend", nil},
	} {
		for _, fault := range faults {
			if fault.backend && mode.change != nil {
				continue
			}
			for turns := range len(before) + 1 {
				if strings.Contains(fault.name, "istance") && turns == 0 {
					continue // the first turn asks for none
				}
				t.Run(fmt.Sprintf("%s/%s/turn %d", mode.name, fault.name, turns), func(t *testing.T) {
					cfg := base
					if mode.change != nil {
						mode.change(&cfg)
					}
					hit, spared := newFailing(t, cfg, mode.change == nil), newFailing(t, cfg, mode.change == nil)
					same := func(turn []Candidate) {
						t.Helper()
						a, err := hit.ask(turn)
						if err != nil {
							t.Fatal(err)
						}
						b, err := spared.ask(turn)
						if err != nil {
							t.Fatal(err)
						}
						if x, y := show(t, a, hit.Session), show(t, b, spared.Session); x != y {
							t.Fatalf("after the failure\n%s\nwithout it\n%s", x, y)
						}
					}
					for _, turn := range before[:turns] {
						same(turn)
					}
					for range 2 {
						was := savedBytes(t, hit.Session)
						err := fault.fail(hit)
						if err == nil {
							t.Fatal("no error")
						}
						if fault.is != nil && !errors.Is(err, fault.is) || !strings.Contains(err.Error(), fault.want) || strings.Contains(err.Error(), "\n") {
							t.Fatalf("error %q, want %q", err, fault.want)
						}
						if name := fmt.Sprintf("turn %d", turns); !strings.Contains(err.Error(), name) && err != context.Canceled {
							t.Errorf("error %q does not name turn %d", err, turns)
						}
						if is := savedBytes(t, hit.Session); is != was {
							t.Fatalf("session changed from\n%s\nto\n%s", was, is)
						}
						hit.ctx, hit.cancel = context.WithCancel(t.Context())
						t.Cleanup(hit.cancel)
						hit.graph.distances, hit.graph.near, hit.decoder.bend = nil, nil, nil
					}
					for _, turn := range append(before[turns:], after...) {
						same(turn)
					}
					if x, y := savedBytes(t, hit.Session), savedBytes(t, spared.Session); x != y {
						t.Fatalf("saved after the failure\n%s\nwithout it\n%s", x, y)
					}
				})
			}
		}
	}
}

func TestAccumulatedScoreOverflows(t *testing.T) {
	g := mustGraph(t, []Edge{{From: "a", To: "b", Weight: 1}}, &GraphOptions{MaximumDistance: 1e308})
	for _, c := range []struct {
		name         string
		first, again float64
		to           string
	}{
		{"up", 1.5e308, 1e308, "a"},
		{"down", -1.5e308, -1e308, "a"},
		// The path score is finite in one order of summation and not in the
		// other, in which totals and traces are computed.
		{"gain of the last turn", 1.5e308, -1e308, "far"},
	} {
		for _, backend := range []Decoder{nil, Viterbi{}} {
			s := mustSession(t, nil, g, &Config{ScoreNormalization: NormalizeNone, Decoder: backend})
			observe(t, s, "a", c.first)
			was := savedBytes(t, s)
			result, err := s.Observe(t.Context(), "", turnOf(c.to, c.again))
			if !errors.Is(err, ErrNonFinite) || !strings.Contains(err.Error(), "turn 1: ") || !strings.Contains(err.Error(), fmt.Sprintf("chunk %q: accumulated score", c.to)) {
				t.Errorf("%s: result %+v, error %v", c.name, result, err)
				continue
			}
			if is := savedBytes(t, s); is != was {
				t.Errorf("%s: the session changed", c.name)
			}
			if got := observe(t, s, "a", -c.first); got.TotalScore != 0 {
				t.Errorf("%s: total %v after the failed turn, want 0", c.name, got.TotalScore)
			}
		}
	}
}

func TestGaps(t *testing.T) {
	turn := map[byte][]Candidate{
		'.': nil,
		'a': turnOf("a", 2, "b", 1),
		'b': turnOf("b", 2, "e", 1.5),
		'c': turnOf("c", 1, "d", 1.5, "a", 0),
	}
	g := chain(t, 4, "a", "b", "c", "d", "e")
	for _, pattern := range []string{".", "..", ".a", "a.", "a.b", "a..b", "..a..b.c..", "abc...", "....", "ab.c.a.b"} {
		for _, lag := range []*int{nil, new(0), new(1), new(2), new(20)} {
			for _, retain := range []int{1, -1} {
				s := mustSession(t, nil, g, &Config{ScoreNormalization: NormalizeNone, FixedLag: lag, RetainTurns: retain})
				dense := mustSession(t, nil, g, &Config{ScoreNormalization: NormalizeNone})
				for i := range pattern {
					got, err := s.Observe(t.Context(), "q", turn[pattern[i]])
					if err != nil {
						t.Fatalf("%s turn %d: %v", pattern, i, err)
					}
					if isGap := pattern[i] == '.'; isGap != (got.ChunkID == "") || isGap != (got.Gap == "no candidates") || isGap != (len(got.Ranking) == 0) || isGap != (len(got.ContextChunkIDs) == 0) {
						t.Errorf("%s turn %d: %+v", pattern, i, got)
					}
					if got.Turn != i {
						t.Errorf("%s turn %d: index %d", pattern, i, got.Turn)
					}
					if pattern[i] != '.' {
						if _, err := dense.Observe(t.Context(), "q", turn[pattern[i]]); err != nil {
							t.Fatal(err)
						}
					}
				}
				trace := s.Trace()
				if n := len(pattern); len(s.Path()) != n || len(trace.Steps) != n || len(trace.PathChunkIDs) != n || s.Turns() != n {
					t.Fatalf("%s: %d turns in, path of %d, %d steps", pattern, n, len(s.Path()), len(trace.Steps))
				}
				checkTrace(t, s)
				if lag != nil {
					continue // commitments fall elsewhere without the gaps
				}
				path := slices.DeleteFunc(s.Path(), func(id string) bool { return id == "" })
				if !slices.Equal(path, dense.Path()) || s.total != dense.total {
					t.Errorf("%s: path %v of %v, without gaps %v of %v", pattern, path, s.total, dense.Path(), dense.total)
				}
			}
		}
	}
}

func TestOnEmptyError(t *testing.T) {
	provider := asker(func(_ context.Context, q Query, _ int) ([]Candidate, error) { return []Candidate{}, nil })
	s := mustSession(t, provider, chain(t, 4, "a", "b"), &Config{OnEmpty: OnEmptyError})
	_, err := s.Ask(t.Context(), Query{Text: "lost?"})
	if want := `turn 0: no candidates: the provider found nothing for "lost?"`; !errors.Is(err, ErrNoCandidates) || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if s.Turns() != 0 {
		t.Errorf("%d turns after a refused one", s.Turns())
	}
}

func TestBreaks(t *testing.T) {
	g := mustGraph(t, []Edge{{From: "a", To: "b", Weight: 1}, {From: "b", To: "c", Weight: 1}, {From: "x", To: "y", Weight: 1}},
		&GraphOptions{MaximumDistance: 4})
	cfg := Config{ScoreNormalization: NormalizeNone, BreakDistance: 4}
	s := mustSession(t, nil, g, &cfg)
	observe(t, s, "a", 2, "b", 1)
	observe(t, s, "x", 3, "y", 3.5) // off topic
	observe(t, s, "b", 2, "c", 1)   // and back
	last := observe(t, s, "c", 2, "x", 2)
	if want := []string{"a", "y", "b", "c"}; !slices.Equal(s.Path(), want) {
		t.Fatalf("path %v, want %v", s.Path(), want)
	}
	if last.TotalScore != 2+3.5+2+2-1 {
		t.Errorf("total %v, want the emissions less the one transition that was not a break", last.TotalScore)
	}
	for i, step := range s.Trace().Steps {
		if flagged := i == 1 || i == 2; flagged != (step.Break != "") {
			t.Errorf("turn %d: break %q", i, step.Break)
		}
		if want := []Move{"", MoveJump, MoveJump, MoveDrill}[i]; step.Move != want {
			t.Errorf("turn %d: move %q, want %q", i, step.Move, want)
		}
	}
	if got, want := s.Trace().Steps[1].Break, "no candidate is nearer than 4 to one of turn 0"; got != want {
		t.Errorf("reason %q, want %q", got, want)
	}

	// One pair nearer than the clamp is enough for there to be no break, and
	// the far pairs cost what they cost.
	s = mustSession(t, nil, g, &cfg)
	observe(t, s, "a", 2, "y", -9)
	got := observe(t, s, "x", 3, "c", -9)
	if step := s.Trace().Steps[1]; step.Break != "" || got.ChunkID != "x" || got.TotalScore != 2+3-4 || step.GraphDistance != 4 {
		t.Errorf("%+v with %+v, want a jump at full cost", got, step)
	}

	// A lower threshold breaks at whatever is not nearer.
	cfg.BreakDistance = 2
	s = mustSession(t, nil, g, &cfg)
	observe(t, s, "a", 2)
	if got := observe(t, s, "c", 1); got.TotalScore != 3 || s.Trace().Steps[1].Break == "" {
		t.Errorf("total %v, break %q at a distance of exactly the threshold", got.TotalScore, s.Trace().Steps[1].Break)
	}
	if got := observe(t, s, "b", 1); got.TotalScore != 3 || s.Trace().Steps[2].Break != "" {
		t.Errorf("total %v, break %q below the threshold", got.TotalScore, s.Trace().Steps[2].Break)
	}

	// A turn without candidates in between does not hide a break.
	s = mustSession(t, nil, g, &cfg)
	observe(t, s, "a", 2)
	observe(t, s)
	observe(t, s, "x", 1)
	if got, want := s.Trace().Steps[2].Break, "no candidate is nearer than 2 to one of turn 0"; got != want {
		t.Errorf("reason %q, want %q", got, want)
	}
}

func TestOffTopicTurnComesBack(t *testing.T) {
	g := mustGraph(t, []Edge{{From: "a", To: "b", Weight: 0.5}, {From: "b", To: "c", Weight: 0.5}, {From: "x", To: "y", Weight: 0.5}},
		&GraphOptions{MaximumDistance: 4})
	s := mustSession(t, nil, g, &Config{ScoreNormalization: NormalizeNone})
	observe(t, s, "a", 5, "x", 1)
	observe(t, s, "y", 20, "b", 4) // so clearly about something else that it is worth both jumps
	observe(t, s, "c", 5, "y", 1)
	if want := []string{"a", "y", "c"}; !slices.Equal(s.Path(), want) {
		t.Fatalf("path %v, want %v", s.Path(), want)
	}
	steps := s.Trace().Steps
	if steps[1].Move != MoveJump || steps[2].Move != MoveJump {
		t.Errorf("moves %q and %q, want two jumps", steps[1].Move, steps[2].Move)
	}

	// Weak evidence does not leave the topic: the turn keeps its on-topic
	// chunk, and its margin says that another one answered it better.
	s = mustSession(t, nil, g, &Config{ScoreNormalization: NormalizeNone})
	observe(t, s, "a", 5, "x", 1)
	observe(t, s, "y", 5, "b", 4)
	observe(t, s, "c", 5, "y", 1)
	if want := []string{"a", "b", "c"}; !slices.Equal(s.Path(), want) {
		t.Fatalf("path %v, want %v", s.Path(), want)
	}
	if step := s.Trace().Steps[1]; step.NormalizedEmissionMargin != -1 || step.Move != MoveDrill {
		t.Errorf("margin %v and move %q, want -1 and drill", step.NormalizedEmissionMargin, step.Move)
	}
}

func TestReturnToATopicThreeTurnsBack(t *testing.T) {
	g := mustGraph(t, []Edge{{From: "A1", To: "A2", Weight: 1}, {From: "B1", To: "B2", Weight: 1}}, &GraphOptions{MaximumDistance: 4})
	history := [][]string{}
	answers := [][]Candidate{
		turnOf("A1", 6, "B1", 1),
		turnOf("B1", 6, "A1", 1),
		turnOf("B2", 6, "A2", 1),
		turnOf("A2", 6, "B2", 1),
	}
	provider := asker(func(_ context.Context, q Query, _ int) ([]Candidate, error) {
		history = append(history, q.Path)
		return answers[q.Turn], nil
	})
	s := mustSession(t, provider, g, &Config{ScoreNormalization: NormalizeNone})
	for _, text := range []string{"A", "B", "B", "back to the first"} {
		if _, err := s.Ask(t.Context(), Query{Text: text}); err != nil {
			t.Fatal(err)
		}
	}
	if want := []string{"A1", "B1", "B2", "A2"}; !slices.Equal(s.Path(), want) {
		t.Errorf("path %v, want %v", s.Path(), want)
	}
	if want := []string{"A1", "B1", "B2"}; !slices.Equal(history[3], want) {
		t.Errorf("the last turn saw the path %v, want %v", history[3], want)
	}
}

func TestRepeatedTexts(t *testing.T) {
	provider := asker(func(context.Context, Query, int) ([]Candidate, error) { return turnOf("b", 2, "a", 1), nil })
	s := mustSession(t, provider, chain(t, 4, "a", "b", "c"), nil)
	for i := range 5 {
		got, err := s.Ask(t.Context(), Query{Text: "again"})
		if err != nil {
			t.Fatal(err)
		}
		if got.ChunkID != "b" || got.Turn != i {
			t.Errorf("turn %d: chunk %q at %d", i, got.ChunkID, got.Turn)
		}
	}
	for i, step := range s.Trace().Steps {
		if want := []Move{"", MoveStay}[min(i, 1)]; step.Move != want || step.GraphDistance != 0 || step.Query != "again" {
			t.Errorf("turn %d: %+v, want the move %q", i, step, want)
		}
	}
}

func TestFirstTurnHasNoTransition(t *testing.T) {
	g := &bentGraph{Graph: chain(t, 4, "a", "b")}
	g.distances = func([]float64) error { return errBroken }
	s := mustSession(t, nil, g, &Config{ScoreNormalization: NormalizeNone})
	got := observe(t, s, "a", 3, "b", 5)
	step := s.Trace().Steps[0]
	if got.ChunkID != "b" || got.TotalScore != 5 || step.GraphDistance != 0 || step.WeightedTransitionCost != 0 || step.Move != "" || step.Break != "" {
		t.Errorf("%+v with %+v", got, step)
	}
}

func TestCandidateLimitComesBeforeNormalization(t *testing.T) {
	asked := 0
	provider := asker(func(_ context.Context, _ Query, limit int) ([]Candidate, error) {
		asked = limit
		return turnOf("a", 3, "b", 1, "c", -100, "a", math.NaN()), nil // more than asked for
	})
	s := mustSession(t, provider, chain(t, 4, "a", "b"), &Config{CandidateLimit: 2})
	got, err := s.Ask(t.Context(), Query{})
	if err != nil {
		t.Fatal(err)
	}
	if asked != 2 || len(got.Ranking) != 2 || got.TotalScore != 1 {
		t.Errorf("asked for %d, ranking of %d, total %v; want 2, 2 and the z-score 1", asked, len(got.Ranking), got.TotalScore)
	}
	many := make([]Candidate, 50)
	for i := range many {
		many[i] = Candidate{ChunkID: fmt.Sprint("c", i)}
	}
	s = mustSession(t, nil, chain(t, 4, "a", "b"), nil)
	if got, err := s.Observe(t.Context(), "", many); err != nil || len(got.Ranking) != DefaultCandidateLimit {
		t.Errorf("ranking of %d by default, error %v, want 20", len(got.Ranking), err)
	}
}

func TestContext(t *testing.T) {
	edges := []Edge{
		{From: "m", To: "z", Weight: 0.5}, {From: "m", To: "b", Weight: 1}, {From: "m", To: "a", Weight: 1}, {From: "m", To: "far", Weight: 2},
	}
	g := mustGraph(t, edges, &GraphOptions{MaximumDistance: 4})
	for _, c := range []struct {
		name string
		cfg  Config
		want string
	}{
		{"default", Config{}, "m z a b far q"},
		{"radius 0", Config{ContextRadius: new(0.0)}, "m b far q"},
		{"radius 0.5", Config{ContextRadius: new(0.5)}, "m z b far q"},
		{"radius 2", Config{ContextRadius: new(2.0)}, "m z a b far q"},
		{"radius beyond the maximum", Config{ContextRadius: new(100.0)}, "m z a b far q"},
		{"limit 3", Config{ContextLimit: new(3)}, "m z a"},
		{"limit 1", Config{ContextLimit: new(1)}, "m"},
		{"limit 0", Config{ContextLimit: new(0)}, ""},
		{"large limit", Config{ContextLimit: new(100)}, "m z a b far q"},
	} {
		s := mustSession(t, nil, g, &c.cfg)
		got := observe(t, s, "b", 1, "m", 3, "far", 1, "q", 2)
		if strings.Join(got.ContextChunkIDs, " ") != c.want {
			t.Errorf("%s: context %v, want %s", c.name, got.ContextChunkIDs, c.want)
		}
	}
	s := mustSession(t, nil, nil, &Config{TransitionWeight: new(0.0)})
	if got := observe(t, s, "b", 1, "m", 3, "q", 2); strings.Join(got.ContextChunkIDs, " ") != "m b q" {
		t.Errorf("without a graph: context %v", got.ContextChunkIDs)
	}
}

func TestTiesGoToTheFirst(t *testing.T) {
	g := chain(t, 4, "a", "b", "c")
	ids := []string{"a", "b", "c"}
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 31))
		for _, cfg := range []Config{{}, {ScoreNormalization: NormalizeNone}, {TransitionWeight: new(0.0)}, {FixedLag: new(0)}, {Beam: 1}, {Decoder: Viterbi{}}} {
			s := mustSession(t, nil, g, &cfg)
			r.Shuffle(3, func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
			got := observe(t, s, ids[0], 0.1, ids[1], 0.1, ids[2], 0.1)
			for i, ranked := range got.Ranking {
				if ranked.ChunkID != ids[i] || ranked.Position != i {
					t.Errorf("ranking %v, want the order %v", got.Ranking, ids)
				}
			}
			if got.ChunkID != ids[0] {
				t.Errorf("chunk %q of %v, all equal", got.ChunkID, ids)
			}
			for range 5 {
				var turn []Candidate
				for _, i := range r.Perm(3)[:1+r.IntN(3)] {
					turn = append(turn, Candidate{ChunkID: []string{"a", "b", "c"}[i], Score: float64(r.IntN(2))})
				}
				got, err := s.Observe(t.Context(), "", turn)
				if err != nil {
					t.Fatal(err)
				}
				if got.Ranking[0].ChunkID != got.ChunkID {
					t.Errorf("seed %d: ranking led by %q, decoded %q", seed, got.Ranking[0].ChunkID, got.ChunkID)
				}
			}
		}
	}
}

func TestZeroTransitionWeightAsksNoDistances(t *testing.T) {
	g := &bentGraph{Graph: chain(t, 4, "a", "b", "c")}
	g.distances = func([]float64) error { t.Error("the graph was asked"); return errBroken }
	with := mustSession(t, nil, g, &Config{TransitionWeight: new(0.0), BreakDistance: 4})
	without := mustSession(t, nil, nil, &Config{TransitionWeight: new(0.0), BreakDistance: 4})
	for i := range 6 {
		for _, s := range []*Session{with, without} {
			got := observe(t, s, "a", i%3, "c", 1, "q", (i+1)%3)
			step := s.Trace().Steps[i]
			if step.GraphDistance != 0 || step.WeightedTransitionCost != 0 || step.Break != "" || math.Signbit(step.WeightedTransitionCost) {
				t.Errorf("turn %d: %+v", i, step)
			}
			if want := []string{"c", "q", "a"}[i%3]; got.ChunkID != want {
				t.Errorf("turn %d: chunk %q, want %q", i, got.ChunkID, want)
			}
		}
	}
	if !reflect.DeepEqual(with.Path(), without.Path()) {
		t.Errorf("path %v with a graph, %v without", with.Path(), without.Path())
	}
}

func TestNewSessionFaults(t *testing.T) {
	g := chain(t, 4, "a", "b")
	for _, c := range []struct {
		name  string
		graph CorpusGraph
		cfg   *Config
		want  string
	}{
		{"no graph", nil, nil, "new session: invalid configuration: a transition weight of 1 needs a graph; without one set it to 0"},
		{"bad option", g, &Config{Beam: -1}, "new session: beam is -1: invalid configuration: it must be at least 1, or 0 for no beam"},
		{"break out of reach", g, &Config{BreakDistance: 5}, "new session: invalid configuration: break_distance 5 is beyond the maximum distance 4 of the graph, which no transition exceeds"},
		{"maximum distance", maximumOnly(math.Inf(1)), nil, "new session: invalid configuration: maximum distance of the graph is +Inf, not positive and finite"},
		{"no maximum distance", maximumOnly(0), nil, "new session: invalid configuration: maximum distance of the graph is 0, not positive and finite"},
	} {
		s, err := NewSession(nil, c.graph, c.cfg)
		if s != nil || !errors.Is(err, ErrInvalidConfig) || err.Error() != c.want {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
	s := mustSession(t, nil, g, nil)
	_, err := s.Ask(t.Context(), Query{Text: "?"})
	if want := "turn 0: invalid configuration: the session has no provider; use Observe"; err == nil || err.Error() != want {
		t.Errorf("asked without a provider: %v, want %s", err, want)
	}
}

// maximumOnly is a graph with a maximum distance and no edges.
type maximumOnly float64

func (m maximumOnly) MaximumDistance() float64 { return float64(m) }

func (m maximumOnly) Distances(_ context.Context, from, to []string, dst []float64) error {
	for i, id := range from {
		for j, other := range to {
			dst[i*len(to)+j] = float64(m)
			if id == other {
				dst[i*len(to)+j] = 0
			}
		}
	}
	return nil
}

func (m maximumOnly) Neighborhood(context.Context, string, float64) ([]Neighbor, error) {
	return nil, nil
}

// walk is a provider whose answer depends on the turn only.
func walk(seed uint64) asker {
	return func(ctx context.Context, q Query, limit int) ([]Candidate, error) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		return walkTurn(seed, q.Turn, limit), nil
	}
}

// walkTurn is a turn of a conversation that moves along n0, n1, … n29, with a
// gap and a strange turn now and then.
func walkTurn(seed uint64, turn, limit int) []Candidate {
	r := rand.New(rand.NewPCG(seed, uint64(turn)))
	if r.IntN(40) == 0 {
		return nil
	}
	at := turn / 3 % 30
	if r.IntN(20) == 0 {
		at = r.IntN(30)
	}
	list := make([]Candidate, min(4, limit))
	for i := range list {
		list[i] = Candidate{ChunkID: fmt.Sprint("n", (at+i*i)%30), Score: 2 - float64(i) + r.NormFloat64()}
	}
	return list
}

func walkGraph(t testing.TB) *Graph {
	t.Helper()
	ids := make([]string, 30)
	for i := range ids {
		ids[i] = fmt.Sprint("n", i)
	}
	return chain(t, 4, ids...)
}

func TestOneSessionManyGoroutines(t *testing.T) {
	s := mustSession(t, walk(1), walkGraph(t), &Config{RetainTurns: 8, FixedLag: new(3)})
	const turns = 50
	results := make([]*Result, turns)
	var group sync.WaitGroup
	for range turns {
		group.Go(func() {
			got, err := s.Ask(t.Context(), Query{Text: "q"})
			if err != nil {
				t.Error(err)
				return
			}
			if results[got.Turn] != nil {
				t.Errorf("turn %d twice", got.Turn)
			}
			results[got.Turn] = got
			if n := len(s.Trace().Steps); n <= got.Turn {
				t.Errorf("%d steps after turn %d", n, got.Turn)
			}
			if n := len(s.Path()); n <= got.Turn || s.Turns() < n {
				t.Errorf("path of %d after turn %d", n, got.Turn)
			}
			if _, err := s.Posterior(got.Turn); err != nil && !errors.Is(err, ErrReleased) {
				t.Error(err)
			}
			savedBytes(t, s)
		})
	}
	group.Wait()
	alone := mustSession(t, walk(1), walkGraph(t), &Config{RetainTurns: 8, FixedLag: new(3)})
	for i := range turns {
		want, err := alone.Ask(t.Context(), Query{Text: "q"})
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(results[i], want) {
			t.Fatalf("turn %d: %+v, alone %+v", i, results[i], want)
		}
	}
	if x, y := savedBytes(t, s), savedBytes(t, alone); x != y {
		t.Errorf("saved\n%s\nalone\n%s", x, y)
	}
}

func TestManySessionsOneGraph(t *testing.T) {
	g := walkGraph(t)
	var group sync.WaitGroup
	got := make([]string, 16)
	for i := range got {
		group.Go(func() {
			s := mustSession(t, walk(uint64(i%4)), g, nil)
			for range 60 {
				if _, err := s.Ask(t.Context(), Query{}); err != nil {
					t.Error(err)
				}
			}
			got[i] = savedBytes(t, s)
		})
	}
	group.Wait()
	for i := range got {
		if got[i] != got[i%4] || got[i] == got[(i+1)%4] {
			t.Errorf("session %d differs from the same conversation, or equals another", i)
		}
	}
}

func TestWaitingForTheSessionEndsWithTheContext(t *testing.T) {
	inside, leave := make(chan struct{}), make(chan struct{})
	provider := asker(func(context.Context, Query, int) ([]Candidate, error) {
		close(inside)
		<-leave
		return turnOf("a", 1), nil
	})
	s := mustSession(t, provider, chain(t, 4, "a", "b"), nil)
	done := make(chan error)
	go func() {
		_, err := s.Ask(t.Context(), Query{})
		done <- err
	}()
	<-inside
	for _, wait := range []func(context.Context) error{
		func(ctx context.Context) error { _, err := s.Ask(ctx, Query{}); return err },
		func(ctx context.Context) error { _, err := s.Observe(ctx, "", turnOf("b", 1)); return err },
	} {
		ctx, cancel := context.WithCancel(t.Context())
		returned := make(chan error)
		go func() { returned <- wait(ctx) }()
		cancel()
		if err := <-returned; !errors.Is(err, context.Canceled) {
			t.Errorf("waiting for the session ended with %v", err)
		}
	}
	close(leave)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if want := []string{"a"}; !slices.Equal(s.Path(), want) {
		t.Errorf("path %v, want %v", s.Path(), want)
	}
}

func TestProviderPanicLeavesTheSessionUsable(t *testing.T) {
	panics := true
	s := mustSession(t, asker(func(context.Context, Query, int) ([]Candidate, error) {
		if panics {
			panic("provider")
		}
		return turnOf("a", 1), nil
	}), chain(t, 4, "a", "b"), nil)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
		}()
		_, _ = s.Ask(t.Context(), Query{})
	}()
	panics = false
	if _, err := s.Ask(t.Context(), Query{}); err != nil {
		t.Fatal(err)
	}
}

func TestProviderSeesTheConversation(t *testing.T) {
	var kept, copies []Query
	answers := [][]Candidate{
		turnOf("a", 1, "e", 1.5), turnOf("b", 3, "a", 1), nil, turnOf("d", 0.5, "b", 1), turnOf("e", 9, "d", 1), turnOf("c", 2, "a", 9),
	}
	provider := asker(func(_ context.Context, q Query, _ int) ([]Candidate, error) {
		kept = append(kept, q)
		q.History, q.Path = slices.Clone(q.History), slices.Clone(q.Path)
		copies = append(copies, q)
		// What a provider appends to is its own.
		_ = append(q.History, "mine")
		_ = append(kept[len(kept)-1].Path, "mine")
		return answers[q.Turn], nil
	})
	s := mustSession(t, provider, chain(t, 4, "a", "b", "c", "d", "e"), &Config{ScoreNormalization: NormalizeNone})
	var texts []string
	revisions := 0
	for i := range answers {
		before := s.Path()
		text := fmt.Sprint("text ", i)
		got, err := s.Ask(t.Context(), Query{Text: text, Vector: []float32{1}, Turn: 77, History: []string{"made up"}, Path: []string{"made up"}})
		if err != nil {
			t.Fatal(err)
		}
		q := kept[i]
		if q.Text != text || q.Turn != i || !slices.Equal(q.Vector, []float32{1}) || !slices.Equal(q.History, texts) || !slices.Equal(q.Path, before) {
			t.Errorf("turn %d: %+v, want history %v and path %v", i, q, texts, before)
		}
		revisions += len(got.RevisedPriorIndices)
		texts = append(texts, text)
	}
	if revisions == 0 {
		t.Fatal("nothing was revised, so nothing was tested")
	}
	if !reflect.DeepEqual(kept, copies) {
		t.Errorf("queries changed after they were answered:\n%v\nwere\n%v", kept, copies)
	}
}

func TestResultsAreNotShared(t *testing.T) {
	s := mustSession(t, walk(2), walkGraph(t), &Config{FixedLag: new(1), ContextLimit: new(3)})
	for range 10 {
		if _, err := s.Ask(t.Context(), Query{}); err != nil {
			t.Fatal(err)
		}
	}
	was := savedBytes(t, s)
	for range 2 {
		trace := s.DetailedTrace()
		*trace.FixedLag, *trace.CommittedThroughIndex = 99, 99
		*trace.Options.EmissionWeight, *trace.Options.TransitionWeight = 99, 99
		*trace.Options.CandidateLimit, *trace.Options.ContextLimit = 99, 99
		*trace.Options.ScoreNormalization = "none"
		clear(trace.PathChunkIDs)
		clear(trace.Steps)
		clear(s.Path())
		trellis, err := s.Trellis()
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range trellis.Columns {
			clear(c.ChunkIDs)
			clear(c.Raw)
			clear(c.Emission)
			clear(c.From)
			clear(c.Distance)
		}
		if is := savedBytes(t, s); is != was {
			t.Fatalf("session changed from\n%s\nto\n%s", was, is)
		}
	}
}

func TestPartsAreCopied(t *testing.T) {
	s := mustSession(t, nil, chain(t, 4, "a", "b"), nil)
	turn := turnOf("a", 1, "b", 0)
	turn[0].Parts = map[string]float64{"dense": 0.5}
	if _, err := s.Observe(t.Context(), "", turn); err != nil {
		t.Fatal(err)
	}
	turn[0].Parts["dense"] = 7 // a provider that uses its maps again
	if got := s.Trace().Steps[0].ScoreParts["dense"]; got != 0.5 {
		t.Errorf("part of the trace is %v after the provider changed its map, was 0.5", got)
	}
}

func TestHundredThousandTurns(t *testing.T) {
	const turns, prefix, retain = 100_000, 3_000, 128
	g := walkGraph(t)
	s := mustSession(t, nil, g, &Config{RetainTurns: retain})
	all := mustSession(t, nil, g, &Config{RetainTurns: -1})
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	most := 0
	for turn := range turns {
		candidates := walkTurn(3, turn%997, 4)
		got, err := s.Observe(t.Context(), "", candidates)
		if err != nil {
			t.Fatal(err)
		}
		if turn < prefix {
			want, err := all.Observe(t.Context(), "", candidates)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("turn %d: %+v, with all turns retained %+v", turn, got, want)
			}
		}
		if turn == prefix {
			if !slices.Equal(s.Path()[:prefix-50], all.Path()[:prefix-50]) {
				t.Fatal("paths differ")
			}
			all = nil
			before = heap()
		}
		most = max(most, len(s.columns))
	}
	if most > 4*retain {
		t.Errorf("%d turns were retained at once, asked for %d", most, retain)
	}
	if cap(s.columns) > 8*retain || cap(s.path) > 8*retain || len(s.spare) > 2*retain {
		t.Errorf("room for %d columns and %d path entries, %d spare columns", cap(s.columns), cap(s.path), len(s.spare))
	}
	if len(s.Path()) != turns || s.FinalThroughIndex() < turns-2*retain {
		t.Errorf("path of %d turns, final through %d", len(s.Path()), s.FinalThroughIndex())
	}
	// What is left of a released turn is its step of the trace.
	if grown := (float64(heap()) - float64(before)) / turns; grown > 1200 {
		t.Errorf("the heap grew by %.0f bytes a turn", grown)
	}
	for turn, is := range map[int]error{0: ErrReleased, turns / 2: ErrReleased, turns: ErrInvalidConfig, -1: ErrInvalidConfig} {
		if p, err := s.Posterior(turn); !errors.Is(err, is) {
			t.Errorf("posterior of turn %d: %v, error %v", turn, p, err)
		}
	}
	if p, err := s.Posterior(turns - 1); err != nil {
		t.Errorf("posterior of the last turn: %v, error %v", p, err)
	}
	if _, err := s.KBest(t.Context(), 3); !errors.Is(err, ErrReleased) {
		t.Errorf("k best: %v", err)
	}
	if _, err := s.Trellis(); !errors.Is(err, ErrReleased) {
		t.Errorf("trellis: %v", err)
	}
}

func TestCommittedTurnsStay(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 32))
		c := randomConversation(r, 25, 5)
		lag := r.IntN(6)
		s := c.session(t, func(cfg *Config) { cfg.FixedLag, cfg.RetainTurns = &lag, []int{1, 0}[r.IntN(2)] })
		var committed []string
		for i, turn := range c.turns {
			got, err := s.Observe(t.Context(), "", turn)
			if err != nil {
				t.Fatal(err)
			}
			path := s.Path()
			if !slices.Equal(path[:len(committed)], committed) {
				t.Fatalf("seed %d turn %d: %v were committed, now %v", seed, i, committed, path)
			}
			for _, revised := range got.RevisedPriorIndices {
				if revised < len(committed) || revised >= i {
					t.Fatalf("seed %d turn %d: turn %d was revised, %d were committed", seed, i, revised, len(committed))
				}
			}
			if i < lag {
				if got.CommittedThroughIndex != nil {
					t.Fatalf("seed %d turn %d: committed through %d", seed, i, *got.CommittedThroughIndex)
				}
				continue
			}
			if got.CommittedThroughIndex == nil || *got.CommittedThroughIndex != i-lag {
				t.Fatalf("seed %d turn %d: committed through %v, want %d", seed, i, got.CommittedThroughIndex, i-lag)
			}
			committed = path[:i-lag+1]
			if s.FinalThroughIndex() < i-lag && slices.ContainsFunc(committed, func(id string) bool { return id != "" }) && committed[len(committed)-1] != "" {
				t.Fatalf("seed %d turn %d: final through %d, committed through %d", seed, i, s.FinalThroughIndex(), i-lag)
			}
		}
	}
}

func TestSessionAfterTurnsOfOtherKinds(t *testing.T) {
	// The state that a turn leaves does not depend on how many candidates the
	// turns before it had: columns are used again.
	g := walkGraph(t)
	r := rand.New(rand.NewPCG(9, 33))
	few := mustSession(t, nil, g, &Config{RetainTurns: 1, CandidateLimit: 12})
	all := mustSession(t, nil, g, &Config{RetainTurns: -1, CandidateLimit: 12})
	for turn := range 300 {
		var candidates []Candidate
		for _, i := range r.Perm(30)[:r.IntN(12)] {
			c := Candidate{ChunkID: fmt.Sprint("n", i), Score: r.NormFloat64()}
			if r.IntN(4) == 0 {
				c.Parts = map[string]float64{"dense": c.Score}
			}
			candidates = append(candidates, c)
		}
		a, err := few.Observe(t.Context(), "", candidates)
		if err != nil {
			t.Fatal(err)
		}
		b, err := all.Observe(t.Context(), "", candidates)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(a, b) {
			t.Fatalf("turn %d: %+v, with all turns retained %+v", turn, a, b)
		}
	}
	if few.base == 0 {
		t.Fatal("nothing was released, so nothing was tested")
	}
	x, y := few.Trace().Steps, all.Trace().Steps
	for i := range x {
		x[i].Confidence, x[i].PosteriorEntropy = y[i].Confidence, y[i].PosteriorEntropy
	}
	if a, err := json.Marshal(x); err != nil {
		t.Fatal(err)
	} else if b, err := json.Marshal(y); err != nil || !bytes.Equal(a, b) {
		t.Errorf("trace with release\n%s\nwithout\n%s (%v)", a, b, err)
	}
}

func TestRankByFilteredPosterior(t *testing.T) {
	// The best path ends in "b", but more of the probability ends in "a",
	// which two good paths lead to.
	graph := mustGraph(t, []Edge{{From: "x", To: "a", Weight: 1}, {From: "y", To: "a", Weight: 1}, {From: "z", To: "b", Weight: 1}}, &GraphOptions{MaximumDistance: 5})
	for _, by := range []RankBy{"", RankByMaxMarginal, RankByFilteredPosterior} {
		s := mustSession(t, nil, graph, &Config{ScoreNormalization: NormalizeNone, RankBy: by})
		observe(t, s, "x", 1, "y", 1, "z", 1.25)
		r := observe(t, s, "a", 1, "b", 1)
		if r.ChunkID != "b" || r.Decoded().ChunkID != "b" || r.Pointwise().ChunkID != "a" {
			t.Errorf("%q: decoded %s, pointwise %s", by, r.ChunkID, r.Pointwise().ChunkID)
		}
		want := "b"
		if by == RankByFilteredPosterior {
			want = "a"
		}
		if r.Ranking[0].ChunkID != want {
			t.Errorf("%q: ranking led by %s, want %s", by, r.Ranking[0].ChunkID, want)
		}
		if (s.Trace().Options.RankBy != nil) != (by == RankByFilteredPosterior) {
			t.Errorf("%q: options of the trace are %+v", by, s.Trace().Options)
		}
	}
}

func TestNotes(t *testing.T) {
	s := mustSession(t, nil, smallGraph(t), nil)
	if err := s.Note("gate", 1); !errors.Is(err, ErrInvalidConfig) {
		t.Errorf("note before the first turn: %v", err)
	}
	observe(t, s, "a", 1, "b", 2)
	for _, v := range []any{0, struct{ Z, A float64 }{1, 0.25}} {
		if err := s.Note("gate", v); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Note("gate", math.NaN()); err == nil {
		t.Error("NaN was noted")
	}
	observe(t, s)
	if err := s.Note("why <&>", "nothing"); err != nil {
		t.Fatal(err)
	}
	back, err := restoreSmall(t, savedBytes(t, s), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []*Session{s, back} {
		trace, err := json.Marshal(s.Trace())
		if err != nil {
			t.Fatal(err)
		}
		read, err := ReadTrace(bytes.NewReader(trace))
		if err != nil {
			t.Fatal(err)
		}
		if got := string(read.Steps[0].Notes["gate"]); got != `{"A":0.25,"Z":1}` {
			t.Errorf("gate is noted as %s", got)
		}
		if got := string(read.Steps[1].Notes["why <&>"]); got != `"nothing"` {
			t.Errorf("gap is noted as %s", got)
		}
	}
}

// The answer to a turn, its trace and its candidates say the same, also when
// the turn commits an earlier one.
func TestAnswerAgreesWithItsTrace(t *testing.T) {
	for seed := range uint64(300) {
		c := randomConversation(rand.New(rand.NewPCG(seed, 7)), 10, 5)
		for _, backend := range []Decoder{nil, Viterbi{}} {
			s := c.session(t, func(cfg *Config) { cfg.Decoder = backend })
			for i, turn := range c.turns {
				r, err := s.Observe(t.Context(), "", turn)
				if err != nil {
					t.Fatal(err)
				}
				step := s.DetailedTrace().Steps[i]
				if r.Confidence != step.Confidence {
					t.Fatalf("seed %d turn %d: confidence %v, in the trace %v", seed, i, r.Confidence, step.Confidence)
				}
				for _, ranked := range r.Ranking {
					in := step.Candidates[ranked.Position]
					if in.ChunkID != ranked.ChunkID || in.BestPathScore != ranked.PathScore || in.Posterior != ranked.Posterior {
						t.Fatalf("seed %d turn %d: ranked %+v, in the trace %+v", seed, i, ranked, in)
					}
				}
			}
		}
	}
}

func TestPosteriorOfLargeCosts(t *testing.T) {
	graph := mustGraph(t, nil, &GraphOptions{MaximumDistance: 4})
	for _, c := range []struct{ beta, tau float64 }{{1, 1e-6}, {1e6, 1e-6}, {1e10, 1}, {1e17, 1}, {1e300, 1e-6}} {
		s := mustSession(t, nil, graph, &Config{ScoreNormalization: NormalizeNone, TransitionWeight: &c.beta, Temperature: c.tau})
		observe(t, s, "a", 0)
		r := observe(t, s, "a", -4*c.beta, "c", 0, "d", 0)
		sum := 0.0
		for _, ranked := range r.Ranking {
			sum += ranked.Posterior
			if !close9(ranked.Posterior, 1.0/3) {
				t.Errorf("β %v τ %v: posterior of %s is %v, want a third", c.beta, c.tau, ranked.ChunkID, ranked.Posterior)
			}
		}
		if !close9(sum, 1) {
			t.Errorf("β %v τ %v: posteriors sum to %v", c.beta, c.tau, sum)
		}
	}
}

func TestScoresTooFarApart(t *testing.T) {
	s := mustSession(t, nil, smallGraph(t), &Config{ScoreNormalization: NormalizeNone})
	_, err := s.Observe(t.Context(), "", turnOf("a", 9e307, "b", -9e307))
	if !errors.Is(err, ErrNonFinite) || !strings.Contains(err.Error(), `turn 0: chunk "a": its score 9e+307 is too far from the -9e+307 of chunk "b"`) {
		t.Errorf("error %v", err)
	}
}

func TestGapsAfterAFinalTurnAreFinal(t *testing.T) {
	s := mustSession(t, nil, smallGraph(t), nil)
	observe(t, s, "a", 1)
	observe(t, s)
	observe(t, s)
	if got := s.FinalThroughIndex(); got != 2 {
		t.Errorf("final through %d, want 2", got)
	}
	observe(t, s, "a", 1, "b", 1)
	if got := s.FinalThroughIndex(); got != 2 {
		t.Errorf("final through %d with an open turn, want 2", got)
	}
}
