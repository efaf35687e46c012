package plugins_test

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	plugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/plugins"
	"github.com/mapmatched/mmplug/plugins/internal/probe"
	"github.com/mapmatched/mmplug/plugins/internal/wire"
	"github.com/mapmatched/mmplug/plugins/plugintest"
)

// rawPlugin gives the connection as go-plugin makes it.
type rawPlugin struct{ plugin.NetRPCUnsupportedPlugin }

// GRPCServer implements plugin.GRPCPlugin.
func (rawPlugin) GRPCServer(*plugin.GRPCBroker, *grpc.Server) error { return nil }

// GRPCClient implements plugin.GRPCPlugin.
func (rawPlugin) GRPCClient(_ context.Context, _ *plugin.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	return conn, nil
}

// raw starts a plugin with nothing but go-plugin and its AutoMTLS.
func raw(b *testing.B, path string) grpc.ClientConnInterface {
	b.Helper()
	client := plugin.NewClient(&plugin.ClientConfig{
		HandshakeConfig:  plugin.HandshakeConfig{MagicCookieKey: "MMPLUG_PLUGIN", MagicCookieValue: "mapmatched-retrieval"},
		VersionedPlugins: map[int]plugin.PluginSet{1: {"raw": rawPlugin{}}},
		Cmd:              exec.Command(path),
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		AutoMTLS:         true,
		Logger:           hclog.NewNullLogger(),
	})
	b.Cleanup(client.Kill)
	protocol, err := client.Client()
	if err != nil {
		b.Fatal(err)
	}
	conn, err := protocol.Dispense("raw")
	if err != nil {
		b.Fatal(err)
	}
	if _, err := wire.NewBaseClient(conn.(grpc.ClientConnInterface)).Configure(b.Context(), &wire.ConfigureRequest{Config: []byte("{}")}); err != nil {
		b.Fatal(err)
	}
	return conn.(grpc.ClientConnInterface)
}

// benchCorpus has 100 chunks that all match.
func benchCorpus() (chunks []mapmatched.Chunk, vectors [][]float32, wireChunks []*wire.Chunk, wireVectors []*wire.Vector) {
	for i := range 100 {
		text := strings.Repeat("x", 200)
		id := fmt.Sprint("chunk ", i)
		chunks = append(chunks, mapmatched.Chunk{ID: id, Text: text})
		vectors = append(vectors, []float32{1, float32(i)})
		wireChunks = append(wireChunks, &wire.Chunk{Id: id, Text: text})
		wireVectors = append(wireVectors, &wire.Vector{Values: vectors[i]})
	}
	return chunks, vectors, wireChunks, wireVectors
}

// BenchmarkCall compares calls through the host with the same calls as
// go-plugin alone makes them, with messages that are there already. The two
// take turns; ratio is the median of the one over that of the other.
func BenchmarkCall(b *testing.B) {
	path := install(b, b.TempDir(), goodFile)
	host, err := plugins.Open(b.Context(), path, &plugins.Options{AllowUnlocked: true, Logger: quiet()})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = host.Close() })
	conn := raw(b, filepath.Clean(path))
	ctx := b.Context()

	chunks, vectors, wireChunks, wireVectors := benchCorpus()
	if err := probe.LoadCorpus(ctx, host, chunks, vectors); err != nil {
		b.Fatal(err)
	}
	if _, err := wire.NewProviderClient(conn).Load(ctx, &wire.LoadCorpusRequest{Chunks: wireChunks, Vectors: wireVectors}); err != nil {
		b.Fatal(err)
	}
	provider, err := host.Provider()
	if err != nil {
		b.Fatal(err)
	}
	reranker, err := host.Reranker()
	if err != nil {
		b.Fatal(err)
	}
	question := mapmatched.Query{Text: "plain", Vector: []float32{1, 0.5}}
	wireQuestion := &wire.Query{Text: "plain", Vector: question.Vector}
	texts := plugintest.Kilobytes(100)
	for i := range texts {
		texts[i].Metadata = nil
	}
	wireTexts := make([]*wire.Candidate, len(texts))
	for i, c := range texts {
		wireTexts[i] = &wire.Candidate{ChunkId: c.ChunkID, Score: c.Score, Text: c.Text}
	}

	for _, bench := range []struct {
		name      string
		host, raw func() error
	}{
		{"empty", func() error { return host.Health(ctx) }, func() error {
			_, err := wire.NewBaseClient(conn).Health(ctx, &wire.HealthRequest{})
			return err
		}},
		{"candidates=100", func() error {
			_, err := provider.Candidates(ctx, question, 100)
			return err
		}, func() error {
			_, err := wire.NewProviderClient(conn).Candidates(ctx, &wire.CandidatesRequest{Query: wireQuestion, Limit: 100})
			return err
		}},
		{"rerank=100/bytes=1000", func() error {
			_, err := reranker.Rerank(ctx, question, texts)
			return err
		}, func() error {
			_, err := wire.NewRerankerClient(conn).Rerank(ctx, &wire.RerankRequest{Query: wireQuestion, Candidates: wireTexts})
			return err
		}},
	} {
		b.Run(bench.name, func(b *testing.B) {
			var times [2][]time.Duration
			for b.Loop() {
				for i, f := range []func() error{bench.host, bench.raw} {
					begin := time.Now()
					if err := f(); err != nil {
						b.Fatal(err)
					}
					times[i] = append(times[i], time.Since(begin))
				}
			}
			median := func(t []time.Duration) float64 {
				slices.Sort(t)
				return float64(t[len(t)/2])
			}
			b.ReportMetric(median(times[0]), "host-ns")
			b.ReportMetric(median(times[1]), "raw-ns")
			b.ReportMetric(median(times[0])/median(times[1]), "ratio")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkStart starts and ends a plugin.
func BenchmarkStart(b *testing.B) {
	path := install(b, b.TempDir(), goodFile)
	for b.Loop() {
		host, err := plugins.Open(b.Context(), path, &plugins.Options{AllowUnlocked: true, Logger: quiet()})
		if err != nil {
			b.Fatal(err)
		}
		if err := host.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
