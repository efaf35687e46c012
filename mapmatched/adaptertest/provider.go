package adaptertest

import (
	"context"
	"testing"
	"time"

	"github.com/mapmatched/mmplug/mapmatched"
)

// ProviderHarness makes providers for the suite.
type ProviderHarness struct {
	// New makes a provider over a corpus. It is called once or twice for every
	// check; the suite closes what implements io.Closer. Required.
	New func(c Corpus) (mapmatched.CandidateProvider, error)

	// Stalled makes a provider whose store never answers. Without it a
	// cancellation that comes while the store is silent is not checked.
	Stalled func(c Corpus) (mapmatched.CandidateProvider, error)

	// AlwaysHits says that the provider has candidates for every query, as
	// nearest-neighbour search does: an empty result is not checked.
	AlwaysHits bool

	// LimitReorders says that a smaller limit may give other candidates or
	// another order than the head of a longer list, as when each arm of a
	// fusion is cut before it is fused.
	LimitReorders bool

	// Patience is how long a call may take to notice that its context is done;
	// 0 means 10 s.
	Patience time.Duration
}

// Provider runs the conformance suite for providers as subtests.
func Provider(t *testing.T, h ProviderHarness) {
	t.Helper()
	for _, c := range providerChecks {
		t.Run(c.name, func(t *testing.T) {
			report(t, h.check(t.Context(), c))
		})
	}
}

// CheckProvider runs the suite outside of a test. It returns the outcome of
// every check, in a fixed order.
func CheckProvider(ctx context.Context, h ProviderHarness) []Result {
	results := make([]Result, len(providerChecks))
	for i, c := range providerChecks {
		results[i] = h.check(ctx, c)
	}
	return results
}

type providerCheck = check[providerSuite, mapmatched.CandidateProvider]

// providerSuite is what a check knows beside its provider.
type providerSuite struct {
	ProviderHarness
	ctx    context.Context
	corpus Corpus
}

func (h ProviderHarness) check(ctx context.Context, c providerCheck) Result {
	s := providerSuite{h, ctx, NewCorpus()}
	return runCheck(c, s, func() (mapmatched.CandidateProvider, error) { return h.New(NewCorpus()) })
}
