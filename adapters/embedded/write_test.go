package embedded

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/mapmatched/mmplug/mapmatched"
)

// contents reads all files of a directory.
func contents(t testing.TB, dir string) map[string][]byte {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, e := range entries {
		if files[e.Name()], err = os.ReadFile(filepath.Join(dir, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// onlyIndexIn checks that nothing is left beside an index.
func onlyIndexIn(t testing.TB, parent string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(parent)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if !slices.Equal(names, want) {
		t.Errorf("%s holds %q, want %q", parent, names, want)
	}
}

func TestSameInputSameBytes(t *testing.T) {
	in := large(200, 20, 8)
	in.Vectors = vectors(200, 8, 8)
	in.VectorIdentity = VectorIdentity{Provider: "test", Model: "random"}
	first, second := contents(t, write(t, in)), contents(t, write(t, in))
	if len(first) != len(dataNames)+1 {
		t.Errorf("%d files, want %d", len(first), len(dataNames)+1)
	}
	for name, data := range first {
		if !bytes.Equal(data, second[name]) {
			t.Errorf("%s differs between two runs", name)
		}
	}
	// What an index returns makes the same index again.
	x := opened(t, write(t, in), nil)
	ids, err := x.ChunkIDs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	again := in
	if again.Chunks, err = x.Chunks(t.Context(), ids); err != nil {
		t.Fatal(err)
	}
	if again.Vectors, err = x.Vectors(t.Context(), ids); err != nil {
		t.Fatal(err)
	}
	again.Edges = edgesOf(t, x)
	for name, data := range contents(t, write(t, again)) {
		if !bytes.Equal(data, first[name]) {
			t.Errorf("%s differs when the index is made of itself", name)
		}
	}
}

func TestWriteRefusesFaultyInput(t *testing.T) {
	nan, inf := float32(math.NaN()), math.Inf(1)
	for _, c := range []struct {
		name  string
		fault func(*Input)
		is    error
		parts []string
	}{
		{"empty chunk ID", func(in *Input) { in.Chunks[1].ID = "" }, mapmatched.ErrEmptyChunkID, []string{"chunk 1", "matching.md"}},
		{"chunk ID twice", func(in *Input) { in.Chunks[2].ID = "hmm" }, nil, []string{"chunks 0 and 2", "hmm"}},
		{"k1", func(in *Input) { in.BM25 = &BM25{K1: -1} }, nil, []string{"k1 of BM25 is -1"}},
		{"b", func(in *Input) { in.BM25 = &BM25{B: 2} }, nil, []string{"b of BM25 is 2"}},
		{"negative start", func(in *Input) { in.Chunks[0].Start = -1 }, nil, []string{"chunk 0", "-1"}},
		{"end before start", func(in *Input) { in.Chunks[1].End = 5 }, nil, []string{"chunk 1", "60 to 5"}},
		{"negative ordinal", func(in *Input) { in.Chunks[1].Ordinal = -7 }, nil, []string{"chunk 1", "-7"}},
		{"too few vectors", func(in *Input) { in.Vectors = in.Vectors[:2] }, nil, []string{"2 vectors for 4 chunks"}},
		{"ragged vectors", func(in *Input) { in.Vectors[2] = []float32{1} }, nil, []string{"vector 2", "jumps", "1 components, not 3"}},
		{"missing vector", func(in *Input) { in.Vectors[2] = nil }, nil, []string{"vector 2", "0 components"}},
		{"zero vector", func(in *Input) { in.Vectors[1] = []float32{0, 0, 0} }, nil, []string{"vector 1", "noise", "all components are 0"}},
		{"vector not finite", func(in *Input) { in.Vectors[1][2] = nan }, mapmatched.ErrNonFinite, []string{"vector 1", "component 2", "NaN"}},
		{"dimension differs", func(in *Input) { in.VectorIdentity.Dimension = 5 }, nil, []string{"vector 0", "3 components, not 5"}},
		{"dimension negative", func(in *Input) { in.VectorIdentity.Dimension = -1 }, nil, []string{"dimension", "-1"}},
		{"no model", func(in *Input) { in.VectorIdentity.Model = "" }, nil, []string{"provider \"test\"", "model \"\""}},
		{"other normalization", func(in *Input) { in.VectorIdentity.Normalization = "max" }, nil, []string{"max"}},
		{"unknown end", func(in *Input) { in.Edges[1].To = "nowhere" }, nil, []string{"edge 1", "no chunk \"nowhere\""}},
		{"unknown beginning", func(in *Input) { in.Edges[1].From = "nowhere" }, nil, []string{"edge 1", "no chunk \"nowhere\""}},
		{"empty end", func(in *Input) { in.Edges[2].To = "" }, mapmatched.ErrEmptyChunkID, []string{"edge 2"}},
		{"weight zero", func(in *Input) { in.Edges[0].Weight = 0 }, mapmatched.ErrDistance, []string{"edge 0", "hmm", "noise", "next"}},
		{"weight infinite", func(in *Input) { in.Edges[0].Weight = inf }, mapmatched.ErrNonFinite, []string{"edge 0", "+Inf"}},
		{"maximum distance", func(in *Input) { in.MaximumDistance = -2 }, nil, []string{"maximum distance", "-2"}},
		{"tag not UTF-8", func(in *Input) { in.ChunkPolicy = "\xff" }, nil, []string{"chunk policy", `\xff`}},
		{"edge type not UTF-8", func(in *Input) { in.Edges[0].Type = "\xff" }, nil, []string{"edge type", `\xff`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			in, parent := small(), t.TempDir()
			c.fault(&in)
			err := Write(t.Context(), filepath.Join(parent, "index"), in, nil)
			wantError(t, err, mapmatched.KindInvalid, c.parts...)
			if c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("%v is not %v", err, c.is)
			}
			onlyIndexIn(t, parent)
		})
	}
	for _, fields := range [][]Field{{"body"}, {FieldText, FieldText}} {
		err := Write(t.Context(), filepath.Join(t.TempDir(), "index"), small(), &WriteOptions{Fields: fields})
		wantError(t, err, mapmatched.KindInvalid, string(fields[0]))
	}
	in := small()
	in.Edges = nil
	for i := range maxEdgeTypes + 1 {
		in.Edges = append(in.Edges, mapmatched.Edge{From: "hmm", To: "noise", Weight: 1, Type: mapmatched.EdgeType(rune('a' + i))})
	}
	err := Write(t.Context(), filepath.Join(t.TempDir(), "index"), in, nil)
	wantError(t, err, mapmatched.KindInvalid, "257 types")
}

// Nothing but an index is ever replaced, and what is refused stays as it was.
func TestWriteRefusesForeignTargets(t *testing.T) {
	put := func(name, content string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	index := func(t *testing.T, dir string) {
		if err := Write(t.Context(), dir, small(), nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name  string
		make  func(t *testing.T, dir string)
		kind  mapmatched.Kind
		parts []string
	}{
		{"a user's directory", put("thesis.md", "my only copy"), mapmatched.KindInvalid, []string{"thesis.md", "another directory"}},
		{"a web application", put(manifestName, `{"name":"app"}`), mapmatched.KindInvalid, []string{manifestName, "not a whole index"}},
		{"data without manifest", put(textName, "x"), mapmatched.KindInvalid, []string{"it has no " + manifestName, "not a whole index"}},
		{"a note in an index", func(t *testing.T, dir string) { index(t, dir); put("notes.txt", "keep")(t, dir) }, mapmatched.KindInvalid, []string{"notes.txt"}},
		{"a directory in an index", func(t *testing.T, dir string) { index(t, dir); put("x", "y")(t, filepath.Join(dir, "sub")) }, mapmatched.KindInvalid, []string{"sub"}},
		{"a file", func(t *testing.T, dir string) { put(filepath.Base(dir), "text")(t, filepath.Dir(dir)) }, mapmatched.KindInvalid, []string{"not a directory"}},
		{"a link to nowhere", func(t *testing.T, dir string) {
			if err := os.Symlink("nowhere", dir); err != nil {
				t.Skip(err)
			}
		}, mapmatched.KindNotFound, []string{"symbolic link"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			parent := t.TempDir()
			dir := filepath.Join(parent, "target")
			c.make(t, dir)
			before := tree(t, parent)
			wantError(t, Write(t.Context(), dir, small(), nil), c.kind, c.parts...)
			if after := tree(t, parent); !slices.Equal(before, after) {
				t.Errorf("before %q, after %q", before, after)
			}
		})
	}
	wantError(t, Write(t.Context(), "", small(), nil), mapmatched.KindInvalid, "no directory")
	missing := filepath.Join(t.TempDir(), "no", "index")
	wantError(t, Write(t.Context(), missing, small(), nil), mapmatched.KindNotFound, "does not exist: create it")
	file := filepath.Join(t.TempDir(), "file")
	put("file", "")(t, filepath.Dir(file))
	err := Write(t.Context(), filepath.Join(file, "index"), small(), nil)
	wantError(t, err, mapmatched.KindInvalid, "not a directory")
}

// tree lists all names below a directory with their contents.
func tree(t *testing.T, dir string) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		line := path
		if err == nil && d.Type().IsRegular() {
			var data []byte
			data, err = os.ReadFile(path)
			line += ": " + string(data)
		}
		names = append(names, line)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestWriteIntoUnwritableParent(t *testing.T) {
	parent := t.TempDir()
	if err := os.Chmod(parent, 0o500); err != nil {
		t.Fatal(err)
	}
	if f, err := os.Create(filepath.Join(parent, "probe")); err == nil {
		_ = f.Close()
		t.Skip("permissions do not bind this user")
	}
	wantError(t, Write(t.Context(), filepath.Join(parent, "index"), small(), nil), mapmatched.KindUnavailable, "permission denied")
}

func TestWriteReplaces(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "index")
	if err := os.Mkdir(dir, 0o755); err != nil { // an empty directory is fine
		t.Fatal(err)
	}
	for _, chunks := range []int{3, 30, 1, 0, 7} {
		var done, total int
		opts := &WriteOptions{Progress: func(d, n int) { done, total = d, n }}
		if err := Write(t.Context(), dir, large(chunks, 5, 1), opts); err != nil {
			t.Fatal(err)
		}
		if got := opened(t, dir, nil).Manifest().Counts.Chunks; got != chunks {
			t.Errorf("the index has %d chunks, want %d", got, chunks)
		}
		if done != chunks || total != chunks {
			t.Errorf("progress ends at %d of %d, want %d", done, total, chunks)
		}
		onlyIndexIn(t, parent, "index")
	}
}

// A link to an index stays a link; what it points to is replaced.
func TestWriteFollowsLinks(t *testing.T) {
	parent := t.TempDir()
	dir, link := filepath.Join(parent, "index"), filepath.Join(parent, "link")
	if err := os.Symlink("index", link); err != nil {
		t.Skip(err)
	}
	if err := Write(t.Context(), dir, large(1, 5, 1), nil); err != nil {
		t.Fatal(err)
	}
	if err := Write(t.Context(), link, large(2, 5, 1), nil); err != nil {
		t.Fatal(err)
	}
	if got := opened(t, dir, nil).Manifest().Counts.Chunks; got != 2 {
		t.Errorf("behind the link are %d chunks, want 2", got)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("the link became %v, %v", info, err)
	}
}

// An index of another format version may be replaced.
func TestWriteReplacesOtherVersions(t *testing.T) {
	dir := write(t, small())
	path := filepath.Join(dir, manifestName)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	data = bytes.Replace(data, []byte(`"version": 1`), []byte(`"version": 0`), 1)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Write(t.Context(), dir, large(2, 5, 1), nil); err != nil {
		t.Fatal(err)
	}
	opened(t, dir, nil)
}

func TestOneWriterAtATime(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "index")
	held := make(chan struct{})
	release := make(chan struct{})
	var once sync.Once
	var wg sync.WaitGroup
	wg.Go(func() {
		err := Write(t.Context(), dir, large(5, 5, 1), &WriteOptions{Progress: func(int, int) {
			once.Do(func() { close(held) })
			<-release
		}})
		if err != nil {
			t.Error(err)
		}
	})
	<-held
	err := Write(t.Context(), dir, large(6, 5, 1), nil)
	close(release)
	wg.Wait()
	wantError(t, err, mapmatched.KindUnavailable, "another process is writing", "mmplug-lock")
	if got := opened(t, dir, nil).Manifest().Counts.Chunks; got != 5 {
		t.Errorf("the index has %d chunks, want those of the first writer, 5", got)
	}
	onlyIndexIn(t, parent, "index")
}

// Cancelling in the middle leaves the old index and nothing else.
func TestWriteCancelled(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "index")
	if err := Write(t.Context(), dir, large(5, 5, 1), nil); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err := Write(ctx, dir, large(5000, 5, 1), &WriteOptions{Progress: func(done, _ int) {
		if done > 2000 {
			cancel()
		}
	}})
	cancel()
	wantError(t, err, mapmatched.KindDeadline, "canceled")
	if got := opened(t, dir, nil).Manifest().Counts.Chunks; got != 5 {
		t.Errorf("the index has %d chunks, want 5", got)
	}
	onlyIndexIn(t, parent, "index")
}
