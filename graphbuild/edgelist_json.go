package graphbuild

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/mapmatched/mmplug/mapmatched"
)

func readEdgesJSONL(r io.Reader) (*EdgeList, error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxEdgeLine)
	list := &EdgeList{}
	var weights weightCheck
	number := 0
	for lines.Scan() {
		number++
		line := lines.Bytes()
		if number == 1 {
			line = bytes.TrimPrefix(line, utf8BOM)
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		where := fmt.Sprintf("line %d", number)
		e, weighted, err := parseEdgeJSON(line)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", where, err)
		}
		if err := weights.see(where, weighted); err != nil {
			return nil, err
		}
		list.Edges = append(list.Edges, e)
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return nil, fmt.Errorf("line %d: it is longer than %d bytes; write one edge a line", number+1, maxEdgeLine)
	} else if err != nil {
		return nil, err
	}
	return list, nil
}

// parseEdgeJSON reads an edge from a line and reports whether it has a weight.
func parseEdgeJSON(line []byte) (e mapmatched.Edge, weighted bool, err error) {
	if !utf8.Valid(line) {
		return e, false, errors.New("it is not UTF-8; convert the file to UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(line))
	var fields edgeFields
	err = eachField(d, func(key string) error {
		raw, err := rawValue(d)
		if err != nil {
			return err
		}
		known, err := fields.take(key, raw)
		if !known {
			return fmt.Errorf("field %q is unknown; the fields are source, target, distance and type", clipText(key))
		}
		return err
	})
	if err != nil {
		return e, false, unexpectedEnd(err)
	}
	if _, err := d.Token(); err != io.EOF {
		return e, false, errors.New("something follows the object; write one edge a line")
	}
	e, err = fields.edge(jsonID)
	return e, fields.weight != nil, err
}

// nodeLinkReader reads a graph in node-link form.
type nodeLinkReader struct {
	text    []byte
	d       *json.Decoder
	list    EdgeList
	nodes   map[string]bool // nil before there are nodes
	weights weightCheck
	links   string // name of the field that has them, "" before
}

func readNodeLink(r io.Reader) (*EdgeList, error) {
	text, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	text = bytes.TrimPrefix(text, utf8BOM)
	if i := invalidUTF8(string(text)); i >= 0 {
		line, column := lineOf(text, int64(i))
		return nil, fmt.Errorf("line %d, column %d: it is not UTF-8; convert the file to UTF-8", line, column)
	}
	g := nodeLinkReader{text: text, d: json.NewDecoder(bytes.NewReader(text))}
	if err := g.read(); err != nil {
		line, column := lineOf(text, syntaxOffset(err, g.d.InputOffset()))
		return nil, fmt.Errorf("line %d, column %d: %w", line, column, unexpectedEnd(err))
	}
	for i, e := range g.list.Edges {
		for _, id := range []string{e.From, e.To} {
			if !g.nodes[id] {
				return nil, fmt.Errorf("%s[%d]: %q is not among the nodes; list every node", g.links, i, clipText(id))
			}
		}
	}
	return &g.list, nil
}

func (g *nodeLinkReader) read() error {
	err := eachField(g.d, func(key string) error {
		var err error
		switch key {
		case "directed":
			raw, err := rawValue(g.d)
			if err != nil {
				return err
			}
			switch string(raw) {
			case "true":
				g.list.Directed = true
			case "false":
			default:
				return fmt.Errorf("field \"directed\": %s is neither true nor false", clipText(string(raw)))
			}
		case "multigraph", "graph":
			_, err = rawValue(g.d)
		case "nodes":
			g.nodes = map[string]bool{}
			err = eachElement(g.d, g.node)
		case "links", "edges":
			if g.links != "" {
				return errors.New("there are both links and edges; give one of them")
			}
			g.links = key
			err = eachElement(g.d, func(i int) error { return g.link(fmt.Sprintf("%s[%d]", key, i)) })
		default:
			return fmt.Errorf("field %q is unknown; a graph has nodes, links or edges, directed, multigraph and graph", clipText(key))
		}
		if err != nil && !strings.HasPrefix(err.Error(), key) {
			err = fmt.Errorf("%s: %w", key, err)
		}
		return err
	})
	if err != nil {
		return err
	}
	if _, err := g.d.Token(); err != io.EOF {
		return errors.New("something follows the graph")
	}
	if g.nodes == nil || g.links == "" {
		return errors.New("want a graph in node-link form, with nodes and links or edges")
	}
	return nil
}

func (g *nodeLinkReader) node(i int) error {
	id := ""
	err := eachField(g.d, func(key string) error {
		raw, err := rawValue(g.d)
		if err == nil && key == "id" {
			id, err = jsonNodeID(raw)
		}
		return err
	})
	switch {
	case err != nil:
	case id == "":
		err = fmt.Errorf("%w: there is no id", mapmatched.ErrEmptyChunkID)
	case g.nodes[id]:
		err = fmt.Errorf("there are two nodes with the ID %q; IDs must be unique, also when one is a number", clipText(id))
	default:
		g.nodes[id] = true
		g.list.Nodes = append(g.list.Nodes, id)
	}
	if err != nil {
		return fmt.Errorf("nodes[%d]: %w", i, err)
	}
	return nil
}

func (g *nodeLinkReader) link(where string) error {
	var fields edgeFields
	err := eachField(g.d, func(key string) error {
		raw, err := rawValue(g.d)
		if err != nil || key == "key" { // networkx numbers parallel edges with it
			return err
		}
		known, err := fields.take(key, raw)
		if !known {
			return fmt.Errorf("field %q is unknown; the fields are source, target, weight and type", clipText(key))
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("%s: %w", where, err)
	}
	e, err := fields.edge(jsonNodeID)
	if err != nil {
		return fmt.Errorf("%s: %w", where, err)
	}
	g.list.Edges = append(g.list.Edges, e)
	return g.weights.see(where, fields.weight != nil)
}
