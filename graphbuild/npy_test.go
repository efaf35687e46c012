package graphbuild

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// npyFile is an .npy file of a version with a header text and elements.
func npyFile(major byte, header string, elements any) []byte {
	var b bytes.Buffer
	b.WriteString(npyMagic)
	b.Write([]byte{major, 0})
	if major == 1 {
		_ = binary.Write(&b, binary.LittleEndian, uint16(len(header)))
	} else {
		_ = binary.Write(&b, binary.LittleEndian, uint32(len(header)))
	}
	b.WriteString(header)
	_ = binary.Write(&b, binary.LittleEndian, elements)
	return b.Bytes()
}

// npyHeaderText is the header that numpy.save writes, padded to 64 bytes.
func npyHeaderText(descr, shape string) string {
	text := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': %s, }", descr, shape)
	return text + strings.Repeat(" ", (64-(10+len(text)+1)%64)%64) + "\n"
}

// vectorFiles writes a matrix and IDs.
func vectorFiles(t testing.TB, npy []byte, ids string) (vectors, idFile string) {
	t.Helper()
	dir := t.TempDir()
	vectors, idFile = filepath.Join(dir, "v.npy"), filepath.Join(dir, "ids.txt")
	for path, b := range map[string][]byte{vectors: npy, idFile: []byte(ids)} {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return vectors, idFile
}

func TestOpenVectors(t *testing.T) {
	values := []float64{1, -0.5, 0, 65504, 0x1p-24, 1.0 / 3 / 1024}
	f4, f8 := make([]float32, 6), values
	f2 := []uint16{0x3c00, 0xb800, 0, 0x7bff, 1, 0x0d55}
	for i, v := range values {
		f4[i] = float32(v)
	}
	for _, tt := range []struct {
		name      string
		npy       []byte
		tolerance float64
	}{
		{"float32", npyFile(1, npyHeaderText("<f4", "(3, 2)"), f4), 0},
		{"float32, version 2", npyFile(2, npyHeaderText("<f4", "(3, 2)"), f4), 0},
		{"float32, version 3", npyFile(3, npyHeaderText("<f4", "(3, 2)"), f4), 0},
		{"float64", npyFile(1, npyHeaderText("<f8", "(3, 2)"), f8), 0},
		{"float16", npyFile(1, npyHeaderText("<f2", "(3, 2)"), f2), 1e-7},
		{"not aligned", npyFile(1, `{"shape":(3,2,),"fortran_order":False,"descr":"<f4"}`+"\n", f4), 0},
		{"no padding at all", npyFile(1, `{"shape":(3,2),"fortran_order":False,"descr":"<f4"}`, f4), 0},
	} {
		for _, ids := range []string{"a\nb b\nü\n", "a\r\nb b\r\nü\r\n", "a\nb b\nü"} {
			f, err := OpenVectors(vectorFiles(t, tt.npy, ids))
			if err != nil {
				t.Errorf("%s: %v", tt.name, err)
				continue
			}
			if f.Len() != 3 || f.Dimension() != 2 || f.ID(0) != "a" || f.ID(1) != "b b" || f.ID(2) != "ü" {
				t.Errorf("%s: %d × %d, IDs %q", tt.name, f.Len(), f.Dimension(), f.ids)
			}
			for i, want := range values {
				if got := f.Row(i/2, make([]float32, 2))[i%2]; math.Abs(float64(got)-float64(float32(want))) > tt.tolerance {
					t.Errorf("%s: element %d is %v, want %v", tt.name, i, got, want)
				}
			}
			for range 2 {
				if err := f.Close(); err != nil {
					t.Errorf("%s: Close: %v", tt.name, err)
				}
			}
		}
	}
}

func TestHalfToFloat(t *testing.T) {
	for h, want := range map[uint16]float64{
		0x0000: 0, 0x8000: math.Copysign(0, -1), 0x0001: 0x1p-24, 0x83ff: -1023 * 0x1p-24, 0x0400: 0x1p-14,
		0x3c00: 1, 0xc248: -3.140625, 0x7bff: 65504, 0x7c00: math.Inf(1), 0xfc00: math.Inf(-1),
	} {
		if got := halfToFloat(h); math.Float32bits(got) != math.Float32bits(float32(want)) {
			t.Errorf("%#04x is %v, want %v", h, got, want)
		}
	}
	if got := halfToFloat(0x7e00); got == got {
		t.Errorf("0x7e00 is %v, want NaN", got)
	}
}

func TestOpenVectorsErrors(t *testing.T) {
	two := []float32{1, 2}
	header := func(text string) []byte { return npyFile(1, text, two) }
	good := header(npyHeaderText("<f4", "(1, 2)"))
	for _, tt := range []struct {
		name string
		npy  []byte
		ids  string
		want string
	}{
		{"empty", nil, "a", "v.npy: is empty"},
		{"text", []byte("1 2 3 4 5 6 7 8"), "a", `is no .npy file: it begins with "1 2 3 "`},
		{"short", []byte("\x93NUMPY\x01"), "a", "is no .npy file"},
		{"version", npyFile(4, npyHeaderText("<f4", "(1, 2)"), two), "a", ".npy version 4.0, want 1, 2 or 3"},
		{"huge header", append([]byte("\x93NUMPY\x02\x00\xff\xff\xff\xff"), "{"...), "a", "header of 4294967295 bytes"},
		{"cut header", good[:40], "a", "is cut off in the header: 30 bytes of"},
		{"cut version 2", []byte("\x93NUMPY\x02\x00\x01\x00\x00"), "a", "is cut off in the header after 11 bytes"},
		{"cut elements", good[:len(good)-1], "a", "has 7 bytes of elements, not those of 1 × 2 of 4 bytes"},
		{"more elements", append(bytes.Clone(good), 0, 0, 0, 0, 0, 0, 0, 0), "a", "has 16 bytes of elements, not those of 1 × 2"},
		{"Fortran", header("{'descr': '<f4', 'fortran_order': True, 'shape': (1, 2)}\n"), "a", "Fortran order; save numpy.ascontiguousarray"},
		{"big endian", header(npyHeaderText(">f4", "(1, 2)")), "a", `type ">f4", want <f4`},
		{"integers", header(npyHeaderText("<i4", "(1, 2)")), "a", `type "<i4"`},
		{"records", header("{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (1, 2)}\n"), "a", "records"},
		{"one dimension", header(npyHeaderText("<f4", "(2,)")), "a", "1 dimensions [2], want 2"},
		{"no dimension", header(npyHeaderText("<f4", "()")), "a", "0 dimensions [], want 2"},
		{"three dimensions", header(npyHeaderText("<f4", "(1, 1, 2)")), "a", "3 dimensions [1 1 2]"},
		{"no columns", header(npyHeaderText("<f4", "(1, 0)")), "a", "vectors of 0 dimensions"},
		{"negative", header(npyHeaderText("<f4", "(-1, 2)")), "a", `not understood at "-1, 2), }`},
		{"overflow", header(npyHeaderText("<f4", "(2147483648, 2)")), "a", "size below 2147483648"},
		{"product overflows", header(npyHeaderText("<f4", "(2147483647, 2147483647)")), "a", "8 bytes of elements"},
		{"missing key", header("{'descr': '<f4', 'shape': (1, 2)}\n"), "a", "has no descr, fortran_order or shape"},
		{"double key", header("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1, 2)}\n"), "a", `has "descr" twice`},
		{"other key", header("{'descr': '<f4', 'x': 1, 'fortran_order': False, 'shape': (1, 2)}\n"), "a", `the key "x"`},
		{"after the end", header("{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2)} x\n"), "a", "the end"},
		{"no end", header("{'descr': '<f4"), "a", "where a string should be"},
		{"IDs", good, "a\nb\n", "v.npy has 1 vectors and"},
		{"no IDs", good, "", "has 0 chunk IDs"},
		{"empty line", good, "a\n\n", "ids.txt: line 2 is empty"},
		{"only a line feed", good, "\n", "ids.txt: line 1 is empty"},
		{"not UTF-8", good, "\xff\n", "ids.txt: is not UTF-8"},
	} {
		f, err := OpenVectors(vectorFiles(t, tt.npy, tt.ids))
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, error %v, want one line with %q", tt.name, f, err, tt.want)
		}
	}
	vectors, ids := vectorFiles(t, good, "a")
	if _, err := OpenVectors(vectors+"x", ids); !os.IsNotExist(err) && !strings.Contains(fmt.Sprint(err), "v.npyx: ") {
		t.Errorf("missing matrix: %v", err)
	}
	if _, err := OpenVectors(vectors, ids+"x"); !os.IsNotExist(err) {
		t.Errorf("missing IDs: %v", err)
	}
	if _, err := OpenVectors(t.TempDir(), ids); err == nil || !strings.Contains(err.Error(), "regular file") {
		t.Errorf("directory: %v", err)
	}
}

func FuzzParseNPY(f *testing.F) {
	f.Add(npyFile(1, npyHeaderText("<f4", "(1, 2)"), []float32{1, 2}))
	f.Add(npyFile(2, npyHeaderText("<f8", "(2, 1)"), []float64{1, 2}))
	f.Add(npyFile(3, `{"shape":(0,9),"fortran_order":False,"descr":"<f2"}`, []uint16{}))
	f.Add([]byte("\x93NUMPY\x01\x00\x05\x00{'a':"))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := parseNPY(b)
		if err != nil {
			return
		}
		if h.rows < 0 || h.columns < 1 || h.size+h.rows*h.columns*h.width != len(b) {
			t.Fatalf("%+v of %d bytes", h, len(b))
		}
		file := VectorFile{header: h, data: b[h.size:]}
		row := make([]float32, h.columns)
		for i := range h.rows {
			if got := file.Row(i, row); len(got) != h.columns {
				t.Fatalf("row %d has %d elements", i, len(got))
			}
		}
	})
}

func FuzzParseIDs(f *testing.F) {
	for _, seed := range []string{"", "a", "a\nb\r\n", "\n", "\r\n", "ä\n\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		ids, err := parseIDs(text)
		if err != nil {
			return
		}
		for _, id := range ids {
			if id == "" || strings.Contains(id, "\n") {
				t.Fatalf("ID %q of %q", id, text)
			}
		}
		if again, err := parseIDs(strings.Join(ids, "\n")); err != nil || len(again) != len(ids) {
			// An ID that ends with a carriage return loses it on the way.
			if !strings.Contains(text, "\r") {
				t.Fatalf("%q is read back as %q, %v", ids, again, err)
			}
		}
	})
}
