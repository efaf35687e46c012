package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/policy"
)

type doctorReport struct {
	OK     bool
	Stores []diagnosis
}

// doctored runs doctor --json and returns what it says, with the statuses of the
// first store by check.
func doctored(t *testing.T, code int, args ...string) (doctorReport, map[string]mapmatched.Finding) {
	t.Helper()
	r := mmplug(t, "", append([]string{"doctor", "--json"}, args...)...)
	if r.code != code {
		t.Fatalf("doctor %q: exit status %d, want %d; %s%s", args, r.code, code, r.out, r.err)
	}
	if code != exitOK {
		wantComplaint(t, r.err)
	}
	report := unmarshal[doctorReport](t, r.out)
	checks := map[string]mapmatched.Finding{}
	for _, f := range report.Stores[0].Findings {
		checks[f.Check] = f
	}
	return report, checks
}

func TestDoctor(t *testing.T) {
	s, _, at := storedDocs(t)
	out := fine(t, "", "doctor", at, "--policy", "plain", "--embed", threeWords)
	for _, want := range []string{at + "\n", "check ", "status", "reach", "sample query", "it was made under policy plain", "its vectors are of that model, 3 dimensions", "maximum distance 10; from "} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
	report, checks := doctored(t, exitOK, at)
	if !report.OK || !report.Stores[0].OK || !report.Stores[0].Opened || checks["reach"].Status != mapmatched.StatusOK || checks["graph"].Status != mapmatched.StatusOK {
		t.Errorf("%+v", report)
	}
	if _, there := checks["policy"]; there {
		t.Error("a policy was checked that was not given")
	}
	wide := policyFile(t, "wide.policy.yaml", func(p *policy.Policy) {
		p.Graph.MaximumDistance = 7
		p.Vectors = policy.Vectors{Provider: "testwords:counter", Model: "road,noise,plain", Dimension: 4, Normalization: "l2", MaxQueryTokens: 1}
	})
	report, checks = doctored(t, exitCheck, at, "--policy", wide, "--embed", "testwords:counter?model=road,noise,plain,mud")
	if report.OK || !report.Stores[0].Opened || checks["reach"].Status != mapmatched.StatusOK {
		t.Errorf("%+v", report)
	}
	for check, detail := range map[string]string{"policy": "vectors.dimension is 3, the policy says 4", "graph policy": "is 10, graph.maximum_distance of policy wide is 7", "embedder": `model is "road,noise,plain", wanted "road,noise,plain,mud"`} {
		if f := checks[check]; f.Status != mapmatched.StatusFailed || !strings.Contains(f.Detail, detail) {
			t.Errorf("%s: %+v, want %q", check, f, detail)
		}
	}
	s.Kill()
	report, checks = doctored(t, exitFailed, at, "graph:"+filepath.Join(t.TempDir(), "none.mmg"))
	if f := checks["reach"]; report.OK || report.Stores[0].Opened || f.Status != mapmatched.StatusFailed || !strings.Contains(f.Detail, "connection refused") {
		t.Errorf("%+v", report)
	}
	if r := mmplug(t, "", "doctor", at); r.code != exitFailed || !strings.Contains(r.out, "reach  failed  qdrant: ") {
		t.Errorf("%+v", r)
	}
}

// Of the local stores doctor says that they open and answer.
func TestDoctorLocal(t *testing.T) {
	idx, dir := handbookIdx(t), t.TempDir()
	graph := filepath.Join(dir, "g.mmg")
	fine(t, "", "graph", "build", "--index", idx, "--out", graph)
	_, _, rows, names := vectorFiles(t, 5)
	index, lines := faissFile(t, dir, rows, names)
	faiss := "faiss:" + index + "?ids=" + lines
	report, _ := doctored(t, exitOK, "embedded:"+idx, "graph:"+graph, faiss, "--policy", "plain")
	want := [][2]string{{"sample query", "ok"}, {"graph", "ok"}, {"sample query", "skipped"}}
	for i, r := range report.Stores {
		got := ""
		for _, f := range r.Findings {
			if f.Check == want[i][0] {
				got = string(f.Status)
			}
		}
		if got != want[i][1] || !r.OK {
			t.Errorf("%+v, want %s %s", r, want[i][0], want[i][1])
		}
	}
	pinned := policyFile(t, "pinned.policy.yaml", func(p *policy.Policy) {
		p.Vectors = policy.Vectors{Provider: "onnx", Model: "m", Dimension: 4, Normalization: "l2", MaxQueryTokens: 1}
	})
	for _, at := range []string{"embedded:" + idx, faiss} {
		if _, checks := doctored(t, exitCheck, at, "--policy", pinned); checks["policy"].Status != mapmatched.StatusFailed {
			t.Errorf("%s: %+v", at, checks)
		}
	}
	if _, checks := doctored(t, exitCheck, faiss, "--embed", threeWords); checks["sample query"].Status != mapmatched.StatusFailed || checks["embedder"].Status != mapmatched.StatusFailed {
		t.Errorf("another dimension: %+v", checks)
	}
	report, checks := doctored(t, exitFailed, "qdrant://user:s3cret@host/c")
	if report.Stores[0].URL != "qdrant://host/c" || strings.Contains(checks["open"].Detail, "s3cret") || checks["open"].Status != mapmatched.StatusFailed {
		t.Errorf("%+v", report)
	}
	if r := mmplug(t, "", "doctor"); r.code != exitUsage {
		t.Errorf("without a URL: %+v", r)
	}
}

func TestWrapped(t *testing.T) {
	for text, want := range map[string]string{"": "", "a b": "a b", "aaa bbb ccc": "aaa bbb|ccc", "a longwordhere b": "a|longwordhere|b", "故乡 故乡 x": "故乡|故乡 x"} {
		if got := strings.Join(wrapped(text, 8), "|"); got != want {
			t.Errorf("%q is wrapped to %q, want %q", text, got, want)
		}
	}
}
