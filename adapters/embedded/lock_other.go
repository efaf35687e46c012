//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package embedded

import (
	"errors"
	"fmt"
	"os"
)

// lock creates the writer's lock file at path and returns what removes it. A
// process that is killed leaves it; the error says to remove it then.
func lock(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o644)
	if errors.Is(err, os.ErrExist) {
		return nil, errLocked(path)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot create the lock file: %w", err)
	}
	return func() {
		_ = f.Close()
		_ = os.Remove(path)
	}, nil
}
