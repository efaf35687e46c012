package policy

import (
	"bytes"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"
)

var updateBuiltin = flag.Bool("update-builtin", false, "write the built-in policy files anew")

func TestBuiltinPlain(t *testing.T) {
	want := Default()
	want.Name, want.Description = Plain, "the pure decoder: every section at its default"
	file, err := commented(want)
	if err != nil {
		t.Fatal(err)
	}
	const path = "builtin/plain.policy.yaml"
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
		t.Errorf("%s is not the commented form of the defaults: run go test -update-builtin", path)
	}
	p, err := Builtin(Plain)
	if err != nil {
		t.Fatal(err)
	}
	if p.Digest() != want.Digest() || p.Name != Plain || p.Frozen() {
		t.Errorf("name %q, digest %s, frozen %t; want %q, %s and not frozen", p.Name, p.Digest(), p.Frozen(), Plain, want.Digest())
	}
	if names := Builtins(); !slices.Contains(names, Plain) || !slices.IsSorted(names) {
		t.Errorf("built-in policies %v", names)
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
