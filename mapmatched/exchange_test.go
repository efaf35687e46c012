package mapmatched

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

func TestReadProblem(t *testing.T) {
	p, err := ReadProblem(strings.NewReader(`
		{"turns": [[["a", 5], ["b", 1]], [], [["b", -3e-1]]],
		 "options": {"fixed_lag": 0, "score_normalization": "none", "beam": null, "context_limit": 0},
		 "graph": {"directed": true, "nodes": ["x"], "edges": [["a", "b", 1.5]], "maximum_distance": 4}} `))
	if err != nil {
		t.Fatal(err)
	}
	want := &Problem{
		Edges:  []Edge{{From: "a", To: "b", Weight: 1.5}},
		Graph:  GraphOptions{Nodes: []string{"x"}, Directed: true, MaximumDistance: 4},
		Config: Config{FixedLag: new(0), ScoreNormalization: NormalizeNone, ContextLimit: new(0)},
		Turns:  [][]Candidate{{{ChunkID: "a", Score: 5}, {ChunkID: "b", Score: 1}}, {}, {{ChunkID: "b", Score: -0.3}}},
	}
	if !reflect.DeepEqual(p, want) {
		t.Errorf("got %+v, want %+v", p, want)
	}
}

// What is left out, empty or null takes its default.
func TestReadProblemDefaults(t *testing.T) {
	for _, input := range []string{
		`{}`,
		`{"graph": {}, "options": {}, "turns": []}`,
		`{"graph": null, "options": null, "turns": null}`,
		`{"graph": {"maximum_distance": null, "directed": null, "nodes": null, "edges": null}, "options": {"fixed_lag": null, "candidate_limit": null}}`,
	} {
		p, err := ReadProblem(strings.NewReader(input))
		if err != nil {
			t.Errorf("%s: %v", input, err)
			continue
		}
		if !reflect.DeepEqual(p, &Problem{}) {
			t.Errorf("%s: got %+v", input, p)
		}
		if answers, err := p.Decode(t.Context()); err != nil || len(answers) != 0 {
			t.Errorf("%s: %v, %v", input, answers, err)
		}
	}
}

var badProblems = []struct{ input, want string }{
	{``, `it is empty`},
	{"  \n", `it is empty`},
	{`{"turns": [`, `the JSON ends in the middle`},
	{`null`, `null is not an object with the keys graph, options, turns`},
	{`[]`, `[] is not an object with the keys graph, options, turns`},
	{`3`, `3 is not an object with the keys graph, options, turns`},
	{`{} {}`, `something follows the JSON value, which ends at byte 2`},
	{`{}]`, `something follows the JSON value, which ends at byte 2`},
	{"\ufeff{}", `it is not JSON at byte 1: invalid character 'ï' looking for beginning of value`},
	{"\x00\x01", `it is not JSON at byte 1: invalid character '\x00' looking for beginning of value`},
	{"{\"turns\": [[[\"\xff\", 1]]]}", `it is not UTF-8; save it in that encoding`},
	{`{"turn": []}`, `unknown key "turn"; the keys are graph, options, turns`},
	{`{"Turns": []}`, `unknown key "Turns"; the keys are graph, options, turns`},
	{`{"turns": [], "turns": []}`, `the key "turns" is given twice`},

	{`{"graph": []}`, `graph: [] is not an object with the keys maximum_distance, directed, nodes, edges`},
	{`{"graph": {"weight": 1}}`, `graph: unknown key "weight"; the keys are maximum_distance, directed, nodes, edges`},
	{`{"graph": {"edges": [], "edges": []}}`, `graph: the key "edges" is given twice`},
	{`{"graph": {"maximum_distance": 0}}`, `graph.maximum_distance: 0 is no distance: invalid configuration: give a positive number or leave it out for 10`},
	{`{"graph": {"maximum_distance": "4"}}`, `graph.maximum_distance: "4" is not a number`},
	{`{"graph": {"maximum_distance": 1e999}}`, `graph.maximum_distance: 1e999 is not in the range of a 64-bit number`},
	{`{"graph": {"directed": 1}}`, `graph.directed: 1 is not true or false`},
	{`{"graph": {"nodes": "a"}}`, `graph.nodes: "a" is not a list`},
	{`{"graph": {"nodes": ["a", 3]}}`, `graph.nodes[1]: 3 is not a string`},
	{`{"graph": {"nodes": [null]}}`, `graph.nodes[0]: null is not a string`},
	{`{"graph": {"edges": {}}}`, `graph.edges: {} is not a list`},
	{`{"graph": {"edges": [["a", "b"]]}}`, `graph.edges[0]: ["a", "b"] is not [from, to, weight]`},
	{`{"graph": {"edges": [["a", "b", 1], ["a", "b", "1"]]}}`, `graph.edges[1]: ["a", "b", "1"] is not [from, to, weight]: "1" is not a number`},
	{`{"graph": {"edges": [null]}}`, `graph.edges[0]: null is not [from, to, weight]`},

	{`{"options": 3}`, `options: 3 is not an object with the keys beam, break_distance, candidate_limit, context_limit, context_radius, emission_weight, fixed_lag, on_empty, rank_by, score_normalization, temperature, transition_weight`},
	{`{"options": {"beta": 1}}`, `options: unknown key "beta"; the keys are beam, break_distance, candidate_limit, context_limit, context_radius, emission_weight, fixed_lag, on_empty, rank_by, score_normalization, temperature, transition_weight`},
	{`{"options": {"Emission_Weight": 1}}`, `options: unknown key "Emission_Weight"; the keys are beam, break_distance, candidate_limit, context_limit, context_radius, emission_weight, fixed_lag, on_empty, rank_by, score_normalization, temperature, transition_weight`},
	{`{"options": {"beam": 1, "beam": 2}}`, `options: the key "beam" is given twice`},
	{`{"options": {"emission_weight": "1"}}`, `options.emission_weight: "1" is not a number`},
	{`{"options": {"fixed_lag": 1.5}}`, `options.fixed_lag: 1.5 is not a whole number`},
	{`{"options": {"candidate_limit": 99999999999999999999}}`, `options.candidate_limit: 99999999999999999999 is not in the range of a 64-bit number`},
	{`{"options": {"on_empty": true}}`, `options.on_empty: true is not a string`},
	{`{"options": {"candidate_limit": 0}}`, `options: candidate_limit is 0: invalid configuration: leave it out for the default`},
	{`{"options": {"emission_weight": -1, "on_empty": "x"}}`, "options: emission_weight is -1: invalid configuration: it must be finite and at least 0\non_empty is \"x\": invalid configuration: it must be gap or error"},

	{`{"turns": {}}`, `turns: {} is not a list`},
	{`{"turns": [[], {}]}`, `turns[1]: {} is not a list`},
	{`{"turns": [null]}`, `turns[0]: null is not a list of candidates; write [] for a turn without any`},
	{`{"turns": [[["a"]]]}`, `turns[0][0]: ["a"] is not [chunk_id, score]`},
	{`{"turns": [[["a", 1, 2]]]}`, `turns[0][0]: ["a", 1, 2] is not [chunk_id, score]`},
	{`{"turns": [[["a", 1], {"b": 2}]]}`, `turns[0][1]: {"b": 2} is not [chunk_id, score]`},
	{`{"turns": [[["a", null]]]}`, `turns[0][0]: ["a", null] is not [chunk_id, score]: null is not a number`},
	{`{"turns": [[[null, 1]]]}`, `turns[0][0]: [null, 1] is not [chunk_id, score]: null is not a string`},
	{`{"turns": [[], [["a", 1e999]]]}`, `turns[1][0]: ["a", 1e999] is not [chunk_id, score]: 1e999 is not in the range of a 64-bit number`},
	{`{"turns": [[["a", NaN]]]}`, `it is not JSON at byte 19: invalid character 'N' looking for beginning of value`},
	{`{"turns": [[["a", "` + strings.Repeat("é", 99) + `"]]]}`, `turns[0][0]: ["a", "` + strings.Repeat("é", 36) + `… is not [chunk_id, score]: "` + strings.Repeat("é", 39) + `… is not a number`},
}

func TestReadProblemRefuses(t *testing.T) {
	for _, c := range badProblems {
		if _, err := ReadProblem(strings.NewReader(c.input)); err == nil || err.Error() != "decode input: "+c.want {
			t.Errorf("%s\n got %v\nwant decode input: %s", c.input, err, c.want)
		}
	}
}

func TestReadProblemKeepsReadError(t *testing.T) {
	broken := errors.New("broken")
	for _, start := range []string{"", `{"turns": [`, `{} `} {
		r := io.MultiReader(strings.NewReader(start), iotest.ErrReader(broken))
		if _, err := ReadProblem(r); !errors.Is(err, broken) {
			t.Errorf("after %q: got %v, want %v", start, err, broken)
		}
	}
}

// What has the right shape and is still no problem to be solved.
func TestProblemDecodeRefuses(t *testing.T) {
	for _, c := range []struct {
		input, want string
		is          error
	}{
		{`{"turns": [[["a", 1], ["a", 2]]]}`, `turn 0: chunk "a"`, ErrDuplicateCandidate},
		{`{"turns": [[], [["", 1]]]}`, `turn 1: candidate 0`, ErrEmptyChunkID},
		{`{"graph": {"nodes": ["a", ""]}}`, `node 1`, ErrEmptyChunkID},
		{`{"graph": {"edges": [["a", "b", 1], ["a", "b", 0]]}}`, `edge 1`, ErrDistance},
		{`{"graph": {"edges": [["a", "b", -1]]}}`, `edge 0`, ErrDistance},
		{`{"graph": {"edges": [["a", "", 1]]}}`, `edge 0`, ErrEmptyChunkID},
		{`{"graph": {"maximum_distance": -1}}`, `maximum distance`, ErrInvalidConfig},
		{`{"options": {"break_distance": 11}}`, `break_distance 11`, ErrInvalidConfig},
		{`{"options": {"on_empty": "error"}, "turns": [[["a", 1]], []]}`, `turn 1`, ErrNoCandidates},
		{`{"options": {"score_normalization": "none"}, "turns": [[["a", 1e308]], [["a", 1e308]]]}`, `turn 1: chunk "a"`, ErrNonFinite},
	} {
		p, err := ReadProblem(strings.NewReader(c.input))
		if err != nil {
			t.Errorf("%s: %v", c.input, err)
			continue
		}
		answers, err := p.Decode(t.Context())
		if answers != nil || !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q and %v", c.input, err, c.want, c.is)
		}
	}
}

func TestRankedChunkRoundTrip(t *testing.T) {
	for _, want := range []RankedChunk{{"a", 0.1}, {"<é>", -1e-300}, {"", 0}} {
		raw, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var got RankedChunk
		if err := json.Unmarshal(raw, &got); err != nil || got != want {
			t.Errorf("%s became %v, %v", raw, got, err)
		}
	}
	var r RankedChunk
	for _, raw := range []string{`["a"]`, `{"a": 1}`, `["a", null]`, `[1, "a"]`} {
		if err := json.Unmarshal([]byte(raw), &r); err == nil {
			t.Errorf("%s became %v", raw, r)
		}
	}
}

// The exchange form says what another implementation says, run by run.
func TestProblemParity(t *testing.T) {
	for name, c := range parityCases(t) {
		for _, run := range c.Runs {
			options := c.Parameters
			options.ScoreNormalization, options.FixedLag = (*string)(&run.Normalization), run.Lag
			input, err := json.Marshal(map[string]any{
				"graph":   map[string]any{"nodes": c.Graph.Nodes, "edges": c.Graph.Edges, "directed": c.Graph.Directed, "maximum_distance": c.Graph.Maximum},
				"options": options,
				"turns":   c.Turns,
			})
			if err != nil {
				t.Fatal(err)
			}
			p, err := ReadProblem(bytes.NewReader(input))
			if err != nil {
				t.Fatal(err)
			}
			answers, err := p.Decode(t.Context())
			if err != nil || len(answers) != len(run.Turns) {
				t.Fatalf("%s: %d answers for %d turns, %v", name, len(answers), len(run.Turns), err)
			}
			for i, got := range answers {
				want, label := run.Turns[i], fmt.Sprintf("%s %s turn %d", name, run.Normalization, i)
				if got.ChunkID == nil || *got.ChunkID != want.ChunkID || got.Ranking[0].ChunkID != want.ChunkID {
					t.Errorf("%s: chunk %v, ranking %v, want %s", label, got.ChunkID, got.Ranking, want.ChunkID)
				}
				if !slices.Equal(got.ContextChunkIDs, want.Context) || !slices.Equal(got.Trace.PathChunkIDs, want.Trace.PathChunkIDs) {
					t.Errorf("%s: context %v, path %v, want %v and %v", label, got.ContextChunkIDs, got.Trace.PathChunkIDs, want.Context, want.Trace.PathChunkIDs)
				}
				if !(math.Abs(got.Path.TotalScore-want.Total) <= 1e-9) {
					t.Errorf("%s: total %v, want %v", label, got.Path.TotalScore, want.Total)
				}
				for k, id := range got.Path.ChunkIDs {
					if id == nil || *id != want.Trace.PathChunkIDs[k] {
						t.Errorf("%s: path %v, want %v", label, got.Path.ChunkIDs, want.Trace.PathChunkIDs)
					}
				}
			}
		}
	}
}

// Whatever the input, reading it ends with a problem or one error, twice the
// same, and a problem that can be decoded gives one answer a turn, which JSON
// can hold.
func FuzzReadProblem(f *testing.F) {
	for _, c := range badProblems {
		f.Add([]byte(c.input))
	}
	f.Add([]byte(`{"graph": {"edges": [["a", "b", 1]]}, "options": {"fixed_lag": 1, "beam": 1}, "turns": [[["a", 5], ["b", 1]], [], [["b", 3]]]}`))
	f.Add([]byte(`{"graph": {"directed": true, "maximum_distance": 4}, "options": {"transition_weight": 0, "break_distance": 4}, "turns": [[["a", 1e308]], [["a", -1e308]]]}`))
	f.Fuzz(func(t *testing.T, input []byte) {
		p, err := ReadProblem(bytes.NewReader(input))
		again, err2 := ReadProblem(bytes.NewReader(input))
		if fmt.Sprint(err) != fmt.Sprint(err2) || !reflect.DeepEqual(p, again) {
			t.Fatalf("read twice: %v, then %v", err, err2)
		}
		if err != nil {
			if p != nil || !strings.HasPrefix(err.Error(), "decode input: ") {
				t.Fatalf("problem %v, error %q", p, err)
			}
			return
		}
		answers, err := p.Decode(t.Context())
		if err != nil {
			return
		}
		if len(answers) != len(p.Turns) {
			t.Fatalf("%d answers for %d turns", len(answers), len(p.Turns))
		}
		for i, a := range answers {
			if len(a.Path.ChunkIDs) != i+1 || len(a.Ranking) > len(p.Turns[i]) || (a.ChunkID == nil) != (len(p.Turns[i]) == 0) {
				t.Fatalf("turn %d: %+v", i, a)
			}
		}
		if _, err := json.Marshal(answers); err != nil {
			t.Fatal(err)
		}
	})
}
