package graphbuild

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mapmatched/mmplug/mapmatched"
)

// MutualRule keeps edges of a type that both ends want.
type MutualRule struct {
	Type mapmatched.EdgeType
	// Nearest is how many edges of the type an end wants, the shortest ones,
	// ties by the ID at the other end. For a kNN graph it is the K of that. 0
	// means DefaultK.
	Nearest int
}

// PruneOptions are the settings of [Prune], applied in the order of the fields.
// The zero value, and nil, prune nothing.
type PruneOptions struct {
	// Directed says that edges have a direction: an edge belongs to the chunk
	// it leaves, and the neighbours of a chunk are those its edges lead to.
	Directed bool

	// Mutual keeps an edge of a type only if it is among the Nearest edges of
	// that type at both ends. In a directed graph an edge is kept only if it is
	// among the Nearest that leave its From and the edge back is among the
	// Nearest that leave its To.
	Mutual []MutualRule

	// MaxDegree is how many neighbours a chunk keeps: edges, of whatever type,
	// are gone through from the shortest on, ties by From, To and Type, and one
	// is kept when both its ends have kept fewer neighbours until then, or when
	// they are neighbours already. 0 means no limit.
	MaxDegree int

	// MinDegree is how many neighbours a chunk has again if it had them:
	// removed edges are gone through from the shortest on, with the same ties,
	// and one between chunks that are no neighbours comes back when one of its
	// ends has fewer, above MaxDegree of the other end too. 0 brings nothing
	// back.
	MinDegree int
}

// Validate reports every value that is out of range.
func (o *PruneOptions) Validate() error {
	if o == nil {
		return nil
	}
	var errs []error
	fault := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w: "+format, append([]any{mapmatched.ErrInvalidConfig}, args...)...))
	}
	for i, m := range o.Mutual {
		if m.Nearest < 0 {
			fault("Nearest of the mutual rule for type %q is %d, want 0 for the default or more", m.Type, m.Nearest)
		}
		if slices.ContainsFunc(o.Mutual[:i], func(other MutualRule) bool { return other.Type == m.Type }) {
			fault("there are two mutual rules for type %q, want one", m.Type)
		}
	}
	if o.MaxDegree < 0 {
		fault("MaxDegree is %d, want 0 for no limit or more", o.MaxDegree)
	}
	if o.MinDegree < 0 {
		fault("MinDegree is %d, want 0 or more", o.MinDegree)
	}
	if o.MaxDegree > 0 && o.MinDegree > o.MaxDegree {
		fault("MinDegree %d is above MaxDegree %d", o.MinDegree, o.MaxDegree)
	}
	return errors.Join(errs...)
}

// Prune removes edges of a graph by the rules of opts. The edges are those of
// [Union], [KNN] or [Structure]: undirected ones with From < To, each pair and
// type once, none from a chunk to itself; they may be in any order. Those that
// are left are ascending by From, To and Type. Edges that are not such are an
// error that names the edge.
func Prune(edges []mapmatched.Edge, opts *PruneOptions) ([]mapmatched.Edge, error) {
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	if opts == nil {
		opts = &PruneOptions{}
	}
	all := slices.Clone(edges)
	slices.SortFunc(all, compareEdges)
	for i, e := range all {
		err := checkEdge(e)
		switch {
		case err != nil:
		case e.From == e.To:
			err = errors.New("it leads from a chunk to itself; make the union first")
		case !opts.Directed && e.From > e.To:
			err = errors.New("undirected edges have From < To; make the union first")
		case i > 0 && compareEdges(all[i-1], e) == 0:
			err = errors.New("it is there twice; make the union first")
		}
		if err != nil {
			return nil, fmt.Errorf("edge %q to %q of type %q: %w", e.From, e.To, e.Type, err)
		}
	}
	left := slices.Clone(all)
	for _, rule := range opts.Mutual {
		left = keepMutual(left, rule, opts.Directed)
	}
	if opts.MaxDegree > 0 {
		left = limitDegree(left, opts)
	}
	if opts.MinDegree > 0 {
		left = bringBack(all, left, opts)
	}
	return left, nil
}

// keepMutual applies a mutual rule to edges in order.
func keepMutual(edges []mapmatched.Edge, rule MutualRule, directed bool) []mapmatched.Edge {
	nearest := cmp.Or(rule.Nearest, DefaultK)
	type wish struct {
		of, other string
		weight    float64
	}
	var wishes []wish
	for _, e := range edges {
		if e.Type != rule.Type {
			continue
		}
		wishes = append(wishes, wish{e.From, e.To, e.Weight})
		if !directed {
			wishes = append(wishes, wish{e.To, e.From, e.Weight})
		}
	}
	slices.SortFunc(wishes, func(a, b wish) int {
		return cmp.Or(strings.Compare(a.of, b.of), cmp.Compare(a.weight, b.weight), strings.Compare(a.other, b.other))
	})
	wanted := map[[2]string]bool{}
	rank := 0
	for i, w := range wishes {
		if i > 0 && wishes[i-1].of != w.of {
			rank = 0
		}
		if rank++; rank <= nearest {
			wanted[[2]string{w.of, w.other}] = true
		}
	}
	return slices.DeleteFunc(edges, func(e mapmatched.Edge) bool {
		return e.Type == rule.Type && (!wanted[[2]string{e.From, e.To}] || !wanted[[2]string{e.To, e.From}])
	})
}

// neighbourhood counts the neighbours of chunks, each once however many types
// of edges lead there.
type neighbourhood struct {
	directed bool
	pair     []int // of an edge: the first one between the same chunks
	joined   []bool
	degree   map[string]int
}

// newNeighbourhood is for edges in order; no chunks are neighbours yet.
func newNeighbourhood(edges []mapmatched.Edge, directed bool) *neighbourhood {
	n := &neighbourhood{directed, make([]int, len(edges)), make([]bool, len(edges)), map[string]int{}}
	for i, e := range edges {
		n.pair[i] = i
		if i > 0 && edges[i-1].From == e.From && edges[i-1].To == e.To {
			n.pair[i] = n.pair[i-1]
		}
	}
	return n
}

// has reports whether the ends of edge i are neighbours.
func (n *neighbourhood) has(i int) bool { return n.joined[n.pair[i]] }

// below reports whether the ends of an edge have fewer neighbours than degree.
// In a directed graph the end that the edge enters has none to count.
func (n *neighbourhood) below(e mapmatched.Edge, degree int) (from, to bool) {
	return n.degree[e.From] < degree, !n.directed && n.degree[e.To] < degree
}

// add makes the ends of edge i neighbours.
func (n *neighbourhood) add(i int, e mapmatched.Edge) {
	if n.has(i) {
		return
	}
	n.joined[n.pair[i]] = true
	n.degree[e.From]++
	if !n.directed {
		n.degree[e.To]++
	}
}

// limitDegree applies MaxDegree to edges in order.
func limitDegree(edges []mapmatched.Edge, opts *PruneOptions) []mapmatched.Edge {
	near := newNeighbourhood(edges, opts.Directed)
	keep := make([]bool, len(edges))
	for _, i := range byWeight(edges) {
		from, to := near.below(edges[i], opts.MaxDegree)
		if near.has(i) || from && (to || opts.Directed) {
			keep[i] = true
			near.add(i, edges[i])
		}
	}
	return keepEdges(edges, keep)
}

// bringBack adds edges of all to left until chunks have the least degree. Both
// are in order, and left is part of all.
func bringBack(all, left []mapmatched.Edge, opts *PruneOptions) []mapmatched.Edge {
	near := newNeighbourhood(all, opts.Directed)
	keep := make([]bool, len(all))
	for i, at := 0, 0; i < len(all) && at < len(left); i++ {
		if compareEdges(all[i], left[at]) == 0 {
			keep[i] = true
			near.add(i, all[i])
			at++
		}
	}
	for _, i := range byWeight(all) {
		if from, to := near.below(all[i], opts.MinDegree); !near.has(i) && (from || to) {
			keep[i] = true
			near.add(i, all[i])
		}
	}
	return keepEdges(all, keep)
}

// Isolated returns the nodes that no edge joins to another one, ascending.
func Isolated(nodes []string, edges []mapmatched.Edge) []string {
	joined := map[string]bool{}
	for _, e := range edges {
		if e.From != e.To {
			joined[e.From], joined[e.To] = true, true
		}
	}
	var alone []string
	for _, id := range nodes {
		if !joined[id] {
			alone = append(alone, id)
		}
	}
	slices.Sort(alone)
	return slices.Compact(alone)
}

// JoinByDocument makes an edge of type next and the given weight from each
// isolated chunk to the chunk before it in its document or, for the first one,
// to the chunk after it. left are the chunks that are alone in their document,
// have none or are not among chunks. Edges are undirected and ascending, and so
// is left.
func JoinByDocument(isolated []string, chunks []mapmatched.Chunk, weight float64) (edges []mapmatched.Edge, left []string, err error) {
	if err := checkEdge(mapmatched.Edge{From: "a", To: "b", Weight: weight}); err != nil {
		return nil, nil, fmt.Errorf("join by document: %w", err)
	}
	sorted := slices.Clone(chunks)
	slices.SortFunc(sorted, func(a, b mapmatched.Chunk) int {
		return cmp.Or(strings.Compare(a.Document, b.Document), cmp.Compare(a.Ordinal, b.Ordinal), strings.Compare(a.ID, b.ID))
	})
	at := make(map[string]int, len(sorted))
	for i, c := range sorted {
		at[c.ID] = i
	}
	for _, id := range isolated {
		i, known := at[id]
		other := ""
		switch {
		case !known || sorted[i].Document == "":
		case i > 0 && sorted[i-1].Document == sorted[i].Document:
			other = sorted[i-1].ID
		case i+1 < len(sorted) && sorted[i+1].Document == sorted[i].Document:
			other = sorted[i+1].ID
		}
		if other == "" || other == id {
			left = append(left, id)
			continue
		}
		edges = append(edges, mapmatched.Edge{From: min(id, other), To: max(id, other), Weight: weight, Type: mapmatched.EdgeNext})
	}
	return uniqueEdges(edges), uniqueStrings(left), nil
}

// JoinByVector makes an edge of type knn from each isolated chunk to the chunk
// with the nearest vector, of the length that [KNN] would give it. left are the
// chunks without a vector, ascending. Of opts the distances and Progress count.
func JoinByVector(ctx context.Context, isolated []string, source VectorSource, opts *KNNOptions) (edges []mapmatched.Edge, left []string, err error) {
	if err := opts.Validate(); err != nil {
		return nil, nil, err
	}
	o := opts.withDefaults()
	rows, err := newRowSet(ctx, source)
	if err != nil {
		return nil, nil, err
	}
	rowOf := make(map[string]int32, source.Len()) // by chunk
	for u := range rows.len() {
		for _, at := range rows.copiesOf(int32(u)) {
			rowOf[source.ID(int(rows.order[at]))] = int32(u)
		}
	}
	var few []int32
	for _, id := range isolated {
		if u, known := rowOf[id]; known && source.Len() > 1 {
			few = append(few, u)
		} else {
			left = append(left, id)
		}
	}
	slices.Sort(few)
	few = slices.Compact(few)
	found := &neighbours{count: make([]int32, len(few))}
	if rows.len() > 1 {
		if found, err = rows.exactFor(ctx, few, 1, newProgress(o.Progress)); err != nil {
			return nil, nil, err
		}
	}
	m := rows.newMeasure()
	for _, id := range isolated {
		u, known := rowOf[id]
		if !known || source.Len() < 2 {
			continue
		}
		place, _ := slices.BinarySearch(few, u)
		for _, n := range rows.chunksNear(m, u, found.of(place), 1) {
			other := source.ID(int(rows.order[n.row]))
			if other == id {
				continue
			}
			edges = append(edges, mapmatched.Edge{
				From: min(id, other), To: max(id, other), Type: mapmatched.EdgeKNN,
				Weight: min(max(n.distance, o.MinimumEdgeDistance), o.MaximumDistance),
			})
			break
		}
	}
	return uniqueEdges(edges), uniqueStrings(left), nil
}

func uniqueEdges(edges []mapmatched.Edge) []mapmatched.Edge {
	slices.SortFunc(edges, compareEdges)
	return slices.CompactFunc(edges, func(a, b mapmatched.Edge) bool { return compareEdges(a, b) == 0 })
}

func uniqueStrings(s []string) []string {
	slices.Sort(s)
	return slices.Compact(s)
}
