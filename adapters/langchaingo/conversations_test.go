package langchaingo_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tmc/langchaingo/chains"
	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/memory"
	"github.com/tmc/langchaingo/schema"

	"github.com/mapmatched/mmplug/adapters/langchaingo"
	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/mapmatched/adaptertest"
)

// pages is the provider of these tests: it answers by the first word of the
// query and keeps the queries.
type pages struct {
	mu      sync.Mutex
	queries []mapmatched.Query
	err     error
	noTexts bool
}

var answers = map[string][]mapmatched.Candidate{
	"tokens":  {{ChunkID: "tokens/lifetime", Score: 5}, {ChunkID: "tokens/renew", Score: 1}, {ChunkID: "invites/renew", Score: 0}},
	"invites": {{ChunkID: "invites/lifetime", Score: 5}, {ChunkID: "invites/renew", Score: 1}, {ChunkID: "tokens/renew", Score: 0}},
	"renew":   {{ChunkID: "invites/renew", Score: 3.5}, {ChunkID: "tokens/renew", Score: 3}},
}

// Candidates implements mapmatched.CandidateProvider.
func (p *pages) Candidates(ctx context.Context, q mapmatched.Query, limit int) ([]mapmatched.Candidate, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queries = append(p.queries, q)
	if p.err != nil {
		return nil, p.err
	}
	word, _, _ := strings.Cut(q.Text, " ")
	found := slices.Clone(answers[word])
	for i := range found {
		if !p.noTexts {
			found[i].Text = "text of " + found[i].ChunkID
			found[i].Metadata = map[string]any{"lang": "en"}
		}
	}
	return found[:min(limit, len(found))], ctx.Err()
}

// fetching is pages without texts, which it returns by ID.
type fetching struct {
	*pages
	err error
}

// Chunks implements mapmatched.ChunkFetcher. It does not know invites/renew.
func (f fetching) Chunks(_ context.Context, ids []string) ([]mapmatched.Chunk, error) {
	var chunks []mapmatched.Chunk
	for _, id := range ids {
		if id != "invites/lifetime" {
			chunks = append(chunks, mapmatched.Chunk{ID: id, Text: "fetched " + id})
		}
	}
	return chunks, f.err
}

func graph(t testing.TB) *mapmatched.Graph {
	t.Helper()
	g, err := mapmatched.NewGraph([]mapmatched.Edge{
		{From: "tokens/lifetime", To: "tokens/renew", Weight: 1, Type: mapmatched.EdgeNext},
		{From: "invites/lifetime", To: "invites/renew", Weight: 1, Type: mapmatched.EdgeNext},
	}, &mapmatched.GraphOptions{MaximumDistance: 4})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func conversations(t testing.TB, p mapmatched.CandidateProvider, opts *langchaingo.ConversationOptions) *langchaingo.Conversations {
	t.Helper()
	if opts == nil {
		opts = &langchaingo.ConversationOptions{}
	}
	opts.Session = &mapmatched.Config{ScoreNormalization: mapmatched.NormalizeNone}
	c, err := langchaingo.NewConversations(p, graph(t), opts)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// first asks and returns the decoded document.
func first(ctx context.Context, t *testing.T, r schema.Retriever, question string) schema.Document {
	t.Helper()
	documents, err := r.GetRelevantDocuments(ctx, question)
	if err != nil || len(documents) == 0 {
		t.Fatalf("%s: %d documents, error %v", question, len(documents), err)
	}
	return documents[0]
}

func TestConversationsAreKeptApart(t *testing.T) {
	c := conversations(t, &pages{}, nil)
	alice := langchaingo.WithConversation(t.Context(), "alice")
	bob := langchaingo.WithConversation(t.Context(), "bob")
	first(alice, t, c, "tokens last how long?")
	first(bob, t, c, "invites last how long?")
	if got := first(alice, t, c, "renew it how?").Metadata[langchaingo.MetaChunkID]; got != "tokens/renew" {
		t.Errorf("alice's follow-up is decoded as %v", got)
	}
	if got := first(bob, t, c, "renew it how?").Metadata[langchaingo.MetaChunkID]; got != "invites/renew" {
		t.Errorf("bob's follow-up is decoded as %v", got)
	}
	// An explicit conversation, whatever the context says.
	if got := first(bob, t, c.Retriever("alice"), "tokens again").Metadata[langchaingo.MetaTurn]; got != 2 {
		t.Errorf("turn %v of alice's conversation, want 2", got)
	}
	for _, r := range []schema.Retriever{c, c.Retriever("")} {
		if _, err := r.GetRelevantDocuments(t.Context(), "tokens"); err == nil || !strings.Contains(err.Error(), "names no conversation") || mapmatched.KindOf(err) != mapmatched.KindInvalid {
			t.Errorf("error %v without a conversation", err)
		}
	}
	if c.Len() != 2 {
		t.Errorf("%d conversations, want 2", c.Len())
	}
}

func TestDocuments(t *testing.T) {
	c := conversations(t, &pages{}, &langchaingo.ConversationOptions{MaxDocuments: 2})
	r := c.Retriever("alice")
	first(t.Context(), t, r, "tokens last how long?")
	documents, err := r.GetRelevantDocuments(t.Context(), "renew it how?")
	if err != nil {
		t.Fatal(err)
	}
	result := c.Session("alice")
	if len(documents) != 2 || result.Turns() != 2 {
		t.Fatalf("%d documents in turn %d", len(documents), result.Turns())
	}
	posterior, err := result.Posterior(1)
	if err != nil {
		t.Fatal(err)
	}
	d := documents[0]
	want := map[string]any{
		"lang":                       "en",
		langchaingo.MetaConversation: "alice",
		langchaingo.MetaTurn:         1,
		langchaingo.MetaTrace:        "1/1@alice",
		langchaingo.MetaChunkID:      "tokens/renew",
		langchaingo.MetaRank:         1,
		langchaingo.MetaPosition:     2,
		langchaingo.MetaScore:        3.0,
		langchaingo.MetaPathScore:    7.0,
		langchaingo.MetaConfidence:   posterior[1].Score,
	}
	if len(d.Metadata) != len(want) {
		t.Errorf("metadata %v, want %v", d.Metadata, want)
	}
	for key, value := range want {
		if d.Metadata[key] != value {
			t.Errorf("metadata %q is %v, want %v", key, d.Metadata[key], value)
		}
	}
	if d.PageContent != "text of tokens/renew" || d.Score != float32(posterior[1].Score) {
		t.Errorf("document %q with score %v, want posterior %v", d.PageContent, d.Score, posterior[1].Score)
	}
	if second := documents[1].Metadata; second[langchaingo.MetaRank] != 2 || second[langchaingo.MetaPosition] != 1 || second[langchaingo.MetaChunkID] != "invites/renew" {
		t.Errorf("second document %v", second)
	}
	step, err := c.Step(d.Metadata[langchaingo.MetaTrace].(string))
	if err != nil || step.ChunkID != "tokens/renew" || step.Query != "renew it how?" || step.GraphDistance != 1 {
		t.Errorf("step %+v, error %v", step, err)
	}
}

func TestStepFaults(t *testing.T) {
	c := conversations(t, &pages{}, nil)
	first(t.Context(), t, c.Retriever("a@b/c"), "tokens")
	if _, err := c.Step("1/0@a@b/c"); err != nil {
		t.Error(err)
	}
	for trace, kind := range map[string]mapmatched.Kind{
		"": mapmatched.KindInvalid, "x/0@a": mapmatched.KindInvalid, "1@a": mapmatched.KindInvalid,
		"1/1@a@b/c": mapmatched.KindNotFound, "1/-1@a@b/c": mapmatched.KindNotFound, "2/0@a@b/c": mapmatched.KindNotFound, "1/0@other": mapmatched.KindNotFound,
	} {
		if _, err := c.Step(trace); mapmatched.KindOf(err) != kind {
			t.Errorf("trace %q: error %v, want kind %q", trace, err, kind)
		}
	}
}

// A turn that finds nothing has no documents; the conversation goes on over
// the gap.
func TestGap(t *testing.T) {
	c := conversations(t, &pages{}, nil)
	r := c.Retriever("alice")
	first(t.Context(), t, r, "tokens last how long?")
	if documents, err := r.GetRelevantDocuments(t.Context(), "weather today?"); err != nil || len(documents) != 0 {
		t.Errorf("documents %v, error %v; want none, as a value", documents, err)
	}
	if d := first(t.Context(), t, r, "renew it how?"); d.Metadata[langchaingo.MetaChunkID] != "tokens/renew" || d.Metadata[langchaingo.MetaTurn] != 2 {
		t.Errorf("after a gap: %v", d.Metadata)
	}
}

func TestFailedTurnChangesNothing(t *testing.T) {
	p := &pages{}
	record := &recorder{}
	c := conversations(t, p, &langchaingo.ConversationOptions{Callbacks: record})
	r := c.Retriever("alice")
	first(t.Context(), t, r, "tokens last how long?")
	p.err = &mapmatched.Error{Op: "candidates", Adapter: "store", Kind: mapmatched.KindUnauthenticated, Err: errors.New("no key")}
	if _, err := r.GetRelevantDocuments(t.Context(), "renew it how?"); err == nil || mapmatched.KindOf(err) != mapmatched.KindUnauthenticated ||
		err.Error() != `conversation "alice": turn 1: candidates: store: candidates: no key` {
		t.Errorf("error %v", err)
	}
	p.err = nil
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.GetRelevantDocuments(ctx, "renew it how?"); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that the context was cancelled", err)
	}
	if d := first(t.Context(), t, r, "renew it how?"); d.Metadata[langchaingo.MetaTurn] != 1 {
		t.Errorf("turn %v after two that failed, want 1", d.Metadata[langchaingo.MetaTurn])
	}
	want := []string{
		"start tokens last how long?", "end tokens last how long? 3",
		"start renew it how?", `error conversation "alice": turn 1: candidates: store: candidates: no key`, "end renew it how? 0",
		"start renew it how?", "error langchaingo: retrieve: conversation \"alice\": context canceled", "end renew it how? 0",
		"start renew it how?", "end renew it how? 2",
	}
	if !slices.Equal(record.calls, want) {
		t.Errorf("callbacks %q, want %q", record.calls, want)
	}
}

func TestEviction(t *testing.T) {
	var evicted []string
	c := conversations(t, &pages{}, &langchaingo.ConversationOptions{
		MaxConversations: 2,
		Evicted:          func(id string, turns int) { evicted = append(evicted, fmt.Sprintf("%s after %d", id, turns)) },
	})
	turn := func(id string) (index any, restarted bool) {
		t.Helper()
		d := first(t.Context(), t, c.Retriever(id), "tokens")
		_, restarted = d.Metadata[langchaingo.MetaRestarted]
		return d.Metadata[langchaingo.MetaTurn], restarted
	}
	for _, tt := range []struct {
		id        string
		turn      int
		restarted bool
		evicted   string
	}{
		{"a", 0, false, ""}, {"b", 0, false, ""}, {"a", 1, false, ""},
		{"c", 0, false, "b after 1"},
		{"b", 0, true, "a after 2"},
		{"b", 1, false, ""},
		{"a", 0, true, "c after 1"},
		{"d", 0, false, "b after 2"}, {"e", 0, false, "a after 1"}, // c is forgotten now
		{"c", 0, false, "d after 1"},
	} {
		evicted = nil
		index, restarted := turn(tt.id)
		if index != tt.turn || restarted != tt.restarted || strings.Join(evicted, ", ") != tt.evicted {
			t.Errorf("%s: turn %v, restarted %v, evicted %q; want %+v", tt.id, index, restarted, evicted, tt)
		}
		if c.Len() > 2 {
			t.Errorf("%d sessions, the limit is 2", c.Len())
		}
	}
	if s := c.Session("d"); s != nil {
		t.Error("an evicted session is still there")
	}
	c.Forget("c")
	c.Forget("never")
	if index, restarted := turn("c"); index != 0 || restarted {
		t.Errorf("after Forget: turn %v, restarted %v", index, restarted)
	}
}

func TestHistory(t *testing.T) {
	p := &pages{}
	before := []langchaingo.Turn{{Question: "tokens first", Answer: "an hour"}, {Question: "renew then"}}
	var asked []string
	var broken error
	c := conversations(t, p, &langchaingo.ConversationOptions{History: func(_ context.Context, id string) ([]langchaingo.Turn, error) {
		asked = append(asked, id)
		return before, broken
	}})
	r := c.Retriever("alice")
	broken = errors.New("no history today")
	if _, err := r.GetRelevantDocuments(t.Context(), "tokens"); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
	broken = nil
	first(t.Context(), t, r, "tokens")
	first(t.Context(), t, r, "invites")
	want := []mapmatched.Query{
		{Text: "tokens", Turn: 2, History: []string{"tokens first", "renew then"}, Path: []string{"", ""}},
		{Text: "invites", Turn: 3, History: []string{"tokens first", "renew then", "tokens"}, Path: []string{"", "", "tokens/lifetime"}},
	}
	for i, q := range p.queries {
		if q.Text != want[i].Text || q.Turn != want[i].Turn || !slices.Equal(q.History, want[i].History) || !slices.Equal(q.Path, want[i].Path) {
			t.Errorf("query %+v, want %+v", q, want[i])
		}
	}
	if !slices.Equal(asked, []string{"alice", "alice"}) {
		t.Errorf("history asked for %q, want twice: for the turn that failed and the first", asked)
	}
	// The same words as in the last turn, which was answered, are a new question.
	before = []langchaingo.Turn{{Question: "renew it", Answer: "send a link"}}
	p.queries = nil
	first(t.Context(), t, c.Retriever("carol"), "renew it")
	if q := p.queries[0]; !slices.Equal(q.History, []string{"renew it"}) {
		t.Errorf("query %+v, want the answered question in its history", q)
	}
	// The chat history has the question already.
	before = []langchaingo.Turn{{Question: "tokens first"}, {Question: "renew it"}}
	p.queries = nil
	first(t.Context(), t, c.Retriever("bob"), "renew it")
	if q := p.queries[0]; !slices.Equal(q.History, []string{"tokens first"}) || q.Turn != 1 {
		t.Errorf("query %+v, want the question itself left out of its history", q)
	}
}

func TestTurns(t *testing.T) {
	ctx := t.Context()
	h := memory.NewChatMessageHistory(memory.WithPreviousMessages([]llms.ChatMessage{
		llms.SystemChatMessage{Content: "be kind"}, llms.AIChatMessage{Content: "hello"}, llms.HumanChatMessage{Content: "one?"}, llms.AIChatMessage{Content: "yes"},
		llms.AIChatMessage{Content: "surely"}, llms.AIChatMessage{}, llms.HumanChatMessage{Content: "two?"},
	}))
	want := []langchaingo.Turn{{Question: "one?", Answer: "yes\nsurely"}, {Question: "two?"}}
	if got, err := langchaingo.TurnsFromHistory(ctx, h); err != nil || !slices.Equal(got, want) {
		t.Errorf("turns %q, error %v", got, err)
	}
	for _, m := range []schema.Memory{
		memory.NewConversationBuffer(memory.WithChatHistory(h), memory.WithReturnMessages(true)),
		memory.NewConversationWindowBuffer(5, memory.WithChatHistory(h), memory.WithReturnMessages(true)),
	} {
		if got, err := langchaingo.TurnsFromMemory(ctx, m); err != nil || !slices.Equal(got, want) {
			t.Errorf("turns %q, error %v", got, err)
		}
	}
	if _, err := langchaingo.TurnsFromMemory(ctx, memory.NewConversationBuffer(memory.WithChatHistory(h))); err == nil || !strings.Contains(err.Error(), "set ReturnMessages") {
		t.Errorf("error %v of a memory that is one text", err)
	}
	for _, m := range []schema.Memory{memory.NewSimple(), memory.NewConversationBuffer()} {
		if got, err := langchaingo.TurnsFromMemory(ctx, m); err != nil || len(got) != 0 {
			t.Errorf("turns %q, error %v of an empty memory", got, err)
		}
	}
}

func TestTextsAreFetched(t *testing.T) {
	bare := &pages{noTexts: true}
	c := conversations(t, fetching{bare, nil}, nil)
	if d := first(t.Context(), t, c.Retriever("alice"), "tokens"); d.PageContent != "fetched tokens/lifetime" {
		t.Errorf("text %q", d.PageContent)
	}
	down := errors.New("store is down")
	for _, tt := range []struct {
		provider mapmatched.CandidateProvider
		question string
		want     string
	}{
		{bare, "tokens", `chunk "tokens/lifetime" has no text for the chain to read: the provider neither`},
		{fetching{bare, nil}, "invites", `chunk "invites/lifetime" has no text for the chain to read`},
		{fetching{bare, down}, "tokens", "store is down"},
	} {
		c := conversations(t, tt.provider, nil)
		if _, err := c.Retriever("alice").GetRelevantDocuments(t.Context(), tt.question); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("error %v, want %q", err, tt.want)
		}
		if turns := c.Session("alice").Turns(); turns != 0 {
			t.Errorf("%d turns after one that failed", turns)
		}
	}
}

func TestNewConversationsFaults(t *testing.T) {
	_, err := langchaingo.NewConversations(nil, nil, &langchaingo.ConversationOptions{MaxConversations: -1, MaxDocuments: -2, Session: &mapmatched.Config{Beam: -1}})
	for _, want := range []string{"no provider", "MaxConversations is -1", "MaxDocuments is -2", "beam is -1"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

// Many conversations at once, beyond the limit, each from several goroutines.
func TestConcurrentConversations(t *testing.T) {
	c := conversations(t, &pages{}, &langchaingo.ConversationOptions{MaxConversations: 3, Evicted: func(string, int) {}})
	var wg sync.WaitGroup
	errs := make([]error, 8)
	for worker := range errs {
		wg.Go(func() {
			for n := range 50 {
				id := fmt.Sprintf("c%d", (worker+n)%5)
				documents, err := c.Retriever(id).GetRelevantDocuments(t.Context(), []string{"tokens", "renew", "nothing"}[n%3])
				if err == nil && len(documents) > 0 && documents[0].Metadata[langchaingo.MetaConversation] != id {
					err = fmt.Errorf("document of %v in %s", documents[0].Metadata, id)
				}
				errs[worker] = errors.Join(errs[worker], err)
				_ = c.Len()
				_ = c.Session(id)
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
	if c.Len() != 3 {
		t.Errorf("%d sessions, want 3", c.Len())
	}
}

// reader is a language model that answers with what it was told: the first
// line of the documents, and a follow-up question with a fixed rewrite.
type reader struct{ prompts []string }

// GenerateContent implements llms.Model.
func (r *reader) GenerateContent(_ context.Context, messages []llms.MessageContent, _ ...llms.CallOption) (*llms.ContentResponse, error) {
	prompt := messages[0].Parts[0].(llms.TextContent).Text
	r.prompts = append(r.prompts, prompt)
	answer := "I do not know."
	if strings.Contains(prompt, "standalone question") {
		answer = "renew a token how?"
	} else if _, after, found := strings.Cut(prompt, "text of "); found {
		answer, _, _ = strings.Cut(after, "\n")
	}
	return &llms.ContentResponse{Choices: []*llms.ContentChoice{{Content: answer}}}, nil
}

// Call implements llms.Model.
func (r *reader) Call(ctx context.Context, prompt string, options ...llms.CallOption) (string, error) {
	return llms.GenerateFromSinglePrompt(ctx, r, prompt, options...)
}

func TestInsideChains(t *testing.T) {
	t.Run("RetrievalQA", func(t *testing.T) {
		c := conversations(t, &pages{}, nil)
		chain := chains.NewRetrievalQAFromLLM(&reader{}, c)
		ctx := langchaingo.WithConversation(t.Context(), "alice")
		for question, want := range map[string]string{"tokens last how long?": "tokens/lifetime"} {
			if got, err := chains.Run(ctx, chain, question); err != nil || got != want {
				t.Errorf("%s: %q, error %v; want %q", question, got, err, want)
			}
		}
		if got, err := chains.Run(ctx, chain, "renew it how?"); err != nil || got != "tokens/renew" {
			t.Errorf("follow-up: %q, error %v; want tokens/renew", got, err)
		}
		if _, err := chains.Run(t.Context(), chain, "tokens"); err == nil || !strings.Contains(err.Error(), "names no conversation") {
			t.Errorf("error %v without a conversation", err)
		}
	})
	t.Run("ConversationalRetrievalQA", func(t *testing.T) {
		buffer := memory.NewConversationBuffer(memory.WithReturnMessages(true))
		p := &pages{}
		c := conversations(t, p, &langchaingo.ConversationOptions{History: func(ctx context.Context, _ string) ([]langchaingo.Turn, error) {
			return langchaingo.TurnsFromMemory(ctx, buffer)
		}})
		model := &reader{}
		chain := chains.NewConversationalRetrievalQAFromLLM(model, c, buffer)
		ctx := langchaingo.WithConversation(t.Context(), "alice")
		for i, want := range []string{"tokens/lifetime", "tokens/renew"} {
			question := []string{"tokens last how long?", "and how do I get more of it?"}[i]
			if got, err := chains.Run(ctx, chain, question); err != nil || got != want {
				t.Errorf("%s: %q, error %v; want %q", question, got, err, want)
			}
		}
		if q := p.queries[1]; q.Text != "renew a token how?" || !slices.Equal(q.History, []string{"tokens last how long?"}) {
			t.Errorf("query %+v, want the chain's standalone question", q)
		}
		// The process restarts: the memory has the questions, the session is new.
		c.Forget("alice")
		if _, err := chains.Run(ctx, chain, "once more?"); err != nil {
			t.Fatal(err)
		}
		if q := p.queries[2]; !slices.Equal(q.History, []string{"tokens last how long?", "and how do I get more of it?"}) || q.Turn != 2 {
			t.Errorf("query %+v, want the questions of the memory as history", q)
		}
	})
}

// A session over a wrapped store is itself a retriever that can be wrapped: the
// conformance corpus through both directions.
func TestRoundTrip(t *testing.T) {
	corpus := adaptertest.NewCorpus()
	p, err := langchaingo.NewStoreProvider("pages", memoryStore{corpus, kinds[langchaingo.ScoreCosineDistance]}, langchaingo.IDFromKey("id"), langchaingo.ScoreCosineDistance, nil)
	if err != nil {
		t.Fatal(err)
	}
	c, err := langchaingo.NewConversations(p, nil, &langchaingo.ConversationOptions{MaxDocuments: 20, Session: &mapmatched.Config{TransitionWeight: new(0.0)}})
	if err != nil {
		t.Fatal(err)
	}
	back, err := langchaingo.NewRetrieverProvider("decoded", c, langchaingo.IDFromKey(langchaingo.MetaChunkID), langchaingo.ScoreSimilarity, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, q := range corpus.Queries[:8] {
		ctx := langchaingo.WithConversation(t.Context(), fmt.Sprint(i))
		want, err := p.Candidates(ctx, q, 20)
		if err != nil {
			t.Fatal(err)
		}
		got, err := back.Candidates(ctx, q, 20)
		if err != nil || len(got) != len(want) || got[0].ChunkID != want[0].ChunkID {
			t.Errorf("%s: %d candidates, error %v; want %d, %s first", q.Text, len(got), err, len(want), want[0].ChunkID)
		}
	}
}
