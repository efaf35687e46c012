package graphbuild

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

// checkChunked fails unless the chunks cover doc with valid text of at most
// maxBytes bytes and unique IDs, and links and anchors lie in them.
func checkChunked(t *testing.T, doc Document, c Chunked, maxBytes int) {
	t.Helper()
	longest, run := 0, 0
	for _, b := range []byte(doc.Text) {
		if run++; !isSpace(b) {
			run = 0
		}
		longest = max(longest, run)
	}
	ids := map[string]bool{}
	at := 0
	for i, ch := range c.Chunks {
		switch {
		case ch.Start != at || ch.End <= ch.Start || ch.End > len(doc.Text) || ch.Text != doc.Text[ch.Start:ch.End]:
			t.Fatalf("chunk %d is bytes %d to %d with %q, want to start at %d and to be that text", i, ch.Start, ch.End, ch.Text, at)
		case !utf8.ValidString(ch.Text):
			t.Fatalf("chunk %d is not UTF-8: %q", i, ch.Text)
		case len(ch.Text) > maxBytes:
			t.Fatalf("chunk %d has %d bytes, limit %d", i, len(ch.Text), maxBytes)
		case ids[ch.ID]:
			t.Fatalf("chunk ID %q twice", ch.ID)
		case ch.Ordinal != i || ch.Document != doc.ID || ch.Title == "" || !strings.HasPrefix(ch.ID, idEscaper.Replace(doc.ID)):
			t.Fatalf("chunk %d is %+v", i, ch)
		case !utf8.ValidString(ch.ID + ch.Section + ch.Title):
			t.Fatalf("chunk %d has names that are not UTF-8: %+v", i, ch)
		case strings.Trim(ch.Text, " \t\n\v\f\r") == "" && len(c.Chunks) > 1 && 2*longest+utf8.UTFMax < maxBytes:
			t.Fatalf("chunk %d of %d is white space, limit %d, longest run %d: %q", i, len(c.Chunks), maxBytes, longest, ch.Text)
		}
		ids[ch.ID] = true
		at = ch.End
	}
	if at != len(doc.Text) {
		t.Fatalf("chunks end at %d of %d", at, len(doc.Text))
	}
	names := map[string]bool{}
	for _, a := range c.Anchors {
		if !ids[a.ChunkID] || names[a.Name] {
			t.Fatalf("anchor %+v is in no chunk or there twice", a)
		}
		names[a.Name] = true
	}
	for _, l := range c.Links {
		if !ids[l.ChunkID] || l.Offset < 0 || l.Offset > len(doc.Text) {
			t.Fatalf("link %+v is in no chunk", l)
		}
	}
}

func mustMarkdown(t *testing.T, text string, maxBytes int) Chunked {
	t.Helper()
	doc := Document{ID: "d.md", Text: text}
	c, err := ChunkMarkdown(doc, &ChunkOptions{MaxBytes: maxBytes})
	if err != nil {
		t.Fatal(err)
	}
	checkChunked(t, doc, c, (&ChunkOptions{MaxBytes: maxBytes}).maxBytes())
	return c
}

func TestChunkMarkdownSections(t *testing.T) {
	tests := []struct {
		name, text string
		want       []string // ID | section | text
	}{
		{"empty", "", nil},
		{"white space", " \n\n", []string{"d.md||\" \\n\\n\""}},
		{"no headings", "a\n\nb\n", []string{`d.md||"a\n\nb\n"`}},
		{"preamble", "intro\n# A\na\n", []string{`d.md||"intro\n"`, `d.md#a|A|"# A\na\n"`}},
		{"levels", "# A\na\n## B\nb\n### C\nc\n## D\nd\n# E\ne", []string{
			`d.md#a|A|"# A\na\n"`, `d.md#b|A > B|"## B\nb\n"`, `d.md#c|A > B > C|"### C\nc\n"`,
			`d.md#d|A > D|"## D\nd\n"`, `d.md#e|E|"# E\ne"`}},
		{"skipped level", "# A\na\n#### C\nc\n## B\nb", []string{
			`d.md#a|A|"# A\na\n"`, `d.md#c|A > C|"#### C\nc\n"`, `d.md#b|A > B|"## B\nb"`}},
		{"heading without body goes with the next", "# A\n\n## B\n\nb\n## C\nc\n", []string{
			`d.md#b|A > B|"# A\n\n## B\n\nb\n"`, `d.md#c|A > C|"## C\nc\n"`}},
		{"last heading without body", "# A\na\n## B\n", []string{`d.md#a|A|"# A\na\n"`, `d.md#b|A > B|"## B\n"`}},
		{"headings only", "# A\n## B\n", []string{`d.md#b|A > B|"# A\n## B\n"`}},
		{"setext", "A\n===\na\n\nB\nb\n---\nc\n", []string{`d.md#a|A|"A\n===\na\n\n"`, `d.md#b-b|A > B b|"B\nb\n---\nc\n"`}},
		{"setext with a number sign", "#a\n---\nx", []string{`d.md#a|#a|"#a\n---\nx"`}},
		{"setext without body", "A\n===\n\n## B\nb", []string{`d.md#b|A > B|"A\n===\n\n## B\nb"`}},
		{"C#", "# C#\nx\n# C\ny\n# F# #\nz", []string{`d.md#c|C#|"# C#\nx\n"`, `d.md#c-1|C|"# C\ny\n"`, `d.md#f|F#|"# F# #\nz"`}},
		{"repeated", "# A\nx\n# A\ny\n# A 1\nz\n# A\n.", []string{
			`d.md#a|A|"# A\nx\n"`, `d.md#a-1|A|"# A\ny\n"`, `d.md#a-1-1|A 1|"# A 1\nz\n"`, `d.md#a-2|A|"# A\n."`}},
		{"fence", "# A\n```sh\n# not\n```\n~~~\n# not\n~~~\n    # not\n", []string{
			`d.md#a|A|"# A\n` + "```" + `sh\n# not\n` + "```" + `\n~~~\n# not\n~~~\n    # not\n"`}},
		{"unclosed fence", "# A\n```\n# not\n\n# not", []string{`d.md#a|A|"# A\n` + "```" + `\n# not\n\n# not"`}},
		{"comment", "# A\n<!--\n# not\n-->\n", []string{`d.md#a|A|"# A\n<!--\n# not\n-->\n"`}},
		{"quote and list", "# A\n> # Q\n\n- # L\n", []string{`d.md#a|A|"# A\n> # Q\n\n- # L\n"`}},
		{"front matter", "---\ntitle: T\n# a comment\n---\n\n## A\na\n", []string{`d.md#a|A|"---\ntitle: T\n# a comment\n---\n\n## A\na\n"`}},
		{"front matter only", "---\ntitle: T\n---\n", []string{`d.md||"---\ntitle: T\n---\n"`}},
		{"rule is no front matter", "---\n\n# A\na\n\n---\nb\n", []string{`d.md#a|A|"---\n\n# A\na\n\n---\nb\n"`}},
		{"byte order mark", "\uFEFF# A\na", []string{`d.md#a|A|"\ufeff# A\na"`}},
		{"CRLF", "# A\r\na\r\n\r\nB\r\n-\r\nb\r\n", []string{`d.md#a|A|"# A\r\na\r\n\r\n"`, `d.md#b|A > B|"B\r\n-\r\nb\r\n"`}},
		{"markup", "# *A* `b*c` [d](e) &amp; \\# <br> ![f](g)\nx", []string{`d.md#a-bc-d----|A b*c d & # f|"# *A* ` + "`b*c`" + ` [d](e) &amp; \\# <br> ![f](g)\nx"`}},
		{"address in a heading", "# See <https://e.org>\nx", []string{`d.md#see-httpseorg|See https://e.org|"# See <https://e.org>\nx"`}},
		{"separator in a heading", "# A > B\nx\n## C\ny", []string{`d.md#a--b|A › B|"# A > B\nx\n"`, `d.md#c|A › B > C|"## C\ny"`}},
		{"empty heading", "#\n\n# A\na\n##\nb", []string{`d.md#a|A|"#\n\n# A\na\n##\nb"`}},
		{"braces are text", "# A\n{}\n# B\nb", []string{`d.md#a|A|"# A\n{}\n"`, `d.md#b|B|"# B\nb"`}},
		{"no letters", "# !!!\na\n# ???\nb", []string{`d.md#|!!!|"# !!!\na\n"`, `d.md#-1|???|"# ???\nb"`}},
		{"unicode", "# Über 混合 Ñ\nx", []string{`d.md#über-混合-ñ|Über 混合 Ñ|"# Über 混合 Ñ\nx"`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, c := range mustMarkdown(t, tt.text, 0).Chunks {
				got = append(got, fmt.Sprintf("%s|%s|%q", c.ID, c.Section, c.Text))
			}
			if !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
			}
		})
	}
}

func TestChunkMarkdownTitle(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"heading", "---\ntitle: T\n---\n## B\nb\n# A *x*\na\n# C\n", "A x"},
		{"front matter", "---\ntitle: \"T: U\"\n---\n## B\nb", "T: U"},
		{"TOML", "+++\ntitle = 'T'\n+++\n## B\nb", "T"},
		{"front matter after a byte order mark", "\uFEFF---\r\ntitle: T\r\n---\r\nb", "T"},
		{"file", "text", "d"},
		{"unclosed front matter", "---\ntitle: T\n", "d"},
		{"indented title is another key's", "---\nnav:\n  title: T\n---\nb", "d"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := mustMarkdown(t, tt.text, 0).Chunks[0].Title; got != tt.want {
				t.Errorf("title %q, want %q", got, tt.want)
			}
		})
	}
}

func TestChunkMarkdownSplitsLongSections(t *testing.T) {
	tests := []struct {
		name, text string
		max        int
		want       []string
	}{
		{"paragraphs", "# A\naaaa aaaa\n\nbbbb bbbb\n\ncccc\n", 28, []string{"# A\naaaa aaaa\n\nbbbb bbbb\n\n", "cccc\n"}},
		{"heading stays with its text", "# Heading\n\naaaa aaaa aaaa aaaa", 24, []string{"# Heading\n\naaaa aaaa ", "aaaa aaaa"}},
		{"lines", "aaaa aaaa\nbbbb bbbb\ncccc cccc\n", 24, []string{"aaaa aaaa\nbbbb bbbb\n", "cccc cccc\n"}},
		{"indentation stays with its line", "aaaa\n\n    bbbb\n", 10, []string{"aaaa\n\n", "    bbbb\n"}},
		{"sentences", "Aa aa aa. Bb (bb.) Cc cc cc cc.", 24, []string{"Aa aa aa. Bb (bb.) ", "Cc cc cc cc."}},
		{"ideographic sentences", "混合检索。图匹配。", 24, []string{"混合检索。", "图匹配。"}},
		{"words", "aaaa bbbb cccc", 11, []string{"aaaa bbbb ", "cccc"}},
		{"characters", "äöüäöü", 5, []string{"äö", "üä", "öü"}},
		{"small first paragraph is not left alone", "a\n\nbbbbb bbbbb bbbbb bbbbb", 16, []string{"a\n\nbbbbb bbbbb ", "bbbbb bbbbb"}},
		{"no chunk of white space", "aaaa bbbb\n", 9, []string{"aaaa ", "bbbb\n"}},
		{"no cut inside CRLF", "a\r\n\r\n\r\n\r\n\r\nb", 4, []string{"a\r\n", "\r\n\r\n", "\r\n\r\n", "b"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, c := range mustMarkdown(t, tt.text, tt.max).Chunks {
				got = append(got, c.Text)
			}
			if !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
	c := mustMarkdown(t, "# A\naaaa\n\nbbbbbb\n\ncccccc", 10)
	for i, want := range []string{"d.md#a", "d.md#a~2", "d.md#a~3"} {
		if c.Chunks[i].ID != want || c.Chunks[i].Section != "A" {
			t.Errorf("part %d is %q in %q, want %q in A", i, c.Chunks[i].ID, c.Chunks[i].Section, want)
		}
	}
}

func TestChunkMultibyte(t *testing.T) {
	text := strings.Repeat("äöü🚀混合检索", 50)
	for maxBytes := 4; maxBytes < 40; maxBytes++ {
		mustMarkdown(t, text, maxBytes)
		doc := Document{ID: "d.txt", Text: text}
		c, err := ChunkText(doc, &ChunkOptions{MaxBytes: maxBytes})
		if err != nil {
			t.Fatal(err)
		}
		checkChunked(t, doc, c, maxBytes)
	}
}

func TestChunkText(t *testing.T) {
	doc := Document{ID: "dir/notes~#1.txt", Text: "# no heading\n\nsecond [x](y.md)\n\nthird paragraph here\n"}
	c, err := ChunkText(doc, &ChunkOptions{MaxBytes: 34})
	if err != nil {
		t.Fatal(err)
	}
	checkChunked(t, doc, c, 34)
	var got []string
	for _, ch := range c.Chunks {
		got = append(got, fmt.Sprintf("%s|%s|%s|%q", ch.ID, ch.Title, ch.Section, ch.Text))
	}
	want := []string{
		`dir/notes%7E%231.txt|notes~#1||"# no heading\n\nsecond [x](y.md)\n\n"`,
		`dir/notes%7E%231.txt~2|notes~#1||"third paragraph here\n"`,
	}
	if !reflect.DeepEqual(got, want) || c.Links != nil || c.Anchors != nil {
		t.Errorf("got %q, links %v, anchors %v, want %q and none", got, c.Links, c.Anchors, want)
	}
	if c, err := ChunkText(Document{ID: "dir/.text", Text: "x"}, nil); err != nil || c.Chunks[0].Title != ".text" {
		t.Errorf("title %q, error %v; want .text", c.Chunks[0].Title, err)
	}
	if c, err := ChunkText(Document{ID: "e.txt"}, nil); err != nil || len(c.Chunks) != 0 {
		t.Errorf("empty text: %v, %v; want no chunks", c.Chunks, err)
	}
}

func TestChunkErrors(t *testing.T) {
	tests := []struct {
		name string
		doc  Document
		opts *ChunkOptions
		want string
	}{
		{"no ID", Document{Text: "a"}, nil, "empty ID"},
		{"ID not UTF-8", Document{ID: "\xff"}, nil, `document ID "\xff" is not UTF-8`},
		{"not UTF-8", Document{ID: "d", Text: "ab\uFFFD\xffc"}, nil, `document "d" is not UTF-8 at byte 5`},
		{"cut character", Document{ID: "d", Text: "ab\xc3"}, nil, "at byte 2"},
		{"small limit", Document{ID: "d", Text: "a"}, &ChunkOptions{MaxBytes: 3}, "MaxBytes is 3, want 0 for the default or at least 4"},
		{"negative limit", Document{ID: "d", Text: "a"}, &ChunkOptions{MaxBytes: -1}, "MaxBytes is -1"},
	}
	for _, tt := range tests {
		for name, chunk := range map[string]func(Document, *ChunkOptions) (Chunked, error){"markdown": ChunkMarkdown, "text": ChunkText} {
			if _, err := chunk(tt.doc, tt.opts); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s, %s: error %v, want one with %q", tt.name, name, err, tt.want)
			}
		}
	}
}

func TestMarkdownLinksAndAnchors(t *testing.T) {
	text := "# A\n[one](x.md) and [two][r], ![img](i.png), <https://e.org>, `[no](n.md)`\n\n" +
		"```\n[no](n.md)\n```\n<!-- [no](n.md) -->\n<a id=\"here\"></a>\n\n" +
		"## B\n[![alt](i.png)](y\\_z.md \"title\") text <span class='c' name=there>\n> ## Q\n> [](q.md#f)\n\n[r]: <two words.md>\n"
	c := mustMarkdown(t, text, 0)
	var links []string
	for _, l := range c.Links {
		if text[l.Offset] != '[' {
			t.Errorf("link to %q is at offset %d with %q", l.Target, l.Offset, text[l.Offset:])
		}
		links = append(links, l.ChunkID+" "+l.Target)
	}
	if want := []string{"d.md#a x.md", "d.md#a two words.md", "d.md#b y_z.md", "d.md#b q.md#f"}; !reflect.DeepEqual(links, want) {
		t.Errorf("links %q, want %q", links, want)
	}
	want := []Anchor{{"a", "d.md#a"}, {"here", "d.md#a"}, {"b", "d.md#b"}, {"there", "d.md#b"}, {"q", "d.md#b"}}
	if !reflect.DeepEqual(c.Anchors, want) {
		t.Errorf("anchors %v, want %v", c.Anchors, want)
	}
}

func TestLinkInLongParagraphIsInItsChunk(t *testing.T) {
	text := strings.Repeat("word ", 30) + "[x](x.md) " + strings.Repeat("word ", 30)
	c := mustMarkdown(t, text, 64)
	if len(c.Links) != 1 {
		t.Fatalf("links %v, want one", c.Links)
	}
	for _, ch := range c.Chunks {
		if has := strings.Contains(ch.Text, "[x]"); has != (ch.ID == c.Links[0].ChunkID) {
			t.Errorf("chunk %s with %q, link in %s", ch.ID, ch.Text, c.Links[0].ChunkID)
		}
	}
}

func TestLongHeadingsStayShortInNames(t *testing.T) {
	text := "# " + strings.Repeat("ä", 5000) + "\n" + strings.Repeat("x ", 5000) + "\n# " + strings.Repeat("ä", 6000) + "\n"
	for _, c := range mustMarkdown(t, text, 100).Chunks {
		if len(c.ID) > 220 || len(c.Section) > maxHeading || len(c.Title) > maxHeading {
			t.Fatalf("ID of %d bytes, section of %d, title of %d", len(c.ID), len(c.Section), len(c.Title))
		}
	}
}

// TestSlowInputs has the patterns that take a Markdown parser time in the
// square of the length, which the test time limit would not bear, and some
// that could do so to the code here.
func TestSlowInputs(t *testing.T) {
	const n = 1 << 20
	for name, unit := range map[string]string{
		"quotes": ">", "links": "[a](", "emphasis": "*a_ ", "brackets": "[", "backticks": "` ", "spaces": " ", "lines": "\n", "one word": "x",
		"emphasis over lines": "*a_ \n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mustMarkdown(t, strings.Repeat(unit, n/len(unit))+"\n\n# A\n", 0)
		})
	}
}

func TestMaskKeepsPages(t *testing.T) {
	long := strings.Repeat("word *word* [a](b.md)\n", 3000)
	c := mustMarkdown(t, "# A\n```\n"+long+"```\n## B\n> > > [q](q.md)\n\n"+long+"\n* [z](z.md)\n", 0)
	if n := len(c.Links); n < 1000 || n > 2990 {
		t.Errorf("%d links in a paragraph of %d bytes, want those of the first %d", n, len(long), maxParagraph)
	}
	if c.Links[0].Target != "q.md" || c.Links[len(c.Links)-1].Target != "z.md" {
		t.Errorf("links from %q to %q, want q.md to z.md", c.Links[0].Target, c.Links[len(c.Links)-1].Target)
	}
	if last := c.Chunks[len(c.Chunks)-1]; last.Section != "A > B" {
		t.Errorf("last section is %q, want A > B", last.Section)
	}
}

// randomMarkdown strings pieces of Markdown together.
func randomMarkdown(r *rand.Rand) string {
	pieces := []string{
		"# A\n", "## B\n", "### A\n", "#\n", "T\n===\n", "T\n---\n", "\n", "\n\n", "\r\n", "    ", "\t", " ", "word ", "Satz. ", "混合检索。", "🚀",
		"```\n", "~~~\n", "> ", "- ", "1. ", "[a](b.md#c)", "[r]", "[r]: x.md\n", "<a name=n>", "<!--", "-->", "`", "*", "_", "\\", "&amp;", "\uFEFF", "---\n", "title: x\n", "\x00", "# C#\n", "~2", "#a-1",
	}
	var b strings.Builder
	for range r.IntN(60) {
		b.WriteString(pieces[r.IntN(len(pieces))])
	}
	return b.String()
}

func TestChunkRandomDocuments(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		doc := Document{ID: "d.md", Text: randomMarkdown(r)}
		opts := &ChunkOptions{MaxBytes: 4 + r.IntN(60)}
		for _, chunk := range []func(Document, *ChunkOptions) (Chunked, error){ChunkMarkdown, ChunkText} {
			c, err := chunk(doc, opts)
			if err != nil {
				t.Fatal(err)
			}
			checkChunked(t, doc, c, opts.MaxBytes)
		}
	}
}

func TestSlug(t *testing.T) {
	tests := []struct{ heading, want string }{
		{"Hello World", "hello-world"}, {"a_b-c", "a_b-c"}, {"What's new?", "whats-new"}, {"A  B", "a--b"},
		{"v1.2 (beta)", "v12-beta"}, {"C++", "c"}, {"É à", "é-à"}, {"日本語 テスト", "日本語-テスト"}, {"🚀 go", "-go"}, {"", ""},
	}
	for _, tt := range tests {
		if got := slug(tt.heading); got != tt.want {
			t.Errorf("slug(%q) = %q, want %q", tt.heading, got, tt.want)
		}
	}
	s := newSlugger()
	var got []string
	for _, h := range []string{"a", "a-1", "a", "a", "A"} {
		got = append(got, s.slug(h))
	}
	if want := []string{"a", "a-1", "a-2", "a-3", "a-4"}; !reflect.DeepEqual(got, want) {
		t.Errorf("slugs %q, want %q", got, want)
	}
}

func fuzzChunker(f *testing.F, chunk func(Document, *ChunkOptions) (Chunked, error)) {
	for _, s := range []string{"", "# A\n\n## B\nb\n", "---\ntitle: x\n---\n# C#\n", "\uFEFFa\r\n---\r\n", "```\n# no", "> # q\n[l](x.md)", "\xff"} {
		f.Add(s, uint16(20))
	}
	f.Fuzz(func(t *testing.T, text string, limit uint16) {
		doc := Document{ID: "d.md", Text: text}
		opts := &ChunkOptions{MaxBytes: 4 + int(limit)}
		c, err := chunk(doc, opts)
		if err != nil {
			if utf8.ValidString(text) {
				t.Fatal(err)
			}
			return
		}
		checkChunked(t, doc, c, opts.MaxBytes)
	})
}

func FuzzChunkMarkdown(f *testing.F) { fuzzChunker(f, ChunkMarkdown) }

func FuzzChunkText(f *testing.F) { fuzzChunker(f, ChunkText) }
