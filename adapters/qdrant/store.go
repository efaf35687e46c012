package qdrant

import (
	"context"
	"fmt"
	"sync/atomic"

	pb "github.com/qdrant/go-client/qdrant"
	"google.golang.org/grpc/status"

	"github.com/mapmatched/mmplug/mapmatched"
)

// store is a collection in use: what the providers over it share.
type store struct {
	client     *Client
	owned      bool // Close closes the client
	name       string
	keys       PayloadKeys // with defaults
	vectorName string      // the dense vector to fetch
	info       atomic.Pointer[collectionInfo]
	closed     atomic.Bool
}

// ready says why a call cannot be made, nil when it can.
func (s *store) ready(ctx context.Context, op string) error {
	switch {
	case s.closed.Load():
		return typed(op, mapmatched.KindUnavailable, fmt.Errorf("collection %q on %s: %w", s.name, s.client.address, mapmatched.ErrClosed))
	case ctx.Err() != nil:
		return s.client.failed(ctx, op, s.name, ctx.Err())
	}
	return nil
}

func (s *store) close() error {
	if s.closed.Swap(true) || !s.owned {
		return nil
	}
	return s.client.Close()
}

// Client returns the connection, to be shared.
func (s *store) Client() *Client { return s.client }

// Collection returns the name of the collection.
func (s *store) Collection() string { return s.name }

// holding is the filter of the points that hold these chunks. A collection that
// a writer of this package made has them under the UUIDs of their IDs; in
// another one they are found by the payload as well.
func (s *store) holding(chunkIDs []string) *pb.Filter {
	f := &pb.Filter{Should: []*pb.Condition{{ConditionOneOf: &pb.Condition_HasId{HasId: &pb.HasIdCondition{HasId: pointIDs(chunkIDs)}}}}}
	if s.info.Load().hasIdentity || s.keys.ChunkID == "" {
		return f
	}
	matches := []*pb.Match{{MatchValue: &pb.Match_Keywords{Keywords: &pb.RepeatedStrings{Strings: chunkIDs}}}}
	if numbers := integersOf(chunkIDs); len(numbers) > 0 {
		matches = append(matches, &pb.Match{MatchValue: &pb.Match_Integers{Integers: &pb.RepeatedIntegers{Integers: numbers}}})
	}
	for _, m := range matches {
		f.Should = append(f.Should, &pb.Condition{ConditionOneOf: &pb.Condition_Field{Field: &pb.FieldCondition{Key: jsonPath(s.keys.ChunkID), Match: m}}})
	}
	return f
}

// fetchBatch is how many points are fetched by one call.
const fetchBatch = 256

// fetch gets the points that hold these chunks, by chunk ID. Each call is for
// a part of them.
func (s *store) fetch(ctx context.Context, op string, chunkIDs []string, payload *pb.WithPayloadSelector, vectors *pb.WithVectorsSelector) (map[string]*pb.RetrievedPoint, error) {
	if err := s.ready(ctx, op); err != nil {
		return nil, err
	}
	asked := make(map[string]bool, len(chunkIDs))
	for _, id := range chunkIDs {
		asked[id] = true
	}
	found := make(map[string]*pb.RetrievedPoint, len(chunkIDs))
	take := func(points []*pb.RetrievedPoint) {
		for _, point := range points {
			id := chunkID(point.GetId(), point.GetPayload(), s.keys.ChunkID)
			if _, again := found[id]; asked[id] && !again {
				found[id] = point
			}
		}
	}
	for first := 0; first < len(chunkIDs); first += fetchBatch {
		err := s.fetchPage(ctx, chunkIDs[first:min(first+fetchBatch, len(chunkIDs))], payload, vectors, take)
		if err != nil {
			return nil, s.client.failed(ctx, op, s.name, err)
		}
	}
	return found, nil
}

// fetchPage gets the points of some chunks in one call, or in more when the
// reply is larger than the client takes or some chunks are in several points.
func (s *store) fetchPage(ctx context.Context, chunkIDs []string, payload *pb.WithPayloadSelector, vectors *pb.WithVectorsSelector, take func([]*pb.RetrievedPoint)) error {
	points, err := s.page(ctx, chunkIDs, payload, vectors)
	if half := len(chunkIDs) / 2; half > 0 && tooLarge(status.Convert(err)) {
		if err := s.fetchPage(ctx, chunkIDs[:half], payload, vectors, take); err != nil {
			return err
		}
		return s.fetchPage(ctx, chunkIDs[half:], payload, vectors, take)
	}
	take(points)
	return err
}

func (s *store) page(ctx context.Context, chunkIDs []string, payload *pb.WithPayloadSelector, vectors *pb.WithVectorsSelector) ([]*pb.RetrievedPoint, error) {
	if s.info.Load().hasIdentity || s.keys.ChunkID == "" {
		reply, err := s.client.points().Get(ctx, &pb.GetPoints{
			CollectionName: s.name, Ids: pointIDs(chunkIDs), WithPayload: payload, WithVectors: vectors, ReadConsistency: s.client.consistency(),
		})
		return reply.GetResult(), err
	}
	request := &pb.ScrollPoints{
		CollectionName: s.name, Filter: s.holding(chunkIDs), Limit: new(uint32(len(chunkIDs) + 1)),
		WithPayload: payload, WithVectors: vectors, ReadConsistency: s.client.consistency(),
	}
	var points []*pb.RetrievedPoint
	for {
		reply, err := s.client.points().Scroll(ctx, request)
		points = append(points, reply.GetResult()...)
		if request.Offset = reply.GetNextPageOffset(); err != nil || request.Offset == nil {
			return points, err
		}
	}
}

// payloads gets the payloads of points in one call, or in halves when the reply
// is larger than the client takes.
func (s *store) payloads(ctx context.Context, ids []*pb.PointId, payload *pb.WithPayloadSelector, take func(*pb.RetrievedPoint)) error {
	reply, err := s.client.points().Get(ctx, &pb.GetPoints{CollectionName: s.name, Ids: ids, WithPayload: payload, ReadConsistency: s.client.consistency()})
	if half := len(ids) / 2; half > 0 && tooLarge(status.Convert(err)) {
		if err := s.payloads(ctx, ids[:half], payload, take); err != nil {
			return err
		}
		return s.payloads(ctx, ids[half:], payload, take)
	}
	for _, point := range reply.GetResult() {
		take(point)
	}
	return err
}

// Chunks implements mapmatched.ChunkFetcher.
func (s *store) Chunks(ctx context.Context, chunkIDs []string) ([]mapmatched.Chunk, error) {
	found, err := s.fetch(ctx, "chunks", chunkIDs, include(s.keys.chunkKeys()...), nil)
	if err != nil {
		return nil, err
	}
	chunks := make([]mapmatched.Chunk, 0, len(chunkIDs))
	for _, id := range chunkIDs {
		if point, ok := found[id]; ok {
			chunks = append(chunks, s.keys.chunk(point.GetId(), point.GetPayload()))
		}
	}
	return chunks, nil
}

// Vectors implements mapmatched.VectorFetcher with the dense vector that the
// provider searches. Cosine collections keep vectors at length 1 and return
// them so. Of a sparse vector or a multi-vector there is nothing to return:
// every place is nil.
func (s *store) Vectors(ctx context.Context, chunkIDs []string) ([][]float32, error) {
	names := &pb.WithVectorsSelector{SelectorOptions: &pb.WithVectorsSelector_Enable{Enable: true}}
	if len(s.info.Load().vectors) > 1 {
		names = &pb.WithVectorsSelector{SelectorOptions: &pb.WithVectorsSelector_Include{Include: &pb.VectorsSelector{Names: []string{s.vectorName}}}}
	}
	found, err := s.fetch(ctx, "vectors", chunkIDs, include(s.keys.ChunkID), names)
	if err != nil {
		return nil, err
	}
	vectors := make([][]float32, len(chunkIDs))
	for i, id := range chunkIDs {
		vectors[i] = denseVector(found[id].GetVectors(), s.vectorName)
	}
	return vectors, nil
}

// denseVector returns a dense vector by name, nil if there is none.
func denseVector(v *pb.VectorsOutput, name string) []float32 {
	out := v.GetVectors().GetVectors()[name]
	if out == nil && name == "" {
		out = v.GetVector() // the only one
	}
	switch {
	case out == nil || out.GetSparse() != nil || out.GetMultiDense() != nil || out.Indices != nil || out.VectorsCount != nil: //nolint:staticcheck // servers before 1.16 fill the old fields
		return nil
	case out.GetDense() != nil:
		return out.GetDense().GetData()
	case len(out.GetData()) > 0: //nolint:staticcheck // servers before 1.16 fill the old field
		return out.GetData() //nolint:staticcheck // servers before 1.16 fill the old field
	}
	return nil
}

// Health implements mapmatched.HealthChecker: the server is reached and has the
// collection, with the vectors that it had when it was opened.
func (s *store) Health(ctx context.Context) error {
	const op = "health"
	if err := s.ready(ctx, op); err != nil {
		return err
	}
	info, err := s.client.collection(ctx, op, s.name)
	if err != nil {
		return err
	}
	if info.status == pb.CollectionStatus_Red {
		return typed(op, mapmatched.KindUnavailable, fmt.Errorf("%s is in status red: see the log of the server", info.where))
	}
	return s.unchanged(op, info)
}

// unchanged refuses a collection whose vectors are no longer those it was opened
// with.
func (s *store) unchanged(op string, now *collectionInfo) error {
	for _, was := range s.info.Load().vectors {
		is, err := now.vector(op, was.name)
		switch {
		case err != nil:
			return err
		case is != was:
			return invalid(op, "%s was made anew: the vector was %v and is %v now; open it again", now.where, was, is)
		}
	}
	return nil
}

// CorpusIdentity implements mapmatched.CorpusIdentifier. It is the zero
// identity for a collection that no writer of this package made. As [Provider.Health]
// does, it asks the server each time and refuses a collection that was made anew
// with other vectors than it was opened with.
func (s *store) CorpusIdentity(ctx context.Context) (mapmatched.CorpusIdentity, error) {
	const op = "identity"
	if err := s.ready(ctx, op); err != nil {
		return mapmatched.CorpusIdentity{}, err
	}
	info, err := s.client.collection(ctx, op, s.name)
	if err != nil {
		return mapmatched.CorpusIdentity{}, err
	}
	return info.identity, s.unchanged(op, info)
}

// nothingButForeign is the error of a query whose points all lack a text when no
// point of the collection has one: the key is wrong rather than all of them
// foreign.
func (s *store) nothingButForeign(ctx context.Context, op string, points int) error {
	keys := "none"
	withText := &pb.Filter{MustNot: []*pb.Condition{emptyAt(s.keys.Text)}}
	for _, filter := range []*pb.Filter{withText, nil} {
		reply, err := s.client.points().Scroll(ctx, &pb.ScrollPoints{
			CollectionName: s.name, Filter: filter, Limit: new(uint32(1)), WithPayload: &pb.WithPayloadSelector{SelectorOptions: &pb.WithPayloadSelector_Enable{Enable: true}},
		})
		if err != nil {
			return s.client.failed(ctx, op, s.name, err)
		}
		if len(reply.GetResult()) == 0 {
			continue
		}
		payload := reply.GetResult()[0].GetPayload()
		if _, hasText := payloadText(payload, s.keys.Text); hasText {
			return nil
		}
		if there := sortedKeys(payload); len(there) > 0 {
			keys = quoted(there)
		}
	}
	return invalid(op, "collection %q on %s: none of the %d points found has a text under key %q: say where it is with PayloadKeys.Text (text_key=), or that there is none with text_key=%s; the keys of a point there: %s",
		s.name, s.client.address, points, s.keys.Text, NoKey, keys)
}
