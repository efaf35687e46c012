package eval

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/mapmatched/mmplug/mapmatched"
)

// Data is a set of labelled conversations with the corpus that they search.
type Data struct {
	Name          string // for people
	Format        string // "shared", "topiocqa", "cast", "mtrag" or "synthetic"
	Corpus        *Corpus
	Conversations []Conversation // in the order of the file
	Files         []File         // what was read, in the order of reading
}

// File identifies a file that was read.
type File struct {
	Name   string `json:"name"` // without its directory
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"` // of all bytes, in hexadecimal
}

// Digest identifies the data: the SHA-256, in hexadecimal, of the format and
// the digests of the files in order.
func (d *Data) Digest() string {
	sum := newDigest(d.Format)
	for _, f := range d.Files {
		sum.text(f.SHA256)
	}
	return hex.EncodeToString(sum.sum())
}

// Turns counts the turns, and those that have a gold chunk.
func (d *Data) Turns() (all, scored int) {
	for i := range d.Conversations {
		for j := range d.Conversations[i].Turns {
			all++
			if len(d.Conversations[i].Turns[j].Gold) > 0 {
				scored++
			}
		}
	}
	return all, scored
}

// withoutReplies is the data with all replies withheld.
func (d *Data) withoutReplies() *Data {
	own := *d
	own.Conversations = slices.Clone(d.Conversations)
	for i := range own.Conversations {
		c := &own.Conversations[i]
		c.Turns = slices.Clone(c.Turns)
		for t := range c.Turns {
			c.Turns[t].Answer = ""
		}
	}
	return &own
}

// HasRewrites reports whether any turn has a rewritten query.
func (d *Data) HasRewrites() bool {
	for i := range d.Conversations {
		for j := range d.Conversations[i].Turns {
			if d.Conversations[i].Turns[j].Rewrite != "" {
				return true
			}
		}
	}
	return false
}

// Chunk is a chunk of a corpus with what only evaluation looks at.
type Chunk struct {
	mapmatched.Chunk
	Domain string   // part of the corpus it belongs to, "" for none
	Links  []string // IDs of the documents it links to
}

// Corpus is the chunks that conversations search.
type Corpus struct {
	Chunks   []Chunk
	position map[string]int // by chunk ID
}

// NewCorpus returns a corpus of chunks. The errors are those of a corpus file:
// an empty or repeated ID, an empty text, two chunks at one place of a document.
func NewCorpus(chunks []Chunk) (*Corpus, error) {
	b := newCorpusBuilder()
	for i := range chunks {
		if err := b.add(chunks[i]); err != nil {
			return nil, fmt.Errorf("chunk %d: %w", i, err)
		}
	}
	return b.corpus()
}

// Find returns the chunk of an ID, nil when there is none.
func (c *Corpus) Find(id string) *Chunk {
	if i, found := c.position[id]; found {
		return &c.Chunks[i]
	}
	return nil
}

// Documents counts the documents.
func (c *Corpus) Documents() int {
	seen := map[string]bool{}
	for i := range c.Chunks {
		seen[c.Chunks[i].Document] = true
	}
	return len(seen)
}

// corpusBuilder checks chunks one by one.
type corpusBuilder struct {
	chunks   []Chunk
	position map[string]int
	places   map[place]bool
}

type place struct {
	document string
	ordinal  int
}

func newCorpusBuilder() *corpusBuilder {
	return &corpusBuilder{position: map[string]int{}, places: map[place]bool{}}
}

func (b *corpusBuilder) add(c Chunk) error {
	at := place{c.Document, c.Ordinal}
	switch _, known := b.position[c.ID]; {
	case c.ID == "":
		return mapmatched.ErrEmptyChunkID
	case known:
		return fmt.Errorf("chunk ID %q occurs twice", c.ID)
	case c.Text == "":
		return fmt.Errorf("chunk %q has no text", c.ID)
	case c.Document == "":
		return fmt.Errorf("chunk %q has no document", c.ID)
	case c.Ordinal < 0:
		return fmt.Errorf("chunk %q has ordinal %d: it counts from 0", c.ID, c.Ordinal)
	case b.places[at]:
		return fmt.Errorf("chunk %q has ordinal %d of document %q, which another chunk has", c.ID, c.Ordinal, c.Document)
	}
	b.position[c.ID] = len(b.chunks)
	b.places[at] = true
	b.chunks = append(b.chunks, c)
	return nil
}

func (b *corpusBuilder) corpus() (*Corpus, error) {
	if len(b.chunks) == 0 {
		return nil, errors.New("there are no chunks")
	}
	return &Corpus{b.chunks, b.position}, nil
}

// Conversation is a labelled conversation.
type Conversation struct {
	ID       string
	Domain   string // the part of the corpus it is about, "" when unknown
	Document string // the document it is about (doc_scope), "" when unknown
	Split    string // "dev", "train" and so on, "" when not given
	Turns    []Turn
}

// Turn is a turn of a conversation. One without gold is not scored and belongs
// to the history of later turns.
type Turn struct {
	Query   string
	Answer  string // the reply, "" when unknown; history for later turns only
	Rewrite string // Query so that it stands alone, "" when the data has none
	Gold    []Gold // each chunk once
	// Standalone says whether the query can be understood alone; nil when the
	// data does not say.
	Standalone  *bool
	TopicSwitch bool   // the turn goes to another topic than the one before
	ChunkRepeat bool   // a gold chunk of the turn before is one of this turn
	SeamKind    string // "switch" or "return" where conversations were joined, else ""
}

// Gold is a chunk that answers a turn.
type Gold struct {
	ChunkID string
	Grade   int // how well, ≥ 1; 1 where the data does not grade
	// Equivalents are chunks that say the same as ChunkID. They count in its
	// place, and no chunk is one of two golds of a turn.
	Equivalents []string
}

// GoldIDs lists the gold chunks of a turn, without equivalents.
func (t *Turn) GoldIDs() []string {
	ids := make([]string, len(t.Gold))
	for i, g := range t.Gold {
		ids[i] = g.ChunkID
	}
	return ids
}

// Load reads the shared form: two files of JSON lines. Keys that are not listed
// here are passed over; errors name the file and the line.
//
// The corpus has a chunk a line: id, doc (its document), title, section (heading
// path, " > " between levels), ordinal (place in its document, from 0) and text;
// optional domain, links (IDs of documents), start and end (bytes).
//
// The other file has a conversation a line: conversation_id and turns; optional
// domain, doc_scope (a document) and split. A turn has turn (its number, upwards
// from 1) and query; optional answer (the reply), gold (IDs of chunks),
// gold_equivalent (chunks of the same text as a gold), rewrite (or
// rewritten_query), standalone, topic_switch, chunk_repeat, seam and seam_kind
// (switch or return).
func Load(ctx context.Context, corpusFile, conversationsFile string) (*Data, error) {
	d := &Data{Format: "shared", Name: nameOf(conversationsFile)}
	file, err := readLines(ctx, corpusFile, sharedCorpus(&d.Corpus))
	if err != nil {
		return nil, err
	}
	d.Files = append(d.Files, file)
	file, err = readLines(ctx, conversationsFile, sharedConversations(d.Corpus, &d.Conversations))
	if err != nil {
		return nil, err
	}
	d.Files = append(d.Files, file)
	return d, nil
}

// nameOf names data after the directory of its file and the file.
func nameOf(file string) string {
	base := filepath.Base(file)
	base = base[:len(base)-len(filepath.Ext(base))]
	abs, err := filepath.Abs(file)
	if dir := filepath.Base(filepath.Dir(abs)); err == nil && len(dir) > 1 {
		return dir + "/" + base
	}
	return base
}
