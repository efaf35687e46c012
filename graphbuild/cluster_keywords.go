package graphbuild

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode"
)

// minWordRunes is how long a word has to be for a keyword.
const minWordRunes = 3

// Words cuts a text into words in lower case: runs of letters, marks and
// digits of at least three characters, not all of them digits. Runs of
// ideographs, kana and hangul give every two neighbouring characters.
func Words(text string) []string {
	var words []string
	for _, run := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.In(r, unicode.L, unicode.M, unicode.Nd) }) {
		runes := []rune(run)
		for at := 0; at < len(runes); {
			end := at + 1
			for end < len(runes) && isUnspaced(runes[end]) == isUnspaced(runes[at]) {
				end++
			}
			switch word := runes[at:end]; {
			case isUnspaced(word[0]):
				for i := range len(word) - 1 {
					words = append(words, string(word[i:i+2]))
				}
			case len(word) >= minWordRunes && slices.ContainsFunc(word, unicode.IsLetter):
				words = append(words, string(word))
			}
			at = end
		}
	}
	return words
}

// isUnspaced reports whether r belongs to a script without spaces between
// words.
func isUnspaced(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul)
}

// keywordFinder finds the keywords of clusters. Of a nil one there are none.
type keywordFinder struct {
	terms func(chunkID string) []string // each once
	idf   func(term string) float64
	most  int
}

func newKeywordFinder(source VectorSource, o *ClusterOptions) *keywordFinder {
	if o.Text == nil {
		return nil
	}
	cut := o.Terms
	if cut == nil {
		cut = Words
	}
	k := &keywordFinder{idf: o.IDF, most: o.Keywords}
	k.terms = func(chunkID string) []string { return uniqueStrings(slices.Clone(cut(o.Text(chunkID)))) }
	if k.idf == nil {
		chunks := map[string]int{} // that have the term
		for i := range source.Len() {
			for _, term := range k.terms(source.ID(i)) {
				chunks[term]++
			}
		}
		total := float64(source.Len())
		k.idf = func(term string) float64 {
			n := float64(chunks[term])
			return math.Log(1 + (total-n+0.5)/(n+0.5))
		}
	}
	return k
}

// of returns the keywords of a cluster: the terms with the greatest product of
// the number of members that have them and the idf, ties by term.
func (k *keywordFinder) of(members []string) []string {
	if k == nil {
		return []string{}
	}
	count := map[string]int{}
	for _, id := range members {
		for _, term := range k.terms(id) {
			count[term]++
		}
	}
	type scored struct {
		term  string
		score float64
	}
	var list []scored
	for term, n := range count {
		if score := float64(n) * k.idf(term); score > 0 {
			list = append(list, scored{term, score})
		}
	}
	slices.SortFunc(list, func(a, b scored) int { return cmp.Or(cmp.Compare(b.score, a.score), strings.Compare(a.term, b.term)) })
	keywords := []string{}
	for _, s := range list[:min(len(list), k.most)] {
		keywords = append(keywords, s.term)
	}
	return keywords
}
