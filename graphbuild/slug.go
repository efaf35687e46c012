package graphbuild

import (
	"strconv"
	"strings"
	"unicode"
)

// slugger hands out the anchors of the headings of one document, as GitHub
// does: lower case, only letters, marks, digits, "_" and its kin, "-" and
// spaces, which become "-"; the second heading of a name gets "-1", the next
// "-2", with numbers skipped that another heading has taken.
type slugger struct {
	taken map[string]bool
	next  map[string]int // number to try next, by plain slug
}

func newSlugger() *slugger {
	return &slugger{taken: map[string]bool{}, next: map[string]int{}}
}

func (s *slugger) slug(heading string) string {
	plain := slug(heading)
	name, n := plain, s.next[plain]
	if n > 0 {
		name = plain + "-" + strconv.Itoa(n)
	}
	for s.taken[name] {
		n++
		name = plain + "-" + strconv.Itoa(n)
	}
	s.taken[name] = true
	s.next[plain] = n + 1
	return name
}

func slug(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-', unicode.In(r, unicode.L, unicode.M, unicode.Nd, unicode.Nl, unicode.Pc):
			return unicode.ToLower(r)
		}
		return -1
	}, heading)
}
