package main

import (
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/mapmatched/mmplug/graphbuild"
)

// export returns the edges of a graph as lines of source, target, distance and
// type.
func export(t *testing.T, graph string) string {
	t.Helper()
	var b strings.Builder
	for line := range strings.Lines(fine(t, "", "graph", "export", "--format", "jsonl", graph)) {
		e := unmarshal[struct {
			Source, Target, Type string
			Distance             float64
		}](t, line)
		fmt.Fprintf(&b, "%s %s %v %s\n", e.Source, e.Target, e.Distance, e.Type)
	}
	return b.String()
}

func TestGraphUnion(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	put(t, at("structure.csv"), "from,to,weight,type\nb,a,1,next\nb,c,1,next\n")
	put(t, at("near.jsonl"), `{"source":"a","target":"c","distance":0.25,"type":"knn"}
{"source":"a","target":"b","distance":0.5,"type":"knn"}
{"source":"b","target":"d","distance":0.75,"type":"knn"}
`)
	put(t, at("alone.json"), `{"nodes":[{"id":"e"},{"id":"f"}],"links":[]}`)

	out := fine(t, "", "graph", "union", at("structure.csv"), at("near.jsonl"), at("alone.json"),
		"--weight", "knn=2", "--factors", "1,3,1", "--cap", "knn=1", "--out", at("g.mmg"))
	if got, want := export(t, at("g.mmg")), "a b 1 next\na c 1.5 knn\nb c 1 next\nb d 4.5 knn\n"; got != want {
		t.Errorf("edges\n%swant\n%s", got, want)
	}
	for _, want := range []string{
		at("structure.csv") + ": 3 chunks, 2 edges\n" + at("near.jsonl") + ": 4 chunks, 3 edges\n" + at("alone.json") + ": 2 chunks, 0 edges\n",
		at("g.mmg") + ": 6 chunks, 4 edges\n5 edges in: 1 over a cap\ndistances by ", "\n2 chunks without any edge: e, f\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("output\n%slacks %q", out, want)
		}
	}
	first := get(t, at("g.mmg"))

	// Pruned, joined by vector, and as JSON.
	put(t, at("v.npy"), npy([][]float32{{1, 0}, {0, 1}, {3, 4}}))
	put(t, at("ids.txt"), "e\nf\na\n")
	report := unmarshal[unionReport](t, fine(t, "", "graph", "union", "--json", at("g.mmg"), at("alone.json"),
		"--mutual", "knn=1", "--max-degree", "1", "--vectors", at("v.npy"), "--ids", at("ids.txt"), "--out", at("h.mmg")))
	if got, want := export(t, at("h.mmg")), "a b 1 next\na e 0.4 knn\na f 0.19999999999999996 knn\n"; got != want {
		t.Errorf("edges\n%swant\n%s", got, want)
	}
	want := unionReport{
		Graph: at("h.mmg"), Sources: []unionSource{{at("g.mmg"), 6, 4}, {at("alone.json"), 2, 0}}, Joined: 4, Pruned: 1, ByVector: 2,
		Isolated: []string{"c", "d"},
	}
	want.WrittenGraph = report.WrittenGraph
	if !reflect.DeepEqual(report, want) || report.Edges != 3 || report.Nodes != 6 {
		t.Errorf("report %+v", report)
	}
	if !strings.Contains(fine(t, "", "graph", "stats", "--json", at("h.mmg")), `"mutual": "knn=1"`) {
		t.Error("the file does not say how it was pruned")
	}

	// The same bytes again.
	fine(t, "", "graph", "union", at("structure.csv"), at("near.jsonl"), at("alone.json"),
		"--weight", "knn=2", "--factors", "1,3,1", "--cap", "knn=1", "--out", at("g.mmg"))
	if get(t, at("g.mmg")) != first {
		t.Error("the same union has other bytes")
	}

	// What export writes is read back as the same graph.
	put(t, at("back.jsonl"), fine(t, "", "graph", "export", "--format", "jsonl", at("h.mmg")))
	fine(t, "", "graph", "build", "--edges", at("back.jsonl"), "--out", at("back.mmg"))
	if export(t, at("back.mmg")) != export(t, at("h.mmg")) {
		t.Error("export and build --edges make another graph")
	}

	// An index has a graph, too.
	out = fine(t, "", "graph", "union", handbookIdx(t), "--max-degree", "4", "--min-degree", "1", "--out", at("handbook.mmg"))
	if !strings.Contains(out, " pruned") || strings.Contains(out, "without any edge") {
		t.Errorf("output\n%s", out)
	}
}

// Degrees count the neighbours of the graph that is written, which has one edge
// between two chunks, and the report accounts for every edge.
func TestGraphUnionParallelTypes(t *testing.T) {
	dir := t.TempDir()
	in, out := filepath.Join(dir, "g.csv"), filepath.Join(dir, "g.mmg")
	for _, c := range []struct {
		name, edges string
		args        []string
		want, said  string
	}{
		{
			"max degree", "a,b,1,knn\na,b,1.5,link\na,c,2,knn\n", []string{"--max-degree", "2"},
			"a b 1 knn\na c 2 knn\n", ": 3 chunks, 2 edges\n3 edges in: 1 beside a shorter one of another type\n",
		},
		{
			"pruned and parallel", "a,b,1,knn\na,b,1.5,link\na,c,2,knn\n", []string{"--max-degree", "1"},
			"a b 1 knn\n", ": 3 chunks, 1 edge\n3 edges in: 1 pruned, 1 beside a shorter one of another type\n",
		},
		{
			"min degree", "a,c,1,knn\na,c,1,link\na,b,9,knn\nb,d,1,knn\nb,d,1,link\n", []string{"--max-degree", "3", "--mutual", "knn=1", "--min-degree", "2"},
			"a b 9 knn\na c 1 knn\nb d 1 knn\n", ": 4 chunks, 3 edges\n5 edges in: 2 beside a shorter one of another type\n",
		},
		{
			"all", "a,a,1,knn\na,b,2,knn\nb,a,1,knn\na,b,3,link\na,c,4,knn\nb,c,5,link\nc,d,6,link\n", []string{"--cap", "knn=1", "--max-degree", "1"},
			"a b 1 knn\nc d 6 link\n", ": 4 chunks, 2 edges\n7 edges in: 1 from a chunk to itself, 1 repeated, 1 over a cap, 1 pruned, 1 beside a shorter one of another type\n",
		},
		{"nothing to tell", "a,b,1,knn\n", nil, "a b 1 knn\n", ": 2 chunks, 1 edge\ndistances by "},
	} {
		t.Run(c.name, func(t *testing.T) {
			put(t, in, "source,target,distance,type\n"+c.edges)
			said := fine(t, "", append([]string{"graph", "union", in, "--out", out}, c.args...)...)
			if got := export(t, out); got != c.want {
				t.Errorf("edges\n%swant\n%s", got, c.want)
			}
			if !strings.Contains(said, out+c.said) {
				t.Errorf("output\n%slacks %q", said, c.said)
			}
		})
	}
}

func TestGraphUnionErrors(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	put(t, at("a.csv"), "a,b,1,next\n")
	put(t, at("bad.csv"), "a,b,heavy\n")
	put(t, at("directed.json"), `{"directed":true,"nodes":[{"id":"a"}],"links":[]}`)
	put(t, at("v.npy"), npy([][]float32{{1, 0}, {0, 1}}))
	put(t, at("ids.txt"), "e\nf\n")
	put(t, at("alone.json"), `{"nodes":[{"id":"e"}],"links":[]}`)
	g := []string{"--out", at("g.mmg")}
	for _, c := range []struct {
		code int
		args []string
		want string
	}{
		{exitUsage, nil, "0 arguments given"},
		{exitUsage, []string{at("a.csv")}, "say where to write the graph: --out FILE.mmg"},
		{exitUsage, append(g, at("a.csv"), "--weight", "next"), `--weight is "next": give an edge type and a positive factor, such as knn=2`},
		{exitUsage, append(g, at("a.csv"), "--weight", "next=-1"), `--weight is "next=-1"`},
		{exitUsage, append(g, at("a.csv"), "--weight", "next=NaN"), `--weight is "next=NaN"`},
		{exitUsage, append(g, at("a.csv"), "--weight", "next=1", "--weight", "next=2"), `--weight is given twice for edge type "next"`},
		{exitUsage, append(g, at("a.csv"), "--weight", "knn=2"), `--weight is about edge type "knn", which no graph has: the types are ["next"]`},
		{exitUsage, append(g, at("a.csv"), "--cap", "next=x"), `--cap is "next=x"`},
		{exitUsage, append(g, at("a.csv"), "--cap", "next=1", "--cap", "next=1"), `--cap is given twice`},
		{exitUsage, append(g, at("a.csv"), "--cap", "knn=1"), `--cap is about edge type "knn"`},
		{exitUsage, append(g, at("a.csv"), "--mutual", "next=0"), `--mutual is "next=0"`},
		{exitUsage, append(g, at("a.csv"), "--mutual", "knn"), `--mutual is about edge type "knn"`},
		{exitUsage, append(g, at("a.csv"), "--factors", "1,2"), "--factors has 2 factors for 1 graph: give one for each"},
		{exitUsage, append(g, at("a.csv"), "--factors", "0"), "--factors has 0: give positive numbers"},
		{exitUsage, append(g, at("a.csv"), "--max-degree", "-1"), "MaxDegree is -1"},
		{exitUsage, append(g, at("a.csv"), "--max-degree", "1", "--min-degree", "2"), "MinDegree 2 is above MaxDegree 1"},
		{exitUsage, append(g, at("a.csv"), "--vectors", at("v.npy")), "--vectors and --ids belong together"},
		{exitUsage, append(g, at("a.csv"), "--table", "maybe"), `--table is "maybe"`},
		{exitUsage, append(g, at("a.csv"), "--table-limit", "0"), "--table-limit is 0"},
		{exitUsage, append(g, at("a.csv"), "--maximum-distance", "-1"), "--maximum-distance is -1"},
		{exitFailed, append(g, at("bad.csv")), at("bad.csv") + `: line 1, column 3 (weight): "heavy" is not a number`},
		{exitFailed, append(g, at("none.csv")), "none.csv"},
		{exitFailed, append(g, at("none.mmg")), "none.mmg"},
		{exitFailed, append(g, at("a.csv"), at("directed.json")), "one is directed and one is not"},
		{exitFailed, append(g, at("a.csv"), at("alone.json"), "--vectors", at("v.npy"), "--ids", at("ids.txt")), `chunk "f" is in no graph`},
		{exitFailed, append(g, at("a.csv"), at("alone.json"), "--vectors", at("none.npy"), "--ids", at("ids.txt")), "none.npy"},
		{exitFailed, []string{at("a.csv"), "--out", filepath.Join(dir, "no", "g.mmg")}, "g.mmg"},
	} {
		fails(t, c.code, "", append([]string{"graph", "union"}, c.args...), c.want)
	}
}

func TestGraphCluster(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	put(t, at("v.npy"), npy([][]float32{{1, 0.1}, {1, 0.2}, {0.1, 1}}))
	put(t, at("ids.txt"), "a\nb\nc\n")
	put(t, at("labels.csv"), "id,label\na,x\nb,x\nc,y\n")
	base := []string{"graph", "cluster", "--vectors", at("v.npy"), "--ids", at("ids.txt")}
	out := fine(t, "", append(base, "--labels", at("labels.csv"), "--out", at("c.json"))...)
	want := at("c.json") + ": 3 chunks in 2 clusters, the largest with 2, 1 alone (threshold 0.3)\n" +
		"against 2 labels of 3 chunks: NMI 1.0000, B-cubed precision 1.0000, recall 1.0000, F 1.0000\n"
	if out != want {
		t.Errorf("output\n%swant\n%s", out, want)
	}
	c, err := graphbuild.ReadClustering(strings.NewReader(get(t, at("c.json"))))
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Clusters) != 2 || !reflect.DeepEqual(c.Clusters[0].Members, []string{"a", "b"}) || len(c.Clusters[0].Keywords) != 0 {
		t.Errorf("clusters %+v", c.Clusters)
	}
	report := unmarshal[clusterReport](t, fine(t, "", append(base, "--threshold", "2", "--labels", at("labels.csv"), "--json", "--out", at("one.json"))...))
	if report.Clusters != 1 || report.Largest != 3 || report.Singletons != 0 || report.Threshold != 2 || report.Policy != graphbuild.PolicyClusters ||
		report.Quality == nil || report.Quality.NMI != 0 {
		t.Errorf("report %+v", report)
	}
	// To standard output goes the file alone.
	if got := fine(t, "", append(base, "--out", "-")...); got != get(t, at("c.json")) {
		t.Errorf("standard output\n%s", got)
	}

	// Keywords from the texts of an index.
	var ids []string
	handbook := export(t, handbookIdx(t))
	for line := range strings.Lines(handbook) {
		if id, _, _ := strings.Cut(line, " "); len(ids) < 2 && (len(ids) == 0 || ids[0] != id) {
			ids = append(ids, id)
		}
	}
	put(t, at("page-ids.txt"), strings.Join(ids, "\n")+"\n")
	put(t, at("page-v.npy"), npy([][]float32{{1, 0.1}, {1, 0.2}}))
	fine(t, "", "graph", "cluster", "--vectors", at("page-v.npy"), "--ids", at("page-ids.txt"), "--index", handbookIdx(t), "--keywords", "4", "--out", at("pages.json"))
	if c, err = graphbuild.ReadClustering(strings.NewReader(get(t, at("pages.json")))); err != nil || len(c.Clusters[0].Keywords) != 4 {
		t.Errorf("clusters %+v, %v", c, err)
	}

	for _, c := range []struct {
		code int
		args []string
		want string
	}{
		{exitUsage, base[:2], "say what to cluster: --vectors FILE.npy and --ids FILE"},
		{exitUsage, base, "say where to write the clusters: --out FILE.json"},
		{exitUsage, append(base, "--out", at("x.json"), "--threshold", "0"), "--threshold is 0: give a distance above 0 and up to 2"},
		{exitUsage, append(base, "--out", at("x.json"), "--keywords", "0"), "--keywords is 0"},
		{exitUsage, append(base, "--out", at("x.json"), "--keywords", "3"), "--keywords is about the texts of --index"},
		{exitUsage, append(base, "more"), "1 argument given"},
		{exitFailed, append(base, "--out", at("x.json"), "--labels", at("ids.txt")), at("ids.txt") + ": line 1: there are 1 columns"},
		{exitFailed, append(base, "--out", at("x.json"), "--labels", at("none.csv")), "none.csv"},
		{exitFailed, append(base, "--out", at("x.json"), "--index", handbookIdx(t)), `there is no chunk "a"`},
		{exitFailed, append(base, "--out", at("x.json"), "--index", at("none.idx")), "none.idx"},
		{exitFailed, []string{"graph", "cluster", "--vectors", at("v.npy"), "--ids", at("page-ids.txt"), "--out", at("x.json")}, "3 vectors"},
		{exitFailed, append(base, "--out", filepath.Join(dir, "no", "x.json")), "x.json"},
	} {
		fails(t, c.code, "", c.args, c.want)
	}
	put(t, at("labels.csv"), "id,label\nz,x\n")
	fails(t, exitFailed, "", append(base, "--out", at("x.json"), "--labels", at("labels.csv")), `chunk "z" has the label "x" and is in no cluster`)
}

func TestGraphPicture(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	put(t, at("g.csv"), "a,b,1,next\nb,c,2,link\n")
	if out := fine(t, "", "graph", "picture", at("g.csv"), "--out", at("g.svg")); out != at("g.svg")+": 3 chunks, 2 edges\n" {
		t.Errorf("output %q", out)
	}
	if svg := get(t, at("g.svg")); !strings.HasPrefix(svg, "<svg ") || !strings.Contains(svg, `<title id="t">g.csv</title>`) || !strings.Contains(svg, ">Documents<") {
		t.Errorf("picture\n%s", svg)
	}
	clusters := `{"policy":"cluster_shadow_pre_v1","threshold":0.3,"dimension":1,"chunks":2,"clusters":[{"members":["a","b"],"centroid":[1],"medoid":"b","radius":0,"keywords":["kite"]}]}`
	put(t, at("c.json"), clusters)
	svg := fine(t, "", "graph", "picture", at("g.csv"), "--clusters", at("c.json"), "--title", "Kites", "--out", "-")
	for _, want := range []string{`<title id="t">Kites</title>`, ">Clusters<", ">kite (2)<", ">none (1)<"} {
		if !strings.Contains(svg, want) {
			t.Errorf("the picture lacks %q", want)
		}
	}
	made := unmarshal[map[string]any](t, fine(t, "", "graph", "picture", handbookIdx(t), "--json", "--out", at("handbook.svg")))
	if made["picture"] != at("handbook.svg") || made["nodes"].(float64) < 100 {
		t.Errorf("report %v", made)
	}
	put(t, at("bad.json"), strings.Replace(clusters, "shadow", "other", 1))
	for _, c := range []struct {
		code int
		args []string
		want string
	}{
		{exitUsage, nil, "0 arguments given"},
		{exitUsage, []string{at("g.csv")}, "say where to write the picture: --out FILE.svg"},
		{exitUsage, []string{at("g.csv"), "--out", at("x.svg"), "--max-nodes", "0"}, "--max-nodes is 0"},
		{exitFailed, []string{at("g.csv"), "--out", at("x.svg"), "--max-nodes", "2"}, "the graph has 3 nodes and a picture at most 2"},
		{exitFailed, []string{at("g.csv"), "--out", at("x.svg"), "--clusters", at("bad.json")}, at("bad.json") + ": clusters: stale index"},
		{exitFailed, []string{at("none.csv"), "--out", at("x.svg")}, "none.csv"},
	} {
		fails(t, c.code, "", append([]string{"graph", "picture"}, c.args...), c.want)
	}
	if got := strings.Join(names(t, dir), " "); got != "bad.json c.json g.csv g.svg handbook.svg" {
		t.Errorf("files %s", got)
	}
}
