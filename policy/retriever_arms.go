package policy

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mapmatched/mmplug/mapmatched"
)

// Names of the context arms.
const (
	ArmRaw      = "raw"
	ArmHistory  = "history"
	ArmAnswer   = "answer"
	ArmFeedback = "feedback"
)

// PartSameCluster is the score part of a candidate, where clustering is active,
// that says whether it is in the cluster of the chunk decoded before: 1 or 0.
// The score does not depend on it.
const PartSameCluster = "same_cluster"

// candidates finds the candidates of the turn under way.
func (r *Retriever) candidates(ctx context.Context, q mapmatched.Query, _ int) ([]mapmatched.Candidate, error) {
	if before := r.turn.query.History; len(before) > 0 {
		q.History = slices.Concat(before, q.History)
		q.Path = slices.Concat(make([]string, len(before)), q.Path)
	}
	r.turn.asked = q
	if err := r.hear(ctx, q); err != nil {
		return nil, err
	}
	limit := r.policy.Decode.CandidateLimit // that of the session has room for proposals
	searched, err := r.search(ctx, q, limit)
	if err != nil {
		return nil, err
	}
	found, err := r.propose(ctx, q, searched, limit)
	if err != nil || r.policy.Clustering.Stage != StageActive {
		return found, err
	}
	cluster, known := r.parts.Clusters[lastOf(q.Path)]
	for i := range found {
		parts := maps.Clone(found[i].Parts)
		if parts == nil {
			parts = map[string]float64{}
		}
		parts[PartSameCluster] = 0
		if own, clustered := r.parts.Clusters[found[i].ChunkID]; known && clustered && own == cluster {
			parts[PartSameCluster] = 1
		}
		found[i].Parts = parts
	}
	return found, nil
}

// lastOf is the last chunk of a path, "" when it has none.
func lastOf(path []string) string {
	for _, id := range slices.Backward(path) {
		if id != "" {
			return id
		}
	}
	return ""
}

// search asks the arms, with the words of the turn alone or, where the context
// arms are active and the gate is not shut, with the context too.
func (r *Retriever) search(ctx context.Context, q mapmatched.Query, limit int) (found, error) {
	t, p := r.turn, &r.policy.Arms
	most := limit
	contextual := p.Stage == StageActive && len(q.History) > 0
	if contextual || r.policy.Proposals.Stage == StageActive { // its scores are compared with those of other chunks
		most = max(limit, DefaultArmLimit)
	}
	raw, err := r.fused(ctx, t, r.parts.Arms, q, most, "")
	f := found{raw, len(r.parts.Arms) > 1}
	if len(raw) > 0 {
		t.alone = &raw[0]
	}
	if err != nil || p.Stage != StageActive {
		return f, err
	}
	gate, err := r.gate(q, raw)
	if err != nil {
		return found{}, err
	}
	t.gate, t.scale = &gate, p.Gate.TransitionWeight(1, gate)
	if gate.Applied == 0 {
		return f, nil
	}
	return r.contextual(ctx, q, raw, gate.Applied, most)
}

// gate decides how much the context counts.
func (r *Retriever) gate(q mapmatched.Query, raw []mapmatched.Candidate) (GateRecord, error) {
	p := r.policy
	scores := make([]float64, min(len(raw), p.Decode.CandidateLimit))
	for i := range scores {
		scores[i] = raw[i].Score
	}
	normalized, err := mapmatched.Normalize(scores, p.Decode.ScoreNormalization)
	if err != nil {
		return GateRecord{}, fmt.Errorf("gate: %w", err)
	}
	for i := range normalized {
		normalized[i] *= p.Decode.EmissionWeight
	}
	features := NewGateFeatures(q.Text, r.parts.Analyze, r.parts.IDF, mapmatched.EmissionEntropy(normalized))
	gate, err := p.Arms.Gate.Evaluate(len(q.History), features)
	gate.Turn = q.Turn
	return gate, err
}

// contextual fuses the lists of the context arms behind the gate g:
// (1−g)·raw + g·context, where context is the mean of the enabled arms by their
// weights. Every list has at most most candidates and counts by the formula of
// fusion.version. An arm without words this turn adds nothing, and its weight
// goes to no other.
func (r *Retriever) contextual(ctx context.Context, q mapmatched.Query, raw []mapmatched.Candidate, g float64, most int) (found, error) {
	p, t := &r.policy.Arms, r.turn
	terms := ContextTerms(*p, Conversation{q.Text, q.History, t.query.Answer, r.memory.feedback}, r.parts.Analyze)
	total := 0.0
	for _, arm := range []Arm{p.Raw, p.History, p.Answer, p.Feedback} {
		if arm.Enabled {
			total += arm.Weight
		}
	}
	fusion := r.policy.Fusion
	fusion.Arms = map[string]FusionArm{}
	timeout := 0 // several arms have theirs inside
	if only := r.parts.Arms; len(only) == 1 {
		timeout = r.policy.Fusion.Arms[only[0].Name].TimeoutMS
	}
	var arms []FusedArm
	add := func(name string, arm Arm, own float64, search providing) {
		share := 0.0
		if arm.Enabled {
			share = arm.Weight / total
		}
		if weight := Emission(own, share, g); weight > 0 {
			fusion.Arms[name] = FusionArm{weight, timeout}
			arms = append(arms, FusedArm{name, search})
		}
	}
	add(ArmRaw, p.Raw, 1, func(context.Context, mapmatched.Query, int) ([]mapmatched.Candidate, error) { return raw, nil })
	searches := r.contextSearches(q, terms, most)
	for _, c := range []struct {
		name string
		Arm
	}{{ArmHistory, p.History}, {ArmAnswer, p.Answer}, {ArmFeedback, p.Feedback}} {
		if search := searches[c.name]; search != nil {
			add(c.name, c.Arm, 0, search)
		}
	}
	if len(arms) == 0 {
		return found{}, nil
	}
	provider, err := NewFusedProvider(fusion, arms, &FusedOptions{Report: t.degrade})
	if err != nil {
		return found{}, err
	}
	limit := r.policy.Decode.CandidateLimit
	if r.policy.Proposals.Stage == StageActive { // what else was found may be proposed
		limit = most * len(arms)
	}
	list, err := provider.Candidates(ctx, q, limit)
	return found{list, true}, err
}

// contextSearches are what finds the lists of the context arms that have words
// this turn, at most most candidates each.
func (r *Retriever) contextSearches(q mapmatched.Query, terms ArmTerms, most int) map[string]providing {
	t, vectors := r.turn, r.memory.vectors
	searches := map[string]providing{}
	for _, c := range []struct {
		name  string
		terms []WeightedTerm
		text  string
	}{
		{ArmHistory, terms.History, historyText(q, r.policy.Arms.Gamma)},
		{ArmAnswer, terms.Answer, t.query.Answer},
		{ArmFeedback, terms.Feedback, strings.TrimSpace(r.memory.feedback.Title + "\n" + strings.Join(r.memory.feedback.Terms, " "))},
	} {
		if len(c.terms) == 0 {
			continue
		}
		searches[c.name] = func(ctx context.Context, q mapmatched.Query, _ int) ([]mapmatched.Candidate, error) {
			if c.name == ArmAnswer && t.heard != nil {
				return t.heard.list[:min(len(t.heard.list), most)], nil
			}
			q, err := r.contextQuery(ctx, c.name, q, c.text, vectors)
			if err != nil {
				return nil, err
			}
			return r.fused(ctx, t, withTerms(r.parts.Arms, c.terms), q, most, c.name+"/")
		}
	}
	return searches
}

// historyFloor is what a query has to count for still, of 1, to be part of the
// plain text of the history arm.
const historyFloor = 0.05

// historyText is the history arm for providers that know only plain text: the
// query after the earlier ones that have not faded, oldest first, one a line.
func historyText(q mapmatched.Query, gamma float64) string {
	first, weight := len(q.History), 1.0
	for first > 0 {
		if weight *= gamma; weight < historyFloor {
			break
		}
		first--
	}
	return strings.Join(append(slices.Clone(q.History[first:]), q.Text), "\n")
}

// contextQuery is the query of a context arm for providers that do not search
// terms: its text and, where queries have vectors, a vector.
func (r *Retriever) contextQuery(ctx context.Context, name string, q mapmatched.Query, text string, vectors [][]float32) (mapmatched.Query, error) {
	q.Text = text
	if q.Vector == nil {
		return q, nil
	}
	if name == ArmHistory {
		var err error
		q.Vector, err = HistoryVector(q.Vector, vectors, r.policy.Arms.Gamma)
		return q, err
	}
	q.Vector = nil
	if r.parts.Embedder == nil {
		return q, nil
	}
	embedded, err := r.parts.Embedder.Embed(ctx, []string{text})
	if err != nil {
		return q, fmt.Errorf("embed: %w", err)
	}
	if len(embedded) != 1 {
		return q, fmt.Errorf("the embedder returned %d vectors for 1 text", len(embedded))
	}
	q.Vector = embedded[0]
	return q, nil
}

// withTerms makes the arms that can search terms do so.
func withTerms(arms []FusedArm, terms []WeightedTerm) []FusedArm {
	out := slices.Clone(arms)
	for i := range out {
		if searcher, ok := out[i].Provider.(TermSearcher); ok {
			out[i].Provider = providing(func(ctx context.Context, _ mapmatched.Query, limit int) ([]mapmatched.Candidate, error) {
				return searcher.SearchTerms(ctx, terms, limit)
			})
		}
	}
	return out
}

// fused asks one arm as it is, and fuses several. What does not take part is
// reported under its name after prefix.
func (r *Retriever) fused(ctx context.Context, t *turnState, arms []FusedArm, q mapmatched.Query, limit int, prefix string) ([]mapmatched.Candidate, error) {
	if len(arms) == 1 {
		return arms[0].Provider.Candidates(ctx, q, limit)
	}
	provider, err := NewFusedProvider(r.policy.Fusion, arms, &FusedOptions{Report: func(d Degraded) {
		d.Arm = prefix + d.Arm
		t.degrade(d)
	}})
	if err != nil {
		return nil, err
	}
	return provider.Candidates(ctx, q, limit)
}
