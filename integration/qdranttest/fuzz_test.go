package qdranttest

import (
	"testing"

	"github.com/qdrant/go-client/qdrant"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// fuzzStore is a store with a collection c that has every kind of vector.
func fuzzStore(t testing.TB) (*store, *collection) {
	s := newStore(0, 1)
	if _, err := (collectionsService{store: s}).Create(t.Context(), &qdrant.CreateCollection{
		CollectionName: "c",
		VectorsConfig: qdrant.NewVectorsConfigMap(map[string]*qdrant.VectorParams{
			"":  params(2, qdrant.Distance_Cosine),
			"m": {Size: 2, Distance: qdrant.Distance_Euclid, MultivectorConfig: &qdrant.MultiVectorConfig{}},
		}),
		SparseVectorsConfig: qdrant.NewSparseVectorsConfig(map[string]*qdrant.SparseVectorParams{"s": {Modifier: qdrant.Modifier_Idf.Enum()}}),
	}); err != nil {
		t.Fatal(err)
	}
	points := pointsService{store: s}
	for key, kind := range map[string]qdrant.FieldType{"n": qdrant.FieldType_FieldTypeInteger, "t": qdrant.FieldType_FieldTypeText} {
		if _, err := points.CreateFieldIndex(t.Context(), &qdrant.CreateFieldIndexCollection{CollectionName: "c", FieldName: key, FieldType: kind.Enum(), Wait: proto.Bool(true)}); err != nil {
			t.Fatal(err)
		}
	}
	for id := range uint64(3) {
		if _, err := points.Upsert(t.Context(), &qdrant.UpsertPoints{CollectionName: "c", Wait: proto.Bool(true), Points: []*qdrant.PointStruct{{
			Id: qdrant.NewIDNum(id), Payload: qdrant.NewValueMap(map[string]any{"n": id, "t": "a b", "l": []any{map[string]any{"a": 1}}}),
			Vectors: qdrant.NewVectorsMap(map[string]*qdrant.Vector{
				"": qdrant.NewVector(1, float32(id)), "m": qdrant.NewVectorMulti([][]float32{{1, 2}, {3, 4}}), "s": qdrant.NewVectorSparse([]uint32{1}, []float32{1}),
			}),
		}}}); err != nil {
			t.Fatal(err)
		}
	}
	c, err := s.find("c")
	if err != nil {
		t.Fatal(err)
	}
	return s, c
}

// addMessages adds messages to the corpus.
func addMessages(f *testing.F, messages ...proto.Message) {
	for _, m := range messages {
		raw, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
}

// FuzzQuery runs any query: it ends in an answer or in a status.
func FuzzQuery(f *testing.F) {
	s, c := fuzzStore(f)
	leaf := []*qdrant.PrefetchQuery{{Query: qdrant.NewQuery(1, 2)}, {Query: qdrant.NewQuerySparse([]uint32{1}, []float32{1}), Using: proto.String("s")}}
	addMessages(f,
		&qdrant.QueryPoints{CollectionName: "c", Query: qdrant.NewQuery(1, 2), Filter: must1(qdrant.NewNestedFilter("l", must1(qdrant.NewMatchInt("a", 1))))},
		&qdrant.QueryPoints{CollectionName: "c", Query: qdrant.NewQueryID(qdrant.NewIDNum(1)), Using: proto.String("m")},
		&qdrant.QueryPoints{CollectionName: "c", Query: qdrant.NewQueryRRF(&qdrant.Rrf{Weights: []float32{1, 2}}), Prefetch: leaf},
		&qdrant.QueryPoints{CollectionName: "c", Query: qdrant.NewQueryFusion(qdrant.Fusion_DBSF), Prefetch: leaf, WithPayload: qdrant.NewWithPayloadExclude("l[].a")},
		&qdrant.QueryPoints{CollectionName: "c", Query: qdrant.NewQueryMMR(qdrant.NewVectorInput(1, 2), &qdrant.Mmr{}), Prefetch: leaf},
		&qdrant.QueryPoints{CollectionName: "c", Query: qdrant.NewQueryFormula(&qdrant.Formula{Expression: qdrant.NewExpressionExpDecay(&qdrant.DecayParamsExpression{X: qdrant.NewExpressionVariable("n")})}), Prefetch: leaf},
		&qdrant.QueryPoints{CollectionName: "c", Query: qdrant.NewQueryOrderBy(&qdrant.OrderBy{Key: "n"}), Offset: proto.Uint64(1)},
	)
	f.Fuzz(func(t *testing.T, raw []byte) {
		in := &qdrant.QueryPoints{}
		if proto.Unmarshal(raw, in) != nil || checkQuery("", in) != nil {
			return
		}
		points, err := s.query("c", c.read(), in)
		if _, isStatus := status.FromError(err); !isStatus {
			t.Errorf("%v is not a status", err)
		}
		if len(points) > 3 {
			t.Errorf("%d of 3 points", len(points))
		}
	})
}

// FuzzUpsert stores any points and reads back what came in.
func FuzzUpsert(f *testing.F) {
	addMessages(f,
		&qdrant.UpsertPoints{Points: []*qdrant.PointStruct{at(1, map[string]any{"a": []any{nil, map[string]any{"b": 1}}}, 1, 2)}},
		&qdrant.UpsertPoints{Points: []*qdrant.PointStruct{{Id: qdrant.NewIDNum(1), Vectors: qdrant.NewVectorsMap(map[string]*qdrant.Vector{
			"s": qdrant.NewVectorSparse([]uint32{3, 1}, []float32{1, 2}), "m": {Data: []float32{1, 2, 3, 4}, VectorsCount: proto.Uint32(2)},
		})}}},
		&qdrant.UpsertPoints{Points: []*qdrant.PointStruct{{Id: qdrant.NewIDNum(1), Vectors: qdrant.NewVectorsMap(map[string]*qdrant.Vector{"m": {VectorsCount: proto.Uint32(2)}})}}},
	)
	f.Fuzz(func(t *testing.T, raw []byte) {
		in := &qdrant.UpsertPoints{}
		if proto.Unmarshal(raw, in) != nil {
			return
		}
		s, c := fuzzStore(t)
		in.CollectionName, in.Wait, in.UpdateFilter, in.UpdateMode = "c", proto.Bool(true), nil, nil
		_, err := pointsService{store: s}.Upsert(t.Context(), in)
		if _, isStatus := status.FromError(err); !isStatus {
			t.Errorf("%v is not a status", err)
		}
		if err != nil {
			return
		}
		for _, p := range in.GetPoints() {
			id, err := parseID(p.GetId())
			if err != nil || c.read().at(id) == nil {
				t.Errorf("point %v is not there: %v", p.GetId(), err)
			}
		}
	})
}
