// Command reranker is the plugin of the example: it puts texts that name more
// of the question's words, for their length, before others.
package main

import (
	"github.com/mapmatched/mmplug/plugins"
	"github.com/mapmatched/mmplug/plugins/rerank"
)

func main() {
	plugins.Serve(plugins.Plugin{Name: "shared-words", Version: "1.0.0", Services: plugins.Services{Reranker: rerank.Overlap{}}})
}
