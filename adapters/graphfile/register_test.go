package graphfile_test

import (
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mapmatched/mmplug/adapters/graphfile"
	"github.com/mapmatched/mmplug/graphbuild"
	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/mapmatched/registry"
)

func TestOpenByURL(t *testing.T) {
	path := filepath.Join(t.TempDir(), "g.mmg")
	in := graphbuild.GraphInput{Edges: []mapmatched.Edge{{From: "a", To: "b", Weight: 1.5}}}
	if _, err := graphbuild.WriteGraph(t.Context(), path, in, nil); err != nil {
		t.Fatal(err)
	}
	url := graphfile.Scheme + ":" + filepath.ToSlash(path)
	for _, at := range []string{url, url + "?skip_checksums=true"} {
		g, err := registry.OpenGraph(t.Context(), at)
		if err != nil {
			t.Fatal(err)
		}
		var d [1]float64
		if err := g.Distances(t.Context(), []string{"a"}, []string{"b"}, d[:]); err != nil || d[0] != 1.5 {
			t.Errorf("%s: distance %v, error %v", at, d[0], err)
		}
		if err := g.(io.Closer).Close(); err != nil {
			t.Error(err)
		}
	}
	for at, want := range map[string]string{
		"graph://host/x":          `"host" is read as a host; write graph:PATH`,
		"graph:":                  "write graph:PATH",
		url + "?checksums=false":  `checksums="false" is unknown`,
		url + "-none":             "there is no such file: make one with mmplug graph build",
		url + "?skip_checksums=x": "skip_checksums",
	} {
		g, err := registry.OpenGraph(t.Context(), at)
		if g != nil || err == nil || !strings.Contains(err.Error(), want) || mapmatched.KindOf(err) == "" {
			t.Errorf("%s: %v, %v, want %s", at, g, err, want)
		}
	}
}
