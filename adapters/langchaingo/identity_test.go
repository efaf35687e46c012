package langchaingo_test

import (
	"encoding/json"
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/tmc/langchaingo/schema"

	"github.com/mapmatched/mmplug/adapters/langchaingo"
	"github.com/mapmatched/mmplug/mapmatched"
)

func TestIDFromKey(t *testing.T) {
	for _, tt := range []struct {
		value any
		want  string
		err   string
	}{
		{value: "pages/1", want: "pages/1"},
		{value: 42, want: "42"},
		{value: int32(-7), want: "-7"},
		{value: int8(-8), want: "-8"},
		{value: int16(-16), want: "-16"},
		{value: uint(7), want: "7"},
		{value: uint8(8), want: "8"},
		{value: uint16(16), want: "16"},
		{value: uint32(32), want: "32"},
		{value: int64(9007199254740993), want: "9007199254740993"},
		{value: uint64(18446744073709551615), want: "18446744073709551615"},
		{value: json.Number("9007199254740993"), want: "9007199254740993"},
		{value: float64(42), want: "42"},
		{value: &url.URL{Scheme: "doc", Host: "a"}, want: "doc://a"},
		{value: 42.5, err: "not a whole one"},
		{value: float64(1 << 54), err: "not a whole one"},
		{value: "", err: `metadata "key" is empty`},
		{value: nil, err: `no key "key"`},
		{value: []string{"a"}, err: "is a []string"},
		{value: true, err: "is a bool"},
	} {
		got, err := langchaingo.IDFromKey("key")(schema.Document{PageContent: "text", Metadata: map[string]any{"key": tt.value}})
		if got != tt.want || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%#v: ID %q, error %v; want %q, error %q", tt.value, got, err, tt.want, tt.err)
		}
	}
	if _, err := langchaingo.IDFromKey("key")(schema.Document{}); !errors.Is(err, mapmatched.ErrEmptyChunkID) {
		t.Errorf("error %v without metadata", err)
	}
}

func TestIDFromContent(t *testing.T) {
	id := langchaingo.IDFromContent("document", "page")
	of := func(document string, page any, text string) string {
		t.Helper()
		got, err := id(schema.Document{PageContent: text, Metadata: map[string]any{"document": document, "page": page, "other": 1}})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	base := of("a", 1, "text")
	if want := "lc1:a43d9a3606d6c35fd028e0b9dcd7756a"; base != want {
		t.Errorf("ID %q, want %q", base, want)
	}
	if again := of("a", float64(1), "text"); again != base {
		t.Errorf("ID %q with the number as JSON has it, want %q", again, base)
	}
	for _, other := range []string{of("b", 1, "text"), of("a", 2, "text"), of("a", 1, "text."), of("a1", "1", "ext"), of("a", 11, "text")} {
		if other == base {
			t.Error("two chunks have the same ID")
		}
	}
	if _, err := id(schema.Document{PageContent: "text", Metadata: map[string]any{"document": "a"}}); err == nil || !strings.Contains(err.Error(), `no parent for the chunk ID`) {
		t.Errorf("error %v without a page", err)
	}
	if _, err := langchaingo.IDFromContent()(schema.Document{PageContent: "text"}); !errors.Is(err, mapmatched.ErrInvalidConfig) {
		t.Errorf("error %v without keys", err)
	}
}

// The same text under two parents stays two chunks.
func TestSameTextTwoParents(t *testing.T) {
	documents := []schema.Document{
		{PageContent: "same", Score: 0.5, Metadata: map[string]any{"document": "a"}},
		{PageContent: "same", Score: 0.5, Metadata: map[string]any{"document": "b"}},
	}
	got, report, err := ask(t, documents, langchaingo.IDFromContent("document"), langchaingo.ScoreSimilarity, langchaingo.ProviderOptions{})
	if err != nil || len(got) != 2 || report.Duplicates != 0 || got[0].ChunkID == got[1].ChunkID {
		t.Errorf("candidates %v, report %+v, error %v; want two chunks", got, report, err)
	}
}
