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
	// second turn noise
	// context noise hmm road-jumps
}
