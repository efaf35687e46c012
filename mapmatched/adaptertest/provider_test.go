package adaptertest

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mapmatched/mmplug/mapmatched"
)

// wordStore is a plain provider that does all that a provider can do. The
// fields are its methods, so that a test can break one of them.
type wordStore struct {
	corpus Corpus
	closed atomic.Bool

	candidates func(ctx context.Context, q mapmatched.Query, limit int) ([]mapmatched.Candidate, error)
	score      func(ctx context.Context, q mapmatched.Query, ids []string) ([]mapmatched.Scored, error)
	chunks     func(ctx context.Context, ids []string) ([]mapmatched.Chunk, error)
	vectors    func(ctx context.Context, ids []string) ([][]float32, error)
	health     func(ctx context.Context) error
	close      func() error
}

func newWordStore(c Corpus) *wordStore {
	w := &wordStore{corpus: c}
	w.candidates, w.score, w.chunks, w.vectors = w.plainCandidates, w.plainScore, w.plainChunks, w.plainVectors
	w.health = w.usable
	w.close = func() error { w.closed.Store(true); return nil }
	return w
}

func (w *wordStore) Candidates(ctx context.Context, q mapmatched.Query, limit int) ([]mapmatched.Candidate, error) {
	return w.candidates(ctx, q, limit)
}
func (w *wordStore) ScoreChunks(ctx context.Context, q mapmatched.Query, ids []string) ([]mapmatched.Scored, error) {
	return w.score(ctx, q, ids)
}
func (w *wordStore) Chunks(ctx context.Context, ids []string) ([]mapmatched.Chunk, error) {
	return w.chunks(ctx, ids)
}
func (w *wordStore) Vectors(ctx context.Context, ids []string) ([][]float32, error) {
	return w.vectors(ctx, ids)
}
func (w *wordStore) Health(ctx context.Context) error { return w.health(ctx) }
func (w *wordStore) Close() error                     { return w.close() }

func (w *wordStore) usable(ctx context.Context) error {
	if w.closed.Load() {
		return mapmatched.ErrClosed
	}
	return ctx.Err()
}

// similarity is the dot product of query and chunk.
func (w *wordStore) similarity(q mapmatched.Query, chunk int) float64 {
	var sum float64
	for i, x := range w.corpus.embed(q.Text) {
		sum += float64(float64(x) * float64(w.corpus.Vectors[chunk][i]))
	}
	return sum
}

func (w *wordStore) plainCandidates(ctx context.Context, q mapmatched.Query, limit int) ([]mapmatched.Candidate, error) {
	if err := w.usable(ctx); err != nil {
		return nil, err
	}
	var out []mapmatched.Candidate
	for i, chunk := range w.corpus.Chunks {
		if err := w.usable(ctx); err != nil {
			return nil, err
		}
		if s := w.similarity(q, i); s > 0 {
			out = append(out, mapmatched.Candidate{ChunkID: chunk.ID, Score: s, Text: chunk.Text,
				Metadata: map[string]any{"document": chunk.Document}, Parts: map[string]float64{"words": s}})
		}
	}
	slices.SortStableFunc(out, func(a, b mapmatched.Candidate) int { return cmp.Compare(b.Score, a.Score) })
	return out[:max(0, min(limit, len(out)))], nil
}

func (w *wordStore) plainScore(ctx context.Context, q mapmatched.Query, ids []string) ([]mapmatched.Scored, error) {
	if err := w.usable(ctx); err != nil {
		return nil, err
	}
	var out []mapmatched.Scored
	for _, id := range ids {
		if i := slices.Index(w.corpus.ids(), id); i >= 0 {
			out = append(out, mapmatched.Scored{ChunkID: id, Score: w.similarity(q, i)})
		}
	}
	return out, nil
}

func (w *wordStore) plainChunks(ctx context.Context, ids []string) ([]mapmatched.Chunk, error) {
	if err := w.usable(ctx); err != nil {
		return nil, err
	}
	var out []mapmatched.Chunk
	for _, id := range ids {
		if chunk, known := w.corpus.chunk(id); known {
			out = append(out, chunk)
		}
	}
	return out, nil
}

func (w *wordStore) plainVectors(ctx context.Context, ids []string) ([][]float32, error) {
	if err := w.usable(ctx); err != nil {
		return nil, err
	}
	out := make([][]float32, len(ids))
	for k, id := range ids {
		if i := slices.Index(w.corpus.ids(), id); i >= 0 {
			out[k] = slices.Clone(w.corpus.Vectors[i])
		}
	}
	return out, nil
}

// stall makes a store whose search never answers.
func stall(w *wordStore) {
	w.candidates = func(ctx context.Context, _ mapmatched.Query, _ int) ([]mapmatched.Candidate, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
}

// wordHarness makes word stores, each changed by f.
func wordHarness(f func(w *wordStore)) ProviderHarness {
	return ProviderHarness{
		New: func(c Corpus) (mapmatched.CandidateProvider, error) {
			w := newWordStore(c)
			f(w)
			return w, nil
		},
		Stalled: func(c Corpus) (mapmatched.CandidateProvider, error) {
			w := newWordStore(c)
			stall(w)
			return w, nil
		},
	}
}

func TestProviderSuiteHoldsForAWordStore(t *testing.T) {
	h := wordHarness(func(*wordStore) {})
	Provider(t, h)
	for _, r := range CheckProvider(t.Context(), h) {
		if r.Skipped != "" {
			t.Errorf("%s: skipped (%s) although the store can do it", r.Check, r.Skipped)
		}
	}
}

func TestSliceProvider(t *testing.T) {
	Provider(t, ProviderHarness{New: func(c Corpus) (mapmatched.CandidateProvider, error) {
		w := newWordStore(c)
		turns := make([][]mapmatched.Candidate, len(c.Queries))
		for i, q := range c.Queries {
			var err error
			if turns[i], err = w.Candidates(context.Background(), q, len(c.Chunks)); err != nil {
				return nil, err
			}
		}
		return mapmatched.NewSliceProvider(turns)
	}})
}

// edited returns a break that changes what Candidates returns.
func edited(edit func(q mapmatched.Query, limit int, got []mapmatched.Candidate) []mapmatched.Candidate) func(w *wordStore) {
	return func(w *wordStore) {
		w.candidates = func(ctx context.Context, q mapmatched.Query, limit int) ([]mapmatched.Candidate, error) {
			got, err := w.plainCandidates(ctx, q, limit)
			if err != nil {
				return nil, err
			}
			return edit(q, limit, got), nil
		}
	}
}

var errBroken = errors.New("broken on purpose")

// providerBreaks are faults, each with the check that has to find it.
var providerBreaks = []struct {
	name, check string
	change      func(w *wordStore)
}{
	{"distances for scores", "right chunk first", edited(func(_ mapmatched.Query, _ int, got []mapmatched.Candidate) []mapmatched.Candidate {
		slices.Reverse(got)
		for i := range got {
			got[i].Score = 1 - got[i].Score
		}
		return got
	})},
	{"no hits", "right chunk first", edited(func(mapmatched.Query, int, []mapmatched.Candidate) []mapmatched.Candidate { return nil })},
	{"worst first", "best first", edited(func(_ mapmatched.Query, _ int, got []mapmatched.Candidate) []mapmatched.Candidate {
		slices.Reverse(got)
		return got
	})},
	{"NaN", "scores are finite", edited(func(_ mapmatched.Query, _ int, got []mapmatched.Candidate) []mapmatched.Candidate {
		got[len(got)-1].Score = math.NaN()
		return got
	})},
	{"minus infinity", "scores are finite", edited(func(_ mapmatched.Query, _ int, got []mapmatched.Candidate) []mapmatched.Candidate {
		got[len(got)-1].Score = math.Inf(-1)
		return got
	})},
	{"a chunk twice", "no chunk twice", edited(func(_ mapmatched.Query, limit int, got []mapmatched.Candidate) []mapmatched.Candidate {
		return append(got, got[0])[:min(limit, len(got)+1)]
	})},
	{"a chunk that is not there", "chunks of the corpus", edited(func(_ mapmatched.Query, _ int, got []mapmatched.Candidate) []mapmatched.Candidate {
		got[len(got)-1].ChunkID = "foreign"
		return got
	})},
	{"no ID", "chunks of the corpus", edited(func(_ mapmatched.Query, _ int, got []mapmatched.Candidate) []mapmatched.Candidate {
		got[0].ChunkID = ""
		return got
	})},
	{"text of another chunk", "chunks of the corpus", edited(func(_ mapmatched.Query, _ int, got []mapmatched.Candidate) []mapmatched.Candidate {
		got[0].Text = "something else"
		return got
	})},
	{"same text joined", "same text is not the same chunk", edited(func(_ mapmatched.Query, _ int, got []mapmatched.Candidate) []mapmatched.Candidate {
		return slices.CompactFunc(got, func(a, b mapmatched.Candidate) bool { return a.Text == b.Text })
	})},
	{"same text, other score", "same text is not the same chunk", edited(func(_ mapmatched.Query, limit int, got []mapmatched.Candidate) []mapmatched.Candidate {
		for i := range got {
			got[i].Score -= float64(i) / 1e6
		}
		return got
	})},
	{"limit ignored", "limit", func(w *wordStore) {
		w.candidates = func(ctx context.Context, q mapmatched.Query, _ int) ([]mapmatched.Candidate, error) {
			return w.plainCandidates(ctx, q, 1000)
		}
	}},
	{"nothing at all", "limit", edited(func(mapmatched.Query, int, []mapmatched.Candidate) []mapmatched.Candidate { return nil })},
	{"limit allocates", "limit", func(w *wordStore) {
		w.candidates = func(ctx context.Context, q mapmatched.Query, limit int) ([]mapmatched.Candidate, error) {
			got, err := w.plainCandidates(ctx, q, limit)
			return append(make([]mapmatched.Candidate, 0, limit+1), got...), err
		}
	}},
	{"no hits for huge limits", "limit", edited(func(_ mapmatched.Query, limit int, got []mapmatched.Candidate) []mapmatched.Candidate {
		if limit > 1000 {
			return nil
		}
		return got
	})},
	{"limit before the order", "limit cuts the end", func(w *wordStore) {
		w.candidates = func(ctx context.Context, q mapmatched.Query, limit int) ([]mapmatched.Candidate, error) {
			got, err := w.plainCandidates(ctx, q, 1000)
			if limit < 5 && len(got) > limit {
				got = got[len(got)-limit:]
			}
			return got, err
		}
	}},
	{"fewer than the limit", "limit cuts the end", edited(func(_ mapmatched.Query, limit int, got []mapmatched.Candidate) []mapmatched.Candidate {
		if limit == len(got) && limit > 1 {
			return got[:limit-1]
		}
		return got
	})},
	{"0 means all", "no limit no candidates", func(w *wordStore) {
		w.candidates = func(ctx context.Context, q mapmatched.Query, limit int) ([]mapmatched.Candidate, error) {
			if limit <= 0 {
				limit = 1000
			}
			return w.plainCandidates(ctx, q, limit)
		}
	}},
	{"negative limit panics", "no limit no candidates", func(w *wordStore) {
		w.candidates = func(ctx context.Context, q mapmatched.Query, limit int) ([]mapmatched.Candidate, error) {
			got, err := w.plainCandidates(ctx, q, 1000)
			return got[:min(len(got), limit)], err
		}
	}},
	{"no hit is an error", "empty result", func(w *wordStore) {
		w.candidates = func(ctx context.Context, q mapmatched.Query, limit int) ([]mapmatched.Candidate, error) {
			got, err := w.plainCandidates(ctx, q, limit)
			if len(got) == 0 && err == nil {
				err = errBroken
			}
			return got, err
		}
	}},
	{"hits with score 0", "empty result", func(w *wordStore) {
		w.candidates = func(ctx context.Context, q mapmatched.Query, limit int) ([]mapmatched.Candidate, error) {
			if q.Text == noHitText {
				return []mapmatched.Candidate{{ChunkID: "roads/toll"}}, nil
			}
			return w.plainCandidates(ctx, q, limit)
		}
	}},
	{"quotes are not escaped", "awkward texts", func(w *wordStore) {
		w.candidates = func(ctx context.Context, q mapmatched.Query, limit int) ([]mapmatched.Candidate, error) {
			if strings.Contains(q.Text, `\n`) {
				return nil, errBroken
			}
			return w.plainCandidates(ctx, q, limit)
		}
	}},
	{"an empty text panics", "awkward texts", func(w *wordStore) {
		w.candidates = func(ctx context.Context, q mapmatched.Query, limit int) ([]mapmatched.Candidate, error) {
			_ = q.Text[0]
			return w.plainCandidates(ctx, q, limit)
		}
	}},
	{"a gap in the path", "history and path", func(w *wordStore) {
		w.candidates = func(ctx context.Context, q mapmatched.Query, limit int) ([]mapmatched.Candidate, error) {
			if slices.Contains(q.Path, "") {
				return nil, errBroken
			}
			return w.plainCandidates(ctx, q, limit)
		}
	}},
	{"an unknown chunk in the path", "history and path", func(w *wordStore) {
		w.candidates = func(ctx context.Context, q mapmatched.Query, limit int) ([]mapmatched.Candidate, error) {
			if slices.Contains(q.Path, unknownChunk) {
				return nil, nil
			}
			return w.plainCandidates(ctx, q, limit)
		}
	}},
	{"ties take turns", "same answer again", func(w *wordStore) {
		calls := 0
		edited(func(_ mapmatched.Query, _ int, got []mapmatched.Candidate) []mapmatched.Candidate {
			calls++
			if calls%2 == 0 && len(got) > 1 && got[0].Score == got[1].Score {
				got[0], got[1] = got[1], got[0]
			}
			return got
		})(w)
	}},
	{"the query is normalised in place", "query is left alone", func(w *wordStore) {
		w.candidates = func(ctx context.Context, q mapmatched.Query, limit int) ([]mapmatched.Candidate, error) {
			q.Vector[0] += 1
			return w.plainCandidates(ctx, q, limit)
		}
	}},
	{"the history is sorted in place", "query is left alone", func(w *wordStore) {
		w.candidates = func(ctx context.Context, q mapmatched.Query, limit int) ([]mapmatched.Candidate, error) {
			slices.Sort(q.History)
			return w.plainCandidates(ctx, q, limit)
		}
	}},
	{"the path is sorted in place", "query is left alone", func(w *wordStore) {
		w.candidates = func(ctx context.Context, q mapmatched.Query, limit int) ([]mapmatched.Candidate, error) {
			slices.Sort(q.Path)
			return w.plainCandidates(ctx, q, limit)
		}
	}},
	{"one buffer for all results", "results are not shared", func(w *wordStore) {
		buffer := make([]mapmatched.Candidate, 100)
		edited(func(_ mapmatched.Query, _ int, got []mapmatched.Candidate) []mapmatched.Candidate {
			return buffer[:copy(buffer, got)]
		})(w)
	}},
	{"a cache without copies", "results are not shared", func(w *wordStore) {
		cache := map[string][]mapmatched.Candidate{}
		edited(func(q mapmatched.Query, _ int, got []mapmatched.Candidate) []mapmatched.Candidate {
			if cached, ok := cache[q.Text]; ok {
				return cached
			}
			cache[q.Text] = got
			return got
		})(w)
	}},
	{"shared metadata", "results are not shared", func(w *wordStore) {
		shared := map[string]any{}
		edited(func(_ mapmatched.Query, _ int, got []mapmatched.Candidate) []mapmatched.Candidate {
			for i := range got {
				got[i].Metadata = shared
			}
			return got
		})(w)
	}},
	{"shared parts", "results are not shared", func(w *wordStore) {
		shared := map[string]float64{}
		edited(func(_ mapmatched.Query, _ int, got []mapmatched.Candidate) []mapmatched.Candidate {
			for i := range got {
				got[i].Parts = shared
			}
			return got
		})(w)
	}},
	{"one call at a time", "concurrent use", func(w *wordStore) {
		meet := make(chan struct{})
		w.candidates = func(ctx context.Context, q mapmatched.Query, limit int) ([]mapmatched.Candidate, error) {
			select {
			case meet <- struct{}{}:
				return nil, errBroken
			case <-meet:
				return nil, errBroken
			case <-time.After(10 * time.Millisecond):
			}
			return w.plainCandidates(ctx, q, limit)
		}
	}},
	{"answers mixed up", "concurrent use", func(w *wordStore) {
		var calls atomic.Int64
		w.candidates = func(ctx context.Context, q mapmatched.Query, limit int) ([]mapmatched.Candidate, error) {
			if calls.Add(1) > 15 {
				q.Text = "toll in coins"
			}
			return w.plainCandidates(ctx, q, limit)
		}
	}},
	{"context ignored", "context done before", func(w *wordStore) {
		w.candidates = func(_ context.Context, q mapmatched.Query, limit int) ([]mapmatched.Candidate, error) {
			return w.plainCandidates(context.Background(), q, limit)
		}
	}},
	{"context error hidden", "context done before", func(w *wordStore) {
		w.candidates = func(ctx context.Context, q mapmatched.Query, limit int) ([]mapmatched.Candidate, error) {
			got, err := w.plainCandidates(ctx, q, limit)
			if err != nil {
				return nil, errBroken
			}
			return got, nil
		}
	}},
	{"deadline reported as cancellation", "context done before", func(w *wordStore) {
		w.candidates = func(ctx context.Context, q mapmatched.Query, limit int) ([]mapmatched.Candidate, error) {
			if ctx.Err() != nil {
				return nil, context.Canceled
			}
			return w.plainCandidates(ctx, q, limit)
		}
	}},
	{"scoring ignores the context", "context done before", func(w *wordStore) {
		w.score = func(_ context.Context, q mapmatched.Query, ids []string) ([]mapmatched.Scored, error) {
			return w.plainScore(context.Background(), q, ids)
		}
	}},
	{"fetching ignores the context", "context done before", func(w *wordStore) {
		w.chunks = func(_ context.Context, ids []string) ([]mapmatched.Chunk, error) {
			return w.plainChunks(context.Background(), ids)
		}
	}},
	{"vectors ignore the context", "context done before", func(w *wordStore) {
		w.vectors = func(_ context.Context, ids []string) ([][]float32, error) {
			return w.plainVectors(context.Background(), ids)
		}
	}},
	{"health ignores the context", "context done before", func(w *wordStore) {
		w.health = func(context.Context) error { return w.usable(context.Background()) }
	}},
	{"half an answer when cancelled", "context done in the middle", func(w *wordStore) {
		w.candidates = func(ctx context.Context, q mapmatched.Query, limit int) ([]mapmatched.Candidate, error) {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			got, err := w.plainCandidates(context.Background(), q, limit)
			if ctx.Err() != nil {
				got = got[:1]
			}
			return got, err
		}
	}},
	{"broken by a cancellation", "context done in the middle", func(w *wordStore) {
		w.candidates = func(ctx context.Context, q mapmatched.Query, limit int) ([]mapmatched.Candidate, error) {
			got, err := w.plainCandidates(ctx, q, limit)
			if err != nil {
				w.candidates = func(context.Context, mapmatched.Query, int) ([]mapmatched.Candidate, error) { return nil, errBroken }
			}
			return got, err
		}
	}},
	{"Close fails", "close", func(w *wordStore) { w.close = func() error { return errBroken } }},
	{"Close twice fails", "close", func(w *wordStore) {
		w.close = func() error {
			if w.closed.Swap(true) {
				return errBroken
			}
			return nil
		}
	}},
	{"Close twice panics", "close", func(w *wordStore) {
		quit := make(chan struct{})
		w.close = func() error { w.closed.Store(true); close(quit); return nil }
	}},
	{"Close closes nothing", "close", func(w *wordStore) { w.close = func() error { return nil } }},
	{"panic after Close", "close", func(w *wordStore) {
		w.candidates = func(ctx context.Context, q mapmatched.Query, limit int) ([]mapmatched.Candidate, error) {
			if w.closed.Load() {
				panic("use after close")
			}
			return w.plainCandidates(ctx, q, limit)
		}
	}},
	{"scores after Close", "close", func(w *wordStore) {
		w.score = func(_ context.Context, q mapmatched.Query, ids []string) ([]mapmatched.Scored, error) {
			return newWordStore(w.corpus).plainScore(context.Background(), q, ids)
		}
	}},
	{"panic beside Close", "close while busy", func(w *wordStore) {
		w.candidates = func(ctx context.Context, q mapmatched.Query, limit int) ([]mapmatched.Candidate, error) {
			if w.closed.Load() {
				panic("use after close")
			}
			return w.plainCandidates(ctx, q, limit)
		}
	}},
	{"Close beside calls fails", "close while busy", func(w *wordStore) {
		w.close = func() error {
			if w.closed.Swap(true) {
				return errBroken
			}
			return nil
		}
	}},
	{"never in health", "health", func(w *wordStore) { w.health = func(context.Context) error { return errBroken } }},
	{"scores on another scale", "score chunks", func(w *wordStore) {
		w.score = func(ctx context.Context, q mapmatched.Query, ids []string) ([]mapmatched.Scored, error) {
			got, err := w.plainScore(ctx, q, ids)
			for i := range got {
				got[i].Score *= 2
			}
			return got, err
		}
	}},
	{"unknown chunks scored", "score chunks", func(w *wordStore) {
		w.score = func(ctx context.Context, q mapmatched.Query, ids []string) ([]mapmatched.Scored, error) {
			got, err := w.plainScore(ctx, q, ids)
			return append(got, mapmatched.Scored{ChunkID: unknownChunk}), err
		}
	}},
	{"a chunk scored twice", "score chunks", func(w *wordStore) {
		w.score = func(ctx context.Context, q mapmatched.Query, ids []string) ([]mapmatched.Scored, error) {
			got, err := w.plainScore(ctx, q, ids)
			return append(got, got...), err
		}
	}},
	{"chunks not scored", "score chunks", func(w *wordStore) {
		w.score = func(context.Context, mapmatched.Query, []string) ([]mapmatched.Scored, error) { return nil, nil }
	}},
	{"scores NaN", "score chunks", func(w *wordStore) {
		w.score = func(ctx context.Context, q mapmatched.Query, ids []string) ([]mapmatched.Scored, error) {
			got, err := w.plainScore(ctx, q, ids)
			for i := range got {
				got[i].Score = math.NaN()
			}
			return got, err
		}
	}},
	{"scoring sorts the IDs", "score chunks", func(w *wordStore) {
		w.score = func(ctx context.Context, q mapmatched.Query, ids []string) ([]mapmatched.Scored, error) {
			slices.Sort(ids)
			return w.plainScore(ctx, q, ids)
		}
	}},
	{"scoring nothing fails", "score chunks", func(w *wordStore) {
		w.score = func(ctx context.Context, q mapmatched.Query, ids []string) ([]mapmatched.Scored, error) {
			if len(ids) == 0 {
				return nil, errBroken
			}
			return w.plainScore(ctx, q, ids)
		}
	}},
	{"chunks in the store's order", "fetch chunks", func(w *wordStore) {
		w.chunks = func(ctx context.Context, ids []string) ([]mapmatched.Chunk, error) {
			got, err := w.plainChunks(ctx, ids)
			slices.Reverse(got)
			return got, err
		}
	}},
	{"an empty chunk for an unknown one", "fetch chunks", func(w *wordStore) {
		w.chunks = func(ctx context.Context, ids []string) ([]mapmatched.Chunk, error) {
			got, err := w.plainChunks(ctx, ids)
			return append(got, mapmatched.Chunk{}), err
		}
	}},
	{"chunks without text", "fetch chunks", func(w *wordStore) {
		w.chunks = func(ctx context.Context, ids []string) ([]mapmatched.Chunk, error) {
			got, err := w.plainChunks(ctx, ids)
			for i := range got {
				got[i].Text = ""
			}
			return got, err
		}
	}},
	{"fetching sorts the IDs", "fetch chunks", func(w *wordStore) {
		w.chunks = func(ctx context.Context, ids []string) ([]mapmatched.Chunk, error) {
			got, err := w.plainChunks(ctx, ids)
			slices.Sort(ids)
			return got, err
		}
	}},
	{"an unknown chunk is an error", "fetch chunks", func(w *wordStore) {
		w.chunks = func(ctx context.Context, ids []string) ([]mapmatched.Chunk, error) {
			if slices.Contains(ids, unknownChunk) {
				return nil, errBroken
			}
			return w.plainChunks(ctx, ids)
		}
	}},
	{"unknown vectors left out", "fetch vectors", func(w *wordStore) {
		w.vectors = func(ctx context.Context, ids []string) ([][]float32, error) {
			got, err := w.plainVectors(ctx, ids)
			return slices.DeleteFunc(got, func(v []float32) bool { return v == nil }), err
		}
	}},
	{"zeros for an unknown vector", "fetch vectors", func(w *wordStore) {
		w.vectors = func(ctx context.Context, ids []string) ([][]float32, error) {
			got, err := w.plainVectors(ctx, ids)
			for i := range got {
				if got[i] == nil {
					got[i] = make([]float32, len(w.corpus.Vectors[0]))
				}
			}
			return got, err
		}
	}},
	{"ragged vectors", "fetch vectors", func(w *wordStore) {
		w.vectors = func(ctx context.Context, ids []string) ([][]float32, error) {
			got, err := w.plainVectors(ctx, ids)
			if len(got) > 1 {
				got[len(got)-1] = got[0][1:]
			}
			return got, err
		}
	}},
	{"vectors NaN", "fetch vectors", func(w *wordStore) {
		w.vectors = func(ctx context.Context, ids []string) ([][]float32, error) {
			got, err := w.plainVectors(ctx, ids)
			if len(got) > 0 {
				got[0][0] = float32(math.NaN())
			}
			return got, err
		}
	}},
	{"vectors in the store's order", "fetch vectors", func(w *wordStore) {
		w.vectors = func(ctx context.Context, ids []string) ([][]float32, error) {
			got, err := w.plainVectors(ctx, ids)
			if len(got) > 2 {
				got[0], got[2] = got[2], got[0]
			}
			return got, err
		}
	}},
	{"vectors sort the IDs", "fetch vectors", func(w *wordStore) {
		w.vectors = func(ctx context.Context, ids []string) ([][]float32, error) {
			got, err := w.plainVectors(ctx, ids)
			slices.Sort(ids)
			return got, err
		}
	}},
}

func TestProviderSuiteFindsFaults(t *testing.T) {
	caught := map[string]bool{}
	for _, b := range providerBreaks {
		t.Run(b.check+"/"+b.name, func(t *testing.T) {
			caught[b.check] = expectFault(t, providerResult(t, wordHarness(b.change), b.check)) || caught[b.check]
		})
	}
	t.Run("stores that differ", func(t *testing.T) {
		stores := 0
		h := wordHarness(func(w *wordStore) {
			stores++
			if stores%2 == 0 {
				slices.Reverse(w.corpus.Chunks)
				slices.Reverse(w.corpus.Vectors)
			}
		})
		expectFault(t, providerResult(t, h, "same answer again"))
	})
	t.Run("deaf while stalled", func(t *testing.T) {
		h := wordHarness(func(*wordStore) {})
		h.Patience = 50 * time.Millisecond
		h.Stalled = func(c Corpus) (mapmatched.CandidateProvider, error) {
			w := newWordStore(c)
			block := make(chan struct{})
			t.Cleanup(func() { close(block) })
			w.candidates = func(context.Context, mapmatched.Query, int) ([]mapmatched.Candidate, error) {
				<-block
				return nil, nil
			}
			return w, nil
		}
		const check = "context done while the store is silent"
		caught[check] = expectFault(t, providerResult(t, h, check))
	})
	for _, c := range providerChecks {
		if !caught[c.name] {
			t.Errorf("no fault of this test is found by the check %q", c.name)
		}
	}
}

// providerResult runs one check.
func providerResult(t *testing.T, h ProviderHarness, name string) Result {
	t.Helper()
	i := slices.IndexFunc(providerChecks, func(c providerCheck) bool { return c.name == name })
	if i < 0 {
		t.Fatalf("there is no check %q", name)
	}
	return h.check(t.Context(), providerChecks[i])
}

// expectFault reports whether a check failed, as it has to.
func expectFault(t *testing.T, r Result) bool {
	t.Helper()
	if r.Err == nil {
		t.Errorf("check %q passes (skipped: %q)", r.Check, r.Skipped)
		return false
	}
	if strings.Contains(r.Err.Error(), "\n") {
		t.Errorf("check %q: error %q is not one line", r.Check, r.Err)
	}
	return true
}

// bare hides all capabilities but the required one.
type bare struct{ mapmatched.CandidateProvider }

func TestProviderSuiteSkipsWhatIsAbsent(t *testing.T) {
	want := []string{"close", "close while busy", "context done while the store is silent", "empty result",
		"fetch chunks", "fetch vectors", "health", "limit cuts the end", "score chunks"}
	h := ProviderHarness{
		New:           func(c Corpus) (mapmatched.CandidateProvider, error) { return bare{newWordStore(c)}, nil },
		AlwaysHits:    true,
		LimitReorders: true,
	}
	var skipped []string
	for _, r := range CheckProvider(t.Context(), h) {
		if r.Err != nil {
			t.Errorf("%s: %v", r.Check, r.Err)
		}
		if r.Skipped != "" {
			skipped = append(skipped, r.Check)
		}
	}
	slices.Sort(skipped)
	if !slices.Equal(skipped, want) {
		t.Errorf("skipped %q, want %q", skipped, want)
	}
}

func TestProviderSuiteReportsTheHarness(t *testing.T) {
	h := ProviderHarness{New: func(Corpus) (mapmatched.CandidateProvider, error) { return nil, errBroken }}
	for _, r := range CheckProvider(t.Context(), h) {
		if !errors.Is(r.Err, errBroken) {
			t.Errorf("%s: error %v, want %v", r.Check, r.Err, errBroken)
		}
	}
}
