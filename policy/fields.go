package policy

import (
	"reflect"
	"strings"
	"sync"
)

// field is a key of a section.
type field struct {
	key   string
	index int
	typ   reflect.Type
}

// fieldsOf lists the keys of a section in the order of its struct.
func fieldsOf(t reflect.Type) []field {
	fields := make([]field, t.NumField())
	for i := range fields {
		f := t.Field(i)
		fields[i] = field{f.Tag.Get("koanf"), i, f.Type}
	}
	return fields
}

// nullable reports whether a value may be null, which for such a key is the
// same as leaving it out.
func nullable(t reflect.Type) bool { return t.Kind() == reflect.Pointer }

// optional lists the keys that may be left out although they are not null
// then.
var optional = []string{"description", "digest", "evidence"}

// knownPaths lists every key of the file form by its path, tables whose keys
// the writer chooses as one key. Those of sections come before what is in
// them. The list is shared and not to be changed.
var knownPaths = sync.OnceValue(func() []string {
	var paths []string
	var walk func(t reflect.Type, path string)
	walk = func(t reflect.Type, path string) {
		for _, f := range fieldsOf(t) {
			own := join(path, f.key)
			paths = append(paths, own)
			if f.typ.Kind() == reflect.Struct {
				walk(f.typ, own)
			}
		}
	}
	walk(reflect.TypeFor[Policy](), "")
	return paths
})

// tablePaths lists the tables whose keys the writer chooses.
func tablePaths() []string {
	var paths []string
	var walk func(t reflect.Type, path string)
	walk = func(t reflect.Type, path string) {
		for _, f := range fieldsOf(t) {
			switch f.typ.Kind() {
			case reflect.Struct:
				walk(f.typ, join(path, f.key))
			case reflect.Map:
				paths = append(paths, join(path, f.key))
			}
		}
	}
	walk(reflect.TypeFor[Policy](), "")
	return paths
}

// lastKey is the part of a path after the last dot.
func lastKey(path string) string { return path[strings.LastIndexByte(path, '.')+1:] }

// tree turns a policy, or a part of it, into maps, lists and plain values with
// the keys of the file form: map[string]any, []any, string, bool, int64,
// float64 and nil. Empty tables and lists are there, never nil.
func tree(v reflect.Value) any {
	switch v.Kind() {
	case reflect.Struct:
		m := make(map[string]any, v.NumField())
		for _, f := range fieldsOf(v.Type()) {
			m[f.key] = tree(v.Field(f.index))
		}
		return m
	case reflect.Map:
		m := make(map[string]any, v.Len())
		for i := v.MapRange(); i.Next(); {
			m[i.Key().String()] = tree(i.Value())
		}
		return m
	case reflect.Slice:
		list := make([]any, v.Len())
		for i := range list {
			list[i] = tree(v.Index(i))
		}
		return list
	case reflect.Pointer:
		if v.IsNil() {
			return nil
		}
		return tree(v.Elem())
	case reflect.Bool:
		return v.Bool()
	case reflect.Int:
		return v.Int()
	case reflect.Float64:
		return v.Float()
	}
	return v.String()
}

// treeOf is the tree of a policy without the optional keys that are empty.
func treeOf(p *Policy) map[string]any {
	m := tree(reflect.ValueOf(p).Elem()).(map[string]any)
	for _, key := range optional {
		if m[key] == "" {
			delete(m, key)
		}
	}
	return m
}
