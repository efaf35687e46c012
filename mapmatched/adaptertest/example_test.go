package adaptertest_test

import (
	"context"
	"fmt"

	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/mapmatched/adaptertest"
)

// lazy is a provider with two faults: it knows one answer and does not look at
// its context.
type lazy struct{}

func (lazy) Candidates(context.Context, mapmatched.Query, int) ([]mapmatched.Candidate, error) {
	return []mapmatched.Candidate{{ChunkID: "roads/tunnel", Score: 1}}, nil
}

func ExampleCheckProvider() {
	results := adaptertest.CheckProvider(context.Background(), adaptertest.ProviderHarness{
		New: func(adaptertest.Corpus) (mapmatched.CandidateProvider, error) { return lazy{}, nil },
	})
	for _, r := range results {
		if r.Err != nil && (r.Check == "right chunk first" || r.Check == "context done before") {
			fmt.Printf("%s: %v\n", r.Check, r.Err)
		}
	}
	// Output:
	// right chunk first: query "suspension bridge with steel cables": candidates ["roads/tunnel"], want ["roads/bridge"] first (are the scores distances?)
	// context done before: context cancelled before the call: Candidates: no error; want one that wraps "context canceled"
}
