//go:build !(amd64 || arm64)

package faiss

import (
	"encoding/binary"
	"math"
)

// floats returns a copy of the numbers that b holds in little-endian order:
// those of an index lie at odd addresses, from which not every machine loads.
func floats(b []byte) []float32 {
	out := make([]float32, len(b)/4)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[i*4:]))
	}
	return out
}
