package policy

import "strings"

// didYouMean returns a hint such as `; did you mean "rrf_v1"?` when one of the
// known words is near word, else "". The first of the nearest wins.
func didYouMean(word string, known []string) string {
	if best := nearest(word, known); best != "" {
		return "; did you mean \"" + best + "\"?"
	}
	return ""
}

// nearest returns the known word with the fewest edits from word, whatever the
// case of its letters, or "" when none is within a third of its length.
func nearest(word string, known []string) string {
	best, fewest := "", 0
	for _, k := range known {
		n := edits(strings.ToLower(word), strings.ToLower(k))
		if n <= max(len(k)/3, 1) && n < len(k) && (best == "" || n < fewest) {
			best, fewest = k, n
		}
	}
	return best
}

// edits counts the insertions, deletions, substitutions and swaps of
// neighbours that turn a into b (optimal string alignment, in bytes).
func edits(a, b string) int {
	older, old, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range old {
		old[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := old[j-1]
			if a[i-1] != b[j-1] {
				change++
			}
			row[j] = min(change, old[j]+1, row[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], older[j-2]+1)
			}
		}
		older, old, row = old, row, older
	}
	return old[len(b)]
}
