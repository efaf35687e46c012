package policy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/mapmatched/mmplug/mapmatched"
)

func TestReplyCost(t *testing.T) {
	y := Reply{Version: ReplyV1, Stage: StageActive, Weight: 3}
	for _, c := range []struct{ fit, want float64 }{{0, 3}, {1, 0}, {0.25, 2.25}} {
		if got, err := y.Cost(c.fit); err != nil || got != c.want {
			t.Errorf("fit %v: %v, %v; want %v", c.fit, got, err, c.want)
		}
	}
	for _, fit := range []float64{-0.1, 1.1, math.NaN()} {
		if _, err := y.Cost(fit); err == nil {
			t.Errorf("fit %v is accepted", fit)
		}
	}
}

// TestReplyFits: min–max over the list, all 1 where it has one score.
func TestReplyFits(t *testing.T) {
	list := []mapmatched.Candidate{{ChunkID: "a", Score: 7}, {ChunkID: "b", Score: 4}, {ChunkID: "c", Score: 3}}
	if fit := fits(list); fit["a"] != 1 || fit["b"] != 0.25 || fit["c"] != 0 || fit["d"] != 0 {
		t.Errorf("%v", fit)
	}
	if fit := fits([]mapmatched.Candidate{{ChunkID: "a", Score: 2}, {ChunkID: "b", Score: 2}}); fit["a"] != 1 || fit["b"] != 1 {
		t.Errorf("%v", fit)
	}
}

// replyPolicy decides a turn by where the conversation was.
func replyPolicy(p *Policy) {
	p.Reply.Stage = StageActive
	p.Decode.TransitionWeight = 0.5
}

// TestReplySaysWhereTheTurnWas: "renew" fits four pages alike. After a question
// that fits two documents, the reply says which one it was, and the follow-up
// stays there.
func TestReplySaysWhereTheTurnWas(t *testing.T) {
	w := newWorld()
	for _, c := range []struct{ reply, want string }{
		{"It limits the life of a password.", "lease/1"},
		{"It proves identity for one hour.", "token/1"},
	} {
		r := mustNew(t, newPolicy(replyPolicy), w.parts(t))
		mustAsk(t, r, "life identity")
		a, err := r.Ask(t.Context(), Query{Text: "renew before expiry", Answer: c.reply})
		if err != nil {
			t.Fatal(err)
		}
		if a.ChunkID != c.want {
			t.Errorf("after %q: %s, want %s (ranking %v)", c.reply, a.ChunkID, c.want, a.Ranking)
		}
		if a.Reply == nil || a.Reply.Best != strings.TrimSuffix(c.want, "1")+"0" || a.Reply.Fit != 1 || a.Reply.Cost != 0 {
			t.Errorf("after %q: record %+v", c.reply, a.Reply)
		}
		var noted ReplyRecord
		if err := json.Unmarshal(notes(r)["reply"], &noted); err != nil || noted != *a.Reply {
			t.Errorf("note %s (%v), want %+v", notes(r)["reply"], err, *a.Reply)
		}
	}
}

// TestReplyWithoutEffect: there is none on the first turn, after a gap, without
// words, and with weight 0.
func TestReplyWithoutEffect(t *testing.T) {
	w := newWorld()
	off, on := mustNew(t, newPolicy(func(p *Policy) { p.Decode.TransitionWeight = 0.5 }), w.parts(t)), mustNew(t, newPolicy(replyPolicy), w.parts(t))
	zero := mustNew(t, newPolicy(func(p *Policy) { replyPolicy(p); p.Reply.Weight = 0 }), w.parts(t))
	for i, q := range []Query{
		{Text: "what limits the life of a password", Answer: "An encryption key protects data."}, // first
		{Text: "renew", Answer: "!?"},                            // no words
		{Text: "qwertyuiop"},                                     // a gap
		{Text: "renew", Answer: "I know nothing about that key"}, // to the gap
	} {
		want, err := off.Ask(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		for name, r := range map[string]*Retriever{"active": on, "weight 0": zero} {
			got, err := r.Ask(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			if asJSON(t, got.Ranking) != asJSON(t, want.Ranking) || got.Reply != nil {
				t.Errorf("turn %d, %s: %v (reply %+v), want %v", i, name, got.Ranking, got.Reply, want.Ranking)
			}
		}
	}
}

// failingReply fails on the words of replies.
type failingReply struct {
	lexicalArm
	err error
}

func (f failingReply) SearchTerms(ctx context.Context, terms []WeightedTerm, limit int) ([]mapmatched.Candidate, error) {
	for _, term := range terms {
		if term.Term == "trouble" {
			return nil, f.err
		}
	}
	return f.lexicalArm.SearchTerms(ctx, terms, limit)
}

// TestReplySearchFails: the turn goes on without, and says so.
func TestReplySearchFails(t *testing.T) {
	w := newWorld()
	parts := w.parts(t)
	parts.Arms = []FusedArm{{ArmLexical, failingReply{lexicalArm{w}, errors.New("the store is down")}}}
	r := mustNew(t, newPolicy(replyPolicy), parts)
	mustAsk(t, r, "what limits the life of a password")
	a, err := r.Ask(t.Context(), Query{Text: "renew", Answer: "trouble"})
	if err != nil || a.Reply != nil || len(a.Degraded) != 1 || a.Degraded[0].Arm != "reply" || !strings.Contains(a.Degraded[0].String(), "the store is down") {
		t.Fatalf("%v, %+v", err, a)
	}
}

// TestReplyAndProposalsSaved: a restored conversation goes on bit for bit.
func TestReplyAndProposalsSaved(t *testing.T) {
	w := newWorld()
	p := newPolicy(func(p *Policy) { allActive(p); p.Rerank.Mode = RerankOff })
	replies := []string{"", "It lasts one hour.", "By a refresh call.", "", "Revoke it when it leaks.", "A lease.", "", "Twice a day."}
	var whole *Retriever
	for cut := range talk {
		r := mustNew(t, p, w.full(t))
		for i, text := range talk[:cut] {
			if _, err := r.Ask(t.Context(), Query{Text: text, Answer: replies[i]}); err != nil {
				t.Fatal(err)
			}
		}
		var saved bytes.Buffer
		if err := r.Save(&saved); err != nil {
			t.Fatal(err)
		}
		r, err := Restore(t.Context(), &saved, p, w.full(t))
		if err != nil {
			t.Fatal(err)
		}
		for i, text := range talk[cut:] {
			if _, err := r.Ask(t.Context(), Query{Text: text, Answer: replies[cut+i]}); err != nil {
				t.Fatal(err)
			}
		}
		if cut == 0 {
			whole = r
		} else if traceText(t, r.Session()) != traceText(t, whole.Session()) {
			t.Fatalf("saved after %d turns, the conversation goes on otherwise", cut)
		}
	}
}
