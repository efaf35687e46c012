package plugins

import (
	"context"

	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/plugins/internal/wire"
)

// rerankerServer serves a Reranker.
type rerankerServer struct {
	wire.UnimplementedRerankerServer
	*server
}

// Rerank implements the call Rerank.
func (s *rerankerServer) Rerank(ctx context.Context, r *wire.RerankRequest) (*wire.RerankResponse, error) {
	reranker := s.current().Reranker
	if reranker == nil {
		return nil, absent(KindReranker)
	}
	candidates, err := fromCandidates(r.GetCandidates())
	if err != nil {
		return nil, invalid(err)
	}
	scores, err := reranker.Rerank(ctx, fromQuery(r.GetQuery()), candidates)
	if err != nil {
		return nil, err
	}
	out, err := toScored(scores)
	return &wire.RerankResponse{Scores: out}, err
}

// Reranker returns the plugin as a reranker. Closing it closes the host. It
// fails when the plugin is no reranker.
func (h *Host) Reranker() (mapmatched.Reranker, error) {
	if err := h.serves(KindReranker); err != nil {
		return nil, err
	}
	return &reranker{h}, nil
}

// reranker is a plugin as a Reranker.
type reranker struct{ host *Host }

// Close implements io.Closer.
func (r *reranker) Close() error { return r.host.Close() }

// Health implements mapmatched.HealthChecker.
func (r *reranker) Health(ctx context.Context) error { return r.host.Health(ctx) }

// Rerank implements mapmatched.Reranker. Scores that are not finite are
// refused; whether every candidate has one is for the caller to say.
func (r *reranker) Rerank(ctx context.Context, q mapmatched.Query, c []mapmatched.Candidate) ([]mapmatched.Scored, error) {
	query, err := toQuery(q)
	if err != nil {
		return nil, r.host.fail("rerank", err)
	}
	candidates, err := toCandidates(c)
	if err != nil {
		return nil, r.host.failAs(mapmatched.KindInvalid, "rerank", err)
	}
	return call(ctx, r.host, "rerank", wire.NewRerankerClient, wire.RerankerClient.Rerank, &wire.RerankRequest{Query: query, Candidates: candidates},
		func(r *wire.RerankResponse) ([]mapmatched.Scored, error) { return fromScored(r.GetScores()) })
}
