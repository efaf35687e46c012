package eval

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/mapmatched/mmplug/graphbuild"
	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/policy"
)

// Vectors are the embeddings of a data set.
type Vectors struct {
	// Identity says what made them.
	Identity policy.VectorIdentity
	// Chunks has a vector of unit length for every chunk of the corpus, see
	// AddChunk.
	Chunks map[string][]float32
	// Turns has the vectors of queries by TurnID. A query that is not here is
	// embedded.
	Turns map[string][]float32
	// Embedder embeds queries, and the texts of context arms; nil when Turns
	// has every query and nothing else is embedded.
	Embedder mapmatched.Embedder
}

// TurnID names a turn, counted from 0, in a file of query vectors:
// the conversation's ID, a slash and the number of the turn from 1.
func TurnID(conversation string, turn int) string { return fmt.Sprintf("%s/%d", conversation, turn+1) }

// AddChunk adds the vector of a chunk, scaled to unit length. Identity.Dimension
// is filled in by the first.
func (v *Vectors) AddChunk(id string, vector []float32) error {
	unit, err := unitLength(vector)
	if err != nil {
		return fmt.Errorf("the vector of chunk %q: %w", id, err)
	}
	if v.Identity.Dimension == 0 {
		v.Identity.Dimension = len(unit)
	}
	if len(unit) != v.Identity.Dimension {
		return fmt.Errorf("the vector of chunk %q has %d components, others %d", id, len(unit), v.Identity.Dimension)
	}
	if v.Chunks == nil {
		v.Chunks = map[string][]float32{}
	}
	v.Chunks[id] = unit
	return nil
}

// AddChunks adds the vectors of chunks from a file, such as a
// graphbuild.VectorFile.
func (v *Vectors) AddChunks(source graphbuild.VectorSource) error {
	row := make([]float32, source.Dimension())
	for i := range source.Len() {
		if err := v.AddChunk(source.ID(i), source.Row(i, row)); err != nil {
			return err
		}
	}
	return nil
}

// AddTurns adds the vectors of queries from a file whose IDs are those of
// TurnID.
func (v *Vectors) AddTurns(source graphbuild.VectorSource) error {
	v.Turns = map[string][]float32{}
	row := make([]float32, source.Dimension())
	for i := range source.Len() {
		unit, err := unitLength(source.Row(i, row))
		if err != nil {
			return fmt.Errorf("the vector of turn %q: %w", source.ID(i), err)
		}
		v.Turns[source.ID(i)] = unit
	}
	return nil
}

// check reports a chunk, or a query that cannot be embedded, without a vector.
func (v *Vectors) check(d *Data) error {
	for i := range d.Corpus.Chunks {
		if id := d.Corpus.Chunks[i].ID; v.Chunks[id] == nil {
			return fmt.Errorf("chunk %q has no vector", id)
		}
	}
	if v.Embedder != nil {
		return nil
	}
	for i := range d.Conversations {
		c := &d.Conversations[i]
		for t := range c.Turns {
			if id := TurnID(c.ID, t); v.Turns[id] == nil {
				return fmt.Errorf("turn %q has no vector and there is no model to embed it", id)
			}
		}
	}
	return nil
}

// embed embeds texts.
func (v *Vectors) embed(ctx context.Context, texts []string) ([][]float32, error) {
	if v.Embedder == nil {
		return nil, errors.New("there is no model to embed a text with: give one, or search words alone")
	}
	vectors, err := v.Embedder.Embed(ctx, texts)
	if err == nil && len(vectors) != len(texts) {
		err = fmt.Errorf("the embedder returned %d vectors for %d texts", len(vectors), len(texts))
	}
	return vectors, err
}

// unitLength scales a vector to length 1.
func unitLength(v []float32) ([]float32, error) {
	squares := 0.0
	for i, x := range v {
		if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
			return nil, fmt.Errorf("component %d is %v: %w", i, x, mapmatched.ErrNonFinite)
		}
		squares += float64(float64(x) * float64(x))
	}
	if squares == 0 {
		return nil, errors.New("it is empty or all zero")
	}
	norm := math.Sqrt(squares)
	unit := make([]float32, len(v))
	for i, x := range v {
		unit[i] = float32(float64(x) / norm)
	}
	return unit, nil
}
