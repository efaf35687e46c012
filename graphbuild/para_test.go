package graphbuild

import (
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/mapmatched/mmplug/graphbuild/tokenizer"
	"github.com/mapmatched/mmplug/mapmatched"
)

// One tokenizer of each model: white space has tokens with the second only,
// and the third puts a marker before every text.
var paraTokenizers = []string{"wordpiece-uncased", "bpe-bytelevel", "unigram-t5"}

func testTokenizer(t testing.TB, name string) *tokenizer.Tokenizer {
	t.Helper()
	data, err := os.ReadFile("tokenizer/testdata/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	tok, err := tokenizer.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

func count(t testing.TB, tok *tokenizer.Tokenizer, text string) int {
	t.Helper()
	n, err := tok.Count(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// checkCover checks that the chunks are the document, in order and in whole
// characters.
func checkCover(t *testing.T, doc Document, c Chunked) {
	t.Helper()
	at := 0
	for i, chunk := range c.Chunks {
		if chunk.Start != at || chunk.End <= at || chunk.Ordinal != i || chunk.Document != doc.ID ||
			chunk.Text != doc.Text[chunk.Start:chunk.End] || !utf8.ValidString(chunk.Text) {
			t.Fatalf("chunk %d is %+v, expected to begin at byte %d", i, chunk, at)
		}
		at = chunk.End
	}
	if at != len(doc.Text) {
		t.Fatalf("the chunks end at byte %d of %d", at, len(doc.Text))
	}
}

// checkPara checks what ChunkPara promises beside that.
func checkPara(t *testing.T, doc Document, tok *tokenizer.Tokenizer, limit int) Chunked {
	t.Helper()
	c, err := ChunkPara(doc, tok, &TokenOptions{Limit: limit})
	if err != nil {
		t.Fatal(err)
	}
	checkCover(t, doc, c)
	lineStart := func(at int) bool { return at == 0 || at == len(doc.Text) || doc.Text[at-1] == '\n' }
	for _, chunk := range c.Chunks {
		if n := count(t, tok, chunk.Text); n > limit {
			t.Fatalf("chunk %d has %d tokens, more than %d: %q", chunk.Ordinal, n, limit, chunk.Text)
		}
		if lineStart(chunk.Start) && lineStart(chunk.End) {
			if chunk.End == len(doc.Text) {
				continue
			}
			next, _, _ := strings.Cut(doc.Text[chunk.End:], "\n")
			end := min(chunk.End+len(next)+1, len(doc.Text))
			if n := count(t, tok, doc.Text[chunk.Start:end]); n <= limit {
				t.Fatalf("chunk %d could take the next paragraph %q: %d tokens of %d", chunk.Ordinal, next, n, limit)
			}
			continue
		}
		// A window: all of it is one paragraph.
		if strings.Contains(strings.TrimSuffix(chunk.Text, "\n"), "\n") {
			t.Fatalf("window %d has more than one paragraph: %q", chunk.Ordinal, chunk.Text)
		}
	}
	return c
}

func TestChunkParaTexts(t *testing.T) {
	for name, text := range map[string]string{
		"prose":          strings.Repeat("The decoder keeps one of them for every turn.\n\nA gap is recorded.\n", 20),
		"one line":       strings.Repeat("The road is long and nobody is on the bridge. ", 40),
		"chinese":        strings.Repeat("故乡的路很长，雨后的桥上没有人。", 60) + "\n" + strings.Repeat("检索与解码要一起考虑。\n", 20),
		"unclosed fence": "Before.\n```go\nfunc main() {\n" + strings.Repeat("\tprintln(\"road\")\n", 50),
		"crlf":           strings.Repeat("one line\r\n\r\nanother line\r\n", 40),
		"newlines":       strings.Repeat("\n", 3000),
		"no end":         "last line without a line feed",
		"emoji":          strings.Repeat("👨‍👩‍👧🇩🇪🚀", 100),
		"mixed lengths":  strings.Repeat("a\n"+strings.Repeat("word ", 90)+"\nb\n", 4),
		"special":        strings.Repeat("[MASK] <TAB> Rover [CLS]\n", 30),
	} {
		for _, model := range paraTokenizers {
			t.Run(name+"/"+model, func(t *testing.T) {
				tok := testTokenizer(t, model)
				for _, limit := range []int{6, 17, 64, 512} {
					checkPara(t, Document{ID: "d.md", Text: text}, tok, limit)
				}
			})
		}
	}
}

func randomText(r *rand.Rand, n int) string {
	words := []string{"the", "road", " ", " ", "\n", "\n\n", "\r\n", "Straße", "混合检索", "🚀", "e\u0301", "\u0301", "[MASK]", "42", ".", "ﬁ", "\t", "```", "한국어"}
	var b strings.Builder
	for range r.IntN(n) {
		if r.IntN(8) > 0 {
			b.WriteString(words[r.IntN(len(words))])
			continue
		}
		c := rune(r.IntN(utf8.MaxRune))
		if !utf8.ValidRune(c) {
			c = 'x'
		}
		b.WriteRune(c)
	}
	return b.String()
}

func TestChunkParaRandom(t *testing.T) {
	for _, model := range paraTokenizers {
		t.Run(model, func(t *testing.T) {
			tok := testTokenizer(t, model)
			r := rand.New(rand.NewPCG(1, 2))
			for range 60 {
				checkPara(t, Document{ID: "d", Text: randomText(r, 120)}, tok, 8+r.IntN(40))
			}
		})
	}
}

func TestChunkParaPacks(t *testing.T) {
	tok := testTokenizer(t, "wordpiece-uncased")
	// Each "." is a token.
	c := checkPara(t, Document{ID: "d", Text: "..\n..\n.\n\n......\n.......\n."}, tok, 5)
	var got []string
	for _, chunk := range c.Chunks {
		got = append(got, chunk.Text)
	}
	want := []string{"..\n..\n.\n\n", ".....", ".\n", ".....", "..\n", "."}
	if !slices.Equal(got, want) {
		t.Errorf("chunks %q, want %q", got, want)
	}
}

// The last of the tokenizers does not cut the line into words first.
func TestChunkParaLongLine(t *testing.T) {
	for _, model := range []string{"wordpiece-uncased", "unigram-t5", "bpe-byte-fallback"} {
		t.Run(model, func(t *testing.T) {
			tok := testTokenizer(t, model)
			text := strings.Repeat("a ", 48_000)
			tokens := count(t, tok, text)
			if tokens < 48_000 {
				t.Fatalf("the line has %d tokens", tokens)
			}
			c := checkPara(t, Document{ID: "d", Text: text}, tok, 512)
			if least := (tokens + 511) / 512; len(c.Chunks) > least+least/50+1 {
				t.Errorf("%d chunks for %d tokens", len(c.Chunks), tokens)
			}
		})
	}
}

func TestChunkParaEmpty(t *testing.T) {
	c, err := ChunkPara(Document{ID: "d"}, testTokenizer(t, "bpe-bytelevel"), nil)
	if err != nil || len(c.Chunks) != 0 || c.Document != "d" {
		t.Errorf("got %+v, %v", c, err)
	}
	c, err = ChunkPara(Document{ID: "d", Text: "\n\n\n"}, testTokenizer(t, "wordpiece-uncased"), nil)
	if err != nil || len(c.Chunks) != 1 {
		t.Errorf("got %+v, %v", c, err)
	}
}

func TestChunkParaErrors(t *testing.T) {
	tok := testTokenizer(t, "bpe-bytelevel")
	for _, test := range []struct {
		doc  Document
		tok  *tokenizer.Tokenizer
		opts *TokenOptions
		want string
	}{
		{Document{ID: "d.md", Text: "road\xff"}, tok, nil, `"d.md" is not UTF-8 at byte 4`},
		{Document{Text: "road"}, tok, nil, "empty ID"},
		{Document{ID: "d"}, tok, &TokenOptions{Limit: -1}, "Limit is -1"},
		{Document{ID: "d"}, nil, nil, "no tokenizer"},
		{Document{ID: "d.md", Text: "a\n🚀🚀"}, tok, &TokenOptions{Limit: 1}, `document "d.md": paragraph at byte 2: the text "🚀" at byte 0 cannot be cut`},
	} {
		_, err := ChunkPara(test.doc, test.tok, test.opts)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%+v: error %v, want %q", test.doc, err, test.want)
		}
	}
	if _, err := ChunkPara(Document{ID: "d"}, nil, nil); !errors.Is(err, mapmatched.ErrInvalidConfig) {
		t.Errorf("error %v", err)
	}
}

func TestHashedChunkID(t *testing.T) {
	// By another SHA-256: 0000000000000008 "guide.md" 0000000000000003 "abc" 0000000000000002.
	const want = "c-746aef075190fe68"
	if got := HashedChunkID("c-", "guide.md", "abc", 2); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	seen := map[string]bool{}
	for _, id := range []string{
		HashedChunkID("", "ab", "c", 0), HashedChunkID("", "a", "bc", 0), HashedChunkID("", "ab", "c", 1),
		HashedChunkID("", "", "abc", 0), HashedChunkID("x", "ab", "c", 0),
	} {
		if seen[id] {
			t.Errorf("%q twice", id)
		}
		seen[id] = true
	}
}

func TestChunkParaIDs(t *testing.T) {
	tok := testTokenizer(t, "wordpiece-uncased")
	doc := Document{ID: "guide.md", Text: "a\nb\n"}
	c, err := ChunkPara(doc, tok, &TokenOptions{Limit: 1, IDPrefix: "c-", RecordDigest: "abc"})
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Chunks) != 2 || c.Chunks[1].ID != HashedChunkID("c-", "guide.md", "abc", 1) || c.Chunks[0].Title != "guide" {
		t.Errorf("chunks %+v", c.Chunks)
	}
	// Without a record digest the text's is used.
	c, err = ChunkPara(Document{ID: "g", Text: "abc"}, tok, nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := HashedChunkID("", "g", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", 0); c.Chunks[0].ID != want {
		t.Errorf("ID %s, want %s", c.Chunks[0].ID, want)
	}
}

func FuzzChunkPara(f *testing.F) {
	f.Add("one\n\ntwo three\r\n```\n混合检索🚀", byte(7))
	tok := testTokenizer(f, "bpe-bytelevel")
	f.Fuzz(func(t *testing.T, text string, limit byte) {
		if !utf8.ValidString(text) || limit < 8 {
			t.Skip("an error, tested elsewhere")
		}
		checkPara(t, Document{ID: "d", Text: text}, tok, int(limit))
	})
}

func BenchmarkChunkPara(b *testing.B) {
	tok := testTokenizer(b, "wordpiece-uncased")
	for name, text := range map[string]string{
		"paragraphs": strings.Repeat("The decoder keeps one of them for every turn.\n\n", 4000),
		"line":       strings.Repeat("The decoder keeps one of them for every turn. ", 4000),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if _, err := ChunkPara(Document{ID: "d", Text: text}, tok, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
