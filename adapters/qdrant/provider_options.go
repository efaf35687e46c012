package qdrant

import (
	"context"
	"errors"
	"math"

	pb "github.com/qdrant/go-client/qdrant"

	"github.com/mapmatched/mmplug/mapmatched"
)

// maxLimit is the most candidates that a call is answered with.
const maxLimit = 10_000

// MMR sets maximal marginal relevance: the server picks chunks that answer the
// query and differ from those picked before.
type MMR struct {
	// Diversity is what differing counts, 0 to 1: 0 is similarity alone.
	Diversity float64
	// Candidates is how many of the nearest chunks are picked from. 0 means the
	// limit of the query, which only leaves their order to change.
	Candidates int
}

// MultiEncoder makes several vectors of a text, as late-interaction models do.
type MultiEncoder func(ctx context.Context, text string) ([][]float32, error)

// Options are the settings of a [Provider]. The zero value, and nil, are the
// defaults.
type Options struct {
	// Vector is the name of the vector to search. "" is the unnamed one. Whether
	// it is dense, sparse or a multi-vector is read from the collection.
	Vector string
	// Limit bounds the candidates of a query, whatever it asks for. 0 is no bound
	// but that of 10,000.
	Limit int
	// Filter leaves out the points that do not fit it. nil is none. See
	// [ParseFilter].
	Filter *pb.Filter
	// ScoreThreshold leaves out candidates whose score is below it; one that is
	// equal stays. It is on the scale of Candidate.Score, so negative for
	// distances: −0.5 leaves out distances above 0.5. nil sends none.
	ScoreThreshold *float64
	// Exact compares with every vector instead of going by the index.
	Exact bool
	// HNSWEf is how many nodes of the index a search keeps in view, 0 for the
	// server's choice.
	HNSWEf int
	// MMR picks the candidates for diversity as well. They are ordered by score
	// all the same, so it says which chunks are offered and not in which order.
	// nil is off. Not together with Formula.
	MMR *MMR
	// Formula gives the nearest points a new score, which is the server's to
	// compute ("$score" is the one from the vector). nil is off.
	Formula *pb.Formula
	// FormulaCandidates is how many of the nearest points Formula scores, or the
	// limit of the query if that is larger. 0 means DefaultPrefetch.
	FormulaCandidates int
	// Embedder turns Query.Text into the vector of a dense search when a query
	// has none. nil means that every query brings its vector.
	Embedder mapmatched.Embedder
	// SparseEncoder makes the vector of Query.Text for a sparse search, where
	// Query.Vector is not used. See [TermQuery].
	SparseEncoder SparseEncoder
	// MultiEncoder makes the vectors of Query.Text for a search by multi-vectors.
	// nil means the one vector of Query.Vector or Embedder.
	MultiEncoder MultiEncoder
	// Keys say where in the payload the parts of a chunk are.
	Keys PayloadKeys
	// Metadata lists further keys of the payload for Candidate.Metadata. What is
	// not asked for is not sent.
	Metadata []string
	// Report is called after every query that was answered, before Candidates
	// returns. It may be called from several goroutines at once. nil is none.
	Report func(context.Context, Report)
}

// DefaultPrefetch is how many candidates of each arm the server fuses or scores
// by a formula.
const DefaultPrefetch = 100

// Report says what became of the points that the server found. Points is the
// sum of the other numbers.
type Report struct {
	Query      string
	Points     int // that the server sent
	Candidates int // offered to the decoder
	Foreign    int // without text: something else in the same collection
	NonFinite  int // with a score that is NaN or infinite
	BelowScore int // with a score below ScoreThreshold
	Duplicates int // of a chunk that came with a better score
	Beyond     int // good ones behind the limit of the query
}

// Validate reports every value that is out of range.
func (o *Options) Validate() error {
	if o == nil {
		return nil
	}
	errs := []error{o.Keys.Validate(), checkFilter(o.Filter)}
	fault := func(format string, args ...any) { errs = append(errs, invalidConfig(format, args...)) }
	if t := o.ScoreThreshold; t != nil && (math.IsNaN(*t) || math.Abs(*t) > math.MaxFloat32) {
		fault("ScoreThreshold is %v, want a finite number of float32, or nil for none", *t)
	}
	if o.Limit < 0 {
		fault("Limit is %d, want 1 or more, or 0 for none", o.Limit)
	}
	if o.HNSWEf < 0 {
		fault("HNSWEf is %d, want 1 or more, or 0 for the server's choice", o.HNSWEf)
	}
	if m := o.MMR; m != nil {
		if !(m.Diversity >= 0 && m.Diversity <= 1) {
			fault("MMR.Diversity is %v, want 0 to 1", m.Diversity)
		}
		if m.Candidates < 0 || m.Candidates > maxLimit {
			fault("MMR.Candidates is %d, want 1 to %d, or 0 for the limit of the query", m.Candidates, maxLimit)
		}
		if o.Formula != nil {
			fault("MMR and Formula are both set: a query has one of them")
		}
	}
	if o.FormulaCandidates < 0 || o.FormulaCandidates > maxLimit {
		fault("FormulaCandidates is %d, want 1 to %d, or 0 for %d", o.FormulaCandidates, maxLimit, DefaultPrefetch)
	}
	for _, key := range o.Metadata {
		if err := checkKey("a key of Metadata", key); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// cut applies the bounds to the limit of a query.
func (o *Options) cut(limit int) int {
	if o.Limit > 0 {
		limit = min(limit, o.Limit)
	}
	return min(limit, maxLimit)
}
