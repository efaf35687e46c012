package embedded

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/mapmatched/mmplug/mapmatched"
)

// embedder gives every text the same vectors, or an error.
type embedder struct {
	vectors [][]float32
	err     error
}

func (e embedder) Embed(context.Context, []string) ([][]float32, error) { return e.vectors, e.err }

func TestDenseEqualsNaiveCosine(t *testing.T) {
	in := large(400, 3, 2)
	in.Vectors = vectors(400, 37, 2)
	in.Vectors[11], in.Vectors[7] = in.Vectors[300], in.Vectors[300] // ties
	in.VectorIdentity = VectorIdentity{Provider: "test", Model: "random"}
	x := opened(t, write(t, in), &Options{Arm: ArmDense})
	cosine := func(a, b []float32) float64 {
		var ab, aa, bb float64
		for i := range a {
			ab += float64(a[i]) * float64(b[i])
			aa += float64(a[i]) * float64(a[i])
			bb += float64(b[i]) * float64(b[i])
		}
		return ab / math.Sqrt(aa*bb)
	}
	position := map[string]int{}
	for i, c := range in.Chunks {
		position[c.ID] = i
	}
	queries := append(vectors(20, 37, 9), in.Vectors[300])
	for _, q := range queries {
		got := candidates(t, x, mapmatched.Query{Vector: q}, 400)
		if len(got) != 400 {
			t.Fatalf("%d candidates", len(got))
		}
		for i, c := range got {
			if want := cosine(q, in.Vectors[position[c.ChunkID]]); math.Abs(c.Score-want) > 1e-6 {
				t.Fatalf("%s scores %v, want %v", c.ChunkID, c.Score, want)
			}
			if i > 0 && (got[i-1].Score < c.Score || got[i-1].Score == c.Score && position[got[i-1].ChunkID] >= position[c.ChunkID]) {
				t.Fatalf("%v and %v are out of order", got[i-1].ChunkID, c.ChunkID)
			}
		}
		if cut := candidates(t, x, mapmatched.Query{Vector: q}, 7); !slices.Equal(idsOf(cut), idsOf(got[:7])) {
			t.Fatalf("limit 7 gives %q, all begin with %q", idsOf(cut), idsOf(got[:7]))
		}
	}
	if got := idsOf(candidates(t, x, mapmatched.Query{Vector: in.Vectors[300]}, 3)); !slices.Equal(got, []string{"d0#7", "d1#1", "d30#0"}) {
		t.Errorf("equal rows come in the order %q", got)
	}
}

// The length of the query vector does not change cosines.
func TestDenseQueryLength(t *testing.T) {
	x := opened(t, write(t, small()), &Options{Arm: ArmDense})
	for _, scale := range []float32{1e-20, 0.5, 1e20} {
		got := candidates(t, x, mapmatched.Query{Vector: []float32{0, scale, 0}}, 2)
		if !slices.Equal(idsOf(got), []string{"noise", "hmm"}) || got[0].Score != 1 || math.Abs(got[1].Score-0.8) > 1e-7 {
			t.Errorf("scale %v: %v", scale, got)
		}
	}
}

func TestDenseFaults(t *testing.T) {
	dir := write(t, small())
	refused := errors.New("refused")
	hosted := &mapmatched.Error{Op: "embed", Adapter: "hosted", Kind: mapmatched.KindUnauthenticated, Err: refused}
	nan := float32(math.NaN())
	for _, c := range []struct {
		name     string
		embedder mapmatched.Embedder
		vector   []float32
		kind     mapmatched.Kind
		parts    []string
	}{
		{"too long", nil, []float32{1, 2, 3, 4}, mapmatched.KindInvalid, []string{"4 components", "the index 3", "tiny"}},
		{"zero", nil, []float32{0, 0, 0}, mapmatched.KindInvalid, []string{"query vector", "0"}},
		{"not finite", nil, []float32{0, nan, 0}, mapmatched.KindInvalid, []string{"query vector", "component 1", "NaN"}},
		{"neither vector nor embedder", nil, nil, mapmatched.KindInvalid, []string{"turn 5", "Options.Embedder"}},
		{"embedder fails", embedder{nil, refused}, nil, mapmatched.KindUnavailable, []string{"refused"}},
		{"embedder fails with a kind", embedder{nil, hosted}, nil, mapmatched.KindUnauthenticated, []string{"hosted", "refused"}},
		{"embedder returns nothing", embedder{}, nil, mapmatched.KindInvalid, []string{"0 vectors for 1 text"}},
		{"embedder of another model", embedder{[][]float32{{1}}, nil}, nil, mapmatched.KindInvalid, []string{"1 components", "the index 3"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := opened(t, dir, &Options{Arm: ArmDense, Embedder: c.embedder})
			q := mapmatched.Query{Text: "noise", Vector: c.vector, Turn: 5}
			_, err := x.Candidates(t.Context(), q, 3)
			wantError(t, err, c.kind, c.parts...)
			_, err = x.ScoreChunks(t.Context(), q, []string{"hmm"})
			wantError(t, err, c.kind, c.parts...)
		})
	}
	x := opened(t, dir, &Options{Arm: ArmDense, Embedder: embedder{[][]float32{{0, 1, 0}}, nil}})
	if got := idsOf(candidates(t, x, mapmatched.Query{Text: "noise"}, 1)); !slices.Equal(got, []string{"noise"}) {
		t.Errorf("embedded query finds %q", got)
	}
	if got := candidates(t, x, mapmatched.Query{Text: " "}, 3); len(got) != 0 {
		t.Errorf("an empty query finds %v", got)
	}
	if got, err := x.ScoreChunks(t.Context(), mapmatched.Query{}, []string{"hmm"}); len(got) != 0 || err != nil {
		t.Errorf("an empty query scores %v, %v", got, err)
	}
	if got := candidates(t, x, mapmatched.Query{Text: "noise"}, 0); len(got) != 0 {
		t.Errorf("limit 0 finds %v", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	x = opened(t, dir, &Options{Arm: ArmDense, Embedder: cancelling{cancel}})
	_, err := x.Candidates(ctx, mapmatched.Query{Text: "noise"}, 3)
	wantError(t, err, mapmatched.KindDeadline)
}

// cancelling is an embedder whose client hides that the context is done.
type cancelling struct{ cancel func() }

func (c cancelling) Embed(context.Context, []string) ([][]float32, error) {
	c.cancel()
	return nil, errors.New("transport closed")
}

// Vectors that were read from an index are written back unchanged.
func TestUnitVectorsStay(t *testing.T) {
	for _, v := range vectors(200, 384, 4) {
		once, err := normalized(v)
		if err != nil {
			t.Fatal(err)
		}
		twice, err := normalized(once)
		if err != nil || !slices.Equal(once, twice) {
			t.Fatalf("normalising twice changes a vector: %v", err)
		}
	}
}
