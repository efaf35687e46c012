package plugins

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/big"
	"slices"
	"strings"
	"unicode/utf8"
)

// Schema is the part of JSON Schema that describes a plugin's configuration.
type Schema struct {
	Title       string             `json:"title,omitempty"`
	Description string             `json:"description,omitempty"`
	Dialect     string             `json:"$schema,omitempty"` // not read
	Type        string             `json:"type"`              // object, array, string, number, integer or boolean; required
	Properties  map[string]*Schema `json:"properties,omitempty"`
	Required    []string           `json:"required,omitempty"`
	// AdditionalProperties may be left out or false, which mean the same: a
	// member that Properties does not have is an error.
	AdditionalProperties *bool             `json:"additionalProperties,omitempty"`
	Enum                 []json.RawMessage `json:"enum,omitempty"`
	Minimum              *json.Number      `json:"minimum,omitempty"`
	Maximum              *json.Number      `json:"maximum,omitempty"`
	MinLength            int               `json:"minLength,omitempty"` // in characters
	Items                *Schema           `json:"items,omitempty"`
	Default              json.RawMessage   `json:"default,omitempty"` // for people: the plugin applies it
}

// ParseSchema reads the schema of a configuration: one JSON object whose type
// is "object". A keyword that Schema does not have is an error.
func ParseSchema(b []byte) (*Schema, error) { return parseSchema(b) }

func parseSchema(b []byte) (*Schema, error) {
	if len(b) == 0 {
		return nil, errors.New("the schema is empty")
	}
	s := new(Schema)
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(s); err != nil {
		return nil, fmt.Errorf("the schema of the configuration: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("the schema of the configuration goes on after its JSON object")
	}
	if s.Type != "object" {
		return nil, fmt.Errorf("the schema of the configuration has the type %q, not \"object\"", s.Type)
	}
	return s, s.validate("the schema of the configuration", 0)
}

// maxSchemaDepth bounds how deep a schema may be nested.
const maxSchemaDepth = 32

func (s *Schema) validate(path string, depth int) error {
	if depth > maxSchemaDepth {
		return fmt.Errorf("%s is nested more than %d deep", path, maxSchemaDepth)
	}
	switch s.Type {
	case "object", "array", "string", "number", "integer", "boolean":
	default:
		return fmt.Errorf("%s has the type %q, not object, array, string, number, integer or boolean", path, s.Type)
	}
	if s.AdditionalProperties != nil && *s.AdditionalProperties {
		return fmt.Errorf("%s allows additional properties: list them, so that a misspelt one is found", path)
	}
	for _, name := range s.Required {
		if s.Properties[name] == nil {
			return fmt.Errorf("%s requires %q, which is not among its properties", path, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		if s.Properties[name] == nil {
			return fmt.Errorf("%s: %s is null", path, name)
		}
		if err := s.Properties[name].validate(path+": "+name, depth+1); err != nil {
			return err
		}
	}
	if s.Items != nil {
		return s.Items.validate(path+": items", depth+1)
	}
	return nil
}

// check reports every way in which a configuration does not fit.
func (s *Schema) check(config []byte) error {
	if err := checkDuplicates(config); err != nil {
		return fmt.Errorf("the configuration: %w", err)
	}
	d := json.NewDecoder(bytes.NewReader(config))
	d.UseNumber()
	var value any
	if err := d.Decode(&value); err != nil {
		return fmt.Errorf("the configuration is not JSON: %w", err)
	}
	var faults []string
	s.fit("", value, &faults)
	if len(faults) == 0 {
		return nil
	}
	return fmt.Errorf("the configuration: %s", strings.Join(faults, "; "))
}

// checkDuplicates expects one JSON value in which no object has a member
// twice.
func checkDuplicates(b []byte) error {
	d := json.NewDecoder(bytes.NewReader(b))
	type level struct {
		names map[string]bool // nil in an array
		value bool            // the next token is a value, not a name
	}
	var stack []level
	for {
		t, err := d.Token()
		if err == io.EOF && len(stack) == 0 {
			return nil
		}
		if err != nil {
			return fmt.Errorf("it is not JSON: %w", err)
		}
		top := len(stack) - 1
		if name, ok := t.(string); ok && top >= 0 && stack[top].names != nil && !stack[top].value {
			if stack[top].names[name] {
				return fmt.Errorf("%q is there twice", name)
			}
			stack[top].names[name] = true
			stack[top].value = true
			continue
		}
		if t == json.Delim('}') || t == json.Delim(']') {
			stack = stack[:top]
			if top--; top < 0 {
				if d.More() {
					return errors.New("it goes on after its JSON object")
				}
				return nil
			}
		} else if t == json.Delim('{') || t == json.Delim('[') {
			l := level{value: true}
			if t == json.Delim('{') {
				l = level{names: map[string]bool{}}
			}
			stack = append(stack, l)
			continue
		}
		if top >= 0 && stack[top].names != nil {
			stack[top].value = false
		}
	}
}

// fit adds the faults of a value.
func (s *Schema) fit(path string, value any, faults *[]string) {
	fault := func(format string, args ...any) {
		where := path
		if where == "" {
			where = "it"
		}
		*faults = append(*faults, where+" "+fmt.Sprintf(format, args...))
	}
	if len(s.Enum) > 0 && !s.listed(value) {
		fault("is %s, not one of %s", show(value), bytes.Join(raw(s.Enum), []byte(", ")))
		return
	}
	switch s.Type {
	case "object":
		members, ok := value.(map[string]any)
		if !ok {
			fault("is %s, not an object", show(value))
			return
		}
		for _, name := range s.Required {
			if _, ok := members[name]; !ok {
				fault("lacks %s", name)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(members)) {
			property := s.Properties[name]
			if property == nil {
				fault("has the unknown member %q; known are %s", name, strings.Join(slices.Sorted(maps.Keys(s.Properties)), ", "))
				continue
			}
			inner := name
			if path != "" {
				inner = path + "." + name
			}
			property.fit(inner, members[name], faults)
		}
	case "array":
		items, ok := value.([]any)
		if !ok {
			fault("is %s, not an array", show(value))
			return
		}
		for i, item := range items {
			if s.Items != nil {
				s.Items.fit(fmt.Sprintf("%s[%d]", path, i), item, faults)
			}
		}
	case "string":
		text, ok := value.(string)
		if !ok {
			fault("is %s, not a string", show(value))
		} else if utf8.RuneCountInString(text) < s.MinLength {
			fault("is %s, shorter than %d characters", show(value), s.MinLength)
		}
	case "boolean":
		if _, ok := value.(bool); !ok {
			fault("is %s, not true or false", show(value))
		}
	case "number", "integer":
		s.fitNumber(value, fault)
	}
}

// fitNumber compares numbers exactly.
func (s *Schema) fitNumber(value any, fault func(format string, args ...any)) {
	number, ok := value.(json.Number)
	x, parsed := exact(number)
	if !ok || !parsed {
		fault("is %s, not a number", show(value))
		return
	}
	if s.Type == "integer" && !x.IsInt() {
		fault("is %s, not an integer", show(value))
	}
	for _, bound := range []struct {
		limit *json.Number
		wrong int
		word  string
	}{{s.Minimum, -1, "below"}, {s.Maximum, 1, "above"}} {
		if bound.limit == nil {
			continue
		}
		if limit, ok := exact(*bound.limit); ok && x.Cmp(limit) == bound.wrong {
			fault("is %s, %s %s", show(value), bound.word, *bound.limit)
		}
	}
}

// exact reads a number of a size that is sensible in a configuration.
func exact(n json.Number) (*big.Rat, bool) {
	if _, err := n.Float64(); err != nil || len(n) > 64 {
		return nil, false
	}
	return new(big.Rat).SetString(n.String())
}

// listed reports whether a value is in Enum.
func (s *Schema) listed(value any) bool {
	b, err := json.Marshal(value)
	return err == nil && slices.ContainsFunc(s.Enum, func(e json.RawMessage) bool {
		var compact bytes.Buffer
		return json.Compact(&compact, e) == nil && bytes.Equal(compact.Bytes(), b)
	})
}

func raw(values []json.RawMessage) [][]byte {
	out := make([][]byte, len(values))
	for i, v := range values {
		out[i] = v
	}
	return out
}

// show quotes a value in an error.
func show(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return cut(string(b), 60)
}
