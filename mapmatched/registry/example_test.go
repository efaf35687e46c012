package registry_test

import (
	"context"
	"fmt"

	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/mapmatched/registry"
)

// fixed opens a provider with one candidate. A real opener reads its
// parameters in the same way.
var fixed = registry.ProviderOpener{
	Doc: registry.Doc{
		Summary:    "one fixed candidate",
		Example:    "fixed:chunk?score=0.5",
		Parameters: []registry.Parameter{{Name: "score", Usage: "its score, 0 to 1", Default: "1"}},
	},
	Open: func(_ context.Context, at registry.Location, p *registry.Params) (mapmatched.CandidateProvider, error) {
		score := p.Float("score", 1, 0, 1)
		if err := p.Err(); err != nil {
			return nil, err
		}
		return mapmatched.NewSliceProvider([][]mapmatched.Candidate{{{ChunkID: at.Path, Score: score}}})
	},
}

func ExampleRegistry() {
	var r registry.Registry
	r.RegisterProvider("fixed", fixed)

	ctx := context.Background()
	p, err := r.OpenProvider(ctx, "fixed:hmm?score=0.5")
	if err != nil {
		fmt.Println(err)
		return
	}
	candidates, err := p.Candidates(ctx, mapmatched.Query{Text: "what is a hidden state?"}, 10)
	fmt.Println(candidates[0].ChunkID, candidates[0].Score, err)

	_, err = r.OpenProvider(ctx, "fixed:hmm?scor=2")
	fmt.Println(err)
	_, err = r.OpenProvider(ctx, "fix:hmm")
	fmt.Println(err)
	// Output:
	// hmm 0.5 <nil>
	// fixed: open: parameter scor="2" is unknown; the valid ones are score; did you mean "score"?
	// registry: open: unknown scheme "fix"; the known provider schemes are fixed; did you mean "fixed"?
}

func ExampleRegistry_Entries() {
	var r registry.Registry
	r.RegisterProvider("fixed", fixed)
	for _, e := range r.Entries() {
		fmt.Printf("%s (%s): %s\n", e.Scheme, e.Kind, e.Doc.Summary)
		for _, p := range e.Doc.Parameters {
			fmt.Printf("  %s (default %s): %s\n", p.Name, p.Default, p.Usage)
		}
	}
	// Output:
	// fixed (provider): one fixed candidate
	//   score (default 1): its score, 0 to 1
}
