package weaviate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/weaviate/weaviate/entities/models"

	pb "github.com/weaviate/weaviate/grpc/generated/protocol/v1"
)

// maxWhereDepth bounds how deep filters may be nested.
const maxWhereDepth = 32

// operators of a filter, by their name in GraphQL and REST. The last two came
// with servers that are younger than the types of the gRPC protocol used here.
var operators = map[string]pb.Filters_Operator{
	"And":              pb.Filters_OPERATOR_AND,
	"Or":               pb.Filters_OPERATOR_OR,
	"Not":              15,
	"Equal":            pb.Filters_OPERATOR_EQUAL,
	"NotEqual":         pb.Filters_OPERATOR_NOT_EQUAL,
	"GreaterThan":      pb.Filters_OPERATOR_GREATER_THAN,
	"GreaterThanEqual": pb.Filters_OPERATOR_GREATER_THAN_EQUAL,
	"LessThan":         pb.Filters_OPERATOR_LESS_THAN,
	"LessThanEqual":    pb.Filters_OPERATOR_LESS_THAN_EQUAL,
	"WithinGeoRange":   pb.Filters_OPERATOR_WITHIN_GEO_RANGE,
	"Like":             pb.Filters_OPERATOR_LIKE,
	"IsNull":           pb.Filters_OPERATOR_IS_NULL,
	"ContainsAny":      pb.Filters_OPERATOR_CONTAINS_ANY,
	"ContainsAll":      pb.Filters_OPERATOR_CONTAINS_ALL,
	"ContainsNone":     14,
}

// containsOperators take lists.
var containsOperators = []string{"ContainsAny", "ContainsAll", "ContainsNone"}

// lengthPattern is a filter on the length of a property.
var lengthPattern = regexp.MustCompile(`^len\([_A-Za-z][_0-9A-Za-z]{0,230}\)$`)

// ParseWhere reads a filter in the JSON form of Weaviate's REST interface:
//
//	{"operator": "And", "operands": [
//	  {"path": ["section"], "operator": "Equal", "valueText": "Crossings"},
//	  {"path": ["ordinal"], "operator": "LessThan", "valueInt": 10}]}
//
// Unknown fields and operators, names that are none, and filters without or with
// several values are errors. ContainsAny, ContainsAll and ContainsNone take a
// list, as valueTextArray, valueIntArray and so on.
func ParseWhere(text string) (*models.WhereFilter, error) {
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	decoder.DisallowUnknownFields()
	var w *models.WhereFilter
	if err := decoder.Decode(&w); err != nil {
		return nil, fmt.Errorf("filter: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("filter: there is more after the JSON object")
	}
	if err := checkWhere(w); err != nil {
		return nil, fmt.Errorf("filter: %w", err)
	}
	return w, nil
}

// checkWhere reports the first fault of a filter.
func checkWhere(w *models.WhereFilter) error { return checkWhereAt(w, 0) }

func checkWhereAt(w *models.WhereFilter, depth int) error {
	switch {
	case w == nil:
		return errors.New("an operand is null")
	case depth > maxWhereDepth:
		return fmt.Errorf("operands are nested deeper than %d", maxWhereDepth)
	}
	if _, known := operators[w.Operator]; !known {
		return fmt.Errorf("operator %q is unknown", w.Operator)
	}
	values := whereValues(w)
	if w.Operator == "And" || w.Operator == "Or" || w.Operator == "Not" {
		if len(w.Operands) == 0 || len(values) > 0 || len(w.Path) > 0 {
			return fmt.Errorf("operator %s takes operands alone", w.Operator)
		}
		if w.Operator == "Not" && len(w.Operands) != 1 {
			return fmt.Errorf("operator Not takes one operand, not %d", len(w.Operands))
		}
		for _, operand := range w.Operands {
			if err := checkWhereAt(operand, depth+1); err != nil {
				return err
			}
		}
		return nil
	}
	if len(w.Operands) > 0 {
		return fmt.Errorf("operator %s takes no operands", w.Operator)
	}
	if len(values) != 1 {
		return fmt.Errorf("operator %s at %q has %d values, want one", w.Operator, w.Path, len(values))
	}
	elements, isList := values[0].list()
	if len(elements) == 0 {
		return fmt.Errorf("operator %s at %q: the list of %s is empty: name one value or more", w.Operator, w.Path, values[0].name)
	}
	if want := slices.Contains(containsOperators, w.Operator); isList != want {
		return fmt.Errorf("operator %s at %q: %s is a list: %v, want %v", w.Operator, w.Path, values[0].name, isList, want)
	}
	if err := values[0].check(); err != nil {
		return fmt.Errorf("operator %s at %q: %w", w.Operator, w.Path, err)
	}
	return checkPath(w.Path)
}

// checkPath checks property, or property, class, property and so on.
func checkPath(path []string) error {
	if len(path)%2 != 1 {
		return fmt.Errorf("path %q is not a property, or property, class, property", path)
	}
	for i, part := range path {
		var err error
		switch {
		case i%2 == 1:
			_, err = className(part)
		case i == len(path)-1 && lengthPattern.MatchString(part):
		default:
			err = checkName("property", part)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// whereValue is a value of a filter with the name of its field.
type whereValue struct {
	name  string // as in GraphQL, where a list has the name of its elements
	value any    // string, int64, float64, bool, a slice of one, or *models.WhereFilterGeoRange
}

// whereValues are the values that a filter has; it should be one.
func whereValues(w *models.WhereFilter) []whereValue {
	var found []whereValue
	add := func(set bool, name string, value func() any) {
		if set {
			found = append(found, whereValue{name, value()})
		}
	}
	add(w.ValueText != nil, "valueText", func() any { return *w.ValueText })
	add(w.ValueString != nil, "valueText", func() any { return *w.ValueString })
	add(w.ValueDate != nil, "valueDate", func() any { return *w.ValueDate })
	add(w.ValueInt != nil, "valueInt", func() any { return *w.ValueInt })
	add(w.ValueNumber != nil, "valueNumber", func() any { return *w.ValueNumber })
	add(w.ValueBoolean != nil, "valueBoolean", func() any { return *w.ValueBoolean })
	add(w.ValueTextArray != nil, "valueText", func() any { return w.ValueTextArray })
	add(w.ValueStringArray != nil, "valueText", func() any { return w.ValueStringArray })
	add(w.ValueDateArray != nil, "valueDate", func() any { return w.ValueDateArray })
	add(w.ValueIntArray != nil, "valueInt", func() any { return w.ValueIntArray })
	add(w.ValueNumberArray != nil, "valueNumber", func() any { return w.ValueNumberArray })
	add(w.ValueBooleanArray != nil, "valueBoolean", func() any { return w.ValueBooleanArray })
	add(w.ValueGeoRange != nil, "valueGeoRange", func() any { return w.ValueGeoRange })
	return found
}

// list returns the elements of a list, and whether it is one.
func (v whereValue) list() ([]any, bool) {
	switch list := v.value.(type) {
	case []string:
		return anys(list), true
	case []int64:
		return anys(list), true
	case []float64:
		return anys(list), true
	case []bool:
		return anys(list), true
	}
	return []any{v.value}, false
}

func anys[T any](list []T) []any {
	out := make([]any, len(list))
	for i, x := range list {
		out[i] = x
	}
	return out
}

func (v whereValue) check() error {
	elements, _ := v.list()
	for _, e := range elements {
		switch x := e.(type) {
		case string:
			if !utf8.ValidString(x) {
				return fmt.Errorf("%q is not valid UTF-8", x)
			}
			if v.name == "valueDate" {
				if _, err := time.Parse(time.RFC3339Nano, x); err != nil {
					return fmt.Errorf("%q is not a date such as 2006-01-02T15:04:05Z", x)
				}
			}
		case float64:
			if !finite(x) {
				return fmt.Errorf("%v is not finite", x)
			}
		case *models.WhereFilterGeoRange:
			if x.GeoCoordinates == nil || x.GeoCoordinates.Latitude == nil || x.GeoCoordinates.Longitude == nil || x.Distance == nil || !finite(x.Distance.Max) {
				return errors.New("valueGeoRange wants geoCoordinates with latitude and longitude, and distance with max in metres")
			}
		}
	}
	return nil
}

// whereGraphQL writes a checked filter as the fields of a GraphQL object.
func whereGraphQL(q *query, w *models.WhereFilter) {
	q.raw("operator:" + w.Operator)
	if len(w.Operands) > 0 {
		q.raw(" operands:[")
		for _, operand := range w.Operands {
			q.raw("{")
			whereGraphQL(q, operand)
			q.raw("}")
		}
		q.raw("]")
		return
	}
	q.raw(" path:[")
	for _, part := range w.Path {
		q.text(part)
	}
	q.raw("]")
	v := whereValues(w)[0]
	q.raw(" " + v.name + ":")
	elements, isList := v.list()
	if isList {
		q.raw("[")
	}
	for i, e := range elements {
		if i > 0 {
			q.raw(",")
		}
		switch x := e.(type) {
		case string:
			q.text(x)
		case int64:
			q.raw(strconv.FormatInt(x, 10))
		case float64:
			q.number(x)
		case bool:
			q.raw(strconv.FormatBool(x))
		case *models.WhereFilterGeoRange:
			q.raw("{geoCoordinates:{latitude:")
			q.number(float64(*x.GeoCoordinates.Latitude))
			q.raw(" longitude:")
			q.number(float64(*x.GeoCoordinates.Longitude))
			q.raw("} distance:{max:")
			q.number(x.Distance.Max)
			q.raw("}}")
		}
	}
	if isList {
		q.raw("]")
	}
}

// whereGRPC is a checked filter as a message; nil for none.
func whereGRPC(w *models.WhereFilter) *pb.Filters {
	if w == nil {
		return nil
	}
	f := &pb.Filters{Operator: operators[w.Operator]}
	if len(w.Operands) > 0 {
		for _, operand := range w.Operands {
			f.Filters = append(f.Filters, whereGRPC(operand))
		}
		return f
	}
	f.Target = targetGRPC(w.Path)
	switch x := whereValues(w)[0].value.(type) {
	case string:
		f.TestValue = &pb.Filters_ValueText{ValueText: x}
	case int64:
		f.TestValue = &pb.Filters_ValueInt{ValueInt: x}
	case float64:
		f.TestValue = &pb.Filters_ValueNumber{ValueNumber: x}
	case bool:
		f.TestValue = &pb.Filters_ValueBoolean{ValueBoolean: x}
	case []string:
		f.TestValue = &pb.Filters_ValueTextArray{ValueTextArray: &pb.TextArray{Values: x}}
	case []int64:
		f.TestValue = &pb.Filters_ValueIntArray{ValueIntArray: &pb.IntArray{Values: x}}
	case []float64:
		f.TestValue = &pb.Filters_ValueNumberArray{ValueNumberArray: &pb.NumberArray{Values: x}}
	case []bool:
		f.TestValue = &pb.Filters_ValueBooleanArray{ValueBooleanArray: &pb.BooleanArray{Values: x}}
	case *models.WhereFilterGeoRange:
		f.TestValue = &pb.Filters_ValueGeo{ValueGeo: &pb.GeoCoordinatesFilter{
			Latitude: *x.GeoCoordinates.Latitude, Longitude: *x.GeoCoordinates.Longitude, Distance: float32(x.Distance.Max),
		}}
	}
	return f
}

// targetGRPC is the path of a filter. The UUID is called _id there.
func targetGRPC(path []string) *pb.FilterTarget {
	if len(path) == 1 {
		name := path[0]
		if name == uuidProperty {
			name = "_id"
		}
		return &pb.FilterTarget{Target: &pb.FilterTarget_Property{Property: name}}
	}
	return &pb.FilterTarget{Target: &pb.FilterTarget_MultiTarget{MultiTarget: &pb.FilterReferenceMultiTarget{
		On: path[0], TargetCollection: path[1], Target: targetGRPC(path[2:]),
	}}}
}

// both joins two filters; either may be nil.
func both(a, b *models.WhereFilter) *models.WhereFilter {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return &models.WhereFilter{Operator: "And", Operands: []*models.WhereFilter{a, b}}
}

// anyOf is a filter for objects whose property is one of values.
func anyOf(path []string, values []string) *models.WhereFilter {
	return &models.WhereFilter{Operator: "ContainsAny", Path: path, ValueTextArray: values}
}
