package embedded

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// A manifest that parses is one that could have been written.
func FuzzParseManifest(f *testing.F) {
	dir := write(f, small())
	data, err := os.ReadFile(filepath.Join(dir, manifestName))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add(bytes.Replace(data, []byte(`"version": 1`), []byte(`"version": 2`), 1))
	f.Add(bytes.Replace(data, []byte(`"count": 2`), []byte(`"count": -9223372036854775808`), 1))
	f.Add([]byte("{}"))
	f.Add([]byte(lfsPointer))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := ParseManifest(data)
		if err != nil {
			if m != nil {
				t.Fatalf("a manifest and the error %v", err)
			}
			return
		}
		again, err := m.encode()
		if err != nil || !bytes.Equal(again, data) {
			t.Fatalf("%q parses and is written as %q, %v", data, again, err)
		}
		if err := m.validate(); err != nil {
			t.Fatal(err)
		}
	})
}

// The manifest that an index gives away is a copy.
func TestManifestIsACopy(t *testing.T) {
	x := opened(t, write(t, small()), nil)
	m := x.Manifest()
	m.Vectors.Model, m.Files[0].Name, m.Lexical.Fields[0], m.Graph.EdgeTypes[0].Count = "other", "other", "other", 99
	n := x.Manifest()
	if n.Vectors.Model != "tiny" || n.Files[0].Name != chunksName || n.Lexical.Fields[0] != FieldTitle || n.Graph.EdgeTypes[0].Count != 1 {
		t.Errorf("the index sees changes: %+v", n)
	}
}

func TestView(t *testing.T) {
	b := []byte{1, 0, 0, 0, 0, 0, 240, 63, 0, 0, 128, 63, 255, 255, 255, 255, 7}
	for at := range 2 { // aligned or not, the numbers are the same
		b := slices.Clip(append(make([]byte, at), b[:16]...))[at:]
		if got := view[uint32](b); !slices.Equal(got, []uint32{1, 0x3ff00000, 0x3f800000, 0xffffffff}) {
			t.Errorf("uint32 %x", got)
		}
		if got := view[uint64](b); !slices.Equal(got, []uint64{0x3ff0000000000001, 0xffffffff3f800000}) {
			t.Errorf("uint64 %x", got)
		}
		if got := view[float64](b[:8]); !slices.Equal(got, []float64{1.0000000000000002}) {
			t.Errorf("float64 %v", got)
		}
		if got := view[float32](b[8:12]); !slices.Equal(got, []float32{1}) {
			t.Errorf("float32 %v", got)
		}
		if got := decode[uint32](b); !slices.Equal(got, view[uint32](b)) {
			t.Errorf("decode %x, view %x", got, view[uint32](b))
		}
	}
	if got := view[float64](nil); len(got) != 0 {
		t.Errorf("nothing is %v", got)
	}
}
