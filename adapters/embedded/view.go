package embedded

import (
	"encoding/binary"
	"math"
	"unsafe"
)

// number is what the arrays of an index are made of.
type number interface {
	uint32 | uint64 | float32 | float64
}

var littleEndian = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

// view returns the numbers that b holds in little-endian order. Where memory
// has them in that order it looks at b itself, else it decodes a copy. The
// length of b is a multiple of the size of a number.
func view[T number](b []byte) []T {
	var zero T
	size := int(unsafe.Sizeof(zero))
	first := unsafe.SliceData(b)
	if !littleEndian || uintptr(unsafe.Pointer(first))%uintptr(size) != 0 {
		return decode[T](b)
	}
	return unsafe.Slice((*T)(unsafe.Pointer(first)), len(b)/size)
}

// decode returns a copy of the numbers that b holds in little-endian order.
func decode[T number](b []byte) []T {
	var zero T
	size := int(unsafe.Sizeof(zero))
	out := make([]T, len(b)/size)
	for i := range out {
		switch p := any(&out[i]).(type) {
		case *uint32:
			*p = binary.LittleEndian.Uint32(b[i*size:])
		case *uint64:
			*p = binary.LittleEndian.Uint64(b[i*size:])
		case *float32:
			*p = math.Float32frombits(binary.LittleEndian.Uint32(b[i*size:]))
		case *float64:
			*p = math.Float64frombits(binary.LittleEndian.Uint64(b[i*size:]))
		}
	}
	return out
}
