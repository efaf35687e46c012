package graphbuild

import (
	"errors"
	"fmt"
	"path"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/mapmatched/mmplug/mapmatched"
)

// The tags of the chunking strategies. What a strategy makes of a document
// never changes under its tag.
const (
	StrategyMarkdown = "markdown_v1" // ChunkMarkdown
	StrategyText     = "text_v1"     // ChunkText
)

// DefaultMaxBytes is the limit of a chunk, in bytes, when none is set.
const DefaultMaxBytes = 2000

// Document is a text to be cut into chunks.
type Document struct {
	ID   string // slash-separated path, unique in the corpus
	Text string // valid UTF-8
}

// ChunkOptions are the settings of a chunker. The zero value, and nil, mean
// the defaults.
type ChunkOptions struct {
	// MaxBytes is the limit of a chunk in bytes (not in characters or
	// tokens), at least 4 so that any character fits. 0 means
	// DefaultMaxBytes.
	MaxBytes int
}

// Validate reports every value that is out of range.
func (o *ChunkOptions) Validate() error {
	if o != nil && o.MaxBytes != 0 && o.MaxBytes < utf8.UTFMax {
		return fmt.Errorf("%w: MaxBytes is %d, want 0 for the default or at least %d",
			mapmatched.ErrInvalidConfig, o.MaxBytes, utf8.UTFMax)
	}
	return nil
}

func (o *ChunkOptions) maxBytes() int {
	if o == nil || o.MaxBytes == 0 {
		return DefaultMaxBytes
	}
	return o.MaxBytes
}

// Chunked is a document cut into chunks. Joined in order, the texts of the
// chunks are the document, byte for byte; of [ChunkHTML] alone only the ranges
// of the chunks are.
type Chunked struct {
	Document string             // document ID
	Chunks   []mapmatched.Chunk // in document order, Ordinal counts from 0
	Links    []Link             // in document order
	Anchors  []Anchor           // in document order, each name once
}

// Link is a link as it stands in a document. Images are no links.
type Link struct {
	Document string // ID of the document the link is in
	ChunkID  string // chunk the link is in
	Target   string // destination as written, without escapes of Markdown or HTML
	Offset   int    // byte offset of the link in its document
}

// Anchor is a place in a document that a link can name after "#".
type Anchor struct {
	Name    string
	ChunkID string // chunk the place is in
}

func (d Document) check() error {
	if d.ID == "" {
		return errors.New("a document has an empty ID; give every document its path")
	}
	if !utf8.ValidString(d.ID) {
		return fmt.Errorf("document ID %q is not UTF-8; rename the document", d.ID)
	}
	if i := invalidUTF8(d.Text); i >= 0 {
		return fmt.Errorf("document %q is not UTF-8 at byte %d; convert it to UTF-8", d.ID, i)
	}
	return nil
}

// invalidUTF8 returns the offset of the first byte of s that is not part of a
// UTF-8 sequence, or -1.
func invalidUTF8(s string) int {
	if utf8.ValidString(s) {
		return -1
	}
	for i, r := range s {
		if r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD") {
			return i
		}
	}
	return -1
}

// baseTitle is the title of a document that does not name itself: its file
// name without the extension.
func baseTitle(id string) string {
	base := path.Base(id)
	if t := strings.TrimSuffix(base, path.Ext(base)); t != "" {
		return t
	}
	return base
}

var idEscaper = strings.NewReplacer("%", "%25", "#", "%23", "~", "%7E")

// section is a stretch of a document that is cut apart from its neighbours.
type section struct {
	id         string // ID of its first chunk
	path       string // heading path
	start, end int    // bytes of the document
	body       int    // first byte after its heading and the white space there
}

// cutSections makes the chunks of a document from its sections, which cover it.
func cutSections(doc Document, title string, sections []section, maxBytes int) []mapmatched.Chunk {
	var chunks []mapmatched.Chunk
	for _, s := range sections {
		start := s.start
		last := s.start + lastTextRune(doc.Text[s.start:s.end])
		for part := 1; start < s.end; part++ {
			id := s.id
			if part > 1 {
				id = fmt.Sprintf("%s~%d", s.id, part)
			}
			end := nextCut(doc.Text, s, start, last, maxBytes)
			chunks = append(chunks, mapmatched.Chunk{
				ID: id, Document: doc.ID, Title: title, Section: s.path,
				Ordinal: len(chunks), Start: start, End: end, Text: doc.Text[start:end],
			})
			start = end
		}
	}
	return chunks
}

// chunkAt returns the ID of the chunk that holds the byte at offset, or the
// last chunk for an offset beyond the text.
func chunkAt(chunks []mapmatched.Chunk, offset int) string {
	i := sort.Search(len(chunks), func(i int) bool { return chunks[i].End > offset })
	return chunks[min(i, len(chunks)-1)].ID
}
