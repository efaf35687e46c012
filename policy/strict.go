package policy

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// strict compares what files say with the structs of a policy and collects
// what does not fit.
type strict struct {
	problems Problems
	file     string              // the file that is being read
	places   map[string]location // where every known key is, readable or not
	meant    map[string]bool     // keys that were misspelt, and sections that are no mapping
}

// location is where a key is.
type location struct {
	file string
	line int
}

// maxProblems is how many problems are listed.
const maxProblems = 200

func newStrict() *strict { return &strict{places: map[string]location{}, meant: map[string]bool{}} }

func (s *strict) add(line int, key, format string, args ...any) {
	s.problems = append(s.problems, &Problem{Path: s.file, Line: line, Key: key, Err: fmt.Errorf(format, args...)})
}

// found notes where a key is. A key that is one value may be in one file
// only, except "schema", which is in all.
func (s *strict) found(key string, line int, value bool) {
	if first, twice := s.places[key]; twice && first.file != s.file {
		if value && key != "schema" {
			s.add(line, key, "key `%s` is set in %s too, in line %d: keep one", key, first.file, first.line)
		}
		return
	}
	s.places[key] = location{s.file, line}
}

// section reads a mapping whose keys are the fields of t. Keys that are left
// out are left out of the result.
func (s *strict) section(t reflect.Type, b *branch, path string) map[string]any {
	fields := fieldsOf(t)
	m := map[string]any{}
	for _, e := range b.entries {
		own := join(path, e.key)
		i := slices.IndexFunc(fields, func(f field) bool { return f.key == e.key })
		if i < 0 {
			s.unknown(b, e, path, fields)
			continue
		}
		s.found(own, e.line, fields[i].typ.Kind() != reflect.Struct)
		if v, ok := s.value(fields[i].typ, e.value, own); ok {
			m[e.key] = v
		}
	}
	return m
}

// unknown reports a key that is not in a section.
func (s *strict) unknown(b *branch, e entry, path string, fields []field) {
	own := join(path, e.key)
	if len(e.key) > 100 || len(s.problems) >= maxProblems { // no time for hints
		s.add(e.line, own, "unknown key %s", quoteShort(own))
		return
	}
	if head, rest, dotted := strings.Cut(e.key, "."); dotted {
		for _, other := range b.entries {
			if other.key == head {
				s.meant[own] = true
				s.add(e.line, own, "key `%s` conflicts with key `%s` of line %d: write `%s` once, with `%s` below it", printablePath(own), printablePath(join(path, head)), other.line, printablePath(join(path, head)), printablePath(rest))
				return
			}
		}
		if slices.Contains(knownPaths(), own) {
			s.meant[own] = true
			s.add(e.line, own, "dotted key `%s`: write `%s` below `%s`", own, rest, join(path, head))
			return
		}
	}
	suggest := func(known string) {
		s.meant[known] = true
		s.add(e.line, own, "unknown key `%s`, did you mean `%s`?", printablePath(own), known)
	}
	siblings := make([]string, len(fields))
	for i, f := range fields {
		siblings[i] = f.key
	}
	if best := nearest(e.key, siblings); best != "" {
		suggest(join(path, best))
		return
	}
	for _, known := range knownPaths() {
		if strings.EqualFold(known, e.key) || strings.EqualFold(lastKey(known), e.key) {
			suggest(known)
			return
		}
	}
	where := "a policy"
	if path != "" {
		where = "`" + path + "`"
	}
	s.add(e.line, own, "unknown key `%s`: %s has %s", printablePath(own), where, strings.Join(siblings, ", "))
}

// value reads a value of type t: map[string]any, []any, string, bool, int64,
// float64 or nil, and whether it fits.
func (s *strict) value(t reflect.Type, b *branch, path string) (any, bool) {
	if nullable(t) {
		if b.shape == shapeNull {
			return nil, true
		}
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Struct:
		if b.shape == shapeMapping {
			return s.section(t, b, path), true
		}
		s.meant[path] = true
		return s.wrong(b, path, "a mapping")
	case reflect.Map:
		if b.shape == shapeMapping {
			return s.table(t, b, path), true
		}
		return s.wrong(b, path, "a mapping")
	case reflect.Slice:
		if b.shape == shapeList {
			return s.list(t, b, path), true
		}
		return s.wrong(b, path, "a list")
	case reflect.Bool:
		if b.shape == shapeBool {
			return strings.EqualFold(b.text, "true"), true
		}
		return s.wrong(b, path, "true or false")
	case reflect.Int:
		return s.integer(b, path)
	case reflect.Float64:
		return s.number(b, path, "a number")
	}
	if b.shape != shapeText {
		return s.wrong(b, path, "a text")
	}
	return b.text, s.printable(b.text, b.line, path)
}

func (s *strict) wrong(b *branch, path, want string) (any, bool) {
	hint := ""
	switch {
	case b.shape == shapeNull:
		hint = ": give a value or leave the key out"
	case b.shape == shapeText && (want == "a number" || want == "a whole number") && numberForm.MatchString(b.text):
		if _, err := number(b.text); err != nil { // YAML takes it for a text, quoted or not
			s.add(b.line, path, "`%s` is %w", printablePath(path), err)
			return nil, false
		}
		hint = ": remove the quotes"
	case b.shape == shapeText && want == "true or false" && (b.text == "true" || b.text == "false"):
		hint = ": remove the quotes"
	case want == "a text" && (b.shape == shapeNumber || b.shape == shapeBool || b.shape == shapeOther):
		hint = ": put quotes around it"
	}
	s.add(b.line, path, "`%s` is %s, it must be %s%s", printablePath(path), b.describe(), want, hint)
	return nil, false
}

func (s *strict) number(b *branch, path, want string) (any, bool) {
	if b.shape != shapeNumber {
		return s.wrong(b, path, want)
	}
	x, err := number(b.text)
	if err != nil {
		s.add(b.line, path, "`%s` is %w", printablePath(path), err)
		return nil, false
	}
	return x, true
}

// maxWhole is the largest whole number that every format and reader keeps.
const maxWhole = 1<<53 - 1

func (s *strict) integer(b *branch, path string) (any, bool) {
	v, ok := s.number(b, path, "a whole number")
	if !ok {
		return nil, false
	}
	switch x := v.(float64); {
	case x != math.Trunc(x):
		s.add(b.line, path, "`%s` is the number %s, it must be a whole number: it is not rounded", printablePath(path), clip(b.text, 60))
		return nil, false
	case math.Abs(x) > maxWhole:
		s.add(b.line, path, "`%s` is the number %s, it must be at most %d in size", printablePath(path), clip(b.text, 60), int64(maxWhole))
		return nil, false
	default:
		return int64(x), true
	}
}

// table reads a mapping whose keys the writer chooses. Each of its values is
// complete.
func (s *strict) table(t reflect.Type, b *branch, path string) map[string]any {
	m := map[string]any{}
	for _, e := range b.entries {
		own := join(path, e.key)
		switch {
		case e.key == "":
			s.add(e.line, path, "`%s` has an empty key", path)
			continue
		case strings.Contains(e.key, "."):
			s.add(e.line, own, "dotted key `%s`: a name in `%s` has no dots", printablePath(own), path)
			continue
		case !s.printable(e.key, e.line, own):
			continue
		}
		if v, ok := s.item(t, e.value, own, e.line); ok {
			m[e.key] = v
		}
	}
	return m
}

func (s *strict) list(t reflect.Type, b *branch, path string) []any {
	list := []any{}
	for i, item := range b.items {
		if v, ok := s.item(t, item, join(path, strconv.Itoa(i)), item.line); ok {
			list = append(list, v)
		}
	}
	return list
}

// item reads a value of a table or list, which is complete.
func (s *strict) item(t reflect.Type, b *branch, path string, line int) (any, bool) {
	s.places[path] = location{s.file, line}
	v, ok := s.value(t.Elem(), b, path)
	if ok && t.Elem().Kind() == reflect.Struct {
		s.complete(t.Elem(), path)
	}
	return v, ok
}

// printable refuses texts that do not look like what they are.
func (s *strict) printable(text string, line int, path string) bool {
	if i := strings.IndexFunc(text, func(r rune) bool {
		return r == unicode.ReplacementChar || !unicode.IsGraphic(r) || unicode.Is(unicode.Zl, r) || unicode.Is(unicode.Zp, r)
	}); i >= 0 {
		r := []rune(text[i:])[0]
		s.add(line, printablePath(path), "`%s` contains the character %U, which cannot be seen: leave it out", printablePath(path), r)
		return false
	}
	return true
}

// printablePath quotes a path that came from a file for a message.
func printablePath(path string) string {
	quoted := strconv.Quote(path)
	return clip(quoted[1:len(quoted)-1], 200)
}

// complete reports the keys that are missing in a section that is given: it is
// given whole or not at all. Keys that may be null may be left out.
func (s *strict) complete(t reflect.Type, path string) {
	for _, f := range fieldsOf(t) {
		own := join(path, f.key)
		_, given := s.places[own]
		switch {
		case nullable(f.typ) || s.meant[own]:
		case given && f.typ.Kind() == reflect.Struct:
			s.complete(f.typ, own)
		case given:
		default:
			s.missing(own, path)
		}
	}
}

func (s *strict) missing(key, section string) {
	hint := ""
	if standard, ok := defaultOf(key); ok {
		hint = "; its default is " + jsonText(standard)
	}
	at := s.places[section]
	s.problems = append(s.problems, &Problem{Path: at.file, Line: at.line, Key: key,
		Err: fmt.Errorf("missing key `%s`: what is given of `%s` must be whole%s", printablePath(key), printablePath(section), hint)})
}

// defaultOf is the default of a key that has one.
func defaultOf(path string) (any, bool) {
	var v any = treeOf(Default())
	for key := range strings.SplitSeq(path, ".") {
		m, isMapping := v.(map[string]any)
		if !isMapping {
			return nil, false
		}
		if v, isMapping = m[key]; !isMapping {
			return nil, false
		}
	}
	return v, true
}
