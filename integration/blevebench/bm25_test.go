package blevebench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/blevesearch/bleve/v2"
	"github.com/blevesearch/bleve/v2/analysis/analyzer/standard"
	bleveindex "github.com/blevesearch/bleve_index_api"

	"github.com/mapmatched/mmplug/adapters/embedded"
	"github.com/mapmatched/mmplug/mapmatched"
)

const (
	passages = 10_000
	most     = 20 // hits of a query
)

// text is so many words of a vocabulary of 20,000, the n-th about n times as
// rare as the first, as in natural language.
func text(r *rand.Rand, zipf *rand.Zipf, words int) string {
	var b strings.Builder
	for range words {
		fmt.Fprintf(&b, "w%dx%d ", zipf.Uint64(), r.IntN(2))
	}
	return b.String()
}

func corpus() (chunks []mapmatched.Chunk, queries []string) {
	r := rand.New(rand.NewPCG(10_000, 20))
	zipf := rand.NewZipf(r, 1.1, 8, 20_000)
	for i := range passages {
		chunks = append(chunks, mapmatched.Chunk{ID: fmt.Sprintf("p%05d", i), Text: text(r, zipf, 40+r.IntN(80))})
	}
	for range 128 {
		queries = append(queries, text(r, zipf, 3+r.IntN(6)))
	}
	return chunks, queries
}

// engine finds the IDs of the best passages.
type engine func(ctx context.Context, query string) ([]string, error)

func openEmbedded(tb testing.TB, chunks []mapmatched.Chunk) engine {
	tb.Helper()
	dir := filepath.Join(tb.TempDir(), "index")
	in := embedded.Input{Chunks: chunks, ChunkPolicy: "passages"}
	if err := embedded.Write(tb.Context(), dir, in, &embedded.WriteOptions{Fields: []embedded.Field{embedded.FieldText}}); err != nil {
		tb.Fatal(err)
	}
	x, err := embedded.Open(tb.Context(), dir, nil)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = x.Close() })
	return func(ctx context.Context, query string) ([]string, error) {
		found, err := x.Candidates(ctx, mapmatched.Query{Text: query}, most)
		ids := make([]string, len(found))
		for i, c := range found {
			ids[i] = c.ChunkID
		}
		return ids, err
	}
}

func openBleve(tb testing.TB, chunks []mapmatched.Chunk) engine {
	tb.Helper()
	mapping := bleve.NewIndexMapping()
	mapping.DefaultAnalyzer = standard.Name
	mapping.ScoringModel = bleveindex.BM25Scoring
	x, err := bleve.New(filepath.Join(tb.TempDir(), "index"), mapping)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = x.Close() })
	batch := x.NewBatch()
	for _, c := range chunks {
		if err := batch.Index(c.ID, map[string]any{"text": c.Text}); err != nil {
			tb.Fatal(err)
		}
	}
	if err := x.Batch(batch); err != nil {
		tb.Fatal(err)
	}
	return func(ctx context.Context, query string) ([]string, error) {
		match := bleve.NewMatchQuery(query)
		match.SetField("text")
		result, err := x.SearchInContext(ctx, bleve.NewSearchRequestOptions(match, most, 0, false))
		if err != nil {
			return nil, err
		}
		ids := make([]string, len(result.Hits))
		for i, hit := range result.Hits {
			ids[i] = hit.ID
		}
		return ids, nil
	}
}

// overlap is the mean share of the passages of a that b finds too.
func overlap(tb testing.TB, a, b engine, queries []string) float64 {
	tb.Helper()
	sum := 0.0
	for _, q := range queries {
		x, err := a(tb.Context(), q)
		if err != nil {
			tb.Fatal(err)
		}
		y, err := b(tb.Context(), q)
		if err != nil {
			tb.Fatal(err)
		}
		has := map[string]bool{}
		for _, id := range y {
			has[id] = true
		}
		both := 0
		for _, id := range x {
			if has[id] {
				both++
			}
		}
		sum += float64(both) / float64(max(len(x), 1))
	}
	return sum / float64(len(queries))
}

// Both score by BM25, so they find mostly the same.
func TestBothFindMostlyTheSame(t *testing.T) {
	chunks, queries := corpus()
	got := overlap(t, openEmbedded(t, chunks), openBleve(t, chunks), queries)
	t.Logf("overlap of the best %d: %.4f", most, got)
	if got < 0.75 {
		t.Errorf("overlap %v", got)
	}
}

func BenchmarkBM25(b *testing.B) {
	chunks, queries := corpus()
	ours, theirs := openEmbedded(b, chunks), openBleve(b, chunks)
	same := overlap(b, ours, theirs, queries)
	for _, c := range []struct {
		name string
		find engine
	}{{"embedded", ours}, {"bleve", theirs}} {
		b.Run(fmt.Sprintf("engine=%s/passages=%d/limit=%d", c.name, passages, most), func(b *testing.B) {
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				if _, err := c.find(b.Context(), queries[i%len(queries)]); err != nil {
					b.Fatal(err)
				}
				i++
			}
			b.ReportMetric(same, "overlap")
		})
	}
}
