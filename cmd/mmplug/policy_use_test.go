package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mapmatched/mmplug/adapters/embedded"
	"github.com/mapmatched/mmplug/policy"
)

// policyFile writes a policy with something changed.
func policyFile(t *testing.T, name string, change func(p *policy.Policy)) string {
	t.Helper()
	p := policy.Default()
	p.Name, _, _ = strings.Cut(name, ".")
	if change != nil {
		change(p)
	}
	data, err := p.Encode(policy.YAML)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), name)
	put(t, path, string(data))
	return path
}

func digestOf(t *testing.T, path string) string {
	t.Helper()
	p, err := policy.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return p.Digest()
}

// contextual has the context arms active.
func contextual(p *policy.Policy) { p.Arms.Stage = policy.StageActive }

// The policy that is followed without being named is conversational, and an
// answer, its trace and a session say so.
func TestPolicyConversationalIsTheDefaultAndIsRecorded(t *testing.T) {
	idx, session := handbookIdx(t), filepath.Join(t.TempDir(), "s.json")
	digest := digestOf(t, "conversational")
	asked := fine(t, "", "ask", "--index", idx, "--session", session, "--json", "How long does an access token last?")
	if named := fine(t, "", "ask", "--index", idx, "--policy", "conversational", "--json", "How long does an access token last?"); named != asked {
		t.Errorf("with --policy conversational\n%s, else\n%s", named, asked)
	}
	got := unmarshal[struct {
		Turns []struct {
			Policy map[string]string
			Trace  struct {
				PolicyDigest string `json:"policy_digest"`
			}
		}
	}](t, asked).Turns[0]
	if got.Policy["name"] != "conversational" || got.Policy["digest"] != digest || got.Trace.PolicyDigest != digest {
		t.Errorf("the answer says %+v", got)
	}
	if file := get(t, session); !strings.Contains(file, `"policy":{"name":"conversational","digest":"`+digest+`"}`) {
		t.Errorf("the session says %.200s", file)
	}
	asked = fine(t, "", "ask", "--index", idx, "--policy", "plain", "--json", "How long does an access token last?")
	for _, absent := range []string{`"notes"`, `"activation"`, `"degraded"`, `"score_model": "geometric_v1"`} {
		if strings.Contains(asked, absent) {
			t.Errorf("under plain the answer has %s", absent)
		}
	}
}

func TestPolicyOfAConversation(t *testing.T) {
	idx := handbookIdx(t)
	team := policyFile(t, "team.policy.yaml", func(p *policy.Policy) {
		contextual(p)
		p.Decay.Stage, p.Activation.Stage = policy.StageActive, policy.StageActive
		p.Arms.Gate.Stage = policy.StageActive
	})
	session := filepath.Join(t.TempDir(), "s.json")
	whole := turnsOf(t, fine(t, "", "ask", "--index", idx, "--policy", team, "--json", "How long does an access token last?", "How do I renew it?"))
	first := turnsOf(t, fine(t, "", "ask", "--index", idx, "--policy", team, "--session", session, "--json", "How long does an access token last?"))
	second := turnsOf(t, fine(t, "", "ask", "--index", idx, "--policy", team, "--session", session, "--json", "How do I renew it?"))
	if !slices.Equal(whole, append(first, second...)) {
		t.Errorf("in one go\n%s\nwith a session\n%s\n%s", whole, first, second)
	}
	for _, want := range []string{`"score_model":"geometric_v1"`, `"decay":0.7`, `"activation":"`, `"gate":{`, `"arm_history":`, digestOf(t, team)} {
		if !strings.Contains(second[0], want) {
			t.Errorf("the answer lacks %s", want)
		}
	}
	debug := fine(t, "", "ask", "--index", idx, "--policy", team, "--decay-differences", "--json", "How long does an access token last?")
	if strings.Contains(first[0], `"decay_differences"`) || !strings.Contains(debug, `"decay_differences"`) {
		t.Error("--decay-differences alone notes where the formulas of decay differ")
	}
	if trace := fine(t, "", "trace", "show", "--json", session); !strings.Contains(trace, digestOf(t, team)) || !strings.Contains(trace, `"gate"`) {
		t.Errorf("the trace of the session is %s", trace)
	}
	fails(t, exitFailed, "", []string{"ask", "--index", idx, "--session", session, "renew"},
		"made under policy team with the digest "+digestOf(t, team)+", not under conversational with "+digestOf(t, "conversational"), "start a new session file")
	text := fine(t, "", "ask", "--index", idx, "--policy", policyFile(t, "shy.policy.yaml", func(p *policy.Policy) {
		p.Activation.Stage, p.Activation.TOn, p.Activation.TOff = policy.StageActive, 1, 0.99
	}), "How long does an access token last?")
	if !strings.Contains(text, "suppress: the policy shows no passage at confidence 0.50") || strings.Contains(text, "decoded") {
		t.Errorf("a suppressed answer reads\n%s", text)
	}
}

// Two traces under different policies are told apart.
func TestTraceDiffNamesThePolicies(t *testing.T) {
	idx, dir := handbookIdx(t), t.TempDir()
	a, b := filepath.Join(dir, "a.json"), filepath.Join(dir, "b.json")
	team := policyFile(t, "team.policy.yaml", contextual)
	fine(t, "", "ask", "--index", idx, "--session", a, "--policy", "plain", "How do I renew it?")
	fine(t, "", "ask", "--index", idx, "--session", b, "--policy", team, "How do I renew it?")
	r := mmplug(t, "", "trace", "diff", a, b)
	if r.code != exitCheck || !strings.Contains(r.out, "different settings, so their scores are not comparable\npolicy is "+digestOf(t, "plain")+" in the first, "+digestOf(t, team)+" in the second") {
		t.Errorf("exit status %d, %s%s", r.code, r.out, r.err)
	}
}

func TestShadowPolicyChangesNothingAndIsReported(t *testing.T) {
	idx, log := handbookIdx(t), filepath.Join(t.TempDir(), "shadow.jsonl")
	questions := []string{"How long does an access token last?", "How do I renew it?", "zzz", "What happens when it expires?"}
	ask := func(extra ...string) string {
		t.Helper()
		return fine(t, "", slices.Concat([]string{"ask", "--index", idx, "--policy", "plain", "--json"}, extra, questions)...)
	}
	team := policyFile(t, "team.policy.yaml", contextual)
	if plain, shadowed := ask(), ask("--shadow-policy", team, "--shadow-log", log); plain != shadowed {
		t.Errorf("in shadow\n%s, else\n%s", shadowed, plain)
	}
	report := unmarshal[policy.ShadowReport](t, fine(t, "", "policy", "shadow-report", "--json", log))
	var parts []string
	for _, row := range report.Rows {
		parts = append(parts, row.Part)
		if row.Turns != len(questions) || row.Errors > 0 {
			t.Errorf("row %+v", row)
		}
	}
	if strings.Join(parts, " ") != "activation policy" || report.Rows[1].Version != digestOf(t, team) || report.Skipped > 0 {
		t.Errorf("report %+v", report)
	}
	text := fine(t, "", "policy", "shadow-report", log)
	if !strings.HasPrefix(text, "part        version  ") || !strings.Contains(text, digestOf(t, team)) {
		t.Errorf("report\n%s", text)
	}
	put(t, log+".1", get(t, log)) // an older file
	if older := unmarshal[policy.ShadowReport](t, fine(t, "", "policy", "shadow-report", "--json", log)); older.Rows[0].Turns != 2*len(questions) {
		t.Errorf("older files are not read: %+v", older.Rows[0])
	}
	junk := filepath.Join(t.TempDir(), "junk")
	put(t, junk, "not a log\n")
	fails(t, exitFailed, "", []string{"policy", "shadow-report", junk}, junk+": no line of it is a shadow record")
	fails(t, exitFailed, "", []string{"policy", "shadow-report", junk + "er"}, "cannot read "+junk+"er", "check the path")
}

func TestShadowFlagsAreChecked(t *testing.T) {
	idx, log := handbookIdx(t), filepath.Join(t.TempDir(), "shadow.jsonl")
	stale := policyFile(t, "stale.policy.yaml", func(p *policy.Policy) { p.Chunking.Limit = 99 })
	ask := func(flags ...string) []string {
		return slices.Concat([]string{"ask", "--index", idx}, flags, []string{"renew"})
	}
	fails(t, exitUsage, "", ask("--shadow-policy", stale), "give --shadow-log FILE with --shadow-policy")
	fails(t, exitUsage, "", ask("--shadow-log", "-"), "--shadow-log: standard output has the answers already; name a file")
	fails(t, exitFailed, "", ask("--shadow-log", filepath.Join(log, "x")), "cannot write", "check the path")
	fails(t, exitFailed, "", ask("--shadow-log", log, "--shadow-policy", "plian"), `shadow policy: no built-in policy is named "plian"; did you mean "plain"?`)
	fails(t, exitFailed, "", ask("--shadow-log", log, "--shadow-policy", stale), "shadow policy stale", "stale index", `the policy says "markdown_v1+text_v1+html_v1 limit=99 bytes"`)
	fails(t, exitFailed, "", ask("--clusters", log+"none"), "cannot read "+log+"none")
}

// An index of another chunk policy, lexical scoring or maximum distance is
// refused with what differs and the way out, at once and with a session.
func TestPolicyThatDoesNotFitTheIndexIsRefused(t *testing.T) {
	idx, session := handbookIdx(t), filepath.Join(t.TempDir(), "s.json")
	fine(t, "", "ask", "--index", idx, "--session", session, "renew")
	for want, change := range map[string]func(p *policy.Policy){
		`the chunk policy is "markdown_v1+text_v1+html_v1", the policy says "fixed_v1 limit=2000 bytes"`: func(p *policy.Policy) { p.Chunking.Version = policy.FixedV1 },
		`the policy says "markdown_v1+text_v1+html_v1 maximum_distance=4"`:                               func(p *policy.Policy) { p.Graph.MaximumDistance = 4 },
		`the policy says "markdown_v1+text_v1+html_v1 link=3"`:                                           func(p *policy.Policy) { p.Graph.Weights = map[string]float64{"link": 3} },
		`lexical.k1 is 1.2, the policy says 2`:                                                           func(p *policy.Policy) { p.Lexical.K1 = 2 },
		`there are no vectors, the policy says vectors.model "e5"`:                                       func(p *policy.Policy) { p.Vectors.Provider, p.Vectors.Model, p.Vectors.Dimension = "onnx", "e5", 8 },
	} {
		path := policyFile(t, "other.policy.yaml", change)
		rebuild := ": build it again with mmplug index DIR --out IDX --policy " + path
		fails(t, exitFailed, "", []string{"ask", "--index", idx, "--policy", path, "renew"}, idx+": ", "stale index", want, rebuild)
		fails(t, exitFailed, "", []string{"ask", "--index", idx, "--policy", path, "--session", session, "renew"}, idx+": ", "stale index", want, rebuild)
	}
	for want, change := range map[string]func(p *policy.Policy){
		"rerank.mode is sync, which needs a reranker":      func(p *policy.Policy) { p.Rerank.Mode = policy.RerankSync },
		"clustering.stage is active, which needs clusters": func(p *policy.Policy) { p.Clustering.Stage = policy.StageActive },
	} {
		fails(t, exitFailed, "", []string{"ask", "--index", idx, "--policy", policyFile(t, "needy.policy.yaml", change), "renew"}, want)
	}
}

// The index is made by the policy: its chunking, the lengths of its edges and
// its maximum distance.
func TestIndexByPolicy(t *testing.T) {
	dir, out := docs(t), filepath.Join(t.TempDir(), "docs.idx")
	tokenizerFile := get(t, filepath.Join("..", "..", "graphbuild", "tokenizer", "testdata", "wordpiece-uncased.json"))
	sum := sha256.Sum256([]byte(tokenizerFile))
	pinned := func(version string, limit int) func(p *policy.Policy) {
		return func(p *policy.Policy) {
			p.Chunking = policy.Chunking{Version: version, Limit: limit, Unit: policy.UnitTokens, Tokenizer: "models/t.json", TokenizerSHA256: hex.EncodeToString(sum[:])}
		}
	}
	for name, c := range map[string]struct {
		change func(p *policy.Policy)
		policy string
		chunks int
	}{
		"plain":      {nil, "markdown_v1+text_v1+html_v1", 5},
		"small":      {func(p *policy.Policy) { p.Chunking.Limit = 20 }, "markdown_v1+text_v1+html_v1 limit=20 bytes", 17},
		"fixed":      {func(p *policy.Policy) { p.Chunking.Version, p.Chunking.Limit = policy.FixedV1, 50 }, "fixed_v1 limit=50 bytes", 6},
		"fixed-tok":  {pinned(policy.FixedV1, 1000), "fixed_v1 limit=1000 tokens tokenizer=sha256:" + hex.EncodeToString(sum[:]), 3},
		"paragraphs": {pinned(policy.M7ChunkPreV1, 1000), "m7_chunk_pre_v1 limit=1000 tokens tokenizer=sha256:" + hex.EncodeToString(sum[:]), 3},
		"graph": {func(p *policy.Policy) {
			p.Graph.MaximumDistance, p.Graph.Weights = 4, map[string]float64{"link": 3, "next": 0.5}
		},
			"markdown_v1+text_v1+html_v1 maximum_distance=4 link=3 next=0.5", 5},
	} {
		path := policyFile(t, name+".policy.yaml", c.change)
		put(t, filepath.Join(filepath.Dir(path), "models", "t.json"), tokenizerFile)
		r := mmplug(t, "", "index", dir, "--out", out, "--policy", path, "--json")
		if r.code != exitOK {
			t.Fatalf("%s: %s", name, r.err)
		}
		got := unmarshal[struct {
			Policy   map[string]string
			Manifest embedded.Manifest
		}](t, r.out)
		if got.Manifest.ChunkPolicy != c.policy || got.Manifest.Counts.Chunks != c.chunks || got.Policy["name"] != name || got.Policy["digest"] != digestOf(t, path) {
			t.Errorf("%s: policy %v, chunk policy %q, %d chunks; want %q and %d", name, got.Policy, got.Manifest.ChunkPolicy, got.Manifest.Counts.Chunks, c.policy, c.chunks)
		}
		fine(t, "", "ask", "--index", out, "--policy", path, "noise")
		if name != "graph" {
			continue
		}
		if got.Manifest.Graph.MaximumDistance != 4 {
			t.Errorf("maximum distance %v", got.Manifest.Graph.MaximumDistance)
		}
		x, err := embedded.Open(t.Context(), out, nil)
		if err != nil {
			t.Fatal(err)
		}
		for e, err := range x.Edges(t.Context()) {
			if want := map[string]float64{"link": 3, "next": 0.5, "parent": 1}[string(e.Type)]; err != nil || e.Weight != want {
				t.Errorf("edge %+v (%v), want length %v", e, err, want)
			}
		}
		if err := x.Close(); err != nil {
			t.Fatal(err)
		}
	}
	// HTML is left out, and said to be, by what does not read it.
	mixed := docs(t)
	put(t, filepath.Join(mixed, "page.HTML"), "<p>noise</p>")
	for version, change := range map[string]func(p *policy.Policy){
		policy.FixedV1: func(p *policy.Policy) { p.Chunking.Version = policy.FixedV1 }, policy.M7ChunkPreV1: pinned(policy.M7ChunkPreV1, 512),
	} {
		path := policyFile(t, "mixed.policy.yaml", change)
		put(t, filepath.Join(filepath.Dir(path), "models", "t.json"), tokenizerFile)
		r := mmplug(t, "", "index", mixed, "--out", out, "--policy", path)
		if want := "warning: page.HTML: HTML, which " + version + " does not read\n"; r.code != exitOK || !strings.HasPrefix(r.err, want) || !strings.Contains(r.out, ": 3 documents, ") {
			t.Errorf("%s: exit status %d, output %q, standard error %q", version, r.code, r.out, r.err)
		}
	}
	lost := policyFile(t, "lost.policy.yaml", pinned(policy.M7ChunkPreV1, 512))
	fails(t, exitFailed, "", []string{"index", dir, "--out", out, "--policy", lost}, `policy lost: chunking.tokenizer "models/t.json"`, "no such file")
	put(t, filepath.Join(filepath.Dir(lost), "models", "t.json"), tokenizerFile+" ")
	fails(t, exitFailed, "", []string{"index", dir, "--out", out, "--policy", lost}, `policy lost: chunking.tokenizer "models/t.json"`, "stale index", hex.EncodeToString(sum[:]))
	fails(t, exitFailed, "", []string{"index", dir, "--out", out, "--policy", "plian"}, `did you mean "plain"?`)
}

func TestDecodeUnderAPolicy(t *testing.T) {
	const turns = `"turns":[[["a",5],["b",1]],[["b",3],["c",3.5]]]`
	const graph = `"edges":[["a","b",1]]`
	problem := func(options, graph string) string {
		return `{"options":{` + options + `},"graph":{` + graph + `},` + turns + `}`
	}
	path := policyFile(t, "lag.policy.yaml", func(p *policy.Policy) {
		p.Decode.FixedLag, p.Decode.TransitionWeight, p.Graph.MaximumDistance = new(1), 0.5, 4
	})
	plain := fine(t, problem(``, graph), "decode", "--json", "-")
	under := fine(t, problem(``, graph), "decode", "--json", "--policy", path, "-")
	same := fine(t, problem(`"fixed_lag":1,"transition_weight":0.5`, graph+`,"maximum_distance":4`), "decode", "--json", "-")
	if strings.Contains(plain, "policy_digest") || !strings.Contains(under, digestOf(t, path)) {
		t.Error("the digest is there exactly when a policy is followed")
	}
	if got := withoutDigest(t, under); got != withoutDigest(t, same) {
		t.Errorf("under the policy\n%s\nwith its settings as options\n%s", got, same)
	}
	if again := fine(t, problem(`"fixed_lag":1,"transition_weight":0.5`, graph+`,"maximum_distance":4`), "decode", "--json", "--policy", path, "-"); again != under {
		t.Error("options that say the same as the policy change something")
	}
	for _, c := range []struct{ options, graph, want string }{
		{`"transition_weight":2`, graph, "options.transition_weight is 2, policy lag says 0.5: leave it out"},
		{`"emission_weight":0`, graph, "options.emission_weight is 0, policy lag says 1"},
		{`"fixed_lag":0`, graph, "options.fixed_lag is 0, policy lag says 1"},
		{`"context_limit":3`, graph, "options.context_limit is 3, policy lag says null"},
		{`"context_radius":3`, graph, "options.context_radius is 3, policy lag says 1"},
		{`"candidate_limit":3`, graph, "options.candidate_limit is 3, policy lag says 20"},
		{`"beam":3`, graph, "options.beam is 3, policy lag says 0"},
		{`"break_distance":3`, graph, "options.break_distance is 3, policy lag says 0"},
		{`"on_empty":"error"`, graph, "options.on_empty is error, policy lag says gap"},
		{`"rank_by":"filtered_posterior"`, graph, "options.rank_by is filtered_posterior, policy lag says max_marginal"},
		{`"score_normalization":"none"`, graph, "options.score_normalization is none, policy lag says zscore"},
		{`"temperature":3`, graph, "options.temperature is 3, policy lag says 1"},
		{``, graph + `,"maximum_distance":5`, "graph.maximum_distance is 5, policy lag says 4"},
	} {
		fails(t, exitFailed, problem(c.options, c.graph), []string{"decode", "--policy", path, "-"}, "standard input: "+c.want)
	}
	fails(t, exitFailed, problem(`"beam":3,"temperature":3`, graph), []string{"decode", "--policy", path, "-"}, "options.beam is 3", "options.temperature is 3")
	for key, change := range map[string]func(p *policy.Policy){
		"arms.stage is active": func(p *policy.Policy) { p.Arms.Stage = policy.StageActive },
		"transition.stage is active": func(p *policy.Policy) {
			p.Transition.Stage = policy.StageActive
			p.Transition.P, p.Transition.Q = map[string]float64{"stay": 0.5, "jump": 0.5}, map[string]float64{"stay": 0.5, "jump": 0.5}
		},
		"decay.stage is active":      func(p *policy.Policy) { p.Decay.Stage = policy.StageActive },
		"clustering.stage is active": func(p *policy.Policy) { p.Clustering.Stage = policy.StageActive },
		"rerank.mode is sync":        func(p *policy.Policy) { p.Rerank.Mode = policy.RerankSync },
		"rerank.mode is deferred":    func(p *policy.Policy) { p.Rerank.Mode = policy.RerankDeferred },
		"activation.stage is active": func(p *policy.Policy) { p.Activation.Stage = policy.StageActive },
	} {
		fails(t, exitFailed, problem(``, graph), []string{"decode", "--policy", policyFile(t, "more.policy.yaml", change), "-"}, "policy more: "+key+", which decode cannot follow")
	}
	fails(t, exitFailed, problem(``, graph), []string{"decode", "--policy", policyFile(t, "more.policy.yaml", func(p *policy.Policy) {
		p.Decay.Stage, p.Activation.Stage = policy.StageActive, policy.StageActive
	}), "-"}, "decay.stage is active", "activation.stage is active")
	shadow := policyFile(t, "shadow.policy.yaml", func(p *policy.Policy) { p.Decay.Stage = policy.StageShadow })
	fine(t, problem(``, graph), "decode", "--policy", shadow, "-")
	fails(t, exitFailed, problem(``, graph), []string{"decode", "--policy", path + "x.yaml", "-"}, "no such file")
}

// withoutDigest is output without the lines of policy digests.
func withoutDigest(t *testing.T, text string) string {
	t.Helper()
	return strings.Join(slices.DeleteFunc(strings.Split(text, "\n"), func(line string) bool { return strings.Contains(line, `"policy_digest"`) }), "\n")
}

// A policy that is rewritten while a chat runs is noticed, in one line, and not
// adopted.
func TestChatNoticesThatItsPolicyChanged(t *testing.T) {
	idx := handbookIdx(t)
	path := policyFile(t, "team.policy.yaml", contextual)
	digest := digestOf(t, path)
	was := get(t, path)
	in, questions := io.Pipe()
	out, answers := io.Pipe()
	var stderr strings.Builder
	done := make(chan int)
	go func() {
		done <- run(context.WithoutCancel(t.Context()), []string{"chat", "--index", idx, "--policy", path, "--json"}, stdio{in, answers, &stderr})
		answers.Close() //nolint:errcheck // never fails
	}()
	decoder := json.NewDecoder(out)
	ask := func(text string) {
		t.Helper()
		if _, err := io.WriteString(questions, text+"\n"); err != nil {
			t.Fatal(err)
		}
		var answer struct{ Policy namedPolicy }
		if err := decoder.Decode(&answer); err != nil || answer.Policy.Digest != digest {
			t.Errorf("%q is answered under %+v (%v), want %s", text, answer.Policy, err, digest)
		}
	}
	ask("How long does an access token last?")
	put(t, path, strings.Replace(was, "gamma: 0.5", "gamma: 0.25", 1))
	ask("How do I renew it?")
	ask("What happens when it expires?")
	put(t, path, was)
	ask("And then?")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	ask("How do I renew it?")
	if err := questions.Close(); err != nil {
		t.Fatal(err)
	}
	if code := <-done; code != exitOK {
		t.Errorf("exit status %d: %s", code, &stderr)
	}
	lines := strings.Split(strings.TrimSuffix(stderr.String(), "\n"), "\n")
	if len(lines) != 2 || !strings.Contains(lines[0], "was rewritten and has the digest ") || !strings.Contains(lines[1], "it was removed") ||
		!strings.Contains(lines[0], "the policy with digest "+digest+" stays in force") || !strings.HasPrefix(lines[0], "warning: policy: "+path) {
		t.Errorf("standard error\n%s", &stderr)
	}
}

func TestClustersAreAFeatureOfAsk(t *testing.T) {
	idx, dir := handbookIdx(t), t.TempDir()
	clusters, log := filepath.Join(dir, "c.json"), filepath.Join(dir, "shadow.jsonl")
	put(t, clusters, `{"policy":"cluster_shadow_pre_v1","threshold":0.3,"dimension":1,"chunks":2,"clusters":[
{"members":["access-tokens.md#lifetime","access-tokens.md#renewing"],"centroid":[1],"medoid":"access-tokens.md#lifetime","radius":0,"keywords":[]}]}
`)
	questions := []string{"How long does an access token last?", "How do I renew it?"}
	plain := fine(t, "", append([]string{"ask", "--index", idx, "--json"}, questions...)...)
	shadow := fine(t, "", append([]string{"ask", "--index", idx, "--json", "--clusters", clusters, "--shadow-log", log}, questions...)...)
	if plain != shadow {
		t.Error("clusters in shadow change the answers")
	}
	if text := get(t, log); !strings.Contains(text, `"outcome":"same","part":"clustering"`) {
		t.Errorf("the log is\n%s", text)
	}
	active := policyFile(t, "active.policy.yaml", func(p *policy.Policy) { p.Clustering.Stage = policy.StageActive })
	if out := fine(t, "", append([]string{"ask", "--index", idx, "--json", "--policy", active, "--clusters", clusters}, questions...)...); !strings.Contains(out, `"same_cluster": 1`) {
		t.Error("no candidate has the score part same_cluster")
	}
}

// A policy that pins a model is followed with that model only, and by its arms.
func TestPolicyThatPinsAModel(t *testing.T) {
	dir, out := docs(t), filepath.Join(t.TempDir(), "docs.idx")
	pins := func(model string) string {
		return policyFile(t, "team.policy.yaml", func(p *policy.Policy) {
			p.Vectors.Provider, p.Vectors.Model, p.Vectors.Dimension = "testwords:counter", model, 3
			p.Decay.Stage = policy.StageActive
		})
	}
	team, other := pins("road,noise,plain"), pins("sea,moon,tide")
	fails(t, exitFailed, "", []string{"index", dir, "--out", out, "--policy", team}, `policy team pins the vectors of model "road,noise,plain": give that model with --embed`)
	fails(t, exitFailed, "", []string{"index", dir, "--out", out, "--policy", other, "--embed", threeWords}, "policy team pins another model than --embed "+threeWords)
	if r := mmplug(t, "", "index", dir, "--out", out, "--policy", team, "--embed", threeWords); r.code != exitOK {
		t.Fatal(r.err)
	}
	asked := fine(t, "", "ask", "--index", out, "--policy", team, "--embed", threeWords, "--json", "noise on the road", "roads")
	for _, want := range []string{`"arm_dense":`, `"arm_lexical":`, `"sim":`, `"decay":`} {
		if !strings.Contains(asked, want) {
			t.Errorf("the answer lacks %s", want)
		}
	}
	ask := func(flags ...string) []string {
		return slices.Concat([]string{"ask", "--index", out}, flags, []string{"roads"})
	}
	fails(t, exitFailed, "", ask("--policy", team), "give that model with --embed")
	fails(t, exitUsage, "", ask("--policy", team, "--arm", "lexical"), "policy team says by what arms passages are found: leave out --arm")
	fails(t, exitFailed, "", ask("--policy", other, "--embed", threeWords), "stale index", `vectors.model is "road,noise,plain", the policy says "sea,moon,tide"`)
	fails(t, exitFailed, "", ask("--policy", policyFile(t, "third.policy.yaml", func(p *policy.Policy) {
		p.Vectors.Provider, p.Vectors.Model, p.Vectors.Dimension = "testwords:counter", "road,noise,plain", 3
		p.Fusion.Arms["third"] = policy.FusionArm{Weight: 1}
	}), "--embed", threeWords), "there is no arm for fusion.arms.third")
	dense := unmarshal[struct {
		Turns []struct{ Ranking []any }
	}](t, fine(t, "", slices.Concat(ask("--embed", threeWords), []string{"--json"})...))
	if len(dense.Turns) != 1 || len(dense.Turns[0].Ranking) == 0 {
		t.Errorf("by vectors alone under plain: %+v", dense)
	}
}

// An index that is made under a policy answers under it, whatever the policy
// says of words.
func TestIndexFollowsTheLexicalSection(t *testing.T) {
	dir := docs(t)
	ask := func(change func(l *policy.Lexical)) (answer, out string) {
		t.Helper()
		out = filepath.Join(t.TempDir(), "docs.idx")
		path := policyFile(t, "team.policy.yaml", func(p *policy.Policy) { change(&p.Lexical) })
		if r := mmplug(t, "", "index", dir, "--out", out, "--policy", path); r.code != exitOK {
			t.Fatal(r.err)
		}
		return withoutDigest(t, fine(t, "", "ask", "--index", out, "--policy", path, "--json", "noise on the road")), out
	}
	scores := regexp.MustCompile(`"raw_emission_score": [0-9.]+`)
	plain, _ := ask(func(*policy.Lexical) {})
	for name, change := range map[string]func(l *policy.Lexical){
		"k1 above": func(l *policy.Lexical) { l.K1 = 2 }, "k1 zero": func(l *policy.Lexical) { l.K1 = 0 },
		"b one": func(l *policy.Lexical) { l.B = 1 }, "b zero": func(l *policy.Lexical) { l.B = 0 },
	} {
		answer, out := ask(change)
		if slices.Equal(scores.FindAllString(answer, -1), scores.FindAllString(plain, -1)) {
			t.Errorf("%s: the scores are those of the defaults", name)
		}
		fails(t, exitFailed, "", []string{"ask", "--index", out, "noise"}, "stale index", "lexical.")
	}
	out := filepath.Join(t.TempDir(), "docs.idx")
	other := policyFile(t, "other.policy.yaml", func(p *policy.Policy) { p.Lexical.StopwordsSHA256 = strings.Repeat("0", 64) })
	fails(t, exitFailed, "", []string{"index", dir, "--out", out, "--policy", other}, "policy other: lexical.stopwords_sha256 is 000", "the only stopwords there are have "+policy.DefaultStopwordsSHA256)
	huge := policyFile(t, "huge.policy.yaml", func(p *policy.Policy) { p.Lexical.K1 = 1e300 })
	fails(t, exitFailed, "", []string{"index", dir, "--out", out, "--policy", huge}, "policy huge: lexical: k1 of BM25 is 1e+300")
	if _, err := os.Stat(out); !os.IsNotExist(err) {
		t.Errorf("an index was begun: %v", err)
	}
}
