package graphbuild

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/mapmatched/mmplug/mapmatched"
)

func mustGraph(t testing.TB, edges []mapmatched.Edge, opts *mapmatched.GraphOptions) *mapmatched.Graph {
	t.Helper()
	g, err := mapmatched.NewGraph(edges, opts)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func pictureOf(t testing.TB, g *mapmatched.Graph, opts *PictureOptions) string {
	t.Helper()
	var b bytes.Buffer
	if err := WritePicture(context.Background(), &b, g, opts); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// svgElements counts the elements of an XML document by name and class.
func svgElements(t testing.TB, text string) map[string]int {
	t.Helper()
	count := map[string]int{}
	d := xml.NewDecoder(strings.NewReader(text))
	for {
		token, err := d.Token()
		if err == io.EOF {
			return count
		}
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := token.(xml.StartElement); ok {
			count[e.Name.Local]++
			for _, a := range e.Attr {
				if a.Name.Local == "class" {
					count[e.Name.Local+"."+strings.Fields(a.Value)[0]]++
				}
				if strings.Contains(a.Value, "NaN") || strings.Contains(a.Value, "Inf") {
					t.Errorf("%s has %s=%q", e.Name.Local, a.Name.Local, a.Value)
				}
			}
		}
	}
}

func TestWritePicture(t *testing.T) {
	edges := edgesOf(t, "p#x p#y 1 next\np#y q 2 link\nq p#x 3 odd\nq r~2 1 parent\nr~2 e 1 section\ny z 1e-6 knn")
	opts := &mapmatched.GraphOptions{Nodes: []string{"<alone> & \x01\n"}}
	text := pictureOf(t, mustGraph(t, edges, opts), &PictureOptions{Title: `<"Title">`})
	count := svgElements(t, text)
	// A circle each for 8 nodes and for the 7 documents in the legend; a line for each edge, and for
	// each of 6 types in the legend.
	for what, want := range map[string]int{"circle.n": 15, "path.e": 12, "marker": 0, "script": 0, "image": 0, "style": 1} {
		if count[what] != want {
			t.Errorf("%d of %s, want %d", count[what], what, want)
		}
	}
	for _, want := range []string{
		"8 chunks, 6 undirected edges in 7 documents, 1 without any edge.", "&lt;&#34;Title&#34;&gt;",
		"<title>p#x&#xA;p&#xA;degree 2</title>", "<title>p#x – p#y&#xA;next, 1</title>", "Without any edge: 1", "prefers-color-scheme: dark", ">odd (1)<",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %q", want)
		}
	}
	if strings.Contains(text, "http") && strings.Count(text, "http") != strings.Count(text, `xmlns="http://www.w3.org/2000/svg"`) {
		t.Error("the picture has an address")
	}
	opts.Directed = true
	directed := pictureOf(t, mustGraph(t, edges, opts), nil)
	if n := svgElements(t, directed)["marker"]; n != 1 || !strings.Contains(directed, "6 directed edges") || strings.Count(directed, "url(#arrow)") != 6 {
		t.Errorf("%d markers in a directed graph", n)
	}
	for _, g := range []*mapmatched.Graph{mustGraph(t, nil, nil), mustGraph(t, nil, opts), mustGraph(t, edges[:1], nil)} {
		svgElements(t, pictureOf(t, g, nil))
	}
}

func TestWritePictureGroups(t *testing.T) {
	var edges []mapmatched.Edge
	for i := range 100 {
		edges = append(edges, mapmatched.Edge{From: fmt.Sprintf("d%02d#a", i%50), To: fmt.Sprintf("d%02d#b%d", i%50, i), Weight: 1, Type: "next"})
	}
	text := pictureOf(t, mustGraph(t, edges, nil), nil)
	// 36 groups with a mark, 12 a shape; 14 more in grey.
	count := svgElements(t, text)
	if want := 12*3 + 12 + 14*3 + 1; count["circle.n"] != want {
		t.Errorf("%d circles, want %d", count["circle.n"], want)
	}
	if count["rect.n"] != 48 || count["path.n"] != 48 || !strings.Contains(text, ">14 more (42)<") {
		t.Errorf("%d squares, %d triangles", count["rect.n"], count["path.n"])
	}

	c := &Clustering{Clusters: []Cluster{
		{Members: []string{"a", "b"}, Medoid: "a", Keywords: []string{"kite", "wind", "sail", "boat"}},
		{Members: []string{"c"}, Medoid: "c", Keywords: []string{"lone"}},
		{Members: []string{"d", "e"}, Medoid: "e", Keywords: []string{}},
		{Members: []string{"f", "g"}, Medoid: "g", Keywords: []string{"kite", "wind", "sail"}},
	}}
	group := c.Groups()
	for id, want := range map[string]string{"a": "kite, wind, sail", "c": "", "z": "", "d": "e", "f": "kite, wind, sail, g"} {
		if got := group(id); got != want {
			t.Errorf("group of %s is %q, want %q", id, got, want)
		}
	}
	text = pictureOf(t, mustGraph(t, edgesOf(t, "a b 1 x\nb c 1 x\nd e 1 x"), nil), &PictureOptions{Group: group, GroupName: "clusters"})
	if !strings.Contains(text, ">Clusters<") || !strings.Contains(text, ">kite, wind, sail (2)<") || !strings.Contains(text, ">none (1)<") {
		t.Errorf("the legend is not that of the clusters:\n%s", text)
	}
}

// Distances in the picture of a path are about those in the graph, nodes do not
// cover each other, and the picture is the same each time.
func TestPictureLayout(t *testing.T) {
	ctx := context.Background()
	var edges []mapmatched.Edge
	for i := range 9 {
		edges = append(edges, mapmatched.Edge{From: fmt.Sprint(i), To: fmt.Sprint(i + 1), Weight: 2})
	}
	d, err := layOut(ctx, mustGraph(t, edges, nil))
	if err != nil {
		t.Fatal(err)
	}
	between := func(d *drawing, i, j int) float64 {
		return math.Hypot(d.at[i].x-d.at[j].x, d.at[i].y-d.at[j].y)
	}
	unit := between(d, 0, 1)
	for i := range d.at {
		for j := range i {
			if got := between(d, i, j) / unit; math.Abs(got-float64(i-j)) > 0.25*float64(i-j) {
				t.Errorf("nodes %d and %d are %.2f edges apart, want about %d", i, j, got, i-j)
			}
		}
	}

	r := rand.New(rand.NewPCG(6, 6))
	ids, vectors, _ := blobs(r, 250, 6, 6, 0.4)
	copy(vectors[3], vectors[4])
	knn, err := KNN(ctx, ids, vectors, &KNNOptions{K: 4})
	if err != nil {
		t.Fatal(err)
	}
	g := mustGraph(t, knn, &mapmatched.GraphOptions{Nodes: []string{"x", "y", "z"}})
	if d, err = layOut(ctx, g); err != nil {
		t.Fatal(err)
	}
	for i := range d.at {
		if p := d.at[i]; p.x < 0 || p.y < 0 || p.x > d.width+1 || p.y > d.height+1 {
			t.Errorf("node %d is at %v, outside of %v × %v", i, p, d.width, d.height)
		}
		for j := range i {
			if b := between(d, i, j); !(b > 0.8*nodeRoom) {
				t.Errorf("nodes %d and %d are %v pixels apart", i, j, b)
			}
		}
	}
	want := pictureOf(t, g, nil)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	if pictureOf(t, g, nil) != want {
		t.Error("the picture depends on the number of cores")
	}
}

func TestWritePictureErrors(t *testing.T) {
	ctx := context.Background()
	g := mustGraph(t, edgesOf(t, "a b 1 x\nb c 1 x"), nil)
	err := WritePicture(ctx, io.Discard, g, &PictureOptions{MaxNodes: 2})
	if err == nil || !strings.Contains(err.Error(), "picture: the graph has 3 nodes and a picture at most 2; draw a part of it") {
		t.Errorf("error %v", err)
	}
	if err := WritePicture(ctx, io.Discard, g, &PictureOptions{MaxNodes: -1}); !errors.Is(err, mapmatched.ErrInvalidConfig) {
		t.Errorf("error %v", err)
	}
	done, cancel := context.WithCancel(ctx)
	cancel()
	if err := WritePicture(done, io.Discard, g, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	broken := errors.New("full")
	if err := WritePicture(ctx, failingWriter{broken}, g, nil); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }
