package mapmatched

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// Session decodes one conversation, turn by turn. Its methods may be called
// from several goroutines and then take turns; different sessions run in
// parallel. A turn either succeeds or leaves the session as it was.
type Session struct {
	lock     chan struct{} // holds one token while the session is in use
	provider CandidateProvider
	graph    CorpusGraph
	settings
	track
}

// Result is the answer to a turn.
type Result struct {
	Turn                  int      // index of the turn, from 0
	ChunkID               string   // decoded chunk, "" at a gap
	Gap                   string   // why there is no chunk, "" when there is one
	Confidence            float64  // posterior of the decoded chunk given what is committed, in [0, 1]; 0 at a gap
	TotalScore            float64  // score of the decoded path through this turn
	Ranking               []Ranked // every candidate of the turn, best first; see Config.RankBy
	ContextChunkIDs       []string // decoded chunk, its graph neighbourhood, the turn's candidates
	RevisedPriorIndices   []int    // earlier turns whose chunk this turn changed, ascending
	CommittedThroughIndex *int     // last turn that cannot change any more, nil when there is none
}

// Ranked is a candidate with what the decoder makes of it.
type Ranked struct {
	Candidate
	Position  int     // position in provider order, from 0
	PathScore float64 // score of the best path that ends in the candidate
	Posterior float64 // probability of the candidate under the path posterior
}

// Decoded is the entry of the decoded chunk in the ranking, nil at a gap.
func (r *Result) Decoded() *Ranked {
	for i := range r.Ranking {
		if r.Ranking[i].ChunkID == r.ChunkID {
			return &r.Ranking[i]
		}
	}
	return nil
}

// Pointwise is the entry of the candidate that the provider put first, which is
// what searching the turn alone finds; nil at a gap.
func (r *Result) Pointwise() *Ranked {
	for i := range r.Ranking {
		if r.Ranking[i].Position == 0 {
			return &r.Ranking[i]
		}
	}
	return nil
}

// NewSession starts a conversation. provider may be nil when every turn comes
// through Observe; graph may be nil when the transition weight is 0. cfg nil
// means the defaults; a bad one is refused with all its faults.
func NewSession(provider CandidateProvider, graph CorpusGraph, cfg *Config) (*Session, error) {
	set, err := cfg.resolve()
	if err != nil {
		return nil, fmt.Errorf("new session: %w", err)
	}
	if graph == nil && set.transition != 0 {
		return nil, fmt.Errorf("new session: %w: a transition weight of %v needs a graph; without one set it to 0", ErrInvalidConfig, set.transition)
	}
	if graph != nil {
		if m := graph.MaximumDistance(); !(m > 0) || math.IsInf(m, 0) {
			return nil, fmt.Errorf("new session: %w: maximum distance of the graph is %v, not positive and finite", ErrInvalidConfig, m)
		} else if set.breakDistance > m {
			return nil, fmt.Errorf("new session: %w: break_distance %v is beyond the maximum distance %v of the graph, which no transition exceeds", ErrInvalidConfig, set.breakDistance, m)
		}
	}
	return &Session{lock: make(chan struct{}, 1), provider: provider, graph: graph, settings: set}, nil
}

// Ask asks the provider for the candidates of the next turn and decodes it.
// The session fills in the query's Turn, History and Path. Errors name the
// turn, and leave the session unchanged.
func (s *Session) Ask(ctx context.Context, q Query) (*Result, error) {
	if err := s.acquire(ctx); err != nil {
		return nil, err
	}
	defer s.release()
	turn := s.turns()
	if s.provider == nil {
		return nil, fmt.Errorf("turn %d: %w: the session has no provider; use Observe", turn, ErrInvalidConfig)
	}
	q.Turn = turn
	q.History = slices.Clip(s.history)
	q.Path = slices.Clip(s.pathIDs)
	s.shown = true
	candidates, err := s.provider.Candidates(ctx, q, s.candidates)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("turn %d: candidates: %w", turn, err)
	}
	return s.observe(ctx, q.Text, candidates)
}

// Observe decodes the next turn from candidates that the caller has, best
// first. The text is recorded in the trace and the history and may be empty.
func (s *Session) Observe(ctx context.Context, text string, candidates []Candidate) (*Result, error) {
	if err := s.acquire(ctx); err != nil {
		return nil, err
	}
	defer s.release()
	return s.observe(ctx, text, candidates)
}

func (s *Session) acquire(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case s.lock <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *Session) release() { <-s.lock }

// observe works out everything that can fail and then, in one step that
// cannot, makes the turn part of the session.
func (s *Session) observe(ctx context.Context, text string, candidates []Candidate) (*Result, error) {
	text = strings.ToValidUTF8(text, "\uFFFD")
	candidates = candidates[:min(len(candidates), s.candidates)]
	turn := s.turns()
	next, err := s.column(ctx, text, candidates)
	if err != nil {
		return nil, fmt.Errorf("turn %d: %w", turn, err)
	}
	d, err := s.decode(ctx, next)
	if err != nil {
		return nil, err
	}
	result := &Result{Turn: turn, Gap: next.gap, TotalScore: d.total}
	if next.gap == "" {
		result.ChunkID = next.ChunkIDs[d.end]
		result.ContextChunkIDs, err = s.expand(ctx, result.ChunkID, next.ChunkIDs)
		if err != nil {
			return nil, fmt.Errorf("turn %d: context of %q: %w", turn, result.ChunkID, err)
		}
	}
	s.apply(next, d)
	if next.gap == "" { // given what the turn commits, too
		result.Confidence = Exp(next.message[d.end])
		result.Ranking = s.rank(next, d.end, candidates)
	}
	result.RevisedPriorIndices = slices.Clone(s.revised)
	result.CommittedThroughIndex = s.committedThrough()
	return result, nil
}

// column makes the trellis column of a turn, looking up distances.
func (s *Session) column(ctx context.Context, text string, candidates []Candidate) (*column, error) {
	if len(candidates) == 0 {
		if s.onEmpty == OnEmptyError {
			return nil, fmt.Errorf("%w: the provider found nothing for %q", ErrNoCandidates, text)
		}
		return &column{query: text, gap: "no candidates", previous: -1}, nil
	}
	c := s.newColumn(len(candidates), s.survivors(), s.transition != 0)
	c.query = text
	seen := s.emptySet()
	for x, candidate := range candidates {
		id := candidate.ChunkID
		if id == "" {
			return nil, fmt.Errorf("candidate %d: %w", x, ErrEmptyChunkID)
		}
		if !utf8.ValidString(id) {
			return nil, fmt.Errorf("chunk %q: the ID is not UTF-8, which traces and saved sessions are", id)
		}
		if _, twice := seen[id]; twice {
			return nil, fmt.Errorf("chunk %q: %w: a turn may offer a chunk once", id, ErrDuplicateCandidate)
		}
		seen[id] = struct{}{}
		if math.IsNaN(candidate.Score) || math.IsInf(candidate.Score, 0) {
			return nil, fmt.Errorf("chunk %q: score %v: %w", id, candidate.Score, ErrNonFinite)
		}
		c.ChunkIDs[x] = id
		c.Raw[x] = candidate.Score
		if len(candidate.Parts) > 0 {
			if c.parts == nil {
				c.parts = make([]map[string]float64, len(candidates))
			}
			c.parts[x] = maps.Clone(candidate.Parts)
			for name, part := range candidate.Parts {
				if math.IsNaN(part) || math.IsInf(part, 0) {
					return nil, fmt.Errorf("chunk %q: part %q of the score is %v: %w", id, name, part, ErrNonFinite)
				}
			}
		}
	}
	if err := s.emit(c); err != nil {
		return nil, err
	}
	if len(c.From) == 0 || s.transition == 0 {
		return c, nil
	}
	before := s.at(c.previous)
	s.ids = s.ids[:0]
	for _, y := range c.From {
		s.ids = append(s.ids, before.ChunkIDs[y])
	}
	c.Distance = c.slab[6*len(candidates):]
	if err := s.graph.Distances(ctx, s.ids, c.ChunkIDs, c.Distance); err != nil {
		return nil, fmt.Errorf("graph distances: %w", err)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := checkDistances(c, before, s.graph.MaximumDistance(), s.transition); err != nil {
		return nil, err
	}
	s.breakAt(c)
	return c, nil
}

// emit fills the normalised and weighted scores of a column from its raw ones.
func (s *Session) emit(c *column) error {
	if err := normalizeInto(c.Normalized, c.Raw, s.normalization); err != nil {
		return err
	}
	low, high := 0, 0
	for x, n := range c.Normalized {
		if n < c.Normalized[low] {
			low = x
		}
		if n > c.Normalized[high] {
			high = x
		}
		c.Emission[x] = float64(s.emission * n)
		if math.IsInf(c.Emission[x], 0) {
			return fmt.Errorf("chunk %q: emission weight %v times score %v: %w", c.ChunkIDs[x], s.emission, n, ErrNonFinite)
		}
	}
	if math.IsInf(c.Normalized[high]-c.Normalized[low], 0) {
		return fmt.Errorf("chunk %q: its score %v is too far from the %v of chunk %q: %w",
			c.ChunkIDs[high], c.Normalized[high], c.Normalized[low], c.ChunkIDs[low], ErrNonFinite)
	}
	c.entropy = EmissionEntropy(c.Emission)
	return nil
}

// emptySet is a set of chunk IDs to fill, good until it is asked for again.
func (s *Session) emptySet() map[string]struct{} {
	if s.seen == nil {
		s.seen = make(map[string]struct{})
	}
	clear(s.seen)
	return s.seen
}

func checkDistances(c, before *column, maximum, beta float64) error {
	n := len(c.ChunkIDs)
	for i, d := range c.Distance {
		if d >= 0 && d <= maximum {
			continue
		}
		pair := fmt.Sprintf("distance from %q to %q is %v", before.ChunkIDs[c.From[i/n]], c.ChunkIDs[i%n], d)
		if math.IsNaN(d) {
			return fmt.Errorf("%s: %w", pair, ErrNonFinite)
		}
		return fmt.Errorf("%s: %w: the graph's maximum is %v", pair, ErrDistance, maximum)
	}
	if math.IsInf(beta*maximum, 0) {
		return fmt.Errorf("transition weight %v times maximum distance %v: %w", beta, maximum, ErrNonFinite)
	}
	return nil
}

// breakAt drops the distances of a column that nothing comes near to.
func (s *Session) breakAt(c *column) {
	if s.breakDistance == 0 {
		return
	}
	for _, d := range c.Distance {
		if d < s.breakDistance {
			return
		}
	}
	c.Break, c.Distance = true, nil
}

// rank orders the candidates of a turn whose decoded candidate is end.
func (s *Session) rank(c *column, end int, candidates []Candidate) []Ranked {
	ranking := make([]Ranked, len(candidates))
	for x, candidate := range candidates {
		ranking[x] = Ranked{candidate, x, c.alpha[x], Exp(c.message[x])}
	}
	if s.rankBy == RankByFilteredPosterior {
		slices.SortStableFunc(ranking, func(a, b Ranked) int {
			return cmp.Compare(c.message[b.Position], c.message[a.Position])
		})
		return ranking
	}
	slices.SortStableFunc(ranking, func(a, b Ranked) int {
		switch {
		case a.Position == b.Position:
			return 0
		case a.Position == end, b.Position != end && c.better(c.alpha, s.transition, a.Position, b.Position):
			return -1
		case b.Position == end, c.better(c.alpha, s.transition, b.Position, a.Position):
			return 1
		}
		return 0
	})
	return ranking
}

// expand is the context of a decoded chunk.
func (s *Session) expand(ctx context.Context, chunkID string, candidates []string) ([]string, error) {
	context := make([]string, 0, 1+len(candidates))
	seen := s.emptySet()
	add := func(id string) {
		if _, twice := seen[id]; !twice {
			seen[id] = struct{}{}
			context = append(context, id)
		}
	}
	add(chunkID)
	if s.graph != nil && s.radius > 0 {
		near, err := s.graph.Neighborhood(ctx, chunkID, s.radius)
		if err != nil {
			return nil, err
		}
		for _, n := range near {
			add(n.ChunkID)
		}
	}
	for _, id := range candidates {
		add(id)
	}
	if s.contextLimit >= 0 && len(context) > s.contextLimit {
		context = context[:s.contextLimit]
	}
	return context, nil
}

// Note records something about the latest turn in its trace, under a name: what
// a reranker did, how a gate stood. It must be encodable as JSON. Notes are
// kept by saved sessions and change nothing else; a second note of the same
// name takes the place of the first.
func (s *Session) Note(name string, v any) error {
	raw, err := sortedJSON(v)
	if err != nil {
		return fmt.Errorf("note %q: %w", name, err)
	}
	s.lock <- struct{}{}
	defer s.release()
	if len(s.columns) == 0 {
		return fmt.Errorf("note %q: %w: there is no turn yet", name, ErrInvalidConfig)
	}
	c := s.columns[len(s.columns)-1]
	if c.notes == nil {
		c.notes = map[string]json.RawMessage{}
	}
	c.notes[name] = raw
	return nil
}

// Turns is the number of turns decoded so far.
func (s *Session) Turns() int {
	s.lock <- struct{}{}
	defer s.release()
	return s.turns()
}

// Path returns the decoded chunk of every turn, "" for a gap.
func (s *Session) Path() []string {
	s.lock <- struct{}{}
	defer s.release()
	return slices.Clone(s.pathIDs)
}

// FinalThroughIndex is the last turn that no later evidence can change: every
// path that is still open, and in fixed-lag mode every commitment, agrees up
// to it. It is −1 when there is none.
func (s *Session) FinalThroughIndex() int {
	s.lock <- struct{}{}
	defer s.release()
	return s.base + s.coalesced()
}

// Trellis returns a copy of what the decoder was given, for CompareDecoders or
// KBest. It needs every turn: ErrReleased when some were released.
func (s *Session) Trellis() (*Trellis, error) {
	s.lock <- struct{}{}
	defer s.release()
	if s.base > 0 {
		return nil, fmt.Errorf("trellis: turns before %d: %w: raise Config.RetainTurns", s.base, ErrReleased)
	}
	t := s.trellis(nil)
	for i := range t.Columns {
		c := &t.Columns[i]
		c.ChunkIDs = slices.Clone(c.ChunkIDs)
		c.Raw = slices.Clone(c.Raw)
		c.Normalized = slices.Clone(c.Normalized)
		c.Emission = slices.Clone(c.Emission)
		c.From = slices.Clone(c.From)
		c.Distance = slices.Clone(c.Distance)
	}
	return t, nil
}

// KBest returns the k best paths through the conversation so far, given what
// is committed. See the function KBest for their order; it may put another of
// equally good paths first than the decoder did.
func (s *Session) KBest(ctx context.Context, k int) ([]ScoredPath, error) {
	t, err := s.Trellis()
	if err != nil {
		return nil, fmt.Errorf("k best: %w", err)
	}
	return KBest(ctx, t, k)
}

// Posterior returns the path posterior of a turn given all turns so far and
// what is committed: one probability for each candidate in provider order,
// summing to 1, none at a gap. A committed turn keeps the posterior it had
// when it was committed. ErrReleased for a turn that was released.
func (s *Session) Posterior(turn int) ([]Scored, error) {
	s.lock <- struct{}{}
	defer s.release()
	if turn < 0 || turn >= s.turns() {
		return nil, fmt.Errorf("posterior: turn %d of %d: %w", turn, s.turns(), ErrInvalidConfig)
	}
	if turn < s.base {
		return nil, fmt.Errorf("posterior: turn %d: %w: raise Config.RetainTurns", turn, ErrReleased)
	}
	c := s.columns[turn-s.base]
	marginals := s.marginals()[turn-s.base]
	posterior := make([]Scored, len(marginals))
	for x, l := range marginals {
		posterior[x] = Scored{c.ChunkIDs[x], Exp(l)}
	}
	return posterior, nil
}
