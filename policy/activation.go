package policy

import (
	"fmt"

	"github.com/mapmatched/mmplug/mapmatched"
)

// Activation is what a session does with its answers.
type Activation string

// The activations.
const (
	Suppress Activation = "suppress" // show nothing
	Prefetch Activation = "prefetch" // prepare, but show nothing yet
	Emit     Activation = "emit"     // show
)

// Features are numbers by group and name, such as the entropy under
// "emission". They are logged as they are.
type Features map[string]map[string]float64

// ActivationState is what a session remembers between observations. The zero
// value is that of a new session.
type ActivationState struct {
	Activation Activation `json:"activation"` // "" before the first observation
	Cooldown   int        `json:"cooldown"`   // observations that must still pass before the next emission
}

// ActivationDecision is what an observation led to, and why.
type ActivationDecision struct {
	Turn       int             `json:"turn_index"`
	Stage      Stage           `json:"stage"`
	Confidence float64         `json:"confidence"`
	Features   Features        `json:"features,omitempty"`
	State      ActivationState `json:"state"`   // after the observation
	Applied    Activation      `json:"applied"` // what is in effect: emit unless the stage is active
	Reason     string          `json:"reason"`  // in words
}

// Step is activation_pre_v1: the decision for a confidence in [0, 1], given
// what was decided before.
//
//   - While it emits, a session goes on doing so until the confidence is below
//     t_off. It then suppresses, and the next Cooldown observations cannot
//     begin to emit.
//   - Otherwise it begins to emit at t_on, and prefetches from t_off on, or
//     while the cooldown keeps it from emitting; below t_off it suppresses.
//
// A confidence out of its range, or a feature that is not finite, is an error.
func (a *ActivationParameters) Step(before ActivationState, turn int, confidence float64, features Features) (ActivationDecision, error) {
	if !(confidence >= 0 && confidence <= 1) {
		return ActivationDecision{}, fmt.Errorf("activation: turn %d: %w: confidence is %v: it must be between 0 and 1", turn, mapmatched.ErrInvalidConfig, confidence)
	}
	if err := features.check(); err != nil {
		return ActivationDecision{}, fmt.Errorf("activation: turn %d: %w", turn, err)
	}
	d := ActivationDecision{Turn: turn, Stage: a.Stage, Confidence: confidence, Features: features, Applied: Emit}
	cooling := before.Activation != Emit && before.Cooldown > 0
	if cooling {
		d.State.Cooldown = before.Cooldown - 1
	}
	switch {
	case before.Activation == Emit && confidence >= a.TOff:
		d.State.Activation, d.Reason = Emit, "still at or above t_off"
	case before.Activation == Emit:
		d.State, d.Reason = ActivationState{Suppress, a.Cooldown}, "fell below t_off"
	case confidence >= a.TOn && cooling:
		d.State.Activation, d.Reason = Prefetch, "at or above t_on, in cooldown"
	case confidence >= a.TOn:
		d.State.Activation, d.Reason = Emit, "at or above t_on"
	case confidence >= a.TOff:
		d.State.Activation, d.Reason = Prefetch, "between t_off and t_on"
	default:
		d.State.Activation, d.Reason = Suppress, "below t_off"
	}
	if a.Stage == StageActive {
		d.Applied = d.State.Activation
	}
	return d, nil
}

// check reports the first feature, by group and name, that is not finite.
func (f Features) check() error {
	for _, group := range sortedKeys(f) {
		for _, name := range sortedKeys(f[group]) {
			if x := f[group][name]; !finite(x) {
				return fmt.Errorf("feature %s.%s is %v: %w", group, name, x, mapmatched.ErrNonFinite)
			}
		}
	}
	return nil
}

// ShadowRecord is the decision as a line of a shadow log.
func (d ActivationDecision) ShadowRecord(session string) ShadowRecord {
	return ShadowRecord{Part: string(KindActivation), Version: ActivationPreV1, Session: session, Turn: d.Turn,
		Outcome: string(d.State.Activation), Applied: string(d.Applied), Value: &d.Confidence, Features: d.Features}
}
