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
	//   decoded: tokens/about
	//   first:   tokens/lifetime (reranked)
	// How do I renew a token?
	//   decoded: tokens/lifetime
	//   first:   tokens/renew (reranked)
	// How do I revoke a token?
	//   decoded: tokens/renew
	//   first:   tokens/renew (kept)
	//   rerank: plugin shared-words: rerank: already closed
}
