package qdrant

import (
	"testing"

	pb "github.com/qdrant/go-client/qdrant"
	"google.golang.org/protobuf/proto"
)

// FuzzEdgeList reads edges of any payload value without a panic, and every edge
// begins at the chunk and ends somewhere.
func FuzzEdgeList(f *testing.F) {
	for _, v := range []*pb.Value{
		text("x"), integer(1), listOf(nil), listOf([]*pb.Value{nil, integer(1)}), {},
		listOf([]*pb.Value{object(map[string]*pb.Value{"to": text("b"), "weight": double(1), "type": text("next")})}),
		listOf([]*pb.Value{object(map[string]*pb.Value{"to": integer(7), "weight": integer(1)})}),
	} {
		raw, err := proto.Marshal(v)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var v pb.Value
		if proto.Unmarshal(raw, &v) != nil {
			return
		}
		edges, err := edgeList("a", &v)
		if err == nil && edges == nil {
			t.Error("no error and a nil list, which would mean an unknown chunk")
		}
		for _, e := range edges {
			if e.From != "a" || e.To == "" {
				t.Errorf("edge %+v", e)
			}
		}
	})
}
