package rings

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/mapmatched/mmplug/mapmatched"
)

// BenchmarkDistances asks for the distances of one turn in a corpus of 10,000
// chunks and 50,000 edges: all in the cache, nothing in it, and the graph in
// memory beside them.
func BenchmarkDistances(b *testing.B) {
	const nodes = 10_000
	r := rand.New(rand.NewPCG(1, 1))
	edges := randomEdges(r, nodes, 5*nodes, func(r *rand.Rand) float64 { return 0.5 + 3*r.Float64() })
	const maximum = 4
	source := newMemory(nil, edges, false)
	inMemory := mustReference(b, edges, &mapmatched.GraphOptions{MaximumDistance: maximum})
	for _, candidates := range []int{20, 50} {
		from, to := question(r, nodes, candidates), question(r, nodes, candidates)
		dst := make([]float64, candidates*candidates)
		for _, c := range []struct {
			name  string
			graph mapmatched.CorpusGraph
		}{
			{"cached", mustGraph(b, source, &Options{MaximumDistance: maximum})},
			{"fetched", mustGraph(b, source, &Options{MaximumDistance: maximum, CacheBytes: -1})},
			{"memory", inMemory},
		} {
			b.Run(fmt.Sprintf("candidates=%d/%s", candidates, c.name), func(b *testing.B) {
				if err := c.graph.Distances(b.Context(), from, to, dst); err != nil {
					b.Fatal(err)
				}
				calls, chunks := source.calls.Load(), source.chunks.Load()
				b.ReportAllocs()
				for b.Loop() {
					if err := c.graph.Distances(b.Context(), from, to, dst); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(source.calls.Load()-calls)/float64(b.N), "trips/op")
				b.ReportMetric(float64(source.chunks.Load()-chunks)/float64(b.N), "chunks/op")
			})
		}
	}
}
