package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mapmatched/mmplug/mapmatched"
)

// roadTurns is the README's example: the second turn alone would jump.
const roadTurns = `{
 "graph": {"maximum_distance": 4, "edges": [["hmm", "noise", 1], ["noise", "road-jumps", 1]]},
 "options": {"score_normalization": "none"},
 "turns": [[["hmm", 5], ["noise", 1], ["road-jumps", 0]], [["hmm", 1], ["noise", 3], ["road-jumps", 3.5]], []]}`

func TestDecode(t *testing.T) {
	path := filepath.Join(t.TempDir(), "turns.json")
	put(t, path, roadTurns)
	text, answers := fine(t, "", "decode", path), fine(t, "", "decode", "--json", path)
	golden(t, "decode.txt", text)
	golden(t, "decode.json", answers)
	if fine(t, roadTurns, "decode", "-") != text || fine(t, roadTurns, "decode", "-", "--json") != answers {
		t.Error("standard input is decoded otherwise")
	}
	// Each answer is what the turns so far give.
	turns := turnsOf(t, answers)
	file := unmarshal[map[string]json.RawMessage](t, roadTurns)
	all := unmarshal[[]json.RawMessage](t, string(file["turns"]))
	for i := range all {
		prefix, err := json.Marshal(map[string]any{"graph": file["graph"], "options": file["options"], "turns": all[:i+1]})
		if err != nil {
			t.Fatal(err)
		}
		if got := turnsOf(t, fine(t, string(prefix), "decode", "--json", "-")); !slices.Equal(got, turns[:i+1]) {
			t.Errorf("after %d turns\n%s\nwant\n%s", i+1, got, turns[:i+1])
		}
	}
	for _, none := range []string{`{}`, `{"turns": []}`} {
		if text, answers := fine(t, none, "decode", "-"), fine(t, none, "decode", "-", "--json"); text != "no turns\n" || answers != "{\n  \"turns\": []\n}\n" {
			t.Errorf("%s gives %q and %q", none, text, answers)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		code  int
		in    string
		args  []string
		texts []string
	}{
		{exitUsage, "", nil, []string{"0 arguments given; usage: mmplug decode FILE|-"}},
		{exitUsage, "", []string{"a", "b"}, []string{"2 arguments given; usage: mmplug decode FILE|-"}},
		{exitUsage, "", []string{"-", "--yaml"}, []string{`unknown flag: --yaml; see "mmplug decode --help"`}},
		{exitFailed, "", []string{filepath.Join(dir, "none")}, []string{"cannot read " + dir, "none: no such file or directory; check the path"}},
		{exitFailed, "", []string{dir}, []string{"cannot read " + dir + ": is a directory; name a file"}},
		{exitFailed, "", []string{"-"}, []string{"standard input: decode input: it is empty"}},
		{exitFailed, "null", []string{"-"}, []string{"standard input: decode input: null is not an object"}},
		{exitFailed, "\x7fELF\x00", []string{"-"}, []string{"standard input: decode input: it is not JSON at byte 1"}},
		{exitFailed, `{"turns": [[["a", NaN]]]}`, []string{"-"}, []string{"not JSON at byte 19"}},
		{exitFailed, `{"turns": [[["a", 1e999]]]}`, []string{"-"}, []string{"turns[0][0]", "1e999 is not in the range"}},
		{exitFailed, `{"options": {"beta": 1}}`, []string{"-"}, []string{`options: unknown key "beta"; the keys are`}},
		{exitFailed, `{"options": {"beam": -1, "on_empty": "x"}}`, []string{"-"}, []string{"beam is -1", `on_empty is "x"`}},
		{exitFailed, `{"turns": [[["a", 1], ["a", 1]]]}`, []string{"-"}, []string{`standard input: turn 0: chunk "a": duplicate candidate`}},
		{exitFailed, `{"turns": [[["a\u001b[31m\n", 1], ["a\u001b[31m\n", 1]]]}`, []string{"-"}, []string{"duplicate candidate"}},
		{exitFailed, `{"graph": {"maximum_distance": -1}}`, []string{"-"}, []string{"standard input: graph: maximum distance -1"}},
	} {
		fails(t, c.code, c.in, append([]string{"decode"}, c.args...), c.texts...)
	}
}

// decode --json says what another implementation says about its streams, when
// those are beside this checkout.
func TestDecodeParity(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "..", "shared", "cases", "parity", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Skip("SKIP: the parity cases are not beside this checkout")
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		c := unmarshal[struct {
			Graph, Turns json.RawMessage
			Parameters   map[string]any
			Runs         []struct {
				Normalization string
				Lag           *int `json:"fixed_lag"`
				Turns         []struct {
					ChunkID string           `json:"chunk_id"`
					Context []string         `json:"context_chunk_ids"`
					Total   float64          `json:"total_score"`
					Trace   mapmatched.Trace `json:"trace"`
				}
			}
		}](t, string(raw))
		for _, run := range c.Runs {
			c.Parameters["score_normalization"], c.Parameters["fixed_lag"] = run.Normalization, run.Lag
			in, err := json.Marshal(map[string]any{"graph": c.Graph, "options": c.Parameters, "turns": c.Turns})
			if err != nil {
				t.Fatal(err)
			}
			got := unmarshal[struct{ Turns []mapmatched.Answer }](t, fine(t, string(in), "decode", "--json", "-")).Turns
			if len(got) != len(run.Turns) {
				t.Fatalf("%s: %d answers for %d turns", file, len(got), len(run.Turns))
			}
			for i, want := range run.Turns {
				label := fmt.Sprintf("%s %s turn %d", filepath.Base(file), run.Normalization, i)
				g := got[i]
				if g.ChunkID == nil || *g.ChunkID != want.ChunkID || g.Ranking[0].ChunkID != want.ChunkID || !slices.Equal(g.ContextChunkIDs, want.Context) {
					t.Errorf("%s: %+v, want %+v", label, g, want)
				}
				if !(math.Abs(g.Path.TotalScore-want.Total) <= 1e-9) {
					t.Errorf("%s: total %v, want %v", label, g.Path.TotalScore, want.Total)
				}
				// The other implementation records neither settings nor
				// confidences; what it does record has to agree.
				for k := range g.Trace.Steps {
					s := &g.Trace.Steps[k]
					s.Confidence, s.PosteriorEntropy, s.Move = 0, 0, ""
				}
				diff := mapmatched.DiffTraces(g.Trace, &want.Trace)
				if len(diff.Whole) > 0 || len(diff.Turns) > 0 {
					t.Errorf("%s: %s", label, diff)
				}
			}
		}
	}
}

// The README's promise about floats: what is printed reads back to the bits.
func TestDecodeFloatsRoundTrip(t *testing.T) {
	in := `{"options": {"score_normalization": "none"}, "turns": [[["a", 0.1], ["b", 5e-324], ["c", -1.7976931348623157e308], ["d", 123456789012345680]]]}`
	got := unmarshal[struct{ Turns []mapmatched.Answer }](t, fine(t, in, "decode", "--json", "-")).Turns[0].Ranking
	want := []mapmatched.RankedChunk{{ChunkID: "d", Score: 123456789012345680}, {ChunkID: "a", Score: 0.1}, {ChunkID: "b", Score: 5e-324}, {ChunkID: "c", Score: -math.MaxFloat64}}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if out := fine(t, `{"turns": [[["<&>\u2028é", 1]]]}`, "decode", "--json", "-"); !strings.Contains(out, "<&>") || !strings.Contains(out, "é") {
		t.Errorf("characters are escaped without need:\n%s", out)
	}
}
