package graphbuild

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/mapmatched/mmplug/mapmatched"
)

func TestExportReadsBackToTheSameEdges(t *testing.T) {
	for seed := range uint64(10) {
		r := rand.New(rand.NewPCG(seed, 61))
		in := randomInput(r, 30, 80, func(r *rand.Rand) float64 { return math.Ldexp(r.Float64()+1e-3, r.IntN(600)-300) })
		in.Nodes = append(in.Nodes, "<&>\"\\\n\t 故乡")
		g, err := mapmatched.NewGraph(in.Edges, &mapmatched.GraphOptions{Nodes: in.Nodes, Directed: in.Directed})
		if err != nil {
			t.Fatal(err)
		}
		file, _ := writeTestGraph(t, in, nil)
		for _, format := range ExportFormats() {
			var a, b bytes.Buffer
			if err := errors.Join(Export(t.Context(), &a, g, format), Export(t.Context(), &b, file, format)); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(a.Bytes(), b.Bytes()) {
				t.Errorf("%s: a graph in memory and its file give different text", format)
			}
			switch format {
			case ExportJSONL:
				list, err := ReadEdges(&a, EdgesJSONL)
				if err != nil {
					t.Fatal(err)
				}
				var want []mapmatched.Edge
				for e, err := range g.Edges(t.Context()) {
					if err != nil {
						t.Fatal(err)
					}
					want = append(want, e)
				}
				if !slices.Equal(list.Edges, want) {
					t.Errorf("seed %d: read back %v, want %v", seed, list.Edges, want)
				}
			case ExportGraphML:
				d := xml.NewDecoder(&a)
				edges := 0
				for {
					token, err := d.Token()
					if err == io.EOF {
						break
					}
					if err != nil {
						t.Fatal(err)
					}
					if start, ok := token.(xml.StartElement); ok && start.Name.Local == "edge" {
						edges++
					}
				}
				if edges != g.NumEdges() {
					t.Errorf("%d edges in GraphML, want %d", edges, g.NumEdges())
				}
			}
		}
	}
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestExportErrors(t *testing.T) {
	g := graphOf(t, mapmatched.GraphOptions{}, chain(3)...)
	if err := Export(t.Context(), io.Discard, g, "svg"); !errors.Is(err, mapmatched.ErrInvalidConfig) || !strings.Contains(err.Error(), `no export format "svg"`) {
		t.Errorf("unknown format: %v", err)
	}
	odd := graphOf(t, mapmatched.GraphOptions{Nodes: []string{"\xff"}})
	for _, format := range ExportFormats() {
		if err := Export(t.Context(), brokenPipe{}, g, format); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("%s: to a writer that fails: %v", format, err)
		}
		if err := Export(t.Context(), io.Discard, odd, format); err == nil || !strings.Contains(err.Error(), `chunk ID "\xff" is not UTF-8`) {
			t.Errorf("%s: an ID that is not UTF-8: %v", format, err)
		}
		for _, id := range []string{"a\x00", "\x1b[31m", "b\x0b", "\x1f", "\uFFFE", "a\uFFFF"} {
			bad := graphOf(t, mapmatched.GraphOptions{Nodes: []string{"a", id}})
			typed := graphOf(t, mapmatched.GraphOptions{}, mapmatched.Edge{From: "a", To: "b", Weight: 1, Type: mapmatched.EdgeType(id)})
			for what, g := range map[string]ListedGraph{"chunk ID": bad, "edge type": typed} {
				err := Export(t.Context(), io.Discard, g, format)
				if want := fmt.Sprintf("%s %q has the character U+", what, id); format == ExportGraphML && (err == nil || !strings.Contains(err.Error(), want)) {
					t.Errorf("%s: error %v, want %q", format, err, want)
				} else if format != ExportGraphML && err != nil {
					t.Errorf("%s: %v", format, err)
				}
			}
		}
		fine := graphOf(t, mapmatched.GraphOptions{Nodes: []string{"\t\n\r \x7f\uFFFD\U0001F600<&>"}})
		if err := Export(t.Context(), io.Discard, fine, format); err != nil {
			t.Errorf("%s: %v", format, err)
		}
		if err := Export(expiring(t.Context(), 1), io.Discard, g, format); err == nil {
			t.Errorf("%s: no error when cancelled", format)
		}
	}
}

// unlisted is a graph that cannot list its edges, listedEdges one that can.
type unlisted struct{ mapmatched.CorpusGraph }

type listedEdges struct {
	mapmatched.CorpusGraph
	mapmatched.EdgeLister
}

func TestListGraph(t *testing.T) {
	g := graphOf(t, mapmatched.GraphOptions{MaximumDistance: 3}, chain(5)...)
	if same, err := ListGraph(t.Context(), g); err != nil || same != ListedGraph(g) {
		t.Errorf("a graph in memory: %v, error %v", same, err)
	}
	listed, err := ListGraph(t.Context(), listedEdges{g, g})
	if err != nil || listed.NumEdges() != 4 || listed.NumNodes() != 5 || listed.MaximumDistance() != 3 || listed.Directed() {
		t.Errorf("listed %v, error %v", listed, err)
	}
	if _, err := ListGraph(t.Context(), unlisted{g}); err == nil || !strings.Contains(err.Error(), "cannot list its edges") {
		t.Errorf("a graph that lists nothing: %v", err)
	}
	if _, err := ListGraph(expiring(t.Context(), 0), listedEdges{g, g}); err == nil {
		t.Error("no error when cancelled")
	}
	if err := KnownChunk(g, "c0003"); err != nil {
		t.Error(err)
	}
	if err := KnownChunk(g, "c"); err == nil || err.Error() != `chunk "c" is not in the graph of 5 chunks: look the ID up in the export or the index` {
		t.Errorf("unknown chunk: %v", err)
	}
}
