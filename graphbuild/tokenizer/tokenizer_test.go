package tokenizer

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/mapmatched/mmplug/mapmatched"
)

// checkTokens checks what Encode promises of offsets.
func checkTokens(t *testing.T, text string, tokens []Token) {
	t.Helper()
	previous := Token{}
	for i, token := range tokens {
		if token.Start < previous.Start || token.End < previous.End || token.End < token.Start || token.End > len(text) || token.ID < 0 {
			t.Fatalf("%q: token %d is %+v, after %+v", text, i, token, previous)
		}
		for _, at := range []int{token.Start, token.End} {
			if at < len(text) && !utf8.RuneStart(text[at]) {
				t.Fatalf("%q: token %d is %+v, which cuts a character", text, i, token)
			}
		}
		previous = token
	}
}

// checkWindows checks what Windows and Truncate promise.
func checkWindows(t *testing.T, tok *Tokenizer, text string, limit int) {
	t.Helper()
	ends, err := tok.Windows(text, limit)
	if err != nil {
		if strings.Contains(err.Error(), "cannot be cut") {
			return
		}
		t.Fatal(err)
	}
	at := 0
	for i, end := range ends {
		window := text[at:end]
		if n, err := tok.Count(window); err != nil || n > limit || end <= at || !utf8.ValidString(window) {
			t.Fatalf("window %d is %q of %q: %d tokens, limit %d, %v", i, window, text, n, limit, err)
		}
		if i == 0 {
			if short, err := tok.Truncate(text, limit); err != nil || short != window {
				t.Fatalf("%q truncated to %d is %q, but the first window %q, %v", text, limit, short, window, err)
			}
		}
		at = end
	}
	if at != len(text) {
		t.Fatalf("the windows end at byte %d of %q", at, text)
	}
}

func randomText(r *rand.Rand, n int) string {
	parts := []string{
		"the", "The road", " ", "  ", "\n", "\r\n", "\t", "Straße", "混合检索", "한국어", "🚀", "👨‍👩‍👧", "🇩🇪", "e\u0301", "\u0301", "\u0323",
		"[MASK]", "<TAB>", "Rover", "<s>", "42", "1234", ".", "...", "ﬁ", "½", "İ", "Σς", "か\u3099", "\u1100\u1161", "\u200b", "\x07", "\x00", "\ufffd", "▁", "Ġ", "'s",
	}
	var b strings.Builder
	for range r.IntN(n) {
		if r.IntN(5) > 0 {
			b.WriteString(parts[r.IntN(len(parts))])
			continue
		}
		if c := rune(r.IntN(utf8.MaxRune)); utf8.ValidRune(c) {
			b.WriteRune(c)
		}
	}
	return b.String()
}

func TestProperties(t *testing.T) {
	for _, name := range goldenNames(t, "testdata") {
		t.Run(name, func(t *testing.T) {
			tok := parseFile(t, filepath.Join("testdata", name+".json"))
			r := rand.New(rand.NewPCG(5, 6))
			for range 100 {
				text := randomText(r, 60)
				tokens, err := tok.Encode(text)
				if err != nil {
					t.Fatal(err)
				}
				checkTokens(t, text, tokens)
				if n, err := tok.Count(text); err != nil || n != len(tokens) {
					t.Fatalf("%q: %d tokens, but Count is %d, %v", text, len(tokens), n, err)
				}
				checkWindows(t, tok, text, 1+r.IntN(12))
			}
		})
	}
}

func TestConcurrent(t *testing.T) {
	for _, name := range goldenNames(t, "testdata") {
		tok := parseFile(t, filepath.Join("testdata", name+".json"))
		texts := readLines[string](t, filepath.Join("testdata", "texts.jsonl"))
		wants := readLines[reference](t, filepath.Join("testdata", name+".golden.jsonl"))
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for i, text := range texts {
					if n, err := tok.Count(text); err != nil || n != len(wants[i]) {
						t.Errorf("%s, %q: %d tokens, want %d, %v", name, text, n, len(wants[i]), err)
					}
				}
			})
		}
		wg.Wait()
	}
}

func TestWindows(t *testing.T) {
	tok := parseFile(t, "testdata/wordpiece-uncased.json")
	for _, test := range []struct {
		text  string
		limit int
		want  []string
	}{
		{"", 3, nil},
		{"  \n", 3, []string{"  \n"}},
		{"a b c", 3, []string{"a b c"}},
		{" a b  c\nd ", 2, []string{" a b  ", "c\nd "}},
		{"......", 4, []string{"....", ".."}},
		{"路网图", 2, []string{"路网", "图"}},
	} {
		ends, err := tok.Windows(test.text, test.limit)
		if err != nil {
			t.Errorf("%q: %v", test.text, err)
		}
		var got []string
		at := 0
		for _, end := range ends {
			got = append(got, test.text[at:end])
			at = end
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%q by %d is %q, want %q", test.text, test.limit, got, test.want)
		}
	}
}

// A character of several tokens is not cut, and too long for small limits.
func TestWindowsOfOneCharacter(t *testing.T) {
	tok := parseFile(t, "testdata/bpe-bytelevel.json")
	const text = "a𩮾𩮾b"
	n, err := tok.Count("𩮾")
	if err != nil || n < 3 {
		t.Fatalf("%d tokens, %v", n, err)
	}
	_, err = tok.Windows(text, n-1)
	if err == nil || !strings.Contains(err.Error(), `the text "𩮾" at byte 1 cannot be cut`) {
		t.Errorf("error %v", err)
	}
	ends, err := tok.Windows(text, n)
	if err != nil || !slices.Equal(ends, []int{1, 5, 9, 10}) {
		t.Errorf("ends %v, %v", ends, err)
	}
	if _, err := tok.Windows(text, 0); err == nil {
		t.Error("windows of 0 tokens")
	}
}

func TestTruncate(t *testing.T) {
	tok := parseFile(t, "testdata/wordpiece-uncased.json")
	for _, test := range []struct {
		text string
		n    int
		want string
	}{
		{"a b c", 2, "a b "}, {"a b c", 3, "a b c"}, {"a b c", 0, ""}, {"a b c", -1, ""}, {" \n", 0, " \n"}, {"", 0, ""},
	} {
		if got, err := tok.Truncate(test.text, test.n); err != nil || got != test.want {
			t.Errorf("%q to %d is %q, want %q, %v", test.text, test.n, got, test.want, err)
		}
	}
	bytes := parseFile(t, "testdata/bpe-bytelevel.json")
	if got, err := bytes.Truncate("𩮾", 1); err != nil || got != "" {
		t.Errorf("a character of several tokens to 1 is %q, %v", got, err)
	}
}

func TestNotUTF8(t *testing.T) {
	tok := parseFile(t, "testdata/bpe-bytelevel.json")
	for text, want := range map[string]string{"ab\xff": "byte 2", "\ufffd\xc3": "byte 3", "\xed\xa0\x80": "byte 0"} {
		_, err := tok.Encode(text)
		if err == nil || !strings.Contains(err.Error(), "not UTF-8 at "+want) {
			t.Errorf("Encode(%q): error %v, want %s", text, err, want)
		}
		_, err2 := tok.Count(text)
		_, err3 := tok.Truncate(text, 1)
		_, err4 := tok.Windows(text, 1)
		for _, e := range []error{err2, err3, err4} {
			if e == nil || e.Error() != err.Error() {
				t.Errorf("%q: error %v, want %v", text, e, err)
			}
		}
	}
}

func TestLoad(t *testing.T) {
	const path = "testdata/wordpiece-cased.json"
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	sum := hash(data)
	tok, err := Load(path, strings.ToUpper(sum))
	if err != nil || tok.SHA256() != sum {
		t.Fatalf("%+v, %v", tok, err)
	}
	other := strings.Repeat("0", 64)
	_, err = Load(path, other)
	if !errors.Is(err, mapmatched.ErrStaleIndex) || !strings.Contains(err.Error(), other) || !strings.Contains(err.Error(), sum) {
		t.Errorf("another hash: %v", err)
	}
	if _, err = Load(path, ""); err == nil || !strings.Contains(err.Error(), sum) {
		t.Errorf("no hash: %v", err)
	}
	if _, err = Load(filepath.Join(t.TempDir(), "none"), sum); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	for name, test := range map[string]struct{ data, want string }{
		"pointer":   {"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n", "Git LFS pointer"},
		"truncated": {string(data[:len(data)/2]), "ends in the middle"},
		"empty":     {"", "ends in the middle, after 0 bytes"},
	} {
		file := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(file, []byte(test.data), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(file, hash([]byte(test.data))); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v, want %q", name, err, test.want)
		}
	}
	// Before the hash: a pointer never has the pinned one.
	file := filepath.Join(t.TempDir(), "pointer")
	if err := os.WriteFile(file, []byte("version https://git-lfs.github.com/spec/v1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(file, other); err == nil || !strings.Contains(err.Error(), "Git LFS") {
		t.Errorf("error %v", err)
	}
}

func FuzzEncode(f *testing.F) {
	for _, seed := range []string{"", "The [MASK] <TAB> road\r\n", "e\u0301\u0323 ﬁ½…İ", "混合检索🚀👨‍👩‍👧", "\x00\x07\u200b  x", "'s 1234  \n"} {
		f.Add(seed, byte(5))
	}
	var all []*Tokenizer
	for _, name := range goldenNames(f, "testdata") {
		all = append(all, parseFile(f, filepath.Join("testdata", name+".json")))
	}
	f.Fuzz(func(t *testing.T, text string, limit byte) {
		for _, tok := range all {
			tokens, err := tok.Encode(text)
			if (err == nil) != utf8.ValidString(text) {
				t.Fatalf("%q: %v", text, err)
			}
			if err != nil {
				continue
			}
			checkTokens(t, text, tokens)
			checkWindows(t, tok, text, max(1, int(limit)))
		}
	})
}

func BenchmarkEncode(b *testing.B) {
	text := strings.Repeat("The decoder keeps one of them for every turn, 42 times. ", 2000) + strings.Repeat("今天我们讨论地图匹配。", 500)
	for _, name := range []string{"wordpiece-uncased", "bpe-bytelevel", "bpe-byte-fallback", "unigram-xlmr"} {
		tok := parseFile(b, filepath.Join("testdata", name+".json"))
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if _, err := tok.Encode(text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
