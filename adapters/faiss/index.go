package faiss

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/mapmatched/mmplug/internal/disk"
	"github.com/mapmatched/mmplug/mapmatched"
)

// Info describes an index.
type Info struct {
	Path      string `json:"path"`
	Type      string `json:"type"` // such as IndexIDMap2(IndexFlatIP)
	Dimension int    `json:"dimension"`
	Count     int    `json:"count"`
	Metric    Metric `json:"metric"`
	Engine    Engine `json:"engine"`            // what reads it, EngineGo or EngineNative
	Library   string `json:"library,omitempty"` // version of libfaiss, when that reads it
}

// engine reads and searches an index. Its methods are called by several
// goroutines at once, free once when none of the others runs.
type engine interface {
	info() Info
	// search returns the k best vectors for each of several queries; 1 ≤ k ≤
	// Count. There may be fewer.
	search(ctx context.Context, queries [][]float32, k int) ([][]Hit, error)
	// ids returns the FAISS IDs by position, nil when they are the positions.
	ids(ctx context.Context) ([]int64, error)
	// rows returns the vectors by position. They are valid until free.
	rows(ctx context.Context) (func(at int) []float32, error)
	free()
}

// Index is an open index. It is safe for concurrent use.
type Index struct {
	engine engine

	mu     sync.Mutex
	users  int // calls that are using the engine
	closed bool

	matrix matrix
}

// matrix are the vectors of an index once they were asked for.
type matrix struct {
	mu   sync.Mutex
	ids  []int64
	rows func(at int) []float32
}

// OpenIndex opens an index file. The file must not be changed while the index
// is open: write another and rename it.
//
// Errors are of type *mapmatched.Error: of kind not found when there is no such
// file, corrupt when it is damaged, and invalid when it is not an index, an
// index of a type that is not supported ([ErrUnsupported]), or one that does
// not fit the options. What libfaiss refuses to read is corrupt, unless it says
// that it does not know the type.
func OpenIndex(ctx context.Context, path string, opts *IndexOptions) (*Index, error) {
	const op = "open"
	if opts == nil {
		opts = &IndexOptions{}
	}
	if err := errors.Join(opts.Validate(), ctx.Err()); err != nil {
		return nil, classify(op, err)
	}
	e, err := openEngine(path, *opts)
	if err != nil {
		return nil, classify(op, fmt.Errorf("%s: %w", path, err))
	}
	return &Index{engine: e}, nil
}

func openEngine(path string, opts IndexOptions) (engine, error) {
	f, err := os.Open(path)
	if err != nil {
		var pathError *fs.PathError
		if errors.As(err, &pathError) {
			err = pathError.Err // the path is named once
		}
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%w: it is not a regular file", errForeign)
	}
	head := make([]byte, 64)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, err
	}
	if n == 0 {
		return nil, fmt.Errorf("%w: it is empty", errForeign)
	}
	if err := checkForeign(head[:n]); err != nil {
		return nil, err
	}
	e, err := openWith(f, path, info.Size(), head[:n], opts)
	if err != nil {
		return nil, err
	}
	e.setPath(path)
	return e, nil
}

// openWith opens a file that begins with head with the engine that the options
// ask for. libfaiss trusts what it reads, so it gets a file only when the header
// makes sense.
func openWith(f *os.File, path string, size int64, head []byte, opts IndexOptions) (pathSetter, error) {
	var goErr error
	if opts.Engine != EngineNative {
		e, err := openGo(f, size, opts)
		if !errors.Is(err, errBeyondGo) {
			return e, err
		}
		if !nativeLinked || opts.Engine == EngineGo || opts.Exact {
			return nil, fmt.Errorf("%w; %s", err, nativeHint)
		}
		goErr = err
	}
	c := &cursor{data: head}
	h, err := readHeader(c, c.code("the type of an index"))
	if err != nil {
		return nil, err
	}
	e, err := openNative(path, h, opts)
	if err != nil && goErr != nil {
		return nil, fmt.Errorf("%w, after this: %v", err, goErr)
	}
	return e, err
}

// Info describes the index. It answers after Close too.
func (x *Index) Info() Info { return x.engine.info() }

// Search returns the k best vectors for a query: higher scores first, equal
// ones by FAISS ID. There are fewer when the index has fewer, or when IVF or
// HNSW find fewer. A query of another dimension than the index, or with a
// number that is not finite, is an error.
func (x *Index) Search(ctx context.Context, query []float32, k int) ([]Hit, error) {
	hits, err := x.SearchBatch(ctx, [][]float32{query}, k)
	if err != nil {
		return nil, err
	}
	return hits[0], nil
}

// SearchBatch is Search for several queries at once, with the same results. It
// is faster than one after the other on flat indexes.
func (x *Index) SearchBatch(ctx context.Context, queries [][]float32, k int) ([][]Hit, error) {
	const op = "search"
	info := x.Info()
	for i, q := range queries {
		if len(q) != info.Dimension {
			return nil, classify(op, fmt.Errorf("query %d has %d dimensions and the index %s has %d: use the model that made the index", i, len(q), info.Path, info.Dimension))
		}
		if err := finite(q); err != nil {
			return nil, classify(op, fmt.Errorf("query %d: %w", i, err))
		}
	}
	out := make([][]Hit, len(queries))
	err := x.do(ctx, op, func() error {
		k := min(k, info.Count)
		if k < 1 || len(queries) == 0 {
			return nil
		}
		var err error
		out, err = x.engine.search(ctx, queries, k)
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func finite(v []float32) error {
	for i, c := range v {
		if x := float64(c); math.IsNaN(x) || math.IsInf(x, 0) {
			return fmt.Errorf("%w: component %d is %v", mapmatched.ErrNonFinite, i, c)
		}
	}
	return nil
}

// IDs returns the FAISS IDs of all vectors in the order of the file.
func (x *Index) IDs(ctx context.Context) ([]int64, error) {
	var ids []int64
	err := x.do(ctx, "ids", func() error {
		var err error
		ids, err = x.engine.ids(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	if ids == nil {
		ids = make([]int64, x.Info().Count)
		for i := range ids {
			ids[i] = int64(i)
		}
	}
	return ids, nil
}

// vectors loads the matrix once: the FAISS IDs by position, nil when they are
// the positions, and the vectors. It runs within do.
func (x *Index) vectors(ctx context.Context) (ids []int64, rows func(at int) []float32, err error) {
	m := &x.matrix
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.rows == nil {
		ids, err := x.engine.ids(ctx)
		if err != nil {
			return nil, nil, err
		}
		rows, err := x.engine.rows(ctx)
		if err != nil {
			return nil, nil, err
		}
		m.ids, m.rows = ids, rows
	}
	return m.ids, m.rows, nil
}

// Close implements io.Closer. It does not wait: calls that are running finish
// normally, later ones fail with mapmatched.ErrClosed, and the index is released
// with the last of them. Closing again does nothing.
func (x *Index) Close() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.closed {
		x.closed = true
		if x.users == 0 {
			x.engine.free()
		}
	}
	return nil
}

// acquire keeps the engine until release.
func (x *Index) acquire() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return mapmatched.ErrClosed
	}
	x.users++
	return nil
}

func (x *Index) release() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.users--
	if x.closed && x.users == 0 {
		x.engine.free()
	}
}

// do runs one operation on the engine unless ctx is done. A file that was cut
// after it was mapped makes a read fault; the fault becomes an error, as far as
// the system lets it.
func (x *Index) do(ctx context.Context, op string, run func() error) (err error) {
	if err := x.acquire(); err != nil {
		return classify(op, err)
	}
	defer x.release()
	if err := ctx.Err(); err != nil {
		return classify(op, err)
	}
	before := debug.SetPanicOnFault(true)
	defer func() {
		debug.SetPanicOnFault(before)
		switch r := recover().(type) {
		case nil:
		case interface{ Addr() uintptr }:
			err = classify(op, damaged("%s was cut while it was open (%v): open it again", x.Info().Path, r))
		default:
			panic(r)
		}
	}()
	return classify(op, run())
}

// goEngine is the Go code over a memory map.
type goEngine struct {
	root node
	data []byte
	path string
}

func openGo(f *os.File, size int64, opts IndexOptions) (pathSetter, error) {
	if size > math.MaxInt {
		return nil, fmt.Errorf("it has %d bytes, more than this machine can map", size)
	}
	data, err := disk.Map(f, int(size))
	if err != nil {
		return nil, fmt.Errorf("cannot map the file: %w", err)
	}
	root, err := parse(data)
	if err == nil {
		err = configure(root, opts)
	}
	if err != nil {
		_ = disk.Unmap(data) // the first error is the one to report
		return nil, err
	}
	return &goEngine{root: root, data: data}, nil
}

// pathSetter is an engine that is told the path of its file.
type pathSetter interface {
	engine
	setPath(path string)
}

// configure sets what the options say, and reports what has no effect.
func configure(root node, opts IndexOptions) error {
	lists, graph := false, false
	for n := root; n != nil; {
		switch x := n.(type) {
		case *idMap:
			n = x.inner
			continue
		case *ivf:
			lists = true
			if opts.Nprobe > 0 {
				x.probes = opts.Nprobe
			}
			if opts.Exact {
				x.probes = len(x.lists)
				if err := configure(x.quantizer, IndexOptions{Exact: true}); err != nil {
					return err
				}
			}
			if q, ok := x.quantizer.(*hnsw); ok && opts.EfSearch > 0 {
				graph, q.ef = true, opts.EfSearch
			}
		case *hnsw:
			graph, x.exact = true, opts.Exact
			if opts.EfSearch > 0 {
				x.ef = opts.EfSearch
			}
		}
		break
	}
	if opts.Nprobe > 0 && !lists {
		return fmt.Errorf("%w: Nprobe is %d and the %s has no lists: leave it out", mapmatched.ErrInvalidConfig, opts.Nprobe, root.describe())
	}
	if opts.EfSearch > 0 && !graph {
		return fmt.Errorf("%w: EfSearch is %d and the %s is not HNSW: leave it out", mapmatched.ErrInvalidConfig, opts.EfSearch, root.describe())
	}
	return nil
}

func (e *goEngine) setPath(path string) { e.path = path }

func (e *goEngine) info() Info {
	h := e.root.header()
	return Info{Path: e.path, Type: e.root.describe(), Dimension: h.dimension, Count: e.root.len(), Metric: h.metric, Engine: EngineGo}
}

func (e *goEngine) search(ctx context.Context, queries [][]float32, k int) ([][]Hit, error) {
	return e.root.batch(ctx, queries, k, nil)
}

func (e *goEngine) ids(ctx context.Context) ([]int64, error) {
	if _, plain := e.root.(*flat); plain {
		return nil, nil
	}
	ids := make([]int64, e.root.len())
	for i := range ids {
		if i%checkEvery == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		ids[i] = e.root.label(i)
		if err := checkID(ids[i]); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

func (e *goEngine) rows(context.Context) (func(at int) []float32, error) { return e.root.row, nil }

func (e *goEngine) free() {
	_ = disk.Unmap(e.data) // nothing else can be done about it
	e.data = nil
}

// sortedIDs returns the IDs in ascending order, an error when one is there
// twice.
func sortedIDs(ids []int64) ([]int64, error) {
	sorted := slices.Sorted(slices.Values(ids))
	for i := 1; i < len(sorted); i++ {
		if sorted[i] == sorted[i-1] {
			return nil, fmt.Errorf("the index has the FAISS ID %d twice: give every vector an ID of its own", sorted[i])
		}
	}
	return sorted, nil
}
