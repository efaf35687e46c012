package qdrant

import (
	"cmp"
	"context"
	"iter"
	"math"
	"slices"
	"strings"

	pb "github.com/qdrant/go-client/qdrant"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/mapmatched/mmplug/mapmatched"
)

// neighborBatch is how many chunks one round trip asks for.
const neighborBatch = 64

// NearestNeighbors implements mapmatched.NeighborLister by the vector that is
// in use here: for every chunk, in the order of the server's point IDs, its k
// nearest others as the index of the server finds them, equally near ones by
// chunk ID. Points without that vector or, in a collection that no writer of
// this package made, without a text are left out. 64 chunks are one round trip.
//
// The weight is 1 − cos under Cosine, and under Dot when the collection was
// written with vectors of unit length, where a vector of zeros is an error; it is
// the distance itself under Euclid and Manhattan. Chunks with the same vector are at weight 0, or a rounding
// error above, which is for the graph builder to raise. A Dot of other
// vectors, a sparse vector and a multi-vector have no distance and are refused.
// The distance matrix of the server compares a sample of points only, so it is
// not used.
func (s *store) NearestNeighbors(ctx context.Context, k int) iter.Seq2[mapmatched.Edge, error] {
	return func(yield func(mapmatched.Edge, error) bool) {
		const op = "neighbors"
		n, err := s.newNeighborhoods(op, k)
		if err != nil {
			yield(mapmatched.Edge{}, err)
			return
		}
		var batch []*pb.RetrievedPoint
		// send yields the edges of a batch and reports whether to go on.
		send := func() bool {
			lists, err := n.lists(ctx, op, batch)
			if err != nil {
				yield(mapmatched.Edge{}, err)
				return false
			}
			batch = batch[:0]
			for _, list := range lists {
				for _, e := range list {
					if !yield(e, nil) {
						return false
					}
				}
			}
			return true
		}
		for point, err := range s.scroll(ctx, op, &pb.ScrollPoints{Filter: n.filter, WithPayload: include(s.keys.ChunkID)}) {
			if err != nil {
				yield(mapmatched.Edge{}, err)
				return
			}
			batch = append(batch, point)
			if len(batch) == neighborBatch && !send() {
				return
			}
		}
		if len(batch) > 0 {
			send()
		}
	}
}

// neighborhoods asks for the nearest others of points.
type neighborhoods struct {
	*store
	k      int
	vector vectorInfo
	filter *pb.Filter // the points that take part, nil for all
}

func (s *store) newNeighborhoods(op string, k int) (*neighborhoods, error) {
	if k < 1 || k > maxLimit {
		return nil, invalid(op, "%d neighbors a chunk are asked for, want 1 to %d", k, maxLimit)
	}
	info := s.info.Load()
	v, err := info.vector(op, s.vectorName)
	if err != nil {
		return nil, err
	}
	switch {
	case v.kind != kindDense:
		return nil, invalid(op, "%s: %v has no distance between chunks: choose a dense vector", info.where, v)
	case v.distance == pb.Distance_Dot && info.identity.Normalization != "l2":
		return nil, invalid(op, "%s: %v is no distance and its vectors are not known to be of unit length: list the records and build the graph from their vectors", info.where, v)
	}
	n := &neighborhoods{store: s, k: k, vector: v, filter: &pb.Filter{
		Must: []*pb.Condition{{ConditionOneOf: &pb.Condition_HasVector{HasVector: &pb.HasVectorCondition{HasVector: v.name}}}},
	}}
	if !info.hasIdentity && s.keys.Text != "" {
		n.filter.MustNot = []*pb.Condition{emptyAt(s.keys.Text)}
	}
	return n, nil
}

// lists asks for the neighbors of points in one round trip, and in one more for
// up to 1,000 further ones where more chunks were equally near at the k-th place
// than were asked for in reserve. Of still more of them, and of those that do
// not fit into a message, the ones that the server puts first count.
func (n *neighborhoods) lists(ctx context.Context, op string, points []*pb.RetrievedPoint) ([][]mapmatched.Edge, error) {
	lists := make([][]mapmatched.Edge, len(points))
	open := make([]int, len(points))
	for i := range open {
		open[i] = i
	}
	limit, last := n.k+1+reserve, n.k+1+tieReach
	for len(open) > 0 {
		if err := n.ready(ctx, op); err != nil {
			return nil, err
		}
		requests := make([]*pb.QueryPoints, len(open))
		for i, at := range open {
			requests[i] = n.query(points[at].GetId(), limit)
		}
		answers, err := n.send(ctx, requests)
		if status.Code(err) == codes.NotFound {
			return n.each(ctx, op, points, err)
		}
		if limit == last && tooLarge(status.Convert(err)) {
			break
		}
		if err != nil {
			return nil, n.client.failed(ctx, op, n.name, err)
		}
		if err := n.refuseZero(ctx, op, points, open, answers); err != nil {
			return nil, err
		}
		var tied []int
		for i, at := range open {
			edges := n.edges(points[at], answers[i])
			if len(answers[i]) >= limit && limit < last && len(edges) > n.k && edges[n.k-1].Weight == edges[len(edges)-1].Weight {
				tied = append(tied, at)
			}
			lists[at] = edges[:min(n.k, len(edges))]
		}
		open, limit = tied, last
	}
	return lists, nil
}

// refuseZero refuses points at the origin where nearness is an angle: such a one
// is equally near to all others. Those whose scores are all 0 are looked at.
func (n *neighborhoods) refuseZero(ctx context.Context, op string, points []*pb.RetrievedPoint, open []int, answers [][]*pb.ScoredPoint) error {
	if n.vector.isDistance() {
		return nil
	}
	var suspects []*pb.PointId
	for i, at := range open {
		if len(answers[i]) > 0 && !slices.ContainsFunc(answers[i], func(p *pb.ScoredPoint) bool { return p.GetScore() != 0 }) {
			suspects = append(suspects, points[at].GetId())
		}
	}
	if len(suspects) == 0 {
		return nil
	}
	reply, err := n.client.points().Get(ctx, &pb.GetPoints{
		CollectionName: n.name, Ids: suspects, WithPayload: include(n.keys.ChunkID), ReadConsistency: n.client.consistency(),
		WithVectors: &pb.WithVectorsSelector{SelectorOptions: &pb.WithVectorsSelector_Include{Include: &pb.VectorsSelector{Names: []string{n.vector.name}}}},
	})
	if err != nil {
		return n.client.failed(ctx, op, n.name, err)
	}
	for _, point := range reply.GetResult() {
		if v := denseVector(point.GetVectors(), n.vector.name); v != nil && allZero(v) {
			return invalid(op, "%s: the vector of chunk %q is zero, which is equally near to all others: write the chunk again with another one, or without",
				n.info.Load().where, chunkID(point.GetId(), point.GetPayload(), n.keys.ChunkID))
		}
	}
	return nil
}

// each asks for one half of the points and then for the other, because a point
// that was deleted since it was listed fails the call for all. Alone, such a
// point has no neighbors.
func (n *neighborhoods) each(ctx context.Context, op string, points []*pb.RetrievedPoint, cause error) ([][]mapmatched.Edge, error) {
	if len(points) == 1 {
		if _, err := n.client.collection(ctx, op, n.name); err != nil { // it is the collection that was not found
			return nil, err
		}
		reply, err := n.client.points().Get(ctx, &pb.GetPoints{CollectionName: n.name, Ids: []*pb.PointId{points[0].GetId()}, WithPayload: include()})
		if err != nil || len(reply.GetResult()) > 0 {
			return nil, n.client.failed(ctx, op, n.name, cmp.Or(err, cause))
		}
		return make([][]mapmatched.Edge, 1), nil
	}
	first, err := n.lists(ctx, op, points[:len(points)/2])
	if err != nil {
		return nil, err
	}
	second, err := n.lists(ctx, op, points[len(points)/2:])
	return append(first, second...), err
}

// query asks for the points nearest to a point.
func (n *neighborhoods) query(id *pb.PointId, limit int) *pb.QueryPoints {
	request := &pb.QueryPoints{
		CollectionName: n.name, Query: nearest(&pb.VectorInput{Variant: &pb.VectorInput_Id{Id: id}}), Filter: n.filter,
		Limit: new(uint64(limit)), WithPayload: include(n.keys.ChunkID), ReadConsistency: n.client.consistency(),
	}
	if n.vector.name != "" {
		request.Using = &n.vector.name
	}
	return request
}

// edges turns an answer into edges, nearest first and equally near ones by
// chunk ID, without those to the chunk itself and those without a finite score.
func (n *neighborhoods) edges(point *pb.RetrievedPoint, answer []*pb.ScoredPoint) []mapmatched.Edge {
	from := chunkID(point.GetId(), point.GetPayload(), n.keys.ChunkID)
	edges := make([]mapmatched.Edge, 0, len(answer))
	for _, other := range answer {
		to := chunkID(other.GetId(), other.GetPayload(), n.keys.ChunkID)
		weight := float64(other.GetScore())
		if !n.vector.isDistance() {
			weight = 1 - weight
		}
		if to == from || to == "" || math.IsNaN(weight) || math.IsInf(weight, 0) {
			continue
		}
		edges = append(edges, mapmatched.Edge{From: from, To: to, Weight: max(0, weight), Type: mapmatched.EdgeKNN})
	}
	slices.SortFunc(edges, func(a, b mapmatched.Edge) int {
		return cmp.Or(cmp.Compare(a.Weight, b.Weight), strings.Compare(a.To, b.To))
	})
	return slices.CompactFunc(edges, func(a, b mapmatched.Edge) bool { return a.To == b.To })
}
