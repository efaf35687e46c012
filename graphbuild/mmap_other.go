//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package graphbuild

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// mapFile reads size bytes of a file: the form of a memory map for systems on
// which this package does not make one.
func mapFile(f *os.File, size int) ([]byte, error) {
	b := make([]byte, size)
	_, err := io.ReadFull(f, b)
	return b, err
}

// unmapFile undoes mapFile.
func unmapFile([]byte) error { return nil }

// lockFile makes a writer's lock file and returns what removes it. A process
// that is killed leaves it.
func lockFile(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o644)
	if errors.Is(err, os.ErrExist) {
		return nil, fmt.Errorf("%s: %w", path, errBusy)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot create the lock file: %w", err)
	}
	return func() {
		_ = f.Close()
		_ = os.Remove(path)
	}, nil
}

// syncDir makes the names in a directory durable, which these systems do by
// themselves.
func syncDir(string) error { return nil }
