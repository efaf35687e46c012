// Command mmplug-reranker-overlap is a plugin that reranks by the words that
// question and chunk share. Its configuration may have "measure": "jaccard"
// (the default) or "coverage", see package rerank.
package main

import (
	"context"
	"encoding/json"

	"github.com/mapmatched/mmplug/plugins"
	"github.com/mapmatched/mmplug/plugins/rerank"
)

const schema = `{
	"type": "object", "additionalProperties": false,
	"properties": {"measure": {"type": "string", "enum": ["jaccard", "coverage"], "default": "jaccard", "description": "how an overlap becomes a score"}}
}`

func main() {
	plugins.Serve(plugins.Plugin{
		Name:        "overlap",
		Version:     "1.0.0",
		Description: "reranks by the words that question and chunk share",
		Services:    plugins.Services{Reranker: rerank.Overlap{}},
		Schema:      json.RawMessage(schema),
		Configure: func(_ context.Context, config json.RawMessage) (plugins.Services, error) {
			c, err := plugins.DecodeConfig[struct{ Measure rerank.Measure }](config)
			return plugins.Services{Reranker: rerank.Overlap{Measure: c.Measure}}, err
		},
	})
}
