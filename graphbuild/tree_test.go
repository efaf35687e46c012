package graphbuild

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/mapmatched/mmplug/mapmatched"
)

// writeTree writes files, given as path and content in turn, under a new
// directory.
func writeTree(t testing.TB, pathsAndContents ...string) string {
	t.Helper()
	dir := t.TempDir()
	for i := 0; i < len(pathsAndContents); i += 2 {
		name := filepath.Join(dir, filepath.FromSlash(pathsAndContents[i]))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(pathsAndContents[i+1]), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func mustRoots(t testing.TB, dirs ...string) []Root {
	t.Helper()
	roots, err := DirRoots(dirs...)
	if err != nil {
		t.Fatal(err)
	}
	return roots
}

func documentIDs(tree *Tree) string {
	var ids []string
	for _, d := range tree.Documents {
		ids = append(ids, d.Document)
	}
	return strings.Join(ids, " ")
}

func TestReadTree(t *testing.T) {
	dir := writeTree(t,
		"b.md", "# B", "a.MARKDOWN", "# A", "sub/c.txt", "c", "sub/d.text", "d", "sub-e.md", "e",
		"code.go", "package x", "Makefile", "x", ".git/x.md", "x", "sub/.hidden.md", "x", "node_modules/p/README.md", "x",
		"empty.md", "", "blank.md", "\uFEFF \n\u3000\n", "nul.md", "a\x00b", "latin1.txt", "caf\xe9", "big.md", strings.Repeat("x", 101), "fits.md", strings.Repeat("x", 100),
		"dir.md/inside.md", "x", "bad\x01name.md", "x",
	)
	for link, target := range map[string]string{"loop": ".", "up": "..", "link.md": "b.md", "dead.md": "gone", "code2.go": "code.go"} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	calls := 0
	opts := &TreeOptions{MaxFileBytes: 100, Progress: func(done, total int) {
		if calls++; done != calls || total != 12 {
			t.Errorf("call %d says %d of %d, want 12 in all", calls, done, total)
		}
	}}
	tree, err := ReadTree(context.Background(), mustRoots(t, dir), opts)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := documentIDs(tree), "a.MARKDOWN b.md dir.md/inside.md fits.md sub-e.md sub/c.txt sub/d.text"; got != want {
		t.Errorf("documents %s, want %s", got, want)
	}
	if calls != 12 {
		t.Errorf("%d calls of Progress, want 12", calls)
	}
	var warnings []string
	for _, w := range tree.Warnings {
		warnings = append(warnings, w.String())
	}
	want := []string{
		`"bad\x01name.md": name is not UTF-8 or not printable`,
		"big.md: 101 bytes, over the limit of 100",
		"blank.md: white space only",
		"dead.md: symbolic link, not followed",
		"empty.md: empty",
		"latin1.txt: binary or not UTF-8: byte 3 is 0xe9",
		"link.md: symbolic link, not followed",
		"loop: symbolic link, not followed",
		"nul.md: binary: NUL at byte 1",
		"up: symbolic link, not followed",
	}
	if !reflect.DeepEqual(warnings, want) {
		t.Errorf("warnings\n%s\nwant\n%s", strings.Join(warnings, "\n"), strings.Join(want, "\n"))
	}
	for p, want := range map[string]bool{"b.md": true, "code.go": true, "sub": true, "empty.md": true, "gone.md": false, ".git/config": true, "sub/node_modules/x": true} {
		if got := tree.Exists(p); got != want {
			t.Errorf("Exists(%q) = %v, want %v", p, got, want)
		}
	}
}

func TestReadTreeExtensions(t *testing.T) {
	dir := writeTree(t, "a.md", "# A\n\ntext\n# B\nb", "b.rst", "# A\n# B", "c.txt", "c")
	tree, err := ReadTree(context.Background(), mustRoots(t, dir), &TreeOptions{TextExtensions: []string{".RST"}, MarkdownExtensions: []string{}})
	if err != nil {
		t.Fatal(err)
	}
	if got := documentIDs(tree); got != "b.rst" || len(tree.Documents[0].Chunks) != 1 {
		t.Errorf("documents %s, want b.rst as plain text", got)
	}
}

// failingFS fails for some paths and grows others while they are read.
type failingFS struct {
	fstest.MapFS
	open, dir, read, grow string
}

func (f failingFS) Open(name string) (fs.File, error) {
	file, err := f.MapFS.Open(name)
	switch {
	case name == f.open:
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	case name == f.read && err == nil:
		return failingFile{file, errors.New("disk on fire")}, nil
	case name == f.grow && err == nil:
		return growingFile{file}, nil
	}
	return file, err
}

func (f failingFS) ReadDir(name string) ([]fs.DirEntry, error) {
	if name == f.dir {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: fs.ErrPermission}
	}
	return f.MapFS.ReadDir(name)
}

type failingFile struct {
	fs.File
	err error
}

func (f failingFile) Read([]byte) (int, error) { return 0, f.err }

type growingFile struct{ fs.File }

func (growingFile) Read(p []byte) (int, error) {
	return copy(p, bytes.Repeat([]byte("x"), len(p))), nil
}

func TestReadTreeUnreadable(t *testing.T) {
	files := fstest.MapFS{"closed.md": {Data: []byte("x")}, "dir/x.md": {Data: []byte("x")}, "fire.md": {Data: []byte("x")}, "grow.md": {Data: []byte("x")}, "ok.md": {Data: []byte("x")}, "pipe.md": {Mode: fs.ModeNamedPipe}}
	tree, err := ReadTree(context.Background(), []Root{{FS: failingFS{files, "closed.md", "dir", "fire.md", "grow.md"}}}, &TreeOptions{MaxFileBytes: 50})
	if err != nil {
		t.Fatal(err)
	}
	want := []Warning{
		{"closed.md", "cannot be read: permission denied"}, {"dir", "cannot be read: permission denied"},
		{"fire.md", "cannot be read: disk on fire"}, {"grow.md", "over the limit of 50 bytes"},
		{"pipe.md", "not a regular file"},
	}
	if !reflect.DeepEqual(tree.Warnings, want) || documentIDs(tree) != "ok.md" {
		t.Errorf("documents %s, warnings %v, want ok.md and %v", documentIDs(tree), tree.Warnings, want)
	}
	if _, err := ReadTree(context.Background(), []Root{{FS: failingFS{MapFS: files, dir: "."}}}, nil); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("unreadable root: error %v, want permission denied", err)
	}
}

func TestDirRoots(t *testing.T) {
	one := writeTree(t, "docs/x.md", "one", "docs/sub/y.md", "y")
	two := writeTree(t, "docs/x.md", "two", "wiki/x.md", "three")
	tree, err := ReadTree(context.Background(), mustRoots(t, filepath.Join(one, "docs"), filepath.Join(two, "docs"), filepath.Join(two, "wiki")), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := documentIDs(tree), "docs-2/x.md docs/sub/y.md docs/x.md wiki/x.md"; got != want {
		t.Errorf("documents %s, want %s", got, want)
	}
	if err := os.Symlink(filepath.Join(one, "docs"), filepath.Join(two, "link")); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		dirs []string
		want string
	}{
		{nil, "no directory is given"},
		{[]string{filepath.Join(one, "gone")}, "no such file"},
		{[]string{filepath.Join(one, "docs", "x.md")}, "x.md is not a directory"},
		{[]string{one, two, filepath.Join(one, "docs")}, "overlap"},
		{[]string{filepath.Join(one, "docs", "sub"), one}, "overlap"},
		{[]string{two, two}, "overlap"},
		{[]string{filepath.Join(one, "docs"), filepath.Join(two, "link")}, "overlap"},
	} {
		if _, err := DirRoots(tt.dirs...); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("DirRoots(%q): error %v, want one with %q", tt.dirs, err, tt.want)
		}
	}
}

func TestReadTreeErrors(t *testing.T) {
	files := fstest.MapFS{}
	tests := []struct {
		name  string
		roots []Root
		opts  *TreeOptions
		want  string
	}{
		{"two without names", []Root{{"", files}, {"a", files}}, nil, "root 0 has no name"},
		{"same name", []Root{{"a", files}, {"a", files}}, nil, `two roots are named "a"`},
		{"bad name", []Root{{"a/b", files}}, nil, `named "a/b", want a single path element`},
		{"dots", []Root{{"..", files}}, nil, `named ".."`},
		{"no files", []Root{{"a", nil}}, nil, `root 0 ("a") has no file system`},
		{"options", nil, &TreeOptions{Chunk: ChunkOptions{MaxBytes: 1}, MaxFileBytes: -1, MarkdownExtensions: []string{"md", ".x"}, TextExtensions: []string{".X"}},
			"MaxBytes is 1, want 0 for the default or at least 4\n" +
				"invalid configuration: MaxFileBytes is -1, want 0 for the default or more\n" +
				"invalid configuration: extension \"md\", want a dot and a name without one, such as .md\n" +
				"invalid configuration: extension \".X\" is given twice"},
	}
	for _, tt := range tests {
		_, err := ReadTree(context.Background(), tt.roots, tt.opts)
		if err == nil || !errors.Is(err, mapmatched.ErrInvalidConfig) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want one with %q", tt.name, err, tt.want)
		}
	}
	if _, err := BuildCorpus(context.Background(), nil, &CorpusOptions{Structure: StructureOptions{Next: -1, Link: math.Inf(1)}}); !errors.Is(err, mapmatched.ErrInvalidConfig) {
		t.Errorf("weights: error %v, want an invalid configuration", err)
	}
}

func TestReadTreeCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	files := fstest.MapFS{}
	for i := range 50 {
		files[fmt.Sprintf("%d.md", i)] = &fstest.MapFile{Data: []byte("x")}
	}
	calls := 0
	_, err := ReadTree(ctx, []Root{{FS: files}}, &TreeOptions{Progress: func(int, int) { calls++; cancel() }})
	if !errors.Is(err, context.Canceled) || calls > runtime.GOMAXPROCS(0) {
		t.Errorf("error %v after %d files, want context.Canceled after one for each core at most", err, calls)
	}
	if _, err := ReadTree(ctx, []Root{{FS: files}}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
}

func TestBuildCorpus(t *testing.T) {
	one := writeTree(t, "docs/a.md", "# A\n[up](../wiki/b.md#two) [pic](p.png) [src](main.go) [gone](gone.md) [again](gone.md)\n", "docs/main.go", "x")
	two := writeTree(t, "wiki/b.md", "# One\n1\n## Two\n[back](/b.md) [abs](../docs/a.md)\n", "wiki/c.txt", "plain\n", "wiki/d.md", "")
	roots := mustRoots(t, filepath.Join(two, "wiki"), filepath.Join(one, "docs"))
	var want *Corpus
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, procs := range []int{1, 2, 8} {
		runtime.GOMAXPROCS(procs)
		c, err := BuildCorpus(context.Background(), roots, nil)
		if err != nil {
			t.Fatal(err)
		}
		if want == nil {
			want = c
		} else if !reflect.DeepEqual(c, want) {
			t.Fatalf("%d cores: corpus differs", procs)
		}
	}
	var chunks []string
	for _, c := range want.Chunks {
		chunks = append(chunks, c.ID)
	}
	if got := strings.Join(chunks, " "); got != "docs/a.md#a wiki/b.md#one wiki/b.md#two wiki/c.txt" {
		t.Errorf("chunks %s", got)
	}
	wantEdges := "docs/a.md#a-wiki/b.md#two link 2\nwiki/b.md#one-wiki/b.md#two link 2\n" +
		"wiki/b.md#one-wiki/b.md#two next 1\nwiki/b.md#one-wiki/b.md#two parent 1"
	if got := edgeLines(want.Edges); got != wantEdges {
		t.Errorf("edges\n%s\nwant\n%s", got, wantEdges)
	}
	var broken []string
	for _, b := range want.Broken {
		broken = append(broken, b.Document+" "+b.Target)
	}
	if got := strings.Join(broken, ", "); got != "docs/a.md p.png, docs/a.md gone.md" {
		t.Errorf("broken links %s, want p.png and gone.md", got)
	}
	if len(want.Warnings) != 1 || want.Warnings[0].Path != "wiki/d.md" {
		t.Errorf("warnings %v, want one for wiki/d.md", want.Warnings)
	}
	if empty, err := BuildCorpus(context.Background(), nil, nil); err != nil || len(empty.Chunks)+len(empty.Edges) != 0 {
		t.Errorf("no roots: %+v, %v; want an empty corpus", empty, err)
	}
}

func BenchmarkBuildCorpus(b *testing.B) {
	var page strings.Builder
	page.WriteString("# Page\n\nIntro with a [link](1.md#part-2) and *words*.\n\n")
	for i := 0; page.Len() < 4096; i++ {
		fmt.Fprintf(&page, "## Part %d\n\n%s\n\n- item `code`\n- [next](%d.md)\n\n", i, strings.Repeat("some words of text ", 12), i*7)
	}
	var files []string
	for i := range 5000 {
		files = append(files, fmt.Sprintf("dir%d/%d.md", i/100, i), page.String())
	}
	roots := mustRoots(b, writeTree(b, files...))
	b.Run("files=5000/bytes=4096", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := BuildCorpus(context.Background(), roots, nil); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// Cut takes the place of the chunkers, for documents of every kind and for
// nothing else.
func TestReadTreeCutsAsTold(t *testing.T) {
	dir := writeTree(t, "a.md", "# A\n\none\n\n## B\n\ntwo\n", "b.txt", "three\n", "c.html", "<p>four", "d.go", "package d")
	opts := &CorpusOptions{Tree: TreeOptions{
		HTMLExtensions: []string{".html"},
		Cut:            func(d Document) (Chunked, error) { return ChunkFixed(d, UnitBytes, nil, &TokenOptions{Limit: 10}) },
	}}
	c, err := BuildCorpus(t.Context(), mustRoots(t, dir), opts)
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, chunk := range c.Chunks {
		texts = append(texts, chunk.Text)
	}
	if got, want := strings.Join(texts, "|"), "# A\n\none\n\n|## B\n\ntwo\n|three\n|<p>four"; got != want {
		t.Errorf("chunks %q, want %q", got, want)
	}
	if len(c.Edges) != 1 || c.Edges[0].Type != mapmatched.EdgeNext {
		t.Errorf("edges %v, want the one between the chunks of a.md", c.Edges)
	}
	cut := opts.Tree.Cut
	opts.Tree.Cut = func(d Document) (Chunked, error) {
		if d.ID == "c.html" {
			return Chunked{}, fmt.Errorf("%s: %w", d.ID, LeftOut("HTML, which nobody reads"))
		}
		return cut(d)
	}
	if c, err = BuildCorpus(t.Context(), mustRoots(t, dir), opts); err != nil || !slices.Equal(c.Documents, []string{"a.md", "b.txt"}) ||
		!slices.Equal(c.Warnings, []Warning{{"c.html", "HTML, which nobody reads"}}) {
		t.Errorf("%+v, error %v", c, err)
	}
	broken := errors.New("no tokenizer")
	opts.Tree.Cut = func(Document) (Chunked, error) { return Chunked{}, broken }
	if _, err := BuildCorpus(t.Context(), mustRoots(t, dir), opts); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
}
