package registry

import "strings"

// suggest returns a hint such as `; did you mean "limit"?` when one of the
// known words is near word, else "". The first of the nearest wins.
func suggest(word string, known []string) string {
	best, bestDistance := "", 3 // up to two edits, fewer than the word has letters
	for _, k := range known {
		if d := editDistance(strings.ToLower(word), k); d < bestDistance && d < len(k) {
			best, bestDistance = k, d
		}
	}
	if best == "" {
		return ""
	}
	return "; did you mean \"" + best + "\"?"
}

// editDistance is the Levenshtein distance of two words in bytes.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			substitute := diagonal
			if a[i] != b[j] {
				substitute++
			}
			diagonal = row[j+1]
			row[j+1] = min(substitute, diagonal+1, row[j]+1)
		}
	}
	return row[len(b)]
}
