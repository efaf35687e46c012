package policy_test

import (
	"context"
	"fmt"
	"os"

	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/policy"
)

// A conversation under a policy whose activation gate is active. The store here
// is a list of answers, one for each turn.
func ExampleNew() {
	p := policy.Default()
	p.Name = "shy"
	p.Activation.Stage = policy.StageActive

	store, err := mapmatched.NewSliceProvider([][]mapmatched.Candidate{
		{{ChunkID: "tokens#lifetime", Score: 9}, {ChunkID: "keys#lifetime", Score: 2}},
		{{ChunkID: "invitations#renewing", Score: 5.1}, {ChunkID: "tokens#renewing", Score: 5}},
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	graph, err := mapmatched.NewGraph([]mapmatched.Edge{
		{From: "tokens#lifetime", To: "tokens#renewing", Weight: 1, Type: mapmatched.EdgeNext},
	}, nil)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	r, err := policy.New(context.Background(), p, policy.Parts{
		Arms:  []policy.FusedArm{{Name: policy.ArmLexical, Provider: store}},
		Graph: graph,
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	for _, question := range []string{"How long does a token last?", "How do I renew it?"} {
		answer, err := r.Ask(context.Background(), policy.Query{Text: question})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return
		}
		fmt.Printf("%s: %s\n", answer.ChunkID, answer.Activation)
	}
	// Output:
	// tokens#lifetime: emit
	// tokens#renewing: emit
}
