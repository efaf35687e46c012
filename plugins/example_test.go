package plugins_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"

	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/plugins"
)

// shout prefers texts in capitals.
type shout struct{ Bonus float64 }

func (s shout) Rerank(_ context.Context, q mapmatched.Query, c []mapmatched.Candidate) ([]mapmatched.Scored, error) {
	out := make([]mapmatched.Scored, len(c))
	for i, candidate := range c {
		out[i] = mapmatched.Scored{ChunkID: candidate.ChunkID, Score: candidate.Score}
		if candidate.Text == strings.ToUpper(candidate.Text) {
			out[i].Score += s.Bonus
		}
	}
	slog.Debug("reranked", "question", q.Text, "candidates", len(c))
	return out, nil
}

// The main function of a reranker plugin. Built as mmplug-reranker-shout and
// put into a plugin directory, it is opened as plugin:shout?dir=DIR.
func ExampleServe() {
	plugins.Serve(plugins.Plugin{
		Name:     "shout",
		Version:  "1.0.0",
		Services: plugins.Services{Reranker: shout{Bonus: 1}},
	})
}

// A plugin with a configuration. Loopback runs it as a host would, in this
// process.
func ExampleLoopback() {
	plugin := plugins.Plugin{
		Name: "shout", Version: "1.0.0", Kinds: []plugins.Kind{plugins.KindReranker},
		Schema: json.RawMessage(`{"type": "object", "required": ["Bonus"], "properties": {"Bonus": {"type": "number", "minimum": 0}}}`),
		Configure: func(_ context.Context, config json.RawMessage) (plugins.Services, error) {
			s, err := plugins.DecodeConfig[shout](config)
			return plugins.Services{Reranker: s}, err
		},
	}
	ctx := context.Background()
	_, err := plugins.Loopback(ctx, plugin, &plugins.Options{Config: json.RawMessage(`{"Bonus": -1}`)})
	fmt.Println(err)

	host, err := plugins.Loopback(ctx, plugin, &plugins.Options{Config: json.RawMessage(`{"Bonus": 5}`)})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = host.Close() }()
	reranker, err := host.Reranker()
	if err != nil {
		fmt.Println(err)
		return
	}
	scores, err := reranker.Rerank(ctx, mapmatched.Query{Text: "which way?"}, []mapmatched.Candidate{
		{ChunkID: "a", Score: 2, Text: "turn left"}, {ChunkID: "b", Score: 1, Text: "TURN RIGHT"},
	})
	fmt.Println(scores, err)
	// Output:
	// plugin shout: configure: the configuration: Bonus is -1, below 0
	// [{a 2} {b 6}] <nil>
}
