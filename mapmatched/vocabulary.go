package mapmatched

import (
	"context"
	"iter"
)

// Query is what a turn asks a provider. Only Text is always set; a provider
// ignores what it cannot use.
type Query struct {
	Text    string    // the words of this turn
	Vector  []float32 // the embedding of Text, nil when the caller has none
	Turn    int       // index of the turn in its conversation, from 0
	History []string  // texts of the earlier turns, oldest first
	Path    []string  // chunk IDs decoded for the earlier turns, "" for a gap
}

// Candidate is a chunk that a provider offers for a turn.
type Candidate struct {
	ChunkID  string
	Score    float64            // raw score, finite, higher is better
	Text     string             // empty when the provider does not return texts
	Metadata map[string]any     // whatever the store keeps beside the chunk
	Parts    map[string]float64 // what Score was made of, by name; may be nil
}

// Scored is a chunk with a score and nothing else, as a reranker returns it.
type Scored struct {
	ChunkID string
	Score   float64 // finite, higher is better
}

// Neighbor is a chunk at a graph distance from another one.
type Neighbor struct {
	ChunkID  string
	Distance float64
}

// Chunk is the unit of a corpus.
type Chunk struct {
	ID       string // unique in the corpus, never empty
	Document string // ID of the document it was cut from
	Title    string // title of that document
	Section  string // heading path inside the document, " > " between levels
	Ordinal  int    // position in its document, from 0
	Start    int    // first byte of Text in the document
	End      int    // one past the last byte of Text in the document
	Text     string
}

// EdgeType says why two chunks are joined. Further types are allowed.
type EdgeType string

// The edge types that the builders of this module make.
const (
	EdgeNext    EdgeType = "next"    // consecutive chunks of a document
	EdgeParent  EdgeType = "parent"  // a section and its subsection
	EdgeSection EdgeType = "section" // chunks of the same section
	EdgeLink    EdgeType = "link"    // a link from one document to another
	EdgeKNN     EdgeType = "knn"     // near in an embedding space
)

// Edge joins two chunks of a corpus graph.
type Edge struct {
	From, To string
	Weight   float64 // length of the edge, positive and finite
	Type     EdgeType
}

// CandidateProvider offers candidates for a turn.
//
// Candidates returns at most limit of them, best first, each chunk once, with
// finite scores of which higher is better. No hit is an empty slice and no
// error. It returns promptly when ctx is done and is safe for concurrent use.
type CandidateProvider interface {
	Candidates(ctx context.Context, q Query, limit int) ([]Candidate, error)
}

// CorpusGraph answers distances between chunks. Implementations are safe for
// concurrent use and return promptly when ctx is done.
type CorpusGraph interface {
	// MaximumDistance is the clamp: chunks that are farther apart, not
	// connected or unknown are exactly this far apart.
	MaximumDistance() float64

	// Distances fills dst, of length len(from)*len(to), row-major, with the
	// shortest-path distance from each of from to each of to. It is batched
	// because hosted graphs pay per round trip.
	Distances(ctx context.Context, from, to []string, dst []float64) error

	// Neighborhood lists the chunks within min(radius, MaximumDistance()) of
	// chunkID, bounds included and the chunk itself left out, ordered by
	// distance and then by chunk ID. An unknown chunk has none.
	Neighborhood(ctx context.Context, chunkID string, radius float64) ([]Neighbor, error)
}

// Reranker scores the candidates of a turn again.
type Reranker interface {
	Rerank(ctx context.Context, q Query, c []Candidate) ([]Scored, error)
}

// Embedder turns texts into vectors, one for each text, all of one dimension.
type Embedder interface {
	Embed(ctx context.Context, texts []string) ([][]float32, error)
}

// The interfaces below are optional capabilities of a provider or a graph,
// found by type assertion. Something to be closed implements io.Closer; Close
// may be called twice.

// ChunkScorer scores given chunks for a query on the scale of Candidates.
// Chunks it does not know are left out.
type ChunkScorer interface {
	ScoreChunks(ctx context.Context, q Query, chunkIDs []string) ([]Scored, error)
}

// ChunkFetcher returns chunks by ID, in the order asked. Unknown IDs are left
// out.
type ChunkFetcher interface {
	Chunks(ctx context.Context, chunkIDs []string) ([]Chunk, error)
}

// VectorFetcher returns the stored vectors by ID, in the order asked: nil for
// a chunk that is unknown or has no vector.
type VectorFetcher interface {
	Vectors(ctx context.Context, chunkIDs []string) ([][]float32, error)
}

// EdgeLister lists the edges of a graph in a fixed order, each undirected edge
// once.
type EdgeLister interface {
	Edges(ctx context.Context) iter.Seq2[Edge, error]
}

// HealthChecker reports whether a store can answer now.
type HealthChecker interface {
	Health(ctx context.Context) error
}
