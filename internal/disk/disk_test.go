package disk

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
)

func TestMap(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, []byte("roads and chunks"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	b, err := Map(f, 5)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil { // the map outlives the file
		t.Fatal(err)
	}
	if string(b) != "roads" {
		t.Errorf("mapped %q", b)
	}
	if err := Unmap(b); err != nil {
		t.Error(err)
	}
}

func TestLockKeepsOthersOut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := Lock(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Lock(path); !errors.Is(err, ErrHeld) {
		t.Errorf("second lock: %v, want ErrHeld", err)
	}
	unlock()
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the lock file is left: %v", err)
	}
	again, err := Lock(path)
	if err != nil {
		t.Fatal(err)
	}
	again()
	if _, err := Lock(filepath.Join(path, "none", "lock")); err == nil || errors.Is(err, ErrHeld) {
		t.Errorf("lock in no directory: %v", err)
	}
}

// Many take turns; never are two inside, although each removes the file.
func TestLockIsExclusive(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	var inside, entered atomic.Int32
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for entered.Load() < 200 {
				unlock, err := Lock(path)
				if errors.Is(err, ErrHeld) {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				if inside.Add(1) != 1 {
					t.Error("two hold the lock")
				}
				entered.Add(1)
				inside.Add(-1)
				unlock()
			}
		})
	}
	group.Wait()
}

func TestSyncDir(t *testing.T) {
	dir := t.TempDir()
	if err := SyncDir(dir); err != nil {
		t.Error(err)
	}
}
