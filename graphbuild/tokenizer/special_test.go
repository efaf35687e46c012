package tokenizer

import (
	"slices"
	"strings"
	"testing"
)

func withSpecial(t testing.TB, processor string) *Tokenizer {
	t.Helper()
	tok, err := Parse([]byte(`{"version": "1.0", "model": {"type": "WordLevel", "vocab": {"a": 0}}, "post_processor": ` + processor + `}`))
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

const (
	bertTemplate = `{"type": "TemplateProcessing",
		"single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "[SEP]", "type_id": 0}}],
		"pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
		"special_tokens": {"[CLS]": {"id": "[CLS]", "ids": [101], "tokens": ["[CLS]"]}, "[SEP]": {"id": "[SEP]", "ids": [102], "tokens": ["[SEP]"]}}}`
	startTemplate = `{"type": "TemplateProcessing",
		"single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
		"special_tokens": {"<s>": {"id": "<s>", "ids": [7, 8], "tokens": ["<", "s>"]}}}`
	byteLevelProcessor = `{"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": false, "use_regex": true}`
	roberta            = `{"type": "RobertaProcessing", "sep": ["</s>", 2], "cls": ["<s>", 0], "trim_offsets": true, "add_prefix_space": false}`
)

func TestSpecial(t *testing.T) {
	for name, test := range map[string]struct {
		processor     string
		before, after []int
	}{
		"none":       {`null`, nil, nil},
		"BERT":       {`{"type": "BertProcessing", "sep": ["[SEP]", 102], "cls": ["[CLS]", 101]}`, []int{101}, []int{102}},
		"RoBERTa":    {roberta, []int{0}, []int{2}},
		"template":   {bertTemplate, []int{101}, []int{102}},
		"start only": {startTemplate, []int{7, 8}, nil},
		"byte level": {byteLevelProcessor, nil, nil},
		"sequence":   {`{"type": "Sequence", "processors": [` + byteLevelProcessor + `, ` + startTemplate + `]}`, []int{7, 8}, nil},
		"around":     {`{"type": "Sequence", "processors": [` + bertTemplate + `, ` + roberta + `]}`, []int{0, 101}, []int{102, 2}},
	} {
		before, after, err := withSpecial(t, test.processor).Special()
		if err != nil || !slices.Equal(before, test.before) || !slices.Equal(after, test.after) {
			t.Errorf("%s: %v, %v, %v; want %v, %v", name, before, after, err, test.before, test.after)
		}
	}
}

func TestSpecialErrors(t *testing.T) {
	template := func(single, tokens string) string {
		return `{"type": "TemplateProcessing", "single": [` + single + `], "special_tokens": {` + tokens + `}}`
	}
	const text = `{"Sequence": {"id": "A", "type_id": 0}}`
	const cls = `{"SpecialToken": {"id": "[CLS]", "type_id": 0}}`
	for _, test := range []struct{ processor, want string }{
		{`7`, "post_processor: json"},
		{`{"type": "Magic"}`, "Magic: the type is not supported"},
		{`{"type": "ByteLevel", "loud": true}`, `unknown field "loud"`},
		{`{"type": "BertProcessing", "sep": ["[SEP]", 102]}`, "lacks cls or sep"},
		{`{"type": "BertProcessing", "sep": ["[SEP]"], "cls": ["[CLS]", 1]}`, "not a pair"},
		{`{"type": "BertProcessing", "sep": [1, 2], "cls": ["[CLS]", 1]}`, "BertProcessing: json"},
		{`{"type": "BertProcessing", "sep": ["[SEP]", -2], "cls": ["[CLS]", 1]}`, "ID -2"},
		{template("", ""), "no place for the text"},
		{template(text+","+text, ""), `piece 1 is text "A"`},
		{template(`{"Sequence": {"id": "B", "type_id": 0}}`, ""), `piece 0 is text "B"`},
		{template(`{"Sequence": {"id": "A", "type_id": 1}}`, ""), "of type 1"},
		{template(`{}`, ""), "piece 0 is not one of"},
		{template(cls+","+text, ""), `"[CLS]", which has no entry`},
		{template(`{"SpecialToken": {"id": "[CLS]", "type_id": 2}}`, `"[CLS]": {"id": "[CLS]", "ids": [1]}`), `"[CLS]" the type 2`},
		{template(cls+","+text, `"[CLS]": {"id": "[CLS]", "ids": [4294967296]}`), "ID 4294967296"},
		{strings.Repeat(`{"type": "Sequence", "processors": [`, 12) + strings.Repeat(`]}`, 12), "nested more than 8 deep"},
	} {
		before, after, err := withSpecial(t, test.processor).Special()
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") || before != nil || after != nil {
			t.Errorf("%s\n%v, %v, error %v, want %q", test.processor, before, after, err, test.want)
		}
	}
}

// FuzzSpecial: no post-processor panics, and IDs are ones that a model can have.
func FuzzSpecial(f *testing.F) {
	for _, s := range []string{bertTemplate, startTemplate, byteLevelProcessor, roberta, `{"type": "Sequence", "processors": [null]}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		before, after, err := (&Tokenizer{special: raw}).Special()
		for _, id := range slices.Concat(before, after) {
			if err != nil || id < 0 || int64(id) > 1<<31-1 {
				t.Fatalf("ID %d, error %v", id, err)
			}
		}
	})
}
