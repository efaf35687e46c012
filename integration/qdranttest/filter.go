package qdranttest

import (
	"slices"
	"strconv"
	"time"

	"github.com/qdrant/go-client/qdrant"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// subject is what a condition looks at: a point, or an object inside its payload
// for nested conditions, which know neither ID nor vectors.
type subject struct {
	payload map[string]*qdrant.Value
	point   *point
}

// condition is a compiled condition.
type condition func(subject) bool

// filterCompiler turns filters into conditions.
type filterCompiler struct {
	indexes map[string]*payloadIndex
	under   path // the list of the nested condition the filter is in
}

// compile checks a filter and returns what says whether a point fits it. No
// filter fits every point.
func (v *view) compile(f *qdrant.Filter) (func(*point) bool, error) {
	return compileFilter(f, v.indexes)
}

func compileFilter(f *qdrant.Filter, indexes map[string]*payloadIndex) (func(*point) bool, error) {
	holds, err := filterCompiler{indexes: indexes}.filter("filter", f)
	if err != nil {
		return nil, err
	}
	return func(p *point) bool { return holds(subject{payload: p.payload, point: p}) }, nil
}

// filter compiles the four lists of a filter. An empty list says nothing.
func (fc filterCompiler) filter(field string, f *qdrant.Filter) (condition, error) {
	should, err := fc.list(field+".should", f.GetShould())
	if err != nil {
		return nil, err
	}
	must, err := fc.list(field+".must", f.GetMust())
	if err != nil {
		return nil, err
	}
	mustNot, err := fc.list(field+".must_not", f.GetMustNot())
	if err != nil {
		return nil, err
	}
	several, err := fc.list(field+".min_should.conditions", f.GetMinShould().GetConditions())
	if err != nil {
		return nil, err
	}
	enough := f.GetMinShould().GetMinCount()
	return func(s subject) bool {
		holds := func(c condition) bool { return c(s) }
		if len(should) > 0 && !slices.ContainsFunc(should, holds) {
			return false
		}
		var count uint64
		for _, c := range several {
			if count < enough && c(s) {
				count++
			}
		}
		return count >= enough &&
			!slices.ContainsFunc(must, func(c condition) bool { return !c(s) }) &&
			!slices.ContainsFunc(mustNot, holds)
	}, nil
}

func (fc filterCompiler) list(field string, in []*qdrant.Condition) ([]condition, error) {
	compiled := make([]condition, len(in))
	for i, raw := range in {
		var err error
		if compiled[i], err = fc.condition(field+"["+strconv.Itoa(i)+"]", raw); err != nil {
			return nil, err
		}
	}
	return compiled, nil
}

func (fc filterCompiler) condition(field string, in *qdrant.Condition) (condition, error) {
	switch kind := in.GetConditionOneOf().(type) {
	case *qdrant.Condition_Field:
		return fc.field(field, kind.Field)
	case *qdrant.Condition_Filter:
		return fc.filter(field, kind.Filter)
	case *qdrant.Condition_IsEmpty:
		at, err := parsePath(kind.IsEmpty.GetKey())
		return func(s subject) bool {
			return !slices.ContainsFunc(at.values(s.payload), func(v *qdrant.Value) bool { return !emptyValue(v) })
		}, err
	case *qdrant.Condition_IsNull:
		at, err := parsePath(kind.IsNull.GetKey())
		return func(s subject) bool { return slices.ContainsFunc(at.values(s.payload), isNull) }, err
	case *qdrant.Condition_HasId:
		ids, err := parseIDs(kind.HasId.GetHasId())
		set := make(map[pointID]bool, len(ids))
		for _, id := range ids {
			set[id] = true
		}
		return func(s subject) bool { return s.point != nil && set[s.point.id] }, err
	case *qdrant.Condition_HasVector:
		name := kind.HasVector.GetHasVector()
		return func(s subject) bool {
			if s.point == nil {
				return false
			}
			_, has := s.point.vectors[name]
			return has
		}, nil
	case *qdrant.Condition_Nested:
		return fc.nested(field, kind.Nested)
	}
	return nil, invalidArgument("Malformed Condition type")
}

// nested holds when one object of a list fits the inner filter by itself.
func (fc filterCompiler) nested(field string, in *qdrant.NestedCondition) (condition, error) {
	if in.GetFilter() == nil {
		return nil, invalidArgument("Malformed NestedCondition type: filter is required")
	}
	key, err := parsePath(in.GetKey())
	if err != nil {
		return nil, err
	}
	at := key.forElements()
	inner := filterCompiler{indexes: fc.indexes, under: append(slices.Clone(fc.under), at...)}
	holds, err := inner.filter(field+".nested.filter", in.GetFilter())
	return func(s subject) bool {
		return slices.ContainsFunc(at.values(s.payload), func(v *qdrant.Value) bool {
			object := v.GetStructValue()
			return object != nil && holds(subject{payload: object.GetFields()})
		})
	}, err
}

func emptyValue(v *qdrant.Value) bool {
	list := v.GetListValue()
	return isNull(v) || list != nil && len(list.GetValues()) == 0
}

// fieldCheck is a compiled field condition. A count, is_empty and is_null look
// at a value as it is and take precedence over everything else; the other
// checks look at the elements of a list.
type fieldCheck struct {
	count           *qdrant.ValuesCount
	isEmpty, isNull *bool
	checks          []func(*qdrant.Value) bool
}

func (fc filterCompiler) field(field string, in *qdrant.FieldCondition) (condition, error) {
	at, err := parsePath(in.GetKey())
	if err != nil {
		return nil, err
	}
	if in.GetGeoBoundingBox() != nil || in.GetGeoRadius() != nil || in.GetGeoPolygon() != nil {
		return nil, notModelled("geo conditions (key %q)", in.GetKey())
	}
	fch := fieldCheck{count: in.GetValuesCount(), isEmpty: in.IsEmpty, isNull: in.IsNull}
	if in.GetMatch() != nil {
		index := fc.indexes[append(slices.Clone(fc.under), at...).String()]
		if index != nil && index.schema != qdrant.PayloadSchemaType_Text {
			index = nil
		}
		check, err := compileMatch(in.GetMatch(), index)
		if err != nil {
			return nil, err
		}
		fch.checks = append(fch.checks, check)
	}
	if r := in.GetRange(); r != nil {
		fch.checks = append(fch.checks, func(v *qdrant.Value) bool { return inRange(r, v) })
	} else if r := in.GetDatetimeRange(); r != nil {
		fch.checks = append(fch.checks, func(v *qdrant.Value) bool { return inTimeRange(r, v) })
	}
	if len(fch.checks) == 0 && fch.count == nil && fch.isEmpty == nil && fch.isNull == nil {
		return nil, invalidField(field+".match", "Validation error: At least one field condition must be specified [{}]")
	}
	return func(s subject) bool {
		values := at.values(s.payload)
		if len(values) == 0 {
			return fch.missing()
		}
		return slices.ContainsFunc(values, fch.holds)
	}, nil
}

// missing is the answer for a key that is not there. Only is_empty and is_null
// say anything about it.
func (f fieldCheck) missing() bool {
	switch {
	case f.isEmpty != nil:
		return *f.isEmpty
	case f.isNull != nil:
		return !*f.isNull
	}
	return false
}

func (f fieldCheck) holds(v *qdrant.Value) bool {
	list := v.GetListValue()
	switch {
	case f.count != nil:
		var n uint64 = 1
		if list != nil {
			n = uint64(len(list.GetValues()))
		} else if isNull(v) {
			n = 0
		}
		c := f.count
		return (c.Lt == nil || n < *c.Lt) && (c.Gt == nil || n > *c.Gt) && (c.Lte == nil || n <= *c.Lte) && (c.Gte == nil || n >= *c.Gte)
	case f.isEmpty != nil:
		return emptyValue(v) == *f.isEmpty
	case f.isNull != nil:
		null := isNull(v) || list != nil && slices.ContainsFunc(list.GetValues(), isNull)
		return null == *f.isNull
	case list != nil:
		return slices.ContainsFunc(list.GetValues(), f.single)
	}
	return f.single(v)
}

func (f fieldCheck) single(v *qdrant.Value) bool {
	return slices.ContainsFunc(f.checks, func(check func(*qdrant.Value) bool) bool { return check(v) })
}

// number is a value as a float; integers count too.
func number(v *qdrant.Value) (float64, bool) {
	switch kind := v.GetKind().(type) {
	case *qdrant.Value_IntegerValue:
		return float64(kind.IntegerValue), true
	case *qdrant.Value_DoubleValue:
		return kind.DoubleValue, true
	}
	return 0, false
}

func inRange(r *qdrant.Range, v *qdrant.Value) bool {
	x, ok := number(v)
	return ok && (r.Lt == nil || x < *r.Lt) && (r.Gt == nil || x > *r.Gt) && (r.Lte == nil || x <= *r.Lte) && (r.Gte == nil || x >= *r.Gte)
}

func inTimeRange(r *qdrant.DatetimeRange, v *qdrant.Value) bool {
	t, ok := parseTime(v.GetStringValue())
	against := func(bound *timestamppb.Timestamp, fits func(time.Time) bool) bool {
		return bound == nil || fits(bound.AsTime())
	}
	return ok && against(r.GetLt(), t.Before) && against(r.GetGt(), t.After) &&
		against(r.GetLte(), func(b time.Time) bool { return !t.After(b) }) &&
		against(r.GetGte(), func(b time.Time) bool { return !t.Before(b) })
}
