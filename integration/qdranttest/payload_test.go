package qdranttest

import (
	"testing"

	"github.com/qdrant/go-client/qdrant"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
)

// TestPayloadPaths sets {"z": 9} at a path and removes a path from the same
// payload.
func TestPayloadPaths(t *testing.T) {
	base := func() map[string]any {
		return map[string]any{"a": map[string]any{"b": 1}, "l": []any{map[string]any{"x": 1}, map[string]any{"x": 2}}, "s": "s"}
	}
	with := func(key string, v any) map[string]any {
		m := base()
		m[key] = v
		return m
	}
	without := func(key string) map[string]any {
		m := base()
		delete(m, key)
		return m
	}
	for _, c := range []struct {
		at           string
		set, removed map[string]any
	}{
		{"a", with("a", map[string]any{"b": 1, "z": 9}), without("a")},
		{"a.b", with("a", map[string]any{"b": map[string]any{"z": 9}}), with("a", map[string]any{})},
		{"n.m", with("n", map[string]any{"m": map[string]any{"z": 9}}), base()},
		{"l[]", with("l", []any{map[string]any{"x": 1, "z": 9}, map[string]any{"x": 2, "z": 9}}), with("l", []any{})},
		{"l[1]", with("l", []any{map[string]any{"x": 1}, map[string]any{"x": 2, "z": 9}}), with("l", []any{map[string]any{"x": 1}})},
		{"l[].x", with("l", []any{map[string]any{"x": map[string]any{"z": 9}}, map[string]any{"x": map[string]any{"z": 9}}}), with("l", []any{map[string]any{}, map[string]any{}})},
		{"l[0].x", with("l", []any{map[string]any{"x": map[string]any{"z": 9}}, map[string]any{"x": 2}}), with("l", []any{map[string]any{}, map[string]any{"x": 2}})},
		{"s.t", with("s", map[string]any{"t": map[string]any{"z": 9}}), base()},
	} {
		t.Run(c.at, func(t *testing.T) {
			where := must(parsePath(c.at))(t)
			original := qdrant.NewValueMap(base())
			check := func(what string, got map[string]*qdrant.Value, want map[string]any) {
				if !proto.Equal(&qdrant.Struct{Fields: got}, &qdrant.Struct{Fields: qdrant.NewValueMap(want)}) {
					t.Errorf("%s: %v, want %v", what, got, want)
				}
			}
			check("set", mergeAt(original, where, qdrant.NewValueMap(map[string]any{"z": 9})), c.set)
			check("removed", removeAt(original, where), c.removed)
			check("the payload itself", original, base())
		})
	}
}

// TestUpdateBatchOperations runs every kind of operation in one call.
func TestUpdateBatchOperations(t *testing.T) {
	client := dial(t, start(t, nil))
	ctx, wait := t.Context(), proto.Bool(true)
	createWith(t, client, &qdrant.CreateCollection{VectorsConfig: qdrant.NewVectorsConfigMap(map[string]*qdrant.VectorParams{"a": params(1, qdrant.Distance_Dot), "b": params(1, qdrant.Distance_Dot)})})
	vectors := func(a, b float32) *qdrant.Vectors {
		return qdrant.NewVectorsMap(map[string]*qdrant.Vector{"a": qdrant.NewVector(a), "b": qdrant.NewVector(b)})
	}
	var points []*qdrant.PointStruct
	for id := range uint64(6) {
		points = append(points, &qdrant.PointStruct{Id: qdrant.NewIDNum(id), Vectors: vectors(1, 1), Payload: qdrant.NewValueMap(map[string]any{"p": 1, "q": 1})})
	}
	just := func(id uint64) *qdrant.PointsSelector { return qdrant.NewPointsSelector(qdrant.NewIDNum(id)) }
	two := qdrant.NewValueMap(map[string]any{"p": 2})
	must(client.UpdateBatch(ctx, &qdrant.UpdateBatchPoints{CollectionName: "c", Wait: wait, Operations: []*qdrant.PointsUpdateOperation{
		{Operation: &qdrant.PointsUpdateOperation_Upsert{Upsert: &qdrant.PointsUpdateOperation_PointStructList{Points: points}}},
		{Operation: &qdrant.PointsUpdateOperation_SetPayload_{SetPayload: &qdrant.PointsUpdateOperation_SetPayload{Payload: two, PointsSelector: just(0)}}},
		{Operation: &qdrant.PointsUpdateOperation_OverwritePayload_{OverwritePayload: &qdrant.PointsUpdateOperation_OverwritePayload{Payload: two, PointsSelector: just(1)}}},
		{Operation: &qdrant.PointsUpdateOperation_DeletePayload_{DeletePayload: &qdrant.PointsUpdateOperation_DeletePayload{Keys: []string{"p"}, PointsSelector: just(2)}}},
		{Operation: &qdrant.PointsUpdateOperation_ClearPayload_{ClearPayload: &qdrant.PointsUpdateOperation_ClearPayload{Points: just(3)}}},
		{Operation: &qdrant.PointsUpdateOperation_UpdateVectors_{UpdateVectors: &qdrant.PointsUpdateOperation_UpdateVectors{Points: []*qdrant.PointVectors{{Id: qdrant.NewIDNum(3), Vectors: vectors(7, 7)}}}}},
		{Operation: &qdrant.PointsUpdateOperation_DeleteVectors_{DeleteVectors: &qdrant.PointsUpdateOperation_DeleteVectors{PointsSelector: just(4), Vectors: &qdrant.VectorsSelector{Names: []string{"b"}}}}},
		{Operation: &qdrant.PointsUpdateOperation_DeletePoints_{DeletePoints: &qdrant.PointsUpdateOperation_DeletePoints{Points: just(5)}}},
	}}))(t)
	type seen struct{ p, q, a, b float64 }
	want := []seen{{2, 1, 1, 1}, {2, 0, 1, 1}, {0, 1, 1, 1}, {0, 0, 7, 7}, {1, 1, 1, 0}}
	got := must(client.Scroll(ctx, &qdrant.ScrollPoints{CollectionName: "c", WithVectors: qdrant.NewWithVectors(true)}))(t)
	if len(got) != len(want) {
		t.Fatalf("%d points, want %d", len(got), len(want))
	}
	for i, p := range got {
		first := func(name string) float64 {
			if data := p.GetVectors().GetVectors().GetVectors()[name].GetDense().GetData(); len(data) > 0 {
				return float64(data[0])
			}
			return 0
		}
		now := seen{float64(p.GetPayload()["p"].GetIntegerValue()), float64(p.GetPayload()["q"].GetIntegerValue()), first("a"), first("b")}
		if now != want[i] {
			t.Errorf("point %d is %v, want %v", i, now, want[i])
		}
	}
	_, err := client.UpdateBatch(ctx, &qdrant.UpdateBatchPoints{CollectionName: "c", Operations: []*qdrant.PointsUpdateOperation{{}}})
	wantError(t, err, codes.InvalidArgument, "Operation is missing")
	_, err = client.UpdateBatch(ctx, &qdrant.UpdateBatchPoints{CollectionName: "c"})
	wantError(t, err, codes.InvalidArgument, "[operations: ")
}

func TestAliases(t *testing.T) {
	client := dial(t, start(t, nil))
	create(t, client, 1, qdrant.Distance_Dot)
	change := func(a ...*qdrant.AliasOperations) error {
		_, err := client.GetCollectionsClient().UpdateAliases(t.Context(), &qdrant.ChangeAliases{Actions: a})
		return err
	}
	if err := change(qdrant.NewAliasCreate("a", "c"), qdrant.NewAliasRename("a", "b")); err != nil {
		t.Fatal(err)
	}
	if got := must(client.ListAliases(t.Context()))(t); len(got) != 1 || got[0].GetAliasName() != "b" || got[0].GetCollectionName() != "c" {
		t.Errorf("aliases %v, want b for c", got)
	}
	wantError(t, change(qdrant.NewAliasDelete("b"), qdrant.NewAliasRename("zz", "y")), codes.NotFound, "Alias zz does not exists!")
	wantError(t, change(qdrant.NewAliasCreate("x", "nope")), codes.NotFound, "Collection `nope` doesn't exist!")
	wantError(t, change(qdrant.NewAliasCreate("c", "c")), codes.InvalidArgument, "already exists!")
	wantError(t, client.CreateCollection(t.Context(), &qdrant.CreateCollection{CollectionName: "b"}), codes.InvalidArgument, "Alias with the same name already exists")
	if err := change(qdrant.NewAliasDelete("b")); err != nil {
		t.Fatal(err)
	}
	_, err := client.GetCollectionInfo(t.Context(), "b")
	wantError(t, err, codes.NotFound, "Collection `b` doesn't exist!")
}
