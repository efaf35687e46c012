package policy

import (
	"fmt"
	"math"
	"slices"

	"github.com/mapmatched/mmplug/mapmatched"
)

// Geometric is geometric_v1: sim^α · decay^(1−α), the similarity power first.
// sim is a cosine and is clamped to [0, 1]; decay is in (0, 1] and α in [0, 1].
// α = 0 is decay and α = 1 is sim, bit for bit. The result is in (0, 1], or 0
// where sim is 0 and α is not, and does not fall when sim or decay rises.
// Arguments outside of their range give NaN.
func Geometric(sim, decay, alpha float64) float64 {
	switch {
	case !(decay > 0 && decay <= 1) || !(alpha >= 0 && alpha <= 1) || math.IsNaN(sim):
		return math.NaN()
	case alpha == 0:
		return decay
	}
	sim = clampUnit(sim)
	if alpha == 1 || sim == 0 {
		return sim
	}
	return float64(pow(sim, alpha) * pow(decay, 1-alpha))
}

// clampUnit is the nearest number in [0, 1], never −0.
func clampUnit(x float64) float64 {
	if x <= 0 {
		return 0
	}
	return min(x, 1)
}

// GeometricQuery is what the score of every chunk of a query depends on.
type GeometricQuery struct {
	Vector   bool     // the query has a vector clause, so there are similarities
	Expanded bool     // results were expanded along the graph, so there are decays
	Alpha    *float64 // overrides Fusion.Alpha for this query, in [0, 1]; nil does not
}

// GeometricChunk is a chunk to be scored.
type GeometricChunk struct {
	Primary    bool     // a hit of the query itself, not reached by expansion
	Similarity *float64 // cosine with the query, nil for a chunk without a vector
	Decay      float64  // see Expand; read only when the query was expanded
}

// The keys of score parts.
const (
	PartSimilarity = "sim"
	PartDecay      = "decay"
)

// GeometricScore scores a chunk by geometric_v1 and returns what the score is
// made of, under PartSimilarity and PartDecay where there is such a thing:
//
//   - without expansion S = sim, and decay is not part of it;
//   - without a vector clause S = decay;
//   - a primary is not fused: S = sim;
//   - a chunk without a vector has sim = min_score;
//   - everything else is Geometric.
//
// A query with neither has no score, and that is an error, as is a value out
// of its range.
func (u *Fusion) GeometricScore(q GeometricQuery, c GeometricChunk) (float64, map[string]float64, error) {
	alpha := u.Alpha
	if q.Alpha != nil {
		alpha = *q.Alpha
	}
	parts := map[string]float64{}
	if q.Expanded {
		parts[PartDecay] = c.Decay
	}
	if q.Vector {
		sim := u.MinScore
		if c.Similarity != nil {
			sim = *c.Similarity
		}
		if !finite(sim) {
			return 0, nil, fmt.Errorf("similarity %v: %w", sim, mapmatched.ErrNonFinite)
		}
		parts[PartSimilarity] = clampUnit(sim)
	}
	switch {
	case !(alpha >= 0 && alpha <= 1):
		return 0, nil, fmt.Errorf("%w: alpha is %v: it must be between 0 and 1", mapmatched.ErrInvalidConfig, alpha)
	case q.Expanded && !(c.Decay > 0 && c.Decay <= 1):
		return 0, nil, fmt.Errorf("%w: decay is %v: it must be above 0 and at most 1", mapmatched.ErrInvalidConfig, c.Decay)
	case q.Vector && (c.Primary || !q.Expanded):
		return parts[PartSimilarity], parts, nil
	case q.Vector:
		return Geometric(parts[PartSimilarity], c.Decay, alpha), parts, nil
	case q.Expanded:
		return c.Decay, parts, nil
	default:
		return 0, nil, fmt.Errorf("%w: a query with neither a vector clause nor an expansion has no score in %s", mapmatched.ErrInvalidConfig, GeometricV1)
	}
}

// FuseExpanded scores the hits of a query together with the chunks that Expand
// reached from them and returns the at most limit best in total, in the order
// of Fuse. primaries have cosines for scores when the query has a vector
// clause. similarity returns the cosine of a reached chunk with the query, and
// false for one without a vector; it may be nil when the query has no vector
// clause. reached may list the primaries too. The parts of a primary keep its
// own and get those of GeometricScore.
func (u *Fusion) FuseExpanded(q GeometricQuery, primaries []mapmatched.Candidate, reached []Reached, similarity func(chunkID string) (float64, bool), limit int) ([]mapmatched.Candidate, error) {
	var fused []mapmatched.Candidate
	seen := map[string]bool{}
	add := func(c mapmatched.Candidate, g GeometricChunk) error {
		if seen[c.ChunkID] {
			return nil
		}
		seen[c.ChunkID] = true
		score, parts, err := u.GeometricScore(q, g)
		if err != nil {
			return fmt.Errorf("chunk %q: %w", c.ChunkID, err)
		}
		for key, part := range c.Parts {
			if _, ours := parts[key]; !ours {
				parts[key] = part
			}
		}
		c.Score, c.Parts = score, parts
		fused = append(fused, c)
		return nil
	}
	for _, c := range primaries {
		if err := add(c, GeometricChunk{Primary: true, Similarity: &c.Score, Decay: 1}); err != nil {
			return nil, err
		}
	}
	for _, r := range reached {
		g := GeometricChunk{Decay: r.Decay}
		if q.Vector && !seen[r.ChunkID] {
			if sim, known := similarity(r.ChunkID); known {
				g.Similarity = &sim
			}
		}
		if err := add(mapmatched.Candidate{ChunkID: r.ChunkID}, g); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(fused, compareFused)
	return fused[:min(len(fused), max(limit, 0))], nil
}
