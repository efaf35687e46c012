package qdranttest

import (
	"slices"
	"testing"

	"github.com/qdrant/go-client/qdrant"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
)

// TestIndexes gives a key each kind of index and looks at the schema and at what
// the index is good for.
func TestIndexes(t *testing.T) {
	client := dial(t, start(t, nil))
	ctx, wait := t.Context(), proto.Bool(true)
	create(t, client, 1, qdrant.Distance_Dot)
	for id, v := range []any{"x", "6ba7b810-9dad-11d1-80b4-00c04fd430c8", "2024-05-01", 1, 2.5, true, map[string]any{"lon": 1.0, "lat": 2.0}, []any{1, "x"}} {
		upsert(t, client, at(uint64(id), map[string]any{"k": v}, 1))
	}
	const orderless, facetless = "No range index for `order_by` key: `k`", "No appropriate index for faceting: `k`"
	for _, c := range []struct {
		name    string
		in      *qdrant.CreateFieldIndexCollection
		schema  qdrant.PayloadSchemaType
		points  uint64
		ordered []string // nil: refused
		facets  int      // -1: refused
	}{
		{"keyword", &qdrant.CreateFieldIndexCollection{FieldIndexParams: qdrant.NewPayloadIndexParamsKeyword(&qdrant.KeywordIndexParams{})}, qdrant.PayloadSchemaType_Keyword, 4, nil, 3},
		{"integer", &qdrant.CreateFieldIndexCollection{FieldIndexParams: qdrant.NewPayloadIndexParamsInt(&qdrant.IntegerIndexParams{})}, qdrant.PayloadSchemaType_Integer, 2, []string{"3", "7"}, 1},
		{"integer for ranges", &qdrant.CreateFieldIndexCollection{FieldIndexParams: qdrant.NewPayloadIndexParamsInt(&qdrant.IntegerIndexParams{Lookup: proto.Bool(false), Range: proto.Bool(true)})}, qdrant.PayloadSchemaType_Integer, 2, []string{"3", "7"}, -1},
		{"integer for lookups", &qdrant.CreateFieldIndexCollection{FieldIndexParams: qdrant.NewPayloadIndexParamsInt(&qdrant.IntegerIndexParams{Lookup: proto.Bool(true), Range: proto.Bool(false)})}, qdrant.PayloadSchemaType_Integer, 2, nil, 1},
		{"float", &qdrant.CreateFieldIndexCollection{FieldIndexParams: qdrant.NewPayloadIndexParamsFloat(&qdrant.FloatIndexParams{})}, qdrant.PayloadSchemaType_Float, 3, []string{"3", "7", "4"}, -1},
		{"bool", &qdrant.CreateFieldIndexCollection{FieldIndexParams: qdrant.NewPayloadIndexParamsBool(&qdrant.BoolIndexParams{})}, qdrant.PayloadSchemaType_Bool, 1, nil, 1},
		{"time", &qdrant.CreateFieldIndexCollection{FieldIndexParams: qdrant.NewPayloadIndexParamsDatetime(&qdrant.DatetimeIndexParams{})}, qdrant.PayloadSchemaType_Datetime, 1, []string{"2"}, -1},
		{"UUID", &qdrant.CreateFieldIndexCollection{FieldIndexParams: qdrant.NewPayloadIndexParamsUUID(&qdrant.UuidIndexParams{})}, qdrant.PayloadSchemaType_Uuid, 1, nil, 1},
		{"geo", &qdrant.CreateFieldIndexCollection{FieldIndexParams: qdrant.NewPayloadIndexParamsGeo(&qdrant.GeoIndexParams{})}, qdrant.PayloadSchemaType_Geo, 1, nil, -1},
		{"text", &qdrant.CreateFieldIndexCollection{FieldType: qdrant.FieldType_FieldTypeText.Enum()}, qdrant.PayloadSchemaType_Text, 4, nil, -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.in.CollectionName, c.in.FieldName, c.in.Wait = "c", "k", wait
			must(client.CreateFieldIndex(ctx, c.in))(t)
			info := must(client.GetCollectionInfo(ctx, "c"))(t).GetPayloadSchema()["k"]
			if info.GetDataType() != c.schema || info.GetPoints() != c.points {
				t.Errorf("schema %v, want %v with %d points", info, c.schema, c.points)
			}
			points, err := client.Scroll(ctx, &qdrant.ScrollPoints{CollectionName: "c", OrderBy: &qdrant.OrderBy{Key: "k"}})
			if c.ordered == nil {
				wantError(t, err, codes.InvalidArgument, orderless)
			} else {
				var got []string
				for _, p := range must(points, err)(t) {
					got = append(got, idText(p.GetId()))
				}
				if !slices.Equal(got, c.ordered) {
					t.Errorf("ordered %v, want %v", got, c.ordered)
				}
			}
			facets, err := client.Facet(ctx, &qdrant.FacetCounts{CollectionName: "c", Key: "k"})
			if c.facets < 0 {
				wantError(t, err, codes.InvalidArgument, facetless)
			} else if got := must(facets, err)(t); len(got) != c.facets {
				t.Errorf("facets %v, want %d", got, c.facets)
			}
		})
	}
	must(client.DeleteFieldIndex(ctx, &qdrant.DeleteFieldIndexCollection{CollectionName: "c", FieldName: "k", Wait: wait}))(t)
	if schema := must(client.GetCollectionInfo(ctx, "c"))(t).GetPayloadSchema(); len(schema) != 0 {
		t.Errorf("after the index was deleted: %v", schema)
	}
	_, err := client.CreateFieldIndex(ctx, &qdrant.CreateFieldIndexCollection{CollectionName: "c", FieldName: "k"})
	wantError(t, err, codes.InvalidArgument, "Unable to infer type for the field 'k'")
	_, err = client.CreateFieldIndex(ctx, &qdrant.CreateFieldIndexCollection{CollectionName: "c", FieldType: qdrant.FieldType_FieldTypeBool.Enum()})
	wantError(t, err, codes.InvalidArgument, "[field_name: ")
}

func TestOrderByTime(t *testing.T) {
	client := dial(t, start(t, nil))
	create(t, client, 1, qdrant.Distance_Dot)
	upsert(t, client, at(1, map[string]any{"at": "2024-05-01T02:00:00+02:00"}, 1), at(2, map[string]any{"at": "2024-04-30 23:00:00"}, 1), at(3, map[string]any{"at": "soon"}, 1))
	must(client.CreateFieldIndex(t.Context(), &qdrant.CreateFieldIndexCollection{CollectionName: "c", FieldName: "at", FieldType: qdrant.FieldType_FieldTypeDatetime.Enum(), Wait: proto.Bool(true)}))(t)
	for start, want := range map[string][]int64{"2024-04-01": {1714518000000000, 1714521600000000}, "2024-05-01": {1714521600000000}} {
		var got []int64
		for _, p := range must(client.Scroll(t.Context(), &qdrant.ScrollPoints{CollectionName: "c", OrderBy: &qdrant.OrderBy{Key: "at", StartFrom: qdrant.NewStartFromDatetime(start)}}))(t) {
			got = append(got, p.GetOrderValue().GetInt())
		}
		if !slices.Equal(got, want) {
			t.Errorf("from %s: %v, want %v microseconds", start, got, want)
		}
	}
	_, err := client.Scroll(t.Context(), &qdrant.ScrollPoints{CollectionName: "c", OrderBy: &qdrant.OrderBy{Key: "at", StartFrom: qdrant.NewStartFromDatetime("soon")}})
	wantError(t, err, codes.InvalidArgument, "Malformed datetime: soon")
}

func TestTokens(t *testing.T) {
	for _, c := range []struct {
		name   string
		params *qdrant.TextIndexParams
		want   []string
	}{
		{"word", &qdrant.TextIndexParams{Tokenizer: qdrant.TokenizerType_Word}, []string{"ab", "c", "dé", "7"}},
		{"word with case", &qdrant.TextIndexParams{Tokenizer: qdrant.TokenizerType_Word, Lowercase: proto.Bool(false)}, []string{"Ab", "c", "DÉ", "7"}},
		{"whitespace", &qdrant.TextIndexParams{Tokenizer: qdrant.TokenizerType_Whitespace}, []string{"ab-c", "dé", "7!"}},
		{"prefix", &qdrant.TextIndexParams{Tokenizer: qdrant.TokenizerType_Prefix}, []string{"a", "ab", "c", "d", "dé", "7"}},
		{"lengths", &qdrant.TextIndexParams{Tokenizer: qdrant.TokenizerType_Whitespace, MinTokenLen: proto.Uint64(2), MaxTokenLen: proto.Uint64(3)}, []string{"dé", "7!"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			index := &payloadIndex{schema: qdrant.PayloadSchemaType_Text, params: qdrant.NewPayloadIndexParamsText(c.params)}
			if got := index.tokens("Ab-c DÉ 7!"); !slices.Equal(got, c.want) {
				t.Errorf("tokens %q, want %q", got, c.want)
			}
		})
	}
}
