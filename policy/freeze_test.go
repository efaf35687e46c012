package policy

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mapmatched/mmplug/mapmatched"
)

const evidence = "0a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8f9"

// write writes a file below a directory of the test and returns its path.
func write(t testing.TB, name, data string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(data), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func read(t testing.TB, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestFreeze(t *testing.T) {
	for _, format := range formats {
		t.Run(string(format), func(t *testing.T) {
			source := fusionFile(format, "0.6", "60")
			path := write(t, source.Path, string(source.Data))
			before, err := Load(path)
			if err != nil {
				t.Fatal(err)
			}
			frozen, err := Freeze(path, "", evidence)
			if err != nil {
				t.Fatal(err)
			}
			p, err := Load(path)
			if err != nil {
				t.Fatal(err)
			}
			if !p.Frozen() || p.Evidence != evidence || p.StatedDigest != before.Digest() || p.Digest() != before.Digest() || frozen.Digest() != before.Digest() || p.Name != "t" {
				t.Errorf("%+v", p)
			}
			text := read(t, path)
			for _, path := range knownPaths() {
				key := lastKey(path)
				if !nullable(at(p, path).Type()) && path != "description" && !strings.Contains(text, key) {
					t.Errorf("%s is not explicit", path)
				}
			}
			if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
				t.Errorf("left behind: %v, %v", entries, err)
			}

			if _, err := Freeze(path, "", evidence); !errors.Is(err, mapmatched.ErrPolicyFrozen) {
				t.Errorf("frozen again: %v", err)
			}
			if read(t, path) != text {
				t.Error("freezing again changed the file")
			}
		})
	}
}

func TestFreezeElsewhere(t *testing.T) {
	path := write(t, "t.yaml", yamlHead)
	out := filepath.Join(filepath.Dir(path), "frozen.toml")
	p, err := Freeze(path, out, evidence)
	if err != nil {
		t.Fatal(err)
	}
	if read(t, path) != yamlHead {
		t.Error("the source changed")
	}
	q, err := Load(out)
	if err != nil || q.Digest() != p.Digest() || !q.Frozen() {
		t.Errorf("%v, %v", q, err)
	}
	if _, err := Freeze(path, out, evidence); err == nil || !strings.Contains(err.Error(), "is there already") {
		t.Errorf("over another file: %v", err)
	}
	if _, err := Freeze(path, filepath.Join(filepath.Dir(path), "frozen.ini"), evidence); err == nil || !strings.Contains(err.Error(), "ends in .yaml") {
		t.Errorf("to an unknown format: %v", err)
	}
}

func TestFreezeThroughLink(t *testing.T) {
	path := write(t, "t.yaml", yamlHead)
	link := filepath.Join(t.TempDir(), "link.yaml")
	if err := os.Symlink(path, link); err != nil {
		t.Skip("no symbolic links here:", err)
	}
	if _, err := Freeze(link, "", evidence); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is no longer one: %v", err)
	}
	if p, err := Load(path); err != nil || !p.Frozen() {
		t.Errorf("the file behind the link is not frozen: %v", err)
	}
}

func TestFreezeNeedsEvidence(t *testing.T) {
	path := write(t, "t.yaml", yamlHead)
	for _, bad := range []string{"", "yes", strings.ToUpper(evidence), evidence[1:]} {
		if _, err := Freeze(path, "", bad); err == nil || !strings.Contains(err.Error(), "is no SHA-256") {
			t.Errorf("evidence %q: %v", bad, err)
		}
	}
	if _, err := Freeze(write(t, "bad.yaml", "name: t\n"), "", evidence); err == nil {
		t.Error("a faulty policy was frozen")
	}
	report := write(t, "report.json", "abc")
	if sum, err := EvidenceOf(report); err != nil || sum != "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" {
		t.Errorf("evidence of a report: %s, %v", sum, err)
	}
	if _, err := EvidenceOf(write(t, "empty.json", "")); err == nil || !strings.Contains(err.Error(), "is empty") {
		t.Errorf("an empty report: %v", err)
	}
	if _, err := EvidenceOf(report + ".none"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no report: %v", err)
	}
	if read(t, path) != yamlHead {
		t.Error("a refused freeze changed the file")
	}
}

// TestFrozenFileChanged: every change of a frozen file that reaches a result is
// refused, whatever it is.
func TestFrozenFileChanged(t *testing.T) {
	path := write(t, "t.yaml", yamlHead)
	p, err := Freeze(path, "", evidence)
	if err != nil {
		t.Fatal(err)
	}
	text := read(t, path)
	changes := 0
	for _, line := range strings.SplitAfter(text, "\n") {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		if value == "" || key == "name" || key == "evidence" {
			continue
		}
		if key == "schema" {
			continue // another schema is refused before anything else
		}
		other := "7"
		switch value {
		case "true":
			other = "false"
		case "false":
			other = "true"
		}
		changed := strings.Replace(text, line, strings.Replace(line, ": "+value, ": "+other, 1), 1)
		if changed == text {
			t.Fatalf("%q could not be changed", line)
		}
		_, err := Parse(Source{"t.yaml", []byte(changed)})
		if !errors.Is(err, mapmatched.ErrPolicyFrozen) {
			t.Errorf("%s is %s: %v", key, other, err)
		}
		changes++
	}
	if changes < 70 {
		t.Errorf("only %d changes were tried", changes)
	}
	for cut := range strings.SplitAfterSeq(text, "\n") {
		if rest := strings.Replace(text, cut, "", 1); strings.Contains(cut, "evidence") || rest == text {
			continue
		} else if q, err := Parse(Source{"t.yaml", []byte(rest)}); err == nil && q.Digest() != p.Digest() {
			t.Errorf("without %q another policy loads", cut)
		}
	}
	// Cut anywhere behind evidence, it does not load as another policy.
	for n := strings.Index(text, "decode:"); n < len(text); n += 61 {
		if q, err := Parse(Source{"t.yaml", []byte(text[:n])}); err == nil && q.Digest() != p.Digest() {
			t.Errorf("cut to %d bytes another policy loads", n)
		}
	}

	changed := strings.Replace(text, "transition_weight: 1", "transition_weight: 0.5", 1)
	_, err = Parse(Source{"t.yaml", []byte(changed)})
	p.Decode.TransitionWeight = 0.5
	want := fmt.Sprintf("t.yaml:3: policy is frozen: it was frozen with the digest %s, its content now has %s: restore the file, or change a copy without digest and evidence", p.StatedDigest, p.Digest())
	if err == nil || err.Error() != want {
		t.Errorf("%v\nwant %s", err, want)
	}
	if err := p.Validate(); !errors.Is(err, mapmatched.ErrPolicyFrozen) {
		t.Errorf("a frozen policy changed in memory: %v", err)
	}
	if _, err := p.Config(); !errors.Is(err, mapmatched.ErrPolicyFrozen) {
		t.Errorf("a configuration of it: %v", err)
	}
	// The name is not what was frozen.
	if _, err := Parse(Source{"t.yaml", bytes.Replace([]byte(text), []byte("name: t"), []byte("name: u"), 1)}); err != nil {
		t.Errorf("renamed: %v", err)
	}
}
