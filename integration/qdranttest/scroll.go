package qdranttest

import (
	"context"
	"slices"

	"github.com/qdrant/go-client/qdrant"
)

// Scroll lists points by ID, or by a payload key with order_by. The offset is
// the ID of the first point.
func (s pointsService) Scroll(_ context.Context, in *qdrant.ScrollPoints) (*qdrant.ScrollResponse, error) {
	limit := 10
	if in.Limit != nil {
		if in.GetLimit() == 0 {
			return nil, invalidField("limit", "value 0 invalid, must be 1 or larger")
		}
		limit = int(in.GetLimit())
	}
	payload, err := parsePayloadSelector(in.GetWithPayload(), allPayload)
	if err != nil {
		return nil, err
	}
	c, err := s.store.find(in.GetCollectionName())
	if err != nil {
		return nil, err
	}
	seen := c.read()
	fits, err := seen.compile(in.GetFilter())
	if err != nil {
		return nil, err
	}
	if in.GetOrderBy() != nil {
		return seen.scrollByKey(in, fits, payload, limit)
	}
	first := 0
	if in.GetOffset() != nil {
		id, err := parseID(in.GetOffset())
		if err != nil {
			return nil, err
		}
		first, _ = slices.BinarySearchFunc(seen.points, id, func(p *point, id pointID) int { return compareID(p.id, id) })
	}
	out := &qdrant.ScrollResponse{}
	var page []*point
	for _, p := range seen.points[first:] {
		if !fits(p) {
			continue
		}
		if len(page) == limit {
			out.NextPageOffset = p.id.proto()
			break
		}
		page = append(page, p)
	}
	out.Result, err = seen.retrieve(page, payload, in.GetWithVectors())
	return out, err
}

// scrollByKey is the scroll with order_by, which has no next page.
func (v *view) scrollByKey(in *qdrant.ScrollPoints, fits func(*point) bool, payload payloadSelector, limit int) (*qdrant.ScrollResponse, error) {
	if in.GetOffset() != nil {
		return nil, badInput("Cannot use an `offset` when using `order_by`. The alternative for paging is to use `order_by.start_from` and a filter to exclude the IDs that you've already seen for the `order_by.start_from` value")
	}
	list, err := v.orderBy(in.GetOrderBy(), fits, limit)
	if err != nil {
		return nil, err
	}
	page := make([]*point, len(list))
	for i, o := range list {
		page[i] = o.p
	}
	result, err := v.retrieve(page, payload, in.GetWithVectors())
	for i := range result {
		result[i].OrderValue = list[i].value
	}
	return &qdrant.ScrollResponse{Result: result}, err
}
