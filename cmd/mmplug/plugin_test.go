package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mapmatched/mmplug/plugins"
	"github.com/mapmatched/mmplug/policy"
)

// builtPlugins is a directory with the two rerankers, built once. It goes with
// the index of the handbook.
var builtPlugins = sync.OnceValues(func() (string, error) {
	index, err := handbookIndex()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(filepath.Dir(index), "plugins")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return "", err
	}
	cmd := exec.Command("go", "build", "-o", dir, modulePath+"/plugins/cmd/mmplug-reranker-overlap", modulePath+"/plugins/cmd/mmplug-reranker-mmr")
	cmd.Stderr = os.Stderr
	return dir, cmd.Run()
})

// pluginDir is a directory of the test's own with the two rerankers.
func pluginDir(t *testing.T) string {
	t.Helper()
	built, err := builtPlugins()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, name := range names(t, built) {
		if err := os.Link(filepath.Join(built, name), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestPluginDirectory(t *testing.T) {
	dir := pluginDir(t)
	list := func() []plugins.Entry {
		t.Helper()
		return unmarshal[struct{ Plugins []plugins.Entry }](t, fine(t, "", "plugin", "list", "--json", dir)).Plugins
	}
	if got := list(); len(got) != 2 || got[0].Name != "mmr" || got[1].Name != "overlap" || got[0].Locked != nil {
		t.Errorf("before the lock: %+v", got)
	}
	r := mmplug(t, "", "plugin", "verify", dir)
	if r.code != exitCheck || strings.Count(r.out, "failed") != 2 || r.err != "" {
		t.Errorf("verify before the lock: exit status %d, %s%s", r.code, r.out, r.err)
	}
	if out := fine(t, "", "plugin", "lock", dir); !strings.Contains(out, "overlap  reranker  1.0.0") || !strings.Contains(out, "plugins.lock: 2 plugins") {
		t.Errorf("lock: %s", out)
	}
	if got := list(); got[0].Locked == nil || got[0].Locked.OS != runtime.GOOS {
		t.Errorf("after the lock: %+v", got)
	}
	if out := fine(t, "", "plugin", "list", dir); !strings.Contains(out, "mmplug-reranker-mmr") || strings.Contains(out, " - ") {
		t.Errorf("list: %s", out)
	}
	fine(t, "", "plugin", "verify", dir)

	path := filepath.Join(dir, "mmplug-reranker-mmr")
	program := get(t, path)
	if err := os.Remove(path); err != nil { // it is linked to the one of other tests
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(program+"!"), 0o755); err != nil {
		t.Fatal(err)
	}
	r = mmplug(t, "", "plugin", "verify", "--json", dir)
	findings := unmarshal[struct {
		Plugins []struct{ Check, Status, Detail string }
	}](t, r.out).Plugins
	if r.code != exitCheck || len(findings) != 2 || findings[0].Status != "failed" || !strings.Contains(findings[0].Detail, "SHA-256") || findings[1].Status != "ok" {
		t.Errorf("verify after a change: exit status %d, %+v", r.code, findings)
	}
	fails(t, exitFailed, `{"query": {"text": "x"}, "candidates": []}`, []string{"plugin", "run", path}, "SHA-256", "wanted", "got")
	for _, sub := range []string{"list", "verify", "lock"} {
		fails(t, exitFailed, "", []string{"plugin", sub, filepath.Join(dir, "nowhere")}, "nowhere")
		fails(t, exitUsage, "", []string{"plugin", sub}, "0 arguments given")
	}
}

func TestPluginInfo(t *testing.T) {
	path := filepath.Join(pluginDir(t), "mmplug-reranker-mmr")
	info := unmarshal[plugins.Info](t, fine(t, "", "plugin", "info", "--json", path))
	if info.Name != "mmr" || !slices.Equal(info.Kinds, []plugins.Kind{plugins.KindReranker}) || !json.Valid(info.Schema) {
		t.Errorf("%+v", info)
	}
	out := fine(t, "", "plugin", "info", path)
	for _, want := range []string{"name:         mmr\n", "kinds:        reranker\n", "configuration:\n", `    "lambda": {`} {
		if !strings.Contains(out, want) {
			t.Errorf("output lacks %q:\n%s", want, out)
		}
	}
	config := filepath.Join(t.TempDir(), "config.json")
	put(t, config, `{"lambda": 2}`)
	fails(t, exitFailed, "", []string{"plugin", "info", "--config", config, path}, "lambda", "2")
	fails(t, exitUsage, "", []string{"plugin", "info", "--env", "MMPLUG_X", path}, "MMPLUG_X")
	fails(t, exitFailed, "", []string{"plugin", "info", "nowhere"}, "nowhere")
}

const rerankQuestion = `{"query": {"text": "renew a token"}, "candidates": [
	{"chunk_id": "invites", "score": 2, "text": "Renew an invite.", "metadata": {"n": 9007199254740993}},
	{"chunk_id": "tokens", "score": 1, "text": "Renew the token."}]}`

func TestPluginRun(t *testing.T) {
	dir := pluginDir(t)
	path := filepath.Join(dir, "mmplug-reranker-overlap")
	fails(t, exitFailed, rerankQuestion, []string{"plugin", "run", path}, "plugins.lock", "lock it")
	args := []string{"plugin", "run", "--allow-unlocked", "--json", path}
	type scored struct {
		ChunkID string `json:"chunk_id"`
		Score   float64
	}
	got := unmarshal[struct{ Candidates []scored }](t, fine(t, rerankQuestion, args...)).Candidates
	if want := []scored{{"tokens", 1}, {"invites", 1.0 / 3}}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	fine(t, "", "plugin", "lock", dir)
	if out := fine(t, rerankQuestion, "plugin", "run", path); !strings.Contains(strings.Join(strings.Fields(out), " "), "1 tokens 1 Renew the token. 2 invites 0.333333 Renew an invite.") {
		t.Errorf("output: %s", out)
	}
	config := filepath.Join(t.TempDir(), "config.json")
	put(t, config, `{"measure": "coverage"}`)
	if out := fine(t, rerankQuestion, "plugin", "run", "--config", config, path); !strings.Contains(strings.Join(strings.Fields(out), " "), "2 invites 0.5 ") {
		t.Errorf("output: %s", out)
	}
	for in, want := range map[string]string{
		"":                       "not a question",
		`{"query": {"txt": ""}}`: `unknown field "txt"`,
		`{} {}`:                  "something after the question",
		`{"limit": 3}`:           "no limit",
		`{"candidates": [{"chunk_id": "a"}, {"chunk_id": "a"}]}`: "duplicate",
	} {
		fails(t, exitFailed, in, []string{"plugin", "run", path}, want)
	}
	fails(t, exitUsage, rerankQuestion, []string{"plugin", "run", "--kind", "oracle", path}, "oracle", "reranker")
	fails(t, exitFailed, rerankQuestion, []string{"plugin", "run", "--kind", "decoder", path}, "decoder")
}

// A policy that pins a plugin has it run only as the file that it pins.
func TestAskRerankedByPlugin(t *testing.T) {
	idx, dir := handbookIdx(t), pluginDir(t)
	fine(t, "", "plugin", "lock", dir)
	sum := unmarshal[struct{ Plugins []plugins.Entry }](t, fine(t, "", "plugin", "list", "--json", dir)).Plugins[1].Locked.SHA256
	wrong := strings.Repeat("0", 64)
	with := func(pin string) string {
		return policyFile(t, "reranked.policy.yaml", func(p *policy.Policy) {
			p.Rerank.Mode, p.Rerank.BudgetMS = policy.RerankSync, 60_000
			if pin != "" {
				p.Plugins = []policy.Plugin{{Name: "overlap", SHA256: pin}}
			}
		})
	}
	for _, pin := range []string{"", sum} {
		out := fine(t, "", "ask", "--index", idx, "--policy", with(pin), "--reranker", "plugin:overlap?dir="+dir, "--json", "How do I renew a token?")
		turn := unmarshal[struct{ Turns []rerankedTurn }](t, out).Turns[0]
		if turn.Reranked == nil || turn.Reranked.Outcome != "reranked" {
			t.Errorf("pin %q: %+v", pin, turn.Reranked)
		}
	}
	renamed := filepath.Join(dir, "renamed")
	if err := os.Link(filepath.Join(dir, "mmplug-reranker-overlap"), renamed); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "mmplug-reranker-overlap")
	for _, url := range []string{
		"plugin:overlap?dir=" + dir, "plugin:" + path, "plugin:" + path + "?", "plugin:%6Fverlap?dir=" + dir, "PLUGIN:overlap?dir=" + dir,
		"plugin:overlap@1.0.0?dir=" + dir, "plugin:" + dir + "/./mmplug-reranker-overlap", "plugin:overlap?sha256=" + sum + "&dir=" + dir,
	} {
		fails(t, exitFailed, "", []string{"ask", "--index", idx, "--policy", with(wrong), "--reranker", url, "renew"}, "SHA-256", wrong, sum)
	}
	fails(t, exitFailed, "", []string{"ask", "--index", idx, "--policy", with(wrong), "--reranker", "plugin:" + renamed + "?allow_unlocked=true", "renew"}, "SHA-256", "only overlap", sum)
	fine(t, "", "ask", "--index", idx, "--policy", with(sum), "--reranker", "plugin:"+renamed+"?allow_unlocked=true", "--json", "renew")
	fine(t, "", "ask", "--index", idx, "--policy", with(sum), "--reranker", "plugin:overlap?sha256="+sum+"&dir="+dir, "--json", "renew")
	// The list of a policy is all that may run.
	fails(t, exitFailed, "", []string{"ask", "--index", idx, "--policy", with(sum), "--reranker", "plugin:mmr?dir=" + dir, "renew"}, "SHA-256", "only overlap")
	if out := fine(t, "", "adapters"); !strings.Contains(out, "a reranker that runs as a process of its own") {
		t.Errorf("adapters: %s", out)
	}
}

// What a policy lists counts for everything that is opened under it.
func TestPolicyListsPlugins(t *testing.T) {
	idx, url := handbookIdx(t), "plugin:"+filepath.Join(pluginDir(t), "mmplug-reranker-overlap")+"?allow_unlocked=true"
	listed := policyFile(t, "listed.policy.yaml", func(p *policy.Policy) {
		p.Plugins = []policy.Plugin{{Name: "another", SHA256: strings.Repeat("0", 64)}}
	})
	docs := t.TempDir()
	put(t, filepath.Join(docs, "a.md"), "# A\n\nb\n")
	for _, args := range [][]string{
		{"ask", "--policy", listed, "--provider", url, "renew"},
		{"ask", "--policy", listed, "--provider", "embedded:" + idx, "--graph", url, "renew"},
		{"ask", "--policy", listed, "--index", idx, "--embed", url, "renew"},
		{"ask", "--policy", listed, "--provider", "embedded:" + idx, "--embed", url, "renew"},
		{"index", "--policy", listed, "--embed", url, "--out", filepath.Join(t.TempDir(), "idx"), docs},
	} {
		fails(t, exitFailed, "", args, "SHA-256", "only another")
	}
	r := mmplug(t, "", "doctor", "--policy", listed, url)
	if r.code != exitFailed || !strings.Contains(strings.Join(strings.Fields(r.out), " "), "only another") {
		t.Errorf("doctor: exit status %d, %s%s", r.code, r.out, r.err)
	}
}

// What a plugin logs reaches the terminal without what would act on it.
func TestPluginLogIsEscaped(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("SKIP: the plugin is a shell script; run this test on a Unix system")
	}
	path := filepath.Join(t.TempDir(), "mmplug-reranker-loud")
	put(t, path, `#!/bin/sh
printf '%s\\n' '{"@level": "error", "@message": "one\u001b[31m\ntwo\u202e", "k\u001b\n": "v\u0007"}' >&2
exit 1
`)
	if err := os.Chmod(path, 0o755); err != nil {
		t.Fatal(err)
	}
	sync := policyFile(t, "sync.policy.yaml", func(p *policy.Policy) { p.Rerank.Mode = policy.RerankSync })
	for _, args := range [][]string{
		{"ask", "--index", handbookIdx(t), "--policy", sync, "--reranker", "plugin:" + path + "?allow_unlocked=true", "renew"},
		{"plugin", "info", path},
	} {
		r := mmplug(t, "", args...)
		if r.code != exitFailed || strings.ContainsAny(r.err, "\x1b\x07\u202e") || strings.Count(r.err, "\n") != 2 || !strings.Contains(r.err, `level=ERROR msg="one\x1b[31m\ntwo\u202e" plugin=loud`) {
			t.Errorf("%q: exit status %d, standard error %q", args, r.code, r.err)
		}
	}
}
