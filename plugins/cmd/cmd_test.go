package cmd

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/plugins"
	"github.com/mapmatched/mmplug/plugins/plugintest"
	"github.com/mapmatched/mmplug/plugins/rerank"
)

var built struct {
	once sync.Once
	dir  string
	err  error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if built.dir != "" {
		_ = os.RemoveAll(built.dir) // what is left is in the directory for temporary files
	}
	os.Exit(code)
}

// binary builds the plugins, once, and returns the path of one.
func binary(t *testing.T, name string) string {
	t.Helper()
	built.once.Do(func() {
		if built.dir, built.err = os.MkdirTemp("", "mmplug-cmd-"); built.err != nil {
			return
		}
		if out, err := exec.Command("go", "build", "-o", built.dir, "./...").CombinedOutput(); err != nil {
			built.err = fmt.Errorf("go build: %w: %s", err, out)
		}
	})
	if built.err != nil {
		t.Fatal(built.err)
	}
	return filepath.Join(built.dir, name)
}

func TestConformance(t *testing.T) {
	for name, config := range map[string]string{
		"mmplug-reranker-overlap": `{"measure": "coverage"}`,
		"mmplug-reranker-mmr":     `{"lambda": 0.25}`,
	} {
		t.Run(name, func(t *testing.T) {
			plugintest.Test(t, plugintest.Binary(binary(t, name), &plugins.Options{Config: json.RawMessage(config)}), nil)
		})
	}
}

func open(t *testing.T, name, config string) (*plugins.Host, error) {
	t.Helper()
	opts := &plugins.Options{AllowUnlocked: true}
	if config != "" {
		opts.Config = json.RawMessage(config)
	}
	host, err := plugins.Open(t.Context(), binary(t, name), opts)
	if err == nil {
		t.Cleanup(func() {
			if err := host.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	return host, err
}

// What a plugin answers is what package rerank answers, under its configuration
// and without one.
func TestConfiguration(t *testing.T) {
	candidates := []mapmatched.Candidate{
		{ChunkID: "a", Text: "Renew the token."},
		{ChunkID: "b", Text: "Renew the token, once more: renew the token."},
		{ChunkID: "c", Text: "A token, once expired, needs a new login."},
		{ChunkID: "d", Text: "Renew an invite by a new link."},
	}
	q := mapmatched.Query{Text: "How do I renew a token?"}
	var answers [][]mapmatched.Scored
	for _, c := range []struct {
		name, config string
		want         mapmatched.Reranker
	}{
		{"mmplug-reranker-overlap", "", rerank.Overlap{}},
		{"mmplug-reranker-overlap", `{"measure": "coverage"}`, rerank.Overlap{Measure: rerank.Coverage}},
		{"mmplug-reranker-mmr", "", rerank.MMR{}},
		{"mmplug-reranker-mmr", `{"lambda": 0}`, rerank.MMR{Lambda: new(0.0)}},
		{"mmplug-reranker-mmr", `{"lambda": 1}`, rerank.MMR{Lambda: new(1.0)}},
	} {
		host, err := open(t, c.name, c.config)
		if err != nil {
			t.Fatal(err)
		}
		reranker, err := host.Reranker()
		if err != nil {
			t.Fatal(err)
		}
		got, err := reranker.Rerank(t.Context(), q, candidates)
		if err != nil {
			t.Fatal(err)
		}
		want, err := c.want.Rerank(t.Context(), q, candidates)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s %s: %v, want %v", c.name, c.config, got, want)
		}
		for _, before := range answers {
			if slices.Equal(got, before) {
				t.Errorf("%s %s answers like another plugin or configuration: %v", c.name, c.config, got)
			}
		}
		answers = append(answers, got)
	}
}

func TestConfigurationRefused(t *testing.T) {
	for _, c := range []struct {
		name, config string
		kind         mapmatched.Kind
		texts        []string
	}{
		{"mmplug-reranker-overlap", `{"measure": "cosine"}`, mapmatched.KindInvalid, []string{"measure", "cosine", "jaccard"}},
		{"mmplug-reranker-overlap", `{"Measure": "jaccard"}`, mapmatched.KindInvalid, []string{"Measure"}},
		{"mmplug-reranker-mmr", `{"lambda": 1.5}`, mapmatched.KindInvalid, []string{"lambda", "1.5"}},
		{"mmplug-reranker-mmr", `{"lambda": "1"}`, mapmatched.KindInvalid, []string{"lambda"}},
		{"mmplug-provider-weaviate", "", mapmatched.KindInvalid, []string{"url"}},
		{"mmplug-provider-weaviate", `{"url": "embedded:x"}`, mapmatched.KindInvalid, []string{"embedded:x", "weaviate://"}},
		{"mmplug-provider-weaviate", `{"url": "weaviate://127.0.0.1:1/Pages?limt=3"}`, mapmatched.KindInvalid, []string{"limt"}},
		{"mmplug-provider-weaviate", `{"url": "weaviate://127.0.0.1:1/Pages?retries=0"}`, mapmatched.KindUnavailable, []string{"127.0.0.1:1"}},
	} {
		_, err := open(t, c.name, c.config)
		if err == nil || mapmatched.KindOf(err) != c.kind {
			t.Errorf("%s %s: error %v of kind %q, want kind %q", c.name, c.config, err, mapmatched.KindOf(err), c.kind)
			continue
		}
		for _, text := range c.texts {
			if !strings.Contains(err.Error(), text) {
				t.Errorf("%s %s: error %q lacks %q", c.name, c.config, err, text)
			}
		}
	}
}
