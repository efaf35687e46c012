package plugins

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/plugins/internal/wire"
)

func TestMetadata(t *testing.T) {
	m := map[string]any{"int": int64(1)<<62 + 1, "negative": int64(-3), "unsigned": uint64(math.MaxUint64), "whole": 3.0, "zero": math.Copysign(0, -1),
		"half": 0.5, "huge": 1e300, "large": 1e20, "text": "x\u2028<>", "flag": true, "none": nil, "list": []any{int64(1), 2.0, "a"}, "object": map[string]any{"a": 1.0}}
	b, err := encodeMetadata(m)
	if err != nil {
		t.Fatal(err)
	}
	got, err := decodeMetadata(b)
	if err != nil || !reflect.DeepEqual(got, m) {
		t.Errorf("got  %#v\nwant %#v\nerror %v", got, m, err)
	}
	if b, err := encodeMetadata(nil); err != nil || b != nil {
		t.Errorf("nil becomes %q with error %v", b, err)
	}
	if got, err := decodeMetadata([]byte("{}")); err != nil || got == nil {
		t.Errorf("{} becomes %v with error %v", got, err)
	}
	if _, err := encodeMetadata(map[string]any{"x": math.NaN()}); err == nil {
		t.Error("NaN was written")
	}
	for _, bad := range []string{"[]", "5", "{", `{"a":1} x`, `{"a": 1e999}`, "nil"} {
		if got, err := decodeMetadata([]byte(bad)); err == nil {
			t.Errorf("%s becomes %v", bad, got)
		}
	}
}

func TestConvertBackAndForth(t *testing.T) {
	q := mapmatched.Query{Text: "t", Vector: []float32{1, -0.5}, Turn: 3, History: []string{"a", ""}, Path: []string{"x", ""}}
	w, err := toQuery(q)
	if err != nil || !reflect.DeepEqual(fromQuery(w), q) {
		t.Errorf("query %+v, error %v", fromQuery(w), err)
	}
	candidates := []mapmatched.Candidate{{ChunkID: "a", Score: 0.1, Text: "t", Metadata: map[string]any{"n": int64(1)}, Parts: map[string]float64{"p": 2}}, {ChunkID: "b", Score: -1}}
	c, err := toCandidates(candidates)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := fromCandidates(c); err != nil || !reflect.DeepEqual(got, candidates) {
		t.Errorf("candidates %+v, error %v", got, err)
	}
	chunks := []mapmatched.Chunk{{ID: "a", Document: "d", Title: "T", Section: "S", Ordinal: 1, Start: 2, End: 3, Text: "x"}}
	k, err := toChunks(chunks)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := fromChunks(k); err != nil || !reflect.DeepEqual(got, chunks) {
		t.Errorf("chunks %+v, error %v", got, err)
	}
	trellis := &mapmatched.Trellis{TransitionWeight: 0.5, Columns: []mapmatched.Column{
		{ChunkIDs: []string{"a", "b"}, Raw: []float64{1, 2}, Normalized: []float64{0, 1}, Emission: []float64{0, 1}},
		{},
		{ChunkIDs: []string{"c"}, Raw: []float64{1}, Normalized: []float64{1}, Emission: []float64{1}, From: []int{0, 1}, Distance: []float64{1, 2}},
		{ChunkIDs: []string{"d"}, Raw: []float64{1}, Normalized: []float64{1}, Emission: []float64{1}, From: []int{0}, Break: true},
	}}
	d, err := toTrellis(trellis)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := fromTrellis(d); err != nil || !reflect.DeepEqual(got, trellis) {
		t.Errorf("trellis %+v, error %v", got, err)
	}
}

func TestConvertRefuses(t *testing.T) {
	trellis := &mapmatched.Trellis{Columns: []mapmatched.Column{{ChunkIDs: []string{"a", "b"}}, {}}}
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"ID that is not UTF-8": {second(toCandidates([]mapmatched.Candidate{{ChunkID: "\xff"}})), "not UTF-8"},
		"path":                 {second(toQuery(mapmatched.Query{Path: []string{"\xff"}})), "not UTF-8"},
		"empty ID":             {second(fromCandidates([]*wire.Candidate{{}})), "empty chunk ID"},
		"nil candidate":        {second(fromCandidates([]*wire.Candidate{nil})), "empty chunk ID"},
		"NaN":                  {second(fromScored([]*wire.Scored{{ChunkId: "a", Score: math.NaN()}})), "not finite"},
		"metadata":             {second(fromCandidates([]*wire.Candidate{{ChunkId: "a", Metadata: []byte("[]")}})), `chunk "a"`},
		"number of vectors":    {second(fromVectors(nil, 1)), "0 vectors came back, not 1"},
		"dimensions":           {second(fromVectors(toVectors([][]float32{{1}, {1, 2}}), 2)), "dimension 2"},
		"infinite vector":      {second(fromVectors(toVectors([][]float32{{float32(math.Inf(1))}}), 1)), "not finite"},
		"turns":                {second(fromDecoding(&wire.DecodeResponse{Path: []int32{0}}, trellis)), "1 turns, the trellis 2"},
		"candidate":            {second(fromDecoding(&wire.DecodeResponse{Path: []int32{2, -1}, Scores: []float64{1, 2}}, trellis)), "candidate 2 of 2"},
		"no gap":               {second(fromDecoding(&wire.DecodeResponse{Path: []int32{0, 0}, Scores: []float64{1, 2}}, trellis)), "candidate 0 of 0"},
		"scores":               {second(fromDecoding(&wire.DecodeResponse{Path: []int32{0, -1}, Scores: []float64{1}}, trellis)), "1 path scores for the 2"},
		"infinite score":       {second(fromDecoding(&wire.DecodeResponse{Path: []int32{0, -1}, Scores: []float64{1, math.Inf(-1)}}, trellis)), "not finite"},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", name, c.err, c.want)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func TestStatus(t *testing.T) {
	for _, err := range []error{
		fmt.Errorf("x: %w", context.Canceled), fmt.Errorf("x: %w", context.DeadlineExceeded), mapmatched.ErrClosed, mapmatched.ErrDistance,
		&mapmatched.Error{Op: "o", Adapter: "a", Kind: mapmatched.KindCorrupt, Err: mapmatched.ErrNonFinite},
	} {
		kind, byPlugin, got := fromStatus(toStatus(err))
		if !byPlugin {
			t.Errorf("%v: not known as the plugin's", err)
		}
		for _, cause := range []error{context.Canceled, context.DeadlineExceeded, mapmatched.ErrClosed, mapmatched.ErrDistance, mapmatched.ErrNonFinite} {
			if errors.Is(err, cause) != errors.Is(got, cause) {
				t.Errorf("%v: arrives as %v, which is %v: %v", err, got, cause, errors.Is(got, cause))
			}
		}
		if want := mapmatched.KindOf(err); want != "" && kind != want {
			t.Errorf("%v: kind %q, want %q", err, kind, want)
		}
		if got.Error() != err.Error() {
			t.Errorf("text %q, want %q", got, err)
		}
	}
}

// FuzzWire reads bytes as every message whose content is checked.
func FuzzWire(f *testing.F) {
	trellis, err := toTrellis(&mapmatched.Trellis{TransitionWeight: 1, Columns: []mapmatched.Column{{ChunkIDs: []string{"a"}, Raw: []float64{1}, Normalized: []float64{1}, Emission: []float64{1}}}})
	if err != nil {
		f.Fatal(err)
	}
	for _, m := range []proto.Message{
		trellis, &wire.DecodeResponse{Path: []int32{0, -1}, Scores: []float64{1}},
		&wire.CandidatesResponse{Candidates: []*wire.Candidate{{ChunkId: "a", Score: 1, Metadata: []byte(`{"a":1}`), Parts: map[string]float64{"p": 1}}}},
		&wire.VectorsResponse{Vectors: []*wire.Vector{{Values: []float32{1, 2}}, {}}}, &wire.RerankResponse{Scores: []*wire.Scored{{ChunkId: "a"}}},
	} {
		b, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var request wire.DecodeRequest
		if proto.Unmarshal(b, &request) == nil {
			if trellis, err := fromTrellis(&request); err == nil {
				decoding, err := mapmatched.Viterbi{}.Decode(t.Context(), trellis)
				if err == nil {
					if _, err := fromDecoding(toDecoding(decoding), trellis); err != nil {
						t.Errorf("the built-in decoder's answer: %v", err)
					}
				}
			}
		}
		var decoded wire.DecodeResponse
		if proto.Unmarshal(b, &decoded) == nil {
			columns := mapmatched.Trellis{Columns: []mapmatched.Column{{ChunkIDs: []string{"a"}}, {}}}
			if d, err := fromDecoding(&decoded, &columns); err == nil && (d.Path[0] != 0 || d.Path[1] != -1) {
				t.Errorf("path %v", d.Path)
			}
		}
		var candidates wire.CandidatesResponse
		if proto.Unmarshal(b, &candidates) == nil {
			if got, err := fromCandidates(candidates.Candidates); err == nil {
				if again, err := toCandidates(got); err != nil || len(again) != len(candidates.Candidates) {
					t.Errorf("candidates do not go back: %v", err)
				}
			}
		}
		var vectors wire.VectorsResponse
		if proto.Unmarshal(b, &vectors) == nil {
			_, _ = fromVectors(vectors.Vectors, len(vectors.Vectors))
		}
		var scores wire.RerankResponse
		if proto.Unmarshal(b, &scores) == nil {
			_, _ = fromScored(scores.Scores)
		}
	})
}

// shape replaces the numbers of a value by float64, to be compared.
func shape(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, value := range v {
			out[key] = shape(value)
		}
		return out
	case []any:
		out := []any{}
		for _, value := range v {
			out = append(out, shape(value))
		}
		return out
	case int64:
		return float64(v)
	case uint64:
		return float64(v)
	case json.Number:
		x, _ := v.Float64()
		return x
	}
	return v
}

func FuzzMetadata(f *testing.F) {
	f.Add([]byte(`{"a": [1, 2.5, {"b": null}], "c": 18446744073709551615}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := decodeMetadata(b)
		d := json.NewDecoder(bytes.NewReader(b))
		d.UseNumber()
		var reference map[string]any
		if (json.Valid(b) && d.Decode(&reference) == nil && reference != nil) != (m != nil) {
			t.Fatalf("%q becomes %v, encoding/json makes %v", b, m, reference)
		}
		if err != nil || m == nil {
			return
		}
		if got, want := fmt.Sprint(shape(m)), fmt.Sprint(shape(reference)); got != want {
			t.Fatalf("%q becomes %s, encoding/json makes %s", b, got, want)
		}
		again, err := encodeMetadata(m)
		if err != nil {
			t.Fatalf("%q does not go back: %v", b, err)
		}
		if got, err := decodeMetadata(again); err != nil || !reflect.DeepEqual(got, m) {
			t.Errorf("%q becomes %#v and then %#v, error %v", b, m, got, err)
		}
	})
}
