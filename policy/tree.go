package policy

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Limits of a policy file.
const (
	MaxFileSize = 1 << 20 // bytes
	MaxNesting  = 16      // levels of mappings and lists
)

// shape is what a value of a policy file is, whatever the format.
type shape int

const (
	shapeNull shape = iota
	shapeBool
	shapeNumber
	shapeText
	shapeList
	shapeMapping
	shapeOther // such as a date
)

// branch is a value of a policy file and what is below it. All three formats
// are read into branches; everything after that is the same for them.
type branch struct {
	line    int // from 1
	shape   shape
	text    string    // a number as it was written, a text, "true" or "false", or what an other value is
	items   []*branch // of a list
	entries []entry   // of a mapping, in the order of the file
}

// entry is a key of a mapping with its value.
type entry struct {
	key   string
	line  int
	value *branch
}

// describe names a value in messages.
func (b *branch) describe() string {
	switch b.shape {
	case shapeNull:
		return "empty (null)"
	case shapeBool:
		return b.text
	case shapeNumber:
		return "the number " + clip(b.text, 60)
	case shapeText:
		return "the text " + quoteShort(b.text)
	case shapeList:
		return "a list"
	case shapeMapping:
		return "a mapping"
	}
	return b.text
}

// quoteShort quotes the beginning of a text.
func quoteShort(text string) string { return strconv.Quote(clip(text, 60)) }

// clip shortens a text to about a number of bytes.
func clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// numberForm is how numbers are written in all three formats: as in JSON.
var numberForm = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

// number reads a number as written. It is finite; −0 is 0.
func number(text string) (float64, error) {
	if !numberForm.MatchString(text) {
		switch text {
		case ".nan", ".NaN", ".NAN", "nan", "+nan", "-nan", ".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF", "-.inf", "-.Inf", "-.INF", "inf", "+inf", "-inf":
			return 0, fmt.Errorf("%s: a number must be finite", text)
		}
		return 0, fmt.Errorf("%s: write numbers in decimal, such as 60, 0.7 or 1e-6", clip(text, 60))
	}
	x, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0, fmt.Errorf("%s: too large for a number of 64 bits", clip(text, 60))
	}
	return x + 0, nil
}

// parser reads a file of one format. What it cannot read at all is one
// problem; what it can read but a policy may not contain are several.
type parser func(data []byte) (*branch, []*Problem)

// checkBytes refuses files that no format should see.
func checkBytes(data []byte) error {
	switch {
	case len(data) > MaxFileSize:
		return fmt.Errorf("the file has %d bytes: a policy has at most %d", len(data), MaxFileSize)
	case bytes.HasPrefix(data, []byte("\xef\xbb\xbf")):
		return errors.New("the file starts with a byte order mark: save it as UTF-8 without one")
	case bytes.HasPrefix(data, []byte("\xff\xfe")), bytes.HasPrefix(data, []byte("\xfe\xff")):
		return errors.New("the file is UTF-16: save it as UTF-8")
	case !utf8.Valid(data):
		return errors.New("the file is not valid UTF-8")
	case bytes.IndexByte(data, 0) >= 0:
		return errors.New("the file contains a zero byte: it is no text")
	case len(bytes.TrimSpace(data)) == 0:
		return errors.New(emptyFile)
	}
	return nil
}

const emptyFile = "the file is empty: see \"mmplug policy init\" for one to start from"

// tooDeep reports whether brackets are nested deeper than any policy needs,
// wherever they stand. It keeps parsers that recurse from deep recursion.
func tooDeep(data []byte) bool {
	depth := 0
	for _, c := range data {
		switch c {
		case '[', '{':
			if depth++; depth > 8*MaxNesting {
				return true
			}
		case ']', '}':
			depth = max(depth-1, 0)
		}
	}
	return false
}

var errNesting = fmt.Errorf("values are nested deeper than %d levels", MaxNesting)

// lineTable finds the line of a byte.
type lineTable []int // offsets of line ends

func newLineTable(data []byte) lineTable {
	var t lineTable
	for i, c := range data {
		if c == '\n' {
			t = append(t, i)
		}
	}
	return t
}

// at returns the line of the byte at an offset, from 1.
func (t lineTable) at(offset int) int {
	i, _ := slices.BinarySearch(t, offset)
	return i + 1
}

// duplicate returns the problem of a key that is set twice.
func duplicate(path string, line, first int) *Problem {
	text := fmt.Sprintf("key `%s` is set twice", printablePath(path))
	if first > 0 {
		text += fmt.Sprintf(", first in line %d", first)
	}
	return &Problem{Line: line, Key: path, Err: errors.New(text + ": keep one")}
}

// join appends a key to a path.
func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
