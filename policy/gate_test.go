package policy

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/mapmatched/mmplug/adapters/embedded/lexical"
	"github.com/mapmatched/mmplug/mapmatched"
)

func TestNewGateFeatures(t *testing.T) {
	idf := func(term string) (float64, bool) {
		weight, known := map[string]float64{"tide": 1.5, "moon": 2}[term]
		return weight, known
	}
	for _, c := range []struct {
		query string
		want  GateFeatures
	}{
		{"tide moon tide unheard-of", GateFeatures{Terms: 4, IDF: 5, Entropy: 0.7}},
		{"What about it?", GateFeatures{Terms: 3, Referring: 1.0 / 3, Entropy: 0.7}},
		{"These, THOSE; that", GateFeatures{Terms: 3, Referring: 1, Entropy: 0.7}},
		{"", GateFeatures{Entropy: 0.7}},
		{"?!", GateFeatures{Terms: 1, Entropy: 0.7}},
	} {
		if got := NewGateFeatures(c.query, words, idf, 0.7); got != c.want {
			t.Errorf("%q: %+v, want %+v", c.query, got, c.want)
		}
	}
	// Stopwords are no content, but they may refer.
	got := NewGateFeatures("is it the same", lexical.Analyze, idf, 0)
	if got.Referring != 0.5 {
		t.Errorf("referring %v, want it and same out of four", got.Referring)
	}
}

func TestReferringWordsAreInOrder(t *testing.T) {
	list := ReferringWords()
	if !slices.IsSorted(list) || len(slices.Compact(slices.Clone(list))) != len(list) || len(list) == 0 {
		t.Errorf("%q is not in ascending order", list)
	}
	list[0] = "zzz"
	if ReferringWords()[0] == "zzz" {
		t.Error("a change to the list reached the gate")
	}
}

func TestGateIsLogisticInItsFeatures(t *testing.T) {
	f := GateFeatures{Terms: 2, IDF: 3, Referring: 0.5, Entropy: 0.25}
	for _, c := range []struct {
		name string
		gate Gate
		z    float64
	}{
		{"all weights 0", Gate{}, 0},
		{"bias", Gate{Bias: -2}, -2},
		{"terms", Gate{Terms: -0.5}, -1},
		{"idf", Gate{IDF: 0.5}, 1.5},
		{"referring", Gate{Referring: 4}, 2},
		{"entropy", Gate{Entropy: 8}, 2},
		{"all", Gate{Bias: -2, Terms: -0.5, IDF: 0.5, Referring: 4, Entropy: 8}, 2.5},
		{"far out", Gate{Bias: 1e6}, 1e6},
		{"far out below", Gate{Bias: -1e6}, -1e6},
	} {
		got, err := c.gate.Value(1, f)
		if want := 1 / (1 + math.Exp(-c.z)); err != nil || got != want {
			t.Errorf("%s: g = %v (%v), want %v", c.name, got, err, want)
		}
		if got, err := c.gate.Value(0, f); got != 0 || err != nil {
			t.Errorf("%s: g = %v (%v) on the first turn, want 0", c.name, got, err)
		}
	}
	if _, err := (Gate{Entropy: 1}).Value(1, GateFeatures{Entropy: math.NaN()}); !errors.Is(err, mapmatched.ErrNonFinite) {
		t.Errorf("error %v, want ErrNonFinite", err)
	}
}

func TestGateStages(t *testing.T) {
	f := GateFeatures{Terms: 1}
	for _, c := range []struct {
		stage          Stage
		turn           int
		value, applied float64
	}{
		{StageOff, 0, 0, 0}, {StageOff, 1, 1, 1},
		{StageShadow, 0, 0, 0}, {StageShadow, 1, 0.5, 1},
		{StageActive, 0, 0, 0}, {StageActive, 1, 0.5, 0.5},
	} {
		got, err := (Gate{Stage: c.stage}).Evaluate(c.turn, f)
		if want := (GateRecord{c.turn, c.stage, f, c.value, c.applied}); err != nil || got != want {
			t.Errorf("%s, turn %d: %+v (%v), want %+v", c.stage, c.turn, got, err, want)
		}
	}
	bad := Gate{Stage: StageActive, IDF: 1}
	if _, err := bad.Evaluate(1, GateFeatures{IDF: math.NaN()}); !errors.Is(err, mapmatched.ErrNonFinite) {
		t.Errorf("error %v, want ErrNonFinite", err)
	}
	record, err := (Gate{Stage: StageShadow}).Evaluate(4, GateFeatures{2, 3, 0.5, 0.25})
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"turn_index":4,"stage":"shadow","features":{"terms":2,"idf":3,"referring":0.5,"entropy":0.25},"value":0.5,"applied":1}`
	if got := asJSON(t, record); got != want {
		t.Errorf("record %s, want %s", got, want)
	}
	const line = `{"applied":"context","features":{"query":{"idf":3,"referring":0.5,"terms":2},"raw":{"entropy":0.25}},"outcome":"context","part":"context","session":"s","turn_index":4,"value":0.5,"version":"context_v1"}`
	if got := asJSON(t, record.ShadowRecord("s")); got != line {
		t.Errorf("shadow record %s, want %s", got, line)
	}
}

func TestGateScalesTheTransitionWeight(t *testing.T) {
	r := GateRecord{Turn: 1, Applied: 0.25}
	for _, c := range []struct {
		gate Gate
		want float64
	}{
		{Gate{Stage: StageActive, ScaleTransition: true}, 0.5},
		{Gate{Stage: StageActive}, 2},
		{Gate{Stage: StageShadow, ScaleTransition: true}, 2},
		{Gate{Stage: StageOff, ScaleTransition: true}, 2},
	} {
		if got := c.gate.TransitionWeight(2, r); got != c.want {
			t.Errorf("%+v: β is %v, want %v", c.gate, got, c.want)
		}
	}
}
