package faiss

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"testing"

	"github.com/mapmatched/mmplug/mapmatched"
)

// goTypes are the test indexes that the Go code reads, and their types.
var goTypes = map[string]string{
	"flat_ip": "IndexFlatIP", "flat_unit": "IndexFlatIP", "flat_l2": "IndexFlatL2",
	"idmap_ip": "IndexIDMap(IndexFlatIP)", "idmap2_l2": "IndexIDMap2(IndexFlatL2)",
	"hnsw_l2": "IndexHNSWFlat", "hnsw_ip": "IndexHNSWFlat", "hnsw_narrow": "IndexHNSWFlat", "idmap_hnsw": "IndexIDMap2(IndexHNSWFlat)",
	"ivf_l2": "IndexIVFFlat(IndexFlatL2)", "ivf_ip": "IndexIVFFlat(IndexFlatIP)", "ivf_all": "IndexIVFFlat(IndexFlatL2)",
	"ivf_ids": "IndexIVFFlat(IndexFlatL2)", "ivf_direct": "IndexIVFFlat(IndexFlatL2)", "ivf_sparse": "IndexIVFFlat(IndexFlatL2)",
	"ivf_hnsw": "IndexIVFFlat(IndexHNSWFlat)", "idmap_ivf": "IndexIDMap2(IndexIVFFlat(IndexFlatL2))",
}

// Scores and IDs are those of FAISS for every type that the Go code reads.
func TestSearchAgreesWithFAISS(t *testing.T) {
	e := expected(t)
	for name, kind := range goTypes {
		t.Run(name, func(t *testing.T) {
			x, want := opened(t, testFile(name+".faiss"), &IndexOptions{Engine: EngineGo}), e.Indexes[name]
			info := Info{Path: testFile(name + ".faiss"), Type: kind, Dimension: want.Dimension, Count: want.Count, Metric: want.Metric, Engine: EngineGo}
			if got := x.Info(); got != info {
				t.Errorf("info %+v, want %+v", got, info)
			}
			all, err := x.SearchBatch(t.Context(), e.Queries, len(want.IDs[0]))
			if err != nil {
				t.Fatal(err)
			}
			for i, q := range e.Queries {
				hits, err := x.Search(t.Context(), q, len(want.IDs[0]))
				if err != nil || !reflect.DeepEqual(hits, all[i]) {
					t.Fatalf("query %d: alone %v, in a batch %v, error %v", i, hits, all[i], err)
				}
				if name == "hnsw_narrow" {
					// libfaiss before 1.7.4 stops too early.
					for j := range hits {
						if -hits[j].Score > *want.Scores[i][j]+tolerance {
							t.Errorf("query %d, hit %d: score %v, FAISS has the better distance %v", i, j, hits[j].Score, *want.Scores[i][j])
						}
					}
					continue
				}
				agree(t, fmt.Sprintf("query %d", i), hits, want.Metric, want.IDs[i], want.Scores[i])
			}
		})
	}
}

// An IndexFlat says by its header alone what it compares by.
func TestFlatOfAnyMetric(t *testing.T) {
	for _, name := range []string{"flat_ip", "flat_l2"} {
		want, err := parse(contents(t, name+".faiss"))
		if err != nil {
			t.Fatal(err)
		}
		data := []byte(string(contents(t, name+".faiss")))
		copy(data, "IxFl")
		got, err := parse(data)
		if err != nil || got.header().metric != want.header().metric || got.describe() != "IndexFlat" {
			t.Errorf("%s: error %v", name, err)
		}
		copy(data, map[string]string{"flat_ip": "IxF2", "flat_l2": "IxFI"}[name])
		if _, err := parse(data); !errors.Is(err, errDamaged) {
			t.Errorf("%s with the code of the other metric: error %v", name, err)
		}
	}
}

// brute is the definition of a search.
func brute(metric Metric, rows [][]float32, query []float32, k int, id func(int) int64) []Hit {
	hits := make([]Hit, len(rows))
	for i, row := range rows {
		hits[i] = Hit{ID: id(i), Score: score(metric, query, row)}
	}
	sortHits(hits)
	return hits[:min(k, len(hits))]
}

// One query alone, a batch, and the definition have the same bits, whatever the
// scale of the numbers.
func TestFlatSearchIsExact(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, metric := range []Metric{MetricInnerProduct, MetricL2} {
		for _, dimension := range []int{1, 2, 3, 17, 64, 100} {
			for _, scale := range []float64{1, 1e-30, 1e-12, 1e14, 1e19} {
				if scale > 1e18 && metric == MetricInnerProduct {
					continue // beyond float32; the square of a distance is summed in float64
				}
				rows := vectors(333, dimension, uint64(dimension))
				queries := vectors(21, dimension, 99)
				for i, row := range rows {
					own := scale
					if i%7 == 0 {
						own = scale * math.Exp(2*r.NormFloat64())
					}
					for j := range row {
						row[j] = float32(float64(row[j]) * own)
					}
				}
				for i := range 40 {
					rows[r.IntN(len(rows))] = rows[i] // ties
				}
				for i, q := range queries {
					for j := range q {
						q[j] = float32(float64(q[j]) * scale)
					}
					if i%3 == 0 {
						queries[i] = slices.Clone(rows[i]) // near one row and its copies
					}
				}
				var ids []int64
				id := func(at int) int64 { return int64(at) }
				if dimension%2 == 1 {
					for i := range rows {
						ids = append(ids, int64((i*7919)%10007))
					}
					id = func(at int) int64 { return ids[at] }
				}
				x := opened(t, written(t, metric, rows, ids), nil)
				for _, k := range []int{1, 2, 10, 333, 1000} {
					all, err := x.SearchBatch(t.Context(), queries, k)
					if err != nil {
						t.Fatal(err)
					}
					for i, q := range queries {
						want := brute(metric, rows, q, k, id)
						alone, err := x.Search(t.Context(), q, k)
						if err != nil || !slices.Equal(alone, want) || !slices.Equal(all[i], want) {
							t.Fatalf("%v, dimension %d, scale %g, k %d, query %d: error %v, other hits than the definition", metric, dimension, scale, k, i, err)
						}
					}
				}
			}
		}
	}
}

// Exact searches IVF and HNSW indexes as if they were flat.
func TestExact(t *testing.T) {
	e := expected(t)
	for _, name := range []string{"hnsw_narrow", "ivf_l2", "ivf_hnsw", "ivf_direct"} {
		x := opened(t, testFile(name+".faiss"), &IndexOptions{Exact: true})
		want := e.Indexes["flat_l2"]
		all, err := x.SearchBatch(t.Context(), e.Queries, len(want.IDs[0]))
		if err != nil {
			t.Fatal(err)
		}
		for i := range e.Queries {
			agree(t, fmt.Sprintf("%s, query %d", name, i), all[i], want.Metric, want.IDs[i], want.Scores[i])
		}
	}
}

func TestNprobeAndEfSearch(t *testing.T) {
	e := expected(t)
	flat := e.Indexes["flat_l2"]
	found := func(name string, opts *IndexOptions) (same int) {
		x := opened(t, testFile(name+".faiss"), opts)
		for i, q := range e.Queries {
			hits, err := x.Search(t.Context(), q, len(flat.IDs[0]))
			if err != nil {
				t.Fatal(err)
			}
			for _, h := range hits {
				if slices.Contains(flat.IDs[i], h.ID) {
					same++
				}
			}
		}
		return same
	}
	all := len(e.Queries) * len(flat.IDs[0])
	if one, most := found("ivf_l2", &IndexOptions{Nprobe: 1}), found("ivf_l2", &IndexOptions{Nprobe: 5}); one >= most || most != all {
		t.Errorf("1 list finds %d and 5 lists %d, want less and %d", one, most, all)
	}
	if few, most := found("hnsw_narrow", &IndexOptions{EfSearch: 1}), found("hnsw_narrow", &IndexOptions{EfSearch: 60}); few > most || most != all {
		t.Errorf("ef 1 finds %d and ef 60 %d, want no more and %d", few, most, all)
	}
	for _, c := range []struct {
		name string
		opts IndexOptions
		part string
	}{
		{"flat_l2", IndexOptions{Nprobe: 3}, "has no lists"},
		{"idmap_hnsw", IndexOptions{Nprobe: 3}, "has no lists"},
		{"ivf_l2", IndexOptions{EfSearch: 3}, "is not HNSW"},
		{"ivf_l2", IndexOptions{Nprobe: 3, Exact: true}, "have no effect"},
		{"ivf_l2", IndexOptions{Nprobe: -1}, "Nprobe is -1"},
		{"ivf_l2", IndexOptions{Threads: 5000}, "Threads is 5000"},
		{"ivf_l2", IndexOptions{Engine: "gpu"}, `Engine is "gpu"`},
		{"ivf_l2", IndexOptions{Engine: EngineNative, Exact: true}, "Exact needs the Go code"},
	} {
		_, err := OpenIndex(t.Context(), testFile(c.name+".faiss"), &c.opts)
		wantError(t, err, mapmatched.KindInvalid, c.part)
		if !errors.Is(err, mapmatched.ErrInvalidConfig) {
			t.Errorf("%v is no ErrInvalidConfig", err)
		}
	}
}

// L2 is the square: [0, 0] to [3, 4] is 25.
func TestL2IsSquared(t *testing.T) {
	x := opened(t, written(t, MetricL2, [][]float32{{3, 4}, {0, 0}}, nil), nil)
	hits, err := x.Search(t.Context(), []float32{0, 0}, 2)
	if want := []Hit{{ID: 1, Score: 0}, {ID: 0, Score: -25}}; err != nil || !slices.Equal(hits, want) || math.Signbit(hits[0].Score) {
		t.Errorf("%v, error %v, want %v", hits, err, want)
	}
}

func TestTiesAreOrderedByID(t *testing.T) {
	row := []float32{1, 2, 3}
	rows, ids := make([][]float32, 50), make([]int64, 50)
	for i := range rows {
		rows[i], ids[i] = row, int64((i*31+7)%50)
	}
	for _, metric := range []Metric{MetricInnerProduct, MetricL2} {
		x := opened(t, written(t, metric, rows, ids), nil)
		hits, err := x.SearchBatch(t.Context(), [][]float32{row, row, row, row, row}, 20)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range hits {
			for i, h := range found {
				if h.ID != int64(i) {
					t.Fatalf("hit %d is ID %d", i, h.ID)
				}
			}
		}
	}
}

func TestQueriesAreChecked(t *testing.T) {
	x := opened(t, testFile("flat_l2.faiss"), nil)
	_, err := x.Search(t.Context(), make([]float32, 5), 3)
	wantError(t, err, mapmatched.KindInvalid, "query 0 has 5 dimensions", "has 12")
	bad := make([]float32, 12)
	bad[4] = float32(math.NaN())
	_, err = x.Search(t.Context(), bad, 3)
	wantError(t, err, mapmatched.KindInvalid, "component 4 is NaN")
	if !errors.Is(err, mapmatched.ErrNonFinite) {
		t.Errorf("%v is no ErrNonFinite", err)
	}
	for _, k := range []int{0, -1, math.MinInt} {
		if hits, err := x.Search(t.Context(), make([]float32, 12), k); err != nil || len(hits) > 0 {
			t.Errorf("k %d: %v, error %v", k, hits, err)
		}
	}
	empty := opened(t, testFile("empty.faiss"), nil)
	if hits, err := empty.Search(t.Context(), make([]float32, 12), 3); err != nil || len(hits) > 0 {
		t.Errorf("empty index: %v, error %v", hits, err)
	}
}

// A vector that is not finite never wins and is reported.
func TestVectorsThatAreNotFinite(t *testing.T) {
	for _, metric := range []Metric{MetricInnerProduct, MetricL2} {
		for _, bad := range []float32{float32(math.NaN()), float32(math.Inf(1))} {
			data := flatBytes(t, metric, vectors(40, 4, 1), nil)
			binary.LittleEndian.PutUint32(data[len(data)-12*4:], math.Float32bits(bad)) // row 37
			x := opened(t, file(t, "x.faiss", data), nil)
			_, err := x.Search(t.Context(), []float32{1, 1, 1, 1}, 3)
			wantError(t, err, mapmatched.KindCorrupt, "ID 37", "not finite")
			_, err = x.SearchBatch(t.Context(), vectors(20, 4, 2), 40)
			wantError(t, err, mapmatched.KindCorrupt, "ID 37")
		}
	}
}

func TestUnsupportedTypes(t *testing.T) {
	for name, parts := range map[string][]string{
		"pq":           {`"IxPq"`, "IndexPQ", nativeHint},
		"sq8":          {`"IxSQ"`, "IndexScalarQuantizer", nativeHint},
		"pretransform": {`"IxPT"`, "IndexPreTransform", nativeHint},
		"lsh":          {`"IxHe"`, "IndexLSH", nativeHint},
		"ivf_sq8":      {`"IwSq"`, "IndexIVFScalarQuantizer", nativeHint},
		"flat_l1":      {"IndexFlat", "metric", "L1", nativeHint},
		"binary":       {`"IBxF"`, "IndexBinaryFlat", "compares bits"},
	} {
		_, err := OpenIndex(t.Context(), testFile(name+".faiss"), &IndexOptions{Engine: EngineGo})
		wantError(t, err, mapmatched.KindInvalid, append(parts, name+".faiss")...)
		if !errors.Is(err, ErrUnsupported) {
			t.Errorf("%v is no ErrUnsupported", err)
		}
	}
	_, err := OpenIndex(t.Context(), testFile("untrained.faiss"), nil)
	wantError(t, err, mapmatched.KindInvalid, "IndexIVFFlat is not trained")
	// The inverted lists may be in another file, or nowhere.
	for code, part := range map[string]string{"ilod": "another file", "il00": "does not have the inverted lists", "ilxx": `"ilxx"`} {
		data := []byte(string(contents(t, "ivf_l2.faiss")))
		copy(data[bytesIndex(t, data, "ilar"):], code)
		_, err := OpenIndex(t.Context(), file(t, "x.faiss", data), &IndexOptions{Engine: EngineGo})
		wantError(t, err, mapmatched.KindInvalid, part)
	}
}

func bytesIndex(t *testing.T, data []byte, code string) int {
	t.Helper()
	for i := range data {
		if string(data[i:min(i+len(code), len(data))]) == code {
			return i
		}
	}
	t.Fatalf("there is no %q", code)
	return 0
}

func TestForeignFiles(t *testing.T) {
	for name, c := range map[string]struct {
		data string
		part string
	}{
		"Git LFS":    {"version https://git-lfs.github.com/spec/v1\noid sha256:abc\nsize 12\n", "git lfs pull"},
		"NumPy":      {"\x93NUMPY\x01\x00", "NumPy"},
		"pickle":     {"\x80\x04\x95\x00", "pickle"},
		"gzip":       {"\x1f\x8b\x08\x00", "gzip"},
		"JSON":       {`"chunk"`, "swapped"},
		"HTML":       {"<!DOCTYPE html>", "markup"},
		"newer type": {"IxZZ and more", `four-character code "IxZZ"`},
		"binary":     {"\x00\x01\x02\x03\x04", `"\x00\x01\x02\x03"`},
		"short":      {"Ix", "2 bytes"},
		"empty":      {"", "empty"},
	} {
		_, err := OpenIndex(t.Context(), file(t, "x.faiss", []byte(c.data)), nil)
		wantError(t, err, mapmatched.KindInvalid, "x.faiss", "not a FAISS index", c.part)
		if err == nil {
			t.Errorf("%s was opened", name)
		}
	}
	_, err := OpenIndex(t.Context(), filepath.Join(t.TempDir(), "none"), nil)
	wantError(t, err, mapmatched.KindNotFound, "none")
	_, err = OpenIndex(t.Context(), t.TempDir(), nil)
	wantError(t, err, mapmatched.KindInvalid, "not a regular file")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = OpenIndex(ctx, testFile("flat_l2.faiss"), nil)
	wantError(t, err, mapmatched.KindDeadline)
}

// Every cut of a file is refused as damaged, and so is one byte too many.
func TestTruncatedFiles(t *testing.T) {
	for name := range goTypes {
		data := contents(t, name+".faiss")
		for _, n := range cuts(len(data)) {
			_, err := parse(data[:n])
			if want := map[bool]error{true: errForeign, false: errDamaged}[n < 4]; !errors.Is(err, want) {
				t.Fatalf("%s: the first %d of %d bytes: error %v", name, n, len(data), err)
			}
		}
		if _, err := parse(append(slices.Clone(data), 0)); !errors.Is(err, errDamaged) {
			t.Errorf("%s: with a byte more: error %v", name, err)
		}
	}
	path := file(t, "cut.faiss", contents(t, "hnsw_l2.faiss")[:3000])
	_, err := OpenIndex(t.Context(), path, &IndexOptions{Engine: EngineGo})
	wantError(t, err, mapmatched.KindCorrupt, "cut.faiss", "of 3000")
}

// cuts are all short lengths and some long ones.
func cuts(n int) (out []int) {
	for i := 1; i < n; i++ {
		if i < 400 || i%13 == 0 || i > n-100 {
			out = append(out, i)
		}
	}
	return out
}

// Whatever bytes are changed, opening and searching end with hits or an error.
func TestDamagedBytes(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for name := range goTypes {
		whole := contents(t, name+".faiss")
		for range 600 {
			data := slices.Clone(whole)
			for range 1 + r.IntN(3) {
				at := r.IntN(len(data))
				if r.IntN(2) == 0 {
					at = r.IntN(min(len(data), 300))
				}
				data[at] = []byte{0, 1, 0x7f, 0x80, 0xff, data[at] + 1}[r.IntN(6)]
			}
			exercise(t, data)
		}
	}
}

// exercise opens an index and uses it.
func exercise(t testing.TB, data []byte) {
	root, err := parse(data)
	if err != nil {
		return
	}
	if root.header().dimension > 4096 {
		return // only an empty index can have so many and be so short
	}
	for at := range min(root.len(), 100) {
		_ = root.label(at)
		if len(root.row(at)) != root.header().dimension {
			t.Fatalf("row %d has %d dimensions, want %d", at, len(root.row(at)), root.header().dimension)
		}
	}
	for _, k := range []int{1, 5} {
		hits, err := root.search(t.Context(), make([]float32, root.header().dimension), min(k, root.len()), nil)
		if err == nil && len(hits) > k {
			t.Fatalf("%d hits, want at most %d", len(hits), k)
		}
	}
}

func FuzzParse(f *testing.F) {
	entries, err := os.ReadDir("testdata")
	if err != nil {
		f.Fatal(err)
	}
	for _, e := range entries {
		if filepath.Ext(e.Name()) == ".faiss" {
			f.Add(contents(f, e.Name()))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) { exercise(t, data) })
}

// No length in a file makes the reader allocate more than the file justifies.
func TestNoAllocationByLengthAlone(t *testing.T) {
	huge := binary.LittleEndian.AppendUint64(nil, 1<<60-1)
	for _, name := range []string{"flat_l2", "idmap_ip", "hnsw_l2", "ivf_l2", "ivf_sparse"} {
		whole := contents(t, name+".faiss")
		for at := 0; at+8 <= len(whole); at += 1 + at/400 {
			data := slices.Clone(whole)
			copy(data[at:], huge)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, _ = parse(data) // it may or may not be damaged by that
			runtime.ReadMemStats(&after)
			if got := after.TotalAlloc - before.TotalAlloc; got > 1<<20 {
				t.Fatalf("%s: with a huge length at byte %d, %d bytes are allocated", name, at, got)
			}
		}
	}
}

// A file that is cut while it is open gives an error, not the end of the
// program.
func TestFileCutWhileOpen(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("what happens is up to the system")
	}
	path := written(t, MetricInnerProduct, vectors(4000, 16, 3), nil)
	x := opened(t, path, &IndexOptions{Engine: EngineGo})
	if err := os.Truncate(path, 4096); err != nil {
		t.Fatal(err)
	}
	_, err := x.Search(t.Context(), make([]float32, 16), 3)
	wantError(t, err, mapmatched.KindCorrupt, "was cut while it was open")
}

func TestClose(t *testing.T) {
	x := opened(t, testFile("idmap_ip.faiss"), nil)
	ids, err := x.IDs(t.Context())
	if err != nil || len(ids) != 60 || ids[0] != 1413 || ids[59] != 1000 {
		t.Errorf("IDs %v, error %v", ids, err)
	}
	for range 2 {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	}
	_, err = x.Search(t.Context(), make([]float32, 12), 1)
	wantError(t, err, mapmatched.KindUnavailable, "already closed")
	if !errors.Is(err, mapmatched.ErrClosed) {
		t.Errorf("%v is no ErrClosed", err)
	}
}
