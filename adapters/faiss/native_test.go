//go:build faiss && cgo

package faiss

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mapmatched/mmplug/mapmatched"
)

// nativeTypes are the test indexes that libfaiss alone reads, and their types.
var nativeTypes = map[string]string{
	"pq": "IndexPQ", "sq8": "IndexScalarQuantizer", "pretransform": "IndexPreTransform(IndexFlatL2)", "lsh": "IndexLSH",
	"pre_ivf": "IndexPreTransform(IndexIVFFlat)", "spectral": "IndexIVFSpectralHash",
	"ivf_sq8": "IndexIVFScalarQuantizer", "flat_l1": "IndexFlat",
}

func TestNativeConformance(t *testing.T) { conform(t, EngineNative) }

func TestNativeMissingAreCounted(t *testing.T) { missingAreCounted(t, EngineNative) }

// What Python finds is what this engine finds.
func TestNativeSearch(t *testing.T) {
	e := expected(t)
	for name, want := range e.Indexes {
		x := opened(t, testFile(name+".faiss"), &IndexOptions{Engine: EngineNative})
		info := x.Info()
		if info.Count != want.Count || info.Dimension != want.Dimension || info.Metric != want.Metric || info.Engine != EngineNative || info.Library == "" {
			t.Errorf("%s: info %+v", name, info)
		}
		if kind, only := nativeTypes[name]; only && info.Type != kind {
			t.Errorf("%s: type %s, want %s", name, info.Type, kind)
		}
		all, err := x.SearchBatch(t.Context(), e.Queries, len(want.IDs[0]))
		if err != nil {
			t.Fatal(err)
		}
		for i, q := range e.Queries {
			hits, err := x.Search(t.Context(), q, len(want.IDs[0]))
			if err != nil {
				t.Fatal(err)
			}
			if name == "hnsw_narrow" { // asking for one more looks farther
				continue
			}
			agree(t, fmt.Sprintf("%s, query %d", name, i), hits, want.Metric, want.IDs[i], want.Scores[i])
			agree(t, fmt.Sprintf("%s, query %d of a batch", name, i), all[i], want.Metric, want.IDs[i], want.Scores[i])
		}
	}
}

// EngineAuto takes the Go code where it can and libfaiss where it has to.
func TestAutoEngine(t *testing.T) {
	for name := range goTypes {
		if x := opened(t, testFile(name+".faiss"), nil); x.Info().Engine != EngineGo {
			t.Errorf("%s is read by %s", name, x.Info().Engine)
		}
	}
	for name := range nativeTypes {
		if x := opened(t, testFile(name+".faiss"), nil); x.Info().Engine != EngineNative {
			t.Errorf("%s is read by %s", name, x.Info().Engine)
		}
	}
}

// Both readers give the same vectors, IDs and, on larger indexes, hits.
func TestReadersAgree(t *testing.T) {
	for name := range goTypes {
		path := testFile(name + ".faiss")
		a, b := opened(t, path, &IndexOptions{Engine: EngineGo}), opened(t, path, &IndexOptions{Engine: EngineNative})
		if a.Info().Type != b.Info().Type && name[:3] != "ivf" && name != "idmap_ivf" {
			t.Errorf("%s: types %s and %s", name, a.Info().Type, b.Info().Type)
		}
		byID := func(x *Index) map[int64]string {
			out := map[int64]string{}
			err := x.do(t.Context(), "vectors", func() error {
				ids, rows, err := x.vectors(t.Context())
				for at := range x.Info().Count {
					out[idAt(ids, at)] = fmt.Sprint(rows(at))
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			return out
		}
		if va, vb := byID(a), byID(b); len(va) != a.Info().Count || fmt.Sprint(va) != fmt.Sprint(vb) {
			t.Errorf("%s: the readers give other vectors", name)
		}
	}
	for _, metric := range []Metric{MetricInnerProduct, MetricL2} {
		path := written(t, metric, vectors(5000, 48, 8), nil)
		a, b := opened(t, path, &IndexOptions{Engine: EngineGo}), opened(t, path, &IndexOptions{Engine: EngineNative})
		queries := vectors(40, 48, 9)
		want, err := a.SearchBatch(t.Context(), queries, 30)
		if err != nil {
			t.Fatal(err)
		}
		got, err := b.SearchBatch(t.Context(), queries, 30)
		if err != nil {
			t.Fatal(err)
		}
		for i := range queries {
			for j := range got[i] {
				if math.Abs(got[i][j].Score-want[i][j].Score) > tolerance {
					t.Fatalf("%v, query %d, hit %d: %v and %v", metric, i, j, got[i][j], want[i][j])
				}
			}
		}
	}
}

// Equal scores are ordered by ID though libfaiss cuts them as it likes.
func TestNativeTies(t *testing.T) {
	row := []float32{1, 2, 3}
	rows := make([][]float32, 200)
	for i := range rows {
		rows[i] = row
	}
	rows[150] = []float32{2, 4, 6}
	ids := make([]int64, len(rows))
	for i := range ids {
		ids[i] = int64((i*31 + 7) % 200)
	}
	x := opened(t, written(t, MetricInnerProduct, rows, ids), &IndexOptions{Engine: EngineNative})
	hits, err := x.SearchBatch(t.Context(), [][]float32{row, row}, 20)
	if err != nil {
		t.Fatal(err)
	}
	for _, found := range hits {
		want := []int64{ids[150]}
		for id := int64(0); len(want) < 20; id++ {
			if id != ids[150] {
				want = append(want, id)
			}
		}
		var got []int64
		for _, h := range found {
			got = append(got, h.ID)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("IDs %v, want %v", got, want)
		}
	}
}

func TestNativeParameters(t *testing.T) {
	for _, c := range []struct {
		name string
		opts IndexOptions
		part string
	}{
		{"ivf_l2", IndexOptions{Nprobe: 5}, ""},
		{"idmap_ivf", IndexOptions{Nprobe: 5}, ""},
		{"hnsw_l2", IndexOptions{EfSearch: 100}, ""},
		{"flat_l2", IndexOptions{Nprobe: 5}, "Nprobe is 5 and has no effect on the IndexFlatL2"},
		{"ivf_sq8", IndexOptions{EfSearch: 5}, "EfSearch is 5 and has no effect"},
	} {
		c.opts.Engine, c.opts.Threads = EngineNative, 2
		x, err := OpenIndex(t.Context(), testFile(c.name+".faiss"), &c.opts)
		if c.part != "" {
			wantError(t, err, mapmatched.KindInvalid, c.part)
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		flat := expected(t).Indexes["flat_l2"]
		hits, err := x.Search(t.Context(), expected(t).Queries[0], 3)
		if err != nil || len(hits) != 3 || math.Abs(-hits[2].Score-*flat.Scores[0][2]) > tolerance {
			t.Errorf("%s: %v, error %v", c.name, hits, err)
		}
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Exceptions become errors, and what cannot give vectors says so when opened.
func TestNativeErrors(t *testing.T) {
	for _, engine := range []Engine{EngineAuto, EngineNative} {
		for _, n := range []int{4, 20, 36, 37, 70, 200, 900} {
			_, err := OpenIndex(t.Context(), file(t, "cut.faiss", contents(t, "pq.faiss")[:n]), &IndexOptions{Engine: engine})
			wantError(t, err, mapmatched.KindCorrupt, "cut.faiss", "IndexPQ")
			if n >= 37 { // the header is whole
				wantError(t, err, mapmatched.KindCorrupt, "libfaiss 1.", "read error", `"IxPq"`)
			}
			if errors.Is(err, ErrUnsupported) {
				t.Errorf("%d bytes: %v is an ErrUnsupported", n, err)
			}
		}
	}
	_, err := OpenIndex(t.Context(), file(t, "cut.faiss", contents(t, "pq.faiss")[:200]), nil)
	wantError(t, err, mapmatched.KindCorrupt, `not supported by the Go code: it does not read IndexPQ ("IxPq")`)
	newer := []byte(string(contents(t, "pq.faiss")))
	copy(newer, "Ixrq") // of FAISS 1.11
	_, err = OpenIndex(t.Context(), file(t, "newer.faiss", newer), nil)
	wantError(t, err, mapmatched.KindInvalid, "newer.faiss", "IndexRaBitQ", `"Ixrq"`, "not recognized", "newer version")
	if !errors.Is(err, ErrUnsupported) {
		t.Errorf("%v is no ErrUnsupported", err)
	}
	for _, opts := range []*IndexOptions{{Engine: EngineGo}, {Exact: true}} {
		_, err = OpenIndex(t.Context(), testFile("pq.faiss"), opts)
		wantError(t, err, mapmatched.KindInvalid, `"IxPq"`, "leave out Exact and Engine go")
		if err != nil && strings.Contains(err.Error(), "-tags") {
			t.Errorf("libfaiss is there, and the error says how to have it: %v", err)
		}
	}
	_, err = OpenIndex(t.Context(), testFile("untrained.faiss"), &IndexOptions{Engine: EngineNative})
	wantError(t, err, mapmatched.KindInvalid, "is not trained")
	for _, name := range []string{"flat_l2", "pq", "sq8", "ivf_sq8", "pretransform", "pre_ivf"} {
		p, err := NewProvider(t.Context(), opened(t, testFile(name+".faiss"), &IndexOptions{Engine: EngineNative}), chunks(60), &Options{Vectors: true})
		if err != nil {
			t.Fatal(err)
		}
		original, ids := stored(t, "flat_l2.faiss")
		got, err := p.Vectors(t.Context(), []string{"c0", "c59"})
		if err != nil || ids[59] != 59 {
			t.Fatal(err)
		}
		for i, at := range []int{0, 59} {
			if d := squaredL2(got[i], original[at]); d > 9 { // pq keeps 16 bits of 12 numbers
				t.Errorf("%s: vector %d is off by %v", name, at, math.Sqrt(d))
			}
		}
	}
	data := contents(t, "binary.faiss")
	_, err = OpenIndex(t.Context(), file(t, "bits.faiss", data), &IndexOptions{Engine: EngineNative})
	wantError(t, err, mapmatched.KindInvalid, "IndexBinaryFlat")
	_, err = NewProvider(t.Context(), opened(t, testFile("spectral.faiss"), nil), chunks(60), &Options{Vectors: true})
	wantError(t, err, mapmatched.KindInvalid, "spectral.faiss", "vectors are needed", "IndexIVFSpectralHash cannot give its vectors")
	if !errors.Is(err, ErrUnsupported) {
		t.Errorf("%v is no ErrUnsupported", err)
	}
	_, err = NewProvider(t.Context(), opened(t, testFile("ivf_ids.faiss"), &IndexOptions{Engine: EngineNative}), chunks(60), nil)
	wantError(t, err, mapmatched.KindInvalid, "write faiss_id on each line")
}

// Searches run at the same time, beside Close.
func TestNativeConcurrentUse(t *testing.T) {
	x := opened(t, testFile("ivf_sq8.faiss"), &IndexOptions{Nprobe: 4})
	queries := expected(t).Queries
	want, err := x.SearchBatch(t.Context(), queries, 5)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for worker := range 8 {
		wg.Go(func() {
			for n := range 50 {
				i := (worker + n) % len(queries)
				got, err := x.Search(t.Context(), queries[i], 5)
				if errors.Is(err, mapmatched.ErrClosed) {
					return
				}
				if err != nil || !slices.Equal(got, want[i]) {
					t.Errorf("query %d: %v, error %v", i, got, err)
					return
				}
				if worker == 0 && n == 40 {
					if err := x.Close(); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
}

// A header that cannot be is found before libfaiss trusts it, and numbers of
// vectors that do not fit the data before it is searched.
func TestNativeCounts(t *testing.T) {
	const dimensionAt, countAt = 4, 8
	for _, engine := range []Engine{EngineAuto, EngineNative} {
		for name := range nativeTypes {
			for at, values := range map[int][]uint64{dimensionAt: {0, math.MaxUint32}, countAt: {0, 59, 61, 1 << 40, math.MaxUint64}} {
				for _, v := range values {
					data := []byte(string(contents(t, name+".faiss")))
					if at == dimensionAt {
						binary.LittleEndian.PutUint32(data[at:], uint32(v))
					} else {
						binary.LittleEndian.PutUint64(data[at:], v)
					}
					_, err := OpenIndex(t.Context(), file(t, "x.faiss", data), &IndexOptions{Engine: engine})
					wantError(t, err, mapmatched.KindCorrupt, "x.faiss")
				}
			}
		}
		_, err := OpenIndex(t.Context(), file(t, "x.faiss", append([]byte("null"), make([]byte, 60)...)), &IndexOptions{Engine: engine})
		wantError(t, err, mapmatched.KindCorrupt, "0 dimensions")
	}
}

// One search uses one OpenMP thread, or as many as the options say, whatever
// the default of OpenMP is.
func TestNativeThreads(t *testing.T) {
	for _, c := range []struct{ threads, want int }{{0, 1}, {1, 1}, {3, 3}} {
		x := opened(t, testFile("flat_l2.faiss"), &IndexOptions{Engine: EngineNative, Threads: c.threads})
		_, _, got, err := x.engine.(*nativeEngine).call(expected(t).Queries, 3)
		if err != nil || got != c.want {
			t.Errorf("Threads %d: OpenMP has %d threads, want %d, error %v", c.threads, got, c.want, err)
		}
	}
}
