package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/mapmatched/mmplug/adapters/embedded"
	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/mapmatched/registry"
)

// target is the store that mmplug index writes to.
type target struct {
	writer mapmatched.CorpusWriter
	report storeReport
}

// storeReport is what was written to a store.
type storeReport struct {
	URL      string                    `json:"url"`
	Identity mapmatched.CorpusIdentity `json:"identity"`
	Chunks   int                       `json:"chunks"`
	Edges    int                       `json:"edges"`
	Created  bool                      `json:"created"` // the store made its collection
	Written  int                       `json:"written"` // chunks
	Kept     int                       `json:"kept"`    // chunks that were there already, equal
}

// String is the report in a line.
func (r storeReport) String() string {
	made := "collection was there"
	if r.Created {
		made = "collection made"
	}
	return fmt.Sprintf("%s: %s, %s; %s, %d written, %d kept\n", r.URL, count(r.Chunks, "chunk", "chunks"), count(r.Edges, "edge", "edges"), made, r.Written, r.Kept)
}

// openTarget opens the store at a URL for writing; "" is none. What --wait says,
// nil when it is not given, is passed on to it.
func openTarget(ctx context.Context, at string, wait *bool) (*target, error) {
	if at == "" {
		if wait != nil {
			return nil, usageError{errors.New("--wait is for --to: an index is there when it is written")}
		}
		return nil, nil
	}
	address, err := waiting(at, wait)
	if err != nil {
		return nil, err
	}
	writer, err := registry.OpenWriter(ctx, address)
	if err != nil {
		return nil, err
	}
	return &target{writer: writer, report: storeReport{URL: at}}, nil
}

// waiting is the URL of a store with what --wait says as its parameter wait. A
// store without that parameter waits as it does.
func waiting(at string, wait *bool) (string, error) {
	const name = "wait"
	e := opener(registry.KindWriter, at)
	switch {
	case wait == nil || e == nil: // what opens nothing is reported when it is opened
		return at, nil
	case withParameters(at, func(p string) bool { return p == name }) != withParameters(at, func(string) bool { return false }):
		return "", usageError{errors.New("--wait and the parameter wait of --to are both given: leave one out")}
	case slices.ContainsFunc(e.Doc.Parameters, func(p registry.Parameter) bool { return p.Name == name }):
		mark := "?"
		if strings.Contains(at, mark) {
			mark = "&"
		}
		return fmt.Sprintf("%s%s%s=%t", at, mark, name, *wait), nil
	case !*wait:
		return "", usageError{fmt.Errorf("--wait=false: a store of %s has no such choice: leave it out", e.Scheme)}
	}
	return at, nil
}

func (t *target) close() {
	if t != nil {
		closeAll(t.writer)
	}
}

// write writes a corpus. Chunks without vectors are embedded as they are
// written, unless the model is nil, so that a store that is away is known
// before the work is done. Without a store it does nothing.
func (t *target) write(ctx context.Context, std stdio, began time.Time, in *embedded.Input, model *embedding) error {
	if t == nil {
		return nil
	}
	t.report.Chunks = len(in.Chunks)
	identity := mapmatched.CorpusIdentity{ChunkPolicy: in.ChunkPolicy}
	edges, number := edgesByChunk(in.Edges)
	if t.report.Edges = number; number > 0 {
		identity.MaximumDistance = cmp.Or(in.MaximumDistance, mapmatched.DefaultMaximumDistance)
	}
	first := in.Vectors
	if model != nil {
		if first == nil {
			var err error
			if first, err = model.batch(ctx, in.Chunks, 0); err != nil {
				return err
			}
		}
		v := model.identity
		identity.Provider, identity.Model, identity.Revision, identity.Normalization = v.Provider, v.Model, v.Revision, v.Normalization
		identity.Dimension = len(first[0])
	}
	t.report.Identity = identity
	bar := newProgress(std.err, "writing", began)
	defer bar.done()
	report, err := t.writer.WriteCorpus(ctx, identity, records(ctx, in.Chunks, first, edges, model), func(done int) { bar.update(done, len(in.Chunks)) })
	t.report.Created, t.report.Written, t.report.Kept = report.Created, report.Written, report.Kept
	switch done := report.Written + report.Kept; {
	case err != nil && done > 0:
		return fmt.Errorf("%w; %d of %s are there: run the same again for the rest", err, done, count(len(in.Chunks), "chunk", "chunks"))
	case err != nil && model == nil && (strings.Contains(err.Error(), "has no vectors") || strings.Contains(err.Error(), "dimension is ")):
		return fmt.Errorf("%w; --embed gives the chunks vectors", err)
	}
	return err
}

// records are chunks with their edges and, with a model, vectors: first, and the
// model's for those after it.
func records(ctx context.Context, chunks []mapmatched.Chunk, first [][]float32, edges map[string][]mapmatched.Edge, model *embedding) iter.Seq2[mapmatched.Record, error] {
	return func(yield func(mapmatched.Record, error) bool) {
		vectors, from := first, 0
		for i := range chunks {
			r := mapmatched.Record{Chunk: chunks[i], Edges: edges[chunks[i].ID]}
			var err error
			if model != nil {
				if i-from == len(vectors) {
					from = i
					vectors, err = model.batch(ctx, chunks, from)
				}
				if err == nil {
					if r.Vector, err = normalizedTo(model.identity.Normalization, vectors[i-from]); err != nil {
						err = fmt.Errorf("chunk %q: %w", r.Chunk.ID, err)
					}
				}
			}
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}

// edgesByChunk are the edges of an undirected graph by the chunk they begin at,
// each at both of its ends, and how many there are. Of parallel edges of a type
// the shortest counts.
func edgesByChunk(edges []mapmatched.Edge) (by map[string][]mapmatched.Edge, number int) {
	by = map[string][]mapmatched.Edge{}
	for _, e := range edges {
		if e.From != e.To {
			by[e.From] = append(by[e.From], e)
			by[e.To] = append(by[e.To], mapmatched.Edge{From: e.To, To: e.From, Weight: e.Weight, Type: e.Type})
		}
	}
	for id, list := range by {
		slices.SortFunc(list, func(a, b mapmatched.Edge) int {
			return cmp.Or(strings.Compare(a.To, b.To), cmp.Compare(a.Type, b.Type), cmp.Compare(a.Weight, b.Weight))
		})
		by[id] = slices.CompactFunc(list, func(a, b mapmatched.Edge) bool { return a.To == b.To && a.Type == b.Type })
		number += len(by[id])
	}
	return by, number / 2
}

// unitTolerance is how far from 1 a length may be that counts as 1: the rounding
// of float32.
const unitTolerance = 1e-6

// normalizedTo is a vector as the identity of a corpus says it is: of length 1
// for "l2", and as it is otherwise.
func normalizedTo(normalization string, v []float32) ([]float32, error) {
	if normalization != embedded.NormalizationL2 {
		return v, nil
	}
	sum := 0.0
	for _, x := range v {
		sum += float64(float64(x) * float64(x)) // not fused, for the same bits everywhere
	}
	length := math.Sqrt(sum)
	switch {
	case !(length > 0) || math.IsInf(length, 1):
		return nil, fmt.Errorf("its vector has length %v and no direction", length)
	case math.Abs(length-1) <= unitTolerance:
		return v, nil
	}
	unit := make([]float32, len(v))
	for i, x := range v {
		unit[i] = float32(float64(x) / length)
	}
	return unit, nil
}
