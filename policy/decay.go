package policy

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/mapmatched/mmplug/mapmatched"
)

// Link is an edge as seen from one of its ends.
type Link struct {
	ChunkID string // the other end
	Type    mapmatched.EdgeType
}

// Adjacency lists the edges that leave chunks. Links returns one list for each
// chunk asked, nil for one that is unknown. It is batched because hosted
// graphs pay per round trip.
type Adjacency interface {
	Links(ctx context.Context, chunkIDs []string) ([][]Link, error)
}

// EdgeList is an Adjacency in memory. The zero value has no edges.
type EdgeList struct {
	links map[string][]Link
}

// NewEdgeList reads edges, such as those of a mapmatched.EdgeLister. Unless
// directed is set an edge may be followed both ways. Edges between the same
// two chunks all count.
func NewEdgeList(edges iter.Seq2[mapmatched.Edge, error], directed bool) (*EdgeList, error) {
	l := &EdgeList{links: map[string][]Link{}}
	for e, err := range edges {
		if err != nil {
			return nil, fmt.Errorf("edge list: %w", err)
		}
		if e.From == "" || e.To == "" {
			return nil, fmt.Errorf("edge list: edge from %q to %q: %w", e.From, e.To, mapmatched.ErrEmptyChunkID)
		}
		l.links[e.From] = append(l.links[e.From], Link{e.To, e.Type})
		if !directed {
			l.links[e.To] = append(l.links[e.To], Link{e.From, e.Type})
		}
	}
	return l, nil
}

// Links implements Adjacency.
func (l *EdgeList) Links(ctx context.Context, chunkIDs []string) ([][]Link, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	lists := make([][]Link, len(chunkIDs))
	for i, id := range chunkIDs {
		lists[i] = l.links[id]
	}
	return lists, nil
}

// Reached is a chunk that an expansion came to.
type Reached struct {
	ChunkID string
	Decay   float64 // product of the edge weights on the way, in (0, 1]; 1 for a root
	Hops    int     // edges on the way; 0 for a root
	Root    string  // where the way began
}

// ExpandOptions are the settings of Expand beside the policy. The zero value,
// and nil, set none.
type ExpandOptions struct {
	// Filter says which chunks may take part. It is asked for every chunk, at
	// every hop: one that it refuses is neither returned nor passed through.
	Filter func(chunkID string) bool
	// Limit is the most chunks returned in total, roots included; 0 means no
	// limit.
	Limit int
}

// EdgeWeight is what remains after an edge of the given type, in (0, 1].
func (d *Decay) EdgeWeight(t mapmatched.EdgeType) float64 {
	if w, given := d.Weights[string(t)]; given {
		return w
	}
	return d.DefaultWeight
}

// Expand follows the edges of g from roots, at most d.Depth of them, and
// returns what it reaches, the roots first: in descending order of decay, then
// of fewer hops, of the root's place, and of chunk ID.
//
// The decay of a path is the product of the weights of its edges, multiplied
// from the root on; a path whose decay is below d.Floor, or too small for a
// float64, is cut off there. The product is that of float64, so that three edges
// of 0.7 give a little less than 0.343 and a floor of 0.343 cuts them off. The
// decay of a chunk from one root is that of its best path: under decay_v1 among
// the paths with the fewest edges, under decay_exact_v1 among all. Of several
// roots the one with the largest decay counts, then the one with fewer hops,
// then the one listed first. A root listed twice counts once.
//
// d must be valid. Errors are those of g, and an answer of g of the wrong
// length.
func Expand(ctx context.Context, g Adjacency, roots []string, d Decay, opts *ExpandOptions) ([]Reached, error) {
	if opts == nil {
		opts = &ExpandOptions{}
	}
	x := expansion{graph: g, decay: d, filter: opts.Filter, links: map[string][]Link{}, allowed: map[string]bool{}}
	searches, err := x.run(ctx, roots)
	if err != nil {
		return nil, fmt.Errorf("expand: %w", err)
	}
	var all []placed
	index := map[string]int{} // of a chunk in all
	for place, s := range searches {
		for _, id := range s.order {
			p := placed{Reached{id, s.found[id].decay, s.found[id].hops, s.root}, place}
			if i, known := index[id]; !known {
				index[id] = len(all)
				all = append(all, p)
			} else if p.compare(all[i]) < 0 {
				all[i] = p
			}
		}
	}
	slices.SortFunc(all, placed.compare)
	if opts.Limit > 0 && len(all) > opts.Limit {
		all = all[:opts.Limit]
	}
	reached := make([]Reached, len(all))
	for i, p := range all {
		reached[i] = p.Reached
	}
	return reached, nil
}

// placed is a reached chunk with the place of its root among the roots.
type placed struct {
	Reached
	place int
}

func (a placed) compare(b placed) int {
	return cmp.Or(cmp.Compare(b.Decay, a.Decay), cmp.Compare(a.Hops, b.Hops), cmp.Compare(a.place, b.place),
		strings.Compare(a.ChunkID, b.ChunkID))
}

// expansion is one call of Expand. All its searches go hop by hop together, so
// the graph is asked once a hop.
type expansion struct {
	graph   Adjacency
	decay   Decay
	filter  func(string) bool
	links   map[string][]Link // of the chunks asked so far
	allowed map[string]bool   // what the filter said so far
}

// rootSearch is the search from one root.
type rootSearch struct {
	root     string
	found    map[string]arrival
	order    []string // found, as first reached
	frontier []step   // what the last hop reached, ascending by chunk ID
}

type arrival struct {
	decay float64
	hops  int
}

// step is a chunk with the best decay of the paths of a certain length to it.
type step struct {
	id    string
	decay float64
}

func (x *expansion) run(ctx context.Context, roots []string) ([]*rootSearch, error) {
	var searches []*rootSearch
	for _, root := range roots {
		if x.allows(root) && !slices.ContainsFunc(searches, func(s *rootSearch) bool { return s.root == root }) {
			searches = append(searches, &rootSearch{root, map[string]arrival{root: {1, 0}}, []string{root}, []step{{root, 1}}})
		}
	}
	for hop := 1; hop <= x.decay.Depth; hop++ {
		if err := x.fetch(ctx, searches); err != nil {
			return nil, err
		}
		alive := false
		for _, s := range searches {
			x.advance(s, hop)
			alive = alive || len(s.frontier) > 0
		}
		if !alive {
			break
		}
	}
	return searches, nil
}

// fetch asks for the links of all frontiers that are not known yet.
func (x *expansion) fetch(ctx context.Context, searches []*rootSearch) error {
	var ask []string
	for _, s := range searches {
		for _, from := range s.frontier {
			if _, known := x.links[from.id]; !known {
				x.links[from.id] = nil
				ask = append(ask, from.id)
			}
		}
	}
	if len(ask) == 0 {
		return ctx.Err()
	}
	lists, err := x.graph.Links(ctx, ask)
	if err != nil {
		return err
	}
	if len(lists) != len(ask) {
		return fmt.Errorf("the graph gave %d lists of links for %d chunks", len(lists), len(ask))
	}
	for i, id := range ask {
		x.links[id] = lists[i]
	}
	return nil
}

// advance extends a search by one edge. What remains in the frontier are, for
// decay_v1, chunks reached for the first time and, for decay_exact_v1, chunks
// reached better than with fewer edges: a path through any other could not win,
// because products of the same further weights keep their order.
func (x *expansion) advance(s *rootSearch, hop int) {
	next := map[string]float64{}
	for _, from := range s.frontier {
		for _, link := range x.links[from.id] {
			decay := from.decay * x.decay.EdgeWeight(link.Type)
			if decay < x.decay.Floor || decay == 0 || !x.allows(link.ChunkID) {
				continue
			}
			old, known := s.found[link.ChunkID]
			if known && (x.decay.Version != DecayExactV1 || decay <= old.decay) {
				continue
			}
			next[link.ChunkID] = max(next[link.ChunkID], decay)
		}
	}
	s.frontier = s.frontier[:0]
	for _, id := range sortedKeys(next) {
		if _, known := s.found[id]; !known {
			s.order = append(s.order, id)
		}
		s.found[id] = arrival{next[id], hop}
		s.frontier = append(s.frontier, step{id, next[id]})
	}
}

func (x *expansion) allows(id string) bool {
	if x.filter == nil {
		return true
	}
	ok, known := x.allowed[id]
	if !known {
		ok = x.filter(id)
		x.allowed[id] = ok
	}
	return ok
}

// DecayDifference is a chunk on which decay_v1 and decay_exact_v1 disagree.
// Where decay_v1 does not reach it, its decay is 0 and its hops are −1.
type DecayDifference struct {
	ChunkID   string  `json:"chunk_id"`
	Decay     float64 `json:"decay_v1"`
	Hops      int     `json:"hops_v1"`
	Exact     float64 `json:"decay_exact_v1"`
	ExactHops int     `json:"hops_exact_v1"`
}

// CompareDecay expands by both formulas, whatever d.Version is, and lists the
// chunks whose decay differs, by chunk ID. A limit in opts is ignored. Empty
// means that decay_v1 is exact here.
//
// What decay_v1 reaches decay_exact_v1 reaches too. The other way round holds
// only for a floor of 0: decay_v1 goes on from the decay of the shortest path to
// a chunk, which the floor may cut off while that of a better, longer path goes
// on to further chunks.
func CompareDecay(ctx context.Context, g Adjacency, roots []string, d Decay, opts *ExpandOptions) ([]DecayDifference, error) {
	all := ExpandOptions{}
	if opts != nil {
		all.Filter = opts.Filter
	}
	d.Version = DecayV1
	fast, err := Expand(ctx, g, roots, d, &all)
	if err != nil {
		return nil, err
	}
	d.Version = DecayExactV1
	exact, err := Expand(ctx, g, roots, d, &all)
	if err != nil {
		return nil, err
	}
	byID := make(map[string]Reached, len(fast))
	for _, r := range fast {
		byID[r.ChunkID] = r
	}
	differences := []DecayDifference{}
	for _, e := range exact {
		r, known := byID[e.ChunkID]
		if !known {
			r = Reached{Hops: -1}
		}
		if e.Decay != r.Decay {
			differences = append(differences, DecayDifference{e.ChunkID, r.Decay, r.Hops, e.Decay, e.Hops})
		}
	}
	slices.SortFunc(differences, func(a, b DecayDifference) int { return strings.Compare(a.ChunkID, b.ChunkID) })
	return differences, nil
}
