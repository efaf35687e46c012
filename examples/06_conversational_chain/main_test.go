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
	// alice: How long is a token valid?
	//   A token is valid for one hour. (tokens/lifetime, turn 0, trace 1/0@alice)
	// bob: How long is an invite valid?
	//   An invite is valid for seven days. (invites/lifetime, turn 0, trace 2/0@bob)
	// alice: How do I renew it?
	//   Send the refresh token. (tokens/renew, turn 1, trace 1/1@alice)
	// bob: How do I renew it?
	//   Send a new link. (invites/renew, turn 1, trace 2/1@bob)
	// why: "tokens/renew" is a drill of distance 1
}
