// Package probe lets the conformance suite reach what a plugins.Host keeps to
// itself. Package plugins fills it in.
package probe

import (
	"context"

	"google.golang.org/grpc"

	"github.com/mapmatched/mmplug/mapmatched"
)

// Each function takes a *plugins.Host as its host.
var (
	// Call runs f with the connection to a running plugin and words its error.
	Call func(ctx context.Context, host any, f func(context.Context, grpc.ClientConnInterface) error) error
	// LoadCorpus hands a corpus to a plugin with the capability.
	LoadCorpus func(ctx context.Context, host any, chunks []mapmatched.Chunk, vectors [][]float32) error
	// LoadGraph hands a graph to a plugin with the capability.
	LoadGraph func(ctx context.Context, host any, nodes []string, edges []mapmatched.Edge, maximumDistance float64, directed bool) error
)
