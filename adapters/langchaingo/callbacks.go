package langchaingo

import (
	"context"

	"github.com/tmc/langchaingo/callbacks"
	"github.com/tmc/langchaingo/schema"
)

// observed runs a retrieval between the callbacks of h, which may be nil.
//
// HandleRetrieverStart and HandleRetrieverEnd come once each, whatever
// happens, a panic included, so that what the first opens the second closes. langchaingo has no
// callback for a retriever that failed; HandleChainError tells of it, before
// HandleRetrieverEnd without documents.
func observed(ctx context.Context, h callbacks.Handler, query string, retrieve func() ([]schema.Document, error)) (documents []schema.Document, err error) {
	if h == nil {
		return retrieve()
	}
	h.HandleRetrieverStart(ctx, query)
	defer func() { h.HandleRetrieverEnd(ctx, query, documents) }()
	if documents, err = retrieve(); err != nil {
		h.HandleChainError(ctx, err)
		documents = nil
	}
	return documents, err
}
