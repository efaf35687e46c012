//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package embedded

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mapmatched/mmplug/mapmatched"
)

// Roles of the test binary when it runs as a child of a test.
const (
	roleVariable = "MMPLUG_EMBEDDED_TEST_ROLE"
	dirVariable  = "MMPLUG_EMBEDDED_TEST_DIR"
	roleWriter   = "writer" // replaces the index until it is killed
	roleFull     = "full"   // writes with so little room that the disk is full
)

func TestMain(m *testing.M) {
	switch dir := os.Getenv(dirVariable); os.Getenv(roleVariable) {
	case roleWriter:
		for i := 0; ; i++ {
			if err := Write(context.Background(), dir, killInput(i%2), nil); err != nil {
				fmt.Println(err)
				os.Exit(1)
			}
			fmt.Println("written")
		}
	case roleFull:
		signal.Ignore(syscall.SIGXFSZ) // so that writing too much fails instead
		limit := unix.Rlimit{Cur: 1 << 16, Max: 1 << 16}
		if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &limit); err != nil {
			fmt.Println(err)
			os.Exit(2)
		}
		if err := Write(context.Background(), dir, large(2000, 40, 1), nil); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// killInput is one of the two inputs that the writer alternates between.
func killInput(which int) Input { return large(300+which, 10, uint64(which+1)) }

// A writer killed at any moment leaves the old index, the new one or none, never
// a mixture, and the next writer is not hindered by what it left.
func TestKilledWriter(t *testing.T) {
	executable, err := os.Executable()
	if err != nil {
		t.Skip(err)
	}
	parent := t.TempDir()
	dir := filepath.Join(parent, "index")
	r := rand.New(rand.NewPCG(1, 1))
	rounds := 25
	if testing.Short() {
		rounds = 5
	}
	opens := 0
	for round := range rounds {
		cmd := exec.Command(executable)
		cmd.Env = append(os.Environ(), roleVariable+"="+roleWriter, dirVariable+"="+dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		// Let the child get to the middle of something. How long that is does
		// not decide whether the test passes.
		if round%3 > 0 {
			line := make([]byte, 64)
			if n, _ := out.Read(line); string(line[:n]) != "" && line[0] != 'w' {
				t.Fatalf("the writer says %q", line[:n])
			}
		}
		time.Sleep(time.Duration(r.IntN(40_000)) * time.Microsecond)
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // says that it was killed
		x, err := Open(t.Context(), dir, nil)
		if opens == 0 && mapmatched.KindOf(err) == mapmatched.KindNotFound {
			continue // killed before the first index was there
		}
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		opens++
		which := x.Manifest().Counts.Chunks - 300
		ids, err := x.ChunkIDs(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		chunks, err := x.Chunks(t.Context(), ids)
		if err != nil || which < 0 || which > 1 {
			t.Fatalf("round %d: %d chunks, %v", round, len(chunks), err)
		}
		for i, c := range killInput(which).Chunks {
			if chunks[i] != c {
				t.Fatalf("round %d: chunk %d is %v, want %v", round, i, chunks[i], c)
			}
		}
		_ = x.Close() // nil by contract, checked in TestClose
	}
	if opens == 0 {
		t.Error("no round got as far as an index: the test tests nothing")
	}
	if err := Write(t.Context(), dir, small(), nil); err != nil {
		t.Fatal(err)
	}
	onlyIndexIn(t, parent, "index")
}

// When a file cannot be written in full, the error says so, the old index is
// intact, and nothing is left beside it.
func TestNoRoom(t *testing.T) {
	executable, err := os.Executable()
	if err != nil {
		t.Skip(err)
	}
	parent := t.TempDir()
	dir := filepath.Join(parent, "index")
	built(t, dir, 4)
	cmd := exec.Command(executable)
	cmd.Env = append(os.Environ(), roleVariable+"="+roleFull, dirVariable+"="+dir)
	out, err := cmd.Output()
	if cmd.ProcessState.ExitCode() != 1 {
		t.Fatalf("exit code %d, %v, output %q", cmd.ProcessState.ExitCode(), err, out)
	}
	if got := string(out); got != "embedded: write: write "+filepath.Join(parent, ".index.mmplug-new", textName)+": file too large\n" {
		t.Errorf("the error is %q", got)
	}
	if got := chunksIn(t, dir); got != 4 {
		t.Errorf("%d chunks, want the old index with 4", got)
	}
	onlyIndexIn(t, parent, "index")
}
