// Command 06_conversational_chain puts a decoder into a chain of langchaingo:
// two conversations at once, each with its own session, and a follow-up that
// only makes sense with the turn before. A language model that is a few lines
// of Go answers; yours takes its place.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"strings"

	"github.com/tmc/langchaingo/chains"
	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/memory"
	"github.com/tmc/langchaingo/schema"

	"github.com/mapmatched/mmplug/adapters/langchaingo"
	"github.com/mapmatched/mmplug/mapmatched"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, w io.Writer) error {
	provider, err := langchaingo.NewRetrieverProvider("handbook", handbook, langchaingo.IDFromKey("id"), langchaingo.ScoreSimilarity, nil)
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
	remember := func() *memory.ConversationBuffer {
		return memory.NewConversationBuffer(memory.WithReturnMessages(true), memory.WithInputKey("question"), memory.WithOutputKey("text"))
	}
	memories := map[string]*memory.ConversationBuffer{"alice": remember(), "bob": remember()}
	conversations, err := langchaingo.NewConversations(provider, graph, &langchaingo.ConversationOptions{
		MaxDocuments: 1,
		// After a restart the memory still knows what was asked.
		History: func(ctx context.Context, id string) ([]langchaingo.Turn, error) {
			return langchaingo.TurnsFromMemory(ctx, memories[id])
		},
	})
	if err != nil {
		return err
	}
	for _, turn := range []struct{ who, question string }{
		{"alice", "How long is a token valid?"},
		{"bob", "How long is an invite valid?"},
		{"alice", "How do I renew it?"},
		{"bob", "How do I renew it?"},
	} {
		chain := chains.NewConversationalRetrievalQAFromLLM(parrot{}, conversations, memories[turn.who])
		chain.ReturnSourceDocuments = true
		// The context tells the retriever whose turn it is.
		out, err := chains.Call(langchaingo.WithConversation(ctx, turn.who), chain, map[string]any{"question": turn.question})
		if err != nil {
			return err
		}
		source := out["source_documents"].([]schema.Document)[0]
		if _, err := fmt.Fprintf(w, "%s: %s\n  %s (%s, turn %d, trace %s)\n", turn.who, turn.question, out["text"],
			source.Metadata[langchaingo.MetaChunkID], source.Metadata[langchaingo.MetaTurn], source.Metadata[langchaingo.MetaTrace]); err != nil {
			return err
		}
	}
	step, err := conversations.Step("1/1@alice")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "why: %q is a %s of distance %v\n", step.ChunkID, step.Move, step.GraphDistance)
	return err
}

// handbook is a retriever of four passages. It takes "it" for nothing: for the
// follow-up it finds both ways to renew something, the same one first for
// everybody.
var handbook = retrieverFunc(func(_ context.Context, query string) ([]schema.Document, error) {
	scores := [4]float32{0.1, 0.65, 0.1, 0.7}
	switch {
	case strings.Contains(query, "token"):
		scores = [4]float32{0.9, 0.3, 0.4, 0.1}
	case strings.Contains(query, "invite"):
		scores = [4]float32{0.4, 0.1, 0.9, 0.3}
	}
	return []schema.Document{
		{PageContent: "A token is valid for one hour.", Metadata: map[string]any{"id": "tokens/lifetime"}, Score: scores[0]},
		{PageContent: "Send the refresh token.", Metadata: map[string]any{"id": "tokens/renew"}, Score: scores[1]},
		{PageContent: "An invite is valid for seven days.", Metadata: map[string]any{"id": "invites/lifetime"}, Score: scores[2]},
		{PageContent: "Send a new link.", Metadata: map[string]any{"id": "invites/renew"}, Score: scores[3]},
	}, nil
})

// retrieverFunc is a retriever made of a function.
type retrieverFunc func(context.Context, string) ([]schema.Document, error)

// GetRelevantDocuments implements schema.Retriever.
func (f retrieverFunc) GetRelevantDocuments(ctx context.Context, query string) ([]schema.Document, error) {
	return f(ctx, query)
}

// parrot is a language model for demonstrations. Asked for a standalone
// question it repeats the follow-up, and asked a question it says the passage.
type parrot struct{}

// GenerateContent implements llms.Model.
func (parrot) GenerateContent(_ context.Context, messages []llms.MessageContent, _ ...llms.CallOption) (*llms.ContentResponse, error) {
	prompt := messages[0].Parts[0].(llms.TextContent).Text
	var answer string
	if _, followUp, found := strings.Cut(prompt, "Follow Up Input: "); found {
		answer, _, _ = strings.Cut(followUp, "\n")
	} else {
		_, context, _ := strings.Cut(prompt, "\n\n")
		answer, _, _ = strings.Cut(context, "\n\n")
	}
	return &llms.ContentResponse{Choices: []*llms.ContentChoice{{Content: answer}}}, nil
}

// Call implements llms.Model.
func (p parrot) Call(ctx context.Context, prompt string, options ...llms.CallOption) (string, error) {
	return llms.GenerateFromSinglePrompt(ctx, p, prompt, options...)
}
