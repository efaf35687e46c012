package graphbuild

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/mapmatched/mmplug/mapmatched"
)

// DefaultMaxFileBytes is the limit of a file, in bytes, when none is set.
const DefaultMaxFileBytes = 16 << 20

// Root is a directory tree to read documents from.
type Root struct {
	Name string // first element of its document IDs, "" for none
	FS   fs.FS
}

// DirRoots makes the roots of directories of the file system.
//
// A single directory has no name: its document IDs are the paths inside it,
// such as "guide/setup.md". Several have the names of the directories before
// the paths, such as "docs/guide/setup.md", with "-2", "-3" and so on after a
// name that an earlier one has taken, so the same path in two of them makes two
// IDs. A directory that does not exist, that is given twice or that lies inside
// another one is an error.
func DirRoots(dirs ...string) ([]Root, error) {
	if len(dirs) == 0 {
		return nil, errors.New("no directory is given; name at least one to read documents from")
	}
	roots := make([]Root, len(dirs))
	resolved := make([]string, len(dirs))
	taken := map[string]bool{}
	for i, dir := range dirs {
		info, err := os.Stat(dir)
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			return nil, fmt.Errorf("%s is not a directory; name the directory it is in", dir)
		}
		if resolved[i], err = filepath.Abs(dir); err != nil {
			return nil, err
		}
		if resolved[i], err = filepath.EvalSymlinks(resolved[i]); err != nil {
			return nil, err
		}
		for j := range i {
			if within(resolved[i], resolved[j]) || within(resolved[j], resolved[i]) {
				return nil, fmt.Errorf("directories %s and %s overlap; give the outer one only", dirs[j], dir)
			}
		}
		roots[i].FS = os.DirFS(dir)
		if len(dirs) == 1 {
			continue
		}
		base := filepath.Base(resolved[i])
		name := base
		for n := 2; taken[name]; n++ {
			name = base + "-" + strconv.Itoa(n)
		}
		taken[name] = true
		roots[i].Name = name
	}
	return roots, nil
}

// within reports whether dir is outer or lies inside it.
func within(dir, outer string) bool {
	rel, err := filepath.Rel(outer, dir)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// TreeOptions are the settings of [ReadTree]. The zero value, and nil, mean
// the defaults.
type TreeOptions struct {
	Chunk ChunkOptions

	// MarkdownExtensions, TextExtensions and HTMLExtensions say which files
	// are documents and that ChunkMarkdown, ChunkText and ChunkHTML cut them,
	// whatever the case of the letters; each begins with a dot. nil means .md
	// and .markdown, .txt and .text, and .html and .htm; an empty list that is
	// not nil means none.
	MarkdownExtensions []string
	TextExtensions     []string
	HTMLExtensions     []string

	// Cut, if set, cuts every document in place of the chunkers by extension,
	// which then only say what is a document, and of Chunk. It is called from
	// several goroutines at a time. An error of type [LeftOut] leaves the
	// document out with a warning, any other one ends the reading.
	Cut func(Document) (Chunked, error)

	// MaxFileBytes is the limit of a file in bytes; a larger one is left out
	// with a warning. 0 means DefaultMaxFileBytes.
	MaxFileBytes int64

	// Progress, if set, is told how many of the files are done, one call at
	// a time, done ascending. It must not block for long.
	Progress func(done, total int)
}

// Validate reports every value that is out of range.
func (o *TreeOptions) Validate() error {
	if o == nil {
		return nil
	}
	errs := []error{o.Chunk.Validate()}
	if o.MaxFileBytes < 0 {
		errs = append(errs, fmt.Errorf("%w: MaxFileBytes is %d, want 0 for the default or more", mapmatched.ErrInvalidConfig, o.MaxFileBytes))
	}
	seen := map[string]bool{}
	for _, ext := range slices.Concat(o.MarkdownExtensions, o.TextExtensions, o.HTMLExtensions) {
		switch lower := strings.ToLower(ext); {
		case len(ext) < 2 || path.Ext(ext) != ext:
			errs = append(errs, fmt.Errorf("%w: extension %q, want a dot and a name without one, such as .md", mapmatched.ErrInvalidConfig, ext))
		case seen[lower]:
			errs = append(errs, fmt.Errorf("%w: extension %q is given twice", mapmatched.ErrInvalidConfig, ext))
		default:
			seen[lower] = true
		}
	}
	return errors.Join(errs...)
}

func (o *TreeOptions) withDefaults() TreeOptions {
	var d TreeOptions
	if o != nil {
		d = *o
	}
	if d.MarkdownExtensions == nil {
		d.MarkdownExtensions = []string{".md", ".markdown"}
	}
	if d.TextExtensions == nil {
		d.TextExtensions = []string{".txt", ".text"}
	}
	if d.HTMLExtensions == nil {
		d.HTMLExtensions = []string{".html", ".htm"}
	}
	d.MaxFileBytes = cmp.Or(d.MaxFileBytes, DefaultMaxFileBytes)
	return d
}

// chunker returns how files of that name are cut, nil when they are no
// documents.
func (o *TreeOptions) chunker(name string) func(Document, *ChunkOptions) (Chunked, error) {
	is := func(ext string) bool { return strings.EqualFold(ext, path.Ext(name)) }
	documents := slices.Concat(o.MarkdownExtensions, o.TextExtensions, o.HTMLExtensions)
	switch {
	case o.Cut != nil && slices.ContainsFunc(documents, is):
		return func(d Document, _ *ChunkOptions) (Chunked, error) { return o.Cut(d) }
	case slices.ContainsFunc(o.MarkdownExtensions, is):
		return ChunkMarkdown
	case slices.ContainsFunc(o.TextExtensions, is):
		return ChunkText
	case slices.ContainsFunc(o.HTMLExtensions, is):
		return ChunkHTML
	}
	return nil
}

// LeftOut is why the Cut of [TreeOptions] does not take a document.
type LeftOut string

// Error returns the reason.
func (l LeftOut) Error() string { return string(l) }

// Warning says why a file or directory was left out.
type Warning struct {
	Path   string // of the form of a document ID; quoted when it is not printable
	Reason string
}

// String returns the warning as one line.
func (w Warning) String() string { return w.Path + ": " + w.Reason }

// Tree is what [ReadTree] found.
type Tree struct {
	Documents []Chunked // sorted by document ID
	Warnings  []Warning // sorted by path

	names map[string]bool // every file and directory seen
}

// Exists reports whether there is something at a path of the form of a
// document ID that need not be a document: a file or directory that was seen,
// or anything in a directory that is not read.
func (t *Tree) Exists(p string) bool {
	return t.names[p] || slices.ContainsFunc(strings.Split(p, "/"), skipped)
}

// ReadTree reads the documents of directory trees and cuts them into chunks.
//
// Files with the extensions of opts are documents. Directories named
// node_modules and files and directories whose name begins with a dot are not
// read. What cannot be used is left out with one warning each: files and
// directories that cannot be read, files that are empty, white space only or
// without any visible text, binary (a NUL byte, or not UTF-8) or larger than opts.MaxFileBytes, anything
// with the name of a document that is no regular file, symbolic links to
// documents and directories, and names that are not UTF-8 or not printable.
//
// A document ID is the path inside the root, after the name of the root and a
// slash if it has a name. Of several roots each needs a name of its own.
//
// Files are read on all cores; the result is the same whatever their number. A
// root that cannot be read at all is an error, and so is the end of ctx.
func ReadTree(ctx context.Context, roots []Root, opts *TreeOptions) (*Tree, error) {
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	if err := checkRoots(roots); err != nil {
		return nil, err
	}
	o := opts.withDefaults()
	t := &Tree{names: map[string]bool{}}
	var files []treeFile
	for _, root := range roots {
		found, err := t.walk(ctx, root, &o)
		if err != nil {
			return nil, err
		}
		files = append(files, found...)
	}
	slices.SortFunc(files, func(a, b treeFile) int { return strings.Compare(a.id, b.id) })

	docs := make([]Chunked, len(files))
	reasons := make([]string, len(files))
	errs := make([]error, len(files))
	var (
		next    int
		done    int
		lock    sync.Mutex // of next, done and the calls of Progress
		workers sync.WaitGroup
	)
	for range min(runtime.GOMAXPROCS(0), len(files)) {
		workers.Go(func() {
			for ctx.Err() == nil {
				lock.Lock()
				i := next
				next++
				lock.Unlock()
				if i >= len(files) {
					return
				}
				docs[i], reasons[i], errs[i] = files[i].read(&o)
				if o.Progress != nil {
					lock.Lock()
					done++
					o.Progress(done, len(files))
					lock.Unlock()
				}
			}
		})
	}
	workers.Wait()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for i, f := range files {
		switch {
		case errs[i] != nil:
			return nil, errs[i]
		case reasons[i] != "":
			t.warn(f.id, reasons[i])
		default:
			t.Documents = append(t.Documents, docs[i])
		}
	}
	slices.SortFunc(t.Warnings, func(a, b Warning) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.Reason, b.Reason))
	})
	return t, nil
}

func checkRoots(roots []Root) error {
	seen := map[string]bool{}
	for i, r := range roots {
		switch {
		case r.FS == nil:
			return fmt.Errorf("%w: root %d (%q) has no file system", mapmatched.ErrInvalidConfig, i, r.Name)
		case r.Name == "" && len(roots) > 1:
			return fmt.Errorf("%w: root %d has no name; of several roots each needs one", mapmatched.ErrInvalidConfig, i)
		case r.Name != "" && (!printable(r.Name) || r.Name == "." || !fs.ValidPath(r.Name) || strings.Contains(r.Name, "/")):
			return fmt.Errorf("%w: root %d is named %q, want a single path element", mapmatched.ErrInvalidConfig, i, r.Name)
		case seen[r.Name]:
			return fmt.Errorf("%w: two roots are named %q; each needs a name of its own", mapmatched.ErrInvalidConfig, r.Name)
		}
		seen[r.Name] = true
	}
	return nil
}

// treeFile is a document to be read.
type treeFile struct {
	id    string
	fsys  fs.FS
	name  string
	chunk func(Document, *ChunkOptions) (Chunked, error)
}

// skipped reports whether a file or directory of that name is not looked at.
func skipped(name string) bool {
	return name != "." && strings.HasPrefix(name, ".") || name == "node_modules"
}

func printable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}

func (t *Tree) warn(path, reason string) {
	if !printable(path) {
		path = strconv.Quote(path)
	}
	t.Warnings = append(t.Warnings, Warning{Path: path, Reason: reason})
}

// walk lists the documents under a root.
func (t *Tree) walk(ctx context.Context, root Root, o *TreeOptions) ([]treeFile, error) {
	var files []treeFile
	err := fs.WalkDir(root.FS, ".", func(p string, d fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		id := path.Join(root.Name, p)
		if err != nil {
			if p == "." {
				return fmt.Errorf("root %q: %w", root.Name, err)
			}
			t.warn(id, "cannot be read: "+cause(err))
			return fs.SkipDir
		}
		name := path.Base(p)
		if skipped(name) {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		t.names[id] = true
		chunk := o.chunker(name)
		switch {
		case d.Type()&fs.ModeSymlink != 0:
			if info, err := fs.Stat(root.FS, p); chunk != nil || err == nil && info.IsDir() {
				t.warn(id, "symbolic link, not followed")
			}
		case d.IsDir():
			if !printable(name) {
				t.warn(id, "name is not UTF-8 or not printable")
				return fs.SkipDir
			}
		case chunk == nil:
		case !printable(name):
			t.warn(id, "name is not UTF-8 or not printable")
		case !d.Type().IsRegular():
			t.warn(id, "not a regular file")
		default:
			files = append(files, treeFile{id: id, fsys: root.FS, name: p, chunk: chunk})
		}
		return nil
	})
	return files, err
}

// read reads and cuts the file, or says why it cannot be used.
func (f treeFile) read(o *TreeOptions) (doc Chunked, reason string, err error) {
	data, reason := f.load(o.MaxFileBytes)
	if reason != "" {
		return Chunked{}, reason, nil
	}
	text := string(data)
	if i := strings.IndexByte(text, 0); i >= 0 {
		return Chunked{}, fmt.Sprintf("binary: NUL at byte %d", i), nil
	}
	if i := invalidUTF8(text); i >= 0 {
		return Chunked{}, fmt.Sprintf("binary or not UTF-8: byte %d is 0x%02x", i, text[i]), nil
	}
	if strings.TrimSpace(strings.TrimPrefix(text, "\uFEFF")) == "" {
		if text == "" {
			return Chunked{}, "empty", nil
		}
		return Chunked{}, "white space only", nil
	}
	doc, err = f.chunk(Document{ID: f.id, Text: text}, &o.Chunk)
	var left LeftOut
	switch {
	case errors.As(err, &left):
		return Chunked{}, string(left), nil
	case err == nil && len(doc.Chunks) == 0:
		reason = "no visible text"
	}
	return doc, reason, err
}

// load returns the content of the file, or why there is none.
func (f treeFile) load(limit int64) (data []byte, reason string) {
	file, err := f.fsys.Open(f.name)
	if err != nil {
		return nil, "cannot be read: " + cause(err)
	}
	defer func() { _ = file.Close() }() // nothing was written
	info, err := file.Stat()
	if err != nil {
		return nil, "cannot be read: " + cause(err)
	}
	if info.Size() > limit {
		return nil, fmt.Sprintf("%d bytes, over the limit of %d", info.Size(), limit)
	}
	// The size may be 0 or out of date: the limit holds for what is read.
	if data, err = io.ReadAll(io.LimitReader(file, limit)); err != nil {
		return nil, "cannot be read: " + cause(err)
	}
	if n, _ := file.Read(make([]byte, 1)); n > 0 {
		return nil, fmt.Sprintf("over the limit of %d bytes", limit)
	}
	return data, ""
}

// cause returns err without the path, which the warning gives already.
func cause(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}
