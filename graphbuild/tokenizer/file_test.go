package tokenizer

import (
	"slices"
	"strings"
	"testing"
)

// wordLevelFile is a tokenizer of a few words, with other components put in.
func wordLevelFile(normalizer, pretokenizer string) string {
	return `{"version": "1.0", "truncation": null, "added_tokens": [], "normalizer": ` + normalizer +
		`, "pre_tokenizer": ` + pretokenizer +
		`, "model": {"type": "WordLevel", "vocab": {"[UNK]": 0, "a": 1, "b": 2}, "unk_token": "[UNK]"}}`
}

func withModel(model string) string { return `{"version": "1.0", "model": ` + model + `}` }

func TestParseErrors(t *testing.T) {
	for _, test := range []struct{ file, want string }{
		{`{"version": "1.0"`, "ends in the middle"},
		{`[]`, "not a tokenizer.json file"},
		{`{"version": "1.0", "model": {}, "size": 1}`, `unknown field "size"`},
		{`{"version": "1.0"} x`, "more data"},
		{`{"version": "2.0", "model": {}}`, `version is "2.0", want "1.0"`},
		{`{"version": "1.0"}`, "has no model"},
		{`{"version": "1.0", "model": null}`, "has no model"},

		{withModel(`{}`), `model: the type "" is not supported`},
		{withModel(`{"type": "Lattice"}`), `model: the type "Lattice" is not supported`},
		{withModel(`{"type": "WordPiece", "vocab": {"a": 0}}`), `model: WordPiece: the unknown token "[UNK]" is not in the vocabulary`},
		{withModel(`{"type": "WordPiece", "vocab": {"[UNK]": -1}}`), `token "[UNK]" has ID -1`},
		{withModel(`{"type": "WordPiece", "vocab": {"[UNK]": 1.5}}`), "model: WordPiece: json"},
		{withModel(`{"type": "WordPiece", "vocab": {"[UNK]": 0}, "future": 1}`), `unknown field "future"`},
		{withModel(`{"type": "BPE", "vocab": {}, "merges": [], "dropout": 0.1}`), "dropout is 0.1"},
		{withModel(`{"type": "BPE", "vocab": {"a": 0}, "merges": ["a b"]}`), `merge 0 of "a" and "b" needs token "b"`},
		{withModel(`{"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": [["a", "b"]]}`), `needs token "ab"`},
		{withModel(`{"type": "BPE", "vocab": {"a": 0}, "merges": ["aa"]}`), "merge 0: \"aa\" is not two texts"},
		{withModel(`{"type": "BPE", "vocab": {"a": 0}, "merges": [["a"]]}`), "is not a pair"},
		{withModel(`{"type": "BPE", "vocab": {"a": 0}, "merges": [7]}`), "merge 0: json"},
		{withModel(`{"type": "Unigram", "vocab": []}`), "vocabulary is empty"},
		{withModel(`{"type": "Unigram", "unk_id": 1, "vocab": [["a", 0]]}`), "unk_id is 1, but the vocabulary has 1 entries"},
		{withModel(`{"type": "Unigram", "unk_id": 0, "vocab": [["a"]]}`), "entry 0 is not a pair"},
		{withModel(`{"type": "Unigram", "unk_id": 0, "vocab": [["a", "b"]]}`), "entry 0: json"},

		{wordLevelFile(`{"type": "Magic"}`, "null"), `normalizer: the type "Magic" is not supported`},
		{wordLevelFile(`{"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Magic"}]}`, "null"), `normalizer: step 1: the type "Magic"`},
		{wordLevelFile(strings.Repeat(`{"type": "Sequence", "normalizers": [`, 12)+strings.Repeat(`]}`, 12), "null"), "nested more than 8 deep"},
		{wordLevelFile(`{"type": "Replace", "content": ""}`, "null"), "Replace: there is no pattern"},
		{wordLevelFile(`{"type": "Replace", "pattern": {"String": ""}, "content": ""}`, "null"), "want one String or Regex"},
		{wordLevelFile(`{"type": "Precompiled"}`, "null"), "has no precompiled_charsmap"},
		{wordLevelFile(`{"type": "Precompiled", "precompiled_charsmap": "AAA="}`, "null"), "has 2 bytes, too few"},
		{wordLevelFile(`{"type": "Precompiled", "precompiled_charsmap": "CAAAAAAA"}`, "null"), "says its trie has 8 bytes, but 2 follow"},
		{wordLevelFile(`{"type": "Precompiled", "precompiled_charsmap": "AAAAAAAA"}`, "null"), "empty trie"},
		{wordLevelFile(`{"type": "Precompiled", "precompiled_charsmap": "BAAAAAAAAAD/"}`, "null"), "not UTF-8"},

		{wordLevelFile("null", `{"type": "UnicodeScripts"}`), `pre_tokenizer: the type "UnicodeScripts" is not supported`},
		{wordLevelFile("null", `{"type": "Sequence", "pretokenizers": [{"type": "Magic"}]}`), `step 0: the type "Magic"`},
		{wordLevelFile("null", strings.Repeat(`{"type": "Sequence", "pretokenizers": [`, 12)+strings.Repeat(`]}`, 12)), "nested more than 8 deep"},
		{wordLevelFile("null", `{"type": "Punctuation", "behavior": "Odd"}`), `behavior "Odd" is not supported`},
		{wordLevelFile("null", `{"type": "CharDelimiterSplit", "delimiter": "ab"}`), `delimiter is "ab"`},
		{wordLevelFile("null", `{"type": "Metaspace", "replacement": ""}`), `replacement is ""`},
		{wordLevelFile("null", `{"type": "Metaspace", "replacement": "_", "prepend_scheme": "last"}`), `prepend_scheme is "last"`},
		{wordLevelFile("null", `{"type": "Split", "pattern": {"Regex": "(?<=a)b"}, "behavior": "Isolated"}`), `the group at "(?<=a)b" is not supported`},

		{strings.Replace(wordLevelFile("null", "null"), `[]`, `[{"id": 5, "content": "a"}]`, 1), `added token "a" has ID 5`},
		{strings.Replace(wordLevelFile("null", "null"), `[]`, `[{"id": -5, "content": "c"}]`, 1), `added token "c" has ID -5`},
		{strings.Replace(wordLevelFile("null", "null"), `[]`, `[{"id": 5, "content": "c", "loud": true}]`, 1), `unknown field "loud"`},
	} {
		_, err := Parse([]byte(test.file))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s\nerror %v, want %q", test.file, err, test.want)
		} else if strings.Contains(err.Error(), "\n") {
			t.Errorf("%s\nerror has more than one line: %v", test.file, err)
		}
	}
}

// Old files do not say the type of the model, and write merges as one text.
func TestParseOldModels(t *testing.T) {
	for _, test := range []struct {
		model, text string
		want        []int
	}{
		{`{"vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]}`, "aab", []int{0, 2}},
		{`{"unk_id": 0, "vocab": [["?", 0.0], ["a", -1.0], ["ab", -1.5], ["b", -1.0]]}`, "abx", []int{2, 0}},
		{`{"vocab": {"[UNK]": 0, "a": 1, "##b": 2}, "max_input_chars_per_word": 4}`, "abb", []int{1, 2, 2}},
		{`{"vocab": {"[UNK]": 0, "a": 1}, "unk_token": "[UNK]"}`, "a", []int{1}},
	} {
		tok, err := Parse([]byte(withModel(test.model)))
		if err != nil {
			t.Errorf("%s: %v", test.model, err)
			continue
		}
		if got := ids(t, tok, test.text); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q is %v, want %v", test.model, test.text, got, test.want)
		}
	}
}

// What a model cannot do with a text shows when it is encoded.
func TestEncodeErrors(t *testing.T) {
	for model, want := range map[string]string{
		`{"type": "WordLevel", "vocab": {"a": 0}}`:                                  `piece "x" is not in the vocabulary`,
		`{"type": "BPE", "vocab": {"a": 0}, "merges": [], "unk_token": "<unk>"}`:    `unknown token "<unk>" is not in the vocabulary`,
		`{"type": "Unigram", "vocab": [["a", -1.0]]}`:                               "no unk_id",
		`{"type": "Unigram", "unk_id": null, "vocab": [["a", -1.0], ["xx", -1.0]]}`: "no unk_id",
	} {
		tok, err := Parse([]byte(withModel(model)))
		if err != nil {
			t.Errorf("%s: %v", model, err)
			continue
		}
		if _, err := tok.Encode("x"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", model, err, want)
		}
	}
	// Without an unknown token BPE drops characters, and the others keep their place.
	tok, err := Parse([]byte(withModel(`{"type": "BPE", "vocab": {"a": 0}, "merges": []}`)))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := tok.Encode("xéa"); err != nil || len(got) != 1 || got[0] != (Token{0, 3, 4}) {
		t.Errorf("got %v, %v", got, err)
	}
}

func ids(t testing.TB, tok *Tokenizer, text string) []int {
	t.Helper()
	tokens, err := tok.Encode(text)
	if err != nil {
		t.Fatal(err)
	}
	got := make([]int, len(tokens))
	for i, token := range tokens {
		got[i] = token.ID
	}
	return got
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(wordLevelFile(`{"type": "BertNormalizer"}`, `{"type": "BertPreTokenizer"}`)))
	f.Add([]byte(wordLevelFile(`{"type": "NFKC"}`, `{"type": "Metaspace", "replacement": "_", "prepend_scheme": "first"}`)))
	f.Add([]byte(wordLevelFile("null", `{"type": "Split", "pattern": {"Regex": "\\p{L}+|\\s+(?!\\S)|\\s+"}, "behavior": "MergedWithNext"}`)))
	f.Add([]byte(withModel(`{"type": "WordPiece", "vocab": {"[UNK]": 0, "a": 1, "##b": 2}}`)))
	f.Add([]byte(withModel(`{"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"], "unk_token": "a", "fuse_unk": true}`)))
	f.Add([]byte(wordLevelFile(`{"type": "Replace", "pattern": {"Regex": "x*"}, "content": "y"}`, `{"type": "Whitespace"}`)))
	f.Add([]byte(withModel(`{"type": "Unigram", "unk_id": 0, "vocab": [["", -1e308], ["a", 1e308]], "byte_fallback": true}`)))
	f.Add([]byte(wordLevelFile(`{"type": "Precompiled", "precompiled_charsmap": "CAAAAGEBAAAAAACAYgA="}`, "null")))
	f.Fuzz(func(t *testing.T, data []byte) {
		tok, err := Parse(data)
		if err != nil {
			return
		}
		const text = " a b\u0301ﬁ混🚀[MASK]\n"
		tokens, err := tok.Encode(text)
		if err == nil {
			checkTokens(t, text, tokens)
		}
	})
}
