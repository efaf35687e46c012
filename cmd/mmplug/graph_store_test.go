package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/mapmatched/mmplug/adapters/faiss"
)

// faissFile writes vectors as a FAISS index with its IDs.
func faissFile(t *testing.T, dir string, rows [][]float32, names []string) (index, lines string) {
	t.Helper()
	index, lines = filepath.Join(dir, "x.faiss"), filepath.Join(dir, "ids.jsonl")
	if err := faiss.WriteFlatFile(index, faiss.MetricInnerProduct, 0, rows, nil); err != nil {
		t.Fatal(err)
	}
	put(t, lines, `"`+strings.Join(names, "\"\n\"")+"\"\n")
	return index, lines
}

// The graph of a FAISS index is that of the same vectors in a matrix.
func TestGraphBuildFromFaiss(t *testing.T) {
	vectors, ids, rows, names := vectorFiles(t, 30)
	dir := t.TempDir()
	index, lines := faissFile(t, dir, rows, names)
	one, other := filepath.Join(dir, "one.mmg"), filepath.Join(dir, "other.mmg")
	fine(t, "", "graph", "build", "--vectors", vectors, "--ids", ids, "--knn", "3", "--out", one)
	text := fine(t, "", "graph", "build", "--from", "faiss:"+index+"?ids="+lines, "--knn", "3", "--out", other)
	if !strings.HasPrefix(text, other+": 30 chunks, ") {
		t.Errorf("output\n%s", text)
	}
	if want, got := fine(t, "", "graph", "export", "--format", "jsonl", one), fine(t, "", "graph", "export", "--format", "jsonl", other); got != want || got == "" {
		t.Errorf("other edges from the index:\n%s\nwant\n%s", got, want)
	}
	fails(t, exitFailed, "", []string{"graph", "build", "--from", "faiss:" + index + "?ids=" + ids, "--out", other}, "line 1")
	fails(t, exitFailed, "", []string{"graph", "build", "--from", "embedded:" + handbookIdx(t), "--out", other}, "none of its", "has a vector", "--take edges")
	fails(t, exitUsage, "", []string{"graph", "build", "--from", "faiss:" + index + "?ids=" + lines, "--take", "neighbors", "--out", other}, "does not give the neighbours", "asked for --take vectors")
	fails(t, exitUsage, "", []string{"graph", "build", "--from", "faiss:" + index + "?ids=" + lines, "--take", "edges", "--out", other}, "does not give its edges", "asked for --take vectors")
	fails(t, exitUsage, "", []string{"graph", "build", "--from", "faiss:" + index, "--index", "x", "--out", other}, "one of --vectors, --index and --edges, or --from")
	fails(t, exitUsage, "", []string{"graph", "build", "--index", "x", "--take", "edges", "--out", other}, "--take is about --from")
	fails(t, exitUsage, "", []string{"graph", "build", "--from", "x:y", "--take", "all", "--out", other}, "vectors, neighbors or edges")
	fails(t, exitUsage, "", []string{"graph", "build", "--from", "x:y", "--take", "edges", "--knn", "3", "--out", other}, "--knn is about the neighbours")
}

// What is taken from a store is what an index of the same corpus has.
func TestGraphBuildFromStore(t *testing.T) {
	s, dir, at := storedDocs(t)
	files := t.TempDir()
	idx := filepath.Join(files, "docs.idx")
	mmplug(t, "", "index", dir, "--out", idx, "--embed", threeWords)
	build := func(args ...string) string {
		t.Helper()
		out := filepath.Join(files, "x.mmg")
		fine(t, "", append([]string{"graph", "build", "--out", out}, args...)...)
		return fine(t, "", "graph", "export", "--format", "jsonl", out)
	}
	if want, got := build("--index", idx), build("--from", at, "--take", "edges"); got != want || got == "" {
		t.Errorf("edges\n%s\nof the index\n%s", got, want)
	}
	if want, got := build("--index", idx), build("--from", "embedded:"+idx, "--take", "edges"); got != want {
		t.Errorf("edges\n%s\nof the index\n%s", got, want)
	}
	// The vectors of docs are so few that some are equal, and ties are settled by
	// what is at their last bit: compare which chunks are joined, by enough.
	pairs := func(text string) string {
		var b strings.Builder
		for line := range strings.Lines(text) {
			pair, _, _ := strings.Cut(line, `,"distance"`)
			b.WriteString(pair + "\n")
		}
		return b.String()
	}
	want := pairs(build("--from", "embedded:"+idx, "--knn", "4"))
	for _, take := range []string{"vectors", "neighbors"} {
		if got := pairs(build("--from", at, "--take", take, "--knn", "4")); got != want || got == "" {
			t.Errorf("%s\n%s\nof the index\n%s", take, got, want)
		}
	}
	out := filepath.Join(files, "x.mmg")
	text := fine(t, "", "graph", "stats", out)
	for _, want := range []string{"knn_v1", "those of the store", placeOf(at)} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not told of a graph that was taken from a store:\n%s", want, text)
		}
	}
	s.Kill()
	fails(t, exitFailed, "", []string{"graph", "build", "--from", at, "--out", out}, s.Addr(), "connection refused")
}
