package policy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// violations checks a value against a JSON Schema: the part of draft 2020-12
// that JSONSchema writes. A keyword that it does not know is a violation.
func violations(schema map[string]any, v any, path string) []string {
	var found []string
	add := func(format string, args ...any) { found = append(found, path+" "+fmt.Sprintf(format, args...)) }
	x, isNumber := v.(float64)
	text, isText := v.(string)
	object, isObject := v.(map[string]any)
	list, isList := v.([]any)
	is := map[string]bool{
		"object": isObject, "array": isList, "string": isText, "number": isNumber,
		"integer": isNumber && x == math.Trunc(x), "null": v == nil,
	}
	_, is["boolean"] = v.(bool)
	for _, keyword := range sortedKeys(schema) {
		switch want := schema[keyword].(type) {
		case string:
			switch keyword {
			case "type":
				if !is[want] {
					add("is no %s", want)
				}
			case "pattern":
				if isText && !regexp.MustCompile(want).MatchString(text) {
					add("does not match %s", want)
				}
			case "$schema", "title", "description":
			default:
				if keyword != "default" {
					add("keyword %s", keyword)
				}
			}
		case float64:
			switch {
			case keyword == "default":
			case keyword == "minimum" && (!isNumber || x >= want), keyword == "maximum" && (!isNumber || x <= want), keyword == "exclusiveMinimum" && (!isNumber || x > want):
			default:
				add("%v against %s %v", v, keyword, want)
			}
		case []any:
			switch keyword {
			case "type":
				if !slices.ContainsFunc(want, func(t any) bool { return is[t.(string)] }) {
					add("is none of %v", want)
				}
			case "enum":
				if !slices.Contains(want, v) {
					add("%v is none of %v", v, want)
				}
			case "required":
				for _, key := range want {
					if _, there := object[key.(string)]; isObject && !there {
						add("lacks %v", key)
					}
				}
			case "default":
			default:
				add("keyword %s", keyword)
			}
		case map[string]any:
			switch keyword {
			case "properties":
				for _, key := range sortedKeys(want) {
					if value, there := object[key]; there {
						found = append(found, violations(want[key].(map[string]any), value, join(path, key))...)
					}
				}
			case "additionalProperties":
				for _, key := range sortedKeys(object) {
					found = append(found, violations(want, object[key], join(path, key))...)
				}
			case "propertyNames":
				for _, key := range sortedKeys(object) {
					found = append(found, violations(want, key, join(path, key))...)
				}
			case "items":
				for i, item := range list {
					found = append(found, violations(want, item, join(path, fmt.Sprint(i)))...)
				}
			case "dependentRequired":
				for _, key := range sortedKeys(want) {
					for _, other := range want[key].([]any) {
						_, has := object[key]
						if _, there := object[other.(string)]; has && !there {
							add("has %s but not %v", key, other)
						}
					}
				}
			case "default":
			default:
				add("keyword %s", keyword)
			}
		case bool:
			switch keyword {
			case "additionalProperties":
				for _, key := range sortedKeys(object) {
					if _, known := schema["properties"].(map[string]any)[key]; !known && !want {
						add("has %s", key)
					}
				}
			case "default":
			default:
				add("keyword %s", keyword)
			}
		default:
			if keyword != "default" || want != nil {
				add("keyword %s", keyword)
			}
		}
	}
	return found
}

func readJSONSchema(t *testing.T) map[string]any {
	t.Helper()
	var schema map[string]any
	if err := json.Unmarshal(JSONSchema(), &schema); err != nil {
		t.Fatal(err)
	}
	return schema
}

func TestJSONSchemaAccepts(t *testing.T) {
	schema := readJSONSchema(t)
	accept := func(name string, p *Policy) {
		t.Helper()
		data, err := p.Encode(JSON)
		if err != nil {
			t.Fatal(err)
		}
		var v any
		if err := json.Unmarshal(data, &v); err != nil {
			t.Fatal(err)
		}
		for _, violation := range violations(schema, v, "") {
			t.Errorf("%s:%s", name, violation)
		}
	}
	for _, name := range Builtins() {
		p, err := Builtin(name)
		if err != nil {
			t.Fatal(err)
		}
		accept(name, p)
		p.StatedDigest, p.Evidence = p.Digest(), evidence
		accept(name+" frozen", p)
	}
	for seed := range uint64(40) {
		accept(fmt.Sprint("seed ", seed), randomPolicy(rand.New(rand.NewPCG(seed, 33))))
	}
	if v := violations(schema, map[string]any{"schema": SchemaV1, "name": "t"}, ""); len(v) > 0 {
		t.Errorf("a policy of defaults: %v", v)
	}
	if !bytes.Equal(JSONSchema(), JSONSchema()) {
		t.Error("the schema is not the same twice")
	}
}

// TestJSONSchemaRefuses: what the loader refuses key by key, the schema does.
func TestJSONSchemaRefuses(t *testing.T) {
	schema := readJSONSchema(t)
	fusion := `"fusion": {"version": "rrf_v1", "alpha": 0.6, "min_score": 0, "k": 60, "arms": {"dense": {"weight": 1, "timeout_ms": 0}}}`
	for _, c := range []struct{ name, old, new, want string }{
		{"as it is", "", "", ""},
		{"unknown key", `"k": 60`, `"k": 60, "kk": 1`, "fusion has kk"},
		{"wrong case", `"k": 60`, `"K": 60`, "fusion has K"},
		{"misspelt section", `"fusion"`, `"fusoin"`, " has fusoin"},
		{"text for a number", `0.6`, `"0.6"`, "fusion.alpha is no number"},
		{"true for a number", `60`, `true`, "fusion.k is no number"},
		{"null", `60`, `null`, "fusion.k is no number"},
		{"fraction for a whole number", `"timeout_ms": 0`, `"timeout_ms": 8.9`, "fusion.arms.dense.timeout_ms is no integer"},
		{"missing key", `"k": 60, `, ``, "fusion lacks k"},
		{"missing key in a table", `"weight": 1, `, ``, "fusion.arms.dense lacks weight"},
		{"unknown version", `rrf_v1`, `rrf_v2`, "fusion.version rrf_v2 is none of [hybrid_fusion_pre_v1 rrf_v1 geometric_v1]"},
		{"above the range", `0.6`, `1.5`, "fusion.alpha 1.5 against maximum 1"},
		{"below the range", `60`, `-1`, "fusion.k -1 against minimum 0"},
		{"dotted name", `"dense"`, `"a.b"`, "does not match"},
		{"scalar for a section", fusion, `"fusion": "rrf"`, "fusion is no object"},
		{"missing name", `"name": "t", `, ``, " lacks name"},
		{"another schema", `policy/1`, `policy/2`, "is none of [mmplug.policy/1]"},
		{"name with a space", `"t"`, `"a b"`, "name does not match"},
		{"evidence alone", `"name": "t"`, `"name": "t", "evidence": "` + evidence + `"`, " has evidence but not digest"},
		{"short digest", `"name": "t"`, `"name": "t", "digest": "abc"`, "digest does not match"},
	} {
		t.Run(c.name, func(t *testing.T) {
			data := strings.Replace(`{"schema": "mmplug.policy/1", "name": "t", `+fusion+`}`, c.old, c.new, 1)
			var v any
			if err := json.Unmarshal([]byte(data), &v); err != nil {
				t.Fatal(err)
			}
			got := violations(schema, v, "")
			_, err := Parse(Source{"t.json", []byte(data)})
			if (err != nil) != (c.want != "") {
				t.Errorf("the loader says %v", err)
			}
			if c.want == "" && len(got) > 0 || c.want != "" && !slices.ContainsFunc(got, func(s string) bool { return strings.Contains(s, c.want) }) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
