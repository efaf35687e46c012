package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestSnippet(t *testing.T) {
	for _, c := range []struct {
		text  string
		width int
		want  string
	}{
		{"", 10, ""},
		{"  two\n\twords  ", 10, "two words"},
		{"exactly 10", 10, "exactly 10"},
		{"exactly 11!", 10, "exactly 1…"},
		{"故乡故乡故", 10, "故乡故乡故"},
		{"故乡故乡故x", 10, "故乡故乡…"},
		{"x故乡故乡故", 10, "x故乡故乡…"},
		{"e\u0301e\u0301e\u0301", 3, "e\u0301e\u0301e\u0301"},
		{"🚀🚀🚀", 5, "🚀🚀…"},
		{"a\x1b[31mb\x00 \u202ec", 20, "a[31mb c"},
		{"a\xffb", 20, "a\ufffdb"},
		{"long", 1, "…"},
	} {
		if got := snippet(c.text, c.width); got != c.want {
			t.Errorf("snippet(%q, %d) = %q, want %q", c.text, c.width, got, c.want)
		}
	}
}

func FuzzSnippet(f *testing.F) {
	f.Add("故乡 e\u0301 🚀 \x1b[31m \xff", 7)
	f.Fuzz(func(t *testing.T, text string, width int) {
		width = 1 + int(uint(width)%200)
		got := snippet(text, width)
		if columns(got) > width || !utf8.ValidString(got) || printable(got) != got || strings.ContainsAny(got, "\n\t\r") {
			t.Errorf("snippet(%q, %d) = %q", text, width, got)
		}
	})
}

func TestTable(t *testing.T) {
	var b bytes.Buffer
	if err := table(&b, []string{"what", "n"}, [][]string{{"a", "1"}, {"故乡", "200"}, {"", ""}}, 1); err != nil {
		t.Fatal(err)
	}
	want := "what    n\n----  ---\na       1\n故乡  200\n\n"
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

// Only a terminal gets colours, and none when NO_COLOR is set.
func TestStyle(t *testing.T) {
	if got := styleFor(&bytes.Buffer{}).red("x"); got != "x" {
		t.Errorf("a buffer gets %q", got)
	}
	file, err := os.Create(t.TempDir() + "/file")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close() //nolint:errcheck // nothing was written
	if isTerminal(file) || isTerminal(&sink{Writer: file}) || lineWidth(&sink{Writer: file}) != 100 {
		t.Error("a file is taken for a terminal")
	}
	if got := (style{true}).bold("x"); got != "\x1b[1mx\x1b[0m" {
		t.Errorf("bold is %q", got)
	}
}

func TestProgress(t *testing.T) {
	var b bytes.Buffer
	ago := func(d time.Duration) time.Time { return time.Now().Add(-d) }
	quiet := newProgress(&b, "reading", ago(time.Hour))
	quiet.update(1, 2)
	quiet.done()
	early := &progress{w: &b, what: "reading", since: time.Now(), on: true}
	early.update(1, 2)
	early.done()
	if b.Len() > 0 {
		t.Errorf("no terminal, or no second gone, and yet %q", b.String())
	}
	p := &progress{w: &b, what: "reading", since: ago(time.Hour), on: true}
	p.update(0, 0)
	p.update(15, 30)
	p.update(16, 30) // too soon after the last
	p.update(30, 30)
	p.done()
	want := "\rreading [" + strings.Repeat("=", 15) + strings.Repeat(" ", 15) + "] 15/30" +
		"\rreading [" + strings.Repeat("=", 30) + "] 30/30" + "\r\x1b[K"
	if b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}
