package lexical

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
)

// checkEvery is how many steps a loop takes between two looks at its context.
const checkEvery = 1024

// occurrence is a term in a chunk.
type occurrence struct {
	term, chunk, count uint32
}

// Build indexes so many chunks under valid parameters; text returns what is
// indexed of chunk i and is called once for each i in order. The same texts give
// the same index. It stops with the error of ctx when that is done.
func Build(ctx context.Context, p BM25, chunks int, text func(i int) string) (*Index, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	if chunks < 0 || int64(chunks) > math.MaxUint32 {
		return nil, fmt.Errorf("cannot index %d chunks: the limit is %d", chunks, uint32(math.MaxUint32))
	}
	var (
		numbers = map[string]uint32{} // of terms, in order of first sight
		terms   []string
		last    []uint32 // 1 + where in seen the term stands for this chunk
		seen    []occurrence
		lengths = make([]int, chunks)
		total   int
	)
	for i := range chunks {
		if i%checkEvery == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		first := len(seen)
		words := Analyze(text(i))
		for _, w := range words {
			n, known := numbers[w]
			if !known {
				w = strings.Clone(w) // the chunk's folded text need not stay
				n = uint32(len(terms))
				numbers[w] = n
				terms = append(terms, w)
				last = append(last, 0)
			}
			if at := int(last[n]) - 1; at >= first {
				seen[at].count++
				continue
			}
			if int64(len(seen)) >= math.MaxUint32 {
				return nil, fmt.Errorf("too much text: more than %d terms in chunks; index fewer files at once", uint32(math.MaxUint32))
			}
			seen = append(seen, occurrence{n, uint32(i), 1})
			last[n] = uint32(len(seen))
		}
		lengths[i] = len(words)
		total += len(words)
	}
	return assemble(p, terms, numbers, seen, lengths, float64(total)/float64(max(chunks, 1)))
}

// assemble sorts the terms and lays the occurrences out term by term.
func assemble(p BM25, terms []string, numbers map[string]uint32, seen []occurrence, lengths []int, average float64) (*Index, error) {
	slices.Sort(terms)
	a := Arrays{
		Chunks:     len(lengths),
		Dictionary: make([]uint64, columns*len(terms)),
		Postings:   make([]uint32, len(seen)),
		Impacts:    make([]float64, len(seen)),
	}
	rank := make([]uint32, len(terms)) // by number
	for i, t := range terms {
		rank[numbers[t]] = uint32(i)
		a.Terms = append(a.Terms, t...)
		a.Dictionary[columns*i+termEnd] = uint64(len(a.Terms))
	}
	df := make([]int, len(terms)) // by rank
	for _, o := range seen {
		df[rank[o.term]]++
	}
	next := make([]int, len(terms))
	idf := make([]float64, len(terms))
	end := 0
	for i, n := range df {
		next[i] = end
		end += n
		a.Dictionary[columns*i+postingsEnd] = uint64(end)
		idf[i] = IDF(len(lengths), n)
	}
	for _, o := range seen { // chunk by chunk, so each term's postings ascend
		r := rank[o.term]
		a.Postings[next[r]] = o.chunk
		a.Impacts[next[r]] = p.Impact(idf[r], int(o.count), lengths[o.chunk], average)
		next[r]++
	}
	start := 0
	for i, end := range next { // every next is at its end now
		a.Dictionary[columns*i+greatestImpact] = math.Float64bits(slices.Max(a.Impacts[start:end]))
		start = end
	}
	return New(a)
}
