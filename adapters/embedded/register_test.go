package embedded_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mapmatched/mmplug/adapters/embedded"
	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/mapmatched/registry"
)

// threeChunks writes an index of a – b – c.
func threeChunks(t *testing.T, tool, source string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "index")
	err := embedded.Write(t.Context(), dir, embedded.Input{
		Chunks: []mapmatched.Chunk{{ID: "a", Text: "alpha"}, {ID: "b", Text: "beta"}, {ID: "c", Text: "gamma"}},
		Edges: []mapmatched.Edge{
			{From: "a", To: "b", Weight: 1, Type: mapmatched.EdgeNext},
			{From: "b", To: "c", Weight: 2, Type: mapmatched.EdgeLink},
		},
		MaximumDistance: 5,
		Source:          embedded.Source{Name: source},
	}, &embedded.WriteOptions{Tool: tool})
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestDigestIsOfTheContent(t *testing.T) {
	digest := func(dir string) string {
		x, err := embedded.Open(t.Context(), dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer x.Close() //nolint:errcheck // only read
		return x.Digest()
	}
	one, same := digest(threeChunks(t, "mmplug 1", "docs")), digest(threeChunks(t, "mmplug 2", "./docs"))
	if one != same {
		t.Errorf("another tool version and source name: %s and %s", one, same)
	}
	other := filepath.Join(t.TempDir(), "index")
	if err := embedded.Write(t.Context(), other, embedded.Input{Chunks: []mapmatched.Chunk{{ID: "a", Text: "alpha"}}}, nil); err != nil {
		t.Fatal(err)
	}
	if digest(other) == one {
		t.Error("other chunks have the same digest")
	}
}

func TestScheme(t *testing.T) {
	dir := filepath.ToSlash(threeChunks(t, "", ""))
	p, err := registry.OpenProvider(t.Context(), "embedded:"+dir+"?skip_checksums=true")
	if err != nil {
		t.Fatal(err)
	}
	defer p.(*embedded.Index).Close() //nolint:errcheck // only read
	found, err := p.Candidates(t.Context(), mapmatched.Query{Text: "beta"}, 5)
	if err != nil || len(found) != 1 || found[0].ChunkID != "b" {
		t.Errorf("candidates %v, error %v", found, err)
	}
	g, err := registry.OpenGraph(t.Context(), "embedded:"+dir)
	if err != nil {
		t.Fatal(err)
	}
	var d [2]float64
	if err := g.Distances(t.Context(), []string{"a"}, []string{"c", "x"}, d[:]); err != nil || d != [2]float64{3, 5} {
		t.Errorf("distances %v, error %v", d, err)
	}
	for url, want := range map[string]string{
		"embedded:" + dir + "?arm=sparse":   "arm",
		"embedded:" + dir + "?limit=3":      "limit",
		"embedded:" + dir + "-missing":      "mmplug index",
		"embedded://" + dir[1:]:             "without //",
		"embedded:" + dir + "?arm=dense":    "vectors",
		"embedded:" + dir + "?arm=dense&x=": "x",
	} {
		var typed *mapmatched.Error
		if _, err := registry.OpenProvider(t.Context(), url); !errors.As(err, &typed) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one that says %q", url, err, want)
		}
	}
}
