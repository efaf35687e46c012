package policy

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/mapmatched/mmplug/mapmatched"
)

// scoringArm is a lexical arm that scores chunks it is given.
type scoringArm struct {
	lexicalArm
	asked *[][]string
}

func (s scoringArm) ScoreChunks(ctx context.Context, q mapmatched.Query, ids []string) ([]mapmatched.Scored, error) {
	*s.asked = append(*s.asked, slices.Clone(ids))
	var out []mapmatched.Scored
	all, err := s.Candidates(ctx, q, len(s.chunks))
	for _, id := range ids {
		at := slices.IndexFunc(all, func(c mapmatched.Candidate) bool { return c.ChunkID == id })
		if at < 0 {
			out = append(out, mapmatched.Scored{ChunkID: id})
			continue
		}
		out = append(out, mapmatched.Scored{ChunkID: id, Score: all[at].Score})
	}
	return out, err
}

func proposing(p *Policy) {
	p.Proposals.Stage = StageActive
	p.Proposals.Survivors, p.Proposals.Radius = 1, 1
}

// proposedIn lists the candidates of an answer that the graph proposed.
func proposedIn(a *Answer) []string {
	var ids []string
	for _, c := range a.Ranking {
		if c.Parts[PartProposed] == 1 {
			ids = append(ids, c.ChunkID)
		}
	}
	slices.Sort(ids)
	return ids
}

// TestProposalsOfThePlainSearch: what the turn finds comes first as it is; then
// the survivor and its neighbours that it does not find, scored by the provider.
func TestProposalsOfThePlainSearch(t *testing.T) {
	w := newWorld()
	var asked [][]string
	parts := w.parts(t)
	parts.Arms = []FusedArm{{ArmLexical, scoringArm{lexicalArm{w}, &asked}}}
	r := mustNew(t, newPolicy(proposing), parts)
	first := mustAsk(t, r, "destroy key when data is gone")
	if first.ChunkID != "key/2" || len(proposedIn(first)) != 0 {
		t.Fatalf("%s, proposed %v", first.ChunkID, proposedIn(first))
	}
	a := mustAsk(t, r, "moon tides")
	if got := joined(proposedIn(a)); got != "key/1 key/2" {
		t.Errorf("proposed %s", got)
	}
	if len(asked) != 1 || joined(asked[0]) != "key/2 key/1" {
		t.Errorf("the provider was asked for the scores of %v", asked)
	}
	for _, c := range a.Ranking {
		if c.Parts[PartProposed] == 1 && (c.Text == "" || c.Metadata["document"] != "key" || c.Score != 0) {
			t.Errorf("proposal %+v", c.Candidate)
		}
	}
}

// TestProposalsReachWhatNoWordFinds: the answer to the follow-up is the next
// chunk, of which it has no word.
func TestProposalsReachWhatNoWordFinds(t *testing.T) {
	w := newWorld()
	ask := func(change func(p *Policy)) *Answer {
		r := mustNew(t, newPolicy(func(p *Policy) {
			p.Arms.Stage = StageActive
			p.Transition = moves()
			p.Transition.P = map[string]float64{"next": 0.7, "stay": 0.1, "jump": 0.2}
			p.Transition.Q = map[string]float64{"next": 0.1, "stay": 0.1, "jump": 0.8}
			p.Decode.TransitionWeight = 2
			change(p)
		}), w.parts(t))
		mustAsk(t, r, "pulls the sea")
		return mustAsk(t, r, "and then")
	}
	if a := ask(func(*Policy) {}); slices.ContainsFunc(a.Ranking, func(c mapmatched.Ranked) bool { return c.ChunkID == "moon/1" }) {
		t.Fatalf("found without proposals: %v", a.Ranking)
	}
	a := ask(func(p *Policy) { p.Proposals.Stage = StageActive })
	if a.ChunkID != "moon/1" || a.Decoded().Parts[PartProposed] != 1 || a.Decoded().Score != 0 || a.Decoded().Text != "tides rise twice a day" {
		t.Fatalf("%s: %v", a.ChunkID, a.Ranking)
	}
}

// TestProposalsKeepScores: a chunk that was found below the limit is proposed
// with the score it was found with, text and parts included.
func TestProposalsKeepScores(t *testing.T) {
	w := newWorld()
	change := func(limit int) func(p *Policy) {
		return func(p *Policy) {
			proposing(p)
			p.Arms.Stage = StageActive
			p.Decode.CandidateLimit = limit
			p.Proposals.Survivors = 10
			p.Proposals.Radius = 4
		}
	}
	wide, narrow := mustNew(t, newPolicy(change(20)), w.parts(t)), mustNew(t, newPolicy(change(2)), w.parts(t))
	for _, text := range talk[:2] {
		a, b := mustAsk(t, wide, text), mustAsk(t, narrow, text)
		for _, c := range b.Ranking {
			at := slices.IndexFunc(a.Ranking, func(x mapmatched.Ranked) bool { return x.ChunkID == c.ChunkID })
			if at < 0 {
				continue
			}
			if same := a.Ranking[at]; same.Score != c.Score || same.Text != c.Text {
				t.Errorf("%q: %s has %v, with a wide limit %v", text, c.ChunkID, c.Score, same.Score)
			}
		}
		if turn := narrow.Session().Turns(); turn == 2 && len(b.Ranking) <= 2 {
			t.Errorf("%q: %d candidates: nothing was proposed", text, len(b.Ranking))
		}
	}
}

// TestProposalsAreBounded: by the limit, each once, none of what was found.
func TestProposalsAreBounded(t *testing.T) {
	w := newWorld()
	r := mustNew(t, newPolicy(func(p *Policy) {
		allActive(p)
		p.Rerank.Mode = RerankOff
		p.Decode.CandidateLimit, p.Proposals.Limit, p.Proposals.Radius = 2, 3, 10
	}), w.full(t))
	for i, text := range talk {
		a := mustAsk(t, r, text)
		seen := map[string]bool{}
		for _, c := range a.Ranking {
			if seen[c.ChunkID] {
				t.Errorf("turn %d has %s twice", i, c.ChunkID)
			}
			seen[c.ChunkID] = true
		}
		if n := len(proposedIn(a)); n > 3 || len(a.Ranking)-n > 2 || i == 1 && n != 3 {
			t.Errorf("turn %d: %d candidates, %d proposed", i, len(a.Ranking), n)
		}
	}
}

// TestProposalsWithoutScores: a provider that scores no given chunks proposes
// none, and the turn says so.
func TestProposalsWithoutScores(t *testing.T) {
	w := newWorld()
	r := mustNew(t, newPolicy(proposing), w.parts(t))
	mustAsk(t, r, "destroy key when data is gone")
	a := mustAsk(t, r, "moon tides")
	if len(proposedIn(a)) != 0 || len(a.Degraded) != 1 || !strings.Contains(a.Degraded[0].String(), "does not score chunks") {
		t.Fatalf("%v, %v", proposedIn(a), a.Degraded)
	}
}

// lonelyGraph has no neighbourhoods.
type lonelyGraph struct{ mapmatched.CorpusGraph }

var errBroken = errors.New("the graph is down")

func (lonelyGraph) Neighborhood(context.Context, string, float64) ([]mapmatched.Neighbor, error) {
	return nil, errBroken
}

// TestProposalsOfAFailingGraph: the turn goes on without, and says so; a
// cancelled one fails.
func TestProposalsOfAFailingGraph(t *testing.T) {
	w := newWorld()
	parts := w.parts(t)
	parts.Graph = lonelyGraph{parts.Graph}
	r := mustNew(t, newPolicy(func(p *Policy) { proposing(p); p.Arms.Stage = StageActive; p.Context.Radius = 0 }), parts)
	r.memory.survivors = []string{"key/1"}
	a, err := r.Ask(t.Context(), Query{Text: talk[1]})
	if err != nil || len(proposedIn(a)) != 0 || len(a.Degraded) != 1 || a.Degraded[0].Arm != "proposals" || !errors.Is(a.Degraded[0].Err, errBroken) {
		t.Fatalf("%v, %+v", err, a)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Ask(ctx, Query{Text: talk[1]}); !errors.Is(err, context.Canceled) || r.Session().Turns() != 1 {
		t.Fatalf("%v, %d turns", err, r.Session().Turns())
	}
}
