package faiss

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"unicode/utf8"
)

// Entry says which chunk a vector of the index is of.
type Entry struct {
	ID       string          // of the chunk, unique, not empty
	Text     string          // of the chunk, may be empty
	Metadata json.RawMessage // a JSON object, nil for none
	FaissID  *int64          // ID of the vector in the index; nil means the position of the entry
}

// ParseEntries reads entries from JSON Lines: on each line the chunk ID as a
// string, or an object with the fields
//
//	id        string, required
//	text      string
//	metadata  object
//	faiss_id  integer: the ID of the vector in an index with IDs of its own
//
// Without faiss_id, the line n counted from 0 is the vector of FAISS ID n; the
// field is on all lines or none. Anything else is an error that names the line:
// an unknown field, a field given twice, an empty or repeated ID, a blank line,
// text that is not UTF-8, a byte order mark.
func ParseEntries(data []byte) ([]Entry, error) {
	if bytes.HasPrefix(data, []byte("version https://git-lfs")) {
		return nil, errors.New("it is a Git LFS pointer, not the file itself: fetch it with git lfs pull")
	}
	if bytes.HasPrefix(data, []byte("\xef\xbb\xbf")) {
		return nil, errors.New("line 1: it begins with a UTF-8 byte order mark (EF BB BF): save the file as UTF-8 without it")
	}
	var entries []Entry
	first := map[string]int{} // line of an ID
	number := 0
	for len(data) > 0 {
		number++
		line, rest, _ := bytes.Cut(data, []byte{'\n'})
		data = rest
		e, err := parseEntry(bytes.TrimSuffix(line, []byte{'\r'}))
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		if at, again := first[e.ID]; again {
			return nil, fmt.Errorf("line %d: the chunk ID %q is on line %d too; give every vector the ID of its own chunk", number, e.ID, at)
		}
		first[e.ID] = number
		entries = append(entries, e)
		if (e.FaissID == nil) != (entries[0].FaissID == nil) {
			return nil, fmt.Errorf("line %d: faiss_id is on some lines and not on others; give it on all or none", number)
		}
	}
	return entries, nil
}

func parseEntry(line []byte) (e Entry, err error) {
	switch {
	case len(bytes.TrimSpace(line)) == 0:
		return e, errors.New("it is blank; give a chunk ID for every vector")
	case !utf8.Valid(line):
		return e, errors.New("it is not UTF-8")
	case !json.Valid(line):
		return e, fmt.Errorf("%s is not one JSON value; write a string or an object", excerpt(line))
	}
	if err := json.Unmarshal(line, &e.ID); err == nil {
		return e, e.check()
	}
	if trimmed := bytes.TrimSpace(line); trimmed[0] != '{' {
		return e, fmt.Errorf("%s is neither a string nor an object", excerpt(trimmed))
	}
	if err := checkKeys(json.NewDecoder(bytes.NewReader(line))); err != nil {
		return e, err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(line, &fields); err != nil {
		return e, err
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		value := fields[name]
		var to any
		switch name {
		case "id":
			to = &e.ID
		case "text":
			to = &e.Text
		case "metadata":
			if value[0] != '{' {
				return e, fmt.Errorf("metadata is %s, want an object", excerpt(value))
			}
			to = &e.Metadata
		case "faiss_id":
			to = &e.FaissID
		default:
			return e, fmt.Errorf("the field %q is unknown; the fields are id, text, metadata and faiss_id", name)
		}
		if string(value) == "null" {
			return e, fmt.Errorf("%s is null; leave it out", name)
		}
		if err := json.Unmarshal(value, to); err != nil {
			return e, fmt.Errorf("%s is %s, which is of the wrong type or out of range", name, excerpt(value))
		}
	}
	if _, given := fields["id"]; !given {
		return e, errors.New("the field id is missing")
	}
	return e, e.check()
}

// check reports an entry that cannot be.
func (e *Entry) check() error {
	switch {
	case e.ID == "":
		return errors.New("the chunk ID is empty")
	case e.FaissID != nil && *e.FaissID < 0:
		return fmt.Errorf("faiss_id is %d; negative IDs stand for no vector", *e.FaissID)
	case e.Metadata != nil && !json.Valid(e.Metadata):
		return fmt.Errorf("the metadata of chunk %q is not JSON: %s", e.ID, excerpt(e.Metadata))
	}
	return nil
}

// checkKeys reports a key that an object within the next value has twice.
func checkKeys(d *json.Decoder) error {
	t, err := d.Token()
	if err != nil {
		return err
	}
	delim, nested := t.(json.Delim)
	if !nested {
		return nil
	}
	seen := map[string]bool{}
	for d.More() {
		if delim == '{' {
			key, err := d.Token()
			if err != nil {
				return err
			}
			name := key.(string)
			if seen[name] {
				return fmt.Errorf("the field %q is given twice", name)
			}
			seen[name] = true
		}
		if err := checkKeys(d); err != nil {
			return err
		}
	}
	_, err = d.Token() // the end of it
	return err
}

// excerpt quotes the beginning of a value.
func excerpt(b []byte) string {
	const most = 40
	if len(b) > most {
		return fmt.Sprintf("%q…", strings.ToValidUTF8(string(b[:most]), ""))
	}
	return fmt.Sprintf("%q", b)
}

// metadata decodes the metadata of an entry, anew for each caller. Integers are
// int64 where they fit, other numbers float64.
func (e *Entry) metadata() (map[string]any, error) {
	if e.Metadata == nil {
		return nil, nil
	}
	d := json.NewDecoder(bytes.NewReader(e.Metadata))
	d.UseNumber()
	var m map[string]any
	if err := d.Decode(&m); err != nil {
		return nil, fmt.Errorf("metadata of chunk %q: %w", e.ID, err)
	}
	for k, v := range m {
		m[k] = plainNumbers(v)
	}
	return m, nil
}

func plainNumbers(v any) any {
	switch v := v.(type) {
	case json.Number:
		if i, err := v.Int64(); err == nil {
			return i
		}
		if f, err := v.Float64(); err == nil {
			return f
		}
		return v.String() // beyond what a float64 holds
	case map[string]any:
		for k := range v {
			v[k] = plainNumbers(v[k])
		}
	case []any:
		for i := range v {
			v[i] = plainNumbers(v[i])
		}
	}
	return v
}

// ReadEntries reads the entries of a file, see [ParseEntries].
func ReadEntries(path string) ([]Entry, error) {
	f, err := os.Open(path)
	if err != nil {
		var pathError *fs.PathError
		if errors.As(err, &pathError) {
			err = pathError.Err
		}
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	defer func() { _ = f.Close() }() // only read
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: it is not a regular file", path)
	}
	data, err := io.ReadAll(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	entries, err := ParseEntries(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return entries, nil
}
