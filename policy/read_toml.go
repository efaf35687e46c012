package policy

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// readTOML reads a TOML document with the lines of its parts.
func readTOML(data []byte) (*branch, []*Problem) {
	if tooDeep(data) {
		return nil, []*Problem{{Err: errNesting}}
	}
	lines, deep := tomlLines(data)
	if deep > 0 {
		return nil, []*Problem{{Line: deep, Err: errNesting}}
	}
	var root map[string]any
	if err := toml.Unmarshal(data, &root); err != nil {
		p := &Problem{Err: fmt.Errorf("not TOML: %w", err)}
		var at *toml.DecodeError
		if errors.As(err, &at) {
			p.Line, _ = at.Position()
		}
		return nil, []*Problem{p}
	}
	if len(root) == 0 {
		return nil, []*Problem{{Err: errors.New(emptyFile)}}
	}
	return tomlBranch(root, "", lines, 1), nil
}

// tomlBranch turns a decoded value into branches. A value without a line of
// its own takes that of what it is in.
func tomlBranch(v any, path string, lines map[string]int, line int) *branch {
	if own := lines[path]; own > 0 {
		line = own
	}
	b := &branch{line: line}
	switch v := v.(type) {
	case map[string]any:
		b.shape = shapeMapping
		for _, key := range sortedKeys(v) {
			value := tomlBranch(v[key], tomlPath(path, key), lines, line)
			b.entries = append(b.entries, entry{key, value.line, value})
		}
	case []any:
		b.shape = shapeList
		for i, item := range v {
			b.items = append(b.items, tomlBranch(item, tomlPath(path, strconv.Itoa(i)), lines, line))
		}
	case bool:
		b.shape, b.text = shapeBool, strconv.FormatBool(v)
	case int64:
		b.shape, b.text = shapeNumber, strconv.FormatInt(v, 10)
	case float64:
		b.shape, b.text = shapeNumber, tomlFloat(v)
	case string:
		b.shape, b.text = shapeText, v
	default:
		b.shape, b.text = shapeOther, fmt.Sprintf("a date or time (%v)", v)
	}
	return b
}

func tomlFloat(x float64) string {
	switch {
	case x != x:
		return "nan"
	case x-x != 0 && x > 0:
		return "inf"
	case x-x != 0:
		return "-inf"
	}
	return strconv.FormatFloat(x, 'g', -1, 64)
}

// tomlPath appends a key or an index to a path in which no key can be
// mistaken for two.
func tomlPath(path, key string) string { return path + "\x00" + key }

// tomlLines finds the line of every key and table. The second result is the
// line of a key with more parts than values may be nested, 0 when there is
// none. It stops at the first fault, which the decoder then reports.
func tomlLines(data []byte) (map[string]int, int) {
	t := tomlIndex{lines: map[string]int{}, tables: map[string]int{}, table: newLineTable(data)}
	t.parser.Reset(data)
	current := ""
	for t.parser.NextExpression() {
		e := t.parser.Expression()
		switch e.Kind {
		case unstable.Table:
			current = t.path("", e.Key(), true)
		case unstable.ArrayTable:
			current = t.path("", e.Key(), false)
			n := t.tables[current]
			t.tables[current]++
			current = tomlPath(current, strconv.Itoa(n))
		case unstable.KeyValue:
			t.keyValue(current, e)
		}
		if t.deep > 0 {
			break
		}
	}
	return t.lines, t.deep
}

type tomlIndex struct {
	parser unstable.Parser
	table  lineTable
	lines  map[string]int
	tables map[string]int // arrays of tables: how many there are so far
	deep   int
}

// path appends the parts of a key to a path and notes their lines. Through an
// array of tables the way goes to its last table; last says whether that holds
// for the last part too.
func (t *tomlIndex) path(path string, key unstable.Iterator, last bool) string {
	for parts := 1; key.Next(); parts++ {
		n := key.Node()
		path = tomlPath(path, string(n.Data))
		line := t.table.at(int(n.Raw.Offset))
		if _, seen := t.lines[path]; !seen {
			t.lines[path] = line
		}
		if parts > MaxNesting {
			t.deep = line
			return path
		}
		if n := t.tables[path]; n > 0 && (last || !key.IsLast()) {
			path = tomlPath(path, strconv.Itoa(n-1))
		}
	}
	return path
}

func (t *tomlIndex) keyValue(path string, e *unstable.Node) {
	t.value(t.path(path, e.Key(), true), e.Value())
}

func (t *tomlIndex) value(path string, v *unstable.Node) {
	if t.deep > 0 {
		return
	}
	items := v.Children()
	for i := 0; items.Next(); i++ {
		switch v.Kind {
		case unstable.Array:
			t.value(tomlPath(path, strconv.Itoa(i)), items.Node())
		case unstable.InlineTable:
			t.keyValue(path, items.Node())
		}
	}
}
