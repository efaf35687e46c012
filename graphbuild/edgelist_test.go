package graphbuild

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/mapmatched/mmplug/mapmatched"
)

func TestReadEdges(t *testing.T) {
	ab := mapmatched.Edge{From: "a", To: "b", Weight: 0.5, Type: "link"}
	quoted := mapmatched.Edge{From: `x,"y"`, To: "multi\nline", Weight: 1e-300}
	plain := mapmatched.Edge{From: "a", To: "b", Weight: 1}
	for _, c := range []struct {
		name   string
		format EdgeFormat
		text   string
		want   EdgeList
	}{
		{"empty csv", EdgesCSV, "", EdgeList{}},
		{"only a header", EdgesCSV, "from,to,weight,type\n", EdgeList{}},
		{"header", EdgesCSV, "from,to,weight,type\na,b,0.5,link\n", EdgeList{Edges: []mapmatched.Edge{ab}}},
		{"other names, order and case, BOM, CRLF", EdgesCSV, "\uFEFFType,Distance,TARGET,source\r\nlink,0.5,b,a\r\n", EdgeList{Edges: []mapmatched.Edge{ab}}},
		{"no header", EdgesCSV, "a,b,0.5,link\n\na,b, 0.5 ,link", EdgeList{Edges: []mapmatched.Edge{ab, ab}}},
		{"no weights", EdgesCSV, "a,b\n", EdgeList{Edges: []mapmatched.Edge{plain}}},
		{"type without weight", EdgesCSV, "from,to,type\na,b,\n", EdgeList{Edges: []mapmatched.Edge{plain}}},
		{"quotes", EdgesCSV, "\"x,\"\"y\"\"\",\"multi\nline\",1e-300\n", EdgeList{Edges: []mapmatched.Edge{quoted}}},
		{"tabs", EdgesTSV, "a\tb\t0.5\tlink\n", EdgeList{Edges: []mapmatched.Edge{ab}}},
		{"loops and repeats", EdgesCSV, "a,a\na,a\n", EdgeList{Edges: []mapmatched.Edge{{From: "a", To: "a", Weight: 1}, {From: "a", To: "a", Weight: 1}}}},
		{"empty jsonl", EdgesJSONL, "\n \n", EdgeList{}},
		{"jsonl", EdgesJSONL, "\uFEFF{\"source\":\"a\",\"target\":\"b\",\"distance\":0.5,\"type\":\"link\"}\r\n\n{\"to\": \"b\", \"type\": \"link\", \"from\": \"a\", \"weight\": 5e-1}", EdgeList{Edges: []mapmatched.Edge{ab, ab}}},
		{"jsonl without weights", EdgesJSONL, `{"source":"a","target":"b"}`, EdgeList{Edges: []mapmatched.Edge{plain}}},
		{"node-link", EdgesNodeLink, `{"directed": true, "multigraph": true, "graph": {"name": "g"},
			"nodes": [{"id": "b", "color": ["red"]}, {"id": "a"}, {"id": -7}],
			"links": [{"source": "a", "target": "b", "key": 0, "weight": 0.5, "type": "link"}, {"source": -7, "target": "b", "weight": 2}]}`,
			EdgeList{Directed: true, Nodes: []string{"b", "a", "-7"}, Edges: []mapmatched.Edge{ab, {From: "-7", To: "b", Weight: 2}}}},
		{"node-link edges first", EdgesNodeLink, `{"edges": [{"source": "a", "target": "b"}], "nodes": [{"id": "a"}, {"id": "b"}], "directed": false}`,
			EdgeList{Nodes: []string{"a", "b"}, Edges: []mapmatched.Edge{plain}}},
		{"empty node-link", EdgesNodeLink, `{"nodes": [], "links": []}`, EdgeList{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := ReadEdges(strings.NewReader(c.text), c.format)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(*got, c.want) {
				t.Errorf("got  %+v\nwant %+v", *got, c.want)
			}
		})
	}
}

func TestReadEdgesErrors(t *testing.T) {
	for _, c := range []struct {
		format EdgeFormat
		text   string
		want   string
		is     error
	}{
		{"xml", "", `there is no form of edges "xml"; use "csv", "tsv", "jsonl" or "node-link"`, mapmatched.ErrInvalidConfig},
		{EdgesCSV, "from,to,wieght\na,b,1\n", `line 1, column 3: "wieght" is no column of edges; the columns are from, to, weight and type`, nil},
		{EdgesCSV, "from,to,source\n", `line 1, column 3: there are two columns for "from"`, nil},
		{EdgesCSV, "a\n", "line 1: there are 1 columns; want from, to, weight and type", nil},
		{EdgesCSV, "a,b,1,link,x\n", "line 1: there are 5 columns", nil},
		{EdgesCSV, "a,b,1\na,b\n", "line 2: there are 2 columns, want 3 as in the first line", nil},
		{EdgesCSV, "a,b,heavy\n", `line 1, column 3 (weight): "heavy" is not a number`, nil},
		{EdgesCSV, "from,to,weight\na,b,\n", `line 2, column 3 (weight): "" is not a number`, nil},
		{EdgesCSV, "a,b,1\na,c,0\n", "line 2, column 3 (weight): distance out of range: it is 0; weights are positive", mapmatched.ErrDistance},
		{EdgesCSV, "a,b,-1\n", "column 3 (weight): distance out of range: it is -1", mapmatched.ErrDistance},
		{EdgesCSV, "a,b,NaN\n", "column 3 (weight): value is not finite: it is NaN", mapmatched.ErrNonFinite},
		{EdgesCSV, "a,b,1e999\n", "column 3 (weight): value is not finite: it is 1e999", mapmatched.ErrNonFinite},
		{EdgesCSV, "a,,1\n", "line 1, column 2 (to): empty chunk ID", mapmatched.ErrEmptyChunkID},
		{EdgesCSV, "a,\"b\n\nc,1\n", "line 3, column 5, of the record that begins on line 1: ", nil},
		{EdgesCSV, "a,b\na,b\xff\n", "line 2, column 2: it is not UTF-8", nil},
		{EdgesJSONL, "{\"source\":\"a\",\"target\":\"b\",\"wieght\":1}", `line 1: field "wieght" is unknown; the fields are source, target, distance and type`, nil},
		{EdgesJSONL, "\n{\"source\":\"a\"}", `line 2: there is no field "target"; an edge needs both ends`, nil},
		{EdgesJSONL, `{"source":"a","from":"a","target":"b"}`, `line 1: field "from": this was given already`, nil},
		{EdgesJSONL, `{"source":"a","source":"a","target":"b"}`, `line 1: field "source" is given twice`, nil},
		{EdgesJSONL, `{"Source":"a","target":"b"}`, `line 1: field "Source" is unknown`, nil},
		{EdgesJSONL, `{"source":"","target":"b"}`, `line 1: field "source": empty chunk ID`, mapmatched.ErrEmptyChunkID},
		{EdgesJSONL, `{"source":1,"target":"b"}`, `line 1: field "source": 1 is not a string`, nil},
		{EdgesJSONL, `{"source":"a","target":"b","distance":"1"}`, `line 1: field "weight": "1" is not a number`, nil},
		{EdgesJSONL, `{"source":"a","target":"b","distance":null}`, `line 1: field "weight": null is not a number`, nil},
		{EdgesJSONL, `{"source":"a","target":"b","distance":1e400}`, `line 1: field "weight": value is not finite: it is 1e400`, mapmatched.ErrNonFinite},
		{EdgesJSONL, `{"source":"a","target":"b","type":null}`, `line 1: field "type": null is not a string`, nil},
		{EdgesJSONL, "{\"source\":\"a\",\"target\":\"b\"}\n{\"source\":\"a\",\"target\":\"b\",\"weight\":1}", "line 1: there is no weight, but line 2 has one; give all edges a weight or none", nil},
		{EdgesJSONL, "{\"source\":\"a\",\"target\":\"b\"} {}", "line 1: something follows the object", nil},
		{EdgesJSONL, `{"source":"a",`, "line 1: the JSON ends in the middle", nil},
		{EdgesJSONL, `["a","b"]`, "line 1: [ is not an object", nil},
		{EdgesJSONL, "{\"source\":\"a\xff\",\"target\":\"b\"}", "line 1: it is not UTF-8", nil},
		{EdgesJSONL, "{}\n" + strings.Repeat(" ", maxEdgeLine+1), "line 1: there is no field", nil},
		{EdgesJSONL, strings.Repeat(" ", maxEdgeLine+1), "line 1: it is longer than 1048576 bytes", nil},
		{EdgesNodeLink, "", "line 1, column 1: the JSON ends in the middle", nil},
		{EdgesNodeLink, "{}", "want a graph in node-link form, with nodes and links or edges", nil},
		{EdgesNodeLink, "[]", "line 1, column 2: [ is not an object", nil},
		{EdgesNodeLink, "{\"nodes\": [],\n \"links\": [],\n \"edges\": []}", "line 3, column 9: there are both links and edges; give one of them", nil},
		{EdgesNodeLink, `{"nodes": [{"id": "1"}, {"id": 1}], "links": []}`, `nodes[1]: there are two nodes with the ID "1"`, nil},
		{EdgesNodeLink, `{"nodes": [{"name": "1"}], "links": []}`, "nodes[0]: empty chunk ID: there is no id", mapmatched.ErrEmptyChunkID},
		{EdgesNodeLink, `{"nodes": [{"id": 1.5}], "links": []}`, "nodes[0]: 1.5 is neither a string nor a whole number", nil},
		{EdgesNodeLink, `{"nodes": [{"id": "a"}], "links": [{"source": "a", "target": "b"}]}`, `links[0]: "b" is not among the nodes`, nil},
		{EdgesNodeLink, `{"nodes": [{"id": "a"}], "edges": [{"source": "a", "target": "a", "label": "x"}]}`, `edges[0]: field "label" is unknown`, nil},
		{EdgesNodeLink, `{"nodes": [{"id": "a"}], "edges": [{"source": "a", "target": "a", "weight": 1}, {"source": "a", "target": "a"}]}`, "edges[1]: there is no weight, but edges[0] has one", nil},
		{EdgesNodeLink, `{"nodes": {}, "edges": []}`, "nodes: { is not a list", nil},
		{EdgesNodeLink, `{"nodes": ["a"], "edges": []}`, `nodes[0]: "a" is not an object`, nil},
		{EdgesNodeLink, `{"nodes": [], "edges": [], "directed": 1}`, `field "directed": 1 is neither true nor false`, nil},
		{EdgesNodeLink, `{"nodes": [], "edges": [], "vertices": 1}`, `field "vertices" is unknown`, nil},
		{EdgesNodeLink, `{"nodes": [], "edges": []} x`, "something follows the graph", nil},
		{EdgesNodeLink, "{\"nodes\": [],\n \"edges\": [,]}", "line 2, column ", nil},
	} {
		_, err := ReadEdges(strings.NewReader(c.text), c.format)
		if err == nil {
			t.Errorf("%s %q: no error, want %q", c.format, clipText(c.text), c.want)
			continue
		}
		if !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s %q: error %q, want %q on one line", c.format, clipText(c.text), err, c.want)
		}
		if c.is != nil && !errors.Is(err, c.is) {
			t.Errorf("%s %q: error %q is not %q", c.format, clipText(c.text), err, c.is)
		}
	}
}

func TestEdgeFormatOf(t *testing.T) {
	for name, want := range map[string]EdgeFormat{
		"a.csv": EdgesCSV, "a.TSV": EdgesTSV, "a.tab": EdgesTSV, "x/a.jsonl": EdgesJSONL, "a.ndjson": EdgesJSONL, "a.json": EdgesNodeLink,
		"a.mmg": "", "a": "",
	} {
		got, err := EdgeFormatOf(name)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%s: form %q, error %v, want %q", name, got, err, want)
		}
	}
}

// The edges of a graph, written one a line in the form of the export, are the
// same edges when read, bit for bit.
func TestReadEdgesRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var edges []mapmatched.Edge
	for range 500 {
		edges = append(edges, mapmatched.Edge{
			From: fmt.Sprintf("a %d,\"x\"", r.IntN(50)), To: fmt.Sprintf("b\t\n%d故", r.IntN(50)),
			Weight: math.Ldexp(r.Float64()+0.5, r.IntN(600)-300), Type: mapmatched.EdgeType([]string{"", "knn", "link"}[r.IntN(3)]),
		})
	}
	g, err := mapmatched.NewGraph(edges, nil)
	if err != nil {
		t.Fatal(err)
	}
	var jsonl, csvText bytes.Buffer
	var want []mapmatched.Edge
	csvText.WriteString("source,target,distance,type\n")
	for e, err := range g.Edges(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, e)
		line, err := json.Marshal(map[string]any{"source": e.From, "target": e.To, "distance": e.Weight, "type": e.Type})
		if err != nil {
			t.Fatal(err)
		}
		jsonl.Write(append(line, '\n'))
		quote := func(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }
		fmt.Fprintf(&csvText, "%s,%s,%v,%s\n", quote(e.From), quote(e.To), e.Weight, e.Type)
	}
	for format, text := range map[EdgeFormat]*bytes.Buffer{EdgesJSONL: &jsonl, EdgesCSV: &csvText} {
		got, err := ReadEdges(text, format)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got.Edges, want) {
			t.Errorf("%s: the edges differ", format)
		}
	}
}

func FuzzReadEdges(f *testing.F) {
	formats := []EdgeFormat{EdgesCSV, EdgesTSV, EdgesJSONL, EdgesNodeLink}
	f.Add(0, "from,to,weight\na,b,1\n")
	f.Add(1, "a\tb\t1\n")
	f.Add(2, `{"source":"a","target":"b","distance":0.5,"type":"link"}`)
	f.Add(3, `{"directed":true,"nodes":[{"id":"a"},{"id":1}],"links":[{"source":"a","target":1,"weight":2}]}`)
	f.Fuzz(func(t *testing.T, which int, text string) {
		list, err := ReadEdges(strings.NewReader(text), formats[uint(which)%uint(len(formats))])
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("error of more than one line: %q", err)
			}
			return
		}
		// What is read is good for a graph.
		if _, err := mapmatched.NewGraph(list.Edges, &mapmatched.GraphOptions{Nodes: list.Nodes, Directed: list.Directed}); err != nil {
			t.Error(err)
		}
	})
}
