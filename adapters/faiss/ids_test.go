package faiss

import (
	"encoding/json"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/mapmatched/mmplug/mapmatched"
)

func faissID(id int64) *int64 { return &id }

func TestParseEntries(t *testing.T) {
	got, err := ParseEntries([]byte("\"a\"\r\n  {\"id\": \"b\", \"text\": \"<B> 混合\", \"metadata\": {\"page\": 3}}\n\"c\\nd\""))
	want := []Entry{{ID: "a"}, {ID: "b", Text: "<B> 混合", Metadata: json.RawMessage(`{"page": 3}`)}, {ID: "c\nd"}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, error %v, want %+v", got, err, want)
	}
	got, err = ParseEntries([]byte(`{"id":"a","faiss_id":9223372036854775807}` + "\n" + `{"faiss_id":0,"id":"b"}` + "\n"))
	want = []Entry{{ID: "a", FaissID: faissID(9223372036854775807)}, {ID: "b", FaissID: faissID(0)}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, error %v, want %+v", got, err, want)
	}
	if got, err := ParseEntries(nil); err != nil || len(got) != 0 {
		t.Errorf("%+v, error %v for nothing", got, err)
	}
}

func TestParseEntriesRefuses(t *testing.T) {
	for data, part := range map[string]string{
		`"a"` + "\n\n" + `"b"`:                              "line 2: it is blank",
		`"a"` + "\n" + `""`:                                 "line 2: the chunk ID is empty",
		`{"text":"x"}`:                                      "line 1: the field id is missing",
		`"a"` + "\n" + `"b"` + "\n" + `"a"`:                 `line 3: the chunk ID "a" is on line 1`,
		`{"id":"a","ID":"b"}`:                               `the field "ID" is unknown`,
		`{"id":"a","score":1}`:                              `the field "score" is unknown`,
		`{"id":"a","id":"b"}`:                               `the field "id" is given twice`,
		`{"id":"a","metadata":{"x":1,"y":[{"z":1,"z":2}]}}`: `the field "z" is given twice`,
		`{"id":"a","metadata":[1]}`:                         "want an object",
		`{"id":"a","metadata":null}`:                        "want an object",
		`{"id":"a","text":null}`:                            "text is null",
		`{"id":7}`:                                          "id is",
		`{"id":"a","text":7}`:                               "text is",
		`{"id":"a","faiss_id":1.5}`:                         "faiss_id is",
		`{"id":"a","faiss_id":9223372036854775808}`:         "faiss_id is",
		`{"id":"a","faiss_id":-1}`:                          "faiss_id is -1",
		`{"id":"a","faiss_id":1}` + "\n" + `"b"`:            "line 2: faiss_id is on some lines",
		`7`:                                                 "neither a string nor an object",
		`null`:                                              "line 1:",
		`["a"]`:                                             "neither a string nor an object",
		`"a" "b"`:                                           "not one JSON value",
		`{"id":"a"`:                                         "not one JSON value",
		"\"\xff\"":                                          "not UTF-8",
		"\xef\xbb\xbf\"a\"\n\"b\"\n":                        "line 1: it begins with a UTF-8 byte order mark",
		"version https://git-lfs.github.com/spec/v1\n": "git lfs pull",
	} {
		_, err := ParseEntries([]byte(data))
		if err == nil || !strings.Contains(err.Error(), part) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error %v, want %q", data, err, part)
		}
	}
	if _, err := ReadEntries(filepath.Join(t.TempDir(), "none")); mapmatched.KindOf(classify("open", err)) != mapmatched.KindNotFound {
		t.Errorf("error %v", err)
	}
	if _, err := ReadEntries(t.TempDir()); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("error %v", err)
	}
}

// Numbers of the metadata survive.
func TestMetadataNumbers(t *testing.T) {
	e := Entry{ID: "a", Metadata: json.RawMessage(`{"big": 9007199254740993, "half": 0.5, "whole": 42.0, "list": [1, {"n": -3}], "huge": 1e999}`)}
	got, err := e.metadata()
	want := map[string]any{"big": int64(9007199254740993), "half": 0.5, "whole": 42.0, "list": []any{int64(1), map[string]any{"n": int64(-3)}}, "huge": "1e999"}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%#v, error %v", got, err)
	}
}

// What is parsed is valid, and written out again is parsed the same.
func FuzzParseEntries(f *testing.F) {
	for _, s := range []string{"\"a\"\n\"b\"\n", `{"id":"a","text":"t","metadata":{"k":[1,2.5,null]},"faiss_id":3}`, "{}", "\"a\"\n\n", `{"id":"a","id":"b"}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		entries, err := ParseEntries(data)
		if err != nil {
			if len(entries) > 0 {
				t.Fatalf("entries beside error %v", err)
			}
			return
		}
		var lines []byte
		ids := map[string]bool{}
		for _, e := range entries {
			if e.ID == "" || ids[e.ID] {
				t.Fatalf("ID %q is empty or repeated", e.ID)
			}
			ids[e.ID] = true
			if _, err := e.metadata(); err != nil {
				t.Fatal(err)
			}
			fields := map[string]any{"id": e.ID, "text": e.Text}
			if e.Metadata != nil {
				fields["metadata"] = e.Metadata
			}
			if e.FaissID != nil {
				fields["faiss_id"] = *e.FaissID
			}
			line, err := json.Marshal(fields)
			if err != nil {
				t.Fatal(err)
			}
			lines = append(append(lines, line...), '\n')
		}
		again, err := ParseEntries(lines)
		if err != nil || len(again) != len(entries) {
			t.Fatalf("%d entries are %d when written and parsed again: %v", len(entries), len(again), err)
		}
		for i := range again {
			if again[i].ID != entries[i].ID || again[i].Text != entries[i].Text {
				t.Fatalf("entry %d is %+v, was %+v", i, again[i], entries[i])
			}
		}
	})
}
