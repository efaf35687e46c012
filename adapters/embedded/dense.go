package embedded

import (
	"context"
	"fmt"
	"math"

	"github.com/mapmatched/mmplug/adapters/embedded/internal/topk"
	"github.com/mapmatched/mmplug/internal/kernel"
	"github.com/mapmatched/mmplug/mapmatched"
)

// row returns the vector of the chunk at a position.
func (x *Index) row(position uint32) []float32 {
	d := x.manifest.Vectors.Dimension
	first := int(position) * d
	return x.vectors[first : first+d : first+d]
}

// queryVector returns the vector of a query with unit length, nil when the
// query is empty. It reads no map: the embedder may take long.
func (x *Index) queryVector(ctx context.Context, op string, q mapmatched.Query) ([]float32, error) {
	if err := x.Health(ctx); err != nil {
		return nil, err
	}
	v, err := mapmatched.QueryVector(ctx, q, x.opts.Embedder, adapterName)
	if err != nil || v == nil {
		return nil, classify(op, err)
	}
	if id := x.manifest.Vectors; len(v) != id.Dimension {
		return nil, classify(op, fmt.Errorf("the query vector has %d components and the index %d (model %q): use the model that made the index", len(v), id.Dimension, id.Model))
	}
	unit, err := normalized(v)
	if err != nil {
		return nil, classify(op, fmt.Errorf("the query vector: %w", err))
	}
	return unit, nil
}

// searchDense returns the limit chunks with the highest cosine, ties by
// position.
func (x *Index) searchDense(ctx context.Context, query []float32, limit int) ([]topk.Hit, error) {
	if query == nil || limit < 1 {
		return nil, nil
	}
	best := topk.New(limit, x.manifest.Counts.Vectors)
	for i := range x.manifest.Counts.Vectors {
		if i%checkEvery == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		score, err := x.cosine(query, uint32(i))
		if err != nil {
			return nil, err
		}
		best.Push(topk.Hit{Position: uint32(i), Score: score})
	}
	return best.Sorted(), nil
}

// cosines returns the scores of the chunks at the positions.
func (x *Index) cosines(ctx context.Context, query []float32, positions []uint32) ([]float64, error) {
	scores := make([]float64, len(positions))
	for i, p := range positions {
		if i%checkEvery == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		var err error
		if scores[i], err = x.cosine(query, p); err != nil {
			return nil, err
		}
	}
	return scores, nil
}

// cosine returns the score of a chunk for a unit query, with the same bits on
// every machine.
func (x *Index) cosine(query []float32, position uint32) (float64, error) {
	score := float64(kernel.Dot(query, x.row(position)))
	if math.IsNaN(score) || math.IsInf(score, 0) {
		return 0, damaged(vectorsName, "the cosine with row %d is %v", position, score)
	}
	return score, nil
}
