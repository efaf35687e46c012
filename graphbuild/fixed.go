package graphbuild

import (
	"fmt"
	"unicode/utf8"

	"github.com/mapmatched/mmplug/graphbuild/tokenizer"
	"github.com/mapmatched/mmplug/mapmatched"
)

// StrategyFixed is the tag of [ChunkFixed].
const StrategyFixed = "fixed_v1"

// Unit is what a chunk's size is counted in.
type Unit string

// The units.
const (
	UnitTokens Unit = "tokens" // of a model, without special tokens
	UnitBytes  Unit = "bytes"  // of UTF-8
)

// ChunkFixed cuts a document into chunks of opts.Limit units without regard to
// what it says (strategy [StrategyFixed]). By tokens the chunks are those of
// [tokenizer.Tokenizer.Windows]; by bytes each is as long as the limit lets it
// be without cutting a character, tok is not used and may be nil.
//
// Every byte of the document is in exactly one chunk. An empty document has no
// chunks. Chunk IDs, titles and errors are as in [ChunkPara].
func ChunkFixed(doc Document, unit Unit, tok *tokenizer.Tokenizer, opts *TokenOptions) (Chunked, error) {
	if err := opts.Validate(); err != nil {
		return Chunked{}, err
	}
	if err := doc.check(); err != nil {
		return Chunked{}, err
	}
	s := opts.settings(doc)
	var ends []int
	var err error
	switch unit {
	case UnitTokens:
		if tok == nil {
			err = fmt.Errorf("%w: chunks by tokens need a tokenizer; load one, or cut by bytes", mapmatched.ErrInvalidConfig)
		} else {
			ends, err = tok.Windows(doc.Text, s.Limit)
		}
	case UnitBytes:
		ends, err = byteEnds(doc.Text, s.Limit)
	default:
		err = fmt.Errorf("%w: unit %q is not known; want %q or %q", mapmatched.ErrInvalidConfig, unit, UnitTokens, UnitBytes)
	}
	if err != nil {
		return Chunked{}, fmt.Errorf("document %q: %w", doc.ID, err)
	}
	return hashedChunks(doc, ends, s), nil
}

// byteEnds returns the byte offsets at which pieces of at most limit bytes end.
func byteEnds(text string, limit int) ([]int, error) {
	if limit < utf8.UTFMax {
		return nil, fmt.Errorf("%w: Limit is %d bytes, want at least %d so that any character fits",
			mapmatched.ErrInvalidConfig, limit, utf8.UTFMax)
	}
	var ends []int
	for start := 0; start < len(text); {
		end := min(start+limit, len(text))
		for end < len(text) && !utf8.RuneStart(text[end]) {
			end--
		}
		ends = append(ends, end)
		start = end
	}
	return ends, nil
}
