package faiss

import (
	"encoding/binary"
	"math"
)

// cursor reads numbers, little-endian, one after the other. It reads zeros
// after the first fault, which err has.
type cursor struct {
	data []byte
	at   int
	err  error
}

// take returns the next size bytes.
func (c *cursor) take(size uint64, what string) []byte {
	if c.err != nil {
		return nil
	}
	if left := uint64(len(c.data) - c.at); size > left {
		c.err = damaged("it ends in %s: %d bytes wanted at byte %d of %d; it was cut, or copied incompletely", what, size, c.at, len(c.data))
		return nil
	}
	b := c.data[c.at : c.at+int(size) : c.at+int(size)]
	c.at += int(size)
	return b
}

func (c *cursor) code(what string) string { return string(c.take(4, what)) }

func (c *cursor) byte(what string) byte {
	if b := c.take(1, what); b != nil {
		return b[0]
	}
	return 0
}

func (c *cursor) int32(what string) int32 {
	if b := c.take(4, what); b != nil {
		return int32(binary.LittleEndian.Uint32(b))
	}
	return 0
}

func (c *cursor) uint64(what string) uint64 {
	if b := c.take(8, what); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// array returns the bytes of an array that is preceded by its number of
// elements of size bytes each.
func (c *cursor) array(size uint64, what string) []byte {
	n := c.uint64("the length of " + what)
	if c.err == nil && n > math.MaxInt/size {
		c.err = damaged("%s would have %d elements", what, n)
	}
	return c.take(n*size, what)
}

// int32s is an array of int32 in little-endian order, wherever it lies.
type int32s []byte

func (a int32s) len() int       { return len(a) / 4 }
func (a int32s) at(i int) int32 { return int32(binary.LittleEndian.Uint32(a[i*4:])) }

// int64s is an array of int64 in little-endian order, wherever it lies.
type int64s []byte

func (a int64s) len() int       { return len(a) / 8 }
func (a int64s) at(i int) int64 { return int64(binary.LittleEndian.Uint64(a[i*8:])) }
