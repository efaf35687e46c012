package policy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// readYAML reads one YAML document with the lines of its parts. Anchors,
// aliases, merge keys and explicit tags are problems: a policy says what it
// means in place, so that it reads the same in every format.
func readYAML(data []byte) (*branch, []*Problem) {
	if tooDeep(data) {
		return nil, []*Problem{{Err: errNesting}}
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var document, more yaml.Node
	switch err := decoder.Decode(&document); {
	case errors.Is(err, io.EOF):
		return nil, []*Problem{{Err: errors.New(emptyFile)}}
	case err != nil:
		return nil, []*Problem{yamlProblem(err, data)}
	}
	var r yamlReader
	b := r.value(document.Content[0], "", 0)
	switch err := decoder.Decode(&more); {
	case errors.Is(err, io.EOF):
	case err != nil:
		r.problems = append(r.problems, yamlProblem(err, data))
	default:
		r.add(&more, "", "a second YAML document starts here: one file holds one policy")
	}
	return b, r.problems
}

var (
	yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)
	// yamlFromZero are the messages in which lines count from 0: those of the
	// parser proper, not of its scanner.
	yamlFromZero = regexp.MustCompile(`^did not find expected (<|node|key|'-'|',')`)
)

// yamlProblem takes the line out of a parser's message.
func yamlProblem(err error, data []byte) *Problem {
	text := err.Error()
	found := yamlLine.FindStringSubmatch(text)
	if found == nil {
		return &Problem{Err: fmt.Errorf("not YAML: %s", text)}
	}
	text = text[len(found[0]):]
	line, err := strconv.Atoi(found[1])
	if err == nil && yamlFromZero.MatchString(text) {
		line = min(line+1, newLineTable(data).at(len(data)-1))
	}
	return &Problem{Line: line, Err: fmt.Errorf("not YAML: %s", text)}
}

// yamlReader turns YAML nodes into branches.
type yamlReader struct{ problems []*Problem }

func (r *yamlReader) add(n *yaml.Node, path, text string) {
	if path != "" {
		text = "`" + printablePath(path) + "`: " + text
	}
	r.problems = append(r.problems, &Problem{Line: n.Line, Key: path, Err: errors.New(text)})
}

func (r *yamlReader) value(n *yaml.Node, path string, depth int) *branch {
	b := &branch{line: n.Line, shape: shapeOther, text: "a YAML value of type " + n.ShortTag()}
	r.decorations(n, path)
	if depth > MaxNesting {
		r.problems = append(r.problems, &Problem{Line: n.Line, Key: path, Err: errNesting})
		return b
	}
	switch n.Kind {
	case yaml.ScalarNode:
		switch n.ShortTag() {
		case "!!null":
			b.shape = shapeNull
		case "!!bool":
			b.shape, b.text = shapeBool, n.Value
		case "!!int", "!!float":
			b.shape, b.text = shapeNumber, n.Value
		case "!!str":
			b.shape, b.text = shapeText, n.Value
		}
	case yaml.SequenceNode:
		b.shape = shapeList
		for i, item := range n.Content {
			b.items = append(b.items, r.value(item, join(path, strconv.Itoa(i)), depth+1))
		}
	case yaml.MappingNode:
		b.shape = shapeMapping
		seen := map[string]int{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			key, value := n.Content[i], n.Content[i+1]
			if key.Kind != yaml.ScalarNode || key.ShortTag() != "!!str" {
				if key.ShortTag() == "!!merge" {
					r.add(key, path, "a merge key (<<): write the keys out")
				} else {
					r.add(key, path, "a key that is no text: keys are words")
				}
				continue
			}
			r.decorations(key, join(path, key.Value))
			v := r.value(value, join(path, key.Value), depth+1)
			if first, twice := seen[key.Value]; twice {
				r.problems = append(r.problems, duplicate(join(path, key.Value), key.Line, first))
				continue
			}
			seen[key.Value] = key.Line
			b.entries = append(b.entries, entry{key.Value, key.Line, v})
		}
	}
	return b
}

// decorations refuses what YAML has beyond the other formats.
func (r *yamlReader) decorations(n *yaml.Node, path string) {
	switch {
	case n.Kind == yaml.AliasNode:
		r.add(n, path, "an alias (*"+printablePath(n.Value)+"): write the value out")
	case n.Anchor != "":
		r.add(n, path, "an anchor (&"+printablePath(n.Anchor)+"): write the value out where it is used")
	case n.Style&yaml.TaggedStyle != 0:
		r.add(n, path, "an explicit tag ("+printablePath(n.Tag)+"): write the plain value")
	}
}
