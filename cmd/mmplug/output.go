package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"
)

// writeJSON writes v with two spaces of indentation and a final newline.
func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// isTerminal reports whether a stream is one.
func isTerminal(stream any) bool {
	f, isFile := stream.(*os.File)
	return isFile && term.IsTerminal(int(f.Fd()))
}

// lineWidth is how many columns of w to fill.
func lineWidth(w io.Writer) int {
	if isTerminal(w) {
		if width, _, err := term.GetSize(int(w.(*os.File).Fd())); err == nil && width >= 40 {
			return width
		}
	}
	return 100
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

// snippet puts text on one line of at most width runes, without control
// characters.
func snippet(text string, width int) string {
	var b strings.Builder
	for _, field := range strings.Fields(text) {
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(printable(field))
		if b.Len() > 4*width {
			break
		}
	}
	line := b.String()
	if utf8.RuneCountInString(line) <= width {
		return line
	}
	return string([]rune(line)[:max(width-1, 0)]) + "…"
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
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	isRight := make([]bool, len(header))
	for _, i := range right {
		isRight[i] = true
	}
	dashes := make([]string, len(header))
	for i, width := range widths {
		dashes[i] = strings.Repeat("-", width)
	}
	var b bytes.Buffer
	for _, row := range append([][]string{header, dashes}, rows...) {
		var line strings.Builder
		for i, cell := range row {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
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

// writeFile replaces a file in one step: a reader, or a crash, sees the old
// content or the new one. "-" is standard output.
func writeFile(std stdio, path string, write func(io.Writer) error) (err error) {
	if path == "-" {
		return write(std.out)
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		// A device or a pipe cannot be replaced, only written to.
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		if err := write(f); err != nil {
			f.Close() //nolint:errcheck // the first error counts
			return err
		}
		return f.Close()
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".new-*")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			f.Close()           //nolint:errcheck // closed already, or the first error counts
			os.Remove(f.Name()) //nolint:errcheck // nothing more to be done
			err = fmt.Errorf("write %s: %w", path, err)
		}
	}()
	if err := write(f); err != nil {
		return err
	}
	if err := f.Chmod(0o644); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
