//go:build amd64 || arm64

package faiss

import "unsafe"

// floats returns the numbers that b holds in little-endian order. It looks at b
// itself: these machines are little-endian and load numbers from any address.
func floats(b []byte) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/4)
}
