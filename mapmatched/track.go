package mapmatched

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
)

// track is the decoded part of a conversation: the columns that still matter
// and the best path through them.
type track struct {
	base     int         // turn of columns[0]
	columns  []*column   // retained turns
	path     []int32     // candidate of each retained turn, −1 at a gap
	total    float64     // score of the path
	released []TraceStep // turns before base
	history  []string    // texts of all turns
	pathIDs  []string    // chunk of every turn, "" at a gap
	shown    bool        // a query holds pathIDs, which then must not change in place
	revised  []int       // turns that the last turn revised, ascending
	trimAt   int         // number of columns at which to look for final ones next

	// To be used again.
	spare []*column
	seen  map[string]struct{}
	ids   []string
	work  []float64
}

// column is a retained turn with the state of the recurrences.
type column struct {
	Column
	query    string
	gap      string // why there are no candidates, "" when there are
	parts    []map[string]float64
	notes    map[string]json.RawMessage
	entropy  float64   // of the emissions
	previous int       // turn of the last column with candidates, −1 for none
	alpha    []float64 // best path score into each candidate
	sum      []float64 // the same summed forward along that path, see Trellis.Score
	back     []int32   // predecessor on that path, −1 for the first; nil when the backend gives none
	message  []float64 // forward message: log posterior given the turns so far
	settled  []float64 // log posterior when the turn was committed, nil before
	slab     []float64 // what the slices of numbers are cut from
}

// decoded is a turn that is worked out but not yet part of the track.
type decoded struct {
	end     int          // candidate of the turn, −1 at a gap
	total   float64      // path score
	changed []assignment // turns whose candidate changes, latest first
}

type assignment struct {
	turn      int
	candidate int32
}

func (t *track) turns() int { return t.base + len(t.columns) }

// at returns the column of a retained turn.
func (t *track) at(turn int) *column { return t.columns[turn-t.base] }

// lastIndex is the index of the last column with candidates, −1 for none.
func (t *track) lastIndex() int {
	for i := len(t.columns) - 1; i >= 0; i-- {
		if t.columns[i].gap == "" {
			return i
		}
	}
	return -1
}

// newColumn makes a column of n candidates reachable from the given ones of
// the turn before, in room that a released column leaves.
// With distances, it has room for those.
func (t *track) newColumn(n int, from []int, distances bool) *column {
	c := &column{}
	if last := len(t.spare) - 1; last >= 0 {
		c, t.spare = t.spare[last], t.spare[:last]
	}
	need := 6 * n
	if distances {
		need += len(from) * n
	}
	if cap(c.slab) < need {
		c.slab = make([]float64, need)
	}
	*c = column{
		Column:   Column{ChunkIDs: slices.Grow(c.ChunkIDs[:0], n)[:n], From: append(c.From[:0], from...)},
		back:     slices.Grow(c.back[:0], n)[:n],
		previous: -1,
		slab:     c.slab[:need],
	}
	part := func(i int) []float64 { return c.slab[i*n : (i+1)*n : (i+1)*n] }
	c.Raw, c.Normalized, c.Emission = part(0), part(1), part(2)
	c.alpha, c.sum, c.message = part(3), part(4), part(5)
	if i := t.lastIndex(); i >= 0 {
		c.previous = t.base + i
	}
	return c
}

// survivors lists the candidates of the last turn that the next one may
// continue, ascending.
func (s *Session) survivors() []int {
	last := s.lastIndex()
	if last < 0 {
		return nil
	}
	c := s.columns[last]
	if c.settled != nil {
		return []int{int(s.path[last])}
	}
	all := make([]int, len(c.ChunkIDs))
	for x := range all {
		all[x] = x
	}
	if s.beam == 0 || s.beam >= len(all) {
		return all
	}
	slices.SortStableFunc(all, func(a, b int) int {
		switch {
		case c.better(c.alpha, s.transition, a, b):
			return -1
		case c.better(c.alpha, s.transition, b, a):
			return 1
		}
		return 0
	})
	all = all[:s.beam]
	slices.Sort(all)
	return all
}

// decode finds the best path that ends in next, without changing the track.
func (s *Session) decode(ctx context.Context, next *column) (decoded, error) {
	if next.gap != "" {
		return decoded{end: -1, total: s.total}, nil
	}
	s.listen(next)
	if s.decoder != nil {
		return s.delegate(ctx, next)
	}
	s.reach(next)
	for _, scores := range [][]float64{next.alpha, next.sum} {
		if err := checkScores(s.turns(), next.ChunkIDs, scores); err != nil {
			return decoded{}, err
		}
	}
	d := decoded{end: next.bestEnd(next.alpha, s.transition)}
	d.total = next.sum[d.end]
	candidate := next.back[d.end]
	for at := next.previous; at >= s.base; {
		if s.path[at-s.base] == candidate {
			break // from here on back the paths are the same
		}
		d.changed = append(d.changed, assignment{at, candidate})
		c := s.at(at)
		candidate, at = c.back[candidate], c.previous
	}
	return d, nil
}

// reach computes the best path scores of a column.
func (s *Session) reach(c *column) {
	if c.previous < s.base {
		c.begin(c.alpha, c.back)
		copy(c.sum, c.alpha)
		return
	}
	before := s.at(c.previous)
	c.relax(c.alpha, c.back, before.alpha, &before.Column, s.transition)
	for x, y := range c.back {
		c.sum[x] = before.sum[y] + c.gain(int(y), x, s.transition)
	}
}

// listen computes the forward message of a column.
func (s *Session) listen(c *column) {
	var before []float64
	if c.previous >= s.base {
		before = s.at(c.previous).message
	}
	need := len(c.From) + len(c.ChunkIDs)
	s.work = slices.Grow(s.work[:0], need)[:need]
	c.forward(c.message, before, s.work, s.transition, s.temperature)
}

// delegate lets another backend decode the whole trellis.
func (s *Session) delegate(ctx context.Context, next *column) (decoded, error) {
	t := s.trellis(next)
	answer, err := s.askBackend(ctx, t, next)
	if err != nil {
		return decoded{}, err
	}
	d := decoded{end: answer.Path[len(answer.Path)-1]}
	if d.total, err = t.Score(answer.Path); err != nil {
		return decoded{}, fmt.Errorf("turn %d: decoder: %w", s.turns(), err)
	}
	scores := answer.Scores
	if t.commit(s.turns()-s.lag, answer.Path, s.lag) { // what the turn commits bears on its scores
		again, err := s.askBackend(ctx, t, next)
		if err != nil {
			return decoded{}, err
		}
		scores = again.Scores
	}
	copy(next.alpha, scores)
	next.back = nil
	for i := len(s.path) - 1; i >= 0; i-- {
		if candidate := int32(answer.Path[i]); candidate != s.path[i] {
			d.changed = append(d.changed, assignment{i, candidate})
		}
	}
	return d, nil
}

// askBackend has a trellis decoded and checks the form of the answer.
func (s *Session) askBackend(ctx context.Context, t *Trellis, next *column) (Decoding, error) {
	answer, err := s.decoder.Decode(ctx, t)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return Decoding{}, fmt.Errorf("turn %d: decoder: %w", s.turns(), err)
	}
	if len(answer.Path) != len(t.Columns) || len(answer.Scores) != len(next.ChunkIDs) {
		return Decoding{}, fmt.Errorf("turn %d: decoder: path of %d turns with %d scores, for %d turns with %d candidates in the last",
			s.turns(), len(answer.Path), len(answer.Scores), len(t.Columns), len(next.ChunkIDs))
	}
	if err := checkScores(s.turns(), next.ChunkIDs, answer.Scores); err != nil {
		return Decoding{}, fmt.Errorf("decoder: %w", err)
	}
	return answer, nil
}

// commit leaves only the paths through the path's candidate of a turn, and
// reports whether that can change anything: it cannot without a lag, without
// such a turn, or when no later turn has candidates. Columns are copied.
func (t *Trellis) commit(turn int, path []int, lag int) bool {
	if lag <= 0 || turn < 0 || path[turn] < 0 {
		return false
	}
	for i := turn + 1; i < len(t.Columns); i++ {
		if c := &t.Columns[i]; len(c.ChunkIDs) > 0 {
			c.From, c.Distance = slices.Clone(c.From), slices.Clone(c.Distance)
			c.comeFrom(path[turn])
			return true
		}
	}
	return false
}

// apply makes a decoded turn part of the track. It cannot fail.
func (s *Session) apply(next *column, d decoded) {
	turn := s.turns()
	s.columns = append(s.columns, next)
	s.path = append(s.path, int32(d.end))
	s.total = d.total
	s.history = append(s.history, next.query)
	if len(d.changed) > 0 && s.shown {
		s.pathIDs, s.shown = slices.Clone(s.pathIDs), false
	}
	s.revised = s.revised[:0]
	for _, a := range slices.Backward(d.changed) {
		s.path[a.turn-s.base] = a.candidate
		s.pathIDs[a.turn] = s.at(a.turn).ChunkIDs[a.candidate]
		s.revised = append(s.revised, a.turn)
	}
	id := ""
	if d.end >= 0 {
		id = next.ChunkIDs[d.end]
	}
	s.pathIDs = append(s.pathIDs, id)
	if s.lag >= 0 && turn-s.lag >= s.base {
		s.commit(turn - s.lag)
	}
	s.trim()
}

// commit fixes a turn to its candidate on the current path: the turn after it
// can come from nowhere else, and what follows is computed again.
func (s *Session) commit(turn int) {
	c := s.at(turn)
	if c.gap != "" {
		return
	}
	s.smooth(turn, func(at int, marginal []float64) {
		if at == turn {
			c.settled = marginal
		}
	})
	only := int(s.path[turn-s.base])
	var alpha, message []float64
	for i := turn - s.base + 1; i < len(s.columns); i++ {
		next := s.columns[i]
		if next.gap != "" {
			continue
		}
		alpha = append(alpha[:0], next.alpha...)
		message = append(message[:0], next.message...)
		if next.previous == turn {
			next.comeFrom(only)
		}
		s.listen(next)
		if next.back != nil {
			s.reach(next)
		}
		if slices.Equal(alpha, next.alpha) && slices.Equal(message, next.message) {
			return // nor does anything change further on
		}
	}
}

// comeFrom leaves one predecessor.
func (c *Column) comeFrom(only int) {
	k, _ := slices.BinarySearch(c.From, only)
	c.From = append(c.From[:0], only)
	if c.Distance != nil {
		n := len(c.ChunkIDs)
		copy(c.Distance, c.Distance[k*n:(k+1)*n])
		c.Distance = c.Distance[:n]
	}
}

// committedThrough is the last committed turn, nil when there is none.
func (s *Session) committedThrough() *int {
	if through := s.turns() - 1 - s.lag; s.lag >= 0 && through >= 0 {
		return &through
	}
	return nil
}

// trellis gathers the retained columns, and next when it is not nil.
func (s *Session) trellis(next *column) *Trellis {
	t := &Trellis{TransitionWeight: s.transition}
	for _, c := range s.columns {
		t.Columns = append(t.Columns, c.Column)
	}
	if next != nil {
		t.Columns = append(t.Columns, next.Column)
	}
	return t
}

// marginals are the log posteriors of the retained turns, nil at gaps. Those
// of a committed turn are what they were when it was committed.
func (s *Session) marginals() [][]float64 {
	result := make([][]float64, len(s.columns))
	open := len(s.columns)
	for i, c := range s.columns {
		if c.settled == nil && c.gap == "" {
			open = i
			break
		}
		result[i] = c.settled
	}
	s.smooth(s.base+open, func(turn int, m []float64) { result[turn-s.base] = m })
	return result
}

// smooth runs the backward pass from the last turn to stop and yields the log
// posterior of each turn that has candidates.
func (s *Session) smooth(stop int, yield func(turn int, marginal []float64)) {
	var later *column
	var message []float64
	for turn := s.turns() - 1; turn >= stop; turn-- {
		c := s.at(turn)
		if c.gap != "" {
			continue
		}
		n := len(c.ChunkIDs)
		incoming := make([]float64, n)
		if later != nil {
			later.backward(incoming, message, make([]float64, 2*len(later.ChunkIDs)), s.transition, s.temperature)
		}
		marginal := slices.Clone(c.message)
		if later != nil {
			for x := range marginal {
				marginal[x] += incoming[x]
			}
			normalizeLog(marginal)
		}
		yield(turn, marginal)
		later, message = c, incoming
	}
}

// coalesced is the index of the last column at which all open paths agree, −1
// when there is none.
func (s *Session) coalesced() int {
	i := s.lastIndex()
	if i < 0 {
		return len(s.columns) - 1 // only gaps so far
	}
	open := make(map[int32]struct{})
	for _, x := range s.survivors() {
		open[int32(x)] = struct{}{}
	}
	for len(open) > 1 { // the paths meet somewhere before
		c := s.columns[i]
		if c.back == nil || c.previous < s.base {
			return -1
		}
		merged := make(map[int32]struct{}, len(open))
		for x := range open {
			merged[c.back[x]] = struct{}{}
		}
		open, i = merged, c.previous-s.base
	}
	for i+1 < len(s.columns) && s.columns[i+1].gap != "" {
		i++
	}
	return i
}

// trim releases the turns that are final and need not be retained.
func (s *Session) trim() {
	if s.retain < 0 || s.decoder != nil || len(s.columns) <= max(s.trimAt, 2*s.retain) {
		return
	}
	// The turn before the next one stays, and in fixed-lag mode the next one
	// to be committed.
	n := min(s.coalesced(), s.lastIndex(), len(s.columns)-s.retain, len(s.columns)-s.lag)
	for n > 0 && s.columns[n].gap != "" {
		n-- // start at a turn with candidates, which the later ones build on
	}
	if n > 0 {
		s.drop(n)
	}
	s.trimAt = len(s.columns) + len(s.columns)/2 // so that looking costs little a turn
}

// drop releases the first n columns.
func (s *Session) drop(n int) {
	s.released = s.steps(s.released, n, false)
	for _, c := range s.columns[:n] {
		if c.gap == "" {
			s.spare = append(s.spare, c)
		}
	}
	s.base += n
	s.columns = slices.Delete(s.columns, 0, n)
	s.path = slices.Delete(s.path, 0, n)
}

// Trace says why each chunk of the path so far was chosen.
func (s *Session) Trace() *Trace { return s.trace(false) }

// DetailedTrace is Trace with the candidates of every retained turn, as the
// HTML page needs them.
func (s *Session) DetailedTrace() *Trace { return s.trace(true) }

func (s *Session) trace(candidates bool) *Trace {
	s.lock <- struct{}{}
	defer s.release()
	return &Trace{
		CommittedThroughIndex: s.committedThrough(),
		FixedLag:              s.options().FixedLag,
		Options:               s.options(),
		PathChunkIDs:          slices.Clone(s.pathIDs),
		PolicyDigest:          s.digest,
		RevisedPriorIndices:   slices.Clone(s.revised),
		Schema:                TraceSchema,
		ScoreModel:            ScoreModel,
		Steps:                 s.steps(slices.Clone(s.released), len(s.columns), candidates),
	}
}

// steps appends the trace of the first n retained turns to that of the turns
// before them.
func (s *Session) steps(steps []TraceStep, n int, candidates bool) []TraceStep {
	marginals := s.marginals()
	cumulative := 0.0
	if len(steps) > 0 {
		cumulative = steps[len(steps)-1].CumulativeScore
	}
	for i, c := range s.columns[:n] {
		step := TraceStep{TurnIndex: s.base + i, Query: c.query, Gap: c.gap, Notes: maps.Clone(c.notes)}
		if c.gap == "" {
			x := int(s.path[i])
			from := c.predecessor(x)
			if c.back == nil && c.previous >= 0 {
				from = int(s.path[c.previous-s.base])
			}
			step.ChunkID = c.ChunkIDs[x]
			step.Confidence = Exp(marginals[i][x])
			step.PosteriorEntropy = logEntropy(marginals[i])
			step.RawEmissionScore = c.Raw[x]
			step.NormalizedEmissionScore = c.Normalized[x]
			step.WeightedEmissionScore = c.Emission[x]
			step.EmissionEntropy = c.entropy
			step.NormalizedEmissionMargin = margin(c.Normalized, x)
			step.GraphDistance = c.distance(from, x)
			step.WeightedTransitionCost = float64(s.transition * step.GraphDistance)
			cumulative += c.gain(from, x, s.transition)
			if c.Break {
				step.Break = fmt.Sprintf("no candidate is nearer than %v to one of turn %d", s.breakDistance, c.previous)
			}
			if c.previous >= 0 {
				step.Move = s.kind(step.ChunkID, s.pathIDs[c.previous], c, step.GraphDistance)
			}
			if c.parts != nil {
				step.ScoreParts = maps.Clone(c.parts[x])
			}
			if candidates {
				step.Candidates = s.traceCandidates(c, marginals[i])
			}
		}
		step.CumulativeScore = cumulative
		steps = append(steps, step)
	}
	return steps
}

func (s *Session) traceCandidates(c *column, marginal []float64) []TraceCandidate {
	list := make([]TraceCandidate, len(c.ChunkIDs))
	for x := range list {
		from := c.predecessor(x)
		list[x] = TraceCandidate{
			ChunkID:                 c.ChunkIDs[x],
			RawEmissionScore:        c.Raw[x],
			NormalizedEmissionScore: c.Normalized[x],
			WeightedEmissionScore:   c.Emission[x],
			BestPathScore:           c.alpha[x],
			Posterior:               Exp(marginal[x]),
			GraphDistance:           c.distance(from, x),
			WeightedTransitionCost:  float64(s.transition * c.distance(from, x)),
		}
		if from >= 0 && c.previous >= s.base {
			list[x].PredecessorChunkID = s.at(c.previous).ChunkIDs[from]
		}
		if c.parts != nil {
			list[x].ScoreParts = maps.Clone(c.parts[x])
		}
	}
	return list
}

// predecessor is the candidate before x on the best path to x, −1 when there
// is none or the backend does not say.
func (c *column) predecessor(x int) int {
	if c.back == nil {
		return -1
	}
	return int(c.back[x])
}

// distance is what the graph said of a move, 0 when it was not asked.
func (c *Column) distance(from, x int) float64 {
	if k, ok := slices.BinarySearch(c.From, from); ok && c.Distance != nil {
		return c.Distance[k*len(c.ChunkIDs)+x]
	}
	return 0
}

// gain is what a path earns by moving to candidate x.
func (c *Column) gain(from, x int, beta float64) float64 {
	return c.Emission[x] - float64(beta*c.distance(from, x))
}

// kind names the move from chunk before to chunk id, "" when the distance was
// not asked for.
func (s *Session) kind(id, before string, c *column, distance float64) Move {
	switch {
	case id == before:
		return MoveStay
	case c.Break:
		return MoveJump
	case c.Distance == nil:
		return ""
	case distance >= s.graph.MaximumDistance():
		return MoveJump
	}
	return MoveDrill
}

// margin is how far the normalised score of x is above the best other, 0
// without others.
func margin(normalized []float64, x int) float64 {
	other := math.Inf(-1)
	for i, n := range normalized {
		if i != x {
			other = max(other, n)
		}
	}
	if math.IsInf(other, -1) {
		return 0
	}
	return normalized[x] - other
}
