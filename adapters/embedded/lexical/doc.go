// Package lexical is the lexical arm of retrieval, tag "lexical_pre_v2": text
// analysis and BM25 over an inverted index whose postings carry the finished
// score of their term.
//
// # Scores
//
// For a corpus of N chunks, of which n have the term, a chunk of |D| tokens
// with tf of them equal to the term, and avgdl the mean of |D| over all N
// chunks (empty ones included), the impact of the term is
//
//	impact = idf · tf·(k1+1) / (tf + k1·(1 − b + b·|D|/avgdl))
//	idf    = ln(1 + (N − n + 0.5)/(n + 0.5))
//
// with k1 = 1.2 and b = 0.75 unless told otherwise (Robertson and Zaragoza,
// "The Probabilistic Relevance Framework: BM25 and Beyond", 2009; the 1 inside
// the logarithm keeps idf positive for terms that most chunks have). The score
// of a chunk is
//
//	score = Σ weight·impact
//
// over the distinct terms of the query, summed from 0 in float64 without fused
// multiply-add in descending order of what the term adds to a chunk at most
// (its weight times its greatest impact), ties in ascending byte order of the
// term. In a plain query the weight of a term is how many times the query has
// it, which is the BM25 sum over the words of the query with repeats counted.
// The score does not depend on the order of the words, bit for bit.
//
// # Search
//
// A search visits the postings of the query's terms only, in the order above,
// adding their impacts into one accumulator a chunk. As soon as the terms to
// come could not lift a chunk without any sum among the best, no new chunk is
// taken up, and the terms to come are looked up for the chunks that can still
// win (the idea of MaxScore: Turtle and Flood, "Query Evaluation: Strategies and
// Optimizations", 1995). The result is the exact top, with exact scores.
// Accumulators come from a pool and are stamped with the search that wrote
// them, so nothing is cleared between searches.
package lexical
