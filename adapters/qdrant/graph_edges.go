package qdrant

import (
	"context"
	"fmt"

	pb "github.com/qdrant/go-client/qdrant"
	"google.golang.org/grpc/status"

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
		points, err := s.edgePoints(ctx, chunkIDs[first:min(first+edgeBatch, len(chunkIDs))])
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

// edgePoints gets the points of chunks with their edges in one call, or in more
// when the answer is too large. A collection that a writer of this package made
// is asked by ID, another one by a filter on the payload as well.
func (s *store) edgePoints(ctx context.Context, chunkIDs []string) ([]*pb.RetrievedPoint, error) {
	payload := include(s.keys.ChunkID, s.keys.Edges)
	var points []*pb.RetrievedPoint
	var err error
	if s.info.Load().hasIdentity || s.keys.ChunkID == "" {
		var reply *pb.GetResponse
		reply, err = s.client.points().Get(ctx, &pb.GetPoints{
			CollectionName: s.name, Ids: pointIDs(chunkIDs), WithPayload: payload, ReadConsistency: s.client.consistency(),
		})
		points = reply.GetResult()
	} else {
		request := &pb.ScrollPoints{
			CollectionName: s.name, Filter: s.holding(chunkIDs), Limit: new(uint32(len(chunkIDs) + 1)),
			WithPayload: payload, ReadConsistency: s.client.consistency(),
		}
		for first := true; err == nil && (first || request.Offset != nil); first = false {
			var reply *pb.ScrollResponse
			reply, err = s.client.points().Scroll(ctx, request)
			points = append(points, reply.GetResult()...)
			request.Offset = reply.GetNextPageOffset()
		}
	}
	if err == nil || len(chunkIDs) == 1 || !tooLarge(status.Convert(err)) {
		return points, err
	}
	half := len(chunkIDs) / 2
	points, err = s.edgePoints(ctx, chunkIDs[:half])
	if err != nil {
		return nil, err
	}
	rest, err := s.edgePoints(ctx, chunkIDs[half:])
	return append(points, rest...), err
}
