package qdranttest

import (
	"fmt"
	"testing"

	"github.com/qdrant/go-client/qdrant"
	"google.golang.org/protobuf/proto"
)

// BenchmarkQuery is one nearest query of the raw client over the loopback.
func BenchmarkQuery(b *testing.B) {
	for _, points := range []int{1000, 10000} {
		for _, limit := range []uint64{10, 50} {
			b.Run(fmt.Sprintf("points=%d/limit=%d", points, limit), func(b *testing.B) {
				client := dial(b, start(b, nil))
				create(b, client, 64, qdrant.Distance_Cosine)
				stored := make([]*qdrant.PointStruct, points)
				for i := range stored {
					v := make([]float32, 64)
					for j := range v {
						v[j] = float32((i*31+j*17)%101) - 50
					}
					stored[i] = at(uint64(i), map[string]any{"text": "a chunk of text"}, v...)
				}
				upsert(b, client, stored...)
				in := &qdrant.QueryPoints{
					CollectionName: "c", Query: qdrant.NewQuery(stored[7].GetVectors().GetVector().GetDense().GetData()...),
					Limit: proto.Uint64(limit), WithPayload: qdrant.NewWithPayload(true),
				}
				for b.Loop() {
					if _, err := client.Query(b.Context(), in); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
