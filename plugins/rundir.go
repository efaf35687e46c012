package plugins

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/mapmatched/mmplug/internal/disk"
	"github.com/mapmatched/mmplug/mapmatched"
)

// A run directory is the working directory of one plugin process and has its
// socket. Its lock is held by the host, so that a later host can tell that
// this one is gone and remove what it left. The marker, written once the lock
// is held, tells it from directories that only have such a name.
const (
	runPrefix = "mmp-"
	runLock   = ".host"
	runMarker = ".mmplug-run"
	runMagic  = "run directory of an mmplug plugin, version 1\n"
)

// socketName is the longest name that a plugin gives its socket: go-plugin's
// "plugin" and up to ten digits, with a separator before it.
const socketName = len("/plugin4294967295")

// runName is how long the name of a run directory is, with a separator.
const runName = len("/" + runPrefix + "abcdef")

// checkTempDir expects a directory that leaves room for a socket in a run
// directory.
func checkTempDir(dir string) error {
	if limit := maxSocketPath - runName - socketName; len(dir) > limit {
		return fmt.Errorf("the path of the directory for sockets is too long: %s has %d bytes, the limit is %d; set TMPDIR or Options.TempDir to a shorter one",
			dir, len(dir), limit)
	}
	return nil
}

// runDir is a run directory in use.
type runDir struct {
	path   string
	unlock func()
	log    *slog.Logger
}

// newRunDir makes a run directory in dir.
func newRunDir(dir string, log *slog.Logger) (*runDir, error) {
	dir, err := filepath.Abs(dir) // the plugin is started in another one
	if err != nil {
		return nil, err
	}
	if err := checkTempDir(dir); err != nil {
		return nil, failAs(mapmatched.KindInvalid, "open", "", err)
	}
	sweep(dir)
	for attempt := 0; ; attempt++ {
		path := filepath.Join(dir, runPrefix+strings.ToLower(rand.Text()[:6]))
		err := os.Mkdir(path, 0o700)
		if err == nil {
			var unlock func()
			if unlock, err = disk.Lock(filepath.Join(path, runLock)); err == nil {
				if err = os.WriteFile(filepath.Join(path, runMarker), []byte(runMagic), 0o600); err == nil {
					return &runDir{path, unlock, log}, nil
				}
				unlock()
			}
			_ = os.RemoveAll(path) // nothing is in it yet
		}
		if attempt == 20 || !errors.Is(err, fs.ErrExist) { // the name may be taken
			return nil, fmt.Errorf("the run directory: %w", err)
		}
	}
}

// remove removes the directory and what the plugin left in it.
func (d *runDir) remove() {
	d.unlock()
	if err := removeAll(d.path); err != nil {
		d.log.Warn("the run directory of the plugin is left behind", "error", err)
	}
}

// removeAll removes a directory, also one with directories that nobody may
// look into.
func removeAll(path string) error {
	if os.RemoveAll(path) == nil {
		return nil
	}
	_ = filepath.WalkDir(path, func(at string, d fs.DirEntry, err error) error { // the removal tells what is left
		if err == nil && d.IsDir() {
			_ = os.Chmod(at, 0o700)
		}
		return nil
	})
	return os.RemoveAll(path)
}

// removeSocket removes the socket once it is connected. Paths that lead out of
// the run directory are left alone.
func (d *runDir) removeSocket(path string) {
	name, err := filepath.Rel(d.path, path)
	if err != nil {
		return
	}
	root, err := os.OpenRoot(d.path)
	if err != nil {
		return
	}
	defer func() { _ = root.Close() }() // only looked at
	if info, err := root.Lstat(name); err == nil && info.Mode().Type() == fs.ModeSocket {
		_ = root.Remove(name) // it goes with the directory in any case
	}
}

// sweep removes the run directories of hosts that are gone. It is a courtesy:
// what it cannot look at or remove it leaves, and what has no marker is not
// touched.
func sweep(dir string) {
	paths, err := filepath.Glob(filepath.Join(escapeGlob(dir), runPrefix+"??????"))
	if err != nil {
		return
	}
	for _, path := range paths {
		if info, err := os.Lstat(path); err != nil || !info.IsDir() || !isOwn(info) || !isMarked(path) {
			continue
		}
		unlock, err := disk.Lock(filepath.Join(path, runLock))
		if err != nil {
			continue // its host is alive
		}
		_ = removeAll(path)
		unlock()
	}
}

// isMarked reports whether a directory has the marker of a run directory.
func isMarked(dir string) bool {
	path := filepath.Join(dir, runMarker)
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() != int64(len(runMagic)) {
		return false
	}
	text, err := os.ReadFile(path)
	return err == nil && string(text) == runMagic
}

// escapeGlob makes a path that stands for itself in a pattern.
func escapeGlob(path string) string {
	return strings.NewReplacer(`*`, `\*`, `?`, `\?`, `[`, `\[`, `\`, `\\`).Replace(path)
}
