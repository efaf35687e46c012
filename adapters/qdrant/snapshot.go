package qdrant

import (
	"context"
	"fmt"
	"iter"

	pb "github.com/qdrant/go-client/qdrant"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/mapmatched/mmplug/mapmatched"
)

// Pages of a listing: how many points the first one has, how many points one
// may have, and about how many bytes, well below the 4 MiB at which gRPC's own
// limit stands and proxies have theirs.
const (
	firstPage = 64
	largePage = 4096
	pageBytes = 1 << 20
)

// scroll lists the points that a request is about, page by page in the order of
// the server's point IDs, which are the cursor: what is written meanwhile makes
// no point come twice, and a call that is tried again goes on where it was. A
// page that is too large for a message is asked for again in halves.
func (s *store) scroll(ctx context.Context, op string, request *pb.ScrollPoints) iter.Seq2[*pb.RetrievedPoint, error] {
	return func(yield func(*pb.RetrievedPoint, error) bool) {
		request.CollectionName, request.ReadConsistency = s.name, s.client.consistency()
		for page := firstPage; ; {
			if err := s.ready(ctx, op); err != nil {
				yield(nil, err)
				return
			}
			request.Limit = new(uint32(page))
			reply, err := s.client.points().Scroll(ctx, request)
			if err != nil && page > 1 && tooLarge(status.Convert(err)) {
				page /= 2
				continue
			}
			if err != nil {
				yield(nil, s.client.failed(ctx, op, s.name, err))
				return
			}
			for _, point := range reply.GetResult() {
				if !yield(point, nil) {
					return
				}
			}
			if request.Offset = reply.GetNextPageOffset(); request.Offset == nil {
				return
			}
			fitting := pageBytes * len(reply.GetResult()) / max(1, proto.Size(reply))
			page = max(1, min(fitting, 4*page, largePage))
		}
	}
}

// Records implements mapmatched.RecordLister in the order of the server's point
// IDs: each chunk with the dense vector that is in use here, where it has one,
// and the edges kept with it. Points without a text are something else in the
// same collection and left out, unless no point has one. Cosine collections
// return vectors at length 1.
//
// The collection may be written to meanwhile: every record comes once, and one
// that was there all the time does come. After an error nothing follows.
func (s *store) Records(ctx context.Context) iter.Seq2[mapmatched.Record, error] {
	return func(yield func(mapmatched.Record, error) bool) {
		const op = "records"
		vectors, err := s.recordVectors(op)
		if err != nil {
			yield(mapmatched.Record{}, err)
			return
		}
		request := &pb.ScrollPoints{WithPayload: include(append(s.keys.chunkKeys(), s.keys.Edges)...), WithVectors: vectors}
		chunks, foreign := 0, 0
		for point, err := range s.scroll(ctx, op, request) {
			if err != nil {
				yield(mapmatched.Record{}, err)
				return
			}
			if _, hasText := payloadText(point.GetPayload(), s.keys.Text); !hasText && s.keys.Text != "" {
				foreign++
				continue
			}
			chunks++
			r, err := s.record(point)
			if err != nil {
				err = typed(op, mapmatched.KindCorrupt, fmt.Errorf("collection %q on %s: %w: write the chunk again", s.name, s.client.address, err))
			}
			if !yield(r, err) || err != nil {
				return
			}
		}
		if chunks > 0 || foreign == 0 {
			return
		}
		if err := s.nothingButForeign(ctx, op, foreign); err != nil {
			yield(mapmatched.Record{}, err)
		}
	}
}

// recordVectors asks for the vector in use, and for none when the collection
// has no dense one.
func (s *store) recordVectors(op string) (*pb.WithVectorsSelector, error) {
	info := s.info.Load()
	dense := false
	for _, v := range info.vectors {
		dense = dense || v.kind == kindDense
	}
	if !dense {
		return nil, nil
	}
	if _, err := info.vector(op, s.vectorName); err != nil {
		return nil, err
	}
	if s.vectorName == "" {
		return &pb.WithVectorsSelector{SelectorOptions: &pb.WithVectorsSelector_Enable{Enable: true}}, nil
	}
	return &pb.WithVectorsSelector{SelectorOptions: &pb.WithVectorsSelector_Include{Include: &pb.VectorsSelector{Names: []string{s.vectorName}}}}, nil
}

// record reads a record.
func (s *store) record(point *pb.RetrievedPoint) (mapmatched.Record, error) {
	r := mapmatched.Record{Chunk: s.keys.chunk(point.GetId(), point.GetPayload()), Vector: denseVector(point.GetVectors(), s.vectorName)}
	if s.keys.Edges == "" {
		return r, nil
	}
	edges, err := edgeList(r.Chunk.ID, point.GetPayload()[s.keys.Edges])
	if err != nil {
		return mapmatched.Record{}, err
	}
	if len(edges) > 0 {
		r.Edges = edges
	}
	return r, nil
}
