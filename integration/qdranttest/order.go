package qdranttest

import (
	"cmp"
	"math"
	"slices"

	"github.com/qdrant/go-client/qdrant"
)

// ordered is a point with a value of the key it is ordered by.
type ordered struct {
	p     *point
	value *qdrant.OrderValue
}

// compareOrder compares integers with integers exactly, else as floats.
func compareOrder(a, b *qdrant.OrderValue) int {
	x, xInt := a.GetVariant().(*qdrant.OrderValue_Int)
	y, yInt := b.GetVariant().(*qdrant.OrderValue_Int)
	if xInt && yInt {
		return cmp.Compare(x.Int, y.Int)
	}
	return cmp.Compare(orderFloat(a), orderFloat(b))
}

func orderFloat(v *qdrant.OrderValue) float64 {
	if i, ok := v.GetVariant().(*qdrant.OrderValue_Int); ok {
		return float64(i.Int)
	}
	return v.GetFloat()
}

func orderInt(n int64) *qdrant.OrderValue {
	return &qdrant.OrderValue{Variant: &qdrant.OrderValue_Int{Int: n}}
}

// orderBy lists points by a payload key, best first, a point once for each of
// its values; one without a value is left out. Equal values are in the order of
// the IDs, in the direction asked for.
func (v *view) orderBy(in *qdrant.OrderBy, fits func(*point) bool, limit int) ([]ordered, error) {
	at, err := parsePath(in.GetKey())
	if err != nil {
		return nil, err
	}
	index := v.indexes[at.String()]
	if index == nil || !index.ranges() {
		return nil, badInput("No range index for `order_by` key: `%s`. Please create one to use `order_by`. Check https://qdrant.tech/documentation/concepts/indexing/#payload-index to see which payload schemas support Range conditions", in.GetKey())
	}
	descending := in.GetDirection() == qdrant.Direction_Desc
	start, err := startFrom(in.GetStartFrom())
	if err != nil {
		return nil, err
	}
	var list []ordered
	for _, p := range v.points {
		if !fits(p) {
			continue
		}
		index.flat(p, func(value *qdrant.Value) {
			order := index.orderValue(value)
			if order == nil {
				return
			}
			if start != nil {
				if c := compareOrder(order, start); descending && c > 0 || !descending && c < 0 {
					return
				}
			}
			list = append(list, ordered{p: p, value: order})
		})
	}
	slices.SortStableFunc(list, func(a, b ordered) int {
		c := cmp.Or(compareOrder(a.value, b.value), compareID(a.p.id, b.p.id))
		if descending {
			return -c
		}
		return c
	})
	list = slices.CompactFunc(list, func(a, b ordered) bool { return a.p == b.p && compareOrder(a.value, b.value) == 0 })
	return list[:min(limit, len(list))], nil
}

// orderValue is a value as the index orders it, nil when it has another type;
// times are microseconds since 1970.
func (x *payloadIndex) orderValue(v *qdrant.Value) *qdrant.OrderValue {
	if !x.holds(v) {
		return nil
	}
	switch x.schema {
	case qdrant.PayloadSchemaType_Integer:
		return orderInt(v.GetIntegerValue())
	case qdrant.PayloadSchemaType_Float:
		f, _ := number(v)
		return &qdrant.OrderValue{Variant: &qdrant.OrderValue_Float{Float: f}}
	}
	t, _ := parseTime(v.GetStringValue())
	return orderInt(t.UnixMicro())
}

func startFrom(in *qdrant.StartFrom) (*qdrant.OrderValue, error) {
	switch kind := in.GetValue().(type) {
	case *qdrant.StartFrom_Float:
		return &qdrant.OrderValue{Variant: &qdrant.OrderValue_Float{Float: kind.Float}}, nil
	case *qdrant.StartFrom_Integer:
		return orderInt(kind.Integer), nil
	case *qdrant.StartFrom_Timestamp:
		return orderInt(kind.Timestamp.AsTime().UnixMicro()), nil
	case *qdrant.StartFrom_Datetime:
		t, ok := parseTime(kind.Datetime)
		if !ok {
			return nil, invalidArgument("Malformed datetime: %s", kind.Datetime)
		}
		return orderInt(t.UnixMicro()), nil
	}
	return nil, nil
}

// clampLimit makes an int of a limit; nil is the default.
func clampLimit(limit *uint64, otherwise int) int {
	if limit == nil {
		return otherwise
	}
	return int(min(*limit, math.MaxInt32))
}
