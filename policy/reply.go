package policy

import "fmt"

// Reply is the section "reply": the assistant's last reply as evidence of the
// chunk that it was made from, which is the one of the turn before.
type Reply struct {
	// Version is the tag of the formula: reply_v1.
	Version string `koanf:"version" json:"version"`
	// Stage: off (default; a reply says nothing about the turn before), shadow
	// or active.
	Stage Stage `koanf:"stage" json:"stage"`
	// Weight μ is what going on from a chunk that the reply does not fit costs
	// more than from the one that it fits best, before β. Finite, ≥ 0; default
	// 4; 0 has no effect.
	Weight float64 `koanf:"weight" json:"weight"`
}

// DefaultReply returns the defaults of the section "reply".
func DefaultReply() Reply { return Reply{Version: ReplyV1, Stage: StageOff, Weight: 4} }

// Validate reports every fault of the section.
func (y *Reply) Validate() error {
	f := faults{section: "reply"}
	f.version(KindReply, y.Version)
	f.stage("stage", y.Stage)
	f.notNegative("weight", y.Weight)
	return f.err()
}

// Cost is μ·(1 − fit), what going on from a chunk costs more because of how the
// reply fits it, from 0 to μ. fit is the chunk's score in the candidates that
// the words of the reply find, min–max normalised over them: 1 for the best
// one, 0 for a chunk that is not among them.
func (y *Reply) Cost(fit float64) (float64, error) {
	if !(fit >= 0 && fit <= 1) {
		return 0, fmt.Errorf("reply: the fit is %v: it must be between 0 and 1", fit)
	}
	return float64(y.Weight * (1 - fit)), nil
}
