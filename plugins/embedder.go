package plugins

import (
	"context"
	"fmt"

	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/plugins/internal/wire"
)

// embedderServer serves an Embedder.
type embedderServer struct {
	wire.UnimplementedEmbedderServer
	*server
}

// Embed implements the call Embed.
func (s *embedderServer) Embed(ctx context.Context, r *wire.EmbedRequest) (*wire.EmbedResponse, error) {
	embedder := s.current().Embedder
	if embedder == nil {
		return nil, absent(KindEmbedder)
	}
	vectors, err := embedder.Embed(ctx, r.GetTexts())
	return &wire.EmbedResponse{Vectors: toVectors(vectors)}, err
}

// Embedder returns the plugin as an embedder. Closing it closes the host. It
// fails when the plugin is no embedder.
func (h *Host) Embedder() (mapmatched.Embedder, error) {
	if err := h.serves(KindEmbedder); err != nil {
		return nil, err
	}
	return &embedder{h}, nil
}

// embedder is a plugin as an Embedder.
type embedder struct{ host *Host }

// Close implements io.Closer.
func (e *embedder) Close() error { return e.host.Close() }

// Health implements mapmatched.HealthChecker.
func (e *embedder) Health(ctx context.Context) error { return e.host.Health(ctx) }

// Embed implements mapmatched.Embedder. Many texts go in as many calls as
// their size asks for.
func (e *embedder) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	out := make([][]float32, 0, len(texts))
	for rest := toTexts(texts); ; {
		batch := embedBatch(rest)
		vectors, err := call(ctx, e.host, "embed", wire.NewEmbedderClient, wire.EmbedderClient.Embed, &wire.EmbedRequest{Texts: rest[:batch]},
			func(r *wire.EmbedResponse) ([][]float32, error) {
				vectors, err := fromVectors(r.GetVectors(), batch)
				for i, v := range vectors {
					if len(v) == 0 {
						return nil, fmt.Errorf("the vector of text %d is empty", len(out)+i)
					}
					if len(out) > 0 && len(v) != len(out[0]) {
						return nil, fmt.Errorf("the vector of text %d has dimension %d, those before it %d", len(out)+i, len(v), len(out[0]))
					}
				}
				return vectors, err
			})
		if err != nil {
			return nil, err
		}
		out = append(out, vectors...)
		if rest = rest[batch:]; len(rest) == 0 {
			return out, nil
		}
	}
}

// A call embeds at most this many texts and bytes of text, so that the answer,
// with vectors of up to 4,096 dimensions, fits in a message.
const (
	maxEmbedTexts = 2048
	maxEmbedBytes = 16 << 20
)

// embedBatch is how many texts go into the next call: at least one unless
// there is none.
func embedBatch(texts []string) int {
	size := 0
	for i, s := range texts {
		if size += len(s); i > 0 && (size > maxEmbedBytes || i == maxEmbedTexts) {
			return i
		}
	}
	return len(texts)
}
