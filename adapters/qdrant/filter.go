package qdrant

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	pb "github.com/qdrant/go-client/qdrant"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/mapmatched/mmplug/mapmatched"
)

// ParseFilter reads a filter in the JSON of Qdrant's REST interface, such as
//
//	{"must": [{"key": "lang", "match": {"value": "en"}}]}
//
// It is strict: a key that means nothing, a key twice, a wrong type, a
// condition without effect and anything behind the filter are errors that say
// where. Whole numbers match integers; 42.0 is a float, which cannot be matched
// but lies in a range.
func ParseFilter(data []byte) (*pb.Filter, error) {
	v, err := decodeJSON(data)
	if err == nil {
		p := filterParser{}
		f := p.filter("filter", v)
		if err = p.err; err == nil {
			return f, nil
		}
	}
	return nil, invalid("filter", "%w", err)
}

// filterParser keeps the first fault.
type filterParser struct{ err error }

func (p *filterParser) fault(at, format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf("%s: "+format, append([]any{at}, args...)...)
	}
}

// object expects an object that has no other keys than these.
func (p *filterParser) object(at string, v any, keys ...string) map[string]any {
	m, ok := v.(map[string]any)
	if !ok {
		p.fault(at, "want an object with %s, not %s", strings.Join(keys, ", "), describe(v))
		return nil
	}
	for _, key := range sortedKeys(m) {
		if !slices.Contains(keys, key) {
			p.fault(at, "key %q is unknown; the valid ones are %s", key, strings.Join(keys, ", "))
		}
	}
	return m
}

// list expects a list.
func (p *filterParser) list(at string, v any) []any {
	l, ok := v.([]any)
	if !ok {
		p.fault(at, "want a list, not %s", describe(v))
	}
	return l
}

func (p *filterParser) text(at string, v any) string {
	s, ok := v.(string)
	if !ok {
		p.fault(at, "want a text, not %s", describe(v))
	}
	return s
}

// name expects a text that is not empty.
func (p *filterParser) name(at string, v any) string {
	s := p.text(at, v)
	if s == "" {
		p.fault(at, "it is empty")
	}
	return s
}

func (p *filterParser) float(at string, v any) float64 {
	n, _ := v.(json.Number)
	f, err := strconv.ParseFloat(string(n), 64)
	if err != nil || math.IsInf(f, 0) {
		p.fault(at, "want a number, not %s", describe(v))
	}
	return f
}

func (p *filterParser) count(at string, v any) uint64 {
	n, _ := v.(json.Number)
	c, err := strconv.ParseUint(string(n), 10, 64)
	if err != nil {
		p.fault(at, "want a whole number of 0 or more, not %s", describe(v))
	}
	return c
}

func (p *filterParser) bool(at string, v any) bool {
	b, ok := v.(bool)
	if !ok {
		p.fault(at, "want true or false, not %s", describe(v))
	}
	return b
}

func describe(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case string:
		return fmt.Sprintf("the text %q", v)
	case json.Number:
		return "the number " + string(v)
	case bool:
		return fmt.Sprint(v)
	case []any:
		return "a list"
	default:
		return "an object"
	}
}

var filterKeys = []string{"must", "should", "must_not", "min_should"}

func (p *filterParser) filter(at string, v any) *pb.Filter {
	m := p.object(at, v, filterKeys...)
	f := &pb.Filter{}
	for _, clause := range []struct {
		key string
		to  *[]*pb.Condition
	}{{"must", &f.Must}, {"should", &f.Should}, {"must_not", &f.MustNot}} {
		if v, given := m[clause.key]; given {
			*clause.to = p.conditions(at+"."+clause.key, v)
		}
	}
	if v, given := m["min_should"]; given {
		at := at + ".min_should"
		o := p.object(at, v, "conditions", "min_count")
		f.MinShould = &pb.MinShould{Conditions: p.conditions(at+".conditions", o["conditions"]), MinCount: p.count(at+".min_count", o["min_count"])}
	}
	return f
}

// conditions reads a list of conditions, or one alone.
func (p *filterParser) conditions(at string, v any) []*pb.Condition {
	if _, one := v.(map[string]any); one {
		return []*pb.Condition{p.condition(at, v)}
	}
	list := p.list(at, v)
	out := make([]*pb.Condition, len(list))
	for i, v := range list {
		out[i] = p.condition(fmt.Sprintf("%s[%d]", at, i), v)
	}
	return out
}

func (p *filterParser) condition(at string, v any) *pb.Condition {
	m, _ := v.(map[string]any)
	has := func(key string) bool { _, ok := m[key]; return ok }
	switch {
	case has("key"):
		return &pb.Condition{ConditionOneOf: &pb.Condition_Field{Field: p.field(at, v)}}
	case has("has_id"):
		ids := p.list(at+".has_id", p.object(at, v, "has_id")["has_id"])
		c := &pb.HasIdCondition{HasId: make([]*pb.PointId, len(ids))}
		for i, id := range ids {
			c.HasId[i] = p.pointID(fmt.Sprintf("%s.has_id[%d]", at, i), id)
		}
		return &pb.Condition{ConditionOneOf: &pb.Condition_HasId{HasId: c}}
	case has("has_vector"):
		name := p.text(at+".has_vector", p.object(at, v, "has_vector")["has_vector"])
		return &pb.Condition{ConditionOneOf: &pb.Condition_HasVector{HasVector: &pb.HasVectorCondition{HasVector: name}}}
	case has("is_empty"):
		return &pb.Condition{ConditionOneOf: &pb.Condition_IsEmpty{IsEmpty: &pb.IsEmptyCondition{Key: p.keyOf(at, v, "is_empty")}}}
	case has("is_null"):
		return &pb.Condition{ConditionOneOf: &pb.Condition_IsNull{IsNull: &pb.IsNullCondition{Key: p.keyOf(at, v, "is_null")}}}
	case has("nested"):
		o := p.object(at+".nested", p.object(at, v, "nested")["nested"], "key", "filter")
		nested := &pb.NestedCondition{Key: p.name(at+".nested.key", o["key"]), Filter: p.filter(at+".nested.filter", o["filter"])}
		return &pb.Condition{ConditionOneOf: &pb.Condition_Nested{Nested: nested}}
	case slices.ContainsFunc(filterKeys, has):
		return &pb.Condition{ConditionOneOf: &pb.Condition_Filter{Filter: p.filter(at, v)}}
	default:
		p.fault(at, "want a condition with key, has_id, has_vector, is_empty, is_null, nested, must, should, must_not or min_should, not %s", describe(v))
		return nil
	}
}

// keyOf reads {"is_empty": {"key": K}}.
func (p *filterParser) keyOf(at string, v any, what string) string {
	at, v = at+"."+what, p.object(at, v, what)[what]
	return p.name(at+".key", p.object(at, v, "key")["key"])
}

func (p *filterParser) pointID(at string, v any) *pb.PointId {
	switch v := v.(type) {
	case json.Number:
		return &pb.PointId{PointIdOptions: &pb.PointId_Num{Num: p.count(at, v)}}
	case string:
		if _, ok := parseUUID(strings.ToLower(v)); ok {
			return &pb.PointId{PointIdOptions: &pb.PointId_Uuid{Uuid: strings.ToLower(v)}}
		}
		p.fault(at, "%q is not a point ID, which are numbers and UUIDs; the point of chunk %q is %q", v, v, PointUUID(v))
	default:
		p.fault(at, "want a number or a UUID, not %s", describe(v))
	}
	return nil
}

func (p *filterParser) field(at string, v any) *pb.FieldCondition {
	m := p.object(at, v, "key", "match", "range", "geo_bounding_box", "geo_radius", "geo_polygon", "values_count", "is_empty", "is_null")
	f := &pb.FieldCondition{Key: p.name(at+".key", m["key"])}
	if len(m) != 2 {
		p.fault(at, "want the key %q and one thing that it must be, found %d", f.Key, len(m)-1)
		return f
	}
	for what, v := range m { // the one that is not the key
		at := at + "." + what
		switch what {
		case "match":
			f.Match = p.match(at, v)
		case "range":
			p.bounds(at, v, f)
		case "geo_bounding_box":
			o := p.object(at, v, "top_left", "bottom_right")
			f.GeoBoundingBox = &pb.GeoBoundingBox{TopLeft: p.geo(at+".top_left", o["top_left"]), BottomRight: p.geo(at+".bottom_right", o["bottom_right"])}
		case "geo_radius":
			o := p.object(at, v, "center", "radius")
			f.GeoRadius = &pb.GeoRadius{Center: p.geo(at+".center", o["center"]), Radius: float32(p.float(at+".radius", o["radius"]))}
		case "geo_polygon":
			o := p.object(at, v, "exterior", "interiors")
			f.GeoPolygon = &pb.GeoPolygon{Exterior: p.line(at+".exterior", o["exterior"])}
			if v, given := o["interiors"]; given {
				for i, v := range p.list(at+".interiors", v) {
					f.GeoPolygon.Interiors = append(f.GeoPolygon.Interiors, p.line(fmt.Sprintf("%s.interiors[%d]", at, i), v))
				}
			}
		case "values_count":
			f.ValuesCount = p.valuesCount(at, v)
		case "is_empty":
			f.IsEmpty = new(p.bool(at, v))
		case "is_null":
			f.IsNull = new(p.bool(at, v))
		}
	}
	return f
}

func (p *filterParser) match(at string, v any) *pb.Match {
	m := p.object(at, v, "value", "text", "text_any", "phrase", "any", "except")
	if len(m) != 1 {
		p.fault(at, "want one of value, text, text_any, phrase, any and except, found %d", len(m))
		return nil
	}
	for what, v := range m {
		at := at + "." + what
		switch what {
		case "value":
			return p.matchValue(at, v)
		case "text":
			return &pb.Match{MatchValue: &pb.Match_Text{Text: p.text(at, v)}}
		case "text_any":
			return &pb.Match{MatchValue: &pb.Match_TextAny{TextAny: p.text(at, v)}}
		case "phrase":
			return &pb.Match{MatchValue: &pb.Match_Phrase{Phrase: p.text(at, v)}}
		default:
			return p.matchList(at, v, what == "except")
		}
	}
	return nil
}

func (p *filterParser) matchValue(at string, v any) *pb.Match {
	switch v := v.(type) {
	case string:
		return &pb.Match{MatchValue: &pb.Match_Keyword{Keyword: v}}
	case bool:
		return &pb.Match{MatchValue: &pb.Match_Boolean{Boolean: v}}
	case json.Number:
		return &pb.Match{MatchValue: &pb.Match_Integer{Integer: p.integer(at, v)}}
	default:
		p.fault(at, "want a text, a whole number or a boolean, not %s", describe(v))
		return nil
	}
}

// integer reads a number that can be matched.
func (p *filterParser) integer(at string, n json.Number) int64 {
	i, err := strconv.ParseInt(string(n), 10, 64)
	if err != nil {
		p.fault(at, "%s is not a whole number from %d to %d, and floats cannot be matched: write it without a point, or as {\"range\": {\"gte\": %s, \"lte\": %s}}",
			n, int64(math.MinInt64), int64(math.MaxInt64), n, n)
	}
	return i
}

// matchList reads a list of texts or of whole numbers.
func (p *filterParser) matchList(at string, v any, except bool) *pb.Match {
	list := p.list(at, v)
	if len(list) == 0 {
		p.fault(at, "the list is empty, which servers treat in different ways: leave the condition out, or match nothing with {\"has_id\": []}")
		return nil
	}
	if _, numbers := list[0].(json.Number); numbers {
		r := &pb.RepeatedIntegers{}
		for i, v := range list {
			n, ok := v.(json.Number)
			if !ok {
				p.fault(fmt.Sprintf("%s[%d]", at, i), "want a whole number like the ones before, not %s", describe(v))
			}
			r.Integers = append(r.Integers, p.integer(fmt.Sprintf("%s[%d]", at, i), n))
		}
		if except {
			return &pb.Match{MatchValue: &pb.Match_ExceptIntegers{ExceptIntegers: r}}
		}
		return &pb.Match{MatchValue: &pb.Match_Integers{Integers: r}}
	}
	r := &pb.RepeatedStrings{}
	for i, v := range list {
		r.Strings = append(r.Strings, p.text(fmt.Sprintf("%s[%d]", at, i), v))
	}
	if except {
		return &pb.Match{MatchValue: &pb.Match_ExceptKeywords{ExceptKeywords: r}}
	}
	return &pb.Match{MatchValue: &pb.Match_Keywords{Keywords: r}}
}

// bounds reads a range of numbers or of times.
func (p *filterParser) bounds(at string, v any, f *pb.FieldCondition) {
	m := p.object(at, v, "lt", "gt", "gte", "lte")
	numbers, times, given := &pb.Range{}, &pb.DatetimeRange{}, 0
	for _, b := range []struct {
		key    string
		number **float64
		time   **timestamppb.Timestamp
	}{
		{"lt", &numbers.Lt, &times.Lt}, {"gt", &numbers.Gt, &times.Gt}, {"gte", &numbers.Gte, &times.Gte}, {"lte", &numbers.Lte, &times.Lte},
	} {
		v, ok := m[b.key]
		if !ok || v == nil { // the server's own JSON writes null for no bound
			continue
		}
		given++
		at := at + "." + b.key
		s, isText := v.(string)
		if !isText {
			*b.number = new(p.float(at, v))
			f.Range = numbers
			continue
		}
		t, err := parseTime(s)
		if err != nil {
			p.fault(at, "%q is not a number or a time such as 2024-05-01T12:00:00Z", s)
		}
		*b.time = timestamppb.New(t)
		f.DatetimeRange = times
	}
	switch {
	case given == 0:
		p.fault(at, "want a bound: lt, gt, gte or lte")
	case f.Range != nil && f.DatetimeRange != nil:
		p.fault(at, "one bound is a number and another a time")
	}
}

// parseTime reads the forms of time that the server reads.
func parseTime(s string) (t time.Time, err error) {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02T15:04", "2006-01-02 15:04", "2006-01-02"} {
		if t, err = time.Parse(layout, s); err == nil {
			return t, nil
		}
	}
	return t, err
}

func (p *filterParser) geo(at string, v any) *pb.GeoPoint {
	o := p.object(at, v, "lon", "lat")
	g := &pb.GeoPoint{Lon: p.float(at+".lon", o["lon"]), Lat: p.float(at+".lat", o["lat"])}
	if math.Abs(g.Lon) > 180 || math.Abs(g.Lat) > 90 {
		p.fault(at, "longitude %v and latitude %v are not on Earth", g.Lon, g.Lat)
	}
	return g
}

func (p *filterParser) line(at string, v any) *pb.GeoLineString {
	points := p.list(at+".points", p.object(at, v, "points")["points"])
	line := &pb.GeoLineString{Points: make([]*pb.GeoPoint, len(points))}
	for i, v := range points {
		line.Points[i] = p.geo(fmt.Sprintf("%s.points[%d]", at, i), v)
	}
	return line
}

func (p *filterParser) valuesCount(at string, v any) *pb.ValuesCount {
	m := p.object(at, v, "lt", "gt", "gte", "lte")
	c := &pb.ValuesCount{}
	if len(m) == 0 {
		p.fault(at, "want a bound: lt, gt, gte or lte")
	}
	for _, b := range []struct {
		key string
		to  **uint64
	}{{"lt", &c.Lt}, {"gt", &c.Gt}, {"gte", &c.Gte}, {"lte", &c.Lte}} {
		if v, given := m[b.key]; given {
			*b.to = new(p.count(at+"."+b.key, v))
		}
	}
	return c
}

// checkFilter refuses conditions that servers treat in different ways: a list
// to match that is empty.
func checkFilter(f *pb.Filter) error {
	if f == nil {
		return nil
	}
	for _, conditions := range [][]*pb.Condition{f.GetMust(), f.GetShould(), f.GetMustNot(), f.GetMinShould().GetConditions()} {
		for _, c := range conditions {
			if err := errors.Join(checkFilter(c.GetFilter()), checkFilter(c.GetNested().GetFilter()), checkMatch(c.GetField())); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkMatch(f *pb.FieldCondition) error {
	empty := false
	switch m := f.GetMatch().GetMatchValue().(type) {
	case *pb.Match_Keywords:
		empty = len(m.Keywords.GetStrings()) == 0
	case *pb.Match_Integers:
		empty = len(m.Integers.GetIntegers()) == 0
	case *pb.Match_ExceptKeywords:
		empty = len(m.ExceptKeywords.GetStrings()) == 0
	case *pb.Match_ExceptIntegers:
		empty = len(m.ExceptIntegers.GetIntegers()) == 0
	}
	if empty {
		return fmt.Errorf("%w: the filter matches key %q with an empty list, which servers treat in different ways: leave the condition out", mapmatched.ErrInvalidConfig, f.GetKey())
	}
	return nil
}
