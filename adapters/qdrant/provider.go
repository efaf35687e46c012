package qdrant

import (
	"context"
	"fmt"
	"math"

	pb "github.com/qdrant/go-client/qdrant"
	"google.golang.org/protobuf/proto"

	"github.com/mapmatched/mmplug/mapmatched"
)

// The capabilities of a provider.
var (
	_ mapmatched.CandidateProvider = (*Provider)(nil)
	_ mapmatched.ChunkScorer       = (*Provider)(nil)
	_ mapmatched.ChunkFetcher      = (*Provider)(nil)
	_ mapmatched.VectorFetcher     = (*Provider)(nil)
	_ mapmatched.HealthChecker     = (*Provider)(nil)
	_ mapmatched.CorpusIdentifier  = (*Provider)(nil)
	_ mapmatched.Diagnoser         = (*Provider)(nil)
)

// Provider finds candidates by one vector of a collection. It is safe for
// concurrent use.
type Provider struct {
	*store
	opts     Options
	vector   vectorInfo
	selector *pb.WithPayloadSelector
}

// NewProvider makes a provider over a collection of the server. It reads what
// the collection is: its errors say when the server is away, when there is no
// such collection and when it has no such vector, and list what there is.
//
// That is read once: of a collection that is made anew under an open provider
// with another metric, Candidates goes on to read the scores in the old way.
// Health and CorpusIdentity notice, so ask one of them before what must not go
// wrong; policy.Retriever asks for the identity with every turn.
//
// The client stays the caller's: closing the provider does not close it.
func NewProvider(ctx context.Context, c *Client, collection string, opts *Options) (*Provider, error) {
	const op = "open"
	if opts == nil {
		opts = &Options{}
	}
	if err := opts.Validate(); err != nil {
		return nil, typed(op, mapmatched.KindInvalid, err)
	}
	info, err := c.collection(ctx, op, collection)
	if err != nil {
		return nil, err
	}
	vector, err := info.vector(op, opts.Vector)
	if err != nil {
		return nil, err
	}
	p := &Provider{store: &store{client: c, name: collection, keys: opts.Keys.withDefaults(), vectorName: opts.Vector}, opts: *opts, vector: vector}
	p.info.Store(info)
	if opts.Filter != nil {
		p.opts.Filter = proto.CloneOf(opts.Filter)
	}
	if opts.Formula != nil {
		p.opts.Formula = proto.CloneOf(opts.Formula)
	}
	switch {
	case vector.kind == kindSparse && opts.SparseEncoder == nil:
		return nil, invalid(op, "%s: %q: %w", info.where, opts.Vector, errNoSparseEncoder)
	case vector.kind == kindMulti && opts.MMR != nil:
		return nil, invalid(op, "%s: MMR is for one dense vector and %v is none", info.where, vector)
	case vector.isDistance() && opts.Formula == nil && opts.ScoreThreshold != nil && *opts.ScoreThreshold > 0:
		return nil, invalid(op, "%s: ScoreThreshold is %v, but scores of %v are negated distances: give −D to leave out distances above D", info.where, *opts.ScoreThreshold, vector)
	}
	p.selector = include(append(p.keys.chunkKeys(), opts.Metadata...)...)
	return p, nil
}

// Candidates implements mapmatched.CandidateProvider: best first, equal scores
// by chunk ID. A limit above 10,000 is 10,000. A query that is blank, or whose
// sparse vector is empty, has no candidates. A candidate has its text and, in
// the metadata, document, title, section, ordinal, start and end as far as the
// payload has them, and what Options.Metadata asks for: integers as int64, which
// are other values than floats.
//
// It is one round trip. Points of another origin without a text are skipped and
// reported; where they take the places of chunks, a second one asks behind them.
// Where more chunks have the score at the limit than came in reserve, one more
// asks for the IDs of up to 1,000 beyond the limit, so that the first by chunk
// ID are taken, and one for the payloads of those; of still more equals, and of
// those that do not fit into a message, the ones that the server puts first
// count.
func (p *Provider) Candidates(ctx context.Context, q mapmatched.Query, limit int) ([]mapmatched.Candidate, error) {
	const op = "candidates"
	if err := p.ready(ctx, op); err != nil || limit <= 0 {
		return nil, err
	}
	one, err := p.search(ctx, op, q)
	if err != nil {
		return nil, err
	}
	lists, err := p.run(ctx, op, q.Text, []search{one}, limit)
	if err != nil {
		return nil, err
	}
	return lists[0], nil
}

// ScoreChunks implements mapmatched.ChunkScorer. Chunks that the filter leaves
// out are unknown; the score threshold does not apply.
func (p *Provider) ScoreChunks(ctx context.Context, q mapmatched.Query, chunkIDs []string) ([]mapmatched.Scored, error) {
	const op = "score chunks"
	if err := p.ready(ctx, op); err != nil {
		return nil, err
	}
	input, err := p.input(ctx, op, q)
	if input == nil || err != nil || len(chunkIDs) == 0 {
		return nil, err
	}
	asked := make(map[string]bool, len(chunkIDs))
	for _, id := range chunkIDs {
		asked[id] = true
	}
	request := p.query(input, 4*len(chunkIDs)) // a foreign collection may have a chunk in several points
	request.ScoreThreshold = nil
	request.WithPayload = include(p.keys.ChunkID)
	only := p.holding(chunkIDs)
	if p.opts.MMR != nil { // its scores are those of the search without it
		request.Query = nearest(input)
	}
	if len(request.Prefetch) > 0 {
		request.Prefetch[0].Filter, request.Prefetch[0].ScoreThreshold = and(request.Prefetch[0].Filter, only), nil
	} else {
		request.Filter = and(request.Filter, only)
	}
	reply, err := p.client.points().Query(ctx, request)
	if err != nil {
		return nil, p.explain(ctx, op, err)
	}
	scores := make(map[string]float64, len(chunkIDs))
	for _, point := range reply.GetResult() {
		score, ok := p.score(point)
		id := chunkID(point.GetId(), point.GetPayload(), p.keys.ChunkID)
		if old, again := scores[id]; ok && asked[id] && (!again || score > old) {
			scores[id] = score
		}
	}
	found := make([]mapmatched.Scored, 0, len(scores))
	for _, id := range chunkIDs {
		if score, ok := scores[id]; ok {
			found = append(found, mapmatched.Scored{ChunkID: id, Score: score})
			delete(scores, id)
		}
	}
	return found, nil
}

// and joins two filters. The first may be nil.
func and(a, b *pb.Filter) *pb.Filter {
	if a == nil {
		return b
	}
	return &pb.Filter{Must: []*pb.Condition{
		{ConditionOneOf: &pb.Condition_Filter{Filter: a}}, {ConditionOneOf: &pb.Condition_Filter{Filter: b}},
	}}
}

// input makes the vector of a query, nil when there is nothing to ask.
func (p *Provider) input(ctx context.Context, op string, q mapmatched.Query) (*pb.VectorInput, error) {
	switch {
	case p.vector.kind == kindSparse:
		v, err := p.opts.SparseEncoder(ctx, q.Text)
		if err == nil {
			err = v.check()
		}
		if err != nil {
			return nil, p.encoding(ctx, op, err)
		}
		if len(v.Indices) == 0 {
			return nil, nil
		}
		return &pb.VectorInput{Variant: &pb.VectorInput_Sparse{Sparse: v.proto()}}, nil
	case p.vector.kind == kindMulti && p.opts.MultiEncoder != nil:
		vectors, err := p.opts.MultiEncoder(ctx, q.Text)
		if err != nil {
			return nil, p.encoding(ctx, op, err)
		}
		if len(vectors) == 0 {
			return nil, nil
		}
		multi := &pb.MultiDenseVector{Vectors: make([]*pb.DenseVector, len(vectors))}
		for i, v := range vectors {
			if err := p.checkDense(op, v); err != nil {
				return nil, err
			}
			multi.Vectors[i] = &pb.DenseVector{Data: v}
		}
		return &pb.VectorInput{Variant: &pb.VectorInput_MultiDense{MultiDense: multi}}, nil
	}
	v, err := mapmatched.QueryVector(ctx, q, p.opts.Embedder, adapterName)
	if err != nil || v == nil {
		return nil, p.encoding(ctx, op, err)
	}
	if err := p.checkDense(op, v); err != nil {
		return nil, err
	}
	dense := &pb.DenseVector{Data: v}
	if p.vector.kind == kindMulti {
		return &pb.VectorInput{Variant: &pb.VectorInput_MultiDense{MultiDense: &pb.MultiDenseVector{Vectors: []*pb.DenseVector{dense}}}}, nil
	}
	return &pb.VectorInput{Variant: &pb.VectorInput_Dense{Dense: dense}}, nil
}

// encoding makes the error of an encoder.
func (p *Provider) encoding(ctx context.Context, op string, err error) error {
	switch {
	case err == nil || mapmatched.KindOf(err) != "":
		return err
	case ctx.Err() != nil:
		return typed(op, mapmatched.KindDeadline, fmt.Errorf("the vector of the query: %w", ctx.Err()))
	default:
		return invalid(op, "the vector of the query: %w", err)
	}
}

// checkDense compares a dense vector with the collection.
func (p *Provider) checkDense(op string, v []float32) error {
	info := p.info.Load()
	if len(v) != p.vector.size {
		return dimensionError(op, "the query vector", len(v), p.vector, info)
	}
	if err := checkFinite(v); err != nil {
		return invalid(op, "the query vector: %w", err)
	}
	if p.vector.distance == pb.Distance_Cosine && allZero(v) {
		return invalid(op, "the query vector is zero, which has no cosine with others")
	}
	return nil
}

func dimensionError(op, what string, got int, v vectorInfo, info *collectionInfo) error {
	model := ""
	if info.identity.Model != "" {
		model = fmt.Sprintf(", %q", info.identity.Model)
	}
	return invalid(op, "%s has %d dimensions and %v of %s has %d: use the model that made the collection%s", what, got, v, info.where, v.size, model)
}

func allZero(v []float32) bool {
	for _, x := range v {
		if x != 0 {
			return false
		}
	}
	return true
}

func nearest(input *pb.VectorInput) *pb.Query {
	return &pb.Query{Variant: &pb.Query_Nearest{Nearest: input}}
}

// query asks for the limit best points.
func (p *Provider) query(input *pb.VectorInput, limit int) *pb.QueryPoints {
	request := &pb.QueryPoints{
		CollectionName: p.name, Query: nearest(input), Filter: p.opts.Filter, Limit: new(uint64(limit)),
		WithPayload: p.selector, ReadConsistency: p.client.consistency(),
	}
	if p.vector.name != "" {
		request.Using = &p.vector.name
	}
	if p.opts.Exact || p.opts.HNSWEf > 0 {
		request.Params = &pb.SearchParams{}
		if p.opts.Exact {
			request.Params.Exact = new(true)
		}
		if p.opts.HNSWEf > 0 {
			request.Params.HnswEf = new(uint64(p.opts.HNSWEf))
		}
	}
	if p.opts.ScoreThreshold != nil {
		request.ScoreThreshold = new(p.serverThreshold())
	}
	if m := p.opts.MMR; m != nil {
		mmr := &pb.Mmr{Diversity: new(float32(m.Diversity))}
		if m.Candidates > 0 {
			mmr.CandidatesLimit = new(uint32(m.Candidates))
		}
		request.Query = &pb.Query{Variant: &pb.Query_NearestWithMmr{NearestWithMmr: &pb.NearestInputWithMmr{Nearest: input, Mmr: mmr}}}
	}
	if p.opts.Formula != nil {
		first := p.prefetch(input, max(limit, orDefault(p.opts.FormulaCandidates, DefaultPrefetch)))
		first.ScoreThreshold = nil // it is for the new score
		request.Prefetch = []*pb.PrefetchQuery{first}
		request.Query = &pb.Query{Variant: &pb.Query_Formula{Formula: p.opts.Formula}}
		request.Filter, request.Params, request.Using = nil, nil, nil
	}
	return request
}

func orDefault[T comparable](v, byDefault T) T {
	setDefault(&v, byDefault)
	return v
}

// prefetch is the search of query as the first stage of another one, without
// its formula.
func (p *Provider) prefetch(input *pb.VectorInput, limit int) *pb.PrefetchQuery {
	plain := *p
	plain.opts.Formula = nil
	q := plain.query(input, limit)
	return &pb.PrefetchQuery{Query: q.Query, Using: q.Using, Filter: q.Filter, Params: q.Params, ScoreThreshold: q.ScoreThreshold, Limit: q.Limit}
}

// distances reports whether the scores of the server are distances.
func (p *Provider) distances() bool { return p.vector.isDistance() && p.opts.Formula == nil }

// serverThreshold is a little worse than the score threshold. Servers differ on
// whether an equal score is left out; those that come are checked here.
func (p *Provider) serverThreshold() float32 {
	t := float32(*p.opts.ScoreThreshold)
	if p.distances() {
		return math.Nextafter32(-t, float32(math.Inf(1)))
	}
	return math.Nextafter32(t, float32(math.Inf(-1)))
}

// score returns the score of a point, and false when it is not finite.
func (p *Provider) score(point *pb.ScoredPoint) (score float64, ok bool) {
	s := float64(point.GetScore())
	if math.IsNaN(s) || math.IsInf(s, 0) {
		return 0, false
	}
	if p.distances() {
		return 0 - s, true // 0 − 0 is 0 and not −0
	}
	return s, true
}

// explain makes the error of a call, after a second look at the collection
// when that may have changed since it was opened.
func (p *Provider) explain(ctx context.Context, op string, err error) error {
	err = p.client.failed(ctx, op, p.name, err)
	if kind := mapmatched.KindOf(err); (kind != mapmatched.KindInvalid && kind != mapmatched.KindNotFound) || ctx.Err() != nil {
		return err
	}
	info, again := p.client.collection(ctx, op, p.name)
	if again != nil {
		if mapmatched.KindOf(again) == mapmatched.KindNotFound {
			return again
		}
		return err
	}
	if changed := p.unchanged(op, info); changed != nil {
		return changed
	}
	return err
}

// Close ends the use of the provider: later calls fail with
// mapmatched.ErrClosed. A client that the provider opened itself is closed, one
// that it was given is not. Closing again does nothing.
func (p *Provider) Close() error { return p.close() }
