package policy

import (
	"fmt"
	"strings"
)

// Problem is one thing that is wrong with a policy file.
type Problem struct {
	Path string // the file, as it was named to the loader
	Line int    // from 1, 0 when the parser does not say
	Key  string // path of the key, such as "fusion.alpha", "" for the file as a whole
	Err  error  // what is wrong and what to do, in one line
}

// Error implements error: file, line and what is wrong.
func (p *Problem) Error() string {
	if p.Line == 0 {
		return fmt.Sprintf("%s: %v", p.Path, p.Err)
	}
	return fmt.Sprintf("%s:%d: %v", p.Path, p.Line, p.Err)
}

// Unwrap returns what is wrong without the place.
func (p *Problem) Unwrap() error { return p.Err }

// Problems is everything that is wrong with a policy, in the order of the
// files and their lines. It is an error when it is not empty.
type Problems []*Problem

// Error implements error: one line for each problem.
func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, one := range p {
		lines[i] = one.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the problems one by one.
func (p Problems) Unwrap() []error {
	errs := make([]error, len(p))
	for i, one := range p {
		errs[i] = one
	}
	return errs
}
