package mapmatched

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// sampleTurn is a turn to decode for a test. No candidates make a gap.
type sampleTurn struct {
	query      string
	candidates []Candidate
	breakWhy   string // starts a new segment when not empty
}

// sampleTrace decodes turns by the objective with λ = β = 1, raw scores and a
// distance that is the difference of the positions of two chunks, at most 4,
// by the plainest code there is.
func sampleTrace(turns []sampleTurn, position map[string]float64) *Trace {
	distance := func(a, b string) float64 { return math.Min(4, math.Abs(position[a]-position[b])) }
	one := 1.0
	t := &Trace{
		Schema: TraceSchema, ScoreModel: ScoreModel,
		Options: &Options{EmissionWeight: &one, TransitionWeight: &one},
	}
	previous := -1
	for i, turn := range turns {
		s := TraceStep{TurnIndex: i, Query: turn.query, Break: turn.breakWhy}
		if len(turn.candidates) == 0 {
			s.Gap = "the provider found nothing for this turn"
		}
		for _, c := range turn.candidates {
			tc := TraceCandidate{
				ChunkID: c.ChunkID, Text: c.Text, ScoreParts: c.Parts, RawEmissionScore: c.Score,
				NormalizedEmissionScore: c.Score, WeightedEmissionScore: c.Score, BestPathScore: c.Score,
			}
			if previous >= 0 {
				tc.BestPathScore = math.Inf(-1)
				for _, from := range t.Steps[previous].Candidates {
					d := distance(from.ChunkID, c.ChunkID)
					cost := d
					if turn.breakWhy != "" {
						cost = 0
					}
					if score := from.BestPathScore + (c.Score - cost); score > tc.BestPathScore {
						tc.BestPathScore, tc.PredecessorChunkID = score, from.ChunkID
						tc.GraphDistance, tc.WeightedTransitionCost = d, cost
					}
				}
			}
			s.Candidates = append(s.Candidates, tc)
		}
		t.Steps = append(t.Steps, s)
		if s.Gap == "" {
			previous = i
		}
	}
	t.chooseSample()
	return t
}

// chooseSample follows the predecessors back from the best last candidate and
// fills in the steps. The posteriors are those of a softmax over the best path
// scores of a turn, which is near enough for a picture.
func (t *Trace) chooseSample() {
	t.PathChunkIDs = make([]string, len(t.Steps))
	next := ""
	for i := len(t.Steps) - 1; i >= 0; i-- {
		s := &t.Steps[i]
		if s.Gap != "" {
			continue
		}
		best, sum := 0, 0.0
		for k, c := range s.Candidates {
			if next == "" && c.BestPathScore > s.Candidates[best].BestPathScore || c.ChunkID == next {
				best = k
			}
		}
		for k := range s.Candidates {
			s.Candidates[k].Posterior = math.Exp(s.Candidates[k].BestPathScore - s.Candidates[best].BestPathScore)
			sum += s.Candidates[k].Posterior
		}
		for k := range s.Candidates {
			s.Candidates[k].Posterior /= sum
		}
		c := s.Candidates[best]
		s.ChunkID, t.PathChunkIDs[i], next = c.ChunkID, c.ChunkID, c.PredecessorChunkID
		s.RawEmissionScore, s.NormalizedEmissionScore = c.RawEmissionScore, c.NormalizedEmissionScore
		s.WeightedEmissionScore, s.Confidence, s.ScoreParts = c.WeightedEmissionScore, c.Posterior, c.ScoreParts
		s.GraphDistance, s.WeightedTransitionCost = c.GraphDistance, c.WeightedTransitionCost
		s.NormalizedEmissionMargin = math.Inf(1)
		for k, other := range s.Candidates {
			if k != best {
				s.NormalizedEmissionMargin = math.Min(s.NormalizedEmissionMargin, c.RawEmissionScore-other.RawEmissionScore)
			}
		}
		if len(s.Candidates) == 1 {
			s.NormalizedEmissionMargin = 0
		}
		for _, o := range s.Candidates {
			s.EmissionEntropy += math.Abs(o.Posterior * math.Log(o.Posterior+1e-12))
		}
		s.PosteriorEntropy = s.EmissionEntropy
		switch {
		case c.PredecessorChunkID == "":
		case c.PredecessorChunkID == c.ChunkID:
			s.Move = MoveStay
		case s.GraphDistance < 4 && s.Break == "":
			s.Move = MoveDrill
		default:
			s.Move = MoveJump
		}
	}
	sum := 0.0
	for i := range t.Steps {
		sum += t.Steps[i].WeightedEmissionScore - t.Steps[i].WeightedTransitionCost
		t.Steps[i].CumulativeScore = sum
	}
}

// randomTrace makes a trace of any number of turns and up to candidates chunks
// a turn, with gaps and breaks now and then.
func randomTrace(seed uint64, turns, candidates int) *Trace {
	rng := rand.New(rand.NewPCG(seed, 1))
	position := map[string]float64{}
	var ids []string
	for i := range 40 {
		id := fmt.Sprintf("guide/chapter-%d#%d", i/5, i%5)
		ids = append(ids, id)
		position[id] = float64(i) / 3
	}
	list := make([]sampleTurn, turns)
	for i := range list {
		list[i].query = fmt.Sprintf("what about step %d of the guide?", i)
		if i > 0 && rng.IntN(9) == 0 {
			continue
		}
		if i > 0 && rng.IntN(12) == 0 {
			list[i].breakWhy = "every candidate is at the maximum distance"
		}
		rng.Shuffle(len(ids), func(a, b int) { ids[a], ids[b] = ids[b], ids[a] })
		for k := range 1 + rng.IntN(candidates) {
			list[i].candidates = append(list[i].candidates, Candidate{
				ChunkID: ids[k], Score: math.Round(rng.Float64()*400) / 100, Text: "Text of " + ids[k] + ".",
			})
		}
	}
	return sampleTrace(list, position)
}
