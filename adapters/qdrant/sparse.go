package qdrant

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"unicode"

	pb "github.com/qdrant/go-client/qdrant"
)

// SparseVector has a value for some of 2^32 dimensions. The indices are
// distinct, in any order, one for each value.
type SparseVector struct {
	Indices []uint32
	Values  []float32
}

// SparseEncoder makes the sparse vector of a text. An empty vector finds
// nothing.
type SparseEncoder func(ctx context.Context, text string) (SparseVector, error)

// check reports what is wrong with a sparse vector.
func (v SparseVector) check() error {
	if len(v.Indices) != len(v.Values) {
		return fmt.Errorf("a sparse vector has %d indices and %d values", len(v.Indices), len(v.Values))
	}
	sorted := slices.Sorted(slices.Values(v.Indices))
	for i := 1; i < len(sorted); i++ {
		if sorted[i] == sorted[i-1] {
			return fmt.Errorf("a sparse vector has the index %d twice", sorted[i])
		}
	}
	return checkFinite(v.Values)
}

func (v SparseVector) proto() *pb.SparseVector {
	return &pb.SparseVector{Indices: v.Indices, Values: v.Values}
}

// checkFinite reports the first component that is NaN or infinite.
func checkFinite(v []float32) error {
	for i, x := range v {
		if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
			return fmt.Errorf("component %d is %v, want a finite number", i, x)
		}
	}
	return nil
}

// The parameters of TermDocument: those of BM25, with a fixed length for the
// average document, as the server knows no other.
const (
	termK1            = 1.2
	termB             = 0.75
	termAverageLength = 256
)

// TermQuery is a [SparseEncoder] of questions: every distinct term of the text
// counts 1. Terms are runs of letters and digits in lower case, and pairs of
// neighbours in Chinese, Japanese kana and Korean; the index of a term is its
// FNV-1a hash of 32 bits. It goes with [TermDocument].
func TermQuery(_ context.Context, text string) (SparseVector, error) {
	return termVector(termsOf(text), func(int) float32 { return 1 }), nil
}

// TermDocument is a [SparseEncoder] of chunks: every distinct term with the
// weight that BM25 gives its count f,
//
//	f·(k1+1) / (f + k1·(1 − b + b·length/256)),  k1 = 1.2, b = 0.75
//
// and length in terms. The inverse document frequency is the server's part: the
// vector of the collection has the modifier idf.
func TermDocument(_ context.Context, text string) (SparseVector, error) {
	terms := termsOf(text)
	norm := termK1 * (1 - termB + termB*float64(len(terms))/termAverageLength)
	return termVector(terms, func(count int) float32 {
		f := float64(count)
		return float32(f * (termK1 + 1) / (f + norm))
	}), nil
}

// termVector weighs the terms by how often they occur, ordered by index. Terms
// that share an index are one.
func termVector(terms []string, weigh func(count int) float32) SparseVector {
	counts := make(map[uint32]int, len(terms))
	for _, term := range terms {
		h := fnv.New32a()
		_, _ = h.Write([]byte(term)) // a hash never fails
		counts[h.Sum32()]++
	}
	v := SparseVector{Indices: make([]uint32, 0, len(counts)), Values: make([]float32, 0, len(counts))}
	for index := range counts {
		v.Indices = append(v.Indices, index)
	}
	slices.SortFunc(v.Indices, cmp.Compare)
	for _, index := range v.Indices {
		v.Values = append(v.Values, weigh(counts[index]))
	}
	return v
}

// termsOf cuts a text into terms.
func termsOf(text string) []string {
	var terms []string
	var run []rune
	paired := false // the run is of a script without spaces
	flush := func() {
		switch {
		case len(run) == 0:
		case !paired || len(run) == 1:
			terms = append(terms, string(run))
		default:
			for i := 1; i < len(run); i++ {
				terms = append(terms, string(run[i-1:i+1]))
			}
		}
		run = run[:0]
	}
	for _, r := range text {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) {
			flush()
			continue
		}
		if cjk := unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul); cjk != paired {
			flush()
			paired = cjk
		}
		run = append(run, unicode.ToLower(r))
	}
	flush()
	return terms
}

var errNoSparseEncoder = errors.New("the vector is sparse and there is no encoder for questions: set Options.SparseEncoder, or name it with sparse=NAME instead of vector=NAME in a URL")
