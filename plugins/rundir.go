package plugins

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/mapmatched/mmplug/internal/disk"
	"github.com/mapmatched/mmplug/mapmatched"
)

// A run directory is the working directory of one plugin process and has its
// socket. Its lock is held by the host, so that a later host can tell that
// this one is gone and remove what it left.
const (
	runPrefix = "mmp-"
	runLock   = ".host"
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
}

// newRunDir makes a run directory in dir.
func newRunDir(dir string) (*runDir, error) {
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
				return &runDir{path, unlock}, nil
			}
			_ = os.RemoveAll(path) // nothing is in it yet
		}
		// The name may be taken, or another host that sweeps may have taken the
		// directory for left over while it had no lock.
		if attempt == 20 {
			return nil, fmt.Errorf("the run directory: %w", err)
		}
	}
}

// remove removes the directory and what the plugin left in it.
func (d *runDir) remove() {
	d.unlock()
	_ = os.RemoveAll(d.path) // what cannot be removed now is swept later
}

// removeSocket removes the socket once it is connected. Paths that lead out of
// the run directory are left alone.
func (d *runDir) removeSocket(path string) {
	if filepath.Dir(path) == d.path {
		_ = os.Remove(path) // it goes with the directory in any case
	}
}

// sweepAge is how old a run directory without a lock is when it counts as left
// over: a new one is without for a moment.
const sweepAge = time.Minute

// sweep removes the run directories of hosts that are gone. It is a courtesy:
// what it cannot look at or remove it leaves.
func sweep(dir string) {
	paths, err := filepath.Glob(filepath.Join(escapeGlob(dir), runPrefix+"??????"))
	if err != nil {
		return
	}
	for _, path := range paths {
		info, err := os.Lstat(path)
		if err != nil || !info.IsDir() || !isOwn(info) {
			continue
		}
		lock := filepath.Join(path, runLock)
		if _, err := os.Lstat(lock); err != nil && time.Since(info.ModTime()) < sweepAge {
			continue
		}
		unlock, err := disk.Lock(lock)
		if err != nil {
			continue // its host is alive
		}
		_ = os.RemoveAll(path)
		unlock()
	}
}

// escapeGlob makes a path that stands for itself in a pattern.
func escapeGlob(path string) string {
	return strings.NewReplacer(`*`, `\*`, `?`, `\?`, `[`, `\[`, `\`, `\\`).Replace(path)
}
