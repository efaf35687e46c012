package weaviate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mapmatched/mmplug/integration/weaviatetest"
	"github.com/mapmatched/mmplug/mapmatched"
)

// envScale names how many chunks the scale test writes, such as 100000.
const envScale = "MMPLUG_WEAVIATE_SCALE"

const scaleDimension = 64

func scaleID(i int) string { return fmt.Sprintf("doc%d/chunk%d", i/20, i%20) }

// scaleRecord is chunk i of a corpus of n: a random unit vector, edges to the
// chunks before and after, and to one elsewhere; all at both ends.
func scaleRecord(i, n int) mapmatched.Record {
	v := randomUnit(i, scaleDimension)
	text := fmt.Sprintf("Chunk number w%d of the corpus, about subject%d.", i, i%97)
	record := mapmatched.Record{Chunk: mapmatched.Chunk{ID: scaleID(i), Document: fmt.Sprintf("doc%d", i/20), Ordinal: i % 20, End: len(text), Text: text}, Vector: v}
	edge := func(to int, t mapmatched.EdgeType, weight float64) {
		if to >= 0 && to < n && to != i {
			record.Edges = append(record.Edges, mapmatched.Edge{From: record.Chunk.ID, To: scaleID(to), Type: t, Weight: weight})
		}
	}
	edge(i-1, mapmatched.EdgeNext, 1)
	edge(i+1, mapmatched.EdgeNext, 1)
	if far := n - 1 - i; far != i-1 && far != i+1 {
		edge(far, mapmatched.EdgeLink, 0.5)
	}
	return record
}

// randomUnit is a random vector of length 1.
func randomUnit(seed, dimension int) []float32 {
	r := rand.New(rand.NewPCG(uint64(seed), 7))
	v := make([]float32, dimension)
	sum := 0.0
	for j := range v {
		v[j] = float32(r.NormFloat64())
		sum += float64(v[j]) * float64(v[j])
	}
	for j := range v {
		v[j] = float32(float64(v[j]) / math.Sqrt(sum))
	}
	return v
}

// TestScale writes a corpus while the server is killed in the middle, holds 20
// conversations at the same time while it is killed again, and then compares
// everything that is stored.
func TestScale(t *testing.T) {
	n, err := strconv.Atoi(os.Getenv(envScale))
	if err != nil || n < 100 {
		t.Skipf("SKIP: set %s to a number of chunks from 100, such as 20000", envScale)
	}
	s := weaviatetest.StartOwned(t, weaviatetest.Options{})
	identity := mapmatched.CorpusIdentity{Provider: "test", Model: "random", Dimension: scaleDimension, MaximumDistance: 8}
	class := "Scale"

	records := func(yield func(mapmatched.Record, error) bool) {
		for i := range n {
			if !yield(scaleRecord(i, n), nil) {
				return
			}
		}
	}
	w, err := OpenWriter(t.Context(), s.Host, class, &WriterOptions{Connection: connectionTo(s, "grpc")})
	if err != nil {
		t.Fatal(err)
	}
	defer closing(t, w)
	began := time.Now()
	killed := false
	var kept, calls int
	for {
		calls++
		report, err := w.WriteCorpus(t.Context(), identity, records, func(done int) {
			if !killed && done >= n/2 {
				killed = true
				if err := s.Kill(); err != nil {
					t.Error(err)
				}
			}
		})
		if err == nil {
			kept = report.Kept
			break
		}
		if mapmatched.KindOf(err) != mapmatched.KindUnavailable || calls > 3 {
			t.Fatalf("call %d: %v", calls, err)
		}
		t.Logf("call %d: %+v, %v", calls, report, err)
		if err := s.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if !killed || calls != 2 || kept < n/2-defaultBatchSize {
		t.Errorf("killed %v, %d calls, %d records kept by the last: want a kill, 2 calls and about half kept", killed, calls, kept)
	}
	t.Logf("%d chunks written in %.1f s, with a kill −9 in the middle", n, time.Since(began).Seconds())

	began = time.Now()
	turns := converse(t, s, class, n)
	t.Logf("20 conversations, %d turns, in %.1f s, with a kill −9 in the middle", turns, time.Since(began).Seconds())

	began = time.Now()
	p := open(t, s, class, "grpc", Options{})
	all := make([]mapmatched.Record, n)
	for i := range all {
		all[i] = scaleRecord(i, n)
	}
	checkVisible(t, s, class, all)
	count := 0
	for r, err := range p.Records(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		var doc, ordinal int
		if _, err := fmt.Sscanf(r.Chunk.ID, "doc%d/chunk%d", &doc, &ordinal); err != nil {
			t.Fatal(err)
		}
		want := scaleRecord(20*doc+ordinal, n)
		if r.Chunk != want.Chunk || !slices.Equal(r.Vector, want.Vector) || !slices.Equal(r.Edges, want.Edges) {
			t.Fatalf("stored %+v, want %+v", r, want)
		}
		count++
	}
	if count != n {
		t.Errorf("%d records listed, want %d", count, n)
	}
	t.Logf("%d records listed and compared in %.1f s", count, time.Since(began).Seconds())

	began = time.Now()
	report, err := w.WriteCorpus(t.Context(), identity, records, nil)
	if err != nil || report.Kept != n || report.Written != 0 || report.Created {
		t.Errorf("written again: %+v, %v, want all kept", report, err)
	}
	t.Logf("compared with what is there, references included, in %.1f s", time.Since(began).Seconds())
	checkReferences(t, p, n)
}

// checkReferences looks whether sampled chunks have the references of their
// edges, each once.
func checkReferences(t *testing.T, p *Provider, n int) {
	t.Helper()
	for i := 0; i < n; i += max(n/200, 1) {
		want := map[string]int{}
		for _, e := range scaleRecord(i, n).Edges {
			want[edgeProperty(e.Type)+" "+UUID(e.To)]++
		}
		hits, err := p.server.find(t.Context(), &search{class: p.class, references: []string{"edge_next", "edge_link"}, targetID: uuidProperty,
			where: anyOf([]string{uuidProperty}, []string{UUID(scaleID(i))}), limit: 1})
		if err != nil || len(hits) != 1 {
			t.Fatalf("chunk %s: %d objects, %v", scaleID(i), len(hits), err)
		}
		got := map[string]int{}
		for name, targets := range hits[0].references {
			for _, target := range targets {
				got[name+" "+target.uuid]++
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("chunk %s: references %v, want %v", scaleID(i), got, want)
		}
	}
}

// converse holds 20 conversations along the edges of the corpus. In the middle
// the server is killed and restarted; the sessions go on. Every candidate is
// compared with the corpus, and every answer with what a session over the same
// candidates and a graph in memory says.
func converse(t *testing.T, s *weaviatetest.Server, class string, n int) int {
	t.Helper()
	p := open(t, s, class, "grpc", Options{})
	g, err := OpenGraph(t.Context(), s.Host, class, &GraphOptions{Connection: connectionTo(s, "grpc")})
	if err != nil {
		t.Fatal(err)
	}
	defer closing(t, g)
	var edges []mapmatched.Edge
	for i := range n {
		edges = append(edges, scaleRecord(i, n).Edges...)
	}
	reference, err := mapmatched.NewGraph(edges, &mapmatched.GraphOptions{MaximumDistance: 8})
	if err != nil {
		t.Fatal(err)
	}
	const conversations, length = 20, 30
	var answered, again atomic.Int64
	middle := make(chan struct{})
	var wg sync.WaitGroup
	for c := range conversations {
		wg.Go(func() {
			session, sessionErr := mapmatched.NewSession(p, g, nil)
			same, sameErr := mapmatched.NewSession(nil, reference, nil)
			if err := errors.Join(sessionErr, sameErr); err != nil {
				t.Error(err)
				return
			}
			r := rand.New(rand.NewPCG(uint64(c), 11))
			at := r.IntN(n)
			for turn := range length {
				q := scaleRecord(at, n)
				result, err := ask(t.Context(), session, mapmatched.Query{Text: q.Chunk.Text, Vector: q.Vector}, &again)
				if err == nil {
					err = checkTurn(t.Context(), q, result, same, n)
				}
				if err != nil {
					t.Errorf("conversation %d, turn %d: %v", c, turn, err)
					return
				}
				if answered.Add(1) == conversations*length/2 {
					close(middle)
				}
				at = (at + 1) % n
				if r.IntN(4) == 0 {
					at = r.IntN(n)
				}
			}
		})
	}
	finished := make(chan struct{})
	go func() {
		wg.Wait()
		close(finished)
	}()
	select {
	case <-middle:
	case <-finished: // all failed before
		t.Fatal("no conversation came to the middle")
	}
	if err := s.Kill(); err != nil {
		t.Error(err)
	}
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-finished
	if again.Load() == 0 {
		t.Error("no turn met the server being away: the kill tests nothing")
	}
	return int(answered.Load())
}

// checkTurn compares the answer to the question for a chunk's own vector.
func checkTurn(ctx context.Context, asked mapmatched.Record, result *mapmatched.Result, same *mapmatched.Session, n int) error {
	candidates := make([]mapmatched.Candidate, len(result.Ranking))
	for _, ranked := range result.Ranking {
		var doc, ordinal int
		if _, err := fmt.Sscanf(ranked.ChunkID, "doc%d/chunk%d", &doc, &ordinal); err != nil {
			return fmt.Errorf("candidate %q: %w", ranked.ChunkID, err)
		}
		stored := scaleRecord(20*doc+ordinal, n)
		cosine := 0.0
		for i, x := range stored.Vector {
			cosine += float64(x) * float64(asked.Vector[i])
		}
		if math.Abs(ranked.Score-cosine) > 1e-5 || ranked.Text != stored.Chunk.Text {
			return fmt.Errorf("candidate %q: score %v and text %q, want %v and %q", ranked.ChunkID, ranked.Score, ranked.Text, cosine, stored.Chunk.Text)
		}
		candidates[ranked.Position] = ranked.Candidate
	}
	if len(candidates) == 0 || candidates[0].ChunkID != asked.Chunk.ID {
		return fmt.Errorf("the first of %d candidates is not %q, whose vector was asked for", len(candidates), asked.Chunk.ID)
	}
	want, err := same.Observe(ctx, asked.Chunk.Text, candidates)
	if err != nil {
		return err
	}
	if result.ChunkID != want.ChunkID || result.TotalScore != want.TotalScore {
		return fmt.Errorf("decoded %q with total %v, in memory %q with %v", result.ChunkID, result.TotalScore, want.ChunkID, want.TotalScore)
	}
	return nil
}

// ask repeats a turn that the session refused because the server was away, as
// an application does: the session is then as it was before the turn.
func ask(ctx context.Context, session *mapmatched.Session, q mapmatched.Query, again *atomic.Int64) (*mapmatched.Result, error) {
	deadline := time.Now().Add(2 * time.Minute)
	for {
		result, err := session.Ask(ctx, q)
		if err == nil || mapmatched.KindOf(err) != mapmatched.KindUnavailable || time.Now().After(deadline) {
			return result, err
		}
		again.Add(1)
		time.Sleep(200 * time.Millisecond)
	}
}
