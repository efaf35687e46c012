package mapmatched

import (
	"context"
	"fmt"
	"math"
)

// Difference is the first point at which two decoders disagree.
type Difference struct {
	Turns int    // length of the prefix that both had decoded
	Turn  int    // turn they disagree on
	What  string // in words, naming both values
}

// String implements fmt.Stringer.
func (d *Difference) String() string {
	return fmt.Sprintf("after %d turns, turn %d: %s", d.Turns, d.Turn, d.What)
}

// CompareDecoders runs two backends on every prefix of a trellis, shortest
// first, and returns the first difference: a path of another length, another
// candidate, or a score that differs by more than tolerance (absolute, ≥ 0).
// It returns nil when there is none.
func CompareDecoders(ctx context.Context, a, b Decoder, t *Trellis, tolerance float64) (*Difference, error) {
	for turns := 1; turns <= len(t.Columns); turns++ {
		prefix := &Trellis{t.TransitionWeight, t.Columns[:turns]}
		first, err := a.Decode(ctx, prefix)
		if err != nil {
			return nil, fmt.Errorf("first decoder, %d turns: %w", turns, err)
		}
		second, err := b.Decode(ctx, prefix)
		if err != nil {
			return nil, fmt.Errorf("second decoder, %d turns: %w", turns, err)
		}
		if d := compareDecodings(prefix, first, second, tolerance); d != nil {
			return d, nil
		}
	}
	return nil, nil
}

func compareDecodings(t *Trellis, a, b Decoding, tolerance float64) *Difference {
	turns := len(t.Columns)
	if len(a.Path) != turns || len(b.Path) != turns {
		return &Difference{turns, turns - 1, fmt.Sprintf("paths of %d and %d turns", len(a.Path), len(b.Path))}
	}
	name := func(turn, x int) string {
		if ids := t.Columns[turn].ChunkIDs; x >= 0 && x < len(ids) {
			return fmt.Sprintf("%q", ids[x])
		}
		return fmt.Sprintf("no candidate (%d)", x)
	}
	for i := range a.Path {
		if a.Path[i] != b.Path[i] {
			return &Difference{turns, i, fmt.Sprintf("path through %s and %s", name(i, a.Path[i]), name(i, b.Path[i]))}
		}
	}
	if len(a.Scores) != len(b.Scores) {
		return &Difference{turns, turns - 1, fmt.Sprintf("%d and %d scores", len(a.Scores), len(b.Scores))}
	}
	for x := range a.Scores {
		if a.Scores[x] != b.Scores[x] && !(math.Abs(a.Scores[x]-b.Scores[x]) <= tolerance) {
			return &Difference{turns, turns - 1, fmt.Sprintf("best path to candidate %d scores %v and %v", x, a.Scores[x], b.Scores[x])}
		}
	}
	return nil
}
