package policy

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/quick"
)

// TestPlainDigest pins the canonical form: a change here changes the digest of
// every policy there is.
func TestPlainDigest(t *testing.T) {
	p, err := Builtin(Plain)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"activation":{"cooldown":2,"stage":"shadow","t_off":0.52,"t_on":0.62,"version":"activation_pre_v1"},` +
		`"arms":{"answer":{"enabled":false,"weight":0.25},"feedback":{"enabled":false,"weight":0.25},"feedback_terms":8,"gamma":0.5,` +
		`"gate":{"bias":0,"entropy":0,"idf":0,"referring":0,"scale_transition":false,"stage":"off","terms":0},` +
		`"history":{"enabled":true,"weight":1},"raw":{"enabled":true,"weight":1},"stage":"off","version":"context_v1"},` +
		`"chunking":{"limit":2000,"tokenizer":"","tokenizer_sha256":"","unit":"bytes","version":"markdown_v1"},` +
		`"clustering":{"linkage":"average","stage":"shadow","threshold":0.3,"version":"cluster_shadow_pre_v1"},` +
		`"context":{"limit":null,"radius":1},` +
		`"decay":{"default_weight":0.7,"depth":3,"floor":0.05,"stage":"off","version":"decay_v1","weights":{}},` +
		`"decode":{"beam":0,"break_distance":0,"candidate_limit":20,"emission_weight":1,"fixed_lag":null,"on_empty":"gap",` +
		`"rank_by":"max_marginal","score_normalization":"zscore","temperature":1,"transition_weight":1,"version":"decode_v1"},` +
		`"fusion":{"alpha":0.6,"arms":{"dense":{"timeout_ms":1000,"weight":0.7},"lexical":{"timeout_ms":1000,"weight":0.3}},"k":60,"min_score":0,"version":"hybrid_fusion_pre_v1"},` +
		`"graph":{"k":10,"maximum_distance":10,"minimum_edge_distance":0.000001,"version":"knn_v1","weights":{}},` +
		`"judgement":{"cosine_threshold":0.95,"stage":"off","version":"judgement_shadow_pre_v1"},` +
		`"lexical":{"b":0.75,"k1":1.2,"stopwords_sha256":"d033eacb7c5635b42786e0551409ce2232828cd1365bda1e0fa42c447f27a160","version":"lexical_pre_v2"},` +
		`"plugins":[],"rerank":{"budget_ms":500,"mode":"off","pairs":50,"version":"rerank_policy_pre_v1"},"schema":"mmplug.policy/1",` +
		`"transition":{"keep_distance":false,"p":{},"q":{},"stage":"off","version":"transition_v1"},` +
		`"vectors":{"dimension":0,"max_query_tokens":256,"model":"","normalization":"l2","provider":"","revision":""}}`
	if got := string(p.Canonical()); got != want {
		t.Errorf("canonical form\n got %s\nwant %s", got, want)
	}
	if got, want := p.Digest(), "a7e726da5f8f4ac0a8525062a21eecf19ab404fc6586197db78612e20cd9394e"; got != want {
		t.Errorf("digest %s, want %s", got, want)
	}
}

// TestOneNumberOneDigest: 60 is float64 from JSON, int from YAML and int64 from
// TOML, and the same number in all of them.
func TestOneNumberOneDigest(t *testing.T) {
	digests := map[string]string{}
	for _, format := range formats {
		for _, k := range []string{"60", "60.0", "6e1", "6.0E+1", "600e-1"} {
			p, err := Parse(fusionFile(format, "0.60", k))
			if err != nil {
				t.Fatalf("%s as %s: %v", k, format, err)
			}
			digests[p.Digest()] = string(format) + " " + k
		}
	}
	for _, format := range formats {
		p, err := Parse(rerankFile(format, "60.0"))
		if err != nil || p.Rerank.BudgetMS != 60 {
			t.Errorf("60.0 for a whole number in %s: %v", format, err)
		}
	}
	if len(digests) != 1 {
		t.Errorf("%d digests: %v", len(digests), digests)
	}
	zero, minus := Default(), Default()
	minus.Context.Radius, zero.Context.Radius = math.Copysign(0, -1), 0
	if zero.Digest() != minus.Digest() {
		t.Error("0 and −0 have two digests")
	}
}

func TestDigestIgnoresTheWriting(t *testing.T) {
	same := []Source{
		{"a.yaml", []byte("schema: mmplug.policy/1\nname: a\ncontext:\n  radius: 2\n  limit: 5\n")},
		{"b.yaml", []byte("# a comment\n\nname:   \"b\"\ndescription: about\ncontext: {limit: 5.0, radius: 2.00} # order\nschema: 'mmplug.policy/1'\n...\n")},
		{"c.json", []byte("\t{\"context\":{\"limit\":5,\"radius\":2},\n\n\"name\":\"c\",\"schema\":\"mmplug.policy\\/1\"}")},
		{"d.toml", []byte("schema = 'mmplug.policy/1'\nname = \"\"\"d\"\"\"\ncontext.limit = 5\ncontext.radius = 0.2e1\n")},
		{"e.toml", []byte("name = 'e'\r\nschema = 'mmplug.policy/1'\r\n[context]\r\nradius = 2\r\nlimit = 5\r\n")},
		{"f.yaml", []byte("---\nschema: mmplug.policy/1\r\nname: f\r\ncontext:\r\n    radius: 2\r\n    limit: 5\r\n")},
	}
	want := ""
	for _, source := range same {
		p, err := Parse(source)
		if err != nil {
			t.Fatal(err)
		}
		if want == "" {
			want = p.Digest()
		}
		if p.Digest() != want {
			t.Errorf("%s has the digest %s, want %s", source.Path, p.Digest(), want)
		}
	}
	// null, left out, and the section left out, are the default in one way.
	plain := Default().Digest()
	for _, context := range []string{"", "context: {radius: 1}\n", "context: {radius: 1, limit: null}\n", "context: {radius: 1.0, limit: ~}\n"} {
		p, err := Parse(Source{"p.yaml", []byte(yamlHead + context)})
		if err != nil {
			t.Fatal(err)
		}
		if p.Digest() != plain {
			t.Errorf("%q has another digest than the defaults", context)
		}
	}
}

// TestEveryKeyCounts: the digest depends on every key except those that no
// result depends on.
func TestEveryKeyCounts(t *testing.T) {
	seen := map[string]string{Default().Digest(): "the defaults"}
	for _, path := range knownPaths() {
		p := Default()
		if !disturb(p, path) {
			continue
		}
		digest := p.Digest()
		switch path {
		case "name", "description", "digest", "evidence":
			if digest != Default().Digest() {
				t.Errorf("%s is part of the digest", path)
			}
		default:
			if other, twice := seen[digest]; twice {
				t.Errorf("changing %s gives the digest of %s", path, other)
			}
			seen[digest] = path
		}
	}
	if len(seen) < 75 {
		t.Errorf("only %d keys were changed", len(seen))
	}
}

// TestNumberText compares with the encoder of the standard library, which
// writes numbers as ECMAScript does, and reads every number back.
func TestNumberText(t *testing.T) {
	for x, want := range map[float64]string{
		0: "0", math.Copysign(0, -1): "0", 60: "60", 1e-6: "0.000001", 1e-7: "1e-7", 1e20: "100000000000000000000", 1e21: "1e+21",
		123456789e15: "1.23456789e+23", -1.5e-10: "-1.5e-10", 0.30000000000000004: "0.30000000000000004", math.MaxFloat64: "1.7976931348623157e+308",
		math.SmallestNonzeroFloat64: "5e-324", 9007199254740993: "9007199254740992", math.Inf(1): "null",
	} {
		if got := numberText(x); got != want {
			t.Errorf("%g is written %s, want %s", x, got, want)
		}
	}
	r := rand.New(rand.NewPCG(4, 1))
	for range 5000 {
		x := math.Float64frombits(r.Uint64())
		if x-x != 0 {
			continue
		}
		want, err := json.Marshal(x)
		if err != nil {
			t.Fatal(err)
		}
		if got := numberText(x); got != string(want) {
			t.Fatalf("%g is written %s, want %s", x, got, want)
		}
		if back, err := number(numberText(x)); err != nil || back != x {
			t.Fatalf("%s reads back as %v, %v", numberText(x), back, err)
		}
	}
}

func TestCanonicalText(t *testing.T) {
	for text, want := range map[string]string{
		"a\"\\/<>&": `"a\"\\/<>&"`, "\b\f\n\r\t": `"\b\f\n\r\t"`, "\x00\x1f\x7f": "\"\\u0000\\u001f\x7f\"", "é\u2028🚀": "\"é\u2028🚀\"",
	} {
		if got := jsonText(text); got != want {
			t.Errorf("%q is written %s, want %s", text, got, want)
		}
	}
	if err := quick.Check(func(text string) bool {
		text = strings.ToValidUTF8(text, "")
		var back string
		return json.Unmarshal([]byte(jsonText(text)), &back) == nil && back == text
	}, &quick.Config{MaxCount: 500}); err != nil {
		t.Error(err)
	}
}

// TestCanonicalKeys: U+FB33 comes after U+1F600, whose UTF-16 form begins with
// a surrogate, as RFC 8785 has it in its example.
func TestCanonicalKeys(t *testing.T) {
	m := map[string]any{"\u20ac": nil, "\r": nil, "\ufb33": nil, "1": nil, "\U0001f600": nil, "\u0080": nil, "\u00f6": nil}
	want := "{\"\\r\":null,\"1\":null,\"\u0080\":null,\"\u00f6\":null,\"\u20ac\":null,\"\U0001f600\":null,\"\ufb33\":null}"
	if got := jsonText(m); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
