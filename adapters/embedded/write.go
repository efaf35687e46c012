package embedded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/mapmatched/mmplug/adapters/embedded/lexical"
	"github.com/mapmatched/mmplug/internal/disk"
	"github.com/mapmatched/mmplug/mapmatched"
)

// BM25 are the parameters that the words of an index are scored with.
type BM25 = lexical.BM25

// Input is what an index is made of.
type Input struct {
	// Chunks of the corpus. Their order is the order of ties. None is fine:
	// the index then answers nothing.
	Chunks []mapmatched.Chunk
	// Edges of the corpus graph. Both ends are in Chunks. An edge from a chunk
	// to itself has no effect and is not stored; of edges of one type between
	// the same two chunks the shortest is stored.
	Edges []mapmatched.Edge
	// Directed makes an edge passable from From to To only.
	Directed bool
	// MaximumDistance clamps graph distances; positive and finite. Zero means
	// mapmatched.DefaultMaximumDistance.
	MaximumDistance float64
	// Vectors are the embeddings of the chunks: nil, or one for each chunk, all
	// of one dimension, finite and not zero. They are stored with unit length.
	Vectors [][]float32
	// VectorIdentity says what made the vectors; provider and model are
	// required with vectors, and the whole is ignored without. A zero dimension
	// is filled in, an empty normalization means NormalizationL2.
	VectorIdentity VectorIdentity
	// BM25 are the parameters that words are scored with; nil means k1 = 1.2 and
	// b = 0.75.
	BM25 *BM25
	// ChunkPolicy is the tag of the chunking, such as "heading_v1".
	ChunkPolicy string
	// Source says what was read.
	Source Source
}

// WriteOptions are the settings of Write. The zero value, and nil, are the
// defaults.
type WriteOptions struct {
	// Tool is recorded in the manifest, such as "mmplug 0.1.0".
	Tool string
	// Fields are what the lexical index covers; nil means DefaultFields.
	Fields []Field
	// Progress, when set, is told how many of all chunks are indexed. It is
	// called from the goroutine of Write.
	Progress func(done, total int)
}

// Write makes an index of the input in the directory dir. The parent of dir
// exists; dir itself does not, or is empty, or is an index, which is replaced
// in one step. Anything else is refused, and no file that is not part of an
// index is ever removed. See the package comment for what a killed process
// leaves.
//
// Errors are of type *mapmatched.Error and say which chunk, vector or edge is
// wrong. When Write fails, the old index is as it was.
func Write(ctx context.Context, dir string, in Input, opts *WriteOptions) error {
	if opts == nil {
		opts = &WriteOptions{}
	}
	w := &writer{in: in, fields: opts.Fields, progress: opts.Progress}
	w.manifest.Tool = opts.Tool
	w.bm25 = lexical.DefaultBM25()
	if in.BM25 != nil {
		w.bm25 = *in.BM25
	}
	if w.fields == nil {
		w.fields = DefaultFields()
	}
	if err := w.check(); err != nil {
		return fail("write", mapmatched.KindInvalid, err)
	}
	p, err := locate(dir)
	if err == nil {
		err = w.write(ctx, p)
	}
	if err != nil {
		return fail("write", kindOfWrite(err), err)
	}
	return nil
}

// kindOfWrite tells a refusal from what the system reports.
func kindOfWrite(err error) mapmatched.Kind {
	var errno syscall.Errno
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return mapmatched.KindDeadline
	case errors.Is(err, fs.ErrNotExist):
		return mapmatched.KindNotFound
	case errors.Is(err, errBusy), errors.As(err, &errno):
		return mapmatched.KindUnavailable
	}
	return mapmatched.KindInvalid
}

// writer makes one index.
type writer struct {
	in       Input
	fields   []Field
	bm25     BM25
	progress func(done, total int)
	position map[string]uint32 // of a chunk ID
	order    []uint32          // positions by ascending ID
	edges    []edge
	dir      string // where files are written
	manifest Manifest
}

// write does what follows the checks of the input.
func (w *writer) write(ctx context.Context, p place) error {
	if err := p.checkParent(); err != nil {
		return err
	}
	unlock, err := p.takeLock()
	if err != nil {
		return err
	}
	defer unlock()
	if err := p.restore(); err != nil {
		return err
	}
	replaces, err := p.checkTarget()
	if err != nil {
		return err
	}
	if err := os.Mkdir(p.fresh, 0o755); err != nil {
		return err
	}
	w.dir = p.fresh
	err = w.files(ctx)
	if err == nil {
		err = p.install(replaces, exchange)
	}
	if err != nil {
		if errors.Is(err, syscall.ENOSPC) {
			err = fmt.Errorf("the disk is full: %w: free some space; the old index, if any, is untouched", err)
		}
		// If this fails too, the next Write clears the rest.
		_ = removeIndex(p.fresh)
	}
	return err
}

// files writes all files, the manifest last, and makes them durable.
func (w *writer) files(ctx context.Context) error {
	index, err := lexical.Build(ctx, w.bm25, len(w.in.Chunks), func(i int) string {
		if w.progress != nil && (i%256 == 0 || i == len(w.in.Chunks)-1) {
			w.progress(i+1, len(w.in.Chunks))
		}
		return indexed(&w.in.Chunks[i], w.fields)
	})
	if err != nil {
		return err
	}
	a := index.Arrays()
	records, err := w.text(ctx)
	if err != nil {
		return err
	}
	steps := []struct {
		name  string
		write func(*fileWriter) error
	}{
		{chunksName, func(f *fileWriter) error { return putNumbers(f, records) }},
		{orderName, func(f *fileWriter) error { return putNumbers(f, w.order) }},
		{termsName, func(f *fileWriter) error { _, err := f.Write(a.Terms); return err }},
		{dictionaryName, func(f *fileWriter) error { return putNumbers(f, a.Dictionary) }},
		{postingsName, func(f *fileWriter) error { return putNumbers(f, a.Postings) }},
		{impactsName, func(f *fileWriter) error { return putNumbers(f, a.Impacts) }},
		{vectorsName, w.vectors},
		{edgesName, func(f *fileWriter) error { return putEdges(f, w.edges) }},
	}
	for _, s := range steps {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := w.file(s.name, s.write); err != nil {
			return err
		}
	}
	w.manifest.Counts.Terms, w.manifest.Counts.Postings = index.Terms(), len(a.Postings)
	slices.SortFunc(w.manifest.Files, func(a, b FileInfo) int { return strings.Compare(a.Name, b.Name) })
	data, err := w.manifest.encode()
	if err != nil {
		return err
	}
	if _, err := ParseManifest(data); err != nil {
		return fmt.Errorf("the manifest cannot be read back: it %w", err)
	}
	if _, err := writeFile(filepath.Join(w.dir, manifestName), func(f *fileWriter) error { _, err := f.Write(data); return err }); err != nil {
		return err
	}
	return disk.SyncDir(w.dir)
}

// file writes one data file and lists it in the manifest.
func (w *writer) file(name string, write func(*fileWriter) error) error {
	info, err := writeFile(filepath.Join(w.dir, name), write)
	if err != nil {
		return err
	}
	info.Name = name
	w.manifest.Files = append(w.manifest.Files, info)
	return nil
}

// indexed returns what the lexical index covers of a chunk.
func indexed(c *mapmatched.Chunk, fields []Field) string {
	parts := make([]string, len(fields))
	for i, f := range fields {
		switch f {
		case FieldTitle:
			parts[i] = c.Title
		case FieldSection:
			parts[i] = c.Section
		case FieldText:
			parts[i] = c.Text
		}
	}
	return strings.Join(parts, "\n")
}

// text writes text.bin and returns the chunk records that refer to it. Titles,
// sections and document IDs that repeat are written once.
func (w *writer) text(ctx context.Context) ([]uint64, error) {
	records := make([]uint64, 0, chunkSize/8*len(w.in.Chunks))
	err := w.file(textName, func(f *fileWriter) error {
		written := map[string]uint64{} // where a repeating string is
		put := func(s string, repeats bool) error {
			at, known := written[s]
			if !known || !repeats {
				at = uint64(f.size)
				if _, err := f.WriteString(s); err != nil {
					return err
				}
				if repeats {
					written[s] = at
				}
			}
			records = append(records, at, uint64(len(s)))
			return nil
		}
		for i := range w.in.Chunks {
			if i%checkEvery == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			c := &w.in.Chunks[i]
			if err := errors.Join(put(c.ID, false), put(c.Document, true), put(c.Title, true), put(c.Section, true), put(c.Text, false)); err != nil {
				return err
			}
			records = append(records, uint64(c.Ordinal), uint64(c.Start), uint64(c.End))
		}
		return nil
	})
	return records, err
}

// vectors writes the rows with unit length.
func (w *writer) vectors(f *fileWriter) error {
	for i, v := range w.in.Vectors {
		unit, err := normalized(v)
		if err != nil {
			return fmt.Errorf("vector %d (chunk %q): %w", i, w.in.Chunks[i].ID, err)
		}
		if err := putNumbers(f, unit); err != nil {
			return err
		}
	}
	return nil
}
