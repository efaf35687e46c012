package policy

import (
	"fmt"

	"github.com/mapmatched/mmplug/mapmatched"
)

// Move is the kind of move from the chunk of one turn to that of the next. An
// edge type is a move too, where transition.p lists it.
type Move string

// The moves.
const (
	MoveStay     Move = "stay"     // the same chunk
	MoveNext     Move = "next"     // the chunk that follows in the document
	MovePrevious Move = "previous" // the chunk before in the document
	MoveSection  Move = "section"  // another chunk of the same section
	MoveDocument Move = "document" // another chunk of the same document
	MoveJump     Move = "jump"     // another document
)

// Place is where a chunk is in its corpus.
type Place struct {
	ChunkID  string
	Document string // "" when unknown; such chunks are in no common document
	Section  string // heading path inside the document, "" for none
	Ordinal  int    // position in the document
}

// PlaceOf reads the place of a chunk.
func PlaceOf(c mapmatched.Chunk) Place { return Place{c.ID, c.Document, c.Section, c.Ordinal} }

// Move classifies the move between two chunks, edge being the type of the edge
// between them or "" when there is none: the first that applies of stay, next,
// previous, section, document, the edge type, and jump, among the moves that
// t.P lists. Jump always applies.
func (t *Transition) Move(from, to Place, edge mapmatched.EdgeType) Move {
	told := t.told()
	return told.move(from, to, edge)
}

// moveSet is the moves that a policy tells apart.
type moveSet struct {
	stay, next, previous, section, document bool
	edges                                   map[string]float64 // transition.p, which lists the edge types
}

func (t *Transition) told() moveSet {
	listed := func(m Move) bool { _, found := t.P[string(m)]; return found }
	return moveSet{listed(MoveStay), listed(MoveNext), listed(MovePrevious), listed(MoveSection), listed(MoveDocument), t.P}
}

// move is Transition.Move.
func (s *moveSet) move(from, to Place, edge mapmatched.EdgeType) Move {
	if s.stay && from.ChunkID == to.ChunkID {
		return MoveStay
	}
	if from.Document != "" && from.Document == to.Document {
		switch {
		case s.next && to.Ordinal == from.Ordinal+1:
			return MoveNext
		case s.previous && to.Ordinal == from.Ordinal-1:
			return MovePrevious
		case s.section && from.Section != "" && from.Section == to.Section:
			return MoveSection
		case s.document:
			return MoveDocument
		}
	}
	if edge != "" {
		if _, listed := s.edges[string(edge)]; listed {
			return Move(edge)
		}
	}
	return MoveJump
}

// Cost is −log(p/q) of a move: positive for a move that conversations make
// less often than chance would, negative for one they make more often, and 0
// for p = q. A move that P or Q does not list is an error.
func (t *Transition) Cost(m Move) (float64, error) {
	p, listedP := t.P[string(m)]
	q, listedQ := t.Q[string(m)]
	if !listedP || !listedQ {
		return 0, fmt.Errorf("transition: %w: move %q is not in both transition.p and transition.q", mapmatched.ErrInvalidConfig, m)
	}
	cost := mapmatched.Log(q) - mapmatched.Log(p)
	if !finite(cost) {
		return 0, fmt.Errorf("transition: move %q: p %v and q %v: %w", m, p, q, mapmatched.ErrNonFinite)
	}
	return cost, nil
}

// TransitionRecord is what a move costs, and why.
type TransitionRecord struct {
	Move     Move    `json:"move"`
	MoveCost float64 `json:"move_cost"` // −log(p/q)
	Distance float64 `json:"distance"`  // in the graph
	Cost     float64 `json:"cost"`      // in effect, before β: the distance unless the stage is active
	Stage    Stage   `json:"stage"`
}

// Evaluate computes the transition cost between two chunks at a graph distance,
// before β. With the stage off, or without moves, it is the distance.
func (t *Transition) Evaluate(from, to Place, edge mapmatched.EdgeType, distance float64) (TransitionRecord, error) {
	r := TransitionRecord{Distance: distance, Cost: distance, Stage: t.Stage}
	if t.Stage == StageOff || len(t.P) == 0 {
		return r, nil
	}
	r.Move = t.Move(from, to, edge)
	var err error
	if r.MoveCost, err = t.Cost(r.Move); err != nil {
		return TransitionRecord{}, err
	}
	if t.Stage == StageActive {
		r.Cost = r.MoveCost
		if t.KeepDistance {
			r.Cost += distance
		}
	}
	return r, nil
}
