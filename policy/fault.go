package policy

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/mapmatched/mmplug/mapmatched"
)

// Fault is one value of a policy that is out of its range. It wraps
// mapmatched.ErrInvalidConfig.
type Fault struct {
	Key   string // path of the value, such as "fusion.alpha"
	Value any    // the value found
	Want  string // what it must be, in words
}

// Error implements error.
func (f *Fault) Error() string {
	value := f.Value
	if s, ok := value.(string); ok {
		value = fmt.Sprintf("%q", s)
	}
	return fmt.Sprintf("%s is %v: it must be %s", f.Key, value, f.Want)
}

// Unwrap returns mapmatched.ErrInvalidConfig.
func (f *Fault) Unwrap() error { return mapmatched.ErrInvalidConfig }

// Faults lists the faults that err joins, in their order.
func Faults(err error) []*Fault {
	if f, ok := err.(*Fault); ok { //nolint:errorlint // the tree is walked by hand, to find all of them
		return []*Fault{f}
	}
	switch e := err.(type) { //nolint:errorlint // as above
	case interface{ Unwrap() []error }:
		var all []*Fault
		for _, one := range e.Unwrap() {
			all = append(all, Faults(one)...)
		}
		return all
	case interface{ Unwrap() error }:
		return Faults(e.Unwrap())
	}
	return nil
}

// faults collects the faults of one section.
type faults struct {
	section string
	errs    []error
}

func (f *faults) add(key string, value any, want string, args ...any) {
	f.errs = append(f.errs, &Fault{f.section + "." + key, value, fmt.Sprintf(want, args...)})
}

func (f *faults) err() error { return errors.Join(f.errs...) }

// version checks the key "version".
func (f *faults) version(kind Kind, tag string) {
	if err := knownTag(kind, tag); err != nil {
		f.add("version", tag, "%s", err.Error())
	}
}

// oneOf checks an enumeration.
func oneOf[S ~string](f *faults, key string, value S, choices ...S) {
	if slices.Contains(choices, value) {
		return
	}
	names := make([]string, len(choices))
	for i, c := range choices {
		names[i] = string(c)
	}
	f.add(key, string(value), "%s%s", orList(names), didYouMean(string(value), names))
}

// orList is "a", "a or b", "a, b or c".
func orList(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

func (f *faults) stage(key string, s Stage) { oneOf(f, key, s, StageOff, StageShadow, StageActive) }

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// notNegative checks for a finite number of at least 0.
func (f *faults) notNegative(key string, x float64) {
	if !finite(x) || x < 0 {
		f.add(key, x, "finite and at least 0")
	}
}

// positive checks for a finite number above 0.
func (f *faults) positive(key string, x float64) {
	if !finite(x) || x <= 0 {
		f.add(key, x, "finite and above 0")
	}
}

// within checks for a number between low and high, both included.
func (f *faults) within(key string, x, low, high float64) {
	if !(x >= low && x <= high) {
		f.add(key, x, "between %v and %v", low, high)
	}
}

// finite checks for a number that is neither NaN nor infinite.
func (f *faults) finite(key string, x float64) {
	if !finite(x) {
		f.add(key, x, "finite")
	}
}

// count checks for a whole number of at least low.
func (f *faults) count(key string, n, low int) {
	if n < low {
		f.add(key, n, "at least %d", low)
	}
}

var sha256Form = regexp.MustCompile(`^[0-9a-f]{64}$`)

// sha256 checks for a SHA-256 in hexadecimal.
func (f *faults) sha256(key, s string) {
	if !sha256Form.MatchString(s) {
		f.add(key, s, "a SHA-256: 64 lower-case hexadecimal digits")
	}
}

// sortedKeys are the keys of a map in ascending order.
func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
