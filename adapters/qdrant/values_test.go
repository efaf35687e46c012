package qdrant

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	pb "github.com/qdrant/go-client/qdrant"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

func TestPayloadRoundTrip(t *testing.T) {
	type named string
	given := map[string]any{
		"nil": nil, "bool": true, "int": 42, "float": 42.0, "int8": int8(-8), "int64": int64(9007199254740993), "min": int64(math.MinInt64),
		"uint8": uint8(255), "uint64": uint64(math.MaxInt64), "float32": float32(0.5), "text": "故乡", "named": named("n"),
		"strings": []string{"a", ""}, "ints": []int8{1, -1}, "array": [2]bool{true, false}, "any": []any{nil, 1, "x"},
		"map": map[string]string{"k": "v"}, "nested": map[string]any{"list": []any{map[string]any{"deep": 1.5}}},
		"number": json.Number("9007199254740993"), "decimal": json.Number("1.0"), "empty": map[string]any{}, "none": []string{},
	}
	want := map[string]any{
		"nil": nil, "bool": true, "int": int64(42), "float": 42.0, "int8": int64(-8), "int64": int64(9007199254740993), "min": int64(math.MinInt64),
		"uint8": int64(255), "uint64": int64(math.MaxInt64), "float32": 0.5, "text": "故乡", "named": "n",
		"strings": []any{"a", ""}, "ints": []any{int64(1), int64(-1)}, "array": []any{true, false}, "any": []any{nil, int64(1), "x"},
		"map": map[string]any{"k": "v"}, "nested": map[string]any{"list": []any{map[string]any{"deep": 1.5}}},
		"number": int64(9007199254740993), "decimal": 1.0, "empty": map[string]any{}, "none": []any{},
	}
	payload, err := payloadOf(given)
	if err != nil {
		t.Fatal(err)
	}
	if got := goValue(object(payload)); !reflect.DeepEqual(got, want) {
		t.Errorf("%#v, want %#v", got, want)
	}
}

func TestPayloadRefuses(t *testing.T) {
	cycle := []any{nil}
	cycle[0] = cycle
	for _, c := range []struct {
		name  string
		value any
		path  string
		want  string
	}{
		{"bytes", []byte("x"), "k", "no bytes"},
		{"array of bytes", [2]uint8{1, 2}, "k", "no bytes"},
		{"uint64 max", uint64(math.MaxUint64), "k", "18446744073709551615 is above 9223372036854775807"},
		{"number above", json.Number("18446744073709551615"), "k", "is above"},
		{"number of letters", json.Number("many"), "k", `"many" is not a number`},
		{"number of infinity", json.Number("1e999"), "k", "not a number"},
		{"NaN", math.NaN(), "k", "NaN is not finite"},
		{"infinity", float32(math.Inf(-1)), "k", "-Inf is not finite"},
		{"not UTF-8", "\xff", "k", "not UTF-8"},
		{"key not UTF-8", map[string]any{"\xff": 1}, "k", "not UTF-8"},
		{"channel", make(chan int), "k", "no counterpart"},
		{"struct", struct{ X int }{1}, "k", "no counterpart"},
		{"pointer", new(1), "k", "no counterpart"},
		{"map of numbers", map[int]string{1: "x"}, "k", "keys of an object are texts"},
		{"deep in it", map[string]any{"a": []any{1, map[string]any{"b": []byte{1}}}}, "k.a[1].b", "no bytes"},
		{"cycle", cycle, "k" + strings.Repeat("[0]", maxValueDepth+1), "nested more than 64 deep"},
	} {
		_, err := payloadOf(map[string]any{"k": c.value})
		var typed *ValueError
		if !errors.As(err, &typed) || typed.Path != c.path || !strings.Contains(typed.Reason, c.want) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want a *ValueError at %s with %q", c.name, err, c.path, c.want)
		}
	}
	if _, err := payloadOf(map[string]any{"\xff": 1}); err == nil || !strings.Contains(err.Error(), "UTF-8") {
		t.Errorf("a key that is not UTF-8: %v", err)
	}
}

// FuzzValue: what any JSON decodes to converts and comes back, or is refused
// with a *ValueError; what any server may send converts without a panic.
func FuzzValue(f *testing.F) {
	for _, s := range []string{`null`, `42`, `42.0`, `9007199254740993`, `18446744073709551615`, `[1,"a",{"b":[true,null,1e300]}]`, `"\ud800"`, `1e999`, `-0`, `{"":{}}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var wire pb.Value
		if proto.Unmarshal(data, &wire) == nil {
			_ = goValue(&wire)
			_ = chunkID(&pb.PointId{}, map[string]*pb.Value{"k": &wire}, "k")
			_, _ = payloadInt(map[string]*pb.Value{"k": &wire}, "k")
		}
		v, err := decodeJSON(data)
		if err != nil {
			return
		}
		value, err := valueOf("k", v, 0)
		var typed *ValueError
		if err != nil {
			if !errors.As(err, &typed) {
				t.Fatalf("error %v is not a *ValueError", err)
			}
			return
		}
		bytes, err := proto.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		var again pb.Value
		if err := proto.Unmarshal(bytes, &again); err != nil || !reflect.DeepEqual(goValue(&again), goValue(value)) {
			t.Fatalf("%#v came back as %#v, error %v", goValue(value), goValue(&again), err)
		}
	})
}

// FuzzFilter: no JSON panics or ends in an error of more than one line; what is
// read is a filter that travels.
func FuzzFilter(f *testing.F) {
	for _, c := range filterCases {
		f.Add([]byte(c.json))
	}
	for _, c := range filterFaults {
		f.Add([]byte(c.json))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		parsed, err := ParseFilter(data)
		if err != nil {
			if strings.ContainsAny(err.Error(), "\n\r") || parsed != nil {
				t.Fatalf("error %q, filter %v", err, parsed)
			}
			return
		}
		if err := checkFilter(parsed); err != nil {
			t.Fatalf("read and then refused: %v", err)
		}
		if _, err := proto.Marshal(parsed); err != nil {
			t.Fatal(err)
		}
	})
}

var filterCases = []struct{ json, want string }{
	{`{}`, `{}`},
	{`{"must":[{"key":"lang","match":{"value":"en"}}]}`, `{"must":[{"field":{"key":"lang","match":{"keyword":"en"}}}]}`},
	{`{"must":{"key":"n","match":{"value":-42}}}`, `{"must":[{"field":{"key":"n","match":{"integer":"-42"}}}]}`},
	{`{"must":{"key":"b","match":{"value":false}}}`, `{"must":[{"field":{"key":"b","match":{"boolean":false}}}]}`},
	{`{"should":[{"key":"t","match":{"text":"a b"}},{"key":"t","match":{"phrase":"a b"}},{"key":"t","match":{"text_any":"a b"}}]}`,
		`{"should":[{"field":{"key":"t","match":{"text":"a b"}}},{"field":{"key":"t","match":{"phrase":"a b"}}},{"field":{"key":"t","match":{"textAny":"a b"}}}]}`},
	{`{"must_not":[{"key":"k","match":{"any":["a"]}},{"key":"k","match":{"any":[1,2]}},{"key":"k","match":{"except":["a"]}},{"key":"k","match":{"except":[1]}}]}`,
		`{"mustNot":[{"field":{"key":"k","match":{"keywords":{"strings":["a"]}}}},{"field":{"key":"k","match":{"integers":{"integers":["1","2"]}}}},{"field":{"key":"k","match":{"exceptKeywords":{"strings":["a"]}}}},{"field":{"key":"k","match":{"exceptIntegers":{"integers":["1"]}}}}]}`},
	{`{"must":[{"key":"n","range":{"gte":1,"lt":2.5,"gt":null}}]}`, `{"must":[{"field":{"key":"n","range":{"gte":1,"lt":2.5}}}]}`},
	{`{"must":[{"key":"d","range":{"gt":"2024-05-01","lte":"2024-05-01T12:30:00.5+02:00"}}]}`,
		`{"must":[{"field":{"key":"d","datetimeRange":{"gt":"2024-05-01T00:00:00Z","lte":"2024-05-01T10:30:00.500Z"}}}]}`},
	{`{"must":[{"has_id":[1,18446744073709551615,"5C56C793-69f3-4fbf-87e6-c4bf54c28c26"]},{"has_vector":"dense"},{"is_empty":{"key":"a"}},{"is_null":{"key":"b"}}]}`,
		`{"must":[{"hasId":{"hasId":[{"num":"1"},{"num":"18446744073709551615"},{"uuid":"5c56c793-69f3-4fbf-87e6-c4bf54c28c26"}]}},{"hasVector":{"hasVector":"dense"}},{"isEmpty":{"key":"a"}},{"isNull":{"key":"b"}}]}`},
	{`{"must":[{"nested":{"key":"edges","filter":{"must":[{"key":"to","match":{"value":"x"}}]}}},{"must_not":[{"has_id":[]}]}]}`,
		`{"must":[{"nested":{"key":"edges","filter":{"must":[{"field":{"key":"to","match":{"keyword":"x"}}}]}}},{"filter":{"mustNot":[{"hasId":{}}]}}]}`},
	{`{"min_should":{"conditions":[{"key":"a","is_empty":true},{"key":"a","is_null":false},{"key":"a","values_count":{"gte":1,"lt":3}}],"min_count":2}}`,
		`{"minShould":{"conditions":[{"field":{"key":"a","isEmpty":true}},{"field":{"key":"a","isNull":false}},{"field":{"key":"a","valuesCount":{"gte":"1","lt":"3"}}}],"minCount":"2"}}`},
	{`{"must":[{"key":"p","geo_radius":{"center":{"lon":13.4,"lat":52.5},"radius":1000}},{"key":"p","geo_bounding_box":{"top_left":{"lon":1,"lat":2},"bottom_right":{"lon":3,"lat":1}}}]}`,
		`{"must":[{"field":{"key":"p","geoRadius":{"center":{"lon":13.4,"lat":52.5},"radius":1000}}},{"field":{"key":"p","geoBoundingBox":{"topLeft":{"lon":1,"lat":2},"bottomRight":{"lon":3,"lat":1}}}}]}`},
	{`{"must":[{"key":"p","geo_polygon":{"exterior":{"points":[{"lon":0,"lat":0},{"lon":1,"lat":0},{"lon":1,"lat":1},{"lon":0,"lat":0}]},"interiors":[{"points":[]}]}}]}`,
		`{"must":[{"field":{"key":"p","geoPolygon":{"exterior":{"points":[{"lon":0,"lat":0},{"lon":1,"lat":0},{"lon":1,"lat":1},{"lon":0,"lat":0}]},"interiors":[{}]}}}]}`},
}

func TestParseFilter(t *testing.T) {
	for _, c := range filterCases {
		got, err := ParseFilter([]byte(c.json))
		if err != nil {
			t.Errorf("%s: %v", c.json, err)
			continue
		}
		var want pb.Filter
		if err := protojson.Unmarshal([]byte(c.want), &want); err != nil {
			t.Fatalf("%s: %v", c.want, err)
		}
		if !proto.Equal(got, &want) {
			t.Errorf("%s:\n got %v\nwant %v", c.json, got, &want)
		}
	}
}

var filterFaults = []struct{ json, want string }{
	{``, "ends too early"},
	{`{"must":[`, "ends too early"},
	{`{} {}`, "more behind"},
	{"{\"must\":\"\xff\"}", "not UTF-8"},
	{`{"must":[],"must":[]}`, `"must" is given twice`},
	{strings.Repeat("[", 100), "nested more than 32"},
	{`[]`, "filter: want an object with must"},
	{`{"Must":[]}`, `key "Must" is unknown; the valid ones are must`},
	{`{"must":3}`, "filter.must: want a list, not the number 3"},
	{`{"must":["x"]}`, `filter.must[0]: want a condition`},
	{`{"must":[{}]}`, "want a condition"},
	{`{"must":[{"key":"a"}]}`, `one thing that it must be, found 0`},
	{`{"must":[{"key":"a","match":{"value":1},"range":{"gt":1}}]}`, "found 2"},
	{`{"must":[{"key":"","match":{"value":1}}]}`, "filter.must[0].key: it is empty"},
	{`{"must":[{"key":"a","match":{}}]}`, "found 0"},
	{`{"must":[{"key":"a","match":{"value":42.0}}]}`, `filter.must[0].match.value: 42.0 is not a whole number`},
	{`{"must":[{"key":"a","match":{"value":9223372036854775808}}]}`, "not a whole number from"},
	{`{"must":[{"key":"a","match":{"value":null}}]}`, "not null"},
	{`{"must":[{"key":"a","match":{"any":[]}}]}`, "the list is empty"},
	{`{"must":[{"key":"a","match":{"except":[]}}]}`, "the list is empty"},
	{`{"must":[{"key":"a","match":{"any":[1,"x"]}}]}`, "match.any[1]: want a whole number like the ones before"},
	{`{"must":[{"key":"a","match":{"any":["x",1]}}]}`, "match.any[1]: want a text"},
	{`{"must":[{"key":"a","match":{"values":1}}]}`, `key "values" is unknown`},
	{`{"must":[{"key":"a","range":{}}]}`, "want a bound"},
	{`{"must":[{"key":"a","range":{"gte":"soon"}}]}`, `"soon" is not a number or a time`},
	{`{"must":[{"key":"a","range":{"gte":1,"lt":"2024-01-01"}}]}`, "one bound is a number and another a time"},
	{`{"must":[{"key":"a","range":{"gte":1e999}}]}`, "want a number"},
	{`{"must":[{"key":"a","range":{"gte":true}}]}`, "want a number, not true"},
	{`{"must":[{"has_id":["roads/tunnel"]}]}`, `the point of chunk "roads/tunnel" is "16871d6c-43c7-51d8-8a7b-488f496f2883"`},
	{`{"must":[{"has_id":[-1]}]}`, "whole number of 0 or more"},
	{`{"must":[{"has_id":[null]}]}`, "want a number or a UUID"},
	{`{"must":[{"has_vector":1}]}`, "want a text"},
	{`{"must":[{"is_empty":"a"}]}`, "want an object with key"},
	{`{"must":[{"is_null":{"key":"a","x":1}}]}`, `key "x" is unknown`},
	{`{"must":[{"nested":{"key":"a"}}]}`, "filter.must[0].nested.filter: want an object"},
	{`{"min_should":{"conditions":[]}}`, "min_count"},
	{`{"must":[{"key":"a","values_count":{}}]}`, "want a bound"},
	{`{"must":[{"key":"a","is_empty":1}]}`, "want true or false"},
	{`{"must":[{"key":"a","geo_radius":{"center":{"lon":181,"lat":0},"radius":1}}]}`, "not on Earth"},
}

func TestParseFilterRefuses(t *testing.T) {
	for _, c := range filterFaults {
		f, err := ParseFilter([]byte(c.json))
		if err == nil || f != nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: filter %v, error %v, want %q", c.json, f, err, c.want)
		}
	}
}
