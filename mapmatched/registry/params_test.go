package registry

import (
	"math"
	"strings"
	"testing"
	"testing/quick"
	"time"
)

// paramsOf reads a query with a Doc that lists "v" and "key_env".
func paramsOf(query string) *Params {
	return newParams("store", Doc{Parameters: []Parameter{{Name: "v"}, {Name: "key_env"}}}, query)
}

func TestParamsTypes(t *testing.T) {
	t.Setenv("MMPLUG_TEST_KEY", "sesame")
	for _, c := range []struct {
		query string
		read  func(p *Params) any
		want  any
		fault string // "" when there is none
	}{
		{"", func(p *Params) any { return p.String("v", "d") }, "d", ""},
		{"v=a%26b+c", func(p *Params) any { return p.String("v", "d") }, "a&b c", ""},
		{"v=", func(p *Params) any { return p.String("v", "d") }, "d", "no value"},
		{"v=-3", func(p *Params) any { return p.Int("v", 1, -5, 5) }, -3, ""},
		{"v=5", func(p *Params) any { return p.Int("v", 1, -5, 5) }, 5, ""},
		{"v=6", func(p *Params) any { return p.Int("v", 1, -5, 5) }, 1, "from -5 to 5"},
		{"v=99999999999999999999", func(p *Params) any { return p.Int("v", 1, -5, 5) }, 1, "integer"},
		{"v=1e0", func(p *Params) any { return p.Int("v", 1, -5, 5) }, 1, "integer"},
		{"v=0.5", func(p *Params) any { return p.Float("v", 1, 0, 1) }, 0.5, ""},
		{"v=1", func(p *Params) any { return p.Float("v", 0, 0, 1) }, 1.0, ""},
		{"v=1.01", func(p *Params) any { return p.Float("v", 0, 0, 1) }, 0.0, "from 0 to 1"},
		{"v=NaN", func(p *Params) any { return p.Float("v", 0, 0, 1) }, 0.0, "finite"},
		{"v=Inf", func(p *Params) any { return p.Float("v", 0, 0, math.Inf(1)) }, 0.0, "finite"},
		{"v=1e999", func(p *Params) any { return p.Float("v", 0, 0, math.Inf(1)) }, 0.0, "finite"},
		{"v=x", func(p *Params) any { return p.Float("v", 0, 0, 1) }, 0.0, "finite"},
		{"v=true", func(p *Params) any { return p.Bool("v", false) }, true, ""},
		{"v=false", func(p *Params) any { return p.Bool("v", true) }, false, ""},
		{"", func(p *Params) any { return p.Bool("v", true) }, true, ""},
		{"v=yes", func(p *Params) any { return p.Bool("v", true) }, true, "true, false"},
		{"v=1", func(p *Params) any { return p.Bool("v", false) }, false, "true, false"},
		{"v=500ms", func(p *Params) any { return p.Duration("v", time.Second, 0, time.Minute) }, 500 * time.Millisecond, ""},
		{"", func(p *Params) any { return p.Duration("v", time.Second, 0, time.Minute) }, time.Second, ""},
		{"v=30", func(p *Params) any { return p.Duration("v", time.Second, 0, time.Minute) }, time.Second, "write 30ms or 30s"},
		{"v=0", func(p *Params) any { return p.Duration("v", time.Second, 0, time.Minute) }, time.Second, "no unit"},
		{"v=2h", func(p *Params) any { return p.Duration("v", time.Second, 0, time.Minute) }, time.Second, "from 0s to 1m0s"},
		{"v=soon", func(p *Params) any { return p.Duration("v", time.Second, 0, time.Minute) }, time.Second, "not a duration"},
		{"v=b", func(p *Params) any { return p.Enum("v", "a", "a", "b") }, "b", ""},
		{"v=B", func(p *Params) any { return p.Enum("v", "a", "a", "b") }, "a", "one of a, b"},
		{"key_env=MMPLUG_TEST_KEY", func(p *Params) any { return p.Secret("key") }, "sesame", ""},
		{"", func(p *Params) any { return p.Secret("key") }, "", ""},
		{"key_env=MMPLUG_TEST_NONE", func(p *Params) any { return p.Secret("key") }, "", "MMPLUG_TEST_NONE is not set"},
		{"v=1", func(p *Params) any { return p.Has("v") }, true, "no effect"},
		{"", func(p *Params) any { return p.Has("v") }, false, ""},
	} {
		p := paramsOf(c.query)
		if got := c.read(p); got != c.want {
			t.Errorf("%q: read %v, want %v", c.query, got, c.want)
		}
		err := p.Err()
		if (err == nil) != (c.fault == "") || err != nil && !strings.Contains(err.Error(), c.fault) {
			t.Errorf("%q: error %v, want %q", c.query, err, c.fault)
		}
	}
}

func TestParamsReadingTwiceReportsOnce(t *testing.T) {
	p := paramsOf("v=")
	p.String("v", "")
	p.String("v", "")
	if err := p.Err(); err == nil || strings.Count(err.Error(), "no value") != 1 {
		t.Errorf("error %v, want the fault once", err)
	}
}

func TestLooksSecret(t *testing.T) {
	for _, name := range []string{"api_key", "API-KEY", "apiKey", "token", "auth_token", "password", "db.password", "pwd", "secret", "client_secret", "key", "access_key", "authorization"} {
		if !looksSecret(name) {
			t.Errorf("%q passes for harmless", name)
		}
	}
	for _, name := range []string{"", "_", "api_key_env", "token_env", "id_key", "tokenizer", "max_tokens", "keyword", "limit", "author"} {
		if looksSecret(name) {
			t.Errorf("%q passes for a secret", name)
		}
	}
}

func TestEditDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"limit", "limt", 1}, {"kitten", "sitting", 3}, {"ab", "ba", 2}} {
		if got := editDistance(c.a, c.b); got != c.want {
			t.Errorf("%q, %q: %d, want %d", c.a, c.b, got, c.want)
		}
	}
	symmetric := func(a, b string) bool {
		d := editDistance(a, b)
		return d == editDistance(b, a) && d <= max(len(a), len(b)) && (d == 0) == (a == b)
	}
	if err := quick.Check(symmetric, nil); err != nil {
		t.Error(err)
	}
}
