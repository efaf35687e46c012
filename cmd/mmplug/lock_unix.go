//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package main

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// lockFile takes the lock at path without waiting and returns what gives it
// back; errHeld says that another process has it. The system gives it back
// when the process dies.
func lockFile(path string) (unlock func(), err error) {
	for {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o666)
		if err != nil {
			return nil, err
		}
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil && isStill(path, f) {
			return func() {
				os.Remove(path) //nolint:errcheck // an empty file that holds nobody up
				f.Close()       //nolint:errcheck // nothing was written
			}, nil
		}
		f.Close() //nolint:errcheck // nothing was written
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, errHeld
		}
		if err != nil {
			return nil, err
		}
	}
}

// isStill reports whether path still names the open file f. A holder removes
// the file when it ends, and a lock on a removed file keeps nobody out.
func isStill(path string, f *os.File) bool {
	held, err := f.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(path)
	return err == nil && os.SameFile(held, named)
}
