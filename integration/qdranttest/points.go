package qdranttest

import (
	"context"

	"github.com/qdrant/go-client/qdrant"
)

// pointsService is the service qdrant.Points.
type pointsService struct {
	qdrant.UnimplementedPointsServer
	store *store
}

// retrieve makes of points what Get and Scroll return.
func (v *view) retrieve(points []*point, payload payloadSelector, in *qdrant.WithVectorsSelector) ([]*qdrant.RetrievedPoint, error) {
	vectors, err := v.vectors.parseVectorSelector(in, len(points))
	if err != nil {
		return nil, err
	}
	out := make([]*qdrant.RetrievedPoint, len(points))
	for i, p := range points {
		out[i] = &qdrant.RetrievedPoint{Id: p.id.proto(), Payload: payload(p.payload), Vectors: vectors(p.vectors)}
	}
	return out, nil
}

// Get returns the points there are, in the order asked for, each once.
func (s pointsService) Get(_ context.Context, in *qdrant.GetPoints) (*qdrant.GetResponse, error) {
	ids, err := parseIDs(in.GetIds())
	if err != nil {
		return nil, err
	}
	payload, err := parsePayloadSelector(in.GetWithPayload(), noPayload)
	if err != nil {
		return nil, err
	}
	c, err := s.store.find(in.GetCollectionName())
	if err != nil {
		return nil, err
	}
	seen := c.read()
	var found []*point
	done := make(map[pointID]bool, len(ids))
	for _, id := range ids {
		if p := seen.at(id); p != nil && !done[id] {
			done[id] = true
			found = append(found, p)
		}
	}
	result, err := seen.retrieve(found, payload, in.GetWithVectors())
	return &qdrant.GetResponse{Result: result}, err
}

// Count counts the points that fit a filter, always exactly.
func (s pointsService) Count(_ context.Context, in *qdrant.CountPoints) (*qdrant.CountResponse, error) {
	c, err := s.store.find(in.GetCollectionName())
	if err != nil {
		return nil, err
	}
	seen := c.read()
	fits, err := seen.compile(in.GetFilter())
	if err != nil {
		return nil, err
	}
	var count uint64
	for _, p := range seen.points {
		if fits(p) {
			count++
		}
	}
	return &qdrant.CountResponse{Result: &qdrant.CountResult{Count: count}}, nil
}
