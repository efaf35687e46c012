// Command 05_wrap_a_retriever decodes what a vector store of langchaingo finds.
// Any schema.Retriever or vectorstores.VectorStore takes the place of the store
// below; say what its scores mean and where the chunk IDs are.
package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"slices"
	"strings"

	"github.com/tmc/langchaingo/schema"
	"github.com/tmc/langchaingo/vectorstores"

	"github.com/mapmatched/mmplug/adapters/langchaingo"
	"github.com/mapmatched/mmplug/mapmatched"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, w io.Writer) error {
	store := &wordStore{}
	if _, err := store.AddDocuments(ctx, []schema.Document{
		{PageContent: "how long a token is valid : one hour", Metadata: map[string]any{"id": "tokens/lifetime"}},
		{PageContent: "renew it with the refresh token", Metadata: map[string]any{"id": "tokens/renew"}},
		{PageContent: "an invite is valid for seven days", Metadata: map[string]any{"id": "invites/lifetime"}},
		{PageContent: "to renew it send a new link", Metadata: map[string]any{"id": "invites/renew"}},
		{PageContent: ""}, // something else in the same collection
	}); err != nil {
		return err
	}
	provider, err := langchaingo.NewStoreProvider("handbook", store, langchaingo.IDFromKey("id"), langchaingo.ScoreCosineDistance, &langchaingo.ProviderOptions{
		MinScore: new(0.1), // of 1 − distance: something has to be shared
		Report: func(_ context.Context, r langchaingo.Report) {
			// A document without text is left out and reported; the query goes on.
			_, _ = fmt.Fprintf(w, "%d documents: %d candidates, %d too far, %d foreign\n", r.Documents, r.Candidates, r.BelowMinimum, r.Foreign)
		},
	})
	if err != nil {
		return err
	}
	graph, err := mapmatched.NewGraph([]mapmatched.Edge{
		{From: "tokens/lifetime", To: "tokens/renew", Weight: 1, Type: mapmatched.EdgeNext},
		{From: "invites/lifetime", To: "invites/renew", Weight: 1, Type: mapmatched.EdgeNext},
	}, nil)
	if err != nil {
		return err
	}
	session, err := mapmatched.NewSession(provider, graph, nil)
	if err != nil {
		return err
	}
	for _, question := range []string{"How long is a token valid?", "How to renew it?"} {
		alone, err := store.SimilaritySearch(ctx, question, 1)
		if err != nil {
			return err
		}
		result, err := session.Ask(ctx, mapmatched.Query{Text: question})
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "%s\n  alone:   %v\n  decoded: %s\n", question, alone[0].Metadata["id"], result.ChunkID); err != nil {
			return err
		}
	}
	return nil
}

// wordStore is a vector store that compares words; its scores are distances,
// 1 minus the share of the question's words that a document has.
type wordStore struct{ documents []schema.Document }

// AddDocuments implements vectorstores.VectorStore.
func (s *wordStore) AddDocuments(_ context.Context, documents []schema.Document, _ ...vectorstores.Option) ([]string, error) {
	s.documents = append(s.documents, documents...)
	return make([]string, len(documents)), nil
}

// SimilaritySearch implements vectorstores.VectorStore.
func (s *wordStore) SimilaritySearch(ctx context.Context, query string, n int, _ ...vectorstores.Option) ([]schema.Document, error) {
	words := strings.Fields(strings.ToLower(strings.Trim(query, "?")))
	found := slices.Clone(s.documents)
	for i := range found {
		shared := 0
		for _, word := range words {
			if strings.Contains(" "+found[i].PageContent+" ", " "+word+" ") {
				shared++
			}
		}
		found[i].Score = 1 - float32(shared)/float32(len(words))
	}
	slices.SortStableFunc(found, func(a, b schema.Document) int { return cmp.Compare(a.Score, b.Score) })
	return found[:min(n, len(found))], ctx.Err()
}
