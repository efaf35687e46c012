package langchaingo

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mapmatched/mmplug/mapmatched"
)

// TextSplitter cuts a text. Every textsplitter.TextSplitter of langchaingo is
// one; the interface is repeated here so that this package does without their
// Markdown parser.
type TextSplitter interface {
	SplitText(text string) ([]string, error)
}

// SplitText cuts a document by a text splitter and finds where in the document
// each chunk is: text[Start:End] is the chunk, byte for byte. Chunks may
// overlap, and text may be left out between them, as splitters do with the
// separators. The chunks have the ID document#start-end, the document as title
// and no section. Empty pieces are dropped.
//
// A chunk that is not a piece of the text, beginning later than the chunk
// before or together with it but longer, is refused: a splitter that rewrites
// what it cuts, as the one for Markdown does with tables, has no offsets. So is
// a document or a chunk that is not UTF-8.
//
// Where a text repeats itself and a chunk fits in several places, it is put
// right behind the chunk before if it fits there, else where it overlaps that
// chunk least, and always so that the chunks after it have a place.
func SplitText(s TextSplitter, document, text string) ([]mapmatched.Chunk, error) {
	if document == "" {
		return nil, fail("split", mapmatched.KindInvalid, "the document ID is empty; chunk IDs begin with it")
	}
	if !utf8.ValidString(text) {
		return nil, fail("split", mapmatched.KindInvalid, "document %q is not UTF-8; convert it", document)
	}
	pieces, err := s.SplitText(text)
	if err != nil {
		return nil, fail("split", mapmatched.KindInvalid, "document %q: %w", document, err)
	}
	latest, err := latestStarts(text, pieces)
	if err != nil {
		return nil, fail("split", mapmatched.KindInvalid, "document %q: %w", document, err)
	}
	var chunks []mapmatched.Chunk
	start, end := -1, 0 // of the chunk before
	for i, piece := range pieces {
		if piece == "" {
			continue
		}
		low := start + 1
		if len(chunks) > 0 && len(piece) > end-start {
			low = start
		}
		start = place(text, piece, low, end, latest[i])
		end = start + len(piece)
		chunks = append(chunks, mapmatched.Chunk{
			ID: fmt.Sprintf("%s#%d-%d", document, start, end), Document: document, Title: document,
			Ordinal: len(chunks), Start: start, End: end, Text: piece,
		})
	}
	return chunks, nil
}

// latestStarts finds for each piece that is not empty the last place where it
// can begin if the pieces after it are to begin later.
func latestStarts(text string, pieces []string) ([]int, error) {
	latest := make([]int, len(pieces))
	bound, next := len(text), 0 // where the piece after it begins, and its length
	for i := len(pieces) - 1; i >= 0; i-- {
		piece := pieces[i]
		if piece == "" {
			continue
		}
		if !utf8.ValidString(piece) {
			return nil, fmt.Errorf("chunk %d, %s, is not UTF-8: the splitter cuts characters", i, quote(piece))
		}
		last := bound - 1
		if len(piece) < next {
			last = bound
		}
		at := strings.LastIndex(text[:min(len(text), last+len(piece))], piece)
		if at < 0 {
			if strings.Contains(text, piece) {
				return nil, fmt.Errorf("chunk %d, %s, is not in the document before chunk %d; the splitter changes the order", i, quote(piece), i+1)
			}
			return nil, fmt.Errorf("chunk %d, %s, is not a piece of the document: the splitter rewrites the text, so there are no byte offsets", i, quote(piece))
		}
		latest[i], bound, next = at, at, len(piece)
	}
	return latest, nil
}

// place finds where a piece begins, from low to high, which is one place where
// it does. The piece before ends at end.
func place(text, piece string, low, end, high int) int {
	behind := -1
	if at := max(low, end); at <= high {
		behind = at + strings.Index(text[at:high+len(piece)], piece) // it is there, at high at the latest
		if !strings.ContainsFunc(text[end:behind], isContent) {
			return behind
		}
	}
	// Begin inside the piece before.
	if last := min(end-1, high); last >= low {
		if at := strings.LastIndex(text[low:min(len(text), last+len(piece))], piece); at >= 0 {
			return low + at
		}
	}
	return behind
}

func isContent(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// quote shows the beginning of a text on one line.
func quote(s string) string {
	const most = 40
	short := []rune(strings.ToValidUTF8(s, "\uFFFD"))
	if len(short) > most {
		return fmt.Sprintf("%q…", string(short[:most]))
	}
	return fmt.Sprintf("%q", string(short))
}
