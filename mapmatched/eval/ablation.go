package eval

import (
	"fmt"

	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/policy"
)

// Ablations returns variants of a policy with one setting changed each: the
// transition weight β, the lag, the candidate limit, each active stage, the order
// of ranking and the source of the graph. Settings that the policy has already are left out, and so is the kNN graph
// without vectors.
func Ablations(p *policy.Policy, vectors bool) []Method {
	var list []Method
	add := func(what string, value any, graph GraphSource, change func(*policy.Policy)) {
		own := *p
		own.StatedDigest, own.Evidence = "", ""
		change(&own)
		if graph == GraphStructure && own.Digest() == p.Digest() {
			return
		}
		list = append(list, Method{Name: fmt.Sprintf("%s %s=%v", p.Name, what, value), Policy: &own, Graph: graph, Ablation: true})
	}
	for _, beta := range []float64{0, 0.1, 0.25, 0.5, 1, 2} {
		add("transition_weight", beta, GraphStructure, func(q *policy.Policy) { q.Decode.TransitionWeight = beta })
	}
	for _, lag := range []int{0, 1, 2} {
		add("fixed_lag", lag, GraphStructure, func(q *policy.Policy) { q.Decode.FixedLag = new(lag) })
	}
	add("fixed_lag", "none", GraphStructure, func(q *policy.Policy) { q.Decode.FixedLag = nil })
	for _, limit := range []int{5, 10, 20, 50, 100} {
		add("candidate_limit", limit, GraphStructure, func(q *policy.Policy) { q.Decode.CandidateLimit = limit })
	}
	for _, stage := range []struct {
		key    string
		active bool
		off    func(*policy.Policy)
	}{
		{"arms", p.Arms.Stage == policy.StageActive, func(q *policy.Policy) { q.Arms.Stage = policy.StageOff }},
		{"arms.gate", p.Arms.Stage == policy.StageActive && p.Arms.Gate.Stage == policy.StageActive, func(q *policy.Policy) { q.Arms.Gate.Stage = policy.StageOff }},
		{"arms.history", p.Arms.Stage == policy.StageActive && p.Arms.History.Enabled && p.Arms.Raw.Enabled, func(q *policy.Policy) { q.Arms.History.Enabled = false }},
		{"arms.answer", p.Arms.Stage == policy.StageActive && p.Arms.Answer.Enabled && p.Arms.Raw.Enabled, func(q *policy.Policy) { q.Arms.Answer.Enabled = false }},
		{"transition", p.Transition.Stage == policy.StageActive, func(q *policy.Policy) { q.Transition.Stage = policy.StageOff }},
		{"reply", p.Reply.Stage == policy.StageActive, func(q *policy.Policy) { q.Reply.Stage = policy.StageOff }},
		{"proposals", p.Proposals.Stage == policy.StageActive, func(q *policy.Policy) { q.Proposals.Stage = policy.StageOff }},
	} {
		if stage.active {
			add(stage.key, "off", GraphStructure, stage.off)
		}
	}
	for _, rank := range []mapmatched.RankBy{mapmatched.RankByMaxMarginal, mapmatched.RankByFilteredPosterior} {
		add("rank_by", rank, GraphStructure, func(q *policy.Policy) { q.Decode.RankBy = rank })
	}
	for _, source := range []GraphSource{GraphNoLinks, GraphNext, GraphNone, GraphKNN} {
		if source == GraphKNN && !vectors {
			continue
		}
		add("graph", source, source, func(*policy.Policy) {})
	}
	return list
}
