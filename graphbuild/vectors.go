package graphbuild

import (
	"fmt"

	"github.com/mapmatched/mmplug/mapmatched"
)

// VectorSource gives the vectors of chunks by row. Its methods are called by
// several goroutines at once and must give the same answer each time.
type VectorSource interface {
	// Len is the number of rows.
	Len() int
	// Dimension is the number of elements of every row.
	Dimension() int
	// ID is the chunk of a row in [0, Len).
	ID(row int) string
	// Row returns the vector of a row in [0, Len): dst filled, when it has to
	// be read or converted, or memory of the source, which stays valid and
	// unchanged and is only read. len(dst) is Dimension.
	Row(row int, dst []float32) []float32
}

// sliceSource are vectors in memory.
type sliceSource struct {
	ids     []string
	vectors [][]float32
	dim     int
}

// newSliceSource checks that the rows are as many as the IDs and of one length.
func newSliceSource(ids []string, vectors [][]float32) (*sliceSource, error) {
	if len(ids) != len(vectors) {
		return nil, fmt.Errorf("there are %d chunk IDs and %d vectors; give one vector for each chunk", len(ids), len(vectors))
	}
	s := &sliceSource{ids: ids, vectors: vectors}
	if len(vectors) > 0 {
		s.dim = len(vectors[0])
	}
	for i, row := range vectors {
		if ids[i] == "" {
			return nil, fmt.Errorf("%w: row %d; give every vector the ID of its chunk", mapmatched.ErrEmptyChunkID, i)
		}
		if len(row) != s.dim {
			return nil, fmt.Errorf("row %d (chunk %q) has %d dimensions, row 0 (chunk %q) has %d; all rows must have the same",
				i, ids[i], len(row), ids[0], s.dim)
		}
	}
	return s, nil
}

func (s *sliceSource) Len() int                           { return len(s.ids) }
func (s *sliceSource) Dimension() int                     { return s.dim }
func (s *sliceSource) ID(row int) string                  { return s.ids[row] }
func (s *sliceSource) Row(row int, _ []float32) []float32 { return s.vectors[row] }
