package qdranttest

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/qdrant/go-client/qdrant"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
)

func TestUpsertAndGet(t *testing.T) {
	client := dial(t, start(t, nil))
	ctx := t.Context()
	create(t, client, 2, qdrant.Distance_Cosine)
	upsert(t, client,
		at(2, map[string]any{"big": int64(9007199254740993), "float": 42.0, "null": nil, "list": []any{"a", map[string]any{"k": 1}}}, 3, 4),
		at(math.MaxUint64, nil, 0, 0),
		&qdrant.PointStruct{Id: qdrant.NewIDUUID("{6BA7B810-9DAD-11D1-80B4-00C04FD430C8}"), Vectors: qdrant.NewVectors(1, 0)},
	)
	points := must(client.Get(ctx, &qdrant.GetPoints{
		CollectionName: "c",
		Ids:            []*qdrant.PointId{qdrant.NewIDUUID("6ba7b8109dad11d180b400c04fd430c8"), qdrant.NewIDNum(2), qdrant.NewIDNum(99), qdrant.NewIDNum(2), qdrant.NewIDNum(math.MaxUint64)},
		WithPayload:    qdrant.NewWithPayload(true),
		WithVectors:    qdrant.NewWithVectors(true),
	}))(t)
	if len(points) != 3 || points[0].GetId().GetUuid() != "6ba7b810-9dad-11d1-80b4-00c04fd430c8" || points[2].GetId().GetNum() != math.MaxUint64 {
		t.Fatalf("points %v", points)
	}
	p := points[1]
	if got := p.GetVectors().GetVector().GetDense().GetData(); !slices.Equal(got, []float32{0.6, 0.8}) {
		t.Errorf("vector %v, want the normalised [0.6 0.8]", got)
	}
	if got := points[2].GetVectors().GetVector().GetDense().GetData(); !slices.Equal(got, []float32{0, 0}) {
		t.Errorf("vector %v, want [0 0] as it was", got)
	}
	payload := p.GetPayload()
	if payload["big"].GetIntegerValue() != 9007199254740993 {
		t.Errorf("big is %v", payload["big"])
	}
	if _, float := payload["float"].GetKind().(*qdrant.Value_DoubleValue); !float {
		t.Errorf("float is %v, want a double", payload["float"])
	}
	if !isNull(payload["null"]) {
		t.Errorf("null is %v", payload["null"])
	}
	bare := must(client.Get(ctx, &qdrant.GetPoints{CollectionName: "c", Ids: []*qdrant.PointId{qdrant.NewIDNum(2)}}))(t)
	if len(bare[0].GetPayload()) != 0 || bare[0].GetVectors() != nil {
		t.Errorf("without selectors: %v", bare[0])
	}
}

func TestPayloadSelectors(t *testing.T) {
	client := dial(t, start(t, nil))
	create(t, client, 1, qdrant.Distance_Dot)
	upsert(t, client, at(1, map[string]any{
		"a": map[string]any{"x": 1, "y": 2}, "b": "b",
		"l": []any{map[string]any{"x": 1, "y": 2}, map[string]any{"y": 3}},
	}, 1))
	for _, c := range []struct {
		name string
		with *qdrant.WithPayloadSelector
		want map[string]any
	}{
		{"one key", qdrant.NewWithPayloadInclude("b"), map[string]any{"b": "b"}},
		{"inner key", qdrant.NewWithPayloadInclude("a.x"), map[string]any{"a": map[string]any{"x": 1}}},
		{"elements", qdrant.NewWithPayloadInclude("l[].x"), map[string]any{"l": []any{map[string]any{"x": 1}, map[string]any{}}}},
		{"missing", qdrant.NewWithPayloadInclude("zz"), nil},
		{"exclude", qdrant.NewWithPayloadExclude("a", "l[].y"), map[string]any{"b": "b", "l": []any{map[string]any{"x": 1}, map[string]any{}}}},
		{"off", qdrant.NewWithPayload(false), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			points := must(client.Get(t.Context(), &qdrant.GetPoints{CollectionName: "c", Ids: []*qdrant.PointId{qdrant.NewIDNum(1)}, WithPayload: c.with}))(t)
			got := &qdrant.Struct{Fields: points[0].GetPayload()}
			if want := (&qdrant.Struct{Fields: qdrant.NewValueMap(c.want)}); !proto.Equal(got, want) {
				t.Errorf("payload %v, want %v", got, want)
			}
		})
	}
	_, err := client.Get(t.Context(), &qdrant.GetPoints{CollectionName: "c", WithPayload: qdrant.NewWithPayloadInclude("a..b")})
	wantError(t, err, codes.InvalidArgument, "Invalid json path: 'a..b'")
}

func TestNamedVectors(t *testing.T) {
	client := dial(t, start(t, nil))
	createWith(t, client, &qdrant.CreateCollection{
		VectorsConfig: qdrant.NewVectorsConfigMap(map[string]*qdrant.VectorParams{
			"a": params(2, qdrant.Distance_Dot),
			"m": {Size: 2, Distance: qdrant.Distance_Cosine, MultivectorConfig: &qdrant.MultiVectorConfig{}},
		}),
		SparseVectorsConfig: qdrant.NewSparseVectorsConfig(map[string]*qdrant.SparseVectorParams{"s": {}}),
	})
	upsert(t, client, &qdrant.PointStruct{Id: qdrant.NewIDNum(1), Vectors: qdrant.NewVectorsMap(map[string]*qdrant.Vector{
		"a": qdrant.NewVector(1, 2),
		"m": qdrant.NewVectorMulti([][]float32{{3, 4}, {1, 0}}),
		"s": qdrant.NewVectorSparse([]uint32{9, 2}, []float32{0.9, 0.2}),
	})})
	read := func(with *qdrant.WithVectorsSelector) map[string]*qdrant.VectorOutput {
		points := must(client.Get(t.Context(), &qdrant.GetPoints{CollectionName: "c", Ids: []*qdrant.PointId{qdrant.NewIDNum(1)}, WithVectors: with}))(t)
		return points[0].GetVectors().GetVectors().GetVectors()
	}
	all := read(qdrant.NewWithVectors(true))
	if len(all) != 3 || !slices.Equal(all["m"].GetMultiDense().GetVectors()[0].GetData(), []float32{0.6, 0.8}) {
		t.Errorf("vectors %v", all)
	}
	if s := all["s"].GetSparse(); !slices.Equal(s.GetIndices(), []uint32{2, 9}) || !slices.Equal(s.GetValues(), []float32{0.2, 0.9}) {
		t.Errorf("sparse %v, want it in the order of its indices", s)
	}
	if some := read(qdrant.NewWithVectorsInclude("a")); len(some) != 1 || some["a"] == nil {
		t.Errorf("vectors %v, want a alone", some)
	}
	foo := qdrant.NewWithVectorsInclude("foo")
	_, err := client.Get(t.Context(), &qdrant.GetPoints{CollectionName: "c", Ids: []*qdrant.PointId{qdrant.NewIDNum(1)}, WithVectors: foo})
	wantError(t, err, codes.InvalidArgument, "Not existing vector name error: foo")
	_, err = client.Scroll(t.Context(), &qdrant.ScrollPoints{CollectionName: "c", WithVectors: foo})
	wantError(t, err, codes.InvalidArgument, "Not existing vector name error: foo")
	_, err = client.Query(t.Context(), &qdrant.QueryPoints{CollectionName: "c", WithVectors: foo})
	wantError(t, err, codes.InvalidArgument, "Not existing vector name error: foo")
	if points, err := client.Get(t.Context(), &qdrant.GetPoints{CollectionName: "c", Ids: []*qdrant.PointId{qdrant.NewIDNum(9)}, WithVectors: foo}); err != nil || len(points) != 0 {
		t.Errorf("an unknown vector of no points: %v, %v, want nothing", points, err)
	}

	must(client.UpdateVectors(t.Context(), &qdrant.UpdatePointVectors{CollectionName: "c", Wait: proto.Bool(true), Points: []*qdrant.PointVectors{
		{Id: qdrant.NewIDNum(1), Vectors: qdrant.NewVectorsMap(map[string]*qdrant.Vector{"a": qdrant.NewVector(5, 6)})},
	}}))(t)
	must(client.DeleteVectors(t.Context(), &qdrant.DeletePointVectors{
		CollectionName: "c", Wait: proto.Bool(true), PointsSelector: qdrant.NewPointsSelector(qdrant.NewIDNum(1)), Vectors: &qdrant.VectorsSelector{Names: []string{"m"}},
	}))(t)
	if all = read(qdrant.NewWithVectors(true)); len(all) != 2 || !slices.Equal(all["a"].GetDense().GetData(), []float32{5, 6}) {
		t.Errorf("vectors %v, want the new a and s", all)
	}
}

func TestUpsertRefuses(t *testing.T) {
	client := dial(t, start(t, nil))
	createWith(t, client, &qdrant.CreateCollection{
		VectorsConfig:       qdrant.NewVectorsConfigMap(map[string]*qdrant.VectorParams{"a": params(4, qdrant.Distance_Dot)}),
		SparseVectorsConfig: qdrant.NewSparseVectorsConfig(map[string]*qdrant.SparseVectorParams{"s": {}}),
	})
	named := func(name string, v *qdrant.Vector) *qdrant.PointStruct {
		return &qdrant.PointStruct{Id: qdrant.NewIDNum(1), Vectors: qdrant.NewVectorsMap(map[string]*qdrant.Vector{name: v})}
	}
	for _, c := range []struct {
		name string
		p    *qdrant.PointStruct
		want string
	}{
		{"dimension", named("a", qdrant.NewVector(1, 2, 3)), "Wrong input: Vector dimension error: expected dim: 4, got 3"},
		{"name", named("foo", qdrant.NewVector(1)), "Wrong input: Not existing vector name error: foo"},
		{"unnamed", at(1, nil, 1, 2, 3, 4), "Wrong input: Not existing vector name error: "},
		{"sparse for dense", named("a", qdrant.NewVectorSparse([]uint32{1}, []float32{1})), "Conversion between sparse and regular vectors failed"},
		{"dense for sparse", named("s", qdrant.NewVector(1)), "Conversion between sparse and regular vectors failed"},
		{"multi for dense", named("a", qdrant.NewVectorMulti([][]float32{{1, 2, 3, 4}})), "Conversion between multi and regular vectors failed"},
		{"twice the same index", named("s", qdrant.NewVectorSparse([]uint32{1, 1}, []float32{1, 2})), "must be unique"},
		{"sparse lengths", named("s", &qdrant.Vector{Vector: &qdrant.Vector_Sparse{Sparse: &qdrant.SparseVector{Indices: []uint32{1}}}}), "must be the same length as indices"},
		{"no vectors", &qdrant.PointStruct{Id: qdrant.NewIDNum(1)}, "Expected some vectors"},
		{"no ID", &qdrant.PointStruct{Vectors: qdrant.NewVectors(1)}, "Empty ID is not allowed"},
		{"UUID", &qdrant.PointStruct{Id: qdrant.NewIDUUID("chunk-1"), Vectors: qdrant.NewVectors(1)}, "Unable to parse UUID: chunk-1"},
		{"NaN payload", &qdrant.PointStruct{Id: qdrant.NewIDNum(1), Vectors: qdrant.NewVectorsMap(nil), Payload: qdrant.NewValueMap(map[string]any{"x": math.NaN()})}, "cannot convert to json number"},
	} {
		t.Run(c.name, func(t *testing.T) {
			wantError(t, tryUpsert(t.Context(), client, c.p), codes.InvalidArgument, c.want)
		})
	}
	if n := must(client.Count(t.Context(), &qdrant.CountPoints{CollectionName: "c"}))(t); n != 0 {
		t.Errorf("%d points after refused upserts, want 0", n)
	}
}

func TestUpsertModes(t *testing.T) {
	client := dial(t, start(t, nil))
	create(t, client, 1, qdrant.Distance_Dot)
	upsert(t, client, at(1, map[string]any{"v": 1}, 1))
	write := func(in *qdrant.UpsertPoints) map[string]int64 {
		in.CollectionName, in.Wait = "c", proto.Bool(true)
		in.Points = []*qdrant.PointStruct{at(1, map[string]any{"v": 2}, 1), at(2, map[string]any{"v": 2}, 1)}
		must(client.Upsert(t.Context(), in))(t)
		seen := map[string]int64{}
		for _, p := range must(client.Scroll(t.Context(), &qdrant.ScrollPoints{CollectionName: "c"}))(t) {
			seen[idText(p.GetId())] = p.GetPayload()["v"].GetIntegerValue()
		}
		return seen
	}
	if got := write(&qdrant.UpsertPoints{UpdateMode: qdrant.UpdateMode_InsertOnly.Enum()}); got["1"] != 1 || got["2"] != 2 {
		t.Errorf("insert only: %v", got)
	}
	filter := &qdrant.Filter{Must: []*qdrant.Condition{qdrant.NewMatchInt("v", 7)}}
	if got := write(&qdrant.UpsertPoints{UpdateFilter: filter}); got["1"] != 1 {
		t.Errorf("filter that does not match: %v", got)
	}
	must(client.Delete(t.Context(), &qdrant.DeletePoints{CollectionName: "c", Wait: proto.Bool(true), Points: qdrant.NewPointsSelector(qdrant.NewIDNum(2), qdrant.NewIDNum(77))}))(t)
	if got := write(&qdrant.UpsertPoints{UpdateMode: qdrant.UpdateMode_UpdateOnly.Enum()}); got["1"] != 2 || len(got) != 1 {
		t.Errorf("update only: %v", got)
	}
}

func TestPayloadChanges(t *testing.T) {
	client := dial(t, start(t, nil))
	ctx, wait := t.Context(), proto.Bool(true)
	create(t, client, 1, qdrant.Distance_Dot)
	upsert(t, client, at(1, map[string]any{"a": 1, "b": map[string]any{"x": 1}}, 1), at(2, nil, 1))
	one := qdrant.NewPointsSelector(qdrant.NewIDNum(1))
	payload := func() *qdrant.Struct {
		points := must(client.Get(ctx, &qdrant.GetPoints{CollectionName: "c", Ids: []*qdrant.PointId{qdrant.NewIDNum(1)}, WithPayload: qdrant.NewWithPayload(true)}))(t)
		return &qdrant.Struct{Fields: points[0].GetPayload()}
	}
	want := func(what string, fields map[string]any) {
		t.Helper()
		if got := payload(); !proto.Equal(got, &qdrant.Struct{Fields: qdrant.NewValueMap(fields)}) {
			t.Errorf("after %s: %v, want %v", what, got, fields)
		}
	}
	must(client.SetPayload(ctx, &qdrant.SetPayloadPoints{CollectionName: "c", Wait: wait, Payload: qdrant.NewValueMap(map[string]any{"c": 3, "a": nil}), PointsSelector: one}))(t)
	want("set", map[string]any{"b": map[string]any{"x": 1}, "c": 3})
	must(client.SetPayload(ctx, &qdrant.SetPayloadPoints{CollectionName: "c", Wait: wait, Key: proto.String("b"), Payload: qdrant.NewValueMap(map[string]any{"y": 2}), PointsSelector: one}))(t)
	want("set at b", map[string]any{"b": map[string]any{"x": 1, "y": 2}, "c": 3})
	must(client.DeletePayload(ctx, &qdrant.DeletePayloadPoints{CollectionName: "c", Wait: wait, Keys: []string{"b.x", "c"}, PointsSelector: one}))(t)
	want("delete", map[string]any{"b": map[string]any{"y": 2}})
	must(client.OverwritePayload(ctx, &qdrant.SetPayloadPoints{CollectionName: "c", Wait: wait, Payload: qdrant.NewValueMap(map[string]any{"n": 1}), PointsSelector: one}))(t)
	want("overwrite", map[string]any{"n": 1})
	filter := &qdrant.Filter{Must: []*qdrant.Condition{qdrant.NewMatchInt("n", 1)}}
	must(client.ClearPayload(ctx, &qdrant.ClearPayloadPoints{CollectionName: "c", Wait: wait, Points: qdrant.NewPointsSelectorFilter(filter)}))(t)
	want("clear", nil)

	_, err := client.SetPayload(ctx, &qdrant.SetPayloadPoints{CollectionName: "c", Wait: wait, PointsSelector: qdrant.NewPointsSelector(qdrant.NewIDNum(5))})
	wantError(t, err, codes.NotFound, "Not found: No point with id 5 found")

	out := must(client.UpdateBatch(ctx, &qdrant.UpdateBatchPoints{CollectionName: "c", Wait: wait, Operations: []*qdrant.PointsUpdateOperation{
		qdrant.NewPointsUpdateUpsert(&qdrant.PointsUpdateOperation_PointStructList{Points: []*qdrant.PointStruct{at(3, nil, 1)}}),
		qdrant.NewPointsUpdateDeletePoints(&qdrant.PointsUpdateOperation_DeletePoints{Points: qdrant.NewPointsSelector(qdrant.NewIDNum(2))}),
	}}))(t)
	if got := scrollIDs(t, client, nil); len(out) != 2 || !slices.Equal(got, []string{"1", "3"}) {
		t.Errorf("after the batch: %d results, points %v", len(out), got)
	}
}

func TestWriteWithoutWaiting(t *testing.T) {
	s := start(t, &Options{WriteDelay: time.Hour})
	client := dial(t, s)
	create(t, client, 1, qdrant.Distance_Dot)
	lazy := func(p *qdrant.PointStruct) {
		t.Helper()
		out := must(client.Upsert(t.Context(), &qdrant.UpsertPoints{CollectionName: "c", Points: []*qdrant.PointStruct{p}}))(t)
		if out.GetStatus() != qdrant.UpdateStatus_Acknowledged {
			t.Errorf("status %v, want Acknowledged", out.GetStatus())
		}
	}
	lazy(at(1, nil, 1))
	lazy(at(2, nil, 1, 2)) // wrong dimension: lost without a word
	if got := scrollIDs(t, client, nil); len(got) != 0 {
		t.Errorf("visible at once: %v", got)
	}
	if n := must(client.GetCollectionInfo(t.Context(), "c"))(t).GetUpdateQueue().GetLength(); n != 2 {
		t.Errorf("%d writes queued, want 2", n)
	}
	s.Settle()
	if got := scrollIDs(t, client, nil); !slices.Equal(got, []string{"1"}) {
		t.Errorf("after Settle: %v, want [1]", got)
	}
	lazy(at(3, nil, 1))
	upsert(t, client, at(4, nil, 1))
	if got := scrollIDs(t, client, nil); !slices.Equal(got, []string{"1", "3", "4"}) {
		t.Errorf("after a write that waits: %v, want [1 3 4]", got)
	}

	client = dial(t, start(t, &Options{WriteDelay: -1}))
	create(t, client, 1, qdrant.Distance_Dot)
	lazy(at(1, nil, 1))
	if got := scrollIDs(t, client, nil); !slices.Equal(got, []string{"1"}) {
		t.Errorf("without a delay: %v, want [1]", got)
	}
}

func TestScroll(t *testing.T) {
	client := dial(t, start(t, nil))
	ctx := t.Context()
	create(t, client, 1, qdrant.Distance_Dot)
	upsert(t, client,
		&qdrant.PointStruct{Id: qdrant.NewIDUUID("00000000-0000-0000-0000-00000000000b"), Vectors: qdrant.NewVectors(1)},
		&qdrant.PointStruct{Id: qdrant.NewIDUUID("00000000-0000-0000-0000-00000000000a"), Vectors: qdrant.NewVectors(1)},
		at(math.MaxUint64, nil, 1), at(10, map[string]any{"x": 1}, 1), at(9, map[string]any{"x": 1}, 1))
	want := []string{"9", "10", "18446744073709551615", "00000000-0000-0000-0000-00000000000a", "00000000-0000-0000-0000-00000000000b"}
	for limit := uint32(1); limit <= 6; limit++ {
		var got []string
		var offset *qdrant.PointId
		pages := 0
		for {
			page := must(client.GetPointsClient().Scroll(ctx, &qdrant.ScrollPoints{CollectionName: "c", Limit: &limit, Offset: offset}))(t)
			for _, p := range page.GetResult() {
				got = append(got, idText(p.GetId()))
			}
			pages++
			if offset = page.GetNextPageOffset(); offset == nil {
				break
			}
		}
		if !slices.Equal(got, want) || pages != (5+int(limit)-1)/int(limit) {
			t.Errorf("limit %d: %v in %d pages", limit, got, pages)
		}
	}
	page := must(client.GetPointsClient().Scroll(ctx, &qdrant.ScrollPoints{CollectionName: "c", Offset: qdrant.NewIDNum(10), Filter: &qdrant.Filter{Must: []*qdrant.Condition{qdrant.NewMatchInt("x", 1)}}}))(t)
	if len(page.GetResult()) != 1 || page.GetResult()[0].GetPayload()["x"] == nil || page.GetNextPageOffset() != nil {
		t.Errorf("from 10 with a filter: %v, want point 10 with its payload and no next page", page)
	}
	_, err := client.Scroll(ctx, &qdrant.ScrollPoints{CollectionName: "c", Limit: proto.Uint32(0)})
	wantError(t, err, codes.InvalidArgument, "Validation error in body: [limit: value 0 invalid, must be 1 or larger]")
}

func TestOrderBy(t *testing.T) {
	client := dial(t, start(t, nil))
	ctx := t.Context()
	create(t, client, 1, qdrant.Distance_Dot)
	upsert(t, client, at(1, map[string]any{"n": 5}, 1), at(2, map[string]any{"n": []any{1, 7}}, 1), at(3, map[string]any{"n": 5}, 1),
		at(4, map[string]any{"n": 2.5}, 1), at(5, nil, 1))
	order := &qdrant.OrderBy{Key: "n"}
	_, err := client.Scroll(ctx, &qdrant.ScrollPoints{CollectionName: "c", OrderBy: order})
	wantError(t, err, codes.InvalidArgument, "No range index for `order_by` key: `n`")
	must(client.CreateFieldIndex(ctx, &qdrant.CreateFieldIndexCollection{CollectionName: "c", FieldName: "n", FieldType: qdrant.FieldType_FieldTypeInteger.Enum(), Wait: proto.Bool(true)}))(t)
	for _, c := range []struct {
		name  string
		order *qdrant.OrderBy
		want  []string
	}{
		{"ascending", order, []string{"2:1", "1:5", "3:5", "2:7"}},
		{"descending", &qdrant.OrderBy{Key: "n", Direction: qdrant.Direction_Desc.Enum()}, []string{"2:7", "3:5", "1:5", "2:1"}},
		{"from 5", &qdrant.OrderBy{Key: "n", StartFrom: qdrant.NewStartFromInt(5)}, []string{"1:5", "3:5", "2:7"}},
		{"down from 5", &qdrant.OrderBy{Key: "n", Direction: qdrant.Direction_Desc.Enum(), StartFrom: qdrant.NewStartFromFloat(5)}, []string{"3:5", "1:5", "2:1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, p := range must(client.Scroll(ctx, &qdrant.ScrollPoints{CollectionName: "c", OrderBy: c.order}))(t) {
				got = append(got, idText(p.GetId())+":"+facetText(p.GetOrderValue().GetInt()))
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("scroll %v, want %v", got, c.want)
			}
			got = nil
			for _, p := range query(t, client, &qdrant.QueryPoints{Query: qdrant.NewQueryOrderBy(c.order)}) {
				got = append(got, idText(p.GetId())+":"+facetText(p.GetOrderValue().GetInt()))
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("query %v, want %v", got, c.want)
			}
		})
	}
	_, err = client.Scroll(ctx, &qdrant.ScrollPoints{CollectionName: "c", OrderBy: order, Offset: qdrant.NewIDNum(1)})
	wantError(t, err, codes.InvalidArgument, "Cannot use an `offset` when using `order_by`")
}

func TestFacet(t *testing.T) {
	client := dial(t, start(t, nil))
	ctx, wait := t.Context(), proto.Bool(true)
	create(t, client, 1, qdrant.Distance_Dot)
	upsert(t, client, at(1, map[string]any{"tag": []any{"b", "a", "a"}, "n": 1, "ok": true}, 1), at(2, map[string]any{"tag": "b", "n": 2}, 1),
		at(3, map[string]any{"tag": "c", "n": 2.0}, 1), at(4, map[string]any{"tag": 7, "ok": true}, 1))
	_, err := client.Facet(ctx, &qdrant.FacetCounts{CollectionName: "c", Key: "tag"})
	wantError(t, err, codes.InvalidArgument, "No appropriate index for faceting: `tag`")
	for key, kind := range map[string]qdrant.FieldType{"tag": qdrant.FieldType_FieldTypeKeyword, "n": qdrant.FieldType_FieldTypeInteger, "ok": qdrant.FieldType_FieldTypeBool} {
		must(client.CreateFieldIndex(ctx, &qdrant.CreateFieldIndexCollection{CollectionName: "c", FieldName: key, FieldType: kind.Enum(), Wait: wait}))(t)
	}
	for _, c := range []struct {
		name string
		in   *qdrant.FacetCounts
		want []string
	}{
		{"most first, then by value", &qdrant.FacetCounts{Key: "tag"}, []string{"b 2", "a 1", "c 1"}},
		{"limit", &qdrant.FacetCounts{Key: "tag", Limit: proto.Uint64(1), Exact: proto.Bool(true)}, []string{"b 2"}},
		{"filter", &qdrant.FacetCounts{Key: "tag", Filter: &qdrant.Filter{Must: []*qdrant.Condition{qdrant.NewMatchInt("n", 1)}}}, []string{"a 1", "b 1"}},
		{"integers, not 2.0", &qdrant.FacetCounts{Key: "n"}, []string{"1 1", "2 1"}},
		{"bools", &qdrant.FacetCounts{Key: "ok"}, []string{"true 2"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.in.CollectionName = "c"
			var got []string
			for _, h := range must(client.Facet(ctx, c.in))(t) {
				value := facetText(h.GetValue().GetIntegerValue())
				switch v := h.GetValue().GetVariant().(type) {
				case *qdrant.FacetValue_StringValue:
					value = v.StringValue
				case *qdrant.FacetValue_BoolValue:
					value = map[bool]string{true: "true", false: "false"}[v.BoolValue]
				}
				got = append(got, value+" "+facetText(int64(h.GetCount())))
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("facet %v, want %v", got, c.want)
			}
		})
	}
}

func facetText(n int64) string { return pointID{num: uint64(n)}.String() }
