package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/mapmatched/mmplug/integration/weaviatetest"
)

// The commands do with a class of Weaviate what they do with a collection of
// Qdrant.
func TestWeaviate(t *testing.T) {
	s := weaviatetest.Start(t, weaviatetest.Options{})
	dir, files := docs(t), t.TempDir()
	at, idx := s.URL("Pages"), filepath.Join(files, "docs.idx")
	args := []string{"index", dir, "--to", at, "--embed", threeWords}
	for _, want := range []string{"5 edges; collection made, 5 written, 0 kept\n", "5 edges; collection was there, 0 written, 5 kept\n"} {
		if r := mmplug(t, "", args...); !strings.HasSuffix(r.out, want) {
			t.Fatalf("%+v, want %q", r, want)
		}
	}
	mmplug(t, "", "index", dir, "--out", idx, "--embed", threeWords)
	ask := func(more ...string) []storeTurn {
		out := fine(t, "", append([]string{"ask", "--embed", threeWords, "--json", aboutNoise, aboutRoad}, more...)...)
		return unmarshal[struct{ Turns []storeTurn }](t, out).Turns
	}
	want, got := ask("--index", idx), ask("--provider", at)
	for i := range want {
		if got[i].ChunkID != want[i].ChunkID || got[i].Texts[got[i].ChunkID] != want[i].Texts[want[i].ChunkID] {
			t.Errorf("turn %d: %+v, of the index %+v", i, got[i], want[i])
		}
	}
	if out := fine(t, "", "doctor", at, "--policy", "plain", "--embed", threeWords); !strings.Contains(out, "it was made under policy plain") {
		t.Error(out)
	}
	edges := func(args ...string) string {
		out := filepath.Join(files, "x.mmg")
		fine(t, "", append([]string{"graph", "build", "--out", out}, args...)...)
		return fine(t, "", "graph", "export", "--format", "jsonl", out)
	}
	if want, got := edges("--index", idx), edges("--from", at, "--take", "edges"); got != want {
		t.Errorf("edges\n%s\nof the index\n%s", got, want)
	}
	for _, take := range []string{"vectors", "neighbors"} {
		if got := edges("--from", at, "--take", take, "--knn", "2"); !strings.Contains(got, `"type":"knn"`) {
			t.Errorf("%s: %s", take, got)
		}
	}
}
