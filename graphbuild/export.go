package graphbuild

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mapmatched/mmplug/mapmatched"
)

// ListedGraph is a graph that can say all of itself: a *mapmatched.Graph or a
// *GraphFile.
type ListedGraph interface {
	mapmatched.CorpusGraph
	mapmatched.EdgeLister // ascending by From and To, undirected edges once with From < To
	Nodes() []string      // ascending
	NumNodes() int
	NumEdges() int
	Directed() bool
	ShortestPath(ctx context.Context, from, to string) ([]mapmatched.Edge, error)
}

// ExportFormat is a form in which [Export] writes a graph.
type ExportFormat string

// The formats.
const (
	ExportJSONL   ExportFormat = "jsonl"   // one edge a line; chunks without an edge are not in it
	ExportDOT     ExportFormat = "dot"     // Graphviz
	ExportGraphML ExportFormat = "graphml" // GraphML 1.0
)

// ExportFormats are all formats.
func ExportFormats() []ExportFormat {
	return []ExportFormat{ExportJSONL, ExportDOT, ExportGraphML}
}

// Export writes a graph in a format, the edges in ascending order of their
// ends. Floats are written so that they read back to the same bits. An ID that a
// format cannot hold is an error that names it: one that is not UTF-8 and, in
// GraphML, one with a character that XML does not allow. So is such a type in
// GraphML.
func Export(ctx context.Context, w io.Writer, g ListedGraph, format ExportFormat) error {
	if !slices.Contains(ExportFormats(), format) {
		return fmt.Errorf("%w: there is no export format %q: use %q", mapmatched.ErrInvalidConfig, format, ExportFormats())
	}
	x := exporter{w: bufio.NewWriter(w), directed: g.Directed()}
	nodes := g.Nodes()
	for _, id := range nodes {
		if !utf8.ValidString(id) {
			return fmt.Errorf("chunk ID %q is not UTF-8, which %s cannot hold", id, format)
		}
		if r, found := notXML(id); found && format == ExportGraphML {
			return fmt.Errorf("chunk ID %q has the character %U, which XML does not allow: export it as %s", id, r, ExportJSONL)
		}
	}
	var edge func(mapmatched.Edge) error
	end := ""
	switch format {
	case ExportJSONL:
		edge = x.jsonl
	case ExportDOT:
		x.dotStart(nodes)
		edge, end = x.dot, "}\n"
	case ExportGraphML:
		x.graphMLStart(nodes)
		edge, end = x.graphML, "</graph>\n</graphml>\n"
	}
	for e, err := range g.Edges(ctx) {
		if err != nil {
			return err
		}
		if err := edge(e); err != nil {
			return err
		}
	}
	x.text(end)
	return x.w.Flush()
}

// exporter writes edges. The first error of the buffer comes back from Flush.
type exporter struct {
	w        *bufio.Writer
	directed bool
	number   map[string]int // of a node in GraphML
}

func (x *exporter) text(parts ...string) {
	for _, p := range parts {
		_, _ = x.w.WriteString(p) // Flush reports it
	}
}

// exportedEdge is an edge in JSONL.
type exportedEdge struct {
	Source   string              `json:"source"`
	Target   string              `json:"target"`
	Distance float64             `json:"distance"`
	Type     mapmatched.EdgeType `json:"type"`
}

func (x *exporter) jsonl(e mapmatched.Edge) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(exportedEdge{e.From, e.To, e.Weight, e.Type}); err != nil {
		return err
	}
	_, err := x.w.Write(b.Bytes())
	return err
}

func (x *exporter) dotStart(nodes []string) {
	x.text(map[bool]string{false: "graph corpus {\n", true: "digraph corpus {\n"}[x.directed])
	for _, id := range nodes {
		x.text("  ", dotString(id), ";\n")
	}
}

func (x *exporter) dot(e mapmatched.Edge) error {
	line := map[bool]string{false: " -- ", true: " -> "}[x.directed]
	x.text("  ", dotString(e.From), line, dotString(e.To), " [len=", exactFloat(e.Weight), ", type=", dotString(string(e.Type)), "];\n")
	return nil
}

var dotEscapes = strings.NewReplacer(`"`, `\"`, `\`, `\\`, "\n", `\n`, "\r", `\r`)

func dotString(s string) string { return `"` + dotEscapes.Replace(s) + `"` }

func exactFloat(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

func (x *exporter) graphMLStart(nodes []string) {
	x.text(xml.Header, `<graphml xmlns="http://graphml.graphdrawing.org/xmlns">`, "\n",
		`<key id="chunk" for="node" attr.name="chunk_id" attr.type="string"/>`, "\n",
		`<key id="distance" for="edge" attr.name="distance" attr.type="double"/>`, "\n",
		`<key id="type" for="edge" attr.name="type" attr.type="string"/>`, "\n",
		`<graph id="corpus" edgedefault="`, map[bool]string{false: "undirected", true: "directed"}[x.directed], `">`, "\n")
	x.number = make(map[string]int, len(nodes))
	for i, id := range nodes {
		x.number[id] = i
		x.text(`<node id="n`, strconv.Itoa(i), `"><data key="chunk">`, xmlString(id), "</data></node>\n")
	}
}

func (x *exporter) graphML(e mapmatched.Edge) error {
	if r, found := notXML(string(e.Type)); found {
		return fmt.Errorf("edge type %q has the character %U, which XML does not allow: export it as %s", e.Type, r, ExportJSONL)
	}
	x.text(`<edge source="n`, strconv.Itoa(x.number[e.From]), `" target="n`, strconv.Itoa(x.number[e.To]),
		`"><data key="distance">`, exactFloat(e.Weight), `</data><data key="type">`, xmlString(string(e.Type)), "</data></edge>\n")
	return nil
}

// notXML finds a character that an XML 1.0 document may not have, not even as a
// reference (production Char of the recommendation).
func notXML(s string) (r rune, found bool) {
	i := strings.IndexFunc(s, func(r rune) bool {
		return r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0xFFFE || r == 0xFFFF
	})
	if i < 0 {
		return 0, false
	}
	r, _ = utf8.DecodeRuneInString(s[i:])
	return r, true
}

func xmlString(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a Builder takes everything
	return b.String()
}

// ListGraph makes any graph that can list its edges a [ListedGraph], in memory
// unless it is one already. A graph that does not say whether it is directed is
// taken for undirected.
func ListGraph(ctx context.Context, g mapmatched.CorpusGraph) (ListedGraph, error) {
	if listed, ok := g.(ListedGraph); ok {
		return listed, nil
	}
	lister, ok := g.(mapmatched.EdgeLister)
	if !ok {
		return nil, fmt.Errorf("%w: this graph cannot list its edges", mapmatched.ErrInvalidConfig)
	}
	var edges []mapmatched.Edge
	for e, err := range lister.Edges(ctx) {
		if err != nil {
			return nil, err
		}
		edges = append(edges, e)
	}
	opts := mapmatched.GraphOptions{MaximumDistance: g.MaximumDistance()}
	if d, ok := g.(interface{ Directed() bool }); ok {
		opts.Directed = d.Directed()
	}
	return mapmatched.NewGraph(edges, &opts)
}

// KnownChunk returns an error that says so when a chunk is not in a graph.
func KnownChunk(g ListedGraph, chunkID string) error {
	if _, found := slices.BinarySearch(g.Nodes(), chunkID); found {
		return nil
	}
	return fmt.Errorf("chunk %q is not in the graph of %d chunks: look the ID up in the export or the index", chunkID, g.NumNodes())
}
