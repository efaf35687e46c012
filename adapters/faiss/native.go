//go:build faiss && cgo

package faiss

/*
#cgo CXXFLAGS: -std=c++17 -O2 -fopenmp
#cgo LDFLAGS: -lfaiss -llapack -lblas -lgomp -lstdc++ -lm
#include <stdlib.h>
#include "native.h"
*/
import "C"

import (
	"context"
	"fmt"
	"math"
	"strings"
	"unsafe"

	"github.com/mapmatched/mmplug/mapmatched"
)

// nativeLinked says whether libfaiss is part of this program.
const nativeLinked = true

// nativeHint says how to read what the Go code cannot, to those who asked for it.
const nativeHint = "leave out Exact and Engine go (exact and engine=go in a URL) to have libfaiss read it"

// nativeEngine is libfaiss. It trusts the file: a damaged one may end the
// program.
type nativeEngine struct {
	index   *C.native_index
	about   Info
	threads int
}

// nativeError takes over a message of libfaiss.
func nativeError(what string, message *C.char) error {
	defer C.free(unsafe.Pointer(message))
	text := strings.Join(strings.Fields(C.GoString(message)), " ")
	return fmt.Errorf("libfaiss %s: %s: %s", C.GoString(C.native_version()), what, text)
}

// openNative opens an index that begins with a header.
func openNative(path string, head header, opts IndexOptions) (pathSetter, error) {
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	var message *C.char
	index := C.native_open(name, &message)
	if index == nil {
		err := nativeError(fmt.Sprintf("cannot read the %s (%q)", typeNames[head.code], head.code), message)
		if strings.Contains(err.Error(), "not recognized") { // what it says of a type
			return nil, unsupported("%w; the index is made by a newer version", err)
		}
		return nil, damaged("%w", err)
	}
	e := &nativeEngine{index: index, threads: max(1, opts.Threads)}
	C.native_blas_threads(C.int(e.threads))
	e.about = Info{
		Path: path, Dimension: int(C.native_dimension(index)), Count: int(C.native_count(index)),
		Metric: Metric(C.native_metric(index)), Engine: EngineNative, Library: C.GoString(C.native_version()),
	}
	if kind := C.native_type(index); kind != nil {
		e.about.Type = C.GoString(kind)
		C.free(unsafe.Pointer(kind))
	}
	err := e.check(head)
	if err == nil {
		err = e.configure(opts)
	}
	if err != nil {
		e.free()
		return nil, err
	}
	return e, nil
}

// check compares what libfaiss read with the header of the file.
func (e *nativeEngine) check(head header) error {
	d, n := e.about.Dimension, e.about.Count
	if d != head.dimension || n != head.count || n > math.MaxInt/4/d {
		return damaged("libfaiss %s reads %d vectors of %d dimensions; the header says %d of %d", e.about.Library, n, d, head.count, head.dimension)
	}
	return nil
}

func (e *nativeEngine) configure(opts IndexOptions) error {
	if _, known := metricNames[e.about.Metric]; !known {
		return unsupported("whether higher or lower is better is not known for %v of the %s", e.about.Metric, e.about.Type)
	}
	if C.native_trained(e.index) == 0 {
		return fmt.Errorf("the %s is not trained, so it cannot hold vectors: train it and add them", e.about.Type)
	}
	for _, p := range []struct {
		field, name string
		value       int
	}{{"Nprobe", "nprobe", opts.Nprobe}, {"EfSearch", "efSearch", opts.EfSearch}} {
		if p.value == 0 {
			continue
		}
		name := C.CString(p.name)
		var message *C.char
		ok := C.native_set(e.index, name, C.double(p.value), &message)
		C.free(unsafe.Pointer(name))
		if ok == 0 {
			err := nativeError(p.name, message)
			return fmt.Errorf("%w: %s is %d and has no effect on the %s: leave it out (%w)", mapmatched.ErrInvalidConfig, p.field, p.value, e.about.Type, err)
		}
	}
	return nil
}

func (e *nativeEngine) setPath(path string) { e.about.Path = path }
func (e *nativeEngine) info() Info          { return e.about }

func (e *nativeEngine) free() {
	C.native_free(e.index)
	e.index = nil
}

func (e *nativeEngine) search(ctx context.Context, queries [][]float32, k int) ([][]Hit, error) {
	out, tied, err := e.searchOnce(queries, k, min(k+1, e.about.Count))
	if err != nil {
		return nil, err
	}
	// libfaiss cuts equal scores at the end in an order of its own: ask for
	// more until all that are equal are there to be ordered by ID.
	for i := range tied {
		for more := min(2*(k+1), e.about.Count); tied[i]; more = min(2*more, e.about.Count) {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			hits, still, err := e.searchOnce(queries[i:i+1], k, more)
			if err != nil {
				return nil, err
			}
			out[i], tied[i] = hits[0], still[0] && more < e.about.Count
		}
	}
	return out, ctx.Err()
}

// searchOnce asks for ask ≥ k hits and keeps k. tied says that the last of all
// has the score of the last that was kept, so that more may have it.
func (e *nativeEngine) searchOnce(queries [][]float32, k, ask int) (out [][]Hit, tied []bool, err error) {
	d := e.about.Dimension
	if len(queries) > math.MaxInt32/max(d, ask) {
		return nil, nil, fmt.Errorf("%d queries for %d vectors are too many at once", len(queries), ask)
	}
	distances, labels, _, err := e.call(queries, ask)
	if err != nil {
		return nil, nil, err
	}
	out, tied = make([][]Hit, len(queries)), make([]bool, len(queries))
	for i := range queries {
		hits := make([]Hit, 0, ask)
		for j := i * ask; j < (i+1)*ask; j++ {
			if labels[j] < 0 {
				continue // there are no more
			}
			v := float64(distances[j])
			if e.about.Metric.Mode() == ModeDistance {
				v = 0 - v
			}
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return nil, nil, damaged("the score of ID %d is %v: its vector, or its product with the query, is not finite", labels[j], v)
			}
			hits = append(hits, Hit{ID: labels[j], Score: v})
		}
		sortHits(hits)
		tied[i] = len(hits) == ask && ask > k && hits[k-1].Score == hits[ask-1].Score
		out[i] = hits[:min(k, len(hits))]
	}
	return out, tied, nil
}

// call has libfaiss search. threads is how many OpenMP threads it could use.
func (e *nativeEngine) call(queries [][]float32, ask int) (distances []float32, labels []int64, threads int, err error) {
	flat := make([]float32, 0, len(queries)*e.about.Dimension)
	for _, q := range queries {
		flat = append(flat, q...)
	}
	distances, labels = make([]float32, len(queries)*ask), make([]int64, len(queries)*ask)
	var message *C.char
	used := C.native_search(e.index, C.int64_t(len(queries)), (*C.float)(unsafe.SliceData(flat)), C.int64_t(ask), C.int(e.threads),
		(*C.float)(unsafe.SliceData(distances)), (*C.int64_t)(unsafe.SliceData(labels)), &message)
	if used == 0 {
		return nil, nil, 0, nativeError("search", message)
	}
	return distances, labels, int(used), nil
}

func (e *nativeEngine) ids(context.Context) ([]int64, error) {
	ids := make([]int64, e.about.Count)
	var message *C.char
	switch C.native_ids(e.index, (*C.int64_t)(unsafe.SliceData(ids)), &message) {
	case 0:
		return nil, nativeError("IDs", message)
	case 2:
		return nil, nil
	}
	return ids, nil
}

func (e *nativeEngine) rows(ctx context.Context) (func(at int) []float32, error) {
	d := e.about.Dimension
	vectors := make([]float32, e.about.Count*d)
	var message *C.char
	if C.native_vectors(e.index, (*C.float)(unsafe.SliceData(vectors)), &message) == 0 {
		return nil, unsupported("the %s cannot give its vectors: %w", e.about.Type, nativeError("reconstruct", message))
	}
	return func(at int) []float32 { return rowOf(vectors, at, d) }, ctx.Err()
}
