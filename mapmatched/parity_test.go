package mapmatched

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"testing"
)

// parityCase is a stream that another implementation of the same objective
// computed. The files are no part of the repository.
type parityCase struct {
	Exact bool `json:"exact_weights"`
	Graph struct {
		Nodes    []string
		Edges    [][3]any
		Directed bool
		Maximum  float64 `json:"maximum_distance"`
	}
	Turns      [][][2]any
	Parameters Options
	Distances  map[string]map[string]float64
	Near       map[string]map[string][]string `json:"neighborhoods"`
	Entropies  map[Normalization][]float64
	Normalized map[Normalization][][]float64
	Runs       []struct {
		Normalization Normalization
		Lag           *int `json:"fixed_lag"`
		Turns         []struct {
			ChunkID string   `json:"chunk_id"`
			Context []string `json:"context_chunk_ids"`
			Ranking [][2]any `json:"candidate_ranking"`
			Total   float64  `json:"total_score"`
			Trace   Trace
			Render  string
		}
	}
}

func (c *parityCase) edges() []Edge {
	var edges []Edge
	for _, e := range c.Graph.Edges {
		edges = append(edges, Edge{From: e[0].(string), To: e[1].(string), Weight: e[2].(float64)})
	}
	return edges
}

func candidatesOf(pairs [][2]any) []Candidate {
	var list []Candidate
	for _, p := range pairs {
		list = append(list, Candidate{ChunkID: p[0].(string), Score: p[1].(float64)})
	}
	return list
}

func parityCases(t *testing.T) map[string]*parityCase {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", "shared", "cases", "parity", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Skip("SKIP: the parity cases are not beside this checkout")
	}
	cases := map[string]*parityCase{}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		c := &parityCase{}
		if err := json.Unmarshal(raw, c); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		cases[filepath.Base(file)] = c
	}
	return cases
}

func TestParity(t *testing.T) {
	for name, c := range parityCases(t) {
		t.Run(name, func(t *testing.T) {
			// Entropies go through exp and log, whose last bit differs
			// between math libraries.
			near := func(what string, got, want float64) {
				t.Helper()
				if got != want && (c.Exact && !strings.Contains(what, "entropy") || !(math.Abs(got-want) <= 1e-9)) {
					t.Errorf("%s: got %v, want %v", what, got, want)
				}
			}
			graph, err := NewGraph(c.edges(), &GraphOptions{Nodes: c.Graph.Nodes, MaximumDistance: c.Graph.Maximum, Directed: c.Graph.Directed})
			if err != nil {
				t.Fatal(err)
			}
			for from, row := range c.Distances {
				for to, want := range row {
					var got [1]float64
					if err := graph.Distances(t.Context(), []string{from}, []string{to}, got[:]); err != nil {
						t.Fatal(err)
					}
					near(from+"–"+to, got[0], want)
				}
			}
			for id, byRadius := range c.Near {
				for text, want := range byRadius {
					radius, err := strconv.ParseFloat(text, 64)
					if err != nil {
						t.Fatal(err)
					}
					near, err := graph.Neighborhood(t.Context(), id, radius)
					if err != nil {
						t.Fatal(err)
					}
					var got []string
					for _, n := range near {
						got = append(got, n.ChunkID)
					}
					if !slices.Equal(got, want) {
						t.Errorf("neighborhood of %s within %s: got %v, want %v", id, text, got, want)
					}
				}
			}
			for _, run := range c.Runs {
				label := string(run.Normalization)
				if run.Lag != nil {
					label += fmt.Sprint(" lag ", *run.Lag)
				}
				options := c.Parameters
				options.ScoreNormalization = (*string)(&run.Normalization)
				options.FixedLag = run.Lag
				cfg, err := options.Config()
				if err != nil {
					t.Fatal(err)
				}
				s, err := NewSession(nil, graph, cfg)
				if err != nil {
					t.Fatal(err)
				}
				for i, want := range run.Turns {
					what := fmt.Sprintf("%s turn %d: ", label, i)
					got, err := s.Observe(t.Context(), "", candidatesOf(c.Turns[i]))
					if err != nil {
						t.Fatal(what, err)
					}
					if got.ChunkID != want.ChunkID || got.Ranking[0].ChunkID != want.ChunkID {
						t.Errorf("%s chunk %s, ranking led by %s, want %s", what, got.ChunkID, got.Ranking[0].ChunkID, want.ChunkID)
					}
					if !slices.Equal(got.ContextChunkIDs, want.Context) {
						t.Errorf("%s context %v, want %v", what, got.ContextChunkIDs, want.Context)
					}
					near(what+"total", got.TotalScore, want.Total)
					if run.Lag == nil {
						scores := map[string]float64{}
						for _, r := range candidatesOf(want.Ranking) {
							scores[r.ChunkID] = r.Score
						}
						for _, r := range got.Ranking {
							near(what+"ranking of "+r.ChunkID, r.PathScore, scores[r.ChunkID])
						}
					}
					trace := s.Trace()
					if !slices.Equal(trace.PathChunkIDs, want.Trace.PathChunkIDs) ||
						!slices.Equal(trace.RevisedPriorIndices, want.Trace.RevisedPriorIndices) ||
						!slices.Equal(got.RevisedPriorIndices, want.Trace.RevisedPriorIndices) ||
						!equalInts(trace.CommittedThroughIndex, want.Trace.CommittedThroughIndex) ||
						!equalInts(got.CommittedThroughIndex, want.Trace.CommittedThroughIndex) ||
						!equalInts(trace.FixedLag, want.Trace.FixedLag) {
						t.Errorf("%s trace\n got %v\nwant %v", what, trace, want.Trace)
					}
					for k, w := range want.Trace.Steps {
						g := trace.Steps[k]
						if g.ChunkID != w.ChunkID || g.TurnIndex != w.TurnIndex {
							t.Errorf("%s step %d: %s at %d, want %s at %d", what, k, g.ChunkID, g.TurnIndex, w.ChunkID, w.TurnIndex)
						}
						where := fmt.Sprintf("%s step %d ", what, k)
						near(where+"raw", g.RawEmissionScore, w.RawEmissionScore)
						near(where+"normalized", g.NormalizedEmissionScore, w.NormalizedEmissionScore)
						near(where+"weighted", g.WeightedEmissionScore, w.WeightedEmissionScore)
						near(where+"distance", g.GraphDistance, w.GraphDistance)
						near(where+"transition", g.WeightedTransitionCost, w.WeightedTransitionCost)
						near(where+"cumulative", g.CumulativeScore, w.CumulativeScore)
						near(where+"entropy", g.EmissionEntropy, w.EmissionEntropy)
						near(where+"margin", g.NormalizedEmissionMargin, w.NormalizedEmissionMargin)
					}
				}
			}
			for normalization, turns := range c.Normalized {
				for i, want := range turns {
					var raw []float64
					for _, candidate := range candidatesOf(c.Turns[i])[:len(want)] {
						raw = append(raw, candidate.Score)
					}
					got, err := Normalize(raw, normalization)
					if err != nil {
						t.Fatal(err)
					}
					for x := range want {
						near(fmt.Sprint(normalization, " of turn ", i), got[x], want[x])
						got[x] *= *c.Parameters.EmissionWeight
					}
					near(fmt.Sprint("entropy of turn ", i), EmissionEntropy(got), c.Entropies[normalization][i])
				}
			}
		})
	}
}

func equalInts(a, b *int) bool { return a == b || a != nil && b != nil && *a == *b }
