package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mapmatched/mmplug/adapters/embedded"
	"github.com/mapmatched/mmplug/graphbuild"
	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/mapmatched/eval"
	"github.com/mapmatched/mmplug/policy"
)

const (
	evalCorpus = `{"id":"a#0","doc":"a","title":"Apples","section":"","ordinal":0,"text":"Apples are red."}
{"id":"a#1","doc":"a","title":"Apples","section":"Price","ordinal":1,"text":"They cost two coins."}
{"id":"b#0","doc":"b","title":"Pears","section":"Price","ordinal":0,"text":"Pears cost three coins."}
`
	evalConversations = `{"conversation_id":"c","doc_scope":"a","turns":[{"turn":1,"query":"red apples","gold":["a#0"],"standalone":true},{"turn":2,"query":"what do they cost","gold":["a#1"],"standalone":false}]}
`
)

// evalFile writes a file for a test.
func evalFile(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

func evalSet(t *testing.T) []string {
	t.Helper()
	return []string{"eval", "--corpus", evalFile(t, "corpus.jsonl", evalCorpus), "--conversations", evalFile(t, "conversations.jsonl", evalConversations), "--bootstrap-samples", "20"}
}

func evalReport(t *testing.T, out string) *eval.Report {
	t.Helper()
	var r eval.Report
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return &r
}

func TestEvalPrintsTable(t *testing.T) {
	out := fine(t, "", append(evalSet(t), "--scope", "doc_scope")...)
	for _, want := range []string{"2 scored turns of 1 conversation, scope doc_scope, lexical arm", "follow_up (1)", "decayed_history", "plain: ndcg_3 on follow_up"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

func TestEvalWritesReports(t *testing.T) {
	dir := t.TempDir()
	args := []string{"eval", "--synthetic", "--seed", "3", "--bootstrap-samples", "30", "--json", "--ablations", "--baselines", "history"}
	var first []string
	for i, out := range []string{filepath.Join(dir, "one"), filepath.Join(dir, "two")} {
		own := slices.Concat(args, []string{"--out", out})
		if i == 1 {
			own = append(own, "--cache", filepath.Join(dir, "cache"))
			fine(t, "", own...) // and once more, from the cache
		}
		printed := fine(t, "", own...)
		var files []string
		for _, name := range []string{"report.json", "report.md", "ndcg_3.svg"} {
			raw, err := os.ReadFile(filepath.Join(out, name))
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, string(raw))
		}
		if printed != files[0] {
			t.Error("--json prints another report than is written")
		}
		if first == nil {
			first = files
		}
		for k := range files {
			if files[k] != first[k] {
				t.Errorf("run %d writes another file %d", i+1, k)
			}
		}
	}
	r := evalReport(t, first[0])
	if r.Bootstrap.Seed != 3 || r.Bootstrap.Samples != 30 || r.Methods[0].Name != eval.Pointwise || r.Methods[1].Name != eval.History || r.Methods[2].Name != "plain" || len(r.Methods) < 10 {
		t.Errorf("bootstrap %+v, methods %d", r.Bootstrap, len(r.Methods))
	}
	if strings.Contains(first[0]+first[1]+first[2], dir) {
		t.Error("a report names a directory of this machine")
	}
}

func TestEvalGate(t *testing.T) {
	// The plain decoder holds on to what the synthetic conversations leave.
	r := mmplug(t, "", "eval", "--synthetic", "--gate", "--baselines", "none", "--bootstrap-samples", "10")
	if r.code != exitCheck || !strings.Contains(r.err, "plain: ndcg_3 on standalone against pointwise is -0.") || strings.Count(r.err, "\n") != 1 || !strings.Contains(r.out, "it does not hold") {
		t.Errorf("exit status %d, %s", r.code, r.err)
	}
	if r := mmplug(t, "", append(evalSet(t), "--gate")...); r.code != exitCheck { // no gain on one turn that both find
		t.Errorf("exit status %d, %s", r.code, r.err)
	}
	path := evalFile(t, "zero.policy.yaml", "schema: mmplug.policy/1\nname: zero\ndecode: "+evalZero+"\n")
	if r := mmplug(t, "", "eval", "--synthetic", "--policy", path+",plain", "--baselines", "none", "--bootstrap-samples", "10", "--json"); r.code != exitOK || len(evalReport(t, r.out).Gates) != 4 {
		t.Errorf("two policies: exit status %d, %s", r.code, r.err)
	}
}

// evalZero is the section decode of a policy without transitions.
const evalZero = `{version: decode_v1, emission_weight: 1, transition_weight: 0, score_normalization: zscore, fixed_lag: null, candidate_limit: 20, beam: 0, break_distance: 0, on_empty: gap, temperature: 1, rank_by: max_marginal}`

func TestEvalRefuses(t *testing.T) {
	set := evalSet(t)
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"eval"}, exitUsage, "say what to measure on"},
		{[]string{"eval", "--corpus", "x"}, exitUsage, "needs --conversations"},
		{[]string{"eval", "--synthetic", "--corpus", "x"}, exitUsage, "--synthetic has no --corpus"},
		{[]string{"eval", "--format", "cast", "--corpus", "x", "--conversations", "y"}, exitUsage, "--format cast needs --qrels"},
		{[]string{"eval", "--format", "topiocqa", "--corpus", "x", "--conversations", "y"}, exitUsage, "--format topiocqa has no --corpus"},
		{[]string{"eval", "--format", "csv"}, exitUsage, `--format is "csv"`},
		{append(set, "--scope", "town"), exitUsage, `--scope is "town"`},
		{append(set, "--bootstrap-samples", "0"), exitUsage, "--bootstrap-samples is 0"},
		{append(set, "--depth", "3"), exitUsage, "--depth is 3"},
		{append(set, "--seed", "0"), exitUsage, "--seed is 0"},
		{append(set, "--arm", "dense"), exitUsage, "needs vectors"},
		{append(set, "--arm", "nose"), exitUsage, `--arm is "nose"`},
		{append(set, "--vectors", "v.npy"), exitUsage, "--query-ids"},
		{append(set, "--baselines", "magic"), exitUsage, `there is no baseline "magic"`},
		{append(set, "--baselines", "llm"), exitUsage, "give --rewriter"},
		{append(set, "--baselines", "llm", "--rewriter", "langchaingo:ollama?model=m"), exitUsage, "give --cache"},
		{append(set, "--baselines", "rewritten"), exitFailed, "the data has no rewritten queries"},
		{append(set, "--scope", "domain"), exitFailed, `conversation "c" has none`},
		{append(set, "--policy", "nobody"), exitFailed, `no built-in policy is named "nobody"`},
		{append(set, "--policy", "plain,plain"), exitFailed, `two methods of the name "plain"`},
		{[]string{"eval", "--corpus", "nowhere.jsonl", "--conversations", "nowhere.jsonl"}, exitFailed, "nowhere.jsonl"},
	} {
		r := mmplug(t, "", c.args...)
		if r.code != c.code || !strings.Contains(r.err, c.want) || strings.Count(r.err, "\n") != 1 {
			t.Errorf("%q: exit status %d, %q; wanted %d, %q", c.args, r.code, r.err, c.code, c.want)
		}
	}
}

func TestEvalVectorsFromFiles(t *testing.T) {
	args := append(evalSet(t), "--json", "--arm", "dense",
		"--vectors", evalFile(t, "v.npy", npy([][]float32{{1, 0}, {0, 1}, {1, 1}})), "--ids", evalFile(t, "ids.txt", "a#0\na#1\nb#0\n"),
		"--query-vectors", evalFile(t, "q.npy", npy([][]float32{{1, 0}, {0, 1}})), "--query-ids", evalFile(t, "qids.txt", "c/1\nc/2\n"))
	r := evalReport(t, fine(t, "", args...))
	if len(r.Methods) != 4 { // without those that embed other texts
		t.Errorf("%d methods", len(r.Methods))
	}
	if r.Arm != eval.ArmDense || r.Model.Provider != "file" || r.Model.Dimension != 2 || r.Methods[0].Slice(eval.SliceAll).Metrics[eval.Hit1].Mean != 1 {
		t.Errorf("model %+v, pointwise %+v", r.Model, r.Methods[0].Slices[0])
	}
}

// evalPolicy is the file of a policy that departs from the default.
func evalPolicy(t *testing.T, name string, change func(*policy.Policy)) string {
	t.Helper()
	p := policy.Default()
	p.Name = name
	change(p)
	raw, err := p.Encode(policy.YAML)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// evalVectors is a set with vectors from files, as testwords:?model=apples,cost
// makes them of the questions.
func evalVectors(t *testing.T) (args []string, dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, content := range map[string]string{
		"corpus.jsonl":        evalCorpus,
		"conversations.jsonl": strings.Replace(evalConversations, `"gold":["a#0"]`, `"answer":"Apples are red.","gold":["a#0"]`, 1),
		"v.npy":               npy([][]float32{{1, 0}, {0, 1}, {1, 1}}), "ids.txt": "a#0\na#1\nb#0\n",
		"q.npy": npy([][]float32{{1.1, 0.1}, {0.1, 1.1}}), "qids.txt": "c/1\nc/2\n",
		"answer.policy.yaml": evalPolicy(t, "answering", func(p *policy.Policy) { p.Arms.Stage, p.Arms.Answer.Enabled = policy.StageActive, true }),
		"reply.policy.yaml":  evalPolicy(t, "hearing", func(p *policy.Policy) { p.Reply.Stage = policy.StageActive }),
		"rrf.policy.yaml":    evalPolicy(t, "ranks", func(p *policy.Policy) { p.Fusion.Version = policy.RRFV1 }),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	return []string{"eval", "--corpus", at("corpus.jsonl"), "--conversations", at("conversations.jsonl"), "--bootstrap-samples", "20", "--vectors", at("v.npy"),
		"--ids", at("ids.txt"), "--query-vectors", at("q.npy"), "--query-ids", at("qids.txt")}, dir
}

// A method that embeds more than the files have is refused before anything is
// measured, and measured with a model.
func TestEvalVectorsAndModel(t *testing.T) {
	args, dir := evalVectors(t)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--baselines", "history"}, "method history embeds the questions so far"},
		{[]string{"--policy", filepath.Join(dir, "answer.policy.yaml")}, "method answering embeds the replies (arms.answer)"},
		{[]string{"--policy", filepath.Join(dir, "reply.policy.yaml"), "--arm", "dense"}, "method hearing embeds the replies (reply)"},
	} {
		r := mmplug(t, "", slices.Concat(args, c.args)...)
		if r.code != exitUsage || !strings.Contains(r.err, c.want) || !strings.Contains(r.err, "--embed") || strings.Count(r.err, "\n") != 1 {
			t.Errorf("%v: exit status %d, %s", c.args, r.code, r.err)
		}
		cache := filepath.Join(t.TempDir(), "cache")
		for range 2 { // the second from the cache
			out := fine(t, "", slices.Concat(args, c.args, []string{"--json", "--embed", "testwords:?model=apples,cost", "--cache", cache})...)
			if m := evalReport(t, out).Model; m.Provider != "file" || m.Model != "v.npy, other texts by testwords: apples,cost" || m.Dimension != 2 {
				t.Errorf("model %+v", m)
			}
		}
		if kept, err := filepath.Glob(filepath.Join(cache, "vectors", "*", "*")); err != nil || len(kept) < 2 {
			t.Errorf("%v: kept vectors %v: %v", c.args, kept, err)
		}
		fine(t, "", slices.Concat(args, c.args, []string{"--arm", "lexical"})...)
	}
	if r := evalReport(t, fine(t, "", append(args, "--json")...)); len(r.Methods) != 4 {
		t.Errorf("%d methods without a model", len(r.Methods))
	}
	if r := evalReport(t, fine(t, "", append(args, "--json", "--embed", "testwords:?model=apples,cost")...)); len(r.Methods) != 5 || r.Methods[1].Name != eval.History {
		t.Errorf("%d methods with a model", len(r.Methods))
	}
	if r := mmplug(t, "", append(args, "--embed", "testwords:?model=do,red")...); r.code != exitOK || !strings.Contains(r.err, "warning: --embed testwords:?model=do,red gives a question another vector than ") {
		t.Errorf("another model: exit status %d, %s", r.code, r.err)
	}
	if r := mmplug(t, "", append(args, "--embed", "testwords:?model=red")...); r.code != exitFailed || !strings.Contains(r.err, "1 components, those of the files 2") || !strings.Contains(r.err, "q.npy") {
		t.Errorf("a model of another dimension: exit status %d, %s", r.code, r.err)
	}
}

func TestEvalVectorFilesRefused(t *testing.T) {
	for _, c := range []struct {
		file, content string
		want          []string
	}{
		{"ids.txt", "a#0\na#0\nb#0\n", []string{"v.npy", "ids.txt", `two vectors of chunk "a#0"`}},
		{"qids.txt", "c/1\nc/1\n", []string{"q.npy", "qids.txt", `two vectors of turn "c/1"`}},
		{"ids.txt", "x\ny\nz\n", []string{"ids.txt", `none of 3 IDs, such as "x", is a chunk of the data`}},
		{"qids.txt", "c/0\nc#1\n", []string{"qids.txt", `none of 2 IDs, such as "c/0", is a turn of the data`, "turns from 1"}},
		{"qids.txt", "c/1\n", []string{"q.npy has 2 vectors", "qids.txt has 1 turn IDs"}},
		{"q.npy", npy([][]float32{{1, 0, 0}, {0, 1, 0}}), []string{"q.npy", "3 components, others 2"}},
	} {
		args, dir := evalVectors(t)
		if err := os.WriteFile(filepath.Join(dir, c.file), []byte(c.content), 0o666); err != nil {
			t.Fatal(err)
		}
		r := mmplug(t, "", args...)
		for _, want := range c.want {
			if r.code != exitFailed || !strings.Contains(r.err, want) || strings.Count(r.err, "\n") != 1 {
				t.Errorf("%s: exit status %d, %q, wanted %q", c.file, r.code, r.err, want)
			}
		}
		if strings.Contains(r.err, "chunk ID") && c.file != "ids.txt" {
			t.Errorf("a file of turns: %s", r.err)
		}
	}
	args, dir := evalVectors(t)
	for name, content := range map[string]string{"ids.txt": "a#0\na#1\nb#0\nold#1\n", "v.npy": npy([][]float32{{1, 0}, {0, 1}, {1, 1}, {1, 2}})} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if r := mmplug(t, "", args...); r.code != exitOK || !strings.Contains(r.err, `ids.txt: 1 of 4 IDs, such as "old#1", are no chunk of the data`) {
		t.Errorf("an ID that the data lacks: exit status %d, %s", r.code, r.err)
	}
}

// The Markdown says of which policies the difference is not that of decoding
// alone.
func TestEvalOwnFusion(t *testing.T) {
	args, dir := evalVectors(t)
	out := filepath.Join(dir, "out")
	for policies, want := range map[string]string{
		"plain": "",
		"plain," + filepath.Join(dir, "rrf.policy.yaml"): "* policy ranks finds candidates by its own fusion, pointwise by the default",
	} {
		fine(t, "", slices.Concat(args, []string{"--policy", policies, "--out", out})...)
		raw, err := os.ReadFile(filepath.Join(out, "report.md"))
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(string(raw), "by its own"); !strings.Contains(string(raw), want) || got > 1 || (got == 1) != (want != "") {
			t.Errorf("%s: %d notes in\n%s", policies, got, raw)
		}
	}
}

func TestEvalRewriter(t *testing.T) {
	var calls atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		w.Header().Set("Content-Type", "application/json")
		switch {
		case strings.HasPrefix(r.URL.Path, "/api/"):
			fmt.Fprintln(w, `{"model":"m","message":{"role":"assistant","content":"price of apples"},"done":true}`) //nolint:errcheck // the client tells
		default:
			fmt.Fprintln(w, `{"choices":[{"message":{"role":"assistant","content":"price of apples"},"finish_reason":"stop"}]}`) //nolint:errcheck // the client tells
		}
	}))
	defer server.Close()
	for _, spec := range []string{"langchaingo:ollama?model=m&server=" + server.URL, "langchaingo:openai?model=m&base_url=" + server.URL + "/v1"} {
		calls.Store(0)
		args := append(evalSet(t), "--json", "--baselines", "llm", "--rewriter", spec, "--cache", t.TempDir())
		first := fine(t, "", args...)
		if calls.Load() != 1 { // the first turn needs no rewriting
			t.Errorf("%s: %d calls", spec, calls.Load())
		}
		if again := fine(t, "", args...); again != first || calls.Load() != 1 {
			t.Errorf("%s: a second run asks again, or reports something else", spec)
		}
		r := evalReport(t, first)
		if m := r.Methods[1]; m.Name != eval.LLM || !strings.HasSuffix(m.Rewriter, "/m") || m.Slice(eval.SliceFollowUp).Metrics[eval.Hit1].Mean != 1 {
			t.Errorf("%s: %+v", spec, m)
		}
	}
	for spec, want := range map[string]string{
		"ollama":                              "wanted langchaingo:ollama",
		"langchaingo:magic?model=m":           `service "magic" is not known`,
		"langchaingo:ollama":                  "parameter model is missing",
		"langchaingo:ollama?model=m&colour=n": `parameter "colour" is not known`,
		"langchaingo:ollama?model=m&server=x": "parameter server is not of the form",
		"langchaingo:openai?model=m&api_key_env=MMPLUG_TEST_UNSET":                   "MMPLUG_TEST_UNSET of api_key_env is not set",
		"langchaingo:openai?model=m&api_key_env=PATH&base_url=http://example.com/v1": "without TLS",
	} {
		if r := mmplug(t, "", append(evalSet(t), "--baselines", "llm", "--rewriter", spec, "--cache", t.TempDir())...); r.code != exitUsage || !strings.Contains(r.err, want) {
			t.Errorf("%s: exit status %d, %s", spec, r.code, r.err)
		}
	}
}

func TestEvalForms(t *testing.T) {
	passages := evalFile(t, "p.jsonl", `{"_id":"d-0-9","title":"T","text":"red apples"}`+"\n"+`{"_id":"e","text":"price list"}`)
	for _, args := range [][]string{
		{"--format", "topiocqa", "--conversations", evalFile(t, "t.json", `[{"Conversation_no":1,"Turn_no":1,"Question":"apples","Topic":"A","Rationale":"red apples"}]`)},
		{"--format", "cast", "--corpus", passages, "--conversations", evalFile(t, "t.json", `[{"number":1,"turn":[{"number":1,"raw_utterance":"apples","manual_rewritten_utterance":"red apples"}]}]`), "--qrels", evalFile(t, "q.txt", "1_1 0 d-0-9 2\n")},
		{"--format", "mtrag", "--corpus", passages, "--conversations", evalFile(t, "q.jsonl", `{"_id":"c<::>1","text":"|user|: apples"}`), "--qrels", evalFile(t, "q.tsv", "query-id\tcorpus-id\tscore\nc<::>1\td-0-9\t1\n")},
	} {
		r := evalReport(t, fine(t, "", append([]string{"eval", "--json", "--bootstrap-samples", "5"}, args...)...))
		if r.Data.Format != args[1] || r.Data.ScoredTurns != 1 || r.Methods[0].Slice(eval.SliceAll).Metrics[eval.NDCG3].Mean != 1 {
			t.Errorf("%s: %+v", args[1], r.Data)
		}
		if args[1] == "cast" && r.Methods[len(r.Methods)-2].Name != eval.Rewritten {
			t.Errorf("rewrites are in the data, methods %+v", r.Methods)
		}
	}
}

// What is measured of a policy is what mmplug ask answers on an index of the same
// chunks.
func TestEvalIsAsk(t *testing.T) {
	data, err := eval.Synthetic(&eval.SyntheticOptions{Documents: 8, Conversations: 6})
	if err != nil {
		t.Fatal(err)
	}
	world, err := eval.NewWorld(data, nil)
	if err != nil {
		t.Fatal(err)
	}
	var chunks []mapmatched.Chunk
	for i := range data.Corpus.Chunks {
		chunks = append(chunks, data.Corpus.Chunks[i].Chunk)
	}
	edges, err := graphbuild.Structure(chunks, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "idx")
	if err := embedded.Write(t.Context(), dir, embedded.Input{Chunks: chunks, Edges: edges}, nil); err != nil {
		t.Fatal(err)
	}
	for _, name := range policy.Builtins() {
		used, err := usePolicy(name)
		if err != nil {
			t.Fatal(err)
		}
		x, err := embedded.Open(t.Context(), dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer x.Close() //nolint:errcheck // only read
		method := eval.PolicyMethod(used.Policy)
		for i := range data.Conversations {
			c := &data.Conversations[i]
			measured, err := method.Rank(t.Context(), world, c, 100)
			if err != nil {
				t.Fatal(err)
			}
			parts, err := used.retrieverParts(t.Context(), x)
			if err != nil {
				t.Fatal(err)
			}
			identify := parts.Identify
			parts.Identify = func(ctx context.Context) (policy.IndexIdentity, error) {
				id, err := identify(ctx)
				id.ChunkPolicy = "" // the data was not cut by a policy
				return id, err
			}
			if parts.Arms, err = used.arms(t.Context(), dir, x, nil); err != nil {
				t.Fatal(err)
			}
			retriever, err := policy.New(t.Context(), used.Policy, parts)
			if err != nil {
				t.Fatal(err)
			}
			for turn := range c.Turns {
				q := policy.Query{Text: c.Turns[turn].Query}
				if turn > 0 {
					q.Answer = c.Turns[turn-1].Answer
				}
				a, err := retriever.Ask(t.Context(), q)
				if err != nil {
					t.Fatal(err)
				}
				for k, candidate := range a.Order {
					if measured[turn].ChunkIDs[k] != candidate.ChunkID {
						t.Fatalf("%s, conversation %d, turn %d: rank %d is %s, ask says %s", name, i, turn, k+1, measured[turn].ChunkIDs[k], candidate.ChunkID)
					}
				}
			}
		}
	}
}

// Vectors of an index measure what the model that made it measures.
func TestEvalVectorsOfAnIndex(t *testing.T) {
	idx, in := embeddedDocs(t, threeWords, 0)
	dir := t.TempDir()
	corpus, talk := filepath.Join(dir, "corpus.jsonl"), filepath.Join(dir, "talk.jsonl")
	var lines strings.Builder
	for _, c := range in.Chunks {
		line, err := json.Marshal(map[string]any{"id": c.ID, "doc": c.Document, "title": c.Title, "section": c.Section, "ordinal": c.Ordinal, "text": c.Text})
		if err != nil {
			t.Fatal(err)
		}
		lines.Write(append(line, '\n'))
	}
	put(t, corpus, lines.String())
	put(t, talk, fmt.Sprintf(`{"conversation_id":"c","turns":[{"turn":1,"query":%q,"answer":"noise","gold":[%q]},{"turn":2,"query":%q,"gold":[%q]}]}`+"\n",
		aboutNoise, in.Chunks[0].ID, aboutRoad, in.Chunks[1].ID))
	args := []string{"eval", "--corpus", corpus, "--conversations", talk, "--policy", "plain,conversational", "--arm", "dense", "--embed", threeWords, "--json", "--bootstrap-samples", "10"}
	want := unmarshal[eval.Report](t, fine(t, "", args...))
	got := unmarshal[eval.Report](t, fine(t, "", append(args, "--index", idx)...))
	for i := range want.Methods {
		if a, b := got.Methods[i].Slice("all").Metrics, want.Methods[i].Slice("all").Metrics; !maps.Equal(a, b) {
			t.Errorf("%s: %v of the index, %v of the model", want.Methods[i].Name, a, b)
		}
	}
	if got.Model == nil || want.Model == nil || *got.Model != *want.Model {
		t.Errorf("model %+v of the index, %+v", got.Model, want.Model)
	}
	fails(t, exitUsage, "", []string{"eval", "--corpus", corpus, "--conversations", talk, "--index", idx}, "give the model that made it with --embed")
	fails(t, exitUsage, "", append(args, "--index", idx, "--vectors", "v.npy"), "leave out the files")
	fails(t, exitFailed, "", append(args, "--index", handbookIdx(t)), "it has no vectors")
	fails(t, exitFailed, "", append(args, "--index", idx, "--embed", "testwords:counter?model=road,noise"), "another model")
	other := filepath.Join(dir, "other.jsonl")
	put(t, other, strings.Replace(lines.String(), fmt.Sprintf(`"id":%q`, in.Chunks[2].ID), `"id":"elsewhere.md"`, 1))
	fails(t, exitFailed, "", append(args, "--corpus", other, "--index", idx), `no vector of chunk "elsewhere.md"`)
}
