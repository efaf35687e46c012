package embedded

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/mapmatched/mmplug/mapmatched"
)

// Digest identifies what the index holds: the SHA-256, in hexadecimal, of its
// manifest, which has those of all files, without who wrote it and what the
// source is called.
func (x *Index) Digest() string {
	m := x.Manifest()
	m.Tool, m.Source = "", Source{}
	raw, err := m.encode()
	if err != nil {
		panic(fmt.Sprintf("embedded: a manifest that was read cannot be written: %v", err))
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// Graph reads the corpus graph of the index into memory. Every chunk is a
// node. The graph does not need the index any more.
func (x *Index) Graph(ctx context.Context) (*mapmatched.Graph, error) {
	const op = "graph"
	nodes, err := x.ChunkIDs(ctx)
	if err != nil {
		return nil, err
	}
	edges := make([]mapmatched.Edge, 0, x.manifest.Counts.Edges)
	for e, err := range x.Edges(ctx) {
		if err != nil {
			return nil, err
		}
		edges = append(edges, e)
	}
	g, err := mapmatched.NewGraph(edges, &mapmatched.GraphOptions{
		Nodes:           nodes,
		MaximumDistance: x.manifest.Graph.MaximumDistance,
		Directed:        x.manifest.Graph.Directed,
	})
	if err != nil {
		return nil, fail(op, mapmatched.KindCorrupt, err)
	}
	return g, nil
}
