package qdranttest

import (
	"maps"
	"math"
	"slices"

	"github.com/qdrant/go-client/qdrant"
	"google.golang.org/protobuf/proto"
)

// checkPayload refuses what JSON cannot hold.
func checkPayload(payload map[string]*qdrant.Value) error {
	for _, v := range payload {
		if err := checkValue(v); err != nil {
			return err
		}
	}
	return nil
}

func checkValue(v *qdrant.Value) error {
	switch kind := v.GetKind().(type) {
	case *qdrant.Value_DoubleValue:
		if math.IsNaN(kind.DoubleValue) || math.IsInf(kind.DoubleValue, 0) {
			return invalidArgument("cannot convert to json number")
		}
	case *qdrant.Value_StructValue:
		return checkPayload(kind.StructValue.GetFields())
	case *qdrant.Value_ListValue:
		for _, element := range kind.ListValue.GetValues() {
			if err := checkValue(element); err != nil {
				return err
			}
		}
	}
	return nil
}

func clonePayload(payload map[string]*qdrant.Value) map[string]*qdrant.Value {
	if len(payload) == 0 {
		return nil
	}
	copied := make(map[string]*qdrant.Value, len(payload))
	for key, v := range payload {
		copied[key] = cloneValue(v)
	}
	return copied
}

// cloneValue copies a value; one without a kind is null.
func cloneValue(v *qdrant.Value) *qdrant.Value {
	switch kind := v.GetKind().(type) {
	case nil:
		return qdrant.NewValueNull()
	case *qdrant.Value_StructValue:
		return qdrant.NewValueStruct(&qdrant.Struct{Fields: clonePayload(kind.StructValue.GetFields())})
	case *qdrant.Value_ListValue:
		elements := make([]*qdrant.Value, len(kind.ListValue.GetValues()))
		for i, element := range kind.ListValue.GetValues() {
			elements[i] = cloneValue(element)
		}
		return qdrant.NewValueList(&qdrant.ListValue{Values: elements})
	}
	return proto.CloneOf(v)
}

func isNull(v *qdrant.Value) bool {
	_, null := v.GetKind().(*qdrant.Value_NullValue)
	return null
}

// mergePayload returns base with the keys of changes set; null removes a key.
// Neither argument changes.
func mergePayload(base, changes map[string]*qdrant.Value) map[string]*qdrant.Value {
	merged := maps.Clone(base)
	if merged == nil {
		merged = map[string]*qdrant.Value{}
	}
	for key, v := range changes {
		if isNull(v) {
			delete(merged, key)
		} else {
			merged[key] = v
		}
	}
	return merged
}

// mergeAt merges changes into the object at a path and returns the new payload.
// What stands in the way of the path is replaced by an object.
func mergeAt(payload map[string]*qdrant.Value, at path, changes map[string]*qdrant.Value) map[string]*qdrant.Value {
	if len(at) == 0 {
		return mergePayload(payload, changes)
	}
	result := maps.Clone(payload)
	if result == nil {
		result = map[string]*qdrant.Value{}
	}
	result[at[0].key] = mergeInto(result[at[0].key], at[1:], changes)
	return result
}

func mergeInto(v *qdrant.Value, at path, changes map[string]*qdrant.Value) *qdrant.Value {
	if len(at) == 0 || at[0].kind == stepKey {
		return qdrant.NewValueStruct(&qdrant.Struct{Fields: mergeAt(v.GetStructValue().GetFields(), at, changes)})
	}
	elements := slices.Clone(v.GetListValue().GetValues())
	for i := range elements {
		if at[0].kind == stepAll || at[0].index == i {
			elements[i] = mergeInto(elements[i], at[1:], changes)
		}
	}
	return qdrant.NewValueList(&qdrant.ListValue{Values: elements})
}

// removeAt returns payload without what is at a path.
func removeAt(payload map[string]*qdrant.Value, at path) map[string]*qdrant.Value {
	old, found := payload[at[0].key]
	if !found {
		return payload
	}
	result := maps.Clone(payload)
	if len(at) == 1 {
		delete(result, at[0].key)
	} else {
		result[at[0].key] = removeFrom(old, at[1:])
	}
	return result
}

func removeFrom(v *qdrant.Value, at path) *qdrant.Value {
	if at[0].kind == stepKey {
		if v.GetStructValue() == nil {
			return v
		}
		return qdrant.NewValueStruct(&qdrant.Struct{Fields: removeAt(v.GetStructValue().GetFields(), at)})
	}
	list := v.GetListValue()
	if list == nil {
		return v
	}
	var kept []*qdrant.Value
	for i, element := range list.GetValues() {
		hit := at[0].kind == stepAll || at[0].index == i
		switch {
		case hit && len(at) == 1:
		case hit:
			kept = append(kept, removeFrom(element, at[1:]))
		default:
			kept = append(kept, element)
		}
	}
	return qdrant.NewValueList(&qdrant.ListValue{Values: kept})
}

// payloadSelector takes the wanted part of a payload.
type payloadSelector func(map[string]*qdrant.Value) map[string]*qdrant.Value

func allPayload(payload map[string]*qdrant.Value) map[string]*qdrant.Value { return payload }

func noPayload(map[string]*qdrant.Value) map[string]*qdrant.Value { return nil }

// parsePayloadSelector reads with_payload; without one it is otherwise.
func parsePayloadSelector(in *qdrant.WithPayloadSelector, otherwise payloadSelector) (payloadSelector, error) {
	switch kind := in.GetSelectorOptions().(type) {
	case *qdrant.WithPayloadSelector_Enable:
		if kind.Enable {
			return allPayload, nil
		}
		return noPayload, nil
	case *qdrant.WithPayloadSelector_Include:
		patterns, err := parsePaths(kind.Include.GetFields())
		return filterPayload(func(at path) bool {
			return slices.ContainsFunc(patterns, func(p path) bool { return at.startsWith(p) || p.startsWith(at) })
		}), err
	case *qdrant.WithPayloadSelector_Exclude:
		patterns, err := parsePaths(kind.Exclude.GetFields())
		return filterPayload(func(at path) bool {
			return !slices.ContainsFunc(patterns, func(p path) bool { return at.startsWith(p) })
		}), err
	}
	return otherwise, nil
}

func parsePaths(texts []string) ([]path, error) {
	paths := make([]path, len(texts))
	for i, text := range texts {
		var err error
		if paths[i], err = parsePath(text); err != nil {
			return nil, err
		}
	}
	return paths, nil
}

// filterPayload keeps the values whose path, with [] for elements, is wanted.
func filterPayload(wanted func(path) bool) payloadSelector {
	return func(payload map[string]*qdrant.Value) map[string]*qdrant.Value {
		return filterFields(payload, nil, wanted)
	}
}

func filterFields(fields map[string]*qdrant.Value, at path, wanted func(path) bool) map[string]*qdrant.Value {
	kept := map[string]*qdrant.Value{}
	for key, v := range fields {
		if here := append(slices.Clone(at), step{key: key}); wanted(here) {
			kept[key] = filterValue(v, here, wanted)
		}
	}
	return kept
}

func filterValue(v *qdrant.Value, at path, wanted func(path) bool) *qdrant.Value {
	switch kind := v.GetKind().(type) {
	case *qdrant.Value_StructValue:
		return qdrant.NewValueStruct(&qdrant.Struct{Fields: filterFields(kind.StructValue.GetFields(), at, wanted)})
	case *qdrant.Value_ListValue:
		here := append(slices.Clone(at), step{kind: stepAll})
		var kept []*qdrant.Value
		for _, element := range kind.ListValue.GetValues() {
			if wanted(here) {
				kept = append(kept, filterValue(element, here, wanted))
			}
		}
		return qdrant.NewValueList(&qdrant.ListValue{Values: kept})
	}
	return v
}

// vectorSelector takes the wanted vectors of a point.
type vectorSelector func(map[string]vector) *qdrant.VectorsOutput

// parseVectorSelector reads with_vectors; the default is none. As on the real
// server an unknown name is a fault only when there are points to read.
func (s vectorSet) parseVectorSelector(in *qdrant.WithVectorsSelector, points int) (vectorSelector, error) {
	switch kind := in.GetSelectorOptions().(type) {
	case *qdrant.WithVectorsSelector_Enable:
		if kind.Enable {
			return vectorsOutput, nil
		}
	case *qdrant.WithVectorsSelector_Include:
		names := kind.Include.GetNames()
		for _, name := range names {
			if err := s.check(name); err != nil && points > 0 {
				return nil, err
			}
		}
		return func(all map[string]vector) *qdrant.VectorsOutput {
			chosen := map[string]vector{}
			for _, name := range names {
				if v, has := all[name]; has {
					chosen[name] = v
				}
			}
			return vectorsOutput(chosen)
		}, nil
	}
	return func(map[string]vector) *qdrant.VectorsOutput { return nil }, nil
}

// vectorsOutput gives the unnamed vector alone as such, everything else by name,
// and nil when there is nothing.
func vectorsOutput(all map[string]vector) *qdrant.VectorsOutput {
	if len(all) == 0 {
		return nil
	}
	if v, unnamed := all[""]; unnamed && len(all) == 1 {
		return &qdrant.VectorsOutput{VectorsOptions: &qdrant.VectorsOutput_Vector{Vector: v.proto()}}
	}
	named := make(map[string]*qdrant.VectorOutput, len(all))
	for name, v := range all {
		named[name] = v.proto()
	}
	return &qdrant.VectorsOutput{VectorsOptions: &qdrant.VectorsOutput_Vectors{Vectors: &qdrant.NamedVectorsOutput{Vectors: named}}}
}
