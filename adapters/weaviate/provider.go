package weaviate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/mapmatched/mmplug/mapmatched"
)

// The capabilities of the providers.
var (
	_ mapmatched.CandidateProvider = (*Provider)(nil)
	_ mapmatched.ChunkScorer       = (*Provider)(nil)
	_ mapmatched.ChunkFetcher      = (*Provider)(nil)
	_ mapmatched.VectorFetcher     = (*Provider)(nil)
	_ mapmatched.HealthChecker     = (*Provider)(nil)
	_ mapmatched.CorpusIdentifier  = (*Provider)(nil)
	_ mapmatched.Diagnoser         = (*Provider)(nil)
	_ mapmatched.RecordLister      = (*Provider)(nil)
	_ mapmatched.NeighborLister    = (*Provider)(nil)

	_ mapmatched.CandidateProvider = (*HybridProvider)(nil)
	_ mapmatched.ChunkFetcher      = (*HybridProvider)(nil)
	_ mapmatched.VectorFetcher     = (*HybridProvider)(nil)
	_ mapmatched.HealthChecker     = (*HybridProvider)(nil)
	_ mapmatched.CorpusIdentifier  = (*HybridProvider)(nil)
	_ mapmatched.Diagnoser         = (*HybridProvider)(nil)
)

// Provider finds candidates by vectors or by words. It is safe for concurrent
// use.
type Provider struct{ *searcher }

// HybridProvider finds candidates by words and vectors, fused by the server. It
// is safe for concurrent use.
type HybridProvider struct{ *searcher }

// searcher is what both providers share.
type searcher struct {
	store
	opts       Options
	target     string   // name of the vector to fetch, "" for the one without a name
	targets    []string // names of the vectors to search, none for the one without a name
	metric     metric   // of the only vector that is searched; "" where there are several or none
	searched   []string // properties whose words are searched, none for all
	properties []string // returned with candidates
	metadata   []string // those that are metadata
	skipped    atomic.Int64
}

// Stats counts what a provider met.
type Stats struct {
	// Skipped is how many objects were left out because they had no chunk ID or
	// that of a better hit.
	Skipped int64
}

// Stats returns the counts so far.
func (s *searcher) Stats() Stats { return Stats{Skipped: s.skipped.Load()} }

// Open opens a provider that searches the vectors or the words of a class. The
// address is the host and port of the HTTP interface, such as localhost:8080.
// The server is asked for its version and the class, and the options are
// checked against both.
func Open(ctx context.Context, address, class string, opts *Options) (*Provider, error) {
	o := withDefaults(opts)
	if o.Mode == ModeHybrid {
		return nil, classify("open", fmt.Errorf("%w: Mode is %q: use OpenHybrid", mapmatched.ErrInvalidConfig, o.Mode))
	}
	s, err := openSearcher(ctx, address, class, o)
	if err != nil {
		return nil, err
	}
	return &Provider{s}, nil
}

// OpenHybrid opens a provider that searches words and vectors together, else
// like [Open].
func OpenHybrid(ctx context.Context, address, class string, opts *Options) (*HybridProvider, error) {
	o := withDefaults(opts)
	if opts == nil || opts.Mode == "" {
		o.Mode = ModeHybrid
	}
	if o.Mode != ModeHybrid {
		return nil, classify("open", fmt.Errorf("%w: Mode is %q: use Open", mapmatched.ErrInvalidConfig, o.Mode))
	}
	s, err := openSearcher(ctx, address, class, o)
	if err != nil {
		return nil, err
	}
	return &HybridProvider{s}, nil
}

func withDefaults(opts *Options) Options {
	if opts == nil {
		opts = &Options{}
	}
	o := *opts
	o.Mode = o.mode()
	return o
}

func openSearcher(ctx context.Context, address, class string, o Options) (*searcher, error) {
	const op = "open"
	if err := o.Validate(); err != nil {
		return nil, classify(op, err)
	}
	st, err := openStore(ctx, address, class, &o.Connection, o.Place)
	if err != nil {
		return nil, classify(op, err)
	}
	s := &searcher{store: *st, opts: o}
	if s.opts.Fusion == "" {
		s.opts.Fusion = FusionRelativeScore
	}
	if s.opts.Combination == "" {
		s.opts.Combination = CombineMinimum
	}
	var whereErr error
	s.opts.Where, whereErr = st.class.where(o.Where)
	if err := errors.Join(s.chooseVectors(), s.chooseProperties(), s.chooseSearched(), whereErr); err != nil {
		return nil, classify(op, errors.Join(err, st.server.close()))
	}
	return s, nil
}

// chooseVectors finds the vectors to search and their metric.
func (s *searcher) chooseVectors() error {
	c, names := s.class, s.opts.Vectors
	_, unnamed := c.vectors[""]
	if len(names) == 0 {
		switch known := c.vectorNames(); {
		case unnamed:
			names = []string{""}
		case len(known) == 1:
			names = known
		case s.opts.Mode == ModeBM25:
			return nil
		case len(known) == 0:
			return fmt.Errorf("class %s has no vectors: use mode bm25", c.name)
		default:
			return fmt.Errorf("class %s has the vectors %s: name those to search in Vectors", c.name, strings.Join(known, ", "))
		}
	}
	for _, name := range names {
		if _, ok := c.vectors[name]; !ok {
			return s.unknownVector(name, unnamed)
		}
	}
	s.target = names[0]
	if len(names) == 1 {
		s.metric = c.vectors[names[0]]
	}
	if s.target != "" {
		s.targets = names
	}
	if s.opts.MinCertainty != nil && s.metric != metricCosine {
		return fmt.Errorf("%w: MinCertainty is set and class %s compares by %q: only cosine has a certainty, use MaxDistance", mapmatched.ErrInvalidConfig, c.name, s.metric)
	}
	return nil
}

func (s *searcher) unknownVector(name string, unnamed bool) error {
	if known := slices.DeleteFunc(s.class.vectorNames(), func(n string) bool { return n == "" }); len(known) > 0 {
		return fmt.Errorf("class %s has no vector %q; it has %s", s.class.name, name, strings.Join(known, ", "))
	}
	if unnamed {
		return fmt.Errorf("class %s has no vector %q; its only vector has no name: leave Vectors out", s.class.name, name)
	}
	return fmt.Errorf("class %s has no vector %q, and no other", s.class.name, name)
}

// chooseProperties finds what to ask for: what is read, and nothing else.
func (s *searcher) chooseProperties() error {
	if s.opts.Properties == nil {
		for _, p := range s.class.properties {
			internal := s.class.own && (p.name == propertyEdges || p.name == propertyDigest)
			if slices.Contains(simpleTypes, p.dataType) && p.name != s.id && p.name != s.text && !internal {
				s.metadata = append(s.metadata, p.name)
			}
		}
	}
	var errs []error
	for _, name := range s.opts.Properties {
		p, err := s.class.need("Properties", name)
		if err == nil && !slices.Contains(simpleTypes, p.dataType) {
			err = fmt.Errorf("property %s of class %s is a %s, which is not read: leave it out of Properties", p.name, s.class.name, cmp.Or(p.dataType, "reference"))
		}
		errs = append(errs, err)
		s.metadata = append(s.metadata, p.name)
	}
	s.properties = s.withText()
	for _, name := range s.metadata {
		if !slices.Contains(s.properties, name) {
			s.properties = append(s.properties, name)
		}
	}
	return errors.Join(errs...)
}

// chooseSearched checks the properties whose words are searched.
func (s *searcher) chooseSearched() error {
	if s.opts.Mode == ModeVector {
		return nil
	}
	if !slices.ContainsFunc(s.class.properties, func(p property) bool { return p.searchable }) {
		return fmt.Errorf("class %s has no property whose words can be searched (indexSearchable): use mode vector", s.class.name)
	}
	var errs []error
	for _, wanted := range s.opts.SearchProperties {
		name, _, _ := strings.Cut(wanted, "^")
		p, err := s.class.need("SearchProperties", name)
		if err == nil && !p.searchable {
			err = fmt.Errorf("SearchProperties: the words of property %s of class %s cannot be searched (indexSearchable)", p.name, s.class.name)
		}
		errs = append(errs, err)
		s.searched = append(s.searched, searchProperty(wanted))
	}
	return errors.Join(errs...)
}

// Candidates implements mapmatched.CandidateProvider. A query without text has
// no candidates in mode bm25, and one without text and vector in the others.
// The server gives 10,000 results at most, unless it is told otherwise
// (QUERY_MAXIMUM_RESULTS).
func (s *searcher) Candidates(ctx context.Context, q mapmatched.Query, limit int) ([]mapmatched.Candidate, error) {
	const op = "candidates"
	if err := s.ready(ctx); err != nil {
		return nil, classify(op, err)
	}
	if limit < 1 {
		return nil, nil
	}
	request, err := s.request(ctx, q)
	if request == nil || err != nil {
		return nil, classify(op, err)
	}
	found, err := s.best(ctx, request, limit)
	if err != nil {
		return nil, classify(op, err)
	}
	return found, nil
}

// request is the search for a query, nil when there is nothing to search for.
func (s *searcher) request(ctx context.Context, q mapmatched.Query) (*search, error) {
	if !utf8.ValidString(q.Text) {
		return nil, fmt.Errorf("the text of turn %d is not valid UTF-8: %q", q.Turn, q.Text)
	}
	r := &search{class: s.class, tenant: s.tenant, properties: s.properties, where: s.opts.Where, autocut: s.opts.Autocut}
	if s.opts.Mode != ModeVector {
		r.text = &text{query: q.Text, properties: s.searched}
	}
	if s.opts.Mode == ModeBM25 {
		if strings.TrimSpace(q.Text) == "" {
			return nil, nil
		}
		return r, nil
	}
	v, err := mapmatched.QueryVector(ctx, q, s.opts.Embedder, adapterName)
	if v == nil || err != nil {
		return nil, err
	}
	if err := s.checkVector(v); err != nil {
		return nil, fmt.Errorf("the vector of turn %d: %w", q.Turn, err)
	}
	r.near = &near{vector: v, targets: s.targets, combination: s.opts.Combination, weights: s.opts.Weights,
		maxDistance: s.opts.MaxDistance, minCertainty: s.opts.MinCertainty}
	if s.opts.Mode == ModeHybrid {
		r.hybrid = &hybrid{alpha: s.alpha(), fusion: s.opts.Fusion}
	}
	return r, nil
}

func (s *searcher) alpha() float64 {
	if s.opts.Alpha != nil {
		return *s.opts.Alpha
	}
	return DefaultAlpha
}

func (s *searcher) checkVector(v []float32) error {
	if want := s.class.identity.Dimension; want > 0 && len(v) != want {
		return fmt.Errorf("it has %d dimensions and class %s has %d: use the model that made its vectors, %s", len(v), s.class.name, want, s.class.identity.Model)
	}
	zero := true
	for i, x := range v {
		if !finite(float64(x)) {
			return fmt.Errorf("component %d is %v: want finite numbers", i, x)
		}
		zero = zero && x == 0
	}
	if zero && s.metric == metricCosine {
		return errors.New("it is zero, which has no cosine with others")
	}
	return nil
}

const (
	spare       = 1             // results asked for beyond the limit, to see equal scores
	mostResults = math.MaxInt32 // that a request can name
)

// best searches for the best candidates. Where equal scores straddle the limit
// it asks for more, so that which ones are kept does not depend on the server.
func (s *searcher) best(ctx context.Context, r *search, limit int) ([]mapmatched.Candidate, error) {
	if limit > mostResults {
		return nil, fmt.Errorf("limit %d is beyond %d", limit, mostResults)
	}
	r.limit = limit + spare
	for {
		if !s.server.allows(r.limit) {
			r.limit = max(limit, s.server.most())
		}
		hits, err := s.server.find(ctx, r)
		if r.limit > limit && s.server.refuses(r.limit, err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		found, err := s.candidates(hits)
		if err != nil {
			return nil, err
		}
		if len(found) <= limit {
			return found, nil
		}
		wider := min(4*r.limit, s.server.most())
		if len(hits) < r.limit || wider <= r.limit || found[limit-1].Score != found[len(found)-1].Score {
			return found[:limit:limit], nil
		}
		r.limit = wider
	}
}

// candidates turns hits into candidates, in order.
func (s *searcher) candidates(hits []hit) ([]mapmatched.Candidate, error) {
	found := make([]mapmatched.Candidate, 0, len(hits))
	for i := range hits {
		c, err := s.candidate(&hits[i])
		if err != nil {
			return nil, err
		}
		if c.ChunkID == "" {
			s.skipped.Add(1)
			continue
		}
		found = append(found, c)
	}
	slices.SortStableFunc(found, func(a, b mapmatched.Candidate) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), strings.Compare(a.ChunkID, b.ChunkID))
	})
	if s.id == uuidProperty || s.class.own {
		return found, nil // each is an object of its own
	}
	seen := make(map[string]bool, len(found))
	return slices.DeleteFunc(found, func(c mapmatched.Candidate) bool {
		again := seen[c.ChunkID]
		seen[c.ChunkID] = true
		if again {
			s.skipped.Add(1)
		}
		return again
	}), nil
}

func (s *searcher) candidate(h *hit) (mapmatched.Candidate, error) {
	if !finite(h.value) {
		return mapmatched.Candidate{}, corrupt("object %s: score %v: %v", h.uuid, h.value, mapmatched.ErrNonFinite)
	}
	c := mapmatched.Candidate{ChunkID: s.chunkID(h), Text: s.textOf(h)}
	switch s.opts.Mode {
	case ModeHybrid:
		c.Score = h.value
		c.Parts = map[string]float64{string(s.opts.Fusion): h.value, "alpha": s.alpha()}
	case ModeBM25:
		c.Score = h.value
		c.Parts = map[string]float64{string(ModeBM25): h.value}
	default:
		c.Score = s.metric.score(h.value)
		c.Parts = map[string]float64{"distance": h.value}
	}
	if len(s.metadata) > 0 {
		c.Metadata = make(map[string]any, len(s.metadata))
		for _, name := range s.metadata {
			if value, ok := h.properties[name]; ok {
				c.Metadata[name] = value
			}
		}
	}
	return c, nil
}

// ScoreChunks implements mapmatched.ChunkScorer: the query restricted to the
// chunks.
func (p *Provider) ScoreChunks(ctx context.Context, q mapmatched.Query, chunkIDs []string) ([]mapmatched.Scored, error) {
	const op = "score chunks"
	if err := p.ready(ctx); err != nil {
		return nil, classify(op, err)
	}
	if len(chunkIDs) == 0 {
		return nil, nil
	}
	request, err := p.request(ctx, q)
	if request == nil || err != nil {
		return nil, classify(op, err)
	}
	request.properties, request.autocut = p.idProperties(), 0
	if request.near != nil {
		request.near.maxDistance, request.near.minCertainty = nil, nil
	}
	var scored []mapmatched.Scored
	err = p.each(ctx, chunkIDs, request, func(id string, h *hit) error {
		c, err := p.candidate(h)
		scored = append(scored, mapmatched.Scored{ChunkID: id, Score: c.Score})
		return err
	})
	if err != nil {
		return nil, classify(op, err)
	}
	return scored, nil
}

// Vectors implements mapmatched.VectorFetcher with the vector that is searched,
// the first where there are several. Cosine classes may give them normalised.
func (s *searcher) Vectors(ctx context.Context, chunkIDs []string) ([][]float32, error) {
	const op = "vectors"
	if err := s.ready(ctx); err != nil {
		return nil, classify(op, err)
	}
	if len(chunkIDs) == 0 {
		return nil, nil
	}
	if _, ok := s.class.vectors[s.target]; !ok {
		return nil, classify(op, fmt.Errorf("class %s has no vectors, or several of which Vectors names none", s.class.name))
	}
	found := map[string][]float32{}
	err := s.each(ctx, chunkIDs, &search{class: s.class, tenant: s.tenant, properties: s.idProperties(), vector: &s.target}, func(id string, h *hit) error {
		found[id] = h.vector
		return nil
	})
	if err != nil {
		return nil, classify(op, err)
	}
	vectors := make([][]float32, len(chunkIDs))
	for i, id := range chunkIDs {
		vectors[i] = slices.Clone(found[id])
	}
	return vectors, nil
}

// Chunks implements mapmatched.ChunkFetcher. A class that this package did not
// write gives the ID and the text, and of the other fields those that it has
// under the same name.
func (s *searcher) Chunks(ctx context.Context, chunkIDs []string) ([]mapmatched.Chunk, error) {
	const op = "chunks"
	if err := s.ready(ctx); err != nil {
		return nil, classify(op, err)
	}
	found := map[string]mapmatched.Chunk{}
	err := s.each(ctx, chunkIDs, &search{class: s.class, tenant: s.tenant, properties: s.chunkProperties()}, func(id string, h *hit) error {
		found[id] = s.chunk(h)
		return nil
	})
	if err != nil {
		return nil, classify(op, err)
	}
	chunks := make([]mapmatched.Chunk, 0, len(found))
	for _, id := range chunkIDs {
		if c, ok := found[id]; ok {
			chunks = append(chunks, c)
		}
	}
	return chunks, nil
}

// Health implements mapmatched.HealthChecker: the server says that it is ready
// now, over both interfaces. It is not asked twice.
func (s *store) Health(ctx context.Context) error {
	return classify("health", s.server.repeat(ctx, 0, s.server.healthy))
}

// healthy asks both interfaces. The client's ready check reads the version
// through what is not set here, so the plain request is used.
func (s *server) healthy(ctx context.Context) error {
	answer, err := s.rest.RunREST(ctx, "/.well-known/ready", http.MethodGet, nil)
	if err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return &reply{kind: mapmatched.KindUnavailable, again: true, message: fmt.Sprintf("%s is not ready (HTTP status %d)", s.address, answer.StatusCode)}
	}
	if s.grpc == nil {
		return nil
	}
	state, err := grpc_health_v1.NewHealthClient(s.grpcConn).Check(ctx, &grpc_health_v1.HealthCheckRequest{})
	if err == nil && state.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING {
		err = &reply{kind: mapmatched.KindUnavailable, again: true, message: fmt.Sprintf("the gRPC interface says %v", state.GetStatus())}
	}
	return err
}

// CorpusIdentity implements mapmatched.CorpusIdentifier with what the
// description of the class says.
func (s *store) CorpusIdentity(ctx context.Context) (mapmatched.CorpusIdentity, error) {
	c, err := s.server.describe(ctx, s.class.name)
	if err != nil {
		return mapmatched.CorpusIdentity{}, classify("corpus identity", err)
	}
	return c.identity, nil
}
