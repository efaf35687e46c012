package policy

import (
	"context"
	"errors"
	"fmt"

	"github.com/mapmatched/mmplug/mapmatched"
)

// MoveRecord is the move to the decoded chunk of a turn, and what it costs.
type MoveRecord struct {
	Move     Move    `json:"move"`
	MoveCost float64 `json:"move_cost"` // −log(p/q)
	Shift    float64 `json:"shift"`     // added to every transition cost of the conversation, see moveGraph
}

// moveGraph charges transitions by the kind of move. It is the graph of a
// session under active transition costs.
//
// A cost −log(p/q) is negative for a move that conversations make more often
// than chance would, and a distance may not be. So every cost is raised by one
// shift, the least that makes all of them 0 or more. That changes no decision:
// a path through turns 0..t has exactly one transition into each turn that has
// a predecessor, whichever candidates it takes, so every path to t costs
// β·shift more for each of these turns, the same for all of them; and every
// comparison of the decoder (predecessors, last candidates, rankings,
// posteriors, beams) is between paths to one turn. Breaks would drop
// transitions of some turns by their distance, so a policy with these costs has
// none (see Policy.Validate). Path scores are lower by β·shift for each
// transition; the trace notes the shift with every turn.
type moveGraph struct {
	mapmatched.CorpusGraph
	retriever *Retriever
	policy    Transition
	told      moveSet
	costs     map[Move]float64
	shift     float64
	maximum   float64 // largest cost, shifted
	byEdge    bool    // moves are told by edge types too
	places    map[string]Place
	edges     map[string][]Link
}

func newMoveGraph(r *Retriever) (*moveGraph, error) {
	g := &moveGraph{CorpusGraph: r.parts.Graph, retriever: r, policy: r.policy.Transition, told: r.policy.Transition.told(),
		costs: map[Move]float64{}, places: map[string]Place{}, edges: map[string][]Link{}}
	least, most := 0.0, 0.0
	for _, move := range sortedKeys(g.policy.P) {
		cost, err := g.policy.Cost(Move(move))
		if err != nil {
			return nil, err
		}
		g.costs[Move(move)] = cost
		least, most = min(least, cost), max(most, cost)
		switch Move(move) {
		case MoveStay, MoveNext, MovePrevious, MoveSection, MoveDocument, MoveJump:
		default:
			g.byEdge = true
		}
	}
	g.shift = -least
	g.maximum = most + g.shift
	if g.policy.KeepDistance {
		g.maximum += g.CorpusGraph.MaximumDistance()
	}
	if g.maximum == 0 { // p = q everywhere: no move costs anything, and a maximum is positive
		g.maximum = g.CorpusGraph.MaximumDistance()
	}
	if g.byEdge && r.parts.Edges == nil {
		return nil, fmt.Errorf("%w: transition.p has moves by edge type, which need the edges of the graph", mapmatched.ErrInvalidConfig)
	}
	return g, nil
}

// MaximumDistance implements mapmatched.CorpusGraph: the largest cost.
func (g *moveGraph) MaximumDistance() float64 { return g.maximum }

// Distances implements mapmatched.CorpusGraph with the costs of moves.
func (g *moveGraph) Distances(ctx context.Context, from, to []string, dst []float64) error {
	for i := range dst {
		dst[i] = 0
	}
	if g.policy.KeepDistance {
		if err := g.CorpusGraph.Distances(ctx, from, to, dst); err != nil {
			return err
		}
	}
	if err := g.learn(ctx, from, to); err != nil {
		return err
	}
	places := make([]Place, len(to))
	for j, b := range to {
		places[j] = g.places[b]
	}
	for i, a := range from {
		place := g.places[a]
		for j, b := range to {
			d := &dst[i*len(to)+j] // 0 unless the distance is kept
			cost := g.costs[g.told.move(place, places[j], g.edge(a, b))] + *d
			// Rounding may not lead out of the range that was announced.
			*d = float64(g.retriever.turn.scale * min(max(cost+g.shift, 0), g.maximum))
		}
	}
	return nil
}

// learn fetches the places of chunks, and the edges that leave from.
func (g *moveGraph) learn(ctx context.Context, from, to []string) error {
	var ask []string
	for _, ids := range [][]string{from, to} {
		for _, id := range ids {
			if _, known := g.places[id]; !known {
				g.places[id] = Place{ChunkID: id}
				ask = append(ask, id)
			}
		}
	}
	if len(ask) > 0 {
		chunks, err := g.retriever.parts.Chunks.Chunks(ctx, ask)
		if err != nil {
			for _, id := range ask {
				delete(g.places, id)
			}
			return fmt.Errorf("places of chunks: %w", err)
		}
		for _, c := range chunks {
			g.places[c.ID] = PlaceOf(c)
		}
	}
	if !g.byEdge {
		return nil
	}
	ask = nil
	for _, id := range from {
		if _, known := g.edges[id]; !known {
			ask = append(ask, id)
		}
	}
	if len(ask) == 0 {
		return nil
	}
	lists, err := g.retriever.parts.Edges.Links(ctx, ask)
	if err == nil && len(lists) != len(ask) {
		err = fmt.Errorf("%d lists for %d chunks", len(lists), len(ask))
	}
	if err != nil {
		return fmt.Errorf("edges of chunks: %w", err)
	}
	for i, id := range ask {
		g.edges[id] = lists[i]
	}
	return nil
}

// edge is the type of the first edge between two chunks that is a move, "" when
// there is none.
func (g *moveGraph) edge(from, to string) mapmatched.EdgeType {
	if !g.byEdge {
		return ""
	}
	for _, link := range g.edges[from] {
		if _, listed := g.policy.P[string(link.Type)]; listed && link.ChunkID == to {
			return link.Type
		}
	}
	return ""
}

// move records the move from the chunk before.
func (r *Retriever) move(ctx context.Context, t *turnState, a *Answer) {
	from := t.from
	if r.moves == nil || a.ChunkID == "" || from == "" {
		return
	}
	g := r.moves
	if err := g.learn(ctx, []string{from}, []string{a.ChunkID}); err != nil {
		t.degrade(Degraded{a.Turn, "transition", errors.Is(err, context.DeadlineExceeded), err})
		return
	}
	record, err := g.policy.Evaluate(g.places[from], g.places[a.ChunkID], g.edge(from, a.ChunkID), 0)
	if err != nil {
		t.degrade(Degraded{a.Turn, "transition", false, err})
		return
	}
	a.Move = &MoveRecord{record.Move, record.MoveCost, g.shift}
}

// scaledGraph makes transitions of a turn cost β·g, g being what the gate
// decided for it.
type scaledGraph struct {
	mapmatched.CorpusGraph
	retriever *Retriever
}

// Distances implements mapmatched.CorpusGraph.
func (s *scaledGraph) Distances(ctx context.Context, from, to []string, dst []float64) error {
	err := s.CorpusGraph.Distances(ctx, from, to, dst)
	for i := range dst {
		dst[i] = float64(s.retriever.turn.scale * dst[i])
	}
	return err
}
