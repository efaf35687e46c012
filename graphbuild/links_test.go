package graphbuild

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// linkDocs cuts documents, given as ID and text in turn.
func linkDocs(t *testing.T, idsAndTexts ...string) []Chunked {
	t.Helper()
	var docs []Chunked
	for i := 0; i < len(idsAndTexts); i += 2 {
		c, err := ChunkMarkdown(Document{ID: idsAndTexts[i], Text: idsAndTexts[i+1]}, nil)
		if err != nil {
			t.Fatal(err)
		}
		docs = append(docs, c)
	}
	return docs
}

func TestResolveLinks(t *testing.T) {
	others := []string{
		"README.md", "root",
		"dir/other.md", "# Other\n\n## Set up\nx\n## Set up\ny\n## Été & co\nz\n<a id=\"Here\"></a>\n## C#\nc\n# Empty",
		"dir/sub/index.md", "index",
		"dir/sub/README.md", "not reached",
		"dir/notes.v2.markdown", "notes",
		"dir/two words.md", "two",
		"guide/README.md", "guide",
		"100%.md", "percent",
	}
	tests := []struct {
		name, target string
		to           string // chunk ID, "" for none
		reason       string // of the broken link, "" for none
	}{
		{"document", "other.md", "dir/other.md#set-up", ""},
		{"dot", "./other.md", "dir/other.md#set-up", ""},
		{"up and down", "../dir/other.md", "dir/other.md#set-up", ""},
		{"from the root", "/dir/other.md", "dir/other.md#set-up", ""},
		{"anchor", "other.md#set-up", "dir/other.md#set-up", ""},
		{"anchor of a heading joined with the next", "other.md#other", "dir/other.md#set-up", ""},
		{"second anchor", "other.md#set-up-1", "dir/other.md#set-up-1", ""},
		{"encoded anchor", "other.md#%C3%A9t%C3%A9--co", "dir/other.md#été--co", ""},
		{"HTML anchor", "other.md#Here", "dir/other.md#été--co", ""},
		{"anchor in capitals", "other.md#SET-UP-1", "dir/other.md#set-up-1", ""},
		{"C#", "other.md#c", "dir/other.md#c", ""},
		{"query", "other.md?plain=1#c", "dir/other.md#c", ""},
		{"encoded path", "two%20words.md", "dir/two words.md", ""},
		{"bad encoding", "../100%.md", "100%25.md", ""},
		{"without extension", "other#c", "dir/other.md#c", ""},
		{"without the other extension", "notes.v2", "dir/notes.v2.markdown", ""},
		{"directory", "sub/", "dir/sub/index.md", ""},
		{"directory without slash", "sub", "dir/sub/index.md", ""},
		{"directory with README", "../guide/", "guide/README.md", ""},
		{"root", "/", "README.md", ""},
		{"parent directory", "..", "README.md", ""},
		{"same document", "#b", "dir/from.md#b", ""},
		{"top", "#top", "", ""},
		{"nothing", "", "", ""},
		{"number sign only", "#", "", ""},
		{"own chunk", "#a", "", ""},
		{"web", "https://example.org/other.md", "", ""},
		{"mail", "mailto:a@example.org", "", ""},
		{"without scheme", "//example.org/other.md", "", ""},
		{"out of the root", "../../other.md", "", ""},
		{"picture that exists", "pic.png", "", ""},
		{"gone", "gone.md", "", "there is no document dir/gone.md"},
		{"unknown anchor", "other.md#gone", "dir/other.md#set-up", "dir/other.md has no heading or anchor #gone"},
		{"unknown anchor here", "#gone", "", "dir/from.md has no heading or anchor #gone"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			link := "[l](<" + tt.target + ">)"
			docs := linkDocs(t, append([]string{"dir/from.md", "# A\n" + link + " again " + link + "\n# B\nb"}, others...)...)
			exists := func(p string) bool { return p == "dir/pic.png" }
			resolved, broken := ResolveLinks(docs, &LinkOptions{Exists: exists})
			var want []ResolvedLink
			if tt.to != "" {
				want = []ResolvedLink{{"dir/from.md#a", tt.to}}
			}
			if !reflect.DeepEqual(resolved, want) {
				t.Errorf("resolved %v, want %v", resolved, want)
			}
			var reasons []string
			for _, b := range broken {
				reasons = append(reasons, b.Reason)
			}
			if got := strings.Join(reasons, "; "); got != tt.reason {
				t.Errorf("broken: %q, want %q", got, tt.reason)
			}
		})
	}
}

func TestResolveLinksBetweenRoots(t *testing.T) {
	docs := linkDocs(t,
		"docs/a.md", "[x](/b.md) [y](../wiki/b.md) [z](../src/b.md) [w](../wiki/gone.md)",
		"docs/b.md", "b", "wiki/b.md", "b")
	resolved, broken := ResolveLinks(docs, &LinkOptions{Roots: []string{"docs", "wiki"}})
	if want := []ResolvedLink{{"docs/a.md", "docs/b.md"}, {"docs/a.md", "wiki/b.md"}}; !reflect.DeepEqual(resolved, want) {
		t.Errorf("resolved %v, want %v", resolved, want)
	}
	if len(broken) != 1 || broken[0].Target != "../wiki/gone.md" || broken[0].Document != "docs/a.md" {
		t.Errorf("broken %v, want ../wiki/gone.md", broken)
	}
}

// ExampleResolveLinks follows a link to a heading of another document.
func ExampleResolveLinks() {
	from, _ := ChunkMarkdown(Document{ID: "a.md", Text: "See [setup](guide/#install) and [more](more.md)."}, nil)
	to, _ := ChunkMarkdown(Document{ID: "guide/index.md", Text: "# Guide\n\nHello.\n\n## Install\n\nRun it."}, nil)
	resolved, broken := ResolveLinks([]Chunked{from, to}, nil)
	for _, l := range resolved {
		fmt.Println(l.From, "->", l.To)
	}
	for _, b := range broken {
		fmt.Println(b.Document, b.Target, b.Reason)
	}
	// Output:
	// a.md -> guide/index.md#install
	// a.md more.md there is no document more.md
}
