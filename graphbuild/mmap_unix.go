//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package graphbuild

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// mapFile maps size bytes of a file, size above 0, for reading.
func mapFile(f *os.File, size int) ([]byte, error) {
	return unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ, unix.MAP_SHARED)
}

// unmapFile undoes mapFile.
func unmapFile(b []byte) error { return unix.Munmap(b) }

// lockFile takes a writer's lock without waiting and returns what gives it
// back. The system gives it back when the process dies.
func lockFile(path string) (unlock func(), err error) {
	for {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
		if err != nil {
			return nil, fmt.Errorf("cannot create the lock file: %w", err)
		}
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = errBusy
		}
		var held, named os.FileInfo
		if err == nil {
			held, err = f.Stat()
		}
		if err == nil {
			named, err = os.Stat(path)
		}
		if err == nil && os.SameFile(held, named) {
			return func() {
				_ = os.Remove(path)
				_ = f.Close()
			}, nil
		}
		_ = f.Close()
		// Without an error, or when the name is gone, the lock is on a file that
		// a writer who ended meanwhile removed: try again.
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
}

// syncDir makes the names in a directory durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	return errors.Join(err, d.Close())
}
