package mapmatched

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
)

const (
	goodStep  = `{"turn_index":0,"chunk_id":"a","raw_emission_score":2,"normalized_emission_score":1,"weighted_emission_score":1,"graph_distance":0,"weighted_transition_cost":0,"cumulative_score":1,"emission_entropy":0.5,"normalized_emission_margin":1`
	goodTrace = `{"steps":[` + goodStep + `}],"path_chunk_ids":["a"],"revised_prior_indices":[],"fixed_lag":null,"committed_through_index":null}`
)

// A trace that was written reads back equal.
func TestReadTraceRoundTrip(t *testing.T) {
	traces := []*Trace{gapTrace(), {PathChunkIDs: []string{}, RevisedPriorIndices: []int{}, Steps: []TraceStep{}}}
	for seed := range uint64(20) {
		trace := randomTrace(seed, 1+int(seed), 6)
		trace.RevisedPriorIndices = []int{}
		traces = append(traces, trace)
	}
	for i, want := range traces {
		data, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		got, err := ReadTrace(bytes.NewReader(data))
		if err != nil {
			t.Fatalf("trace %d: %v", i, err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("trace %d: got %+v, want %+v", i, got, want)
		}
	}
}

// Traces of other implementations have no schema, and those of later versions
// keys that this one does not know.
func TestReadTraceAccepts(t *testing.T) {
	for _, in := range []string{
		goodTrace,
		"\n" + goodTrace + " \n",
		strings.Replace(goodTrace, `{"steps"`, `{"schema":"mapmatched.trace/1","steps"`, 1),
		strings.Replace(goodTrace, `{"steps"`, `{"schema":"mapmatched.trace/1.7","later":{"x":[1]},"turns":3,"steps"`, 1),
		strings.Replace(goodTrace, `"chunk_id":"a"`, `"chunk_id":"a","later":1`, 1),
		strings.Replace(goodTrace, `"emission_entropy":0.5`, `"emission_entropy":-0.0`, 1),
	} {
		trace, err := ReadTrace(strings.NewReader(in))
		if err != nil {
			t.Errorf("%v for %s", err, in)
			continue
		}
		if trace.Steps[0].RawEmissionScore != 2 || trace.PathChunkIDs[0] != "a" {
			t.Errorf("read %+v from %s", trace, in)
		}
	}
}

func TestReadTraceRefuses(t *testing.T) {
	good := func(old, replacement string) string {
		if !strings.Contains(goodTrace, old) {
			t.Fatalf("%q is not in the trace", old)
		}
		return strings.Replace(goodTrace, old, replacement, 1)
	}
	candidates := func(list string) string { return good(goodStep, goodStep+`,"candidates":`+list) }
	gap := `{"turn_index":0,"chunk_id":null,"gap":"no hit","cumulative_score":0}`
	for _, c := range []struct {
		name, in, want string
		is             error
	}{
		{"nothing", "", "the input is empty", nil},
		{"cut", goodTrace[:60], "ends in the middle", nil},
		{"syntax", `{"steps":[NaN]}`, "not valid JSON at byte 11", nil},
		{"two traces", goodTrace + goodTrace, "more after the trace", nil},
		{"rest", goodTrace + "}", "more after the trace", nil},
		{"array", "[]", "a trace is a JSON object, not a JSON array", nil},
		{"null", "null", `it needs the keys "steps" and "path_chunk_ids"`, nil},
		{"other object", `{"graph":{}}`, `it needs the keys "steps" and "path_chunk_ids"`, nil},
		{"answer of decode", `{"turns":[]}`, `give the "trace" of one of its turns`, nil},
		{"text for a number", good(`"raw_emission_score":2`, `"raw_emission_score":"2"`), "raw_emission_score cannot be a JSON string", nil},
		{"infinite", good(`"raw_emission_score":2`, `"raw_emission_score":1e999`), "raw_emission_score cannot be a JSON number 1e999", nil},
		{"fraction", good(`"fixed_lag":null`, `"fixed_lag":1.5`), "fixed_lag cannot be a JSON number 1.5", nil},
		{"newer", good(`{"steps"`, `{"schema":"mapmatched.trace/2","steps"`), `"mapmatched.trace/2" is newer than mapmatched.trace/1`, nil},
		{"newer without steps", `{"schema":"mapmatched.trace/12"}`, "newer", nil},
		{"other schema", good(`{"steps"`, `{"schema":"mapmatched.session/1","steps"`), "is not a trace schema", nil},
		{"no version", good(`{"steps"`, `{"schema":"mapmatched.trace","steps"`), "is not a trace schema", nil},
		{"version 0", good(`{"steps"`, `{"schema":"mapmatched.trace/0","steps"`), "is not a trace schema", nil},
		{"lengths", good(`["a"]`, `["a","b"]`), "1 steps but 2 path_chunk_ids", nil},
		{"order", good(`"turn_index":0`, `"turn_index":3`), "steps[0] has turn_index 3", nil},
		{"no turn", good(`"turn_index":0,`, ``), "steps[0]: turn_index is missing", nil},
		{"no score", good(`"raw_emission_score":2,`, ``), "steps[0]: raw_emission_score is missing", nil},
		{"null score", good(`"graph_distance":0`, `"graph_distance":null`), "steps[0]: graph_distance is missing", nil},
		{"other path", good(`["a"]`, `["b"]`), `turn 0 has chunk_id "a" in its step but "b"`, nil},
		{"no chunk", strings.Replace(good(`["a"]`, `[null]`), `"chunk_id":"a"`, `"chunk_id":null`, 1), `turn 0 has no chunk and no reason`, ErrEmptyChunkID},
		{"gap with chunk", good(goodStep, goodStep+`,"gap":"no hit"`), `turn 0 is a gap ("no hit") but has chunk_id "a"`, nil},
		{"gap without score", `{"steps":[` + strings.Replace(gap, `,"cumulative_score":0`, "", 1) + `],"path_chunk_ids":[null]}`, "steps[0]: cumulative_score is missing", nil},
		{"revised the last", good(`"revised_prior_indices":[]`, `"revised_prior_indices":[0]`), "revised_prior_indices has turn 0", nil},
		{"revised negative", good(`"revised_prior_indices":[]`, `"revised_prior_indices":[-1]`), "revised_prior_indices has turn -1", nil},
		{"committed beyond", good(`"committed_through_index":null`, `"committed_through_index":1`), "committed_through_index is 1", nil},
		{"committed negative", good(`"committed_through_index":null`, `"committed_through_index":-1`), "committed_through_index is -1", nil},
		{"lag", good(`"fixed_lag":null`, `"fixed_lag":-1`), "fixed_lag is -1", nil},
		{"candidate without ID", candidates(`[{"chunk_id":""}]`), "turn 0, candidates[0]", ErrEmptyChunkID},
		{"candidate twice", candidates(`[{"chunk_id":"a"},{"chunk_id":"a"}]`), "turn 0, candidates[1]", ErrDuplicateCandidate},
	} {
		t.Run(c.name, func(t *testing.T) {
			trace, err := ReadTrace(strings.NewReader(c.in))
			if err == nil {
				t.Fatalf("no error, read %+v", trace)
			}
			if !strings.HasPrefix(err.Error(), "trace: ") || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %q, want one line of trace: … with %q", err, c.want)
			}
			if c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("%q is not %q", err, c.is)
			}
		})
	}
}

func TestReadTraceRevisedAscends(t *testing.T) {
	trace := randomTrace(1, 6, 3)
	trace.RevisedPriorIndices = []int{2, 2}
	data, err := json.Marshal(trace)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ReadTrace(bytes.NewReader(data)); err == nil || !strings.Contains(err.Error(), "it must ascend") {
		t.Errorf("got %v, want that it must ascend", err)
	}
}

func TestReadTraceKeepsReadError(t *testing.T) {
	broken := errors.New("disk is gone")
	for _, in := range []string{"", goodTrace[:30], goodTrace} {
		r := io.MultiReader(strings.NewReader(in), iotest.ErrReader(broken))
		if _, err := ReadTrace(r); !errors.Is(err, broken) {
			t.Errorf("after %d bytes: got %v, want %v", len(in), err, broken)
		}
	}
}

// What is read can be rendered in every form and written again to the same
// bytes.
func FuzzReadTrace(f *testing.F) {
	f.Add([]byte(goodTrace))
	f.Add([]byte(`{"turns":[]}`))
	f.Add([]byte(`{"schema":"mapmatched.trace/2"}`))
	for seed := range uint64(4) {
		data, err := json.Marshal(randomTrace(seed, 4, 3))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		trace, err := ReadTrace(bytes.NewReader(data))
		if err != nil {
			return
		}
		if trace.Text() == "" {
			t.Error("no text")
		}
		if err := trace.WriteHTML(io.Discard, nil); err != nil {
			t.Error(err)
		}
		if d := DiffTraces(trace, trace); !d.Empty() {
			t.Errorf("differs from itself: %s", d)
		}
		first, err := json.Marshal(trace)
		if err != nil {
			t.Fatal(err)
		}
		again, err := ReadTrace(bytes.NewReader(first))
		if err != nil {
			t.Fatalf("cannot read what was written: %v in %s", err, first)
		}
		second, err := json.Marshal(again)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(first, second) {
			t.Errorf("written twice:\n%s\n%s", first, second)
		}
	})
}
