package qdranttest

import (
	"math"
	"testing"

	"github.com/qdrant/go-client/qdrant"
	"google.golang.org/protobuf/proto"
)

// fusionClient has four points with two vectors. Searched with 1, vector a ranks
// 1 2 3 with the scores 9 8 4; vector b ranks 3 1 4 with 6 5 2.
func fusionClient(t testing.TB) *qdrant.Client {
	client := dial(t, start(t, nil))
	createWith(t, client, &qdrant.CreateCollection{VectorsConfig: qdrant.NewVectorsConfigMap(map[string]*qdrant.VectorParams{
		"a": params(1, qdrant.Distance_Dot), "b": params(1, qdrant.Distance_Dot),
	})})
	for id, vectors := range map[uint64]map[string]*qdrant.Vector{
		1: {"a": qdrant.NewVector(9), "b": qdrant.NewVector(5)},
		2: {"a": qdrant.NewVector(8)},
		3: {"a": qdrant.NewVector(4), "b": qdrant.NewVector(6)},
		4: {"b": qdrant.NewVector(2)},
	} {
		upsert(t, client, &qdrant.PointStruct{
			Id: qdrant.NewIDNum(id), Vectors: qdrant.NewVectorsMap(vectors), Payload: qdrant.NewValueMap(map[string]any{"id": int64(id), "odd": id%2 == 1}),
		})
	}
	return client
}

func arm(using string, alter ...func(*qdrant.PrefetchQuery)) *qdrant.PrefetchQuery {
	p := &qdrant.PrefetchQuery{Query: qdrant.NewQuery(1), Using: &using}
	for _, a := range alter {
		a(p)
	}
	return p
}

func TestFusion(t *testing.T) {
	client := fusionClient(t)
	arms := []*qdrant.PrefetchQuery{arm("a"), arm("b")}
	rrf, dbsf := qdrant.NewQueryFusion(qdrant.Fusion_RRF), qdrant.NewQueryFusion(qdrant.Fusion_DBSF)
	few := func(n uint64) func(*qdrant.PrefetchQuery) { return func(p *qdrant.PrefetchQuery) { p.Limit = &n } }
	odd := must1(qdrant.NewMatchBool("odd", true))
	// DBSF, list a: μ = 7, σ = √7; list b: μ = 13/3, σ = √(13/3).
	a := func(s float64) float64 { return (s - 7 + 3*math.Sqrt(7)) / (6 * math.Sqrt(7)) }
	b := func(s float64) float64 { return (s - 13./3 + 3*math.Sqrt(13./3)) / (6 * math.Sqrt(13./3)) }
	for _, c := range []struct {
		name string
		in   *qdrant.QueryPoints
		want []hit
	}{
		{"rrf is 1/(2 + rank from 0)", &qdrant.QueryPoints{Query: rrf, Prefetch: arms},
			[]hit{{"1", 1./2 + 1./3}, {"3", 1./4 + 1./2}, {"2", 1. / 3}, {"4", 1. / 4}}},
		{"offset and limit", &qdrant.QueryPoints{Query: rrf, Prefetch: arms, Offset: proto.Uint64(1), Limit: proto.Uint64(2)},
			[]hit{{"3", 1./4 + 1./2}, {"2", 1. / 3}}},
		{"threshold includes equals", &qdrant.QueryPoints{Query: rrf, Prefetch: arms, ScoreThreshold: proto.Float32(0.75)},
			[]hit{{"1", 1./2 + 1./3}, {"3", 1./4 + 1./2}}},
		{"k", &qdrant.QueryPoints{Query: qdrant.NewQueryRRF(&qdrant.Rrf{K: proto.Uint32(60)}), Prefetch: arms},
			[]hit{{"1", 1./60 + 1./61}, {"3", 1./62 + 1./60}, {"2", 1. / 61}, {"4", 1. / 62}}},
		{"parameterized without k", &qdrant.QueryPoints{Query: qdrant.NewQueryRRF(&qdrant.Rrf{}), Prefetch: arms},
			[]hit{{"1", 1./2 + 1./3}, {"3", 1./4 + 1./2}, {"2", 1. / 3}, {"4", 1. / 4}}},
		{"weights", &qdrant.QueryPoints{Query: qdrant.NewQueryRRF(&qdrant.Rrf{Weights: []float32{3, 0}}), Prefetch: arms},
			[]hit{{"1", 1 / (1./3 + 1)}, {"2", 1 / (2./3 + 1)}, {"3", 1 / (3./3 + 1)}, {"4", 0}}},
		{"limits of the arms", &qdrant.QueryPoints{Query: rrf, Prefetch: []*qdrant.PrefetchQuery{arm("a", few(1)), arm("b", few(1))}},
			[]hit{{"1", 0.5}, {"3", 0.5}}},
		{"the filter reaches the arms", &qdrant.QueryPoints{Query: rrf, Prefetch: arms, Filter: odd},
			[]hit{{"1", 1./2 + 1./3}, {"3", 1./3 + 1./2}}},
		{"an empty arm", &qdrant.QueryPoints{Query: rrf, Prefetch: []*qdrant.PrefetchQuery{arm("a"), arm("b", func(p *qdrant.PrefetchQuery) { p.Filter = must1(qdrant.NewHasID()) })}},
			[]hit{{"1", 1. / 2}, {"2", 1. / 3}, {"3", 1. / 4}}},
		{"dbsf", &qdrant.QueryPoints{Query: dbsf, Prefetch: arms},
			[]hit{{"1", a(9) + b(5)}, {"3", a(4) + b(6)}, {"2", a(8)}, {"4", b(2)}}},
		{"dbsf of lists of one", &qdrant.QueryPoints{Query: dbsf, Prefetch: []*qdrant.PrefetchQuery{arm("a", few(1)), arm("b", few(1))}},
			[]hit{{"1", 0.5}, {"3", 0.5}}},
		{"nested", &qdrant.QueryPoints{Query: rrf, Prefetch: []*qdrant.PrefetchQuery{
			{Query: rrf, Prefetch: arms, Limit: proto.Uint64(2)}, arm("a", few(2)),
		}}, []hit{{"1", 1./2 + 1./2}, {"2", 1. / 3}, {"3", 1. / 3}}},
		{"rescored by a vector", &qdrant.QueryPoints{Query: qdrant.NewQuery(1), Using: proto.String("b"), Prefetch: []*qdrant.PrefetchQuery{arm("a", few(2))}},
			[]hit{{"1", 5}}},
		{"rescored, the filter of the root is only for the arms", &qdrant.QueryPoints{Query: qdrant.NewQuery(1), Using: proto.String("a"), Prefetch: []*qdrant.PrefetchQuery{arm("b", few(3))}, Filter: odd},
			[]hit{{"1", 9}, {"3", 4}}},
		{"sampled", &qdrant.QueryPoints{Query: qdrant.NewQuerySample(qdrant.Sample_Random), Prefetch: []*qdrant.PrefetchQuery{arm("a", few(1))}},
			[]hit{{"1", 1}}},
	} {
		t.Run(c.name, func(t *testing.T) { wantHits(t, query(t, client, c.in), c.want...) })
	}
}

func TestNormalisedScoreOfEqualScores(t *testing.T) {
	if got := normalisedScore([]scored{{score: 3}, {score: 3}}, 3); got != 0.5 {
		t.Errorf("equal scores give %v, want 0.5", got)
	}
}
