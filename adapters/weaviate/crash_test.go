package weaviate

import (
	"context"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/mapmatched/mmplug/integration/weaviatetest"
	"github.com/mapmatched/mmplug/mapmatched"
)

// A server that is killed in mid-write may keep an object without indexing it,
// and then skips the object when it comes again. After a resumed write every
// chunk is found by its ID, by its vector and by its words, wherever the kills
// fell: some calls end with the kill, and some meet the restarted server.
func TestKilledInMidWrite(t *testing.T) {
	const n = 400
	s := weaviatetest.StartOwned(t, weaviatetest.Options{})
	identity := mapmatched.CorpusIdentity{Provider: "test", Model: "random", Dimension: scaleDimension, MaximumDistance: 8}
	records := make([]mapmatched.Record, n)
	for i := range records {
		records[i] = scaleRecord(i, n)
	}
	r := rand.New(rand.NewPCG(35, 2))
	for _, transport := range transports {
		class := "Killed" + transport
		for kill, retries := range []int{-1, maxRetries} {
			c := connectionTo(s, transport)
			c.Retries = retries
			w, err := OpenWriter(t.Context(), s.Host, class, &WriterOptions{Connection: c, BatchSize: 32})
			if err != nil {
				t.Fatal(err)
			}
			at, delay := kill*n/2+r.IntN(n/3), time.Duration(r.IntN(20))*time.Millisecond
			started, ended := false, make(chan error, 1)
			_, err = w.WriteCorpus(t.Context(), identity, seq(records), func(done int) {
				if started || done < at {
					return
				}
				started = true
				go func() {
					time.Sleep(delay)
					err := s.Kill()
					if err == nil {
						err = s.Restart(t.Context())
					}
					ended <- err
				}()
			})
			t.Logf("kill %v after %d chunks, by %s with %d retries: %v", delay, at, transport, retries, err)
			if err != nil && (retries > 0 || mapmatched.KindOf(err) != mapmatched.KindUnavailable) {
				t.Fatal(err)
			}
			if !started {
				t.Fatal("no kill")
			}
			if err := <-ended; err != nil {
				t.Fatal(err)
			}
			closing(t, w)
		}
		if report := write(t, s, class, transport, identity, records); report.Written+report.Kept != n {
			t.Errorf("%s: %+v, want %d chunks", transport, report, n)
		}
		checkVisible(t, s, class, records)
		checkReferences(t, open(t, s, class, transport, Options{}), n)
	}
}

// checkVisible looks for every chunk of [scaleRecord] by its ID, its vector and
// the word that it alone has.
func checkVisible(t *testing.T, s *weaviatetest.Server, class string, records []mapmatched.Record) {
	t.Helper()
	p, words := open(t, s, class, "grpc", Options{}), open(t, s, class, "grpc", Options{Mode: ModeBM25})
	all := make([]string, len(records))
	for i, r := range records {
		all[i] = r.Chunk.ID
	}
	chunks, err := p.Chunks(t.Context(), all)
	if err != nil {
		t.Fatal(err)
	}
	byID := map[string]bool{}
	for _, c := range chunks {
		byID[c.ID] = true
	}
	var lost [3][]string
	var mu sync.Mutex
	err = parallel(t.Context(), len(records), 8, func(ctx context.Context, i int) error {
		r, found := &records[i], [3]bool{byID[records[i].Chunk.ID]}
		for j, search := range []struct {
			p *Provider
			q mapmatched.Query
		}{{p, mapmatched.Query{Vector: r.Vector}}, {words, mapmatched.Query{Text: "w" + strconv.Itoa(i)}}} {
			got, err := search.p.Candidates(ctx, search.q, 1)
			if err != nil {
				return err
			}
			found[j+1] = slices.Contains(ids(got), r.Chunk.ID)
		}
		mu.Lock()
		defer mu.Unlock()
		for j, ok := range found {
			if !ok {
				lost[j] = append(lost[j], r.Chunk.ID)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, how := range []string{"ID", "vector", "words"} {
		if len(lost[i]) > 0 {
			t.Errorf("%d of %d chunks are not found by their %s, such as %q", len(lost[i]), len(records), how, lost[i][0])
		}
	}
}
