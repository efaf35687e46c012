package policy

import (
	"errors"
	"math"
	"testing"

	"github.com/mapmatched/mmplug/mapmatched"
)

// moves is an active transition over the six moves and links.
func moves() Transition {
	t := DefaultTransition()
	t.Stage = StageActive
	t.P = map[string]float64{"stay": 0.25, "next": 0.25, "previous": 0.0625, "section": 0.125, "document": 0.125, "link": 0.125, "jump": 0.0625}
	t.Q = map[string]float64{"stay": 0.0625, "next": 0.125, "previous": 0.125, "section": 0.125, "document": 0.125, "link": 0.0625, "jump": 0.375}
	return t
}

func TestTransitionMoves(t *testing.T) {
	at := func(id, document, section string, ordinal int) Place { return Place{id, document, section, ordinal} }
	from := at("x", "doc", "intro", 4)
	for _, c := range []struct {
		name string
		to   Place
		edge mapmatched.EdgeType
		want Move
	}{
		{"the same chunk", from, "", MoveStay},
		{"the following chunk", at("y", "doc", "other", 5), "", MoveNext},
		{"the chunk before", at("y", "doc", "intro", 3), "", MovePrevious},
		{"the same section", at("y", "doc", "intro", 7), "", MoveSection},
		{"the same document", at("y", "doc", "other", 7), "", MoveDocument},
		{"inside a document an edge does not count", at("y", "doc", "other", 7), "link", MoveDocument},
		{"a link to another document", at("y", "far", "intro", 5), "link", "link"},
		{"an edge of a type that is not listed", at("y", "far", "intro", 5), "knn", MoveJump},
		{"another document", at("y", "far", "intro", 5), "", MoveJump},
		{"a document that is not known", at("y", "", "intro", 5), "", MoveJump},
	} {
		table := moves()
		if got := table.Move(from, c.to, c.edge); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	none, nowhere := moves(), at("x", "", "", 0)
	if got := none.Move(nowhere, at("y", "", "", 1), ""); got != MoveJump {
		t.Errorf("between chunks without documents: %s, want a jump", got)
	}
	if got := none.Move(at("x", "doc", "", 0), at("y", "doc", "", 3), ""); got != MoveDocument {
		t.Errorf("without sections: %s, want document", got)
	}
}

func TestTransitionMoveThatIsNotListedIsTheNextWider(t *testing.T) {
	table := moves()
	for _, move := range []string{"stay", "next", "section", "document"} {
		delete(table.P, move)
		delete(table.Q, move)
		for _, c := range []struct {
			to    Place
			wider map[string]Move
		}{
			{Place{"x", "doc", "intro", 4}, map[string]Move{"stay": MoveSection, "next": MoveSection, "section": MoveDocument, "document": MoveJump}},
			{Place{"y", "doc", "intro", 5}, map[string]Move{"stay": MoveNext, "next": MoveSection, "section": MoveDocument, "document": MoveJump}},
		} {
			if got := table.Move(Place{"x", "doc", "intro", 4}, c.to, ""); got != c.wider[move] {
				t.Errorf("without moves up to %s, to %v: %s, want %s", move, c.to, got, c.wider[move])
			}
		}
	}
}

func TestTransitionCostIsMinusLogOfPOverQ(t *testing.T) {
	table := moves()
	for move, want := range map[Move]float64{
		MoveStay:     -2 * math.Ln2, // 4 times as often as by chance
		MoveNext:     -math.Ln2,
		MovePrevious: math.Ln2, // half as often
		MoveSection:  0,        // p = q has no effect
		"link":       -math.Ln2,
		MoveJump:     math.Log(6),
	} {
		got, err := table.Cost(move)
		if err != nil || math.Abs(got-want) > 1e-15 || want == 0 && (got != 0 || math.Signbit(got)) {
			t.Errorf("%s costs %v (%v), want %v", move, got, err, want)
		}
	}
	if _, err := table.Cost("teleport"); !errors.Is(err, mapmatched.ErrInvalidConfig) {
		t.Errorf("error %v, want ErrInvalidConfig", err)
	}
	table.P["stay"] = 0
	if _, err := table.Cost(MoveStay); !errors.Is(err, mapmatched.ErrNonFinite) {
		t.Errorf("error %v for p = 0, want ErrNonFinite", err)
	}
}

func TestTransitionEvaluate(t *testing.T) {
	from, to := Place{"x", "doc", "s", 1}, Place{"y", "doc", "s", 2}
	for _, c := range []struct {
		name   string
		change func(*Transition)
		want   TransitionRecord
	}{
		{"active: the move in place of the distance", func(*Transition) {}, TransitionRecord{MoveNext, -math.Ln2, 3, -math.Ln2, StageActive}},
		{"active, in addition", func(t *Transition) { t.KeepDistance = true }, TransitionRecord{MoveNext, -math.Ln2, 3, 3 - math.Ln2, StageActive}},
		{"shadow: the distance is in effect", func(t *Transition) { t.Stage = StageShadow }, TransitionRecord{MoveNext, -math.Ln2, 3, 3, StageShadow}},
		{"off: the move is not computed", func(t *Transition) { t.Stage = StageOff }, TransitionRecord{Distance: 3, Cost: 3, Stage: StageOff}},
		{"without moves", func(t *Transition) { t.P, t.Q = nil, nil }, TransitionRecord{Distance: 3, Cost: 3, Stage: StageActive}},
	} {
		table := moves()
		c.change(&table)
		got, err := table.Evaluate(from, to, "", 3)
		if err != nil || got.Move != c.want.Move || got.Stage != c.want.Stage || math.Abs(got.MoveCost-c.want.MoveCost) > 1e-15 ||
			got.Distance != c.want.Distance || math.Abs(got.Cost-c.want.Cost) > 1e-15 {
			t.Errorf("%s: %+v (%v), want %+v", c.name, got, err, c.want)
		}
	}
	broken := moves()
	delete(broken.Q, "next")
	if _, err := broken.Evaluate(from, to, "", 3); !errors.Is(err, mapmatched.ErrInvalidConfig) {
		t.Errorf("error %v, want ErrInvalidConfig", err)
	}
}

func TestPlaceOf(t *testing.T) {
	c := mapmatched.Chunk{ID: "x", Document: "d", Title: "t", Section: "s", Ordinal: 7, Start: 1, End: 2, Text: "w"}
	if got := PlaceOf(c); got != (Place{"x", "d", "s", 7}) {
		t.Errorf("got %+v", got)
	}
}
