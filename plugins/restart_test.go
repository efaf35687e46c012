//go:build linux

package plugins_test

import (
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/mapmatched/mmplug/plugins"
)

// resources are what restarts must not use up.
type resources struct {
	files, goroutines, threads, directories, children int
	heap                                              uint64
}

func measureResources(t *testing.T, temp string) resources {
	t.Helper()
	count := func(dir string) int {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return resources{count("/proc/self/fd"), runtime.NumGoroutine(), count("/proc/self/task"), count(temp), len(children(t)), m.HeapAlloc}
}

func TestRestarts(t *testing.T) {
	const restarts, warm = 500, 50
	temp := t.TempDir()
	host := start(t, goodFile, plugins.Options{TempDir: temp})
	var before resources
	for i := range restarts {
		if i == warm {
			before = measureResources(t, temp)
		}
		pid := host.Pid()
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(20 * time.Second); host.Pid() != 0; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("restart %d: the host does not see that the plugin is dead", i)
			}
		}
		if _, err := rerank(t.Context(), t, host, "plain"); err != nil {
			t.Fatalf("restart %d: %v", i, err)
		}
	}
	after := measureResources(t, temp)
	if n := host.Starts(); n != restarts+1 {
		t.Errorf("%d starts, want %d", n, restarts+1)
	}
	t.Logf("after %d restarts: %+v", warm, before)
	t.Logf("after %d restarts: %+v", restarts, after)
	const slack, heapSlack = 5, 4 << 20
	for _, c := range []struct {
		what          string
		before, after int
	}{
		{"file descriptors", before.files, after.files}, {"goroutines", before.goroutines, after.goroutines}, {"threads", before.threads, after.threads},
		{"run directories", before.directories, after.directories}, {"child processes", before.children, after.children},
	} {
		if c.after > c.before+slack {
			t.Errorf("%s: %d after %d restarts, %d after %d", c.what, c.before, warm, c.after, restarts)
		}
	}
	if after.directories != 1 || after.children != 1 {
		t.Errorf("%d run directories and %d child processes, want 1 and 1", after.directories, after.children)
	}
	if after.heap > before.heap+heapSlack {
		t.Errorf("heap of %d bytes after %d restarts, %d after %d", before.heap, warm, after.heap, restarts)
	}
}
