package graphbuild_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/mapmatched/mmplug/graphbuild"
	"github.com/mapmatched/mmplug/mapmatched"
)

func ExampleWriteGraph() {
	dir, err := os.MkdirTemp("", "graph-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir) //nolint:errcheck // only an example
	path := filepath.Join(dir, "corpus.mmg")

	ctx := context.Background()
	written, err := graphbuild.WriteGraph(ctx, path, graphbuild.GraphInput{
		Edges: []mapmatched.Edge{
			{From: "hmm", To: "noise", Weight: 1, Type: mapmatched.EdgeNext},
			{From: "noise", To: "road-jumps", Weight: 1.5, Type: mapmatched.EdgeLink},
		},
		MaximumDistance: 4,
	}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(written.Nodes, "chunks, distances by", written.Distances.Method)

	g, err := graphbuild.OpenGraph(ctx, path, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer g.Close() //nolint:errcheck // only read
	distances := make([]float64, 2)
	err = g.Distances(ctx, []string{"hmm"}, []string{"road-jumps", "elsewhere"}, distances)
	fmt.Println(distances, err)
	steps, err := g.ShortestPath(ctx, "hmm", "road-jumps")
	fmt.Println(steps, err)
	// Output:
	// 3 chunks, distances by table
	// [2.5 4] <nil>
	// [{hmm noise 1 next} {noise road-jumps 1.5 link}] <nil>
}
