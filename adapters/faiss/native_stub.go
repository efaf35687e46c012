//go:build !faiss || !cgo

package faiss

// nativeLinked says whether libfaiss is part of this program.
const nativeLinked = false

// nativeHint says how to read what the Go code cannot.
const nativeHint = "build with cgo, libfaiss and -tags faiss to have FAISS read it"

// openNative explains how to have libfaiss.
func openNative(string, header, IndexOptions) (pathSetter, error) {
	return nil, unsupported("libfaiss is not part of this program; %s", nativeHint)
}
