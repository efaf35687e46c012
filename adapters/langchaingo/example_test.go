package langchaingo_test

import (
	"context"
	"fmt"

	"github.com/tmc/langchaingo/schema"
	"github.com/tmc/langchaingo/textsplitter"

	"github.com/mapmatched/mmplug/adapters/langchaingo"
	"github.com/mapmatched/mmplug/mapmatched"
)

// A retriever whose scores are distances: the nearest document comes first with
// the highest score, one beyond the minimum is left out.
func ExampleNewRetrieverProvider() {
	retriever := fixed{
		{PageContent: "near", Score: 0.1, Metadata: map[string]any{"id": "a"}},
		{PageContent: "far", Score: 0.4, Metadata: map[string]any{"id": "b"}},
	}
	provider, err := langchaingo.NewRetrieverProvider("pages", retriever, langchaingo.IDFromKey("id"), langchaingo.ScoreCosineDistance,
		&langchaingo.ProviderOptions{MinScore: new(0.8)})
	if err != nil {
		fmt.Println(err)
		return
	}
	candidates, err := provider.Candidates(context.Background(), mapmatched.Query{Text: "?"}, 10)
	for _, c := range candidates {
		fmt.Println(c.ChunkID, c.Score, c.Text)
	}
	fmt.Println(err)
	// Output:
	// a 0.9 near
	// <nil>
}

// A provider and a graph as a retriever that remembers the conversation.
func ExampleNewConversations() {
	graph, err := mapmatched.NewGraph([]mapmatched.Edge{{From: "tokens/lifetime", To: "tokens/renew", Weight: 1}}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	conversations, err := langchaingo.NewConversations(&pages{}, graph, &langchaingo.ConversationOptions{
		Session: &mapmatched.Config{ScoreNormalization: mapmatched.NormalizeNone},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	var retriever schema.Retriever = conversations // goes into any chain
	ctx := langchaingo.WithConversation(context.Background(), "alice")
	for _, question := range []string{"tokens last how long?", "renew it how?"} {
		documents, err := retriever.GetRelevantDocuments(ctx, question)
		if err != nil {
			fmt.Println(err)
			return
		}
		d := documents[0]
		fmt.Println(d.PageContent, d.Metadata[langchaingo.MetaTurn], d.Metadata[langchaingo.MetaTrace])
	}
	// Output:
	// text of tokens/lifetime 0 1/0@alice
	// text of tokens/renew 1 1/1@alice
}

// Chunks that overlap, with the bytes of the document that each is.
func ExampleSplitText() {
	splitter := textsplitter.NewRecursiveCharacter(textsplitter.WithChunkSize(20), textsplitter.WithChunkOverlap(8))
	chunks, err := langchaingo.SplitText(splitter, "noise.md", "A noisy track leaps from road to road.")
	for _, c := range chunks {
		fmt.Printf("%s %q\n", c.ID, c.Text)
	}
	fmt.Println(err)
	// Output:
	// noise.md#0-19 "A noisy track leaps"
	// noise.md#14-32 "leaps from road to"
	// noise.md#25-38 "road to road."
	// <nil>
}
