package policy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/mapmatched/mmplug/mapmatched"
)

// TermSearcher is what an arm's provider may implement beside Candidates: a
// search for weighted terms, spelled as the analyzer spells them, whose score is
// linear in the weights.
type TermSearcher interface {
	SearchTerms(ctx context.Context, terms []WeightedTerm, limit int) ([]mapmatched.Candidate, error)
}

// Parts are what a Retriever puts together. Arms is required, and Graph unless
// decode.transition_weight is 0; of the rest, what the active stages need.
type Parts struct {
	// Arms find candidates. One alone is asked as it is; several must be those
	// of fusion.arms. Providers that implement TermSearcher get the terms of
	// the context arms, others one plain text for each.
	Arms []FusedArm
	// Graph is the corpus graph; its maximum distance is that of the policy.
	Graph mapmatched.CorpusGraph
	// Edges are followed by decay, and tell moves by edge type.
	Edges Adjacency
	// Chunks gives the places that moves are told by, and the title and text of
	// a chunk that is fed back when its candidate has none.
	Chunks mapmatched.ChunkFetcher
	// Vectors gives the similarities of decay, and those of judgements.
	Vectors mapmatched.VectorFetcher
	// Embedder embeds replies and fed back terms for arms that search vectors.
	// nil leaves them to search the words.
	Embedder mapmatched.Embedder
	// Reranker sees the ranking where rerank.mode is not off.
	Reranker mapmatched.Reranker
	// Clusters has the number of the cluster of each chunk that is in one.
	Clusters map[string]int
	// Analyze cuts a text into content terms; nil cuts at everything that is
	// neither letter nor number.
	Analyze func(text string) []string
	// IDF is the inverse document frequency of a term, false when no chunk has
	// it; nil knows none.
	IDF func(term string) (float64, bool)
	// Identify says what the index was made from. It is asked when the
	// conversation begins and at every turn, and what does not fit the policy
	// is refused. Required when the policy pins vectors.
	Identify func(ctx context.Context) (IndexIdentity, error)
	// Corpus identifies the corpus, see mapmatched.Config.
	Corpus string

	// DecayDifferences notes in the trace of each turn, as "decay_differences",
	// where decay_v1 and decay_exact_v1 disagree. It has no influence on
	// answers, costs two more expansions a turn, and counts where decay is
	// active.
	DecayDifferences bool

	// Log gets what the stages decide, in shadow and active. nil computes
	// nothing in shadow.
	Log *ShadowLog
	// Session names the conversation in the log.
	Session string
	// Shadow is a policy that answers every turn too. How its answers differ is
	// logged; nothing else comes of it. It has the same index.
	Shadow *Policy
}

// Query is what a turn asks.
type Query struct {
	Text   string    // the words of the turn
	Vector []float32 // their embedding, nil when the caller has none
	Answer string    // the assistant's last reply, "" when the caller has none
	Alpha  *float64  // overrides fusion.alpha for this turn, in [0, 1]; nil does not
	// History has the questions from before the first turn, oldest first, for a
	// conversation that began elsewhere; nil means none. They come before those
	// of the conversation in what the arms get, with gaps in the path, and are
	// neither decoded nor counted as turns. A caller that has them gives them
	// with every turn: they are not remembered.
	History []string
}

// Answer is the answer to a turn. Beside the result of the decoder it has what
// the active stages of the policy add.
type Answer struct {
	*mapmatched.Result
	// PolicyName and PolicyDigest are those of the policy in force.
	PolicyName, PolicyDigest string
	// Alone is what the words of the turn alone find first; nil when they find
	// nothing. Under context arms Result.Pointwise is something else: what the
	// turn with its context finds, undecoded.
	Alone *mapmatched.Candidate
	// Order is what to show or read, best first: the ranking, or what the
	// reranker made of it.
	Order []mapmatched.Candidate
	// Rerank says what became of the order; nil when rerank.mode is off.
	Rerank *RerankRecord
	// Later receives the order of a deferred reranker and is closed; nil in the
	// other modes. It need not be read.
	Later <-chan RerankResult
	// Context is the context where decay is active: the decoded chunk, what was
	// reached from it by descending score with the score parts sim and decay,
	// and the other candidates. ContextChunkIDs has the same chunks. nil
	// otherwise.
	Context []mapmatched.Candidate
	// ContextModel is the tag of the scores in Context, "" without.
	ContextModel string
	// Gate is what the gate decided; nil without active context arms.
	Gate *GateRecord
	// Move is the move to the decoded chunk; nil without active transition
	// costs and at the first chunk.
	Move *MoveRecord
	// Reply is what the last reply said about the chunk that the turn goes on
	// from; nil unless reply.stage is active and there was a reply to a turn
	// with a chunk.
	Reply *ReplyRecord
	// Activation is what to do with the answer: Emit unless the stage is
	// active.
	Activation Activation
	// Degraded lists the parts that did not take part in the turn.
	Degraded []Degraded
	// LogErr is why the shadow log lacks something of this turn, nil when it
	// does not. It has no influence on the answer.
	LogErr error
}

// Retriever is a conversation under a policy. Its methods may be called from
// several goroutines and then take turns; different retrievers run in parallel.
// A turn either succeeds or leaves the conversation as it was.
//
// With one arm and no active stage it is mapmatched.Session with the settings of
// the policy, bit for bit. What a part of it does beyond that is recorded in the
// notes of the trace.
type Retriever struct {
	lock    chan struct{} // holds one token while a turn is under way
	policy  *Policy
	digest  string
	parts   Parts
	session *mapmatched.Session
	moves   *moveGraph // nil without active transition costs
	shadows []*shadow
	later   sync.WaitGroup // deferred rerankers that will log
	openErr error          // of logging when the conversation began; told with the next turn

	memory memory
	turn   *turnState // of the turn under way, nil between turns
}

// memory is what a conversation remembers beside the session.
type memory struct {
	activation ActivationState
	feedback   Feedback
	vectors    [][]float32 // of the earlier queries, where context arms need them
	survivors  []string    // best ranked chunks of the last turn that had any, where the graph proposes candidates
}

// turnState is what is found out while a turn is decoded.
type turnState struct {
	query    Query
	asked    mapmatched.Query // as the session asked it
	from     string           // the chunk that the turn goes on from, "" for the first
	gate     *GateRecord
	scale    float64 // of transition costs
	alone    *mapmatched.Candidate
	heard    *heard // what the last reply finds, nil when nothing is read into it
	mu       sync.Mutex
	degraded []Degraded
}

func (t *turnState) degrade(d Degraded) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.degraded = append(t.degraded, d)
}

// missing lists what did not take part, by name.
func (t *turnState) missing() []Degraded {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := slices.Clone(t.degraded)
	slices.SortStableFunc(list, func(a, b Degraded) int { return strings.Compare(a.Arm, b.Arm) })
	return list
}

// New begins a conversation under a policy, which must not be changed while it
// lasts. All that the policy needs and parts lack is reported at once; an index
// that does not fit is mapmatched.ErrStaleIndex.
func New(ctx context.Context, p *Policy, parts Parts) (*Retriever, error) {
	r, err := newRetriever(ctx, p, parts)
	if err != nil {
		return nil, fmt.Errorf("retriever: %w", err)
	}
	r.session, err = mapmatched.NewSession(providing(r.candidates), r.graph(), r.config())
	if err != nil {
		return nil, fmt.Errorf("retriever: %w", err)
	}
	if err := r.beginShadows(ctx, nil); err != nil {
		return nil, fmt.Errorf("retriever: %w", err)
	}
	return r, nil
}

// newRetriever is a retriever without session and shadows.
func newRetriever(ctx context.Context, p *Policy, parts Parts) (*Retriever, error) {
	if p == nil {
		return nil, fmt.Errorf("%w: the policy is nil: use policy.Builtin, or policy.Default with a name", mapmatched.ErrInvalidConfig)
	}
	if err := p.Validate(); err != nil {
		return nil, fmt.Errorf("policy %s: %w", p.Name, err)
	}
	r := &Retriever{lock: make(chan struct{}, 1), policy: p, digest: p.Digest(), parts: parts}
	r.parts.Arms = slices.Clone(parts.Arms)
	slices.SortStableFunc(r.parts.Arms, func(a, b FusedArm) int { return strings.Compare(a.Name, b.Name) })
	if r.parts.Analyze == nil {
		r.parts.Analyze = plainTerms
	}
	if r.parts.IDF == nil {
		r.parts.IDF = func(string) (float64, bool) { return 0, false }
	}
	if err := r.fits(ctx); err != nil {
		return nil, err
	}
	if err := r.check(); err != nil {
		return nil, fmt.Errorf("policy %s: %w", p.Name, err)
	}
	if p.Transition.Stage == StageActive {
		var err error
		if r.moves, err = newMoveGraph(r); err != nil {
			return nil, fmt.Errorf("policy %s: %w", p.Name, err)
		}
	}
	return r, nil
}

// plainTerms cuts a text at everything that is neither letter nor number.
func plainTerms(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) })
}

// check reports what the policy needs and the parts lack.
func (r *Retriever) check() error {
	p, parts := r.policy, &r.parts
	var errs []error
	fault := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w: "+format, append([]any{mapmatched.ErrInvalidConfig}, args...)...))
	}
	switch {
	case len(parts.Arms) == 0:
		fault("no arm finds candidates: give at least one")
	case len(parts.Arms) == 1 && parts.Arms[0].Provider == nil:
		fault("arm %q has no provider", parts.Arms[0].Name)
	case len(parts.Arms) > 1:
		if _, err := NewFusedProvider(p.Fusion, parts.Arms, nil); err != nil {
			errs = append(errs, err)
		}
	}
	if p.Arms.Stage == StageActive && p.Fusion.Version == GeometricV1 {
		fault("fusion.version is %s, which fuses no lists, and arms.stage is active: use %s or %s", GeometricV1, HybridFusionPreV1, RRFV1)
	}
	if p.Transition.Stage == StageActive && parts.Graph == nil {
		fault("transition.stage is active, which needs a graph: set Parts.Graph")
	}
	if p.Transition.Stage == StageActive && parts.Chunks == nil {
		fault("transition.stage is active, which needs the places of chunks: set Parts.Chunks")
	}
	if p.Proposals.Stage == StageActive && parts.Graph == nil && p.Transition.Stage != StageActive {
		fault("proposals.stage is active, which needs a graph: set Parts.Graph")
	}
	if p.Decay.Stage == StageActive && parts.Edges == nil {
		fault("decay.stage is active, which needs the edges of the graph")
	}
	if p.Clustering.Stage == StageActive && parts.Clusters == nil {
		fault("clustering.stage is active, which needs clusters")
	}
	if p.Rerank.Mode != RerankOff && parts.Reranker == nil {
		fault("rerank.mode is %s, which needs a reranker", p.Rerank.Mode)
	}
	if p.Vectors.Provider != "" && parts.Identify == nil {
		fault("vectors.model is %q, and nothing says what made the vectors of the index", p.Vectors.Model)
	}
	if g := parts.Graph; g != nil && g.MaximumDistance() != p.Graph.MaximumDistance {
		errs = append(errs, fmt.Errorf("%w: the graph's maximum distance is %v, graph.maximum_distance is %v: build the graph under this policy",
			mapmatched.ErrStaleIndex, g.MaximumDistance(), p.Graph.MaximumDistance))
	}
	return oneLine(errs)
}

// lineError is several errors in one line.
type lineError struct{ errs []error }

// oneLine joins errors, nil for none.
func oneLine(errs []error) error {
	if len(errs) < 2 {
		return errors.Join(errs...)
	}
	return &lineError{errs}
}

// Error implements error.
func (e *lineError) Error() string {
	texts := make([]string, len(e.errs))
	for i, err := range e.errs {
		texts[i] = err.Error()
	}
	return strings.Join(texts, "; ")
}

// Unwrap returns the errors.
func (e *lineError) Unwrap() []error { return e.errs }

// fits checks the identity of the index.
func (r *Retriever) fits(ctx context.Context) error {
	if r.parts.Identify == nil {
		return nil
	}
	x, err := r.parts.Identify(ctx)
	if err != nil {
		return fmt.Errorf("identity of the index: %w", err)
	}
	return r.policy.Fits(x)
}

// config is the policy's, for this corpus. The policy was validated.
func (r *Retriever) config() *mapmatched.Config {
	c, err := r.policy.Config()
	if err != nil {
		panic("policy: a policy that was validated has no settings: " + err.Error())
	}
	c.Corpus = r.parts.Corpus
	return c
}

// graph is what the session asks for distances.
func (r *Retriever) graph() mapmatched.CorpusGraph {
	graph := r.parts.Graph
	switch {
	case r.moves != nil:
		graph = r.moves
	case graph != nil && r.policy.Arms.Stage == StageActive && r.policy.Arms.Gate.ScaleTransition:
		graph = &scaledGraph{graph, r}
	}
	if graph != nil && r.policy.Reply.Stage == StageActive {
		graph = &replyGraph{graph, r}
	}
	return graph
}

// Policy returns the policy in force. It is not to be changed.
func (r *Retriever) Policy() *Policy { return r.policy }

// Session returns the session of the conversation, for its trace, path and
// posterior. Turns are asked through Ask only.
func (r *Retriever) Session() *mapmatched.Session { return r.session }

// Close waits for deferred rerankers that have something to log.
func (r *Retriever) Close() error {
	r.later.Wait()
	return nil
}

func (r *Retriever) acquire(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case r.lock <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (r *Retriever) release() { <-r.lock }

// Ask finds the candidates of the next turn and decodes it. An error leaves the
// conversation unchanged. What fails after the turn is decoded fails no turn: it
// is listed in Answer.Degraded and noted in the trace.
func (r *Retriever) Ask(ctx context.Context, q Query) (*Answer, error) {
	if err := r.acquire(ctx); err != nil {
		return nil, err
	}
	defer r.release()
	turn := r.session.Turns()
	if err := r.admit(ctx, q); err != nil {
		return nil, fmt.Errorf("turn %d: %w", turn, err)
	}
	t := &turnState{query: q, scale: 1}
	r.turn = t
	result, err := r.session.Ask(ctx, mapmatched.Query{Text: q.Text, Vector: q.Vector})
	r.turn = nil
	if err != nil {
		return nil, err
	}
	a := &Answer{Result: result, PolicyName: r.policy.Name, PolicyDigest: r.digest, Alone: t.alone, Gate: t.gate, Activation: Emit}
	for _, ranked := range result.Ranking {
		a.Order = append(a.Order, ranked.Candidate)
	}
	t.from = r.from(t, a)
	r.move(ctx, t, a)
	r.replied(t, a)
	r.expand(ctx, t, a)
	r.rerank(ctx, t, a)
	r.activate(t, a)
	r.remember(ctx, t, a)
	a.Degraded = t.missing()
	r.note(a)
	r.observe(ctx, t, a)
	return a, nil
}

// from is the chunk that a turn goes on from, as the turn leaves it: "" for the
// first.
func (r *Retriever) from(t *turnState, a *Answer) string {
	path := t.asked.Path
	if len(a.RevisedPriorIndices) > 0 {
		path = r.session.Path()[:a.Turn]
	}
	return lastOf(path)
}

// admit refuses a query that cannot be asked under the policy.
func (r *Retriever) admit(ctx context.Context, q Query) error {
	if err := r.fits(ctx); err != nil {
		return err
	}
	if want := r.policy.Vectors; want.Provider != "" && q.Vector != nil && len(q.Vector) != want.Dimension {
		return fmt.Errorf("%w: the query vector has %d components, vectors.dimension is %d: embed it with %s",
			mapmatched.ErrInvalidConfig, len(q.Vector), want.Dimension, want.Model)
	}
	if q.Alpha != nil && !(*q.Alpha >= 0 && *q.Alpha <= 1) {
		return fmt.Errorf("%w: alpha is %v: it must be between 0 and 1", mapmatched.ErrInvalidConfig, *q.Alpha)
	}
	return nil
}

// rerank lets the reranker look at the ranking.
func (r *Retriever) rerank(ctx context.Context, t *turnState, a *Answer) {
	p := r.policy.Rerank
	if p.Mode == RerankOff {
		return
	}
	order, record, later := Rerank(ctx, r.parts.Reranker, t.asked, a.Order, p)
	given := a.Order
	a.Order, a.Rerank = order, &record
	if record.Outcome == RerankedEmpty {
		return
	}
	if later == nil {
		a.LogErr = errors.Join(a.LogErr, r.log(rerankRecord(r.parts.Session, a.Turn, given, RerankResult{order, record})))
		return
	}
	if r.parts.Log == nil {
		a.Later = later
		return
	}
	beside := make(chan RerankResult, 1)
	a.Later = beside
	r.later.Go(func() {
		result := <-later
		// Nobody is left to be told of a log that cannot be written.
		_ = r.log(rerankRecord(r.parts.Session, a.Turn, given, result))
		beside <- result
		close(beside)
	})
}

// rerankRecord says which chunk a reranker put first, and which was first. In
// the mode deferred the given order is in effect.
func rerankRecord(session string, turn int, given []mapmatched.Candidate, result RerankResult) ShadowRecord {
	first := func(list []mapmatched.Candidate) string {
		if len(list) == 0 {
			return ""
		}
		return list[0].ChunkID
	}
	record := ShadowRecord{Part: string(KindRerank), Version: result.Record.Version, Session: session, Turn: turn,
		Outcome: first(result.Order), Applied: first(result.Order)}
	if result.Record.Mode == RerankDeferred {
		record.Applied = first(given)
	}
	if result.Record.Outcome == RerankedKept {
		record.Outcome, record.Error = "", result.Record.Reason
	}
	return record
}

// activate runs the activation gate.
func (r *Retriever) activate(t *turnState, a *Answer) {
	p := &r.policy.Activation
	if p.Stage == StageShadow && r.parts.Log == nil {
		return
	}
	// A confidence is a sum of probabilities and may be a rounding above 1.
	confidence := min(a.Confidence, 1)
	features := Features{"path": {"posterior": confidence, "candidates": float64(len(a.Ranking))}}
	if decoded := a.Decoded(); decoded != nil {
		features["provider"] = map[string]float64{"position": float64(decoded.Position), "score": decoded.Score}
	}
	decision, err := Staged(p.Stage, ActivationDecision{Applied: Emit}, func() (ActivationDecision, error) {
		d, err := p.Step(r.memory.activation, a.Turn, confidence, features)
		if err == nil {
			r.memory.activation = d.State
		}
		return d, err
	}, func(d ActivationDecision, err error) {
		record := d.ShadowRecord(r.parts.Session)
		if err != nil {
			record = ShadowRecord{Part: string(KindActivation), Version: ActivationPreV1, Session: r.parts.Session, Turn: a.Turn, Error: err.Error()}
		}
		a.LogErr = errors.Join(a.LogErr, r.log(record))
	})
	if err != nil {
		t.degrade(Degraded{a.Turn, string(KindActivation), false, err})
		return
	}
	a.Activation = decision.Applied
}

// remember keeps what the next turn's context arms and proposals read.
func (r *Retriever) remember(ctx context.Context, t *turnState, a *Answer) {
	if o := &r.policy.Proposals; o.Stage == StageActive && len(a.Ranking) > 0 {
		r.memory.survivors = nil
		for i := range a.Ranking[:min(len(a.Ranking), o.Survivors)] {
			r.memory.survivors = append(r.memory.survivors, a.Ranking[i].ChunkID)
		}
	}
	if r.policy.Arms.Stage != StageActive {
		return
	}
	r.memory.vectors = append(r.memory.vectors, slices.Clone(t.query.Vector))
	if !r.policy.Arms.Feedback.Enabled {
		return
	}
	r.memory.feedback = Feedback{}
	decoded := a.Decoded()
	if decoded == nil {
		return
	}
	title, _ := decoded.Metadata["title"].(string)
	text := decoded.Text
	if text == "" && r.parts.Chunks != nil {
		chunks, err := r.parts.Chunks.Chunks(ctx, []string{decoded.ChunkID})
		if err != nil {
			t.degrade(Degraded{a.Turn, "feedback", false, err})
			return
		}
		if len(chunks) == 1 {
			title, text = chunks[0].Title, chunks[0].Text
		}
	}
	r.memory.feedback = Feedback{title, r.salient(text)}
}

// salient lists the terms of a text that tell it apart, as many as are fed back:
// by frequency times inverse document frequency, then by term.
func (r *Retriever) salient(text string) []string {
	terms := countTerms(r.parts.Analyze(text), 1)
	for i := range terms {
		if idf, known := r.parts.IDF(terms[i].Term); known {
			terms[i].Weight *= idf
		}
	}
	slices.SortStableFunc(terms, func(a, b WeightedTerm) int { return cmp.Compare(b.Weight, a.Weight) })
	var list []string
	for _, term := range terms[:min(len(terms), r.policy.Arms.FeedbackTerms)] {
		list = append(list, term.Term)
	}
	return list
}

// note records in the trace what the active stages did.
func (r *Retriever) note(a *Answer) {
	notes := []struct {
		name string
		v    any
		set  bool
	}{
		{"gate", a.Gate, a.Gate != nil},
		{"transition", a.Move, a.Move != nil},
		{"reply", a.Reply, a.Reply != nil},
		{"rerank", a.Rerank, a.Rerank != nil},
		{"activation", a.Activation, r.policy.Activation.Stage == StageActive},
		{"context", map[string]any{"score_model": a.ContextModel, "chunks": contextNote(a.Context)}, a.Context != nil},
		{"degraded", degradedNote(a.Degraded), len(a.Degraded) > 0},
	}
	for _, n := range notes {
		if !n.set {
			continue
		}
		if err := r.session.Note(n.name, n.v); err != nil {
			panic(fmt.Sprintf("policy: a record cannot be noted: %v", err)) // all of them are plain JSON
		}
	}
}

// contextChunk is a chunk of a context as the trace notes it.
type contextChunk struct {
	ChunkID    string             `json:"chunk_id"`
	Score      float64            `json:"score"`
	ScoreParts map[string]float64 `json:"score_parts"`
}

// contextNote lists the chunks of a context that were scored.
func contextNote(context []mapmatched.Candidate) []contextChunk {
	list := []contextChunk{}
	for _, c := range context {
		if _, scored := c.Parts[PartDecay]; scored {
			list = append(list, contextChunk{c.ChunkID, c.Score, c.Parts})
		}
	}
	return list
}

// degradedNote lists what did not take part. Reasons may have addresses in them
// and stay out of the trace.
func degradedNote(list []Degraded) []map[string]any {
	note := make([]map[string]any, len(list))
	for i, d := range list {
		note[i] = map[string]any{"arm": d.Arm, "timed_out": d.TimedOut}
	}
	return note
}

// providing is a provider that is a function.
type providing func(ctx context.Context, q mapmatched.Query, limit int) ([]mapmatched.Candidate, error)

// Candidates implements mapmatched.CandidateProvider.
func (f providing) Candidates(ctx context.Context, q mapmatched.Query, limit int) ([]mapmatched.Candidate, error) {
	return f(ctx, q, limit)
}
