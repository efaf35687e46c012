package graphbuild

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"testing"

	"github.com/mapmatched/mmplug/mapmatched"
)

// Kinds of vectors for the approximate method.
const (
	clustered = "clustered" // tight clusters
	noisy     = "noisy"     // and one row in 20 anywhere
	scattered = "scattered" // all rows anywhere
)

func vectorsOf(kind string, n, dim int) *sliceSource {
	r := rand.New(rand.NewPCG(13, 14))
	s := &sliceSource{dim: dim}
	centres := make([][]float32, n/100)
	for i := range centres {
		centres[i] = make([]float32, dim)
		for j := range dim {
			centres[i][j] = float32(r.NormFloat64())
		}
	}
	for i := range n {
		v, centre := make([]float32, dim), centres[r.IntN(len(centres))]
		stray := kind == scattered || kind == noisy && r.IntN(20) == 0
		for j := range v {
			if v[j] = float32(r.NormFloat64()); !stray {
				v[j] = centre[j] + v[j]/2
			}
		}
		s.ids = append(s.ids, fmt.Sprintf("chunk-%d", i))
		s.vectors = append(s.vectors, v)
	}
	return s
}

// recallOf is the share of the edges of the exact graph that another has; a
// distance that is not the exact one counts as missing.
func recallOf(got, exact []mapmatched.Edge) float64 {
	have := map[mapmatched.Edge]bool{}
	for _, e := range got {
		have[e] = true
	}
	hits := 0
	for _, e := range exact {
		if have[e] {
			hits++
		}
	}
	return float64(hits) / float64(len(exact))
}

func TestKNNBuildApproximate(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	for _, tt := range []struct {
		kind   string
		method KNNMethod
	}{{clustered, KNNApproximate}, {noisy, KNNApproximate}, {scattered, KNNExact}} {
		t.Run(tt.kind, func(t *testing.T) {
			s := vectorsOf(tt.kind, 9000, 96)
			for i := range 40 {
				s.vectors[i*7] = s.vectors[100] // copies, more than k
			}
			exact, report, err := KNNBuild(context.Background(), s, nil)
			if err != nil {
				t.Fatal(err)
			}
			if want := (KNNReport{Method: KNNExact, Chunks: 9000, Distinct: 8960, Recall: 1}); report != want {
				t.Errorf("report %+v, want %+v", report, want)
			}
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
			edges, report, err := KNNBuild(context.Background(), s, &KNNOptions{Method: KNNApproximate})
			if err != nil {
				t.Fatal(err)
			}
			recall := recallOf(edges, exact)
			if report.Method != tt.method || recall < TargetRecall || report.Recall < TargetRecall {
				t.Errorf("recall %v, report %+v", recall, report)
			}
			if approximate := tt.method == KNNApproximate; approximate != (report.Lists > 0) || approximate != (report.Probes >= 1) ||
				approximate != (report.Sample == sampleRows) || approximate != (recall < 1) {
				t.Errorf("recall %v, report %+v", recall, report)
			}
			if report.Method == KNNApproximate && math.Abs(recall-report.Recall) > 0.01 {
				t.Errorf("the report says recall %v, all edges %v", report.Recall, recall)
			}
			// Other cores, other order of rows: the same.
			runtime.GOMAXPROCS(3)
			r := rand.New(rand.NewPCG(15, 16))
			r.Shuffle(len(s.ids), func(i, j int) {
				s.ids[i], s.ids[j] = s.ids[j], s.ids[i]
				s.vectors[i], s.vectors[j] = s.vectors[j], s.vectors[i]
			})
			again, other, err := KNNBuild(context.Background(), s, &KNNOptions{Method: KNNApproximate})
			if err != nil || other != report || !reflect.DeepEqual(again, edges) {
				t.Errorf("another order and number of cores give other edges: %+v, %v", other, err)
			}
		})
	}
}

func TestKNNBuildCancel(t *testing.T) {
	s := vectorsOf(clustered, leastForLists+1000, 8)
	for _, method := range []KNNMethod{KNNExact, KNNApproximate} {
		var calls int
		count := func(int, int) { calls++ }
		if _, _, err := KNNBuild(context.Background(), s, &KNNOptions{Method: method, Progress: count}); err != nil {
			t.Fatal(err)
		}
		all := calls
		for _, stop := range []int{1, all / 4, all / 2, all - 1} {
			ctx, cancel := context.WithCancel(context.Background())
			calls = 0
			edges, report, err := KNNBuild(ctx, s, &KNNOptions{Method: method, Progress: func(int, int) {
				if calls++; calls == stop {
					cancel()
				}
			}})
			if !errors.Is(err, context.Canceled) || edges != nil || report != (KNNReport{}) {
				t.Errorf("%s, stopped at call %d of %d: %d edges, %+v, error %v", method, stop, all, len(edges), report, err)
			}
			cancel()
		}
	}
}

// The matrix of a file gives the same edges as that in memory.
func TestKNNBuildFile(t *testing.T) {
	s := vectorsOf(clustered, 300, 7)
	want, err := KNN(context.Background(), s.ids, s.vectors, nil)
	if err != nil {
		t.Fatal(err)
	}
	wide := make([]float64, 0, 300*7)
	for _, v := range s.vectors {
		for _, x := range v {
			wide = append(wide, float64(x))
		}
	}
	text := ""
	for _, id := range s.ids {
		text += id + "\n"
	}
	for name, npy := range map[string][]byte{
		"float32": npyFile(1, npyHeaderText("<f4", "(300, 7)"), slices.Concat(s.vectors...)),
		"float64": npyFile(1, npyHeaderText("<f8", "(300, 7)"), wide),
	} {
		f, err := OpenVectors(vectorFiles(t, npy, text))
		if err != nil {
			t.Fatal(err)
		}
		got, _, err := KNNBuild(context.Background(), f, nil)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: other edges than from memory, error %v", name, err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestKNNBuildEmpty(t *testing.T) {
	f, err := OpenVectors(vectorFiles(t, npyFile(1, npyHeaderText("<f4", "(0, 7)"), []float32{}), ""))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	edges, report, err := KNNBuild(context.Background(), f, nil)
	if want := (KNNReport{Method: KNNExact, Recall: 1}); len(edges) != 0 || report != want || err != nil {
		t.Errorf("%v, %+v, %v", edges, report, err)
	}
}

// Whatever the order of the offers, repeated or not, a selection finds the k
// least of all that it was offered.
func TestSelection(t *testing.T) {
	r := rand.New(rand.NewPCG(17, 18))
	for round := range 60 {
		n, k := 200+r.IntN(100), 1+r.IntN(12)
		s := &sliceSource{dim: 3}
		spread := []float64{1, 1e-4, 1e-7}[round%3] // of cosines: far more and far less than scores can tell apart
		for i := range n {
			s.ids = append(s.ids, fmt.Sprintf("%04d", i))
			s.vectors = append(s.vectors, []float32{1, float32(spread * r.NormFloat64()), float32(spread * r.NormFloat64())})
		}
		rows, err := newRowSet(context.Background(), s)
		if err != nil {
			t.Fatal(err)
		}
		selection, m := newSelection(rows, []int32{0}, k), rows.newMeasure()
		var want []nearest
		var offers []int32
		for v := int32(1); v < int32(rows.len()); v++ {
			want = append(want, nearest{m.distance(0, v), v})
			offers = append(offers, v, v)
		}
		slices.SortFunc(want, func(a, b nearest) int {
			if a.distance != b.distance {
				if a.distance < b.distance {
					return -1
				}
				return 1
			}
			return int(a.row - b.row)
		})
		r.Shuffle(len(offers), func(i, j int) { offers[i], offers[j] = offers[j], offers[i] })
		// Any score within the error is as good as another, as long as a row has
		// the same one each time.
		scores := make([]float32, rows.len())
		for v := range scores {
			scores[v] = float32(1 - m.distance(0, int32(v)) + (2*r.Float64()-1)*rows.scoreError()*0.8)
		}
		for _, v := range offers {
			selection.offer(m, 0, v, scores[v])
		}
		found, err := selection.finish(context.Background(), nil)
		if err != nil || !slices.Equal(found.of(0), want[:k]) {
			t.Fatalf("n = %d, k = %d, spread %v: got %v, want %v, error %v", n, k, spread, found.of(0), want[:k], err)
		}
	}
}
