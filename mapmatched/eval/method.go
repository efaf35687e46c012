package eval

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/mapmatched/mmplug/adapters/embedded/lexical"
	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/policy"
)

// DefaultDepth is how many chunks of a turn are ranked, unless told otherwise.
const DefaultDepth = 100

// Names of the baselines. They search as the default policy does: the words by
// its BM25 parameters and, on the hybrid arm, words and vectors by its fusion. So
// does Pointwise, and the difference of a policy with a section lexical or fusion
// of its own to Pointwise is what that section and decoding gain together; see
// Method.OwnSections. Compare such a policy with a copy whose transition weight is
// 0 to tell them apart.
const (
	Pointwise      = "pointwise"       // the words of the turn alone
	History        = "history"         // the words of all turns so far, one text
	DecayedHistory = "decayed_history" // the same, a turn's words counting half as much with every later turn
	MMR            = "mmr"             // pointwise, reordered for variety
	Rewritten      = "rewritten"       // the rewritten query that the data has
	LLM            = "llm"             // a query rewritten by a language model
)

// Baselines lists the names of the baselines.
func Baselines() []string { return []string{Pointwise, History, DecayedHistory, MMR, Rewritten, LLM} }

// The parameters of the baselines.
const (
	DecayedHistoryGamma = 0.5 // what the words of a turn fade by with each later turn
	MMRLambda           = 0.7 // share of relevance; the rest is for being unlike what ranks above
	MMRPool             = 50  // best chunks that MMR reorders
)

// RewriteFunc makes a question stand alone, given those before it, oldest first.
type RewriteFunc func(ctx context.Context, history []string, question string) (string, error)

// Method ranks the turns of conversations.
type Method struct {
	// Name tells methods apart in reports.
	Name string
	// Baseline is the name of a baseline; "" for a policy.
	Baseline string
	// Policy is followed as mmplug ask follows it, its sections lexical and
	// fusion included, which those of the baselines are not; nil for a baseline.
	Policy *policy.Policy
	// Graph says where the edges come from; "" means GraphStructure.
	Graph GraphSource
	// Rewrite is the model of the baseline LLM, and Model its name.
	Rewrite RewriteFunc
	Model   string
	// Ablation marks a variant of a policy, which no gate is applied to.
	Ablation bool
}

// BaselineMethod returns a baseline by name. LLM needs its Rewrite and Model
// set.
func BaselineMethod(name string) (Method, error) {
	if !slices.Contains(Baselines(), name) {
		return Method{}, fmt.Errorf("there is no baseline %q: there are %s", name, strings.Join(Baselines(), ", "))
	}
	return Method{Name: name, Baseline: name}, nil
}

// PolicyMethod returns the method of a policy, under its name.
func PolicyMethod(p *policy.Policy) Method { return Method{Name: p.Name, Policy: p} }

// check reports what the method lacks for a data set.
func (m *Method) check(w *World) error {
	switch {
	case m.Name == "":
		return fmt.Errorf("a method has no name")
	case (m.Baseline == "") == (m.Policy == nil):
		return fmt.Errorf("method %s: it is either a baseline or a policy", m.Name)
	case m.Baseline == Rewritten && !w.data.HasRewrites():
		return fmt.Errorf("method %s: the data has no rewritten queries: leave it out", m.Name)
	case m.Baseline == LLM && (m.Rewrite == nil || m.Model == ""):
		return fmt.Errorf("method %s: it needs a language model", m.Name)
	case m.Policy != nil && m.Policy.Rerank.Mode != policy.RerankOff:
		return fmt.Errorf("method %s: rerank.mode is %s, and the evaluation has no reranker: set it to off", m.Name, m.Policy.Rerank.Mode)
	case m.Policy != nil:
		if err := m.Policy.Validate(); err != nil {
			return err
		}
	default:
		if _, err := BaselineMethod(m.Baseline); err != nil {
			return err
		}
	}
	if what := m.Embeds(w); what != "" && w.vectors != nil && w.vectors.Embedder == nil {
		return fmt.Errorf("method %s: it embeds %s, and there is no model to do so: give one, or leave the method out", m.Name, what)
	}
	return nil
}

// Embeds says which texts beside the queries of the data the method searches by
// the vectors of, such as "the questions so far"; "" for none. These need
// Vectors.Embedder.
func (m *Method) Embeds(w *World) string {
	if !slices.Contains(w.armNames(m.under()), policy.ArmDense) {
		return ""
	}
	followed, answered, rewritten := false, false, false // whether there is a second turn, a reply before one, a query rewritten
	for i := range w.data.Conversations {
		turns := w.data.Conversations[i].Turns
		followed = followed || len(turns) > 1
		for t := range turns {
			answered = answered || t < len(turns)-1 && strings.TrimSpace(turns[t].Answer) != ""
			rewritten = rewritten || turns[t].Rewrite != "" && turns[t].Rewrite != turns[t].Query
		}
	}
	switch {
	case m.Baseline == History && followed:
		return "the questions so far"
	case m.Baseline == Rewritten && rewritten, m.Baseline == LLM:
		return "rewritten queries"
	case m.Policy == nil:
		return ""
	}
	var texts []string
	arms := &m.Policy.Arms
	active := func(arm policy.Arm) bool { return arms.Stage == policy.StageActive && arm.Enabled && arm.Weight > 0 }
	if answered && active(arms.Answer) {
		texts = append(texts, "the replies (arms.answer)")
	}
	if answered && m.Policy.Reply.Stage == policy.StageActive {
		texts = append(texts, "the replies (reply)")
	}
	if followed && active(arms.Feedback) {
		texts = append(texts, "terms that are fed back (arms.feedback)")
	}
	return strings.Join(texts, " and ")
}

// OwnSections lists the sections of the method's policy by which it finds
// candidates otherwise than the baselines do: "fusion" when other arms are asked
// or count, "lexical" when words are scored otherwise. It is empty for baselines.
func (m *Method) OwnSections(w *World) []string {
	var sections []string
	own, base := m.under(), policy.Default()
	arms := w.armNames(own)
	u, d := &own.Fusion, &base.Fusion
	differs := !slices.Equal(arms, w.armNames(base))
	if len(arms) > 1 {
		differs = differs || u.Version != d.Version || u.Version == policy.RRFV1 && u.K != d.K
		for _, name := range arms {
			differs = differs || u.Arms[name].Weight != d.Arms[name].Weight
		}
	}
	if differs {
		sections = append(sections, "fusion")
	}
	if slices.Contains(arms, policy.ArmLexical) && own.Lexical != base.Lexical {
		sections = append(sections, "lexical")
	}
	return sections
}

// armNames lists what finds the candidates of a policy, see Collection.Arms.
func (w *World) armNames(p *policy.Policy) []string {
	arms, err := (&Collection{arm: w.arm, vectors: w.vectors}).Arms(p)
	if err != nil { // there are no vectors, and the policy is refused when it is followed
		return nil
	}
	names := make([]string, len(arms))
	for i := range arms {
		names[i] = arms[i].Name
	}
	return names
}

// under is the policy whose index and graph the method uses: a baseline's is the
// default one.
func (m *Method) under() *policy.Policy {
	if m.Policy != nil {
		return m.Policy
	}
	p := policy.Default()
	p.Name = m.Baseline
	return p
}

// untimed is a policy that gives its arms all the time they need, so that a busy
// machine finds what an idle one does.
func untimed(p *policy.Policy) *policy.Policy {
	own := *p
	own.StatedDigest, own.Evidence = "", ""
	own.Fusion.Arms = make(map[string]policy.FusionArm, len(p.Fusion.Arms))
	for name, arm := range p.Fusion.Arms {
		arm.TimeoutMS = 0
		own.Fusion.Arms[name] = arm
	}
	return &own
}

func (m *Method) source() GraphSource {
	if m.Graph == "" {
		return GraphStructure
	}
	return m.Graph
}

// Ranking is what a method makes of a turn.
type Ranking struct {
	ChunkIDs []string // best first
	// Entropy is the emission entropy of the turn, in nats: for baselines of
	// the candidates that a default session would take. −1 when there are no
	// candidates.
	Entropy float64
}

// Rank ranks every turn of a conversation, depth chunks each.
func (m *Method) Rank(ctx context.Context, w *World, c *Conversation, depth int) ([]Ranking, error) {
	p := untimed(m.under())
	collection, err := w.collection(ctx, c, p, m.source())
	if err != nil {
		return nil, err
	}
	var rankings []Ranking
	if m.Policy != nil {
		rankings, err = rankPolicy(ctx, collection, c, p, depth)
	} else {
		rankings, err = m.rankBaseline(ctx, collection, c, p, depth)
	}
	if err != nil {
		return nil, fmt.Errorf("method %s, conversation %q: %w", m.Name, c.ID, err)
	}
	return rankings, nil
}

// rankBaseline ranks the turns by a baseline.
func (m *Method) rankBaseline(ctx context.Context, collection *Collection, c *Conversation, p *policy.Policy, depth int) ([]Ranking, error) {
	search, err := newPlainSearch(collection, c, p)
	if err != nil {
		return nil, err
	}
	rankings := make([]Ranking, len(c.Turns))
	for t := range c.Turns {
		var found []mapmatched.Candidate
		switch m.Baseline {
		case History:
			found, err = search.text(ctx, t, strings.Join(search.queries[:t+1], "\n"), depth)
		case DecayedHistory:
			found, err = search.decayed(ctx, t, depth)
		case Rewritten:
			found, err = search.text(ctx, t, cmp.Or(c.Turns[t].Rewrite, c.Turns[t].Query), depth)
		case LLM:
			var rewrite string
			if rewrite, err = m.Rewrite(ctx, search.queries[:t], c.Turns[t].Query); err == nil {
				found, err = search.text(ctx, t, rewrite, depth)
			}
		default:
			found, err = search.turn(ctx, t, depth)
		}
		if err != nil {
			return nil, fmt.Errorf("turn %d: %w", t+1, err)
		}
		if rankings[t].Entropy, err = entropyOf(found, p); err != nil {
			return nil, fmt.Errorf("turn %d: %w", t+1, err)
		}
		if m.Baseline == MMR {
			found = collection.mmr(found)
		}
		rankings[t].ChunkIDs = idsOf(found)
	}
	return rankings, nil
}

// entropyOf is the emission entropy of the candidates that a session would take,
// −1 when there are none.
func entropyOf(found []mapmatched.Candidate, p *policy.Policy) (float64, error) {
	if len(found) == 0 {
		return -1, nil
	}
	scores := make([]float64, min(len(found), p.Decode.CandidateLimit))
	for i := range scores {
		scores[i] = found[i].Score
	}
	normalized, err := mapmatched.Normalize(scores, p.Decode.ScoreNormalization)
	if err != nil {
		return 0, err
	}
	for i := range normalized {
		normalized[i] *= p.Decode.EmissionWeight
	}
	return mapmatched.EmissionEntropy(normalized), nil
}

func idsOf(found []mapmatched.Candidate) []string {
	ids := make([]string, len(found))
	for i := range found {
		ids[i] = found[i].ChunkID
	}
	return ids
}

// plainSearch searches the queries of a conversation without decoding.
type plainSearch struct {
	collection *Collection
	policy     *policy.Policy
	provider   mapmatched.CandidateProvider
	queries    []string
	vectors    [][]float32 // of the queries, nil where words are searched alone
}

func newPlainSearch(collection *Collection, c *Conversation, p *policy.Policy) (*plainSearch, error) {
	arms, err := collection.Arms(p)
	if err != nil {
		return nil, err
	}
	s := &plainSearch{collection: collection, policy: p, provider: arms[0].Provider, vectors: make([][]float32, len(c.Turns))}
	if len(arms) > 1 {
		if s.provider, err = policy.NewFusedProvider(p.Fusion, arms, nil); err != nil {
			return nil, err
		}
	}
	for t := range c.Turns {
		s.queries = append(s.queries, c.Turns[t].Query)
		s.vectors[t] = collection.turnVector(c, t)
	}
	return s, nil
}

// turnVector is the vector of a query that the data set has, nil when it has
// none.
func (c *Collection) turnVector(conversation *Conversation, turn int) []float32 {
	if c.vectors == nil {
		return nil
	}
	return c.vectors.Turns[TurnID(conversation.ID, turn)]
}

// turn searches a query as it stands.
func (s *plainSearch) turn(ctx context.Context, t, limit int) ([]mapmatched.Candidate, error) {
	return s.provider.Candidates(ctx, mapmatched.Query{Text: s.queries[t], Vector: s.vectors[t], Turn: t}, limit)
}

// text searches a text in place of a query. One that is the query itself is
// searched by the vector that the query has.
func (s *plainSearch) text(ctx context.Context, t int, text string, limit int) ([]mapmatched.Candidate, error) {
	if text == s.queries[t] {
		return s.turn(ctx, t, limit)
	}
	return s.provider.Candidates(ctx, mapmatched.Query{Text: text, Turn: t}, limit)
}

// decayed searches a turn with the earlier ones faded: a term counts for the
// largest of its turns, and vectors add up.
func (s *plainSearch) decayed(ctx context.Context, t, limit int) ([]mapmatched.Candidate, error) {
	arms := policy.DefaultArms()
	arms.Gamma, arms.Raw.Enabled = DecayedHistoryGamma, false
	terms := policy.ContextTerms(arms, policy.Conversation{Query: s.queries[t], History: s.queries[:t]}, lexical.Analyze).History
	words := func(ctx context.Context, _ mapmatched.Query, limit int) ([]mapmatched.Candidate, error) {
		return wordSearch{s.collection}.SearchTerms(ctx, terms, limit)
	}
	if s.collection.arm == ArmLexical {
		return words(ctx, mapmatched.Query{}, limit)
	}
	vectors := slices.Clone(s.vectors[:t+1])
	var missing []string
	for i, v := range vectors {
		if v == nil {
			missing = append(missing, s.queries[i])
		}
	}
	if len(missing) > 0 {
		embedded, err := s.collection.vectors.embed(ctx, missing)
		if err != nil {
			return nil, err
		}
		for i := range vectors {
			if vectors[i] == nil {
				vectors[i], embedded = embedded[0], embedded[1:]
			}
		}
	}
	vector, err := policy.HistoryVector(vectors[t], vectors[:t], DecayedHistoryGamma)
	if err != nil {
		return nil, err
	}
	q := mapmatched.Query{Vector: vector}
	if s.collection.arm == ArmDense {
		return denseSearch{s.collection}.Candidates(ctx, q, limit)
	}
	fused, err := policy.NewFusedProvider(s.policy.Fusion, []policy.FusedArm{
		{Name: policy.ArmDense, Provider: denseSearch{s.collection}}, {Name: policy.ArmLexical, Provider: searchFunc(words)}}, nil)
	if err != nil {
		return nil, err
	}
	return fused.Candidates(ctx, q, limit)
}

// searchFunc is a provider that is a function.
type searchFunc func(ctx context.Context, q mapmatched.Query, limit int) ([]mapmatched.Candidate, error)

// Candidates implements mapmatched.CandidateProvider.
func (f searchFunc) Candidates(ctx context.Context, q mapmatched.Query, limit int) ([]mapmatched.Candidate, error) {
	return f(ctx, q, limit)
}

// mmr reorders the first MMRPool candidates by maximal marginal relevance
// (Carbonell and Goldstein 1998): the next is the one with the largest
// λ·relevance − (1 − λ)·similarity to the most similar one chosen before, where
// relevance is the score by which candidates are found, scaled to [0, 1] over the
// pool, and similarity the cosine of two chunks. Ties go to the better found.
func (c *Collection) mmr(found []mapmatched.Candidate) []mapmatched.Candidate {
	pool := slices.Clone(found[:min(len(found), MMRPool)])
	if len(pool) == 0 {
		return found
	}
	low, high := pool[len(pool)-1].Score, pool[0].Score
	nearest := make([]float64, len(pool)) // similarity to the chosen
	chosen := make([]bool, len(pool))
	out := make([]mapmatched.Candidate, 0, len(found))
	for range pool {
		best, value := -1, 0.0
		for i := range pool {
			if chosen[i] {
				continue
			}
			relevance := 1.0
			if high > low {
				relevance = (pool[i].Score - low) / (high - low)
			}
			v := float64(MMRLambda*relevance) - float64((1-MMRLambda)*nearest[i])
			if best < 0 || v > value {
				best, value = i, v
			}
		}
		chosen[best] = true
		out = append(out, pool[best])
		at := c.position[pool[best].ChunkID]
		for i := range pool {
			if !chosen[i] {
				nearest[i] = max(nearest[i], c.similarity(at, c.position[pool[i].ChunkID]))
			}
		}
	}
	return append(out, found[len(pool):]...)
}

// rankPolicy decodes a conversation under a policy, one retriever from its first
// turn to its last. The ranking of a turn is that of the answer, and then the
// other chunks in the order in which the words of the turn alone find them.
func rankPolicy(ctx context.Context, collection *Collection, c *Conversation, p *policy.Policy, depth int) ([]Ranking, error) {
	parts, err := collection.Parts(p)
	if err != nil {
		return nil, err
	}
	retriever, err := policy.New(ctx, p, parts)
	if err != nil {
		return nil, err
	}
	defer func() { _ = retriever.Close() }() // waits for rerankers, of which there are none
	search, err := newPlainSearch(collection, c, p)
	if err != nil {
		return nil, err
	}
	rankings := make([]Ranking, len(c.Turns))
	for t := range c.Turns {
		q := policy.Query{Text: c.Turns[t].Query, Vector: search.vectors[t]}
		if t > 0 {
			q.Answer = c.Turns[t-1].Answer
		}
		answer, err := retriever.Ask(ctx, q)
		if err != nil {
			return nil, err
		}
		for _, d := range answer.Degraded {
			return nil, fmt.Errorf("turn %d: %s did not take part: %w", t+1, d.Arm, d.Err)
		}
		found, err := search.turn(ctx, t, depth)
		if err != nil {
			return nil, fmt.Errorf("turn %d: %w", t+1, err)
		}
		if rankings[t].Entropy, err = entropyOf(found, p); err != nil {
			return nil, fmt.Errorf("turn %d: %w", t+1, err)
		}
		rankings[t].ChunkIDs = complete(idsOf(answer.Order), found, depth)
	}
	return rankings, nil
}

// complete puts the candidates that are not in a ranking behind it.
func complete(ids []string, found []mapmatched.Candidate, depth int) []string {
	seen := make(map[string]bool, len(ids))
	for _, id := range ids {
		seen[id] = true
	}
	for i := range found {
		if len(ids) >= depth {
			break
		}
		if id := found[i].ChunkID; !seen[id] {
			ids = append(ids, id)
		}
	}
	return ids
}
