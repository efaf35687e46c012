package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/mapmatched/mmplug/adapters/faiss"
	"github.com/mapmatched/mmplug/graphbuild"
	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/mapmatched/registry"
)

// The values of --take.
const (
	takeVectors   = "vectors"
	takeNeighbors = "neighbors"
	takeEdges     = "edges"
)

// matrixer is a store that gives all of its vectors in place.
type matrixer interface {
	Matrix(ctx context.Context) (*faiss.Matrix, error)
}

// fromStore makes a graph of what --take says the store at a URL has.
func (b *graphBuild) fromStore(ctx context.Context, std stdio) (in graphbuild.GraphInput, err error) {
	if b.take == takeEdges && opens(registry.KindGraph, b.store) {
		graph, err := registry.OpenGraph(ctx, b.store)
		if err != nil {
			return in, err
		}
		defer closeAll(graph)
		return b.graphEdges(ctx, graph)
	}
	provider, err := registry.OpenProvider(ctx, b.store)
	if err != nil {
		if b.take != takeEdges && opens(registry.KindGraph, b.store) && mapmatched.KindOf(err) == mapmatched.KindInvalid {
			return in, fmt.Errorf("%w; --take %s takes the edges that it keeps", err, takeEdges)
		}
		return in, err
	}
	defer closeAll(provider)
	switch b.take {
	case takeNeighbors:
		return b.storeNeighbors(ctx, provider)
	case takeEdges:
		return b.recordEdges(ctx, provider)
	}
	return b.storedVectors(ctx, std, provider)
}

// lacks refuses a store that does not have what --take says, and says what it
// has.
func (b *graphBuild) lacks(what string, provider mapmatched.CandidateProvider) error {
	records := capability[mapmatched.RecordLister](provider) != nil
	var has []string
	if records || capability[matrixer](provider) != nil || capability[graphbuild.VectorStore](provider) != nil {
		has = append(has, "--take "+takeVectors)
	}
	if capability[mapmatched.NeighborLister](provider) != nil {
		has = append(has, "--take "+takeNeighbors)
	}
	if records || opens(registry.KindGraph, b.store) {
		has = append(has, "--take "+takeEdges)
	}
	hint := "take vectors from a file with --vectors and --ids, or edges with --edges"
	if len(has) > 0 {
		hint = "it can be asked for " + strings.Join(has, " and ")
	}
	return usageError{fmt.Errorf("the store at %s does not give %s: %s", b.store, what, hint)}
}

// storedVectors makes the graph of the nearest neighbours of the vectors of a
// store, found here.
func (b *graphBuild) storedVectors(ctx context.Context, std stdio, provider mapmatched.CandidateProvider) (in graphbuild.GraphInput, err error) {
	if store, ok := provider.(matrixer); ok {
		source, err := store.Matrix(ctx)
		if err != nil {
			return in, err
		}
		defer source.Close() //nolint:errcheck // only read
		return b.fromSource(ctx, std, source, b.store)
	}
	var rows memoryRows
	var without []string // chunks that have none
	if store, ok := provider.(mapmatched.RecordLister); ok {
		for record, err := range store.Records(ctx) {
			if err != nil {
				return in, err
			}
			if record.Vector == nil {
				without = append(without, record.Chunk.ID)
				continue
			}
			rows.ids, rows.vectors = append(rows.ids, record.Chunk.ID), append(rows.vectors, record.Vector)
		}
	} else if store, ok := provider.(graphbuild.VectorStore); ok {
		bar := newProgress(std.err, "fetching", b.began)
		stored, err := graphbuild.FetchVectors(ctx, store, &graphbuild.FetchOptions{Progress: bar.update})
		bar.done()
		if err != nil {
			return in, err
		}
		rows, without = memoryRows{stored.IDs, stored.Vectors}, stored.Missing
	} else {
		return in, b.lacks("its vectors", provider)
	}
	if len(rows.ids) == 0 {
		return in, fmt.Errorf("%s: none of its %s has a vector: write it again with --embed, or take its edges with --take %s", b.store, count(len(without), "chunk", "chunks"), takeEdges)
	}
	for i, v := range rows.vectors {
		if len(v) != rows.Dimension() {
			return in, fmt.Errorf("%s: the vector of chunk %q has %d dimensions, that of chunk %q has %d", b.store, rows.ids[i], len(v), rows.ids[0], rows.Dimension())
		}
	}
	if in, err = b.fromSource(ctx, std, rows, b.store); err != nil {
		return in, err
	}
	in.Nodes = append(in.Nodes, without...)
	in.Provenance.Parameters["from"] = placeOf(b.store)
	return in, nil
}

// memoryRows are vectors in memory, all of one dimension, as a
// graphbuild.VectorSource.
type memoryRows struct {
	ids     []string
	vectors [][]float32
}

// Len implements graphbuild.VectorSource.
func (r memoryRows) Len() int { return len(r.ids) }

// Dimension implements graphbuild.VectorSource.
func (r memoryRows) Dimension() int { return len(r.vectors[0]) }

// ID implements graphbuild.VectorSource.
func (r memoryRows) ID(row int) string { return r.ids[row] }

// Row implements graphbuild.VectorSource.
func (r memoryRows) Row(row int, _ []float32) []float32 { return r.vectors[row] }

// storeNeighbors makes the graph of the nearest neighbours as the store finds
// them: a chunk is joined to those it selects and to those that select it, by
// the formula of knn_v1.
func (b *graphBuild) storeNeighbors(ctx context.Context, provider mapmatched.CandidateProvider) (in graphbuild.GraphInput, err error) {
	store, ok := provider.(mapmatched.NeighborLister)
	if !ok {
		return in, b.lacks("the neighbours of its chunks", provider)
	}
	for e, err := range store.NearestNeighbors(ctx, b.knn.K) {
		if err != nil {
			return in, err
		}
		e.Weight = min(max(e.Weight, b.knn.MinimumEdgeDistance), b.maximum)
		in.Edges = append(in.Edges, e)
	}
	if len(in.Edges) == 0 {
		return in, fmt.Errorf("%s: the store finds no neighbours: it has fewer than two chunks with vectors", b.store)
	}
	in.MaximumDistance = b.maximum
	in.Provenance = graphbuild.Provenance{Method: graphbuild.FormulaKNN, Parameters: map[string]string{
		"k":                     strconv.Itoa(b.knn.K),
		"neighbours":            "those of the store",
		"from":                  placeOf(b.store),
		"minimum_edge_distance": strconv.FormatFloat(b.knn.MinimumEdgeDistance, 'g', -1, 64),
	}}
	return in, nil
}

// graphEdges makes the graph of the edges of a graph.
func (b *graphBuild) graphEdges(ctx context.Context, graph mapmatched.CorpusGraph) (in graphbuild.GraphInput, err error) {
	listed, err := graphbuild.ListGraph(ctx, graph)
	if err != nil {
		return in, fmt.Errorf("%s: %w", b.store, err)
	}
	in.Nodes, in.Directed, in.MaximumDistance = listed.Nodes(), listed.Directed(), listed.MaximumDistance()
	if b.maximumGiven {
		in.MaximumDistance = b.maximum
	}
	for e, err := range listed.Edges(ctx) {
		if err != nil {
			return in, err
		}
		in.Edges = append(in.Edges, e)
	}
	in.Provenance, err = b.provenance(ctx, graph)
	return in, err
}

// recordEdges makes the graph of the edges of the records of a store that opens
// no graph.
func (b *graphBuild) recordEdges(ctx context.Context, provider mapmatched.CandidateProvider) (in graphbuild.GraphInput, err error) {
	store, ok := provider.(mapmatched.RecordLister)
	if !ok {
		return in, b.lacks("its edges", provider)
	}
	for record, err := range store.Records(ctx) {
		if err != nil {
			return in, err
		}
		in.Nodes = append(in.Nodes, record.Chunk.ID)
		in.Edges = append(in.Edges, record.Edges...)
	}
	in.MaximumDistance = b.maximum
	in.Provenance, err = b.provenance(ctx, provider)
	return in, err
}

// provenance is where the edges that a store keeps come from.
func (b *graphBuild) provenance(ctx context.Context, from any) (graphbuild.Provenance, error) {
	p := graphbuild.Provenance{Method: "edges of a store", Parameters: map[string]string{"from": placeOf(b.store)}}
	if who, ok := from.(mapmatched.CorpusIdentifier); ok {
		identity, err := who.CorpusIdentity(ctx)
		if err != nil {
			return p, err
		}
		if identity.ChunkPolicy != "" {
			p.Parameters["chunk_policy"] = identity.ChunkPolicy
		}
	}
	return p, nil
}
