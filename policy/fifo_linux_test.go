package policy

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A pipe with nobody at its other end keeps nobody waiting.
func TestPipesAreRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.yaml")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	const want = "is not a regular file"
	if _, err := Load(path); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Load: %v", err)
	}
	if _, err := NewLock(path); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("NewLock: %v", err)
	}
	if _, err := Load(path, t.TempDir()+".yaml"); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("Load of two: %v", err)
	}
	if _, err := EvidenceOf(path); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("EvidenceOf: %v", err)
	}
	used := write(t, "used.yaml", string(fusionFile(YAML, "0.6", "60").Data))
	l, err := NewLock(used)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(used); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(used, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := l.Check(); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), l.Digest()) {
		t.Errorf("Check: %v", err)
	}
}
