package plugins

import (
	"cmp"
	"fmt"
	"strings"
)

// validName reports whether s can be the name of a plugin: a-z, 0-9 and '-'
// between them. There is nothing in it that leads out of a directory.
func validName(s string) bool {
	if s == "" || len(s) > 64 {
		return false
	}
	for i, c := range s {
		letter := c >= 'a' && c <= 'z' || c >= '0' && c <= '9'
		if !letter && (c != '-' || i == 0 || i == len(s)-1 || s[i-1] == '-') {
			return false
		}
	}
	return true
}

// checkVersion expects up to four numbers with dots between them and, after a
// '-' or '+', letters, digits, '.' and '-': 1.10.0, 2.0.0-rc.1.
func checkVersion(s string) error {
	numbers, _ := cutVersion(s)
	ok := len(s) <= 64 && len(numbers) <= 4
	for _, n := range numbers {
		ok = ok && n != "" && strings.Trim(n, "0123456789") == ""
	}
	for _, c := range s {
		ok = ok && (c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || strings.ContainsRune(".-+", c))
	}
	if !ok {
		return fmt.Errorf("the version %q is not like 1.10.0 or 2.0.0-rc.1", cut(s, maxQuoted))
	}
	return nil
}

// cutVersion splits a version into its numbers and what follows a '-' or '+'.
func cutVersion(s string) (numbers []string, rest string) {
	if i := strings.IndexAny(s, "-+"); i >= 0 {
		s, rest = s[:i], s[i:]
	}
	return strings.Split(s, "."), rest
}

// compareVersions orders versions by their numbers, so that 1.9 is before
// 1.10; a missing number is 0. A version with a '-' part comes before the one
// without, and such parts compare piece by piece, numbers as numbers (Semantic
// Versioning 2.0.0, section 11). Versions that are equal so far compare as
// text, so that the order is total.
func compareVersions(a, b string) int {
	na, ra := cutVersion(a)
	nb, rb := cutVersion(b)
	for i := range max(len(na), len(nb)) {
		if c := compareNumbers(piece(na, i), piece(nb, i)); c != 0 {
			return c
		}
	}
	ra, _, _ = strings.Cut(ra, "+")
	rb, _, _ = strings.Cut(rb, "+")
	if (ra == "") != (rb == "") {
		return cmp.Compare(rb, ra) // "" is after "-rc"
	}
	pa, pb := strings.Split(ra, "."), strings.Split(rb, ".")
	for i := range min(len(pa), len(pb)) {
		x, y := strings.TrimPrefix(pa[i], "-"), strings.TrimPrefix(pb[i], "-")
		xNumber, yNumber := isNumber(x), isNumber(y)
		c := cmp.Compare(x, y)
		switch {
		case xNumber && yNumber:
			c = compareNumbers(x, y)
		case xNumber:
			c = -1
		case yNumber:
			c = 1
		}
		if c != 0 {
			return c
		}
	}
	return cmp.Or(cmp.Compare(len(pa), len(pb)), cmp.Compare(a, b))
}

func isNumber(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

func piece(numbers []string, i int) string {
	if i < len(numbers) {
		return numbers[i]
	}
	return "0"
}

// compareNumbers compares decimal digits of any length.
func compareNumbers(a, b string) int {
	a, b = strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}
