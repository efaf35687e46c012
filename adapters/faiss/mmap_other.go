//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package faiss

import (
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
func unmapFile([]byte) {}
