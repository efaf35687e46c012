package lexical

import "github.com/mapmatched/mmplug/mapmatched"

// Parameters of BM25.
const (
	K1 = 1.2  // how soon further repeats of a term stop counting
	B  = 0.75 // how much the length of a chunk counts, in [0, 1]
)

// IDF returns ln(1 + (chunks − df + 0.5)/(df + 0.5)), the weight of a term that
// df of so many chunks have. It is positive for 0 ≤ df ≤ chunks.
func IDF(chunks, df int) float64 {
	return mapmatched.Log(1 + (float64(chunks-df)+0.5)/(float64(df)+0.5))
}

// Impact returns what a term adds to the score of a chunk of length tokens, tf
// of which are the term, in a corpus whose chunks have average tokens in the
// mean. See the package comment for the formula.
func Impact(idf float64, tf, length int, average float64) float64 {
	norm := 1 - B + float64(B*float64(length))/average
	return idf * (float64(float64(tf)*(K1+1)) / (float64(tf) + float64(K1*norm)))
}
