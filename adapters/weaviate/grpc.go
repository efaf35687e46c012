package weaviate

import (
	"context"
	"encoding/binary"
	"math"

	pb "github.com/weaviate/weaviate/grpc/generated/protocol/v1"
)

// findGRPC runs a search by the gRPC protocol.
func (s *server) findGRPC(ctx context.Context, q *search) ([]hit, error) {
	reply, err := s.grpc.Search(ctx, requestGRPC(q))
	if err != nil {
		return nil, err
	}
	hits := make([]hit, len(reply.Results))
	for i, r := range reply.Results {
		if hits[i], err = hitGRPC(q, r); err != nil {
			return nil, err
		}
	}
	return hits, nil
}

func requestGRPC(q *search) *pb.SearchRequest {
	r := &pb.SearchRequest{
		Collection:  q.class.name,
		Tenant:      q.tenant,
		Limit:       uint32(q.limit),
		Autocut:     uint32(q.autocut),
		Filters:     whereGRPC(q.where),
		Properties:  &pb.PropertiesRequest{NonRefProperties: q.properties},
		Metadata:    &pb.MetadataRequest{Uuid: true},
		Uses_127Api: true,
	}
	for _, name := range q.references {
		wanted := &pb.PropertiesRequest{}
		if q.targetID != uuidProperty {
			wanted.NonRefProperties = []string{q.targetID}
		}
		r.Properties.RefProperties = append(r.Properties.RefProperties, &pb.RefPropertiesRequest{
			ReferenceProperty: name, TargetCollection: q.class.name, Properties: wanted, Metadata: &pb.MetadataRequest{Uuid: true},
		})
	}
	if q.vector != nil {
		if *q.vector == "" {
			r.Metadata.Vector = true
		} else {
			r.Metadata.Vectors = []string{*q.vector}
		}
	}
	switch {
	case q.hybrid != nil:
		r.Metadata.Score = true
		r.HybridSearch = &pb.Hybrid{
			Query: q.text.query, Properties: q.text.properties, Alpha: float32(q.hybrid.alpha), FusionType: pb.Hybrid_FUSION_TYPE_RELATIVE_SCORE,
			VectorBytes: vectorBytes(q.near.vector), Targets: targetsGRPC(q.near),
		}
		if q.hybrid.fusion == FusionRanked {
			r.HybridSearch.FusionType = pb.Hybrid_FUSION_TYPE_RANKED
		}
	case q.text != nil:
		r.Metadata.Score = true
		r.Bm25Search = &pb.BM25{Query: q.text.query, Properties: q.text.properties}
	case q.near != nil && q.near.object != "":
		r.Metadata.Distance = true
		r.NearObject = &pb.NearObject{Id: q.near.object, Targets: targetsGRPC(q.near)}
	case q.near != nil:
		r.Metadata.Distance = true
		r.NearVector = &pb.NearVector{
			VectorBytes: vectorBytes(q.near.vector), Targets: targetsGRPC(q.near),
			Distance: q.near.maxDistance, Certainty: q.near.minCertainty,
		}
	}
	return r
}

var combinationsGRPC = map[Combination]pb.CombinationMethod{
	CombineMinimum:       pb.CombinationMethod_COMBINATION_METHOD_TYPE_MIN,
	CombineAverage:       pb.CombinationMethod_COMBINATION_METHOD_TYPE_AVERAGE,
	CombineSum:           pb.CombinationMethod_COMBINATION_METHOD_TYPE_SUM,
	CombineManualWeights: pb.CombinationMethod_COMBINATION_METHOD_TYPE_MANUAL,
	CombineRelativeScore: pb.CombinationMethod_COMBINATION_METHOD_TYPE_RELATIVE_SCORE,
}

func targetsGRPC(n *near) *pb.Targets {
	if len(n.targets) == 0 {
		return nil
	}
	t := &pb.Targets{TargetVectors: n.targets}
	if len(n.targets) > 1 {
		t.Combination = combinationsGRPC[n.combination]
	}
	for i, w := range n.weights {
		t.WeightsForTargets = append(t.WeightsForTargets, &pb.WeightsForTarget{Target: n.targets[i], Weight: float32(w)})
	}
	return t
}

func hitGRPC(q *search, r *pb.SearchResult) (hit, error) {
	m := r.GetMetadata()
	h := hit{uuid: m.GetId(), properties: map[string]any{}}
	if h.uuid == "" {
		return h, corrupt("an object came without its UUID")
	}
	props := r.GetProperties()
	for name, v := range props.GetNonRefProps().GetFields() {
		value, err := valueGRPC(v)
		if err != nil {
			return h, corrupt("object %s: property %s: %v", h.uuid, name, err)
		}
		if value != nil {
			h.properties[name] = value
		}
	}
	for _, ref := range props.GetRefProps() {
		for _, p := range ref.GetProperties() {
			if p.GetTargetCollection() != "" && p.GetTargetCollection() != q.class.name {
				continue
			}
			t := target{uuid: p.GetMetadata().GetId(), id: p.GetNonRefProps().GetFields()[q.targetID].GetTextValue()}
			h.references = appendTarget(h.references, ref.GetPropName(), t)
		}
	}
	var err error
	switch {
	case q.text != nil: // also of hybrid
		if !m.GetScorePresent() {
			return h, corrupt("object %s came without a score", h.uuid)
		}
		h.value = float64(m.GetScore())
	case q.near != nil:
		if !m.GetDistancePresent() {
			return h, corrupt("object %s came without a distance", h.uuid)
		}
		h.value = float64(m.GetDistance())
	}
	if q.vector != nil {
		encoded := m.GetVectorBytes()
		for _, v := range m.GetVectors() {
			if v.GetName() == *q.vector {
				encoded = v.GetVectorBytes()
			}
		}
		if h.vector, err = bytesVector(encoded); err != nil {
			return h, corrupt("object %s: %v", h.uuid, err)
		}
	}
	return h, nil
}

func appendTarget(references map[string][]target, property string, t target) map[string][]target {
	if references == nil {
		references = map[string][]target{}
	}
	references[property] = append(references[property], t)
	return references
}

// valueGRPC reads a property; nil for one that is null or of no simple type.
func valueGRPC(v *pb.Value) (any, error) {
	switch x := v.GetKind().(type) {
	case *pb.Value_TextValue:
		return x.TextValue, nil
	case *pb.Value_DateValue:
		return x.DateValue, nil
	case *pb.Value_UuidValue:
		return x.UuidValue, nil
	case *pb.Value_IntValue:
		return x.IntValue, nil
	case *pb.Value_NumberValue:
		return x.NumberValue, nil
	case *pb.Value_BoolValue:
		return x.BoolValue, nil
	case *pb.Value_ListValue:
		return listGRPC(x.ListValue)
	}
	return nil, nil
}

func listGRPC(l *pb.ListValue) (any, error) {
	switch x := l.GetKind().(type) {
	case *pb.ListValue_TextValues:
		return x.TextValues.GetValues(), nil
	case *pb.ListValue_DateValues:
		return x.DateValues.GetValues(), nil
	case *pb.ListValue_UuidValues:
		return x.UuidValues.GetValues(), nil
	case *pb.ListValue_BoolValues:
		return x.BoolValues.GetValues(), nil
	case *pb.ListValue_IntValues:
		return words(x.IntValues.GetValues(), func(u uint64) int64 { return int64(u) })
	case *pb.ListValue_NumberValues:
		return words(x.NumberValues.GetValues(), math.Float64frombits)
	}
	return nil, nil
}

// words reads a list of 64-bit values.
func words[T any](b []byte, convert func(uint64) T) ([]T, error) {
	if len(b)%8 != 0 {
		return nil, corrupt("%d bytes are no list of 64-bit values", len(b))
	}
	out := make([]T, len(b)/8)
	for i := range out {
		out[i] = convert(binary.LittleEndian.Uint64(b[8*i:]))
	}
	return out, nil
}

func vectorBytes(v []float32) []byte {
	b := make([]byte, 0, 4*len(v))
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}

// bytesVector reads a vector; nil for none.
func bytesVector(b []byte) ([]float32, error) {
	if len(b)%4 != 0 {
		return nil, corrupt("%d bytes are no vector of float32", len(b))
	}
	if len(b) == 0 {
		return nil, nil
	}
	v := make([]float32, len(b)/4)
	for i := range v {
		v[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return v, nil
}
