//go:build unix

package python

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mapmatched/mmplug/plugins"
)

// TestHostKilled kills the host with no time to tidy up: the plugin goes, its
// socket is gone since it was connected, and the next host removes the
// directory.
func TestHostKilled(t *testing.T) {
	path := plugin(t, overlapPlugin)
	temp := t.TempDir()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "MM_TEST_HOST="+path, "TMPDIR="+temp)
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
	if err != nil {
		t.Fatalf("no plugin: %q", line)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	dirs, err := os.ReadDir(temp)
	if err != nil || len(dirs) != 1 {
		t.Errorf("%v in the temporary directory, error %v, want one run directory", dirs, err)
	}
	err = filepath.WalkDir(temp, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type() == os.ModeSocket {
			t.Errorf("the socket %s is left behind", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	for deadline := time.Now().Add(20 * time.Second); syscall.Kill(pid, 0) == nil && !isZombie(pid); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the plugin is still there")
		}
	}
	host, err := plugins.Open(t.Context(), path, &plugins.Options{AllowUnlocked: true, TempDir: temp})
	if err != nil {
		t.Fatal(err)
	}
	if err := host.Close(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("%v is left behind, error %v", left, err)
	}
}

// isZombie reports whether a process has ended and waits for its parent.
func isZombie(pid int) bool {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)) // there is none on other systems
	_, state, _ := strings.Cut(string(b), ") ")
	return strings.HasPrefix(state, "Z")
}
