package adaptertest

import (
	"context"
	"errors"
	"math"
	"reflect"
	"slices"
	"testing"
)

func TestCorpus(t *testing.T) {
	c := NewCorpus()
	if !reflect.DeepEqual(c, NewCorpus()) {
		t.Error("two calls give two corpora")
	}
	if len(c.Vectors) != len(c.Chunks) || len(c.want) != len(c.Queries) {
		t.Fatalf("%d vectors for %d chunks, %d answers for %d queries", len(c.Vectors), len(c.Chunks), len(c.want), len(c.Queries))
	}
	ids := c.ids()
	documents := map[string]string{}
	for i, chunk := range c.Chunks {
		if slices.Index(ids, chunk.ID) != i {
			t.Errorf("chunk ID %q is used twice", chunk.ID)
		}
		if documents[chunk.Document] != "" {
			documents[chunk.Document] += "\n"
		}
		documents[chunk.Document] += chunk.Text
	}
	for _, chunk := range c.Chunks {
		if got := documents[chunk.Document][chunk.Start:chunk.End]; got != chunk.Text {
			t.Errorf("chunk %q: bytes %d to %d of its document are %q, want %q", chunk.ID, chunk.Start, chunk.End, got, chunk.Text)
		}
	}
	for i, q := range c.Queries {
		if q.Turn != i {
			t.Errorf("query %q: turn %d, want %d", q.Text, q.Turn, i)
		}
	}
}

func TestCorpusEmbed(t *testing.T) {
	c := NewCorpus()
	vectors, err := c.Embed(context.Background(), []string{"tunnel", "", "zzyzx", "Tunnel TUNNEL"})
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range vectors {
		var norm float64
		for _, x := range v {
			norm += float64(x) * float64(x)
		}
		if len(v) != len(c.Vectors[0]) || math.Abs(norm-1) > 1e-6 {
			t.Errorf("vector %d: dimension %d, squared length %v, want %d and 1", i, len(v), norm, len(c.Vectors[0]))
		}
	}
	if !slices.Equal(vectors[0], vectors[3]) || !slices.Equal(vectors[1], vectors[2]) || slices.Equal(vectors[0], vectors[1]) {
		t.Error("case or repetition of a word counts, or an unknown word is a known one")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := c.Embed(ctx, []string{"tunnel"}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: error %v, want context.Canceled", err)
	}
}
