package policy

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mapmatched/mmplug/mapmatched"
)

// world is a small corpus in memory: a store of words and vectors, and a graph.
type world struct {
	chunks []mapmatched.Chunk
	extra  map[string]map[string]any // further metadata
	edges  []mapmatched.Edge
}

// newWorld has three documents about tokens, keys and leases of which each has
// a page on renewal that only its title tells apart.
func newWorld() *world {
	w := &world{extra: map[string]map[string]any{}}
	for _, d := range []struct {
		document string
		texts    []string
	}{
		{"token", []string{"an access token proves identity and lasts one hour", "renew token before expiry with a refresh call", "revoke token when it leaks"}},
		{"key", []string{"an encryption key protects stored data", "renew key once a year with a rotation call", "destroy key when data is gone"}},
		{"lease", []string{"a lease limits the life of a password", "renew lease before expiry with a renewal call", "revoke lease when the job ends"}},
		{"moon", []string{"the moon pulls the sea", "tides rise twice a day"}},
	} {
		for i, text := range d.texts {
			id := fmt.Sprintf("%s/%d", d.document, i)
			w.chunks = append(w.chunks, mapmatched.Chunk{ID: id, Document: d.document, Title: d.document, Section: d.document, Ordinal: i, Text: text})
			if i > 0 {
				w.edges = append(w.edges, mapmatched.Edge{From: fmt.Sprintf("%s/%d", d.document, i-1), To: id, Weight: 1, Type: mapmatched.EdgeNext})
			}
		}
	}
	w.edges = append(w.edges, mapmatched.Edge{From: "token/0", To: "lease/0", Weight: 2, Type: mapmatched.EdgeLink})
	return w
}

// dimension of the vectors of a world.
const dimension = 16

// letters counts the letters of a text in buckets.
func letters(text string) []float32 {
	v := make([]float32, dimension)
	for _, r := range text {
		v[int(r)%dimension]++
	}
	return v
}

func (w *world) find(score func(c mapmatched.Chunk) float64, limit int) []mapmatched.Candidate {
	var out []mapmatched.Candidate
	for _, c := range w.chunks {
		if s := score(c); s > 0 {
			metadata := map[string]any{MetadataDocument: c.Document, MetadataOrdinal: c.Ordinal, "title": c.Title}
			for key, value := range w.extra[c.ID] {
				metadata[key] = value
			}
			out = append(out, mapmatched.Candidate{ChunkID: c.ID, Score: s, Text: c.Text, Metadata: metadata})
		}
	}
	slices.SortStableFunc(out, func(a, b mapmatched.Candidate) int { return cmp.Compare(b.Score, a.Score) })
	return out[:min(len(out), limit)]
}

// lexicalArm searches words, each counting 1 over the length of the chunk.
type lexicalArm struct{ *world }

func (l lexicalArm) SearchTerms(ctx context.Context, terms []WeightedTerm, limit int) ([]mapmatched.Candidate, error) {
	return l.find(func(c mapmatched.Chunk) float64 {
		score := 0.0
		has := plainTerms(c.Title + " " + c.Text)
		for _, term := range terms {
			for _, word := range has {
				if word == term.Term {
					score += term.Weight / float64(len(has))
				}
			}
		}
		return score
	}, limit), ctx.Err()
}

func (l lexicalArm) Candidates(ctx context.Context, q mapmatched.Query, limit int) ([]mapmatched.Candidate, error) {
	return l.SearchTerms(ctx, countTerms(plainTerms(q.Text), 1), limit)
}

// denseArm searches vectors.
type denseArm struct{ *world }

func (d denseArm) Candidates(ctx context.Context, q mapmatched.Query, limit int) ([]mapmatched.Candidate, error) {
	v := q.Vector
	if v == nil {
		v = letters(q.Text)
	}
	var err error
	found := d.find(func(c mapmatched.Chunk) float64 {
		cosine, cerr := cosineOf(v, letters(c.Text))
		if cerr != nil {
			err = cerr
		}
		return cosine
	}, limit)
	return found, cmp.Or(err, ctx.Err())
}

func (w *world) Chunks(ctx context.Context, ids []string) ([]mapmatched.Chunk, error) {
	var out []mapmatched.Chunk
	for _, id := range ids {
		for _, c := range w.chunks {
			if c.ID == id {
				out = append(out, c)
			}
		}
	}
	return out, ctx.Err()
}

func (w *world) Vectors(ctx context.Context, ids []string) ([][]float32, error) {
	chunks, err := w.Chunks(ctx, ids)
	out := make([][]float32, len(ids))
	for i, c := range chunks {
		out[i] = letters(c.Text)
	}
	return out, err
}

// parts are those of a world with its lexical arm.
func (w *world) parts(t testing.TB) Parts {
	t.Helper()
	graph, err := mapmatched.NewGraph(w.edges, nil)
	if err != nil {
		t.Fatal(err)
	}
	edges, err := NewEdgeList(graph.Edges(t.Context()), false)
	if err != nil {
		t.Fatal(err)
	}
	return Parts{
		Arms: []FusedArm{{ArmLexical, lexicalArm{w}}}, Graph: graph, Edges: edges, Chunks: w, Vectors: w, Corpus: "world", Session: "talk",
	}
}

// talk is a conversation whose follow-ups need what was said before.
var talk = []string{
	"how long does an access token last", "how do i renew it", "nothing", "revoke", "what limits the life of a password", "renew", "tides and the moon", "renew",
}

func newPolicy(change func(p *Policy)) *Policy {
	p := Default()
	p.Name = "test"
	if change != nil {
		change(p)
	}
	return p
}

func mustNew(t testing.TB, p *Policy, parts Parts) *Retriever {
	t.Helper()
	r, err := New(t.Context(), p, parts)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func mustAsk(t testing.TB, r *Retriever, text string) *Answer {
	t.Helper()
	a, err := r.Ask(t.Context(), Query{Text: text, Vector: letters(text)})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// traceText is the detailed trace as JSON.
func traceText(t testing.TB, s *mapmatched.Session) string {
	t.Helper()
	return asJSON(t, s.DetailedTrace())
}

// notes are the notes of the last turn.
func notes(r *Retriever) map[string]json.RawMessage {
	steps := r.Session().Trace().Steps
	return steps[len(steps)-1].Notes
}

func openLog(t testing.TB) (*ShadowLog, func() []ShadowRecord) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "shadow.jsonl")
	log, err := OpenShadowLog(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	return log, func() []ShadowRecord {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var records []ShadowRecord
		skipped, err := ReadShadowLog(bytes.NewReader(data), func(r ShadowRecord) error {
			records = append(records, r)
			return nil
		})
		if err != nil || skipped > 0 {
			t.Fatalf("%d lines are no records (%v)", skipped, err)
		}
		return records
	}
}

// ofPart keeps the records of a part.
func ofPart(records []ShadowRecord, part string) []ShadowRecord {
	return slices.DeleteFunc(slices.Clone(records), func(r ShadowRecord) bool { return r.Part != part })
}

// allActive has every stage active, and moves.
func allActive(p *Policy) {
	p.Arms.Stage, p.Arms.Gate.Stage = StageActive, StageActive
	p.Arms.Gate.Bias, p.Arms.Gate.Referring, p.Arms.Gate.ScaleTransition = 0.5, 4, true
	p.Arms.Answer.Enabled, p.Arms.Feedback.Enabled = true, true
	p.Transition = moves()
	p.Reply.Stage, p.Proposals.Stage = StageActive, StageActive
	p.Decay.Stage, p.Activation.Stage, p.Clustering.Stage, p.Judgement.Stage = StageActive, StageActive, StageActive, StageShadow
	p.Rerank.Mode = RerankSync
}

// allShadow has every stage in shadow.
func allShadow(p *Policy) {
	allActive(p)
	p.Arms.Stage, p.Arms.Gate.Stage, p.Transition.Stage = StageShadow, StageShadow, StageShadow
	p.Reply.Stage, p.Proposals.Stage = StageShadow, StageShadow
	p.Decay.Stage, p.Activation.Stage, p.Clustering.Stage = StageShadow, StageShadow, StageShadow
	p.Rerank.Mode = RerankOff
}

// full are parts with everything there is.
func (w *world) full(t testing.TB) Parts {
	parts := w.parts(t)
	parts.Reranker = rerankBy(func(c mapmatched.Candidate) float64 { return -c.Score })
	parts.Clusters = map[string]int{}
	for i, c := range w.chunks {
		parts.Clusters[c.ID] = i / 3
	}
	parts.IDF = func(term string) (float64, bool) { return math.Log(float64(1 + len(term))), len(term) > 2 }
	return parts
}

// rerankBy is a reranker that scores each candidate alone.
type rerankBy func(c mapmatched.Candidate) float64

func (f rerankBy) Rerank(_ context.Context, _ mapmatched.Query, c []mapmatched.Candidate) ([]mapmatched.Scored, error) {
	out := make([]mapmatched.Scored, len(c))
	for i := range c {
		out[i] = mapmatched.Scored{ChunkID: c[i].ChunkID, Score: f(c[i])}
	}
	return out, nil
}

func joined(ids []string) string { return strings.Join(ids, " ") }
