package policy

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// typeWords is what FORMAT.md calls a type.
func typeWords(t reflect.Type) string {
	if nullable(t) {
		return typeWords(t.Elem()) + " or null"
	}
	switch t.Kind() {
	case reflect.Struct:
		return "section"
	case reflect.Map:
		return "table"
	case reflect.Slice:
		return "list"
	case reflect.Bool:
		return "true or false"
	case reflect.Int:
		return "whole number"
	case reflect.Float64:
		return "number"
	}
	return "text"
}

// documented lists the paths that FORMAT.md has to describe, with * for a name
// in a table or a place in a list, in the order of the file form, and their
// types.
func documented() (paths []string, types map[string]reflect.Type) {
	types = map[string]reflect.Type{}
	var walk func(t reflect.Type, path string)
	walk = func(t reflect.Type, path string) {
		switch t.Kind() {
		case reflect.Struct:
			for _, f := range fieldsOf(t) {
				own := join(path, f.key)
				paths, types[own] = append(paths, own), f.typ
				walk(f.typ, own)
			}
		case reflect.Map, reflect.Slice:
			own := join(path, "*")
			if t.Elem().Kind() != reflect.Struct {
				paths, types[own] = append(paths, own), t.Elem()
			}
			walk(t.Elem(), own)
		}
	}
	walk(reflect.TypeFor[Policy](), "")
	return paths, types
}

// TestFormatPage: FORMAT.md and the structs have the same keys in the same
// order, with the same types and defaults.
func TestFormatPage(t *testing.T) {
	paths, types := documented()
	var page []string
	for line := range strings.Lines(formatPage) {
		if key, isHeading := strings.CutPrefix(line, "## `"); isHeading {
			if key, _, _ = strings.Cut(key, "`"); key != "plugins" {
				page = append(page, key)
			}
		} else if key, isRow := strings.CutPrefix(line, "| `"); isRow {
			key, _, _ = strings.Cut(key, "`")
			page = append(page, key)
		}
	}
	if !slices.Equal(page, paths) {
		for i := range min(len(page), len(paths)) {
			if page[i] != paths[i] {
				t.Fatalf("FORMAT.md has %s where the structs have %s", page[i], paths[i])
			}
		}
		t.Fatalf("FORMAT.md has %d keys, the structs %d", len(page), len(paths))
	}
	for _, path := range paths {
		doc := keyDocs()[path]
		if doc.typ != typeWords(types[path]) {
			t.Errorf("%s is a %q in FORMAT.md, a %q in the struct", path, doc.typ, typeWords(types[path]))
		}
		if doc.meaning == "" {
			t.Errorf("%s has no meaning", path)
		}
		standard, has := defaultOf(path)
		switch {
		case path == "schema" || path == "name":
			if doc.standard != "required" {
				t.Errorf("%s is not required", path)
			}
		case doc.typ == "section" || strings.Contains(path, "*"):
			if doc.standard != "" {
				t.Errorf("%s has a default of its own", path)
			}
		case slices.Contains(optional, path):
			if doc.standard != `""` {
				t.Errorf("%s is %s by default, want it empty", path, doc.standard)
			}
		case !has || doc.standard != jsonText(standard):
			t.Errorf("%s is %s by default in FORMAT.md, %s in the struct", path, doc.standard, jsonText(standard))
		}
	}
}

// TestFormatRanges: a number inside the range that FORMAT.md states, ends
// included, is valid, and one outside is refused; so are choices.
func TestFormatRanges(t *testing.T) {
	// Keys that depend on others can take only some of their range by
	// themselves.
	dependent := map[string]bool{"decode.break_distance": true, "graph.minimum_edge_distance": true, "graph.maximum_distance": true,
		"activation.t_on": true, "activation.t_off": true, "vectors.dimension": true, "chunking.unit": true, "chunking.version": true,
		"arms.raw.weight": true, "arms.history.weight": true, "schema": true}
	paths, types := documented()
	numbers, enumerations := 0, 0
	for _, path := range paths {
		if strings.Contains(path, "*") {
			continue
		}
		doc := keyDocs()[path]
		faulty := func(set func(v reflect.Value)) bool {
			p := Default()
			p.Name = "t"
			set(at(p, path))
			return slices.ContainsFunc(Faults(p.Validate()), func(f *Fault) bool { return f.Key == path })
		}
		typ := types[path]
		if nullable(typ) {
			typ = typ.Elem()
		}
		switch typ.Kind() {
		case reflect.Int, reflect.Float64:
			numbers++
			low, high, above := doc.bounds()
			try := func(x float64, valid bool) {
				got := faulty(func(v reflect.Value) {
					switch {
					case nullable(types[path]):
						v.Set(reflect.ValueOf(new(int(x))))
					case typ.Kind() == reflect.Int:
						v.SetInt(int64(x))
					default:
						v.SetFloat(x)
					}
				})
				if got == valid && (!valid || !dependent[path]) {
					t.Errorf("%s is %v: at fault %t, but FORMAT.md says %q", path, x, got, doc.limits)
				}
			}
			step := 1e-9
			if typ.Kind() == reflect.Int {
				step = 1
			}
			switch {
			case math.IsInf(low, 0):
				try(-1e300, true)
			case above:
				try(low, false)
				try(low+step, true)
			default:
				try(low, true)
				try(low-step, false)
			}
			if math.IsInf(high, 0) {
				try(1e15, true)
			} else {
				try(high, true)
				try(high+step*max(1, high), false)
			}
		case reflect.String:
			choices := doc.choices()
			if choices == nil {
				continue
			}
			enumerations++
			for _, choice := range choices {
				if faulty(func(v reflect.Value) { v.SetString(choice.(string)) }) && !dependent[path] {
					t.Errorf("%s may not be %q, but FORMAT.md lists it", path, choice)
				}
			}
			if !faulty(func(v reflect.Value) { v.SetString("no such choice") }) {
				t.Errorf("%s takes any text, but FORMAT.md says %q", path, doc.limits)
			}
			if kind := Kind(strings.TrimSuffix(path, ".version")); strings.HasSuffix(path, ".version") {
				if kind == "arms" {
					kind = KindContext
				}
				tags := tagsOf(kind)
				if len(choices) != len(tags) {
					t.Errorf("%s has the choices %v, the registry %v", path, choices, tags)
				}
			}
		}
	}
	if numbers < 35 || enumerations < 25 {
		t.Errorf("only %d numbers and %d enumerations were tried", numbers, enumerations)
	}
}

func TestKeyDocBounds(t *testing.T) {
	inf := math.Inf(1)
	for text, want := range map[string]string{
		"≥ 0": fmt.Sprint(0, inf, false), "> 0": fmt.Sprint(0, inf, true), "0 … 1": fmt.Sprint(0, 1, false),
		"> 0 … 1": fmt.Sprint(0, 1, true), "-1 … 1": fmt.Sprint(-1, 1, false), "1e-6 … 1e6": fmt.Sprint(1e-6, 1e6, false), "any": fmt.Sprint(-inf, inf, false),
	} {
		low, high, above := keyDoc{limits: text}.bounds()
		if got := fmt.Sprint(low, high, above); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}
