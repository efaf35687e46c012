package python

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/plugins"
)

// own is a plugin that fails at some questions.
const own = `#!/usr/bin/python3
import logging
from mmplug_plugin import serve

class Own:
    def Rerank(self, request, response, context):
        logging.warning("asked: %s", request.query.text)
        print("printed, not logged")
        if request.query.text == "crash":
            raise KeyError("no such thing")
        for c in request.candidates:
            response.scores.add(chunk_id=c.chunk_id, score=float(len(c.text)))

serve("own", "0.1.0", {"Reranker": Own()})
`

// script writes a plugin as files, not packed, as while it is developed.
func script(t *testing.T) string {
	t.Helper()
	plugin(t, "") // skips without Python
	dir := t.TempDir()
	for name, data := range map[string][]byte{"mmplug_plugin.py": Helper, "mmplug_v1.pb": Descriptors, "mmplug-reranker-own": []byte(own)} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "mmplug-reranker-own")
}

// buffer may be written by one goroutine and read by another.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// An exception fails its call alone and says where it was raised; what is
// logged arrives in the host's log, and what is printed does no harm.
func TestExceptionsAndLog(t *testing.T) {
	var log buffer
	host, err := plugins.Open(t.Context(), script(t), &plugins.Options{AllowUnlocked: true, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	reranker, err := host.Reranker()
	if err != nil {
		t.Fatal(err)
	}
	candidates := []mapmatched.Candidate{{ChunkID: "a", Text: "four"}}
	_, err = reranker.Rerank(t.Context(), mapmatched.Query{Text: "crash"}, candidates)
	if err == nil || !strings.Contains(err.Error(), "KeyError: 'no such thing' (mmplug-reranker-own:10)") {
		t.Errorf("error %v, want the exception and its line", err)
	}
	got, err := reranker.Rerank(t.Context(), mapmatched.Query{Text: "again"}, candidates)
	if err != nil || len(got) != 1 || got[0] != (mapmatched.Scored{ChunkID: "a", Score: 4}) {
		t.Errorf("after the exception: %v, error %v", got, err)
	}
	if n := host.Starts(); n != 1 {
		t.Errorf("the plugin was started %d times", n)
	}
	if err := host.Close(); err != nil { // everything logged is there then
		t.Error(err)
	}
	for _, want := range []string{`level=WARN msg="asked: crash" plugin=own`, "level=ERROR", "Traceback"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %q:\n%s", want, log.String())
		}
	}
}

// Started by a person, a plugin says what it is.
func TestStartedByHand(t *testing.T) {
	cmd := exec.Command(plugin(t, overlapPlugin))
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != 1 || !strings.Contains(string(out), "is a plugin of mmplug") {
		t.Errorf("%v: %s", err, out)
	}
}

// When the host is gone, however it went, the plugin goes too and leaves
// nothing behind.
func TestEndsWithItsHost(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	dir := t.TempDir()
	cmd := exec.CommandContext(ctx, plugin(t, overlapPlugin))
	cmd.Env = []string{"MMPLUG_PLUGIN=mapmatched-retrieval", "PLUGIN_PROTOCOL_VERSIONS=1", "PLUGIN_UNIX_SOCKET_DIR=" + dir, "MMPLUG_WATCH_STDIN=1"}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	parts := strings.Split(strings.TrimSuffix(line, "\n"), "|")
	if err != nil || len(parts) != 6 || fmt.Sprint(parts[:3], parts[4:]) != "[1 1 unix] [grpc ]" || !strings.HasPrefix(parts[3], dir) {
		t.Errorf("handshake %q, error %v", line, err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) == 0 {
		t.Errorf("no socket in %s, error %v", dir, err)
	}
	if err := stdin.Close(); err != nil { // as the kernel does for a host that is gone
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("%d files are left behind, error %v", len(entries), err)
	}
}
