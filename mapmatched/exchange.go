package mapmatched

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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

// RankedChunk is a chunk with the score of the best path that ends in it. Its
// JSON form is the pair [chunk_id, score], like a candidate's.
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
	}
	return a
}

// ReadProblem reads the exchange form. An option or the graph's maximum
// distance that is left out takes its default. Unknown keys, and anything of
// the wrong shape, are errors that say where.
func ReadProblem(r io.Reader) (*Problem, error) {
	var file struct {
		Graph struct {
			MaximumDistance *float64          `json:"maximum_distance"`
			Directed        bool              `json:"directed"`
			Nodes           []string          `json:"nodes"`
			Edges           []json.RawMessage `json:"edges"`
		} `json:"graph"`
		Options Options             `json:"options"`
		Turns   [][]json.RawMessage `json:"turns"`
	}
	if err := decodeStrict(r, &file); err != nil {
		return nil, fmt.Errorf("decode input: %w", err)
	}
	p := &Problem{Graph: GraphOptions{Nodes: file.Graph.Nodes, Directed: file.Graph.Directed}}
	if m := file.Graph.MaximumDistance; m != nil {
		if p.Graph.MaximumDistance = *m; *m == 0 {
			return nil, fmt.Errorf("decode input: graph.maximum_distance is 0: %w: give a positive number or leave it out for %v", ErrInvalidConfig, DefaultMaximumDistance)
		}
	}
	for i, raw := range file.Graph.Edges {
		var e Edge
		if err := unpack(raw, "[from, to, weight]", &e.From, &e.To, &e.Weight); err != nil {
			return nil, fmt.Errorf("decode input: graph.edges[%d]: %w", i, err)
		}
		p.Edges = append(p.Edges, e)
	}
	cfg, err := file.Options.Config()
	if err != nil {
		return nil, fmt.Errorf("decode input: options: %w", err)
	}
	p.Config = *cfg
	for i, list := range file.Turns {
		turn := make([]Candidate, len(list))
		for j, raw := range list {
			if err := unpack(raw, "[chunk_id, score]", &turn[j].ChunkID, &turn[j].Score); err != nil {
				return nil, fmt.Errorf("decode input: turns[%d][%d]: %w", i, j, err)
			}
		}
		p.Turns = append(p.Turns, turn)
	}
	return p, nil
}

// Decode plays the conversation and returns the answer after each turn.
func (p *Problem) Decode(ctx context.Context) ([]*Answer, error) {
	graph, err := NewGraph(p.Edges, &p.Graph)
	if err != nil {
		return nil, err
	}
	s, err := NewSession(nil, graph, &p.Config)
	if err != nil {
		return nil, err
	}
	answers := make([]*Answer, 0, len(p.Turns))
	for _, turn := range p.Turns {
		r, err := s.Observe(ctx, "", turn)
		if err != nil {
			return nil, err
		}
		answers = append(answers, NewAnswer(s, r))
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
		if err := json.Unmarshal(list[i], v); err != nil || bytes.Equal(list[i], []byte("null")) {
			return fmt.Errorf("%s is not %s", clip(raw), shape)
		}
	}
	return nil
}

// clip shortens JSON for a message.
func clip(raw []byte) string {
	const most = 80
	if len(raw) > most {
		return string(bytes.ToValidUTF8(raw[:most], nil)) + "…"
	}
	return string(raw)
}

// decodeStrict reads one JSON value and refuses unknown keys and what follows.
func decodeStrict(r io.Reader, v any) error {
	decoder := json.NewDecoder(r)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(v); err != nil {
		if errors.Is(err, io.EOF) {
			return errors.New("it is empty")
		}
		return err
	}
	if _, err := decoder.Token(); err != io.EOF {
		return errors.New("something follows the JSON value")
	}
	return nil
}
