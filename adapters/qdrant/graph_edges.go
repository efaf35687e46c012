package qdrant

import (
	"context"
	"fmt"

	pb "github.com/qdrant/go-client/qdrant"

	"github.com/mapmatched/mmplug/mapmatched"
)

// edgeList reads the edges that a payload keeps: a list of objects with "to",
// "weight" and "type". Without a list there are none, which is not nil. Whether
// an edge makes sense is for the graph to say.
func edgeList(from string, value *pb.Value) ([]mapmatched.Edge, error) {
	list := value.GetListValue()
	if _, null := value.GetKind().(*pb.Value_NullValue); list == nil && value.GetKind() != nil && !null {
		return nil, fmt.Errorf("the edges of chunk %q are %T and not a list", from, goValue(value))
	}
	edges := make([]mapmatched.Edge, len(list.GetValues()))
	for i, v := range list.GetValues() {
		fields := v.GetStructValue().GetFields()
		to := chunkID(nil, fields, "to")
		weight, ok := number(fields["weight"])
		if to == "" || !ok {
			return nil, fmt.Errorf("edge %d of chunk %q is %v: want an object with a chunk ID under to and a number under weight", i, from, goValue(v))
		}
		kind, _ := payloadText(fields, "type")
		edges[i] = mapmatched.Edge{From: from, To: to, Weight: weight, Type: mapmatched.EdgeType(kind)}
	}
	return edges, nil
}

// number returns a number of a payload, where a whole one may be kept as an
// integer.
func number(v *pb.Value) (float64, bool) {
	switch k := v.GetKind().(type) {
	case *pb.Value_DoubleValue:
		return k.DoubleValue, true
	case *pb.Value_IntegerValue:
		return float64(k.IntegerValue), true
	}
	return 0, false
}

// edgeSource gives the edges of chunks to a search by rings.
type edgeSource struct{ *store }

// edgeBatch is how many chunks one call asks for. Their edges fit into a
// message as long as they take 16 KiB a chunk; when they do not, the call is
// split.
const edgeBatch = 4096

// Edges implements rings.Source.
func (s edgeSource) Edges(ctx context.Context, chunkIDs []string) ([][]mapmatched.Edge, error) {
	const op = "edges"
	if err := s.ready(ctx, op); err != nil {
		return nil, err
	}
	place := make(map[string]int, len(chunkIDs))
	for i, id := range chunkIDs {
		place[id] = i
	}
	lists := make([][]mapmatched.Edge, len(chunkIDs))
	for first := 0; first < len(chunkIDs); first += edgeBatch {
		var points []*pb.RetrievedPoint
		err := s.fetchPage(ctx, chunkIDs[first:min(first+edgeBatch, len(chunkIDs))], include(s.keys.ChunkID, s.keys.Edges), nil, func(some []*pb.RetrievedPoint) {
			points = append(points, some...)
		})
		if err != nil {
			return nil, s.client.failed(ctx, op, s.name, err)
		}
		for _, point := range points {
			// Whatever found the point, it is the chunk that its payload says.
			id := chunkID(point.GetId(), point.GetPayload(), s.keys.ChunkID)
			i, asked := place[id]
			if !asked || lists[i] != nil {
				continue
			}
			if lists[i], err = edgeList(id, point.GetPayload()[s.keys.Edges]); err != nil {
				return nil, typed(op, mapmatched.KindCorrupt, fmt.Errorf("collection %q on %s: %w: write the chunk again", s.name, s.client.address, err))
			}
		}
	}
	return lists, nil
}
