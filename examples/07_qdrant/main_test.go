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
	// 322 chunks of 42 pages written, 757 edges
	// How long does an access token last?
	//   alone:   access-tokens.md#revoking
	//   decoded: access-tokens.md#revoking
	// How do I renew it?
	//   alone:   restoring.md#how-much-is-lost
	//   decoded: access-tokens.md#renewing
	// What happens when it expires?
	//   alone:   invitations.md#when-it-expires
	//   decoded: access-tokens.md#when-it-expires
	// Is there a limit on how many I can have?
	//   alone:   quotas.md#counts
	//   decoded: access-tokens.md#limits
	// How often does the leader take a snapshot?
	//   alone:   snapshots.md#schedule
	//   decoded: snapshots.md#schedule
	// And how long is it kept?
	//   alone:   audit-log.md#retention
	//   decoded: snapshots.md#retention
}
