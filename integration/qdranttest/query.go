package qdranttest

import (
	"context"
	"strconv"

	"github.com/qdrant/go-client/qdrant"
)

func (s pointsService) Query(_ context.Context, in *qdrant.QueryPoints) (*qdrant.QueryResponse, error) {
	if err := checkQuery("", in); err != nil {
		return nil, err
	}
	c, err := s.store.find(in.GetCollectionName())
	if err != nil {
		return nil, err
	}
	result, err := s.store.query(c.name, c.read(), in)
	if err != nil {
		return nil, err
	}
	return &qdrant.QueryResponse{Result: result}, nil
}

// QueryBatch answers all queries from the same state of the collection, or none
// of them. The collection is the one of the batch; those of the queries must be
// names, but they are not looked at.
func (s pointsService) QueryBatch(_ context.Context, in *qdrant.QueryBatchPoints) (*qdrant.QueryBatchResponse, error) {
	for i, query := range in.GetQueryPoints() {
		if err := checkQuery("query_points["+strconv.Itoa(i)+"].", query); err != nil {
			return nil, err
		}
	}
	c, err := s.store.find(in.GetCollectionName())
	if err != nil {
		return nil, err
	}
	seen := c.read()
	out := &qdrant.QueryBatchResponse{Result: make([]*qdrant.BatchResult, len(in.GetQueryPoints()))}
	for i, query := range in.GetQueryPoints() {
		result, err := s.store.query(c.name, seen, query)
		if err != nil {
			return nil, err
		}
		out.Result[i] = &qdrant.BatchResult{Result: result}
	}
	return out, nil
}

// checkQuery is the validation of requests; field is where the query stands.
func checkQuery(field string, in *qdrant.QueryPoints) error {
	if err := checkName(field+"collection_name", in.GetCollectionName()); err != nil {
		return err
	}
	if err := atLeast(field+"limit", in.Limit, 1); err != nil {
		return err
	}
	if err := atLeast(field+"timeout", in.Timeout, 1); err != nil {
		return err
	}
	if err := checkVariant(field+"query", in.GetQuery()); err != nil {
		return err
	}
	return checkPrefetches(field, in.GetPrefetch())
}

func checkPrefetches(field string, in []*qdrant.PrefetchQuery) error {
	for i, p := range in {
		here := field + "prefetch[" + strconv.Itoa(i) + "]."
		if err := atLeast(here+"limit", p.Limit, 1); err != nil {
			return err
		}
		if err := checkVariant(here+"query", p.GetQuery()); err != nil {
			return err
		}
		if err := checkPrefetches(here, p.GetPrefetch()); err != nil {
			return err
		}
	}
	return nil
}

func checkVariant(field string, in *qdrant.Query) error {
	if mmr := in.GetNearestWithMmr().GetMmr(); mmr != nil {
		if mmr.Diversity != nil && !(mmr.GetDiversity() >= 0 && mmr.GetDiversity() <= 1) {
			return invalidField(field+".variant.mmr.diversity", "value %v invalid, must be from 0.0 to 1.0", mmr.GetDiversity())
		}
		if mmr.GetCandidatesLimit() > 16384 {
			return invalidField(field+".variant.mmr.candidates_limit", "value %d invalid, must be 16384 or smaller", mmr.GetCandidatesLimit())
		}
	}
	if rrf := in.GetRrf(); rrf != nil && rrf.K != nil && rrf.GetK() < 1 {
		return invalidField(field+".variant.k", "value 0 invalid, must be 1 or larger")
	}
	return nil
}

// stage is a query or a prefetch with what it needs resolved.
type stage struct {
	prefetches []*stage
	given      *qdrant.Query // nil lists points by ID
	using      string
	vector     vector   // of nearest and nearest_with_mmr, fitted
	formula    *formula // of formula
	fits       func(*point) bool
	threshold  *float32
	limit      int
}

// resolver turns requests into stages.
type resolver struct {
	store  *store
	name   string // of the collection
	seen   *view
	hidden map[pointID]bool // points whose IDs are queries: they are not results
}

// query runs one query.
func (s *store) query(name string, seen *view, in *qdrant.QueryPoints) ([]*qdrant.ScoredPoint, error) {
	payload, err := parsePayloadSelector(in.GetWithPayload(), noPayload)
	if err != nil {
		return nil, err
	}
	r := &resolver{store: s, name: name, seen: seen, hidden: map[pointID]bool{}}
	root, err := r.resolve(&qdrant.PrefetchQuery{
		Prefetch: in.GetPrefetch(), Query: in.GetQuery(), Using: in.Using, Filter: in.GetFilter(), Params: in.GetParams(),
		ScoreThreshold: in.ScoreThreshold, Limit: in.Limit, LookupFrom: in.GetLookupFrom(),
	}, 0)
	if err != nil {
		return nil, err
	}
	if len(r.hidden) > 0 {
		given := root.fits
		root.fits = func(p *point) bool { return !r.hidden[p.id] && given(p) }
	}
	offset := clampLimit(in.Offset, 0)
	if _, sampled := in.GetQuery().GetVariant().(*qdrant.Query_Sample); sampled && len(in.GetPrefetch()) == 0 {
		offset = 0 // a random order has no second page
	}
	list, err := seen.runRoot(root, offset, s.seed)
	if err != nil {
		return nil, err
	}
	list = list[min(offset, len(list)):]
	list = list[:min(root.limit, len(list))]
	vectors, err := seen.vectors.parseVectorSelector(in.GetWithVectors(), len(list))
	if err != nil {
		return nil, err
	}
	out := make([]*qdrant.ScoredPoint, len(list))
	for i, item := range list {
		out[i] = &qdrant.ScoredPoint{
			Id: item.p.id.proto(), Score: item.score, Version: item.p.version, OrderValue: item.order,
			Payload: payload(item.p.payload), Vectors: vectors(item.p.vectors),
		}
	}
	return out, nil
}

const maxPrefetchDepth = 64

func (r *resolver) resolve(in *qdrant.PrefetchQuery, depth int) (*stage, error) {
	if depth > maxPrefetchDepth {
		return nil, badInput("Validation failed: prefetches depth %d exceeds max depth %d", depth, maxPrefetchDepth)
	}
	st := &stage{given: in.GetQuery(), using: in.GetUsing(), threshold: in.ScoreThreshold, limit: clampLimit(in.Limit, 10)}
	if err := r.variant(st, in); err != nil {
		return nil, err
	}
	var err error
	if st.fits, err = r.seen.compile(in.GetFilter()); err != nil {
		return nil, err
	}
	for _, p := range in.GetPrefetch() {
		inner, err := r.resolve(p, depth+1)
		if err != nil {
			return nil, err
		}
		st.prefetches = append(st.prefetches, inner)
	}
	return st, st.check()
}

// variant resolves the kind of query.
func (r *resolver) variant(st *stage, in *qdrant.PrefetchQuery) error {
	if in.GetQuery() == nil {
		return nil
	}
	var err error
	switch kind := in.GetQuery().GetVariant().(type) {
	case *qdrant.Query_Nearest:
		st.vector, err = r.input(kind.Nearest, in)
	case *qdrant.Query_NearestWithMmr:
		if kind.NearestWithMmr.GetMmr() == nil {
			return invalidArgument("mmr is missing")
		}
		if kind.NearestWithMmr.GetNearest() == nil {
			return invalidArgument("nearest vector is missing")
		}
		st.vector, err = r.input(kind.NearestWithMmr.GetNearest(), in)
	case *qdrant.Query_Formula:
		st.formula, err = r.seen.compileFormula(kind.Formula)
	case *qdrant.Query_Fusion:
		if kind.Fusion != qdrant.Fusion_RRF && kind.Fusion != qdrant.Fusion_DBSF {
			err = invalidArgument("invalid fusion type value %d", kind.Fusion)
		}
	case *qdrant.Query_Sample:
		if kind.Sample != qdrant.Sample_Random {
			err = invalidArgument("invalid sample type value %d", kind.Sample)
		}
	case *qdrant.Query_Rrf, *qdrant.Query_OrderBy:
	case nil:
		err = invalidArgument("Query variant is missing")
	default:
		err = notModelled("recommend, discover, context and relevance feedback queries")
	}
	return err
}

// input reads the vector of a query, or that of a point named by its ID.
func (r *resolver) input(in *qdrant.VectorInput, from *qdrant.PrefetchQuery) (vector, error) {
	var raw vector
	var err error
	switch kind := in.GetVariant().(type) {
	case *qdrant.VectorInput_Id:
		return r.stored(kind.Id, from)
	case *qdrant.VectorInput_Dense:
		raw.dense = kind.Dense.GetData()
	case *qdrant.VectorInput_Sparse:
		raw.sparse, err = newSparse("query", kind.Sparse.GetIndices(), kind.Sparse.GetValues())
	case *qdrant.VectorInput_MultiDense:
		raw.multi, err = newMulti("query", kind.MultiDense.GetVectors())
	case nil:
		return vector{}, invalidArgument("VectorInput variant is missing")
	default:
		return vector{}, notModelled("inference on documents, images and objects")
	}
	if err != nil {
		return vector{}, err
	}
	return r.seen.vectors.fit(from.GetUsing(), raw)
}

// stored finds the vector of a point, in this collection or the one of
// lookup_from.
func (r *resolver) stored(in *qdrant.PointId, from *qdrant.PrefetchQuery) (vector, error) {
	id, err := parseID(in)
	if err != nil {
		return vector{}, err
	}
	name, source := from.GetUsing(), r.seen
	if lookup := from.GetLookupFrom(); lookup != nil {
		c, err := r.store.find(lookup.GetCollectionName())
		if err != nil {
			return vector{}, notFound("Collection %s not found", lookup.GetCollectionName())
		}
		if lookup.VectorName != nil {
			name = lookup.GetVectorName()
		}
		if c.name == r.name {
			r.hidden[id] = true
		} else {
			source = c.read()
		}
	} else {
		r.hidden[id] = true
	}
	if err := source.vectors.check(name); err != nil {
		return vector{}, err
	}
	p := source.at(id)
	if p == nil {
		return vector{}, pointNotFound(id)
	}
	v, has := p.vectors[name]
	if !has {
		return vector{}, notFound("Vector with name %q for point not found", name)
	}
	return r.seen.vectors.fit(from.GetUsing(), v)
}

// check refuses combinations of fields.
func (st *stage) check() error {
	if len(st.prefetches) > 0 && st.given == nil {
		return badRequest("A query is needed to merge the prefetches. Can't have prefetches without defining a query.")
	}
	if st.threshold != nil {
		if st.given == nil {
			return badRequest("A query is needed to use the score_threshold. Can't have score_threshold without defining a query.")
		}
		if st.given.GetOrderBy() != nil {
			return badRequest("Can't use score_threshold with an order_by query.")
		}
	}
	switch st.given.GetVariant().(type) {
	case *qdrant.Query_Fusion, *qdrant.Query_Rrf:
		if st.using != "" {
			return badRequest("Fusion queries cannot be combined with the 'using' field.")
		}
		if len(st.prefetches) == 0 {
			return badInput("Validation failed: cannot apply Fusion without prefetches")
		}
	case *qdrant.Query_Formula:
		if len(st.prefetches) == 0 {
			return badInput("Validation failed: cannot apply Formula without prefetches")
		}
	}
	return nil
}

// runRoot runs the outermost stage and returns enough for its offset and limit.
func (v *view) runRoot(root *stage, offset int, seed uint64) ([]scored, error) {
	mmr := root.given.GetNearestWithMmr()
	if mmr == nil {
		widened := *root
		widened.limit += offset
		return v.run(&widened, func(*point) bool { return true }, seed)
	}
	var candidates []scored
	if len(root.prefetches) == 0 {
		candidates = v.nearest(root.using, root.vector, root.fits, root.candidates(), root.threshold)
	} else {
		lists, err := v.runAll(root.prefetches, root.fits, seed)
		if err != nil {
			return nil, err
		}
		candidates = v.nearest(root.using, root.vector, inLists(lists), root.candidates(), root.threshold)
	}
	return v.diversify(root.using, root.vector, candidates, root.lambda(), root.limit), nil
}

// candidates is how many points MMR chooses from.
func (st *stage) candidates() int {
	if mmr := st.given.GetNearestWithMmr().GetMmr(); mmr.CandidatesLimit != nil {
		return int(mmr.GetCandidatesLimit())
	}
	return st.limit
}

// lambda is how much MMR cares for relevance.
func (st *stage) lambda() float32 {
	if mmr := st.given.GetNearestWithMmr().GetMmr(); mmr.Diversity != nil {
		return 1 - mmr.GetDiversity()
	}
	return 0.5
}

// run runs a stage. The filters of the stages around it hold for it too; they
// are applied where points are first found, not where they are scored again.
func (v *view) run(st *stage, around func(*point) bool, seed uint64) ([]scored, error) {
	fits := func(p *point) bool { return around(p) && st.fits(p) }
	if len(st.prefetches) > 0 {
		lists, err := v.runAll(st.prefetches, fits, seed)
		if err != nil {
			return nil, err
		}
		switch st.given.GetVariant().(type) {
		case *qdrant.Query_Fusion, *qdrant.Query_Rrf, *qdrant.Query_Formula:
			return st.combine(lists)
		case *qdrant.Query_NearestWithMmr:
			return v.diversify(st.using, st.vector, flatten(lists), st.lambda(), st.limit), nil
		}
		fits = inLists(lists)
	}
	switch kind := st.given.GetVariant().(type) {
	case nil:
		return v.byID(fits, st.limit), nil
	case *qdrant.Query_OrderBy:
		return v.byKey(kind.OrderBy, fits, st.limit)
	case *qdrant.Query_Sample:
		return v.sample(seed, fits, st.limit), nil
	case *qdrant.Query_NearestWithMmr: // a leaf only fetches the candidates
		return v.nearest(st.using, st.vector, fits, st.candidates(), st.threshold), nil
	}
	return v.nearest(st.using, st.vector, fits, st.limit, st.threshold), nil
}

func (v *view) runAll(stages []*stage, around func(*point) bool, seed uint64) ([][]scored, error) {
	lists := make([][]scored, len(stages))
	for i, st := range stages {
		var err error
		if lists[i], err = v.run(st, around, seed); err != nil {
			return nil, err
		}
	}
	return lists, nil
}

// combine makes one list of the lists of the prefetches by their scores.
func (st *stage) combine(lists [][]scored) ([]scored, error) {
	if st.formula != nil {
		return st.formula.rescore(lists, st.limit, st.threshold)
	}
	if st.given.GetRrf() == nil && st.given.GetFusion() == qdrant.Fusion_DBSF {
		return cut(distributionBased(lists), st.limit, st.threshold), nil
	}
	k := uint32(2)
	if rrf := st.given.GetRrf(); rrf != nil && rrf.K != nil {
		k = rrf.GetK()
	}
	fused, err := reciprocalRank(lists, k, st.given.GetRrf().GetWeights())
	return cut(fused, st.limit, st.threshold), err
}

func flatten(lists [][]scored) []scored {
	var all []scored
	for _, list := range lists {
		all = append(all, list...)
	}
	return all
}

// inLists fits the points of the lists.
func inLists(lists [][]scored) func(*point) bool {
	known := map[pointID]bool{}
	for _, s := range flatten(lists) {
		known[s.p.id] = true
	}
	return func(p *point) bool { return known[p.id] }
}
