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
	// keywords 1.0.0, in a process of its own: true
	// How long is a token valid?
	//   alone:   tokens/lifetime
	//   decoded: tokens/lifetime
	// How to renew it?
	//   alone:   invites/renew
	//   decoded: tokens/renew
}
