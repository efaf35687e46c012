package tokenizer

import (
	"fmt"
	"sort"
)

// Windows cuts text into windows of at most limit tokens (at least 1), without
// overlap, and returns the byte offsets at which they end; the last is the
// length of text. Empty text has no windows.
//
// A window ends where a token of text begins that shares no character with the
// one before, and white space that stands for no token goes to the window
// before it. Each window is counted again on its own, since a text cut out of
// another may have other tokens at its ends: it has at most limit tokens, and
// with everything up to the next such place it would have more. A character or
// unknown word that alone has more tokens than limit is an error.
//
// The time is linear in the length of text.
func (t *Tokenizer) Windows(text string, limit int) ([]int, error) {
	if limit < 1 {
		return nil, fmt.Errorf("a window of %d tokens is not possible; use at least 1", limit)
	}
	c, err := t.newCutter(text, limit)
	if err != nil || text == "" {
		return nil, err
	}
	var ends []int
	for first := 0; first < len(c.places)-1; {
		last, tokens, err := c.window(first)
		if err != nil {
			return nil, err
		}
		if tokens > limit {
			return nil, fmt.Errorf("the text %.40q at byte %d cannot be cut and has %d tokens, more than the limit of %d; raise the limit",
				c.between(first, last), c.places[first].offset, tokens, limit)
		}
		ends = append(ends, c.places[last].offset)
		first = last
	}
	return ends, nil
}

// Truncate returns the first of the windows of n tokens that text can be cut
// into (see [Tokenizer.Windows]). It is all of text that has at most n tokens.
// For longer text it is empty if n is below 1 or the first character alone has
// more tokens.
func (t *Tokenizer) Truncate(text string, n int) (string, error) {
	c, err := t.newCutter(text, n)
	if err != nil {
		return "", err
	}
	if c.places[len(c.places)-1].before <= n {
		return text, nil
	}
	if n < 1 {
		return "", nil
	}
	last, tokens, err := c.window(0)
	if err != nil || tokens > n {
		return "", err
	}
	return c.between(0, last), nil
}

// place is where text can be cut.
type place struct {
	offset int // byte
	before int // tokens of the text before it
}

// cutter finds windows of a text. The places begin with the beginning and end
// with the end of text.
type cutter struct {
	t      *Tokenizer
	text   string
	limit  int
	places []place
}

func (t *Tokenizer) newCutter(text string, limit int) (*cutter, error) {
	tokens, err := t.Encode(text)
	if err != nil {
		return nil, err
	}
	c := &cutter{t: t, text: text, limit: limit, places: []place{{}}}
	for k := 1; k < len(tokens); k++ {
		if start := tokens[k].Start; start >= tokens[k-1].End && start > c.places[len(c.places)-1].offset {
			c.places = append(c.places, place{start, k})
		}
	}
	c.places = append(c.places, place{len(text), len(tokens)})
	return c, nil
}

func (c *cutter) between(first, last int) string {
	return c.text[c.places[first].offset:c.places[last].offset]
}

// upTo returns the last place after first with at most n tokens before it, or
// the one next to first.
func (c *cutter) upTo(first, n int) int {
	rest := c.places[first+2:]
	return first + 1 + sort.Search(len(rest), func(i int) bool { return rest[i].before > n })
}

// window returns the place where the window ends that begins at the place
// first, and its tokens, more than the limit only when it cannot be shorter.
func (c *cutter) window(first int) (last, tokens int, err error) {
	if first == len(c.places)-2 {
		tokens, err = c.t.Count(c.between(first, first+1))
		return first + 1, tokens, err
	}
	last = c.upTo(first, c.places[first].before+c.limit)
	for {
		if tokens, err = c.t.Count(c.between(first, last)); err != nil {
			return 0, 0, err
		}
		if tokens <= c.limit || last == first+1 {
			break
		}
		last = min(last-1, c.upTo(first, c.places[last].before-(tokens-c.limit)))
	}
	for tokens <= c.limit && last < len(c.places)-1 {
		more, err := c.t.Count(c.between(first, last+1))
		if err != nil {
			return 0, 0, err
		}
		if more > c.limit {
			break
		}
		last, tokens = last+1, more
	}
	return last, tokens, nil
}
