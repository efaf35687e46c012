package qdranttest

import (
	"math"
	"slices"
	"testing"

	"github.com/qdrant/go-client/qdrant"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
)

// TestMetrics: four points, the query [1 2], all by hand.
func TestMetrics(t *testing.T) {
	root := math.Sqrt
	for _, c := range []struct {
		distance  qdrant.Distance
		want      []hit
		threshold float32 // equals the score of the second
	}{
		{qdrant.Distance_Dot, []hit{{"2", 11}, {"1", 1}, {"3", 0}, {"4", -4}}, 1},
		{qdrant.Distance_Cosine, []hit{{"2", 11 / (5 * root(5))}, {"1", 1 / root(5)}, {"3", 0}, {"4", -4 / (2 * root(5))}}, float32(1 / root(5))},
		{qdrant.Distance_Euclid, []hit{{"1", 2}, {"3", root(5)}, {"2", root(8)}, {"4", root(17)}}, float32(root(5))},
		{qdrant.Distance_Manhattan, []hit{{"1", 2}, {"3", 3}, {"2", 4}, {"4", 5}}, 3},
	} {
		t.Run(c.distance.String(), func(t *testing.T) {
			client := dial(t, start(t, nil))
			create(t, client, 2, c.distance)
			upsert(t, client, at(1, nil, 1, 0), at(2, nil, 3, 4), at(3, nil, 0, 0), at(4, nil, 0, -2))
			wantHits(t, query(t, client, &qdrant.QueryPoints{Query: qdrant.NewQuery(1, 2)}), c.want...)
			wantHits(t, query(t, client, &qdrant.QueryPoints{Query: qdrant.NewQuery(1, 2), Limit: proto.Uint64(2), Offset: proto.Uint64(1)}), c.want[1:3]...)
			wantHits(t, query(t, client, &qdrant.QueryPoints{Query: qdrant.NewQuery(1, 2), Limit: proto.Uint64(9), Offset: proto.Uint64(9)}))
			second := query(t, client, &qdrant.QueryPoints{Query: qdrant.NewQuery(1, 2)})[1].GetScore()
			wantHits(t, query(t, client, &qdrant.QueryPoints{Query: qdrant.NewQuery(1, 2), ScoreThreshold: &second}), c.want[0])
			if math.Abs(float64(second-c.threshold)) > 1e-6 {
				t.Errorf("the second score is %v, want %v", second, c.threshold)
			}
			toward := float32(math.Inf(-1))
			if smallBetter(c.distance) {
				toward = float32(math.Inf(1))
			}
			worse := math.Nextafter32(second, toward)
			wantHits(t, query(t, client, &qdrant.QueryPoints{Query: qdrant.NewQuery(1, 2), ScoreThreshold: &worse}), c.want[:2]...)
		})
	}
}

func TestTiesAndNaN(t *testing.T) {
	client := dial(t, start(t, nil))
	create(t, client, 1, qdrant.Distance_Dot)
	upsert(t, client, at(7, nil, 1), at(3, nil, 1), at(5, nil, 2),
		&qdrant.PointStruct{Id: qdrant.NewIDUUID("00000000-0000-0000-0000-000000000001"), Vectors: qdrant.NewVectors(1)})
	wantHits(t, query(t, client, &qdrant.QueryPoints{Query: qdrant.NewQuery(1)}),
		hit{"5", 2}, hit{"3", 1}, hit{"7", 1}, hit{"00000000-0000-0000-0000-000000000001", 1})
	upsert(t, client, at(1, nil, float32(math.NaN())))
	first := query(t, client, &qdrant.QueryPoints{Query: qdrant.NewQuery(1)})[0]
	if idText(first.GetId()) != "1" || first.GetScore() == first.GetScore() {
		t.Errorf("first is %v, want point 1 with NaN, as the real server sorts it", first)
	}
}

func TestQuerySelectorsAndOptions(t *testing.T) {
	client := dial(t, start(t, nil))
	create(t, client, 1, qdrant.Distance_Dot)
	upsert(t, client, at(1, map[string]any{"a": 1, "b": 2}, 5))
	bare := query(t, client, &qdrant.QueryPoints{Query: qdrant.NewQuery(1)})[0]
	if len(bare.GetPayload()) != 0 || bare.GetVectors() != nil {
		t.Errorf("without selectors: %v", bare)
	}
	full := query(t, client, &qdrant.QueryPoints{
		Query: qdrant.NewQuery(1), WithPayload: qdrant.NewWithPayloadInclude("b"), WithVectors: qdrant.NewWithVectors(true),
		Params:          &qdrant.SearchParams{Exact: proto.Bool(true), HnswEf: proto.Uint64(64)},
		ReadConsistency: qdrant.NewReadConsistencyType(qdrant.ReadConsistencyType_Quorum),
	})[0]
	if len(full.GetPayload()) != 1 || full.GetPayload()["b"].GetIntegerValue() != 2 || !slices.Equal(full.GetVectors().GetVector().GetDense().GetData(), []float32{5}) {
		t.Errorf("with selectors: %v", full)
	}
}

func TestQueryByID(t *testing.T) {
	client := dial(t, start(t, nil))
	create(t, client, 2, qdrant.Distance_Dot)
	upsert(t, client, at(1, nil, 1, 0), at(2, nil, 2, 0), at(3, nil, 0, 1))
	byID := qdrant.NewQueryID(qdrant.NewIDNum(1))
	wantHits(t, query(t, client, &qdrant.QueryPoints{Query: byID}), hit{"2", 2}, hit{"3", 0})
	wantHits(t, query(t, client, &qdrant.QueryPoints{
		Prefetch: []*qdrant.PrefetchQuery{{Query: byID}}, Query: qdrant.NewQueryFusion(qdrant.Fusion_RRF),
	}), hit{"2", 1. / 2}, hit{"3", 1. / 3})

	if err := client.CreateCollection(t.Context(), &qdrant.CreateCollection{
		CollectionName: "other", VectorsConfig: qdrant.NewVectorsConfigMap(map[string]*qdrant.VectorParams{"v": params(2, qdrant.Distance_Dot)}),
	}); err != nil {
		t.Fatal(err)
	}
	must(client.Upsert(t.Context(), &qdrant.UpsertPoints{CollectionName: "other", Wait: proto.Bool(true), Points: []*qdrant.PointStruct{
		{Id: qdrant.NewIDNum(1), Vectors: qdrant.NewVectorsMap(map[string]*qdrant.Vector{"v": qdrant.NewVector(0, 3)})},
		{Id: qdrant.NewIDNum(2), Vectors: qdrant.NewVectorsMap(nil)},
	}}))(t)
	lookup := &qdrant.LookupLocation{CollectionName: "other", VectorName: proto.String("v")}
	wantHits(t, query(t, client, &qdrant.QueryPoints{Query: byID, LookupFrom: lookup}), hit{"3", 3}, hit{"1", 0}, hit{"2", 0})

	_, err := client.Query(t.Context(), &qdrant.QueryPoints{CollectionName: "c", Query: qdrant.NewQueryID(qdrant.NewIDNum(9))})
	wantError(t, err, codes.NotFound, "Not found: No point with id 9 found")
	_, err = client.Query(t.Context(), &qdrant.QueryPoints{CollectionName: "c", Query: qdrant.NewQueryID(qdrant.NewIDNum(2)), LookupFrom: lookup})
	wantError(t, err, codes.NotFound, `Not found: Vector with name "v" for point not found`)
}

func TestQueryWithoutVector(t *testing.T) {
	client := dial(t, start(t, &Options{Seed: 1}))
	create(t, client, 1, qdrant.Distance_Dot)
	for id := uint64(1); id <= 20; id++ {
		upsert(t, client, at(id, nil, 1))
	}
	wantHits(t, query(t, client, &qdrant.QueryPoints{Limit: proto.Uint64(2), Offset: proto.Uint64(3)}), hit{"4", 1}, hit{"5", 1})
	sample := &qdrant.QueryPoints{Query: qdrant.NewQuerySample(qdrant.Sample_Random), Limit: proto.Uint64(5), Offset: proto.Uint64(3)}
	first, second := hits(query(t, client, sample)), hits(query(t, client, sample))
	if len(first) != 5 || !slices.Equal(first, second) {
		t.Errorf("samples %v and %v, want 5 points and the same", first, second)
	}
	other := dial(t, start(t, &Options{Seed: 2}))
	create(t, other, 1, qdrant.Distance_Dot)
	for id := uint64(1); id <= 20; id++ {
		upsert(t, other, at(id, nil, 1))
	}
	if third := hits(query(t, other, sample)); slices.Equal(first, third) {
		t.Errorf("two seeds give the same sample %v", first)
	}
}

func TestSparse(t *testing.T) {
	client := dial(t, start(t, nil))
	createWith(t, client, &qdrant.CreateCollection{SparseVectorsConfig: qdrant.NewSparseVectorsConfig(map[string]*qdrant.SparseVectorParams{
		"plain": {}, "idf": {Modifier: qdrant.Modifier_Idf.Enum()},
	})})
	add := func(id uint64, indices []uint32, values []float32) {
		upsert(t, client, &qdrant.PointStruct{Id: qdrant.NewIDNum(id), Vectors: qdrant.NewVectorsMap(map[string]*qdrant.Vector{
			"plain": qdrant.NewVectorSparse(indices, values), "idf": qdrant.NewVectorSparse(indices, values),
		})})
	}
	add(1, []uint32{1, 2}, []float32{1, 2})
	add(2, []uint32{2}, []float32{3})
	add(3, []uint32{9}, []float32{5})
	add(4, []uint32{1}, []float32{0})
	words := qdrant.NewQuerySparse([]uint32{2, 1}, []float32{1, 0.5})
	wantHits(t, query(t, client, &qdrant.QueryPoints{Query: words, Using: proto.String("plain")}),
		hit{"2", 3}, hit{"1", 2.5}, hit{"4", 0})
	// n = 4; index 1 is in 2 points, index 2 in 2: both weigh ln(1 + 2.5/2.5) = ln 2.
	wantHits(t, query(t, client, &qdrant.QueryPoints{Query: words, Using: proto.String("idf")}),
		hit{"2", 3 * math.Ln2}, hit{"1", 2.5 * math.Ln2}, hit{"4", 0})
	// Index 9 is in 1 point of 4: ln(1 + 3.5/1.5).
	wantHits(t, query(t, client, &qdrant.QueryPoints{Query: qdrant.NewQuerySparse([]uint32{9}, []float32{1}), Using: proto.String("idf")}),
		hit{"3", 5 * math.Log(1+3.5/1.5)})
	wantHits(t, query(t, client, &qdrant.QueryPoints{Query: qdrant.NewQuerySparse([]uint32{77}, []float32{1}), Using: proto.String("plain")}))
	_, err := client.Query(t.Context(), &qdrant.QueryPoints{CollectionName: "c", Query: qdrant.NewQuery(1), Using: proto.String("plain")})
	wantError(t, err, codes.InvalidArgument, "Conversion between sparse and regular vectors failed")
}

func TestMultivector(t *testing.T) {
	for _, c := range []struct {
		distance qdrant.Distance
		want     []hit
	}{
		// Per row of the query the best row of the point: 1: 1 + 2; 2: 3 + 0.
		{qdrant.Distance_Dot, []hit{{"1", 3}, {"2", 3}}},
		// Squared distances: 1: 0 + 1; 2: 4 + 10. The root of the sum is returned.
		{qdrant.Distance_Euclid, []hit{{"1", 1}, {"2", math.Sqrt(14)}}},
		// 1: 1 + 1; 2: 1 + 0.
		{qdrant.Distance_Cosine, []hit{{"1", 2}, {"2", 1}}},
	} {
		t.Run(c.distance.String(), func(t *testing.T) {
			client := dial(t, start(t, nil))
			createWith(t, client, &qdrant.CreateCollection{VectorsConfig: qdrant.NewVectorsConfigMap(map[string]*qdrant.VectorParams{
				"m": {Size: 2, Distance: c.distance, MultivectorConfig: &qdrant.MultiVectorConfig{Comparator: qdrant.MultiVectorComparator_MaxSim}},
			})})
			rows := func(id uint64, v *qdrant.Vector) *qdrant.PointStruct {
				return &qdrant.PointStruct{Id: qdrant.NewIDNum(id), Vectors: qdrant.NewVectorsMap(map[string]*qdrant.Vector{"m": v})}
			}
			upsert(t, client, rows(1, qdrant.NewVectorMulti([][]float32{{1, 0}, {0, 2}})), rows(2, qdrant.NewVector(3, 0)))
			wantHits(t, query(t, client, &qdrant.QueryPoints{Query: qdrant.NewQueryMulti([][]float32{{1, 0}, {0, 1}}), Using: proto.String("m")}), c.want...)
		})
	}
}

func TestQueryRefuses(t *testing.T) {
	client := dial(t, start(t, nil))
	create(t, client, 4, qdrant.Distance_Dot)
	right := qdrant.NewQuery(1, 2, 3, 4)
	leaf := []*qdrant.PrefetchQuery{{Query: right}}
	fusion := qdrant.NewQueryFusion(qdrant.Fusion_RRF)
	var deep []*qdrant.PrefetchQuery
	for range 66 {
		deep = []*qdrant.PrefetchQuery{{Query: right, Prefetch: deep}}
	}
	for _, c := range []struct {
		name string
		in   *qdrant.QueryPoints
		code codes.Code
		want string
	}{
		{"dimension", &qdrant.QueryPoints{Query: qdrant.NewQuery(1, 2, 3)}, codes.InvalidArgument, "Wrong input: Vector dimension error: expected dim: 4, got 3"},
		{"name", &qdrant.QueryPoints{Query: right, Using: proto.String("foo")}, codes.InvalidArgument, "Wrong input: Not existing vector name error: foo"},
		{"name in a prefetch", &qdrant.QueryPoints{Query: fusion, Prefetch: []*qdrant.PrefetchQuery{{Query: right, Using: proto.String("foo")}}}, codes.InvalidArgument, "Not existing vector name error: foo"},
		{"limit", &qdrant.QueryPoints{Query: right, Limit: proto.Uint64(0)}, codes.InvalidArgument, "Validation error in body: [limit: value 0 invalid, must be 1 or larger]"},
		{"limit of a prefetch", &qdrant.QueryPoints{Query: fusion, Prefetch: []*qdrant.PrefetchQuery{{Limit: proto.Uint64(0)}}}, codes.InvalidArgument, "[prefetch[0].limit: value 0 invalid"},
		{"no variant", &qdrant.QueryPoints{Query: &qdrant.Query{}}, codes.InvalidArgument, "Query variant is missing"},
		{"fusion of nothing", &qdrant.QueryPoints{Query: fusion}, codes.InvalidArgument, "cannot apply Fusion without prefetches"},
		{"formula of nothing", &qdrant.QueryPoints{Query: qdrant.NewQueryFormula(&qdrant.Formula{Expression: qdrant.NewExpressionConstant(1)})}, codes.InvalidArgument, "cannot apply Formula without prefetches"},
		{"fusion with using", &qdrant.QueryPoints{Query: fusion, Prefetch: leaf, Using: proto.String("x")}, codes.InvalidArgument, "Bad request: Fusion queries cannot be combined with the 'using' field."},
		{"prefetch without query", &qdrant.QueryPoints{Prefetch: leaf}, codes.InvalidArgument, "Bad request: A query is needed to merge the prefetches."},
		{"threshold without query", &qdrant.QueryPoints{ScoreThreshold: proto.Float32(1)}, codes.InvalidArgument, "A query is needed to use the score_threshold."},
		{"threshold with order", &qdrant.QueryPoints{Query: qdrant.NewQueryOrderBy(&qdrant.OrderBy{Key: "k"}), ScoreThreshold: proto.Float32(1)}, codes.InvalidArgument, "Can't use score_threshold with an order_by query."},
		{"weights", &qdrant.QueryPoints{Query: qdrant.NewQueryRRF(&qdrant.Rrf{Weights: []float32{1, 2}}), Prefetch: leaf}, codes.InvalidArgument, "Number of weights in RRF should match number of pre-fetches: got 2, expected 1"},
		{"k", &qdrant.QueryPoints{Query: qdrant.NewQueryRRF(&qdrant.Rrf{K: proto.Uint32(0)}), Prefetch: leaf}, codes.InvalidArgument, "must be 1 or larger"},
		{"diversity", &qdrant.QueryPoints{Query: qdrant.NewQueryMMR(qdrant.NewVectorInput(1, 2, 3, 4), &qdrant.Mmr{Diversity: proto.Float32(1.5)})}, codes.InvalidArgument, "must be from 0.0 to 1.0"},
		{"depth", &qdrant.QueryPoints{Query: right, Prefetch: deep}, codes.InvalidArgument, "exceeds max depth 64"},
		{"recommend", &qdrant.QueryPoints{Query: qdrant.NewQueryRecommend(&qdrant.RecommendInput{})}, codes.Unimplemented, "does not model recommend"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.in.CollectionName = "c"
			_, err := client.Query(t.Context(), c.in)
			wantError(t, err, c.code, c.want)
			_, err = client.QueryBatch(t.Context(), &qdrant.QueryBatchPoints{CollectionName: "c", QueryPoints: []*qdrant.QueryPoints{{CollectionName: "c", Query: right}, c.in}})
			wantError(t, err, c.code, c.want[max(0, len(c.want)-20):])
		})
	}
}

func TestQueryNamed(t *testing.T) {
	client := dial(t, start(t, nil))
	createWith(t, client, &qdrant.CreateCollection{VectorsConfig: qdrant.NewVectorsConfigMap(map[string]*qdrant.VectorParams{"a": params(1, qdrant.Distance_Dot), "b": params(1, qdrant.Distance_Euclid)})})
	named := func(id uint64, vectors map[string]*qdrant.Vector) *qdrant.PointStruct {
		return &qdrant.PointStruct{Id: qdrant.NewIDNum(id), Vectors: qdrant.NewVectorsMap(vectors)}
	}
	upsert(t, client, named(1, map[string]*qdrant.Vector{"a": qdrant.NewVector(1), "b": qdrant.NewVector(9)}), named(2, map[string]*qdrant.Vector{"b": qdrant.NewVector(4)}))
	wantHits(t, query(t, client, &qdrant.QueryPoints{Query: qdrant.NewQuery(2), Using: proto.String("a")}), hit{"1", 2})
	wantHits(t, query(t, client, &qdrant.QueryPoints{Query: qdrant.NewQuery(2), Using: proto.String("b")}), hit{"2", 2}, hit{"1", 7})
	_, err := client.Query(t.Context(), &qdrant.QueryPoints{CollectionName: "c", Query: qdrant.NewQuery(2)})
	wantError(t, err, codes.InvalidArgument, "Wrong input: Not existing vector name error: ")
	_, err = client.SearchMatrixPairs(t.Context(), &qdrant.SearchMatrixPoints{CollectionName: "c"})
	wantError(t, err, codes.InvalidArgument, "Collection requires specified vector name in the request, available names: a, b")
	_, err = client.SearchMatrixPairs(t.Context(), &qdrant.SearchMatrixPoints{CollectionName: "c", Using: proto.String("z")})
	wantError(t, err, codes.InvalidArgument, "Vector with name `z` is not configured in this collection, available names: a, b")
}

func TestQueryBatch(t *testing.T) {
	s := start(t, nil)
	client := dial(t, s)
	create(t, client, 1, qdrant.Distance_Dot)
	upsert(t, client, at(1, nil, 1), at(2, nil, 2))
	s.ResetCalls()
	out := must(client.QueryBatch(t.Context(), &qdrant.QueryBatchPoints{CollectionName: "c", QueryPoints: []*qdrant.QueryPoints{
		{CollectionName: "c", Query: qdrant.NewQuery(1)},
		{CollectionName: "c", Query: qdrant.NewQuery(-1), Limit: proto.Uint64(1)},
		{CollectionName: "c", Query: qdrant.NewQuery(1), Filter: must1(qdrant.NewHasID())},
	}}))(t)
	if len(out) != 3 {
		t.Fatalf("%d lists, want 3", len(out))
	}
	wantHits(t, out[0].GetResult(), hit{"2", 2}, hit{"1", 1})
	wantHits(t, out[1].GetResult(), hit{"1", -1})
	wantHits(t, out[2].GetResult())
	if calls := s.Calls(); len(calls) != 1 || calls["Points/QueryBatch"] != 1 {
		t.Errorf("calls %v, want one QueryBatch", calls)
	}
	_, err := client.QueryBatch(t.Context(), &qdrant.QueryBatchPoints{CollectionName: "c", QueryPoints: []*qdrant.QueryPoints{{Query: qdrant.NewQuery(1)}}})
	wantError(t, err, codes.InvalidArgument, `[query_points[0].collection_name: value "" invalid, must be from 1 to 255 characters]`)
}

// TestMMR: the query [1 0]; 1 and 2 lie together close to it, 3 lies apart.
func TestMMR(t *testing.T) {
	client := dial(t, start(t, nil))
	create(t, client, 2, qdrant.Distance_Dot)
	upsert(t, client, at(1, nil, 1, 0), at(2, nil, 0.9, 0), at(3, nil, 0.5, 0.5), at(4, nil, 0, 0.1))
	mmr := func(m *qdrant.Mmr, limit uint64) []*qdrant.ScoredPoint {
		return query(t, client, &qdrant.QueryPoints{Query: qdrant.NewQueryMMR(qdrant.NewVectorInput(1, 0), m), Limit: &limit})
	}
	// λ = 0.5: after 1, 2 is worth 0.45 − 0.45, 3 0.25 − 0.25 and 4 0 − 0. All are
	// equal, and taking 1 has put 4 in its place: the last one is 3.
	wantHits(t, mmr(&qdrant.Mmr{CandidatesLimit: proto.Uint32(4)}, 2), hit{"1", 1}, hit{"3", 0.5})
	// λ = 1: relevance alone.
	wantHits(t, mmr(&qdrant.Mmr{Diversity: proto.Float32(0), CandidatesLimit: proto.Uint32(4)}, 3), hit{"1", 1}, hit{"2", 0.9}, hit{"3", 0.5})
	// λ = 0.4: 2 is 0.36 − 0.54, 3 is 0.2 − 0.3, 4 is 0; then 3 is 0.2 − 0.3, 2 0.36 − 0.54.
	wantHits(t, mmr(&qdrant.Mmr{Diversity: proto.Float32(0.6), CandidatesLimit: proto.Uint32(4)}, 4), hit{"1", 1}, hit{"4", 0}, hit{"3", 0.5}, hit{"2", 0.9})
	// Without candidates_limit only the two nearest are looked at.
	wantHits(t, mmr(&qdrant.Mmr{Diversity: proto.Float32(0.6)}, 2), hit{"1", 1}, hit{"2", 0.9})
	// The prefetch narrows the candidates.
	wantHits(t, query(t, client, &qdrant.QueryPoints{
		Prefetch: []*qdrant.PrefetchQuery{{Query: qdrant.NewQuery(0, 1), Limit: proto.Uint64(2)}},
		Query:    qdrant.NewQueryMMR(qdrant.NewVectorInput(1, 0), &qdrant.Mmr{}),
	}), hit{"3", 0.5}, hit{"4", 0})
}

func TestMatrix(t *testing.T) {
	client := dial(t, start(t, nil))
	ctx := t.Context()
	create(t, client, 1, qdrant.Distance_Euclid)
	upsert(t, client, at(3, nil, 7), at(1, nil, 0), at(2, nil, 1), at(9, map[string]any{"out": true}, 0))
	in := &qdrant.SearchMatrixPoints{CollectionName: "c", Sample: proto.Uint64(100), Limit: proto.Uint64(2), Filter: &qdrant.Filter{MustNot: []*qdrant.Condition{qdrant.NewMatchBool("out", true)}}}
	type pair struct {
		a, b  string
		score float32
	}
	want := []pair{{"1", "2", 1}, {"1", "3", 7}, {"2", "1", 1}, {"2", "3", 6}, {"3", "2", 6}, {"3", "1", 7}}
	var got []pair
	for _, p := range must(client.SearchMatrixPairs(ctx, in))(t).GetPairs() {
		got = append(got, pair{idText(p.GetA()), idText(p.GetB()), p.GetScore()})
	}
	if !slices.Equal(got, want) {
		t.Errorf("pairs %v, want %v", got, want)
	}
	offsets := must(client.SearchMatrixOffsets(ctx, in))(t)
	got = nil
	for i, row := range offsets.GetOffsetsRow() {
		ids := offsets.GetIds()
		got = append(got, pair{idText(ids[row]), idText(ids[offsets.GetOffsetsCol()[i]]), offsets.GetScores()[i]})
	}
	if !slices.Equal(got, want) {
		t.Errorf("offsets %v, want %v", got, want)
	}
	in.Sample, in.Limit = proto.Uint64(2), proto.Uint64(1)
	if n := len(must(client.SearchMatrixPairs(ctx, in))(t).GetPairs()); n != 2 {
		t.Errorf("%d pairs of a sample of 2 with limit 1, want 2", n)
	}
	in.Filter = must1(qdrant.NewHasID(qdrant.NewIDNum(1)))
	if n := len(must(client.SearchMatrixPairs(ctx, in))(t).GetPairs()); n != 0 {
		t.Errorf("%d pairs of one point, want 0", n)
	}
	_, err := client.SearchMatrixPairs(ctx, &qdrant.SearchMatrixPoints{CollectionName: "c", Sample: proto.Uint64(1)})
	wantError(t, err, codes.InvalidArgument, "[sample: value 1 invalid, must be 2 or larger]")
}

// TestNearestOfMany compares the search, which sorts in parts, with one sort.
func TestNearestOfMany(t *testing.T) {
	v := &view{vectors: vectorSet{dense: map[string]denseField{"": {size: 1, distance: qdrant.Distance_Dot}}}}
	var all []scored
	for i := range uint64(2000) {
		p := &point{id: pointID{num: i}, vectors: map[string]vector{"": {dense: []float32{float32(hashID(9, pointID{num: i}) % 50)}}}}
		v.points = append(v.points, p)
		all = append(all, scored{p: p, score: p.vectors[""].dense[0]})
	}
	sortScored(all)
	for _, limit := range []int{0, 1, 7, 100, 1999, 2000, 5000} {
		got := v.nearest("", vector{dense: []float32{1}}, func(*point) bool { return true }, limit, nil)
		if !slices.Equal(got, all[:min(limit, len(all))]) {
			t.Errorf("limit %d: not the first of all", limit)
		}
	}
}
