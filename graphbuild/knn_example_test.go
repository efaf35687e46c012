package graphbuild_test

import (
	"context"
	"fmt"

	"github.com/mapmatched/mmplug/graphbuild"
)

// planets is a source of vectors; a file is opened with OpenVectors instead.
type planets struct{ vectors [][]float32 }

func (p planets) Len() int                           { return len(p.vectors) }
func (p planets) Dimension() int                     { return 2 }
func (p planets) ID(row int) string                  { return []string{"mars", "venus", "earth"}[row] }
func (p planets) Row(row int, _ []float32) []float32 { return p.vectors[row] }

func ExampleKNNBuild() {
	source := planets{[][]float32{{1, 0}, {0, 1}, {3, 4}}}
	edges, report, err := graphbuild.KNNBuild(context.Background(), source, &graphbuild.KNNOptions{K: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, e := range edges {
		fmt.Printf("%s - %s: %.2f\n", e.From, e.To, e.Weight)
	}
	fmt.Printf("%s, recall %v\n", report.Method, report.Recall)
	// Output:
	// earth - mars: 0.40
	// earth - venus: 0.20
	// exact, recall 1
}
