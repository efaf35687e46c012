package policy

import (
	"math"
	"strings"
	"testing"
)

func TestJudge(t *testing.T) {
	p := DefaultJudgement()
	p.CosineThreshold = 0.6
	for _, c := range []struct {
		name         string
		query, chunk []float32
		want         string // JSON
	}{
		{"the same direction", []float32{0, 2}, []float32{0, 7}, `1,"threshold":0.6,"verdict":"relevant"`},
		{"a cosine equal to the threshold reaches it", []float32{5, 0}, []float32{30, 40}, `0.6,"threshold":0.6,"verdict":"relevant"`},
		{"below", []float32{0, 1}, []float32{1, 0}, `0,"threshold":0.6,"verdict":"doubtful"`},
		{"opposite", []float32{0, -1}, []float32{0, 3}, `-1,"threshold":0.6,"verdict":"doubtful"`},
		{"no query vector", nil, []float32{1}, `null,"threshold":0.6,"verdict":"unjudged"`},
		{"no chunk vector", []float32{1}, []float32{}, `null,"threshold":0.6,"verdict":"unjudged"`},
	} {
		got, err := p.Judge(2, "x", c.query, c.chunk)
		if want := `{"turn_index":2,"chunk_id":"x","cosine":` + c.want + `}`; err != nil || asJSON(t, got) != want {
			t.Errorf("%s: %s (%v), want %s", c.name, asJSON(t, got), err, want)
		}
	}
	for _, c := range []struct {
		query, chunk []float32
		want         string
	}{
		{[]float32{1}, []float32{1, 2}, "dimensions 1 and 2"},
		{[]float32{0}, []float32{1}, "cosine is NaN"},
		{[]float32{float32(math.NaN())}, []float32{1}, "cosine is NaN"},
	} {
		if _, err := p.Judge(2, "x", c.query, c.chunk); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, %v: error %v, want one with %q", c.query, c.chunk, err, c.want)
		}
	}
	j, err := p.Judge(2, "x", []float32{0, 1}, []float32{1, 0})
	if err != nil {
		t.Fatal(err)
	}
	const line = `{"applied":"relevant","outcome":"doubtful","part":"judgement","session":"s","turn_index":2,"value":0,"version":"judgement_shadow_pre_v1"}`
	if got := asJSON(t, j.ShadowRecord("s")); got != line {
		t.Errorf("record %s, want %s", got, line)
	}
}
