package graphbuild

import (
	"encoding/binary"
	"math"
	"unsafe"

	"github.com/mapmatched/mmplug/mapmatched"
)

// littleEndian says that memory holds numbers in the order of a graph file.
var littleEndian = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

// aligned reports whether b may be looked at as an array of T.
func aligned[T any](b []byte) bool {
	var zero T
	return littleEndian && uintptr(unsafe.Pointer(unsafe.SliceData(b)))%unsafe.Alignof(zero) == 0
}

// elements returns the elements of T that b holds, of which each takes as many
// bytes in the file as in memory. Where memory has the file's order it looks at
// b itself, else it decodes a copy with one. The length of b is a multiple of
// the size of T.
func elements[T any](b []byte, one func([]byte) T) []T {
	var zero T
	size := int(unsafe.Sizeof(zero))
	if aligned[T](b) {
		return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/size)
	}
	out := make([]T, len(b)/size)
	for i := range out {
		out[i] = one(b[i*size:])
	}
	return out
}

func viewUint32(b []byte) []uint32 { return elements(b, binary.LittleEndian.Uint32) }

func viewUint64(b []byte) []uint64 { return elements(b, binary.LittleEndian.Uint64) }

func viewInt32(b []byte) []int32 {
	return elements(b, func(b []byte) int32 { return int32(binary.LittleEndian.Uint32(b)) })
}

func viewFloat64(b []byte) []float64 {
	return elements(b, func(b []byte) float64 { return math.Float64frombits(binary.LittleEndian.Uint64(b)) })
}

func viewArcs(b []byte) []mapmatched.Arc {
	return elements(b, func(b []byte) mapmatched.Arc {
		return mapmatched.Arc{
			Weight: math.Float64frombits(binary.LittleEndian.Uint64(b)),
			To:     int32(binary.LittleEndian.Uint32(b[8:])),
			Type:   int32(binary.LittleEndian.Uint32(b[12:])),
		}
	})
}

func viewHubs(b []byte) []labelHub {
	return elements(b, func(b []byte) labelHub {
		return labelHub{binary.LittleEndian.Uint32(b), math.Float32frombits(binary.LittleEndian.Uint32(b[4:]))}
	})
}

func viewSteps(b []byte) []labelStep {
	return elements(b, func(b []byte) labelStep {
		return labelStep{binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])}
	})
}
