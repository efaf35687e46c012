package policy

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"
)

var updateBuiltin = flag.Bool("update-builtin", false, "write the built-in policy files anew")

// evidenceOfBuiltin is the digest of the report that a built-in policy is frozen
// on.
func evidenceOfBuiltin(t *testing.T, name string) (evidence string, report []byte) {
	t.Helper()
	path := "../docs/reports/" + name + ".json"
	evidence, err := EvidenceOf(path)
	if err != nil {
		t.Fatal(err)
	}
	if report, err = os.ReadFile(path); err != nil {
		t.Fatal(err)
	}
	return evidence, report
}

// builtinIs holds the file of a built-in policy to the commented form of want.
func builtinIs(t *testing.T, want *Policy) {
	t.Helper()
	file, err := commented(want)
	if err != nil {
		t.Fatal(err)
	}
	path := "builtin/" + want.Name + builtinExtension
	if *updateBuiltin {
		if err := os.WriteFile(path, file, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	onDisk, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(onDisk, file) {
		t.Errorf("%s is not what it should be: run go test -update-builtin ./policy", path)
	}
	p, err := Builtin(want.Name)
	if err != nil {
		t.Fatal(err)
	}
	if p.Digest() != want.Digest() || p.Name != want.Name || !p.Frozen() || !slices.Contains(Builtins(), want.Name) {
		t.Errorf("name %q, digest %s, frozen %t; want %q, %s and frozen", p.Name, p.Digest(), p.Frozen(), want.Name, want.Digest())
	}
}

func TestBuiltinPlain(t *testing.T) {
	want := Default()
	want.Name, want.Description, want.StatedDigest = Plain, "the pure decoder: every section at its default", want.Digest()
	var report []byte
	want.Evidence, report = evidenceOfBuiltin(t, Plain)
	builtinIs(t, want)
	if !bytes.Contains(report, []byte(want.StatedDigest)) {
		t.Error("the report is of another policy")
	}
	if names := Builtins(); !slices.IsSorted(names) {
		t.Errorf("built-in policies %v", names)
	}
}

// TestBuiltinConversational: the policy is that of its report, frozen on it.
func TestBuiltinConversational(t *testing.T) {
	want, err := Builtin(Conversational)
	if err != nil {
		t.Fatal(err)
	}
	evidence, raw := evidenceOfBuiltin(t, Conversational)
	if want.Evidence != evidence {
		t.Errorf("frozen on %s, the report has %s", want.Evidence, evidence)
	}
	builtinIs(t, want)
	var report struct {
		Policy  struct{ Name, Digest string }
		Refused []string
	}
	if err := json.Unmarshal(raw, &report); err != nil {
		t.Fatal(err)
	}
	if report.Policy.Name != Conversational || report.Policy.Digest != want.Digest() || len(report.Refused) > 0 {
		t.Errorf("the report is of %+v, refused %q", report.Policy, report.Refused)
	}
}

func TestOpen(t *testing.T) {
	p, err := Open("plain")
	if err != nil || p.Name != Plain {
		t.Fatalf("plain: %v", err)
	}
	q, err := Open("builtin/plain.policy.yaml")
	if err != nil || q.Digest() != p.Digest() {
		t.Errorf("the file of plain: %v", err)
	}
	for name, want := range map[string]string{
		"plian":          `did you mean "plain"?`,
		"unheard":        "there are ",
		"./plain":        "ends in .yaml, .json or .toml",
		"no.policy.yaml": "no such file",
	} {
		if _, err := Open(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
}

func TestTemplate(t *testing.T) {
	data, err := Template("team")
	if err != nil {
		t.Fatal(err)
	}
	p, err := Parse(Source{"team.policy.yaml", data})
	if err != nil {
		t.Fatal(err)
	}
	if p.Name != "team" || p.Digest() != Default().Digest() {
		t.Errorf("name %q, digest %s", p.Name, p.Digest())
	}
	if comments := strings.Count(string(data), "#"); comments < len(knownPaths())-10 {
		t.Errorf("%d comments for %d keys", comments, len(knownPaths()))
	}
	if _, err := Template("two words"); err == nil || !strings.Contains(err.Error(), "name is") {
		t.Errorf("a name with a space: %v", err)
	}
}
