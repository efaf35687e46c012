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
	// 5 documents: 4 candidates, 0 too far, 1 foreign
	// How long is a token valid?
	//   alone:   tokens/lifetime
	//   decoded: tokens/lifetime
	// 5 documents: 3 candidates, 1 too far, 1 foreign
	// How to renew it?
	//   alone:   invites/renew
	//   decoded: tokens/renew
}
