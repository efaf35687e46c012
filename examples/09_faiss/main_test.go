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
	// IndexFlatL2, 4 vectors of 7 dimensions, read by the go engine
	// How long is a token valid?
	//   nearest: tokens/lifetime, distance² 1.00
	//   decoded: tokens/lifetime
	// How do I renew it?
	//   nearest: invites/renew, distance² 1.00
	//   decoded: tokens/renew
}
