package embedded

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mapmatched/mmplug/mapmatched"
)

// small is an input that has some of everything.
func small() Input {
	chunk := func(id, document, title, section string, ordinal, start int, text string) mapmatched.Chunk {
		return mapmatched.Chunk{ID: id, Document: document, Title: title, Section: section, Ordinal: ordinal, Start: start, End: start + len(text), Text: text}
	}
	return Input{
		Chunks: []mapmatched.Chunk{
			chunk("hmm", "matching.md", "Map matching", "Model", 0, 0, "A hidden Markov model explains a noisy track."),
			chunk("noise", "matching.md", "Map matching", "Model > Noise", 1, 60, "Emission noise says how far a position strays."),
			chunk("jumps", "matching.md", "Map matching", "Transitions", 2, 130, "Transitions punish jumps between roads."),
			chunk("home", "故乡.md", "故乡", "", 0, 0, "我离开故乡已经二十年了。"),
		},
		Edges: []mapmatched.Edge{
			{From: "hmm", To: "noise", Weight: 1, Type: mapmatched.EdgeNext},
			{From: "noise", To: "jumps", Weight: 1.5, Type: mapmatched.EdgeNext},
			{From: "hmm", To: "jumps", Weight: 2, Type: mapmatched.EdgeLink},
		},
		MaximumDistance: 4,
		Vectors:         [][]float32{{3, 4, 0}, {0, 2, 0}, {0, 0, -1}, {1, 1, 1}},
		VectorIdentity:  VectorIdentity{Provider: "test", Model: "tiny", Revision: "r1", Dimension: 3, Normalization: NormalizationL2},
		ChunkPolicy:     "heading_v1",
		Source:          Source{Name: "docs", Files: 2, Bytes: 1234, SHA256: "abc"},
	}
}

// large is an input of random words with as many chunks as asked.
func large(chunks, words int, seed uint64) Input {
	r := rand.New(rand.NewPCG(seed, seed))
	zipf := rand.NewZipf(r, 1.1, 2, 29_999)
	var in Input
	for i := range chunks {
		w := make([]string, words)
		for j := range w {
			w[j] = fmt.Sprintf("w%d", zipf.Uint64())
		}
		text := strings.Join(w, " ")
		in.Chunks = append(in.Chunks, mapmatched.Chunk{
			ID: fmt.Sprintf("d%d#%d", i/10, i%10), Document: fmt.Sprintf("d%d", i/10), Title: fmt.Sprintf("Document %d", i/10),
			Ordinal: i % 10, End: len(text), Text: text,
		})
		if i%10 > 0 {
			in.Edges = append(in.Edges, mapmatched.Edge{From: in.Chunks[i-1].ID, To: in.Chunks[i].ID, Weight: 1, Type: mapmatched.EdgeNext})
		}
	}
	return in
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

func write(t testing.TB, in Input) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "index")
	if err := Write(t.Context(), dir, in, &WriteOptions{Tool: "mmplug test"}); err != nil {
		t.Fatal(err)
	}
	return dir
}

func opened(t testing.TB, dir string, opts *Options) *Index {
	t.Helper()
	x, err := Open(t.Context(), dir, opts)
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

func candidates(t testing.TB, x *Index, q mapmatched.Query, limit int) []mapmatched.Candidate {
	t.Helper()
	c, err := x.Candidates(t.Context(), q, limit)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func idsOf(c []mapmatched.Candidate) []string {
	ids := make([]string, len(c))
	for i := range c {
		ids[i] = c[i].ChunkID
	}
	return ids
}

func edgesOf(t testing.TB, x *Index) []mapmatched.Edge {
	t.Helper()
	var edges []mapmatched.Edge
	for e, err := range x.Edges(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		edges = append(edges, e)
	}
	return edges
}

// wantError checks the kind of an error and that its text, one line, has all
// the parts.
func wantError(t testing.TB, err error, kind mapmatched.Kind, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want one of kind %q with %q", kind, parts)
	}
	if got := mapmatched.KindOf(err); got != kind {
		t.Errorf("kind %q, want %q: %v", got, kind, err)
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("the error has several lines: %q", err)
	}
	if i := slices.IndexFunc(parts, func(p string) bool { return !strings.Contains(err.Error(), p) }); i >= 0 {
		t.Errorf("the error lacks %q: %v", parts[i], err)
	}
}
