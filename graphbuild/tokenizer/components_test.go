package tokenizer

import (
	"slices"
	"strings"
	"testing"
)

func texts(pieces []aligned) []string {
	out := make([]string, len(pieces))
	for i, p := range pieces {
		out[i] = p.s
	}
	return out
}

func TestBehaviors(t *testing.T) {
	// Matches are the hyphens.
	const text = "the-final--countdown-"
	for _, test := range []struct {
		b      behavior
		invert bool
		want   string
	}{
		{removed, false, "the final countdown"},
		{isolated, false, "the - final - - countdown -"},
		{mergedWithPrevious, false, "the- final- - countdown-"},
		{mergedWithNext, false, "the -final - -countdown -"},
		{contiguous, false, "the - final -- countdown -"},
		{removed, true, "- - - -"},
		{isolated, true, "the - final - - countdown -"},
		{mergedWithPrevious, true, "the -final - -countdown -"},
		{mergedWithNext, true, "the- final- - countdown-"},
	} {
		cut := split(literal("-"), test.b, test.invert)
		if got := strings.Join(texts(cut([]aligned{align(text, 0)})), " "); got != test.want {
			t.Errorf("%s, invert %v: %q, want %q", test.b, test.invert, got, test.want)
		}
	}
	if got := split(literal("-"), removed, true)([]aligned{align("none", 0)}); len(got) != 0 {
		t.Errorf("kept %q", texts(got))
	}
}

func TestCompile(t *testing.T) {
	for _, test := range []struct{ expression, text, want string }{
		{wordExpression, "I'll  go 12km!\n\n x", "I 'll \x20  go  12 km ! \n\n  x"},
		{wordExpression, "a   ", "a \x20\x20\x20"},
		{wordExpression, " \u00a0b", "  \u00a0 b"},
		{`\s+`, "a\u3000 b", "a \u3000\x20 b"},
		{`[^\s]`, "é\u2003", "é \u2003"},
		{`[\S]+`, "ab\u205fc", "ab \u205f c"},
		{`\d`, "٣x", "٣ x"},
		{`\D`, "1x2", "1 x 2"},
		{`\w+`, "né_1-", "né_1 -"},
		{`\W`, "é!", "é !"},
		{`[]x]`, "a]b", "a ] b"},
		{`[^]x]`, "]a]", "] a ]"},
		{`(?i:AB)`, "xab", "x ab"},
		{`\x{41}`, "BA", "B A"},
		{`$`, "a\nb", "a \nb"},
		{`\p{Han}{1,2}`, "混合检x", "混合 检 x"},
		{`\.`, "a.b", "a . b"},
	} {
		p, err := compile(test.expression)
		if err != nil {
			t.Errorf("%s: %v", test.expression, err)
			continue
		}
		got := strings.Join(texts(split(p, isolated, false)([]aligned{align(test.text, 0)})), " ")
		if got != test.want {
			t.Errorf("%s in %q: %q, want %q", test.expression, test.text, got, test.want)
		}
	}
}

func TestCompileErrors(t *testing.T) {
	for expression, want := range map[string]string{
		`(?=a)b`:          `the group at "(?=a)b"`,
		`a(?!b)`:          `the group at "(?!b)"`,
		`(?>a)`:           "the group at",
		`(?m:a)`:          "the group at",
		`[a[bc]]`:         "a class inside a class",
		`[a&&b]`:          "a class inside a class",
		`\bword\b`:        `the escape at "\\bword\\b"`,
		`[\W]`:            "in a class",
		`\xE9`:            `the byte at "\\xE9"`,
		`a{,3}`:           "the repetition at",
		`a++`:             "is not supported",
		`\h`:              "is not supported",
		`(`:               "is not supported",
		`[`:               "is not supported",
		`\`:               "is not supported",
		`^a` + runsTail:   "an anchor",
		`\Aa` + runsTail:  "the escape at",
		`\s+(?!\S)|\s+|a`: "the group at",
	} {
		if _, err := compile(expression); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", expression, err, want)
		}
	}
}

// Every character keeps its place in the original text.
func TestNormalizerOffsets(t *testing.T) {
	for _, test := range []struct {
		name string
		n    normalizer
		text string
		want string
		at   []extent // of each character
	}{
		{"identity", sequence(nil), "aé", "aé", []extent{{0, 1}, {1, 3}}},
		{"decompose", form(nfd), "é.", "e\u0301.", []extent{{0, 2}, {0, 2}, {2, 3}}},
		{"compose", form(nfc), "e\u0301.", "é.", []extent{{0, 1}, {3, 4}}},
		{"reorder", form(nfc), "a\u0301\u0323", "ạ\u0301", []extent{{0, 1}, {3, 5}}},
		{"hangul", form(nfc), "\u1100\u1161\u11a8x", "각x", []extent{{0, 3}, {9, 10}}},
		{"compatibility", form(nfkc), "ﬁx", "fix", []extent{{0, 3}, {0, 3}, {3, 4}}},
		{"lower", lowercase, "İA", "i\u0307a", []extent{{0, 2}, {0, 2}, {2, 3}}},
		{"bert", bertNormalizer(true, true, true, true), "\x00É\t混", "e  混 ", []extent{{1, 3}, {3, 4}, {4, 7}, {4, 7}, {4, 7}}},
		{"prepend", prepend("__"), "é", "__é", []extent{{0, 2}, {0, 2}, {0, 2}}},
		{"prepend to nothing", prepend("__"), "", "", nil},
		{"replace", replace(literal("ab"), "xyz"), "abc", "xyzc", []extent{{1, 2}, {1, 2}, {1, 2}, {2, 3}}},
		{"strip", strip(true, true), " a ", "a", []extent{{1, 2}}},
		{"strip all", strip(true, true), " \u3000 ", "", nil},
		{"nmt", nmt(), "\x01a\u200b", "a ", []extent{{1, 2}, {2, 5}}},
		{"accents", stripAccents(), "e\u0301x", "ex", []extent{{0, 1}, {3, 4}}},
	} {
		got := test.n(align(test.text, 0))
		var at []extent
		for i := range got.s {
			at = append(at, got.at[i])
		}
		if got.s != test.want || !slices.Equal(at, test.at) || len(got.at) != len(got.s) {
			t.Errorf("%s: %+q at %v, want %+q at %v", test.name, got.s, at, test.want, test.at)
		}
	}
}

// What a charsmap drops at the beginning does not move the offsets behind it.
func TestCharsmapOffsets(t *testing.T) {
	tok := parseFile(t, "testdata/unigram-t5.json")
	const text = "\x07\u200bﬁx"
	tokens, err := tok.Encode(text)
	if err != nil || len(tokens) == 0 {
		t.Fatal(tokens, err)
	}
	if first, last := tokens[0], tokens[len(tokens)-1]; first.Start != 4 || last.End != len(text) {
		t.Errorf("tokens %v, want them from byte 4 to %d", tokens, len(text))
	}
}

// A double-array trie by hand: unit 0 leads to its child at 0^1^'a', which
// ends an entry whose value is at 96^2.
func TestCharsmap(t *testing.T) {
	units := make([]byte, 4*128)
	put := func(i int, v uint32) {
		for k := range 4 {
			units[4*i+k] = byte(v >> (8 * k))
		}
	}
	put(0, 1<<10)
	put(1^'a', 2<<10|1<<8|'a')
	put(1^'a'^2, 1<<31)
	data := append([]byte{0, 2, 0, 0}, units...)
	m, err := parseCharsmap(append(data, "xyz\x00"...))
	if err != nil {
		t.Fatal(err)
	}
	got := m.normalize(align("bab", 0))
	if want := []extent{{0, 1}, {1, 2}, {1, 2}, {1, 2}, {2, 3}}; got.s != "bxyzb" || !slices.Equal(got.at, want) {
		t.Errorf("got %q at %v", got.s, got.at)
	}
	// A value beyond the replacements replaces nothing.
	m.units[1^'a'^2] = 1<<31 | 99
	if got := m.normalize(align("a", 0)); got.s != "a" {
		t.Errorf("got %q", got.s)
	}
}

func TestMetaspace(t *testing.T) {
	for _, test := range []struct {
		scheme string
		split  bool
		base   int
		text   string
		want   []string
	}{
		{"always", true, 0, "a  b", []string{"_a", "_", "_b"}},
		{"always", false, 5, "a b", []string{"_a_b"}},
		{"first", true, 5, "a b", []string{"a", "_b"}},
		{"first", true, 0, "a b", []string{"_a", "_b"}},
		{"never", true, 0, "a b", []string{"a", "_b"}},
		{"always", true, 0, " a", []string{"_a"}},
	} {
		got := texts(metaspace("_", test.scheme, test.split)([]aligned{align(test.text, test.base)}))
		if !slices.Equal(got, test.want) {
			t.Errorf("%+v: got %q", test, got)
		}
	}
}

func TestAddedTokens(t *testing.T) {
	tokens := newAddedTokens([]addedToken{
		{ID: 10, Content: "<a>"}, {ID: 11, Content: "<a>b"}, {ID: 12, Content: "word", SingleWord: true},
		{ID: 13, Content: "<l>", LStrip: true}, {ID: 14, Content: "<r>", RStrip: true}, {ID: 15, Content: ""},
	}, nil)
	for _, test := range []struct {
		text string
		want []Token
	}{
		{"x<a>y", []Token{{-1, 0, 1}, {10, 1, 4}, {-1, 4, 5}}},
		{"<a>b", []Token{{11, 0, 4}}},
		{"swords word_ word.", []Token{{-1, 0, 13}, {12, 13, 17}, {-1, 17, 18}}},
		{"a \n<l> b", []Token{{-1, 0, 1}, {13, 1, 6}, {-1, 6, 8}}},
		{"a <r>\t <l>", []Token{{-1, 0, 2}, {14, 2, 7}, {13, 7, 10}}},
		{"", nil},
	} {
		var got []Token
		for _, s := range tokens.split(nil, align(test.text, 0)) {
			e := s.original(0, len(s.s))
			got = append(got, Token{s.token, int(e.from), int(e.to)})
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%q: %v, want %v", test.text, got, test.want)
		}
	}
}

func TestTrie(t *testing.T) {
	trie := newTrie([]entry{{"ab", 1}, {"abcd", 2}, {"", 9}, {"b", 3}, {"b", 4}, {"é", 5}})
	for _, test := range []struct {
		text   string
		id     int32
		length int
	}{{"abcx", 1, 2}, {"abcde", 2, 4}, {"bb", 4, 1}, {"a", -1, 0}, {"", -1, 0}, {"é", 5, 2}, {"ê", -1, 0}} {
		if id, n := trie.longest(test.text); id != test.id || n != test.length {
			t.Errorf("%q: %d of %d bytes, want %d of %d", test.text, id, n, test.id, test.length)
		}
	}
	if trie.find("abcd") != 2 || trie.find("abc") != -1 || trie.find("x") != -1 || trie.find("") != -1 {
		t.Error("find is wrong")
	}
}
