package qdrant

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"unicode/utf8"

	pb "github.com/qdrant/go-client/qdrant"
)

// maxValueDepth bounds how deep payload values are nested, cycles included.
const maxValueDepth = 64

// ValueError says that a Go value cannot be kept in a payload.
type ValueError struct {
	Path   string // where it is, such as "tags[2]"
	Type   string // its Go type
	Reason string // why, and what to do
}

// Error implements error.
func (e *ValueError) Error() string {
	if e.Path == "" {
		return fmt.Sprintf("value of type %s: %s", e.Type, e.Reason)
	}
	return fmt.Sprintf("%s of type %s: %s", e.Path, e.Type, e.Reason)
}

// payloadOf converts values for the server. Integers of every size stay
// integers and floats stay floats, also whole ones: 42 and 42.0 are different
// values there. What has no counterpart is a *ValueError: bytes, unsigned
// integers above 9223372036854775807, NaN and infinities, text that is not
// UTF-8, channels, functions and structs.
func payloadOf(values map[string]any) (map[string]*pb.Value, error) {
	out := make(map[string]*pb.Value, len(values))
	for key, v := range values {
		value, err := valueOf(key, v, 0)
		if err != nil {
			return nil, err
		}
		if !utf8.ValidString(key) {
			return nil, &ValueError{strconv.Quote(key), "string", "a key must be UTF-8"}
		}
		out[key] = value
	}
	return out, nil
}

func valueOf(path string, v any, depth int) (*pb.Value, error) {
	fault := func(format string, args ...any) (*pb.Value, error) {
		return nil, &ValueError{path, fmt.Sprintf("%T", v), fmt.Sprintf(format, args...)}
	}
	if depth > maxValueDepth {
		return fault("it is nested more than %d deep", maxValueDepth)
	}
	if v == nil {
		return &pb.Value{Kind: &pb.Value_NullValue{}}, nil
	}
	if n, ok := v.(json.Number); ok {
		return numberOf(n, fault)
	}
	switch r := reflect.ValueOf(v); r.Kind() {
	case reflect.Bool:
		return &pb.Value{Kind: &pb.Value_BoolValue{BoolValue: r.Bool()}}, nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return integer(r.Int()), nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		if r.Uint() > math.MaxInt64 {
			return fault("%d is above %d, the largest integer the server keeps; store it as text", r.Uint(), math.MaxInt64)
		}
		return integer(int64(r.Uint())), nil
	case reflect.Float32, reflect.Float64:
		if f := r.Float(); math.IsNaN(f) || math.IsInf(f, 0) {
			return fault("%v is not finite", f)
		}
		return double(r.Float()), nil
	case reflect.String:
		if !utf8.ValidString(r.String()) {
			return fault("%q is not UTF-8; encode bytes as text, for instance in base64", r.String())
		}
		return text(r.String()), nil
	case reflect.Slice, reflect.Array:
		if r.Type().Elem().Kind() == reflect.Uint8 {
			return fault("the server keeps no bytes; encode them as text, for instance in base64")
		}
		list := make([]*pb.Value, r.Len())
		for i := range list {
			var err error
			if list[i], err = valueOf(fmt.Sprintf("%s[%d]", path, i), r.Index(i).Interface(), depth+1); err != nil {
				return nil, err
			}
		}
		return listOf(list), nil
	case reflect.Map:
		if r.Type().Key().Kind() != reflect.String {
			return fault("the keys of an object are texts")
		}
		fields := make(map[string]*pb.Value, r.Len())
		for _, key := range r.MapKeys() {
			name := key.String()
			if !utf8.ValidString(name) {
				return fault("key %q is not UTF-8", name)
			}
			value, err := valueOf(path+"."+name, r.MapIndex(key).Interface(), depth+1)
			if err != nil {
				return nil, err
			}
			fields[name] = value
		}
		return object(fields), nil
	default:
		return fault("it has no counterpart in a payload; use texts, numbers, booleans, slices and maps")
	}
}

func numberOf(n json.Number, fault func(string, ...any) (*pb.Value, error)) (*pb.Value, error) {
	if i, err := strconv.ParseInt(string(n), 10, 64); err == nil {
		return integer(i), nil
	}
	f, err := strconv.ParseFloat(string(n), 64)
	if err != nil || math.IsInf(f, 0) || math.IsNaN(f) {
		return fault("%q is not a number that the server keeps", string(n))
	}
	if _, err := strconv.ParseUint(string(n), 10, 64); err == nil {
		return fault("%s is above %d, the largest integer the server keeps; store it as text", n, math.MaxInt64)
	}
	return double(f), nil
}

func integer(v int64) *pb.Value  { return &pb.Value{Kind: &pb.Value_IntegerValue{IntegerValue: v}} }
func double(v float64) *pb.Value { return &pb.Value{Kind: &pb.Value_DoubleValue{DoubleValue: v}} }
func text(v string) *pb.Value    { return &pb.Value{Kind: &pb.Value_StringValue{StringValue: v}} }
func listOf(v []*pb.Value) *pb.Value {
	return &pb.Value{Kind: &pb.Value_ListValue{ListValue: &pb.ListValue{Values: v}}}
}

func object(fields map[string]*pb.Value) *pb.Value {
	return &pb.Value{Kind: &pb.Value_StructValue{StructValue: &pb.Struct{Fields: fields}}}
}

// goValue converts a value of the server: nil, bool, int64, float64, string,
// []any or map[string]any.
func goValue(v *pb.Value) any {
	switch k := v.GetKind().(type) {
	case *pb.Value_BoolValue:
		return k.BoolValue
	case *pb.Value_IntegerValue:
		return k.IntegerValue
	case *pb.Value_DoubleValue:
		return k.DoubleValue
	case *pb.Value_StringValue:
		return k.StringValue
	case *pb.Value_ListValue:
		list := make([]any, len(k.ListValue.GetValues()))
		for i, e := range k.ListValue.GetValues() {
			list[i] = goValue(e)
		}
		return list
	case *pb.Value_StructValue:
		fields := make(map[string]any, len(k.StructValue.GetFields()))
		for name, e := range k.StructValue.GetFields() {
			fields[name] = goValue(e)
		}
		return fields
	default:
		return nil
	}
}

// payloadText returns the text under a key, false when there is none.
func payloadText(payload map[string]*pb.Value, key string) (string, bool) {
	if key == "" {
		return "", false
	}
	v, ok := payload[key].GetKind().(*pb.Value_StringValue)
	if !ok {
		return "", false
	}
	return v.StringValue, true
}

// payloadInt returns the integer under a key, or one that is written as a
// float, and false when there is none.
func payloadInt(payload map[string]*pb.Value, key string) (int, bool) {
	if key == "" {
		return 0, false
	}
	switch v := payload[key].GetKind().(type) {
	case *pb.Value_IntegerValue:
		return int(v.IntegerValue), true
	case *pb.Value_DoubleValue:
		if n := int64(v.DoubleValue); float64(n) == v.DoubleValue {
			return int(n), true
		}
	}
	return 0, false
}

// sortedKeys lists the keys of a payload or of metadata in ascending order.
func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
