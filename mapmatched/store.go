package mapmatched

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
)

// Record is a chunk as a store keeps it, with what belongs to it.
type Record struct {
	Chunk  Chunk
	Vector []float32 // nil when the store has none for it
	Edges  []Edge    // edges that begin at the chunk; From is Chunk.ID
}

// CorpusIdentity says what the records of a store were made by. A store keeps
// it beside them, and vectors of different identities are never compared.
type CorpusIdentity struct {
	Provider        string  `json:"provider"`         // who ran the model, such as "onnx"; "" when there are no vectors
	Model           string  `json:"model"`            // name of the model
	Revision        string  `json:"revision"`         // version or digest of the model, "" when unknown
	Dimension       int     `json:"dimension"`        // components of a vector, 0 when there are none
	Normalization   string  `json:"normalization"`    // "l2" for unit length, "" for as the model gave them
	ChunkPolicy     string  `json:"chunk_policy"`     // how documents were cut, "" when unknown
	MaximumDistance float64 `json:"maximum_distance"` // clamp of the distances between chunks, 0 when there are no edges
}

// Differences lists the fields in which id differs from want, each as "field
// is x, wanted y". None means equal.
func (id CorpusIdentity) Differences(want CorpusIdentity) []string {
	var diff []string
	add := func(field string, got, wanted any) {
		if got != wanted {
			diff = append(diff, fmt.Sprintf("%s is %#v, wanted %#v", field, got, wanted))
		}
	}
	add("provider", id.Provider, want.Provider)
	add("model", id.Model, want.Model)
	add("revision", id.Revision, want.Revision)
	add("dimension", id.Dimension, want.Dimension)
	add("normalization", id.Normalization, want.Normalization)
	add("chunk_policy", id.ChunkPolicy, want.ChunkPolicy)
	add("maximum_distance", id.MaximumDistance, want.MaximumDistance)
	return diff
}

// WriteReport counts what a CorpusWriter did.
type WriteReport struct {
	Created bool // the store made its collection; otherwise it was there and fits
	Written int  // records sent and confirmed
	Kept    int  // records that were there already, equal
}

// CorpusWriter is a store that takes a corpus in.
//
// WriteCorpus makes the collection, or checks one that is there against the
// identity and refuses with ErrStaleIndex and every difference, and then writes
// the records in batches. It is idempotent: the same records again change
// nothing, and after an interruption the same call writes what is missing. It
// calls progress, unless nil, with the number of records done so far.
type CorpusWriter interface {
	WriteCorpus(ctx context.Context, identity CorpusIdentity, records iter.Seq2[Record, error], progress func(done int)) (WriteReport, error)
}

// CorpusIdentifier tells what the records of a store were made by. A store
// that does not say so returns the zero identity.
type CorpusIdentifier interface {
	CorpusIdentity(ctx context.Context) (CorpusIdentity, error)
}

// RecordLister lists every record of a store, each once, in the store's order.
type RecordLister interface {
	Records(ctx context.Context) iter.Seq2[Record, error]
}

// NeighborLister lists, for every chunk of a store, its k nearest others as
// the store itself finds them, as edges of type EdgeKNN from the chunk, nearest
// first. The weight is the cosine distance 1 - cos, or the store's own distance
// where its metric is another.
type NeighborLister interface {
	NearestNeighbors(ctx context.Context, k int) iter.Seq2[Edge, error]
}

// Status is how a check ended.
type Status string

// The statuses.
const (
	StatusOK      Status = "ok"
	StatusWarning Status = "warning" // works, but not as one would wish
	StatusFailed  Status = "failed"
	StatusSkipped Status = "skipped" // not looked at, because an earlier check failed or nothing asks for it
)

// Finding is the outcome of one check of a store.
type Finding struct {
	Check  string `json:"check"`          // what was looked at, such as "collection"
	Status Status `json:"status"`         // how it ended
	Detail string `json:"detail"`         // what was found, one line
	Hint   string `json:"hint,omitempty"` // what to do, "" when there is nothing to
}

// Diagnoser looks at everything that a store needs in order to work, from
// reach to a sample query, and reports each. It goes on after a failure where
// that makes sense.
type Diagnoser interface {
	Diagnose(ctx context.Context) []Finding
}

// QueryVector returns the vector of a query as it is given, or else as the
// embedder makes it of the text. It is nil for a query without a vector whose
// text is blank. It fails when there is no embedder to ask, and with the
// embedder's own error, which gets kind "unavailable" if it has none.
func QueryVector(ctx context.Context, q Query, e Embedder, adapter string) ([]float32, error) {
	if len(q.Vector) > 0 {
		return q.Vector, nil
	}
	if strings.TrimSpace(q.Text) == "" {
		return nil, nil
	}
	if e == nil {
		return nil, &Error{Op: "embed", Adapter: adapter, Kind: KindInvalid, Err: fmt.Errorf("the vector of turn %d is missing: set Query.Vector or Options.Embedder", q.Turn)}
	}
	vectors, err := e.Embed(ctx, []string{q.Text})
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil && KindOf(err) == "":
		return nil, &Error{Op: "embed", Adapter: adapter, Kind: KindUnavailable, Err: err}
	case err != nil:
		return nil, err
	case len(vectors) != 1:
		return nil, &Error{Op: "embed", Adapter: adapter, Kind: KindInvalid, Err: fmt.Errorf("the embedder returned %d vectors for 1 text", len(vectors))}
	case len(vectors[0]) == 0:
		return nil, &Error{Op: "embed", Adapter: adapter, Kind: KindInvalid, Err: errors.New("the embedder returned an empty vector")}
	}
	return vectors[0], nil
}
