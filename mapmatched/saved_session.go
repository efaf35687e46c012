package mapmatched

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
	"strings"
)

// SessionSchema is the value of the key "schema" of the sessions saved here.
const SessionSchema = "mapmatched.session/1"

// savedSession is the JSON form of a session. It holds what cannot be worked
// out again: what the provider and the graph said, and the state at the
// border to the turns that were released.
type savedSession struct {
	Schema          string        `json:"schema"`
	ScoreModel      string        `json:"score_model"`
	PolicyDigest    string        `json:"policy_digest,omitempty"`
	Corpus          string        `json:"corpus,omitempty"`
	MaximumDistance float64       `json:"maximum_distance,omitempty"`
	Options         *Options      `json:"options"`
	History         []string      `json:"history"`
	Revised         []int         `json:"revised_prior_indices"`
	Released        []TraceStep   `json:"released,omitempty"`
	Columns         []savedColumn `json:"turns"`
	TrimAt          int           `json:"release_at,omitempty"`
}

type savedColumn struct {
	Gap      string                     `json:"gap,omitempty"`
	ChunkIDs []string                   `json:"chunk_ids,omitempty"`
	Raw      []float64                  `json:"raw,omitempty"`
	Parts    []map[string]float64       `json:"score_parts,omitempty"`
	Notes    map[string]json.RawMessage `json:"notes,omitempty"`
	From     []int                      `json:"from,omitempty"`
	Distance packed                     `json:"distance,omitempty"`
	Break    bool                       `json:"break,omitempty"`
	Settled  packed                     `json:"settled,omitempty"`
	// The state of the first column after released ones, and the scores of
	// every column when the backend is not the built-in one.
	Alpha   packed  `json:"alpha,omitempty"`
	Sum     packed  `json:"sum,omitempty"`
	Message packed  `json:"message,omitempty"`
	Back    []int32 `json:"back,omitempty"`
}

// packed is a list of numbers written as the base64 of their bits, little
// endian, which is short, exact and can hold −Inf.
type packed []float64

func (p packed) MarshalText() ([]byte, error) {
	raw := make([]byte, 0, 8*len(p))
	for _, v := range p {
		raw = binary.LittleEndian.AppendUint64(raw, math.Float64bits(v))
	}
	return base64.StdEncoding.AppendEncode(nil, raw), nil
}

func (p *packed) UnmarshalText(text []byte) error {
	raw, err := base64.StdEncoding.AppendDecode(nil, text)
	if err != nil {
		return err
	}
	if len(raw)%8 != 0 {
		return fmt.Errorf("%d bytes are not a list of 8-byte numbers", len(raw))
	}
	*p = make(packed, 0, len(raw)/8)
	for ; len(raw) > 0; raw = raw[8:] {
		*p = append(*p, math.Float64frombits(binary.LittleEndian.Uint64(raw)))
	}
	return nil
}

// Save writes the session as JSON. Restored, it continues bit for bit as if it
// had never been away.
func (s *Session) Save(w io.Writer) error {
	s.lock <- struct{}{}
	defer s.release()
	saved := savedSession{
		Schema:       SessionSchema,
		ScoreModel:   ScoreModel,
		PolicyDigest: s.digest,
		Corpus:       s.corpus,
		Options:      s.options(),
		History:      s.history,
		Revised:      s.revised,
		Released:     s.released,
		TrimAt:       s.trimAt,
	}
	if s.graph != nil {
		saved.MaximumDistance = s.graph.MaximumDistance()
	}
	for i, c := range s.columns {
		out := savedColumn{
			Gap:      c.gap,
			ChunkIDs: c.ChunkIDs,
			Raw:      c.Raw,
			Parts:    c.parts,
			Notes:    c.notes,
			From:     c.From,
			Distance: c.Distance,
			Break:    c.Break,
			Settled:  c.settled,
		}
		if i == 0 && s.base > 0 {
			out.Alpha, out.Sum, out.Message, out.Back = c.alpha, c.sum, c.message, c.back
		}
		if s.decoder != nil {
			out.Alpha = c.alpha
		}
		saved.Columns = append(saved.Columns, out)
	}
	if err := json.NewEncoder(w).Encode(saved); err != nil {
		return fmt.Errorf("save session: %w", err)
	}
	return nil
}

// RestoreSession reads a session that Save wrote. cfg nil takes the options
// that were saved; otherwise cfg has to agree with them, because a
// conversation decoded under two settings would be neither. The graph must
// have the same maximum distance. A damaged file is refused with the turn and
// the reason.
func RestoreSession(r io.Reader, provider CandidateProvider, graph CorpusGraph, cfg *Config) (*Session, error) {
	s, err := restoreSession(r, provider, graph, cfg)
	if err != nil {
		return nil, fmt.Errorf("restore session: %w", err)
	}
	return s, nil
}

func restoreSession(r io.Reader, provider CandidateProvider, graph CorpusGraph, cfg *Config) (*Session, error) {
	var saved savedSession
	if err := decodeStrict(r, &saved); err != nil {
		return nil, fmt.Errorf("not a saved session: %w", err)
	}
	if saved.Schema != SessionSchema || saved.ScoreModel != ScoreModel {
		return nil, fmt.Errorf("schema %q with score model %q; this version reads %q with %q", saved.Schema, saved.ScoreModel, SessionSchema, ScoreModel)
	}
	if saved.Options == nil {
		return nil, errors.New("no options")
	}
	old, err := saved.Options.Config()
	if err != nil {
		return nil, err
	}
	if cfg == nil {
		old.PolicyDigest, old.Corpus = saved.PolicyDigest, saved.Corpus
		cfg = old
	}
	s, err := NewSession(provider, graph, cfg)
	if err != nil {
		return nil, err
	}
	before, _ := old.resolve()
	if err := sameOptions(before.options(), s.options()); err != nil {
		return nil, err
	}
	if saved.PolicyDigest != s.digest {
		return nil, fmt.Errorf("made under policy %q, not %q", saved.PolicyDigest, s.digest)
	}
	if saved.Corpus != s.corpus {
		return nil, fmt.Errorf("%w: made on corpus %q, not %q", ErrStaleIndex, saved.Corpus, s.corpus)
	}
	if graph != nil && graph.MaximumDistance() != saved.MaximumDistance {
		return nil, fmt.Errorf("%w: made on a graph of maximum distance %v, not %v", ErrStaleIndex, saved.MaximumDistance, graph.MaximumDistance())
	}
	if err := s.replay(&saved); err != nil {
		return nil, err
	}
	return s, nil
}

// ReadSessionTrace reads a saved session for its detailed trace alone; no
// graph is needed.
func ReadSessionTrace(r io.Reader) (*Trace, error) {
	raw, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	var head struct {
		MaximumDistance float64 `json:"maximum_distance"`
	}
	if err := json.Unmarshal(raw, &head); err != nil {
		return nil, fmt.Errorf("not a saved session: %w", err)
	}
	var graph CorpusGraph
	if head.MaximumDistance != 0 {
		if graph, err = NewGraph(nil, &GraphOptions{MaximumDistance: head.MaximumDistance}); err != nil {
			return nil, fmt.Errorf("restore session: %w", err)
		}
	}
	s, err := RestoreSession(bytes.NewReader(raw), nil, graph, nil)
	if err != nil {
		return nil, err
	}
	return s.DetailedTrace(), nil
}

// sameOptions names the options that differ.
func sameOptions(saved, asked *Options) error {
	var faults []error
	a, b := reflect.ValueOf(*saved), reflect.ValueOf(*asked)
	for i := range a.NumField() {
		if x, y := a.Field(i), b.Field(i); !reflect.DeepEqual(x.Interface(), y.Interface()) {
			name := jsonName(a.Type().Field(i))
			faults = append(faults, fmt.Errorf("%s was %s, not %s: %w: a conversation keeps its settings", name, spell(x), spell(y), ErrInvalidConfig))
		}
	}
	return errors.Join(faults...)
}

func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

func spell(v reflect.Value) string {
	if v.IsNil() {
		return "unset"
	}
	return fmt.Sprint(v.Elem().Interface())
}

// replay fills an empty session with the saved turns.
func (s *Session) replay(saved *savedSession) error {
	s.base = len(saved.Released)
	turns := s.base + len(saved.Columns)
	if len(saved.History) != turns {
		return fmt.Errorf("%d turns but %d queries", turns, len(saved.History))
	}
	if s.base > 0 && (len(saved.Columns) == 0 || saved.Columns[0].Gap != "") {
		return errors.New("the first turn after the released ones is missing")
	}
	for i, step := range saved.Released {
		if step.TurnIndex != i || (step.ChunkID == "") != (step.Gap != "") {
			return fmt.Errorf("released turn %d: index %d, chunk %q, gap %q", i, step.TurnIndex, step.ChunkID, step.Gap)
		}
		s.pathIDs = append(s.pathIDs, step.ChunkID)
		s.total = step.CumulativeScore
	}
	s.released = saved.Released
	for i := range saved.Columns {
		if err := s.replayColumn(&saved.Columns[i], saved.History[s.turns()], turns); err != nil {
			return fmt.Errorf("turn %d: %w", s.base+i, err)
		}
	}
	s.history = saved.History
	s.trimAt = min(max(saved.TrimAt, 0), 2*len(s.columns)+1) // it is at most twice of what was there
	for i, turn := range saved.Revised {
		committed := turns - 2 - s.lag // through which turn, before the last one came
		if turn < 0 || turn >= turns-1 || i > 0 && turn <= saved.Revised[i-1] || s.lag >= 0 && turn <= committed {
			return fmt.Errorf("revised turns %v of %d", saved.Revised, turns)
		}
	}
	s.revised = saved.Revised
	if err := s.retrace(); err != nil {
		return err
	}
	for i, x := range s.path {
		id := ""
		if x >= 0 {
			id = s.columns[i].ChunkIDs[x]
		}
		s.pathIDs = append(s.pathIDs, id)
	}
	return nil
}

// isPosterior reports whether logs can be the logarithms of n probabilities.
func isPosterior(logs []float64, n int) bool {
	return len(logs) == n && !slices.ContainsFunc(logs, func(l float64) bool { return !(l <= 1e-9) })
}

// replayColumn adds a saved turn to a session that will have so many.
func (s *Session) replayColumn(saved *savedColumn, query string, turns int) error {
	turn := s.turns()
	if saved.Gap != "" {
		if len(saved.ChunkIDs) > 0 {
			return fmt.Errorf("a gap with %d candidates", len(saved.ChunkIDs))
		}
		s.columns = append(s.columns, &column{query: query, gap: saved.Gap, notes: saved.Notes, previous: -1})
		return nil
	}
	n := len(saved.ChunkIDs)
	if n == 0 || n > s.candidates || len(saved.Raw) != n || saved.Parts != nil && len(saved.Parts) != n {
		return fmt.Errorf("%d candidates (limit %d), %d raw scores, %d score parts", n, s.candidates, len(saved.Raw), len(saved.Parts))
	}
	c := s.newColumn(n, saved.From, len(saved.Distance) > 0)
	c.query, c.parts, c.notes, c.Break = query, saved.Parts, saved.Notes, saved.Break
	seen := s.emptySet()
	for x, id := range saved.ChunkIDs {
		if id == "" {
			return fmt.Errorf("candidate %d: %w", x, ErrEmptyChunkID)
		}
		if _, twice := seen[id]; twice {
			return fmt.Errorf("chunk %q: %w", id, ErrDuplicateCandidate)
		}
		seen[id] = struct{}{}
	}
	copy(c.ChunkIDs, saved.ChunkIDs)
	copy(c.Raw, saved.Raw)
	if err := s.emit(c); err != nil {
		return err
	}
	border := 0 // number of candidates in the column before
	first := false
	if c.previous >= 0 {
		border = len(s.at(c.previous).ChunkIDs)
	} else if len(s.columns) == 0 {
		for i, id := range s.pathIDs {
			if id != "" {
				c.previous, first = i, true
				border = math.MaxInt // those of a released column are not known
			}
		}
	}
	if (len(c.From) == 0) != (border == 0) {
		return fmt.Errorf("%d predecessors", len(c.From))
	}
	for k, y := range c.From {
		if y < 0 || y >= border || k > 0 && y <= c.From[k-1] {
			return fmt.Errorf("predecessors %v", c.From)
		}
	}
	free := len(c.From) == 0 || s.transition == 0 || c.Break
	if free != (len(saved.Distance) == 0) || !free && len(saved.Distance) != len(c.From)*n {
		return fmt.Errorf("%d distances for %d×%d moves", len(saved.Distance), len(c.From), n)
	}
	if !free {
		c.Distance = c.slab[6*n:]
		copy(c.Distance, saved.Distance)
		for _, d := range c.Distance {
			if !(d >= 0 && d <= s.graph.MaximumDistance()) {
				return fmt.Errorf("distance %v: %w", d, ErrDistance)
			}
		}
	}
	if committed := s.lag >= 0 && turn < turns-s.lag; committed != (saved.Settled != nil) || committed && !isPosterior(saved.Settled, n) {
		return errors.New("bad posterior of a committed turn")
	}
	c.settled = saved.Settled
	if c.previous >= s.base && s.at(c.previous).settled != nil && len(c.From) != 1 {
		return fmt.Errorf("predecessors %v, although turn %d is committed", c.From, c.previous)
	}
	switch {
	case first:
		if len(saved.Alpha) != n || len(saved.Sum) != n || len(saved.Back) != n || !isPosterior(saved.Message, n) {
			return errors.New("bad state at the border to the released turns")
		}
		for _, y := range saved.Back {
			if !slices.Contains(c.From, int(y)) {
				return fmt.Errorf("predecessor %d is none of %v", y, c.From)
			}
		}
		copy(c.alpha, saved.Alpha)
		copy(c.sum, saved.Sum)
		copy(c.message, saved.Message)
		copy(c.back, saved.Back)
	case s.decoder != nil:
		if len(saved.Alpha) != n {
			return errors.New("no path scores")
		}
		s.listen(c)
		copy(c.alpha, saved.Alpha)
		c.back = nil
	default:
		s.listen(c)
		s.reach(c)
	}
	if err := errors.Join(checkScores(turn, c.ChunkIDs, c.alpha), checkScores(turn, c.ChunkIDs, c.sum)); err != nil {
		return err
	}
	s.columns = append(s.columns, c)
	return nil
}

// retrace finds the path through replayed columns.
func (s *Session) retrace() error {
	s.path = slices.Repeat([]int32{-1}, len(s.columns))
	last := s.lastIndex()
	if last < 0 {
		return nil
	}
	if s.decoder != nil {
		t := s.trellis(nil)
		answer, err := s.decoder.Decode(context.Background(), t)
		if err != nil {
			return fmt.Errorf("decoder: %w", err)
		}
		if s.total, err = t.Score(answer.Path); err != nil {
			return fmt.Errorf("decoder: %w", err)
		}
		for i, x := range answer.Path {
			s.path[i] = int32(x)
		}
		return nil
	}
	c := s.columns[last]
	end := int32(c.bestEnd(c.alpha, s.transition))
	s.total = c.sum[end]
	for turn := s.base + last; turn >= s.base; turn = c.previous {
		c = s.at(turn)
		s.path[turn-s.base] = end
		end = c.back[end]
	}
	return nil
}
