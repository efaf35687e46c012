package mapmatched_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/mapmatched/mmplug/mapmatched"
)

func TestNewSliceProviderFaults(t *testing.T) {
	ok := []mapmatched.Candidate{{ChunkID: "a", Score: 1}}
	for _, c := range []struct {
		name string
		turn []mapmatched.Candidate
		want error
		text string
	}{
		{"no ID", []mapmatched.Candidate{{ChunkID: "a"}, {}}, mapmatched.ErrEmptyChunkID, "turn 1, candidate 1"},
		{"twice", []mapmatched.Candidate{{ChunkID: "a"}, {ChunkID: "a"}}, mapmatched.ErrDuplicateCandidate, `turn 1, candidate 1: duplicate candidate "a"`},
		{"NaN", []mapmatched.Candidate{{ChunkID: "a", Score: math.NaN()}}, mapmatched.ErrNonFinite, `chunk "a": score NaN`},
		{"infinite", []mapmatched.Candidate{{ChunkID: "a", Score: math.Inf(1)}}, mapmatched.ErrNonFinite, "score +Inf"},
	} {
		p, err := mapmatched.NewSliceProvider([][]mapmatched.Candidate{ok, c.turn})
		if p != nil || !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v, error %v, want none, %v with %q", c.name, p, err, c.want, c.text)
		}
	}
}

func TestSliceProviderTurnsWithoutCandidates(t *testing.T) {
	p, err := mapmatched.NewSliceProvider([][]mapmatched.Candidate{{{ChunkID: "a"}}, {}, nil})
	if err != nil {
		t.Fatal(err)
	}
	for _, turn := range []int{-1, 1, 2, 3} {
		got, err := p.Candidates(context.Background(), mapmatched.Query{Turn: turn}, 5)
		if len(got) != 0 || err != nil {
			t.Errorf("turn %d: %v, error %v, want nothing", turn, got, err)
		}
	}
}

func TestSliceProviderCopiesItsInput(t *testing.T) {
	turns := [][]mapmatched.Candidate{{{ChunkID: "a", Metadata: map[string]any{"k": 1}}}}
	p, err := mapmatched.NewSliceProvider(turns)
	if err != nil {
		t.Fatal(err)
	}
	turns[0][0].Metadata["k"] = 2
	turns[0][0].ChunkID = "b"
	got, err := p.Candidates(context.Background(), mapmatched.Query{}, 1)
	if err != nil || got[0].ChunkID != "a" || got[0].Metadata["k"] != 1 {
		t.Errorf("%v, error %v, want what was given", got, err)
	}
}

func ExampleNewSliceProvider() {
	p, err := mapmatched.NewSliceProvider([][]mapmatched.Candidate{
		{{ChunkID: "hmm", Score: 5}, {ChunkID: "noise", Score: 1}},
		{{ChunkID: "hmm", Score: 1}, {ChunkID: "noise", Score: 3}, {ChunkID: "road-jumps", Score: 3.5}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	candidates, err := p.Candidates(context.Background(), mapmatched.Query{Turn: 1}, 2)
	for _, c := range candidates {
		fmt.Println(c.ChunkID, c.Score)
	}
	fmt.Println(err)
	// Output:
	// road-jumps 3.5
	// noise 3
	// <nil>
}
