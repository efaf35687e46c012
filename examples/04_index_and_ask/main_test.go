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
	// How long does an access token last?
	//   access-tokens.md#lifetime
	// How do I renew it?
	//   access-tokens.md#renewing
	// What happens when it expires?
	//   access-tokens.md#when-it-expires
}
