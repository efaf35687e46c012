// Package disk is what the stores on disk share: files mapped into memory,
// locks that die with their holder, and names that survive a crash.
package disk

import (
	"errors"
	"os"
)

// ErrHeld says that another process holds a lock.
var ErrHeld = errors.New("another process holds the lock")

// isStill reports whether path still names the open file f. A holder removes
// its file when it ends, and a lock on a removed file keeps nobody out.
func isStill(path string, f *os.File) (bool, error) {
	held, err := f.Stat()
	if err != nil {
		return false, err
	}
	named, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(held, named), err
}
