// Command 01_direct_candidates decodes candidates that come from elsewhere: no
// store, no index, no model. Searched alone, the second turn would be
// "road-jumps"; on the path from "hmm" it is "noise".
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"strings"

	"github.com/mapmatched/mmplug/mapmatched"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, w io.Writer) error {
	// The road network: hmm – noise – road-jumps.
	graph, err := mapmatched.NewGraph([]mapmatched.Edge{
		{From: "hmm", To: "noise", Weight: 1, Type: mapmatched.EdgeNext},
		{From: "noise", To: "road-jumps", Weight: 1, Type: mapmatched.EdgeNext},
	}, &mapmatched.GraphOptions{MaximumDistance: 4})
	if err != nil {
		return err
	}
	session, err := mapmatched.NewSession(nil, graph, &mapmatched.Config{
		ScoreNormalization: mapmatched.NormalizeNone,
	})
	if err != nil {
		return err
	}
	turns := [][]mapmatched.Candidate{
		{{ChunkID: "hmm", Score: 5}, {ChunkID: "noise", Score: 1}, {ChunkID: "road-jumps", Score: 0}},
		{{ChunkID: "hmm", Score: 1}, {ChunkID: "noise", Score: 3}, {ChunkID: "road-jumps", Score: 3.5}},
	}
	var last *mapmatched.Result
	for _, candidates := range turns {
		if last, err = session.Observe(ctx, "", candidates); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(w, "second turn %s\ncontext %s\n", last.ChunkID, strings.Join(last.ContextChunkIDs, " "))
	return err
}
