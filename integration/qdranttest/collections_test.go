package qdranttest

import (
	"slices"
	"strings"
	"testing"

	"github.com/qdrant/go-client/qdrant"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
)

func TestCollectionLifecycle(t *testing.T) {
	client := dial(t, start(t, nil))
	ctx := t.Context()
	if must(client.CollectionExists(ctx, "c"))(t) {
		t.Error("c exists before it is created")
	}
	createWith(t, client, &qdrant.CreateCollection{
		VectorsConfig: qdrant.NewVectorsConfigMap(map[string]*qdrant.VectorParams{
			"dense": params(3, qdrant.Distance_Euclid),
			"rows":  {Size: 2, Distance: qdrant.Distance_Dot, MultivectorConfig: &qdrant.MultiVectorConfig{}},
		}),
		SparseVectorsConfig: qdrant.NewSparseVectorsConfig(map[string]*qdrant.SparseVectorParams{
			"words": {Modifier: qdrant.Modifier_Idf.Enum()},
		}),
		Metadata: qdrant.NewValueMap(map[string]any{"model": "m", "rev": 1}),
	})
	if !must(client.CollectionExists(ctx, "c"))(t) {
		t.Error("c does not exist after it was created")
	}
	if got := must(client.ListCollections(ctx))(t); !slices.Equal(got, []string{"c"}) {
		t.Errorf("collections %v, want [c]", got)
	}
	err := client.CreateCollection(ctx, &qdrant.CreateCollection{CollectionName: "c"})
	wantError(t, err, codes.AlreadyExists, "Wrong input: Collection `c` already exists!")

	upsert(t, client, &qdrant.PointStruct{
		Id: qdrant.NewIDNum(1),
		Vectors: qdrant.NewVectorsMap(map[string]*qdrant.Vector{
			"words": qdrant.NewVectorSparse([]uint32{7}, []float32{1}),
		}),
		Payload: qdrant.NewValueMap(map[string]any{"lang": "de"}),
	})
	must(client.CreateFieldIndex(ctx, &qdrant.CreateFieldIndexCollection{
		CollectionName: "c", FieldName: "lang", FieldType: qdrant.FieldType_FieldTypeKeyword.Enum(), Wait: proto.Bool(true),
	}))(t)
	must(client.GetCollectionsClient().Update(ctx, &qdrant.UpdateCollection{
		CollectionName: "c", Metadata: qdrant.NewValueMap(map[string]any{"rev": 2, "model": nil, "by": "test"}),
	}))(t)

	info := must(client.GetCollectionInfo(ctx, "c"))(t)
	vectors := info.GetConfig().GetParams().GetVectorsConfig().GetParamsMap().GetMap()
	if vectors["dense"].GetSize() != 3 || vectors["dense"].GetDistance() != qdrant.Distance_Euclid || vectors["rows"].GetMultivectorConfig() == nil {
		t.Errorf("vectors %v", vectors)
	}
	if m := info.GetConfig().GetParams().GetSparseVectorsConfig().GetMap()["words"].GetModifier(); m != qdrant.Modifier_Idf {
		t.Errorf("modifier %v, want Idf", m)
	}
	if info.GetStatus() != qdrant.CollectionStatus_Green || !info.GetOptimizerStatus().GetOk() {
		t.Errorf("status %v, optimizers %v", info.GetStatus(), info.GetOptimizerStatus())
	}
	if info.GetPointsCount() != 1 || info.GetIndexedVectorsCount() != 1 {
		t.Errorf("%d points, %d indexed vectors, want 1 and 1", info.GetPointsCount(), info.GetIndexedVectorsCount())
	}
	if schema := info.GetPayloadSchema()["lang"]; schema.GetDataType() != qdrant.PayloadSchemaType_Keyword || schema.GetPoints() != 1 {
		t.Errorf("payload schema %v", info.GetPayloadSchema())
	}
	metadata := info.GetConfig().GetMetadata()
	if len(metadata) != 2 || metadata["rev"].GetIntegerValue() != 2 || metadata["by"].GetStringValue() != "test" {
		t.Errorf("metadata %v, want rev 2 and by test", metadata)
	}

	must(client.GetCollectionsClient().UpdateAliases(ctx, &qdrant.ChangeAliases{
		Actions: []*qdrant.AliasOperations{qdrant.NewAliasCreate("other", "c")},
	}))(t)
	if n := must(client.Count(ctx, &qdrant.CountPoints{CollectionName: "other"}))(t); n != 1 {
		t.Errorf("%d points behind the alias, want 1", n)
	}
	if got := must(client.ListCollectionAliases(ctx, "c"))(t); !slices.Equal(got, []string{"other"}) {
		t.Errorf("aliases %v, want [other]", got)
	}

	for _, want := range []bool{true, false} {
		out := must(client.GetCollectionsClient().Delete(ctx, &qdrant.DeleteCollection{CollectionName: "c"}))(t)
		if out.GetResult() != want {
			t.Errorf("delete said %v, want %v", out.GetResult(), want)
		}
	}
	_, err = client.GetCollectionInfo(ctx, "c")
	wantError(t, err, codes.NotFound, "Not found: Collection `c` doesn't exist!")
	_, err = client.Count(ctx, &qdrant.CountPoints{CollectionName: "other"})
	wantError(t, err, codes.NotFound, "Not found: Collection `other` doesn't exist!")
}

func TestCreateRefuses(t *testing.T) {
	client := dial(t, start(t, nil))
	one := qdrant.NewVectorsConfig(params(4, qdrant.Distance_Dot))
	for _, c := range []struct {
		name string
		in   *qdrant.CreateCollection
		want string
	}{
		{"no name", &qdrant.CreateCollection{VectorsConfig: one}, `[collection_name: value "" invalid, must be from 1 to 255 characters]`},
		{"long name", &qdrant.CreateCollection{CollectionName: strings.Repeat("x", 256), VectorsConfig: one}, "must be from 1 to 255 characters"},
		{"slash", &qdrant.CreateCollection{CollectionName: "a/b", VectorsConfig: one}, `collection name cannot contain "/" char`},
		{"no size", &qdrant.CreateCollection{CollectionName: "x", VectorsConfig: qdrant.NewVectorsConfig(params(0, qdrant.Distance_Dot))}, "value 0 invalid, must be from 1 to 65536"},
		{"no distance", &qdrant.CreateCollection{CollectionName: "x", VectorsConfig: qdrant.NewVectorsConfig(params(4, 0))}, "Malformed distance parameter: UnknownDistance"},
	} {
		t.Run(c.name, func(t *testing.T) {
			wantError(t, client.CreateCollection(t.Context(), c.in), codes.InvalidArgument, c.want)
		})
	}
}

func TestMissingCollection(t *testing.T) {
	client := dial(t, start(t, nil))
	ctx, name := t.Context(), "nope"
	for method, call := range map[string]func() error{
		"get":   func() error { _, err := client.Get(ctx, &qdrant.GetPoints{CollectionName: name}); return err },
		"query": func() error { _, err := client.Query(ctx, &qdrant.QueryPoints{CollectionName: name}); return err },
		"batch": func() error {
			_, err := client.QueryBatch(ctx, &qdrant.QueryBatchPoints{CollectionName: name})
			return err
		},
		"scroll": func() error { _, err := client.Scroll(ctx, &qdrant.ScrollPoints{CollectionName: name}); return err },
		"upsert": func() error { _, err := client.Upsert(ctx, &qdrant.UpsertPoints{CollectionName: name}); return err },
		"facet": func() error {
			_, err := client.Facet(ctx, &qdrant.FacetCounts{CollectionName: name, Key: "k"})
			return err
		},
		"matrix": func() error {
			_, err := client.SearchMatrixPairs(ctx, &qdrant.SearchMatrixPoints{CollectionName: name})
			return err
		},
	} {
		t.Run(method, func(t *testing.T) {
			wantError(t, call(), codes.NotFound, "Not found: Collection `nope` doesn't exist!")
		})
	}
}
