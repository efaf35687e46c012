package lexical

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

func TestAnalyze(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"empty", "", nil},
		{"only separators", " \n\t…!? 🚀 ", nil},
		{"only stopwords", "What is it?", nil},
		{"verbs of the subject stay", "What happens when sessions expire?", []string{"happens", "sessions", "expire"}},
		{"repeats stay", "go Go GO", []string{"go", "go", "go"}},
		{"contraction", "Don’t panic, don't", []string{"panic"}},
		{"possessive", "the model's weight", []string{"model", "weight"}},
		{"underscore and hyphen", "max_distance fixed-lag", []string{"max", "distance", "fixed", "lag"}},
		{"numbers", "v1.2 costs 3,500 or ²", []string{"v1", "2", "costs", "3", "500", "2"}},
		{"full width", "ＦＡＩＳＳ　１２", []string{"faiss", "12"}},
		{"ligature", "eﬃcient", []string{"efficient"}},
		{"decomposed", "re\u0301sume\u0301", []string{"résumé"}},
		{"lower case composes", "J\u030Cura", []string{"ǰura"}},
		{"soft hyphen and byte order mark", "\uFEFFretrie\u00ADval", []string{"retrieval"}},
		{"zero-width space separates", "alpha\u200Bbeta", []string{"alpha", "beta"}},
		{"mark without a letter", "\u0301 x", []string{"x"}},
		{"umlauts", "Äöü straße", []string{"äöü", "straße"}},
		{"Cyrillic", "Дорожная сеть", []string{"дорожная", "сеть"}},
		{"Arabic with marks", "كِتَاب", []string{"كِتَاب"}},
		{"Devanagari", "हिन्दी", []string{"हिन्दी"}},
		{"Han", "我的故乡", []string{"我的", "的故", "故乡"}},
		{"one Han character", "水", []string{"水"}},
		{"two runs", "故乡。水", []string{"故乡", "水"}},
		{"kana and Han in one run", "食べる", []string{"食べ", "べる"}},
		{"prolonged sound mark", "データ", []string{"デー", "ータ"}},
		{"half-width katakana", "ﾃﾞｰﾀ", []string{"デー", "ータ"}},
		{"Hangul", "안녕하세요", []string{"안녕", "녕하", "하세", "세요"}},
		{"decomposed Hangul", norm.NFD.String("안녕"), []string{"안녕"}},
		{"variation selector", "葛\U000E0100城", []string{"葛城"}},
		{"mark inside a run", "あ\u3099い", []string{"あ\u3099い"}},
		{"Latin and Han", "iPhone手机3台", []string{"iphone", "手机", "3", "台"}},
		{"not UTF-8", "ab\xffcd", []string{"ab", "cd"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Analyze(c.text); !slices.Equal(got, c.want) {
				t.Errorf("Analyze(%q) = %q, want %q", c.text, got, c.want)
			}
		})
	}
}

func TestStopwordsArePinned(t *testing.T) {
	words := Stopwords()
	sum := sha256.Sum256([]byte(strings.Join(words, "\n") + "\n"))
	if got := hex.EncodeToString(sum[:]); got != StopwordsSHA256 {
		t.Errorf("SHA-256 of the stopwords is %s, pinned is %s", got, StopwordsSHA256)
	}
	if !slices.IsSorted(words) || len(slices.Compact(slices.Clone(words))) != len(words) {
		t.Error("the stopwords are not sorted or not unique")
	}
	for _, w := range []string{"happens", "expire", "change", "first", "work", "go", "use"} {
		if slices.Contains(words, w) {
			t.Errorf("%q is a stopword", w)
		}
	}
}

func TestQueryTerms(t *testing.T) {
	got := QueryTerms("beta the alpha Beta")
	want := []WeightedTerm{{"alpha", 1}, {"beta", 2}}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := QueryTerms("of the"); len(got) != 0 {
		t.Errorf("stopwords gave %v", got)
	}
}

func FuzzAnalyze(f *testing.F) {
	for _, s := range []string{"", "What happens?", "我的故乡 and データ", "e\u0301\u200d\xff", "İstanbul ǰ ẞ", "한"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		terms := Analyze(text)
		for _, w := range terms {
			switch {
			case w == "" || !utf8.ValidString(w):
				t.Fatalf("Analyze(%q) has term %q", text, w)
			case isStopword[w]:
				t.Fatalf("Analyze(%q) has stopword %q", text, w)
			}
		}
		if utf8.ValidString(text) {
			if got := Analyze(norm.NFD.String(text)); !slices.Equal(got, terms) {
				t.Fatalf("Analyze(%q) = %q, decomposed %q", text, terms, got)
			}
		}
		if got := Analyze(text + "\n" + text); !slices.Equal(got, append(slices.Clone(terms), terms...)) {
			t.Fatalf("Analyze(%q) = %q, the text twice gives %q", text, terms, got)
		}
	})
}

func ExampleAnalyze() {
	fmt.Printf("%q\n", Analyze("What happens to the model's max_distance?"))
	fmt.Printf("%q\n", Analyze("我的故乡"))
	// Output:
	// ["happens" "model" "max" "distance"]
	// ["我的" "的故" "故乡"]
}
