package eval

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sort"
)

// readObjects gives each object of a JSON array, or of JSON lines, to read, one
// at a time, and puts name and line before its errors.
func readObjects[T any](r io.Reader, name string, read func(T) error) error {
	lines := &lineCounter{r: r}
	in := bufio.NewReader(lines)
	first, err := firstByte(in)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	skipped := lines.at - int64(in.Buffered())
	dec := json.NewDecoder(in)
	at := func(err error) error {
		return fmt.Errorf("%s:%d: %w", name, lines.line(skipped+dec.InputOffset()), err)
	}
	isArray := first == '['
	if isArray {
		if _, err := dec.Token(); err != nil {
			return at(err)
		}
	}
	for !isArray || dec.More() {
		var v T
		err := dec.Decode(&v)
		if errors.Is(err, io.EOF) && !isArray {
			return nil
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = errors.New("the file ends in the middle")
		}
		if err != nil {
			return at(jsonFault(err))
		}
		if err := read(v); err != nil {
			return at(err)
		}
	}
	if _, err := dec.Token(); err != nil {
		return at(errors.New("the array has no end"))
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return at(errors.New("something follows the array"))
	}
	return nil
}

// firstByte is the first byte of a JSON text that counts. It stays unread.
func firstByte(in *bufio.Reader) (byte, error) {
	for {
		b, err := in.ReadByte()
		if errors.Is(err, io.EOF) {
			return 0, errors.New("it is empty")
		}
		if err != nil {
			return 0, err
		}
		if b != ' ' && b != '\t' && b != '\r' && b != '\n' {
			return b, in.UnreadByte()
		}
	}
}

// lineCounter remembers where the lines of what is read through it end.
type lineCounter struct {
	r    io.Reader
	at   int64
	ends []int64
}

// Read implements io.Reader.
func (l *lineCounter) Read(p []byte) (int, error) {
	n, err := l.r.Read(p)
	for i, b := range p[:n] {
		if b == '\n' {
			l.ends = append(l.ends, l.at+int64(i))
		}
	}
	l.at += int64(n)
	return n, err
}

// line is the number of the line, from 1, that the byte before offset is on.
func (l *lineCounter) line(offset int64) int {
	return 1 + sort.Search(len(l.ends), func(i int) bool { return l.ends[i] >= offset-1 })
}
