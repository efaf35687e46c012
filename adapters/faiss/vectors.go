package faiss

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/mapmatched/mmplug/mapmatched"
)

// ChunkIDs returns the IDs of all chunks in the order of the entries.
func (p *Provider) ChunkIDs(ctx context.Context) ([]string, error) {
	ids := make([]string, len(p.entries))
	err := p.index.do(ctx, "chunk ids", func() error {
		for i := range p.entries {
			ids[i] = p.entries[i].ID
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return ids, nil
}

// positions returns the position of the vector of each entry, and the vectors.
// It runs within Index.do.
func (p *Provider) positions(ctx context.Context) (of []int, rows func(at int) []float32, err error) {
	ids, rows, err := p.index.vectors(ctx)
	if err != nil {
		return nil, nil, err
	}
	p.positionsOnce.Do(func() {
		of := make([]int, len(p.entries))
		for at := range p.entries {
			entry, known := p.entry(idAt(ids, at))
			if !known { // assign knew all
				p.positionsErr = damaged("a vector has the FAISS ID %d, which none had when the file was opened: it was changed", idAt(ids, at))
				return
			}
			of[entry] = at
		}
		p.positionOf = of
	})
	return p.positionOf, rows, p.positionsErr
}

// Vectors implements mapmatched.VectorFetcher with the vectors that the index
// holds: as they were added, or as near as it can tell when it compresses them.
// An index that cannot tell is an error ([ErrUnsupported]); Options.Vectors
// makes it one of opening.
func (p *Provider) Vectors(ctx context.Context, chunkIDs []string) ([][]float32, error) {
	vectors := make([][]float32, len(chunkIDs))
	err := p.each(ctx, "vectors", chunkIDs, func(i int, row []float32) error {
		vectors[i] = slices.Clone(row)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return vectors, nil
}

// each calls visit for each known chunk with its place in chunkIDs and its
// vector.
func (p *Provider) each(ctx context.Context, op string, chunkIDs []string, visit func(i int, row []float32) error) error {
	return p.index.do(ctx, op, func() error {
		if len(chunkIDs) == 0 {
			return nil
		}
		positions, rows, err := p.positions(ctx)
		if err != nil {
			return err
		}
		for i, id := range chunkIDs {
			if i%checkEvery == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			if entry, known := p.chunks[id]; known {
				if err := visit(i, rows(positions[entry])); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// ScoreChunks implements mapmatched.ChunkScorer on the vectors that the index
// gives. The scores are those of Candidates for the indexes that the Go code
// reads; libfaiss rounds otherwise. Other metrics than inner product and L2 are
// an error.
func (p *Provider) ScoreChunks(ctx context.Context, q mapmatched.Query, chunkIDs []string) ([]mapmatched.Scored, error) {
	const op = "score chunks"
	scored := make([]mapmatched.Scored, 0, len(chunkIDs))
	v, err := p.queryVector(ctx, op, q)
	if v == nil || err != nil {
		return scored, err
	}
	metric := p.Info().Metric
	if metric != MetricInnerProduct && metric != MetricL2 {
		return nil, classify(op, unsupported("chunks are not scored one by one by %v", metric))
	}
	err = p.each(ctx, op, chunkIDs, func(i int, row []float32) error {
		s := score(metric, v, row)
		if err := finite([]float32{float32(s)}); err != nil {
			return damaged("chunk %q: the score is %v", chunkIDs[i], s)
		}
		scored = append(scored, mapmatched.Scored{ChunkID: chunkIDs[i], Score: s})
		return nil
	})
	if err != nil {
		return nil, err
	}
	return scored, nil
}

// Matrix are the vectors of a provider by row, in the form that the builders of
// nearest-neighbour graphs take (graphbuild.VectorSource). It keeps the index
// until Close.
type Matrix struct {
	provider  *Provider
	positions []int
	rows      func(at int) []float32
	once      sync.Once
}

// Matrix returns the vectors of all chunks, in the order of the entries. The
// caller has to call Close.
func (p *Provider) Matrix(ctx context.Context) (*Matrix, error) {
	m := &Matrix{provider: p}
	err := p.index.do(ctx, "vectors", func() error {
		var err error
		if m.positions, m.rows, err = p.positions(ctx); err != nil {
			return fmt.Errorf("%s: %w", p.Info().Path, err)
		}
		return p.index.acquire()
	})
	if err != nil {
		return nil, err
	}
	return m, nil
}

// Len is the number of rows.
func (m *Matrix) Len() int { return len(m.positions) }

// Dimension is the number of elements of every row.
func (m *Matrix) Dimension() int { return m.provider.Info().Dimension }

// ID is the chunk of a row in [0, Len).
func (m *Matrix) ID(row int) string { return m.provider.entries[row].ID }

// Row returns the vector of a row in [0, Len), to be read only and until Close.
// The second argument is not used: nothing has to be copied.
func (m *Matrix) Row(row int, _ []float32) []float32 { return m.rows(m.positions[row]) }

// Close implements io.Closer. Closing again does nothing.
func (m *Matrix) Close() error {
	m.once.Do(m.provider.index.release)
	return nil
}
