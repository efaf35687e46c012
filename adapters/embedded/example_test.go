package embedded_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/mapmatched/mmplug/adapters/embedded"
	"github.com/mapmatched/mmplug/mapmatched"
)

// Write an index, open it, and ask it.
func Example() {
	ctx := context.Background()
	parent, err := os.MkdirTemp("", "embedded")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(parent) }()
	dir := filepath.Join(parent, "index")

	err = embedded.Write(ctx, dir, embedded.Input{
		Chunks: []mapmatched.Chunk{
			{ID: "roads", Document: "graph.md", Title: "Graph", Text: "Roads are the edges of the graph."},
			{ID: "noise", Document: "noise.md", Title: "Noise", Text: "A noisy track strays from the roads."},
		},
		Edges: []mapmatched.Edge{{From: "roads", To: "noise", Weight: 1, Type: mapmatched.EdgeLink}},
	}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}

	index, err := embedded.Open(ctx, dir, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = index.Close() }()
	found, err := index.Candidates(ctx, mapmatched.Query{Text: "What is a noisy road graph?"}, 10)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, c := range found {
		fmt.Printf("%s %.3f %s\n", c.ChunkID, c.Score, c.Metadata["document"])
	}
	// Output:
	// roads 0.984 graph.md
	// noise 0.663 noise.md
}

func ExampleOpen_notAnIndex() {
	_, err := embedded.Open(context.Background(), "no-such-index", nil)
	fmt.Println(err)
	fmt.Println(mapmatched.KindOf(err))
	// Output:
	// embedded: open: no-such-index: file does not exist: make an index there with mmplug index
	// not found
}
