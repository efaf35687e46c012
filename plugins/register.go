package plugins

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/mapmatched/registry"
)

// Scheme is the URL scheme of plugins: plugin:NAME?dir=DIR.
const Scheme = "plugin"

func init() {
	registry.RegisterProvider(Scheme, registry.ProviderOpener{Doc: doc(KindProvider), Open: opener(KindProvider, func(_ context.Context, h *Host) (mapmatched.CandidateProvider, error) { return h.Provider() })})
	registry.RegisterGraph(Scheme, registry.GraphOpener{Doc: doc(KindGraph), Open: opener(KindGraph, func(ctx context.Context, h *Host) (mapmatched.CorpusGraph, error) { return h.Graph(ctx) })})
	registry.RegisterEmbedder(Scheme, registry.EmbedderOpener{Doc: doc(KindEmbedder), Open: opener(KindEmbedder, func(_ context.Context, h *Host) (mapmatched.Embedder, error) { return h.Embedder() })})
	registry.RegisterReranker(Scheme, registry.RerankerOpener{Doc: doc(KindReranker), Open: opener(KindReranker, func(_ context.Context, h *Host) (mapmatched.Reranker, error) { return h.Reranker() })})
}

func doc(kind Kind) registry.Doc {
	return registry.Doc{
		Summary: article(kind) + " that runs as a process of its own",
		Example: fmt.Sprintf("plugin:%s?dir=/path/plugins", map[Kind]string{KindProvider: "weaviate", KindReranker: "overlap", KindGraph: "routes", KindEmbedder: "words"}[kind]),
		Parameters: []registry.Parameter{
			{Name: "dir", Usage: "the plugin directory; required unless the plugin is given as a path"},
			{Name: "config", Usage: "file with the plugin's configuration, one JSON object"},
			{Name: "env", Usage: "names of the environment variables that the plugin gets, with commas between; it gets no others"},
			{Name: "sha256", Usage: "the SHA-256 that the plugin must have beside what plugins.lock and a policy say, hexadecimal"},
			{Name: "allow_unlocked", Usage: "true starts a plugin that plugins.lock does not list, for development", Default: "false"},
			{Name: "start_timeout", Usage: "time to start, 100ms to 10m", Default: "15s"},
			{Name: "call_timeout", Usage: "time of a call, 1ms to 1h", Default: "1m0s"},
		},
	}
}

// article is a kind with "a" or "an" before it.
func article(kind Kind) string {
	if strings.ContainsRune("aeiou", rune(kind[0])) {
		return "an " + string(kind)
	}
	return "a " + string(kind)
}

// opener opens a plugin and takes from it what the URL stands for.
func opener[T any](kind Kind, take func(context.Context, *Host) (T, error)) func(context.Context, registry.Location, *registry.Params) (T, error) {
	return func(ctx context.Context, at registry.Location, p *registry.Params) (T, error) {
		var none T
		opts := &Options{
			Kind:          kind,
			Dir:           p.String("dir", ""),
			AllowUnlocked: p.Bool("allow_unlocked", false),
			StartTimeout:  p.Duration("start_timeout", 15*time.Second, 100*time.Millisecond, 10*time.Minute),
			CallTimeout:   p.Duration("call_timeout", time.Minute, time.Millisecond, time.Hour),
		}
		config, env, sum := p.String("config", ""), p.String("env", ""), p.String("sha256", "")
		if err := p.Err(); err != nil {
			return none, err
		}
		name, err := at.File()
		if err != nil {
			return none, failAs(mapmatched.KindInvalid, "open", "", err)
		}
		if env != "" {
			opts.Env = strings.Split(env, ",")
		}
		if config != "" {
			b, err := os.ReadFile(config)
			if err != nil {
				return none, fail("open", name, err)
			}
			opts.Config = json.RawMessage(b)
		}
		if sum != "" {
			file, err := locate(name, opts)
			if err != nil {
				return none, fail("open", name, err)
			}
			opts.Pins = map[string]string{file.Name: sum}
		}
		h, err := Open(ctx, name, opts)
		if err != nil {
			return none, err
		}
		v, err := take(ctx, h)
		if err != nil {
			return none, errors.Join(err, h.Close())
		}
		return v, nil
	}
}
