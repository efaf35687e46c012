package eval

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"unicode/utf8"
)

// maxLine is the longest line of a file, in bytes.
const maxLine = 64 << 20

// lineReader gets the lines of a file, without what ends them, and is called
// with a nil line at the end.
type lineReader func(line []byte) error

// reading is a file that is read from front to back and digested on the way.
type reading struct {
	ctx  context.Context
	r    io.Reader
	sum  hash.Hash
	size int64
}

func newReading(ctx context.Context, r io.Reader) *reading {
	return &reading{ctx: ctx, r: r, sum: sha256.New()}
}

// Read implements io.Reader until the context is done.
func (f *reading) Read(p []byte) (int, error) {
	if err := f.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := f.r.Read(p)
	f.sum.Write(p[:n])
	f.size += int64(n)
	return n, err
}

func (f *reading) file(path string) File {
	return File{filepath.Base(path), f.size, hex.EncodeToString(f.sum.Sum(nil))}
}

// readLines gives each line of a file to line. Blank lines are passed over.
func readLines(ctx context.Context, path string, line lineReader) (File, error) {
	return openFile(ctx, path, func(f *reading) error { return scan(f, path, line) })
}

// openFile reads a file through and says what it was.
func openFile(ctx context.Context, path string, read func(*reading) error) (File, error) {
	f, err := os.Open(path)
	if err != nil {
		return File{}, err
	}
	defer func() { _ = f.Close() }() // was only read
	r := newReading(ctx, f)
	if err := read(r); err != nil {
		return File{}, err
	}
	if _, err := io.Copy(io.Discard, r); err != nil {
		return File{}, fmt.Errorf("%s: %w", path, err)
	}
	return r.file(path), nil
}

// scan gives each line of r to line and puts name and line number before its
// errors.
func scan(r io.Reader, name string, line lineReader) error {
	s := bufio.NewScanner(r)
	s.Buffer(make([]byte, 0, 64<<10), maxLine)
	number := 0
	for s.Scan() {
		number++
		text := bytes.TrimSpace(s.Bytes())
		if len(text) == 0 {
			continue
		}
		if err := line(text); err != nil {
			return fmt.Errorf("%s:%d: %w", name, number, err)
		}
	}
	switch err := s.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return fmt.Errorf("%s:%d: the line is longer than %d bytes", name, number+1, maxLine)
	case err != nil:
		return fmt.Errorf("%s: %w", name, err)
	}
	if err := line(nil); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// decodeLine reads a line that is one JSON object. Keys that v has not are
// passed over, as data sets have more of them than are used here.
func decodeLine(line []byte, v any) error {
	if !utf8.Valid(line) {
		return errors.New("it is not UTF-8")
	}
	if line[0] != '{' {
		return errors.New("it is no JSON object")
	}
	return jsonFault(json.Unmarshal(line, v))
}

// jsonFault says what is wrong with JSON, without the names of Go types.
func jsonFault(err error) error {
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		field := wrong.Field
		if field == "" {
			field = "the value"
		}
		return fmt.Errorf("%s is a JSON %s, wanted %s", field, wrong.Value, wanted(wrong.Type))
	}
	return err
}

// wanted is a type in the words of JSON.
func wanted(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Int:
		return "a whole number"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "an array"
	}
	return "an object"
}
