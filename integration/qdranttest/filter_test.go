package qdranttest

import (
	"slices"
	"testing"
	"time"

	"github.com/qdrant/go-client/qdrant"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
)

func field(key string, c *qdrant.FieldCondition) *qdrant.Condition {
	c.Key = key
	return &qdrant.Condition{ConditionOneOf: &qdrant.Condition_Field{Field: c}}
}

func match(key string, m *qdrant.Match) *qdrant.Condition {
	return field(key, &qdrant.FieldCondition{Match: m})
}

func must1(c *qdrant.Condition) *qdrant.Filter {
	return &qdrant.Filter{Must: []*qdrant.Condition{c}}
}

// filterPoints are the payloads every row of TestFilter is asked about.
func filterPoints() []*qdrant.PointStruct {
	payloads := []map[string]any{
		1: {"n": 42, "s": "red", "t": "The quick brown fox", "at": "2024-05-01T12:00:00Z"},
		2: {"n": 42.0, "s": []any{"red", "blue"}, "t": "Quick, fox!"},
		3: {"n": int64(9007199254740993), "s": nil, "b": true},
		4: {"n": "42", "s": []any{}, "b": false},
		5: {},
		6: {"s": []any{nil, "green"}, "o": map[string]any{"k": "v", "n": 1}},
		7: {"l": []any{map[string]any{"a": 1, "b": 1}, map[string]any{"a": 2, "b": 2}}},
		8: {"l": []any{map[string]any{"a": 1, "b": 2}}},
	}
	var points []*qdrant.PointStruct
	for id, payload := range payloads[1:] {
		points = append(points, at(uint64(id+1), payload, 1))
	}
	return points
}

func TestFilter(t *testing.T) {
	client := dial(t, start(t, nil))
	create(t, client, 1, qdrant.Distance_Dot)
	upsert(t, client, filterPoints()...)
	noon := timestamppb.New(time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC))
	red, blue, green := qdrant.NewMatch("s", "red"), qdrant.NewMatch("s", "blue"), qdrant.NewMatch("s", "green")
	nested := func(conditions ...*qdrant.Condition) *qdrant.Filter {
		return must1(qdrant.NewNestedFilter("l", &qdrant.Filter{Must: conditions}))
	}
	all := []string{"1", "2", "3", "4", "5", "6", "7", "8"}
	for _, c := range []struct {
		name string
		in   *qdrant.Filter
		want []string
	}{
		{"none", nil, all},
		{"empty", &qdrant.Filter{}, all},
		{"integer is not a float or a string", must1(qdrant.NewMatchInt("n", 42)), []string{"1"}},
		{"integer beyond 2^53", must1(qdrant.NewMatchInt("n", 9007199254740993)), []string{"3"}},
		{"its neighbour", must1(qdrant.NewMatchInt("n", 9007199254740992)), nil},
		{"keyword in a value or a list", must1(red), []string{"1", "2"}},
		{"keyword for an integer", must1(qdrant.NewMatch("n", "42")), []string{"4"}},
		{"bool", must1(qdrant.NewMatchBool("b", false)), []string{"4"}},
		{"any keyword", must1(qdrant.NewMatchKeywords("s", "blue", "green")), []string{"2", "6"}},
		{"any of none", must1(qdrant.NewMatchKeywords("s")), nil},
		{"any integer", must1(qdrant.NewMatchInts("n", 41, 42)), []string{"1"}},
		{"except keywords: one element suffices", must1(qdrant.NewMatchExceptKeywords("s", "red")), []string{"2", "6"}},
		{"except none: values but null", must1(qdrant.NewMatchExceptKeywords("s")), []string{"1", "2", "6"}},
		{"except integers: other types fit", must1(qdrant.NewMatchExceptInts("n", 42)), []string{"2", "3", "4"}},
		{"must not: missing keys fit", &qdrant.Filter{MustNot: []*qdrant.Condition{red}}, []string{"3", "4", "5", "6", "7", "8"}},
		{"range: integers and floats", must1(qdrant.NewRange("n", &qdrant.Range{Gte: proto.Float64(42), Lt: proto.Float64(43)})), []string{"1", "2"}},
		{"range is open", must1(qdrant.NewRange("n", &qdrant.Range{Gt: proto.Float64(42)})), []string{"3"}},
		{"range is closed", must1(qdrant.NewRange("n", &qdrant.Range{Lte: proto.Float64(42)})), []string{"1", "2"}},
		{"time from noon", must1(qdrant.NewDatetimeRange("at", &qdrant.DatetimeRange{Gte: noon})), []string{"1"}},
		{"time after noon", must1(qdrant.NewDatetimeRange("at", &qdrant.DatetimeRange{Gt: noon})), nil},
		{"count", must1(qdrant.NewValuesCount("s", &qdrant.ValuesCount{Gte: proto.Uint64(2)})), []string{"2", "6"}},
		{"count 0, not for missing keys", must1(qdrant.NewValuesCount("s", &qdrant.ValuesCount{Lt: proto.Uint64(1)})), []string{"3", "4"}},
		{"is empty", must1(qdrant.NewIsEmpty("s")), []string{"3", "4", "5", "7", "8"}},
		{"is null", must1(qdrant.NewIsNull("s")), []string{"3"}},
		{"field is empty", must1(field("s", &qdrant.FieldCondition{IsEmpty: proto.Bool(true)})), []string{"3", "4", "5", "7", "8"}},
		{"field is not null", must1(field("s", &qdrant.FieldCondition{IsNull: proto.Bool(false)})), []string{"1", "2", "4", "5", "7", "8"}},
		{"field is null, lists too", must1(field("s", &qdrant.FieldCondition{IsNull: proto.Bool(true)})), []string{"3", "6"}},
		{"IDs", must1(qdrant.NewHasID(qdrant.NewIDNum(5), qdrant.NewIDNum(99), qdrant.NewIDNum(2))), []string{"2", "5"}},
		{"no IDs", must1(qdrant.NewHasID()), nil},
		{"has vector", must1(qdrant.NewHasVector("")), all},
		{"has no such vector", must1(qdrant.NewHasVector("x")), nil},
		{"inner key", must1(qdrant.NewMatch("o.k", "v")), []string{"6"}},
		{"inner keys of a list need []", must1(qdrant.NewMatchInt("l.a", 1)), nil},
		{"inner keys of elements", must1(qdrant.NewMatchInt("l[].a", 2)), []string{"7"}},
		{"one element", must1(qdrant.NewMatchInt("l[1].a", 2)), []string{"7"}},
		{"elements apart", &qdrant.Filter{Must: []*qdrant.Condition{qdrant.NewMatchInt("l[].a", 1), qdrant.NewMatchInt("l[].b", 2)}}, []string{"7", "8"}},
		{"nested: the same element", nested(qdrant.NewMatchInt("a", 1), qdrant.NewMatchInt("b", 2)), []string{"8"}},
		{"nested knows no IDs", nested(qdrant.NewHasID(qdrant.NewIDNum(7))), nil},
		{"should", &qdrant.Filter{Should: []*qdrant.Condition{blue, green}}, []string{"2", "6"}},
		{"should and must", &qdrant.Filter{Should: []*qdrant.Condition{blue, green}, Must: []*qdrant.Condition{red}}, []string{"2"}},
		{"min should", &qdrant.Filter{MinShould: &qdrant.MinShould{Conditions: []*qdrant.Condition{red, blue, green}, MinCount: 2}}, []string{"2"}},
		{"min should of too few", &qdrant.Filter{MinShould: &qdrant.MinShould{Conditions: []*qdrant.Condition{red}, MinCount: 2}}, nil},
		{"filter in a filter", must1(qdrant.NewFilterAsCondition(&qdrant.Filter{Should: []*qdrant.Condition{green}})), []string{"6"}},
		{"text without an index is a part", must1(qdrant.NewMatchText("t", "quick br")), []string{"1"}},
		{"any text without an index", must1(match("t", &qdrant.Match{MatchValue: &qdrant.Match_TextAny{TextAny: "Quick zebra"}})), []string{"2"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := scrollIDs(t, client, c.in)
			if !slices.Equal(got, c.want) {
				t.Errorf("scroll finds %v, want %v", got, c.want)
			}
			if n := must(client.Count(t.Context(), &qdrant.CountPoints{CollectionName: "c", Filter: c.in}))(t); n != uint64(len(c.want)) {
				t.Errorf("count finds %d, want %d", n, len(c.want))
			}
			found := query(t, client, &qdrant.QueryPoints{Query: qdrant.NewQuery(1), Filter: c.in})
			ids := []string{}
			for _, h := range hits(found) {
				ids = append(ids, h.id)
			}
			if !slices.Equal(ids, c.want) {
				t.Errorf("query finds %v, want %v", ids, c.want)
			}
		})
	}
}

func TestTextIndex(t *testing.T) {
	client := dial(t, start(t, nil))
	create(t, client, 1, qdrant.Distance_Dot)
	upsert(t, client, filterPoints()...)
	must(client.CreateFieldIndex(t.Context(), &qdrant.CreateFieldIndexCollection{
		CollectionName: "c", FieldName: "t", Wait: proto.Bool(true),
		FieldIndexParams: qdrant.NewPayloadIndexParamsText(&qdrant.TextIndexParams{Tokenizer: qdrant.TokenizerType_Word, PhraseMatching: proto.Bool(true)}),
	}))(t)
	for _, c := range []struct {
		name string
		m    *qdrant.Match
		want []string
	}{
		{"all words, in any order and case", &qdrant.Match{MatchValue: &qdrant.Match_Text{Text: "FOX quick"}}, []string{"1", "2"}},
		{"part of a word", &qdrant.Match{MatchValue: &qdrant.Match_Text{Text: "qui"}}, nil},
		{"phrase", &qdrant.Match{MatchValue: &qdrant.Match_Phrase{Phrase: "quick fox"}}, []string{"2"}},
		{"any word", &qdrant.Match{MatchValue: &qdrant.Match_TextAny{TextAny: "zebra brown"}}, []string{"1"}},
		{"no word", &qdrant.Match{MatchValue: &qdrant.Match_Text{Text: "!"}}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := scrollIDs(t, client, must1(match("t", c.m))); !slices.Equal(got, c.want) {
				t.Errorf("finds %v, want %v", got, c.want)
			}
		})
	}
}

func TestFilterRefuses(t *testing.T) {
	client := dial(t, start(t, nil))
	create(t, client, 1, qdrant.Distance_Dot)
	for _, c := range []struct {
		name string
		in   *qdrant.Filter
		code codes.Code
		want string
	}{
		{"path", must1(qdrant.NewMatch("a[", "x")), codes.InvalidArgument, "Invalid json path: 'a['"},
		{"no check", must1(field("a", &qdrant.FieldCondition{})), codes.InvalidArgument, "At least one field condition must be specified"},
		{"no match", must1(match("a", &qdrant.Match{})), codes.InvalidArgument, "Malformed Match condition"},
		{"no condition", must1(&qdrant.Condition{}), codes.InvalidArgument, "Malformed Condition type"},
		{"UUID", must1(qdrant.NewHasID(qdrant.NewIDUUID("x"))), codes.InvalidArgument, "Unable to parse UUID: x"},
		{"geo", must1(qdrant.NewGeoRadius("a", 1, 2, 3)), codes.Unimplemented, "qdranttest does not model geo conditions"},
		{"inside", &qdrant.Filter{MinShould: &qdrant.MinShould{Conditions: []*qdrant.Condition{qdrant.NewNestedFilter("l", must1(&qdrant.Condition{}))}}}, codes.InvalidArgument, "Malformed Condition type"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := client.Scroll(t.Context(), &qdrant.ScrollPoints{CollectionName: "c", Filter: c.in})
			wantError(t, err, c.code, c.want)
			_, err = client.Delete(t.Context(), &qdrant.DeletePoints{CollectionName: "c", Points: qdrant.NewPointsSelectorFilter(c.in)})
			wantError(t, err, c.code, c.want)
			_, err = client.Upsert(t.Context(), &qdrant.UpsertPoints{CollectionName: "c", UpdateFilter: c.in})
			wantError(t, err, c.code, c.want)
		})
	}
}

func TestPath(t *testing.T) {
	for text, want := range map[string]string{
		"a": "a", "a.b": "a.b", "a[].b": "a[].b", "a[0][]": "a[0][]", `"a"`: "a", `"a.b".c`: `"a.b".c`, `a."x y"[3]`: `a."x y"[3]`, "ключ-1_x": "ключ-1_x",
	} {
		got, err := parsePath(text)
		if err != nil || got.String() != want {
			t.Errorf("%s: %v, %v, want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"", ".", "a.", "a..b", "a[", "a[x]", "a[-1]", "a]", "a b", `"a`, `"a\"b"`, "$score"} {
		if got, err := parsePath(text); err == nil {
			t.Errorf("%q is read as %v, want an error", text, got)
		}
	}
}

func FuzzPath(f *testing.F) {
	for _, text := range []string{"a", "a.b[].c[7]", `"a.b".c`, "a[", "[]", `""`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		first, err := parsePath(text)
		if err != nil {
			return
		}
		second, err := parsePath(first.String())
		if err != nil || !slices.Equal(first, second) {
			t.Errorf("%q: %v, written as %q, is read as %v, %v", text, first, first.String(), second, err)
		}
	})
}

func FuzzUUID(f *testing.F) {
	f.Add("6ba7b810-9dad-11d1-80b4-00c04fd430c8")
	f.Add("urn:uuid:6BA7B8109DAD11D180B400C04FD430C8")
	f.Add("{6ba7b810-9dad-11d1-80b4-00c04fd430c8}")
	f.Fuzz(func(t *testing.T, text string) {
		first, ok := parseUUID(text)
		if !ok {
			return
		}
		if second, ok := parseUUID(formatUUID(first)); !ok || first != second {
			t.Errorf("%q is %x, its text is read as %x, %v", text, first, second, ok)
		}
	})
}
