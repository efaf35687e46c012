package policy

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"go.yaml.in/yaml/v3"
)

// Encode writes the whole effective policy, every key explicit, in one of the
// formats. Reading it back gives the same digest. Keys that are null are left
// out of TOML, which has no null.
func (p *Policy) Encode(format Format) ([]byte, error) {
	return (&fileParser{format: format}).Marshal(treeOf(p))
}

// Marshal implements koanf.Parser.
func (f *fileParser) Marshal(m map[string]any) ([]byte, error) {
	switch f.format {
	case YAML:
		return marshalYAML(m, nil)
	case JSON:
		w := jsonWriter{indent: "  "}
		w.value(m, 0)
		w.WriteByte('\n')
		return w.Bytes(), nil
	case TOML:
		return toml.Marshal(withoutNulls(m))
	}
	return nil, fmt.Errorf("unknown format %q: use yaml, json or toml", f.format)
}

// jsonText is a tree in canonical JSON.
func jsonText(v any) string {
	var w jsonWriter
	w.value(v, 0)
	return w.String()
}

// withoutNulls leaves nulls out of a tree.
func withoutNulls(m map[string]any) map[string]any {
	out := make(map[string]any, len(m))
	for key, v := range m {
		switch v := v.(type) {
		case nil:
		case map[string]any:
			out[key] = withoutNulls(v)
		default:
			out[key] = v
		}
	}
	return out
}

// marshalYAML writes a tree in the order of the file form, with a comment at
// the end of the line, or above a section, for each key that has one.
func marshalYAML(m map[string]any, comment func(path string) string) ([]byte, error) {
	w := yamlWriter{order: knownPaths(), comment: comment}
	var b bytes.Buffer
	encoder := yaml.NewEncoder(&b)
	encoder.SetIndent(2)
	if err := encoder.Encode(w.node(m, "")); err != nil {
		return nil, err
	}
	if err := encoder.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// yaml11Bools are words that readers of YAML 1.1 take for true or false.
var yaml11Bools = []string{"y", "n", "yes", "no", "on", "off"}

type yamlWriter struct {
	order   []string
	comment func(path string) string
}

func (w *yamlWriter) node(v any, path string) *yaml.Node {
	switch v := v.(type) {
	case map[string]any:
		n := &yaml.Node{Kind: yaml.MappingNode}
		if len(v) == 0 {
			n.Style = yaml.FlowStyle
		}
		for _, key := range w.keys(v, path) {
			own := join(path, key)
			k, value := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: key}, w.node(v[key], own)
			if w.comment != nil {
				if _, isSection := v[key].(map[string]any); isSection {
					k.HeadComment = w.comment(own)
				} else {
					value.LineComment = w.comment(own)
				}
			}
			n.Content = append(n.Content, k, value)
		}
		return n
	case []any:
		n := &yaml.Node{Kind: yaml.SequenceNode}
		if len(v) == 0 {
			n.Style = yaml.FlowStyle
		}
		for i, item := range v {
			n.Content = append(n.Content, w.node(item, join(path, strconv.Itoa(i))))
		}
		return n
	case string:
		n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: v}
		if slices.Contains(yaml11Bools, strings.ToLower(v)) {
			n.Style = yaml.DoubleQuotedStyle
		}
		return n
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Value: jsonText(v)}
}

// keys sorts the keys of a mapping as the file form lists them, and others by
// name.
func (w *yamlWriter) keys(m map[string]any, path string) []string {
	keys := sortedKeys(m)
	slices.SortStableFunc(keys, func(a, b string) int {
		return slices.Index(w.order, join(path, a)) - slices.Index(w.order, join(path, b))
	})
	return keys
}
