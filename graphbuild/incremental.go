package graphbuild

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/mapmatched/mmplug/mapmatched"
)

// KNNGraph is an exact graph of nearest neighbours that can change: chunks are
// added, replaced and deleted without building it again, and after each change
// [KNNGraph.Edges] are those that [KNN] makes of the chunks there are, bit for
// bit.
//
// It keeps the vectors and, for each chunk, the K nearest others with their
// distances. A new or replaced vector is compared with all chunks. Chunks that
// had a deleted or replaced one among their nearest are compared with all again,
// on average about K of them for each such chunk. So a change of c chunks in N
// takes time of the order of c·(1+K)·N·d for d dimensions. A change of one chunk
// in 64 or more compares all with all: that is quicker then. The memory is
// 4·N·d + 16·N·K bytes, and while a change is made up to twice that.
//
// A method that returns an error has changed nothing. A KNNGraph is not safe
// for concurrent use.
type KNNGraph struct {
	opts  KNNOptions // with defaults
	dim   int        // 0 before the first vector
	slots []knnSlot  // in no order; slots are used again
	free  []int32    // slots without a chunk
	at    map[string]int32
}

// knnSlot is a chunk of a KNNGraph.
type knnSlot struct {
	id     string // "" when there is no chunk
	vector []float32
	length float64 // Euclidean, of vector
	// nearest are the K nearest others by distance and chunk ID, or all others
	// where there are fewer.
	nearest []nearest
}

// NewKNNGraph makes the graph of the vectors of a source. opts are those of
// [KNN]; a Method other than exact is an error. Of opts.Progress only this
// function makes use.
func NewKNNGraph(ctx context.Context, source VectorSource, opts *KNNOptions) (*KNNGraph, error) {
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	g := &KNNGraph{opts: opts.withDefaults(), at: map[string]int32{}}
	if g.opts.Method == KNNApproximate {
		return nil, fmt.Errorf("%w: Method is %q; a graph that changes is exact", mapmatched.ErrInvalidConfig, g.opts.Method)
	}
	rows, err := newRowSet(ctx, source)
	if err != nil {
		return nil, err
	}
	n := source.Len()
	if n == 0 {
		return g, ctx.Err()
	}
	g.dim = source.Dimension()
	k := min(g.opts.K, n-1)
	found, err := rows.exactNeighbours(ctx, min(k, rows.len()-1), newProgress(g.opts.Progress))
	if err != nil {
		return nil, err
	}
	g.slots = make([]knnSlot, n)
	for u := range rows.len() {
		vector := slices.Clone(rows.vector(int32(u), make([]float32, g.dim)))
		for _, at := range rows.copiesOf(int32(u)) {
			g.slots[at] = knnSlot{id: strings.Clone(source.ID(int(rows.order[at]))), vector: vector, length: rows.length[u]}
			g.at[g.slots[at].id] = at
		}
	}
	err = rows.eachList(ctx, rows.all(), found, k, func(at int32, list []nearest) { g.slots[at].nearest = list })
	if err != nil {
		return nil, err
	}
	return g, nil
}

// eachList calls do with the k nearest others of each chunk, by position in the
// order of IDs, that has one of some rows, of which found has the nearest rows.
// It calls do from several goroutines, once for each chunk.
func (r *rowSet) eachList(ctx context.Context, rows []int32, found *neighbours, k int, do func(at int32, list []nearest)) error {
	return forEach(ctx, len(rows), nil, func() func(int) {
		m := r.newMeasure()
		return func(place int) {
			near := r.chunksNear(m, rows[place], found.of(place), k)
			for _, at := range r.copiesOf(rows[place]) {
				list := make([]nearest, 0, k)
				for _, e := range near {
					if e.row != at && len(list) < k {
						list = append(list, e)
					}
				}
				do(at, list)
			}
		}
	})
}

// unit fills dst with the vector of the slot scaled to length 1.
func (s *knnSlot) unit(dst []float64) {
	for j, x := range s.vector {
		dst[j] = float64(x) / s.length
	}
}

// unitDistance is the cosine distance of vectors of length 1, with the bits of
// measure.distance.
func unitDistance(a, b []float64) float64 { return 1 - min(max(dot(a, b), -1), 1) }

// knnSlots are the chunks of some slots as a VectorSource.
type knnSlots struct {
	slots []knnSlot
	used  []int32 // those with a chunk
	dim   int
}

func (s *knnSlots) Len() int                           { return len(s.used) }
func (s *knnSlots) Dimension() int                     { return s.dim }
func (s *knnSlots) ID(row int) string                  { return s.slots[s.used[row]].id }
func (s *knnSlots) Row(row int, _ []float32) []float32 { return s.slots[s.used[row]].vector }

// Len is the number of chunks.
func (g *KNNGraph) Len() int { return len(g.at) }

// Has reports whether the graph has a chunk.
func (g *KNNGraph) Has(chunkID string) bool {
	_, known := g.at[chunkID]
	return known
}

// Add adds chunks with their vectors. A chunk that is there already is an error;
// so is a vector that [KNN] refuses or that has another dimension than those
// there are.
func (g *KNNGraph) Add(ctx context.Context, ids []string, vectors [][]float32) error {
	for i, id := range ids {
		if g.Has(id) {
			return fmt.Errorf("add: row %d: chunk %q is in the graph already; replace it", i, id)
		}
	}
	return g.put(ctx, "add", ids, vectors)
}

// Replace gives chunks other vectors. A chunk that is not there is an error, and
// so is a vector that Add refuses.
func (g *KNNGraph) Replace(ctx context.Context, ids []string, vectors [][]float32) error {
	for i, id := range ids {
		if !g.Has(id) {
			return fmt.Errorf("replace: row %d: chunk %q is not in the graph; add it", i, id)
		}
	}
	return g.put(ctx, "replace", ids, vectors)
}

// Delete takes chunks out. A chunk that is not there or is given twice is an
// error.
func (g *KNNGraph) Delete(ctx context.Context, ids []string) error {
	gone := make([]int32, len(ids))
	seen := map[string]bool{}
	for i, id := range ids {
		at, known := g.at[id]
		if !known || seen[id] {
			return fmt.Errorf("delete: row %d: chunk %q is not in the graph, or given twice; delete chunks that are there", i, id)
		}
		seen[id] = true
		gone[i] = at
	}
	return g.change(ctx, gone, nil)
}

// put adds chunks in the place of any with the same IDs.
func (g *KNNGraph) put(ctx context.Context, what string, ids []string, vectors [][]float32) error {
	source, err := newSliceSource(ids, vectors)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if source.dim != g.dim && g.Len() > 0 && len(ids) > 0 {
		return fmt.Errorf("%s: row 0 (chunk %q) has %d dimensions, the vectors of the graph have %d; embed with the same model", what, ids[0], source.dim, g.dim)
	}
	rows, err := newRowSet(ctx, source)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	var gone []int32
	fresh := make([]knnSlot, len(ids))
	for u := range rows.len() {
		vector := slices.Clone(rows.vector(int32(u), nil))
		for _, at := range rows.copiesOf(int32(u)) {
			row := rows.order[at]
			fresh[row] = knnSlot{id: strings.Clone(ids[row]), vector: vector, length: rows.length[u]}
			if old, known := g.at[ids[row]]; known {
				gone = append(gone, old)
			}
		}
	}
	return g.change(ctx, gone, fresh)
}

// change takes chunks out and puts others in.
func (g *KNNGraph) change(ctx context.Context, gone []int32, fresh []knnSlot) error {
	// The slots as they will be, with the old lists: new chunks take the slots
	// of gone ones, then free ones, then new ones.
	after := slices.Clone(g.slots)
	free := slices.Clone(g.free)
	missing := make([]bool, len(g.slots)) // chunks of the old lists that are gone
	for _, at := range gone {
		after[at] = knnSlot{}
		missing[at] = true
		free = append(free, at)
	}
	put := make([]int32, len(fresh))
	for i, s := range fresh {
		if len(free) == 0 {
			after = append(after, knnSlot{})
			free = append(free, int32(len(after)-1))
		}
		put[i] = free[len(free)-1]
		free = free[:len(free)-1]
		after[put[i]] = s
	}

	// Chunks whose list has to be made from scratch, and all others.
	again := slices.Clone(put)
	isAgain := make([]bool, len(after))
	for _, at := range put {
		isAgain[at] = true
	}
	var others []int32
	for i := range after {
		if after[i].id == "" || isAgain[i] {
			continue
		}
		if slices.ContainsFunc(after[i].nearest, func(e nearest) bool { return missing[e.row] }) {
			again = append(again, int32(i))
		} else {
			others = append(others, int32(i))
		}
	}
	dim := g.dim
	if len(fresh) > 0 {
		dim = len(fresh[0].vector)
	}
	if len(put)*64 >= len(others) {
		again, others = append(again, others...), nil
	}
	lists := make([][]nearest, len(after))
	if err := makeLists(ctx, after, again, dim, g.opts.K, lists); err != nil {
		return err
	}
	units := make([]float64, len(put)*dim)
	for i, j := range put {
		after[j].unit(units[i*dim : (i+1)*dim])
	}
	err := forEach(ctx, len(others), nil, func() func(int) {
		mine := make([]float64, dim)
		return func(i int) {
			s := &after[others[i]]
			list := &nearestList{after, g.opts.K, s.nearest, true}
			if len(put) > 0 {
				s.unit(mine)
			}
			for at, j := range put {
				list.offer(unitDistance(mine, units[at*dim:(at+1)*dim]), j)
			}
			lists[others[i]] = list.list
		}
	})
	if err != nil {
		return err
	}

	// Nothing below can fail.
	for _, at := range gone {
		delete(g.at, g.slots[at].id)
	}
	for i := range after {
		after[i].nearest = lists[i]
	}
	g.slots, g.free, g.dim = after, free, dim
	for i, at := range put {
		g.at[fresh[i].id] = at
	}
	return nil
}

// kernelFrom is how many lists are made with kernels, which have to be fed with
// all vectors first, rather than one by one.
const kernelFrom = 32

// makeLists makes the lists of some slots from scratch: lists[i] is that of slot
// i, of vectors of the given dimension.
func makeLists(ctx context.Context, slots []knnSlot, of []int32, dim, most int, lists [][]nearest) error {
	all := &knnSlots{slots: slots, dim: dim}
	for i := range slots {
		if slots[i].id != "" {
			all.used = append(all.used, int32(i))
		}
	}
	if len(of) < kernelFrom {
		return fewLists(ctx, all, of, most, lists)
	}
	rows, err := newRowSet(ctx, all)
	if err != nil {
		return err
	}
	wanted := make([]bool, len(slots))
	for _, i := range of {
		wanted[i] = true
	}
	var few []int32 // rows that wanted slots have
	for u := range rows.len() {
		if slices.ContainsFunc(rows.copiesOf(int32(u)), func(at int32) bool { return wanted[all.used[rows.order[at]]] }) {
			few = append(few, int32(u))
		}
	}
	k := min(most, len(all.used)-1)
	var found *neighbours
	switch rowK := min(k, rows.len()-1); {
	case rowK == 0:
		found = &neighbours{count: make([]int32, len(few))}
	case len(few) == rows.len():
		found, err = rows.exactNeighbours(ctx, rowK, nil)
	default:
		found, err = rows.exactFor(ctx, few, rowK, nil)
	}
	if err != nil {
		return err
	}
	return rows.eachList(ctx, few, found, k, func(at int32, list []nearest) {
		slot := all.used[rows.order[at]]
		if !wanted[slot] {
			return
		}
		for i := range list {
			list[i].row = all.used[rows.order[list[i].row]]
		}
		lists[slot] = list
	})
}

// fewLists is makeLists without kernels.
func fewLists(ctx context.Context, all *knnSlots, of []int32, most int, lists [][]nearest) error {
	units := make([]float64, len(of)*all.dim)
	found := make([]nearestList, len(of))
	for i, slot := range of {
		all.slots[slot].unit(units[i*all.dim : (i+1)*all.dim])
		found[i] = nearestList{all.slots, most, make([]nearest, 0, min(most, len(all.used))), false}
	}
	distances := make([]float64, len(all.used)*len(of))
	err := forEach(ctx, len(all.used), nil, func() func(int) {
		unit := make([]float64, all.dim)
		return func(at int) {
			all.slots[all.used[at]].unit(unit)
			for i := range of {
				distances[at*len(of)+i] = unitDistance(units[i*all.dim:(i+1)*all.dim], unit)
			}
		}
	})
	if err != nil {
		return err
	}
	for at, j := range all.used {
		for i := range of {
			if j != of[i] {
				found[i].offer(distances[at*len(of)+i], j)
			}
		}
	}
	for i, slot := range of {
		lists[slot] = found[i].list
	}
	return nil
}

// nearestList keeps the nearest slots it is offered.
type nearestList struct {
	slots []knnSlot
	most  int
	list  []nearest // by distance and chunk ID

	shared bool // list is that of the graph before the change
}

func (l *nearestList) offer(distance float64, slot int32) {
	if len(l.list) == l.most && distance > l.list[l.most-1].distance {
		return
	}
	at, _ := slices.BinarySearchFunc(l.list, nearest{distance, slot}, func(a, b nearest) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), strings.Compare(l.slots[a.row].id, l.slots[b.row].id))
	})
	if at == l.most {
		return
	}
	if l.shared {
		l.list, l.shared = append(make([]nearest, 0, l.most), l.list...), false
	}
	if len(l.list) == l.most {
		l.list = l.list[:l.most-1]
	}
	l.list = slices.Insert(l.list, at, nearest{distance, slot})
}

// Edges returns the edges of the graph, as [KNN] does.
func (g *KNNGraph) Edges() []mapmatched.Edge {
	var edges []mapmatched.Edge
	for i := range g.slots {
		from := &g.slots[i]
		for _, e := range from.nearest {
			to := g.slots[e.row].id
			edges = append(edges, mapmatched.Edge{
				From: min(from.id, to), To: max(from.id, to), Type: mapmatched.EdgeKNN,
				Weight: min(max(e.distance, g.opts.MinimumEdgeDistance), g.opts.MaximumDistance),
			})
		}
	}
	return uniqueEdges(edges)
}

// Neighbors lists the chunks that a chunk has selected, nearest first, with their
// cosine distances. An unknown chunk has none.
func (g *KNNGraph) Neighbors(chunkID string) []mapmatched.Neighbor {
	at, known := g.at[chunkID]
	if !known {
		return nil
	}
	var near []mapmatched.Neighbor
	for _, e := range g.slots[at].nearest {
		near = append(near, mapmatched.Neighbor{ChunkID: g.slots[e.row].id, Distance: e.distance})
	}
	return near
}
