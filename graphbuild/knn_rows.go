package graphbuild

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/mapmatched/mmplug/internal/kernel"
	"github.com/mapmatched/mmplug/mapmatched"
)

// rowSet are the different vectors of a source, in the order of the chunk IDs.
//
// Chunks with the same vector, bit for bit, are one row of the set: they have
// the same distances to all others, so the search for neighbours sees the vector
// once, whatever the number of its copies.
type rowSet struct {
	source VectorSource
	dim    int
	order  []int32 // rows of the source, by chunk ID

	first  []int32   // position in order of the least chunk ID of each row
	length []float64 // Euclidean
	hash   []uint64  // of the elements

	// copies lists the positions in order that each row stands for, ascending:
	// those of row u from copyStart[u] to copyStart[u+1].
	copies    []int32
	copyStart []int32
}

func (r *rowSet) len() int { return len(r.first) }

// rowBlock is how many rows a worker reads at a time.
const rowBlock = 256

// newRowSet reads and checks all vectors.
func newRowSet(ctx context.Context, source VectorSource) (*rowSet, error) {
	n := source.Len()
	if n > math.MaxInt32 {
		return nil, fmt.Errorf("there are %d chunks, want at most %d", n, math.MaxInt32)
	}
	r := &rowSet{source: source, dim: source.Dimension(), order: make([]int32, n)}
	for i := range r.order {
		r.order[i] = int32(i)
		if source.ID(i) == "" {
			return nil, fmt.Errorf("%w: row %d; give every vector the ID of its chunk", mapmatched.ErrEmptyChunkID, i)
		}
	}
	lengths, hashes := make([]float64, n), make([]uint64, n)
	faults := make([]error, (n+rowBlock-1)/rowBlock)
	err := forEach(ctx, len(faults), nil, func() func(int) {
		buffer, wide := make([]float32, r.dim), make([]float64, r.dim)
		return func(block int) {
			for i := block * rowBlock; i < min((block+1)*rowBlock, n); i++ {
				if lengths[i], hashes[i], faults[block] = r.readRow(i, buffer, wide); faults[block] != nil {
					return
				}
			}
		}
	})
	if err != nil {
		return nil, err
	}
	for _, fault := range faults {
		if fault != nil {
			return nil, fault
		}
	}
	slices.SortFunc(r.order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(source.ID(int(a)), source.ID(int(b))), cmp.Compare(a, b))
	})
	for at := 1; at < n; at++ {
		if a, b := r.order[at-1], r.order[at]; source.ID(int(a)) == source.ID(int(b)) {
			return nil, fmt.Errorf("chunk ID %q is at row %d and at row %d; chunk IDs must be unique", source.ID(int(a)), a, b)
		}
	}
	r.groupCopies(lengths, hashes)
	return r, ctx.Err()
}

// readRow returns the length and the hash of a row of the source. buffer and
// wide are scratch of the dimension.
func (r *rowSet) readRow(i int, buffer []float32, wide []float64) (length float64, hash uint64, err error) {
	row := r.source.Row(i, buffer)
	largest := 0.0
	for j, v := range row {
		x := float64(v)
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return 0, 0, fmt.Errorf("%w: row %d (chunk %q) is %v in dimension %d", mapmatched.ErrNonFinite, i, r.source.ID(i), v, j)
		}
		largest = max(largest, math.Abs(x))
		wide[j] = x
		hash = bits.RotateLeft64((hash^uint64(math.Float32bits(v)))*0x9E3779B97F4A7C15, 29)
	}
	if largest == 0 {
		return 0, 0, fmt.Errorf("row %d (chunk %q) is the zero vector of %d dimensions, which has no direction; embed the chunk again or leave it out",
			i, r.source.ID(i), len(row))
	}
	return math.Sqrt(dot(wide, wide)), hash, nil
}

// groupCopies makes one row of all source rows with the same bits.
func (r *rowSet) groupCopies(lengths []float64, hashes []uint64) {
	rowOf := make([]int32, len(r.order))
	chain := make([]int32, 0, len(r.order)) // earlier row with the same hash, −1 for none
	last := make(map[uint64]int32, len(r.order))
	mine, other := make([]float32, r.dim), make([]float32, r.dim)
	for at, i := range r.order {
		v := r.source.Row(int(i), mine)
		head, known := last[hashes[i]]
		if !known {
			head = -1
		}
		same := head
		for same >= 0 && !sameBits(v, r.source.Row(int(r.order[r.first[same]]), other)) {
			same = chain[same]
		}
		if same < 0 {
			same = int32(len(r.first))
			last[hashes[i]] = same
			chain = append(chain, head)
			r.first = append(r.first, int32(at))
			r.length = append(r.length, lengths[i])
			r.hash = append(r.hash, hashes[i])
		}
		rowOf[at] = same
	}
	r.copyStart, r.copies = groupBy(rowOf, len(r.first))
}

func sameBits(a, b []float32) bool {
	for i := range a {
		if math.Float32bits(a[i]) != math.Float32bits(b[i]) {
			return false
		}
	}
	return true
}

// groupBy lists the indexes with each key in [0, keys), ascending: those with
// key g are members[start[g]:start[g+1]].
func groupBy(key []int32, keys int) (start, members []int32) {
	start = make([]int32, keys+1)
	for _, g := range key {
		start[g+1]++
	}
	for g := range keys {
		start[g+1] += start[g]
	}
	members = make([]int32, len(key))
	next := slices.Clone(start)
	for i, g := range key {
		members[next[g]] = int32(i)
		next[g]++
	}
	return start, members
}

// vector returns the elements of a row as the source has them.
func (r *rowSet) vector(u int32, buffer []float32) []float32 {
	return r.source.Row(int(r.order[r.first[u]]), buffer)
}

// measure holds the scratch of a worker that measures distances.
type measure struct {
	rows   *rowSet
	buffer []float32
	unit   []float64
	of     int32 // the row that unit has, −1 for none
}

func (r *rowSet) newMeasure() *measure {
	return &measure{rows: r, buffer: make([]float32, r.dim), unit: make([]float64, r.dim), of: -1}
}

// distance returns the cosine distance of two rows, in [0, 2]: the definition,
// in float64. It is quickest when u stays the same.
func (m *measure) distance(u, v int32) float64 {
	if m.of != u {
		for j, x := range m.rows.vector(u, m.buffer) {
			m.unit[j] = float64(x) / m.rows.length[u]
		}
		m.of = u
	}
	cosine := dotUnit(m.unit, m.rows.vector(v, m.buffer), m.rows.length[v])
	return 1 - min(max(cosine, -1), 1)
}

// scoreError bounds how far the product of two packed rows is from the cosine
// that distance finds: the kernel's error, two roundings for each packed
// element, and those of float64, for which one more is plenty. No cosine is
// more than 2 from another.
func (r *rowSet) scoreError() float64 {
	return min(kernel.ProductError(r.dim+4), 2)
}

// pack puts rows at the beginning of a panel, scaled to length 1, and clears
// the rest of it.
func (r *rowSet) pack(panel []float32, rows []int32, buffer []float32) {
	for i, u := range rows {
		kernel.SetRow(panel, i, r.vector(u, buffer), 1/r.length[u])
	}
	for i := len(rows); i < kernel.PanelRows; i++ {
		kernel.ClearRow(panel, i, r.dim)
	}
}

// packAll returns panels of rows.
func (r *rowSet) packAll(ctx context.Context, rows []int32) ([]float32, error) {
	panels := make([]float32, kernel.PanelLen(len(rows), r.dim))
	err := forEach(ctx, panelsOf(len(rows)), nil, func() func(int) {
		buffer := make([]float32, r.dim)
		return func(p int) {
			r.pack(kernel.Panel(panels, p, r.dim), panelRows(rows, p), buffer)
		}
	})
	return panels, err
}

// panelsOf returns how many panels hold n rows.
func panelsOf(n int) int { return (n + kernel.PanelRows - 1) / kernel.PanelRows }

// panelRows returns the rows of a panel.
func panelRows(rows []int32, panel int) []int32 {
	return rows[panel*kernel.PanelRows : min((panel+1)*kernel.PanelRows, len(rows))]
}
