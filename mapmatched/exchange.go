package mapmatched

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"
)

// Problem is a conversation in the exchange form: a graph, options and the
// candidates of every turn. Tests and other implementations use it.
type Problem struct {
	Edges  []Edge
	Graph  GraphOptions
	Config Config
	Turns  [][]Candidate
}

// Answer is what a session says after a turn, in the exchange form.
type Answer struct {
	ChunkID         *string       `json:"chunk_id"`   // null at a gap
	Confidence      float64       `json:"confidence"` // posterior of the chunk
	ContextChunkIDs []string      `json:"context_chunk_ids"`
	Path            AnswerPath    `json:"path"`
	Ranking         []RankedChunk `json:"ranking"`
	Trace           *Trace        `json:"trace"`
}

// AnswerPath is the decoded path after a turn.
type AnswerPath struct {
	ChunkIDs   []*string `json:"chunk_ids"` // null at gaps
	TotalScore float64   `json:"total_score"`
}

// RankedChunk is a chunk with the score it is ranked by: that of the best path
// that ends in it, or its posterior with RankByFilteredPosterior. Its JSON form
// is the pair [chunk_id, score], like a candidate's.
type RankedChunk Scored

// MarshalJSON implements json.Marshaler.
func (r RankedChunk) MarshalJSON() ([]byte, error) {
	return encodeJSON([2]any{r.ChunkID, r.Score})
}

// UnmarshalJSON implements json.Unmarshaler.
func (r *RankedChunk) UnmarshalJSON(raw []byte) error {
	return unpack(raw, "[chunk_id, score]", &r.ChunkID, &r.Score)
}

// NewAnswer gathers the answer of s to the turn that gave r, its latest.
func NewAnswer(s *Session, r *Result) *Answer {
	trace := s.Trace()
	a := &Answer{
		ContextChunkIDs: r.ContextChunkIDs,
		Confidence:      r.Confidence,
		Path:            AnswerPath{make([]*string, len(trace.PathChunkIDs)), r.TotalScore},
		Ranking:         make([]RankedChunk, len(r.Ranking)),
		Trace:           trace,
	}
	if r.ChunkID != "" {
		a.ChunkID = &r.ChunkID
	}
	if a.ContextChunkIDs == nil {
		a.ContextChunkIDs = []string{}
	}
	for i, id := range trace.PathChunkIDs {
		if id != "" {
			a.Path.ChunkIDs[i] = &id
		}
	}
	for i, c := range r.Ranking {
		a.Ranking[i] = RankedChunk{c.ChunkID, c.PathScore}
		if s.rankBy == RankByFilteredPosterior {
			a.Ranking[i].Score = c.Posterior
		}
	}
	return a
}

// ReadProblem reads the exchange form. What is left out or null takes its
// default. Keys are taken to the letter; an unknown one, one given twice, and
// anything of the wrong shape are errors that say where.
func ReadProblem(r io.Reader) (*Problem, error) {
	p, err := readProblem(r)
	if err != nil {
		return nil, fmt.Errorf("decode input: %w", err)
	}
	return p, nil
}

func readProblem(r io.Reader) (*Problem, error) {
	raw, err := readValue(r)
	if err != nil {
		return nil, err
	}
	p := &Problem{}
	var options Options
	err = readObject(raw, []string{"graph", "options", "turns"}, func(key string, value json.RawMessage) error {
		switch key {
		case "graph":
			return p.readGraph(value)
		case "options":
			return options.read(value)
		}
		return p.readTurns(value)
	})
	if err != nil {
		return nil, err
	}
	cfg, err := options.Config()
	if err != nil {
		return nil, fmt.Errorf("options: %w", err)
	}
	p.Config = *cfg
	return p, nil
}

func (p *Problem) readGraph(raw json.RawMessage) error {
	return readObject(raw, []string{"maximum_distance", "directed", "nodes", "edges"}, func(key string, value json.RawMessage) error {
		switch key {
		case "maximum_distance":
			if err := readScalar(value, &p.Graph.MaximumDistance); err != nil {
				return err
			}
			if p.Graph.MaximumDistance == 0 {
				return fmt.Errorf("0 is no distance: %w: give a positive number or leave it out for %v", ErrInvalidConfig, DefaultMaximumDistance)
			}
			return nil
		case "directed":
			return readScalar(value, &p.Graph.Directed)
		case "nodes":
			return readList(value, func(item json.RawMessage) error {
				var id string
				err := readScalar(item, &id)
				p.Graph.Nodes = append(p.Graph.Nodes, id)
				return err
			})
		}
		return readList(value, func(item json.RawMessage) error {
			var e Edge
			err := unpack(item, "[from, to, weight]", &e.From, &e.To, &e.Weight)
			p.Edges = append(p.Edges, e)
			return err
		})
	})
}

func (p *Problem) readTurns(raw json.RawMessage) error {
	return readList(raw, func(list json.RawMessage) error {
		if isNull(list) {
			return errors.New("null is not a list of candidates; write [] for a turn without any")
		}
		turn := []Candidate{}
		err := readList(list, func(item json.RawMessage) error {
			var c Candidate
			err := unpack(item, "[chunk_id, score]", &c.ChunkID, &c.Score)
			turn = append(turn, c)
			return err
		})
		p.Turns = append(p.Turns, turn)
		return err
	})
}

// read fills the options from a JSON object.
func (o *Options) read(raw json.RawMessage) error {
	fields := map[string]reflect.Value{}
	var known []string
	v := reflect.ValueOf(o).Elem()
	for i := range v.NumField() {
		name := jsonName(v.Type().Field(i))
		known = append(known, name)
		fields[name] = v.Field(i)
	}
	return readObject(raw, known, func(key string, value json.RawMessage) error {
		field := reflect.New(fields[key].Type().Elem())
		fields[key].Set(field)
		return readScalar(value, field.Interface())
	})
}

// Play decodes the conversation and returns its session. The function answer,
// when it is not nil, is called after each turn; its error ends the play.
func (p *Problem) Play(ctx context.Context, answer func(*Session, *Result) error) (*Session, error) {
	graph, err := NewGraph(p.Edges, &p.Graph)
	if err != nil {
		return nil, err
	}
	s, err := NewSession(nil, graph, &p.Config)
	if err != nil {
		return nil, err
	}
	for _, turn := range p.Turns {
		r, err := s.Observe(ctx, "", turn)
		if err == nil && answer != nil {
			err = answer(s, r)
		}
		if err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Decode plays the conversation and returns the answer after each turn. Each
// has the whole trace so far, so a long conversation is better played.
func (p *Problem) Decode(ctx context.Context) ([]*Answer, error) {
	answers := make([]*Answer, 0, len(p.Turns))
	_, err := p.Play(ctx, func(s *Session, r *Result) error {
		answers = append(answers, NewAnswer(s, r))
		return nil
	})
	if err != nil {
		return nil, err
	}
	return answers, nil
}

// unpack reads a JSON array of exactly the given values. null is none of them.
func unpack(raw json.RawMessage, shape string, values ...any) error {
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil || len(list) != len(values) {
		return fmt.Errorf("%s is not %s", clip(raw), shape)
	}
	for i, v := range values {
		if err := readScalar(list[i], v); err != nil {
			return fmt.Errorf("%s is not %s: %w", clip(raw), shape, err)
		}
	}
	return nil
}

// readScalar reads a string, a number or a truth value. null is none of them.
func readScalar(raw json.RawMessage, to any) error {
	if err := json.Unmarshal(raw, to); err == nil && !isNull(raw) {
		return nil
	}
	isNumber := raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9'
	what := "a string"
	switch to.(type) {
	case *float64:
		what = "a number"
		if isNumber {
			what = "in the range of a 64-bit number"
		}
	case *int:
		what = "a whole number"
		if isNumber && !bytes.ContainsAny(raw, ".eE") {
			what = "in the range of a 64-bit number"
		}
	case *bool:
		what = "true or false"
	}
	return fmt.Errorf("%s is not %s", clip(raw), what)
}

// readList calls item for each element of a JSON array.
func readList(raw json.RawMessage, item func(element json.RawMessage) error) error {
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil || isNull(raw) {
		return fmt.Errorf("%s is not a list", clip(raw))
	}
	for i, element := range list {
		if err := item(element); err != nil {
			return within(fmt.Sprintf("[%d]", i), err)
		}
	}
	return nil
}

// readObject calls member for each key of a JSON object whose value is not
// null. Only known keys may be there, and each once; unlike encoding/json it
// tells upper from lower case.
func readObject(raw json.RawMessage, known []string, member func(key string, value json.RawMessage) error) error {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	if open, err := decoder.Token(); err != nil || open != json.Delim('{') {
		return fmt.Errorf("%s is not an object with the keys %s", clip(raw), strings.Join(known, ", "))
	}
	seen := make([]string, 0, len(known))
	for decoder.More() {
		token, err := decoder.Token()
		if err != nil {
			return err
		}
		key := fmt.Sprint(token)
		if !slices.Contains(known, key) {
			return fmt.Errorf("unknown key %q; the keys are %s", key, strings.Join(known, ", "))
		}
		if slices.Contains(seen, key) {
			return fmt.Errorf("the key %q is given twice", key)
		}
		seen = append(seen, key)
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			return err
		}
		if isNull(value) {
			continue
		}
		if err := member(key, value); err != nil {
			return within("."+key, err)
		}
	}
	return nil
}

// misplaced is an error with the place in the document that it is about, such
// as "turns[0][1]".
type misplaced struct {
	place string
	err   error
}

func (m *misplaced) Error() string { return strings.TrimPrefix(m.place, ".") + ": " + m.err.Error() }
func (m *misplaced) Unwrap() error { return m.err }

// within adds an outer step to the place of an error.
func within(step string, err error) error {
	if inner, ok := err.(*misplaced); ok { //nolint:errorlint // only what this function returned itself
		return &misplaced{step + inner.place, inner.err}
	}
	return &misplaced{step, err}
}

func isNull(raw json.RawMessage) bool { return bytes.Equal(raw, []byte("null")) }

// clip shortens JSON for a message.
func clip(raw []byte) string {
	const most = 80
	if len(raw) > most {
		return string(bytes.ToValidUTF8(raw[:most], nil)) + "…"
	}
	return string(raw)
}

// readValue reads one JSON value in UTF-8 and refuses what follows it.
func readValue(r io.Reader) (json.RawMessage, error) {
	decoder := json.NewDecoder(r)
	var raw json.RawMessage
	if err := decoder.Decode(&raw); err != nil {
		return nil, jsonFault(err)
	}
	end := decoder.InputOffset()
	var syntax *json.SyntaxError
	if _, err := decoder.Token(); err == nil || errors.As(err, &syntax) {
		return nil, fmt.Errorf("something follows the JSON value, which ends at byte %d", end)
	} else if !errors.Is(err, io.EOF) {
		return nil, err
	}
	// The decoder would replace such bytes, which makes different IDs equal.
	if !utf8.Valid(raw) {
		return nil, errors.New("it is not UTF-8; save it in that encoding")
	}
	return raw, nil
}

// decodeStrict reads one JSON value into v and refuses unknown keys.
func decodeStrict(r io.Reader, v any) error {
	raw, err := readValue(r)
	if err != nil {
		return err
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	return jsonFault(decoder.Decode(v))
}

// jsonFault says in the words of the document what encoding/json says in those
// of Go.
func jsonFault(err error) error {
	var syntax *json.SyntaxError
	var typ *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the JSON ends in the middle")
	case errors.Is(err, io.EOF):
		return errors.New("it is empty")
	case errors.As(err, &syntax):
		return fmt.Errorf("it is not JSON at byte %d: %w", syntax.Offset, err)
	case errors.As(err, &typ) && typ.Field == "":
		return fmt.Errorf("it is a JSON %s, not an object", typ.Value)
	case errors.As(err, &typ):
		return fmt.Errorf("%s cannot be a JSON %s", typ.Field, typ.Value)
	}
	if field, unknown := strings.CutPrefix(err.Error(), "json: unknown field "); unknown {
		return fmt.Errorf("unknown key %s", field)
	}
	return err // of the reader
}
