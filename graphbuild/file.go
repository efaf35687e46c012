package graphbuild

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"iter"
	"math"
	"os"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/mapmatched/mmplug/internal/disk"
	"github.com/mapmatched/mmplug/mapmatched"
)

// OpenGraphOptions are the settings of [OpenGraph]. The zero value, and nil,
// are the defaults.
type OpenGraphOptions struct {
	// SkipChecksums opens without reading the distance table or the labels
	// through: fast on a file larger than memory. Content of them that cannot
	// be right shows as an error of the question that meets it. IDs and arcs
	// are checked all the same.
	SkipChecksums bool
}

// GraphFile is an open graph file: a mapmatched.CorpusGraph that answers from a
// memory map. It is safe for concurrent use. What its methods return is copied
// out of the file and stays valid after Close.
type GraphFile struct {
	header  header
	meta    fileMeta
	data    []byte // the map
	idFirst []uint64
	ids     []byte
	buckets []uint32
	nodes   []uint32 // by bucket
	bits    uint
	adj     mapmatched.Adjacency
	table   *tableIndex
	labels  *labelIndex
	scratch sync.Pool // of *fileScratch

	mu     sync.Mutex
	users  int // calls that are reading the map
	closed bool
}

// fileScratch is what one batch of questions needs.
type fileScratch struct {
	from, to []int32
	open     []int32 // targets of one source that labels cannot answer, the others negative
	question question
	search   *mapmatched.Search
	labels   *labelScratch
}

// OpenGraph opens a graph file that [WriteGraph] made. It never changes, even
// when the file is replaced by a new one later on.
//
// Errors are of type *mapmatched.Error: of kind not found when there is no such
// file, invalid when it is not a graph file or one of another version (stale,
// mapmatched.ErrStaleIndex), corrupt when it is damaged. Any changed bit and
// any missing byte is noticed, unless checksums are skipped.
func OpenGraph(ctx context.Context, path string, opts *OpenGraphOptions) (*GraphFile, error) {
	const op = "open"
	if opts == nil {
		opts = &OpenGraphOptions{}
	}
	data, h, err := mapGraph(path)
	if err != nil {
		return nil, failGraph(op, fmt.Errorf("%s: %w", path, err))
	}
	g := &GraphFile{header: *h, data: data}
	g.scratch.New = func() any {
		s := &fileScratch{search: mapmatched.NewSearch(g.NumNodes())}
		if g.labels != nil {
			s.labels = newLabelScratch(g.NumNodes())
		}
		return s
	}
	err = g.guarded(ctx, op, func() error { return g.load(ctx, opts) })
	if err != nil {
		_ = disk.Unmap(data) // a whole map that was made: it cannot fail
		return nil, failGraph(op, fmt.Errorf("%s: %w", path, err))
	}
	return g, nil
}

// noFileError is fs.ErrNotExist in words that say what to do.
type noFileError struct{}

// Error implements error.
func (noFileError) Error() string {
	return "there is no such file: make one with mmplug graph build"
}

// Unwrap makes it fs.ErrNotExist.
func (noFileError) Unwrap() error { return fs.ErrNotExist }

// mapGraph maps a file whose header is right.
func mapGraph(path string) ([]byte, *header, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil, noFileError{}
	case err != nil:
		return nil, nil, err
	case !info.Mode().IsRegular():
		return nil, nil, fmt.Errorf("%w: it is not a regular file", errForeign)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = f.Close() }()
	if info, err = f.Stat(); err != nil {
		return nil, nil, err
	}
	head := make([]byte, headerSize)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, nil, err
	}
	h, err := decodeHeader(head[:n], info.Size())
	if err != nil {
		return nil, nil, err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, nil, err
	}
	if int64(int(info.Size())) != info.Size() {
		return nil, nil, fmt.Errorf("the file has %d bytes, more than this system maps", info.Size())
	}
	data, err := disk.Map(f, int(info.Size()))
	if err != nil {
		return nil, nil, fmt.Errorf("cannot map the file: %w", err)
	}
	return data, h, nil
}

// load checks the sections and looks into them.
func (g *GraphFile) load(ctx context.Context, opts *OpenGraphOptions) error {
	bySection := map[sectionKind][]byte{}
	for _, s := range g.header.sections {
		big := s.kind >= sectionTable && s.kind < sectionMeta
		if !opts.SkipChecksums || !big {
			if err := checkSum(ctx, s, g.data[s.offset:s.offset+s.padded()]); err != nil {
				return err
			}
		}
		bySection[s.kind] = g.data[s.offset : s.offset+s.size : s.offset+s.size]
	}
	meta, err := decodeMeta(bySection[sectionMeta])
	if err != nil {
		return err
	}
	g.meta = *meta
	n, arcs := g.header.nodes, g.header.arcs
	g.bits = bucketBits(int(n))
	sizes := []struct {
		kind sectionKind
		size uint64 // in bytes
	}{
		{sectionIDFirst, 8 * (n + 1)}, {sectionBucketFirst, 4 * (1<<g.bits + 1)}, {sectionBucketNodes, 4 * n},
		{sectionFirst, 4 * (n + 1)}, {sectionArcs, 16 * arcs},
	}
	for _, s := range sizes {
		if err := g.sized(bySection, s.kind, s.size); err != nil {
			return err
		}
	}
	g.idFirst, g.ids = viewUint64(bySection[sectionIDFirst]), bySection[sectionIDs]
	g.buckets, g.nodes = viewUint32(bySection[sectionBucketFirst]), viewUint32(bySection[sectionBucketNodes])
	g.adj = mapmatched.Adjacency{First: viewInt32(bySection[sectionFirst]), Arcs: viewArcs(bySection[sectionArcs])}
	if err := g.checkIDs(ctx); err != nil {
		return err
	}
	if err := g.checkArcs(ctx); err != nil {
		return err
	}
	switch meta.Distances.Method {
	case DistancesSearch:
		return nil
	case DistancesTable:
		return g.loadTable(bySection)
	case DistancesLabels:
		return g.loadLabels(bySection)
	}
	return damaged("meta", "there is no distance method %q", meta.Distances.Method)
}

// sized checks the size of a section.
func (g *GraphFile) sized(sections map[sectionKind][]byte, kind sectionKind, size uint64) error {
	if b, found := sections[kind]; !found || uint64(len(b)) != size {
		return damaged(kind.String(), "it has %d bytes, wanted %d", len(b), size)
	}
	return nil
}

// checkSum compares the checksum of a section, a piece at a time.
func checkSum(ctx context.Context, s fileSection, b []byte) error {
	crc := uint32(0)
	for piece := range slices.Chunk(b, 1<<20) {
		if err := ctx.Err(); err != nil {
			return err
		}
		crc = crc32.Update(crc, castagnoli, piece)
	}
	if crc != s.crc {
		return damaged(s.kind.String(), "it has checksum %08x, wanted %08x", crc, s.crc)
	}
	return nil
}

// checkEvery is how many steps a loop takes between two looks at its context.
const checkEvery = 4096

// checkIDs expects the IDs in ascending order and each in its bucket.
func (g *GraphFile) checkIDs(ctx context.Context) error {
	n := g.NumNodes()
	if g.idFirst[0] != 0 || g.idFirst[n] != uint64(len(g.ids)) {
		return damaged("ID offsets", "they run from %d to %d, wanted 0 to %d", g.idFirst[0], g.idFirst[n], len(g.ids))
	}
	for v := range n {
		if v%checkEvery == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if first, end := g.idFirst[v], g.idFirst[v+1]; first >= end || end > uint64(len(g.ids)) {
			return damaged("ID offsets", "the ID of node %d is bytes %d to %d of %d", v, first, end, len(g.ids))
		}
		if v > 0 && bytes.Compare(g.id(int32(v-1)), g.id(int32(v))) >= 0 {
			return damaged("IDs", "node %d is not behind node %d", v, v-1)
		}
	}
	if g.buckets[0] != 0 || g.buckets[len(g.buckets)-1] != uint32(n) {
		return damaged("bucket offsets", "they run from %d to %d, wanted 0 to %d", g.buckets[0], g.buckets[len(g.buckets)-1], n)
	}
	for b := range len(g.buckets) - 1 {
		first, end := g.buckets[b], g.buckets[b+1]
		if first > end || end > uint32(n) {
			return damaged("bucket offsets", "bucket %d is nodes %d to %d of %d", b, first, end, n)
		}
		for i := first; i < end; i++ {
			v := g.nodes[i]
			if v >= uint32(n) || i > first && v <= g.nodes[i-1] || idBucket(g.id(int32(v)), g.bits) != uint64(b) {
				return damaged("buckets", "node %d of %d does not belong to bucket %d", v, n, b)
			}
		}
	}
	return nil
}

// checkArcs expects every arc to be possible and in its place.
func (g *GraphFile) checkArcs(ctx context.Context) error {
	n, arcs := g.NumNodes(), g.adj.Arcs
	if !slices.IsSorted(g.meta.EdgeTypes) {
		return damaged("meta", "the edge types are not in ascending order")
	}
	if g.adj.First[0] != 0 || int(g.adj.First[n]) != len(arcs) || !g.header.directed && len(arcs)%2 == 1 {
		return damaged("arc offsets", "they run from %d to %d, wanted 0 to %d", g.adj.First[0], g.adj.First[n], len(arcs))
	}
	for v := range int32(n) {
		if v%checkEvery == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		first, end := g.adj.First[v], g.adj.First[v+1]
		if first > end || int(end) > len(arcs) {
			return damaged("arc offsets", "the arcs of node %d are %d to %d of %d", v, first, end, len(arcs))
		}
		for i := first; i < end; i++ {
			a := arcs[i]
			if a.To < 0 || int(a.To) >= n || a.To == v || a.Type < 0 || int(a.Type) >= len(g.meta.EdgeTypes) || !(a.Weight > 0) || math.IsInf(a.Weight, 0) {
				return damaged("arcs", "arc %d leads from node %d to node %d of %d with weight %v and type %d of %d", i, v, a.To, n, a.Weight, a.Type, len(g.meta.EdgeTypes))
			}
			if i > first && cmp.Or(cmp.Compare(arcs[i-1].Weight, a.Weight), cmp.Compare(arcs[i-1].To, a.To)) >= 0 {
				return damaged("arcs", "arc %d of node %d is not behind the one before", i, v)
			}
		}
	}
	return nil
}

func (g *GraphFile) loadTable(sections map[sectionKind][]byte) error {
	if err := g.sized(sections, sectionTableFirst, 8*(g.header.nodes+1)); err != nil {
		return err
	}
	g.table = &tableIndex{viewUint64(sections[sectionTableFirst]), sections[sectionTable]}
	if last := g.table.first[g.header.nodes]; last != uint64(len(g.table.rows))/8 || len(g.table.rows)%8 != 0 {
		return damaged("table", "it has %d bytes, wanted %d words of 8", len(g.table.rows), last)
	}
	return nil
}

func (g *GraphFile) loadLabels(sections map[sectionKind][]byte) error {
	x := &labelIndex{slack: newLabelSlack(&g.adj, g.header.maximum), maximum: g.header.maximum, arcs: g.adj.Arcs}
	if x.slack.exact != g.meta.Exact {
		return damaged("meta", "labels_exact is %t, the weights say %t", g.meta.Exact, x.slack.exact)
	}
	side := func(first, hubs, steps sectionKind) (*labelSet, error) {
		if err := g.sized(sections, first, 4*(g.header.nodes+1)); err != nil {
			return nil, err
		}
		l := &labelSet{first: viewUint32(sections[first])}
		entries := uint64(l.first[g.header.nodes])
		if err := g.sized(sections, hubs, 8*entries); err != nil {
			return nil, err
		}
		l.hubs = viewHubs(sections[hubs])
		if x.slack.exact {
			entries = 0
		}
		if err := g.sized(sections, steps, 8*entries); err != nil {
			return nil, err
		}
		l.steps = viewSteps(sections[steps])
		return l, nil
	}
	var err error
	if x.out, err = side(sectionLabelFirst, sectionLabelHubs, sectionLabelSteps); err != nil {
		return err
	}
	x.in = x.out
	if g.header.directed {
		if x.in, err = side(sectionLabelInFirst, sectionLabelInHubs, sectionLabelInSteps); err != nil {
			return err
		}
	}
	g.labels = x
	return nil
}

// Close implements io.Closer. It does not wait: calls that are running finish
// normally, later ones fail with mapmatched.ErrClosed, and the file is released
// with the last of them. Closing again does nothing.
func (g *GraphFile) Close() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		g.closed = true
		g.unmap()
	}
	return nil
}

// unmap gives the map back if nobody needs it. Unmapping what was mapped cannot
// fail.
func (g *GraphFile) unmap() {
	if g.closed && g.users == 0 {
		_ = disk.Unmap(g.data)
	}
}

// acquire keeps the map until release.
func (g *GraphFile) acquire(op string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return failGraph(op, mapmatched.ErrClosed)
	}
	g.users++
	return nil
}

func (g *GraphFile) release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.users--
	g.unmap()
}

// do runs one operation on the map.
func (g *GraphFile) do(ctx context.Context, op string, run func() error) error {
	if err := g.acquire(op); err != nil {
		return err
	}
	defer g.release()
	return failGraph(op, g.guarded(ctx, op, run))
}

// guarded runs what reads the map unless ctx is done. A file that was truncated
// after it was mapped makes such a read fault; the fault becomes an error, as
// far as the system lets it.
func (g *GraphFile) guarded(ctx context.Context, op string, run func() error) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	before := debug.SetPanicOnFault(true)
	defer func() {
		debug.SetPanicOnFault(before)
		switch r := recover().(type) {
		case nil:
		case interface{ Addr() uintptr }:
			err = fmt.Errorf("%w: the file was cut during %s (%v): build it again", errDamaged, op, r)
		default:
			panic(r)
		}
	}()
	return run()
}

// id returns the ID of a node.
func (g *GraphFile) id(node int32) []byte { return g.ids[g.idFirst[node]:g.idFirst[node+1]] }

// find returns the node of an ID, or a negative number.
func (g *GraphFile) find(id string) int32 {
	bucket := idBucket(id, g.bits)
	nodes := g.nodes[g.buckets[bucket]:g.buckets[bucket+1]]
	low, high := 0, len(nodes)
	for low < high {
		middle := int(uint(low+high) / 2)
		got := g.id(int32(nodes[middle]))
		switch {
		case string(got) == id:
			return int32(nodes[middle])
		case string(got) < id:
			low = middle + 1
		default:
			high = middle
		}
	}
	return -1
}

// MaximumDistance implements mapmatched.CorpusGraph. It answers after Close
// too.
func (g *GraphFile) MaximumDistance() float64 { return g.header.maximum }

// Directed reports whether edges are passable one way only.
func (g *GraphFile) Directed() bool { return g.header.directed }

// NumNodes is the number of chunks in the graph.
func (g *GraphFile) NumNodes() int { return int(g.header.nodes) }

// NumEdges is the number of edges, an undirected edge counting once.
func (g *GraphFile) NumEdges() int {
	if g.header.directed {
		return int(g.header.arcs)
	}
	return int(g.header.arcs / 2)
}

// Method is how the file answers distances, and why.
func (g *GraphFile) Method() DistanceChoice { return g.meta.Distances }

// Provenance says how the graph was made.
func (g *GraphFile) Provenance() Provenance { return g.meta.Provenance }

// Health implements mapmatched.HealthChecker: a file that is open can answer.
func (g *GraphFile) Health(ctx context.Context) error {
	return g.do(ctx, "health", func() error { return nil })
}

// Nodes returns the chunk IDs in ascending order, none after Close.
func (g *GraphFile) Nodes() []string {
	var ids []string
	err := g.do(context.Background(), "nodes", func() error {
		ids = make([]string, g.NumNodes())
		for v := range ids {
			ids[v] = string(g.id(int32(v)))
		}
		return nil
	})
	if err != nil {
		return nil
	}
	return ids
}

// Edges implements mapmatched.EdgeLister: ascending by From and To, an
// undirected edge once with From < To. After an error nothing follows.
func (g *GraphFile) Edges(ctx context.Context) iter.Seq2[mapmatched.Edge, error] {
	return func(yield func(mapmatched.Edge, error) bool) {
		const op = "edges"
		var block []mapmatched.Edge
		var arcs []mapmatched.Arc
		for v := int32(0); ; {
			block = block[:0]
			err := g.do(ctx, op, func() error {
				for ; int(v) < g.NumNodes() && len(block) < checkEvery; v++ {
					arcs = append(arcs[:0], g.adj.Arcs[g.adj.First[v]:g.adj.First[v+1]]...)
					slices.SortFunc(arcs, func(a, b mapmatched.Arc) int { return cmp.Compare(a.To, b.To) })
					from := string(g.id(v))
					for _, a := range arcs {
						if g.header.directed || a.To > v {
							block = append(block, mapmatched.Edge{From: from, To: string(g.id(a.To)), Weight: a.Weight, Type: g.meta.EdgeTypes[a.Type]})
						}
					}
				}
				return nil
			})
			if err != nil {
				yield(mapmatched.Edge{}, err)
				return
			}
			for _, e := range block {
				if !yield(e, nil) {
					return
				}
			}
			if int(v) >= g.NumNodes() {
				return
			}
		}
	}
}

// Distances implements mapmatched.CorpusGraph. They have the bits of
// mapmatched.Graph, however they are found.
func (g *GraphFile) Distances(ctx context.Context, from, to []string, dst []float64) error {
	const op = "distances"
	if len(dst) != len(from)*len(to) {
		return failGraph(op, fmt.Errorf("%d distances asked for (%d from × %d to), but dst holds %d", len(from)*len(to), len(from), len(to), len(dst)))
	}
	return g.do(ctx, op, func() error {
		s := g.scratch.Get().(*fileScratch)
		defer g.scratch.Put(s)
		s.to, s.question = s.to[:0], s.question[:0]
		for j, id := range to {
			node := g.find(id)
			s.to = append(s.to, node)
			if node >= 0 {
				s.question = append(s.question, uint64(node)<<32|uint64(j))
			}
		}
		slices.Sort(s.question)
		for j := range dst {
			dst[j] = g.header.maximum
		}
		s.from = s.from[:0]
		for i, id := range from {
			node := g.find(id)
			s.from = append(s.from, node)
			for j, other := range to {
				if node < 0 && other == id {
					dst[i*len(to)+j] = 0
				}
			}
		}
		return g.fill(ctx, s, dst)
	})
}

// fill answers the distances from s.from to s.to, which are also in s.question.
// dst has the maximum distance where they are known.
func (g *GraphFile) fill(ctx context.Context, s *fileScratch, dst []float64) error {
	if g.labels != nil {
		if err := g.labels.answer(ctx, s.labels, s.from, s.to, dst); err != nil {
			return err
		}
	}
	for i, source := range s.from {
		if err := ctx.Err(); err != nil {
			return err
		}
		if source < 0 {
			continue
		}
		row := dst[i*len(s.to) : (i+1)*len(s.to)]
		targets := s.to
		switch {
		case g.table != nil:
			if err := g.table.fill(source, s.question, row); err != nil {
				return err
			}
			continue
		case g.labels != nil:
			s.open = s.open[:0]
			for j, d := range row {
				if d == openCell {
					row[j] = g.header.maximum
					s.open = append(s.open, s.to[j])
				} else {
					s.open = append(s.open, -1)
				}
			}
			targets = s.open
		}
		if err := s.search.Reach(ctx, &g.adj, source, g.header.maximum, targets); err != nil {
			return err
		}
		for j, target := range targets {
			if d, found := s.search.Distance(target); found {
				row[j] = d
			}
		}
	}
	return nil
}

// Neighborhood implements mapmatched.CorpusGraph. A negative radius reaches
// nothing and NaN is an error (mapmatched.ErrNonFinite).
func (g *GraphFile) Neighborhood(ctx context.Context, chunkID string, radius float64) ([]mapmatched.Neighbor, error) {
	const op = "neighborhood"
	if math.IsNaN(radius) {
		return nil, failGraph(op, fmt.Errorf("of %q: radius %v: %w", chunkID, radius, mapmatched.ErrNonFinite))
	}
	var found []mapmatched.Neighbor
	err := g.do(ctx, op, func() error {
		source := g.find(chunkID)
		if source < 0 || radius < 0 {
			return nil
		}
		radius := min(radius, g.header.maximum)
		if g.table != nil {
			distances, targets, err := g.table.row(source)
			if err != nil {
				return err
			}
			for i, d := range distances {
				if int64(targets[i]) >= int64(g.NumNodes()) {
					return damaged("table", "the row of node %d has node %d of %d", source, targets[i], g.NumNodes())
				}
				if d <= radius {
					found = append(found, mapmatched.Neighbor{ChunkID: string(g.id(int32(targets[i]))), Distance: d})
				}
			}
			return nil
		}
		s := g.scratch.Get().(*fileScratch)
		defer g.scratch.Put(s)
		if err := s.search.Within(ctx, &g.adj, source, radius); err != nil {
			return err
		}
		for _, v := range s.search.Settled()[1:] {
			d, _ := s.search.Distance(v)
			found = append(found, mapmatched.Neighbor{ChunkID: string(g.id(v)), Distance: d})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(found, func(a, b mapmatched.Neighbor) int {
		return cmp.Or(cmp.Compare(a.Distance, b.Distance), cmp.Compare(a.ChunkID, b.ChunkID))
	})
	return found, nil
}
