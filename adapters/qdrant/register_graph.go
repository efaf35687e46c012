package qdrant

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/mapmatched/mmplug/internal/rings"
	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/mapmatched/registry"
)

func init() {
	registry.RegisterGraph(Scheme, registry.GraphOpener{
		Doc: registry.Doc{
			Summary:    "corpus graph of the edges in the payload of a collection; the URL of the provider opens it as well",
			Example:    "qdrant://localhost:6334/pages",
			Parameters: slices.Concat(graphParameters, keyParameters, clientParameters, providerOnly()),
		},
		Open: openGraph,
	})
}

var graphParameters = []registry.Parameter{
	{Name: "maximum_distance", Usage: "where distances are clamped; without it what the collection was written with, or " + fmt.Sprint(mapmatched.DefaultMaximumDistance)},
	{Name: "directed", Usage: "true makes edges passable from the chunk that keeps them only", Default: "false"},
	{Name: "types", Usage: "types of the edges to use, separated by commas; without it all"},
	{Name: "cache_bytes", Usage: "memory for edges already fetched; 0 keeps none", Default: fmt.Sprint(rings.DefaultCacheBytes)},
	{Name: "vector", Usage: "name of the dense vector for records and neighbors; without it the unnamed or only one"},
}

// graphOnly are the parameters of the graph that the provider takes so that both
// have one URL, and does not use.
func graphOnly() []registry.Parameter {
	var list []registry.Parameter
	for _, p := range graphParameters {
		if p.Name != "vector" {
			list = append(list, registry.Parameter{Name: p.Name, Usage: "for the graph; the provider does not use it"})
		}
	}
	return list
}

// providerOnly are the parameters of the provider that the graph takes so that
// both have one URL, and does not use.
func providerOnly() []registry.Parameter {
	var list []registry.Parameter
	for _, p := range searchParameters {
		if p.Name != "vector" {
			list = append(list, registry.Parameter{Name: p.Name, Usage: "for the provider; the graph does not use it"})
		}
	}
	return list
}

func openGraph(ctx context.Context, at registry.Location, p *registry.Params) (mapmatched.CorpusGraph, error) {
	client := readClient(p)
	opts := &GraphOptions{
		MaximumDistance: p.Float("maximum_distance", 0, math.SmallestNonzeroFloat64, math.MaxFloat64), Directed: p.Bool("directed", false),
		CacheBytes: int64(p.Int("cache_bytes", rings.DefaultCacheBytes, 0, math.MaxInt)), Vector: p.String("vector", ""), Keys: readKeys(p),
	}
	if opts.CacheBytes == 0 {
		opts.CacheBytes = -1 // 0 of the options is the default
	}
	if types := p.String("types", ""); types != "" {
		for kind := range strings.SplitSeq(types, ",") {
			opts.Types = append(opts.Types, mapmatched.EdgeType(kind))
		}
	}
	for _, other := range providerOnly() {
		_ = p.String(other.Name, "")
	}
	if err := p.Err(); err != nil {
		return nil, err
	}
	return connected(at, client, func(c *Client, collection string) (mapmatched.CorpusGraph, *store, error) {
		g, err := NewGraph(ctx, c, collection, opts)
		if err != nil {
			return nil, nil, err
		}
		return g, g.store, nil
	})
}
