package main

import (
	"hash/fnv"
	"math"
	"strings"
	"unicode"
)

// dimension of the vectors.
const dimension = 512

// embed is a toy embedding model, so that the example needs no model file: each
// word adds to the component that its hash says, more the longer the word is,
// and the vector is scaled to length 1. It knows words and no meanings. A real
// mapmatched.Embedder takes its place.
func embed(text string) []float32 {
	counts := make([]float64, dimension)
	for _, word := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) }) {
		if len(word) < 3 {
			continue
		}
		word = strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(word, "ing"), "s"), "e") // renewing, renews, renew
		h := fnv.New32a()
		_, _ = h.Write([]byte(word)) // it never fails
		counts[h.Sum32()%dimension] += float64(len(word))
	}
	sum := 0.0
	for j, n := range counts {
		counts[j] = math.Sqrt(n) // a word ten times is not ten words
		sum += n
	}
	v := make([]float32, dimension)
	if sum > 0 {
		for j, n := range counts {
			v[j] = float32(n / math.Sqrt(sum))
		}
	}
	return v
}
