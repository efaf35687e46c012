package eval

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/mapmatched/mmplug/adapters/embedded/lexical"
	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/policy"
)

// chunk makes a chunk of a document in a domain.
func chunk(id, document, domain string, ordinal int, text string, links ...string) Chunk {
	return Chunk{mapmatched.Chunk{ID: id, Document: document, Ordinal: ordinal, Text: text}, domain, links}
}

// dataOf makes data of chunks and conversations.
func dataOf(t testing.TB, chunks []Chunk, conversations ...Conversation) *Data {
	t.Helper()
	c, err := NewCorpus(chunks)
	if err != nil {
		t.Fatal(err)
	}
	return &Data{Name: "test", Format: "shared", Corpus: c, Conversations: conversations}
}

func worldOf(t testing.TB, d *Data, opts *WorldOptions) *World {
	t.Helper()
	w, err := NewWorld(d, opts)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func synthetic(t testing.TB, opts *SyntheticOptions) *Data {
	t.Helper()
	d, err := Synthetic(opts)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func plain(t testing.TB) *policy.Policy {
	t.Helper()
	p, err := policy.Builtin(policy.Plain)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func baseline(t testing.TB, name string) Method {
	t.Helper()
	m, err := BaselineMethod(name)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// menagerie is a corpus of two domains with a word that is rare in one of them.
func menagerie() []Chunk {
	return []Chunk{
		chunk("d1#0", "d1", "sea", 0, "whale ocean"),
		chunk("d1#1", "d1", "sea", 1, "whale krill", "d2"),
		chunk("d2#0", "d2", "sea", 0, "shark ocean"),
		chunk("d3#0", "d3", "land", 0, "whale museum lion", "d1"),
		chunk("d3#1", "d3", "land", 1, "lion lion"),
	}
}

func TestScopes(t *testing.T) {
	c := Conversation{ID: "c", Domain: "sea", Document: "d1", Turns: []Turn{{Query: "whale", Gold: golds("d1#0")}, {Query: "lion"}}}
	for scope, want := range map[Scope]string{
		ScopeAll:      "[[d1#0 d1#1 d3#0] [d3#1 d3#0]]",
		ScopeDomain:   "[[d1#0 d1#1] []]",
		ScopeDocument: "[[d1#0 d1#1] []]",
	} {
		w := worldOf(t, dataOf(t, menagerie(), c), &WorldOptions{Scope: scope})
		m := baseline(t, Pointwise)
		rankings, err := m.Rank(t.Context(), w, &w.data.Conversations[0], 20)
		if err != nil {
			t.Fatal(err)
		}
		var got [][]string
		for _, r := range rankings {
			got = append(got, r.ChunkIDs)
		}
		if fmt.Sprint(got) != want {
			t.Errorf("scope %s: %v, wanted %s", scope, got, want)
		}
		if scope == ScopeDomain && rankings[1].Entropy != -1 {
			t.Errorf("a turn without candidates has entropy %v", rankings[1].Entropy)
		}
	}
}

// Inverse document frequencies are those of the domain, but of the whole corpus
// for a document.
func TestScopeFrequencies(t *testing.T) {
	c := Conversation{ID: "c", Domain: "sea", Document: "d1", Turns: []Turn{{Query: "whale"}}}
	for scope, want := range map[Scope]float64{
		ScopeAll: lexical.IDF(5, 3), ScopeDomain: lexical.IDF(3, 2), ScopeDocument: lexical.IDF(5, 3),
	} {
		w := worldOf(t, dataOf(t, menagerie(), c), &WorldOptions{Scope: scope})
		collection, err := w.Collection(t.Context(), &c, plain(t))
		if err != nil {
			t.Fatal(err)
		}
		if got, known := collection.IDF("whale"); !known || got != want {
			t.Errorf("scope %s: idf %v, wanted %v", scope, got, want)
		}
	}
}

func TestNewWorldRefuses(t *testing.T) {
	for _, c := range []struct {
		conversation Conversation
		opts         WorldOptions
		want         string
	}{
		{Conversation{ID: "c"}, WorldOptions{Scope: "town"}, `there is no scope "town"`},
		{Conversation{ID: "c"}, WorldOptions{Scope: ScopeDomain}, `conversation "c" has none: use another scope`},
		{Conversation{ID: "c", Domain: "air"}, WorldOptions{Scope: ScopeDomain}, `conversation "c" has "air", and no chunk does`},
		{Conversation{ID: "c", Document: "d2", Turns: []Turn{{Query: "q", Gold: golds("d1#0")}}}, WorldOptions{Scope: ScopeDocument}, `turn 1: gold "d1#0" is outside "d2"`},
		{Conversation{ID: "c"}, WorldOptions{Arm: ArmDense}, "needs vectors"},
		{Conversation{ID: "c"}, WorldOptions{Arm: "psychic"}, `there is no arm "psychic"`},
		{Conversation{ID: "c"}, WorldOptions{Vectors: &Vectors{}}, `chunk "d1#0" has no vector`},
	} {
		_, err := NewWorld(dataOf(t, menagerie(), c.conversation), &c.opts)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: error %v, wanted %q", c.opts, err, c.want)
		}
	}
}

// A search within a document is the search of everything, filtered, and scored
// chunks have the scores of the search.
func TestDocumentScopeFilters(t *testing.T) {
	d := synthetic(t, &SyntheticOptions{Documents: 8, Conversations: 20})
	for i := range d.Conversations { // each stays in the document of its first turn
		c := &d.Conversations[i]
		c.Document = d.Corpus.Find(c.Turns[0].Gold[0].ChunkID).Document
		for t := range c.Turns {
			c.Turns[t].Gold = nil
		}
	}
	all, within := worldOf(t, d, nil), worldOf(t, d, &WorldOptions{Scope: ScopeDocument})
	for i := range d.Conversations {
		c := &d.Conversations[i]
		wide, err := all.Collection(t.Context(), c, plain(t))
		if err != nil {
			t.Fatal(err)
		}
		narrow, err := within.Collection(t.Context(), c, plain(t))
		if err != nil {
			t.Fatal(err)
		}
		for _, turn := range c.Turns {
			q := mapmatched.Query{Text: turn.Query}
			want, err := wide.Words().Candidates(t.Context(), q, wide.Len())
			if err != nil {
				t.Fatal(err)
			}
			want = slices.DeleteFunc(want, func(k mapmatched.Candidate) bool { return d.Corpus.Find(k.ChunkID).Document != c.Document })
			want = want[:min(len(want), 6)]
			got, err := narrow.Words().Candidates(t.Context(), q, 6)
			if err != nil {
				t.Fatal(err)
			}
			if len(got) != len(want) {
				t.Fatalf("%d candidates, wanted %d", len(got), len(want))
			}
			var ids []string
			for k := range got {
				if got[k].ChunkID != want[k].ChunkID || got[k].Score != want[k].Score {
					t.Fatalf("candidate %d is %s %v, wanted %s %v", k, got[k].ChunkID, got[k].Score, want[k].ChunkID, want[k].Score)
				}
				ids = append(ids, got[k].ChunkID)
			}
			outside := "doc0#0"
			if c.Document == "doc0" {
				outside = "doc1#0"
			}
			scored, err := wordSearch{narrow}.ScoreChunks(t.Context(), q, append(slices.Clone(ids), outside, "unknown"))
			if err != nil || len(scored) != len(ids) {
				t.Fatalf("%d scores, wanted %d: %v", len(scored), len(ids), err)
			}
			for k := range scored {
				if scored[k].ChunkID != ids[k] || scored[k].Score != got[k].Score {
					t.Fatalf("score %v, wanted %v", scored[k], got[k].Score)
				}
			}
		}
	}
}

// Remembered distances have the bits of the graph, whoever asks at once.
func TestGraphRemembers(t *testing.T) {
	d := synthetic(t, &SyntheticOptions{Documents: 4})
	d.Corpus.Chunks[0].Links = []string{"doc2"}
	w := worldOf(t, d, nil)
	collection, err := w.Collection(t.Context(), &d.Conversations[0], plain(t))
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for i := range d.Corpus.Chunks {
		ids = append(ids, d.Corpus.Chunks[i].ID)
	}
	ids = append(ids, "unknown")
	want := make([]float64, len(ids)*len(ids))
	if err := collection.graph.Graph.Distances(t.Context(), ids, ids, want); err != nil {
		t.Fatal(err)
	}
	err = forEach(t.Context(), 8, 8, func(ctx context.Context, _ int) error {
		got := make([]float64, len(want))
		if err := collection.Graph().Distances(ctx, ids, ids, got); err != nil {
			return err
		}
		for i := range got {
			if math.Float64bits(got[i]) != math.Float64bits(want[i]) {
				return fmt.Errorf("distance %s to %s is %v, wanted %v", ids[i/len(ids)], ids[i%len(ids)], got[i], want[i])
			}
		}
		return nil
	}, nil)
	if err != nil {
		t.Error(err)
	}
	if err := collection.Graph().Distances(t.Context(), ids, ids, nil); err == nil {
		t.Error("distances into a slice of the wrong length")
	}
}

func TestGraphSources(t *testing.T) {
	w := worldOf(t, dataOf(t, menagerie(), Conversation{ID: "c"}), nil)
	distance := func(source GraphSource, from, to string) float64 {
		collection, err := w.collection(t.Context(), &w.data.Conversations[0], plain(t), source)
		if err != nil {
			t.Fatal(err)
		}
		d := make([]float64, 1)
		if err := collection.graph.Distances(t.Context(), []string{from}, []string{to}, d); err != nil {
			t.Fatal(err)
		}
		return d[0]
	}
	for _, c := range []struct {
		source      GraphSource
		next, links float64 // d1#0 to d1#1, and d1#1 to d2#0
	}{{GraphStructure, 1, 2}, {GraphNoLinks, 1, 10}, {GraphNext, 1, 10}, {GraphNone, 10, 10}} {
		if next, link := distance(c.source, "d1#0", "d1#1"), distance(c.source, "d1#1", "d2#0"); next != c.next || link != c.links {
			t.Errorf("%s: %v and %v, wanted %v and %v", c.source, next, link, c.next, c.links)
		}
	}
	for source, want := range map[GraphSource]string{GraphKNN: "there are no vectors", "moon": "there is no such source"} {
		_, err := w.collection(t.Context(), &w.data.Conversations[0], plain(t), source)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", source, err)
		}
	}
}

// A failure is not kept.
func TestOnceForgetsFailures(t *testing.T) {
	w := worldOf(t, dataOf(t, menagerie(), Conversation{ID: "c"}), nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.Collection(ctx, &w.data.Conversations[0], plain(t)); err == nil {
		t.Fatal("a cancelled context makes an index all the same")
	}
	if _, err := w.Collection(t.Context(), &w.data.Conversations[0], plain(t)); err != nil {
		t.Errorf("after a cancelled call: %v", err)
	}
}

// TestNoReplies: withheld replies are as if the data had none, and the report
// says so.
func TestNoReplies(t *testing.T) {
	data, err := Synthetic(nil)
	if err != nil {
		t.Fatal(err)
	}
	data.Conversations = data.Conversations[:8]
	mute := *data
	mute.Conversations = nil
	for _, c := range data.Conversations {
		c.Turns = append([]Turn{}, c.Turns...)
		for i := range c.Turns {
			c.Turns[i].Answer = ""
		}
		mute.Conversations = append(mute.Conversations, c)
	}
	measure := func(d *Data, opts *WorldOptions) string {
		w, err := NewWorld(d, opts)
		if err != nil {
			t.Fatal(err)
		}
		report, err := Run(t.Context(), w, []Method{PolicyMethod(tuned(nil))}, &RunOptions{Samples: 10})
		if err != nil {
			t.Fatal(err)
		}
		if want := opts == nil || !opts.NoReplies; report.Replies != want {
			t.Errorf("replies %t, want %t", report.Replies, want)
		}
		report.Replies = false
		var b strings.Builder
		if err := report.WriteJSON(&b); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	with, without, muted := measure(data, nil), measure(data, &WorldOptions{NoReplies: true}), measure(&mute, nil)
	if without != muted {
		t.Error("withheld replies count")
	}
	if with == without {
		t.Error("replies never count, so this test shows nothing")
	}
	if data.Conversations[0].Turns[0].Answer == "" {
		t.Error("the data itself lost its replies")
	}
}

// TestStageAblations: each active stage has a variant without it.
func TestStageAblations(t *testing.T) {
	var names []string
	for _, m := range Ablations(tuned(nil), false) {
		if err := m.Policy.Validate(); err != nil || !m.Ablation {
			t.Errorf("%s: %v", m.Name, err)
		}
		names = append(names, m.Name)
	}
	all := strings.Join(names, ", ")
	for _, want := range []string{"arms=off", "arms.gate=off", "arms.history=off", "arms.answer=off", "transition=off", "reply=off", "proposals=off", "rank_by=max_marginal"} {
		if !strings.Contains(all, "tuned "+want) {
			t.Errorf("%s is missing in %s", want, all)
		}
	}
	p := policy.Default()
	p.Name = "plain"
	for _, m := range Ablations(p, false) {
		if strings.HasSuffix(m.Name, "=off") {
			t.Errorf("%s: the stage is off anyway", m.Name)
		}
	}
}
