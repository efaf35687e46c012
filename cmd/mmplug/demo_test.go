package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mapmatched/mmplug/adapters/embedded"
	"github.com/mapmatched/mmplug/examples/handbook"
)

type demoTurn struct {
	Query     string
	ChunkID   string `json:"chunk_id"`
	Pointwise string `json:"pointwise_chunk_id"`
	Texts     map[string]string
}

// The demo is the promise of the product: decoded, every turn finds the
// section that answers it; searched alone, the follow-ups do not.
func TestDemoKeepsItsPromise(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "handbook.idx")
	out := fine(t, "", "demo", "--keep", dir, "--json")
	got := unmarshal[struct {
		Turns          []demoTurn
		RightDecoded   int `json:"right_decoded"`
		RightPointwise int `json:"right_pointwise"`
	}](t, out)
	if len(got.Turns) != 6 || len(handbook.Conversation) != 6 || got.RightDecoded != 6 || got.RightPointwise != 2 {
		t.Fatalf("%d turns, %d right decoded, %d alone", len(got.Turns), got.RightDecoded, got.RightPointwise)
	}
	x, err := embedded.Open(t.Context(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close() //nolint:errcheck // only read
	answers := func(chunkID string, turn handbook.Turn) bool {
		t.Helper()
		chunks, err := x.Chunks(t.Context(), []string{chunkID})
		if err != nil || len(chunks) != 1 {
			t.Fatalf("chunk %q: %v, %v", chunkID, chunks, err)
		}
		return chunks[0].Document == turn.Page && strings.HasSuffix(chunks[0].Section, turn.Heading)
	}
	for i, turn := range handbook.Conversation {
		if got.Turns[i].Query != turn.Question {
			t.Errorf("turn %d asks %q, want %q", i+1, got.Turns[i].Query, turn.Question)
		}
		if !answers(got.Turns[i].ChunkID, turn) {
			t.Errorf("turn %d is decoded as %s, want %s of %s", i+1, got.Turns[i].ChunkID, turn.Heading, turn.Page)
		}
		if followUp := slices.Contains([]int{2, 3, 4, 6}, i+1); answers(got.Turns[i].Pointwise, turn) == followUp {
			t.Errorf("turn %d alone finds %s", i+1, got.Turns[i].Pointwise)
		}
	}
}

func TestDemo(t *testing.T) {
	out := fine(t, "", "demo")
	golden(t, "demo.txt", out)
	page := filepath.Join(t.TempDir(), "demo.html")
	with := fine(t, "", "demo", "--html", page)
	if want := strings.Replace(out, "  mmplug demo --html demo.html", page, 1); strings.Join(strings.Fields(with), " ") != strings.Join(strings.Fields(want), " ") {
		t.Errorf("with --html:\n%s", with)
	}
	html := get(t, page)
	for _, turn := range handbook.Conversation {
		if !strings.Contains(html, turn.Question) {
			t.Errorf("the page lacks %q", turn.Question)
		}
	}
	if !strings.Contains(html, "<svg") || !strings.Contains(html, "invitations.md#renewing") {
		t.Error("the page has no trellis")
	}
	if again := fine(t, "", "demo", "--json"); again != fine(t, "", "demo", "--json") {
		t.Error("two runs differ")
	}
}

// A kept index is the same whatever run made it, and can be asked.
func TestDemoKeep(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	out := fine(t, "", "demo", "--keep", a)
	if want := "Ask the handbook:        mmplug chat --index " + a + "\n"; !strings.Contains(out, want) {
		t.Errorf("the output lacks %q", want)
	}
	fine(t, "", "demo", "--keep", b)
	fine(t, "", "demo", "--keep", b) // replaced
	if !slices.Equal(names(t, dir), []string{"a", "b"}) {
		t.Errorf("left: %q", names(t, dir))
	}
	for _, name := range names(t, a) {
		if get(t, filepath.Join(a, name)) != get(t, filepath.Join(b, name)) {
			t.Errorf("%s differs", name)
		}
	}
	if out := fine(t, "", "ask", "--index", a, "How long does an access token last?"); !strings.Contains(out, "decoded   access-tokens.md#lifetime") {
		t.Error(out)
	}
	put(t, filepath.Join(dir, "c", "mine.txt"), "precious")
	fails(t, exitFailed, "", []string{"demo", "--keep", filepath.Join(dir, "c")}, "mine.txt", "give another directory")
	fails(t, exitFailed, "", []string{"demo", "--html", filepath.Join(dir, "none", "x.html")}, "cannot write", "x.html", "check the path")
}
