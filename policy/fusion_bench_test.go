package policy

import (
	"fmt"
	"testing"

	"github.com/mapmatched/mmplug/mapmatched"
)

func BenchmarkFuse(b *testing.B) {
	list := func(from int) []mapmatched.Candidate {
		var out []mapmatched.Candidate
		for i := range 100 {
			n := from + i*37%100
			out = append(out, mapmatched.Candidate{ChunkID: fmt.Sprintf("document-%03d/chunk-%d", n/4, n%4), Score: 1 / float64(i+1),
				Metadata: map[string]any{MetadataDocument: fmt.Sprintf("document-%03d", n/4), MetadataOrdinal: n % 4}})
		}
		return out
	}
	arms := []ArmList{{ArmDense, list(0)}, {ArmLexical, list(50)}}
	for _, version := range []string{HybridFusionPreV1, RRFV1} {
		for _, limit := range []int{20, 200} {
			b.Run(fmt.Sprintf("%s/arms=2/candidates=100/limit=%d", version, limit), func(b *testing.B) {
				u := DefaultFusion()
				u.Version = version
				b.ReportAllocs()
				for b.Loop() {
					if _, err := u.Fuse(arms, limit); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
		b.Run(version+"/arms=2/candidates=100/scores", func(b *testing.B) {
			u := DefaultFusion()
			u.Version = version
			b.ReportAllocs()
			for b.Loop() {
				if _, err := u.Scores(arms, 200); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
