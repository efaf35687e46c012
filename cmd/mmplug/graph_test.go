package main

import (
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/mapmatched/mmplug/graphbuild"
)

func TestGraphStats(t *testing.T) {
	idx := handbookIdx(t)
	out := fine(t, "", "graph", "stats", idx)
	golden(t, "graph_stats.txt", out)
	if got := fine(t, "", "graph", "stats", "embedded:"+filepath.ToSlash(idx)); got != out {
		t.Errorf("by URL\n%s", got)
	}
	text := fine(t, "", "graph", "stats", "--json", idx)
	golden(t, "graph_stats.json", text)
	if s := unmarshal[graphbuild.Stats](t, text); !strings.Contains(out, s.Verdict()) {
		t.Errorf("the verdict is not %q", s.Verdict())
	}
}

// The verdict and the table give the same figure.
func TestGraphStatsFigures(t *testing.T) {
	dir := t.TempDir()
	edges := filepath.Join(dir, "e.csv")
	put(t, edges, "a,b,1,next\nb,c,1,next\nx,y,1,next\n")
	fine(t, "", "graph", "build", "--edges", edges, "--out", filepath.Join(dir, "g.mmg"))
	out := fine(t, "", "graph", "stats", filepath.Join(dir, "g.mmg"))
	if !strings.Contains(out, "\npairs out of reach") || strings.Count(out, "60.0%") != 3 || !strings.Contains(out, "The graph falls into 2 components") || strings.Contains(out, "sample") {
		t.Errorf("output\n%s", out)
	}
}

// A path is taken as it is, whatever it would mean in a URL.
func TestGraphStatsOfOddPaths(t *testing.T) {
	docs := docsWithoutFaults(t)
	t.Chdir(t.TempDir())
	odd := []string{"with space", "percent%41", "hash#x", "a;b&c=d", "故乡"}
	if runtime.GOOS != "windows" {
		odd = append(odd, "question?arm=dense", "colon:idx", "embedded:idx")
	}
	for _, name := range odd {
		fine(t, "", "index", docs, "--out", name)
		if out := fine(t, "", "graph", "stats", name); !strings.HasSuffix(out, "The graph has a single chunk: there is nowhere to move.\n") {
			t.Errorf("%s gives\n%s", name, out)
		}
		absolute, err := filepath.Abs(name)
		if err != nil {
			t.Fatal(err)
		}
		if fine(t, "", "graph", "stats", absolute) != fine(t, "", "graph", "stats", name) {
			t.Errorf("%s gives other figures", absolute)
		}
	}
}

func TestGraphRefuses(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		code  int
		args  []string
		texts []string
	}{
		{exitUsage, nil, []string{"0 arguments given; usage: mmplug graph stats "}},
		{exitFailed, []string{filepath.Join(dir, "none")}, []string{"file does not exist: make an index there with mmplug index"}},
		{exitFailed, []string{dir}, []string{"not an index"}},
		{exitFailed, []string{"nosuch:thing"}, []string{`unknown scheme "nosuch"`, "embedded"}},
		{exitFailed, []string{"embedded:"}, []string{"write embedded:PATH"}},
		{exitFailed, []string{"embedded:x?foo=1"}, []string{`foo="1" is unknown`, "skip_checksums"}},
	} {
		fails(t, c.code, "", append([]string{"graph", "stats"}, c.args...), c.texts...)
	}
}

func TestAdapters(t *testing.T) {
	out := fine(t, "", "adapters")
	for _, want := range []string{"scheme", "embedded:  ", "  provider  ", "  graph     ", "passages of an index directory", "embedded: provider, for example embedded:", "  arm  ", "(default lexical)"} {
		if !strings.Contains(out, want) {
			t.Errorf("the list lacks %q:\n%s", want, out)
		}
	}
	type adapter struct {
		Scheme, Kind, Summary, Example string
		Parameters                     []struct{ Name, Usage, Default string }
	}
	kinds := map[string]bool{}
	for _, a := range unmarshal[struct{ Adapters []adapter }](t, fine(t, "", "adapters", "--json")).Adapters {
		if a.Scheme == "" || a.Summary == "" || !strings.HasPrefix(a.Example, a.Scheme+":") {
			t.Errorf("got %+v", a)
		}
		if a.Scheme == "embedded" {
			kinds[a.Kind] = true
		}
	}
	if !kinds["provider"] || !kinds["graph"] {
		t.Errorf("embedded opens %v", kinds)
	}
}
