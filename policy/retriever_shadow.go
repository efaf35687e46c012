package policy

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/mapmatched/mmplug/mapmatched"
)

// PartPolicy is the part of the shadow records of a whole policy beside the one
// in force. Their version is its digest.
const PartPolicy = "policy"

// shadow is a conversation that runs beside the one that counts.
type shadow struct {
	part      string
	version   string
	policy    *Policy
	retriever *Retriever // nil when it never began
	dead      string     // why it does not go on, "" while it does
}

// variants lists the policies that run in shadow: for each part whose stage is
// shadow the same policy with that part active, then parts.Shadow.
func (r *Retriever) variants() []shadow {
	var list []shadow
	add := func(part Kind, version string, stage Stage, activate func(p *Policy)) {
		if stage == StageShadow {
			p := *r.policy
			activate(&p)
			list = append(list, shadow{part: string(part), version: version, policy: &p})
		}
	}
	p := r.policy
	add(KindContext, p.Arms.Version, p.Arms.Stage, func(p *Policy) { p.Arms.Stage = StageActive })
	add(KindTransition, p.Transition.Version, p.Transition.Stage, func(p *Policy) { p.Transition.Stage = StageActive })
	add(KindReply, p.Reply.Version, p.Reply.Stage, func(p *Policy) { p.Reply.Stage = StageActive })
	add(KindProposals, p.Proposals.Version, p.Proposals.Stage, func(p *Policy) { p.Proposals.Stage = StageActive })
	add(KindDecay, p.Decay.Version, p.Decay.Stage, func(p *Policy) { p.Decay.Stage = StageActive })
	if s := r.parts.Shadow; s != nil {
		list = append(list, shadow{part: PartPolicy, version: s.Digest(), policy: s})
	}
	return list
}

// beginShadows begins what runs in shadow, if there is a log, or goes on with
// what was saved. A part whose stage is shadow and that cannot begin is logged
// with the reason; that parts.Shadow cannot begin is an error, because it was
// asked for beside the policy. That there are no vectors to judge by is logged
// here, once.
func (r *Retriever) beginShadows(ctx context.Context, saved []savedShadow) error {
	if r.parts.Log == nil {
		if r.parts.Shadow != nil {
			return fmt.Errorf("%w: a shadow policy needs a shadow log", mapmatched.ErrInvalidConfig)
		}
		return nil
	}
	if r.policy.Judgement.Stage == StageShadow && r.parts.Vectors == nil {
		r.openErr = r.log(ShadowRecord{Part: string(KindJudgement), Version: JudgementPreV1, Session: r.parts.Session, Turn: r.session.Turns(),
			Applied: string(SuggestKeep), Error: "there are no vectors to compare chunks by: nothing is judged in this conversation"})
	}
	for _, s := range r.variants() {
		parts := r.parts
		parts.Log, parts.Shadow, parts.DecayDifferences = nil, nil, false
		p := *s.policy
		p.Rerank.Mode = RerankOff // its order is no part of the comparison
		p.StatedDigest, p.Evidence = "", ""
		var err error
		for _, old := range saved {
			if old.Part == s.part && old.Version == s.version {
				s.dead = old.Dead
				if old.State != nil {
					s.retriever, err = restore(ctx, old.State, &p, parts)
				}
			}
		}
		if s.retriever == nil && err == nil && s.dead == "" {
			s.retriever, err = New(ctx, &p, parts)
		}
		if err != nil && s.part == PartPolicy {
			return fmt.Errorf("shadow policy %s: %w", p.Name, err)
		}
		if err != nil {
			s.dead = err.Error()
		}
		r.shadows = append(r.shadows, &s)
	}
	return nil
}

// observe computes what only the log gets to know.
func (r *Retriever) observe(ctx context.Context, t *turnState, a *Answer) {
	if r.parts.Log == nil {
		return
	}
	log := func(record ShadowRecord) { a.LogErr = errors.Join(a.LogErr, r.log(record)) }
	if a.Gate != nil && a.Gate.Stage != StageOff {
		log(a.Gate.ShadowRecord(r.parts.Session))
	}
	if r.policy.Clustering.Stage != StageOff && r.parts.Clusters != nil {
		log(r.clusterRecord(t, a))
	}
	a.LogErr, r.openErr = errors.Join(a.LogErr, r.openErr), nil
	if r.policy.Judgement.Stage == StageShadow && r.parts.Vectors != nil {
		r.judge(ctx, a, log)
	}
	for _, s := range r.shadows {
		log(s.ask(ctx, t.query, a, r.parts.Session))
	}
}

// log writes a record of the policy in force.
func (r *Retriever) log(record ShadowRecord) error {
	if r.parts.Log == nil {
		return nil
	}
	record.Policy = r.digest
	return r.parts.Log.Write(record)
}

// ask lets the shadow answer a turn and says how it differs. The outcome is the
// chunk it decodes; the features count where context and ranking differ. A turn
// that it cannot answer is a gap of its conversation.
func (s *shadow) ask(ctx context.Context, q Query, a *Answer, session string) ShadowRecord {
	record := ShadowRecord{Part: s.part, Version: s.version, Session: session, Turn: a.Turn, Applied: a.ChunkID}
	if s.dead != "" {
		record.Error = s.dead
		return record
	}
	own, err := s.retriever.Ask(ctx, q)
	if err != nil {
		record.Error = err.Error()
		if _, gapErr := s.retriever.session.Observe(context.WithoutCancel(ctx), q.Text, nil); gapErr != nil {
			s.dead = "the shadow stopped: " + gapErr.Error()
		}
		return record
	}
	record.Outcome, record.Value = own.ChunkID, new(own.Confidence)
	record.Features = Features{
		"context": {"chunks": float64(len(own.ContextChunkIDs)), "new": float64(missingIn(a.ContextChunkIDs, own.ContextChunkIDs)),
			"gone": float64(missingIn(own.ContextChunkIDs, a.ContextChunkIDs))},
		"ranking": {"chunks": float64(len(own.Ranking)), "new": float64(missingIn(rankedIDs(a), rankedIDs(own))),
			"gone": float64(missingIn(rankedIDs(own), rankedIDs(a)))},
		"confidence": {"in_force": a.Confidence, "shadow": own.Confidence},
	}
	return record
}

func rankedIDs(a *Answer) []string {
	ids := make([]string, len(a.Ranking))
	for i, ranked := range a.Ranking {
		ids[i] = ranked.ChunkID
	}
	return ids
}

// missingIn counts those of ids that list lacks.
func missingIn(list, ids []string) int {
	has := make(map[string]bool, len(list))
	for _, id := range list {
		has[id] = true
	}
	missing := 0
	for _, id := range ids {
		if !has[id] {
			missing++
		}
	}
	return missing
}

// clusterRecord says whether the decoded chunk is in the cluster of the one
// before: "same", "other", or "none" where one of them is in no cluster.
func (r *Retriever) clusterRecord(t *turnState, a *Answer) ShadowRecord {
	record := ShadowRecord{Part: string(KindClustering), Version: ClusterShadowPreV1, Session: r.parts.Session, Turn: a.Turn,
		Outcome: "none", Applied: "none"}
	own, known := r.parts.Clusters[a.ChunkID]
	before, knownBefore := r.parts.Clusters[t.from]
	if known && knownBefore {
		record.Outcome = "other"
		if own == before {
			record.Outcome = "same"
		}
	}
	if r.policy.Clustering.Stage == StageActive {
		record.Applied = record.Outcome
	}
	return record
}

// judge looks for near-duplicates in the ranking.
func (r *Retriever) judge(ctx context.Context, a *Answer, log func(ShadowRecord)) {
	failed := func(err error) {
		log(ShadowRecord{Part: string(KindJudgement), Version: JudgementPreV1, Session: r.parts.Session, Turn: a.Turn,
			Applied: string(SuggestKeep), Error: err.Error()})
	}
	ids := rankedIDs(a)
	vectors, err := r.parts.Vectors.Vectors(ctx, ids)
	if err == nil && len(vectors) != len(ids) {
		err = fmt.Errorf("%d vectors for %d chunks", len(vectors), len(ids))
	}
	if err != nil {
		failed(err)
		return
	}
	texts, err := r.texts(ctx, a)
	if err != nil {
		failed(err)
		return
	}
	chunks := make([]JudgedChunk, len(ids))
	for i, ranked := range a.Ranking {
		parent, _ := parentOf(ranked.Metadata)
		digest, _ := ranked.Metadata[MetadataDigest].(string)
		chunks[i] = JudgedChunk{ranked.ChunkID, parent, digest, numberOf(ranked.Metadata[MetadataRevision]), vectors[i], ""}
		if text := texts[ranked.ChunkID]; text != "" {
			sum := sha256.Sum256([]byte(text))
			chunks[i].TextDigest = hex.EncodeToString(sum[:])
		}
	}
	judgements, err := r.policy.Judgement.Judge(a.Turn, chunks)
	if err != nil {
		failed(err)
		return
	}
	for _, j := range judgements {
		log(j.ShadowRecord(r.parts.Session))
	}
}

// texts are the texts of the ranking by chunk ID: those that came with the
// candidates, and for the others the stored ones.
func (r *Retriever) texts(ctx context.Context, a *Answer) (map[string]string, error) {
	texts := map[string]string{}
	var without []string
	for _, ranked := range a.Ranking {
		if texts[ranked.ChunkID] = ranked.Text; ranked.Text == "" {
			without = append(without, ranked.ChunkID)
		}
	}
	if len(without) == 0 || r.parts.Chunks == nil {
		return texts, nil
	}
	chunks, err := r.parts.Chunks.Chunks(ctx, without)
	for _, c := range chunks {
		texts[c.ID] = c.Text
	}
	return texts, err
}
