package main

import (
	"context"
	"fmt"
	"os"
)

func Example() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Println(err)
	}
	// Output:
	// greedy differs from Viterbi after 2 turns, turn 0: path through "hmm" and "road-jumps"
	// exhaustive agrees with Viterbi
}
