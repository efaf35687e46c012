//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package faiss

import (
	"os"

	"golang.org/x/sys/unix"
)

// mapFile maps size bytes of a file, size above 0, for reading.
func mapFile(f *os.File, size int) ([]byte, error) {
	return unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ, unix.MAP_SHARED)
}

// unmapFile undoes mapFile. Unmapping a region that was mapped cannot fail.
func unmapFile(b []byte) { _ = unix.Munmap(b) }
