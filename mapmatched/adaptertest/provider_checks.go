package adaptertest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/mapmatched/mmplug/mapmatched"
)

var providerChecks = []providerCheck{
	{"right chunk first", checkRightFirst},
	{"best first", checkBestFirst},
	{"scores are finite", checkFiniteScores},
	{"no chunk twice", checkNoChunkTwice},
	{"chunks of the corpus", checkKnownChunks},
	{"same text is not the same chunk", checkSameText},
	{"limit", checkLimit},
	{"limit cuts the end", checkLimitCuts},
	{"no limit no candidates", checkNoLimit},
	{"empty result", checkEmptyResult},
	{"awkward texts", checkAwkwardTexts},
	{"history and path", checkHistoryAndPath},
	{"same answer again", checkSameAnswer},
	{"query is left alone", checkQueryUntouched},
	{"results are not shared", checkResultsNotShared},
	{"concurrent use", checkConcurrentQueries},
	{"context done before", checkProviderDone},
	{"context done in the middle", checkProviderMiddle},
	{"context done while the store is silent", checkProviderSilent},
	{"close", checkProviderClose},
	{"close while busy", checkProviderCloseBusy},
	{"health", func(s providerSuite, p mapmatched.CandidateProvider) error { return checkHealth(s.ctx, p) }},
	{"score chunks", checkScoreChunks},
	{"fetch chunks", checkFetchChunks},
	{"fetch vectors", checkFetchVectors},
}

const unknownChunk = "no such chunk"

// beyond is a limit that is larger than the corpus.
func (s providerSuite) beyond() int { return len(s.corpus.Chunks) + 7 }

// each hands the results of all plain queries at several limits to f.
func (s providerSuite) each(p mapmatched.CandidateProvider, f func(limit int, got []mapmatched.Candidate) error) error {
	for _, q := range append(s.corpus.plain(), s.corpus.query("road"), s.corpus.query("the road in the harbour")) {
		for _, limit := range []int{1, 2, 3, 5, s.beyond()} {
			got, err := p.Candidates(s.ctx, q, limit)
			if err != nil {
				return fmt.Errorf("query %q, limit %d: %w", q.Text, limit, err)
			}
			if err := f(limit, got); err != nil {
				return fmt.Errorf("query %q, limit %d: %w", q.Text, limit, err)
			}
		}
	}
	return nil
}

// full asks one query for everything.
func (s providerSuite) full(ctx context.Context, p mapmatched.CandidateProvider, q mapmatched.Query) ([]mapmatched.Candidate, error) {
	got, err := p.Candidates(ctx, q, s.beyond())
	if err != nil {
		return nil, fmt.Errorf("query %q: %w", q.Text, err)
	}
	return got, nil
}

func checkRightFirst(s providerSuite, p mapmatched.CandidateProvider) error {
	for i, q := range s.corpus.Queries {
		want := s.corpus.want[i]
		if want == nil {
			continue
		}
		got, err := s.full(s.ctx, p, q)
		if err != nil {
			return err
		}
		if len(got) == 0 || !slices.Contains(want, got[0].ChunkID) {
			return fmt.Errorf("query %q: candidates %q, want %q first (are the scores distances?)", q.Text, candidateIDs(got), want)
		}
	}
	return nil
}

func checkBestFirst(s providerSuite, p mapmatched.CandidateProvider) error {
	return s.each(p, func(_ int, got []mapmatched.Candidate) error {
		for i := 1; i < len(got); i++ {
			if got[i].Score > got[i-1].Score {
				return fmt.Errorf("candidate %d (%q, score %v) comes after candidate %d (%q, score %v)",
					i, got[i].ChunkID, got[i].Score, i-1, got[i-1].ChunkID, got[i-1].Score)
			}
		}
		return nil
	})
}

func checkFiniteScores(s providerSuite, p mapmatched.CandidateProvider) error {
	return s.each(p, func(_ int, got []mapmatched.Candidate) error {
		for i, c := range got {
			if !finite(c.Score) {
				return fmt.Errorf("candidate %d (%q): score %v is not finite", i, c.ChunkID, c.Score)
			}
		}
		return nil
	})
}

func checkNoChunkTwice(s providerSuite, p mapmatched.CandidateProvider) error {
	return s.each(p, func(_ int, got []mapmatched.Candidate) error {
		ids := candidateIDs(got)
		for i, id := range ids {
			if first := slices.Index(ids, id); first < i {
				return fmt.Errorf("chunk %q is candidate %d and %d", id, first, i)
			}
		}
		return nil
	})
}

func checkKnownChunks(s providerSuite, p mapmatched.CandidateProvider) error {
	return s.each(p, func(_ int, got []mapmatched.Candidate) error {
		for i, c := range got {
			chunk, known := s.corpus.chunk(c.ChunkID)
			if !known {
				return fmt.Errorf("candidate %d: chunk %q is not in the corpus", i, c.ChunkID)
			}
			if c.Text != "" && c.Text != chunk.Text {
				return fmt.Errorf("candidate %d (%q): text %q, want %q or none", i, c.ChunkID, c.Text, chunk.Text)
			}
		}
		return nil
	})
}

func checkSameText(s providerSuite, p mapmatched.CandidateProvider) error {
	q := s.corpus.query(tieText)
	got, err := s.full(s.ctx, p, q)
	if err != nil {
		return err
	}
	ids := candidateIDs(got)
	for _, want := range s.corpus.want[q.Turn] {
		if i := slices.Index(ids, want); i < 0 || i > 1 {
			return fmt.Errorf("query %q: candidates %q, want the two chunks of the same text first, %q", q.Text, ids, s.corpus.want[q.Turn])
		}
	}
	if got[0].Score != got[1].Score {
		return fmt.Errorf("query %q: scores %v and %v for the same text", q.Text, got[0].Score, got[1].Score)
	}
	return nil
}

func checkLimit(s providerSuite, p mapmatched.CandidateProvider) error {
	err := s.each(p, func(limit int, got []mapmatched.Candidate) error {
		if len(got) > limit {
			return fmt.Errorf("%d candidates", len(got))
		}
		if len(got) == 0 {
			return errors.New("no candidates, want at least one")
		}
		return nil
	})
	if err != nil {
		return err
	}
	// A store may refuse a limit without bounds, but it must not fall over.
	got, err := p.Candidates(s.ctx, s.corpus.query("road"), math.MaxInt)
	if err == nil && len(got) == 0 {
		return fmt.Errorf("limit %d: no candidates and no error", math.MaxInt)
	}
	return nil
}

func checkLimitCuts(s providerSuite, p mapmatched.CandidateProvider) error {
	if s.LimitReorders {
		return skip("the harness says that a limit reorders")
	}
	for _, q := range append(s.corpus.plain(), s.corpus.query("road")) {
		all, err := s.full(s.ctx, p, q)
		if err != nil {
			return err
		}
		for limit := 1; limit <= len(all); limit++ {
			got, err := p.Candidates(s.ctx, q, limit)
			if err != nil {
				return fmt.Errorf("query %q, limit %d: %w", q.Text, limit, err)
			}
			if want := candidateIDs(all[:limit]); !slices.Equal(candidateIDs(got), want) {
				return fmt.Errorf("query %q, limit %d: candidates %q, want %q as with limit %d", q.Text, limit, candidateIDs(got), want, s.beyond())
			}
		}
	}
	return nil
}

func checkNoLimit(s providerSuite, p mapmatched.CandidateProvider) error {
	for _, limit := range []int{0, -1, math.MinInt} {
		if got, _ := p.Candidates(s.ctx, s.corpus.query("road"), limit); len(got) > 0 {
			return fmt.Errorf("limit %d: candidates %q, want none", limit, candidateIDs(got))
		}
	}
	return nil
}

func checkEmptyResult(s providerSuite, p mapmatched.CandidateProvider) error {
	if s.AlwaysHits {
		return skip("the harness says that every query has hits")
	}
	got, err := s.full(s.ctx, p, s.corpus.query(noHitText))
	if err != nil {
		return fmt.Errorf("no hit is a value, not an error: %w", err)
	}
	if len(got) > 0 {
		return fmt.Errorf("query %q: candidates %q, want none", noHitText, candidateIDs(got))
	}
	return nil
}

func checkAwkwardTexts(s providerSuite, p mapmatched.CandidateProvider) error {
	for _, text := range awkwardTexts {
		if _, err := s.full(s.ctx, p, s.corpus.query(text)); err != nil {
			return err
		}
	}
	// What is not a text may be refused, without a panic.
	q := s.corpus.query("road")
	q.Text = "road \xff\xfe"
	_, _ = p.Candidates(s.ctx, q, 3)
	q.Text, q.Vector = "", nil
	_, _ = p.Candidates(s.ctx, q, 3)
	return nil
}

func checkHistoryAndPath(s providerSuite, p mapmatched.CandidateProvider) error {
	q := s.corpus.query("road")
	q.History = []string{"tunnel beneath the mountain", "", noHitText}
	q.Path = []string{"roads/tunnel", "", unknownChunk}
	got, err := s.full(s.ctx, p, q)
	if err != nil {
		return fmt.Errorf("with a path that has a gap and an unknown chunk: %w", err)
	}
	if len(got) == 0 {
		return fmt.Errorf("query %q: no candidates with a path that has a gap and an unknown chunk", q.Text)
	}
	return nil
}

func checkSameAnswer(s providerSuite, p mapmatched.CandidateProvider) error {
	other, err := s.New(NewCorpus())
	if err != nil {
		return fmt.Errorf("the harness made no second store: %w", err)
	}
	if closer, ok := other.(io.Closer); ok {
		defer func() { _ = closer.Close() }() // closing is checked elsewhere
	}
	for _, q := range s.corpus.Queries[:len(s.corpus.Queries)-len(awkwardTexts)] {
		want, err := s.full(s.ctx, p, q)
		if err != nil {
			return err
		}
		for range 5 {
			again, err := s.full(s.ctx, p, q)
			if err != nil {
				return err
			}
			if err := sameCandidates(again, want); err != nil {
				return fmt.Errorf("query %q asked again: %w", q.Text, err)
			}
		}
		elsewhere, err := s.full(s.ctx, other, q)
		if err != nil {
			return err
		}
		if err := sameCandidates(elsewhere, want); err != nil {
			return fmt.Errorf("query %q asked of a second store with the same chunks: %w", q.Text, err)
		}
	}
	return nil
}

func checkQueryUntouched(s providerSuite, p mapmatched.CandidateProvider) error {
	q := s.corpus.query("the road in the harbour")
	q.History = []string{"b", "a"}
	q.Path = []string{"roads/tunnel", "roads/bridge"}
	vector, history, path := slices.Clone(q.Vector), slices.Clone(q.History), slices.Clone(q.Path)
	if _, err := s.full(s.ctx, p, q); err != nil {
		return err
	}
	if !slices.Equal(q.Vector, vector) || !slices.Equal(q.History, history) || !slices.Equal(q.Path, path) {
		return errors.New("the call changed the query's vector, history or path")
	}
	return nil
}

func checkResultsNotShared(s providerSuite, p mapmatched.CandidateProvider) error {
	const mark = "changed by the caller"
	q := s.corpus.query("road")
	first, err := s.full(s.ctx, p, q)
	if err != nil {
		return err
	}
	kept := slices.Clone(first)
	if _, err := s.full(s.ctx, p, s.corpus.query("toll in coins")); err != nil {
		return err
	}
	if err := sameCandidates(first, kept); err != nil {
		return fmt.Errorf("a later call changed an earlier result: %w", err)
	}
	for i := range first {
		first[i].ChunkID, first[i].Score, first[i].Text = mark, -1, mark
		if first[i].Metadata != nil {
			first[i].Metadata[mark] = mark
		}
		if first[i].Parts != nil {
			first[i].Parts[mark] = -1
		}
	}
	second, err := s.full(s.ctx, p, q)
	if err != nil {
		return err
	}
	if err := sameCandidates(second, kept); err != nil {
		return fmt.Errorf("a change to a result reached the store: %w", err)
	}
	for _, c := range second {
		_, metadata := c.Metadata[mark]
		_, parts := c.Parts[mark]
		if metadata || parts || c.Text == mark {
			return fmt.Errorf("chunk %q: a change to a result reached the store's text, metadata or parts", c.ChunkID)
		}
	}
	return nil
}

func checkConcurrentQueries(s providerSuite, p mapmatched.CandidateProvider) error {
	queries := append(s.corpus.plain(), s.corpus.query("road"))
	want := make([][]mapmatched.Candidate, len(queries))
	for i, q := range queries {
		var err error
		if want[i], err = s.full(s.ctx, p, q); err != nil {
			return err
		}
	}
	return parallel(8, func(worker int) error {
		for n := range 2 * len(queries) {
			i := (worker + n) % len(queries)
			got, err := s.full(s.ctx, p, queries[i])
			if err != nil {
				return err
			}
			if err := sameCandidates(got, want[i]); err != nil {
				return fmt.Errorf("query %q asked beside others: %w", queries[i].Text, err)
			}
		}
		return nil
	})
}

// operations are all calls of a provider. Where the right answer is known it
// is compared.
func (s providerSuite) operations(p mapmatched.CandidateProvider, want []mapmatched.Candidate) []operation {
	q := s.corpus.query("road")
	ids := []string{"roads/tunnel", "roads/bridge"}
	ops := []operation{{"Candidates", func(ctx context.Context) error {
		got, err := s.full(ctx, p, q)
		if err != nil {
			return err
		}
		return sameCandidates(got, want)
	}}}
	if scorer, ok := p.(mapmatched.ChunkScorer); ok {
		ops = append(ops, operation{"ScoreChunks", func(ctx context.Context) error {
			got, err := scorer.ScoreChunks(ctx, q, ids)
			return answered(len(got), len(ids), err)
		}})
	}
	if fetcher, ok := p.(mapmatched.ChunkFetcher); ok {
		ops = append(ops, operation{"Chunks", func(ctx context.Context) error {
			got, err := fetcher.Chunks(ctx, ids)
			return answered(len(got), len(ids), err)
		}})
	}
	if fetcher, ok := p.(mapmatched.VectorFetcher); ok {
		ops = append(ops, operation{"Vectors", func(ctx context.Context) error {
			got, err := fetcher.Vectors(ctx, ids)
			return answered(len(got), len(ids), err)
		}})
	}
	if checker, ok := p.(mapmatched.HealthChecker); ok {
		ops = append(ops, operation{"Health", checker.Health})
	}
	return ops
}

// answered expects n of want answers when there is no error.
func answered(n, want int, err error) error {
	if err == nil && n != want {
		return fmt.Errorf("%d answers, want %d", n, want)
	}
	return err
}

// asked returns the operations with the answer to compare them with.
func (s providerSuite) asked(p mapmatched.CandidateProvider) ([]operation, error) {
	want, err := s.full(s.ctx, p, s.corpus.query("road"))
	if err != nil {
		return nil, err
	}
	return s.operations(p, want), nil
}

func checkProviderDone(s providerSuite, p mapmatched.CandidateProvider) error {
	ops, err := s.asked(p)
	if err != nil {
		return err
	}
	return checkDone(s.ctx, s.Patience, ops)
}

func checkProviderMiddle(s providerSuite, p mapmatched.CandidateProvider) error {
	ops, err := s.asked(p)
	if err != nil {
		return err
	}
	return checkMiddle(s.ctx, s.Patience, ops)
}

func checkProviderSilent(s providerSuite, _ mapmatched.CandidateProvider) error {
	if s.Stalled == nil {
		return skip("the harness makes no stalled provider")
	}
	p, err := s.Stalled(NewCorpus())
	if err != nil {
		return fmt.Errorf("the harness made no stalled store: %w", err)
	}
	if closer, ok := p.(io.Closer); ok {
		defer func() { _ = closer.Close() }() // closing is checked elsewhere
	}
	return checkSilent(s.ctx, s.Patience, s.operations(p, nil)[:1])
}

func checkProviderClose(s providerSuite, p mapmatched.CandidateProvider) error {
	ops, err := s.asked(p)
	if err != nil {
		return err
	}
	return checkClose(s.ctx, p, ops)
}

func checkProviderCloseBusy(s providerSuite, p mapmatched.CandidateProvider) error {
	ops, err := s.asked(p)
	if err != nil {
		return err
	}
	return checkCloseWhileBusy(s.ctx, p, ops)
}

func candidateIDs(candidates []mapmatched.Candidate) []string {
	ids := make([]string, len(candidates))
	for i, c := range candidates {
		ids[i] = c.ChunkID
	}
	return ids
}

// sameCandidates compares IDs, order and the bits of the scores.
func sameCandidates(got, want []mapmatched.Candidate) error {
	if g, w := candidateIDs(got), candidateIDs(want); !slices.Equal(g, w) {
		return fmt.Errorf("candidates %q, want %q", g, w)
	}
	for i := range got {
		if math.Float64bits(got[i].Score) != math.Float64bits(want[i].Score) {
			return fmt.Errorf("chunk %q: score %v, want %v", got[i].ChunkID, got[i].Score, want[i].Score)
		}
	}
	return nil
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
