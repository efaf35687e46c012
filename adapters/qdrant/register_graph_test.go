package qdrant_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/mapmatched/mmplug/adapters/qdrant"
	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/mapmatched/registry"
)

// TestOpenGraphURL: the URL of the provider opens the graph too, with its own
// parameters beside.
func TestOpenGraphURL(t *testing.T) {
	s := server(t)
	if s.opts.APIKey != "" || s.opts.TLS {
		t.Skipf("SKIP: the URLs here are for a server without key and TLS; unset %s to run this", realServer)
	}
	c := s.client(nil)
	a, b := record("a", 1, 0), record("b", 0, 1)
	a.Edges = []mapmatched.Edge{{From: "a", To: "b", Weight: 2, Type: mapmatched.EdgeNext}, {From: "a", To: "b", Weight: 1, Type: mapmatched.EdgeKNN}}
	b.Edges = []mapmatched.Edge{{From: "b", To: "a", Weight: 2, Type: mapmatched.EdgeNext}, {From: "b", To: "a", Weight: 1, Type: mapmatched.EdgeKNN}}
	name := s.write(c, nil, a, b) // maximum distance 10
	base := fmt.Sprintf("%s://%s/%s", qdrant.Scheme, s.address, name)
	for _, q := range []struct {
		query string
		want  float64
	}{
		{"", 1},
		{"?limit=5&exact=true&timeout=3s", 1},
		{"?types=next,parent&cache_bytes=0&maximum_distance=10", 2},
		{"?types=link", 10},
		{"?edges_key=others", 10},
	} {
		g, err := registry.OpenGraph(t.Context(), base+q.query)
		if err != nil {
			t.Errorf("%s: %v", q.query, err)
			continue
		}
		d := make([]float64, 1)
		if err := g.Distances(t.Context(), []string{"a"}, []string{"b"}, d); err != nil || d[0] != q.want {
			t.Errorf("%s: distance %v with error %v, want %v", q.query, d[0], err, q.want)
		}
		if err := g.(io.Closer).Close(); err != nil {
			t.Error(err)
		}
		if err := g.(mapmatched.HealthChecker).Health(t.Context()); !errors.Is(err, mapmatched.ErrClosed) {
			t.Errorf("%s: health after Close: %v, want ErrClosed", q.query, err)
		}
	}
	if s.fake != nil {
		for query, want := range map[string]int{"": 1, "?cache_bytes=1000": 1, "?cache_bytes=0": 3} {
			g, err := registry.OpenGraph(t.Context(), base+query)
			if err != nil {
				t.Fatal(err)
			}
			s.fake.ResetCalls()
			for range 3 {
				if err := g.Distances(t.Context(), []string{"a"}, []string{"b"}, make([]float64, 1)); err != nil {
					t.Error(err)
				}
			}
			if got := s.fake.Calls()["Points/Get"]; got != want {
				t.Errorf("%s: %d calls, want %d", query, got, want)
			}
			if err := g.(io.Closer).Close(); err != nil {
				t.Error(err)
			}
		}
	}
	for query, want := range map[string]string{
		"?maximum_distance=0":   `maximum_distance="0"`,
		"?maximum_distance=3":   "maximum distance 10",
		"?cache_bytes=-1":       `cache_bytes="-1"`,
		"?directed=perhaps":     `directed="perhaps"`,
		"?maximun_distance=3":   `did you mean "maximum_distance"`,
		"?edges_key=-":          "PayloadKeys.Edges",
		"?vector=titles":        `no vector "titles"`,
		"?api_key=open%20sesam": "api_key_env",
	} {
		g, err := registry.OpenGraph(t.Context(), base+query)
		if g != nil || mapmatched.KindOf(err) != mapmatched.KindInvalid || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error %v, want %s in one line", query, err, want)
		}
	}
}
