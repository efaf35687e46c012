package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"strings"
	"unicode"

	"golang.org/x/term"
	"golang.org/x/text/width"
)

// writeJSON writes v with two spaces of indentation and a final newline.
func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// sink is a stream that remembers its first error, for writers that do not
// report theirs.
type sink struct {
	io.Writer
	err error
}

// Write implements io.Writer.
func (s *sink) Write(p []byte) (int, error) {
	n, err := s.Writer.Write(p)
	if s.err == nil {
		s.err = err
	}
	return n, err
}

// terminal returns the terminal that a stream is, nil when it is none.
func terminal(stream any) *os.File {
	if s, isSink := stream.(*sink); isSink {
		stream = s.Writer
	}
	if f, isFile := stream.(*os.File); isFile && term.IsTerminal(int(f.Fd())) {
		return f
	}
	return nil
}

// writeTurns writes {"turns": […]} as writeJSON would, one turn at a time.
func writeTurns(w io.Writer, turns func(write func(any) error) error) error {
	out := bufio.NewWriter(w)
	separator := "\n    "
	_, err := out.WriteString("{\n  \"turns\": [")
	if err != nil {
		return err
	}
	err = turns(func(turn any) error {
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		enc.SetIndent("    ", "  ")
		if err := enc.Encode(turn); err != nil {
			return err
		}
		_, err := out.WriteString(separator + strings.TrimRight(b.String(), "\n"))
		separator = ",\n    "
		return err
	})
	if err != nil {
		return err
	}
	end := "\n  ]\n}\n"
	if separator == "\n    " {
		end = "]\n}\n" // no turns
	}
	if _, err := out.WriteString(end); err != nil {
		return err
	}
	return out.Flush()
}

// isTerminal reports whether a stream is one.
func isTerminal(stream any) bool { return terminal(stream) != nil }

// lineWidth is how many columns of w to fill.
func lineWidth(w io.Writer) int {
	f := terminal(w)
	if f == nil {
		return 100
	}
	columns, _, err := term.GetSize(int(f.Fd()))
	if err != nil || columns <= 0 {
		return 80
	}
	return max(columns, 20)
}

// style colours text on terminals, unless NO_COLOR is set.
type style struct{ on bool }

func styleFor(w io.Writer) style {
	return style{isTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
}

func (s style) bold(text string) string  { return s.paint("1", text) }
func (s style) green(text string) string { return s.paint("32", text) }
func (s style) red(text string) string   { return s.paint("31", text) }
func (s style) dim(text string) string   { return s.paint("2", text) }

func (s style) paint(code, text string) string {
	if !s.on {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// snippet puts text on one line of at most so many columns, without control
// characters.
func snippet(text string, most int) string {
	var b strings.Builder
	for _, field := range strings.Fields(text) {
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(printable(field))
		if b.Len() > 4*most {
			break
		}
	}
	line := b.String()
	if columns(line) <= most {
		return line
	}
	room := most - 1
	for i, r := range line {
		if room -= runeColumns(r); room < 0 {
			return line[:i] + "…"
		}
	}
	return line
}

// columns is how many columns of a terminal a text takes.
func columns(text string) int {
	n := 0
	for _, r := range text {
		n += runeColumns(r)
	}
	return n
}

func runeColumns(r rune) int {
	if unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf) {
		return 0
	}
	if k := width.LookupRune(r).Kind(); k == width.EastAsianWide || k == width.EastAsianFullwidth {
		return 2
	}
	return 1
}

// printable drops what could drive a terminal.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			return -1
		}
		return r
	}, text)
}

// table writes rows under a header, columns two spaces apart. Columns named in
// right are aligned right.
func table(w io.Writer, header []string, rows [][]string, right ...int) error {
	widths := make([]int, len(header))
	for _, row := range append([][]string{header}, rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], columns(cell))
		}
	}
	isRight := make([]bool, len(header))
	for _, i := range right {
		isRight[i] = true
	}
	dashes := make([]string, len(header))
	for i, n := range widths {
		dashes[i] = strings.Repeat("-", n)
	}
	var b bytes.Buffer
	for _, row := range append([][]string{header, dashes}, rows...) {
		var line strings.Builder
		for i, cell := range row {
			pad := strings.Repeat(" ", widths[i]-columns(cell))
			if isRight[i] {
				line.WriteString(pad + cell)
			} else {
				line.WriteString(cell + pad)
			}
			line.WriteString("  ")
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	_, err := w.Write(b.Bytes())
	return err
}
