package langchaingo_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tmc/langchaingo/chains"
	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/memory"

	"github.com/mapmatched/mmplug/adapters/langchaingo"
	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/policy"
)

// underPolicy is a conversation under a policy as an Asker.
type underPolicy struct{ *policy.Retriever }

// Ask implements langchaingo.Asker.
func (u underPolicy) Ask(ctx context.Context, q mapmatched.Query) (*mapmatched.Result, error) {
	return u.AskAfter(ctx, q, "")
}

// AskAfter implements langchaingo.AnswerAsker.
func (u underPolicy) AskAfter(ctx context.Context, q mapmatched.Query, answer string) (*mapmatched.Result, error) {
	a, err := u.Retriever.Ask(ctx, policy.Query{Text: q.Text, History: q.History, Answer: answer})
	if err != nil {
		return nil, err
	}
	return a.Ordered(), nil
}

// shelf finds the passages that share words with the query, by how many, and of
// equal ones the last first.
type shelf struct{}

var passages = []mapmatched.Candidate{
	{ChunkID: "tokens/renew", Text: "renew a token with a refresh call"},
	{ChunkID: "keys/renew", Text: "renew a key with a rotation call"},
	{ChunkID: "leases/renew", Text: "renew a lease with a renewal call"},
}

// Candidates implements mapmatched.CandidateProvider.
func (shelf) Candidates(ctx context.Context, q mapmatched.Query, limit int) ([]mapmatched.Candidate, error) {
	var found []mapmatched.Candidate
	for i, p := range passages {
		score := float64(i) / 10
		for _, word := range strings.Fields(q.Text) {
			if slices.Contains(strings.Fields(p.Text), word) {
				score++
			}
		}
		if score >= 1 {
			p.Score = score
			found = append(found, p)
		}
	}
	slices.SortStableFunc(found, func(a, b mapmatched.Candidate) int { return int(10 * (b.Score - a.Score)) })
	return found[:min(limit, len(found))], ctx.Err()
}

// backwards is a reranker that turns the ranking round.
type backwards struct{}

// Rerank implements mapmatched.Reranker.
func (backwards) Rerank(_ context.Context, _ mapmatched.Query, c []mapmatched.Candidate) ([]mapmatched.Scored, error) {
	scored := make([]mapmatched.Scored, len(c))
	for i := range c {
		scored[i] = mapmatched.Scored{ChunkID: c[i].ChunkID, Score: float64(i)}
	}
	return scored, nil
}

// policyOf begins conversations under a policy on the shelf.
func policyOf(change func(*policy.Policy)) func(context.Context, string) (langchaingo.Asker, error) {
	p := policy.Default()
	p.Name = "chain"
	p.Arms.Stage, p.Arms.History.Weight, p.Arms.Answer.Weight = policy.StageActive, 3, 3
	p.Decode.TransitionWeight = 0
	change(p)
	return func(ctx context.Context, id string) (langchaingo.Asker, error) {
		r, err := policy.New(ctx, p, policy.Parts{
			Arms: []policy.FusedArm{{Name: "lexical", Provider: shelf{}}}, Reranker: backwards{}, Session: id,
		})
		if err != nil {
			return nil, err
		}
		return underPolicy{r}, nil
	}
}

// A follow-up that only an earlier question, or only the assistant's reply,
// makes clear: the chat history reaches the context arms inside a chain, also
// when the process was restarted.
func TestPolicyInsideChain(t *testing.T) {
	for _, test := range []struct {
		name     string
		change   func(*policy.Policy)
		messages []llms.ChatMessage
		want     string
	}{
		{
			"no context",
			func(p *policy.Policy) { p.Arms.History.Enabled = false },
			[]llms.ChatMessage{llms.HumanChatMessage{Content: "token ?"}, llms.AIChatMessage{Content: "one hour"}},
			"leases/renew",
		},
		{
			"history",
			func(*policy.Policy) {},
			[]llms.ChatMessage{llms.HumanChatMessage{Content: "token ?"}, llms.AIChatMessage{Content: "one hour"}},
			"tokens/renew",
		},
		{
			"answer",
			func(p *policy.Policy) { p.Arms.History.Enabled, p.Arms.Answer.Enabled = false, true },
			[]llms.ChatMessage{llms.HumanChatMessage{Content: "what protects data ?"}, llms.AIChatMessage{Content: "key"}},
			"keys/renew",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			buffer := memory.NewConversationBuffer(memory.WithReturnMessages(true), memory.WithInputKey("question"), memory.WithOutputKey("text"),
				memory.WithChatHistory(memory.NewChatMessageHistory(memory.WithPreviousMessages(test.messages))))
			c, err := langchaingo.NewConversations(nil, nil, &langchaingo.ConversationOptions{
				New: policyOf(test.change),
				History: func(ctx context.Context, _ string) ([]langchaingo.Turn, error) {
					return langchaingo.TurnsFromMemory(ctx, buffer)
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			chain := chains.NewConversationalRetrievalQAFromLLM(&echo{}, c, buffer)
			chain.ReturnSourceDocuments = true
			if _, err := chains.Call(langchaingo.WithConversation(t.Context(), "alice"), chain, map[string]any{"question": "renew it"}); err != nil {
				t.Fatal(err)
			}
			step, err := c.Step("1/0@alice")
			if err != nil || step.ChunkID != test.want {
				t.Errorf("decoded %q, error %v, want %s", step.ChunkID, err, test.want)
			}
		})
	}
}

// echo is a language model that repeats the follow-up as the standalone
// question.
type echo struct{}

// GenerateContent implements llms.Model.
func (echo) GenerateContent(_ context.Context, messages []llms.MessageContent, _ ...llms.CallOption) (*llms.ContentResponse, error) {
	_, after, _ := strings.Cut(messages[0].Parts[0].(llms.TextContent).Text, "Follow Up Input: ")
	question, _, _ := strings.Cut(after, "\n")
	return &llms.ContentResponse{Choices: []*llms.ContentChoice{{Content: question}}}, nil
}

// Call implements llms.Model.
func (e echo) Call(ctx context.Context, prompt string, options ...llms.CallOption) (string, error) {
	return llms.GenerateFromSinglePrompt(ctx, e, prompt, options...)
}

// The documents come in the reranker's order.
func TestPolicyReranks(t *testing.T) {
	c, err := langchaingo.NewConversations(nil, nil, &langchaingo.ConversationOptions{
		New: policyOf(func(p *policy.Policy) { p.Rerank.Mode = policy.RerankSync }),
	})
	if err != nil {
		t.Fatal(err)
	}
	if d := first(t.Context(), t, c.Retriever("alice"), "renew token"); d.Metadata[langchaingo.MetaChunkID] != "keys/renew" || d.Metadata[langchaingo.MetaRank] != 1 {
		t.Errorf("first document %v, want the last of the decoder's", d.Metadata)
	}
	if s := c.Session("alice"); s == nil || s.Path()[0] != "tokens/renew" {
		t.Errorf("session %v", s)
	}
}

// asked is an Asker that keeps what it is asked.
type asked struct {
	queries []mapmatched.Query
	answers []string
	err     error
	text    string
}

// Ask implements langchaingo.Asker.
func (a *asked) Ask(context.Context, mapmatched.Query) (*mapmatched.Result, error) {
	return nil, errors.New("AskAfter is to be called")
}

// AskAfter implements langchaingo.AnswerAsker.
func (a *asked) AskAfter(_ context.Context, q mapmatched.Query, answer string) (*mapmatched.Result, error) {
	a.queries, a.answers = append(a.queries, q), append(a.answers, answer)
	return &mapmatched.Result{Ranking: []mapmatched.Ranked{{Candidate: mapmatched.Candidate{ChunkID: "x", Text: a.text}}}}, a.err
}

// The questions from before the first answered turn stay the same, and the
// answer is the last one of every turn.
func TestAnswerAsker(t *testing.T) {
	a := &asked{text: "x"}
	var before []langchaingo.Turn
	c, err := langchaingo.NewConversations(nil, nil, &langchaingo.ConversationOptions{
		New:     func(context.Context, string) (langchaingo.Asker, error) { return a, nil },
		History: func(context.Context, string) ([]langchaingo.Turn, error) { return before, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	r := c.Retriever("alice")
	before = []langchaingo.Turn{{Question: "q1", Answer: "a1"}}
	a.err = errors.New("down")
	if _, err := r.GetRelevantDocuments(t.Context(), "q2"); !errors.Is(err, a.err) {
		t.Errorf("error %v", err)
	}
	a.err = nil
	before = append(before, langchaingo.Turn{Question: "q2", Answer: "a2"})
	first(t.Context(), t, r, "q3")
	before = append(before, langchaingo.Turn{Question: "q3", Answer: "a3"}, langchaingo.Turn{Question: "q4"})
	first(t.Context(), t, r, "q4")
	want := []string{"q2 after [q1], a1", "q3 after [q1 q2], a2", "q4 after [q1 q2], a3"}
	for i, q := range a.queries {
		if got := fmt.Sprintf("%s after %v, %s", q.Text, q.History, a.answers[i]); got != want[i] {
			t.Errorf("asked %s, want %s", got, want[i])
		}
	}
	if len(a.queries) != len(want) {
		t.Errorf("%d turns, want %d", len(a.queries), len(want))
	}
	if _, err := c.Step("1/0@alice"); mapmatched.KindOf(err) != mapmatched.KindNotFound || c.Session("alice") != nil {
		t.Errorf("error %v for an Asker without a session", err)
	}
	a.text = ""
	if _, err := r.GetRelevantDocuments(t.Context(), "q5"); err == nil || !strings.Contains(err.Error(), `chunk "x" has no text`) {
		t.Errorf("error %v of a chunk without text", err)
	}
}

func TestNewAskerFaults(t *testing.T) {
	down := errors.New("no index")
	for _, test := range []struct {
		begin func(context.Context, string) (langchaingo.Asker, error)
		want  string
	}{
		{func(context.Context, string) (langchaingo.Asker, error) { return nil, nil }, "no Asker"},
		{func(context.Context, string) (langchaingo.Asker, error) { return nil, down }, "no index"},
	} {
		c, err := langchaingo.NewConversations(nil, nil, &langchaingo.ConversationOptions{New: test.begin})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Retriever("alice").GetRelevantDocuments(t.Context(), "q"); err == nil || !strings.Contains(err.Error(), test.want) || c.Session("alice") != nil {
			t.Errorf("error %v, want %q", err, test.want)
		}
		if _, err := langchaingo.NewConversations(shelf{}, nil, &langchaingo.ConversationOptions{New: test.begin}); !errors.Is(err, mapmatched.ErrInvalidConfig) {
			t.Errorf("error %v with a provider beside New", err)
		}
	}
	// A bare session is an Asker.
	c, err := langchaingo.NewConversations(nil, nil, &langchaingo.ConversationOptions{New: func(context.Context, string) (langchaingo.Asker, error) {
		return mapmatched.NewSession(shelf{}, nil, &mapmatched.Config{TransitionWeight: new(0.0)})
	}})
	if err != nil {
		t.Fatal(err)
	}
	if d := first(t.Context(), t, c.Retriever("alice"), "renew token"); d.Metadata[langchaingo.MetaChunkID] != "tokens/renew" || c.Session("alice") == nil {
		t.Errorf("document %v", d)
	}
}

// The type underPolicy is all that it takes to conduct a conversation under a
// policy:
//
//	type underPolicy struct{ *policy.Retriever }
//
//	func (u underPolicy) Ask(ctx context.Context, q mapmatched.Query) (*mapmatched.Result, error) {
//		return u.AskAfter(ctx, q, "")
//	}
//
//	func (u underPolicy) AskAfter(ctx context.Context, q mapmatched.Query, answer string) (*mapmatched.Result, error) {
//		a, err := u.Retriever.Ask(ctx, policy.Query{Text: q.Text, History: q.History, Answer: answer})
//		if err != nil {
//			return nil, err
//		}
//		return a.Ordered(), nil
//	}
func ExampleAnswerAsker() {
	ctx := context.Background()
	p := policy.Default()
	p.Name, p.Arms.Stage, p.Arms.History.Weight, p.Decode.TransitionWeight = "handbook", policy.StageActive, 3, 0
	conversations, err := langchaingo.NewConversations(nil, nil, &langchaingo.ConversationOptions{
		New: func(ctx context.Context, id string) (langchaingo.Asker, error) {
			r, err := policy.New(ctx, p, policy.Parts{Arms: []policy.FusedArm{{Name: "lexical", Provider: shelf{}}}, Session: id})
			return underPolicy{r}, err
		},
		History: func(context.Context, string) ([]langchaingo.Turn, error) {
			return []langchaingo.Turn{{Question: "token ?", Answer: "one hour"}}, nil
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	documents, err := conversations.Retriever("alice").GetRelevantDocuments(ctx, "renew it")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(documents[0].PageContent)
	// Output: renew a token with a refresh call
}
