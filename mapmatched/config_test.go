package mapmatched

import (
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
)

func TestConfigFaults(t *testing.T) {
	for _, c := range []struct {
		cfg  Config
		want string
	}{
		{Config{EmissionWeight: new(-1.0)}, "emission_weight is -1: invalid configuration: it must be finite and at least 0"},
		{Config{EmissionWeight: new(math.NaN())}, "emission_weight is NaN: invalid configuration: it must be finite and at least 0"},
		{Config{TransitionWeight: new(math.Inf(1))}, "transition_weight is +Inf: invalid configuration: it must be finite and at least 0"},
		{Config{ScoreNormalization: "ZScore"}, `score_normalization is "ZScore": invalid configuration: it must be zscore, center or none`},
		{Config{FixedLag: new(-1)}, "fixed_lag is -1: invalid configuration: it must be at least 0"},
		{Config{CandidateLimit: -5}, "candidate_limit is -5: invalid configuration: it must be at least 1"},
		{Config{ContextRadius: new(-0.5)}, "context_radius is -0.5: invalid configuration: it must be finite and at least 0"},
		{Config{ContextRadius: new(math.Inf(1))}, "context_radius is +Inf: invalid configuration: it must be finite and at least 0"},
		{Config{ContextLimit: new(-2)}, "context_limit is -2: invalid configuration: it must be at least 0"},
		{Config{Beam: -3}, "beam is -3: invalid configuration: it must be at least 1, or 0 for no beam"},
		{Config{Beam: 2, Decoder: Viterbi{}}, "beam is 2: invalid configuration: it must be 0 with a decoder of your own, which prunes as it likes"},
		{Config{BreakDistance: -1}, "break_distance is -1: invalid configuration: it must be above 0 and at most the maximum distance of the graph, or 0 for no breaks"},
		{Config{BreakDistance: math.NaN()}, "break_distance is NaN: invalid configuration: it must be above 0 and at most the maximum distance of the graph, or 0 for no breaks"},
		{Config{OnEmpty: "skip"}, `on_empty is "skip": invalid configuration: it must be gap or error`},
		{Config{Temperature: -1}, "temperature is -1: invalid configuration: it must be between 1e-6 and 1e6"},
		{Config{Temperature: 1e-7}, "temperature is 1e-07: invalid configuration: it must be between 1e-6 and 1e6"},
		{Config{Temperature: math.NaN()}, "temperature is NaN: invalid configuration: it must be between 1e-6 and 1e6"},
	} {
		err := c.cfg.Validate()
		if !errors.Is(err, ErrInvalidConfig) || err.Error() != c.want {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}

func TestConfigReportsAllFaults(t *testing.T) {
	cfg := Config{
		EmissionWeight: new(-1.0), TransitionWeight: new(math.NaN()), ScoreNormalization: "rank", FixedLag: new(-1),
		CandidateLimit: -1, ContextRadius: new(-1.0), ContextLimit: new(-1), Beam: -1, BreakDistance: -1,
		OnEmpty: "stop", Temperature: -1,
	}
	want := []string{
		"emission_weight", "transition_weight", "score_normalization", "fixed_lag", "candidate_limit", "context_radius",
		"context_limit", "beam", "break_distance", "on_empty", "temperature",
	}
	err := cfg.Validate()
	if err == nil {
		t.Fatal("no error")
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != len(want) {
		t.Errorf("%d faults, want %d:\n%v", len(lines), len(want), err)
	}
	for _, field := range want {
		if n := strings.Count("\n"+err.Error(), "\n"+field+" is "); n != 1 {
			t.Errorf("%s is named %d times in\n%v", field, n, err)
		}
	}
	if _, err := NewSession(nil, chain(t, 4, "a", "b"), &cfg); err == nil || strings.Count(err.Error(), "invalid configuration") != len(want) {
		t.Errorf("a session reports\n%v", err)
	}
}

func TestConfigDefaults(t *testing.T) {
	want := `{"candidate_limit":20,"context_radius":1,"emission_weight":1,"on_empty":"gap",` +
		`"score_normalization":"zscore","temperature":1,"transition_weight":1}`
	for _, cfg := range []*Config{nil, {}, {RetainTurns: -7, Corpus: "c", PolicyDigest: "p"}} {
		if err := cfg.Validate(); err != nil {
			t.Error(err)
		}
		s := mustSession(t, nil, chain(t, 4, "a", "b"), cfg)
		raw, err := json.Marshal(s.Trace().Options)
		if err != nil {
			t.Fatal(err)
		}
		if string(raw) != want {
			t.Errorf("options %s, want %s", raw, want)
		}
	}
}

func randomConfig(r *rand.Rand) Config {
	some := func(p *float64) *float64 { return []*float64{nil, p}[r.IntN(2)] }
	count := func(n int) *int { return []*int{nil, new(r.IntN(n))}[r.IntN(2)] }
	return Config{
		EmissionWeight:     some(new(r.Float64() * 3)),
		TransitionWeight:   some(new(float64(r.IntN(3)))),
		ScoreNormalization: []Normalization{"", NormalizeZScore, NormalizeCenter, NormalizeNone}[r.IntN(4)],
		FixedLag:           count(5),
		CandidateLimit:     r.IntN(30),
		ContextRadius:      some(new(r.Float64())),
		ContextLimit:       count(9),
		Beam:               r.IntN(4),
		BreakDistance:      float64(r.IntN(3)) * r.Float64(),
		OnEmpty:            []OnEmpty{"", OnEmptyGap, OnEmptyError}[r.IntN(3)],
		Temperature:        []float64{0, 0.25, 7}[r.IntN(3)],
	}
}

func TestOptionsRoundTrip(t *testing.T) {
	for seed := range uint64(500) {
		cfg := randomConfig(rand.New(rand.NewPCG(seed, 41)))
		want, err := cfg.resolve()
		if err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(want.options())
		if err != nil {
			t.Fatal(err)
		}
		var options Options
		if err := json.Unmarshal(raw, &options); err != nil {
			t.Fatal(err)
		}
		back, err := options.Config()
		if err != nil {
			t.Fatalf("seed %d: %v from %s", seed, err, raw)
		}
		got, err := back.resolve()
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("seed %d: %s reads back as\n%+v\nwas\n%+v", seed, raw, got, want)
		}
	}
	cfg, err := (&Options{}).Config()
	if err != nil || !reflect.DeepEqual(cfg, &Config{}) {
		t.Errorf("no options give %+v, error %v", cfg, err)
	}
}

func TestOptionsFaults(t *testing.T) {
	for _, c := range []struct {
		in   string
		want []string
	}{
		{`{"candidate_limit": 0}`, []string{"candidate_limit is 0: invalid configuration: leave it out for the default"}},
		{`{"beam": 0}`, []string{"beam is 0: invalid configuration: leave it out for the default"}},
		{`{"break_distance": 0}`, []string{"break_distance is 0: invalid configuration: leave it out for the default"}},
		{`{"temperature": 0}`, []string{"temperature is 0: invalid configuration: leave it out for the default"}},
		{`{"score_normalization": ""}`, []string{"score_normalization is \"\": invalid configuration: leave it out for the default"}},
		{`{"on_empty": ""}`, []string{"on_empty is \"\": invalid configuration: leave it out for the default"}},
		{`{"candidate_limit": -1}`, []string{"candidate_limit is -1: invalid configuration: it must be at least 1"}},
		{`{"on_empty": "drop"}`, []string{`on_empty is "drop": invalid configuration: it must be gap or error`}},
		{`{"temperature": 0, "beam": 0, "fixed_lag": -1, "emission_weight": -2}`, []string{
			"beam is 0: invalid configuration: leave it out for the default",
			"temperature is 0: invalid configuration: leave it out for the default",
			"emission_weight is -2: invalid configuration: it must be finite and at least 0",
			"fixed_lag is -1: invalid configuration: it must be at least 0",
		}},
	} {
		var options Options
		if err := json.Unmarshal([]byte(c.in), &options); err != nil {
			t.Fatal(err)
		}
		cfg, err := options.Config()
		if cfg != nil || !errors.Is(err, ErrInvalidConfig) || err.Error() != strings.Join(c.want, "\n") {
			t.Errorf("%s: %+v, error\n%v\nwant\n%s", c.in, cfg, err, strings.Join(c.want, "\n"))
		}
	}
	for _, in := range []string{`{"emission_weight": 0}`, `{"transition_weight": 0}`, `{"fixed_lag": 0}`, `{"context_radius": 0}`, `{"context_limit": 0}`} {
		var options Options
		if err := json.Unmarshal([]byte(in), &options); err != nil {
			t.Fatal(err)
		}
		cfg, err := options.Config()
		if err != nil {
			t.Errorf("%s, in which zero is a value of its own: %v", in, err)
			continue
		}
		set, err := cfg.resolve()
		if err != nil {
			t.Fatal(err)
		}
		if raw, err := json.Marshal(set.options()); err != nil || !strings.Contains(string(raw), strings.ReplaceAll(strings.Trim(in, "{}"), " ", "")) {
			t.Errorf("%s became %s (%v)", in, raw, err)
		}
	}
}
