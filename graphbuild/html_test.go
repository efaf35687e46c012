package graphbuild

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"unicode/utf8"
)

func mustHTML(t testing.TB, source string, maxBytes int) Chunked {
	t.Helper()
	doc := Document{ID: "p.html", Text: source}
	c, err := ChunkHTML(doc, &ChunkOptions{MaxBytes: maxBytes})
	if err != nil {
		t.Fatal(err)
	}
	checkHTML(t, doc, c, maxBytes)
	return c
}

// checkHTML checks what holds for the chunks of any page.
func checkHTML(t testing.TB, doc Document, c Chunked, maxBytes int) {
	t.Helper()
	at := 0
	ids := map[string]bool{}
	for i, k := range c.Chunks {
		switch {
		case k.Start != at || k.End < k.Start || i == len(c.Chunks)-1 && k.End != len(doc.Text):
			t.Errorf("chunk %d has the range %d to %d after %d of %d", i, k.Start, k.End, at, len(doc.Text))
		case k.End < len(doc.Text) && !utf8.RuneStart(doc.Text[k.End]):
			t.Errorf("chunk %d ends inside a character", i)
		case !utf8.ValidString(k.Text) || maxBytes > 0 && len(k.Text) > maxBytes || k.Text != strings.TrimRightFunc(k.Text, isHTMLSpace):
			t.Errorf("chunk %d has the text %q", i, k.Text)
		case ids[k.ID] || k.Ordinal != i || k.Document != doc.ID:
			t.Errorf("chunk %d is %+v", i, k)
		}
		ids[k.ID] = true
		at = k.End
	}
	names := map[string]bool{}
	for _, a := range c.Anchors {
		if names[a.Name] || !ids[a.ChunkID] {
			t.Errorf("anchor %+v is there twice or in no chunk", a)
		}
		names[a.Name] = true
	}
	for i, l := range c.Links {
		if !ids[l.ChunkID] || !strings.HasPrefix(strings.ToLower(doc.Text[l.Offset:]), "<a") || i > 0 && c.Links[i-1].Offset >= l.Offset {
			t.Errorf("link %+v is in no chunk or not at its tag", l)
		}
	}
}

const guidePage = `<!DOCTYPE html>
<html><head><title>Setting &amp; up</title><style>p { color: red }</style><script>if (a < b) "<h1>no</h1>"</script></head>
<body><nav><a href="/everywhere.html">Menu</a></nav>
<h1>Guide</h1><p>All   of
it. <b>Bo</b>ld &lt;tag&gt; caf&eacute;.</p>
<!-- <h2>not this</h2> -->
<h2 id="inst">Install<br>it</h2>
<ul><li>one <a href="other.html?x=1&amp;y=2#part">link</a><li>two</ul>
<template><h2>hidden</h2></template>
<h3>From source</h3><pre>a  b
  c</pre>
<h2></h2>
<h2 id="inst">Install it</h2><p><a name=old></a>again<td>cell
</body></html>`

func TestChunkHTML(t *testing.T) {
	c := mustHTML(t, guidePage, 0)
	var got []string
	for _, k := range c.Chunks {
		if k.Title != "Setting & up" {
			t.Errorf("title %q", k.Title)
		}
		got = append(got, k.ID+"|"+k.Section+"|"+k.Text)
	}
	want := []string{
		"p.html||Menu",
		"p.html#guide|Guide|Guide\n\nAll of it. Bold <tag> café.",
		"p.html#inst|Guide > Install it|Install\nit\n\none link\ntwo",
		"p.html#from-source|Guide > Install it > From source|From source\n\na  b\n  c",
		"p.html#install-it|Guide > Install it|Install it\n\nagain cell",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("chunks\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	starts := []string{"<!DOCTYPE", "<h1>Guide", "<h2 id=\"inst\">Install<br>", "<h3>From", "<h2 id=\"inst\">Install it"}
	for i, k := range c.Chunks {
		if !strings.HasPrefix(guidePage[k.Start:], starts[i]) {
			t.Errorf("chunk %d begins with %q, want %q", i, guidePage[k.Start:k.End], starts[i])
		}
	}
	if want := []Link{{"p.html", "p.html#inst", "other.html?x=1&y=2#part", strings.Index(guidePage, "<a href=\"other")}}; !reflect.DeepEqual(c.Links, want) {
		t.Errorf("links %+v, want %+v", c.Links, want)
	}
	wantAnchors := []Anchor{{"guide", "p.html#guide"}, {"inst", "p.html#inst"}, {"from-source", "p.html#from-source"}, {"install-it", "p.html#install-it"}, {"old", "p.html#install-it"}}
	if !reflect.DeepEqual(c.Anchors, wantAnchors) {
		t.Errorf("anchors %+v, want %+v", c.Anchors, wantAnchors)
	}
}

func TestChunkHTMLCases(t *testing.T) {
	for _, c := range []struct{ name, source, want string }{
		{"plain text", "just text", "p.html||p|just text"},
		{"nothing visible", "<!-- x --><script>y</script>\n<title>t</title>&nbsp;", ""},
		{"empty", "", ""},
		{"byte order mark", "\uFEFF<p>x", "p.html||p|x"},
		{"unclosed heading", "<h1>Top<p>text", "p.html#top|Top|Top|Top\n\ntext"},
		{"unclosed tag at the end", "<p>text <a href=", "p.html||p|text"},
		{"unclosed comment", "<p>text <!-- <h1>x</h1>", "p.html||p|text"},
		{"self-closing script", "a<script/>b</script>c", "p.html||p|ac"},
		{"entity words", "a&amp;b &unknown; &#25925;&#x4e61; & x&y", "p.html||p|a&b &unknown; 故乡 & x&y"},
		{"title from h1", "<h1>One</h1>x", "p.html#one|One|One|One\n\nx"},
		{"heading in a div", "<div><div><h4>Deep</h4></div>x</div>", "p.html#deep|Deep|p|Deep\n\nx"},
		{"heading without words", "<h1><img src=x></h1>text", "p.html||p|text"},
		{"id with separators", "<h1 id='a#b~2'>X</h1>y", "p.html#a%23b%7E2|X|X|X\n\ny"},
		{"id with a space", "<h1 id='a b'>X</h1>y", "p.html#x|X|X|X\n\ny"},
		{"closed more than opened", "</nav></template></pre></h1></p>x", "p.html||p|x"},
		{"separator in a heading", "<h1>a > b</h1>x", "p.html#a--b|a › b|a > b|a > b\n\nx"},
		{"upper case", "<H1>A</H1><SCRIPT>x</SCRIPT>y", "p.html#a|A|A|A\n\ny"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, k := range mustHTML(t, c.source, 0).Chunks {
				got = append(got, k.ID+"|"+k.Section+"|"+k.Title+"|"+k.Text)
			}
			if g := strings.Join(got, "\n"); g != c.want {
				t.Errorf("got  %q\nwant %q", g, c.want)
			}
		})
	}
	if _, err := ChunkHTML(Document{ID: "p.html", Text: "caf\xe9"}, nil); err == nil || !strings.Contains(err.Error(), "not UTF-8 at byte 3") {
		t.Errorf("error %v", err)
	}
	if _, err := ChunkHTML(Document{ID: "p.html"}, &ChunkOptions{MaxBytes: 1}); err == nil {
		t.Error("no error for a limit of 1 byte")
	}
}

// In text without markup the source of a range is the text of its chunk.
func TestChunkHTMLRanges(t *testing.T) {
	words := make([]string, 300)
	for i := range words {
		words[i] = fmt.Sprintf("wörd%d.", i)
	}
	source := strings.Join(words, " ")
	c := mustHTML(t, source, 100)
	if len(c.Chunks) < 20 {
		t.Fatalf("%d chunks", len(c.Chunks))
	}
	for _, k := range c.Chunks {
		if got := strings.TrimSpace(source[k.Start:k.End]); got != k.Text {
			t.Errorf("source %q, text %q", got, k.Text)
		}
	}
	// A word that is longer than a chunk is cut where its source is.
	source = "<p>" + strings.Repeat("äöü🚀混合", 40) + "</p>"
	joined := ""
	for _, k := range mustHTML(t, source, 7).Chunks {
		joined += k.Text
		if k.Start > 0 && !strings.HasPrefix(source[k.Start:], k.Text) {
			t.Errorf("source %q, text %q", source[k.Start:k.End], k.Text)
		}
	}
	if joined != strings.TrimSuffix(strings.TrimPrefix(source, "<p>"), "</p>") {
		t.Errorf("text was lost: %q", joined)
	}
}

func randomHTML(r *rand.Rand) string {
	parts := []string{
		"<p>", "</p>", "<h1>", "</h1>", "<h2 id=x>", "</h2>", "<h3>", "<div>", "</div>", "<pre>", "</pre>", "<br>", "<li>", "<nav>", "</nav>",
		"<a href='p.html#x'>", "</a>", "<a name=n>", "<script>", "</script>", "<template>", "</template>", "<title>", "</title>", "<!-- c -->", "<",
		"<textarea>", "word ", "two words\n", "故乡", " ", "\n\n", "&amp;", "&nbsp;", "&notit;", "&#x1F680;", "&", "é", strings.Repeat("long", 20), "<b>", "</b>",
	}
	var b strings.Builder
	for range r.IntN(40) {
		b.WriteString(parts[r.IntN(len(parts))])
	}
	return b.String()
}

func TestChunkHTMLRandom(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 3000 {
		mustHTML(t, randomHTML(r), 4+r.IntN(60))
		if t.Failed() {
			break
		}
	}
}

func FuzzChunkHTML(f *testing.F) {
	f.Add(guidePage, 40)
	f.Add("<h1>a<p>&notit;<pre>  \n x", 4)
	f.Add("0\v", 6)
	f.Fuzz(func(t *testing.T, source string, maxBytes int) {
		doc := Document{ID: "p.html", Text: source}
		maxBytes = 4 + int(uint(maxBytes)%200)
		c, err := ChunkHTML(doc, &ChunkOptions{MaxBytes: maxBytes})
		if (err == nil) != utf8.ValidString(source) {
			t.Fatalf("error %v", err)
		}
		if err == nil {
			checkHTML(t, doc, c, maxBytes)
		}
	})
}

func TestHTMLCorpus(t *testing.T) {
	fsys := fstest.MapFS{
		"index.html":       {Data: []byte(`<title>Home</title><h1>Home</h1>Go to the <a href="guide">guide</a>, <a href="guide/setup.html#install">setup</a> and <a href="gone.html">away</a>.`)},
		"guide/index.html": {Data: []byte(`<h1>Guide</h1>See <a href="setup">setup</a>.`)},
		"guide/setup.html": {Data: []byte(`<h1>Setup</h1>First.<h2 id="install">Installing</h2>Then.`)},
		"blank.HTM":        {Data: []byte(`<title>x</title>`)},
		"notes.md":         {Data: []byte("# Notes\n\n[guide](guide/index.html)\n")},
	}
	opts := &CorpusOptions{Tree: TreeOptions{HTMLExtensions: []string{".html", ".htm"}}}
	c, err := BuildCorpus(context.Background(), []Root{{FS: fsys}}, opts)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range c.Edges {
		got = append(got, fmt.Sprintf("%s %s %s", e.Type, e.From, e.To))
	}
	slices.Sort(got)
	want := []string{
		"link guide/index.html#guide guide/setup.html#setup",
		"link guide/index.html#guide index.html#home",
		"link guide/index.html#guide notes.md#notes",
		"link guide/setup.html#install index.html#home",
		"next guide/setup.html#install guide/setup.html#setup",
		"parent guide/setup.html#install guide/setup.html#setup",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("edges\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if len(c.Broken) != 1 || c.Broken[0].Target != "gone.html" {
		t.Errorf("broken links %+v", c.Broken)
	}
	if want := []Warning{{"blank.HTM", "no visible text"}}; !reflect.DeepEqual(c.Warnings, want) {
		t.Errorf("warnings %+v", c.Warnings)
	}
	// An empty list of extensions means none, nil the usual ones.
	usual, err := BuildCorpus(context.Background(), []Root{{FS: fsys}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(usual, c) {
		t.Errorf("documents %q by default, %q with the extensions", usual.Documents, c.Documents)
	}
	plain, err := BuildCorpus(context.Background(), []Root{{FS: fsys}}, &CorpusOptions{Tree: TreeOptions{HTMLExtensions: []string{}}})
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(plain.Documents, []string{"notes.md"}) {
		t.Errorf("documents %q", plain.Documents)
	}
}

// Pages that are one tag many times are read as well as others.
func TestChunkHTMLRepetitions(t *testing.T) {
	for _, unit := range []string{"<h1>", "<a href=x>", "<a id=x>", "&amp;", "<pre> ", "<template>", "</p>", "<div>x", "&", "<!--", "<script>", "<h2 id=x>y"} {
		mustHTML(t, strings.Repeat(unit, 1<<19/len(unit)), 0)
	}
}

func ExampleChunkHTML() {
	page := `<title>Kites</title><h1>Kites</h1><p>Kites need <a href="wind.html">wind</a>.</p><h2 id="lines">Lines</h2><p>Use two.</p>`
	c, err := ChunkHTML(Document{ID: "kites.html", Text: page}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, k := range c.Chunks {
		fmt.Printf("%s %d-%d %q\n", k.ID, k.Start, k.End, k.Text)
	}
	fmt.Println(c.Links[0].ChunkID, "links to", c.Links[0].Target)
	// Output:
	// kites.html#kites 0-81 "Kites\n\nKites need wind."
	// kites.html#lines 81-121 "Lines\n\nUse two."
	// kites.html#kites links to wind.html
}
