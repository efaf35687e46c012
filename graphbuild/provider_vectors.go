package graphbuild

import (
	"context"
	"fmt"

	"github.com/mapmatched/mmplug/mapmatched"
)

// ChunkLister lists the IDs of all chunks of a store, each once.
type ChunkLister interface {
	ChunkIDs(ctx context.Context) ([]string, error)
}

// VectorStore is a store that can list its chunks and give their vectors.
type VectorStore interface {
	ChunkLister
	mapmatched.VectorFetcher
}

// DefaultVectorBatch is how many vectors FetchVectors asks for at a time when
// that is not set.
const DefaultVectorBatch = 256

// FetchOptions are the settings of [FetchVectors]. The zero value, and nil,
// mean the defaults.
type FetchOptions struct {
	// Batch is how many vectors to ask for at a time. 0 means
	// DefaultVectorBatch.
	Batch int

	// Progress, if set, is told how many of the chunks were asked for, done
	// ascending. It must not block for long.
	Progress func(done, total int)
}

// StoredVectors are the vectors of a store, in the order it lists its chunks.
type StoredVectors struct {
	IDs     []string
	Vectors [][]float32 // one for each of IDs
	Missing []string    // chunks without a vector, which are not in IDs
}

// FetchVectors gathers the vectors of all chunks of a store, to be given to
// [KNN]. A store that answers with another number of vectors than it was asked
// for is an error.
func FetchVectors(ctx context.Context, store VectorStore, opts *FetchOptions) (*StoredVectors, error) {
	if opts == nil {
		opts = &FetchOptions{}
	}
	batch := opts.Batch
	switch {
	case batch < 0:
		return nil, fmt.Errorf("%w: Batch is %d, want 0 for the default or more", mapmatched.ErrInvalidConfig, batch)
	case batch == 0:
		batch = DefaultVectorBatch
	}
	ids, err := store.ChunkIDs(ctx)
	if err != nil {
		return nil, fmt.Errorf("list chunks: %w", err)
	}
	s := &StoredVectors{}
	for at := 0; at < len(ids); at += batch {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		asked := ids[at:min(at+batch, len(ids))]
		vectors, err := store.Vectors(ctx, asked)
		if err != nil {
			return nil, fmt.Errorf("vectors of chunks %q to %q: %w", asked[0], asked[len(asked)-1], err)
		}
		if len(vectors) != len(asked) {
			return nil, fmt.Errorf("vectors of chunks %q to %q: the store gave %d for %d chunks; it must give one for each, nil where there is none",
				asked[0], asked[len(asked)-1], len(vectors), len(asked))
		}
		for i, v := range vectors {
			if v == nil {
				s.Missing = append(s.Missing, asked[i])
				continue
			}
			s.IDs = append(s.IDs, asked[i])
			s.Vectors = append(s.Vectors, v)
		}
		if opts.Progress != nil {
			opts.Progress(at+len(asked), len(ids))
		}
	}
	return s, nil
}

// StoreKNN makes the graph of nearest neighbours of all chunks of a store that
// have a vector: [FetchVectors], then [KNN]. missing are the chunks without
// one, which have no edges.
func StoreKNN(ctx context.Context, store VectorStore, fetch *FetchOptions, opts *KNNOptions) (edges []mapmatched.Edge, missing []string, err error) {
	s, err := FetchVectors(ctx, store, fetch)
	if err != nil {
		return nil, nil, err
	}
	edges, err = KNN(ctx, s.IDs, s.Vectors, opts)
	return edges, s.Missing, err
}
