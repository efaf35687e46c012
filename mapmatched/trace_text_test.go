package mapmatched

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// parityTurn is what another implementation says after a turn.
type parityTurn struct {
	Trace  json.RawMessage `json:"trace"`
	Render string          `json:"render"`
}

// parityTurns reads the turns of the parity cases, which lie beside the
// repository and are absent from a plain checkout.
func parityTurns(t *testing.T) []parityTurn {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", "shared", "cases", "parity", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Skip("SKIP: no parity cases beside the repository")
	}
	var turns []parityTurn
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var c struct {
			Runs []struct {
				Turns []parityTurn `json:"turns"`
			} `json:"runs"`
		}
		if err := json.Unmarshal(data, &c); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, run := range c.Runs {
			turns = append(turns, run.Turns...)
		}
	}
	return turns
}

func TestTextMatchesParityCases(t *testing.T) {
	for _, turn := range parityTurns(t) {
		trace, err := ReadTrace(strings.NewReader(string(turn.Trace)))
		if err != nil {
			t.Fatalf("%v in %s", err, turn.Trace)
		}
		// The other implementation prints a negative zero as -0.
		want := strings.Split(turn.Render, "\n")
		for i := range want {
			want[i] = strings.ReplaceAll(want[i]+" ", " -0 ", "  0 ")
			want[i] = strings.TrimRight(want[i], " ")
		}
		if got := trace.Text(); got != strings.Join(want, "\n") {
			t.Fatalf("got\n%s\nwant\n%s", got, turn.Render)
		}
	}
}

func TestTextGapAndBreak(t *testing.T) {
	trace := gapTrace()
	want := strings.Join([]string{
		"path: a -> (gap) -> b",
		"mode: fixed-lag 2",
		"revised prior turns: 0",
		"committed through turn: 0",
		"",
		"turn  chunk  raw  normalized  emission  distance  transition  entropy  margin  cumulative",
		"----  -----  ---  ----------  --------  --------  ----------  -------  ------  ----------",
		"   0  a        2           1         1         0           0      0.5       1           1",
		"   1  (gap)    -           -         -         -           -        -       -           1",
		"   2  b        3           1         1         4           0        0     0.5           2",
		"",
		"gap at turn 1: nothing found",
		"break at turn 2: out of reach",
	}, "\n")
	if got := trace.Text(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestTextWithoutTurns(t *testing.T) {
	want := "path: none\nmode: full\nrevised prior turns: none\ncommitted through turn: none\n\n" +
		"turn  chunk  raw  normalized  emission  distance  transition  entropy  margin  cumulative\n" +
		"----  -----  ---  ----------  --------  --------  ----------  -------  ------  ----------"
	if got := (&Trace{}).Text(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// gapTrace is a trace of three turns with a gap and a break.
func gapTrace() *Trace {
	lag, committed := 2, 0
	return &Trace{
		FixedLag: &lag, CommittedThroughIndex: &committed, RevisedPriorIndices: []int{0},
		PathChunkIDs: []string{"a", "", "b"},
		Steps: []TraceStep{
			{
				TurnIndex: 0, ChunkID: "a", RawEmissionScore: 2, NormalizedEmissionScore: 1,
				WeightedEmissionScore: 1, EmissionEntropy: 0.5, NormalizedEmissionMargin: 1, CumulativeScore: 1,
			},
			{TurnIndex: 1, Gap: "nothing found", CumulativeScore: 1},
			{
				TurnIndex: 2, ChunkID: "b", Break: "out of reach", RawEmissionScore: 3, NormalizedEmissionScore: 1,
				WeightedEmissionScore: 1, GraphDistance: 4, EmissionEntropy: math.Copysign(0, -1),
				NormalizedEmissionMargin: 0.5, CumulativeScore: 2, Move: MoveJump,
			},
		},
	}
}

// Every line of the table is as wide in runes as its dashes say, and nothing
// that a terminal obeys comes through.
func TestTextEscapesAndAligns(t *testing.T) {
	ids := []string{
		"plain", "\x1b[2J\x1b]0;title\x07", "line\nbreak\ttab\r", "right\u202eto left", "文档/令牌", "bad\xffbyte",
		"nul\x00", "zero\u200bwidth", "sep\u2028line", `back\slash`, "é e\u0301",
	}
	for _, id := range ids {
		trace := &Trace{PathChunkIDs: []string{id}, Steps: []TraceStep{{
			ChunkID: id, RawEmissionScore: 1.5, Break: id,
		}, {TurnIndex: 1, Gap: id}}}
		text := trace.Text()
		if !utf8.ValidString(text) {
			t.Errorf("%q: not valid UTF-8: %q", id, text)
		}
		for _, r := range text {
			if r != '\n' && !unicode.IsGraphic(r) {
				t.Errorf("%q: %U comes through in %q", id, r, text)
			}
		}
		lines := strings.Split(text, "\n")
		if len(lines) != 12 {
			t.Fatalf("%q: %d lines, want 12:\n%s", id, len(lines), text)
		}
		if got, want := utf8.RuneCountInString(lines[7]), utf8.RuneCountInString(lines[6]); got != want {
			t.Errorf("%q: row has %d runes, dashes %d:\n%s", id, got, want, text)
		}
	}
}

func TestEscapeText(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"", ""},
		{"docs/a b#1", "docs/a b#1"},
		{"令牌 توكن 🚀", "令牌 توكن 🚀"},
		{"a\nb", `a\nb`},
		{"\x1b[31m", `\x1b[31m`},
		{"\u202e", `\u202e`},
		{"\xff", `\xff`},
		{"\ufffd", "\ufffd"},
		{"\U000e0001", `\U000e0001`},
		{`'"\`, `'"\`},
	} {
		if got := escapeText(c.in); got != c.want {
			t.Errorf("escapeText(%q) = %q, want %q", c.in, got, c.want)
		}
	}
}

// The expected texts are what C's printf gives for %.6g.
func TestFormatScore(t *testing.T) {
	for _, c := range []struct {
		in   float64
		want string
	}{
		{0, "0"},
		{math.Copysign(0, -1), "0"},
		{1, "1"},
		{-4.5, "-4.5"},
		{0.846274614158455, "0.846275"},
		{100000, "100000"},
		{999999.4, "999999"},
		{999999.5, "1e+06"},
		{1000000, "1e+06"},
		{1234567, "1.23457e+06"},
		{0.0001, "0.0001"},
		{0.00001, "1e-05"},
		{0.000099999949, "9.99999e-05"},
		{-0.0000123456789, "-1.23457e-05"},
		{1e200, "1e+200"},
		{1e-7, "1e-07"},
		{5e-324, "4.94066e-324"},
		{2.5e15, "2.5e+15"},
		{0.1 + 0.2, "0.3"},
	} {
		if got := formatScore(c.in); got != c.want {
			t.Errorf("formatScore(%v) = %q, want %q", c.in, got, c.want)
		}
	}
}
