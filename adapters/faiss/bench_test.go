package faiss

import (
	"fmt"
	"testing"
)

// benchmarkEngine searches a flat index of 100,000 × 384 for 50 vectors, one
// query at a time and in batches. It reports the time of one query.
func benchmarkEngine(b *testing.B, engine Engine) {
	const rows, dimension, k = 100_000, 384, 50
	data := vectors(rows, dimension, 1)
	queries := vectors(256, dimension, 2)
	for _, metric := range []Metric{MetricInnerProduct, MetricL2} {
		x := opened(b, written(b, metric, data, nil), &IndexOptions{Engine: engine})
		for _, batch := range []int{1, 16, 64, 256} {
			b.Run(fmt.Sprintf("metric=%v/rows=%d/dimension=%d/k=%d/batch=%d", metric, rows, dimension, k, batch), func(b *testing.B) {
				if _, err := x.SearchBatch(b.Context(), queries[:batch], k); err != nil { // maps the file
					b.Fatal(err)
				}
				searches := 0
				for b.Loop() {
					if _, err := x.SearchBatch(b.Context(), queries[:batch], k); err != nil {
						b.Fatal(err)
					}
					searches++
				}
				b.ReportMetric(float64(b.Elapsed().Microseconds())/1000/float64(searches*batch), "ms/query")
			})
		}
	}
}

func BenchmarkGo(b *testing.B) { benchmarkEngine(b, EngineGo) }
