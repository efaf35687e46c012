package qdranttest

import (
	"context"
	"maps"
	"math"
	"strings"
	"time"
	"unicode"

	"github.com/qdrant/go-client/qdrant"
	"google.golang.org/protobuf/proto"
)

// payloadIndex is the index of one payload key.
type payloadIndex struct {
	at     path
	schema qdrant.PayloadSchemaType
	params *qdrant.PayloadIndexParams // nil when the client gave only a type
}

// schemas maps what a client asks for to what the collection reports.
var schemas = map[qdrant.FieldType]qdrant.PayloadSchemaType{
	qdrant.FieldType_FieldTypeKeyword:  qdrant.PayloadSchemaType_Keyword,
	qdrant.FieldType_FieldTypeInteger:  qdrant.PayloadSchemaType_Integer,
	qdrant.FieldType_FieldTypeFloat:    qdrant.PayloadSchemaType_Float,
	qdrant.FieldType_FieldTypeGeo:      qdrant.PayloadSchemaType_Geo,
	qdrant.FieldType_FieldTypeText:     qdrant.PayloadSchemaType_Text,
	qdrant.FieldType_FieldTypeBool:     qdrant.PayloadSchemaType_Bool,
	qdrant.FieldType_FieldTypeDatetime: qdrant.PayloadSchemaType_Datetime,
	qdrant.FieldType_FieldTypeUuid:     qdrant.PayloadSchemaType_Uuid,
}

func schemaOf(params *qdrant.PayloadIndexParams) qdrant.PayloadSchemaType {
	switch params.GetIndexParams().(type) {
	case *qdrant.PayloadIndexParams_KeywordIndexParams:
		return qdrant.PayloadSchemaType_Keyword
	case *qdrant.PayloadIndexParams_IntegerIndexParams:
		return qdrant.PayloadSchemaType_Integer
	case *qdrant.PayloadIndexParams_FloatIndexParams:
		return qdrant.PayloadSchemaType_Float
	case *qdrant.PayloadIndexParams_GeoIndexParams:
		return qdrant.PayloadSchemaType_Geo
	case *qdrant.PayloadIndexParams_TextIndexParams:
		return qdrant.PayloadSchemaType_Text
	case *qdrant.PayloadIndexParams_BoolIndexParams:
		return qdrant.PayloadSchemaType_Bool
	case *qdrant.PayloadIndexParams_DatetimeIndexParams:
		return qdrant.PayloadSchemaType_Datetime
	case *qdrant.PayloadIndexParams_UuidIndexParams:
		return qdrant.PayloadSchemaType_Uuid
	}
	return qdrant.PayloadSchemaType_UnknownType
}

func (s pointsService) CreateFieldIndex(_ context.Context, in *qdrant.CreateFieldIndexCollection) (*qdrant.PointsOperationResponse, error) {
	if in.GetFieldName() == "" {
		return nil, invalidField("field_name", `value "" invalid, must be at least 1 characters`)
	}
	at, err := parsePath(in.GetFieldName())
	if err != nil {
		return nil, err
	}
	index := &payloadIndex{at: at, params: proto.CloneOf(in.GetFieldIndexParams())}
	switch {
	case in.GetFieldIndexParams() != nil:
		index.schema = schemaOf(in.GetFieldIndexParams())
	case in.FieldType != nil:
		index.schema = schemas[in.GetFieldType()]
	default:
		return nil, badInput("Unable to infer type for the field '%s'. Please specify `field_type`", in.GetFieldName())
	}
	if index.schema == qdrant.PayloadSchemaType_UnknownType {
		return nil, invalidArgument("Malformed payload schema")
	}
	return s.apply(in.GetCollectionName(), in.Wait, func(c *collection, _ uint64) error {
		indexes := maps.Clone(c.indexes)
		indexes[at.String()] = index
		c.indexes = indexes
		return nil
	}, nil)
}

func (s pointsService) DeleteFieldIndex(_ context.Context, in *qdrant.DeleteFieldIndexCollection) (*qdrant.PointsOperationResponse, error) {
	at, err := parsePath(in.GetFieldName())
	return s.apply(in.GetCollectionName(), in.Wait, func(c *collection, _ uint64) error {
		indexes := maps.Clone(c.indexes)
		delete(indexes, at.String())
		c.indexes = indexes
		return nil
	}, err)
}

// flat calls each with the values an index sees: those at its path, lists taken
// apart.
func (x *payloadIndex) flat(p *point, each func(*qdrant.Value)) {
	for _, v := range x.at.values(p.payload) {
		if list := v.GetListValue(); list != nil {
			for _, element := range list.GetValues() {
				each(element)
			}
		} else {
			each(v)
		}
	}
}

// holds says whether a value has the type of the index.
func (x *payloadIndex) holds(v *qdrant.Value) bool {
	switch kind := v.GetKind().(type) {
	case *qdrant.Value_StringValue:
		switch x.schema {
		case qdrant.PayloadSchemaType_Keyword, qdrant.PayloadSchemaType_Text:
			return true
		case qdrant.PayloadSchemaType_Uuid:
			_, ok := parseUUID(kind.StringValue)
			return ok
		case qdrant.PayloadSchemaType_Datetime:
			_, ok := parseTime(kind.StringValue)
			return ok
		}
	case *qdrant.Value_IntegerValue:
		return x.schema == qdrant.PayloadSchemaType_Integer || x.schema == qdrant.PayloadSchemaType_Float
	case *qdrant.Value_DoubleValue:
		return x.schema == qdrant.PayloadSchemaType_Float
	case *qdrant.Value_BoolValue:
		return x.schema == qdrant.PayloadSchemaType_Bool
	case *qdrant.Value_StructValue:
		fields := kind.StructValue.GetFields()
		return x.schema == qdrant.PayloadSchemaType_Geo && fields["lon"] != nil && fields["lat"] != nil
	}
	return false
}

// countPoints is how many points have a value of the type of the index.
func (x *payloadIndex) countPoints(points []*point) uint64 {
	var count uint64
	for _, p := range points {
		found := false
		x.flat(p, func(v *qdrant.Value) { found = found || x.holds(v) })
		if found {
			count++
		}
	}
	return count
}

// lookup says whether the index finds single values, as facets need.
func (x *payloadIndex) lookup() bool {
	switch x.schema {
	case qdrant.PayloadSchemaType_Keyword, qdrant.PayloadSchemaType_Bool, qdrant.PayloadSchemaType_Uuid:
		return true
	case qdrant.PayloadSchemaType_Integer:
		p := x.params.GetIntegerIndexParams()
		return p == nil || p.Lookup == nil || p.GetLookup()
	}
	return false
}

// ranges says whether the index knows an order, as order_by needs.
func (x *payloadIndex) ranges() bool {
	switch x.schema {
	case qdrant.PayloadSchemaType_Float, qdrant.PayloadSchemaType_Datetime:
		return true
	case qdrant.PayloadSchemaType_Integer:
		p := x.params.GetIntegerIndexParams()
		return p == nil || p.Range == nil || p.GetRange()
	}
	return false
}

// tokens takes a text apart as a text index does.
func (x *payloadIndex) tokens(text string) []string {
	params := x.params.GetTextIndexParams()
	if params == nil || params.Lowercase == nil || params.GetLowercase() {
		text = strings.ToLower(text)
	}
	var words []string
	if params.GetTokenizer() == qdrant.TokenizerType_Whitespace {
		words = strings.Fields(text)
	} else {
		words = strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) })
	}
	shortest, longest := params.GetMinTokenLen(), params.GetMaxTokenLen()
	if longest == 0 {
		longest = math.MaxUint64
	}
	var kept []string
	for _, word := range words {
		runes := []rune(word)
		if params.GetTokenizer() == qdrant.TokenizerType_Prefix {
			for n := max(int(shortest), 1); n <= len(runes) && uint64(n) <= longest; n++ {
				kept = append(kept, string(runes[:n]))
			}
		} else if n := uint64(len(runes)); n >= shortest && n <= longest {
			kept = append(kept, word)
		}
	}
	return kept
}

// timeLayouts are the forms of time Qdrant reads; without a zone it is UTC.
var timeLayouts = []string{
	time.RFC3339Nano, "2006-01-02 15:04:05.999999999Z07:00", "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999",
	"2006-01-02T15:04", "2006-01-02 15:04", "2006-01-02",
}

func parseTime(text string) (time.Time, bool) {
	for _, layout := range timeLayouts {
		if t, err := time.Parse(layout, text); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}
