package plugins_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/plugins"
)

// ring is a graph of n chunks in a ring, whose list of edges is held up after
// stallAfter of them, 0 for not at all.
type ring struct {
	mapmatched.CorpusGraph
	n, stallAfter int
}

func newRing(t *testing.T, n, stallAfter int) ring {
	t.Helper()
	r := ring{n: n, stallAfter: stallAfter}
	var edges []mapmatched.Edge
	for e := range r.edges() {
		edges = append(edges, e)
	}
	graph, err := mapmatched.NewGraph(edges, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.CorpusGraph = graph
	return r
}

func (r ring) edges() iter.Seq[mapmatched.Edge] {
	return func(yield func(mapmatched.Edge) bool) {
		for i := range r.n {
			if !yield(mapmatched.Edge{From: fmt.Sprint(i), To: fmt.Sprint((i + 1) % r.n), Weight: 1, Type: mapmatched.EdgeNext}) {
				return
			}
		}
	}
}

// Edges implements mapmatched.EdgeLister.
func (r ring) Edges(ctx context.Context) iter.Seq2[mapmatched.Edge, error] {
	return func(yield func(mapmatched.Edge, error) bool) {
		i := 0
		for e := range r.edges() {
			if r.stallAfter > 0 && i == r.stallAfter {
				<-ctx.Done()
				yield(mapmatched.Edge{}, ctx.Err())
				return
			}
			if i++; !yield(e, nil) {
				return
			}
		}
	}
}

// listed opens a ring as a plugin.
func listed(t *testing.T, r ring, opts plugins.Options) (*plugins.Host, mapmatched.CorpusGraph, mapmatched.EdgeLister) {
	t.Helper()
	opts.Logger = quiet()
	host, err := plugins.Loopback(t.Context(), plugins.Plugin{Name: "ring", Version: "1.0", Services: plugins.Services{Graph: r}}, &opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = host.Close() })
	graph, err := host.Graph(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return host, graph, graph.(mapmatched.EdgeLister)
}

// TestEdgesTakeTurns asks for distances between two edges of a plugin that
// answers one call at a time.
func TestEdgesTakeTurns(t *testing.T) {
	const n = 3000 // several messages
	_, graph, lister := listed(t, newRing(t, n, 0), plugins.Options{MaxInFlight: 1})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	count := 0
	distance := make([]float64, 1)
	for e, err := range lister.Edges(ctx) {
		if err == nil && count%500 == 0 {
			err = graph.Distances(ctx, []string{e.From}, []string{e.To}, distance)
		}
		if err != nil || distance[0] != 1 {
			t.Fatalf("edge %d: distance %v, error %v", count, distance, err)
		}
		count++
	}
	if count != n {
		t.Errorf("%d edges, want %d", count, n)
	}
	for _, err := range lister.Edges(ctx) { // the reader stops early
		if err != nil {
			t.Error(err)
		}
		break
	}
	if err := graph.Distances(ctx, []string{"0"}, []string{"1"}, distance); err != nil {
		t.Errorf("after a reader that stopped: %v", err)
	}
}

// TestEdgesStall: a plugin that stops in the middle of its edges is not waited
// for longer than a call may take. The time of the reader does not count.
func TestEdgesStall(t *testing.T) {
	const limit = 200 * time.Millisecond
	for _, stall := range []int{0, 2048} {
		_, _, lister := listed(t, newRing(t, 3000, stall), plugins.Options{CallTimeout: limit})
		count := 0
		var last error
		for _, err := range lister.Edges(t.Context()) {
			if last = err; err == nil {
				count++
			}
			if count == 10 {
				time.Sleep(2 * limit)
			}
		}
		switch {
		case stall == 0 && (last != nil || count != 3000):
			t.Errorf("%d edges, error %v", count, last)
		case stall > 0 && (count != stall || !errors.Is(last, context.DeadlineExceeded) || !strings.Contains(last.Error(), "no answer after 200ms") || mapmatched.KindOf(last) != mapmatched.KindDeadline):
			t.Errorf("stalled after %d edges: %d edges, error %v", stall, count, last)
		}
	}
}

// TestEdgesClosed: closing the host ends a list of edges.
func TestEdgesClosed(t *testing.T) {
	host, _, lister := listed(t, newRing(t, 3000, 0), plugins.Options{})
	var last error
	for _, err := range lister.Edges(t.Context()) {
		if err == nil {
			_ = host.Close()
		}
		last = err
	}
	if !errors.Is(last, mapmatched.ErrClosed) {
		t.Errorf("error %v, want %v", last, mapmatched.ErrClosed)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, _, lister = listed(t, newRing(t, 3000, 0), plugins.Options{})
	for _, err := range lister.Edges(ctx) {
		cancel()
		last = err
	}
	if !errors.Is(last, context.Canceled) {
		t.Errorf("error %v, want %v", last, context.Canceled)
	}
}
