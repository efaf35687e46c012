package mapmatched

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// ReadTrace reads one trace in its JSON form and checks it. Keys that it does
// not know are ignored, and a trace without the key "schema" is taken for one
// of another implementation; a trace of another schema, or of a newer major
// version of this one, is refused.
//
// What it returns has as many steps as path chunks, turn indices that count up
// from 0, path chunks that agree with the steps, a reason for every gap,
// ascending revised turns and a committed turn inside the trace, candidates
// with distinct, non-empty chunk IDs, and finite numbers: every step has all
// the scores of the interchange format, and a gap its cumulative score.
func ReadTrace(r io.Reader) (*Trace, error) {
	type plain Trace
	var in struct {
		plain
		PathChunkIDs *[]string       `json:"path_chunk_ids"`
		Steps        *[]stepOnDisk   `json:"steps"`
		Turns        json.RawMessage `json:"turns"` // of an answer of decode
	}
	dec := json.NewDecoder(r)
	if err := dec.Decode(&in); err != nil {
		return nil, fmt.Errorf("trace: %w", plainJSONError(err))
	}
	if err := checkAtEnd(dec); err != nil {
		return nil, err
	}
	t := Trace(in.plain)
	if err := checkSchema(t.Schema); err != nil {
		return nil, err
	}
	if in.Steps == nil || in.PathChunkIDs == nil {
		if in.Turns != nil {
			return nil, errors.New(`trace: this is not a trace but has "turns"; give the "trace" of one of its turns`)
		}
		return nil, errors.New(`trace: this is not a trace: it needs the keys "steps" and "path_chunk_ids"`)
	}
	t.PathChunkIDs = *in.PathChunkIDs
	t.Steps = make([]TraceStep, len(*in.Steps))
	for i := range *in.Steps {
		step, err := (*in.Steps)[i].step()
		if err != nil {
			return nil, fmt.Errorf("trace: steps[%d]: %w", i, err)
		}
		t.Steps[i] = step
	}
	if err := t.check(); err != nil {
		return nil, err
	}
	return &t, nil
}

// stepOnDisk is a step whose numbers may be absent or null.
type stepOnDisk struct {
	TraceStep
	CumulativeScore          *float64 `json:"cumulative_score"`
	EmissionEntropy          *float64 `json:"emission_entropy"`
	GraphDistance            *float64 `json:"graph_distance"`
	NormalizedEmissionMargin *float64 `json:"normalized_emission_margin"`
	NormalizedEmissionScore  *float64 `json:"normalized_emission_score"`
	RawEmissionScore         *float64 `json:"raw_emission_score"`
	TurnIndex                *int     `json:"turn_index"`
	WeightedEmissionScore    *float64 `json:"weighted_emission_score"`
	WeightedTransitionCost   *float64 `json:"weighted_transition_cost"`
}

// step returns the step, or which number it lacks. A gap needs its turn and
// its cumulative score only; what else it has is dropped.
func (d *stepOnDisk) step() (TraceStep, error) {
	s := d.TraceStep
	if d.TurnIndex == nil {
		return s, errors.New("turn_index is missing")
	}
	s.TurnIndex = *d.TurnIndex
	if d.Gap != "" {
		s = TraceStep{Gap: s.Gap, Break: s.Break, ChunkID: s.ChunkID, Notes: s.Notes, Query: s.Query, TurnIndex: s.TurnIndex}
	}
	for _, field := range []struct {
		name  string
		value *float64
		to    *float64
		gap   bool // whether a gap has it
	}{
		{"cumulative_score", d.CumulativeScore, &s.CumulativeScore, true},
		{"emission_entropy", d.EmissionEntropy, &s.EmissionEntropy, false},
		{"graph_distance", d.GraphDistance, &s.GraphDistance, false},
		{"normalized_emission_margin", d.NormalizedEmissionMargin, &s.NormalizedEmissionMargin, false},
		{"normalized_emission_score", d.NormalizedEmissionScore, &s.NormalizedEmissionScore, false},
		{"raw_emission_score", d.RawEmissionScore, &s.RawEmissionScore, false},
		{"weighted_emission_score", d.WeightedEmissionScore, &s.WeightedEmissionScore, false},
		{"weighted_transition_cost", d.WeightedTransitionCost, &s.WeightedTransitionCost, false},
	} {
		if d.Gap != "" && !field.gap {
			continue
		}
		if field.value == nil {
			return s, fmt.Errorf("%s is missing", field.name)
		}
		*field.to = *field.value
	}
	return s, nil
}

// plainJSONError says in the words of the document what encoding/json says in
// those of Go types.
func plainJSONError(err error) error {
	if errors.Is(err, io.EOF) {
		return errors.New("the input is empty; give a trace in JSON")
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the JSON ends in the middle")
	}
	var typeErr *json.UnmarshalTypeError
	if errors.As(err, &typeErr) {
		if typeErr.Field == "" {
			return fmt.Errorf("a trace is a JSON object, not a JSON %s", typeErr.Value)
		}
		return fmt.Errorf("%s cannot be a JSON %s (byte %d)", typeErr.Field, typeErr.Value, typeErr.Offset)
	}
	var syntaxErr *json.SyntaxError
	if errors.As(err, &syntaxErr) {
		return fmt.Errorf("not valid JSON at byte %d: %w", syntaxErr.Offset, err)
	}
	return err
}

// checkAtEnd refuses anything but white space after the decoded value.
func checkAtEnd(dec *json.Decoder) error {
	end := dec.InputOffset()
	_, err := dec.Token()
	if errors.Is(err, io.EOF) {
		return nil
	}
	var syntaxErr *json.SyntaxError
	if err == nil || errors.As(err, &syntaxErr) {
		return fmt.Errorf("trace: there is more after the trace, which ends at byte %d; give one trace", end)
	}
	return fmt.Errorf("trace: %w", err)
}

// checkSchema accepts no schema, TraceSchema and its minor versions.
func checkSchema(schema string) error {
	if schema == "" {
		return nil
	}
	name, version, _ := strings.Cut(schema, "/")
	wantName, wantVersion, _ := strings.Cut(TraceSchema, "/")
	major, _, _ := strings.Cut(version, ".")
	got, err := strconv.Atoi(major)
	if name != wantName || err != nil || got < 1 {
		return fmt.Errorf("trace: schema %q is not a trace schema; this version reads %s", schema, TraceSchema)
	}
	if strconv.Itoa(got) != wantVersion {
		return fmt.Errorf("trace: schema %q is newer than %s; read it with a newer version", schema, TraceSchema)
	}
	return nil
}

// check reports the first fault in how the parts of the trace fit together.
func (t *Trace) check() error {
	if len(t.Steps) != len(t.PathChunkIDs) {
		return fmt.Errorf("trace: %d steps but %d path_chunk_ids; a trace has one of each for every turn",
			len(t.Steps), len(t.PathChunkIDs))
	}
	for i := range t.Steps {
		if err := t.Steps[i].check(i, t.PathChunkIDs[i]); err != nil {
			return err
		}
	}
	turns := len(t.Steps)
	for i, turn := range t.RevisedPriorIndices {
		if turn < 0 || turn >= turns-1 {
			return fmt.Errorf("trace: revised_prior_indices has turn %d, which is not before the last of %d turns", turn, turns)
		}
		if i > 0 && turn <= t.RevisedPriorIndices[i-1] {
			return fmt.Errorf("trace: revised_prior_indices has turn %d after turn %d; it must ascend",
				turn, t.RevisedPriorIndices[i-1])
		}
	}
	if c := t.CommittedThroughIndex; c != nil && (*c < 0 || *c >= turns) {
		return fmt.Errorf("trace: committed_through_index is %d, which is not one of %d turns", *c, turns)
	}
	if l := t.FixedLag; l != nil && *l < 0 {
		return fmt.Errorf("trace: fixed_lag is %d; it must be 0 or more, or null in full mode", *l)
	}
	return nil
}

// check reports the first fault of the step at position turn, whose chunk in
// the path is pathChunk.
func (s *TraceStep) check(turn int, pathChunk string) error {
	if s.TurnIndex != turn {
		return fmt.Errorf("trace: steps[%d] has turn_index %d; steps must be in order of turns, from 0", turn, s.TurnIndex)
	}
	if s.ChunkID != pathChunk {
		return fmt.Errorf("trace: turn %d has chunk_id %q in its step but %q in path_chunk_ids", turn, s.ChunkID, pathChunk)
	}
	if s.ChunkID == "" && s.Gap == "" {
		return fmt.Errorf(`trace: turn %d has no chunk and no reason in "gap": %w`, turn, ErrEmptyChunkID)
	}
	if s.ChunkID != "" && s.Gap != "" {
		return fmt.Errorf("trace: turn %d is a gap (%q) but has chunk_id %q", turn, s.Gap, s.ChunkID)
	}
	seen := make(map[string]bool, len(s.Candidates))
	for i := range s.Candidates {
		id := s.Candidates[i].ChunkID
		if id == "" {
			return fmt.Errorf("trace: turn %d, candidates[%d]: %w", turn, i, ErrEmptyChunkID)
		}
		if seen[id] {
			return fmt.Errorf("trace: turn %d, candidates[%d]: %w %q", turn, i, ErrDuplicateCandidate, id)
		}
		seen[id] = true
	}
	return nil
}
