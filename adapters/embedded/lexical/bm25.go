package lexical

import (
	"fmt"

	"github.com/mapmatched/mmplug/mapmatched"
)

// The default parameters of BM25.
const (
	K1 = 1.2
	B  = 0.75
)

// MaxK1 is the largest k1 there is. Long before it a term counts as often as a
// chunk has it.
const MaxK1 = 1e6

// BM25 are the parameters of BM25. The zero value counts each term once and no
// lengths; the defaults are those of DefaultBM25.
type BM25 struct {
	K1 float64 // how soon further repeats of a term stop counting, in [0, MaxK1]; 0 counts a term once
	B  float64 // how much the length of a chunk counts, in [0, 1]; 0 not at all
}

// DefaultBM25 returns the parameters K1 and B.
func DefaultBM25() BM25 { return BM25{K1: K1, B: B} }

// Validate reports a parameter that is out of range.
func (p BM25) Validate() error {
	switch {
	case !(p.K1 >= 0 && p.K1 <= MaxK1):
		return fmt.Errorf("k1 of BM25 is %v: it is between 0 and %d", p.K1, int(MaxK1))
	case !(p.B >= 0 && p.B <= 1):
		return fmt.Errorf("b of BM25 is %v: it is between 0 and 1", p.B)
	}
	return nil
}

// IDF returns ln(1 + (chunks − df + 0.5)/(df + 0.5)), the weight of a term that
// df of so many chunks have. It is positive for 0 ≤ df ≤ chunks.
func IDF(chunks, df int) float64 {
	return mapmatched.Log(1 + (float64(chunks-df)+0.5)/(float64(df)+0.5))
}

// Impact returns what a term adds to the score of a chunk of length tokens, tf
// of which are the term, in a corpus whose chunks have average tokens in the
// mean. See the package comment for the formula.
func (p BM25) Impact(idf float64, tf, length int, average float64) float64 {
	norm := 1 - p.B + float64(p.B*float64(length))/average
	return idf * (float64(float64(tf)*(p.K1+1)) / (float64(tf) + float64(p.K1*norm)))
}
