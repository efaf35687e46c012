package embedded

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/mapmatched/mmplug/mapmatched"
)

func BenchmarkCandidates(b *testing.B) {
	for _, c := range []struct {
		arm       Arm
		chunks    int
		dimension int
	}{{ArmLexical, 10_000, 0}, {ArmLexical, 50_000, 0}, {ArmDense, 10_000, 384}} {
		in := large(c.chunks, 80, 1)
		name := fmt.Sprintf("arm=%s/chunks=%d", c.arm, c.chunks)
		if c.arm == ArmDense {
			in.Vectors = vectors(c.chunks, c.dimension, 1)
			in.VectorIdentity = VectorIdentity{Provider: "test", Model: "random"}
			name += fmt.Sprintf("/dimension=%d", c.dimension)
		}
		dir := write(b, in)
		queries := make([]mapmatched.Query, 64)
		for i := range queries {
			queries[i].Text = large(1, 6, uint64(i+10)).Chunks[0].Text
			queries[i].Vector = vectors(1, max(c.dimension, 1), uint64(i+10))[0]
		}
		x := opened(b, dir, &Options{Arm: c.arm})
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				candidates(b, x, queries[i%len(queries)], 20)
				i++
			}
		})
	}
}

func BenchmarkWrite(b *testing.B) {
	for _, chunks := range []int{50_000} {
		in := large(chunks, 80, 1)
		b.Run(fmt.Sprintf("chunks=%d", chunks), func(b *testing.B) {
			b.ReportAllocs()
			dir := filepath.Join(b.TempDir(), "index")
			for b.Loop() {
				if err := Write(b.Context(), dir, in, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkOpen(b *testing.B) {
	dir := write(b, large(50_000, 80, 1))
	for _, skip := range []bool{false, true} {
		b.Run(fmt.Sprintf("chunks=50000/skip=%v", skip), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				x, err := Open(b.Context(), dir, &Options{SkipChecksums: skip})
				if err != nil {
					b.Fatal(err)
				}
				if err := x.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
