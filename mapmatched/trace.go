package mapmatched

import (
	"bytes"
	"encoding/json"
)

// TraceSchema is the value of the key "schema" of the traces written here.
const TraceSchema = "mapmatched.trace/1"

// ScoreModel is the tag of the objective this package decodes.
const ScoreModel = "decode_v1"

// Trace says why each chunk of the decoded path was chosen. Its JSON form is
// an interchange format: keys are sorted, no value is NaN or infinite, and
// names never change their meaning. A stored trace is never re-scored.
type Trace struct {
	CommittedThroughIndex *int        `json:"committed_through_index"` // last turn that cannot change any more, nil when there is none
	FixedLag              *int        `json:"fixed_lag"`               // nil in full mode
	Options               *Options    `json:"options,omitempty"`       // what the decoder was set to
	PathChunkIDs          []string    `json:"path_chunk_ids"`          // one chunk ID a turn; "" (null in JSON) for a gap
	PolicyDigest          string      `json:"policy_digest,omitempty"` // digest of the policy in force, if any
	RevisedPriorIndices   []int       `json:"revised_prior_indices"`   // earlier turns whose chunk this turn changed, ascending
	Schema                string      `json:"schema,omitempty"`        // TraceSchema
	ScoreModel            string      `json:"score_model,omitempty"`   // tag of the objective
	Steps                 []TraceStep `json:"steps"`                   // one a turn
}

// TraceStep is one turn of a trace. At a gap only the turn, the reason and the
// cumulative score carry meaning, and the other numbers are null in JSON.
type TraceStep struct {
	Break                    string                     `json:"break,omitempty"`            // why a new segment starts here, "" when none does
	Candidates               []TraceCandidate           `json:"candidates,omitempty"`       // the turn's candidates in provider order, when asked for
	ChunkID                  string                     `json:"chunk_id"`                   // decoded chunk, "" (null in JSON) at a gap
	Confidence               float64                    `json:"confidence"`                 // posterior of the decoded chunk, in [0, 1]
	CumulativeScore          float64                    `json:"cumulative_score"`           // path score through this turn
	EmissionEntropy          float64                    `json:"emission_entropy"`           // nats; ambiguity of the turn taken alone
	Gap                      string                     `json:"gap,omitempty"`              // why the turn has no chunk, "" when it has one
	GraphDistance            float64                    `json:"graph_distance"`             // from the previous chunk of the path; 0 at a break and where β is 0
	Move                     Move                       `json:"move,omitempty"`             // kind of move from the previous chunk, "" for the first
	NormalizedEmissionMargin float64                    `json:"normalized_emission_margin"` // chosen minus best other, normalised scores
	NormalizedEmissionScore  float64                    `json:"normalized_emission_score"`
	Notes                    map[string]json.RawMessage `json:"notes,omitempty"`          // what else was recorded of the turn, by name, see Session.Note
	PosteriorEntropy         float64                    `json:"posterior_entropy"`        // nats; entropy of the path posterior at this turn
	Query                    string                     `json:"query,omitempty"`          // text of the turn
	RawEmissionScore         float64                    `json:"raw_emission_score"`       // as the provider gave it
	ScoreParts               map[string]float64         `json:"score_parts,omitempty"`    // what the raw score was made of
	TurnIndex                int                        `json:"turn_index"`               // from 0
	WeightedEmissionScore    float64                    `json:"weighted_emission_score"`  // λ·s
	WeightedTransitionCost   float64                    `json:"weighted_transition_cost"` // β·d
}

// TraceCandidate is a candidate of a turn as the decoder saw it.
type TraceCandidate struct {
	BestPathScore           float64            `json:"best_path_score"` // best path score that ends in this candidate
	ChunkID                 string             `json:"chunk_id"`
	GraphDistance           float64            `json:"graph_distance"` // from PredecessorChunkID
	NormalizedEmissionScore float64            `json:"normalized_emission_score"`
	Posterior               float64            `json:"posterior"`                      // marginal of the path posterior
	PredecessorChunkID      string             `json:"predecessor_chunk_id,omitempty"` // where that best path comes from, "" for the first
	RawEmissionScore        float64            `json:"raw_emission_score"`
	ScoreParts              map[string]float64 `json:"score_parts,omitempty"`
	Text                    string             `json:"text,omitempty"`
	WeightedEmissionScore   float64            `json:"weighted_emission_score"`
	WeightedTransitionCost  float64            `json:"weighted_transition_cost"`
}

// Move is the kind of move from one chunk of the path to the next.
type Move string

// The moves.
const (
	MoveStay  Move = "stay"  // the same chunk
	MoveDrill Move = "drill" // a chunk within the maximum distance
	MoveJump  Move = "jump"  // a chunk at the maximum distance, or a break
)

// Options are the settings of a decoder as the exchange form and traces spell
// them. A nil field takes its default.
type Options struct {
	Beam               *int     `json:"beam,omitempty"`
	BreakDistance      *float64 `json:"break_distance,omitempty"`
	CandidateLimit     *int     `json:"candidate_limit,omitempty"`
	ContextLimit       *int     `json:"context_limit,omitempty"`
	ContextRadius      *float64 `json:"context_radius,omitempty"`
	EmissionWeight     *float64 `json:"emission_weight,omitempty"`
	FixedLag           *int     `json:"fixed_lag,omitempty"`
	OnEmpty            *string  `json:"on_empty,omitempty"`
	RankBy             *string  `json:"rank_by,omitempty"`
	ScoreNormalization *string  `json:"score_normalization,omitempty"`
	Temperature        *float64 `json:"temperature,omitempty"`
	TransitionWeight   *float64 `json:"transition_weight,omitempty"`
}

// MarshalJSON writes the trace with a null for the chunk of every gap.
func (t Trace) MarshalJSON() ([]byte, error) {
	out := traceJSON{t.CommittedThroughIndex, t.FixedLag, t.Options, make([]*string, len(t.PathChunkIDs)),
		t.PolicyDigest, t.RevisedPriorIndices, t.Schema, t.ScoreModel, t.Steps}
	for i, id := range t.PathChunkIDs {
		if id != "" {
			out.PathChunkIDs[i] = &id
		}
	}
	if out.RevisedPriorIndices == nil {
		out.RevisedPriorIndices = []int{}
	}
	if out.Steps == nil {
		out.Steps = []TraceStep{}
	}
	return encodeJSON(out)
}

// MarshalJSON writes the step with nulls in place of what a gap does not have.
func (s TraceStep) MarshalJSON() ([]byte, error) {
	if s.Gap != "" {
		return encodeJSON(gapJSON{CumulativeScore: s.CumulativeScore, Gap: s.Gap, Notes: s.Notes, Query: s.Query, TurnIndex: s.TurnIndex})
	}
	type plain TraceStep // without this method
	return encodeJSON(plain(s))
}

// traceJSON is Trace with chunk IDs that can be null. The fields of the types
// encoded here are in the order of their keys.
type traceJSON struct {
	CommittedThroughIndex *int        `json:"committed_through_index"`
	FixedLag              *int        `json:"fixed_lag"`
	Options               *Options    `json:"options,omitempty"`
	PathChunkIDs          []*string   `json:"path_chunk_ids"`
	PolicyDigest          string      `json:"policy_digest,omitempty"`
	RevisedPriorIndices   []int       `json:"revised_prior_indices"`
	Schema                string      `json:"schema,omitempty"`
	ScoreModel            string      `json:"score_model,omitempty"`
	Steps                 []TraceStep `json:"steps"`
}

// gapJSON is a TraceStep of a gap.
type gapJSON struct {
	ChunkID                  *string                    `json:"chunk_id"`
	Confidence               *float64                   `json:"confidence"`
	CumulativeScore          float64                    `json:"cumulative_score"`
	EmissionEntropy          *float64                   `json:"emission_entropy"`
	Gap                      string                     `json:"gap"`
	GraphDistance            *float64                   `json:"graph_distance"`
	NormalizedEmissionMargin *float64                   `json:"normalized_emission_margin"`
	NormalizedEmissionScore  *float64                   `json:"normalized_emission_score"`
	Notes                    map[string]json.RawMessage `json:"notes,omitempty"`
	PosteriorEntropy         *float64                   `json:"posterior_entropy"`
	Query                    string                     `json:"query,omitempty"`
	RawEmissionScore         *float64                   `json:"raw_emission_score"`
	TurnIndex                int                        `json:"turn_index"`
	WeightedEmissionScore    *float64                   `json:"weighted_emission_score"`
	WeightedTransitionCost   *float64                   `json:"weighted_transition_cost"`
}

// sortedJSON encodes v with the keys of all its objects in order. Numbers pass
// as text and keep their bits.
func sortedJSON(v any) ([]byte, error) {
	raw, err := encodeJSON(v)
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var tree any
	if err := decoder.Decode(&tree); err != nil {
		return nil, err
	}
	return encodeJSON(tree)
}

// encodeJSON is json.Marshal with <, > and & as they are.
func encodeJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}
