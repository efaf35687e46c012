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
	// How long is a token valid?
	//   alone:   tokens/lifetime
	//   decoded: tokens/lifetime
	// How to renew it?
	//   alone:   invites/renew
	//   decoded: tokens/renew
}
