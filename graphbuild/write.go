package graphbuild

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/bits"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"unicode/utf8"

	"github.com/mapmatched/mmplug/internal/disk"
	"github.com/mapmatched/mmplug/mapmatched"
)

// GraphInput is what a graph file is made of.
type GraphInput struct {
	// Nodes are chunks to include even when no edge names them.
	Nodes []string
	// Edges of the graph. Of parallel edges the shortest is kept, and an edge
	// from a chunk to itself has no effect.
	Edges []mapmatched.Edge
	// Directed makes an edge passable from From to To only.
	Directed bool
	// MaximumDistance clamps every distance; positive and finite. Zero means
	// mapmatched.DefaultMaximumDistance.
	MaximumDistance float64
	// Provenance says how the graph was made.
	Provenance Provenance
}

// WriteGraphOptions are the settings of [WriteGraph]. The zero value, and nil,
// are the defaults.
type WriteGraphOptions struct {
	// Distances is how the file will answer distances. The default makes a
	// table if it is within TableLimit, else labels if they are, else nothing.
	Distances DistanceMethod
	// TableLimit is how many bytes a table or labels may take; 0 means
	// DefaultTableLimit. Making labels takes about four times that in memory.
	TableLimit int64
	// Progress, when set, is told how much of a step is done, one call at a
	// time. It must not block for long.
	Progress func(step string, done, total int)
}

// WrittenGraph describes a file that [WriteGraph] made.
type WrittenGraph struct {
	Nodes     int            `json:"nodes"`
	Edges     int            `json:"edges"`
	Bytes     int64          `json:"bytes"`
	Distances DistanceChoice `json:"distances"`
}

// errBusy: another process writes the file.
var errBusy = errors.New("another process is writing this graph file: wait for it or, if there is none, remove its lock file")

// WriteGraph writes a graph to a file, replacing one that is there in one step:
// a reader, or a crash, sees the old file or the new one. The same input gives
// the same bytes, on any number of cores.
//
// Errors are of type *mapmatched.Error: of kind invalid when the input or an
// option is, or when what was asked for is over the limit; and then the old
// file is as it was.
func WriteGraph(ctx context.Context, path string, in GraphInput, opts *WriteGraphOptions) (*WrittenGraph, error) {
	const op = "write"
	var o WriteGraphOptions
	if opts != nil {
		o = *opts
	}
	o.TableLimit = cmp.Or(o.TableLimit, DefaultTableLimit)
	methods := []DistanceMethod{DistancesAuto, DistancesSearch, DistancesTable, DistancesLabels}
	switch {
	case !slices.Contains(methods, o.Distances):
		return nil, failGraph(op, fmt.Errorf("%w: there is no distance method %q: use %q", mapmatched.ErrInvalidConfig, o.Distances, methods[1:]))
	case o.TableLimit < 0:
		return nil, failGraph(op, fmt.Errorf("%w: the limit is %d bytes, want 0 for the default or more", mapmatched.ErrInvalidConfig, o.TableLimit))
	}
	if err := in.Provenance.validate(); err != nil {
		return nil, failGraph(op, err)
	}
	g, err := mapmatched.NewGraph(in.Edges, &mapmatched.GraphOptions{Nodes: in.Nodes, MaximumDistance: in.MaximumDistance, Directed: in.Directed})
	if err != nil {
		return nil, failGraph(op, err)
	}
	for _, kind := range g.EdgeTypes() {
		if !utf8.ValidString(string(kind)) {
			return nil, failGraph(op, fmt.Errorf("edge type %q is not UTF-8", kind))
		}
	}
	w, err := replaceFile(path, func(f *os.File) (*WrittenGraph, error) { return writeGraph(ctx, f, g, in.Provenance, o) })
	if errors.Is(err, syscall.ENOSPC) {
		err = fmt.Errorf("the disk is full: %w: free some space; the old file, if any, is untouched", err)
	}
	if err != nil {
		return nil, failGraph(op, fmt.Errorf("%s: %w", path, err))
	}
	return w, nil
}

// replaceFile lets write fill a new file and puts it in the place of path.
func replaceFile[T any](path string, write func(f *os.File) (T, error)) (result T, err error) {
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		path = resolved
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return result, errors.New("it is there already and not a regular file: give another name")
	}
	if parent := filepath.Dir(path); errors.Is(statError(parent), fs.ErrNotExist) {
		return result, noDirectoryError(parent)
	}
	dir, base := filepath.Split(path)
	beside := func(what string) string { return filepath.Join(dir, "."+base+".mmplug-"+what) }
	unlock, err := disk.Lock(beside("lock"))
	switch {
	case errors.Is(err, disk.ErrHeld):
		return result, fmt.Errorf("%s: %w", beside("lock"), errBusy)
	case err != nil:
		return result, fmt.Errorf("cannot lock: %w", err)
	}
	defer unlock()
	fresh := beside("new") // a killed writer may have left it
	f, err := os.OpenFile(fresh, os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o644)
	if err != nil {
		return result, err
	}
	result, err = write(f)
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(fresh, path)
	}
	if err != nil {
		_ = os.Remove(fresh) // if this fails too, the next writer starts over it
		return result, err
	}
	return result, disk.SyncDir(filepath.Dir(path))
}

// noDirectoryError: there is no directory of that name to write to.
type noDirectoryError string

func (e noDirectoryError) Error() string {
	return fmt.Sprintf("the directory %s does not exist: make it or give another name", string(e))
}

func (noDirectoryError) Unwrap() error { return fs.ErrNotExist }

func statError(path string) error {
	_, err := os.Stat(path)
	return err
}

// writeGraph writes all of a file.
func writeGraph(ctx context.Context, f *os.File, g *mapmatched.Graph, provenance Provenance, o WriteGraphOptions) (*WrittenGraph, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	w, err := newSectionWriter(f)
	if err != nil {
		return nil, err
	}
	ids, a := g.Nodes(), g.Adjacency()
	if err := writeIDs(w, ids); err != nil {
		return nil, err
	}
	if err := w.put(sectionFirst, len(a.First), func(b []byte, i int) []byte { return appendUint32(b, uint32(a.First[i])) }); err != nil {
		return nil, err
	}
	err = w.put(sectionArcs, len(a.Arcs), func(b []byte, i int) []byte {
		arc := a.Arcs[i]
		return appendUint32(appendUint32(appendFloat64(b, arc.Weight), uint32(arc.To)), uint32(arc.Type))
	})
	if err != nil {
		return nil, err
	}
	x := indexWriter{w: w, adj: a, directed: g.Directed(), maximum: g.MaximumDistance(), limit: o.TableLimit, progress: o.Progress}
	choice, err := x.write(ctx, o.Distances)
	if err != nil {
		return nil, err
	}
	meta := fileMeta{g.EdgeTypes(), choice, x.exact, provenance}
	if err := writeMeta(w, meta); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	h := header{directed: g.Directed(), nodes: uint64(len(ids)), arcs: uint64(len(a.Arcs)), maximum: g.MaximumDistance()}
	if err := w.finish(&h); err != nil {
		return nil, err
	}
	return &WrittenGraph{len(ids), g.NumEdges(), int64(h.size), choice}, nil
}

func writeMeta(w *sectionWriter, meta fileMeta) error {
	if meta.EdgeTypes == nil {
		meta.EdgeTypes = []mapmatched.EdgeType{}
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(meta); err != nil {
		return err
	}
	w.begin(sectionMeta)
	if _, err := w.Write(b.Bytes()); err != nil {
		return err
	}
	return w.end()
}

// bucketBits is the logarithm of how many buckets so many nodes have: at least
// one for each.
func bucketBits(nodes int) uint { return uint(bits.Len(uint(max(nodes-1, 0)))) }

// writeIDs writes the IDs and the buckets to find them by.
func writeIDs(w *sectionWriter, ids []string) error {
	at := uint64(0)
	err := w.put(sectionIDFirst, len(ids)+1, func(b []byte, i int) []byte {
		b = appendUint64(b, at)
		if i < len(ids) {
			at += uint64(len(ids[i]))
		}
		return b
	})
	if err != nil {
		return err
	}
	if err := w.put(sectionIDs, len(ids), func(b []byte, i int) []byte { return append(b, ids[i]...) }); err != nil {
		return err
	}
	n := bucketBits(len(ids))
	first := make([]uint32, 1<<n+1)
	for _, id := range ids {
		first[idBucket(id, n)+1]++
	}
	for i := range 1 << n {
		first[i+1] += first[i]
	}
	next, nodes := slices.Clone(first), make([]uint32, len(ids))
	for v, id := range ids {
		bucket := idBucket(id, n)
		nodes[next[bucket]] = uint32(v)
		next[bucket]++
	}
	if err := w.put(sectionBucketFirst, len(first), func(b []byte, i int) []byte { return appendUint32(b, first[i]) }); err != nil {
		return err
	}
	return w.put(sectionBucketNodes, len(nodes), func(b []byte, i int) []byte { return appendUint32(b, nodes[i]) })
}

// failGraph makes the error of an operation, its kind found from its cause. An
// error that has a kind keeps it.
func failGraph(op string, err error) error {
	if err == nil || mapmatched.KindOf(err) != "" {
		return err
	}
	kind := mapmatched.KindInvalid
	var errno syscall.Errno
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		kind = mapmatched.KindDeadline
	case errors.Is(err, errDamaged):
		kind = mapmatched.KindCorrupt
	case errors.Is(err, fs.ErrNotExist):
		kind = mapmatched.KindNotFound
	case errors.Is(err, mapmatched.ErrClosed), errors.Is(err, errBusy), errors.As(err, &errno):
		kind = mapmatched.KindUnavailable
	}
	return &mapmatched.Error{Op: op, Adapter: "graph", Kind: kind, Err: err}
}
