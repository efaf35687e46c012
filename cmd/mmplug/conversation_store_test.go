package main

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/policy"
)

type storeTurn struct {
	ChunkID   string                   `json:"chunk_id"`
	Ranking   []mapmatched.RankedChunk `json:"ranking"`
	ContextID []string                 `json:"context_chunk_ids"`
	Texts     map[string]string
}

const (
	aboutNoise = "Which noise is there?"
	aboutRoad  = "And the road?"
)

// A store is asked as an index with the same corpus is.
func TestAskStore(t *testing.T) {
	_, dir, at := storedDocs(t)
	idx := filepath.Join(t.TempDir(), "docs.idx")
	mmplug(t, "", "index", dir, "--out", idx, "--embed", threeWords)
	ask := func(more ...string) []storeTurn {
		out := fine(t, "", append([]string{"ask", "--policy", "plain", "--embed", threeWords, "--json", aboutNoise, aboutRoad}, more...)...)
		return unmarshal[struct{ Turns []storeTurn }](t, out).Turns
	}
	want := ask("--index", idx)
	for _, more := range [][]string{
		{"--provider", at}, {"--provider", at, "--graph", at}, {"--provider", at, "--graph", "embedded:" + idx},
		{"--provider", "embedded:" + idx + "?arm=dense"},
	} {
		got := ask(more...)
		if len(got) != len(want) {
			t.Fatalf("%d turns, want %d", len(got), len(want))
		}
		for i := range want {
			if got[i].ChunkID != want[i].ChunkID || !slices.Equal(got[i].ContextID, want[i].ContextID) {
				t.Errorf("%q, turn %d: %+v, of the index %+v", more, i, got[i], want[i])
			}
			for _, id := range got[i].ContextID {
				if got[i].Texts[id] != want[i].Texts[id] || want[i].Texts[id] == "" {
					t.Errorf("text of %s: %q, in the index %q", id, got[i].Texts[id], want[i].Texts[id])
				}
			}
		}
	}
	page := filepath.Join(t.TempDir(), "trace.html")
	out := fine(t, "", "ask", "--provider", at, "--embed", threeWords, "--html", page, aboutNoise)
	if !strings.Contains(out, "decoded   "+want[0].ChunkID) || !strings.Contains(out, "words about noise") || !strings.Contains(get(t, page), "Noise is modelled by a Gaussian") {
		t.Errorf("output\n%s", out)
	}
	if text := fine(t, aboutNoise+"\n/trace\n", "chat", "--provider", at, "--embed", threeWords); !strings.Contains(text, "path: "+want[0].ChunkID) {
		t.Errorf("trace\n%s", text)
	}
}

// Every part of a policy works on a store that knows no terms, or is refused in
// a line.
func TestAskStoreUnderPolicies(t *testing.T) {
	_, _, at := storedDocs(t)
	conversation := []string{"ask", "--provider", at, "--embed", threeWords, "--json", aboutNoise, aboutRoad}
	all := policyFile(t, "all.policy.yaml", func(p *policy.Policy) {
		p.Arms.Stage, p.Transition.Stage, p.Decay.Stage, p.Proposals.Stage = policy.StageActive, policy.StageActive, policy.StageActive, policy.StageActive
		p.Transition.P, p.Transition.Q = map[string]float64{"stay": 0.5, "jump": 0.5}, map[string]float64{"stay": 0.5, "jump": 0.5}
		p.Arms.History.Enabled, p.Arms.History.Weight = true, 1
		p.Arms.Feedback.Enabled, p.Arms.Feedback.Weight = true, 1
		p.Fusion.Version = policy.HybridFusionPreV1
	})
	turns := unmarshal[struct {
		Turns []struct {
			ChunkID string `json:"chunk_id"`
			Context []scoredChunk
		}
	}](t, fine(t, "", append(conversation, "--policy", all)...)).Turns
	if len(turns) != 2 || turns[1].ChunkID == "" || len(turns[1].Context) < 2 {
		t.Errorf("%+v", turns)
	}
	flat := policyFile(t, "flat.policy.yaml", func(p *policy.Policy) { p.Decode.TransitionWeight = 0 })
	fine(t, "", append(conversation, "--policy", flat)...)
	log := filepath.Join(t.TempDir(), "log.jsonl")
	fine(t, "", append(conversation, "--policy", flat, "--shadow-policy", all, "--shadow-log", log)...)
	if records := strings.Count(get(t, log), `"part":"policy"`); records != 2 {
		t.Errorf("%d records of the policy in shadow\n%s", records, get(t, log))
	}
	wide := policyFile(t, "wide.policy.yaml", func(p *policy.Policy) { p.Graph.MaximumDistance = 7 })
	fails(t, exitFailed, "", append(conversation, "--policy", wide), "stale index", "maximum_distance=7", "--to the URL of a new one")
	pinned := policyFile(t, "pinned.policy.yaml", func(p *policy.Policy) {
		p.Vectors = policy.Vectors{Provider: "testwords:counter", Model: "road,noise,plain", Dimension: 4, Normalization: "l2", MaxQueryTokens: 1}
	})
	r := mmplug(t, "", append(conversation, "--policy", pinned)...)
	if _, complaint, _ := strings.Cut(r.err, "asked alone\n"); r.code != exitFailed || !strings.HasPrefix(r.err, "warning: policy pinned fuses dense and lexical") {
		t.Errorf("got %+v", r)
	} else {
		wantComplaint(t, complaint, "vectors.dimension is 3, the policy says 4")
	}
}

// A store without a graph, or with vectors of questions missing, is refused with
// the way out.
func TestAskStoreRefuses(t *testing.T) {
	s, _, at := storedDocs(t)
	idx, dir := handbookIdx(t), t.TempDir()
	_, _, rows, names := vectorFiles(t, 5)
	index, lines := faissFile(t, dir, rows, names)
	for _, c := range []struct {
		code  int
		args  []string
		texts []string
	}{
		{exitUsage, []string{}, []string{"--index IDX", "--provider URL"}},
		{exitUsage, []string{"--provider", at, "--index", idx}, []string{"leave one out"}},
		{exitUsage, []string{"--index", idx, "--graph", at}, []string{"--graph is for --provider"}},
		{exitUsage, []string{"--provider", at, "--arm", "dense"}, []string{"--arm is for --index"}},
		{exitFailed, []string{"--provider", at}, []string{"the vector of turn 0 is missing", "--embed makes those of the questions"}},
		{exitFailed, []string{"--provider", at, "--embed", "testwords:counter?model=road,noise"}, []string{"another model", `model is "road,noise,plain", wanted "road,noise"`}},
		{exitFailed, []string{"--provider", "faiss:" + index + "?ids=" + lines}, []string{"policy conversational needs a graph", "--graph URL", "decode.transition_weight 0"}},
		{exitFailed, []string{"--provider", at, "--embed", threeWords, "--graph", "graph:" + filepath.Join(dir, "none.mmg")}, []string{"there is no such file: make one"}},
		{exitFailed, []string{"--provider", "nowhere:x"}, []string{`unknown scheme "nowhere"`}},
		{exitFailed, []string{"--provider", strings.Replace(at, "/pages", "/none", 1)}, []string{"none", "qdrant: open"}},
	} {
		fails(t, c.code, "", append([]string{"ask", "x"}, c.args...), c.texts...)
	}
	// An error that vectors have nothing to do with does not speak of them.
	words := strings.Replace(at, "/pages", "/words", 1)
	plain := t.TempDir()
	put(t, filepath.Join(plain, "a.txt"), "plain words\n")
	fine(t, "", "index", plain, "--to", words+"&sparse=terms")
	flat := policyFile(t, "flat.policy.yaml", func(p *policy.Policy) { p.Decode.TransitionWeight = 0 })
	said := mmplug(t, "", "ask", "--policy", flat, "--provider", words+"&sparse=terms&text_key=body", "words")
	if wantComplaint(t, said.err, `under key "body"`); strings.Contains(said.err, "--embed") {
		t.Errorf("got %+v", said)
	}
	r := mmplug(t, "", "ask", "--provider", "graph:x", "--graph", "graph:"+filepath.Join(dir, "none.mmg"), "x")
	if wantComplaint(t, r.err, "opens a graph, not a provider"); r.code != exitFailed {
		t.Errorf("got %+v", r)
	}
	if n := strings.Count(mmplug(t, "", "graph", "stats", filepath.Join(dir, "none.mmg")).err, "exist"); n != 0 {
		t.Errorf("a missing file is said not to exist %d times more", n)
	}
	s.Kill()
	fails(t, exitFailed, "", []string{"ask", "--provider", at, "--embed", threeWords, "x"}, s.Addr(), "connection refused")
}

// A server that is away in the middle costs the question asked meanwhile and
// nothing else.
func TestStoreAwayInConversation(t *testing.T) {
	s, _, at := storedDocs(t)
	session := filepath.Join(t.TempDir(), "talk.json")
	ask := func(more ...string) []string {
		return append([]string{"ask", "--provider", at, "--embed", threeWords, "--json"}, more...)
	}
	whole := turnsOf(t, fine(t, "", ask(aboutNoise, aboutRoad)...))
	first := turnsOf(t, fine(t, "", ask("--session", session, aboutNoise)...))
	before := get(t, session)
	s.Kill()
	fails(t, exitFailed, "", ask("--session", session, aboutRoad), s.Addr(), "connection refused")
	if get(t, session) != before {
		t.Error("the session file is another one after the failure")
	}
	if err := s.Restart(); err != nil {
		t.Fatal(err)
	}
	second := turnsOf(t, fine(t, "", ask("--session", session, aboutRoad)...))
	if got := slices.Concat(first, second); !slices.Equal(got, whole) {
		t.Errorf("with a restart\n%s\nwithout\n%s", got, whole)
	}
	fails(t, exitFailed, "", ask("--session", session, aboutRoad, "--graph", at+"&types=next"), "belongs to another store")
	other := strings.Replace(at, "/pages", "/others", 1)
	dir := t.TempDir()
	put(t, filepath.Join(dir, "a.txt"), "plain words\n")
	fine(t, "", "index", dir, "--to", other, "--embed", threeWords)
	fails(t, exitFailed, "", []string{"ask", "--provider", other, "--embed", threeWords, "--session", session, "x"}, "belongs to another store than "+other)
}

func TestChatOutlivesStore(t *testing.T) {
	s, _, at := storedDocs(t)
	whole := fine(t, aboutNoise+"\n"+aboutRoad+"\n", "chat", "--policy", "plain", "--provider", at, "--embed", threeWords)
	in, questions := io.Pipe()
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close() //nolint:errcheck // only a test's
	complaints := &waitingFor{line: make(chan string, 10)}
	code := make(chan int)
	go func() {
		code <- run(t.Context(), []string{"chat", "--policy", "plain", "--provider", at, "--embed", threeWords}, stdio{in, io.MultiWriter(out, complaints), complaints})
	}()
	say := func(question string) { _, _ = io.WriteString(questions, question+"\n") }
	say(aboutNoise)
	<-complaints.line
	s.Kill()
	say(aboutRoad)
	wantComplaint(t, <-complaints.line, "qdrant: ", s.Addr())
	if err := s.Restart(); err != nil {
		t.Fatal(err)
	}
	say(aboutRoad)
	<-complaints.line
	_ = questions.Close()
	if got := <-code; got != exitFailed {
		t.Errorf("exit status %d, want %d", got, exitFailed)
	}
	wantComplaint(t, <-complaints.line, "1 question was not answered")
	if got := get(t, out.Name()); got != whole {
		t.Errorf("with a restart\n%s\nwithout\n%s", got, whole)
	}
}

// waitingFor passes on everything that is written.
type waitingFor struct{ line chan string }

func (w *waitingFor) Write(p []byte) (int, error) {
	w.line <- string(p)
	return len(p), nil
}

func TestWithoutSecrets(t *testing.T) {
	for at, want := range map[string]string{
		"qdrant://user:word@host:1/c?api_key=x": "qdrant://host:1/c",
		"qdrant://host/c?limit=1":               "qdrant://host/c",
		"faiss:a@b?ids=x":                       "faiss:a@b",
		"nothing":                               "nothing",
	} {
		if got := withoutSecrets(at); got != want {
			t.Errorf("%s is shown as %s, want %s", at, got, want)
		}
	}
	if got, want := placeOf("qdrant://h/c?limit=1&api_key_env=A&x"), "qdrant://h/c?limit=1&x"; got != want {
		t.Errorf("placed at %s, want %s", got, want)
	}
	if got, want := graphURL("embedded:x?arm=dense&skip_checksums=true"), "embedded:x?skip_checksums=true"; got != want {
		t.Errorf("graph at %s, want %s", got, want)
	}
	if got := graphURL("faiss:x"); got != "" {
		t.Errorf("a graph of faiss: %s", got)
	}
}
