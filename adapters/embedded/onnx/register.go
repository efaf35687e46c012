package onnx

import (
	"context"
	"fmt"

	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/mapmatched/registry"
)

// Scheme is the URL scheme of model directories: onnx:path/to/model. It is also
// the provider in the identity of their vectors.
const Scheme = "onnx"

func init() {
	registry.RegisterEmbedder(Scheme, registry.EmbedderOpener{
		Doc: registry.Doc{
			Summary: "a local sentence-transformers directory with an ONNX model, run in this process",
			Example: "onnx:path/to/all-MiniLM-L6-v2?threads=2",
			Parameters: []registry.Parameter{
				{Name: "file", Usage: "the ONNX file, relative to the directory", Default: "onnx/model.onnx or model.onnx"},
				{Name: "name", Usage: "name of the model in the index", Default: "that of the directory"},
				{Name: "max_tokens", Usage: "tokens of a text that are used, at most what the model takes", Default: fmt.Sprint(DefaultMaxTokens)},
				{Name: "threads", Usage: "threads that share one call of the model, 1 to 1024", Default: fmt.Sprint(DefaultThreads)},
				{Name: "batch_tokens", Usage: "tokens of one call of the model, at least 1", Default: fmt.Sprint(DefaultBatchTokens)},
				{Name: "library", Usage: "shared library of onnxruntime", Default: "the file in " + LibraryVariable + " or the usual name"},
			},
		},
		Open: func(ctx context.Context, at registry.Location, p *registry.Params) (mapmatched.Embedder, error) {
			opts := &Options{
				ModelFile:   p.String("file", ""),
				Name:        p.String("name", ""),
				MaxTokens:   p.Int("max_tokens", 0, 1, 1<<20),
				Threads:     p.Int("threads", DefaultThreads, 1, 1024),
				BatchTokens: p.Int("batch_tokens", DefaultBatchTokens, 1, 1<<20),
				Library:     p.String("library", ""),
			}
			if err := p.Err(); err != nil {
				return nil, err
			}
			dir, err := at.File()
			if err != nil {
				return nil, classify("open", err)
			}
			e, err := Open(ctx, dir, opts)
			if err != nil {
				return nil, err
			}
			return e, nil
		},
	})
}
