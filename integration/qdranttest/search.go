package qdranttest

import (
	"cmp"
	"slices"

	"github.com/qdrant/go-client/qdrant"
)

// scored is a point in a list of results.
type scored struct {
	p     *point
	score float32
	order *qdrant.OrderValue // of order_by, else nil
}

// scorer gives the similarity of a point, higher is better, and false when the
// point has no such vector or, for sparse ones, no index in common.
type scorer func(*point) (float32, bool)

// scorer makes a scorer for a fitted vector.
func (v *view) scorer(using string, query vector) scorer {
	if field, sparse := v.vectors.sparse[using]; sparse {
		q := query.sparse
		if field.idf {
			q = v.weigh(using, q)
		}
		return func(p *point) (float32, bool) {
			stored, has := p.vectors[using]
			if !has {
				return 0, false
			}
			return dotSparse(q, stored.sparse)
		}
	}
	distance := v.vectors.dense[using].distance
	return func(p *point) (float32, bool) {
		stored, has := p.vectors[using]
		if !has {
			return 0, false
		}
		return pairSimilarity(distance, query, stored), true
	}
}

// pairSimilarity compares two fitted vectors of the same dense field.
func pairSimilarity(d qdrant.Distance, a, b vector) float32 {
	if a.multi != nil {
		return maxSim(d, a.multi, b.multi)
	}
	return similarity(d, a.dense, b.dense)
}

// weigh multiplies the values of a sparse query by the idf of their indices.
func (v *view) weigh(using string, q *sparseVector) *sparseVector {
	n, df := 0, make(map[uint32]int, len(q.indices))
	for _, p := range v.points {
		stored, has := p.vectors[using]
		if !has {
			continue
		}
		n++
		for _, index := range stored.sparse.indices {
			df[index]++
		}
	}
	weighed := &sparseVector{indices: q.indices, values: make([]float32, len(q.values))}
	for i, index := range q.indices {
		weighed.values[i] = q.values[i] * inverseFrequency(n, df[index])
	}
	return weighed
}

// distance is the metric of a vector; sparse ones have the dot product.
func (s vectorSet) distance(name string) qdrant.Distance {
	if field, dense := s.dense[name]; dense {
		return field.distance
	}
	return qdrant.Distance_Dot
}

// nearest searches exactly, best first, equal scores by ID. Scores are those
// clients see, and the list ends at the first one that does not pass the
// threshold.
func (v *view) nearest(using string, query vector, fits func(*point) bool, limit int, threshold *float32) []scored {
	score := v.scorer(using, query)
	var list []scored
	for _, p := range v.points {
		if !fits(p) {
			continue
		}
		if s, has := score(p); has {
			list = append(list, scored{p: p, score: s})
		}
		if len(list) >= 2*limit+64 { // sort little and often rather than everything
			sortScored(list)
			list = list[:limit]
		}
	}
	sortScored(list)
	list = list[:min(limit, len(list))]
	d := v.vectors.distance(using)
	for i := range list {
		list[i].score = visible(d, list[i].score)
		if threshold != nil && !passes(d, list[i].score, *threshold) {
			return list[:i]
		}
	}
	return list
}

// sortScored puts the highest score first, equal ones by ID.
func sortScored(list []scored) {
	slices.SortFunc(list, func(a, b scored) int {
		return cmp.Or(compareScores(b.score, a.score), compareID(a.p.id, b.p.id))
	})
}

// cut keeps the first scores that reach the threshold, at most limit.
func cut(list []scored, limit int, threshold *float32) []scored {
	list = list[:min(limit, len(list))]
	if threshold == nil {
		return list
	}
	for i, s := range list {
		if !(s.score >= *threshold) {
			return list[:i]
		}
	}
	return list
}

// byID lists points in ascending order of ID. Without a vector to compare with
// every point has the score 1.
func (v *view) byID(fits func(*point) bool, limit int) []scored {
	var list []scored
	for _, p := range v.points {
		if len(list) == limit {
			break
		}
		if fits(p) {
			list = append(list, scored{p: p, score: 1})
		}
	}
	return list
}

// byKey is orderBy as a list of results.
func (v *view) byKey(in *qdrant.OrderBy, fits func(*point) bool, limit int) ([]scored, error) {
	points, err := v.orderBy(in, fits, limit)
	if err != nil {
		return nil, err
	}
	list := make([]scored, len(points))
	for i, o := range points {
		list[i] = scored{p: o.p, score: 1, order: o.value}
	}
	return list, nil
}

// sample takes the points with the smallest hash of seed and ID.
func (v *view) sample(seed uint64, fits func(*point) bool, limit int) []scored {
	list := v.byID(fits, len(v.points))
	slices.SortStableFunc(list, func(a, b scored) int { return cmp.Compare(hashID(seed, a.p.id), hashID(seed, b.p.id)) })
	return list[:min(limit, len(list))]
}

// hashID mixes a seed and an ID by FNV-1a with the finish of SplitMix64.
func hashID(seed uint64, id pointID) uint64 {
	h := uint64(14695981039346656037) ^ seed
	for _, b := range []byte(id.String()) {
		h = (h ^ uint64(b)) * 1099511628211
	}
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}
