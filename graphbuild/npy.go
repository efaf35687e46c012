package graphbuild

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"unicode/utf8"
	"unsafe"

	"github.com/mapmatched/mmplug/internal/disk"
)

// VectorFile is a [VectorSource] of a matrix in an .npy file and a file of chunk
// IDs. The matrix is mapped, not read: rows of float32 are looked at where they
// are. The files must not be changed while it is open.
type VectorFile struct {
	ids    []string
	header npyHeader
	mapped []byte // the whole file
	data   []byte // the elements
}

// OpenVectors opens the matrix vectors, an .npy file of version 1, 2 or 3 with
// two dimensions in C order and little-endian elements of float16, float32 or
// float64 (which are rounded to float32), and ids, a text file with the chunk ID
// of each row on a line of its own. Anything else, and a matrix of more or less
// rows than there are IDs or bytes, is an error that names the file.
//
// Empty, duplicate and non-finite values are found when the vectors are used.
// The caller has to call Close.
func OpenVectors(vectors, ids string) (*VectorFile, error) {
	text, err := os.ReadFile(ids)
	if err != nil {
		return nil, err
	}
	f := &VectorFile{}
	if f.ids, err = parseIDs(string(text)); err != nil {
		return nil, fmt.Errorf("%s: %w", ids, err)
	}
	if err := f.open(vectors); err != nil {
		return nil, fmt.Errorf("%s: %w", vectors, err)
	}
	if f.header.rows != len(f.ids) {
		return nil, errors.Join(fmt.Errorf("%s has %d vectors and %s has %d chunk IDs; write one ID for each row, in the same order",
			vectors, f.header.rows, ids, len(f.ids)), f.Close())
	}
	return f, nil
}

func (f *VectorFile) open(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return errors.Unwrap(err) // without the path, which the caller adds
	}
	defer func() { _ = file.Close() }() // was only read
	info, err := file.Stat()
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return errors.New("is not a regular file; give an .npy file")
	case info.Size() == 0:
		return errors.New("is empty; give an .npy file")
	case int64(int(info.Size())) != info.Size():
		return fmt.Errorf("has %d bytes, more than this machine can map", info.Size())
	}
	mapped, err := disk.Map(file, int(info.Size()))
	if err != nil {
		return fmt.Errorf("cannot map %d bytes: %w", info.Size(), err)
	}
	header, err := parseNPY(mapped)
	if err != nil {
		return errors.Join(err, disk.Unmap(mapped))
	}
	f.header, f.mapped, f.data = header, mapped, mapped[header.size:]
	return nil
}

// Len is the number of rows.
func (f *VectorFile) Len() int { return f.header.rows }

// Dimension is the number of elements of a row.
func (f *VectorFile) Dimension() int { return f.header.columns }

// ID is the chunk of a row.
func (f *VectorFile) ID(row int) string { return f.ids[row] }

// Row returns the vector of a row, in dst unless the file has it as the machine
// does. It must not be used after Close.
func (f *VectorFile) Row(row int, dst []float32) []float32 {
	size := f.header.columns * f.header.width
	b := f.data[row*size : (row+1)*size]
	if f.header.width == 4 && aligned[float32](b) {
		return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(b))), f.header.columns)
	}
	dst = dst[:f.header.columns]
	for i := range dst {
		switch f.header.width {
		case 2:
			dst[i] = halfToFloat(binary.LittleEndian.Uint16(b[2*i:]))
		case 4:
			dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
		default:
			dst[i] = float32(math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:])))
		}
	}
	return dst
}

// Close gives the mapped memory back. A second call does nothing.
func (f *VectorFile) Close() error {
	if f.mapped == nil {
		return nil
	}
	mapped := f.mapped
	f.mapped, f.data = nil, nil
	return disk.Unmap(mapped)
}

// halfToFloat converts a number of IEEE 754 binary16.
func halfToFloat(h uint16) float32 {
	sign := uint32(h>>15) << 31
	exponent, fraction := uint32(h>>10&0x1f), uint32(h&0x3ff)
	switch exponent {
	case 0: // zero or denormal: fraction·2⁻²⁴
		return math.Float32frombits(sign | math.Float32bits(float32(fraction)*0x1p-24))
	case 0x1f: // infinite or NaN
		return math.Float32frombits(sign | 0xff<<23 | fraction<<13)
	}
	return math.Float32frombits(sign | (exponent+127-15)<<23 | fraction<<13)
}

// parseIDs returns the lines of a text. Lines end with a line feed or carriage
// return and line feed; the last one may end with the text.
func parseIDs(text string) ([]string, error) {
	if text == "" {
		return nil, nil
	}
	if !utf8.ValidString(text) {
		return nil, errors.New("is not UTF-8; write one chunk ID a line")
	}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimSuffix(line, "\r")
		if lines[i] == "" {
			return nil, fmt.Errorf("line %d is empty; write one chunk ID a line", i+1)
		}
	}
	return lines, nil
}

// npyHeader describes the matrix of an .npy file.
type npyHeader struct {
	width         int // bytes of an element: 2, 4 or 8, all of floating point
	rows, columns int
	size          int // bytes before the elements
}

const (
	npyMagic      = "\x93NUMPY"
	npyMostHeader = 1 << 16
)

// parseNPY reads the header of an .npy file
// (https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html) and
// holds the length of the file to it.
func parseNPY(file []byte) (npyHeader, error) {
	if len(file) < 10 || string(file[:6]) != npyMagic {
		return npyHeader{}, fmt.Errorf("is no .npy file: it begins with %q; save the matrix with numpy.save", file[:min(len(file), 6)])
	}
	length, start := uint64(binary.LittleEndian.Uint16(file[8:])), 10
	switch major := file[6]; major {
	case 1:
	case 2, 3:
		if len(file) < 12 {
			return npyHeader{}, fmt.Errorf("is cut off in the header after %d bytes", len(file))
		}
		length, start = uint64(binary.LittleEndian.Uint32(file[8:])), 12
	default:
		return npyHeader{}, fmt.Errorf("has .npy version %d.%d, want 1, 2 or 3", major, file[7])
	}
	if length > npyMostHeader {
		return npyHeader{}, fmt.Errorf("has a header of %d bytes, want at most %d", length, npyMostHeader)
	}
	if uint64(len(file)-start) < length {
		return npyHeader{}, fmt.Errorf("is cut off in the header: %d bytes of %d", len(file)-start, length)
	}
	h := npyHeader{size: start + int(length)}
	if err := h.parse(string(file[start:h.size])); err != nil {
		return npyHeader{}, err
	}
	if h.columns == 0 {
		return npyHeader{}, errors.New("has vectors of 0 dimensions")
	}
	have, row := uint64(len(file)-h.size), uint64(h.columns)*uint64(h.width)
	if have/row != uint64(h.rows) || have%row != 0 {
		return npyHeader{}, fmt.Errorf("has %d bytes of elements, not those of %d × %d of %d bytes; the file is damaged or not whole", have, h.rows, h.columns, h.width)
	}
	return h, nil
}

// parse reads the dictionary of a header, a Python literal with exactly the
// keys descr, fortran_order and shape.
func (h *npyHeader) parse(text string) error {
	p := npyParser{rest: text}
	seen := map[string]bool{}
	p.expect("{")
	for p.err == nil && !p.accept("}") {
		key := p.quoted()
		p.expect(":")
		if p.err == nil && seen[key] {
			return fmt.Errorf("has %q twice in its header", key)
		}
		seen[key] = true
		switch key {
		case "descr":
			h.setType(&p)
		case "fortran_order":
			if p.accept("True") {
				return errors.New("has its elements in Fortran order; save numpy.ascontiguousarray of the matrix")
			}
			p.expect("False")
		case "shape":
			h.setShape(&p)
		default:
			p.fail("the key " + strconv.Quote(key))
		}
		if !p.accept(",") {
			p.expect("}")
			break
		}
	}
	if p.err == nil && strings.TrimLeft(p.rest, " ") != "\n" && strings.TrimLeft(p.rest, " ") != "" {
		p.fail("the end")
	}
	if p.err == nil && len(seen) != 3 {
		return errors.New("has no descr, fortran_order or shape in its header")
	}
	return p.err
}

func (h *npyHeader) setType(p *npyParser) {
	p.space()
	if strings.HasPrefix(p.rest, "[") {
		p.err = errors.New("has records for elements, want numbers of type <f4, <f8 or <f2")
		return
	}
	switch descr := p.quoted(); {
	case p.err != nil:
	case descr == "<f2":
		h.width = 2
	case descr == "<f4":
		h.width = 4
	case descr == "<f8":
		h.width = 8
	default:
		p.err = fmt.Errorf("has elements of type %q, want <f4, <f8 or <f2; save the matrix with astype(numpy.float32)", descr)
	}
}

func (h *npyHeader) setShape(p *npyParser) {
	var shape []int
	p.expect("(")
	for p.err == nil && !p.accept(")") {
		shape = append(shape, p.number())
		if !p.accept(",") {
			p.expect(")")
			break
		}
	}
	if p.err == nil && len(shape) != 2 {
		p.err = fmt.Errorf("has %d dimensions %v, want 2: one row for each vector", len(shape), shape)
		return
	}
	if p.err == nil {
		h.rows, h.columns = shape[0], shape[1]
	}
}

// npyParser reads the tokens of a header and keeps the first error.
type npyParser struct {
	rest string
	err  error
}

func (p *npyParser) space() { p.rest = strings.TrimLeft(p.rest, " ") }

func (p *npyParser) fail(at string) {
	if p.err == nil {
		p.err = fmt.Errorf("has a header that is not understood at %s", at)
	}
}

func (p *npyParser) accept(token string) bool {
	p.space()
	rest, found := strings.CutPrefix(p.rest, token)
	if found {
		p.rest = rest
	}
	return found
}

func (p *npyParser) expect(token string) {
	if p.err == nil && !p.accept(token) {
		p.fail(strconv.Quote(p.rest[:min(len(p.rest), 20)]) + ", where " + token + " should be")
	}
}

// quoted reads a string in single or double quotes, without escapes.
func (p *npyParser) quoted() string {
	p.space()
	if p.err == nil && p.rest != "" && (p.rest[0] == '\'' || p.rest[0] == '"') {
		if end := strings.IndexByte(p.rest[1:], p.rest[0]); end >= 0 {
			text := p.rest[1 : 1+end]
			p.rest = p.rest[end+2:]
			return text
		}
	}
	p.fail(strconv.Quote(p.rest[:min(len(p.rest), 20)]) + ", where a string should be")
	return ""
}

// number reads a size, at most 2³¹ − 1 rows or columns.
func (p *npyParser) number() int {
	p.space()
	end := 0
	for end < len(p.rest) && p.rest[end] >= '0' && p.rest[end] <= '9' {
		end++
	}
	n, err := strconv.ParseInt(p.rest[:end], 10, 32)
	if err != nil {
		p.fail(strconv.Quote(p.rest[:min(len(p.rest), 20)]) + ", where a size below 2147483648 should be")
	}
	p.rest = p.rest[end:]
	return int(n)
}
