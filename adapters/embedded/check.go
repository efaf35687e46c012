package embedded

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/mapmatched/mmplug/adapters/embedded/lexical"
	"github.com/mapmatched/mmplug/mapmatched"
)

const (
	maxEdgeTypes = 256     // an edge has one byte for its type
	maxDimension = 1 << 16 // components of a vector
)

// check validates the input and fills in the manifest what follows from it.
func (w *writer) check() error {
	m := &w.manifest
	m.Format, m.Version = Format, Version
	m.Source, m.ChunkPolicy = w.in.Source, w.in.ChunkPolicy
	m.Lexical = LexicalInfo{
		Analyzer: lexical.AnalyzerTag, StopwordsSHA256: lexical.StopwordsSHA256,
		Fields: w.fields, K1: w.bm25.K1, B: w.bm25.B,
	}
	if err := w.bm25.Validate(); err != nil {
		return err
	}
	for i, f := range w.fields {
		if !slices.Contains(DefaultFields(), f) {
			return fmt.Errorf("field %d to index is %q: it is one of %q", i, f, DefaultFields())
		}
		if slices.Contains(w.fields[:i], f) {
			return fmt.Errorf("field %q to index is given twice", f)
		}
	}
	for _, check := range []func() error{w.checkChunks, w.checkVectors, w.checkEdges} {
		if err := check(); err != nil {
			return err
		}
	}
	return m.checkStrings()
}

// checkChunks numbers and counts the chunks.
func (w *writer) checkChunks() error {
	chunks := w.in.Chunks
	if int64(len(chunks)) > math.MaxUint32 {
		return fmt.Errorf("%d chunks are more than the %d of an index", len(chunks), uint32(math.MaxUint32))
	}
	w.position = make(map[string]uint32, len(chunks))
	documents := map[string]bool{}
	w.order = make([]uint32, len(chunks))
	for i, c := range chunks {
		if c.ID == "" {
			return fmt.Errorf("chunk %d (document %q): %w", i, c.Document, mapmatched.ErrEmptyChunkID)
		}
		if first, twice := w.position[c.ID]; twice {
			return fmt.Errorf("chunks %d and %d have the same ID %q: IDs are unique", first, i, c.ID)
		}
		if c.Ordinal < 0 || c.Start < 0 || c.End < c.Start {
			return fmt.Errorf("chunk %d (%q): ordinal %d, bytes %d to %d: none may be negative, and the end is not before the start", i, c.ID, c.Ordinal, c.Start, c.End)
		}
		w.position[c.ID] = uint32(i)
		w.order[i] = uint32(i)
		documents[c.Document] = true
	}
	slices.SortFunc(w.order, func(a, b uint32) int { return cmp.Compare(chunks[a].ID, chunks[b].ID) })
	w.manifest.Counts.Chunks, w.manifest.Counts.Documents = len(chunks), len(documents)
	return nil
}

// checkVectors checks the vectors and their identity.
func (w *writer) checkVectors() error {
	if w.in.Vectors == nil {
		return nil
	}
	chunks, vectors := w.in.Chunks, w.in.Vectors
	if len(vectors) != len(chunks) {
		return fmt.Errorf("%d vectors for %d chunks: give one for each, or none", len(vectors), len(chunks))
	}
	id := w.in.VectorIdentity
	if id.Provider == "" || id.Model == "" {
		return fmt.Errorf("vectors of provider %q, model %q: name both, so that only vectors of the same model are compared", id.Provider, id.Model)
	}
	if id.Normalization == "" {
		id.Normalization = NormalizationL2
	}
	if id.Normalization != NormalizationL2 {
		return fmt.Errorf("the normalization of the vectors is %q: it is %q or empty", id.Normalization, NormalizationL2)
	}
	if id.Dimension == 0 && len(vectors) > 0 {
		id.Dimension = len(vectors[0])
	}
	if id.Dimension < 1 || id.Dimension > maxDimension {
		return fmt.Errorf("the dimension of the vectors is %d: it is between 1 and %d", id.Dimension, maxDimension)
	}
	for i, v := range vectors {
		if len(v) != id.Dimension {
			return fmt.Errorf("vector %d (chunk %q) has %d components, not %d", i, chunks[i].ID, len(v), id.Dimension)
		}
		if _, err := norm(v); err != nil {
			return fmt.Errorf("vector %d (chunk %q): %w", i, chunks[i].ID, err)
		}
	}
	w.manifest.Vectors, w.manifest.Counts.Vectors = &id, len(vectors)
	return nil
}

// checkEdges checks the edges and brings them to the order in which they are
// stored.
func (w *writer) checkEdges() error {
	g := &w.manifest.Graph
	g.Directed, g.MaximumDistance = w.in.Directed, w.in.MaximumDistance
	if g.MaximumDistance == 0 {
		g.MaximumDistance = mapmatched.DefaultMaximumDistance
	}
	if !(g.MaximumDistance > 0) || math.IsInf(g.MaximumDistance, 0) {
		return fmt.Errorf("the maximum distance is %v: it is positive and finite", w.in.MaximumDistance)
	}
	counts := map[mapmatched.EdgeType]int{}
	for i, e := range w.in.Edges {
		from, to, err := w.ends(e)
		if err != nil {
			return fmt.Errorf("edge %d (%q to %q, type %q): %w", i, e.From, e.To, e.Type, err)
		}
		if from != to {
			w.edges = append(w.edges, edge{from: from, to: to, weight: e.Weight, typ: e.Type})
			counts[e.Type]++
		}
	}
	if len(counts) > maxEdgeTypes {
		return fmt.Errorf("the edges have %d types, more than %d", len(counts), maxEdgeTypes)
	}
	w.edges = arrange(w.edges, g.Directed)
	clear(counts)
	for _, e := range w.edges {
		counts[e.typ]++
	}
	for t, n := range counts {
		g.EdgeTypes = append(g.EdgeTypes, EdgeTypeCount{Type: t, Count: n})
	}
	slices.SortFunc(g.EdgeTypes, func(a, b EdgeTypeCount) int { return cmp.Compare(a.Type, b.Type) })
	for i := range w.edges {
		at, _ := slices.BinarySearchFunc(g.EdgeTypes, w.edges[i].typ, func(t EdgeTypeCount, want mapmatched.EdgeType) int {
			return cmp.Compare(t.Type, want)
		})
		w.edges[i].kind = uint8(at)
	}
	w.manifest.Counts.Edges = len(w.edges)
	return nil
}

// ends checks an edge and returns the positions of its ends.
func (w *writer) ends(e mapmatched.Edge) (from, to uint32, err error) {
	if e.From == "" || e.To == "" {
		return 0, 0, mapmatched.ErrEmptyChunkID
	}
	from, known := w.position[e.From]
	if !known {
		return 0, 0, fmt.Errorf("there is no chunk %q", e.From)
	}
	if to, known = w.position[e.To]; !known {
		return 0, 0, fmt.Errorf("there is no chunk %q", e.To)
	}
	switch {
	case math.IsNaN(e.Weight) || math.IsInf(e.Weight, 0):
		return 0, 0, fmt.Errorf("the weight is %v: %w", e.Weight, mapmatched.ErrNonFinite)
	case e.Weight <= 0:
		return 0, 0, fmt.Errorf("the weight is %v: %w: weights are positive", e.Weight, mapmatched.ErrDistance)
	}
	return from, to, nil
}

// norm returns the Euclidean length of v, which is finite and not zero.
func norm(v []float32) (float64, error) {
	var sum float64
	for i, x := range v {
		f := float64(x)
		if math.IsNaN(f) || math.IsInf(f, 0) {
			return 0, fmt.Errorf("component %d is %v: %w", i, f, mapmatched.ErrNonFinite)
		}
		sum += float64(f * f)
	}
	if sum == 0 {
		return 0, errors.New("all components are 0: such a vector has no direction")
	}
	return math.Sqrt(sum), nil
}

// unitTolerance is how far from 1 the length of a vector may be to be kept as
// it is, so that vectors read from an index are written back unchanged.
const unitTolerance = 1e-6

// normalized returns v with unit length: v itself when it has that already.
func normalized(v []float32) ([]float32, error) {
	n, err := norm(v)
	if err != nil || math.Abs(n-1) <= unitTolerance {
		return v, err
	}
	unit := make([]float32, len(v))
	for i, x := range v {
		unit[i] = float32(float64(x) / n)
	}
	return unit, nil
}
