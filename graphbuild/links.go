package graphbuild

import (
	"cmp"
	"net/url"
	"path"
	"slices"
	"strings"
)

// ResolvedLink is a link whose both ends are chunks.
type ResolvedLink struct {
	From, To string // chunk IDs
}

// BrokenLink is a link to nothing, with the reason in words.
type BrokenLink struct {
	Link
	Reason string
}

// LinkOptions say what there is around the documents. The zero value, and nil,
// mean one root and nothing beside the documents.
type LinkOptions struct {
	// Roots are the first elements of the document IDs, one for each
	// directory tree. None means that all documents are in one tree and IDs
	// are paths inside it.
	Roots []string

	// Exists reports whether there is something at a path (of the form of
	// the document IDs) that is no document, such as a picture: a link to it
	// is then left out in silence. nil means that there is nothing.
	Exists func(path string) bool
}

// ResolveLinks finds the chunks that the links of docs lead to.
//
// A target is a path relative to the directory of the document, or to its root
// when it starts with "/"; it is percent-decoded and cleaned, and "?" and what
// follows is ignored. When no document has that path, those with ".md",
// ".markdown", "/index.md", "/README.md", ".html" and "/index.html" after it are
// tried in this order, so a link may name a directory or leave the extension out. What follows "#"
// is looked up among the anchors of the document, exactly or else in lower
// case; without it, and for "#top", the link leads to the first chunk.
//
// Left out in silence are addresses with a scheme ("https:", "mailto:"), paths
// that leave the roots, and what opts.Exists knows. A link to an unknown path
// is broken. So is a link to an unknown anchor, but if that is in another
// document the link leads to the first chunk of it all the same.
//
// Resolved links are sorted, each pair of chunks once, none from a chunk to
// itself. Broken links are in the order of the documents, each target of a
// document once.
func ResolveLinks(docs []Chunked, opts *LinkOptions) (resolved []ResolvedLink, broken []BrokenLink) {
	if opts == nil {
		opts = &LinkOptions{}
	}
	r := resolver{opts: opts, docs: make(map[string]target, len(docs))}
	for _, d := range docs {
		if len(d.Chunks) == 0 {
			continue
		}
		t := target{first: d.Chunks[0].ID, anchors: make(map[string]string, len(d.Anchors))}
		for _, a := range d.Anchors {
			t.anchors[a.Name] = a.ChunkID
		}
		r.docs[d.Document] = t
	}
	type key struct{ document, target string }
	reported := map[key]bool{}
	for _, d := range docs {
		for _, l := range d.Links {
			to, reason := r.resolve(l)
			if to != "" && to != l.ChunkID {
				resolved = append(resolved, ResolvedLink{From: l.ChunkID, To: to})
			}
			if k := (key{l.Document, l.Target}); reason != "" && !reported[k] {
				reported[k] = true
				broken = append(broken, BrokenLink{Link: l, Reason: reason})
			}
		}
	}
	slices.SortFunc(resolved, func(a, b ResolvedLink) int {
		return cmp.Or(strings.Compare(a.From, b.From), strings.Compare(a.To, b.To))
	})
	return slices.Compact(resolved), broken
}

// target is a document that links may lead to.
type target struct {
	first   string            // its first chunk
	anchors map[string]string // chunk by anchor
}

type resolver struct {
	opts *LinkOptions
	docs map[string]target
}

// resolve returns the chunk l leads to, "" for none, and why l is broken, ""
// when it is not.
func (r *resolver) resolve(l Link) (chunkID, reason string) {
	dest, fragment, _ := strings.Cut(l.Target, "#")
	dest, _, _ = strings.Cut(dest, "?")
	if hasScheme(dest) || strings.HasPrefix(dest, "//") {
		return "", ""
	}
	p := l.Document
	if dest != "" {
		root := r.root(l.Document)
		dest = decodePercent(dest)
		if strings.HasPrefix(dest, "/") {
			p = path.Join(root, strings.TrimLeft(dest, "/"))
		} else {
			p = path.Join(path.Dir(l.Document), dest)
		}
		if p == ".." || strings.HasPrefix(p, "../") || !r.inside(p) {
			return "", ""
		}
	}
	id, ok := r.document(p)
	if !ok {
		if r.opts.Exists != nil && r.opts.Exists(p) {
			return "", ""
		}
		return "", "there is no document " + p
	}
	doc := r.docs[id]
	fragment = decodePercent(fragment)
	if fragment == "" {
		return doc.first, ""
	}
	for _, name := range []string{fragment, strings.ToLower(fragment)} {
		if chunk, ok := doc.anchors[name]; ok {
			return chunk, ""
		}
	}
	if strings.EqualFold(fragment, "top") {
		return doc.first, ""
	}
	reason = id + " has no heading or anchor #" + fragment
	if id == l.Document {
		return "", reason
	}
	return doc.first, reason
}

// document returns the ID of the document that the path p stands for.
func (r *resolver) document(p string) (string, bool) {
	for _, suffix := range []string{"", ".md", ".markdown", "/index.md", "/README.md", ".html", "/index.html"} {
		id := strings.TrimPrefix(path.Clean(p)+suffix, "./")
		if _, ok := r.docs[id]; ok {
			return id, true
		}
	}
	return "", false
}

// root returns the root a document is in, "." when there is only one.
func (r *resolver) root(document string) string {
	if len(r.opts.Roots) == 0 {
		return "."
	}
	root, _, _ := strings.Cut(document, "/")
	return root
}

// inside reports whether the path p is in one of the roots.
func (r *resolver) inside(p string) bool {
	if len(r.opts.Roots) == 0 {
		return true
	}
	root, _, _ := strings.Cut(p, "/")
	return slices.Contains(r.opts.Roots, root)
}

// hasScheme reports whether a link target starts like "https:" (RFC 3986,
// section 3.1).
func hasScheme(s string) bool {
	for i, c := range s {
		switch {
		case 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z':
		case i > 0 && (c == '+' || c == '-' || c == '.' || '0' <= c && c <= '9'):
		default:
			return i > 0 && c == ':'
		}
	}
	return false
}

// decodePercent decodes %41 and its like; what is no code stays as it is.
func decodePercent(s string) string {
	if d, err := url.PathUnescape(s); err == nil {
		return d
	}
	return s
}
