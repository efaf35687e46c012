//go:build !faiss || !cgo

package faiss

// nativeLinked says whether libfaiss is part of this program.
const nativeLinked = false

// openNative explains how to have libfaiss.
func openNative(string, IndexOptions) (pathSetter, error) {
	return nil, unsupported("libfaiss is not part of this program; %s", nativeHint)
}
