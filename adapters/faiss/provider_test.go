package faiss

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/mapmatched/mmplug/graphbuild"
	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/mapmatched/adaptertest"
	"github.com/mapmatched/mmplug/mapmatched/registry"
)

// ownIDs are FAISS IDs in another order than the entries.
func ownIDs(n int) []int64 {
	ids := make([]int64, n)
	for i := range ids {
		ids[i] = int64((n - i) * 1000)
	}
	return ids
}

// conform runs the conformance suite on each kind of index.
func conform(t *testing.T, engine Engine) {
	for _, c := range []struct {
		name   string
		metric Metric
		mode   Mode
		own    bool
		cosine bool
	}{
		{"similarity", MetricInnerProduct, ModeSimilarity, false, false},
		{"distance", MetricL2, ModeDistance, false, false},
		{"cosine", MetricInnerProduct, ModeSimilarity, false, true},
		{"similarity of IDs", MetricInnerProduct, ModeSimilarity, true, false},
		{"distance of IDs", MetricL2, "", true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			open := func(corpus adaptertest.Corpus, opts Options) (mapmatched.CandidateProvider, error) {
				var ids []int64
				if c.own {
					ids = ownIDs(len(corpus.Chunks))
				}
				entries := make([]Entry, len(corpus.Chunks))
				for i, chunk := range corpus.Chunks {
					entries[i] = Entry{ID: chunk.ID, Text: chunk.Text, Metadata: json.RawMessage(`{"section":"s"}`)}
					if c.own {
						entries[i].FaissID = &ids[i]
					}
				}
				opts.Mode, opts.Cosine, opts.Engine = c.mode, c.cosine, engine
				x, err := OpenIndex(t.Context(), written(t, c.metric, corpus.Vectors, ids), &opts.IndexOptions)
				if err != nil {
					return nil, err
				}
				p, err := NewProvider(t.Context(), x, entries, &opts)
				if err != nil {
					return nil, err
				}
				return p, nil
			}
			adaptertest.Provider(t, adaptertest.ProviderHarness{
				AlwaysHits: true,
				New: func(corpus adaptertest.Corpus) (mapmatched.CandidateProvider, error) {
					return open(corpus, Options{Embedder: corpus})
				},
			})
		})
	}
}

func TestConformance(t *testing.T) { conform(t, EngineGo) }

// provided makes a provider over a flat index.
func provided(t testing.TB, metric Metric, rows [][]float32, opts *Options) *Provider {
	t.Helper()
	p, err := NewProvider(t.Context(), opened(t, written(t, metric, rows, nil), nil), chunks(len(rows)), opts)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestModes(t *testing.T) {
	for _, c := range []struct {
		metric Metric
		opts   Options
		parts  []string
	}{
		{MetricInnerProduct, Options{}, nil},
		{MetricInnerProduct, Options{Mode: ModeSimilarity}, nil},
		{MetricInnerProduct, Options{Mode: ModeDistance}, []string{"inner product", `mode "distance"`, `use mode "similarity"`}},
		{MetricL2, Options{}, nil},
		{MetricL2, Options{Mode: ModeDistance}, nil},
		{MetricL2, Options{Mode: ModeSimilarity}, []string{"L2", `mode "similarity"`, `use mode "distance"`}},
		{MetricL2, Options{Cosine: true}, []string{"L2", `mode "similarity"`}},
		{MetricL2, Options{Mode: "cosine"}, []string{`Mode is "cosine"`}},
		{MetricInnerProduct, Options{Mode: ModeDistance, Cosine: true}, []string{"Cosine is a similarity"}},
	} {
		_, err := NewProvider(t.Context(), opened(t, written(t, c.metric, [][]float32{{1, 0}}, nil), nil), chunks(1), &c.opts)
		if c.parts == nil {
			if err != nil {
				t.Errorf("%v, %+v: %v", c.metric, c.opts, err)
			}
			continue
		}
		wantError(t, err, mapmatched.KindInvalid, c.parts...)
	}
}

func TestScoresByMode(t *testing.T) {
	rows := [][]float32{{3, 4}, {0.6, 0.8}, {0, 0}}
	for _, c := range []struct {
		metric Metric
		query  []float32
		want   string
	}{
		{MetricInnerProduct, []float32{3, 4}, "c0 25 c1 5 c2 0 "},
		{MetricL2, []float32{0, 0}, "c2 0 c1 -1 c0 -25 "},
	} {
		got := ""
		candidates, err := provided(t, c.metric, rows, nil).Candidates(t.Context(), mapmatched.Query{Vector: c.query}, 5)
		for _, x := range candidates {
			got += fmt.Sprintf("%s %.6g ", x.ChunkID, x.Score)
		}
		if err != nil || got != c.want {
			t.Errorf("%v: %s, error %v, want %s", c.metric, got, err, c.want)
		}
	}
}

func TestCosineNeedsUnitVectors(t *testing.T) {
	p := provided(t, MetricInnerProduct, [][]float32{{1, 0}, {0.6, 0.8}}, &Options{Cosine: true})
	got, err := p.Candidates(t.Context(), mapmatched.Query{Vector: []float32{0, 20}}, 1)
	if err != nil || len(got) != 1 || got[0].ChunkID != "c1" || math.Abs(got[0].Score-0.8) > 1e-6 {
		t.Errorf("%v, error %v, want c1 with 0.8", got, err)
	}
	_, err = p.Candidates(t.Context(), mapmatched.Query{Vector: []float32{0, 0}}, 1)
	wantError(t, err, mapmatched.KindInvalid, "query vector is zero")
	_, err = NewProvider(t.Context(), opened(t, written(t, MetricInnerProduct, [][]float32{{1, 0}, {3, 4}}, nil), nil), chunks(2), &Options{Cosine: true})
	wantError(t, err, mapmatched.KindInvalid, "length 1", `chunk "c1" has length 5`)
}

func TestDimensionMismatchNamesBothAndTheModel(t *testing.T) {
	p := provided(t, MetricL2, [][]float32{{1, 0, 0}}, &Options{Model: "minilm"})
	_, err := p.Candidates(t.Context(), mapmatched.Query{Vector: make([]float32, 5)}, 1)
	wantError(t, err, mapmatched.KindInvalid, "has 5 dimensions", "has 3", `model "minilm"`)
	_, err = p.Candidates(t.Context(), mapmatched.Query{Vector: []float32{1, float32(math.Inf(1)), 0}}, 1)
	wantError(t, err, mapmatched.KindInvalid, "component 1 is +Inf")
}

func TestCountsAreChecked(t *testing.T) {
	_, err := NewProvider(t.Context(), opened(t, testFile("flat_l2.faiss"), nil), chunks(59), nil)
	wantError(t, err, mapmatched.KindInvalid, "60 vectors", "59 IDs")
	entries := chunks(60)
	entries[7].ID = "c3"
	_, err = NewProvider(t.Context(), opened(t, testFile("flat_l2.faiss"), nil), entries, nil)
	wantError(t, err, mapmatched.KindInvalid, "entries 3 and 7", `"c3"`)
	entries[7].ID = ""
	_, err = NewProvider(t.Context(), opened(t, testFile("flat_l2.faiss"), nil), entries, nil)
	wantError(t, err, mapmatched.KindInvalid, "entry 7: the chunk ID is empty")
	entries = chunks(60)
	entries[7].Metadata = json.RawMessage(`{`)
	_, err = NewProvider(t.Context(), opened(t, testFile("flat_l2.faiss"), nil), entries, nil)
	wantError(t, err, mapmatched.KindInvalid, `"c7" is not JSON`)
}

// An index with IDs of its own needs entries that have them.
func TestOwnIDs(t *testing.T) {
	for _, name := range []string{"idmap_ip", "ivf_ids", "idmap_hnsw"} {
		path := testFile(name + ".faiss")
		_, err := NewProvider(t.Context(), opened(t, path, nil), chunks(60), nil)
		wantError(t, err, mapmatched.KindInvalid, "FAISS ID 1000", "write faiss_id on each line")
		entries := chunks(60)
		for i := range entries {
			entries[i].FaissID = faissID(1000 + 7*int64(i))
		}
		p, err := NewProvider(t.Context(), opened(t, path, nil), entries, nil)
		if err != nil {
			t.Fatal(err)
		}
		want, err := p.index.Search(t.Context(), expected(t).Queries[0], 4)
		if err != nil {
			t.Fatal(err)
		}
		got, err := p.Candidates(t.Context(), mapmatched.Query{Vector: expected(t).Queries[0]}, 4)
		if err != nil || len(got) != len(want) {
			t.Fatalf("%v, error %v", got, err)
		}
		for i, c := range got {
			if c.ChunkID != fmt.Sprintf("c%d", (want[i].ID-1000)/7) {
				t.Errorf("candidate %d is %s for FAISS ID %d", i, c.ChunkID, want[i].ID)
			}
		}
		entries[4].FaissID = faissID(5)
		_, err = NewProvider(t.Context(), opened(t, path, nil), entries, nil)
		wantError(t, err, mapmatched.KindInvalid, "FAISS ID 1028", "no entry has that faiss_id")
		entries[4].FaissID = entries[3].FaissID
		_, err = NewProvider(t.Context(), opened(t, path, nil), entries, nil)
		wantError(t, err, mapmatched.KindInvalid, "entries 3 and 4 have the FAISS ID 1021")
		entries[4].FaissID = nil
		_, err = NewProvider(t.Context(), opened(t, path, nil), entries, nil)
		wantError(t, err, mapmatched.KindInvalid, "some entries have a FAISS ID")
	}
	// The same ID twice is one chunk with two vectors.
	data := contents(t, "idmap_ip.faiss")
	copy(data[len(data)-8:], data[len(data)-16:])
	_, err := NewProvider(t.Context(), opened(t, file(t, "x.faiss", data), nil), chunks(60), nil)
	wantError(t, err, mapmatched.KindInvalid, "FAISS ID 1007 twice")
	copy(data[len(data)-8:], "\xff\xff\xff\xff\xff\xff\xff\xff")
	_, err = OpenIndex(t.Context(), file(t, "x.faiss", data), &IndexOptions{Engine: EngineGo})
	wantError(t, err, mapmatched.KindCorrupt, "-1 at position 59")
}

// Hits that IVF misses, which FAISS pads with the ID −1, are dropped and
// counted.
func missingAreCounted(t *testing.T, engine Engine) {
	x := opened(t, testFile("ivf_l2.faiss"), &IndexOptions{Nprobe: 1, Engine: engine})
	p, err := NewProvider(t.Context(), x, chunks(60), nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := p.Candidates(t.Context(), mapmatched.Query{Vector: expected(t).Queries[0]}, 1000)
	if err != nil {
		t.Fatal(err)
	}
	if n := int64(len(got)); n == 0 || n == 60 || p.Stats().Missing != 60-n {
		t.Errorf("%d candidates and %d missing, want 60 in all", n, p.Stats().Missing)
	}
}

func TestMissingAreCounted(t *testing.T) { missingAreCounted(t, EngineGo) }

// asked counts its calls and answers as told.
type asked struct {
	answer [][]float32
	err    error
}

func (a asked) Embed(context.Context, []string) ([][]float32, error) { return a.answer, a.err }

func TestEmbedder(t *testing.T) {
	rows := [][]float32{{1, 0}, {0, 1}}
	ask := func(e mapmatched.Embedder, text string) ([]mapmatched.Candidate, error) {
		return provided(t, MetricInnerProduct, rows, &Options{Embedder: e}).Candidates(t.Context(), mapmatched.Query{Text: text, Turn: 3}, 1)
	}
	if got, err := ask(asked{answer: [][]float32{{0, 2}}}, "north"); err != nil || len(got) != 1 || got[0].ChunkID != "c1" {
		t.Errorf("%v, error %v", got, err)
	}
	if got, err := ask(nil, "  "); err != nil || len(got) != 0 {
		t.Errorf("an empty query: %v, error %v", got, err)
	}
	_, err := ask(nil, "north")
	wantError(t, err, mapmatched.KindInvalid, "vector of turn 3 is missing")
	_, err = ask(asked{}, "north")
	wantError(t, err, mapmatched.KindInvalid, "0 vectors for 1 text")
	broken := errors.New("no model")
	_, err = ask(asked{err: broken}, "north")
	wantError(t, err, mapmatched.KindUnavailable, "no model")
	if !errors.Is(err, broken) {
		t.Errorf("%v hides its cause", err)
	}
}

// Vectors come from every type that the Go code reads, IDMap and IVF included.
func TestVectors(t *testing.T) {
	for name := range goTypes {
		rows, ids := stored(t, name+".faiss")
		entries := chunks(len(rows))
		for i := range entries {
			entries[i].FaissID = &ids[len(ids)-1-i] // another order than the file
		}
		p, err := NewProvider(t.Context(), opened(t, testFile(name+".faiss"), nil), entries, &Options{Vectors: true})
		if err != nil {
			t.Fatal(err)
		}
		got, err := p.Vectors(t.Context(), []string{"c0", "none", "c2"})
		if err != nil || len(got) != 3 || !slices.Equal(got[0], rows[len(rows)-1]) || got[1] != nil || !slices.Equal(got[2], rows[len(rows)-3]) {
			t.Errorf("%s: %v, error %v", name, got, err)
		}
	}
}

// The nearest-neighbour graph of an index is that of its vectors, and holds the
// index open.
func TestGraphOfIndex(t *testing.T) {
	rows, ids := stored(t, "ivf_ip.faiss")
	order := make([][]float32, len(rows))
	for i, id := range ids {
		order[id] = rows[i]
	}
	names := make([]string, len(rows))
	for i, e := range chunks(len(rows)) {
		names[i] = e.ID
	}
	want, err := graphbuild.KNN(t.Context(), names, order, &graphbuild.KNNOptions{K: 4})
	if err != nil {
		t.Fatal(err)
	}
	p, err := NewProvider(t.Context(), opened(t, testFile("ivf_ip.faiss"), nil), chunks(60), &Options{Vectors: true})
	if err != nil {
		t.Fatal(err)
	}
	stored, _, err := graphbuild.StoreKNN(t.Context(), p, nil, &graphbuild.KNNOptions{K: 4})
	if err != nil || !slices.Equal(stored, want) {
		t.Errorf("the store has other edges, error %v", err)
	}
	m, err := p.Matrix(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	got, _, err := graphbuild.KNNBuild(t.Context(), m, &graphbuild.KNNOptions{K: 4})
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("the matrix has other edges, error %v", err)
	}
	for range 2 {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
	_, err = p.Matrix(t.Context())
	wantError(t, err, mapmatched.KindUnavailable, "already closed")
}

func TestRegistry(t *testing.T) {
	rows := [][]float32{{0.6, 0.8}, {1, 0}}
	path := written(t, MetricInnerProduct, rows, nil)
	ids := file(t, "ids.jsonl", []byte("{\"id\":\"a\",\"text\":\"A\",\"metadata\":{\"page\":3}}\n\"b\"\n"))
	open := func(suffix string) (mapmatched.CandidateProvider, error) {
		return registry.OpenProvider(t.Context(), "faiss:"+path+suffix)
	}
	p, err := open("?ids=" + ids + "&mode=similarity&cosine=true&vectors=true&engine=go&threads=2&model=m")
	if err != nil {
		t.Fatal(err)
	}
	got, err := p.Candidates(t.Context(), mapmatched.Query{Vector: []float32{0, 1}}, 1)
	if err != nil || len(got) != 1 || got[0].ChunkID != "a" || got[0].Text != "A" || got[0].Metadata["page"] != int64(3) {
		t.Errorf("%+v, error %v", got, err)
	}
	if err := p.(*Provider).Close(); err != nil {
		t.Error(err)
	}
	for suffix, part := range map[string]string{
		"":                               "ids is missing",
		"?ids=" + ids + "&mode=distance": `use mode "similarity"`,
		"?ids=" + ids + "&mode=cosine":   "not one of similarity, distance",
		"?ids=" + ids + "&nprob=3":       "unknown",
		"?ids=" + ids + "&nprobe=3":      "has no lists",
		"?ids=" + ids + "&nprobe=0":      "not an integer from 1",
		"?ids=" + ids + "&threads=0":     "not an integer from 1 to 1024",
		"?ids=" + ids + ".none":          ids + ".none",
		"?ids=" + path:                   "line 1",
	} {
		p, err := open(suffix)
		if p != nil || err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%s: provider %v, error %v, want %q", suffix, p, err, part)
		}
	}
	if _, err := registry.OpenProvider(t.Context(), "faiss://host/x?ids="+ids); mapmatched.KindOf(err) != mapmatched.KindInvalid {
		t.Errorf("error %v", err)
	}
}
