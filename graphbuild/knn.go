package graphbuild

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/mapmatched/mmplug/mapmatched"
)

// FormulaKNN is the tag of the edges that [KNN] makes.
const FormulaKNN = "knn_v1"

// The defaults of KNNOptions.
const (
	DefaultK                   = 10
	DefaultMaximumDistance     = 10.0
	DefaultMinimumEdgeDistance = 1e-6
)

// KNNOptions are the settings of [KNN]. In each field 0 means the default; the
// zero value, and nil, mean the defaults.
type KNNOptions struct {
	K                   int     // nearest others that each chunk selects, default 10
	MaximumDistance     float64 // longest edge, default 10
	MinimumEdgeDistance float64 // shortest edge, default 1e-6, at most MaximumDistance

	// Method says how [KNNBuild] looks for neighbours. Empty means exact for up
	// to ExactUpTo different vectors and approximate for more. [KNN] is always
	// exact.
	Method KNNMethod

	// Progress, if set, is told how much of the work is done, one call at a
	// time, done ascending up to total. The shares are an estimate: the
	// approximate method may go straight to the end or turn to the exact one.
	// It must not block for long.
	Progress func(done, total int)
}

// KNNMethod is a way to look for nearest neighbours.
type KNNMethod string

// The values of KNNMethod.
const (
	KNNExact       KNNMethod = "exact"       // every vector with every other
	KNNApproximate KNNMethod = "approximate" // within lists of near vectors, falling back to exact
)

// ExactUpTo is how many different vectors are compared each with each other
// unless KNNOptions.Method says otherwise.
const ExactUpTo = 50_000

// TargetRecall is the share of the true nearest neighbours that the approximate
// method has to find.
const TargetRecall = 0.99

// Validate reports every value that is out of range.
func (o *KNNOptions) Validate() error {
	if o == nil {
		return nil
	}
	var errs []error
	fault := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w: "+format, append([]any{mapmatched.ErrInvalidConfig}, args...)...))
	}
	if o.K < 0 {
		fault("K is %d, want 0 for the default or more", o.K)
	}
	for _, f := range []struct {
		name  string
		value float64
	}{{"MaximumDistance", o.MaximumDistance}, {"MinimumEdgeDistance", o.MinimumEdgeDistance}} {
		if !(f.value >= 0) || math.IsInf(f.value, 0) {
			fault("%s is %v, want 0 for the default or a finite number above 0", f.name, f.value)
		}
	}
	if o.Method != "" && o.Method != KNNExact && o.Method != KNNApproximate {
		fault("Method is %q, want %q, %q or empty for the default", o.Method, KNNExact, KNNApproximate)
	}
	if d := o.withDefaults(); d.MinimumEdgeDistance > d.MaximumDistance {
		fault("MinimumEdgeDistance %v is above MaximumDistance %v", d.MinimumEdgeDistance, d.MaximumDistance)
	}
	return errors.Join(errs...)
}

func (o *KNNOptions) withDefaults() KNNOptions {
	var d KNNOptions
	if o != nil {
		d = *o
	}
	d.K = cmp.Or(d.K, DefaultK)
	d.MaximumDistance = cmp.Or(d.MaximumDistance, DefaultMaximumDistance)
	d.MinimumEdgeDistance = cmp.Or(d.MinimumEdgeDistance, DefaultMinimumEdgeDistance)
	return d
}

// KNNReport says how a graph of nearest neighbours was made.
type KNNReport struct {
	Method KNNMethod `json:"method"`
	Chunks int       `json:"chunks"`
	// Distinct is the number of different vectors: copies of a vector are
	// compared once.
	Distinct int `json:"distinct"`

	// Recall is the share of the true nearest neighbours that were found, in
	// [0, 1], 1 for the exact method. The approximate method measures it on
	// Sample rows, with exact search, and those rows have no part in the
	// choice of what is searched.
	Recall      float64 `json:"recall"`
	RecallError float64 `json:"recall_error"` // standard error of Recall, which is at least that much above TargetRecall
	Sample      int     `json:"sample"`       // 0 for the exact method

	Lists  int     `json:"lists"`  // lists of near vectors, 0 for the exact method
	Probes float64 `json:"probes"` // mean number of lists that a row was compared with
}

// KNN makes the exact graph of nearest neighbours (tag [FormulaKNN]).
//
// ids[i] is the chunk of vectors[i]. Rows are scaled to length 1 in float64;
// the distance of two is 1 − cos with cos clamped to [−1, 1]. Each chunk
// selects its min(K, len(ids)−1) nearest others, ties by chunk ID, and there
// is an edge where either end selected the other, of length
// min(max(distance, MinimumEdgeDistance), MaximumDistance).
//
// Edges are undirected with From < To in byte order, sorted by From and To, and
// the same whatever the order of the rows, the number of cores and the
// instructions of the machine. Fewer than two chunks have none. Rows of
// different lengths, of no length, with a value that is not finite or all zero,
// and empty or duplicate IDs are errors that name the row and the ID. The time
// is of the order of len(ids)² times the dimension.
func KNN(ctx context.Context, ids []string, vectors [][]float32, opts *KNNOptions) ([]mapmatched.Edge, error) {
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	source, err := newSliceSource(ids, vectors)
	if err != nil {
		return nil, err
	}
	o := opts.withDefaults()
	o.Method = KNNExact
	edges, _, err := KNNBuild(ctx, source, &o)
	return edges, err
}

// KNNBuild makes the graph of nearest neighbours of any number of chunks, by
// the definition that [KNN] gives.
//
// The exact method makes the same edges as KNN. The approximate one misses some
// neighbours, of which the report says how many; the distances it gives are
// exact. It chooses on a sample how far to look for [TargetRecall], measures the
// recall on another, looks farther when it is too low, and is exact when that is
// no less work; then the report says so. Its result depends on the vectors and
// IDs alone, not on the order of the rows and the number of cores. (Processors
// without fused multiply-add, for which [kernel.Instructions] is go, round
// scores differently and may find other neighbours.)
//
// # Memory
//
// For n rows of d dimensions and K = k, beside the source:
//
//	rows and IDs             about 60·n bytes
//	selection                (8·(3k+8) + 16·k)·n bytes, 464·n for k = 10
//	exact: packed vectors    4·d·n bytes
//	approximate: training    4·d·100·√n bytes
//	edges                    (56 + 16)·E bytes, E between k·n/2 and k·n
//
// so 1,000,000 × 384 vectors need about 0.5 GB for the search and then 0.7 GB
// for the edges. A build from a file peaks at 2.8 GB, of which 1.5 GB are the
// file, mapped, which the system can take back.
//
// Nothing is left behind when the context is cancelled.
func KNNBuild(ctx context.Context, source VectorSource, opts *KNNOptions) ([]mapmatched.Edge, KNNReport, error) {
	if err := opts.Validate(); err != nil {
		return nil, KNNReport{}, err
	}
	o := opts.withDefaults()
	rows, err := newRowSet(ctx, source)
	if err != nil {
		return nil, KNNReport{}, err
	}
	report := KNNReport{Method: KNNExact, Chunks: source.Len(), Distinct: rows.len(), Recall: 1}
	if source.Len() < 2 {
		return nil, report, nil
	}
	k := min(o.K, source.Len()-1)
	p := newProgress(o.Progress)
	var found *neighbours
	if o.Method == KNNApproximate || o.Method == "" && rows.len() > ExactUpTo {
		found, err = rows.approximateNeighbours(ctx, min(k, rows.len()-1), p, &report)
	}
	if found == nil && err == nil {
		found, err = rows.exactNeighbours(ctx, min(k, rows.len()-1), p)
	}
	if err != nil {
		return nil, KNNReport{}, err
	}
	edges, err := rows.edges(ctx, found, k, o)
	if err != nil {
		return nil, KNNReport{}, err
	}
	p.finish()
	return edges, report, nil
}
