package eval

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mapmatched/mmplug/adapters/embedded/lexical"
	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/policy"
)

// ranked ranks the only conversation of data.
func ranked(t testing.TB, w *World, m Method, depth int) [][]string {
	t.Helper()
	rankings, err := m.Rank(t.Context(), w, &w.data.Conversations[0], depth)
	if err != nil {
		t.Fatal(err)
	}
	var ids [][]string
	for _, r := range rankings {
		ids = append(ids, r.ChunkIDs)
	}
	return ids
}

func TestBaselines(t *testing.T) {
	chunks := []Chunk{
		chunk("apple", "a", "", 0, "apple fruit"), chunk("price", "b", "", 0, "price market"),
		chunk("both", "c", "", 0, "apple price"), chunk("other", "d", "", 0, "something else"),
	}
	w := worldOf(t, dataOf(t, chunks, Conversation{ID: "c", Turns: []Turn{
		{Query: "apple", Rewrite: "apple"}, {Query: "market"}, {Query: "price", Rewrite: "apple price"},
	}}), nil)
	for name, want := range map[string]string{
		Pointwise: "[[apple both] [price] [price both]]",
		// All words count alike, so "price" has two of them and "both" has two.
		History: "[[apple both] [price apple both] [price both apple]]",
		// apple counts 1/4 by the third turn.
		DecayedHistory: "[[apple both] [price apple both] [price both apple]]",
		Rewritten:      "[[apple both] [price] [both apple price]]",
	} {
		if got := fmt.Sprint(ranked(t, w, baseline(t, name), 20)); got != want {
			t.Errorf("%s: %s, wanted %s", name, got, want)
		}
	}
	var asked []string
	llm := Method{Name: LLM, Baseline: LLM, Model: "m", Rewrite: func(_ context.Context, history []string, question string) (string, error) {
		asked = append(asked, strings.Join(history, "+")+"|"+question)
		return "something", nil
	}}
	if got := fmt.Sprint(ranked(t, w, llm, 20)); got != "[[other] [other] [other]]" || fmt.Sprint(asked) != "[|apple apple|market apple+market|price]" {
		t.Errorf("llm: %s, asked %v", got, asked)
	}
	llm.Rewrite = func(context.Context, []string, string) (string, error) { return "", context.DeadlineExceeded }
	if _, err := llm.Rank(t.Context(), w, &w.data.Conversations[0], 20); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("llm that fails: %v", err)
	}
}

// The scores of decayed history are the sum of what a term adds, times γ to the
// power of its age.
func TestDecayedHistoryScores(t *testing.T) {
	w := worldOf(t, dataOf(t, menagerie(), Conversation{ID: "c", Turns: []Turn{{Query: "whale"}, {Query: "museum"}, {Query: "ocean whale"}}}), nil)
	collection, err := w.Collection(t.Context(), &w.data.Conversations[0], plain(t))
	if err != nil {
		t.Fatal(err)
	}
	s, err := newPlainSearch(collection, &w.data.Conversations[0], plain(t))
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.decayed(t.Context(), 2, 10)
	if err != nil {
		t.Fatal(err)
	}
	want, err := collection.searchTerms(t.Context(), []lexical.WeightedTerm{{Term: "ocean", Weight: 1}, {Term: "whale", Weight: 1}, {Term: "museum", Weight: 0.5}}, 10)
	if err != nil {
		t.Fatal(err)
	}
	for i := range want {
		if got[i].ChunkID != want[i].ChunkID || got[i].Score != want[i].Score {
			t.Errorf("candidate %d: %v, wanted %v", i, got[i], want[i])
		}
	}
}

func TestMMRByHand(t *testing.T) {
	// Three candidates: the second says the same as the first.
	chunks := []Chunk{chunk("a", "a", "", 0, "red red fox"), chunk("b", "b", "", 0, "red red fox"), chunk("c", "c", "", 0, "red snow hill valley")}
	w := worldOf(t, dataOf(t, chunks, Conversation{ID: "c", Turns: []Turn{{Query: "red"}}}), nil)
	if got := fmt.Sprint(ranked(t, w, baseline(t, Pointwise), 20)); got != "[[a b c]]" {
		t.Fatalf("pointwise %s", got)
	}
	// Relevance is 1, 1, 0. After a: b has 0.7·1 − 0.3·1 = 0.4 and c 0 − 0.3·sim < 0.
	if got := fmt.Sprint(ranked(t, w, baseline(t, MMR), 20)); got != "[[a b c]]" {
		t.Errorf("mmr %s", got)
	}
	collection, err := w.Collection(t.Context(), &w.data.Conversations[0], plain(t))
	if err != nil {
		t.Fatal(err)
	}
	// Relevance 1, 0.5, 0.4: then b has 0.35 − 0.3 = 0.05 and c 0.28 − 0.3·sim(a, c), which is more while sim is below 0.76.
	order := collection.mmr([]mapmatched.Candidate{{ChunkID: "a", Score: 10}, {ChunkID: "b", Score: 5}, {ChunkID: "c", Score: 4}})
	if got := fmt.Sprint(idsOf(order)); got != "[a c b]" {
		t.Errorf("mmr %s with similarity %v", got, collection.similarity(0, 2))
	}
	if sim := collection.similarity(0, 1); !near(sim, 1) {
		t.Errorf("equal texts have similarity %v", sim)
	}
	if len(collection.mmr(nil)) != 0 {
		t.Error("mmr of nothing is something")
	}
}

// Following a policy is what a retriever says, turn by turn, with the reply to
// the turn before, and then the rest as the turn alone finds it.
func TestPolicyIsTheRetriever(t *testing.T) {
	d := synthetic(t, &SyntheticOptions{Documents: 10, Conversations: 6})
	w := worldOf(t, d, nil)
	p := *plain(t)
	p.Name, p.StatedDigest, p.Evidence = "arms", "", ""
	p.Arms.Stage, p.Arms.Answer.Enabled, p.Decode.CandidateLimit = policy.StageActive, true, 7
	answers := 0
	for i := range d.Conversations {
		c := &d.Conversations[i]
		collection, err := w.Collection(t.Context(), c, &p)
		if err != nil {
			t.Fatal(err)
		}
		parts, err := collection.Parts(&p)
		if err != nil {
			t.Fatal(err)
		}
		retriever, err := policy.New(t.Context(), &p, parts)
		if err != nil {
			t.Fatal(err)
		}
		m := PolicyMethod(&p)
		rankings, err := m.Rank(t.Context(), w, c, 30)
		if err != nil {
			t.Fatal(err)
		}
		for turn := range c.Turns {
			q := policy.Query{Text: c.Turns[turn].Query}
			if turn > 0 {
				q.Answer = c.Turns[turn-1].Answer
				answers++
			}
			a, err := retriever.Ask(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			got := rankings[turn].ChunkIDs
			if own := idsOf(a.Order); !slices.Equal(got[:len(own)], own) {
				t.Fatalf("turn %d: %v, wanted %v first", turn, got, own)
			}
			found, err := collection.Words().Candidates(t.Context(), mapmatched.Query{Text: q.Text}, 30)
			if err != nil {
				t.Fatal(err)
			}
			rest := slices.DeleteFunc(idsOf(found), func(id string) bool { return slices.Contains(got[:len(a.Order)], id) })
			if tail := got[len(a.Order):]; !slices.Equal(tail, rest[:len(tail)]) || len(got) > 30 {
				t.Fatalf("turn %d: the rest is %v, wanted %v", turn, tail, rest)
			}
		}
	}
	if answers == 0 {
		t.Error("no turn had a reply before it")
	}
}

func TestMethodsThatCannotBe(t *testing.T) {
	w := worldOf(t, dataOf(t, menagerie(), Conversation{ID: "c", Turns: []Turn{{Query: "q", Gold: golds("d1#0")}}}), nil)
	broken := *plain(t)
	broken.Decode.CandidateLimit = 0
	reranking := *plain(t)
	reranking.StatedDigest, reranking.Evidence, reranking.Rerank.Mode = "", "", policy.RerankSync
	pinned := *plain(t)
	pinned.StatedDigest, pinned.Evidence, pinned.Vectors.Provider, pinned.Vectors.Model, pinned.Vectors.Dimension = "", "", "onnx", "m", 3
	for _, c := range []struct {
		methods []Method
		want    string
	}{
		{[]Method{{}}, "a method has no name"},
		{[]Method{{Name: "x"}}, "it is either a baseline or a policy"},
		{[]Method{{Name: "x", Baseline: "magic"}}, `there is no baseline "magic"`},
		{[]Method{baseline(t, Rewritten)}, "the data has no rewritten queries"},
		{[]Method{baseline(t, LLM)}, "it needs a language model"},
		{[]Method{baseline(t, MMR), baseline(t, MMR)}, `two methods of the name "mmr"`},
		{[]Method{PolicyMethod(&broken)}, "candidate_limit"},
		{[]Method{PolicyMethod(&reranking)}, "the evaluation has no reranker"},
		{[]Method{PolicyMethod(&pinned)}, "there are no vectors"},
	} {
		_, err := Measure(t.Context(), w, c.methods, nil)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, wanted %q", err, c.want)
		}
	}
	if _, err := BaselineMethod("magic"); err == nil {
		t.Error("a baseline of no such name")
	}
}

func TestAblations(t *testing.T) {
	p := plain(t)
	names := map[string]bool{}
	for _, m := range Ablations(p, false) {
		if names[m.Name] || !m.Ablation {
			t.Errorf("%+v", m)
		}
		names[m.Name] = true
		if err := m.Policy.Validate(); err != nil {
			t.Errorf("%s: %v", m.Name, err)
		}
		if m.Policy.Digest() == p.Digest() && m.Graph == GraphStructure {
			t.Errorf("%s changes nothing", m.Name)
		}
	}
	for _, want := range []string{"plain transition_weight=0.5", "plain fixed_lag=0", "plain candidate_limit=50", "plain graph=none"} {
		if !names[want] {
			t.Errorf("there is no ablation %q among %v", want, names)
		}
	}
	if names["plain transition_weight=1"] || names["plain graph=knn"] || names["plain fixed_lag=none"] {
		t.Error("the policy itself, or a graph from no vectors, is an ablation")
	}
	// β = 0 is pointwise, and so is a lone setting of it.
	w := worldOf(t, synthetic(t, &SyntheticOptions{Documents: 5, Conversations: 4}), nil)
	zero := Ablations(p, false)[0]
	if got, want := ranked(t, w, zero, 100), ranked(t, w, baseline(t, Pointwise), 100); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s ranks %v, pointwise %v", zero.Name, got, want)
	}
}

// What a method embeds beside the queries is known beforehand, and is refused
// before anything is measured.
func TestEmbeds(t *testing.T) {
	d := dataOf(t, menagerie(), Conversation{ID: "c", Turns: []Turn{{Query: "whale", Rewrite: "whale", Answer: "It is big.", Gold: golds("d1#0")}, {Query: "lion", Answer: "It roars."}}})
	v := &Vectors{Turns: map[string][]float32{"c/1": {1, 0}, "c/2": {0, 1}}}
	for i := range d.Corpus.Chunks {
		if err := v.AddChunk(d.Corpus.Chunks[i].ID, []float32{float32(i), 1}); err != nil {
			t.Fatal(err)
		}
	}
	with := func(change func(p *policy.Policy)) Method {
		p := *plain(t)
		p.Name, p.StatedDigest, p.Evidence = "changed", "", ""
		change(&p)
		return PolicyMethod(&p)
	}
	answer := with(func(p *policy.Policy) { p.Arms.Stage, p.Arms.Answer.Enabled = policy.StageActive, true })
	feedback := with(func(p *policy.Policy) { p.Arms.Stage, p.Arms.Feedback.Enabled = policy.StageActive, true })
	reply := with(func(p *policy.Policy) { p.Reply.Stage = policy.StageActive })
	history := with(func(p *policy.Policy) { p.Arms.Stage, p.Arms.Answer.Enabled = policy.StageActive, false })
	llm := Method{Name: LLM, Baseline: LLM, Model: "m", Rewrite: func(context.Context, []string, string) (string, error) { return "x", nil }}
	rewritten := *d
	rewritten.Conversations = []Conversation{{ID: "c", Turns: slices.Clone(d.Conversations[0].Turns)}}
	rewritten.Conversations[0].Turns[1].Rewrite = "lion or whale"
	for _, c := range []struct {
		method Method
		data   *Data
		opts   WorldOptions
		want   string // "" for none
	}{
		{baseline(t, Pointwise), d, WorldOptions{Arm: ArmHybrid}, ""},
		{baseline(t, DecayedHistory), d, WorldOptions{Arm: ArmHybrid}, ""},
		{baseline(t, MMR), d, WorldOptions{Arm: ArmDense}, ""},
		{baseline(t, History), d, WorldOptions{Arm: ArmLexical}, ""},
		{baseline(t, History), d, WorldOptions{Arm: ArmDense}, "the questions so far"},
		{baseline(t, Rewritten), d, WorldOptions{Arm: ArmDense}, ""}, // the only one is the query itself
		{baseline(t, Rewritten), &rewritten, WorldOptions{Arm: ArmDense}, "rewritten queries"},
		{llm, d, WorldOptions{Arm: ArmHybrid}, "rewritten queries"},
		{PolicyMethod(plain(t)), d, WorldOptions{Arm: ArmHybrid}, ""},
		{history, d, WorldOptions{Arm: ArmHybrid}, ""},
		{answer, d, WorldOptions{Arm: ArmHybrid}, "the replies (arms.answer)"},
		{answer, d, WorldOptions{Arm: ArmHybrid, NoReplies: true}, ""},
		{answer, d, WorldOptions{Arm: ArmLexical}, ""},
		{feedback, d, WorldOptions{Arm: ArmDense}, "terms that are fed back (arms.feedback)"},
		{reply, d, WorldOptions{Arm: ArmHybrid}, "the replies (reply)"},
		{reply, d, WorldOptions{Arm: ArmHybrid, NoReplies: true}, ""},
	} {
		c.opts.Vectors = v
		w := worldOf(t, c.data, &c.opts)
		if got := c.method.Embeds(w); got != c.want {
			t.Errorf("%s on the arm %s embeds %q, wanted %q", c.method.Name, c.opts.Arm, got, c.want)
		}
		_, err := Measure(t.Context(), w, []Method{c.method}, nil)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), "it embeds "+c.want)) {
			t.Errorf("%s on the arm %s: %v", c.method.Name, c.opts.Arm, err)
		}
	}
}

func TestOwnSections(t *testing.T) {
	d := dataOf(t, menagerie(), Conversation{ID: "c", Turns: []Turn{{Query: "whale", Gold: golds("d1#0")}}})
	vectors, _ := embedAll(t, d, "")
	for _, c := range []struct {
		arm    Arm
		change func(p *policy.Policy)
		want   string
	}{
		{ArmHybrid, func(*policy.Policy) {}, "[]"},
		{ArmHybrid, func(p *policy.Policy) { p.Fusion.Version, p.Fusion.K = policy.RRFV1, 10 }, "[fusion]"},
		{ArmHybrid, func(p *policy.Policy) { p.Fusion.K = 10 }, "[]"}, // counts in rrf_v1 alone
		{ArmHybrid, func(p *policy.Policy) {
			p.Fusion.Arms = map[string]policy.FusionArm{policy.ArmDense: {Weight: 0.5}, policy.ArmLexical: {Weight: 0.5}}
		}, "[fusion]"},
		{ArmLexical, func(p *policy.Policy) { p.Fusion.Version = policy.RRFV1 }, "[]"}, // of one arm
		{ArmLexical, func(p *policy.Policy) { p.Vectors.Provider = "test" }, "[fusion]"},
		{ArmLexical, func(p *policy.Policy) { p.Lexical.K1 = 2 }, "[lexical]"},
		{ArmDense, func(p *policy.Policy) { p.Lexical.K1 = 2 }, "[]"},
		{ArmHybrid, func(p *policy.Policy) { p.Fusion.Version, p.Lexical.B = policy.RRFV1, 0 }, "[fusion lexical]"},
	} {
		p := *plain(t)
		c.change(&p)
		m := PolicyMethod(&p)
		if got := fmt.Sprint(m.OwnSections(worldOf(t, d, &WorldOptions{Vectors: vectors, Arm: c.arm}))); got != c.want {
			t.Errorf("arm %s: %s, wanted %s", c.arm, got, c.want)
		}
	}
	for _, name := range Baselines() {
		m := baseline(t, name)
		if got := m.OwnSections(worldOf(t, d, &WorldOptions{Vectors: vectors, Arm: ArmHybrid})); len(got) > 0 {
			t.Errorf("%s: %v", name, got)
		}
	}
}
