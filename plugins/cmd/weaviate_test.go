package cmd

import (
	"encoding/json"
	"io"
	"iter"
	"reflect"
	"slices"
	"testing"

	_ "github.com/mapmatched/mmplug/adapters/weaviate" // the scheme weaviate
	"github.com/mapmatched/mmplug/integration/weaviatetest"
	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/mapmatched/adaptertest"
	"github.com/mapmatched/mmplug/mapmatched/registry"
	"github.com/mapmatched/mmplug/plugins"
	"github.com/mapmatched/mmplug/plugins/plugintest"
)

// The plugin answers as the adapter does in this process, and passes the suite.
func TestWeaviate(t *testing.T) {
	server := weaviatetest.StartOwned(t, weaviatetest.Options{})
	ctx := t.Context()
	corpus := adaptertest.NewCorpus()
	writer, err := registry.OpenWriter(ctx, server.URL("Pages"))
	if err != nil {
		t.Fatal(err)
	}
	closeLater(t, writer)
	identity := mapmatched.CorpusIdentity{Provider: "test", Model: "test", Dimension: len(corpus.Vectors[0]), Normalization: "l2", MaximumDistance: 5}
	if _, err := writer.WriteCorpus(ctx, identity, records(corpus), nil); err != nil {
		t.Fatal(err)
	}
	url := server.URL("Pages", "mode=hybrid")
	config, err := json.Marshal(map[string]string{"url": url, "graph": server.URL("Pages")})
	if err != nil {
		t.Fatal(err)
	}
	host, err := open(t, "mmplug-provider-weaviate", string(config))
	if err != nil {
		t.Fatal(err)
	}
	if info := host.Info(); !info.Serves(plugins.KindGraph) || !info.Can(plugins.CanFetchChunks) || !info.Can(plugins.CanVectors) {
		t.Errorf("info %+v lacks the graph, the chunks or the vectors", info)
	}

	direct, err := registry.OpenProvider(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	closeLater(t, direct)
	inPlugin, err := host.Provider()
	if err != nil {
		t.Fatal(err)
	}
	q := mapmatched.Query{Text: corpus.Chunks[0].Text, Vector: corpus.Vectors[0]}
	want, err := direct.Candidates(ctx, q, 5)
	if err != nil || len(want) < 2 {
		t.Fatalf("the adapter finds %d candidates, error %v", len(want), err)
	}
	got, err := inPlugin.Candidates(ctx, q, 5)
	if err != nil || !slices.EqualFunc(got, want, func(a, b mapmatched.Candidate) bool {
		return a.ChunkID == b.ChunkID && a.Score == b.Score && a.Text == b.Text && reflect.DeepEqual(a.Parts, b.Parts)
	}) {
		t.Errorf("the plugin finds %v, error %v, the adapter %v", got, err, want)
	}

	directGraph, err := registry.OpenGraph(ctx, server.URL("Pages"))
	if err != nil {
		t.Fatal(err)
	}
	closeLater(t, directGraph)
	graph, err := host.Graph(ctx)
	if err != nil {
		t.Fatal(err)
	}
	ids := []string{corpus.Chunks[0].ID, corpus.Chunks[1].ID, corpus.Chunks[2].ID}
	wantDistances, gotDistances := make([]float64, 9), make([]float64, 9)
	if err := directGraph.Distances(ctx, ids, ids, wantDistances); err != nil {
		t.Fatal(err)
	}
	if err := graph.Distances(ctx, ids, ids, gotDistances); err != nil || !slices.Equal(gotDistances, wantDistances) || gotDistances[1] != 1 {
		t.Errorf("distances %v, error %v, want %v, with 1 between the first two", gotDistances, err, wantDistances)
	}

	plugintest.Test(t, plugintest.Binary(binary(t, "mmplug-provider-weaviate"), &plugins.Options{Config: config}), &plugintest.Options{Queries: []mapmatched.Query{q}})
}

// closeLater closes a store when the test ends, before the server.
func closeLater(t *testing.T, store any) {
	t.Cleanup(func() {
		if c, ok := store.(io.Closer); ok {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

// records are the chunks of a corpus, each joined to the one after it.
func records(c adaptertest.Corpus) iter.Seq2[mapmatched.Record, error] {
	return func(yield func(mapmatched.Record, error) bool) {
		for i, chunk := range c.Chunks {
			r := mapmatched.Record{Chunk: chunk, Vector: c.Vectors[i]}
			if i+1 < len(c.Chunks) {
				r.Edges = []mapmatched.Edge{{From: chunk.ID, To: c.Chunks[i+1].ID, Weight: 1, Type: mapmatched.EdgeNext}}
			}
			if !yield(r, nil) {
				return
			}
		}
	}
}
