package graphbuild

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

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

	// Progress, if set, is told how much of the work is done, one call at a
	// time, done ascending. It must not block for long.
	Progress func(done, total int)
}

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

// knnTile is how many rows are compared with how many others in one step: two
// tiles of 384 dimensions fit in a second-level cache.
const knnTile = 64

// KNN makes the exact graph of nearest neighbours (tag [FormulaKNN]).
//
// ids[i] is the chunk of vectors[i]. Rows are scaled to length 1 in float64;
// the distance of two is 1 − cos with cos clamped to [−1, 1]. Each chunk
// selects its min(K, len(ids)−1) nearest others, ties by chunk ID, and there
// is an edge where either end selected the other, of length
// min(max(distance, MinimumEdgeDistance), MaximumDistance).
//
// Edges are undirected with From < To in byte order, sorted by From and To, and
// the same whatever the order of the rows and the number of cores. Fewer than
// two chunks have none. Rows of different lengths, of no length, with a value
// that is not finite or all zero, and empty or duplicate IDs are errors that
// name the row and the ID. The time is of the order of len(ids)² times the
// dimension, the memory that of the vectors in float64 and K pairs a row.
func KNN(ctx context.Context, ids []string, vectors [][]float32, opts *KNNOptions) ([]mapmatched.Edge, error) {
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	o := opts.withDefaults()
	m, err := newUnitRows(ids, vectors)
	if err != nil {
		return nil, err
	}
	n := len(ids)
	k := min(o.K, n-1)
	if k < 1 {
		return nil, ctx.Err()
	}
	nearest, err := m.selectNearest(ctx, k, o.Progress)
	if err != nil {
		return nil, err
	}

	type pair struct {
		from, to int32
		distance float64
	}
	pairs := make([]pair, 0, n*k)
	for i := range nearest {
		for _, e := range nearest[i] {
			row := int32(i)
			pairs = append(pairs, pair{min(row, e.row), max(row, e.row), e.distance})
		}
	}
	slices.SortFunc(pairs, func(a, b pair) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to)) })
	pairs = slices.Compact(pairs)
	edges := make([]mapmatched.Edge, len(pairs))
	for i, p := range pairs {
		edges[i] = mapmatched.Edge{
			From: m.ids[p.from], To: m.ids[p.to], Type: mapmatched.EdgeKNN,
			Weight: min(max(p.distance, o.MinimumEdgeDistance), o.MaximumDistance),
		}
	}
	return edges, nil
}

// unitRows are vectors of length 1, ordered by ID.
type unitRows struct {
	ids  []string
	dim  int
	data []float64 // row-major
}

func newUnitRows(ids []string, vectors [][]float32) (*unitRows, error) {
	if len(ids) != len(vectors) {
		return nil, fmt.Errorf("there are %d chunk IDs and %d vectors; give one vector for each chunk", len(ids), len(vectors))
	}
	if len(ids) > math.MaxInt32 {
		return nil, fmt.Errorf("there are %d chunks, want at most %d", len(ids), math.MaxInt32)
	}
	order := make([]int, len(ids))
	for i := range order {
		order[i] = i
		if ids[i] == "" {
			return nil, fmt.Errorf("%w: row %d; give every vector the ID of its chunk", mapmatched.ErrEmptyChunkID, i)
		}
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Or(cmp.Compare(ids[a], ids[b]), cmp.Compare(a, b)) })
	m := &unitRows{ids: make([]string, len(ids))}
	if len(ids) > 0 {
		m.dim = len(vectors[0])
	}
	for i, row := range vectors {
		if len(row) != m.dim {
			return nil, fmt.Errorf("row %d (chunk %q) has %d dimensions, row 0 (chunk %q) has %d; all rows must have the same",
				i, ids[i], len(row), ids[0], m.dim)
		}
		largest := 0.0
		for j, v := range row {
			if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
				return nil, fmt.Errorf("%w: row %d (chunk %q) is %v in dimension %d", mapmatched.ErrNonFinite, i, ids[i], v, j)
			}
			largest = max(largest, math.Abs(float64(v)))
		}
		if largest == 0 {
			return nil, fmt.Errorf("row %d (chunk %q) is the zero vector of %d dimensions, which has no direction; embed the chunk again or leave it out",
				i, ids[i], len(row))
		}
	}
	m.data = make([]float64, len(ids)*m.dim)
	for at, i := range order {
		m.ids[at] = ids[i]
		if at > 0 && ids[i] == m.ids[at-1] {
			return nil, fmt.Errorf("chunk ID %q is at row %d and at row %d; chunk IDs must be unique", ids[i], order[at-1], i)
		}
		row := m.row(at)
		for j, v := range vectors[i] {
			row[j] = float64(v)
		}
		length := math.Sqrt(dot(row, row))
		for j := range row {
			row[j] /= length
		}
	}
	return m, nil
}

func (m *unitRows) row(i int) []float64 { return m.data[i*m.dim : (i+1)*m.dim : (i+1)*m.dim] }

// selectNearest returns the k nearest others of each row. Each pair of tiles
// is compared once, for both of its sides. What a row selects is the k least
// of a total order (distance, row), so the order of the work does not matter.
func (m *unitRows) selectNearest(ctx context.Context, k int, progress func(done, total int)) ([]nearestHeap, error) {
	n := len(m.ids)
	heaps := make([]nearestHeap, n)
	slab := make([]nearestEntry, n*k)
	for i := range heaps {
		heaps[i] = slab[i*k : i*k : (i+1)*k]
	}
	tiles := (n + knnTile - 1) / knnTile
	locks := make([]sync.Mutex, tiles) // of the heaps of each tile
	work := tilePairs(tiles)
	var (
		next     atomic.Int64
		done     int
		doneLock sync.Mutex
		workers  sync.WaitGroup
	)
	for range min(runtime.GOMAXPROCS(0), len(work)) {
		workers.Go(func() {
			distances := make([]float64, knnTile*knnTile)
			for ctx.Err() == nil {
				at := int(next.Add(1)) - 1
				if at >= len(work) {
					return
				}
				m.compareTiles(work[at], distances, heaps, locks)
				if progress != nil {
					doneLock.Lock()
					done++
					progress(done, len(work))
					doneLock.Unlock()
				}
			}
		})
	}
	workers.Wait()
	return heaps, ctx.Err()
}

// tilePairs lists the pairs of tiles (a, b) with a ≤ b.
func tilePairs(tiles int) [][2]int {
	pairs := make([][2]int, 0, tiles*(tiles+1)/2)
	for a := range tiles {
		for b := a; b < tiles; b++ {
			pairs = append(pairs, [2]int{a, b})
		}
	}
	return pairs
}

// compareTiles offers the rows of two tiles to each other. distances is
// scratch of knnTile².
func (m *unitRows) compareTiles(tiles [2]int, distances []float64, heaps []nearestHeap, locks []sync.Mutex) {
	n := len(m.ids)
	a0, a1 := tiles[0]*knnTile, min((tiles[0]+1)*knnTile, n)
	b0, b1 := tiles[1]*knnTile, min((tiles[1]+1)*knnTile, n)
	for i := a0; i < a1; i++ {
		row := m.row(i)
		for j := max(b0, i+1); j < b1; j++ {
			distances[(i-a0)*knnTile+j-b0] = 1 - min(max(dot(row, m.row(j)), -1), 1)
		}
	}
	locks[tiles[0]].Lock()
	for i := a0; i < a1; i++ {
		for j := max(b0, i+1); j < b1; j++ {
			heaps[i].offer(distances[(i-a0)*knnTile+j-b0], int32(j))
		}
	}
	locks[tiles[0]].Unlock()
	locks[tiles[1]].Lock()
	for j := b0; j < b1; j++ {
		for i := a0; i < min(a1, j); i++ {
			heaps[j].offer(distances[(i-a0)*knnTile+j-b0], int32(i))
		}
	}
	locks[tiles[1]].Unlock()
}

// nearestEntry is a row at a distance.
type nearestEntry struct {
	distance float64
	row      int32
}

func (e nearestEntry) farther(f nearestEntry) bool {
	return e.distance > f.distance || e.distance == f.distance && e.row > f.row
}

// nearestHeap keeps the nearest of the rows it is offered, as many as its
// capacity, the farthest of them first.
type nearestHeap []nearestEntry

func (h *nearestHeap) offer(distance float64, row int32) {
	e := nearestEntry{distance, row}
	s := *h
	if len(s) < cap(s) {
		s = append(s, e)
		*h = s
		i := len(s) - 1
		for i > 0 && e.farther(s[(i-1)/2]) {
			s[i] = s[(i-1)/2]
			i = (i - 1) / 2
		}
		s[i] = e
		return
	}
	if !s[0].farther(e) {
		return
	}
	i := 0
	for {
		child := 2*i + 1
		if child+1 < len(s) && s[child+1].farther(s[child]) {
			child++
		}
		if child >= len(s) || !s[child].farther(e) {
			break
		}
		s[i] = s[child]
		i = child
	}
	s[i] = e
}
