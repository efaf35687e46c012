package qdranttest

import (
	"cmp"
	"context"
	"slices"

	"github.com/qdrant/go-client/qdrant"
)

// Facet counts the points of each value of a key, most first, equal counts in
// ascending order of the value.
func (s pointsService) Facet(_ context.Context, in *qdrant.FacetCounts) (*qdrant.FacetResponse, error) {
	if in.GetKey() == "" {
		return nil, invalidField("key", `value "" invalid, must be at least 1 characters`)
	}
	at, err := parsePath(in.GetKey())
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
	limit := clampLimit(in.Limit, 10)
	if limit == 0 {
		return &qdrant.FacetResponse{}, nil
	}
	index := seen.indexes[at.String()]
	if index == nil || !index.lookup() {
		return nil, badInput("No appropriate index for faceting: `%s`. Please create one to facet on this field. Check https://qdrant.tech/documentation/concepts/indexing/#payload-index to see which payload schemas support Match conditions", in.GetKey())
	}
	counts := map[facet]uint64{}
	for _, p := range seen.points {
		if !fits(p) {
			continue
		}
		once := map[facet]bool{}
		index.flat(p, func(v *qdrant.Value) {
			if index.holds(v) {
				once[index.facet(v)] = true
			}
		})
		for value := range once {
			counts[value]++
		}
	}
	type hit struct {
		value facet
		count uint64
	}
	hits := make([]hit, 0, len(counts))
	for value, count := range counts {
		hits = append(hits, hit{value, count})
	}
	slices.SortFunc(hits, func(a, b hit) int {
		return cmp.Or(cmp.Compare(b.count, a.count), cmp.Compare(a.value.text, b.value.text), cmp.Compare(a.value.number, b.value.number))
	})
	out := &qdrant.FacetResponse{}
	for _, h := range hits[:min(limit, len(hits))] {
		out.Hits = append(out.Hits, &qdrant.FacetHit{Value: index.facetValue(h.value), Count: h.count})
	}
	return out, nil
}

// facet is a value of a facet: a text, or a number, which is 0 or 1 for bools.
type facet struct {
	text   string
	number int64
}

func (x *payloadIndex) facet(v *qdrant.Value) facet {
	switch kind := v.GetKind().(type) {
	case *qdrant.Value_IntegerValue:
		return facet{number: kind.IntegerValue}
	case *qdrant.Value_BoolValue:
		if kind.BoolValue {
			return facet{number: 1}
		}
		return facet{}
	}
	if x.schema == qdrant.PayloadSchemaType_Uuid {
		uuid, _ := parseUUID(v.GetStringValue())
		return facet{text: formatUUID(uuid)}
	}
	return facet{text: v.GetStringValue()}
}

func (x *payloadIndex) facetValue(f facet) *qdrant.FacetValue {
	switch x.schema {
	case qdrant.PayloadSchemaType_Integer:
		return &qdrant.FacetValue{Variant: &qdrant.FacetValue_IntegerValue{IntegerValue: f.number}}
	case qdrant.PayloadSchemaType_Bool:
		return &qdrant.FacetValue{Variant: &qdrant.FacetValue_BoolValue{BoolValue: f.number == 1}}
	}
	return &qdrant.FacetValue{Variant: &qdrant.FacetValue_StringValue{StringValue: f.text}}
}
