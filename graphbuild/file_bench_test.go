package graphbuild

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/mapmatched/mmplug/mapmatched"
)

// benchGraph is a graph to measure distances on: each chunk is joined to some
// others, drawn from all chunks or from the next ones.
type benchGraph struct {
	name            string
	nodes, edges    int
	near            int // how far ahead ends are drawn, 0 for anywhere
	least, most     float64
	maximumDistance float64
}

func (b benchGraph) input() GraphInput {
	r := rand.New(rand.NewPCG(uint64(b.nodes), uint64(b.edges)))
	in := GraphInput{MaximumDistance: b.maximumDistance}
	id := func(i int) string { return fmt.Sprintf("handbook/page-%06d.md#section", i) }
	for i := range b.nodes {
		in.Nodes = append(in.Nodes, id(i))
	}
	for range b.edges {
		from := r.IntN(b.nodes)
		to := r.IntN(b.nodes)
		if b.near > 0 {
			to = (from + 1 + r.IntN(b.near)) % b.nodes
		}
		in.Edges = append(in.Edges, mapmatched.Edge{From: id(from), To: id(to), Weight: b.least + (b.most-b.least)*r.Float64(), Type: mapmatched.EdgeKNN})
	}
	return in
}

var benchGraphs = []benchGraph{
	{"nodes=10000/weights=0.5-3.5", 10_000, 50_000, 0, 0.5, 3.5, 4},
}

// largeBenchGraphs take minutes to make, and files of up to 2 GB. They run when
// MMPLUG_LARGE_BENCHMARKS is set.
var largeBenchGraphs = []benchGraph{
	{"nodes=10000/weights=0.5-1.5", 10_000, 50_000, 0, 0.5, 1.5, 4},
	{"nodes=100000/near", 100_000, 500_000, 200, 0.1, 1, 2},
	{"nodes=100000/anywhere", 100_000, 500_000, 0, 0.1, 1, 1},
}

// BenchmarkDistances asks for distances between two turns of 50 and of 100
// candidates that lie close together, as they do in a conversation.
func BenchmarkDistances(b *testing.B) {
	graphs := benchGraphs
	if os.Getenv("MMPLUG_LARGE_BENCHMARKS") != "" {
		graphs = slices.Concat(benchGraphs, largeBenchGraphs)
	}
	for _, c := range graphs {
		in := c.input()
		for _, method := range allMethods {
			b.Run(fmt.Sprintf("%s/%s", c.name, method), func(b *testing.B) {
				g, path := writeTestGraph(b, in, &WriteGraphOptions{Distances: method, TableLimit: 4 << 30})
				info, err := os.Stat(path)
				if err != nil {
					b.Fatal(err)
				}
				for _, n := range []int{50, 100} {
					b.Run(fmt.Sprintf("candidates=%d", n), func(b *testing.B) {
						r := rand.New(rand.NewPCG(7, 8))
						pick := func() []string {
							ids := make([]string, n)
							for i := range ids {
								ids[i] = in.Nodes[(5000+r.IntN(2000))%len(in.Nodes)]
							}
							return ids
						}
						from, to, dst := pick(), pick(), make([]float64, n*n)
						b.ReportAllocs()
						for b.Loop() {
							if err := g.Distances(b.Context(), from, to, dst); err != nil {
								b.Fatal(err)
							}
						}
						b.ReportMetric(float64(info.Size())/(1<<20), "MiB")
						b.ReportMetric(g.Method().Reach, "reach")
					})
				}
			})
		}
	}
}
