package langchaingo_test

import (
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tmc/langchaingo/textsplitter"

	"github.com/mapmatched/mmplug/adapters/langchaingo"
	"github.com/mapmatched/mmplug/mapmatched"
)

// pieces is a splitter that always gives the same answer.
type pieces []string

// SplitText implements langchaingo.TextSplitter.
func (p pieces) SplitText(string) ([]string, error) { return p, nil }

func ranges(chunks []mapmatched.Chunk) string {
	var out []string
	for _, c := range chunks {
		out = append(out, fmt.Sprintf("%d-%d", c.Start, c.End))
	}
	return strings.Join(out, " ")
}

func TestSplitText(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		pieces     pieces
		want, err  string
	}{
		{name: "apart", text: "one two  three", pieces: pieces{"one", "two", "three"}, want: "0-3 4-7 9-14"},
		{name: "overlapping", text: "one two three four", pieces: pieces{"one two", "two three", "three four"}, want: "0-7 4-13 8-18"},
		{name: "the same again behind", text: "ab. ab. ab.", pieces: pieces{"ab.", "ab.", "ab."}, want: "0-3 4-7 8-11"},
		{name: "the same again much later", text: "x y z. other words. y z.", pieces: pieces{"x y z.", "y z. other words.", "y z."}, want: "0-6 2-19 20-24"},
		{name: "overlap with a later twin", text: "a bb cc dd. then ee. cc dd. ff", pieces: pieces{"a bb cc dd.", "cc dd. then ee.", "cc dd. ff"}, want: "0-11 5-20 21-30"},
		{name: "overlap rather than a gap", text: "p q r. s t u v q r. s t", pieces: pieces{"p q r. s t", "q r. s t"}, want: "0-10 2-10"},
		{name: "longer in the same place", text: "the same line", pieces: pieces{"the", "the same", "line"}, want: "0-3 0-8 9-13"},
		{name: "room for the rest", text: "aaaaaaaa", pieces: pieces{"aaaa", "aaaa", "aaaa"}, want: "0-4 3-7 4-8"},
		{name: "something left out", text: "keep drop keep2", pieces: pieces{"keep", "keep2"}, want: "0-4 10-15"},
		{name: "letters as separator", text: "aXbXc", pieces: pieces{"a", "b", "c"}, want: "0-1 2-3 4-5"},
		{name: "empty pieces", text: "a b", pieces: pieces{"", "a", "", "b", ""}, want: "0-1 2-3"},
		{name: "no text", text: "", pieces: nil, want: ""},
		{name: "characters of several bytes", text: "故乡 小桥 流水", pieces: pieces{"故乡", "小桥", "流水"}, want: "0-6 7-13 14-20"},
		{name: "rewritten", text: "a  b", pieces: pieces{"a", "a b"}, err: `document "d": chunk 1, "a b", is not a piece of the document`},
		{name: "another order", text: "a b", pieces: pieces{"b", "a"}, err: `chunk 0, "b", is not in the document before chunk 1`},
		{name: "the same place twice", text: "a b", pieces: pieces{"a", "a"}, err: `chunk 0, "a", is not in the document before chunk 1`},
		{name: "half a character", text: "é", pieces: pieces{"\xc3", "\xa9"}, err: "is not UTF-8"},
		{name: "a long one", text: "a", pieces: pieces{strings.Repeat("x", 100)}, err: `"` + strings.Repeat("x", 40) + `"…, is not a piece`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			chunks, err := langchaingo.SplitText(tt.pieces, "d", tt.text)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("chunks %s, error %v; want %q", ranges(chunks), err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := ranges(chunks); got != tt.want {
				t.Errorf("chunks at %s, want %s", got, tt.want)
			}
			check(t, tt.text, chunks)
		})
	}
	if _, err := langchaingo.SplitText(pieces{"a"}, "", "a"); err == nil || !strings.Contains(err.Error(), "document ID is empty") {
		t.Errorf("error %v without a document ID", err)
	}
	if _, err := langchaingo.SplitText(pieces{"a"}, "notes.txt", "a\xff"); err == nil || !strings.Contains(err.Error(), `document "notes.txt" is not UTF-8`) {
		t.Errorf("error %v of a document that is not UTF-8", err)
	}
	boom := errors.New("boom")
	if _, err := langchaingo.SplitText(failing{boom}, "d", "a"); !errors.Is(err, boom) {
		t.Errorf("error %v of a splitter that failed", err)
	}
}

type failing struct{ err error }

// SplitText implements langchaingo.TextSplitter.
func (f failing) SplitText(string) ([]string, error) { return nil, f.err }

// check is what holds for the chunks of any splitter.
func check(t *testing.T, text string, chunks []mapmatched.Chunk) {
	t.Helper()
	for i, c := range chunks {
		if text[c.Start:c.End] != c.Text || c.Text == "" || c.Ordinal != i || c.ID != fmt.Sprintf("d#%d-%d", c.Start, c.End) {
			t.Errorf("chunk %+v is not its piece of the text", c)
		}
		if i > 0 && (c.Start < chunks[i-1].Start || c.Start == chunks[i-1].Start && c.End <= chunks[i-1].End) {
			t.Errorf("chunk %d is at %d-%d, the one before at %d-%d", i, c.Start, c.End, chunks[i-1].Start, chunks[i-1].End)
		}
	}
}

// langchaingo's own splitters on texts that repeat themselves.
func TestSplittersOfLangchaingo(t *testing.T) {
	log.SetOutput(io.Discard) // the splitters warn of every long chunk
	defer log.SetOutput(os.Stderr)
	texts := []string{
		strings.Repeat("äöü🚀混合检索", 50), strings.Repeat("the same line\n", 40), strings.Repeat("a", 300),
		"# Title\n\nA paragraph of words.\n\nA paragraph of words.\n\n```\nunclosed fence\n\nA paragraph of words.",
		"One sentence only.", "\n\n \n", "",
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 40 {
		var b strings.Builder
		for range random.IntN(80) {
			b.WriteString([]string{"a", "b", "ab", " ", "\n", "\n\n", "é", "故"}[random.IntN(8)])
		}
		texts = append(texts, b.String())
	}
	for _, size := range []int{7, 20, 100} {
		for _, overlap := range []int{0, 3, size / 2} {
			s := textsplitter.NewRecursiveCharacter(textsplitter.WithChunkSize(size), textsplitter.WithChunkOverlap(overlap))
			for _, text := range texts {
				chunks, err := langchaingo.SplitText(s, "d", text)
				if err != nil {
					t.Fatalf("size %d, overlap %d, %q: %v", size, overlap, text, err)
				}
				check(t, text, chunks)
				// The splitter drops white space only.
				var covered strings.Builder
				end := 0
				for _, c := range chunks {
					covered.WriteString(text[max(end, c.Start):max(end, c.End)])
					end = max(end, c.End)
				}
				if squeeze(covered.String()) != squeeze(text) {
					t.Errorf("size %d, overlap %d: chunks at %s do not cover %q", size, overlap, ranges(chunks), text)
				}
			}
		}
	}
	table := "| a | b |\n|---|---|\n| 1 | 2 |\n"
	if chunks, err := langchaingo.SplitText(textsplitter.NewMarkdownTextSplitter(), "d", table); err == nil || !strings.Contains(err.Error(), "rewrites the text") {
		t.Errorf("chunks %v, error %v of a table that is rewritten", chunks, err)
	}
}

func squeeze(s string) string { return strings.Join(strings.Fields(s), "") }

// Any cut of a text is found again, and where the text does not repeat itself,
// in the same place.
func FuzzSplitText(f *testing.F) {
	f.Add("one two three", uint64(7))
	f.Add("aaaaaaaaaa", uint64(3))
	f.Add("故乡 小桥 流水\n\n故乡", uint64(11))
	f.Fuzz(func(t *testing.T, text string, seed uint64) {
		text = strings.ToValidUTF8(text[:min(len(text), 1000)], "?") // the comparison below is quadratic
		random := rand.New(rand.NewPCG(seed, 0))
		var cuts []int
		for at := range text {
			if random.IntN(3) == 0 {
				cuts = append(cuts, at)
			}
		}
		cuts = append(cuts, len(text))
		var cut pieces
		var want []int
		for i := range len(cuts) - 1 {
			end := cuts[min(i+1+random.IntN(2), len(cuts)-1)]
			cut = append(cut, text[cuts[i]:end])
			want = append(want, cuts[i])
		}
		chunks, err := langchaingo.SplitText(cut, "d", text)
		if err != nil {
			t.Fatalf("pieces %q of %q: %v", cut, text, err)
		}
		check(t, text, chunks)
		if len(chunks) != len(cut) {
			t.Fatalf("%d chunks of %d pieces", len(chunks), len(cut))
		}
		for i, c := range chunks {
			if strings.LastIndex(text, cut[i]) == strings.Index(text, cut[i]) && c.Start != want[i] {
				t.Errorf("piece %d, %q, is at %d, want %d", i, cut[i], c.Start, want[i])
			}
		}
		if slices.ContainsFunc(chunks, func(c mapmatched.Chunk) bool { return c.Document != "d" }) {
			t.Error("a chunk of another document")
		}
	})
}
