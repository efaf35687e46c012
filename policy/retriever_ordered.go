package policy

import "github.com/mapmatched/mmplug/mapmatched"

// Ordered is the result of the decoder with its ranking in the order to show:
// a copy in which Ranking has what Order has. It is for callers that know the
// decoder alone. The places, path scores and posteriors of the candidates are
// the decoder's still, and so is ChunkID.
func (a *Answer) Ordered() *mapmatched.Result {
	result := *a.Result
	ranked := make(map[string]mapmatched.Ranked, len(a.Ranking))
	for _, r := range a.Ranking {
		ranked[r.ChunkID] = r
	}
	result.Ranking = nil
	for _, c := range a.Order {
		if r, known := ranked[c.ChunkID]; known {
			result.Ranking = append(result.Ranking, r)
		}
	}
	return &result
}
