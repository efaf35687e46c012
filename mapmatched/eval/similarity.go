package eval

import (
	"math"
	"slices"

	"github.com/mapmatched/mmplug/adapters/embedded/lexical"
	"github.com/mapmatched/mmplug/internal/kernel"
	"github.com/mapmatched/mmplug/mapmatched"
)

// sparse is a vector over terms, of length 1, or empty.
type sparse struct {
	terms   []uint32 // ascending
	weights []float64
}

// termVectors are the tf·idf vectors of all chunks, terms counted as 1 + ln tf.
func (ix *index) termVectors() []sparse {
	vectors := make([]sparse, len(ix.chunks))
	numbers := map[string]uint32{}
	for i := range ix.chunks {
		terms := lexical.QueryTerms(ix.text(i))
		type entry struct {
			number uint32
			weight float64
		}
		entries := make([]entry, 0, len(terms))
		squares := 0.0
		for _, t := range terms {
			number, known := numbers[t.Term]
			if !known {
				number = uint32(len(numbers))
				numbers[t.Term] = number
			}
			idf, _ := ix.words.IDF(t.Term)
			weight := float64((1 + mapmatched.Log(t.Weight)) * idf)
			squares += float64(weight * weight)
			entries = append(entries, entry{number, weight})
		}
		slices.SortFunc(entries, func(a, b entry) int { return int(a.number) - int(b.number) })
		norm := math.Sqrt(squares)
		v := sparse{make([]uint32, len(entries)), make([]float64, len(entries))}
		for j, e := range entries {
			v.terms[j], v.weights[j] = e.number, e.weight/norm
		}
		vectors[i] = v
	}
	return vectors
}

func (a sparse) dot(b sparse) float64 {
	sum := 0.0
	for i, j := 0, 0; i < len(a.terms) && j < len(b.terms); {
		switch {
		case a.terms[i] < b.terms[j]:
			i++
		case b.terms[j] < a.terms[i]:
			j++
		default:
			sum += float64(a.weights[i] * b.weights[j])
			i++
			j++
		}
	}
	return sum
}

// similarity returns how alike two chunks are: the cosine of their vectors, or
// without the dense arm of their tf·idf vectors.
func (c *Collection) similarity(a, b uint32) float64 {
	if c.arm != ArmLexical {
		return float64(kernel.Dot(c.index.vectors[a], c.index.vectors[b]))
	}
	vectors := c.tfidf()
	return vectors[a].dot(vectors[b])
}
