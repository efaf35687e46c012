// Package graphfile opens the graph files of graphbuild by URL. A program
// imports it for its effect on the registry:
//
//	import _ "github.com/mapmatched/mmplug/adapters/graphfile"
//
//	g, err := registry.OpenGraph(ctx, "graph:corpus.mmg")
package graphfile

import (
	"context"

	"github.com/mapmatched/mmplug/graphbuild"
	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/mapmatched/registry"
)

// Scheme is the URL scheme of graph files: graph:path/to/corpus.mmg.
const Scheme = "graph"

// Opener opens a *graphbuild.GraphFile, which the caller closes.
func Opener() registry.GraphOpener {
	return registry.GraphOpener{
		Doc: registry.Doc{
			Summary: "corpus graph of a file made by mmplug graph build",
			Example: "graph:path/to/corpus.mmg",
			Parameters: []registry.Parameter{{
				Name:    "skip_checksums",
				Usage:   "true opens without reading the distance table or labels through; false checks all of the file",
				Default: "false",
			}},
		},
		Open: func(ctx context.Context, at registry.Location, p *registry.Params) (mapmatched.CorpusGraph, error) {
			skip := p.Bool("skip_checksums", false)
			if err := p.Err(); err != nil {
				return nil, err
			}
			path, err := at.File()
			if err != nil {
				return nil, &mapmatched.Error{Op: "open", Adapter: Scheme, Kind: mapmatched.KindInvalid, Err: err}
			}
			g, err := graphbuild.OpenGraph(ctx, path, &graphbuild.OpenGraphOptions{SkipChecksums: skip})
			if err != nil {
				return nil, err
			}
			return g, nil
		},
	}
}

func init() { registry.RegisterGraph(Scheme, Opener()) }
