package main

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mapmatched/mmplug/graphbuild"
	"github.com/mapmatched/mmplug/mapmatched"
)

// npy is a matrix of float32 in the form of an .npy file.
func npy(rows [][]float32) string {
	header := fmt.Sprintf("{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }", len(rows), len(rows[0]))
	header += strings.Repeat(" ", 63-(len(header)+10)%64) + "\n"
	b := binary.LittleEndian.AppendUint16([]byte("\x93NUMPY\x01\x00"), uint16(len(header)))
	b = append(b, header...)
	for _, row := range rows {
		for _, x := range row {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
		}
	}
	return string(b)
}

// vectorFiles writes vectors and IDs on a quarter of a circle.
func vectorFiles(t *testing.T, n int) (vectors, ids string, rows [][]float32, names []string) {
	t.Helper()
	dir := t.TempDir()
	vectors, ids = filepath.Join(dir, "v.npy"), filepath.Join(dir, "ids.txt")
	for i := range n {
		angle := math.Pi / 2 * float64(i) / float64(n)
		rows = append(rows, []float32{float32(math.Cos(angle)), float32(math.Sin(angle))})
		names = append(names, fmt.Sprintf("chunk %02d", i))
	}
	put(t, vectors, npy(rows))
	put(t, ids, strings.Join(names, "\n")+"\n")
	return vectors, ids, rows, names
}

func TestGraphBuildFromVectors(t *testing.T) {
	vectors, ids, rows, names := vectorFiles(t, 40)
	out := filepath.Join(t.TempDir(), "g.mmg")
	text := fine(t, "", "graph", "build", "--vectors", vectors, "--ids", ids, "--knn", "3", "--out", out)
	if !strings.HasPrefix(text, out+": 40 chunks, ") || !strings.Contains(text, "\ndistances by table: a chunk reaches about 39 others, so the table takes about ") {
		t.Errorf("output\n%s", text)
	}
	want, err := graphbuild.KNN(t.Context(), names, rows, &graphbuild.KNNOptions{K: 3})
	if err != nil {
		t.Fatal(err)
	}
	var got []mapmatched.Edge
	export := fine(t, "", "graph", "export", "--format", "jsonl", out)
	for line := range strings.Lines(export) {
		e := unmarshal[struct {
			Source, Target string
			Distance       float64
			Type           mapmatched.EdgeType
		}](t, line)
		got = append(got, mapmatched.Edge{From: e.Source, To: e.Target, Weight: e.Distance, Type: e.Type})
	}
	if !slices.Equal(got, want) {
		t.Errorf("exported\n%v\nwant\n%v", got, want)
	}
	if first, _, _ := strings.Cut(export, "\n"); !strings.HasPrefix(first, `{"source":"chunk 00","target":"chunk 01","distance":0.000770`) || !strings.HasSuffix(first, `,"type":"knn"}`) {
		t.Errorf("first line %s", first)
	}
	before := get(t, out)
	made := unmarshal[struct {
		Graph     string
		Nodes     int
		Distances graphbuild.DistanceChoice
		Neighbors graphbuild.KNNReport
	}](t, fine(t, "", "graph", "build", "--json", "--vectors", vectors, "--ids", ids, "--knn", "3", "--out", out))
	if made.Graph != out || made.Nodes != 40 || made.Distances.Method != graphbuild.DistancesTable || made.Neighbors.Recall != 1 {
		t.Errorf("made %+v", made)
	}
	if get(t, out) != before {
		t.Error("the same input gave another file")
	}
	stats := fine(t, "", "graph", "stats", out)
	for _, want := range []string{"knn_v1", "minimum_edge_distance", "1e-06", "distances by", "table"} {
		if !strings.Contains(stats, want) {
			t.Errorf("stats lack %q:\n%s", want, stats)
		}
	}
	s := unmarshal[graphStats](t, fine(t, "", "graph", "stats", "--json", out))
	if s.Nodes != 40 || s.Distances == nil || s.Provenance == nil || s.Provenance.Parameters["k"] != "3" {
		t.Errorf("stats %+v", s)
	}
	short := fine(t, "", "graph", "build", "--vectors", vectors, "--ids", ids, "--knn", "2", "--maximum-distance", "0.01", "--minimum-edge-distance", "0.002", "--table", "never", "--out", out)
	if !strings.Contains(short, "distances by search: a search was asked for") {
		t.Errorf("output\n%s", short)
	}
	if near := fine(t, "", "graph", "neighbors", out, "chunk 00"); !strings.Contains(near, "   0.002  chunk 01") || !strings.Contains(near, "within 0.01") {
		t.Errorf("neighbours\n%s", near)
	}
}

func TestGraphBuildFromIndex(t *testing.T) {
	idx := handbookIdx(t)
	export := fine(t, "", "graph", "export", idx)
	for _, mode := range []string{"auto", "never", "always", "labels"} {
		out := filepath.Join(t.TempDir(), "g.mmg")
		fine(t, "", "graph", "build", "--index", idx, "--table", mode, "--out", out)
		if fine(t, "", "graph", "export", out) != export {
			t.Errorf("%s: the file has other edges than the index", mode)
		}
		if got, want := fine(t, "", "graph", "check", out), out+" holds: "; !strings.HasPrefix(got, want) {
			t.Errorf("check says %s", got)
		}
		line, _, _ := strings.Cut(export, "\n")
		first := unmarshal[struct{ Source, Target string }](t, line)
		for _, args := range [][]string{
			{"neighbors", "GRAPH", first.Source, "--radius", "2", "--limit", "5"}, {"neighbors", "GRAPH", first.Source, "--json"},
			{"path", "GRAPH", first.Source, first.Target}, {"path", "--json", "GRAPH", first.Target, first.Source},
		} {
			with := func(graph string) string {
				a := slices.Clone(args)
				a[slices.Index(a, "GRAPH")] = graph
				return fine(t, "", append([]string{"graph"}, a...)...)
			}
			if got, want := with(out), with(idx); got != want {
				t.Errorf("%s: %q of the file\n%sof the index\n%s", mode, args, got, want)
			}
		}
	}
}

func TestGraphOfEdges(t *testing.T) {
	dir := t.TempDir()
	list, out := filepath.Join(dir, "e.csv"), filepath.Join(dir, "g.mmg")
	put(t, list, "from,to,weight,type\nb,a,0.1,next\nb,c,0.2,link\n\"d \"\"<>\\\",e,5,x&y\n")
	fine(t, "", "graph", "build", "--edges", list, "--maximum-distance", "2", "--out", out)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"export", "GRAPH"}, `{"source":"a","target":"b","distance":0.1,"type":"next"}
{"source":"b","target":"c","distance":0.2,"type":"link"}
{"source":"d \"<>\\","target":"e","distance":5,"type":"x&y"}
`},
		{[]string{"export", "GRAPH", "--format", "dot"}, `graph corpus {
  "a";
  "b";
  "c";
  "d \"<>\\";
  "e";
  "a" -- "b" [len=0.1, type="next"];
  "b" -- "c" [len=0.2, type="link"];
  "d \"<>\\" -- "e" [len=5, type="x&y"];
}
`},
		{[]string{"export", "GRAPH", "--format", "graphml"}, `<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="chunk" for="node" attr.name="chunk_id" attr.type="string"/>
<key id="distance" for="edge" attr.name="distance" attr.type="double"/>
<key id="type" for="edge" attr.name="type" attr.type="string"/>
<graph id="corpus" edgedefault="undirected">
<node id="n0"><data key="chunk">a</data></node>
<node id="n1"><data key="chunk">b</data></node>
<node id="n2"><data key="chunk">c</data></node>
<node id="n3"><data key="chunk">d &#34;&lt;&gt;\</data></node>
<node id="n4"><data key="chunk">e</data></node>
<edge source="n0" target="n1"><data key="distance">0.1</data><data key="type">next</data></edge>
<edge source="n1" target="n2"><data key="distance">0.2</data><data key="type">link</data></edge>
<edge source="n3" target="n4"><data key="distance">5</data><data key="type">x&amp;y</data></edge>
</graph>
</graphml>
`},
		{[]string{"path", "GRAPH", "a", "c"}, `from  to  type  length  distance
----  --  ----  ------  --------
a     b   next     0.1       0.1
b     c   link     0.2       0.3
`},
		{[]string{"path", "GRAPH", "a", "c", "--json"}, `{
  "distance": 0.30000000000000004,
  "edges": [
    {
      "source": "a",
      "target": "b",
      "distance": 0.1,
      "type": "next"
    },
    {
      "source": "b",
      "target": "c",
      "distance": 0.2,
      "type": "link"
    }
  ],
  "reached": true,
  "source": "a",
  "target": "c"
}
`},
		{[]string{"path", "GRAPH", "a", "e"}, "e is out of reach of a within 2\n"},
		{[]string{"path", "GRAPH", "a", "a"}, "the chunks are the same: distance 0\n"},
		{[]string{"path", "GRAPH", "a", "e", "--json"}, "{\n  \"distance\": 2,\n  \"edges\": [],\n  \"reached\": false,\n  \"source\": \"a\",\n  \"target\": \"e\"\n}\n"},
		{[]string{"neighbors", "GRAPH", "a"}, `distance  chunk
--------  -----
     0.1  b
     0.3  c

2 of 2 chunks within 2
`},
		{[]string{"neighbors", "GRAPH", "a", "--radius", "0.1", "--json"}, `{
  "chunk_id": "a",
  "neighbors": [
    {
      "chunk_id": "b",
      "distance": 0.1
    }
  ],
  "within_radius": 1
}
`},
		{[]string{"check", "GRAPH", "--json"}, fmt.Sprintf("{\n  \"edges\": 3,\n  \"graph\": %s,\n  \"nodes\": 5,\n  \"ok\": true\n}\n", quoted(t, out))},
	} {
		args := append([]string{"graph"}, c.args...)
		args[slices.Index(args, "GRAPH")] = out
		if got := fine(t, "", args...); got != c.want {
			t.Errorf("%q gives\n%swant\n%s", c.args, got, c.want)
		}
	}
	fine(t, "", "graph", "export", out, "--format", "dot", "--out", filepath.Join(dir, "g.dot"))
	if get(t, filepath.Join(dir, "g.dot")) != fine(t, "", "graph", "export", out, "--format", "dot") {
		t.Error("--out has another content than standard output")
	}
	fine(t, "", "graph", "build", "--edges", list, "--directed", "--out", out)
	if got := fine(t, "", "graph", "export", "--format", "dot", out); !strings.Contains(got, `  "b" -> "a" [len=0.1, type="next"];`) {
		t.Errorf("directed:\n%s", got)
	}
}

func quoted(t *testing.T, s string) string {
	t.Helper()
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestGraphCheckFindsDamage(t *testing.T) {
	dir := t.TempDir()
	list, out := filepath.Join(dir, "e.jsonl"), filepath.Join(dir, "g.mmg")
	put(t, list, `{"source":"a","target":"b","distance":0.5}`+"\n")
	fine(t, "", "graph", "build", "--edges", list, "--out", out)
	whole := get(t, out)
	put(t, out, whole[:len(whole)-1])
	fails(t, exitCheck, "", []string{"graph", "check", out}, "graph file is damaged", "wanted")
	put(t, out, whole[:1000]+string(whole[1000]^1)+whole[1001:])
	fails(t, exitCheck, "", []string{"graph", "check", out}, "graph file is damaged", "checksum")
	r := mmplug(t, "", "graph", "check", "--json", out)
	if f := unmarshal[struct {
		OK    bool
		Fault string
	}](t, r.out); r.code != exitCheck || f.OK || !strings.Contains(f.Fault, "checksum") {
		t.Errorf("exit status %d, %s", r.code, r.out)
	}
	put(t, out, "")
	fails(t, exitCheck, "", []string{"graph", "check", out}, "not a graph file")
	if err := os.Remove(out); err != nil {
		t.Fatal(err)
	}
	fails(t, exitFailed, "", []string{"graph", "check", out}, "there is no such file")
	fails(t, exitFailed, "", []string{"graph", "check", "nosuch:thing"}, "unknown scheme")
	idx := filepath.Join(dir, "idx")
	fine(t, "", "index", docsWithoutFaults(t), "--out", idx)
	fine(t, "", "graph", "check", idx)
}

func TestGraphFileRefuses(t *testing.T) {
	vectors, ids, _, _ := vectorFiles(t, 5)
	dir := t.TempDir()
	list, out := filepath.Join(dir, "e.csv"), filepath.Join(dir, "g.mmg")
	put(t, list, "a,b,1\n")
	fine(t, "", "graph", "build", "--edges", list, "--out", out)
	build := func(args ...string) []string { return append([]string{"build", "--out", out}, args...) }
	for _, c := range []struct {
		code int
		args []string
		want string
	}{
		{exitUsage, build(), "one of --vectors, --index and --edges"},
		{exitUsage, build("--vectors", vectors, "--ids", ids, "--edges", list), "one of --vectors, --index and --edges"},
		{exitUsage, build("--vectors", vectors), "--vectors and --ids belong together"},
		{exitUsage, []string{"build", "--edges", list}, "--out FILE.mmg"},
		{exitUsage, build("--edges", list, "--knn", "3"), "--knn is about the neighbours of --vectors"},
		{exitUsage, build("--edges", list, "--table", "maybe"), `--table is "maybe": give auto, never, always or labels`},
		{exitUsage, build("--edges", list, "--table-limit", "0"), "--table-limit is 0"},
		{exitUsage, build("--edges", list, "--maximum-distance", "NaN"), "--maximum-distance is NaN"},
		{exitUsage, build("--vectors", vectors, "--ids", ids, "--knn", "0"), "--knn is 0"},
		{exitUsage, build("--vectors", vectors, "--ids", ids, "--minimum-edge-distance", "-1"), "--minimum-edge-distance is -1"},
		{exitUsage, build("--vectors", vectors, "--ids", ids, "--method", "magic"), `--method is "magic"`},
		{exitUsage, build("--vectors", vectors, "--ids", ids, "--directed"), "--directed is about --edges"},
		{exitUsage, build("--edges", "e.txt"), "extension"},
		{exitFailed, build("--edges", list, "--table", "always", "--table-limit", "5"), "over the limit of 5 bytes"},
		{exitFailed, build("--index", dir), "not an index"},
		{exitFailed, build("--vectors", vectors, "--ids", list), "5 vectors"},
		{exitUsage, []string{"export", out, "--format", "svg"}, `--format is "svg"`},
		{exitUsage, []string{"neighbors", out, "a", "--radius", "-1"}, "--radius is -1"},
		{exitUsage, []string{"neighbors", out, "a", "--limit", "-1"}, "--limit is -1"},
		{exitUsage, []string{"path", out, "a"}, "2 arguments given"},
		{exitFailed, []string{"neighbors", out, "x"}, `chunk "x" is not in the graph of 2 chunks`},
		{exitFailed, []string{"path", out, "a", "x"}, `chunk "x" is not in the graph of 2 chunks`},
		{exitFailed, []string{"stats", filepath.Join(dir, "none.mmg")}, "there is no such file: make one with mmplug graph build"},
		{exitFailed, []string{"stats", list}, "not a graph file"},
	} {
		fails(t, c.code, "", append([]string{"graph"}, c.args...), c.want)
	}
}
