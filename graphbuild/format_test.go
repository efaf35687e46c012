package graphbuild

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mapmatched/mmplug/mapmatched"
)

// sealed gives a file the checksums and the size that its content calls for, so
// that what is wrong with it has to be found by looking at it.
func sealed(b []byte) []byte {
	b = bytes.Clone(b)
	if len(b) < headerSize {
		return b
	}
	binary.LittleEndian.PutUint64(b[40:], uint64(len(b)))
	for i := range min(binary.LittleEndian.Uint32(b[48:]), maxSections) {
		r := b[56+i*recordSize:]
		s := fileSection{offset: binary.LittleEndian.Uint64(r[8:]), size: binary.LittleEndian.Uint64(r[16:])}
		if n := uint64(len(b)); s.offset <= n && s.size <= n && s.padded() <= n-s.offset {
			binary.LittleEndian.PutUint32(r[4:], crc32.Checksum(b[s.offset:s.offset+s.padded()], castagnoli))
		}
	}
	clear(b[52:56])
	binary.LittleEndian.PutUint32(b[52:], crc32.Checksum(b[:headerSize], castagnoli))
	return b
}

// askAll asks a graph file everything. Only the errors of damage are expected.
func askAll(t *testing.T, g *GraphFile) {
	t.Helper()
	expect := func(err error) {
		t.Helper()
		if err != nil && mapmatched.KindOf(err) != mapmatched.KindCorrupt {
			t.Fatalf("%v is no damage", err)
		}
	}
	ids := append(g.Nodes(), "unknown")
	ids = ids[max(0, len(ids)-9):]
	expect(g.Distances(t.Context(), ids, ids, make([]float64, len(ids)*len(ids))))
	for _, id := range ids {
		_, err := g.Neighborhood(t.Context(), id, 1)
		expect(err)
		_, err = g.ShortestPath(t.Context(), id, ids[0])
		expect(err)
	}
	for _, err := range g.Edges(t.Context()) {
		expect(err)
	}
	expect(g.Check(t.Context()))
}

// renew writes a file anew. To truncate one that is there makes some file
// systems wait for the disk.
func renew(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

func FuzzOpenGraph(f *testing.F) {
	for _, method := range allMethods {
		for _, weight := range []float64{0.1, 1} {
			b := smallGraph(f, method, weight == 1, weight)
			f.Add(b, true)
			f.Add(b[:len(b)-64], true)
		}
	}
	f.Add([]byte(fileMagic), false)
	f.Fuzz(func(t *testing.T, b []byte, seal bool) {
		if seal {
			b = sealed(b)
		}
		path := filepath.Join(t.TempDir(), "g.mmg")
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		for _, skip := range []bool{false, true} {
			g, err := OpenGraph(t.Context(), path, &OpenGraphOptions{SkipChecksums: skip})
			if err != nil {
				if kind := mapmatched.KindOf(err); g != nil || kind != mapmatched.KindCorrupt && kind != mapmatched.KindInvalid {
					t.Fatalf("graph %v, kind %q, error %v", g, kind, err)
				}
				continue
			}
			askAll(t, g)
			if err := g.Close(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestWrongContentIsFound changes every word of files that then get the right
// checksums: opening, a question or Check says so, or nothing that matters is
// wrong; nothing crashes.
func TestWrongContentIsFound(t *testing.T) {
	path := filepath.Join(t.TempDir(), "g.mmg")
	for _, method := range allMethods {
		for _, directed := range []bool{false, true} {
			whole := smallGraph(t, method, directed, 0.1)
			found := 0
			for at := 0; at+4 <= len(whole); at += 4 {
				for _, x := range []uint32{0, 7, math.MaxUint32} {
					b := bytes.Clone(whole)
					binary.LittleEndian.PutUint32(b[at:], x)
					renew(t, path, sealed(b))
					g, err := OpenGraph(t.Context(), path, nil)
					if err != nil {
						found++
						continue
					}
					askAll(t, g)
					if err := g.Close(); err != nil {
						t.Fatal(err)
					}
				}
			}
			if found < len(whole)/8 {
				t.Errorf("%s, directed %t: %d of %d changes found when opening", method, directed, found, len(whole)/4*3)
			}
		}
	}
}

// edit changes one element of a section of a file.
func edit(t *testing.T, b []byte, kind sectionKind, at int, value []byte) []byte {
	t.Helper()
	h, err := decodeHeader(b, int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range h.sections {
		if s.kind == kind {
			b = bytes.Clone(b)
			copy(b[int(s.offset)+at:], value)
			return sealed(b)
		}
	}
	t.Fatalf("no section %v", kind)
	return nil
}

func TestCheckFindsWrongDistances(t *testing.T) {
	path := filepath.Join(t.TempDir(), "g.mmg")
	table := smallGraph(t, DistancesTable, false, 0.1)
	labels := smallGraph(t, DistancesLabels, false, 0.1)
	exact := smallGraph(t, DistancesLabels, false, 1)
	_, typedPath := writeTestGraph(t, GraphInput{Edges: []mapmatched.Edge{
		{From: "a", To: "b", Weight: 1, Type: mapmatched.EdgeNext}, {From: "b", To: "c", Weight: 1, Type: mapmatched.EdgeLink},
	}}, nil)
	typed, err := os.ReadFile(typedPath)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		file []byte
		want string
	}{
		{"a distance in the table", edit(t, table, sectionTable, 0, appendFloat64(nil, 0.25)), `distance from "a" to "b" is 0.25, the search says 0.1: build it again`},
		{"a distance of 0 in the table", edit(t, table, sectionTable, 0, appendFloat64(nil, 0)), "table: target 0 of node 0 is node 1 of 5 at 0"},
		{"order of the table", edit(t, table, sectionTable, 24, appendUint32(nil, 3)), "table: target 1 of node 0 is node 2 of 5"},
		{"a step of a label", edit(t, labels, sectionLabelSteps, 12, appendUint32(nil, 1000)), "label steps: entry"},
		{"a distance in a label", edit(t, exact, sectionLabelHubs, 12, appendFloat32(nil, 0.125)), `distance from "a" to "d" is 0.125, the search says 0.75`},
		{"one way of an edge", edit(t, table, sectionArcs, 0, appendFloat64(nil, 0.05)), `arcs: the edge from "a" to "b" has another way back`},
		{"the other way of an edge", edit(t, table, sectionArcs, 2*16, appendFloat64(nil, 0.11)), `the edge from "a" to "b" has another way back`},
		{"where one way leads", edit(t, table, sectionArcs, 16+8, appendUint32(nil, 2)), `the edge from "a" to "c" has another way back`},
		{"where the other way leads", edit(t, table, sectionArcs, 7*16+8, appendUint32(nil, 1)), `the edge from "a" to "d" has another way back`},
		{"a way back without a way", edit(t, table, sectionArcs, 5*16, appendUint32(appendFloat64(nil, 5), 0)), `the edge from "a" to "c" has another way back`},
		{"the type of one way", edit(t, typed, sectionArcs, 12, appendUint32(nil, 0)), `the edge from "a" to "b" has another way back`},
		{"two arcs to one node", edit(t, table, sectionArcs, 16+8, appendUint32(nil, 1)), `two arcs lead from "a" to "b"`},
	} {
		if err := os.WriteFile(path, c.file, 0o644); err != nil {
			t.Fatal(err)
		}
		g, err := OpenGraph(t.Context(), path, nil)
		if err == nil {
			err = g.Check(t.Context())
			if cerr := g.Close(); cerr != nil {
				t.Error(cerr)
			}
		}
		if err == nil || !errors.Is(err, errDamaged) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
}
