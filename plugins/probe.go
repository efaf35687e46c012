package plugins

import (
	"context"

	"google.golang.org/grpc"

	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/plugins/internal/probe"
)

func init() {
	probe.Call = func(ctx context.Context, host any, f func(context.Context, grpc.ClientConnInterface) error) error {
		return host.(*Host).do(ctx, "call", f)
	}
	probe.LoadCorpus = func(ctx context.Context, host any, chunks []mapmatched.Chunk, vectors [][]float32) error {
		return host.(*Host).loadCorpus(ctx, chunks, vectors)
	}
	probe.LoadGraph = func(ctx context.Context, host any, nodes []string, edges []mapmatched.Edge, maximumDistance float64, directed bool) error {
		return host.(*Host).loadGraph(ctx, nodes, edges, maximumDistance, directed)
	}
}
