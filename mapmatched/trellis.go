package mapmatched

import (
	"context"
	"fmt"
	"math"
	"slices"
)

// Trellis is everything a decoder needs to know of a conversation: the
// candidates of its turns, how well they answer and how far apart they are.
type Trellis struct {
	TransitionWeight float64  // β ≥ 0
	Columns          []Column // one a turn
}

// Column is one turn of a trellis. A gap has no candidates and the turns
// around it are joined as if it were not there.
type Column struct {
	ChunkIDs   []string  // candidates in provider order
	Raw        []float64 // scores as the provider gave them
	Normalized []float64
	Emission   []float64 // λ·s, what a path gains
	// From lists, ascending, the candidates of the last turn that has any
	// from which a path may come: all of them, unless a beam left some out
	// or a commitment all but one. It is empty for the first turn that has
	// candidates.
	From []int
	// Distance holds len(From)×len(ChunkIDs) graph distances, row-major. It
	// is nil where moving costs nothing: β is 0 or the turn is a break.
	Distance []float64
	Break    bool // a new segment starts here
}

// Decoding is what a decoder makes of a trellis.
type Decoding struct {
	Path   []int     // candidate of each turn, −1 at a gap
	Scores []float64 // best path score ending in each candidate of the last turn that has any
}

// Decoder is a decoding backend: it finds the best path through a trellis
// under decode_v1. Ties go to the candidate that comes first, for the
// predecessor as for the last turn; with β = 0 each turn's candidate is the
// first with the greatest emission. Implementations do not change t.
type Decoder interface {
	Decode(ctx context.Context, t *Trellis) (Decoding, error)
}

// Viterbi is the built-in Decoder, after Viterbi (1967). Sessions run the same
// recurrence one column at a time.
type Viterbi struct{}

// Decode implements Decoder in O(Σ len(From)·len(ChunkIDs)).
func (Viterbi) Decode(ctx context.Context, t *Trellis) (Decoding, error) {
	if err := t.check(); err != nil {
		return Decoding{}, err
	}
	path := make([]int, len(t.Columns))
	alpha := make([][]float64, len(t.Columns))
	back := make([][]int32, len(t.Columns))
	last := -1
	for i := range t.Columns {
		if err := ctx.Err(); err != nil {
			return Decoding{}, err
		}
		path[i] = -1
		c := &t.Columns[i]
		if len(c.ChunkIDs) == 0 {
			continue
		}
		alpha[i] = make([]float64, len(c.ChunkIDs))
		back[i] = make([]int32, len(c.ChunkIDs))
		if last < 0 {
			c.begin(alpha[i], back[i])
		} else {
			c.relax(alpha[i], back[i], alpha[last], &t.Columns[last], t.TransitionWeight)
		}
		if err := checkScores(i, c.ChunkIDs, alpha[i]); err != nil {
			return Decoding{}, err
		}
		last = i
	}
	if last < 0 {
		return Decoding{Path: path}, nil
	}
	at := t.Columns[last].bestEnd(alpha[last], t.TransitionWeight)
	for i := last; i >= 0; i-- {
		if back[i] != nil {
			path[i] = at
			at = int(back[i][at])
		}
	}
	return Decoding{Path: path, Scores: alpha[last]}, nil
}

func (t *Trellis) check() error {
	before := 0 // candidates of the last turn that has any
	for i := range t.Columns {
		c := &t.Columns[i]
		n := len(c.ChunkIDs)
		if n == 0 {
			continue
		}
		if len(c.Emission) != n {
			return fmt.Errorf("trellis: turn %d has %d candidates but %d emissions", i, n, len(c.Emission))
		}
		if (before == 0) != (len(c.From) == 0) {
			return fmt.Errorf("trellis: turn %d lists %d predecessors of %d", i, len(c.From), before)
		}
		for k, y := range c.From {
			if y < 0 || y >= before || k > 0 && y <= c.From[k-1] {
				return fmt.Errorf("trellis: turn %d: predecessors %v are not ascending below %d", i, c.From, before)
			}
		}
		if c.Distance != nil && len(c.Distance) != len(c.From)*n {
			return fmt.Errorf("trellis: turn %d has %d distances, not %d×%d", i, len(c.Distance), len(c.From), n)
		}
		before = n
	}
	return nil
}

// begin starts paths in every candidate of the column.
func (c *Column) begin(alpha []float64, back []int32) {
	for x, e := range c.Emission {
		alpha[x], back[x] = 0+e, -1 // 0+ so that −0 becomes 0
	}
}

// relax continues the best paths of the column before, whose scores are prev,
// into every candidate of this one:
//
//	alpha[x] = λ·s(x) + max over y of (prev[y] − β·d(y, x))
func (c *Column) relax(alpha []float64, back []int32, prev []float64, before *Column, beta float64) {
	if c.Distance == nil {
		y := c.From[0]
		for _, other := range c.From[1:] {
			if before.better(prev, beta, other, y) {
				y = other
			}
		}
		for x, e := range c.Emission {
			alpha[x], back[x] = prev[y]+e, int32(y)
		}
		return
	}
	for x := range alpha {
		alpha[x], back[x] = math.Inf(-1), int32(c.From[0])
	}
	n := len(c.ChunkIDs)
	for k, y := range c.From {
		score := prev[y]
		row := c.Distance[k*n : (k+1)*n]
		best := alpha[:len(row)]
		for x, d := range row {
			if v := score - float64(beta*d); v > best[x] {
				best[x], back[x] = v, int32(y)
			}
		}
	}
	for x, e := range c.Emission {
		alpha[x] += e
	}
}

// better reports whether the path score of candidate a is strictly above that
// of b. With β = 0 the emissions decide, which the sums over many turns could
// round to a tie.
func (c *Column) better(alpha []float64, beta float64, a, b int) bool {
	if beta == 0 {
		return c.Emission[a] > c.Emission[b]
	}
	return alpha[a] > alpha[b]
}

// bestEnd is the candidate in which the best path ends.
func (c *Column) bestEnd(alpha []float64, beta float64) int {
	best := 0
	for x := range alpha {
		if c.better(alpha, beta, x, best) {
			best = x
		}
	}
	return best
}

// Score sums a path through the trellis, one candidate a turn and −1 at gaps.
// It is an error if the path is not one that the trellis allows.
func (t *Trellis) Score(path []int) (float64, error) {
	if len(path) != len(t.Columns) {
		return 0, fmt.Errorf("path of %d turns through a trellis of %d", len(path), len(t.Columns))
	}
	total, before := 0.0, -1
	for i, x := range path {
		c := &t.Columns[i]
		n := len(c.ChunkIDs)
		if x < -1 || x >= n || (x < 0) != (n == 0) {
			return 0, fmt.Errorf("path takes candidate %d of %d at turn %d", x, n, i)
		}
		if n == 0 {
			continue
		}
		from := -1
		if before >= 0 {
			from = path[before]
			if !slices.Contains(c.From, from) {
				return 0, fmt.Errorf("path takes candidate %d at turn %d, from which turn %d may not come", from, before, i)
			}
		}
		total += c.gain(from, x, t.TransitionWeight)
		if math.IsNaN(total) || math.IsInf(total, 0) {
			return 0, fmt.Errorf("turn %d: chunk %q: accumulated score %v: %w: scores or weights are too large", i, c.ChunkIDs[x], total, ErrNonFinite)
		}
		before = i
	}
	return total, nil
}

func checkScores(turn int, chunkIDs []string, alpha []float64) error {
	for x, score := range alpha {
		if math.IsNaN(score) || math.IsInf(score, 0) {
			return fmt.Errorf("turn %d: chunk %q: accumulated score %v: %w: scores or weights are too large", turn, chunkIDs[x], score, ErrNonFinite)
		}
	}
	return nil
}
