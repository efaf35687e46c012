package plugins

import (
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/plugins/internal/wire"
)

// This file turns the types of mapmatched into wire types (to…) and back
// (from…). Texts that are not UTF-8 are repaired, IDs that are not are errors.

func toInt32(n int) int32 { return int32(max(math.MinInt32, min(n, math.MaxInt32))) }

func toText(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

func toTexts(texts []string) []string {
	for i, s := range texts {
		if !utf8.ValidString(s) {
			valid := append([]string(nil), texts...)
			for ; i < len(valid); i++ {
				valid[i] = toText(valid[i])
			}
			return valid
		}
	}
	return texts
}

// checkIDs expects UTF-8, which is all that the wire carries.
func checkIDs(ids ...string) error {
	for _, id := range ids {
		if !utf8.ValidString(id) {
			return &mapmatched.Error{Op: "convert", Adapter: adapterName(""), Kind: mapmatched.KindInvalid,
				Err: fmt.Errorf("chunk ID %q is not UTF-8, which a plugin cannot be told", id)}
		}
	}
	return nil
}

func toQuery(q mapmatched.Query) (*wire.Query, error) {
	if err := checkIDs(q.Path...); err != nil {
		return nil, err
	}
	return &wire.Query{Text: toText(q.Text), Vector: q.Vector, Turn: toInt32(q.Turn), History: toTexts(q.History), Path: q.Path}, nil
}

func fromQuery(q *wire.Query) mapmatched.Query {
	return mapmatched.Query{Text: q.GetText(), Vector: q.GetVector(), Turn: int(q.GetTurn()), History: q.GetHistory(), Path: q.GetPath()}
}

func toCandidates(candidates []mapmatched.Candidate) ([]*wire.Candidate, error) {
	out := make([]*wire.Candidate, len(candidates))
	all := make([]wire.Candidate, len(candidates))
	for i, c := range candidates {
		if err := checkIDs(c.ChunkID); err != nil {
			return nil, err
		}
		metadata, err := encodeMetadata(c.Metadata)
		if err != nil {
			return nil, fmt.Errorf("candidate %d (chunk %q): %w", i, c.ChunkID, err)
		}
		w := &all[i]
		w.ChunkId, w.Score, w.Text, w.Metadata = c.ChunkID, c.Score, toText(c.Text), metadata
		for name, part := range c.Parts {
			if w.Parts == nil {
				w.Parts = make(map[string]float64, len(c.Parts))
			}
			w.Parts[toText(name)] = part
		}
		out[i] = w
	}
	return out, nil
}

func fromCandidates(candidates []*wire.Candidate) ([]mapmatched.Candidate, error) {
	out := make([]mapmatched.Candidate, len(candidates))
	for i, c := range candidates {
		metadata, err := decodeMetadata(c.GetMetadata())
		if err == nil {
			err = checkScored(c.GetChunkId(), c.GetScore())
		}
		if err != nil {
			return nil, fmt.Errorf("candidate %d (chunk %q): %w", i, c.GetChunkId(), err)
		}
		out[i] = mapmatched.Candidate{ChunkID: c.GetChunkId(), Score: c.GetScore(), Text: c.GetText(), Metadata: metadata, Parts: c.GetParts()}
	}
	return out, nil
}

// checkScored expects an ID and a finite score.
func checkScored(id string, score float64) error {
	switch {
	case id == "":
		return mapmatched.ErrEmptyChunkID
	case math.IsNaN(score) || math.IsInf(score, 0):
		return fmt.Errorf("score %v: %w", score, mapmatched.ErrNonFinite)
	}
	return nil
}

func toScored(scores []mapmatched.Scored) ([]*wire.Scored, error) {
	out := make([]*wire.Scored, len(scores))
	for i, s := range scores {
		if err := checkIDs(s.ChunkID); err != nil {
			return nil, err
		}
		out[i] = &wire.Scored{ChunkId: s.ChunkID, Score: s.Score}
	}
	return out, nil
}

func fromScored(scores []*wire.Scored) ([]mapmatched.Scored, error) {
	out := make([]mapmatched.Scored, len(scores))
	for i, s := range scores {
		if err := checkScored(s.GetChunkId(), s.GetScore()); err != nil {
			return nil, fmt.Errorf("score %d (chunk %q): %w", i, s.GetChunkId(), err)
		}
		out[i] = mapmatched.Scored{ChunkID: s.GetChunkId(), Score: s.GetScore()}
	}
	return out, nil
}

func toChunks(chunks []mapmatched.Chunk) ([]*wire.Chunk, error) {
	out := make([]*wire.Chunk, len(chunks))
	for i, c := range chunks {
		if err := checkIDs(c.ID, c.Document); err != nil {
			return nil, err
		}
		out[i] = &wire.Chunk{Id: c.ID, Document: c.Document, Title: toText(c.Title), Section: toText(c.Section),
			Ordinal: int64(c.Ordinal), Start: int64(c.Start), End: int64(c.End), Text: toText(c.Text)}
	}
	return out, nil
}

func fromChunks(chunks []*wire.Chunk) ([]mapmatched.Chunk, error) {
	out := make([]mapmatched.Chunk, len(chunks))
	for i, c := range chunks {
		if c.GetId() == "" {
			return nil, fmt.Errorf("chunk %d: %w", i, mapmatched.ErrEmptyChunkID)
		}
		out[i] = mapmatched.Chunk{ID: c.GetId(), Document: c.GetDocument(), Title: c.GetTitle(), Section: c.GetSection(),
			Ordinal: int(c.GetOrdinal()), Start: int(c.GetStart()), End: int(c.GetEnd()), Text: c.GetText()}
	}
	return out, nil
}

func toVectors(vectors [][]float32) []*wire.Vector {
	out := make([]*wire.Vector, len(vectors))
	for i, v := range vectors {
		out[i] = &wire.Vector{Values: v}
	}
	return out
}

// fromVectors expects one vector for each of want. Those that have values have
// one dimension and are finite.
func fromVectors(vectors []*wire.Vector, want int) ([][]float32, error) {
	if len(vectors) != want {
		return nil, fmt.Errorf("%d vectors came back, not %d", len(vectors), want)
	}
	out := make([][]float32, want)
	dimension := 0
	for i, v := range vectors {
		values := v.GetValues()
		if len(values) == 0 {
			continue
		}
		if dimension == 0 {
			dimension = len(values)
		}
		if len(values) != dimension {
			return nil, fmt.Errorf("vector %d has dimension %d, those before it %d", i, len(values), dimension)
		}
		for _, x := range values {
			if x-x != 0 {
				return nil, fmt.Errorf("vector %d has the component %v: %w", i, x, mapmatched.ErrNonFinite)
			}
		}
		out[i] = values
	}
	return out, nil
}

func toEdges(edges []mapmatched.Edge) ([]*wire.Edge, error) {
	out := make([]*wire.Edge, len(edges))
	for i, e := range edges {
		if err := checkIDs(e.From, e.To); err != nil {
			return nil, err
		}
		out[i] = &wire.Edge{From: e.From, To: e.To, Weight: e.Weight, Type: toText(string(e.Type))}
	}
	return out, nil
}

func fromEdge(e *wire.Edge) mapmatched.Edge {
	return mapmatched.Edge{From: e.GetFrom(), To: e.GetTo(), Weight: e.GetWeight(), Type: mapmatched.EdgeType(e.GetType())}
}

func toTrellis(t *mapmatched.Trellis) (*wire.DecodeRequest, error) {
	out := &wire.DecodeRequest{TransitionWeight: t.TransitionWeight, Columns: make([]*wire.Column, len(t.Columns))}
	for i := range t.Columns {
		c := &t.Columns[i]
		if err := checkIDs(c.ChunkIDs...); err != nil {
			return nil, err
		}
		from := make([]int32, len(c.From))
		for k, y := range c.From {
			from[k] = toInt32(y)
		}
		out.Columns[i] = &wire.Column{ChunkIds: c.ChunkIDs, Raw: c.Raw, Normalized: c.Normalized, Emission: c.Emission,
			From: from, Distance: c.Distance, HasDistance: c.Distance != nil, Break: c.Break}
	}
	return out, nil
}

// fromTrellis reads a trellis. One with values or predecessors out of place is
// an error, so that no decoder reads beyond a slice.
func fromTrellis(r *wire.DecodeRequest) (*mapmatched.Trellis, error) {
	t := &mapmatched.Trellis{TransitionWeight: r.GetTransitionWeight(), Columns: make([]mapmatched.Column, len(r.GetColumns()))}
	before := 0 // candidates of the last turn that has any
	for i, c := range r.GetColumns() {
		n := len(c.GetChunkIds())
		col := &t.Columns[i]
		*col = mapmatched.Column{ChunkIDs: c.GetChunkIds(), Raw: c.GetRaw(), Normalized: c.GetNormalized(), Emission: c.GetEmission(), Break: c.GetBreak()}
		for _, values := range [][]float64{col.Raw, col.Normalized, col.Emission} {
			if len(values) != n {
				return nil, fmt.Errorf("turn %d has %d candidates but %d values", i, n, len(values))
			}
		}
		if n == 0 {
			continue
		}
		if (before == 0) != (len(c.GetFrom()) == 0) {
			return nil, fmt.Errorf("turn %d lists %d predecessors of %d", i, len(c.GetFrom()), before)
		}
		for k, y := range c.GetFrom() {
			if y < 0 || int(y) >= before || k > 0 && int(y) <= col.From[k-1] {
				return nil, fmt.Errorf("turn %d: predecessors %v are not ascending below %d", i, c.GetFrom(), before)
			}
			col.From = append(col.From, int(y))
		}
		if c.GetHasDistance() {
			if len(c.GetDistance()) != len(col.From)*n {
				return nil, fmt.Errorf("turn %d has %d distances, not %d×%d", i, len(c.GetDistance()), len(col.From), n)
			}
			if col.Distance = c.GetDistance(); col.Distance == nil {
				col.Distance = []float64{}
			}
		}
		before = n
	}
	return t, nil
}

func toDecoding(d mapmatched.Decoding) *wire.DecodeResponse {
	path := make([]int32, len(d.Path))
	for i, x := range d.Path {
		path[i] = toInt32(x)
	}
	return &wire.DecodeResponse{Path: path, Scores: d.Scores}
}

// fromDecoding reads a decoding and expects that it fits the trellis.
func fromDecoding(r *wire.DecodeResponse, t *mapmatched.Trellis) (mapmatched.Decoding, error) {
	if len(r.GetPath()) != len(t.Columns) {
		return mapmatched.Decoding{}, fmt.Errorf("the path has %d turns, the trellis %d", len(r.GetPath()), len(t.Columns))
	}
	d := mapmatched.Decoding{Path: make([]int, len(t.Columns)), Scores: r.GetScores()}
	last := 0
	for i, x := range r.GetPath() {
		n := len(t.Columns[i].ChunkIDs)
		if x < -1 || int(x) >= n || (x < 0) != (n == 0) {
			return mapmatched.Decoding{}, fmt.Errorf("the path takes candidate %d of %d at turn %d", x, n, i)
		}
		d.Path[i] = int(x)
		if n > 0 {
			last = n
		}
	}
	if len(d.Scores) != last {
		return mapmatched.Decoding{}, fmt.Errorf("%d path scores for the %d candidates of the last turn", len(d.Scores), last)
	}
	for x, score := range d.Scores {
		if math.IsNaN(score) || math.IsInf(score, 0) {
			return mapmatched.Decoding{}, fmt.Errorf("path score %v of candidate %d: %w", score, x, mapmatched.ErrNonFinite)
		}
	}
	return d, nil
}
