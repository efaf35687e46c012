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
	"strings"
	"testing"

	"github.com/mapmatched/mmplug/mapmatched"
)

// naiveKNN is the definition of the graph as two loops over all rows.
func naiveKNN(ids []string, vectors [][]float32, k int, lo, hi float64) []mapmatched.Edge {
	unit := make([][]float64, len(vectors))
	for i, v := range vectors {
		unit[i] = make([]float64, len(v))
		for j := range v {
			unit[i][j] = float64(v[j])
		}
		length := math.Sqrt(dot(unit[i], unit[i]))
		for j := range v {
			unit[i][j] /= length
		}
	}
	distances := make([][]float64, len(ids))
	for i := range ids {
		for j := range ids {
			distances[i] = append(distances[i], 1-max(-1, min(1, dot(unit[i], unit[j]))))
		}
	}
	distance := func(i, j int) float64 { return distances[i][j] }
	weights := map[[2]string]float64{}
	for i := range ids {
		var others []int
		for j := range ids {
			if j != i {
				others = append(others, j)
			}
		}
		slices.SortFunc(others, func(a, b int) int {
			if da, db := distance(i, a), distance(i, b); da != db {
				if da < db {
					return -1
				}
				return 1
			}
			return strings.Compare(ids[a], ids[b])
		})
		for _, j := range others[:min(k, len(others))] {
			weights[[2]string{min(ids[i], ids[j]), max(ids[i], ids[j])}] = min(max(distance(i, j), lo), hi)
		}
	}
	var edges []mapmatched.Edge
	for p, w := range weights {
		edges = append(edges, mapmatched.Edge{From: p[0], To: p[1], Weight: w, Type: mapmatched.EdgeKNN})
	}
	slices.SortFunc(edges, func(a, b mapmatched.Edge) int {
		return strings.Compare(a.From+"\x00"+a.To, b.From+"\x00"+b.To)
	})
	return edges
}

func randomVectors(r *rand.Rand, n, dim int) ([]string, [][]float32) {
	ids := make([]string, n)
	vectors := make([][]float32, n)
	for i := range n {
		ids[i] = fmt.Sprintf("chunk-%d", i) // not in byte order: 10 < 9
		vectors[i] = make([]float32, dim)
		for j := range dim {
			vectors[i][j] = float32(r.NormFloat64())
		}
	}
	r.Shuffle(n, func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	return ids, vectors
}

func TestKNNMatchesDefinition(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	kinds := map[string]func(i int, v [][]float32){
		"random": func(int, [][]float32) {},
		"duplicates": func(i int, v [][]float32) {
			copy(v[i], v[i%5])
		},
		"all equal": func(i int, v [][]float32) { copy(v[i], v[0]) },
		"opposite": func(i int, v [][]float32) {
			for j := range v[i] {
				v[i][j] = v[0][j] * float32(1-2*(i%2))
			}
		},
		"axes": func(i int, v [][]float32) {
			clear(v[i])
			v[i][i%len(v[i])] = 1
		},
		"huge and tiny": func(i int, v [][]float32) {
			for j := range v[i] {
				v[i][j] *= []float32{1e-38, 1e37}[i%2]
			}
		},
		"denormal": func(i int, v [][]float32) {
			clear(v[i])
			v[i][i%len(v[i])] = math.SmallestNonzeroFloat32
		},
		"many copies": func(i int, v [][]float32) { // and copies of another length, which are near but not the same
			copy(v[i], v[i%2])
			for j := range v[i] {
				v[i][j] *= []float32{1, 1, 1, 3}[i%4]
			}
		},
		"signed zeros": func(i int, v [][]float32) {
			for j := range v[i] {
				v[i][j] = float32(math.Copysign(float64(i%3/2), float64(v[i][j])))
			}
			v[i][0] = 1
		},
		"a last place apart": func(i int, v [][]float32) {
			copy(v[i], v[0])
			v[i][i%len(v[i])] = math.Nextafter32(v[i][i%len(v[i])], float32(i%5)-2)
		},
		"nearly equal": func(i int, v [][]float32) {
			for j := range v[i] {
				v[i][j] = 1 + v[i][j]*1e-6
			}
		},
	}
	names := make([]string, 0, len(kinds))
	for name := range kinds {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			for _, size := range []struct{ n, dim int }{{2, 1}, {3, 3}, {16, 17}, {17, 1}, {17, 3}, {150, 17}, {270, 3}} {
				ids, vectors := randomVectors(r, size.n, size.dim)
				for i := range vectors {
					kinds[name](i, vectors)
				}
				for _, k := range []int{1, 7, size.n + 3} {
					got, err := KNN(context.Background(), ids, vectors, &KNNOptions{K: k, MaximumDistance: 1.5})
					if err != nil {
						t.Fatal(err)
					}
					if want := naiveKNN(ids, vectors, k, 1e-6, 1.5); !reflect.DeepEqual(got, want) {
						t.Fatalf("%+v, k = %d: got\n%s\nwant\n%s", size, k, edgeLines(got), edgeLines(want))
					}
				}
			}
		})
	}
}

func TestKNNSameOnAnyNumberOfCoresAndOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	ids, vectors := randomVectors(r, 700, 9)
	for i := range vectors {
		copy(vectors[i], vectors[i%300]) // many ties
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	want, err := KNN(context.Background(), ids, vectors, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, procs := range []int{1, 2, 3, 16} {
		runtime.GOMAXPROCS(procs)
		r.Shuffle(len(ids), func(i, j int) {
			ids[i], ids[j] = ids[j], ids[i]
			vectors[i], vectors[j] = vectors[j], vectors[i]
		})
		got, err := KNN(context.Background(), ids, vectors, nil)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%d cores: edges differ from those on one, error %v", procs, err)
		}
	}
}

func TestKNNSmallAndClamped(t *testing.T) {
	ctx := context.Background()
	if e, err := KNN(ctx, nil, nil, nil); e != nil || err != nil {
		t.Errorf("no rows: %v, %v; want no edges", e, err)
	}
	if e, err := KNN(ctx, []string{"a"}, [][]float32{{1}}, nil); e != nil || err != nil {
		t.Errorf("one row: %v, %v; want no edges", e, err)
	}
	e, err := KNN(ctx, []string{"b", "a", "c"}, [][]float32{{2, 0}, {3, 0}, {-1, 0}}, &KNNOptions{MinimumEdgeDistance: 0.5, MaximumDistance: 1.25})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := edgeLines(e), "a-b knn 0.5\na-c knn 1.25\nb-c knn 1.25"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	e, err = KNN(ctx, []string{"b", "a"}, [][]float32{{1, 2}, {1, 2}}, nil)
	if err != nil || len(e) != 1 || e[0].Weight != 1e-6 {
		t.Errorf("equal rows: %v, %v; want one edge of 1e-06", e, err)
	}
}

func TestKNNErrors(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(-1))
	tests := []struct {
		name    string
		ids     []string
		vectors [][]float32
		opts    *KNNOptions
		want    string
	}{
		{"counts", []string{"a"}, nil, nil, "1 chunk IDs and 0 vectors"},
		{"empty ID", []string{"a", ""}, [][]float32{{1}, {2}}, nil, "empty chunk ID: row 1"},
		{"duplicate ID", []string{"a", "b", "a"}, [][]float32{{1}, {2}, {3}}, nil, `chunk ID "a" is at row 0 and at row 2`},
		{"ragged", []string{"a", "b"}, [][]float32{{1}, {2, 3}}, nil, `row 1 (chunk "b") has 2 dimensions, row 0 (chunk "a") has 1`},
		{"missing", []string{"a", "b"}, [][]float32{{1}, nil}, nil, `row 1 (chunk "b") has 0 dimensions`},
		{"zero", []string{"a", "b"}, [][]float32{{1, 0}, {0, 0}}, nil, `row 1 (chunk "b") is the zero vector`},
		{"no dimensions", []string{"a"}, [][]float32{{}}, nil, `row 0 (chunk "a") is the zero vector of 0 dimensions`},
		{"NaN", []string{"a", "b"}, [][]float32{{1, 0}, {0, nan}}, nil, `value is not finite: row 1 (chunk "b") is NaN in dimension 1`},
		{"infinite", []string{"a"}, [][]float32{{inf}}, nil, `row 0 (chunk "a") is -Inf in dimension 0`},
		{"options", nil, nil, &KNNOptions{K: -1, MaximumDistance: -2}, "K is -1, want 0 for the default or more\ninvalid configuration: MaximumDistance is -2"},
		{"NaN option", nil, nil, &KNNOptions{MinimumEdgeDistance: math.NaN()}, "MinimumEdgeDistance is NaN"},
		{"infinite option", nil, nil, &KNNOptions{MaximumDistance: math.Inf(1)}, "MaximumDistance is +Inf"},
		{"method", nil, nil, &KNNOptions{Method: "guess"}, `Method is "guess", want "exact", "approximate" or empty`},
		{"crossed options", nil, nil, &KNNOptions{MinimumEdgeDistance: 11}, "MinimumEdgeDistance 11 is above MaximumDistance 10"},
	}
	for _, tt := range tests {
		if _, err := KNN(context.Background(), tt.ids, tt.vectors, tt.opts); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want one with %q", tt.name, err, tt.want)
		}
	}
}

func TestKNNCancelAndProgress(t *testing.T) {
	ids, vectors := randomVectors(rand.New(rand.NewPCG(9, 10)), 3000, 4)
	last := 0
	_, err := KNN(context.Background(), ids, vectors, &KNNOptions{Progress: func(done, total int) {
		if done <= last || done > total {
			t.Errorf("%d of %d done after %d", done, total, last)
		}
		last = done * 1000 / total
	}})
	if err != nil || last != 1000 {
		t.Errorf("the last call says %d of 1000 done, error %v", last, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	_, err = KNN(ctx, ids, vectors, &KNNOptions{Progress: func(done, total int) {
		if done == total {
			t.Error("went on to the end after it was cancelled")
		}
		cancel()
	}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
}

func BenchmarkKNN(b *testing.B) {
	for _, n := range []int{500, 2000, 10_000} {
		b.Run(fmt.Sprintf("chunks=%d/dim=384", n), func(b *testing.B) {
			ids, vectors := randomVectors(rand.New(rand.NewPCG(11, 12)), n, 384)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := KNN(context.Background(), ids, vectors, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkKNNLoop is the definition as a plain loop over all pairs, float32
// rows of length 1 and a heap for each row: what BenchmarkKNN compares with.
func BenchmarkKNNLoop(b *testing.B) {
	for _, n := range []int{500, 2000} {
		b.Run(fmt.Sprintf("chunks=%d/dim=384", n), func(b *testing.B) {
			_, vectors := randomVectors(rand.New(rand.NewPCG(11, 12)), n, 384)
			for b.Loop() {
				loopKNN(vectors, n, 10)
			}
		})
	}
}

// loopKNN finds the k nearest others of the first rows.
func loopKNN(vectors [][]float32, rows, k int) [][]nearest {
	unit := make([][]float32, len(vectors))
	for i, v := range vectors {
		var sum float64
		for _, x := range v {
			sum += float64(x) * float64(x)
		}
		unit[i] = make([]float32, len(v))
		for j, x := range v {
			unit[i][j] = float32(float64(x) / math.Sqrt(sum))
		}
	}
	found := make([][]nearest, rows)
	for i := range rows {
		var best []nearest // ascending
		for j, v := range unit {
			var sum float32
			for d, x := range unit[i] {
				sum += x * v[d]
			}
			distance := 1 - float64(sum)
			if j == i || len(best) == k && distance >= best[k-1].distance {
				continue
			}
			at := len(best)
			for at > 0 && best[at-1].distance > distance {
				at--
			}
			best = slices.Insert(best, at, nearest{distance, int32(j)})
			best = best[:min(len(best), k)]
		}
		found[i] = best
	}
	return found
}
