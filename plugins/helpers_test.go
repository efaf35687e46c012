package plugins_test

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/plugins"
)

var built struct {
	sync.Once
	dir string
	err error
}

// binary builds the test plugin once and returns its path.
func binary(t testing.TB) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("SKIP: the test plugin is for Unix systems; run this test on one")
	}
	built.Do(func() {
		if built.dir, built.err = os.MkdirTemp("", "mmt"); built.err == nil {
			built.err = build(filepath.Join(built.dir, "plugin"))
		}
	})
	if built.err != nil {
		t.Fatal(built.err)
	}
	return filepath.Join(built.dir, "plugin")
}

func build(out string) error {
	cmd := exec.Command("go", "build", "-o", out, "./internal/testplugin/cmd")
	cmd.Env = append(os.Environ(), "GOFLAGS=") // with the race detector a program takes a second to end
	cmd.Stderr = os.Stderr
	return cmd.Run()
}

// install puts the test plugin into a directory under a name.
func install(t testing.TB, dir, file string) string {
	t.Helper()
	path := filepath.Join(dir, file)
	if err := os.Link(binary(t), path); err != nil { // TempDir and the build may be on two file systems
		b, err := os.ReadFile(binary(t))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, b, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

// quiet drops the log.
func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// start opens the test plugin under a name and closes it with the test.
func start(t testing.TB, file string, opts plugins.Options) *plugins.Host {
	t.Helper()
	host, err := open(t, file, opts)
	if err != nil {
		t.Fatal(err)
	}
	return host
}

func open(t testing.TB, file string, opts plugins.Options) (*plugins.Host, error) {
	t.Helper()
	opts.AllowUnlocked = true
	if opts.Logger == nil {
		opts.Logger = quiet()
	}
	host, err := plugins.Open(t.Context(), install(t, t.TempDir(), file), &opts)
	if err == nil {
		t.Cleanup(func() { _ = host.Close() })
	}
	return host, err
}

const goodFile = "mmplug-reranker-everything"

// rerank asks the test plugin to do what a word says.
func rerank(ctx context.Context, t testing.TB, host *plugins.Host, text string) ([]mapmatched.Scored, error) {
	t.Helper()
	reranker, err := host.Reranker()
	if err != nil {
		t.Fatal(err)
	}
	return reranker.Rerank(ctx, mapmatched.Query{Text: text}, []mapmatched.Candidate{{ChunkID: "a", Text: "four"}})
}

func TestMain(m *testing.M) {
	if hostMain() {
		return
	}
	code := m.Run()
	if built.dir != "" {
		_ = os.RemoveAll(built.dir)
	}
	os.Exit(code)
}
