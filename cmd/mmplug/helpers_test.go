package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files anew")

// asProgram, in the environment, makes the test binary the program itself.
const asProgram = "MMPLUG_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	code := m.Run()
	if handbookDir != "" {
		_ = os.RemoveAll(handbookDir) // what is left is in the directory for temporary files
	}
	os.Exit(code)
}

// ran is what a command line did.
type ran struct {
	out, err string
	code     int
}

// mmplug runs a command line with the given standard input.
func mmplug(t *testing.T, in string, args ...string) ran {
	t.Helper()
	return mmplugContext(t.Context(), in, args...)
}

func mmplugContext(ctx context.Context, in string, args ...string) ran {
	var out, err bytes.Buffer
	code := run(ctx, args, stdio{strings.NewReader(in), &out, &err})
	return ran{out.String(), err.String(), code}
}

// fine runs a command line that succeeds without complaint and returns what it
// printed.
func fine(t *testing.T, in string, args ...string) string {
	t.Helper()
	r := mmplug(t, in, args...)
	if r.code != exitOK || r.err != "" {
		t.Fatalf("mmplug %q: exit status %d, %s", args, r.code, r.err)
	}
	return r.out
}

// fails runs a command line that fails with that status, one line on standard
// error that has every one of the texts, and nothing on standard output.
func fails(t *testing.T, code int, in string, args []string, texts ...string) {
	t.Helper()
	r := mmplug(t, in, args...)
	wantComplaint(t, r.err, texts...)
	if r.code != code || r.out != "" {
		t.Errorf("mmplug %q: exit status %d, want %d; output %q", args, r.code, code, r.out)
	}
}

// wantComplaint checks that stderr is one line with every one of the texts.
func wantComplaint(t *testing.T, stderr string, texts ...string) {
	t.Helper()
	if !strings.HasPrefix(stderr, "mmplug: ") || strings.Count(stderr, "\n") != 1 || !strings.HasSuffix(stderr, "\n") {
		t.Errorf("standard error is not one line: %q", stderr)
	}
	for _, text := range texts {
		if !strings.Contains(stderr, text) {
			t.Errorf("standard error %q lacks %q", stderr, text)
		}
	}
}

// golden compares with a file in testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		put(t, path, got)
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; got\n%s", path, got)
	}
}

// put writes a file, with the directories it is in.
func put(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func get(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// names lists a directory.
func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	list := []string{}
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

var handbookDir string

// handbookIndex is an index of the handbook, made once for all tests.
var handbookIndex = sync.OnceValues(func() (string, error) {
	var err error
	if handbookDir, err = os.MkdirTemp("", "mmplug-test-"); err != nil {
		return "", err
	}
	dir := filepath.Join(handbookDir, "handbook.idx")
	return dir, demo(context.Background(), stdio{strings.NewReader(""), new(bytes.Buffer), new(bytes.Buffer)}, dir, "", false)
})

func handbookIdx(t *testing.T) string {
	t.Helper()
	dir, err := handbookIndex()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// unmarshal reads what a command printed with --json.
func unmarshal[T any](t *testing.T, text string) T {
	t.Helper()
	var v T
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return v
}

// turnsOf returns the turns that a command printed with --json, without the
// white space between tokens.
func turnsOf(t *testing.T, text string) []string {
	t.Helper()
	file := unmarshal[struct{ Turns []json.RawMessage }](t, text)
	var turns []string
	for _, raw := range file.Turns {
		turns = append(turns, compact(t, raw))
	}
	return turns
}

func compact(t *testing.T, raw []byte) string {
	t.Helper()
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
