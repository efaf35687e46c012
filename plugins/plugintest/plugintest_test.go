package plugintest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/plugins"
	"github.com/mapmatched/mmplug/plugins/internal/testplugin"
	"github.com/mapmatched/mmplug/plugins/plugintest"
)

// binary builds the test plugin.
func binary(t testing.TB) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("SKIP: the test plugin is for Unix systems; run this test on one")
	}
	path := filepath.Join(t.TempDir(), "mmplug-reranker-everything")
	cmd := exec.Command("go", "build", "-o", path, "../internal/testplugin/cmd")
	cmd.Env = append(os.Environ(), "GOFLAGS=") // with the race detector a program takes a second to end
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestConformance runs the same suite three ways. The plugin implements every
// kind.
func TestConformance(t *testing.T) {
	t.Run("in process", func(t *testing.T) { plugintest.Test(t, plugintest.Direct(testplugin.Plugin()), nil) })
	t.Run("in process over gRPC", func(t *testing.T) { plugintest.Test(t, plugintest.InMemory(testplugin.Plugin(), nil), nil) })
	t.Run("subprocess", func(t *testing.T) { plugintest.Test(t, plugintest.Binary(binary(t), nil), nil) })
}

// TestWithoutLoad checks the plugin as one that cannot be given a corpus.
func TestWithoutLoad(t *testing.T) {
	p := testplugin.Plugin()
	p.LoadCorpus, p.LoadGraph = nil, nil
	report := plugintest.Check(t.Context(), plugintest.InMemory(p, nil), nil)
	for _, r := range report.Results {
		if r.Status == mapmatched.StatusFailed {
			t.Errorf("%s: %s: %s", r.Group, r.Check, r.Detail)
		}
	}
	if !report.OK() || report.Count(mapmatched.StatusOK) < 25 {
		t.Errorf("%d checks held, OK is %v", report.Count(mapmatched.StatusOK), report.OK())
	}
}

func TestReport(t *testing.T) {
	report := plugintest.Check(t.Context(), plugintest.InMemory(testplugin.Plugin(), &plugins.Options{Config: json.RawMessage(`{"greeting": "x"}`)}), nil)
	if report.OK() || len(report.Results) != 1 {
		t.Errorf("a plugin with a wrong configuration: %+v", report)
	}
	var text bytes.Buffer
	if err := report.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	if want := `greeting is "x", shorter than 2 characters`; !strings.Contains(text.String(), want) || !strings.Contains(text.String(), "0 ok, 1 failed, 0 skipped") {
		t.Errorf("report lacks %q or the counts:\n%s", want, &text)
	}
	b, err := json.Marshal(report)
	if err != nil || !strings.Contains(string(b), `"status":"failed"`) {
		t.Errorf("JSON %s with error %v", b, err)
	}
}

func TestMeasure(t *testing.T) {
	got, err := plugintest.Measure(t.Context(), plugintest.InMemory(testplugin.Plugin(), nil), 10, nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range got {
		names = append(names, m.Name)
		if m.Runs < 1 || m.Median <= 0 || m.Slowest < m.Median {
			t.Errorf("%+v", m)
		}
	}
	if len(names) != 7 || names[0] != "start and end" {
		t.Errorf("measured %q", names)
	}
	if _, err := plugintest.Measure(t.Context(), plugintest.Direct(testplugin.Plugin()), 10, nil); err == nil {
		t.Error("a plugin that is called directly was measured")
	}
}

// slow reranks at a pace of its own, one call after the other or several at
// once.
type slow struct {
	testplugin.Reranker
	turn chan struct{} // nil for all at once
}

// Rerank implements mapmatched.Reranker.
func (s slow) Rerank(ctx context.Context, q mapmatched.Query, c []mapmatched.Candidate) ([]mapmatched.Scored, error) {
	if s.turn != nil {
		s.turn <- struct{}{}
		defer func() { <-s.turn }()
	}
	time.Sleep(time.Duration(len(c)) * 800 * time.Microsecond)
	return s.Reranker.Rerank(ctx, q, c)
}

// TestOverlap tells a plugin that answers one call after the other from one
// that answers several at once.
func TestOverlap(t *testing.T) {
	const check = "answers a short call during a long one"
	for name, c := range map[string]struct {
		reranker slow
		want     mapmatched.Status
	}{"at once": {slow{}, mapmatched.StatusOK}, "in turn": {slow{turn: make(chan struct{}, 1)}, mapmatched.StatusFailed}} {
		p := plugins.Plugin{Name: "slow", Version: "1.0", Services: plugins.Services{Reranker: c.reranker}}
		for _, r := range plugintest.Check(t.Context(), plugintest.InMemory(p, nil), nil).Results {
			want := mapmatched.StatusOK
			if r.Check == check {
				want = c.want
			}
			if r.Status != want && r.Status != mapmatched.StatusSkipped || r.Check == check && r.Status != want {
				t.Errorf("%s: %s is %s: %s, want %s", name, r.Check, r.Status, r.Detail, want)
			}
		}
	}
}
