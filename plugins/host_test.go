package plugins_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/mapmatched/registry"
	"github.com/mapmatched/mmplug/plugins"
	"github.com/mapmatched/mmplug/plugins/internal/testplugin"
)

func TestOpen(t *testing.T) {
	host := start(t, goodFile, plugins.Options{})
	info := host.Info()
	if info.Name != "everything" || info.Version != "1.10.0" || info.Protocol != 1 || !reflect.DeepEqual(info.Kinds, plugins.Kinds()) {
		t.Errorf("info %+v", info)
	}
	for _, c := range []plugins.Capability{plugins.CanScoreChunks, plugins.CanFetchChunks, plugins.CanVectors, plugins.CanListEdges, plugins.CanLoad} {
		if !info.Can(c) {
			t.Errorf("capability %s is missing", c)
		}
	}
	got, err := rerank(t.Context(), t, host, "plain")
	if err != nil || len(got) != 1 || got[0] != (mapmatched.Scored{ChunkID: "a", Score: 4}) {
		t.Errorf("got %v, error %v", got, err)
	}
	embedder, err := host.Embedder()
	if err != nil {
		t.Fatal(err)
	}
	vectors, err := embedder.Embed(t.Context(), []string{"abc", "\xff"})
	if err != nil || len(vectors) != 2 || vectors[0][0] != 3 || vectors[1][0] != 3 {
		t.Errorf("vectors %v, error %v: a text that is not UTF-8 is repaired", vectors, err)
	}
	decoder, err := host.Decoder()
	if err != nil {
		t.Fatal(err)
	}
	trellis := &mapmatched.Trellis{TransitionWeight: 1, Columns: []mapmatched.Column{
		{ChunkIDs: []string{"a"}, Raw: []float64{1}, Normalized: []float64{1}, Emission: []float64{1}}, {},
		{ChunkIDs: []string{"b", "c"}, Raw: []float64{1, 1}, Normalized: []float64{1, 1}, Emission: []float64{1, 1}, From: []int{0}, Distance: []float64{2, 2}},
	}}
	if d, err := mapmatched.CompareDecoders(t.Context(), mapmatched.Viterbi{}, decoder, trellis, 0); err != nil || d != nil {
		t.Errorf("difference %v, error %v", d, err)
	}
	if _, err := host.Graph(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestIntegersSurvive(t *testing.T) {
	host := start(t, goodFile, plugins.Options{})
	reranker, err := host.Reranker()
	if err != nil {
		t.Fatal(err)
	}
	got, err := reranker.Rerank(t.Context(), mapmatched.Query{Text: "echo"}, []mapmatched.Candidate{{ChunkID: "a", Metadata: map[string]any{"id": int64(1)<<62 + 1}}})
	if err != nil || got[0].ChunkID != "4611686018427387905" {
		t.Errorf("got %v, error %v", got, err)
	}
}

func TestErrorsTravel(t *testing.T) {
	host := start(t, goodFile, plugins.Options{})
	for _, kind := range []mapmatched.Kind{mapmatched.KindNotFound, mapmatched.KindUnauthenticated, mapmatched.KindUnavailable, mapmatched.KindInvalid, mapmatched.KindDeadline, mapmatched.KindCorrupt} {
		_, err := rerank(t.Context(), t, host, "error "+string(kind))
		if mapmatched.KindOf(err) != kind || !errors.Is(err, mapmatched.ErrStaleIndex) {
			t.Errorf("kind %q: error %v of kind %q", kind, err, mapmatched.KindOf(err))
		}
		if err != nil && (strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "line one | line two: stale index")) {
			t.Errorf("kind %q: text %q", kind, err)
		}
	}
	if n := host.Starts(); n != 1 {
		t.Errorf("%d starts, want 1: an error is not a crash", n)
	}
}

func TestPanicFailsOneCall(t *testing.T) {
	host := start(t, goodFile, plugins.Options{})
	_, err := rerank(t.Context(), t, host, "panic chunk")
	if err == nil || !strings.Contains(err.Error(), "panic: no such chunk at plugin.go:") {
		t.Errorf("error %v, want the panic and where it was", err)
	}
	if _, err := rerank(t.Context(), t, host, "next"); err != nil || host.Starts() != 1 {
		t.Errorf("the next call: error %v, %d starts", err, host.Starts())
	}
}

func TestCrashRestarts(t *testing.T) {
	host := start(t, goodFile, plugins.Options{})
	for i, c := range []struct{ text, want string }{
		{"crash full", "exit status 2; stderr: panic: the disk is full"},
		{"exit badly", "exit status 3; stderr: cannot go on: badly"},
	} {
		before := host.Pid()
		_, err := rerank(t.Context(), t, host, c.text)
		if err == nil || !strings.Contains(err.Error(), c.want) || mapmatched.KindOf(err) != mapmatched.KindUnavailable {
			t.Errorf("%s: error %v, want %q", c.text, err, c.want)
		}
		if _, err := rerank(t.Context(), t, host, "next"); err != nil {
			t.Errorf("the next call: %v", err)
		}
		if host.Starts() != i+2 || host.Pid() == before || host.Pid() == 0 {
			t.Errorf("%d starts, process %d before and %d after", host.Starts(), before, host.Pid())
		}
	}
}

func TestGivesUp(t *testing.T) {
	host := start(t, goodFile, plugins.Options{MaxRestarts: 2, RestartDelay: time.Millisecond})
	var err error
	for range 3 {
		if _, err = rerank(t.Context(), t, host, "exit now"); err == nil || errors.Is(err, plugins.ErrGaveUp) {
			t.Fatalf("error %v, want that of a crash", err)
		}
	}
	_, err = rerank(t.Context(), t, host, "plain")
	if !errors.Is(err, plugins.ErrGaveUp) || !strings.Contains(err.Error(), "cannot go on: now") || host.Starts() != 3 {
		t.Errorf("error %v after %d starts, want %v with the last crash", err, host.Starts(), plugins.ErrGaveUp)
	}
}

func TestOddStderr(t *testing.T) {
	host := start(t, goodFile, plugins.Options{})
	for _, text := range []string{"flood", "odd", "flood"} {
		if _, err := rerank(t.Context(), t, host, text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	if host.Starts() != 1 {
		t.Errorf("%d starts", host.Starts())
	}
}

func TestContextReachesPlugin(t *testing.T) {
	host := start(t, goodFile, plugins.Options{CallTimeout: -1})
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
	defer cancel()
	got, err := rerank(ctx, t, host, "deadline")
	if err != nil || got[0].Score < 1 || got[0].Score > 40 {
		t.Errorf("the plugin has %v left, error %v", got, err)
	}
	if got, err := rerank(t.Context(), t, host, "deadline"); err != nil || got[0].Score != -1 {
		t.Errorf("without a deadline the plugin has %v, error %v", got, err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	if _, err := rerank(ctx, t, host, "wait"); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
	ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := rerank(ctx, t, host, "wait"); !errors.Is(err, context.DeadlineExceeded) || mapmatched.KindOf(err) != mapmatched.KindDeadline {
		t.Errorf("error %v, want %v", err, context.DeadlineExceeded)
	}
	// The plugin was suspected of hanging, but is in health.
	if _, err := rerank(t.Context(), t, host, "plain"); err != nil || host.Starts() != 1 {
		t.Errorf("error %v, %d starts", err, host.Starts())
	}
}

func TestHungCallTimesOut(t *testing.T) {
	host := start(t, goodFile, plugins.Options{CallTimeout: 100 * time.Millisecond, CloseTimeout: 100 * time.Millisecond})
	_, err := rerank(t.Context(), t, host, "hang")
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "no answer after 100ms") {
		t.Errorf("error %v, want %v", err, context.DeadlineExceeded)
	}
	if _, err := rerank(t.Context(), t, host, "plain"); err != nil || host.Starts() != 1 {
		t.Errorf("the next call: error %v, %d starts; one call that hangs is not a plugin that hangs", err, host.Starts())
	}
}

// TestCallsRunConcurrently makes calls of which none is answered before all
// are there.
func TestCallsRunConcurrently(t *testing.T) {
	const callers = 64
	host := start(t, goodFile, plugins.Options{})
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			if _, err := rerank(t.Context(), t, host, fmt.Sprint("meet ", callers)); err != nil {
				t.Errorf("call %d: %v", i, err)
			}
		})
	}
	wg.Wait()
}

func TestMaxInFlight(t *testing.T) {
	host := start(t, goodFile, plugins.Options{MaxInFlight: 2})
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() { _, _ = rerank(ctx, t, host, "wait") })
	}
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		short, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
		_, err := rerank(short, t, host, "plain")
		stop()
		if err != nil {
			if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "2 calls were on their way") {
				t.Errorf("error %v", err)
			}
			cancel()
			wg.Wait()
			if _, err := rerank(t.Context(), t, host, "plain"); err != nil {
				t.Error(err)
			}
			return
		}
	}
	cancel()
	t.Error("a third call was let through beside two")
}

func TestClose(t *testing.T) {
	host := start(t, goodFile, plugins.Options{})
	pid := host.Pid()
	waiting := make(chan error)
	go func() {
		_, err := rerank(t.Context(), t, host, "wait")
		waiting <- err
	}()
	time.Sleep(20 * time.Millisecond)
	for range 2 {
		if err := host.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := <-waiting; !errors.Is(err, mapmatched.ErrClosed) {
		t.Errorf("a call on its way: error %v", err)
	}
	if _, err := rerank(t.Context(), t, host, "plain"); !errors.Is(err, mapmatched.ErrClosed) {
		t.Errorf("a call afterwards: error %v", err)
	}
	if host.Pid() != 0 || alive(pid) {
		t.Errorf("process %d is still there", pid)
	}
}

func TestConfiguration(t *testing.T) {
	for _, c := range []struct {
		config, want string
		kind         mapmatched.Kind
	}{
		{`{"greetin": "hello"}`, `unknown member "greetin"; known are dimension, greeting`, mapmatched.KindInvalid},
		{`{"dimension": 8.9}`, "dimension is 8.9, not an integer", mapmatched.KindInvalid},
		{`{"dimension": 5000}`, "dimension is 5000, above 4096", mapmatched.KindInvalid},
		{`{"dimension": 5, "dimension": 6}`, `"dimension" is there twice`, mapmatched.KindInvalid},
		{`{"dimension": 5`, "not JSON", mapmatched.KindInvalid},
		{`{"greeting": "refuse"}`, "the key is wrong", mapmatched.KindUnauthenticated},
	} {
		_, err := open(t, goodFile, plugins.Options{Config: json.RawMessage(c.config)})
		if err == nil || !strings.Contains(err.Error(), c.want) || mapmatched.KindOf(err) != c.kind {
			t.Errorf("%s: error %v of kind %q, want %q", c.config, err, mapmatched.KindOf(err), c.want)
		}
	}
	host := start(t, goodFile, plugins.Options{Config: json.RawMessage(`{"dimension": 8}`)})
	for range 2 { // configured again after a restart
		embedder, err := host.Embedder()
		if err != nil {
			t.Fatal(err)
		}
		if v, err := embedder.Embed(t.Context(), []string{"x"}); err != nil || len(v[0]) != 8 {
			t.Errorf("vectors %v, error %v", v, err)
		}
		_, _ = rerank(t.Context(), t, host, "exit now")
	}
	if host.Starts() != 2 {
		t.Errorf("%d starts", host.Starts())
	}
}

func TestEnvironment(t *testing.T) {
	t.Setenv("MM_TEST_SECRET", "no")
	t.Setenv("MM_TEST_PASSED", "yes")
	temp := t.TempDir()
	host := start(t, goodFile, plugins.Options{Env: []string{"MM_TEST_PASSED", "MM_TEST_ABSENT"}, TempDir: temp})
	got, err := rerank(t.Context(), t, host, "environment")
	if err != nil {
		t.Fatal(err)
	}
	passed := false
	for _, g := range got {
		name, value, _ := strings.Cut(g.ChunkID, "=")
		passed = passed || name == "MM_TEST_PASSED" && value == "yes"
		if name != "MM_TEST_PASSED" && name != "TMPDIR" && name != "PWD" && !strings.HasPrefix(name, "PLUGIN_") && !strings.HasPrefix(name, "MMPLUG_") {
			t.Errorf("the plugin sees %s", g.ChunkID)
		}
	}
	if !passed {
		t.Error("the named variable is missing")
	}
	got, err = rerank(t.Context(), t, host, "directory")
	if err != nil || filepath.Dir(got[0].ChunkID) != temp {
		t.Errorf("working directory %v, error %v, want one in %s", got, err, temp)
	}
	files, err := os.ReadDir(got[0].ChunkID)
	if err != nil {
		t.Error(err)
	}
	for _, f := range files {
		if f.Type() == os.ModeSocket {
			t.Errorf("%s can still be connected to", f.Name())
		}
	}
	if err := host.Close(); err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(temp); len(left) > 0 {
		t.Errorf("%v is left behind", left)
	}
}

func TestMessageTooLarge(t *testing.T) {
	host := start(t, goodFile, plugins.Options{})
	reranker, err := host.Reranker()
	if err != nil {
		t.Fatal(err)
	}
	for size, fits := range map[int]bool{60 << 20: true, 65 << 20: false} {
		_, err := reranker.Rerank(t.Context(), mapmatched.Query{Text: "plain"}, []mapmatched.Candidate{{ChunkID: "a", Text: strings.Repeat("x", size)}})
		if fits && err != nil || !fits && (mapmatched.KindOf(err) != mapmatched.KindInvalid || !strings.Contains(err.Error(), "limit of 64 MiB")) {
			t.Errorf("a text of %d bytes: error %v", size, err)
		}
	}
	if n := host.Starts(); n != 1 {
		t.Errorf("%d starts", n)
	}
}

// lockedBuffer is a buffer for several writers.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func TestLogArrives(t *testing.T) {
	var log lockedBuffer
	host := start(t, goodFile, plugins.Options{Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	for _, text := range []string{"log", "print hello from the plugin"} {
		if _, err := rerank(t.Context(), t, host, text); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{
		`level=WARN msg="slow answer" plugin=everything attrs.shard=7 attrs.store.rows=12 attrs.store.took=3s`,
		`level=DEBUG msg="hello from the plugin" plugin=everything stream=stdout`,
	} {
		for deadline := time.Now().Add(10 * time.Second); !strings.Contains(log.String(), want); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("the log lacks %s:\n%s", want, log.String())
			}
		}
	}
}

// TestInspectRequired asks a plugin what it is that cannot run without a
// configuration.
func TestInspectRequired(t *testing.T) {
	dir := t.TempDir()
	path := install(t, dir, "mmplug-embedder-everything-strict")
	if _, err := plugins.Open(t.Context(), path, &plugins.Options{AllowUnlocked: true, Logger: quiet()}); err == nil || !strings.Contains(err.Error(), "it lacks dimension") {
		t.Errorf("error %v, want that the dimension is missing", err)
	}
	info, err := plugins.Inspect(t.Context(), path, &plugins.Options{Logger: quiet()})
	if err != nil || info.Name != "everything-strict" || len(info.Schema) == 0 {
		t.Errorf("info %+v, error %v", info, err)
	}
	if _, err := plugins.WriteLock(t.Context(), dir, &plugins.Options{Logger: quiet(), Config: json.RawMessage("{}")}); err != nil {
		t.Error(err)
	}
}

func TestOptionsValidate(t *testing.T) {
	o := &plugins.Options{Kind: "oracle", Env: []string{"A=B", "PLUGIN_CLIENT_CERT"}, Pins: map[string]string{"x": "12"}, StartTimeout: -1, MaxInFlight: -1}
	err := o.Validate()
	for _, want := range []string{`"oracle"`, `"A=B"`, "PLUGIN_CLIENT_CERT", `"12"`, "StartTimeout", "MaxInFlight"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v lacks %s", err, want)
		}
	}
	var none *plugins.Options
	if err := none.Validate(); err != nil {
		t.Error(err)
	}
}

func TestRegistry(t *testing.T) {
	dir := t.TempDir()
	install(t, dir, goodFile)
	ctx := t.Context()
	config := filepath.Join(dir, "config.json")
	if err := os.WriteFile(config, []byte(`{"dimension": 3}`), 0o600); err != nil {
		t.Fatal(err)
	}
	reranker, err := registry.OpenReranker(ctx, "plugin:everything?allow_unlocked=true&dir="+dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := reranker.Rerank(ctx, mapmatched.Query{}, nil); err != nil {
		t.Error(err)
	}
	if err := reranker.(interface{ Close() error }).Close(); err != nil {
		t.Error(err)
	}
	embedder, err := registry.OpenEmbedder(ctx, fmt.Sprintf("plugin:%s?allow_unlocked=true&config=%s", filepath.Join(dir, goodFile), config))
	if err != nil || embedder.(mapmatched.HealthChecker).Health(ctx) != nil {
		t.Errorf("error %v", err)
	} else if err := embedder.(interface{ Close() error }).Close(); err != nil {
		t.Error(err)
	}
	for url, want := range map[string]string{
		"plugin:everything?dir=" + dir:                                       "plugins.lock is not there",
		"plugin:nothing?dir=" + dir:                                          "there are " + goodFile,
		"plugin:everything":                                                  "set Dir",
		"plugin:..%2Feverything%2Fx?dir=" + dir:                              "no such file",
		"plugin:everything?limit=3&dir=" + dir:                               "the valid ones are dir",
		"plugin:everything?allow_unlocked=true&sha256=12&dir=" + dir:         "not 64 hexadecimal digits",
		"plugin:everything?allow_unlocked=true&dir=" + dir + "&config=/none": "no such file",
	} {
		if _, err := registry.OpenReranker(ctx, url); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", url, err, want)
		}
	}
}

func TestLoopback(t *testing.T) {
	host, err := plugins.Loopback(t.Context(), testplugin.Plugin(), &plugins.Options{Logger: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := rerank(t.Context(), t, host, "plain"); err != nil || host.Pid() != 0 {
		t.Errorf("error %v, process %d", err, host.Pid())
	}
	if err := host.Close(); err != nil {
		t.Error(err)
	}
}
