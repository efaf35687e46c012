package graphbuild

import (
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// StrategyHTML is the tag of the chunks that [ChunkHTML] makes.
const StrategyHTML = "html_v1"

// ChunkHTML cuts an HTML page into chunks along its headings h1 to h6
// (strategy [StrategyHTML]).
//
// The text of a chunk is what a reader sees: without tags and comments, with
// character references decoded, white space of a line made one space except in
// pre, and blocks on lines of their own. Scripts, styles, templates, form
// fields and the title are left out. So the text of a chunk is not the source of
// it, but Start and End are bytes of the source all the same: the ranges of the
// chunks of a page follow one another from its first byte to its last, none cuts
// a character, and each has all the source of its text. The range of a section
// begins with the tag of its heading, another one with a word.
//
// Sections, parts, chunk IDs, Section and opts.MaxBytes, which limits the
// visible text, are as for [ChunkMarkdown], but the ID of a section ends in the
// id attribute of its heading if that has one. Headings are taken at any depth;
// one without words is none. Title is the title element, else the first h1,
// else the file name without extension.
//
// Links are the href of a elements, those in nav left out: a menu that is on
// every page would join every page with every other. Anchors are the headings
// without an id, under the name that [ChunkMarkdown] would give them, all id
// attributes, and the name attributes of a elements. A base element is not
// looked at. A page without any visible text has no chunks. Broken HTML is read
// tag by tag and never an error; text that is not UTF-8 is one that names the
// byte offset.
func ChunkHTML(doc Document, opts *ChunkOptions) (Chunked, error) {
	if err := opts.Validate(); err != nil {
		return Chunked{}, err
	}
	if err := doc.check(); err != nil {
		return Chunked{}, err
	}
	out := Chunked{Document: doc.ID}
	h := readHTML(doc.Text)
	if strings.TrimSpace(string(h.text)) == "" {
		return out, nil
	}
	p := page{text: string(h.text), title: h.title, headings: h.headings, anchors: h.anchors}
	if p.title == "" {
		p.title = baseTitle(doc.ID)
		for _, heading := range p.headings {
			if heading.level == 1 {
				p.title = heading.text
				break
			}
		}
	}
	visible := Document{ID: doc.ID, Text: p.text}
	out.Chunks = cutSections(visible, p.title, p.sections(visible), opts.maxBytes())
	seen := map[string]bool{}
	for _, a := range p.anchors {
		if !seen[a.name] {
			seen[a.name] = true
			out.Anchors = append(out.Anchors, Anchor{Name: a.name, ChunkID: chunkAt(out.Chunks, a.offset)})
		}
	}
	for _, l := range h.links {
		out.Links = append(out.Links, Link{
			Document: doc.ID, ChunkID: chunkAt(out.Chunks, l.offset), Target: l.name, Offset: l.source,
		})
	}
	for i := range out.Chunks { // from places in the visible text to places in the source
		c := &out.Chunks[i]
		c.Text = strings.TrimRightFunc(c.Text, isHTMLSpace)
		if c.Start > 0 {
			c.Start = h.source(c.Start)
			out.Chunks[i-1].End = c.Start
		}
		c.End = len(doc.Text)
	}
	return out, nil
}

// gap is what stands between two words of visible text. A greater one hides a
// smaller one.
type gap int

const (
	gapNone gap = iota
	gapSpace
	gapLine
	gapBlock
)

// blockGaps are the gaps around elements that do not stand in a line.
var blockGaps = map[atom.Atom]gap{
	atom.Br: gapLine, atom.Li: gapLine, atom.Tr: gapLine, atom.Dt: gapLine, atom.Dd: gapLine, atom.Option: gapLine, atom.Caption: gapLine,
	atom.Summary: gapLine, atom.Legend: gapLine, atom.Figcaption: gapLine,
	atom.Td: gapSpace, atom.Th: gapSpace, atom.Button: gapSpace,
	atom.Address: gapBlock, atom.Article: gapBlock, atom.Aside: gapBlock, atom.Blockquote: gapBlock, atom.Body: gapBlock,
	atom.Details: gapBlock, atom.Dialog: gapBlock, atom.Div: gapBlock, atom.Dl: gapBlock, atom.Fieldset: gapBlock, atom.Figure: gapBlock,
	atom.Footer: gapBlock, atom.Form: gapBlock, atom.Header: gapBlock, atom.Hgroup: gapBlock, atom.Hr: gapBlock, atom.Main: gapBlock,
	atom.Nav: gapBlock, atom.Ol: gapBlock, atom.P: gapBlock, atom.Pre: gapBlock, atom.Section: gapBlock, atom.Table: gapBlock,
	atom.Tbody: gapBlock, atom.Tfoot: gapBlock, atom.Thead: gapBlock, atom.Ul: gapBlock,
	atom.H1: gapBlock, atom.H2: gapBlock, atom.H3: gapBlock, atom.H4: gapBlock, atom.H5: gapBlock, atom.H6: gapBlock,
}

// headingLevel returns the level of a heading element, 0 for any other.
func headingLevel(a atom.Atom) int {
	switch a {
	case atom.H1:
		return 1
	case atom.H2:
		return 2
	case atom.H3:
		return 3
	case atom.H4:
		return 4
	case atom.H5:
		return 5
	case atom.H6:
		return 6
	}
	return 0
}

// htmlPiece is a stretch of visible text and where it comes from.
type htmlPiece struct {
	text, source int // first byte
	length       int // bytes of the source
}

// htmlLink is a link at a place of the visible text and of the source.
type htmlLink struct {
	named
	source int
}

// htmlReader makes the visible text of a page.
type htmlReader struct {
	doc      string
	text     []byte
	pieces   []htmlPiece // ascending by text and by source
	title    string
	headings []heading
	anchors  []named
	links    []htmlLink

	pending     gap
	namesBefore int // anchors and links from here on are waiting for the next word
	linksBefore int
	slugs       *slugger

	// depths of elements that are open
	template, nav, pre int
	raw                atom.Atom // element whose text is no text of the page, 0 for none

	open      int // level of the heading that is open, 0 for none
	openID    string
	openStart int // place of its tag in the source
	openText  int // where its text begins, -1 before its first word
}

func readHTML(doc string) *htmlReader {
	h := &htmlReader{doc: doc, slugs: newSlugger(), openText: -1}
	z := html.NewTokenizer(strings.NewReader(doc))
	at := 0
	for {
		kind := z.Next()
		if kind == html.ErrorToken { // the end: a string cannot fail
			break
		}
		raw := len(z.Raw())
		switch kind {
		case html.TextToken:
			h.addText(doc[at:at+raw], at)
		case html.StartTagToken, html.SelfClosingTagToken:
			h.startTag(z, at)
		case html.EndTagToken:
			name, _ := z.TagName()
			h.endTag(atom.Lookup(name))
		}
		at += raw
	}
	h.closeHeading()
	h.settle(len(h.text))
	return h
}

func (h *htmlReader) startTag(z *html.Tokenizer, at int) {
	name, more := z.TagName()
	element := atom.Lookup(name)
	var id, anchor, href string
	for more {
		var key, value []byte
		key, value, more = z.TagAttr()
		switch string(key) {
		case "id":
			id = string(value)
		case "name":
			anchor = string(value)
		case "href":
			href = strings.TrimSpace(string(value))
		}
	}
	switch element {
	case atom.Script, atom.Style, atom.Title, atom.Textarea, atom.Iframe, atom.Noembed, atom.Noframes, atom.Xmp:
		h.raw = element
	case atom.Template:
		h.template++
	case atom.Nav:
		h.nav++
	case atom.Pre:
		h.pre++
	}
	if h.template > 0 {
		return
	}
	level := headingLevel(element)
	g := blockGaps[element]
	if level > 0 || g == gapBlock && h.openText >= 0 {
		h.closeHeading()
	}
	h.pending = max(h.pending, g)
	if level > 0 {
		h.open, h.openID, h.openStart, h.openText = level, id, at, -1
	} else if id != "" {
		h.anchors = append(h.anchors, named{name: id})
	}
	if element == atom.A {
		if anchor != "" && anchor != id {
			h.anchors = append(h.anchors, named{name: anchor})
		}
		if href != "" && h.nav == 0 {
			h.links = append(h.links, htmlLink{named{name: href}, at})
		}
	}
}

func (h *htmlReader) endTag(element atom.Atom) {
	switch element {
	case h.raw:
		h.raw = 0
	case atom.Template:
		h.template = max(h.template-1, 0)
	case atom.Nav:
		h.nav = max(h.nav-1, 0)
	case atom.Pre:
		h.pre = max(h.pre-1, 0)
	}
	if h.template > 0 {
		return
	}
	if headingLevel(element) > 0 {
		h.closeHeading()
	}
	h.pending = max(h.pending, blockGaps[element])
}

// closeHeading ends the heading that is open. With words it begins a section.
func (h *htmlReader) closeHeading() {
	if h.open == 0 {
		return
	}
	level := h.open
	h.open = 0
	words := ""
	if h.openText >= 0 {
		words = shorten(strings.Join(strings.Fields(string(h.text[h.openText:])), " "))
	}
	if words == "" {
		if h.openID != "" {
			h.anchors = append(h.anchors, named{name: h.openID})
		}
		return
	}
	name, slug := h.openID, idEscaper.Replace(h.openID)
	if name == "" || len(name) > maxHeading || h.slugs.taken[slug] || strings.ContainsFunc(name, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }) {
		slug = h.slugs.slug(words)
		name = slug
	}
	h.slugs.taken[slug] = true
	h.headings = append(h.headings, heading{level: level, text: words, slug: slug, start: h.openText, end: len(h.text)})
	h.settle(h.openText)
	h.anchors = append(h.anchors, named{name, h.openText})
	if h.openID != "" && h.openID != name {
		h.anchors = append(h.anchors, named{h.openID, h.openText})
	}
	h.namesBefore = len(h.anchors)
	h.openText = -1
	h.pending = max(h.pending, gapBlock)
}

// settle gives the anchors and links that are waiting their place.
func (h *htmlReader) settle(offset int) {
	for ; h.namesBefore < len(h.anchors); h.namesBefore++ {
		h.anchors[h.namesBefore].offset = offset
	}
	for ; h.linksBefore < len(h.links); h.linksBefore++ {
		h.links[h.linksBefore].offset = offset
	}
}

// addText adds a stretch of text between tags, at a place of the source.
func (h *htmlReader) addText(raw string, at int) {
	switch {
	case h.raw == atom.Title:
		if h.title == "" && h.template == 0 {
			h.title = shorten(strings.Join(strings.Fields(html.UnescapeString(raw)), " "))
		}
		return
	case h.raw != 0 || h.template > 0:
		return
	}
	raw = strings.TrimPrefix(raw, "\uFEFF")
	at += len(h.doc[at:]) - len(strings.TrimPrefix(h.doc[at:], "\uFEFF"))
	for len(raw) > 0 {
		n := strings.IndexFunc(raw, isHTMLSpace)
		if n < 0 {
			n = len(raw)
		}
		if n > 0 {
			h.addWord(raw[:n], at)
			raw, at = raw[n:], at+n
			continue
		}
		n = len(raw) - len(strings.TrimLeftFunc(raw, isHTMLSpace))
		if h.pre > 0 && h.pending < gapLine && len(h.text) > 0 {
			h.pieces = append(h.pieces, htmlPiece{len(h.text), at, n})
			h.text = append(h.text, raw[:n]...)
			h.pending = gapNone
		} else {
			h.pending = max(h.pending, gapSpace)
		}
		raw, at = raw[n:], at+n
	}
}

// isHTMLSpace reports whether r is white space that HTML collapses.
func isHTMLSpace(r rune) bool {
	return r == ' ' || r == '\t' || r == '\n' || r == '\f' || r == '\r'
}

// addWord adds a word as it stands in the source.
func (h *htmlReader) addWord(word string, at int) {
	if len(h.text) > 0 {
		h.text = append(h.text, []string{"", " ", "\n", "\n\n"}[h.pending]...)
	}
	h.pending = gapNone
	if h.open > 0 && h.openText < 0 {
		h.openText = len(h.text)
		h.pieces = append(h.pieces, htmlPiece{len(h.text), h.openStart, 0})
	}
	h.settle(len(h.text))
	for len(word) > 0 {
		n := referenceLength(word)
		if n == 0 { // up to the next reference
			if n = strings.IndexByte(word[1:], '&') + 1; n == 0 {
				n = len(word)
			}
			h.pieces = append(h.pieces, htmlPiece{len(h.text), at, n})
			h.text = append(h.text, word[:n]...)
		} else {
			h.pieces = append(h.pieces, htmlPiece{len(h.text), at, n})
			h.text = append(h.text, html.UnescapeString(word[:n])...)
		}
		word, at = word[n:], at+n
	}
}

// referenceLength returns the length of what looks like a character reference
// at the beginning of s, 0 for none.
func referenceLength(s string) int {
	if s[0] != '&' {
		return 0
	}
	n := 1
	for n < len(s) && (s[n] == '#' && n == 1 || s[n] < utf8.RuneSelf && (unicode.IsLetter(rune(s[n])) || unicode.IsDigit(rune(s[n])))) {
		n++
	}
	if n == 1 {
		return 0
	}
	if n < len(s) && s[n] == ';' {
		n++
	}
	return n
}

// source returns the place in the source of a place in the visible text. It is
// the first byte of the piece that begins there; inside a piece it is as far
// from its beginning, but not beyond its end.
func (h *htmlReader) source(text int) int {
	i := sort.Search(len(h.pieces), func(i int) bool { return h.pieces[i].text >= text })
	if i < len(h.pieces) && h.pieces[i].text == text {
		return h.pieces[i].source
	}
	p := h.pieces[i-1]
	return p.source + min(text-p.text, p.length)
}
