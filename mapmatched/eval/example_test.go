package eval_test

import (
	"context"
	"fmt"
	"log"

	"github.com/mapmatched/mmplug/mapmatched/eval"
	"github.com/mapmatched/mmplug/policy"
)

func ExampleRun() {
	data, err := eval.Synthetic(&eval.SyntheticOptions{Seed: 1, Documents: 20, Conversations: 20})
	if err != nil {
		log.Fatal(err)
	}
	world, err := eval.NewWorld(data, nil)
	if err != nil {
		log.Fatal(err)
	}
	plain, err := policy.Builtin(policy.Plain)
	if err != nil {
		log.Fatal(err)
	}
	report, err := eval.Run(context.Background(), world, []eval.Method{eval.PolicyMethod(plain)}, nil)
	if err != nil {
		log.Fatal(err)
	}
	for i := range report.Methods {
		m := &report.Methods[i]
		fmt.Println(m.Name, "is better on follow-ups:", m.Slice(eval.SliceFollowUp).Delta[eval.NDCG3].Low > 0)
	}
	// Output:
	// pointwise is better on follow-ups: false
	// plain is better on follow-ups: true
}

func ExampleNewCorpus() {
	corpus, err := eval.NewCorpus([]eval.Chunk{{}})
	fmt.Println(corpus, err)
	// Output: <nil> chunk 0: empty chunk ID
}
