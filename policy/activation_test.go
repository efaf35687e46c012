package policy

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/mapmatched/mmplug/mapmatched"
)

// activations plays confidences and spells the states, s, p and e, with the
// cooldown that is left where there is one.
func activations(t testing.TB, p ActivationParameters, confidences ...float64) string {
	t.Helper()
	var state ActivationState
	var out []string
	for turn, c := range confidences {
		d, err := p.Step(state, turn, c, nil)
		if err != nil {
			t.Fatal(err)
		}
		state = d.State
		text := string(state.Activation)[:1]
		if state.Cooldown > 0 {
			text += fmt.Sprint(state.Cooldown)
		}
		out = append(out, text)
	}
	return strings.Join(out, " ")
}

func TestActivation(t *testing.T) {
	for _, c := range []struct {
		name        string
		cooldown    int
		confidences []float64
		want        string
	}{
		{"the thresholds are included", 0, []float64{0.51, 0.52, 0.61, 0.62}, "s p p e"},
		{"hysteresis: emission goes on down to t_off", 0, []float64{0.62, 0.55, 0.52, 0.519, 0.55, 0.62}, "e e e s p e"},
		{"between the thresholds nothing begins", 0, []float64{0.6, 0.6, 0.6}, "p p p"},
		{"cooldown: two observations cannot emit", 2, []float64{0.9, 0.1, 0.9, 0.9, 0.9}, "e s2 p1 p e"},
		{"cooldown passes while the confidence is low", 2, []float64{0.9, 0.1, 0.1, 0.1, 0.9}, "e s2 s1 s e"},
		{"cooldown 0: emission begins again at once", 0, []float64{0.9, 0.1, 0.9}, "e s e"},
		{"the first observation has no cooldown", 5, []float64{0.9}, "e"},
		{"from 0 to 1", 0, []float64{0, 1, 0}, "s e s"},
	} {
		p := DefaultActivation()
		p.Cooldown = c.cooldown
		if got := activations(t, p, c.confidences...); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestActivationStages(t *testing.T) {
	for stage, want := range map[Stage]Activation{StageOff: Emit, StageShadow: Emit, StageActive: Suppress} {
		p := DefaultActivation()
		p.Stage = stage
		d, err := p.Step(ActivationState{}, 0, 0.1, nil)
		if err != nil || d.State.Activation != Suppress || d.Applied != want {
			t.Errorf("%s: %+v (%v), want %s in effect", stage, d, err, want)
		}
	}
}

func TestActivationLogsGroupedFeatures(t *testing.T) {
	p := DefaultActivation()
	d, err := p.Step(ActivationState{Emit, 0}, 7, 0.25, Features{"path": {"posterior": 0.25}, "emission": {"margin": 0.5, "entropy": 1}})
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"turn_index":7,"stage":"shadow","confidence":0.25,"features":{"emission":{"entropy":1,"margin":0.5},"path":{"posterior":0.25}},` +
		`"state":{"activation":"suppress","cooldown":2},"applied":"emit","reason":"fell below t_off"}`
	if got := asJSON(t, d); got != want {
		t.Errorf("decision %s\nwant %s", got, want)
	}
	const line = `{"applied":"emit","features":{"emission":{"entropy":1,"margin":0.5},"path":{"posterior":0.25}},"outcome":"suppress",` +
		`"part":"activation","session":"s","turn_index":7,"value":0.25,"version":"activation_pre_v1"}`
	if got := asJSON(t, d.ShadowRecord("s")); got != line {
		t.Errorf("record %s\nwant %s", got, line)
	}
}

func TestActivationFaults(t *testing.T) {
	p := DefaultActivation()
	for _, confidence := range []float64{-0.1, 1.1, math.NaN(), math.Inf(1)} {
		if _, err := p.Step(ActivationState{}, 3, confidence, nil); !errors.Is(err, mapmatched.ErrInvalidConfig) || !strings.Contains(err.Error(), "turn 3") {
			t.Errorf("confidence %v: error %v", confidence, err)
		}
	}
	if _, err := p.Step(ActivationState{}, 3, 0.5, Features{"g": {"x": math.NaN()}}); !errors.Is(err, mapmatched.ErrNonFinite) || !strings.Contains(err.Error(), "g.x") {
		t.Errorf("error %v, want one that names g.x", err)
	}
}

func TestActivationProperties(t *testing.T) {
	r := rand.New(rand.NewPCG(41, 43))
	for range 500 {
		p := DefaultActivation()
		p.Cooldown = r.IntN(4)
		var state ActivationState
		since := math.MaxInt // observations after the last emission ended
		for turn := range 60 {
			confidence := r.Float64()
			d, err := p.Step(state, turn, confidence, nil)
			if err != nil {
				t.Fatal(err)
			}
			switch now := d.State.Activation; {
			case (now == Suppress) != (confidence < p.TOff):
				t.Fatalf("%s at %v", now, confidence)
			case now == Emit && state.Activation != Emit && (confidence < p.TOn || since < p.Cooldown):
				t.Fatalf("emission begins at %v, %d observations after the last, cooldown %d", confidence, since, p.Cooldown)
			case state.Activation == Emit && now != Emit:
				since = 0
			case since < math.MaxInt:
				since++
			}
			state = d.State
		}
	}
}

func ExampleActivationParameters_Step() {
	p := DefaultActivation()
	var state ActivationState
	for turn, confidence := range []float64{0.55, 0.70, 0.55, 0.40} {
		d, err := p.Step(state, turn, confidence, nil)
		if err != nil {
			fmt.Println(err)
			return
		}
		state = d.State
		fmt.Println(state.Activation, "-", d.Reason)
	}
	// Output:
	// prefetch - between t_off and t_on
	// emit - at or above t_on
	// emit - still at or above t_off
	// suppress - fell below t_off
}
