//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package main

import (
	"errors"
	"fmt"
	"os"
)

// lockFile creates the lock at path and returns what removes it; errHeld says
// that it is there already. A process that is killed leaves it behind.
func lockFile(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o666)
	if errors.Is(err, os.ErrExist) {
		return nil, fmt.Errorf("%w; if there is none, remove %s", errHeld, path)
	}
	if err != nil {
		return nil, err
	}
	return func() {
		f.Close()       //nolint:errcheck // nothing was written
		os.Remove(path) //nolint:errcheck // the next one is told to
	}, nil
}
