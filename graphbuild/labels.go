package graphbuild

import (
	"cmp"
	"context"
	"errors"
	"math"
	"math/bits"
	"slices"
	"unsafe"

	"github.com/mapmatched/mmplug/mapmatched"
)

// 2-hop labels (pruned landmark labelling: Akiba, Iwata and Yoshida 2013) in
// weighted, bounded form. Nodes are ranked; the label of a node lists the hubs
// by which it is reached, with their distances, such that every shortest path
// within the maximum distance runs over a hub that both of its ends list.
//
// # The same bits as the search
//
// The search says min over the paths P of fold(P), the sum of P's weights from
// the source on, rounded after every step. A sum of two label distances is
// rounded in another order. So labels find the path, and its weights are added
// up again. Let len(P) be the sum without rounding, d the least len between
// the two nodes, and ρ a bound on |fold(P) − len(P)| for any simple path with
// sums up to the maximum distance. A path whose fold is least has
// len ≤ d + 2ρ: call such paths short. If there is one short path only, its
// fold is the answer. Labels see whether there are more:
//
// (1) A hub h's search prunes at nodes of higher rank, and where higher hubs
// give a distance below its own by more than 8ρ. If P from s to t is short and
// h its highest node, no node x on P between s and h is pruned: a way over a
// higher hub that is shorter by more than 8ρ less the roundings (three times ρ
// in its sum, one in that of P) would make P longer than d + 2ρ. So s and t
// both list h, at distances within ρ of the lengths of the parts of P or less.
//
// (2) An entry is marked ambiguous when some node on its tree path could be
// reached over another arc with a sum within 8ρ of the least. Two short paths
// over the same highest node h differ on one side of it, say from s to h.
// One of them is not the tree path of s. Where it leaves the tree path, at y,
// its next node relaxed an arc to y (by (1) it was not pruned) with a sum
// within 4ρ of the distance of y. So y is marked, and s, whose tree path runs
// through y.
//
// (3) Two short paths with different highest nodes give two hubs, whose sums
// are within 8ρ and the rounding to float32 of each other.
//
// So a pair with one hub within that slack, listed unmarked on both sides, has
// one short path, the tree path, and its weights are added up. Every other
// pair is searched for. Where all weights are multiples of one power of two
// and few enough bits long (weights like 0.5, 1 or 3), no sum ever rounds, the
// label distances are the answer and labels need neither marks nor steps.

// labelHub is an entry of a label, which is in ascending order of distance and
// then of rank.
type labelHub struct {
	rank     uint32
	distance float32 // of the hub, rounded
}

// labelStep leads from an entry towards its hub.
type labelStep struct {
	next uint32 // entry of the next node for the same hub, itself at the hub; the top bit marks ambiguous ones
	arc  uint32 // arc between the two
}

const ambiguousStep = 1 << 31

// labelSet holds the labels of all nodes, in one direction.
type labelSet struct {
	first []uint32
	hubs  []labelHub
	steps []labelStep // empty when sums are exact
}

// entries returns where the label of a node is.
func (l *labelSet) entries(node int32) (first, end int, err error) {
	first, end = int(l.first[node]), int(l.first[node+1])
	if first > end || end > len(l.hubs) {
		return 0, 0, damaged("label offsets", "the label of node %d is entries %d to %d of %d", node, first, end, len(l.hubs))
	}
	return first, end, nil
}

// labelSlack says how far sums may be apart and still have to be told apart by
// adding up weights.
type labelSlack struct {
	exact bool    // sums do not round
	build float64 // 8ρ
	query float64 // and with distances rounded to float32
}

// newLabelSlack looks at the weights up to the maximum distance.
func newLabelSlack(a *mapmatched.Adjacency, maximum float64) labelSlack {
	least, unit := math.Inf(1), math.Inf(1)
	for _, arc := range a.Arcs {
		if arc.Weight > maximum {
			continue
		}
		least = min(least, arc.Weight)
		unit = min(unit, lowestBit(arc.Weight))
	}
	// Float32 holds multiples of unit up to 2²⁴ of it. Sums of two labels go up
	// to twice the maximum before they are dropped.
	if 2*maximum/unit <= 1<<24 && unit >= 0x1p-100 {
		return labelSlack{exact: true}
	}
	steps := float64(len(a.First)) // arcs of a simple path
	if s := 2*maximum/least + 2; s < 1<<40 {
		steps = min(steps, s)
	}
	rho := steps * maximum * 0x1p-52 // twice the usual bound
	return labelSlack{build: 8 * rho, query: 16*rho + maximum*0x1p-20}
}

// lowestBit is the greatest power of two that x, positive, is a multiple of.
func lowestBit(x float64) float64 {
	fraction, exponent := math.Frexp(x)
	mantissa := uint64(math.Ldexp(fraction, 53))
	return math.Ldexp(1, exponent-53+bits.TrailingZeros64(mantissa))
}

// rankNodes orders nodes by how many shortest paths of a sample of sources run
// through them, then by degree.
func rankNodes(ctx context.Context, a *mapmatched.Adjacency, maximum float64) ([]int32, error) {
	n := len(a.First) - 1
	through := make([]int, n)
	s := mapmatched.NewSearch(n)
	below := make([]int, n)
	parent := make([]int32, n)
	sources := min(n, 64)
	for i := range sources {
		if err := s.Within(ctx, a, int32(i*n/sources), maximum); err != nil {
			return nil, err
		}
		settled := s.Settled()
		for _, v := range settled {
			below[v], parent[v] = 1, -1
		}
		for _, v := range settled {
			from, _ := s.Distance(v)
			for _, arc := range a.Arcs[a.First[v]:a.First[v+1]] {
				if d, found := s.Distance(arc.To); found && from+arc.Weight == d && from < d {
					parent[arc.To] = v
				}
			}
		}
		for _, v := range slices.Backward(settled) {
			through[v] += below[v]
			if p := parent[v]; p >= 0 {
				below[p] += below[v]
			}
		}
	}
	order := make([]int32, n)
	for v := range order {
		order[v] = int32(v)
	}
	degree := func(v int32) int32 { return a.First[v+1] - a.First[v] }
	slices.SortFunc(order, func(v, u int32) int {
		return cmp.Or(cmp.Compare(through[u], through[v]), cmp.Compare(degree(u), degree(v)), cmp.Compare(v, u))
	})
	return order, nil
}

// reversed returns the arcs the other way round. Their Type is the number of
// the arc they come from.
func reversed(a *mapmatched.Adjacency) *mapmatched.Adjacency {
	n := len(a.First) - 1
	r := &mapmatched.Adjacency{First: make([]int32, n+1), Arcs: make([]mapmatched.Arc, len(a.Arcs))}
	for _, arc := range a.Arcs {
		r.First[arc.To+1]++
	}
	for v := range n {
		r.First[v+1] += r.First[v]
	}
	next := slices.Clone(r.First)
	for v := range int32(n) {
		for i := a.First[v]; i < a.First[v+1]; i++ {
			to := a.Arcs[i].To
			r.Arcs[next[to]] = mapmatched.Arc{Weight: a.Arcs[i].Weight, To: v, Type: i}
			next[to]++
		}
	}
	for v := range n {
		slices.SortFunc(r.Arcs[r.First[v]:r.First[v+1]], func(x, y mapmatched.Arc) int {
			return cmp.Or(cmp.Compare(x.Weight, y.Weight), cmp.Compare(x.To, y.To))
		})
	}
	return r
}

// draftEntry is an entry of a label while labels are made.
type draftEntry struct {
	distance float64
	rank     uint32
	parent   int32 // next node towards the hub, the hub itself at the hub
	arc      int32
	mark     bool
}

// errLabelRange: float32, in which labels keep distances, does not reach.
var errLabelRange = errors.New("labels need a maximum distance between 1e-30 and 1e30")

// errLabelWork: labels take more work than they may.
var errLabelWork = errors.New("labels take too long to make")

// labelBuilder makes labels.
type labelBuilder struct {
	maximum float64
	slack   labelSlack
	rank    []uint32  // of a node
	work    int64     // entries and arcs looked at
	toHub   []float64 // of the hub of this search to a hub of some rank, +Inf for none

	// Of a search, valid where seen is the epoch.
	epoch  uint32
	seen   []uint32
	dist   []float64
	second []float64 // least sum over an arc that is not the best one
	parent []int32
	arc    []int32
	kept   []bool
	marked []bool
	heap   []draftNode
	order  []int32
}

type draftNode struct {
	dist float64
	node int32
}

// buildLabels makes the labels of a graph: those for leaving a node and, in a
// directed graph, those for entering it. It fails with errOverLimit as soon as
// they take more bytes than limit, and with errLabelWork after so many entries
// and arcs looked at.
func buildLabels(ctx context.Context, a *mapmatched.Adjacency, directed bool, maximum float64, limit, work int64, progress func(done, total int)) (out, in *labelSet, slack labelSlack, err error) {
	n := len(a.First) - 1
	if maximum < 1e-30 || maximum > 1e30 {
		return nil, nil, slack, errLabelRange
	}
	slack = newLabelSlack(a, maximum)
	entryBytes := int64(unsafe.Sizeof(labelHub{}))
	if !slack.exact {
		entryBytes += int64(unsafe.Sizeof(labelStep{}))
	}
	order, err := rankNodes(ctx, a, maximum)
	if err != nil {
		return nil, nil, slack, err
	}
	b := &labelBuilder{
		maximum: maximum, slack: slack,
		rank: make([]uint32, n), toHub: slices.Repeat([]float64{math.Inf(1)}, n),
		seen: make([]uint32, n), dist: make([]float64, n), second: make([]float64, n),
		parent: make([]int32, n), arc: make([]int32, n), kept: make([]bool, n), marked: make([]bool, n),
	}
	for r, v := range order {
		b.rank[v] = uint32(r)
	}
	leave := make([][]draftEntry, n)
	enter := leave
	back := a // arcs from a node towards where it is reached from
	if directed {
		enter = make([][]draftEntry, n)
		back = reversed(a)
	}
	offsets := int64(4 * (n + 1))
	if directed {
		offsets *= 2
	}
	total := 0
	for r, hub := range order {
		if err := ctx.Err(); err != nil {
			return nil, nil, slack, err
		}
		// Forward: how hub reaches nodes, for their entering labels.
		total += b.search(a, hub, uint32(r), leave[hub], enter, false)
		if directed {
			total += b.search(back, hub, uint32(r), enter[hub], leave, true)
		}
		if int64(total)*entryBytes+offsets > limit || total >= ambiguousStep {
			return nil, nil, slack, errOverLimit{limit}
		}
		if b.work > work {
			return nil, nil, slack, errLabelWork
		}
		if progress != nil {
			progress(r+1, n)
		}
	}
	out = pack(leave, slack.exact)
	if directed {
		in = pack(enter, slack.exact)
	}
	return out, in, slack, nil
}

// search labels what hub reaches along arcs. hubLabel is the label of the hub
// on its side, labels those of the nodes on theirs. Of reversed arcs Type is
// the number of the arc. It returns the number of new entries.
func (b *labelBuilder) search(arcs *mapmatched.Adjacency, hub int32, rank uint32, hubLabel []draftEntry, labels [][]draftEntry, backward bool) int {
	for _, e := range hubLabel {
		b.toHub[e.rank] = e.distance
	}
	b.epoch++
	epoch := b.epoch // at most one for each node and direction: never wraps
	bound := b.maximum + b.slack.build
	b.order = b.order[:0]
	b.heap = append(b.heap[:0], draftNode{0, hub})
	b.seen[hub], b.dist[hub], b.second[hub], b.parent[hub], b.arc[hub] = epoch, 0, math.Inf(1), hub, 0
	for len(b.heap) > 0 {
		top := b.pop()
		v, d := top.node, top.dist
		if d > b.dist[v] {
			continue
		}
		b.work += int64(len(labels[v]))
		b.kept[v] = b.rank[v] >= rank && !b.covered(labels[v], d)
		if !b.kept[v] {
			continue
		}
		b.order = append(b.order, v)
		b.work += int64(arcs.First[v+1] - arcs.First[v])
		for i := arcs.First[v]; i < arcs.First[v+1]; i++ {
			arc := arcs.Arcs[i]
			sum := d + arc.Weight
			if sum > bound {
				break
			}
			u := arc.To
			switch {
			case b.seen[u] != epoch:
				b.seen[u], b.second[u] = epoch, math.Inf(1)
			case sum < b.dist[u]:
				b.second[u] = min(b.second[u], b.dist[u])
			default:
				b.second[u] = min(b.second[u], sum)
				continue
			}
			number := i
			if backward {
				number = arc.Type
			}
			b.dist[u], b.parent[u], b.arc[u] = sum, v, number
			b.push(draftNode{sum, u})
		}
	}
	for _, v := range b.order {
		b.marked[v] = !b.slack.exact && (b.second[v] <= b.dist[v]+b.slack.build || v != hub && b.marked[b.parent[v]])
		labels[v] = append(labels[v], draftEntry{b.dist[v], rank, b.parent[v], b.arc[v], b.marked[v]})
	}
	for _, e := range hubLabel {
		b.toHub[e.rank] = math.Inf(1)
	}
	return len(b.order)
}

// covered reports whether higher hubs give a node a distance that makes an
// entry at distance d useless.
func (b *labelBuilder) covered(label []draftEntry, d float64) bool {
	if b.slack.exact {
		for i := range label {
			if b.toHub[label[i].rank]+label[i].distance <= d {
				return true
			}
		}
		return false
	}
	d -= b.slack.build
	for i := range label {
		if b.toHub[label[i].rank]+label[i].distance < d {
			return true
		}
	}
	return false
}

// pack puts labels one after another, in the order of the file, and finds the
// entries that steps lead to.
func pack(labels [][]draftEntry, exact bool) *labelSet {
	l := &labelSet{first: make([]uint32, len(labels)+1)}
	for v, label := range labels {
		l.first[v+1] = l.first[v] + uint32(len(label))
	}
	total := l.first[len(labels)]
	l.hubs = make([]labelHub, 0, total)
	order := make([]uint32, total) // place in a label by rank, by place in the file
	place := make([]uint32, total) // and the other way round
	for v, label := range labels {
		order := order[l.first[v]:l.first[v+1]]
		for i := range order {
			order[i] = uint32(i)
		}
		slices.SortFunc(order, func(i, j uint32) int {
			return cmp.Or(cmp.Compare(float32(label[i].distance), float32(label[j].distance)), cmp.Compare(i, j))
		})
		for at, i := range order {
			place[l.first[v]+i] = l.first[v] + uint32(at)
			l.hubs = append(l.hubs, labelHub{label[i].rank, float32(label[i].distance)})
		}
	}
	if exact {
		return l
	}
	l.steps = make([]labelStep, 0, total)
	for v, label := range labels {
		for _, i := range order[l.first[v]:l.first[v+1]] {
			e := label[i]
			at, _ := slices.BinarySearchFunc(labels[e.parent], e.rank, func(x draftEntry, r uint32) int { return cmp.Compare(x.rank, r) })
			step := labelStep{place[l.first[e.parent]+uint32(at)], uint32(e.arc)}
			if e.mark {
				step.next |= ambiguousStep
			}
			l.steps = append(l.steps, step)
		}
	}
	return l
}

func (b *labelBuilder) push(x draftNode) {
	b.heap = append(b.heap, x)
	i := len(b.heap) - 1
	for i > 0 && b.heap[(i-1)/4].dist > x.dist {
		b.heap[i] = b.heap[(i-1)/4]
		i = (i - 1) / 4
	}
	b.heap[i] = x
}

func (b *labelBuilder) pop() draftNode {
	top, last := b.heap[0], b.heap[len(b.heap)-1]
	b.heap = b.heap[:len(b.heap)-1]
	n := len(b.heap)
	if n == 0 {
		return top
	}
	i := 0
	for {
		least := 4*i + 1
		if least >= n {
			break
		}
		for c := least + 1; c < min(4*i+5, n); c++ {
			if b.heap[c].dist < b.heap[least].dist {
				least = c
			}
		}
		if b.heap[least].dist >= last.dist {
			break
		}
		b.heap[i] = b.heap[least]
		i = least
	}
	b.heap[i] = last
	return top
}

// labelIndex is the labels in a file.
type labelIndex struct {
	out, in *labelSet // the same one in an undirected graph
	slack   labelSlack
	maximum float64
	arcs    []mapmatched.Arc
}

// labelScratch is what a batch of questions to labels needs.
type labelScratch struct {
	toHub []float32 // of a node to a hub of some rank, +Inf for none
	entry []uint32  // of the node for that hub
	cells []labelCell
	path  []uint32 // arcs
}

// labelCell is what is known of a pair.
type labelCell struct {
	best, second float32 // least sums over two hubs
	out, in      uint32  // entries of the best one
}

// openCell marks, in the distances that labels give, one that they cannot give.
const openCell = -1

func newLabelScratch(nodes int) *labelScratch {
	return &labelScratch{toHub: slices.Repeat([]float32{float32(math.Inf(1))}, nodes), entry: make([]uint32, nodes)}
}

// answer fills dst, row-major, with the distances between nodes, negative ones
// being unknown, and with openCell where it takes a search. Cells that have the
// maximum distance or are unknown are left as they are.
//
// Of the two parts of a way over a hub one is at most half of the maximum, so
// all hubs of one end are compared with the nearer hubs of the other, from
// either side, instead of all with all.
func (x *labelIndex) answer(ctx context.Context, s *labelScratch, from, to []int32, dst []float64) error {
	inf := float32(math.Inf(1))
	half := float32((x.maximum + x.slack.query) / 2 * (1 + 0x1p-20))
	s.cells = slices.Grow(s.cells[:0], len(dst))[:len(dst)]
	for i := range s.cells {
		s.cells[i] = labelCell{best: inf, second: inf}
	}
	for i, source := range from {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := x.spread(s, x.out, source, func() error {
			return x.compare(s, x.in, to, func(j int) *labelCell { return &s.cells[i*len(to)+j] }, source, half, -1)
		})
		if err != nil {
			return err
		}
	}
	for j, target := range to {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := x.spread(s, x.in, target, func() error {
			return x.compare(s, x.out, from, func(i int) *labelCell { return &s.cells[i*len(to)+j] }, target, half, half)
		})
		if err != nil {
			return err
		}
	}
	for i, c := range s.cells {
		source, target := from[i/len(to)], to[i%len(to)]
		if source == target && source >= 0 {
			dst[i] = 0
			continue
		}
		if c.best == inf {
			continue
		}
		d, err := x.sum(s, c)
		if err != nil {
			return err
		}
		if d < x.maximum {
			dst[i] = d
		}
	}
	return nil
}

// spread lays the label of a node out by rank, for run.
func (x *labelIndex) spread(s *labelScratch, l *labelSet, node int32, run func() error) error {
	if node < 0 {
		return nil
	}
	first, end, err := l.entries(node)
	if err != nil {
		return err
	}
	for i := first; i < end && err == nil; i++ {
		if h := l.hubs[i]; int(h.rank) < len(s.toHub) {
			s.toHub[h.rank], s.entry[h.rank] = h.distance, uint32(i)
		} else {
			end, err = i, badHub(i, h, s)
		}
	}
	if err == nil {
		err = run()
	}
	for _, h := range l.hubs[first:end] {
		s.toHub[h.rank] = float32(math.Inf(1))
	}
	return err
}

func badHub(entry int, h labelHub, s *labelScratch) error {
	return damaged("label hubs", "entry %d has hub %d of %d", entry, h.rank, len(s.toHub))
}

// compare looks for hubs within half of nodes and beyond beyond of the node
// whose label is spread.
func (x *labelIndex) compare(s *labelScratch, l *labelSet, nodes []int32, cell func(int) *labelCell, spread int32, half, beyond float32) error {
	swapped := beyond >= 0 // nodes are sources
	for j, node := range nodes {
		if node < 0 || node == spread {
			continue
		}
		first, end, err := l.entries(node)
		if err != nil {
			return err
		}
		c := cell(j)
		limit := min(half, c.second)
		for i, h := range l.hubs[first:end] {
			if h.distance > limit {
				break
			}
			if int(h.rank) >= len(s.toHub) {
				return badHub(first+i, h, s)
			}
			other := s.toHub[h.rank]
			d := other + h.distance
			if d >= c.second || other <= beyond {
				continue
			}
			if d >= c.best {
				c.second = d
			} else {
				c.second, c.best = c.best, d
				c.out, c.in = s.entry[h.rank], uint32(first+i)
				if swapped {
					c.out, c.in = c.in, c.out
				}
			}
			limit = min(half, c.second)
		}
	}
	return nil
}

// sum is the distance of a pair, openCell if labels do not know.
func (x *labelIndex) sum(s *labelScratch, c labelCell) (d float64, err error) {
	if x.slack.exact {
		return float64(c.best), nil
	}
	if float64(c.second) <= float64(c.best)+x.slack.query || (x.out.steps[c.out].next|x.in.steps[c.in].next)&ambiguousStep != 0 {
		return openCell, nil
	}
	if s.path, err = x.walk(s.path[:0], x.out, c.out, len(s.toHub)); err != nil {
		return 0, err
	}
	for _, arc := range s.path {
		d += x.arcs[arc].Weight
	}
	if s.path, err = x.walk(s.path[:0], x.in, c.in, len(s.toHub)); err != nil {
		return 0, err
	}
	for _, arc := range slices.Backward(s.path) {
		d += x.arcs[arc].Weight
	}
	return d, nil
}

// walk collects the arcs from an entry to its hub.
func (x *labelIndex) walk(path []uint32, l *labelSet, at uint32, nodes int) ([]uint32, error) {
	for {
		step := l.steps[at]
		next := step.next &^ ambiguousStep
		if next == at {
			return path, nil
		}
		if int(next) >= len(l.steps) || int(step.arc) >= len(x.arcs) || len(path) >= nodes {
			return nil, damaged("label steps", "entry %d leads to entry %d of %d by arc %d of %d after %d steps", at, next, len(l.steps), step.arc, len(x.arcs), len(path))
		}
		path = append(path, step.arc)
		at = next
	}
}
