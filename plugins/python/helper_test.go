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
import sys
from mmplug_plugin import invalid, serve

class Own:
    def Rerank(self, request, response, context):
        logging.warning("asked: %s", request.query.text)
        print("printed, not logged")
        match request.query.text:
            case "crash":
                raise KeyError("no such thing")
            case "exit":
                sys.exit("had enough")
            case "interrupt":
                raise KeyboardInterrupt
            case "surrogate":
                raise ValueError("half a \ud83d rocket")
            case "invalid surrogate":
                raise invalid("half a \ud83d rocket")
            case "log":
                try:
                    1 / 0
                except ZeroDivisionError:
                    logging.exception("cannot divide", extra={"shard": 7, "nan": float("nan"), "part": {1, }, "level": "mine"})
                logging.error("half a \ud83d rocket %s", "and", "too many")
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
	host, err := plugins.Open(t.Context(), script(t), &plugins.Options{AllowUnlocked: true, CallTimeout: 20 * time.Second, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	reranker, err := host.Reranker()
	if err != nil {
		t.Fatal(err)
	}
	candidates := []mapmatched.Candidate{{ChunkID: "a", Text: "four"}}
	for text, want := range map[string]string{
		"crash":             "KeyError: 'no such thing' (mmplug-reranker-own:12)",
		"exit":              "SystemExit: had enough (mmplug-reranker-own:14)",
		"interrupt":         "KeyboardInterrupt: (mmplug-reranker-own:16)",
		"surrogate":         "ValueError: half a ? rocket (mmplug-reranker-own:18)",
		"invalid surrogate": "half a ? rocket",
	} {
		_, err = reranker.Rerank(t.Context(), mapmatched.Query{Text: text}, candidates)
		if err == nil || !strings.Contains(err.Error(), want) || mapmatched.KindOf(err) == mapmatched.KindDeadline {
			t.Errorf("%s: error %v, want %q", text, err, want)
		}
	}
	if _, err := reranker.Rerank(t.Context(), mapmatched.Query{Text: "log"}, candidates); err != nil {
		t.Error(err)
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
	for _, want := range []string{
		`level=WARN msg="asked: crash" plugin=own`, "level=ERROR", "Traceback",
		`level=ERROR msg="cannot divide" plugin=own attrs.exception="Traceback`, "ZeroDivisionError: division by zero", " attrs.level=mine attrs.nan=nan attrs.part={1} attrs.shard=7",
	} {
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
	select {}
}
