package adaptertest

import (
	"context"
	"testing"
	"time"

	"github.com/mapmatched/mmplug/mapmatched"
)

// GraphSpec is a graph that a store under test holds.
type GraphSpec struct {
	Name            string            // what is special about it
	Nodes           []string          // chunks, also those without an edge; each once
	Edges           []mapmatched.Edge // parallel edges and edges from a chunk to itself included
	MaximumDistance float64
	Directed        bool
}

// GraphHarness makes graphs for the suite.
type GraphHarness struct {
	// New makes a graph. It is called several times for every check; the suite
	// closes what implements io.Closer. Required.
	New func(spec GraphSpec) (mapmatched.CorpusGraph, error)

	// Stalled makes a graph whose store never answers. Without it a
	// cancellation that comes while the store is silent is not checked.
	Stalled func(spec GraphSpec) (mapmatched.CorpusGraph, error)

	// UndirectedOnly says that the store has no directed graphs.
	UndirectedOnly bool

	// Tolerance is how far a distance may be from the reference, for stores
	// that keep weights in less than float64. 0 asks for the same bits, which
	// a sum from the source on along the path gives.
	Tolerance float64

	// Patience is how long a call may take to notice that its context is done;
	// 0 means 10 s.
	Patience time.Duration
}

// Graph runs the conformance suite for graphs as subtests.
func Graph(t *testing.T, h GraphHarness) {
	t.Helper()
	for _, c := range graphChecks {
		t.Run(c.name, func(t *testing.T) {
			report(t, h.check(t.Context(), c))
		})
	}
}

// CheckGraph runs the suite outside of a test. It returns the outcome of every
// check, in a fixed order.
func CheckGraph(ctx context.Context, h GraphHarness) []Result {
	results := make([]Result, len(graphChecks))
	for i, c := range graphChecks {
		results[i] = h.check(ctx, c)
	}
	return results
}

type graphCheck = check[graphSuite, mapmatched.CorpusGraph]

// graphSuite is what a check knows beside its graph, which holds spec.
type graphSuite struct {
	GraphHarness
	ctx  context.Context
	spec GraphSpec
}

func (h GraphHarness) check(ctx context.Context, c graphCheck) Result {
	s := graphSuite{h, ctx, randomSpec("random", 90, false)}
	return runCheck(c, s, func() (mapmatched.CorpusGraph, error) {
		return h.New(randomSpec("random", 90, false))
	})
}
