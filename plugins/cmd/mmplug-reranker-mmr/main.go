// Command mmplug-reranker-mmr is a plugin that reranks by maximal marginal
// relevance, see package rerank. Its configuration may have "lambda", from 0
// (only variety) to 1 (only relevance), by default 0.7.
package main

import (
	"context"
	"encoding/json"

	"github.com/mapmatched/mmplug/plugins"
	"github.com/mapmatched/mmplug/plugins/rerank"
)

const schema = `{
	"type": "object", "additionalProperties": false,
	"properties": {"lambda": {"type": "number", "minimum": 0, "maximum": 1, "default": 0.7, "description": "0 is only variety, 1 only relevance"}}
}`

func main() {
	plugins.Serve(plugins.Plugin{
		Name:        "mmr",
		Version:     "1.0.0",
		Description: "reranks by maximal marginal relevance, which puts variety before repetition",
		Services:    plugins.Services{Reranker: rerank.MMR{}},
		Schema:      json.RawMessage(schema),
		Configure: func(_ context.Context, config json.RawMessage) (plugins.Services, error) {
			c, err := plugins.DecodeConfig[struct{ Lambda *float64 }](config)
			return plugins.Services{Reranker: rerank.MMR{Lambda: c.Lambda}}, err
		},
	})
}
