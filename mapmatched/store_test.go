package mapmatched

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
)

// fixedEmbedder returns what it is told to.
type fixedEmbedder struct {
	vectors [][]float32
	err     error
}

func (e fixedEmbedder) Embed(context.Context, []string) ([][]float32, error) { return e.vectors, e.err }

func TestQueryVector(t *testing.T) {
	ctx := context.Background()
	ownKind := &Error{Op: "embed", Adapter: "other", Kind: KindUnauthenticated, Err: errors.New("no key")}
	for _, c := range []struct {
		name  string
		q     Query
		e     Embedder
		want  []float32
		kind  Kind
		words string
	}{
		{"given", Query{Text: "x", Vector: []float32{1, 2}}, nil, []float32{1, 2}, "", ""},
		{"embedded", Query{Text: "x"}, fixedEmbedder{vectors: [][]float32{{3}}}, []float32{3}, "", ""},
		{"blank", Query{Text: " \n"}, nil, nil, "", ""},
		{"no embedder", Query{Text: "x", Turn: 4}, nil, nil, KindInvalid, "turn 4"},
		{"too few", Query{Text: "x"}, fixedEmbedder{}, nil, KindInvalid, "0 vectors for 1 text"},
		{"empty", Query{Text: "x"}, fixedEmbedder{vectors: [][]float32{{}}}, nil, KindInvalid, "empty vector"},
		{"down", Query{Text: "x"}, fixedEmbedder{err: errors.New("refused")}, nil, KindUnavailable, "refused"},
		{"own kind", Query{Text: "x"}, fixedEmbedder{err: ownKind}, nil, KindUnauthenticated, "no key"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := QueryVector(ctx, c.q, c.e, "here")
			if !slices.Equal(got, c.want) || KindOf(err) != c.kind || err != nil && !strings.Contains(err.Error(), c.words) {
				t.Fatalf("%v, %v (kind %q)", got, err, KindOf(err))
			}
		})
	}
	done, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := QueryVector(done, Query{Text: "x"}, fixedEmbedder{err: errors.New("aborted")}, "here"); !errors.Is(err, context.Canceled) {
		t.Fatalf("cancelled: %v", err)
	}
}

func TestCorpusIdentityDifferences(t *testing.T) {
	id := CorpusIdentity{Provider: "onnx", Model: "m", Revision: "1", Dimension: 3, Normalization: "l2", ChunkPolicy: "markdown_v1", MaximumDistance: 10}
	if diff := id.Differences(id); diff != nil {
		t.Fatalf("equal ones differ: %v", diff)
	}
	got := id.Differences(CorpusIdentity{})
	if len(got) != 7 || got[3] != "dimension is 3, wanted 0" || got[0] != `provider is "onnx", wanted ""` {
		t.Fatalf("%q", got)
	}
}
