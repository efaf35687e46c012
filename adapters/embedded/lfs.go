package embedded

import (
	"bytes"
	"errors"
)

var errLFSPointer = errors.New("is a Git LFS pointer, not the file itself: fetch it with git lfs pull")

// isLFSPointer reports whether a file is what Git leaves in place of a large
// file that was not downloaded.
func isLFSPointer(data []byte) bool {
	return bytes.HasPrefix(data, []byte("version https://git-lfs.github.com/spec/"))
}
