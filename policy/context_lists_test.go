package policy

import (
	"errors"
	"strings"
	"testing"
)

// TestContextLists: fused as the retriever fuses them, the lists give the
// candidates of its turn.
func TestContextLists(t *testing.T) {
	w := newWorld()
	p := newPolicy(func(p *Policy) {
		p.Arms.Stage, p.Arms.Answer.Enabled = StageActive, true
		p.Arms.Raw.Weight = 0.5
	})
	replies := []string{"", "It lasts one hour, like a lease.", "By a refresh call."}
	r := mustNew(t, p, w.parts(t))
	var past []PastTurn
	for i, text := range []string{talk[0], talk[1], "revoke"} {
		past = append(past, PastTurn{Query: text, Answer: replies[i]})
		a, err := r.Ask(t.Context(), Query{Text: text, Answer: replies[i]})
		if err != nil {
			t.Fatal(err)
		}
		lists, err := ContextLists(t.Context(), p, w.parts(t), past)
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			if len(lists[ArmAnswer]) != 0 || len(lists[ArmRaw]) == 0 {
				t.Fatalf("first turn: %v", lists)
			}
			continue
		}
		total := p.Arms.Raw.Weight + p.Arms.History.Weight + p.Arms.Answer.Weight
		fusion := p.Fusion
		fusion.Arms = map[string]FusionArm{}
		var arms []ArmList
		for name, arm := range map[string]Arm{ArmRaw: p.Arms.Raw, ArmHistory: p.Arms.History, ArmAnswer: p.Arms.Answer} {
			fusion.Arms[name] = FusionArm{Weight: Emission(0, arm.Weight/total, 1)}
			arms = append(arms, ArmList{name, lists[name]})
		}
		want, err := fusion.Fuse(arms, p.Decode.CandidateLimit)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]float64{}
		for _, c := range a.Ranking {
			got[c.ChunkID] = c.Score
		}
		if len(got) != len(want) {
			t.Fatalf("turn %d: %d candidates, want %d", i, len(got), len(want))
		}
		for _, c := range want {
			if got[c.ChunkID] != c.Score {
				t.Errorf("turn %d: %s has %v, want %v", i, c.ChunkID, got[c.ChunkID], c.Score)
			}
		}
	}
	if _, err := ContextLists(t.Context(), p, w.parts(t), nil); err == nil {
		t.Error("no turns are accepted")
	}
	parts := w.parts(t)
	parts.Arms = []FusedArm{{ArmLexical, failingReply{lexicalArm{w}, errors.New("down")}}}
	_, err := ContextLists(t.Context(), p, parts, []PastTurn{{Query: "renew"}, {Query: "renew", Answer: "trouble"}})
	if err == nil || !strings.Contains(err.Error(), "arm answer") {
		t.Errorf("a failing arm: %v", err)
	}
}
