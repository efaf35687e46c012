package faiss

import (
	"errors"
	"fmt"

	"github.com/mapmatched/mmplug/mapmatched"
)

// Engine is what reads and searches an index.
type Engine string

// The engines.
const (
	EngineAuto   Engine = "auto"   // the Go code where it reads the type, else libfaiss where it is linked in
	EngineGo     Engine = "go"     // the Go code; safe for files from others
	EngineNative Engine = "native" // libfaiss, linked in with the tag faiss; a damaged file may end the program
)

// IndexOptions are the settings of [OpenIndex]. The zero value, and nil, are
// the defaults.
type IndexOptions struct {
	// Engine reads the index; "" means EngineAuto. libfaiss trusts the file: see
	// the documentation of the package.
	Engine Engine
	// Nprobe is how many lists of an IVF index a search looks into, 0 for what
	// the file says. It is an error for an index without lists.
	Nprobe int
	// EfSearch is how many nodes of an HNSW index a search keeps in view, 0 for
	// what the file says; when more are asked for, those are, and EfSearch is how
	// many better nodes end the search. It is an error for an index that is not
	// HNSW.
	EfSearch int
	// Exact compares a query with every vector of an IVF or HNSW index. It needs
	// the Go code and excludes Nprobe and EfSearch.
	Exact bool
	// Threads is how many OpenMP threads one search of libfaiss may use, 0 for
	// 1: searches that run at the same time then do not fight for the
	// processors. OpenBLAS, which libfaiss uses for batches of 20 queries and
	// more, has threads of its own; it is told the number of the index opened
	// last. The Go code uses the goroutine of the caller alone.
	Threads int
}

// maxThreads bounds IndexOptions.Threads.
const maxThreads = 1024

// Validate reports every value that is out of range.
func (o *IndexOptions) Validate() error {
	if o == nil {
		return nil
	}
	var errs []error
	fault := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w: "+format, append([]any{mapmatched.ErrInvalidConfig}, args...)...))
	}
	switch o.Engine {
	case "", EngineAuto, EngineGo, EngineNative:
	default:
		fault("Engine is %q, want %q, %q, %q or empty", o.Engine, EngineAuto, EngineGo, EngineNative)
	}
	for _, f := range []struct {
		name  string
		value int
		most  int
	}{{"Nprobe", o.Nprobe, 1 << 30}, {"EfSearch", o.EfSearch, 1 << 30}, {"Threads", o.Threads, maxThreads}} {
		if f.value < 0 || f.value > f.most {
			fault("%s is %d, want 0 for the default to %d", f.name, f.value, f.most)
		}
	}
	if o.Exact && (o.Nprobe != 0 || o.EfSearch != 0) {
		fault("Exact searches all vectors, so Nprobe %d and EfSearch %d have no effect: leave them out", o.Nprobe, o.EfSearch)
	}
	if o.Exact && o.Engine == EngineNative {
		fault("Exact needs the Go code: leave Engine %q out", o.Engine)
	}
	return errors.Join(errs...)
}

// Options are the settings of [Open] and [NewProvider]. The zero value, and
// nil, are the defaults.
type Options struct {
	// Mode, when set, is the mode that the metric of the index must have;
	// another one is refused. "" accepts both: the metric is in the file.
	Mode Mode
	// Cosine says that the inner products of the index are to be cosines: the
	// stored vectors are checked to have length 1, and queries are scaled to it.
	Cosine bool
	// Vectors says that the vectors of the index will be needed, as for the
	// edges of a graph: an index that cannot give them is refused when opened.
	Vectors bool
	// Embedder turns Query.Text into a vector when a query has none. It is the
	// model that made the vectors of the index. nil means that every query
	// brings its vector.
	Embedder mapmatched.Embedder
	// Model names that model in messages.
	Model string

	IndexOptions
}

// Validate reports every value that is out of range.
func (o *Options) Validate() error {
	if o == nil {
		return nil
	}
	var errs []error
	switch o.Mode {
	case "", ModeSimilarity, ModeDistance:
	default:
		errs = append(errs, fmt.Errorf("%w: Mode is %q, want %q, %q or empty", mapmatched.ErrInvalidConfig, o.Mode, ModeSimilarity, ModeDistance))
	}
	if o.Cosine && o.Mode == ModeDistance {
		errs = append(errs, fmt.Errorf("%w: Cosine is a similarity and Mode is %q", mapmatched.ErrInvalidConfig, o.Mode))
	}
	return errors.Join(append(errs, o.IndexOptions.Validate())...)
}
