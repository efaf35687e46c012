package policy

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/mapmatched/mmplug/mapmatched"
)

// at is the value of a policy at a path, the zero Value inside a table.
func at(p *Policy, path string) reflect.Value {
	v := reflect.ValueOf(p).Elem()
	for key := range strings.SplitSeq(path, ".") {
		if v.Kind() != reflect.Struct {
			return reflect.Value{}
		}
		for _, f := range fieldsOf(v.Type()) {
			if f.key == key {
				v = v.Field(f.index)
				break
			}
		}
	}
	return v
}

// disturb changes the value at a path, unless it is a section.
func disturb(p *Policy, path string) bool {
	switch v := at(p, path); v.Kind() {
	case reflect.String:
		v.SetString(v.String() + "x")
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Int:
		v.SetInt(v.Int() + 1)
	case reflect.Float64:
		v.SetFloat(v.Float() + 0.125)
	case reflect.Pointer:
		v.Set(reflect.ValueOf(new(3)))
	case reflect.Map:
		m := reflect.MakeMap(v.Type())
		m.SetMapIndex(reflect.ValueOf("x"), reflect.New(v.Type().Elem()).Elem())
		v.Set(m)
	case reflect.Slice:
		v.Set(reflect.ValueOf([]Plugin{{"x", path}}))
	default:
		return false
	}
	return true
}

// randomPolicy is a valid policy with some of its values at random.
func randomPolicy(r *rand.Rand) *Policy {
	p := Default()
	p.Name = fmt.Sprint("p", r.IntN(100))
	p.Description = []string{"", "off", "1.0", "é: #\"'", "null", " lead", "trail ", "- x", "!tag", "{a: b}", "2026-01-02", "=", "<<", "0x10", "🚀"}[r.IntN(15)]
	p.Decode.TransitionWeight = math.Abs(r.NormFloat64()) * math.Pow(10, float64(r.IntN(40)-20))
	p.Decode.CandidateLimit = 1 + r.IntN(1000)
	if r.IntN(2) == 0 {
		p.Decode.FixedLag = new(r.IntN(9))
	}
	if r.IntN(2) == 0 {
		p.Context.Limit = new(r.IntN(9))
	}
	p.Decay.Weights = map[string]float64{}
	for _, edge := range []string{"next", "off", "1", "ünïcode", "a b", "true", "null", "#", "~"} {
		if r.IntN(3) == 0 {
			p.Decay.Weights[edge] = 1 - r.Float64()
		}
	}
	p.Fusion.Arms = map[string]FusionArm{"dense": {r.Float64() + 1e-9, r.IntN(5000)}, "yes": {r.Float64(), 0}}
	for i := range r.IntN(3) {
		p.Plugins = append(p.Plugins, Plugin{fmt.Sprint("plugin", i), strings.Repeat("0f", 32)})
	}
	return p
}

// TestRoundTrip: a policy written in any format and read back is the same, and
// so is one written from that in the next.
func TestRoundTrip(t *testing.T) {
	for seed := range uint64(40) {
		p := randomPolicy(rand.New(rand.NewPCG(seed, 31)))
		q := p
		for _, format := range []Format{YAML, TOML, JSON, YAML} {
			data, err := q.Encode(format)
			if err != nil {
				t.Fatal(err)
			}
			if q, err = Parse(Source{"p." + string(format), data}); err != nil {
				t.Fatalf("seed %d: %v\n%s", seed, err, data)
			}
			if q.Digest() != p.Digest() || q.Name != p.Name || q.Description != p.Description {
				t.Fatalf("seed %d: %s changes the policy: %v, name %q, description %q\n%s", seed, format, Diff(p, q), q.Name, q.Description, data)
			}
			again, err := q.Encode(format)
			if err != nil || string(again) != string(data) {
				t.Fatalf("seed %d: %s is not written the same twice: %v", seed, format, err)
			}
		}
	}
	if _, err := Default().Encode("xml"); err == nil {
		t.Error("xml is a format")
	}
}

// TestNullableDefaults: TOML has no null, so what may be null is null by
// default.
func TestNullableDefaults(t *testing.T) {
	found := 0
	for _, path := range knownPaths() {
		if v := at(Default(), path); v.Kind() == reflect.Pointer {
			found++
			if !v.IsNil() {
				t.Errorf("%s may be null but is %v by default", path, v.Elem())
			}
		}
	}
	if found < 2 {
		t.Errorf("%d keys may be null", found)
	}
}

func TestConfig(t *testing.T) {
	p := Default()
	p.Name = "t"
	c, err := p.Config()
	if err != nil {
		t.Fatal(err)
	}
	if *c.EmissionWeight != 1 || *c.TransitionWeight != 1 || c.FixedLag != nil || c.ContextLimit != nil || c.CandidateLimit != 20 ||
		*c.ContextRadius != 1 || c.ScoreNormalization != mapmatched.NormalizeZScore || c.OnEmpty != mapmatched.OnEmptyGap || c.PolicyDigest != p.Digest() {
		t.Errorf("%+v", c)
	}

	p.Decode.EmissionWeight, p.Decode.TransitionWeight, p.Decode.FixedLag = 0, 0.5, new(0)
	p.Decode.ScoreNormalization, p.Decode.OnEmpty, p.Decode.CandidateLimit = mapmatched.NormalizeNone, mapmatched.OnEmptyError, 7
	p.Decode.Beam, p.Decode.BreakDistance, p.Decode.Temperature = 3, 10, 2
	p.Decode.RankBy = mapmatched.RankByFilteredPosterior
	p.Context.Radius, p.Context.Limit = 0, new(0)
	c, err = p.Config()
	if err != nil {
		t.Fatal(err)
	}
	want := mapmatched.Config{
		EmissionWeight: new(0.0), TransitionWeight: new(0.5), FixedLag: new(0), ScoreNormalization: mapmatched.NormalizeNone,
		OnEmpty: mapmatched.OnEmptyError, CandidateLimit: 7, Beam: 3, BreakDistance: 10, Temperature: 2,
		RankBy: mapmatched.RankByFilteredPosterior, ContextRadius: new(0.0), ContextLimit: new(0), PolicyDigest: p.Digest(),
	}
	if !reflect.DeepEqual(*c, want) {
		t.Errorf("%+v, want %+v", *c, want)
	}
	*p.Decode.FixedLag = 9
	if *c.FixedLag != 0 {
		t.Error("a configuration changes with the policy it was made from")
	}

	p.Decode.BreakDistance = 11
	if _, err := p.Config(); !errors.Is(err, mapmatched.ErrInvalidConfig) {
		t.Errorf("an invalid policy: %v", err)
	}
}

func TestValidateWholePolicy(t *testing.T) {
	p := Default()
	p.Schema, p.Name = "", "a/b"
	p.Decode.Temperature, p.Vectors.Dimension, p.Plugins = 0, 3, []Plugin{{"", ""}}
	var keys []string
	for _, f := range Faults(p.Validate()) {
		keys = append(keys, f.Key)
	}
	want := "schema name decode.temperature vectors.dimension plugins.0.name plugins.0.sha256"
	if got := strings.Join(keys, " "); got != want {
		t.Errorf("faults at %s, want %s", got, want)
	}
	// Every section is asked.
	for _, path := range knownPaths() {
		p := Default()
		p.Name = "t"
		if v := at(p, path); strings.HasSuffix(path, ".version") && v.Kind() == reflect.String {
			v.SetString("nonsense_v9")
			if f := Faults(p.Validate()); len(f) == 0 || f[0].Key != path {
				t.Errorf("%s is nonsense_v9: faults %v", path, f)
			}
		}
	}
}
