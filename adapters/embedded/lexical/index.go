package lexical

import (
	"errors"
	"fmt"
	"math"
	"sync"
)

// ErrDamaged means that the arrays of an index contradict each other.
var ErrDamaged = errors.New("lexical index is damaged")

// Arrays are an index as flat arrays, the form in which it is stored. Terms
// are numbered from 0 in ascending byte order.
type Arrays struct {
	// Chunks is how many chunks the corpus has, N.
	Chunks int
	// Terms is all terms one after the other.
	Terms []byte
	// Dictionary holds three numbers for each term: where it ends in Terms,
	// where its postings end in Postings, and the bits of its greatest impact
	// as a float64. A term and its postings begin where those of the term
	// before end.
	Dictionary []uint64
	// Postings are, term by term, the positions of the chunks that have it,
	// ascending.
	Postings []uint32
	// Impacts are the scores that belong to Postings.
	Impacts []float64
}

// Columns of the dictionary.
const (
	termEnd        = 0
	postingsEnd    = 1
	greatestImpact = 2
	columns        = 3
)

// Index answers BM25 searches. It never changes and is safe for concurrent
// use. It reads the arrays it was made of in place.
type Index struct {
	arrays Arrays
	pool   sync.Pool // of *accumulators
}

// New returns the index over the arrays. It checks their lengths, not their
// content: a search that meets content which cannot be right returns
// ErrDamaged.
func New(a Arrays) (*Index, error) {
	switch {
	case a.Chunks < 0 || int64(a.Chunks) > math.MaxUint32:
		return nil, fmt.Errorf("%w: %d chunks", ErrDamaged, a.Chunks)
	case len(a.Dictionary)%columns != 0:
		return nil, fmt.Errorf("%w: the dictionary has %d numbers, not three for each term", ErrDamaged, len(a.Dictionary))
	case len(a.Postings) != len(a.Impacts):
		return nil, fmt.Errorf("%w: %d postings and %d impacts", ErrDamaged, len(a.Postings), len(a.Impacts))
	}
	x := &Index{arrays: a}
	x.pool.New = func() any { return &accumulators{sums: make([]accumulator, a.Chunks)} }
	return x, nil
}

// Arrays returns the arrays of the index. They must not be changed.
func (x *Index) Arrays() Arrays { return x.arrays }

// Terms returns how many distinct terms there are.
func (x *Index) Terms() int { return len(x.arrays.Dictionary) / columns }

// DocumentFrequency returns how many chunks have the term, as [Analyze] spells
// it; 0 when none has.
func (x *Index) DocumentFrequency(term string) (int, error) {
	list, err := x.lookup(term)
	return len(list.chunks), err
}

// IDF returns the idf of a term and true, or 0 and false when no chunk has it.
func (x *Index) IDF(term string) (float64, bool) {
	df, err := x.DocumentFrequency(term)
	if err != nil || df == 0 || df > x.arrays.Chunks {
		return 0, false
	}
	return IDF(x.arrays.Chunks, df), true
}

// postings are those of one term.
type postings struct {
	chunks   []uint32
	impacts  []float64
	greatest float64 // impact
}

// lookup finds the postings of a term by binary search, none when no chunk has
// the term.
func (x *Index) lookup(term string) (postings, error) {
	low, high := 0, x.Terms()
	for low < high {
		middle := int(uint(low+high) / 2)
		t, err := x.term(middle)
		if err != nil {
			return postings{}, err
		}
		switch {
		case string(t) == term:
			return x.postings(middle)
		case string(t) < term:
			low = middle + 1
		default:
			high = middle
		}
	}
	return postings{}, nil
}

// term returns the bytes of term i.
func (x *Index) term(i int) ([]byte, error) {
	start, end := x.span(i, termEnd)
	if start > end || end > uint64(len(x.arrays.Terms)) {
		return nil, fmt.Errorf("%w: term %d is at bytes %d to %d of %d", ErrDamaged, i, start, end, len(x.arrays.Terms))
	}
	return x.arrays.Terms[start:end], nil
}

// postings returns the postings of term i.
func (x *Index) postings(i int) (postings, error) {
	start, end := x.span(i, postingsEnd)
	if start > end || end > uint64(len(x.arrays.Postings)) {
		return postings{}, fmt.Errorf("%w: the postings of term %d are %d to %d of %d", ErrDamaged, i, start, end, len(x.arrays.Postings))
	}
	greatest := math.Float64frombits(x.arrays.Dictionary[columns*i+greatestImpact])
	return postings{x.arrays.Postings[start:end], x.arrays.Impacts[start:end], greatest}, nil
}

// span reads where a column of the dictionary says that term i begins and ends.
func (x *Index) span(i, column int) (start, end uint64) {
	if i > 0 {
		start = x.arrays.Dictionary[columns*(i-1)+column]
	}
	return start, x.arrays.Dictionary[columns*i+column]
}
