package plugins

import (
	"context"
	"fmt"

	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/plugins/internal/wire"
)

// providerServer serves a CandidateProvider.
type providerServer struct {
	wire.UnimplementedProviderServer
	*server
}

// Candidates implements the call Candidates.
func (s *providerServer) Candidates(ctx context.Context, r *wire.CandidatesRequest) (*wire.CandidatesResponse, error) {
	provider := s.current().Provider
	if provider == nil {
		return nil, absent(KindProvider)
	}
	if r.GetLimit() <= 0 {
		return &wire.CandidatesResponse{}, nil
	}
	candidates, err := provider.Candidates(ctx, fromQuery(r.GetQuery()), int(r.GetLimit()))
	if err != nil {
		return nil, err
	}
	out, err := toCandidates(candidates)
	return &wire.CandidatesResponse{Candidates: out}, err
}

// ScoreChunks implements the call ScoreChunks.
func (s *providerServer) ScoreChunks(ctx context.Context, r *wire.ScoreChunksRequest) (*wire.ScoreChunksResponse, error) {
	scorer, ok := s.current().Provider.(mapmatched.ChunkScorer)
	if !ok {
		return nil, incapable(CanScoreChunks)
	}
	scores, err := scorer.ScoreChunks(ctx, fromQuery(r.GetQuery()), r.GetChunkIds())
	if err != nil {
		return nil, err
	}
	out, err := toScored(scores)
	return &wire.ScoreChunksResponse{Scores: out}, err
}

// Chunks implements the call Chunks.
func (s *providerServer) Chunks(ctx context.Context, r *wire.ChunksRequest) (*wire.ChunksResponse, error) {
	fetcher, ok := s.current().Provider.(mapmatched.ChunkFetcher)
	if !ok {
		return nil, incapable(CanFetchChunks)
	}
	chunks, err := fetcher.Chunks(ctx, r.GetChunkIds())
	if err != nil {
		return nil, err
	}
	out, err := toChunks(chunks)
	return &wire.ChunksResponse{Chunks: out}, err
}

// Vectors implements the call Vectors.
func (s *providerServer) Vectors(ctx context.Context, r *wire.VectorsRequest) (*wire.VectorsResponse, error) {
	fetcher, ok := s.current().Provider.(mapmatched.VectorFetcher)
	if !ok {
		return nil, incapable(CanVectors)
	}
	vectors, err := fetcher.Vectors(ctx, r.GetChunkIds())
	return &wire.VectorsResponse{Vectors: toVectors(vectors)}, err
}

// Load implements the call Load.
func (s *providerServer) Load(ctx context.Context, r *wire.LoadCorpusRequest) (*wire.LoadResponse, error) {
	if s.plugin.LoadCorpus == nil {
		return nil, incapable(CanLoad)
	}
	chunks, err := fromChunks(r.GetChunks())
	if err != nil {
		return nil, invalid(err)
	}
	vectors, err := fromVectors(r.GetVectors(), len(chunks))
	if err != nil {
		return nil, invalid(err)
	}
	provider, err := s.plugin.LoadCorpus(ctx, chunks, vectors)
	if err != nil {
		return nil, err
	}
	services := s.current()
	services.Provider = provider
	s.adopt(services)
	return &wire.LoadResponse{}, nil
}

// Provider returns the plugin as a provider, with the optional capabilities
// that it names. Closing the provider closes the host. It fails when the
// plugin is no provider.
func (h *Host) Provider() (mapmatched.CandidateProvider, error) {
	if err := h.serves(KindProvider); err != nil {
		return nil, err
	}
	info := h.Info()
	p := &provider{h}
	scores, chunks, vectors := chunkScorer{h}, chunkFetcher{h}, vectorFetcher{h}
	switch [3]bool{info.Can(CanScoreChunks), info.Can(CanFetchChunks), info.Can(CanVectors)} {
	case [3]bool{true, true, true}:
		return struct {
			*provider
			chunkScorer
			chunkFetcher
			vectorFetcher
		}{p, scores, chunks, vectors}, nil
	case [3]bool{true, true, false}:
		return struct {
			*provider
			chunkScorer
			chunkFetcher
		}{p, scores, chunks}, nil
	case [3]bool{true, false, true}:
		return struct {
			*provider
			chunkScorer
			vectorFetcher
		}{p, scores, vectors}, nil
	case [3]bool{true, false, false}:
		return struct {
			*provider
			chunkScorer
		}{p, scores}, nil
	case [3]bool{false, true, true}:
		return struct {
			*provider
			chunkFetcher
			vectorFetcher
		}{p, chunks, vectors}, nil
	case [3]bool{false, true, false}:
		return struct {
			*provider
			chunkFetcher
		}{p, chunks}, nil
	case [3]bool{false, false, true}:
		return struct {
			*provider
			vectorFetcher
		}{p, vectors}, nil
	}
	return p, nil
}

// provider is a plugin as a CandidateProvider.
type provider struct{ host *Host }

// Close implements io.Closer.
func (p *provider) Close() error { return p.host.Close() }

// Health implements mapmatched.HealthChecker.
func (p *provider) Health(ctx context.Context) error { return p.host.Health(ctx) }

// Candidates implements mapmatched.CandidateProvider.
func (p *provider) Candidates(ctx context.Context, q mapmatched.Query, limit int) ([]mapmatched.Candidate, error) {
	query, err := toQuery(q)
	if err != nil {
		return nil, p.host.fail("candidates", err)
	}
	request := &wire.CandidatesRequest{Query: query, Limit: toInt32(max(limit, 0))}
	return call(ctx, p.host, "candidates", wire.NewProviderClient, wire.ProviderClient.Candidates, request,
		func(r *wire.CandidatesResponse) ([]mapmatched.Candidate, error) {
			if len(r.GetCandidates()) > max(limit, 0) {
				return nil, fmt.Errorf("%d candidates came back, more than the limit of %d", len(r.GetCandidates()), max(limit, 0))
			}
			return fromCandidates(r.GetCandidates())
		})
}

type chunkScorer struct{ host *Host }

// ScoreChunks implements mapmatched.ChunkScorer.
func (s chunkScorer) ScoreChunks(ctx context.Context, q mapmatched.Query, chunkIDs []string) ([]mapmatched.Scored, error) {
	query, err := toQuery(q)
	if err == nil {
		err = checkIDs(chunkIDs...)
	}
	if err != nil {
		return nil, s.host.fail("score chunks", err)
	}
	return call(ctx, s.host, "score chunks", wire.NewProviderClient, wire.ProviderClient.ScoreChunks, &wire.ScoreChunksRequest{Query: query, ChunkIds: chunkIDs},
		func(r *wire.ScoreChunksResponse) ([]mapmatched.Scored, error) { return fromScored(r.GetScores()) })
}

type chunkFetcher struct{ host *Host }

// Chunks implements mapmatched.ChunkFetcher.
func (f chunkFetcher) Chunks(ctx context.Context, chunkIDs []string) ([]mapmatched.Chunk, error) {
	if err := checkIDs(chunkIDs...); err != nil {
		return nil, f.host.fail("chunks", err)
	}
	return call(ctx, f.host, "chunks", wire.NewProviderClient, wire.ProviderClient.Chunks, &wire.ChunksRequest{ChunkIds: chunkIDs},
		func(r *wire.ChunksResponse) ([]mapmatched.Chunk, error) { return fromChunks(r.GetChunks()) })
}

type vectorFetcher struct{ host *Host }

// Vectors implements mapmatched.VectorFetcher.
func (f vectorFetcher) Vectors(ctx context.Context, chunkIDs []string) ([][]float32, error) {
	if err := checkIDs(chunkIDs...); err != nil {
		return nil, f.host.fail("vectors", err)
	}
	return call(ctx, f.host, "vectors", wire.NewProviderClient, wire.ProviderClient.Vectors, &wire.VectorsRequest{ChunkIds: chunkIDs},
		func(r *wire.VectorsResponse) ([][]float32, error) {
			return fromVectors(r.GetVectors(), len(chunkIDs))
		})
}

// loadCorpus hands over the corpus of the conformance suite.
func (h *Host) loadCorpus(ctx context.Context, chunks []mapmatched.Chunk, vectors [][]float32) error {
	out, err := toChunks(chunks)
	if err != nil {
		return h.fail("load", err)
	}
	_, err = call(ctx, h, "load", wire.NewProviderClient, wire.ProviderClient.Load, &wire.LoadCorpusRequest{Chunks: out, Vectors: toVectors(vectors)},
		func(*wire.LoadResponse) (struct{}, error) { return struct{}{}, nil })
	if err == nil {
		err = h.describe(ctx) // the capabilities may be others now
	}
	return err
}
