package graphbuild

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"sort"
	"strings"

	"github.com/mapmatched/mmplug/graphbuild/tokenizer"
	"github.com/mapmatched/mmplug/mapmatched"
)

// StrategyPara is the tag of [ChunkPara].
const StrategyPara = "m7_chunk_pre_v1"

// DefaultTokenLimit is the limit of a chunk, in tokens, when none is set.
const DefaultTokenLimit = 512

// TokenOptions are the settings of the chunkers that name chunks by a hash.
// The zero value, and nil, mean the defaults.
type TokenOptions struct {
	// Limit is the limit of a chunk in tokens, without special tokens, at
	// least 1. For ChunkFixed it is in the unit given there, and at least 4
	// if that is bytes. 0 means DefaultTokenLimit, whatever the unit.
	Limit int
	// IDPrefix begins every chunk ID. It may be empty.
	IDPrefix string
	// RecordDigest is the digest of the record that the document comes from,
	// in whatever form the corpus has it. Empty means the SHA-256 of the
	// text, in lower case hexadecimal.
	RecordDigest string
}

func (o *TokenOptions) settings(doc Document) TokenOptions {
	var s TokenOptions
	if o != nil {
		s = *o
	}
	if s.Limit == 0 {
		s.Limit = DefaultTokenLimit
	}
	if s.RecordDigest == "" {
		sum := sha256.Sum256([]byte(doc.Text))
		s.RecordDigest = hex.EncodeToString(sum[:])
	}
	return s
}

// Validate reports a value that is out of range.
func (o *TokenOptions) Validate() error {
	if o != nil && o.Limit < 0 {
		return fmt.Errorf("%w: Limit is %d, want 0 for the default or at least 1", mapmatched.ErrInvalidConfig, o.Limit)
	}
	return nil
}

// HashedChunkID is the ID of a chunk by parent document, record digest and
// ordinal: prefix, then the first 16 hexadecimal digits of the SHA-256 of
// parent and digest, each after its length in bytes, and the ordinal, where
// lengths and ordinal are 64-bit numbers with the highest byte first.
func HashedChunkID(prefix, parent, digest string, ordinal int) string {
	var data []byte
	for _, field := range []string{parent, digest} {
		data = binary.BigEndian.AppendUint64(data, uint64(len(field)))
		data = append(data, field...)
	}
	data = binary.BigEndian.AppendUint64(data, uint64(ordinal))
	sum := sha256.Sum256(data)
	return prefix + hex.EncodeToString(sum[:8])
}

// ChunkPara packs whole paragraphs into chunks by the tokens of a model
// (strategy [StrategyPara], also known as para-512-noov).
//
// A paragraph is a line with the line feed that ends it. A chunk takes
// paragraphs as long as it has, with the next one, at most opts.Limit tokens. A
// paragraph that alone has more is cut into windows of the limit without
// overlap (see [tokenizer.Tokenizer.Windows]), which other paragraphs do not
// join. Tokens are those of the chunk's text on its own, so no chunk has more
// than the limit. Every byte of the document is in exactly one chunk, and no
// chunk cuts a character. An empty document has no chunks.
//
// Chunk IDs are those of [HashedChunkID]; the title is the file name without
// extension; sections, links and anchors are empty. Text that is not UTF-8 is
// an error that names the byte offset.
func ChunkPara(doc Document, tok *tokenizer.Tokenizer, opts *TokenOptions) (Chunked, error) {
	if err := opts.Validate(); err != nil {
		return Chunked{}, err
	}
	if err := doc.check(); err != nil {
		return Chunked{}, err
	}
	if tok == nil {
		return Chunked{}, fmt.Errorf("%w: ChunkPara has no tokenizer; load one", mapmatched.ErrInvalidConfig)
	}
	s := opts.settings(doc)
	ends, err := paragraphEnds(doc.Text, tok, s.Limit)
	if err != nil {
		return Chunked{}, fmt.Errorf("document %q: %w", doc.ID, err)
	}
	return hashedChunks(doc, ends, s), nil
}

// hashedChunks makes the chunks that end at the byte offsets ends.
func hashedChunks(doc Document, ends []int, s TokenOptions) Chunked {
	chunked := Chunked{Document: doc.ID}
	start := 0
	for i, end := range ends {
		chunked.Chunks = append(chunked.Chunks, mapmatched.Chunk{
			ID: HashedChunkID(s.IDPrefix, doc.ID, s.RecordDigest, i), Document: doc.ID, Title: baseTitle(doc.ID),
			Ordinal: i, Start: start, End: end, Text: doc.Text[start:end],
		})
		start = end
	}
	return chunked
}

// packer packs paragraphs.
type packer struct {
	tok    *tokenizer.Tokenizer
	text   string
	limit  int
	starts []int // bytes where paragraphs start, and the end of the text
	before []int // tokens of the whole text before each of them
}

// paragraphEnds returns the byte offsets at which the chunks of text end.
func paragraphEnds(text string, tok *tokenizer.Tokenizer, limit int) ([]int, error) {
	p, err := newPacker(text, tok, limit)
	if err != nil {
		return nil, err
	}
	var ends []int
	for first := 0; first < len(p.starts)-1; {
		last, tokens, err := p.pack(first)
		if err != nil {
			return nil, err
		}
		if tokens > limit {
			windows, err := tok.Windows(p.between(first, last), limit)
			if err != nil {
				return nil, fmt.Errorf("paragraph at byte %d: %w", p.starts[first], err)
			}
			for _, end := range windows {
				ends = append(ends, p.starts[first]+end)
			}
		} else {
			ends = append(ends, p.starts[last])
		}
		first = last
	}
	return ends, nil
}

func newPacker(text string, tok *tokenizer.Tokenizer, limit int) (*packer, error) {
	tokens, err := tok.Encode(text)
	if err != nil {
		return nil, err
	}
	p := &packer{tok: tok, text: text, limit: limit}
	n := 0
	for at := 0; ; {
		for n < len(tokens) && tokens[n].Start < at {
			n++
		}
		p.starts = append(p.starts, at)
		p.before = append(p.before, n)
		if at == len(text) {
			return p, nil
		}
		if i := strings.IndexByte(text[at:], '\n'); i >= 0 {
			at += i + 1
		} else {
			at = len(text)
		}
	}
}

func (p *packer) between(first, last int) string { return p.text[p.starts[first]:p.starts[last]] }

// pack returns the paragraph that the chunk beginning with the paragraph first
// ends before, and the tokens of that chunk: more than the limit only if it is
// one paragraph. It begins with a guess by the tokens of the whole text, so
// that a chunk is counted a few times, not once for each of its paragraphs.
func (p *packer) pack(first int) (last, tokens int, err error) {
	rest := p.before[first+2:]
	last = first + 1 + sort.Search(len(rest), func(i int) bool { return rest[i] > p.before[first]+p.limit })
	if tokens, err = p.tok.Count(p.between(first, last)); err != nil {
		return 0, 0, err
	}
	for tokens > p.limit && last > first+1 {
		last--
		if tokens, err = p.tok.Count(p.between(first, last)); err != nil {
			return 0, 0, err
		}
	}
	for tokens <= p.limit && last < len(p.starts)-1 {
		more, err := p.tok.Count(p.between(first, last+1))
		if err != nil {
			return 0, 0, err
		}
		if more > p.limit {
			break
		}
		last, tokens = last+1, more
	}
	return last, tokens, nil
}
