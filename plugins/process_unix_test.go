//go:build unix

package plugins_test

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/mapmatched/registry"
	"github.com/mapmatched/mmplug/plugins"
)

// alive reports whether a process exists and is no zombie.
func alive(pid int) bool {
	s := state(pid)
	return s != "" && !strings.HasPrefix(s, "Z")
}

// state is the state of a process in the words of ps: S for sleeping, T for
// stopped, Z for a zombie.
func state(pid int) string {
	if runtime.GOOS == "linux" {
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		_, after, _ := strings.Cut(string(b), ") ")
		return after
	}
	out, _ := exec.Command("ps", "-o", "stat=", "-p", strconv.Itoa(pid)).Output()
	return strings.TrimSpace(string(out))
}

// freeze stops a process.
func freeze(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	eventually(t, 10*time.Second, "the process is stopped", func() bool { return strings.HasPrefix(state(pid), "T") })
}

// eventually expects a condition within some time.
func eventually(t *testing.T, limit time.Duration, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(limit); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not after %v: %s", limit, what)
		}
	}
}

// children lists the processes that this one has started and that are alive.
func children(t *testing.T) []string {
	t.Helper()
	if runtime.GOOS != "linux" {
		return nil
	}
	var out []string
	tasks, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		if b, err := os.ReadFile(task); err == nil {
			out = append(out, strings.Fields(string(b))...)
		}
	}
	return out
}

func TestStartFailures(t *testing.T) {
	good := binary(t)
	for _, c := range []struct {
		name, file string
		prepare    func(path string) error
		want       []string
		kind       mapmatched.Kind
	}{
		{"prints before the handshake", "mmplug-reranker-garbage", nil, []string{`printed "Loading model weights..." before the handshake`}, mapmatched.KindUnavailable},
		{"ends at once", "mmplug-reranker-dies", nil, []string{"ended with exit status 7", "before the handshake", "stderr: cannot open the index: it is locked"}, mapmatched.KindUnavailable},
		{"closes its standard output", "mmplug-reranker-closed", nil, []string{"it closed its standard output before the handshake"}, mapmatched.KindUnavailable},
		{"does not say what it is", "mmplug-reranker-mute", nil, []string{"info: unknown service", "the plugin was killed by the host"}, mapmatched.KindUnavailable},
		{"newer protocol", "mmplug-reranker-newer", nil, []string{"plugin speaks version 2 and later", "host 1 to 1", "upgrade the host"}, mapmatched.KindInvalid},
		{"older protocol", "mmplug-reranker-older", nil, []string{"plugin speaks versions up to 0", "host 1", "upgrade the plugin"}, mapmatched.KindInvalid},
		{"wrong cookie", "mmplug-reranker-foreign", nil, []string{"plugin of another program", "stderr: This binary is a plugin"}, mapmatched.KindUnavailable},
		{"no gRPC", "mmplug-reranker-netrpc", nil, []string{"it offers no gRPC"}, mapmatched.KindUnavailable},
		{"wrong kind", "mmplug-oracle-x", nil, nil, ""}, // any name will do for a path
		{"mode 0644", goodFile, func(path string) error { return copyFile(good, path, 0o644) }, []string{"mode 0644", "chmod +x"}, mapmatched.KindInvalid},
		{"a text file", goodFile, func(path string) error { return os.WriteFile(path, []byte("hello, world\n"), 0o755) }, []string{"neither a program nor a script"}, mapmatched.KindInvalid},
		{"an empty file", goodFile, func(path string) error { return os.WriteFile(path, nil, 0o755) }, []string{"is empty"}, mapmatched.KindInvalid},
		{"a directory", goodFile, func(path string) error { return os.Mkdir(path, 0o755) }, []string{"is not a file"}, mapmatched.KindInvalid},
		{"a script without interpreter", goodFile, func(path string) error { return os.WriteFile(path, []byte("#!/no/such/interpreter\n"), 0o755) }, []string{"interpreter or loader", "is not there"}, mapmatched.KindNotFound},
		{"a damaged program", goodFile, func(path string) error { return os.WriteFile(path, []byte("\x7fELFxx"), 0o755) }, []string{"it is damaged"}, mapmatched.KindInvalid},
		{"a script that fails", goodFile, func(path string) error {
			return os.WriteFile(path, []byte("#!/bin/sh\necho no module named grpc >&2\nexit 1\n"), 0o755)
		}, []string{"ended with exit status 1", "stderr: no module named grpc"}, mapmatched.KindUnavailable},
		{"a script that prints much", goodFile, func(path string) error {
			return os.WriteFile(path, []byte("#!/bin/sh\nhead -c 1000000 /dev/zero | tr '\\0' x\necho\n"), 0o755)
		}, []string{`printed "xxx`, "before the handshake"}, mapmatched.KindUnavailable},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), c.file)
			if c.prepare == nil {
				path = install(t, filepath.Dir(path), c.file)
			} else if err := c.prepare(path); err != nil {
				t.Fatal(err)
			}
			temp := t.TempDir()
			host, err := plugins.Open(t.Context(), path, &plugins.Options{AllowUnlocked: true, Logger: quiet(), TempDir: temp})
			if err == nil {
				if err := host.Close(); err != nil {
					t.Error(err)
				}
			}
			if (err != nil) != (c.want != nil) || mapmatched.KindOf(err) != c.kind {
				t.Fatalf("error %v of kind %q, want kind %q", err, mapmatched.KindOf(err), c.kind)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
					t.Errorf("error %q, want one line with %q", err, want)
				}
				if strings.Contains(err.Error(), "signal: killed") || strings.Contains(err.Error(), "StartTimeout") {
					t.Errorf("error %q: the host killed it, and time is not what it lacked", err)
				}
			}
			if left, _ := os.ReadDir(temp); len(left) > 0 {
				t.Errorf("%v is left behind", left)
			}
			if left := children(t); len(left) > 0 {
				t.Errorf("processes %v are left behind", left)
			}
		})
	}
}

func copyFile(from, to string, mode os.FileMode) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, b, mode)
}

func TestWrongArchitecture(t *testing.T) {
	arch := "arm64"
	if runtime.GOARCH == arch {
		arch = "amd64"
	}
	dir := t.TempDir()
	source := filepath.Join(dir, "main.go")
	if err := os.WriteFile(source, []byte("package main\n\nfunc main() {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, goodFile)
	cmd := exec.Command("go", "build", "-o", path, source)
	cmd.Env = append(os.Environ(), "GOFLAGS=", "CGO_ENABLED=0", "GOARCH="+arch)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	_, err := plugins.Open(t.Context(), path, &plugins.Options{AllowUnlocked: true})
	if want := fmt.Sprintf("built for the architecture %s, this machine is %s", arch, runtime.GOARCH); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %q", err, want)
	}
}

func TestTempDirTooLong(t *testing.T) {
	long := filepath.Join(t.TempDir(), strings.Repeat("d", 100))
	if err := os.Mkdir(long, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", long)
	_, err := open(t, goodFile, plugins.Options{})
	if err == nil || !strings.Contains(err.Error(), long) || !strings.Contains(err.Error(), "the limit is ") || mapmatched.KindOf(err) != mapmatched.KindInvalid {
		t.Errorf("error %v, want the path and the limit", err)
	}
	// The greatest length that is allowed works.
	short := t.TempDir()
	var limit int
	if _, after, ok := strings.Cut(err.Error(), "the limit is "); ok {
		if _, err := fmt.Sscan(after, &limit); err != nil {
			t.Fatal(err)
		}
	}
	if len(short)+2 > limit {
		t.Skipf("SKIP: the directory for tests, %s, is itself longer than the limit %d: set TMPDIR to a shorter one", short, limit)
	}
	short = filepath.Join(short, strings.Repeat("d", limit-len(short)-1))
	if err := os.Mkdir(short, 0o700); err != nil {
		t.Fatal(err)
	}
	host := start(t, goodFile, plugins.Options{TempDir: short})
	if _, err := rerank(t.Context(), t, host, "plain"); err != nil {
		t.Error(err)
	}
}

func TestStartTimeout(t *testing.T) {
	for _, file := range []string{"mmplug-reranker-silent", "mmplug-reranker-stopped"} {
		_, err := open(t, file, plugins.Options{StartTimeout: 300 * time.Millisecond})
		if !errors.Is(err, context.DeadlineExceeded) || mapmatched.KindOf(err) != mapmatched.KindDeadline || !strings.Contains(err.Error(), "not ready after 300ms") {
			t.Errorf("%s: error %v", file, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(100*time.Millisecond, cancel)
		_, err = plugins.Open(ctx, install(t, t.TempDir(), file), &plugins.Options{AllowUnlocked: true, Logger: quiet()})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: error %v, want %v", file, err, context.Canceled)
		}
	}
	if left := children(t); len(left) > 0 {
		t.Errorf("processes %v are left behind", left)
	}
}

func TestChattyAtStart(t *testing.T) {
	host := start(t, "mmplug-reranker-chatty", plugins.Options{})
	if _, err := rerank(t.Context(), t, host, "plain"); err != nil {
		t.Error(err)
	}
}

func TestFailedStartsLeaveNothing(t *testing.T) {
	temp := t.TempDir()
	goroutines := runtime.NumGoroutine()
	for i := range 20 {
		file := []string{"mmplug-reranker-dies", "mmplug-reranker-garbage", "mmplug-reranker-newer", "mmplug-reranker-foreign"}[i%4]
		if _, err := open(t, file, plugins.Options{TempDir: temp}); err == nil {
			t.Fatalf("%s started", file)
		}
		host := start(t, goodFile, plugins.Options{TempDir: temp})
		if err := host.Close(); err != nil {
			t.Error(err)
		}
	}
	eventually(t, 10*time.Second, "the goroutines end", func() bool { return runtime.NumGoroutine() <= goroutines })
	if left := children(t); len(left) > 0 {
		t.Errorf("processes %v are left behind", left)
	}
	if left, _ := os.ReadDir(temp); len(left) > 0 {
		t.Errorf("%v is left behind", left)
	}
}

// TestFrozen stops the process with SIGSTOP: a call times out, the next one
// finds out and starts it again.
func TestFrozen(t *testing.T) {
	host := start(t, goodFile, plugins.Options{CallTimeout: 200 * time.Millisecond})
	pid := host.Pid()
	freeze(t, pid)
	if _, err := rerank(t.Context(), t, host, "plain"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want %v", err, context.DeadlineExceeded)
	}
	if _, err := rerank(t.Context(), t, host, "plain"); err != nil || host.Starts() != 2 || alive(pid) {
		t.Errorf("the next call: error %v, %d starts, the old process alive %v", err, host.Starts(), alive(pid))
	}
}

func TestCloseFrozen(t *testing.T) {
	host := start(t, goodFile, plugins.Options{CloseTimeout: 100 * time.Millisecond})
	pid := host.Pid()
	freeze(t, pid)
	closed := make(chan error)
	go func() { closed <- host.Close() }()
	select {
	case err := <-closed:
		if err != nil || alive(pid) {
			t.Errorf("error %v, alive %v", err, alive(pid))
		}
	case <-time.After(20 * time.Second):
		t.Fatal("Close does not return")
	}
}

// TestCloseTimeout lets a plugin take its time to end.
func TestCloseTimeout(t *testing.T) {
	var log lockedBuffer
	host := start(t, "mmplug-reranker-everything-slowend", plugins.Options{CloseTimeout: time.Minute, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err := host.Close(); err != nil {
		t.Error(err)
	}
	if !strings.Contains(log.String(), "everything is written") {
		t.Errorf("the plugin was killed while it ended; the log has %q", log.String())
	}
}

// TestInheritedFiles: what the host has been left open by whoever started it
// does not reach a plugin.
func TestInheritedFiles(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("SKIP: the plugin lists its files in /proc; run this test on Linux")
	}
	fds := make([]int, 2)
	if err := syscall.Pipe(fds); err != nil { // as a shell leaves it, not closed on exec
		t.Fatal(err)
	}
	inherited := os.NewFile(uintptr(fds[0]), "inherited")
	defer func() { _ = inherited.Close(); _ = syscall.Close(fds[1]) }()
	pipe, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fds[0]))
	if err != nil {
		t.Fatal(err)
	}
	files, err := rerank(t.Context(), t, start(t, goodFile, plugins.Options{}), "files")
	if err != nil || len(files) < 3 {
		t.Fatalf("the plugin has %v open, error %v", files, err)
	}
	for _, f := range files {
		if f.ChunkID == pipe {
			t.Errorf("the plugin has %s open", pipe)
		}
	}
}

// TestForbiddenDirectory removes the run directory of a plugin that has locked
// it up.
func TestForbiddenDirectory(t *testing.T) {
	temp := t.TempDir()
	host := start(t, goodFile, plugins.Options{TempDir: temp})
	if _, err := rerank(t.Context(), t, host, "forbid"); err != nil {
		t.Fatal(err)
	}
	if err := host.Close(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("%v is left behind, error %v", left, err)
	}
}

func TestRelativeTempDir(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.Mkdir("temp", 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := rerank(t.Context(), t, start(t, goodFile, plugins.Options{TempDir: "temp"}), "plain"); err != nil {
		t.Error(err)
	}
}

func TestChildrenEnd(t *testing.T) {
	host := start(t, goodFile, plugins.Options{})
	for _, end := range []string{"crash", "close"} {
		got, err := rerank(t.Context(), t, host, "children")
		if err != nil {
			t.Fatal(err)
		}
		child := int(got[0].Score)
		if !alive(child) {
			t.Fatal("the child is not there")
		}
		if end == "crash" {
			_, _ = rerank(t.Context(), t, host, "exit now")
		} else if err := host.Close(); err != nil {
			t.Error(err)
		}
		eventually(t, 5*time.Second, "the child ends after "+end, func() bool { return !alive(child) })
	}
}

// hostMain is the host that TestHostKilled kills: this program, started again.
func hostMain() bool {
	path := os.Getenv("MM_TEST_HOST")
	if path == "" {
		return false
	}
	host, err := plugins.Open(context.Background(), path, &plugins.Options{AllowUnlocked: true})
	if err != nil {
		fmt.Println(err)
		return true
	}
	fmt.Println(host.Pid())
	reranker, _ := host.Reranker()
	_, _ = reranker.Rerank(context.Background(), mapmatched.Query{Text: os.Getenv("MM_TEST_CALL")}, nil)
	select {}
}

func TestHostKilled(t *testing.T) {
	for _, call := range []string{"plain", "hang"} {
		t.Run(call, func(t *testing.T) {
			temp := t.TempDir()
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), "MM_TEST_HOST="+install(t, t.TempDir(), goodFile), "MM_TEST_CALL="+call, "TMPDIR="+temp)
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			line, err := bufio.NewReader(out).ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			pid, err := strconv.Atoi(strings.TrimSpace(line))
			if err != nil || !alive(pid) {
				t.Fatalf("no plugin: %q", line)
			}
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
			eventually(t, 2*time.Second, "the plugin is gone", func() bool { return !alive(pid) })
			err = filepath.WalkDir(temp, func(path string, d os.DirEntry, err error) error {
				if err == nil && d.Type() == os.ModeSocket {
					t.Errorf("the socket %s is left behind", path)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			// The next host removes the directory.
			host := start(t, goodFile, plugins.Options{TempDir: temp})
			if dirs, err := os.ReadDir(temp); err != nil || len(dirs) != 1 {
				t.Errorf("%v in the temporary directory, error %v, want that of the new host alone", dirs, err)
			}
			if err := host.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestLock(t *testing.T) {
	dir := t.TempDir()
	ctx := t.Context()
	opts := &plugins.Options{Dir: dir, Logger: quiet()}
	path := install(t, dir, "mmplug-reranker-everything_v1.10.0")
	script := filepath.Join(dir, "notes.txt")
	if err := os.WriteFile(script, []byte("not a plugin"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := plugins.Open(ctx, "everything", opts); !errors.Is(err, plugins.ErrUnlocked) || !strings.Contains(err.Error(), plugins.LockFile) {
		t.Errorf("error %v, want %v", err, plugins.ErrUnlocked)
	}
	lock, err := plugins.WriteLock(ctx, dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	if len(lock.Plugins) != 1 || lock.Plugins[0].Version != "1.10.0" || lock.Plugins[0].OS != runtime.GOOS || lock.Plugins[0].Arch != runtime.GOARCH {
		t.Errorf("lock %+v", lock)
	}
	host, err := plugins.Open(ctx, "everything", opts)
	if err != nil {
		t.Fatal(err)
	}
	if err := host.Close(); err != nil {
		t.Error(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(b)
	for name, pinned := range map[string]struct {
		sum string
		err error
	}{"the digest": {hex.EncodeToString(sum[:]), nil}, "another": {strings.Repeat("0", 64), plugins.ErrChecksum}} {
		o := *opts
		o.Pins = map[string]string{"everything": pinned.sum}
		host, err := plugins.Open(ctx, "everything@1.10.0", &o)
		if !errors.Is(err, pinned.err) {
			t.Errorf("pinned to %s: error %v, want %v", name, err, pinned.err)
		}
		if err == nil {
			_ = host.Close()
		}
	}
	findings, err := plugins.Verify(dir)
	if err != nil || len(findings) != 1 || findings[0].Status != mapmatched.StatusOK {
		t.Errorf("findings %+v, error %v", findings, err)
	}

	// The file is replaced, which keeps the running one as it was.
	changed := append(slices.Clone(b), "changed"...)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, changed, 0o755); err != nil {
		t.Fatal(err)
	}
	got := sha256.Sum256(changed)
	_, err = plugins.Open(ctx, "everything", opts)
	if !errors.Is(err, plugins.ErrChecksum) || mapmatched.KindOf(err) != mapmatched.KindInvalid {
		t.Errorf("error %v, want %v", err, plugins.ErrChecksum)
	}
	for _, want := range []string{path, hex.EncodeToString(sum[:]), hex.EncodeToString(got[:])} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v lacks %s", err, want)
		}
	}
	o := *opts
	o.AllowUnlocked = true
	if _, err := plugins.Open(ctx, "everything", &o); !errors.Is(err, plugins.ErrChecksum) {
		t.Errorf("error %v: what is listed has to match, whatever is allowed", err)
	}
	if findings, err := plugins.Verify(dir); err != nil || findings[0].Status != mapmatched.StatusFailed {
		t.Errorf("findings %+v, error %v", findings, err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if findings, err := plugins.Verify(dir); err != nil || len(findings) != 1 || findings[0].Status != mapmatched.StatusFailed {
		t.Errorf("findings %+v, error %v: it is listed and not there", findings, err)
	}
}

// TestChangedWhileRunning replaces the binary under a running plugin: the
// restart refuses it.
func TestChangedWhileRunning(t *testing.T) {
	dir := t.TempDir()
	path := install(t, dir, goodFile)
	opts := &plugins.Options{Dir: dir, Logger: quiet(), RestartDelay: time.Millisecond}
	if _, err := plugins.WriteLock(t.Context(), dir, opts); err != nil {
		t.Fatal(err)
	}
	host, err := plugins.Open(t.Context(), "everything", opts)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = host.Close() }()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	_, _ = rerank(t.Context(), t, host, "exit now")
	if _, err := rerank(t.Context(), t, host, "plain"); !errors.Is(err, plugins.ErrChecksum) {
		t.Errorf("error %v, want %v", err, plugins.ErrChecksum)
	}
}

// TestPinSurvivesRestart: a pin under the name of the file counts at every
// start, and so does one under the plugin's own name, whatever plugins.lock
// says.
func TestPinSurvivesRestart(t *testing.T) {
	for _, c := range []struct{ file, pinned string }{{"mmplug-reranker-foo", "foo"}, {"mmplug-reranker-foo", "everything"}, {"renamed", "everything"}} {
		for _, by := range []string{"options", "context"} {
			t.Run(c.file+" pinned as "+c.pinned+" by "+by, func(t *testing.T) {
				path := install(t, t.TempDir(), c.file)
				program, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				sum := sha256.Sum256(program)
				pins := map[string]string{c.pinned: hex.EncodeToString(sum[:])}
				opts := &plugins.Options{AllowUnlocked: true, Logger: quiet(), RestartDelay: time.Millisecond}
				ctx := t.Context()
				if by == "options" {
					opts.Pins = pins
				} else {
					ctx = plugins.WithPins(ctx, pins)
				}
				host, err := plugins.Open(ctx, path, opts)
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = host.Close() }()
				_, _ = rerank(t.Context(), t, host, "exit now")
				if _, err := rerank(t.Context(), t, host, "plain"); err != nil {
					t.Errorf("the next start: %v", err)
				}
				if err := os.Remove(path); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, append(program, 'x'), 0o755); err != nil {
					t.Fatal(err)
				}
				_, _ = rerank(t.Context(), t, host, "exit now")
				if _, err := rerank(t.Context(), t, host, "plain"); !errors.Is(err, plugins.ErrChecksum) {
					t.Errorf("after a change: error %v, want %v", err, plugins.ErrChecksum)
				}
			})
		}
	}
}

// TestOwnNamePinned: a file that is pinned under one name may not call itself
// by a name that is pinned to another file.
func TestOwnNamePinned(t *testing.T) {
	path := install(t, t.TempDir(), "mmplug-reranker-foo")
	program, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(program)
	ctx := plugins.WithPins(t.Context(), map[string]string{"foo": hex.EncodeToString(sum[:]), "everything": strings.Repeat("0", 64)})
	if _, err := plugins.Open(ctx, path, &plugins.Options{AllowUnlocked: true, Logger: quiet()}); !errors.Is(err, plugins.ErrChecksum) || !strings.Contains(err.Error(), "pinned for everything") {
		t.Errorf("error %v, want %v", err, plugins.ErrChecksum)
	}
}

// TestRegistryUnderPins opens every kind by URL under a list of plugins that
// this one is not in.
func TestRegistryUnderPins(t *testing.T) {
	dir := t.TempDir()
	install(t, dir, goodFile)
	install(t, dir, "renamed")
	for _, ctx := range []context.Context{
		plugins.WithPins(t.Context(), map[string]string{"everything": strings.Repeat("0", 64)}),
		plugins.WithPins(t.Context(), map[string]string{"other": strings.Repeat("0", 64)}),
	} {
		for _, place := range []string{"plugin:everything?dir=" + dir + "&", "plugin:%65verything?dir=" + dir + "&", "PLUGIN:" + dir + "/" + goodFile + "?", "plugin:" + dir + "/renamed?"} {
			url := place + "allow_unlocked=true"
			_, provider := registry.OpenProvider(ctx, url)
			_, graph := registry.OpenGraph(ctx, url)
			_, embedder := registry.OpenEmbedder(ctx, url)
			_, reranker := registry.OpenReranker(ctx, url)
			for kind, err := range map[string]error{"provider": provider, "graph": graph, "embedder": embedder, "reranker": reranker} {
				missing := errors.Is(err, os.ErrNotExist) && strings.Contains(place, "verything?dir") && kind != "reranker" // it is named as a reranker
				if !errors.Is(err, plugins.ErrChecksum) && !missing {
					t.Errorf("%s opened as %s: error %v, want %v", url, kind, err, plugins.ErrChecksum)
				}
			}
		}
	}
}

// TestLockRefusesAlias: a file and the plugin in it have one name.
func TestLockRefusesAlias(t *testing.T) {
	dir := t.TempDir()
	install(t, dir, "mmplug-reranker-foo")
	_, err := plugins.WriteLock(t.Context(), dir, &plugins.Options{Logger: quiet()})
	if err == nil || !strings.Contains(err.Error(), "calls itself everything: rename the file to mmplug-reranker-everything") {
		t.Errorf("error %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, plugins.LockFile)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("plugins.lock: error %v", err)
	}
}

// TestLockedVersion: the version of a file that does not name it is that of
// plugins.lock.
func TestLockedVersion(t *testing.T) {
	dir := t.TempDir()
	opts := &plugins.Options{Dir: dir, Logger: quiet()}
	install(t, dir, goodFile)
	if _, err := plugins.WriteLock(t.Context(), dir, opts); err != nil {
		t.Fatal(err)
	}
	host, err := plugins.Open(t.Context(), "everything@1.10.0", opts)
	if err != nil {
		t.Fatal(err)
	}
	if err := host.Close(); err != nil {
		t.Error(err)
	}
	if _, err := plugins.Open(t.Context(), "everything@1.9.0", opts); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v: the file is of version 1.10.0", err)
	}
	// The locked version is newer than the one in another file's name.
	install(t, dir, "mmplug-reranker-everything_v1.9.0")
	if host, err = plugins.Open(t.Context(), "everything", opts); err != nil {
		t.Fatalf("%v: want the newer, locked one", err)
	}
	if err := host.Close(); err != nil {
		t.Error(err)
	}
}

func TestNewestVersion(t *testing.T) {
	dir := t.TempDir()
	for _, file := range []string{"mmplug-reranker-everything_v1.9.0", "mmplug-reranker-everything_v1.10.0", "mmplug-reranker-everything_v1.10.0-rc.1", "mmplug-reranker-everything_v1.2.0"} {
		install(t, dir, file)
	}
	entries, err := plugins.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	var versions []string
	for _, e := range entries {
		versions = append(versions, e.Version)
	}
	if got := strings.Join(versions, " "); got != "1.2.0 1.9.0 1.10.0-rc.1 1.10.0" {
		t.Errorf("order %s", got)
	}
	if _, err := plugins.Open(t.Context(), "everything@1.3.0", &plugins.Options{Dir: dir, AllowUnlocked: true}); !errors.Is(err, os.ErrNotExist) || mapmatched.KindOf(err) != mapmatched.KindNotFound {
		t.Errorf("error %v", err)
	}
	if _, err := plugins.WriteLock(t.Context(), dir, &plugins.Options{Logger: quiet()}); err == nil || !strings.Contains(err.Error(), "says that it is version 1.10.0") {
		t.Errorf("error %v: file names and versions differ", err)
	}
}
