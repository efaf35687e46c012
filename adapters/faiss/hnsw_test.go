package faiss

import (
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"io"
	"math"
	"os"
	"slices"
	"testing"
)

// wide are searches of FAISS in graphs of 3000 × 96, as testdata/make.py makes
// them.
type wide struct {
	Name   string      `json:"name"`
	Ef     int         `json:"ef"`
	Scores [][]float64 `json:"scores"`
}

// wideVectors are whole numbers, so that scores have no error in float32 in
// whatever order they are summed.
func wideVectors() (rows, queries [][]float32) {
	const dimension, count, asked = 96, 3000, 8
	state := uint64(1)
	out := make([][]float32, count+asked)
	for i := range out {
		out[i] = make([]float32, dimension)
		for j := range out[i] {
			state = state*6364136223846793005 + 1442695040888963407
			out[i][j] = float32(int(state>>56) - 128)
		}
	}
	return out[:count], out[count:]
}

// wideIndex is the path of a graph with its vectors.
func wideIndex(t *testing.T, name string, rows [][]float32) string {
	t.Helper()
	f, err := os.Open(testFile("wide_" + name + ".graph.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // only read
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		for _, v := range row {
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
		}
	}
	return file(t, name+".faiss", data)
}

// The walk is that of libfaiss for k below and above efSearch: the same scores,
// rank by rank. libfaiss before 1.7.4 stops too early when k is not above
// efSearch; its scores are then no better at any rank.
func TestHNSWAgreesWithFAISS(t *testing.T) {
	rows, queries := wideVectors()
	paths := map[string]string{"ip": wideIndex(t, "ip", rows), "l2": wideIndex(t, "l2", rows)}
	for _, version := range []string{"1.7.3", "1.15.1"} {
		t.Run(version, func(t *testing.T) { agreesWithFAISS(t, version, paths, rows, queries) })
	}
}

func agreesWithFAISS(t *testing.T, version string, paths map[string]string, rows, queries [][]float32) {
	data, err := os.ReadFile(testFile("wide_" + version + ".json"))
	if err != nil {
		t.Fatal(err)
	}
	var cases []wide
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) != 10 {
		t.Fatalf("%d cases, want 10", len(cases))
	}
	missed := 0
	for _, c := range cases {
		k := len(c.Scores[0])
		opts := &IndexOptions{Engine: EngineGo, EfSearch: c.Ef}
		if c.Ef == 16 {
			opts.EfSearch = 0 // as the file says
		}
		x := opened(t, paths[c.Name], opts)
		exact := opened(t, paths[c.Name], &IndexOptions{Exact: true})
		metric := x.Info().Metric
		found, err := x.SearchBatch(t.Context(), queries, k)
		if err != nil {
			t.Fatal(err)
		}
		for i, hits := range found {
			var scores []float64
			ids := map[int64]bool{}
			for _, h := range hits {
				s := h.Score
				if s != score(metric, queries[i], rows[h.ID]) || ids[h.ID] {
					t.Fatalf("%s, efSearch %d, k %d, query %d: ID %d is there twice or has not the score %v", c.Name, c.Ef, k, i, h.ID, s)
				}
				if ids[h.ID] = true; metric == MetricL2 {
					s = -s
				}
				scores = append(scores, s)
			}
			if version == "1.7.3" && k <= c.Ef {
				for j, s := range c.Scores[i] {
					if metric == MetricL2 {
						s = -s
					}
					if hits[j].Score < s {
						t.Errorf("%s, efSearch %d, k %d, query %d, hit %d: score %v, libfaiss has %v", c.Name, c.Ef, k, i, j, hits[j].Score, s)
					}
				}
			} else if !slices.Equal(scores, c.Scores[i]) {
				t.Errorf("%s, efSearch %d, k %d, query %d: other scores than libfaiss\n%v\n%v", c.Name, c.Ef, k, i, scores, c.Scores[i])
			}
			all, err := exact.Search(t.Context(), queries[i], k)
			if err != nil {
				t.Fatal(err)
			}
			for j := range all {
				if all[j].Score != hits[j].Score {
					missed++
				}
			}
		}
	}
	if missed == 0 {
		t.Error("the graph finds all there is: the cases do not tell one walk from another")
	}
}

// Of equal vectors that a walk meets, the lowest IDs of the ID map win; that it
// meets all takes a high efSearch.
func TestTiesInAnIDMapOverHNSW(t *testing.T) {
	for _, c := range []struct{ ef, highest int }{{16, 15}, {100, 4}} {
		x := opened(t, testFile("tied_hnsw.faiss"), &IndexOptions{Engine: EngineGo, EfSearch: c.ef})
		hits, err := x.Search(t.Context(), []float32{1, 1}, 5)
		if err != nil || len(hits) != 5 {
			t.Fatalf("efSearch %d: hits %v, error %v", c.ef, hits, err)
		}
		for i, h := range hits {
			if h.Score != 0 || i > 0 && h.ID <= hits[i-1].ID {
				t.Errorf("efSearch %d: hits %v are out of order", c.ef, hits)
			}
		}
		if hits[4].ID > int64(c.highest) {
			t.Errorf("efSearch %d: the fifth ID is %d, want %d at most", c.ef, hits[4].ID, c.highest)
		}
	}
}
