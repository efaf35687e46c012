package policy

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/mapmatched/mmplug/mapmatched"
)

func TestLock(t *testing.T) {
	file := string(fusionFile(YAML, "0.6", "60").Data)
	for _, c := range []struct {
		name  string
		now   string // the file now, "" for removed
		how   string // what Check says, "" for nothing
		found bool   // whether the file gives a policy now
	}{
		{"untouched", file, "", true},
		{"comment added", file + "# seen\n", "", true},
		{"renamed policy", strings.Replace(file, "name: t", "name: u", 1), "", true},
		{"rewritten", strings.Replace(file, "k: 60", "k: 61", 1), "was rewritten and has the digest ", true},
		{"cut", file[:60], "was cut from ", false},
		{"cut to another policy", file[:len(yamlHead)], "was cut from ", true},
		{"emptied", "\n", "was rewritten, or is half written, and is no policy now (", false},
		{"half written", strings.Replace(file, "k: 60\n", "", 1), "was rewritten, or is half written, and is no policy now (", false},
		{"removed", "", "was removed", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := write(t, "t.yaml", file)
			l, err := NewLock(path)
			if err != nil {
				t.Fatal(err)
			}
			digest := l.Digest()
			if c.now == "" {
				err = os.Remove(path)
			} else {
				err = os.WriteFile(path, []byte(c.now), 0o644)
			}
			if err != nil {
				t.Fatal(err)
			}
			err = l.Check()
			if l.Policy().Digest() != digest || l.Policy().Fusion.K != 60 {
				t.Fatal("the change was adopted")
			}
			if c.how == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			var changed *ChangedError
			if !errors.As(err, &changed) || !errors.Is(err, ErrChanged) {
				t.Fatalf("%v, want it to say that it %s", err, c.how)
			}
			if changed.Path != path || !strings.HasPrefix(changed.How, c.how) || changed.Locked != digest || (changed.Found != "") != c.found || changed.Found == digest {
				t.Errorf("%+v", changed)
			}
			if !strings.Contains(err.Error(), digest+" stays in force") {
				t.Error(err)
			}
			// Once the file is as it was, all is well again.
			if err := os.WriteFile(path, []byte(file), 0o644); err != nil {
				t.Fatal(err)
			}
			if err := l.Check(); err != nil {
				t.Errorf("restored: %v", err)
			}
		})
	}
}

func TestLockSeveralFiles(t *testing.T) {
	a, b := write(t, "a.yaml", yamlHead), write(t, "b.json", `{"schema": "mmplug.policy/1", "context": {"radius": 2}}`)
	l, err := NewLock(a, b)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Check(); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(b, []byte(`{"schema": "mmplug.policy/1", "context": {"radius": 3}}`), 0o644); err != nil {
		t.Fatal(err)
	}
	var changed *ChangedError
	if err := l.Check(); !errors.As(err, &changed) || changed.Path != b {
		t.Errorf("%v", err)
	}
	if err := os.Remove(b); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(b, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := l.Check(); !errors.As(err, &changed) || !strings.Contains(changed.How, "cannot be read any more") {
		t.Errorf("%v", err)
	}
	if _, err := NewLock(filepath.Join(t.TempDir(), "none.yaml")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
	if _, err := NewLock(write(t, "c.yaml", "name: t\n")); err == nil {
		t.Error("a faulty policy was locked")
	}
}

func TestLockOfFrozenPolicy(t *testing.T) {
	path := write(t, "t.yaml", yamlHead)
	if _, err := Freeze(path, "", evidence); err != nil {
		t.Fatal(err)
	}
	l, err := NewLock(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(read(t, path), "k: 60", "k: 61", 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := l.Check(); !errors.Is(err, ErrChanged) || !errors.Is(err, mapmatched.ErrPolicyFrozen) {
		t.Errorf("%v", err)
	}
}

func TestLockConcurrently(t *testing.T) {
	path := write(t, "t.yaml", yamlHead)
	l, err := NewLock(path)
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 20 {
				if err := l.Check(); err != nil || l.Policy().Name != "t" {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
}
