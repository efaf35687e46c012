package embedded

import (
	"context"

	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/mapmatched/registry"
)

// Scheme is the URL scheme of indexes: embedded:path/to/index.
const Scheme = "embedded"

var skipChecksums = registry.Parameter{
	Name:    "skip_checksums",
	Usage:   "true opens without reading the files through; false checks every file",
	Default: "false",
}

func init() {
	registry.RegisterProvider(Scheme, registry.ProviderOpener{
		Doc: registry.Doc{
			Summary: "passages of an index directory made by mmplug index",
			Example: "embedded:path/to/index?arm=lexical",
			Parameters: []registry.Parameter{
				{Name: "arm", Usage: "lexical (BM25) or dense (exact scan; queries bring their vector)", Default: string(ArmLexical)},
				skipChecksums,
			},
		},
		Open: func(ctx context.Context, at registry.Location, p *registry.Params) (mapmatched.CandidateProvider, error) {
			return openURL(ctx, at, p, &Options{Arm: Arm(p.Enum("arm", string(ArmLexical), string(ArmLexical), string(ArmDense)))})
		},
	})
	registry.RegisterGraph(Scheme, registry.GraphOpener{
		Doc: registry.Doc{
			Summary:    "corpus graph of an index directory made by mmplug index",
			Example:    "embedded:path/to/index",
			Parameters: []registry.Parameter{skipChecksums},
		},
		Open: func(ctx context.Context, at registry.Location, p *registry.Params) (mapmatched.CorpusGraph, error) {
			x, err := openURL(ctx, at, p, &Options{})
			if err != nil {
				return nil, err
			}
			g, err := x.Graph(ctx)
			if cerr := x.Close(); err == nil {
				err = cerr
			}
			if err != nil {
				return nil, err
			}
			return g, nil
		},
	})
}

// openURL opens the index at a location once all parameters are read.
func openURL(ctx context.Context, at registry.Location, p *registry.Params, opts *Options) (*Index, error) {
	opts.SkipChecksums = p.Bool(skipChecksums.Name, false)
	if err := p.Err(); err != nil {
		return nil, err
	}
	dir, err := at.File()
	if err != nil {
		return nil, fail("open", mapmatched.KindInvalid, err)
	}
	return Open(ctx, dir, opts)
}
