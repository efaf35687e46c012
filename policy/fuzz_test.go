package policy

import (
	"strings"
	"testing"
)

// fuzzFormat feeds one parser. What loads has the same digest after being
// written in every format.
func fuzzFormat(f *testing.F, format Format) {
	p := Default()
	p.Name = "t"
	whole, err := p.Encode(format)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add(fusionFile(format, "0.6", "6e1").Data)
	f.Add(rerankFile(format, "8.9").Data)
	for _, seed := range []string{
		"", "\ufeff", "{", "[[plugins]]\nname='x'", "a: &a [*a]", "a: b\n---\nc: d\n", "{\"a\":1,\"a\":2}", "a.b.c = {d = [1, {e = nan}]}",
		"<<: {a: 1}", "? [x]\n: y", "!!binary x: |\n  y", "a = 1979-05-27T07:32:00Z", strings.Repeat("[", 300), strings.Repeat("- ", 50), "\"\\ud800\"",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := Parse(Source{"t." + string(format), data})
		if err != nil {
			if p != nil || err.Error() == "" || strings.ContainsAny(err.Error(), "\x00\x1b") {
				t.Fatalf("policy %t, error %q", p != nil, err)
			}
			return
		}
		for _, other := range formats {
			written, err := p.Encode(other)
			if err != nil {
				t.Fatal(err)
			}
			q, err := Parse(Source{"t." + string(other), written})
			if err != nil {
				t.Fatalf("as %s: %v\n%s", other, err, written)
			}
			if q.Digest() != p.Digest() || q.Name != p.Name || q.Description != p.Description {
				t.Fatalf("as %s it is another policy: %v\n%s", other, Diff(p, q), written)
			}
		}
	})
}

func FuzzParseYAML(f *testing.F) { fuzzFormat(f, YAML) }
func FuzzParseJSON(f *testing.F) { fuzzFormat(f, JSON) }
func FuzzParseTOML(f *testing.F) { fuzzFormat(f, TOML) }
