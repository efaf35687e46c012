package plugintest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/mapmatched/mmplug/mapmatched"
)

// awkwardTexts have broken query languages and tokenizers.
var awkwardTexts = []string{"", " ", `say "hi"\n\a`, "line\nbreak", "'; DROP TABLE chunks; --", "%s %d {{.}}", "\x01\x7f", "🚀", "故乡", "e\u0301\u200b"}

// queries are those that a provider of unknown content is asked.
func (s *suite) queries() []mapmatched.Query {
	if len(s.Queries) > 0 {
		return s.Queries
	}
	return []mapmatched.Query{{Text: "road"}, {Text: "how does it work", Turn: 1, History: []string{"road"}, Path: []string{""}}, {Text: "error"}}
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

var providerChecks = []check[mapmatched.CandidateProvider]{
	{"best first, finite, each once, within the limit", func(s *suite, p mapmatched.CandidateProvider) error {
		for _, q := range s.queries() {
			for _, limit := range []int{1, 3, 20} {
				got, err := p.Candidates(s.ctx, q, limit)
				if err != nil {
					return fmt.Errorf("query %q, limit %d: %w", q.Text, limit, err)
				}
				if err := checkCandidates(got, limit); err != nil {
					return fmt.Errorf("query %q, limit %d: %w", q.Text, limit, err)
				}
			}
		}
		return nil
	}},
	{"no limit no candidates", func(s *suite, p mapmatched.CandidateProvider) error {
		for _, limit := range []int{0, -1} {
			if got, err := p.Candidates(s.ctx, s.queries()[0], limit); err == nil && len(got) > 0 {
				return fmt.Errorf("limit %d: %d candidates", limit, len(got))
			}
		}
		return nil
	}},
	{"same answer again", func(s *suite, p mapmatched.CandidateProvider) error {
		for _, q := range s.queries() {
			first, err := p.Candidates(s.ctx, q, 10)
			if err != nil {
				return err
			}
			err = parallel(8, func(int) error {
				again, err := p.Candidates(s.ctx, q, 10)
				if err == nil && !slices.EqualFunc(first, again, func(a, b mapmatched.Candidate) bool { return a.ChunkID == b.ChunkID && a.Score == b.Score }) {
					err = fmt.Errorf("query %q: another answer than before", q.Text)
				}
				return err
			})
			if err != nil {
				return err
			}
		}
		return nil
	}},
	{"awkward texts", func(s *suite, p mapmatched.CandidateProvider) error {
		for _, text := range awkwardTexts {
			q := s.queries()[0]
			q.Text = text
			got, err := p.Candidates(s.ctx, q, 3)
			if err != nil && mapmatched.KindOf(err) != mapmatched.KindInvalid {
				return fmt.Errorf("text %q: %w", text, err)
			}
			if err := checkCandidates(got, 3); err != nil {
				return fmt.Errorf("text %q: %w", text, err)
			}
		}
		return nil
	}},
	{"context done before", func(s *suite, p mapmatched.CandidateProvider) error {
		return checkDone(s.ctx, func(ctx context.Context) error {
			_, err := p.Candidates(ctx, s.queries()[0], 3)
			return err
		})
	}},
}

func checkCandidates(got []mapmatched.Candidate, limit int) error {
	if len(got) > limit {
		return fmt.Errorf("%d candidates", len(got))
	}
	seen := map[string]bool{}
	for i, c := range got {
		switch {
		case c.ChunkID == "" || seen[c.ChunkID]:
			return fmt.Errorf("candidate %d: chunk %q is empty or there before", i, c.ChunkID)
		case !finite(c.Score):
			return fmt.Errorf("candidate %d: score %v", i, c.Score)
		case i > 0 && c.Score > got[i-1].Score:
			return fmt.Errorf("candidate %d scores %v, above the one before with %v", i, c.Score, got[i-1].Score)
		}
		seen[c.ChunkID] = true
	}
	return nil
}

// checkDone expects a call to refuse a context that is cancelled.
func checkDone(ctx context.Context, call func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	if err := call(ctx); !errors.Is(err, context.Canceled) {
		return fmt.Errorf("error %v, want one that wraps %q", err, context.Canceled)
	}
	return nil
}

// rerankCandidates are candidates of plain words.
func rerankCandidates(n int) []mapmatched.Candidate {
	words := []string{"road", "bridge", "ferry", "tunnel", "toll", "coin", "lantern", "harbour"}
	r := rand.New(rand.NewPCG(1, 2))
	out := make([]mapmatched.Candidate, n)
	for i := range out {
		text := ""
		for range 12 {
			text += words[r.IntN(len(words))] + " "
		}
		out[i] = mapmatched.Candidate{ChunkID: fmt.Sprint("chunk ", i), Score: float64(n - i), Text: text, Metadata: map[string]any{"n": int64(i)}}
	}
	return out
}

var rerankerChecks = []check[mapmatched.Reranker]{
	{"one finite score for each candidate", func(s *suite, r mapmatched.Reranker) error {
		for _, n := range []int{1, 2, 20, 100} {
			c := rerankCandidates(n)
			got, err := r.Rerank(s.ctx, mapmatched.Query{Text: "toll on the bridge road"}, c)
			if err != nil {
				return fmt.Errorf("%d candidates: %w", n, err)
			}
			if err := checkScores(c, got); err != nil {
				return fmt.Errorf("%d candidates: %w", n, err)
			}
		}
		return nil
	}},
	{"nothing to rerank", func(s *suite, r mapmatched.Reranker) error {
		got, err := r.Rerank(s.ctx, mapmatched.Query{Text: "toll"}, nil)
		if err != nil && mapmatched.KindOf(err) != mapmatched.KindInvalid || len(got) > 0 {
			return fmt.Errorf("%d scores and error %v, want no scores", len(got), err)
		}
		return nil
	}},
	{"same answer again", func(s *suite, r mapmatched.Reranker) error {
		c := rerankCandidates(30)
		first, err := r.Rerank(s.ctx, mapmatched.Query{Text: "ferry"}, c)
		if err != nil {
			return err
		}
		return parallel(8, func(int) error {
			again, err := r.Rerank(s.ctx, mapmatched.Query{Text: "ferry"}, c)
			if err == nil && !slices.Equal(first, again) {
				err = errors.New("another answer than before")
			}
			return err
		})
	}},
	{"awkward texts", func(s *suite, r mapmatched.Reranker) error {
		c := rerankCandidates(len(awkwardTexts))
		for i, text := range awkwardTexts {
			c[i].Text = text
		}
		for _, text := range awkwardTexts {
			got, err := r.Rerank(s.ctx, mapmatched.Query{Text: text}, c)
			if err == nil {
				err = checkScores(c, got)
			}
			if err != nil {
				return fmt.Errorf("text %q: %w", text, err)
			}
		}
		return nil
	}},
	{"context done before", func(s *suite, r mapmatched.Reranker) error {
		if s.open == nil {
			return skip("the host looks at the context")
		}
		return checkDone(s.ctx, func(ctx context.Context) error {
			_, err := r.Rerank(ctx, mapmatched.Query{Text: "toll"}, rerankCandidates(2))
			return err
		})
	}},
}

func checkScores(asked []mapmatched.Candidate, got []mapmatched.Scored) error {
	missing := map[string]bool{}
	for _, c := range asked {
		missing[c.ChunkID] = true
	}
	for _, g := range got {
		if !missing[g.ChunkID] {
			return fmt.Errorf("chunk %q was not asked for, or has a score before", g.ChunkID)
		}
		if !finite(g.Score) {
			return fmt.Errorf("chunk %q: score %v", g.ChunkID, g.Score)
		}
		delete(missing, g.ChunkID)
	}
	if len(missing) > 0 {
		return fmt.Errorf("%d of %d candidates have no score", len(missing), len(asked))
	}
	return nil
}

var graphChecks = []check[mapmatched.CorpusGraph]{
	{"maximum distance", func(_ *suite, g mapmatched.CorpusGraph) error {
		if d := g.MaximumDistance(); !(d > 0) || !finite(d) {
			return fmt.Errorf("maximum distance %v", d)
		}
		return nil
	}},
	{"unknown chunks", func(s *suite, g mapmatched.CorpusGraph) error {
		d := make([]float64, 4)
		if err := g.Distances(s.ctx, []string{"no such chunk", "nor this"}, []string{"nowhere", "nothing"}, d); err != nil {
			return err
		}
		for _, x := range d {
			if x != g.MaximumDistance() {
				return fmt.Errorf("distances %v of unknown chunks, want %v", d, g.MaximumDistance())
			}
		}
		got, err := g.Neighborhood(s.ctx, "no such chunk", math.Inf(1))
		if err == nil && len(got) > 0 {
			err = fmt.Errorf("an unknown chunk has %d neighbors", len(got))
		}
		return err
	}},
	{"distances along the edges", func(s *suite, g mapmatched.CorpusGraph) error {
		lister, ok := g.(mapmatched.EdgeLister)
		if !ok {
			return skip("the graph does not list its edges")
		}
		n := 0
		for e, err := range lister.Edges(s.ctx) {
			if err != nil {
				return err
			}
			d := make([]float64, 1)
			if err := g.Distances(s.ctx, []string{e.From}, []string{e.To}, d); err != nil {
				return err
			}
			if d[0] > e.Weight {
				return fmt.Errorf("distance %v from %q to %q, more than their edge of %v", d[0], e.From, e.To, e.Weight)
			}
			if n++; n == 100 {
				break
			}
		}
		return nil
	}},
	{"context done before", func(s *suite, g mapmatched.CorpusGraph) error {
		return checkDone(s.ctx, func(ctx context.Context) error {
			return g.Distances(ctx, []string{"a"}, []string{"b"}, make([]float64, 1))
		})
	}},
}

var embedderChecks = []check[mapmatched.Embedder]{
	{"one vector for each text, of one dimension", func(s *suite, e mapmatched.Embedder) error {
		texts := []string{"road", "a longer text about a bridge", "toll"}
		got, err := e.Embed(s.ctx, texts)
		if err != nil {
			return err
		}
		return checkVectors(got, len(texts))
	}},
	{"nothing to embed", func(s *suite, e mapmatched.Embedder) error {
		got, err := e.Embed(s.ctx, nil)
		if err != nil && mapmatched.KindOf(err) != mapmatched.KindInvalid || len(got) > 0 {
			return fmt.Errorf("%d vectors and error %v, want none", len(got), err)
		}
		return nil
	}},
	{"alone as among others", func(s *suite, e mapmatched.Embedder) error {
		texts := []string{"road", "bridge", "road"}
		all, err := e.Embed(s.ctx, texts)
		if err != nil {
			return err
		}
		for i, text := range texts {
			alone, err := e.Embed(s.ctx, []string{text})
			if err != nil {
				return err
			}
			if !near(alone[0], all[i]) {
				return fmt.Errorf("text %q has another vector alone than among others", text)
			}
		}
		return nil
	}},
	{"awkward texts", func(s *suite, e mapmatched.Embedder) error {
		got, err := e.Embed(s.ctx, awkwardTexts)
		if err != nil {
			return err
		}
		return checkVectors(got, len(awkwardTexts))
	}},
	{"context done before", func(s *suite, e mapmatched.Embedder) error {
		if s.open == nil {
			return skip("the host looks at the context")
		}
		return checkDone(s.ctx, func(ctx context.Context) error {
			_, err := e.Embed(ctx, []string{"a"})
			return err
		})
	}},
}

// near compares vectors of one model: batches may be summed in another order.
func near(a, b []float32) bool {
	return slices.EqualFunc(a, b, func(x, y float32) bool { return math.Abs(float64(x)-float64(y)) <= 1e-4*max(1, math.Abs(float64(y))) })
}

func checkVectors(got [][]float32, want int) error {
	if len(got) != want {
		return fmt.Errorf("%d vectors for %d texts", len(got), want)
	}
	for i, v := range got {
		if len(v) == 0 || len(v) != len(got[0]) {
			return fmt.Errorf("vector %d has dimension %d, the first %d", i, len(v), len(got[0]))
		}
		if slices.ContainsFunc(v, func(x float32) bool { return !finite(float64(x)) }) {
			return fmt.Errorf("vector %d is not finite", i)
		}
	}
	return nil
}

var decoderChecks = []check[mapmatched.Decoder]{
	{"nothing to decode", func(s *suite, d mapmatched.Decoder) error {
		for _, t := range []*mapmatched.Trellis{{}, {TransitionWeight: 1, Columns: make([]mapmatched.Column, 3)}} {
			got, err := d.Decode(s.ctx, t)
			if err != nil {
				return fmt.Errorf("%d gaps: %w", len(t.Columns), err)
			}
			for _, x := range got.Path {
				if x != -1 {
					return fmt.Errorf("path %v through gaps", got.Path)
				}
			}
		}
		return nil
	}},
	{"same answers as the built-in decoder", func(s *suite, d mapmatched.Decoder) error {
		for seed := range uint64(40) {
			t := randomTrellis(seed, 1+int(seed%7), 1+int(seed%5))
			difference, err := mapmatched.CompareDecoders(s.ctx, mapmatched.Viterbi{}, d, t, s.Tolerance)
			if err != nil {
				return fmt.Errorf("trellis %d: %w", seed, err)
			}
			if difference != nil {
				return fmt.Errorf("trellis %d: %s", seed, difference)
			}
		}
		return nil
	}},
	{"context done before", func(s *suite, d mapmatched.Decoder) error {
		return checkDone(s.ctx, func(ctx context.Context) error {
			_, err := d.Decode(ctx, randomTrellis(1, 2, 2))
			return err
		})
	}},
}

// randomTrellis makes a trellis with gaps, ties, breaks and narrowed columns.
// Its values are multiples of 1/8, so that sums are exact and ties real.
func randomTrellis(seed uint64, turns, candidates int) *mapmatched.Trellis {
	r := rand.New(rand.NewPCG(seed, 7))
	eighths := func() float64 { return float64(r.IntN(17)) / 8 }
	t := &mapmatched.Trellis{TransitionWeight: []float64{0, 0.5, 1, 2}[seed%4], Columns: make([]mapmatched.Column, turns)}
	before := 0
	for i := range t.Columns {
		if turns > 2 && candidates < 100 && r.IntN(6) == 0 {
			continue
		}
		c := &t.Columns[i]
		for k := range candidates {
			c.ChunkIDs = append(c.ChunkIDs, fmt.Sprint("chunk ", k))
			c.Raw = append(c.Raw, eighths())
		}
		c.Normalized, c.Emission = slices.Clone(c.Raw), slices.Clone(c.Raw)
		for y := range before {
			if y == 0 || r.IntN(5) > 0 {
				c.From = append(c.From, y)
			}
		}
		c.Break = before > 0 && r.IntN(8) == 0
		if before > 0 && t.TransitionWeight > 0 && !c.Break {
			for range len(c.From) * candidates {
				c.Distance = append(c.Distance, eighths())
			}
		}
		before = candidates
	}
	return t
}
