package faiss

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mapmatched/mmplug/mapmatched"
)

// expectation is what FAISS finds in an index, as testdata/make.py writes it.
type expectation struct {
	Dimension int          `json:"dimension"`
	Count     int          `json:"count"`
	Metric    Metric       `json:"metric"`
	Scores    [][]*float64 `json:"scores"`
	IDs       [][]int64    `json:"ids"`
}

type expectations struct {
	Version string                 `json:"version"`
	Queries [][]float32            `json:"queries"`
	Indexes map[string]expectation `json:"indexes"`
}

func expected(t testing.TB) expectations {
	t.Helper()
	data, err := os.ReadFile(testFile("expected.json"))
	if err != nil {
		t.Fatal(err)
	}
	var e expectations
	if err := json.Unmarshal(data, &e); err != nil {
		t.Fatal(err)
	}
	return e
}

func testFile(name string) string { return filepath.Join("testdata", name) }

// tolerance is what scores of vectors of dozens of numbers around 1 may differ
// by in float32.
const tolerance = 1e-4

// agree compares hits with what FAISS found: the same scores rank by rank, and
// the same IDs up to the order of equal scores.
func agree(t *testing.T, what string, hits []Hit, metric Metric, ids []int64, scores []*float64) {
	t.Helper()
	var wantIDs []int64
	var want []float64
	for i, id := range ids {
		if id >= 0 {
			s := *scores[i]
			if metric.Mode() == ModeDistance {
				s = -s
			}
			wantIDs, want = append(wantIDs, id), append(want, s)
		}
	}
	if len(hits) != len(want) {
		t.Errorf("%s: %d hits, FAISS has %d", what, len(hits), len(want))
		return
	}
	for i, h := range hits {
		if math.Abs(h.Score-want[i]) > tolerance {
			t.Errorf("%s: hit %d has score %v, FAISS %v", what, i, h.Score, want[i])
		}
		if at := slices.Index(wantIDs, h.ID); at < 0 && math.Abs(h.Score-want[len(want)-1]) > tolerance || at >= 0 && math.Abs(h.Score-want[at]) > tolerance {
			t.Errorf("%s: hit %d is ID %d with score %v, FAISS has IDs %v with scores %v", what, i, h.ID, h.Score, wantIDs, want)
		}
		if i > 0 && !hits[i-1].better(h) {
			t.Errorf("%s: hits %v and %v are out of order", what, hits[i-1], h)
		}
	}
}

func opened(t testing.TB, path string, opts *IndexOptions) *Index {
	t.Helper()
	x, err := OpenIndex(t.Context(), path, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	})
	return x
}

// vectors are random rows.
func vectors(rows, dimension int, seed uint64) [][]float32 {
	r := rand.New(rand.NewPCG(seed, seed))
	out := make([][]float32, rows)
	for i := range out {
		out[i] = make([]float32, dimension)
		for j := range out[i] {
			out[i][j] = float32(r.NormFloat64())
		}
	}
	return out
}

// written is the path of a flat index.
func written(t testing.TB, metric Metric, rows [][]float32, ids []int64) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "index.faiss")
	if err := WriteFlatFile(path, metric, 0, rows, ids); err != nil {
		t.Fatal(err)
	}
	return path
}

// chunks are entries c0, c1 and so on.
func chunks(n int) []Entry {
	entries := make([]Entry, n)
	for i := range entries {
		entries[i].ID = fmt.Sprintf("c%d", i)
	}
	return entries
}

// file writes a file of a test and returns its path.
func file(t testing.TB, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func flatBytes(t testing.TB, metric Metric, rows [][]float32, ids []int64) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := WriteFlat(&b, metric, 0, rows, ids); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func contents(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(testFile(name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// wantError checks the kind of an error and that its text, one line, has all
// the parts.
func wantError(t testing.TB, err error, kind mapmatched.Kind, parts ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("no error, want one of kind %q with %q", kind, parts)
		return
	}
	if got := mapmatched.KindOf(err); got != kind {
		t.Errorf("kind %q, want %q: %v", got, kind, err)
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("the error has several lines: %q", err)
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("the error lacks %q: %v", p, err)
		}
	}
}
