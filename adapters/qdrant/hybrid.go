package qdrant

import (
	"context"
	"errors"
	"math"

	pb "github.com/qdrant/go-client/qdrant"

	"github.com/mapmatched/mmplug/mapmatched"
)

// FusionMethod is how the server fuses the lists of several searches.
type FusionMethod string

// The methods.
const (
	FusionRRF  FusionMethod = "rrf"  // reciprocal rank fusion: Σ 1/((rank + 1)/weight + k − 1), rank from 0, which is Σ 1/(k + rank) for weight 1
	FusionDBSF FusionMethod = "dbsf" // scores scaled by mean and deviation of their list, then added; not for distances
)

// Fusion says how the server fuses.
type Fusion struct {
	// Method is required.
	Method FusionMethod
	// K of FusionRRF, 0 for the server's 2. Servers before 1.16 know no other.
	K int
	// Weights of FusionRRF, one for each arm, finite and not negative: an arm of
	// weight 3 has three of its candidates in the place of one of an arm of
	// weight 1, and one of weight 0 does not count. These are not the weights of
	// rrf_v1. nil counts all the same. Servers before 1.17 know none.
	Weights []float64
	// Prefetch is how many candidates of each arm are fused, or the limit of the
	// query if that is larger. 0 means DefaultPrefetch.
	Prefetch int
}

func (f Fusion) validate(arms int) error {
	var errs []error
	fault := func(format string, args ...any) { errs = append(errs, invalidConfig(format, args...)) }
	if f.Method != FusionRRF && f.Method != FusionDBSF {
		fault("Fusion.Method is %q, want %q or %q", f.Method, FusionRRF, FusionDBSF)
	}
	if f.Method == FusionDBSF && (f.K != 0 || f.Weights != nil) {
		fault("Fusion.K and Weights have no effect on %q", FusionDBSF)
	}
	if f.K < 0 || f.K > math.MaxInt32 {
		fault("Fusion.K is %d, want 1 or more, or 0 for the server's 2", f.K)
	}
	if f.Weights != nil && len(f.Weights) != arms {
		fault("Fusion.Weights are %d for %d arms", len(f.Weights), arms)
	}
	sum := 0.0
	for _, w := range f.Weights {
		if !(w >= 0 && w <= math.MaxFloat32) {
			fault("Fusion.Weights has %v, want finite numbers of 0 or more", w)
		}
		sum += w
	}
	if len(f.Weights) > 0 && sum == 0 {
		fault("Fusion.Weights are all 0")
	}
	if f.Prefetch < 0 || f.Prefetch > maxLimit {
		fault("Fusion.Prefetch is %d, want 1 to %d, or 0 for %d", f.Prefetch, maxLimit, DefaultPrefetch)
	}
	return errors.Join(errs...)
}

// HybridProvider finds candidates by several vectors of a collection, whose
// lists the server fuses in one round trip, or more where [Provider.Candidates]
// needs them. It scores no given chunks: what a fused score is depends on the
// other candidates. It is safe for concurrent use.
type HybridProvider struct {
	*store
	arms   []*Provider
	fusion Fusion
	fused  *Provider // reads the answer
}

var (
	_ mapmatched.CandidateProvider = (*HybridProvider)(nil)
	_ mapmatched.ChunkFetcher      = (*HybridProvider)(nil)
	_ mapmatched.VectorFetcher     = (*HybridProvider)(nil)
	_ mapmatched.HealthChecker     = (*HybridProvider)(nil)
	_ mapmatched.CorpusIdentifier  = (*HybridProvider)(nil)
	_ mapmatched.Diagnoser         = (*HybridProvider)(nil)
)

// NewHybridProvider fuses arms, which are providers over one collection of one
// client. Filter, score threshold and parameters of each arm apply to its own
// list. Keys, Metadata, Limit and Report are those of the first arm; vectors are
// fetched of the first dense one. Closing it closes the arms.
func NewHybridProvider(fusion Fusion, arms ...*Provider) (*HybridProvider, error) {
	const op = "open"
	errs := []error{fusion.validate(len(arms)), checkArms(arms)}
	for i, arm := range arms {
		if arm != nil && arm.opts.Formula != nil {
			errs = append(errs, invalidConfig("arm %d has a Formula, which the server does not compute before it fuses", i))
		}
		if arm != nil && fusion.Method == FusionDBSF && arm.vector.isDistance() {
			errs = append(errs, invalidConfig("arm %d searches %v, whose scores are distances: %q adds scores and would put the farthest first, so fuse with %q", i, arm.vector, FusionDBSF, FusionRRF))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, typed(op, mapmatched.KindInvalid, err)
	}
	dense := arms[0]
	for _, arm := range arms {
		if arm.vector.kind == kindDense {
			dense = arm
			break
		}
	}
	first := arms[0]
	fused := &Provider{store: first.store, vector: vectorInfo{name: "fused", distance: pb.Distance_Dot}, selector: first.selector}
	fused.opts = Options{Limit: first.opts.Limit, Metadata: first.opts.Metadata, Report: first.opts.Report}
	return &HybridProvider{store: dense.store, arms: arms, fusion: fusion, fused: fused}, nil
}

// checkArms refuses arms that cannot be asked together.
func checkArms(arms []*Provider) error {
	if len(arms) == 0 {
		return invalidConfig("there are no arms")
	}
	for i, arm := range arms {
		switch {
		case arm == nil:
			return invalidConfig("arm %d is nil", i)
		case arms[0] != nil && (arm.client != arms[0].client || arm.name != arms[0].name):
			return invalidConfig("arm %d is over collection %q on %s and arm 0 over %q on %s: arms share a client and a collection",
				i, arm.name, arm.client.address, arms[0].name, arms[0].client.address)
		}
	}
	return nil
}

// Candidates implements mapmatched.CandidateProvider. Scores are those of the
// fusion. Arms that have nothing to ask, as a sparse one of a text without
// terms, take no part.
func (h *HybridProvider) Candidates(ctx context.Context, q mapmatched.Query, limit int) ([]mapmatched.Candidate, error) {
	const op = "candidates"
	if err := h.ready(ctx, op); err != nil || limit <= 0 {
		return nil, err
	}
	var inputs []*pb.VectorInput
	var arms []*Provider
	var weights []float32
	for i, arm := range h.arms {
		input, err := arm.input(ctx, op, q)
		if err != nil {
			return nil, err
		}
		if input == nil {
			continue
		}
		inputs, arms = append(inputs, input), append(arms, arm)
		if h.fusion.Weights != nil {
			weights = append(weights, float32(h.fusion.Weights[i]))
		}
	}
	if len(arms) == 0 {
		return nil, nil
	}
	one := search{h.fused, func(n int) *pb.QueryPoints {
		request := &pb.QueryPoints{
			CollectionName: h.name, Query: h.fusion.query(weights), Limit: new(uint64(n)),
			WithPayload: h.fused.selector, ReadConsistency: h.client.consistency(),
		}
		for i, arm := range arms {
			request.Prefetch = append(request.Prefetch, arm.prefetch(inputs[i], max(n, orDefault(h.fusion.Prefetch, DefaultPrefetch))))
		}
		return request
	}}
	lists, err := h.run(ctx, op, q.Text, []search{one}, limit)
	if err != nil {
		return nil, err
	}
	return lists[0], nil
}

// query is the fusion as the server takes it.
func (f Fusion) query(weights []float32) *pb.Query {
	switch {
	case f.Method == FusionDBSF:
		return &pb.Query{Variant: &pb.Query_Fusion{Fusion: pb.Fusion_DBSF}}
	case f.K == 0 && weights == nil:
		return &pb.Query{Variant: &pb.Query_Fusion{Fusion: pb.Fusion_RRF}}
	}
	rrf := &pb.Rrf{Weights: weights}
	if f.K > 0 {
		rrf.K = new(uint32(f.K))
	}
	return &pb.Query{Variant: &pb.Query_Rrf{Rrf: rrf}}
}

// Close closes the arms, see [Provider.Close].
func (h *HybridProvider) Close() error {
	var errs []error
	for _, arm := range h.arms {
		errs = append(errs, arm.Close())
	}
	return errors.Join(errs...)
}
