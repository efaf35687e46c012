package qdranttest

import (
	"context"
	"slices"

	"github.com/qdrant/go-client/qdrant"
)

// SearchMatrixPairs gives, for each point of a sample, the nearest other points
// of the sample. The points are in ascending order of ID.
func (s pointsService) SearchMatrixPairs(_ context.Context, in *qdrant.SearchMatrixPoints) (*qdrant.SearchMatrixPairsResponse, error) {
	sample, nearest, err := s.matrix(in)
	if err != nil {
		return nil, err
	}
	out := &qdrant.SearchMatrixPairs{}
	for i, row := range nearest {
		for _, n := range row {
			out.Pairs = append(out.Pairs, &qdrant.SearchMatrixPair{A: sample[i].id.proto(), B: n.p.id.proto(), Score: n.score})
		}
	}
	return &qdrant.SearchMatrixPairsResponse{Result: out}, nil
}

// SearchMatrixOffsets is SearchMatrixPairs with positions in the list of IDs.
func (s pointsService) SearchMatrixOffsets(_ context.Context, in *qdrant.SearchMatrixPoints) (*qdrant.SearchMatrixOffsetsResponse, error) {
	sample, nearest, err := s.matrix(in)
	if err != nil {
		return nil, err
	}
	out := &qdrant.SearchMatrixOffsets{}
	at := make(map[pointID]uint64, len(sample))
	for i, p := range sample {
		at[p.id] = uint64(i)
		out.Ids = append(out.Ids, p.id.proto())
	}
	for i, row := range nearest {
		for _, n := range row {
			out.OffsetsRow = append(out.OffsetsRow, uint64(i))
			out.OffsetsCol = append(out.OffsetsCol, at[n.p.id])
			out.Scores = append(out.Scores, n.score)
		}
	}
	return &qdrant.SearchMatrixOffsetsResponse{Result: out}, nil
}

// matrix takes the sample and searches in it. It is empty when fewer than two
// points have the vector.
func (s pointsService) matrix(in *qdrant.SearchMatrixPoints) ([]*point, [][]scored, error) {
	if err := atLeast("sample", in.Sample, 2); err != nil {
		return nil, nil, err
	}
	if err := atLeast("limit", in.Limit, 1); err != nil {
		return nil, nil, err
	}
	c, err := s.store.find(in.GetCollectionName())
	if err != nil {
		return nil, nil, err
	}
	seen := c.read()
	using := in.GetUsing()
	if err := seen.vectors.configured(using); err != nil {
		return nil, nil, err
	}
	fits, err := seen.compile(in.GetFilter())
	if err != nil {
		return nil, nil, err
	}
	chosen := seen.sample(s.store.seed, func(p *point) bool {
		_, has := p.vectors[using]
		return has && fits(p)
	}, clampLimit(in.Sample, 10))
	if len(chosen) < 2 {
		return nil, nil, nil
	}
	limit := clampLimit(in.Limit, 3)
	sample := make([]*point, len(chosen))
	for i, item := range chosen {
		sample[i] = item.p
	}
	slices.SortFunc(sample, func(a, b *point) int { return compareID(a.id, b.id) })
	within := inLists([][]scored{chosen})
	nearest := make([][]scored, len(sample))
	for i, p := range sample {
		row := seen.nearest(using, p.vectors[using], within, limit+1, nil)
		row = slices.DeleteFunc(row, func(item scored) bool { return item.p == p })
		nearest[i] = row[:min(limit, len(row))]
	}
	return sample, nearest, nil
}
