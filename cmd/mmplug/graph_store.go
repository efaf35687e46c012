package main

import (
	"context"
	"fmt"
	"io"

	"github.com/mapmatched/mmplug/adapters/faiss"
	"github.com/mapmatched/mmplug/graphbuild"
	"github.com/mapmatched/mmplug/mapmatched/registry"
)

// matrixer is a store that gives all of its vectors in place.
type matrixer interface {
	Matrix(ctx context.Context) (*faiss.Matrix, error)
}

// fromStore makes the graph of the nearest neighbours of the vectors in the
// store at a URL.
func (b *graphBuild) fromStore(ctx context.Context, std stdio) (in graphbuild.GraphInput, err error) {
	provider, err := registry.OpenProvider(ctx, b.store)
	if err != nil {
		return in, err
	}
	if c, ok := provider.(io.Closer); ok {
		defer c.Close() //nolint:errcheck // only read
	}
	store, ok := provider.(matrixer)
	if !ok {
		return in, usageError{fmt.Errorf("the store at %s does not give its vectors: take them from a file with --vectors and --ids", b.store)}
	}
	source, err := store.Matrix(ctx)
	if err != nil {
		return in, err
	}
	defer source.Close() //nolint:errcheck // only read
	return b.fromSource(ctx, std, source, b.store)
}
