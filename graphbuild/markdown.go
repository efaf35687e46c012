package graphbuild

import (
	"regexp"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// maxHeading is how many bytes of a heading its path and anchor keep.
const maxHeading = 200

// ChunkMarkdown cuts a Markdown text into chunks along its headings (strategy
// [StrategyMarkdown]).
//
// A section is a heading, ATX or setext, with the text up to the next one.
// Text before the first heading is a section without heading path. A section
// without text of its own (a heading followed by another one; front matter,
// blank lines, rules or a byte order mark before the first heading) is joined
// with the next section and takes its name. Only headings at the top level make
// sections: one inside a quote or a list is an anchor and nothing more, and so
// is a heading without words. Code, HTML and front matter have no headings.
//
// A section longer than opts.MaxBytes is cut where [ChunkText] would cut it,
// though not between a heading and its text. Every byte of the document is in
// exactly one chunk, and no chunk cuts a character. An empty document has no
// chunks.
//
// Chunk IDs are those of the package comment. Section is the heading path with
// " > " between levels; a " > " inside a heading becomes " › ", and a heading
// is cut to 200 bytes. Title is the first heading of level 1, else the title
// in the front matter, else the file name without extension.
//
// Links are inline and reference links; images, HTML and bare addresses are
// none. Anchors are the headings and the id and name attributes of HTML. Text
// that is not UTF-8 is an error that names the byte offset.
func ChunkMarkdown(doc Document, opts *ChunkOptions) (Chunked, error) {
	if err := opts.Validate(); err != nil {
		return Chunked{}, err
	}
	if err := doc.check(); err != nil {
		return Chunked{}, err
	}
	if doc.Text == "" {
		return Chunked{Document: doc.ID}, nil
	}
	page := parseMarkdown(doc.Text)
	title := page.title
	if title == "" {
		title = baseTitle(doc.ID)
	}
	out := Chunked{
		Document: doc.ID,
		Chunks:   cutSections(doc, title, page.sections(doc), opts.maxBytes()),
	}
	seen := map[string]bool{}
	for _, a := range page.anchors {
		if !seen[a.name] {
			seen[a.name] = true
			out.Anchors = append(out.Anchors, Anchor{Name: a.name, ChunkID: chunkAt(out.Chunks, a.offset)})
		}
	}
	for _, l := range page.links {
		out.Links = append(out.Links, Link{
			Document: doc.ID, ChunkID: chunkAt(out.Chunks, l.offset), Target: l.name, Offset: l.offset,
		})
	}
	return out, nil
}

// page is what the parser found in a Markdown text. Offsets are bytes of it.
type page struct {
	text     string
	title    string // "" when the text gives none
	start    int    // first byte after byte order mark and front matter
	headings []heading
	anchors  []named
	links    []named
}

type heading struct {
	level      int
	text, slug string
	start, end int // its lines, the underline included
}

type named struct {
	name   string
	offset int
}

// htmlAnchor finds the id and name attributes of an HTML tag.
var htmlAnchor = regexp.MustCompile(`(?i)<[a-z][^<>]*?\s(?:id|name)\s*=\s*["']?([^"'\s>]+)`)

func parseMarkdown(source string) page {
	p := page{text: source}
	if strings.HasPrefix(source, "\uFEFF") {
		p.start = len("\uFEFF")
	}
	length, frontTitle := frontMatter(source[p.start:])
	p.start += length

	src := mask(source[p.start:])
	root := goldmark.DefaultParser().Parse(text.NewReader(src))
	slugs := newSlugger()
	last := p.start // offset of the last node that knew its own
	// The walker below never fails.
	_ = ast.Walk(root, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		if pos := n.Pos(); pos >= 0 {
			last = p.start + min(pos, len(src))
		}
		switch n := n.(type) {
		case *ast.Heading:
			p.addHeading(n, src, slugs)
		case *ast.Link:
			p.links = append(p.links, named{unescape(n.Destination), last})
		case *ast.RawHTML:
			p.addHTMLAnchors(src, n.Segments)
		case *ast.HTMLBlock:
			p.addHTMLAnchors(src, n.Lines())
		}
		return ast.WalkContinue, nil
	})
	for _, h := range p.headings {
		if h.level == 1 {
			p.title = h.text
			break
		}
	}
	if p.title == "" {
		p.title = shorten(frontTitle)
	}
	return p
}

// addHeading records the anchor of a heading and, when it is at the top level
// and has words, the heading.
func (p *page) addHeading(n *ast.Heading, src []byte, slugs *slugger) {
	lines := n.Lines()
	if lines.Len() == 0 {
		return
	}
	name := slugs.slug(shorten(plainText(n, src, false)))
	first := lines.At(0).Start
	start := strings.LastIndexByte(p.text[p.start:p.start+first], '\n') + 1 + p.start
	p.anchors = append(p.anchors, named{name, start})
	words := shorten(strings.Join(strings.Fields(plainText(n, src, true)), " "))
	if n.Parent().Kind() != ast.KindDocument || words == "" {
		return
	}
	end := lineEnd(p.text, p.start+lines.At(lines.Len()-1).Start)
	if !isATX(p.text[start:]) {
		end = lineEnd(p.text, end)
	}
	p.headings = append(p.headings, heading{level: n.Level, text: words, slug: name, start: start, end: end})
}

func (p *page) addHTMLAnchors(src []byte, segments *text.Segments) {
	for i := range segments.Len() {
		s := segments.At(i)
		for _, m := range htmlAnchor.FindAllSubmatch(s.Value(src), -1) {
			p.anchors = append(p.anchors, named{string(m[1]), p.start + s.Start})
		}
	}
}

// isATX reports whether the heading at the start of line is marked by "#" and
// not by an underline.
func isATX(line string) bool {
	line = strings.TrimLeft(line, " ")
	rest := strings.TrimLeft(line, "#")
	level := len(line) - len(rest)
	return 1 <= level && level <= 6 && (rest == "" || isSpace(rest[0]))
}

// plainText returns the words of a heading without their markup, with or
// without what stands for its images.
func plainText(n ast.Node, src []byte, images bool) string {
	var b strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Image:
			if !images {
				return ast.WalkSkipChildren, nil
			}
		case *ast.AutoLink:
			b.Write(n.Label(src))
		case *ast.Text:
			if value := n.Segment.Value(src); n.Parent().Kind() == ast.KindCodeSpan {
				b.Write(value)
			} else {
				b.WriteString(unescape(value))
			}
			if n.SoftLineBreak() || n.HardLineBreak() {
				b.WriteByte(' ')
			}
		}
		return ast.WalkContinue, nil
	})
	return strings.ToValidUTF8(b.String(), "\uFFFD")
}

// unescape replaces the character references and backslash escapes in b.
func unescape(b []byte) string {
	return string(util.UnescapePunctuations(util.ResolveEntityNames(util.ResolveNumericReferences(b))))
}

// shorten cuts s to maxHeading bytes without cutting a character.
func shorten(s string) string {
	if len(s) <= maxHeading {
		return s
	}
	return strings.ToValidUTF8(s[:maxHeading], "")
}

// sections divides the text along its headings.
func (p *page) sections(doc Document) []section {
	docID := idEscaper.Replace(doc.ID)
	type level struct {
		level int
		text  string
	}
	var (
		out  []section
		path []level
		open = 0 // where the section in the making starts
	)
	cur := section{id: docID, body: p.start}
	add := func(end int) {
		for cur.body < end && isSpace(p.text[cur.body]) {
			cur.body++
		}
		if strings.Trim(p.text[cur.body:end], " \t\n\v\f\r-*_=+#") == "" && end < len(p.text) {
			return // no text: joined with the next one
		}
		cur.end = end
		cur.start, open = open, end
		out = append(out, cur)
	}
	for _, h := range p.headings {
		add(h.start)
		for len(path) > 0 && path[len(path)-1].level >= h.level {
			path = path[:len(path)-1]
		}
		path = append(path, level{h.level, strings.ReplaceAll(h.text, " > ", " › ")})
		names := make([]string, len(path))
		for i, l := range path {
			names[i] = l.text
		}
		cur = section{id: docID + "#" + h.slug, path: strings.Join(names, sectionSeparator), body: h.end}
	}
	add(len(p.text))
	return out
}
