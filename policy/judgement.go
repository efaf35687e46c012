package policy

import (
	"fmt"
	"math"

	"github.com/mapmatched/mmplug/mapmatched"
)

// Verdict is whether a chunk looks relevant to a query.
type Verdict string

// The verdicts.
const (
	Relevant Verdict = "relevant" // the cosine reaches the threshold
	Doubtful Verdict = "doubtful" // it does not
	Unjudged Verdict = "unjudged" // there is nothing to compare
)

// Judgement is the verdict on the chunk of a turn.
type Judgement struct {
	Turn      int      `json:"turn_index"`
	ChunkID   string   `json:"chunk_id"`
	Cosine    *float64 `json:"cosine"` // in [−1, 1], null when unjudged
	Threshold float64  `json:"threshold"`
	Verdict   Verdict  `json:"verdict"`
}

// Judge compares the vector of a query with that of the chunk decoded for it. A
// chunk or a query without a vector (nil, or of length 0) is unjudged. Vectors
// of different dimensions, or with a cosine that is not finite, are an error.
func (j *JudgementParameters) Judge(turn int, chunkID string, query, chunk []float32) (Judgement, error) {
	out := Judgement{Turn: turn, ChunkID: chunkID, Threshold: j.CosineThreshold, Verdict: Unjudged}
	if len(query) == 0 || len(chunk) == 0 {
		return out, nil
	}
	if len(query) != len(chunk) {
		return Judgement{}, fmt.Errorf("judgement: turn %d, chunk %q: dimensions %d and %d: embed query and chunk with one model", turn, chunkID, len(query), len(chunk))
	}
	var dot, qq, cc float64
	for i, q := range query {
		x, y := float64(q), float64(chunk[i])
		dot += float64(x * y)
		qq += float64(x * x)
		cc += float64(y * y)
	}
	cosine := dot / (math.Sqrt(qq) * math.Sqrt(cc))
	if !finite(cosine) {
		return Judgement{}, fmt.Errorf("judgement: turn %d, chunk %q: cosine is %v: %w: vectors must be finite and not 0", turn, chunkID, cosine, mapmatched.ErrNonFinite)
	}
	cosine = min(max(cosine, -1), 1)
	out.Cosine, out.Verdict = &cosine, Doubtful
	if cosine >= j.CosineThreshold {
		out.Verdict = Relevant
	}
	return out, nil
}

// ShadowRecord is the judgement as a line of a shadow log. Without a judgement
// in effect every chunk counts as relevant.
func (j Judgement) ShadowRecord(session string) ShadowRecord {
	return ShadowRecord{Part: string(KindJudgement), Version: JudgementPreV1, Session: session, Turn: j.Turn,
		Outcome: string(j.Verdict), Applied: string(Relevant), Value: j.Cosine}
}
