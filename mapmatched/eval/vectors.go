package eval

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/mapmatched/mmplug/graphbuild"
	"github.com/mapmatched/mmplug/internal/kernel"
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
	// Embedder embeds queries, and other texts that methods search by, see
	// Method.Embeds; nil when Turns has every query and nothing else is
	// embedded.
	Embedder mapmatched.Embedder
}

// TurnID names a turn, counted from 0, in a file of query vectors:
// the conversation's ID, a slash and the number of the turn from 1.
func TurnID(conversation string, turn int) string { return fmt.Sprintf("%s/%d", conversation, turn+1) }

// AddChunk adds the vector of a chunk, scaled to unit length. Identity.Dimension
// is filled in by the first. A chunk that has a vector already is refused.
func (v *Vectors) AddChunk(id string, vector []float32) error {
	if v.Chunks == nil {
		v.Chunks = map[string][]float32{}
	}
	return v.add(v.Chunks, "chunk", id, vector)
}

// add adds the vector of a chunk or turn.
func (v *Vectors) add(to map[string][]float32, what, id string, vector []float32) error {
	if to[id] != nil {
		return fmt.Errorf("there are two vectors of %s %q: give one", what, id)
	}
	unit, err := unitLength(vector)
	if err != nil {
		return fmt.Errorf("the vector of %s %q: %w", what, id, err)
	}
	if v.Identity.Dimension == 0 {
		v.Identity.Dimension = len(unit)
	}
	if len(unit) != v.Identity.Dimension {
		return fmt.Errorf("the vector of %s %q has %d components, others %d: give vectors of one model", what, id, len(unit), v.Identity.Dimension)
	}
	to[id] = unit
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
// TurnID. They have as many components as those of the chunks. A turn that has a
// vector already is refused.
func (v *Vectors) AddTurns(source graphbuild.VectorSource) error {
	if v.Turns == nil {
		v.Turns = map[string][]float32{}
	}
	row := make([]float32, source.Dimension())
	for i := range source.Len() {
		if err := v.add(v.Turns, "turn", source.ID(i), source.Row(i, row)); err != nil {
			return err
		}
	}
	return nil
}

// EmbedOthers lets an embedder make the vectors of texts that Turns does not
// have. It should be the model that made those which are there: it embeds one
// query of the data that Turns has, and similarity is the cosine of the two
// vectors, about 1 for the same model, and 1 when there is no such query. Another
// number of components is an error. What is embedded is kept below dir, as Embed
// keeps it, and a model that is another than that of the identity is added to it.
func (v *Vectors) EmbedOthers(ctx context.Context, d *Data, e mapmatched.Embedder, identity policy.VectorIdentity, dir string) (similarity float64, err error) {
	cached := newEmbedCache(e, identity, dir)
	similarity, err = v.compare(ctx, d, cached)
	if err != nil {
		return 0, err
	}
	v.Embedder = cached
	if own := v.Identity; own.Provider == identity.Provider && own.Model == identity.Model && own.Revision == identity.Revision {
		return similarity, nil
	}
	v.Identity.Model += ", other texts by " + identity.Provider + " " + identity.Model
	if identity.Revision != "" {
		v.Identity.Revision += ", " + identity.Revision
	}
	return similarity, nil
}

// compare embeds the first query that Turns has, and returns the cosine of its
// two vectors.
func (v *Vectors) compare(ctx context.Context, d *Data, e mapmatched.Embedder) (float64, error) {
	for i := range d.Conversations {
		c := &d.Conversations[i]
		for t := range c.Turns {
			own := v.Turns[TurnID(c.ID, t)]
			if own == nil || strings.TrimSpace(c.Turns[t].Query) == "" {
				continue
			}
			embedded, err := e.Embed(ctx, []string{c.Turns[t].Query})
			if err != nil {
				return 0, fmt.Errorf("cannot embed the query of turn %q: %w", TurnID(c.ID, t), err)
			}
			unit, err := unitLength(embedded[0])
			if err != nil {
				return 0, fmt.Errorf("the model's vector of turn %q: %w", TurnID(c.ID, t), err)
			}
			if len(unit) != len(own) {
				return 0, fmt.Errorf("the model's vectors have %d components, those of the files %d: give the model that made them", len(unit), len(own))
			}
			return float64(kernel.Dot(unit, own)), nil
		}
	}
	return 1, nil
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
