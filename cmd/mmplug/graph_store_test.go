package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/mapmatched/mmplug/adapters/faiss"
)

// The graph of a FAISS index is that of the same vectors in a matrix.
func TestGraphBuildFromFaiss(t *testing.T) {
	vectors, ids, rows, names := vectorFiles(t, 30)
	dir := t.TempDir()
	index, lines := filepath.Join(dir, "x.faiss"), filepath.Join(dir, "ids.jsonl")
	if err := faiss.WriteFlatFile(index, faiss.MetricInnerProduct, 0, rows, nil); err != nil {
		t.Fatal(err)
	}
	put(t, lines, `"`+strings.Join(names, "\"\n\"")+"\"\n")
	one, other := filepath.Join(dir, "one.mmg"), filepath.Join(dir, "other.mmg")
	fine(t, "", "graph", "build", "--vectors", vectors, "--ids", ids, "--knn", "3", "--out", one)
	text := fine(t, "", "graph", "build", "--from", "faiss:"+index+"?ids="+lines, "--knn", "3", "--out", other)
	if !strings.HasPrefix(text, other+": 30 chunks, ") {
		t.Errorf("output\n%s", text)
	}
	if want, got := fine(t, "", "graph", "export", "--format", "jsonl", one), fine(t, "", "graph", "export", "--format", "jsonl", other); got != want || got == "" {
		t.Errorf("other edges from the index:\n%s\nwant\n%s", got, want)
	}
	fails(t, 1, "", []string{"graph", "build", "--from", "faiss:" + index + "?ids=" + ids, "--out", other}, "line 1")
	fails(t, 2, "", []string{"graph", "build", "--from", "embedded:" + handbookIdx(t), "--out", other}, "does not give its vectors", "--vectors")
	fails(t, 2, "", []string{"graph", "build", "--from", "faiss:" + index, "--index", "x", "--out", other}, "one of --vectors, --index and --edges, or --from")
}
