//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package embedded

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// lock takes the writer's lock at path without waiting and returns what gives
// it back. The system gives it back when the process dies.
func lock(path string) (unlock func(), err error) {
	for {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
		if err != nil {
			return nil, fmt.Errorf("cannot create the lock file: %w", err)
		}
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err != nil {
			_ = f.Close()
			if errors.Is(err, unix.EWOULDBLOCK) {
				return nil, errLocked(path)
			}
			return nil, fmt.Errorf("cannot lock %s: %w", path, err)
		}
		// A writer that just ended may have removed the file between our open
		// and our lock; a lock on a removed file keeps nobody out.
		held, err := f.Stat()
		if err == nil {
			var named os.FileInfo
			if named, err = os.Stat(path); err == nil && os.SameFile(held, named) {
				return func() {
					_ = os.Remove(path)
					_ = f.Close()
				}, nil
			}
		}
		_ = f.Close()
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("cannot lock %s: %w", path, err)
		}
	}
}
