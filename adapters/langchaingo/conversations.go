package langchaingo

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/tmc/langchaingo/callbacks"
	"github.com/tmc/langchaingo/schema"

	"github.com/mapmatched/mmplug/mapmatched"
)

// Defaults of [ConversationOptions].
const (
	DefaultMaxConversations = 1024
	DefaultMaxDocuments     = 4
)

// Keys of the metadata of the documents that [Conversations] returns.
const (
	MetaConversation = "mmplug_conversation" // string: ID of the conversation
	MetaTurn         = "mmplug_turn"         // int: index of the turn in the session, from 0
	MetaTrace        = "mmplug_trace"        // string: what Conversations.Step takes
	MetaRestarted    = "mmplug_restarted"    // true on the first turn of a conversation whose session was evicted; absent otherwise
	MetaChunkID      = "mmplug_chunk_id"     // string
	MetaRank         = "mmplug_rank"         // int: place in the ranking, from 1; the decoded chunk is 1 unless an Asker reranks
	MetaPosition     = "mmplug_position"     // int: place in the provider's order, from 1
	MetaScore        = "mmplug_score"        // float64: raw score of the provider
	MetaPathScore    = "mmplug_path_score"   // float64: score of the best path that ends in the chunk
	MetaConfidence   = "mmplug_confidence"   // float64: posterior of the decoded chunk of the turn, in [0, 1]
)

// ConversationOptions set [Conversations]. The zero value, and nil, mean the
// defaults.
type ConversationOptions struct {
	// Session sets the sessions; nil means the defaults.
	Session *mapmatched.Config
	// New begins a conversation that something else than a bare session
	// conducts, such as a policy with its fusion, context arms and reranker.
	// Provider, graph and Session are then its business and must be nil here.
	// It is called in the first turn, and again in the next when that turn
	// could not begin. nil means a session over provider and graph.
	New func(ctx context.Context, conversation string) (Asker, error)
	// MaxConversations is how many sessions are kept, at least 1. Beyond it
	// the one that was used least recently is evicted, and its conversation
	// starts anew when it goes on. 0 means DefaultMaxConversations.
	MaxConversations int
	// MaxDocuments is how many documents a turn returns, at least 1, the best
	// of the decoder's ranking. 0 means DefaultMaxDocuments.
	MaxDocuments int
	// History returns the turns of a conversation before the question that is
	// asked, oldest first; see TurnsFromHistory and TurnsFromMemory. nil means
	// none.
	//
	// It is called for a session that has no turns yet, as when the process
	// was restarted or the session evicted. The questions come before the
	// session's own in Query.History, with gaps in Query.Path; they are not
	// decoded. A last one that is the question itself, without an answer, is
	// left out. An AnswerAsker gets the last answer, for which History is
	// called at every turn.
	History func(ctx context.Context, conversation string) ([]Turn, error)
	// Evicted is called for every session that is evicted, with the number of
	// turns that it answered. From then on the MetaTrace of its documents leads
	// nowhere; a program that wants the trace keeps it at every turn.
	Evicted func(conversation string, turns int)
	// Callbacks are told of every retrieval, failed ones too, as in
	// ProviderOptions.
	Callbacks callbacks.Handler
}

// Conversations is a schema.Retriever that decodes: it keeps a session for each
// conversation, asks it the chain's question and returns the decoder's ranking.
// It is safe for concurrent use; turns of one conversation wait for each other.
type Conversations struct {
	provider mapmatched.CandidateProvider
	graph    mapmatched.CorpusGraph
	opts     ConversationOptions

	mu      sync.Mutex
	byID    map[string]*list.Element // of *conversation
	recent  *list.List               // most recently used first; those with a session come before those without
	live    int                      // how many have a session
	started int                      // sessions started so far
}

// conversation is an entry of the list of recent ones. Once its session is
// evicted the entry stays for as long again, to know that it was there.
type conversation struct {
	id      string
	session *session // nil once evicted
}

// session is a conversation under way.
type session struct {
	ask       func(ctx context.Context, text string) (*mapmatched.Result, error)
	decoder   func() *mapmatched.Session // nil when there is none to show
	number    int                        // in order of start, from 1
	restarted bool                       // an earlier session of the conversation was evicted
	turns     atomic.Int64               // answered so far; Session.Turns waits for the turn in progress
}

// NewConversations returns a retriever over a provider and a graph. The graph
// may be nil when the transition weight is 0. Candidates need texts: the
// provider's, or what it returns as a mapmatched.ChunkFetcher. With
// ConversationOptions.New both are nil.
func NewConversations(provider mapmatched.CandidateProvider, graph mapmatched.CorpusGraph, opts *ConversationOptions) (*Conversations, error) {
	c := &Conversations{provider: provider, graph: graph, byID: map[string]*list.Element{}, recent: list.New()}
	if opts != nil {
		c.opts = *opts
	}
	var faults []error
	bare := c.opts.New == nil
	if bare && provider == nil {
		faults = append(faults, errors.New("no provider"))
	}
	if !bare && (provider != nil || graph != nil || c.opts.Session != nil) {
		faults = append(faults, fmt.Errorf("%w: New begins the conversations, so provider, graph and Session have no effect; give them to what New makes", mapmatched.ErrInvalidConfig))
	}
	count := func(name string, value *int, standard int) {
		if *value < 0 {
			faults = append(faults, fmt.Errorf("%w: %s is %d, want at least 1, or 0 for %d", mapmatched.ErrInvalidConfig, name, *value, standard))
		} else if *value == 0 {
			*value = standard
		}
	}
	count("MaxConversations", &c.opts.MaxConversations, DefaultMaxConversations)
	count("MaxDocuments", &c.opts.MaxDocuments, DefaultMaxDocuments)
	if bare {
		if _, err := mapmatched.NewSession(provider, graph, c.opts.Session); err != nil {
			faults = append(faults, err)
		}
	}
	if err := errors.Join(faults...); err != nil {
		return nil, fail("new conversations", mapmatched.KindInvalid, "%w", err)
	}
	return c, nil
}

type conversationKey struct{}

// WithConversation returns a context in which retrievals belong to a
// conversation. It is what tells conversations apart inside a chain.
func WithConversation(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, conversationKey{}, id)
}

// GetRelevantDocuments implements schema.Retriever for the conversation of the
// context, see [WithConversation]. Without one it is an error: conversations
// are never mixed.
//
// The documents are the head of the ranking, which without an Asker of one's
// own is the decoder's, the decoded chunk first.
// A document's Score is the posterior of its chunk, in [0, 1]; the keys Meta…
// of its metadata say the rest. A turn without candidates has no documents and
// no error. A turn that fails leaves the conversation as it was; one that is
// answered counts, so that a chain whose model fails afterwards and that is run
// again has asked two turns of the same words.
func (c *Conversations) GetRelevantDocuments(ctx context.Context, query string) ([]schema.Document, error) {
	id, _ := ctx.Value(conversationKey{}).(string)
	return c.retrieve(ctx, id, query)
}

// Retriever returns a retriever for one conversation, whatever the context
// says.
func (c *Conversations) Retriever(id string) schema.Retriever { return single{c, id} }

type single struct {
	conversations *Conversations
	id            string
}

// GetRelevantDocuments implements schema.Retriever.
func (s single) GetRelevantDocuments(ctx context.Context, query string) ([]schema.Document, error) {
	return s.conversations.retrieve(ctx, s.id, query)
}

func (c *Conversations) retrieve(ctx context.Context, id, query string) ([]schema.Document, error) {
	return observed(ctx, c.opts.Callbacks, query, func() ([]schema.Document, error) {
		if id == "" {
			return nil, fail("retrieve", mapmatched.KindInvalid, "the context names no conversation; use WithConversation or Conversations.Retriever")
		}
		s, err := c.session(id)
		if err != nil {
			return nil, err
		}
		result, err := s.ask(ctx, query)
		if err != nil {
			return nil, failed(ctx, "retrieve", fmt.Sprintf("conversation %q", id), err)
		}
		s.turns.Add(1)
		return c.documents(id, s, result)
	})
}

// documents makes documents of a result.
func (c *Conversations) documents(id string, s *session, r *mapmatched.Result) ([]schema.Document, error) {
	documents := make([]schema.Document, min(len(r.Ranking), c.opts.MaxDocuments))
	for i := range documents {
		x := &r.Ranking[i]
		if x.Text == "" {
			return nil, fail("retrieve", mapmatched.KindInvalid, "conversation %q: turn %d: chunk %q has no text for the chain to read: let the providers of its Asker return texts", id, r.Turn, x.ChunkID)
		}
		metadata := maps.Clone(x.Metadata)
		if metadata == nil {
			metadata = map[string]any{}
		}
		maps.Copy(metadata, map[string]any{
			MetaConversation: id,
			MetaTurn:         r.Turn,
			MetaTrace:        fmt.Sprintf("%d/%d", s.number, r.Turn) + "@" + id,
			MetaChunkID:      x.ChunkID,
			MetaRank:         i + 1,
			MetaPosition:     x.Position + 1,
			MetaScore:        x.Score,
			MetaPathScore:    x.PathScore,
			MetaConfidence:   r.Confidence,
		})
		if s.restarted && r.Turn == 0 {
			metadata[MetaRestarted] = true
		}
		documents[i] = schema.Document{PageContent: x.Text, Metadata: metadata, Score: float32(x.Posterior)}
	}
	return documents, nil
}

// begin starts a conversation.
func (c *Conversations) begin(id string) (*session, error) {
	if c.opts.New == nil {
		inner, err := mapmatched.NewSession(&remembering{c.provider, id, c.opts.History, nil}, c.graph, c.opts.Session)
		if err != nil {
			return nil, err
		}
		return &session{
			ask: func(ctx context.Context, text string) (*mapmatched.Result, error) {
				return inner.Ask(ctx, mapmatched.Query{Text: text})
			},
			decoder: func() *mapmatched.Session { return inner },
		}, nil
	}
	inner := &asking{id: id, begin: c.opts.New, history: c.opts.History, lock: make(chan struct{}, 1)}
	return &session{ask: inner.ask, decoder: inner.decoder.Load}, nil
}

// session finds the session of a conversation or starts one.
func (c *Conversations) session(id string) (*session, error) {
	c.mu.Lock()
	at, known := c.byID[id]
	if known {
		c.recent.MoveToFront(at)
		if s := at.Value.(*conversation).session; s != nil {
			c.mu.Unlock()
			return s, nil
		}
	}
	s, err := c.begin(id)
	if err != nil {
		c.mu.Unlock()
		return nil, fail("retrieve", mapmatched.KindInvalid, "conversation %q: %w", id, err)
	}
	c.started++
	s.number, s.restarted = c.started, known
	if known {
		at.Value.(*conversation).session = s
	} else {
		c.byID[id] = c.recent.PushFront(&conversation{id, s})
	}
	c.live++
	evicted, of := c.evict()
	c.mu.Unlock()
	if evicted != nil && c.opts.Evicted != nil {
		c.opts.Evicted(of, int(evicted.turns.Load()))
	}
	return s, nil
}

// evict takes the session from the conversation that was used least recently
// when there is one too many, and forgets the last one beyond twice the limit.
func (c *Conversations) evict() (evicted *session, of string) {
	if c.live > c.opts.MaxConversations {
		at := c.recent.Back()
		for at.Value.(*conversation).session == nil {
			at = at.Prev()
		}
		entry := at.Value.(*conversation)
		evicted, of = entry.session, entry.id
		entry.session = nil
		c.live--
	}
	if c.recent.Len() > 2*c.opts.MaxConversations {
		last := c.recent.Back()
		delete(c.byID, last.Value.(*conversation).id)
		c.recent.Remove(last)
	}
	return evicted, of
}

// Session returns the session of a conversation, nil when there is none now or
// its Asker shows none. It does not count as use.
func (c *Conversations) Session(id string) *mapmatched.Session {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at, known := c.byID[id]; known {
		if s := at.Value.(*conversation).session; s != nil {
			return s.decoder()
		}
	}
	return nil
}

// Forget ends a conversation. When it goes on it starts anew, without
// MetaRestarted. Unknown ones are no error.
func (c *Conversations) Forget(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at, known := c.byID[id]; known {
		if at.Value.(*conversation).session != nil {
			c.live--
		}
		delete(c.byID, id)
		c.recent.Remove(at)
	}
}

// Len is the number of conversations that have a session.
func (c *Conversations) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.live
}

// Step returns the step of the trace that a document's MetaTrace stands for, as
// the session sees it now: later turns may have revised it. It is an error of
// kind not found once the session is gone.
func (c *Conversations) Step(trace string) (mapmatched.TraceStep, error) {
	var step mapmatched.TraceStep
	place, id, _ := strings.Cut(trace, "@")
	before, after, _ := strings.Cut(place, "/")
	number, err1 := strconv.Atoi(before)
	turn, err2 := strconv.Atoi(after)
	if err1 != nil || err2 != nil {
		return step, fail("trace", mapmatched.KindInvalid, "%q is no trace reference; take it from metadata %q", trace, MetaTrace)
	}
	c.mu.Lock()
	var s *session
	if at, known := c.byID[id]; known {
		s = at.Value.(*conversation).session
	}
	c.mu.Unlock()
	if s == nil || s.number != number {
		return step, fail("trace", mapmatched.KindNotFound, "the session of trace %q is gone; keep more conversations, or the trace itself", trace)
	}
	decoder := s.decoder()
	if decoder == nil {
		return step, fail("trace", mapmatched.KindNotFound, "trace %q: the Asker of the conversation shows no session; give it a method Session", trace)
	}
	steps := decoder.Trace().Steps
	if turn < 0 || turn >= len(steps) {
		return step, fail("trace", mapmatched.KindNotFound, "trace %q: the session has %d turns", trace, len(steps))
	}
	return steps[turn], nil
}

// remembering is the provider of a session: it puts the questions from before
// the session in front of the query's history and gets texts where the
// candidates have none. A session calls it once at a time.
type remembering struct {
	provider mapmatched.CandidateProvider
	id       string
	history  func(context.Context, string) ([]Turn, error)
	before   []string
}

// Candidates implements mapmatched.CandidateProvider.
func (r *remembering) Candidates(ctx context.Context, q mapmatched.Query, limit int) ([]mapmatched.Candidate, error) {
	if r.history != nil && q.Turn == 0 {
		before, err := earlier(ctx, r.history, r.id, q.Text)
		if err != nil {
			return nil, err
		}
		r.before = questions(before)
	}
	if n := len(r.before); n > 0 {
		q.Turn += n
		q.History = slices.Concat(r.before, q.History)
		q.Path = slices.Concat(make([]string, n), q.Path)
	}
	candidates, err := r.provider.Candidates(ctx, q, limit)
	if err != nil {
		return nil, err
	}
	return r.withTexts(ctx, candidates)
}

// withTexts fetches the texts of candidates that have none.
func (r *remembering) withTexts(ctx context.Context, candidates []mapmatched.Candidate) ([]mapmatched.Candidate, error) {
	var missing []string
	for i := range candidates {
		if candidates[i].Text == "" {
			missing = append(missing, candidates[i].ChunkID)
		}
	}
	if len(missing) == 0 {
		return candidates, nil
	}
	fetcher, ok := r.provider.(mapmatched.ChunkFetcher)
	if !ok {
		return nil, fmt.Errorf("chunk %q has no text for the chain to read: the provider neither returns texts nor fetches chunks", missing[0])
	}
	chunks, err := fetcher.Chunks(ctx, missing)
	if err != nil {
		return nil, fmt.Errorf("texts: %w", err)
	}
	texts := make(map[string]string, len(chunks))
	for i := range chunks {
		texts[chunks[i].ID] = chunks[i].Text
	}
	candidates = slices.Clone(candidates)
	for i := range candidates {
		if c := &candidates[i]; c.Text == "" {
			if c.Text = texts[c.ChunkID]; c.Text == "" {
				return nil, fmt.Errorf("chunk %q has no text for the chain to read", c.ChunkID)
			}
		}
	}
	return candidates, nil
}
