package policy

import (
	"math"
	"reflect"
	"strings"
)

// JSONSchema returns a JSON Schema (draft 2020-12) of the file form, with which
// editors check and complete policy files. It knows keys, types, ranges and
// choices; conditions between keys are left to Validate.
func JSONSchema() []byte {
	root := schemaOf(reflect.TypeFor[Policy](), "")
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["title"] = "mmplug policy"
	root["required"] = []any{"schema", "name"}
	root["dependentRequired"] = map[string]any{"evidence": []any{"digest"}}
	w := jsonWriter{indent: "  "}
	w.value(root, 0)
	w.WriteByte('\n')
	return w.Bytes()
}

// schemaOf is the schema of a value of type t. In its path * stands for a name
// in a table or a place in a list.
func schemaOf(t reflect.Type, path string) map[string]any {
	doc := keyDocs()[path]
	s := map[string]any{}
	if doc.meaning != "" {
		s["description"] = doc.meaning
	}
	if nullable(t) {
		s = schemaOf(t.Elem(), path)
		s["type"] = []any{s["type"], "null"}
		return s
	}
	switch t.Kind() {
	case reflect.Struct:
		properties, required := map[string]any{}, []any{}
		for _, f := range fieldsOf(t) {
			properties[f.key] = schemaOf(f.typ, join(path, f.key))
			if !nullable(f.typ) {
				required = append(required, f.key)
			}
		}
		s["type"], s["properties"], s["required"], s["additionalProperties"] = "object", properties, required, false
	case reflect.Map:
		s["type"], s["additionalProperties"] = "object", schemaOf(t.Elem(), join(path, "*"))
		s["propertyNames"] = map[string]any{"pattern": `^[^.]+$`}
	case reflect.Slice:
		s["type"], s["items"] = "array", schemaOf(t.Elem(), join(path, "*"))
	case reflect.Bool:
		s["type"] = "boolean"
	case reflect.Int, reflect.Float64:
		s["type"] = "number"
		if t.Kind() == reflect.Int {
			s["type"] = "integer"
		}
		low, high, above := doc.bounds()
		switch {
		case above:
			s["exclusiveMinimum"] = low
		case !math.IsInf(low, 0):
			s["minimum"] = low
		}
		if !math.IsInf(high, 0) {
			s["maximum"] = high
		}
	default:
		s["type"] = "string"
		switch choices := doc.choices(); {
		case path == "name":
			s["pattern"] = nameForm.String()
		case choices != nil:
			s["enum"] = choices
		case strings.HasPrefix(doc.limits, "64 hexadecimal digits or"):
			s["pattern"] = `^([0-9a-f]{64})?$`
		case strings.HasPrefix(doc.limits, "64 hexadecimal digits"):
			s["pattern"] = sha256Form.String()
		}
	}
	if doc.standard != "" && doc.standard != "required" {
		if standard, ok := defaultOf(path); ok {
			s["default"] = standard
		}
	}
	return s
}
