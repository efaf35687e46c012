package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/mapmatched/mmplug/internal/disk"
	"github.com/mapmatched/mmplug/mapmatched"
)

// place is where an index lives, with the names beside it that writing uses.
// All are absolute.
type place struct {
	parent string
	dir    string // the index
	fresh  string // a new index being written
	aside  string // the old index while the new one takes its place
	lock   string // held by the writer
}

// locate returns the place of an index. Symbolic links in dir are followed, so
// that replacing never replaces a link.
func locate(dir string) (place, error) {
	if dir == "" {
		return place{}, errors.New("no directory given")
	}
	path, err := filepath.Abs(dir)
	if err != nil {
		return place{}, fmt.Errorf("%s: %w", dir, err)
	}
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		path = resolved
	} else if info, lerr := os.Lstat(path); lerr == nil && info.Mode()&fs.ModeSymlink != 0 {
		return place{}, fmt.Errorf("%s is a symbolic link that leads nowhere: %w", dir, err)
	}
	parent, base := filepath.Dir(path), filepath.Base(path)
	beside := func(what string) string { return filepath.Join(parent, "."+base+".mmplug-"+what) }
	return place{parent, path, beside("new"), beside("old"), beside("lock")}, nil
}

// current returns where the index is now: in its directory or, when a writer
// was killed between moving the old index aside and moving the new one in,
// aside.
func (p place) current() (path string, info fs.FileInfo, err error) {
	if info, err = os.Stat(p.dir); errors.Is(err, fs.ErrNotExist) {
		if old, aerr := os.Stat(p.aside); aerr == nil {
			return p.aside, old, nil
		}
	}
	return p.dir, info, err
}

// takeLock takes the writer's lock without waiting and returns what gives it back.
func (p place) takeLock() (unlock func(), err error) {
	unlock, err = disk.Lock(p.lock)
	switch {
	case errors.Is(err, disk.ErrHeld):
		return nil, fmt.Errorf("%w (it holds %s): wait for it or, if there is none, remove that file", errBusy, p.lock)
	case err != nil:
		return nil, fmt.Errorf("cannot lock %s: %w", p.dir, err)
	}
	return unlock, nil
}

// restore clears what a killed writer left. The caller holds the lock.
func (p place) restore() error {
	if err := removeIndex(p.fresh); err != nil {
		return err
	}
	if _, err := os.Lstat(p.dir); errors.Is(err, fs.ErrNotExist) {
		if err := os.Rename(p.aside, p.dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("cannot put the old index back: %w", err)
		}
		return nil
	}
	return removeIndex(p.aside)
}

// removeIndex removes a directory with files of an index and nothing else, the
// manifest first so that a rest is never taken for an index. A directory that
// is not there is fine; anything else in it is refused before the first file
// is removed.
func removeIndex(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if name := foreign(entries); name != "" {
		return fmt.Errorf("%s holds %q, which is not part of an index: move it away", dir, name)
	}
	for _, name := range append([]string{manifestName}, dataNames...) {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return os.Remove(dir)
}

// foreign returns the name of an entry that no index has, "" when there is none.
func foreign(entries []fs.DirEntry) string {
	for _, e := range entries {
		if !e.Type().IsRegular() || e.Name() != manifestName && !slices.Contains(dataNames, e.Name()) {
			return e.Name()
		}
	}
	return ""
}

// checkTarget refuses to replace what is not an index of ours. The second
// result says whether there is an index to replace.
func (p place) checkTarget() (replaces bool, err error) {
	info, err := os.Stat(p.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if !info.IsDir() {
		return false, fmt.Errorf("%s exists and is not a directory: give another one", p.dir)
	}
	entries, err := os.ReadDir(p.dir)
	if err != nil {
		return false, err
	}
	if len(entries) == 0 {
		return false, nil
	}
	if name := foreign(entries); name != "" {
		return false, fmt.Errorf("%s is not replaced because it holds %q, which is not part of an index: give another directory", p.dir, name)
	}
	data, err := os.ReadFile(filepath.Join(p.dir, manifestName))
	if errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("%s is not replaced because it is not a whole index: it has no %s: remove it or give another directory", p.dir, manifestName)
	}
	if err != nil {
		return false, err
	}
	if _, err := ParseManifest(data); err != nil && !errors.Is(err, mapmatched.ErrStaleIndex) {
		return false, fmt.Errorf("%s is not replaced because it is not a whole index: %s %w: remove it or give another directory", p.dir, manifestName, err)
	}
	return true, nil
}

// checkParent refuses a target whose parent directory is not there.
func (p place) checkParent() error {
	info, err := os.Stat(p.parent)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the directory %s does not exist: create it first: %w", p.parent, fs.ErrNotExist)
	}
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a directory", p.parent)
	}
	return nil
}

// install puts the fresh index in its place. A process killed inside leaves the
// old index, the new one, or both with the old one aside.
func (p place) install(replaces bool, exchange func(a, b string) error) error {
	if !replaces {
		if err := os.Remove(p.dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err // only an empty directory can be removed
		}
		if err := os.Rename(p.fresh, p.dir); err != nil {
			return err
		}
		return disk.SyncDir(p.parent)
	}
	if exchange(p.fresh, p.dir) != nil {
		if err := os.Rename(p.dir, p.aside); err != nil {
			return err
		}
		if err := os.Rename(p.fresh, p.dir); err != nil {
			_ = os.Rename(p.aside, p.dir) // Open and the next Write find it aside if this fails
			return err
		}
	}
	if err := disk.SyncDir(p.parent); err != nil {
		return err
	}
	// The new index is in place; what cannot be removed now, the next Write
	// removes.
	_ = removeIndex(p.fresh)
	_ = removeIndex(p.aside)
	return nil
}
