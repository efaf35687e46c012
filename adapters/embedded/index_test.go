package embedded

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
	"testing"

	"github.com/mapmatched/mmplug/adapters/embedded/lexical"
	"github.com/mapmatched/mmplug/mapmatched"
)

func TestRoundTrip(t *testing.T) {
	in := small()
	x := opened(t, write(t, in), nil)

	got, err := x.Chunks(t.Context(), []string{"home", "unknown", "hmm", "jumps", "noise"})
	want := []mapmatched.Chunk{in.Chunks[3], in.Chunks[0], in.Chunks[2], in.Chunks[1]}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("Chunks = %v, %v, want %v", got, err, want)
	}
	ids, err := x.ChunkIDs(t.Context())
	if err != nil || !slices.Equal(ids, []string{"hmm", "noise", "jumps", "home"}) {
		t.Errorf("ChunkIDs = %v, %v", ids, err)
	}
	wantEdges := []mapmatched.Edge{in.Edges[0], in.Edges[2], in.Edges[1]} // by positions
	if edges := edgesOf(t, x); !slices.Equal(edges, wantEdges) {
		t.Errorf("Edges = %v, want %v", edges, wantEdges)
	}
	rows, err := x.Vectors(t.Context(), []string{"hmm", "unknown", "noise"})
	if err != nil || !reflect.DeepEqual(rows, [][]float32{{0.6, 0.8, 0}, nil, {0, 1, 0}}) {
		t.Errorf("Vectors = %v, %v", rows, err)
	}
	m := x.Manifest()
	if m.Tool != "mmplug test" || m.Source != in.Source || m.ChunkPolicy != in.ChunkPolicy || *m.Vectors != in.VectorIdentity {
		t.Errorf("manifest %+v", m)
	}
	if m.Graph.MaximumDistance != 4 || m.Graph.Directed || !slices.Equal(m.Graph.EdgeTypes, []EdgeTypeCount{{mapmatched.EdgeLink, 1}, {mapmatched.EdgeNext, 2}}) {
		t.Errorf("graph %+v", m.Graph)
	}
	if c := m.Counts; c.Chunks != 4 || c.Documents != 2 || c.Edges != 3 || c.Vectors != 4 {
		t.Errorf("counts %+v", c)
	}
	if err := x.Health(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestCandidates(t *testing.T) {
	in := small()
	x := opened(t, write(t, in), nil)
	for _, c := range []struct {
		query string
		limit int
		want  []string
	}{
		{"jumps", 10, []string{"jumps"}},
		{"What is noise?", 10, []string{"noise"}},
		{"故乡", 10, []string{"home"}},
		{"東京", 10, []string{}},
		{"map matching", 10, []string{"jumps", "hmm", "noise"}}, // the title
		{"map matching", 1, []string{"jumps"}},
		{"", 10, []string{}},
		{"the", 10, []string{}},
		{"noise", 0, []string{}},
		{"noise", -3, []string{}},
	} {
		got := candidates(t, x, mapmatched.Query{Text: c.query}, c.limit)
		if got == nil || !slices.Equal(idsOf(got), c.want) {
			t.Errorf("%q limit %d finds %q, want %q", c.query, c.limit, idsOf(got), c.want)
		}
	}
	got := candidates(t, x, mapmatched.Query{Text: "noise"}, 1)[0]
	meta := map[string]any{"document": "matching.md", "title": "Map matching", "section": "Model > Noise", "ordinal": 1, "start": 60, "end": 60 + len(in.Chunks[1].Text)}
	if got.Text != in.Chunks[1].Text || !reflect.DeepEqual(got.Metadata, meta) || !(got.Score > 0) {
		t.Errorf("candidate %+v", got)
	}
}

// Fields decides what is found, and the manifest records it.
func TestFields(t *testing.T) {
	for _, c := range []struct {
		fields []Field
		query  string
		want   []string
	}{
		{nil, "transitions", []string{"jumps"}},
		{[]Field{FieldText}, "matching", []string{}},
		{[]Field{FieldTitle}, "matching", []string{"hmm", "noise", "jumps"}},
		{[]Field{FieldSection}, "noise", []string{"noise"}},
		{[]Field{}, "noise", []string{}},
	} {
		dir := filepath.Join(t.TempDir(), "index")
		if err := Write(t.Context(), dir, small(), &WriteOptions{Fields: c.fields}); err != nil {
			t.Fatal(err)
		}
		x := opened(t, dir, nil)
		if got := idsOf(candidates(t, x, mapmatched.Query{Text: c.query}, 10)); !slices.Equal(got, c.want) {
			t.Errorf("fields %q: %q finds %q, want %q", c.fields, c.query, got, c.want)
		}
		want := c.fields
		if want == nil {
			want = DefaultFields()
		}
		if got := x.Manifest().Lexical.Fields; !slices.Equal(got, want) {
			t.Errorf("the manifest says fields %q, want %q", got, want)
		}
	}
}

// ScoreChunks gives the scores of Candidates with the same bits, in both arms.
func TestScoreChunksEqualsCandidates(t *testing.T) {
	in := large(300, 30, 5)
	in.Vectors = vectors(300, 19, 5)
	in.VectorIdentity = VectorIdentity{Provider: "test", Model: "random"}
	dir := write(t, in)
	for _, arm := range []Arm{ArmLexical, ArmDense} {
		x := opened(t, dir, &Options{Arm: arm})
		for i := range 20 {
			q := mapmatched.Query{Text: large(1, 6, uint64(100+i)).Chunks[0].Text, Vector: vectors(1, 19, uint64(i))[0]}
			found := candidates(t, x, q, 300)
			if len(found) == 0 {
				t.Fatalf("%s: nothing found for %q", arm, q.Text)
			}
			scored, err := x.ScoreChunks(t.Context(), q, append([]string{"unknown"}, idsOf(found)...))
			if err != nil || len(scored) != len(found) {
				t.Fatalf("%s: %d scores for %d chunks, %v", arm, len(scored), len(found), err)
			}
			for j, s := range scored {
				if s.ChunkID != found[j].ChunkID || s.Score != found[j].Score {
					t.Fatalf("%s: ScoreChunks gives %v, Candidates %v %v", arm, s, found[j].ChunkID, found[j].Score)
				}
			}
		}
	}
	x := opened(t, dir, nil)
	scored, err := x.ScoreChunks(t.Context(), mapmatched.Query{Text: "absent"}, []string{"d0#0"})
	if err != nil || !slices.Equal(scored, []mapmatched.Scored{{ChunkID: "d0#0", Score: 0}}) {
		t.Errorf("a known chunk without the words scores %v, %v", scored, err)
	}
}

func TestSearchTermsAndIDF(t *testing.T) {
	dir := write(t, small())
	for _, arm := range []Arm{ArmLexical, ArmDense} {
		x := opened(t, dir, &Options{Arm: arm})
		got, err := x.SearchTerms(t.Context(), []WeightedTerm{{Term: "noise", Weight: 2}}, 5)
		if err != nil || !slices.Equal(idsOf(got), []string{"noise"}) {
			t.Fatalf("SearchTerms = %v, %v", got, err)
		}
		if idf, known := x.IDF("noise"); !known || idf != lexical.IDF(4, 1) {
			t.Errorf("IDF(noise) = %v, %v, want %v", idf, known, lexical.IDF(4, 1))
		}
		if idf, known := x.IDF("absent"); known || idf != 0 {
			t.Errorf("IDF(absent) = %v, %v", idf, known)
		}
		_, err = x.SearchTerms(t.Context(), []WeightedTerm{{Term: "noise", Weight: -1}}, 5)
		wantError(t, err, mapmatched.KindInvalid, "noise", "-1")
	}
}

func TestEmptyIndex(t *testing.T) {
	x := opened(t, write(t, Input{}), nil)
	if got := candidates(t, x, mapmatched.Query{Text: "anything"}, 10); len(got) != 0 {
		t.Errorf("an empty index finds %v", got)
	}
	if edges := edgesOf(t, x); len(edges) != 0 {
		t.Errorf("edges %v", edges)
	}
	if v, err := x.Vectors(t.Context(), []string{"a"}); err != nil || len(v) != 1 || v[0] != nil {
		t.Errorf("vectors %v, %v", v, err)
	}
	if d := x.Manifest().Graph.MaximumDistance; d != mapmatched.DefaultMaximumDistance {
		t.Errorf("maximum distance %v", d)
	}
}

func TestEdgesAreStoredOnce(t *testing.T) {
	edge := func(from, to string, weight float64, typ mapmatched.EdgeType) mapmatched.Edge {
		return mapmatched.Edge{From: from, To: to, Weight: weight, Type: typ}
	}
	in := small()
	in.Edges = []mapmatched.Edge{
		edge("noise", "hmm", 3, "next"), edge("hmm", "noise", 2, "next"), edge("hmm", "noise", 5, "next"),
		edge("hmm", "noise", 7, "link"), edge("hmm", "hmm", 1, "section"),
	}
	x := opened(t, write(t, in), nil)
	if got, want := edgesOf(t, x), []mapmatched.Edge{edge("hmm", "noise", 7, "link"), edge("hmm", "noise", 2, "next")}; !slices.Equal(got, want) {
		t.Errorf("undirected %v, want %v", got, want)
	}
	if got := x.Manifest().Graph.EdgeTypes; !slices.Equal(got, []EdgeTypeCount{{"link", 1}, {"next", 1}}) {
		t.Errorf("edge types %v", got)
	}
	in.Directed = true
	x = opened(t, write(t, in), nil)
	if got, want := edgesOf(t, x), []mapmatched.Edge{edge("hmm", "noise", 7, "link"), edge("hmm", "noise", 2, "next"), edge("noise", "hmm", 3, "next")}; !slices.Equal(got, want) {
		t.Errorf("directed %v, want %v", got, want)
	}
}

// The listing goes over several blocks and stops when asked.
func TestManyEdges(t *testing.T) {
	in := large(4000, 3, 1)
	x := opened(t, write(t, in), nil)
	edges := edgesOf(t, x)
	if !slices.Equal(edges, in.Edges) {
		t.Errorf("%d edges came back, %d went in", len(edges), len(in.Edges))
	}
	seen := 0
	for _, err := range x.Edges(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if seen++; seen == 1500 {
			break
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	seen = 0
	var last error
	for _, err := range x.Edges(ctx) {
		last = err
		if seen++; seen == 10 {
			cancel()
		}
	}
	if !errors.Is(last, context.Canceled) || seen > 2000 {
		t.Errorf("%d edges after cancelling, last error %v", seen, last)
	}
}

func TestContext(t *testing.T) {
	dir := write(t, small())
	x := opened(t, dir, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	q := mapmatched.Query{Text: "noise"}
	for name, call := range map[string]func() error{
		"Candidates":  func() error { _, err := x.Candidates(ctx, q, 1); return err },
		"ScoreChunks": func() error { _, err := x.ScoreChunks(ctx, q, []string{"hmm"}); return err },
		"SearchTerms": func() error { _, err := x.SearchTerms(ctx, nil, 1); return err },
		"Chunks":      func() error { _, err := x.Chunks(ctx, nil); return err },
		"ChunkIDs":    func() error { _, err := x.ChunkIDs(ctx); return err },
		"Vectors":     func() error { _, err := x.Vectors(ctx, nil); return err },
		"Health":      func() error { return x.Health(ctx) },
		"Open":        func() error { _, err := Open(ctx, dir, nil); return err },
		"Write":       func() error { return Write(ctx, dir, small(), nil) },
	} {
		err := call()
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
		wantError(t, err, mapmatched.KindDeadline, "embedded: ")
	}
}

func TestClose(t *testing.T) {
	x, err := Open(t.Context(), write(t, small()), nil)
	if err != nil {
		t.Fatal(err)
	}
	kept := candidates(t, x, mapmatched.Query{Text: "noise"}, 1)
	for range 2 {
		if err := x.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if kept[0].Text != small().Chunks[1].Text {
		t.Errorf("a result changed with Close: %q", kept[0].Text)
	}
	q := mapmatched.Query{Text: "noise", Vector: []float32{1, 0, 0}}
	for name, call := range map[string]func() error{
		"Candidates":  func() error { _, err := x.Candidates(t.Context(), q, 1); return err },
		"ScoreChunks": func() error { _, err := x.ScoreChunks(t.Context(), q, []string{"hmm"}); return err },
		"SearchTerms": func() error { _, err := x.SearchTerms(t.Context(), nil, 1); return err },
		"Chunks":      func() error { _, err := x.Chunks(t.Context(), nil); return err },
		"ChunkIDs":    func() error { _, err := x.ChunkIDs(t.Context()); return err },
		"Vectors":     func() error { _, err := x.Vectors(t.Context(), nil); return err },
		"Health":      func() error { return x.Health(t.Context()) },
		"Edges": func() error {
			for _, err := range x.Edges(t.Context()) {
				return err
			}
			return nil
		},
	} {
		if err := call(); !errors.Is(err, mapmatched.ErrClosed) {
			t.Errorf("%s after Close: %v, want ErrClosed", name, err)
		}
	}
	if _, known := x.IDF("noise"); known {
		t.Error("IDF answers after Close")
	}
}

// Close while searches run: each finishes with its result or says ErrClosed.
func TestCloseWhileSearching(t *testing.T) {
	dir := write(t, large(500, 20, 3))
	for range 10 {
		x, err := Open(t.Context(), dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				for n := 0; ; n++ {
					found, err := x.Candidates(t.Context(), mapmatched.Query{Text: "w1 w7 w30"}, 20)
					if errors.Is(err, mapmatched.ErrClosed) {
						return
					}
					if err != nil || len(found) != 20 {
						t.Errorf("%d candidates, %v", len(found), err)
						return
					}
					if i == 0 && n == 20 {
						_ = x.Close() // nil by contract, checked in TestClose
					}
				}
			})
		}
		wg.Wait()
	}
}

// A call made inside a listing while another goroutine closes does not block.
func TestCloseInsideEdges(t *testing.T) {
	x := opened(t, write(t, small()), nil)
	seen := 0
	for e, err := range x.Edges(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if seen++; seen == 1 {
			if err := x.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := x.Chunks(t.Context(), []string{e.From}); !errors.Is(err, mapmatched.ErrClosed) {
			t.Errorf("Chunks after Close: %v", err)
		}
	}
	if seen != 3 {
		t.Errorf("the listing gave %d edges, want 3", seen)
	}
}

// An open index serves what it opened after a new one has taken its place.
func TestOpenIndexSurvivesReplacement(t *testing.T) {
	dir := write(t, small())
	x := opened(t, dir, nil)
	if err := Write(t.Context(), dir, large(10, 5, 1), nil); err != nil {
		t.Fatal(err)
	}
	if got := idsOf(candidates(t, x, mapmatched.Query{Text: "noise"}, 5)); !slices.Equal(got, []string{"noise"}) {
		t.Errorf("the open index finds %q", got)
	}
	if got := opened(t, dir, nil).Manifest().Counts.Chunks; got != 10 {
		t.Errorf("the new index has %d chunks", got)
	}
}

// A file that shrinks under an open index makes an error, not a crash.
func TestTruncatedWhileOpen(t *testing.T) {
	dir := write(t, large(2000, 40, 1))
	x := opened(t, dir, nil)
	for _, name := range []string{textName, postingsName, edgesName} {
		if err := os.Truncate(filepath.Join(dir, name), 0); err != nil {
			t.Skip("this system does not let a mapped file shrink:", err)
		}
	}
	_, err := x.Candidates(t.Context(), mapmatched.Query{Text: "w1"}, 5)
	wantError(t, err, mapmatched.KindCorrupt, "cut while the index was open")
	_, err = x.Chunks(t.Context(), []string{"d1#1"})
	wantError(t, err, mapmatched.KindCorrupt, "cut while the index was open")
	for _, err := range x.Edges(t.Context()) {
		wantError(t, err, mapmatched.KindCorrupt, "cut while the index was open")
	}
}

// The parameters of BM25 are in the manifest and in the scores, b = 0 too.
func TestParametersOfBM25(t *testing.T) {
	in := small()
	query := mapmatched.Query{Text: "noise"}
	usual := candidates(t, opened(t, write(t, in), nil), query, 5)
	for _, p := range []BM25{{K1: 2, B: 0}, {K1: 2, B: 1}, {K1: 0, B: 0.75}} {
		in.BM25 = &p
		x := opened(t, write(t, in), nil)
		if l := x.Manifest().Lexical; l.K1 != p.K1 || l.B != p.B {
			t.Errorf("%+v: the manifest says %v and %v", p, l.K1, l.B)
		}
		got := candidates(t, x, query, 5)
		if len(got) != len(usual) || len(got) == 0 || got[0].Score == usual[0].Score {
			t.Errorf("%+v: %v, by default %v", p, got, usual)
		}
	}
	in.BM25 = &BM25{K1: 1.2, B: 0.75}
	if got := candidates(t, opened(t, write(t, in), nil), query, 5); got[0].Score != usual[0].Score {
		t.Errorf("the defaults in words give %v, else %v", got, usual)
	}
}
