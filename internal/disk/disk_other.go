//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package disk

import (
	"errors"
	"io"
	"os"
)

// Map reads the first size bytes of a file: the form of a memory map for
// systems on which this package makes none.
func Map(f *os.File, size int) ([]byte, error) {
	b := make([]byte, size)
	_, err := io.ReadFull(f, b)
	return b, err
}

// Unmap undoes Map.
func Unmap([]byte) error { return nil }

// Lock creates the lock at path and returns what removes it: ErrHeld when it
// is there already. A process that is killed leaves it behind.
func Lock(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o666)
	if errors.Is(err, os.ErrExist) {
		return nil, ErrHeld
	}
	if err != nil {
		return nil, err
	}
	return func() {
		_ = f.Close()
		_ = os.Remove(path)
	}, nil
}

// SyncDir makes the names in a directory durable, which these systems do by
// themselves.
func SyncDir(string) error { return nil }
