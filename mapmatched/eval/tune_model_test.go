package eval

import (
	"math"
	"slices"
	"testing"

	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/policy"
)

// tuned is a policy with every stage that tuning turns on.
func tuned(change func(p *policy.Policy)) *policy.Policy {
	p := policy.Default()
	p.Name = "tuned"
	p.Decode.EmissionWeight, p.Decode.RankBy = 0.5, mapmatched.RankByFilteredPosterior
	p.Arms.Stage, p.Arms.Answer.Enabled, p.Arms.Gate.Stage, p.Arms.Gate.ScaleTransition = policy.StageActive, true, policy.StageActive, true
	p.Arms.Gate.Bias, p.Arms.Gate.IDF, p.Arms.Gate.Referring = 1.5, -0.1, 3
	p.Transition.Stage = policy.StageActive
	p.Transition.P = map[string]float64{"stay": 0.15, "next": 0.2, "previous": 0.05, "section": 0.1, "document": 0.3, "jump": 0.2}
	p.Transition.Q = map[string]float64{"stay": 0.02, "next": 0.02, "previous": 0.02, "section": 0.04, "document": 0.1, "jump": 0.8}
	p.Reply.Stage, p.Reply.Weight = policy.StageActive, 2.5
	p.Proposals.Stage = policy.StageActive
	if change != nil {
		change(p)
	}
	return p
}

// TestModelIsTheRetriever: what tuning ranks by is what a conversation gets.
func TestModelIsTheRetriever(t *testing.T) {
	data, err := Synthetic(&SyntheticOptions{Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	data.Conversations = data.Conversations[:min(len(data.Conversations), 25)]
	gammas := []float64{0.3, 0.5}
	for name, change := range map[string]func(p *policy.Policy){
		"all":          nil,
		"max marginal": func(p *policy.Policy) { p.Decode.RankBy = mapmatched.RankByMaxMarginal },
		"limits": func(p *policy.Policy) {
			p.Decode.CandidateLimit, p.Proposals.Survivors, p.Proposals.Limit, p.Arms.Gamma = 5, 3, 7, 0.3
		},
		"no scale":  func(p *policy.Policy) { p.Arms.Gate.ScaleTransition = false; p.Decode.TransitionWeight = 0.7 },
		"no answer": func(p *policy.Policy) { p.Arms.Answer.Weight, p.Reply.Weight = 1e-3, 0 },
	} {
		t.Run(name, func(t *testing.T) {
			p := tuned(change)
			w, err := NewWorld(data, nil)
			if err != nil {
				t.Fatal(err)
			}
			tracks, _, _, err := newTracks(t.Context(), w, p, gammas, 0)
			if err != nil {
				t.Fatal(err)
			}
			model, err := newTuneModel(p, gammas)
			if err != nil {
				t.Fatal(err)
			}
			method := PolicyMethod(p)
			turns := 0
			for i := range tracks {
				c := &data.Conversations[i]
				want, err := method.Rank(t.Context(), w, c, DefaultDepth)
				if err != nil {
					t.Fatal(err)
				}
				err = model.decode(t.Context(), &tracks[i], func(turn int, ranking []int32, column *column) {
					s := tracks[i].space
					value := func(at int32) float64 { return column.forward[slices.Index(column.at, at)] }
					for k, at := range ranking {
						// Exact ties may fall either way in the last bit.
						if id := want[turn].ChunkIDs[k]; s.ids[at] != id && math.Abs(value(at)-value(s.at[id])) > 1e-9 {
							t.Fatalf("conversation %d, turn %d, rank %d: the model has %s (%v), the retriever %s (%v)", i, turn, k, s.ids[at], value(at), id, value(s.at[id]))
						}
					}
					if own := &tracks[i].turns[turn]; own.scored {
						ids := make([]string, len(ranking))
						for k, at := range ranking {
							ids[k] = s.ids[at]
						}
						scores := Score(c.Turns[turn].Gold, ids)
						if got := own.ndcg3(ranking); math.Abs(got-scores.Of(NDCG3)) > 1e-12 {
							t.Fatalf("conversation %d, turn %d: nDCG@3 is %v, of the ranking %v", i, turn, got, scores.Of(NDCG3))
						}
					}
					turns++
				})
				if err != nil {
					t.Fatal(err)
				}
			}
			if turns < 50 {
				t.Fatalf("%d turns compared", turns)
			}
		})
	}
}
