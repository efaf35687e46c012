package qdrant_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/mapmatched/mmplug/adapters/qdrant"
	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/mapmatched/adaptertest"
)

// graphOf joins the chunks of each document.
func graphOf(t *testing.T, corpus adaptertest.Corpus) *mapmatched.Graph {
	t.Helper()
	var edges []mapmatched.Edge
	for _, r := range corpusRecords(corpus) {
		edges = append(edges, r.Edges...)
	}
	g, err := mapmatched.NewGraph(edges, nil)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

var turns = []string{"tunnel beneath the mountain", "suspension bridge", "toll in coins", "bees store honey", "road"}

// converse asks the turns of a session.
func converse(ctx context.Context, p mapmatched.CandidateProvider, g mapmatched.CorpusGraph) ([]*mapmatched.Result, error) {
	s, err := mapmatched.NewSession(p, g, nil)
	if err != nil {
		return nil, err
	}
	var results []*mapmatched.Result
	for _, text := range turns {
		r, err := s.Ask(ctx, mapmatched.Query{Text: text})
		if err != nil {
			return nil, err
		}
		results = append(results, r)
	}
	return results, nil
}

// TestSessions runs 64 conversations at the same time over one provider.
func TestSessions(t *testing.T) {
	s := server(t)
	c := s.client(nil)
	corpus := adaptertest.NewCorpus()
	p := s.open(c, s.write(c, nil, corpusRecords(corpus)...), &qdrant.Options{Embedder: corpus})
	g := graphOf(t, corpus)
	want, err := converse(t.Context(), p, g)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			got, err := converse(t.Context(), p, g)
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("conversation %d differs from the one alone (error %v)", i, err)
			}
		})
	}
	wg.Wait()
}

// TestServerDies: when the server dies in a conversation the turn fails with an
// error that names it, the session stays as it was, and when the server is back
// it goes on to the same results as without the interruption.
func TestServerDies(t *testing.T) {
	s := faulty(t, nil)
	c := s.client(func(o *qdrant.ClientOptions) { o.RetryWait = time.Millisecond })
	corpus := adaptertest.NewCorpus()
	name := s.write(c, nil, corpusRecords(corpus)...)
	p := s.open(c, name, &qdrant.Options{Embedder: corpus})
	g := graphOf(t, corpus)
	want, err := converse(t.Context(), p, g)
	if err != nil {
		t.Fatal(err)
	}
	session, err := mapmatched.NewSession(p, g, nil)
	if err != nil {
		t.Fatal(err)
	}
	for turn, text := range turns {
		if turn == 2 || turn == 4 {
			before := session.Path()
			s.fake.Kill()
			for range 2 {
				_, err := session.Ask(t.Context(), mapmatched.Query{Text: text})
				var typed *mapmatched.Error
				if !errors.As(err, &typed) {
					t.Fatalf("turn %d: error %v with the server away", turn, err)
				}
				expect(t, typed, mapmatched.KindUnavailable, s.address, fmt.Sprintf("%q", name))
			}
			if !reflect.DeepEqual(session.Path(), before) || session.Turns() != turn {
				t.Fatalf("turn %d: the session has %d turns and path %q, want it as before: %q", turn, session.Turns(), session.Path(), before)
			}
			s.restart(p)
		}
		got, err := session.Ask(t.Context(), mapmatched.Query{Text: text})
		if err != nil {
			t.Fatalf("turn %d: %v", turn, err)
		}
		if !reflect.DeepEqual(got, want[turn]) {
			t.Errorf("turn %d: the result differs from that without an interruption", turn)
		}
	}
}
