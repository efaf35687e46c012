package embedded

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mapmatched/mmplug/mapmatched"
)

const lfsPointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n"

// overwrite replaces a file of an index.
func overwrite(t testing.TB, dir, name string, change func([]byte) []byte) {
	t.Helper()
	path := filepath.Join(dir, name)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, change(data), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestOpenSaysWhatADirectoryIsNot(t *testing.T) {
	parent := t.TempDir()
	_, err := Open(t.Context(), filepath.Join(parent, "absent"), nil)
	wantError(t, err, mapmatched.KindNotFound, "absent", "file does not exist", "mmplug index")
	_, err = Open(t.Context(), "", nil)
	wantError(t, err, mapmatched.KindInvalid, "no directory given")
	_, err = Open(t.Context(), parent, nil)
	wantError(t, err, mapmatched.KindInvalid, parent, "not an index: the directory is empty")
	file := filepath.Join(parent, "file")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = Open(t.Context(), file, nil)
	wantError(t, err, mapmatched.KindInvalid, file, "it is a file")
	_, err = Open(t.Context(), parent, nil)
	wantError(t, err, mapmatched.KindInvalid, "not an index: it has no manifest.json")
	if err := os.Mkdir(filepath.Join(parent, manifestName), 0o755); err != nil {
		t.Fatal(err)
	}
	_, err = Open(t.Context(), parent, nil)
	wantError(t, err, mapmatched.KindInvalid, "manifest.json is not a regular file")
	dir := write(t, small())
	_, err = Open(t.Context(), dir, &Options{Arm: "hybrid"})
	wantError(t, err, mapmatched.KindInvalid, `no arm "hybrid"`, "lexical", "dense")
	in := small()
	in.Vectors = nil
	_, err = Open(t.Context(), write(t, in), &Options{Arm: ArmDense})
	wantError(t, err, mapmatched.KindInvalid, "needs vectors")
}

func TestOpenRefusesDamagedManifest(t *testing.T) {
	replace := func(old, new string) func([]byte) []byte {
		return func(b []byte) []byte {
			if !bytes.Contains(b, []byte(old)) {
				panic("the manifest has no " + old)
			}
			return bytes.Replace(b, []byte(old), []byte(new), 1)
		}
	}
	constant := func(s string) func([]byte) []byte { return func([]byte) []byte { return []byte(s) } }
	for _, c := range []struct {
		name   string
		change func([]byte) []byte
		kind   mapmatched.Kind
		parts  []string
	}{
		{"empty", constant(""), mapmatched.KindCorrupt, []string{"not the manifest of an index"}},
		{"cut", func(b []byte) []byte { return b[:len(b)/2] }, mapmatched.KindCorrupt, []string{"not the manifest of an index"}},
		{"other JSON", constant(`{"name":"app"}`), mapmatched.KindCorrupt, []string{`format is ""`, Format}},
		{"Git LFS pointer", constant(lfsPointer), mapmatched.KindCorrupt, []string{"Git LFS pointer", "git lfs pull"}},
		{"huge", func(b []byte) []byte { return append(b, bytes.Repeat([]byte(" "), maxManifest)...) }, mapmatched.KindCorrupt, []string{"more than"}},
		{"newer version", replace(`"version": 1`, `"version": 2, "new": true`), mapmatched.KindInvalid, []string{"format version 2", "reads 1", "update the program"}},
		{"older version", replace(`"version": 1`, `"version": 0`), mapmatched.KindInvalid, []string{"format version 0", "build the index again"}},
		{"unknown key", replace(`"tool"`, `"extra": 1, "tool"`), mapmatched.KindCorrupt, []string{"changed after it was written"}},
		{"key in capitals", replace(`"tool"`, `"Tool"`), mapmatched.KindCorrupt, []string{"changed after it was written"}},
		{"key twice", replace(`"tool"`, `"tool": "x", "tool"`), mapmatched.KindCorrupt, []string{"changed after it was written"}},
		{"line ends", func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("\n"), []byte("\r\n")) }, mapmatched.KindCorrupt, []string{"changed after it was written, first at byte 1"}},
		{"something after it", func(b []byte) []byte { return append(b, '\n') }, mapmatched.KindCorrupt, []string{"changed after it was written"}},
		{"wrong type", replace(`"chunks": 4`, `"chunks": "4"`), mapmatched.KindCorrupt, []string{"is damaged"}},
		{"count", replace(`"chunks": 4`, `"chunks": 5`), mapmatched.KindCorrupt, []string{"4 vectors for 5 chunks"}},
		{"negative count", replace(`"documents": 2`, `"documents": -2`), mapmatched.KindCorrupt, []string{"number of documents is -2"}},
		{"huge count", replace(`"postings": `, `"postings": 99999999999999`), mapmatched.KindCorrupt, []string{"number of postings"}},
		{"edges", replace(`"edges": 3`, `"edges": 4`), mapmatched.KindCorrupt, []string{"4 edges in all"}},
		{"edge type count", replace(`"count": 2`, `"count": 0`), mapmatched.KindCorrupt, []string{"edge types"}},
		{"maximum distance", replace(`"maximum_distance": 4`, `"maximum_distance": 0`), mapmatched.KindCorrupt, []string{"maximum distance is 0"}},
		{"dimension", replace(`"dimension": 3`, `"dimension": 4`), mapmatched.KindCorrupt, []string{"vectors.bin has 48 bytes where the counts make 64"}},
		{"dimension zero", replace(`"dimension": 3`, `"dimension": 0`), mapmatched.KindCorrupt, []string{"dimension of the vectors is 0"}},
		{"file name", replace(`"order.bin"`, `"../../etc/passwd"`), mapmatched.KindCorrupt, []string{`"../../etc/passwd", not "order.bin"`}},
		{"analyzer", replace(`"lexical_pre_v2"`, `"lexical_pre_v1"`), mapmatched.KindInvalid, []string{"stale", "lexical_pre_v1", "build the index again"}},
		{"stopwords", replace(`"stopwords_sha256": "`, `"stopwords_sha256": "0`), mapmatched.KindInvalid, []string{"stale", "stopwords"}},
		{"k1", replace(`"k1": 1.2`, `"k1": -1.2`), mapmatched.KindCorrupt, []string{"is damaged", "k1 of BM25 is -1.2"}},
		{"b", replace(`"b": 0.75`, `"b": 1.75`), mapmatched.KindCorrupt, []string{"is damaged", "b of BM25 is 1.75"}},
		{"normalization", replace(`"normalization": "l2"`, `"normalization": "max"`), mapmatched.KindInvalid, []string{"stale", "max"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := write(t, small())
			overwrite(t, dir, manifestName, c.change)
			_, err := Open(t.Context(), dir, nil)
			wantError(t, err, c.kind, append(c.parts, dir)...)
			if c.kind == mapmatched.KindInvalid && !errors.Is(err, mapmatched.ErrStaleIndex) {
				t.Errorf("%v is not ErrStaleIndex", err)
			}
		})
	}
}

func TestOpenRefusesDamagedFiles(t *testing.T) {
	for _, name := range dataNames {
		t.Run(name, func(t *testing.T) {
			dir := write(t, small())
			good, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil || len(good) == 0 {
				t.Fatalf("%d bytes, %v", len(good), err)
			}
			overwrite(t, dir, name, func(b []byte) []byte { b[len(b)/2] ^= 1; return b })
			_, err = Open(t.Context(), dir, nil)
			wantError(t, err, mapmatched.KindCorrupt, dir, name, "has SHA-256", "wanted")

			for _, skip := range []bool{false, true} {
				opts := &Options{SkipChecksums: skip}
				overwrite(t, dir, name, func([]byte) []byte { return good[:len(good)-1] })
				_, err = Open(t.Context(), dir, opts)
				wantError(t, err, mapmatched.KindCorrupt, name, fmt.Sprintf("has %d bytes, wanted %d", len(good)-1, len(good)))

				overwrite(t, dir, name, func([]byte) []byte { return []byte(lfsPointer) })
				_, err = Open(t.Context(), dir, opts)
				wantError(t, err, mapmatched.KindCorrupt, name, "Git LFS pointer", "git lfs pull")
			}
			if err := os.Remove(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
			_, err = Open(t.Context(), dir, nil)
			wantError(t, err, mapmatched.KindCorrupt, name, "missing")
			if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
				t.Fatal(err)
			}
			_, err = Open(t.Context(), dir, nil)
			wantError(t, err, mapmatched.KindCorrupt, name, "not a regular file")
		})
	}
}

func TestOpenChecksIdentity(t *testing.T) {
	dir := write(t, small())
	want := small().VectorIdentity
	x := opened(t, dir, &Options{Identity: &want, ChunkPolicy: "heading_v1"})
	if got := *x.Manifest().Vectors; got != want {
		t.Errorf("identity %+v", got)
	}
	other := want
	other.Model, other.Dimension = "big", 768
	_, err := Open(t.Context(), dir, &Options{Identity: &other})
	wantError(t, err, mapmatched.KindInvalid, `model is "tiny", wanted "big"`, "dimension is 3, wanted 768", "mmplug index")
	if strings.Contains(err.Error(), "provider") || !errors.Is(err, mapmatched.ErrStaleIndex) {
		t.Errorf("the error names a field that is equal, or is not ErrStaleIndex: %v", err)
	}
	_, err = Open(t.Context(), dir, &Options{ChunkPolicy: "m7_chunk_pre_v1"})
	wantError(t, err, mapmatched.KindInvalid, "heading_v1", "m7_chunk_pre_v1", "stale")
	in := small()
	in.Vectors = nil
	_, err = Open(t.Context(), write(t, in), &Options{Identity: &want})
	wantError(t, err, mapmatched.KindInvalid, "no vectors", "tiny", "stale")
}

// use calls everything that reads the files.
func use(t *testing.T, x *Index) {
	t.Helper()
	ctx := t.Context()
	kinds := func(err error) {
		t.Helper()
		if k := mapmatched.KindOf(err); err != nil && k != mapmatched.KindCorrupt && !errors.Is(err, mapmatched.ErrNonFinite) {
			t.Errorf("kind %q of %v", k, err)
		}
	}
	q := mapmatched.Query{Text: "noise jumps map matching 故乡", Vector: []float32{1, 2, 3}}
	ids := []string{"hmm", "noise", "jumps", "home", "unknown"}
	_, err := x.Candidates(ctx, q, 3)
	kinds(err)
	_, err = x.ScoreChunks(ctx, q, ids)
	kinds(err)
	_, err = x.Chunks(ctx, ids)
	kinds(err)
	_, err = x.ChunkIDs(ctx)
	kinds(err)
	_, err = x.Vectors(ctx, ids)
	kinds(err)
	for _, err := range x.Edges(ctx) {
		kinds(err)
	}
	x.IDF("noise")
}

// With checksums skipped, no damage makes any call panic.
func TestDamageWithoutChecksums(t *testing.T) {
	dir := write(t, small())
	good := contents(t, dir)
	r := rand.New(rand.NewPCG(1, 9))
	for round := range 1500 {
		name := dataNames[round%len(dataNames)]
		bad := bytes.Clone(good[name])
		for range 1 + r.IntN(8) {
			at := r.IntN(len(bad))
			if r.IntN(2) == 0 {
				bad[at] = byte(r.Uint32())
			} else { // a whole number
				for i := range min(8, len(bad)-at) {
					bad[at+i] = 0xff
				}
			}
		}
		if err := os.WriteFile(filepath.Join(dir, name), bad, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, arm := range []Arm{ArmLexical, ArmDense} {
			x, err := Open(t.Context(), dir, &Options{SkipChecksums: true, Arm: arm})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			use(t, x)
			_ = x.Close() // nil by contract, checked in TestClose
		}
		if err := os.WriteFile(filepath.Join(dir, name), good[name], 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// Particular damage is found where it is met, and named.
func TestDamageIsNamed(t *testing.T) {
	ones := func(at, n int) func([]byte) []byte {
		return func(b []byte) []byte {
			for i := range n {
				b[at+i] = 0xff
			}
			return b
		}
	}
	for _, c := range []struct {
		name, file string
		change     func([]byte) []byte
		call       func(x *Index) error
	}{
		{"text beyond the file", chunksName, ones(columnText*8, 8), func(x *Index) error { _, err := x.Chunks(t.Context(), []string{"hmm"}); return err }},
		{"ordinal beyond int", chunksName, ones(columnOrdinal*8, 8), func(x *Index) error { _, err := x.Chunks(t.Context(), []string{"hmm"}); return err }},
		{"order beyond the chunks", orderName, ones(0, 16), func(x *Index) error { _, err := x.Chunks(t.Context(), []string{"hmm"}); return err }},
		{"edge end", edgesName, ones(0, 4), func(x *Index) error { return lastError(x, t) }},
		{"edge weight", edgesName, ones(8, 8), func(x *Index) error { return lastError(x, t) }},
		{"edge type", edgesName, ones(16, 1), func(x *Index) error { return lastError(x, t) }},
		{"vector", vectorsName, ones(0, 48), func(x *Index) error {
			_, err := x.Candidates(t.Context(), mapmatched.Query{Vector: []float32{1, 0, 0}}, 1)
			return err
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := write(t, small())
			overwrite(t, dir, c.file, c.change)
			x := opened(t, dir, &Options{SkipChecksums: true, Arm: ArmDense})
			wantError(t, c.call(x), mapmatched.KindCorrupt, "index is damaged", c.file)
		})
	}
}

func lastError(x *Index, t *testing.T) error {
	var last error
	for _, err := range x.Edges(t.Context()) {
		last = err
	}
	return last
}
