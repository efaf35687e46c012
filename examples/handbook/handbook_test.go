package handbook

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// page is a page of the corpus as the checks see it.
type page struct {
	titles  []string // texts of the top-level headings
	anchors []string // anchors of all headings, in order
	links   []string // targets of the links without a scheme
	words   int
}

var (
	headingLine = regexp.MustCompile(`^(#{1,6}) +(.+)$`)
	inlineLink  = regexp.MustCompile(`\[[^\]]*\]\(([^)\s]*)\)`)
	notInAnchor = regexp.MustCompile(`[^\p{L}\p{N}\-_ ]`)
)

// anchorOf is the anchor that GitHub gives a heading without markup.
func anchorOf(heading string) string {
	return strings.ReplaceAll(notInAnchor.ReplaceAllString(strings.ToLower(heading), ""), " ", "-")
}

// parse reads the headings, links and words of a page. Fenced code counts as
// words only.
func parse(text string) page {
	var p page
	var prose strings.Builder
	fenced := false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		p.words += len(strings.Fields(line))
		if strings.HasPrefix(line, "```") {
			fenced = !fenced
			continue
		}
		if fenced {
			continue
		}
		if m := headingLine.FindStringSubmatch(line); m != nil {
			p.anchors = append(p.anchors, anchorOf(m[2]))
			if m[1] == "#" {
				p.titles = append(p.titles, m[2])
			}
		}
		prose.WriteString(line + "\n")
	}
	for _, m := range inlineLink.FindAllStringSubmatch(prose.String(), -1) {
		if !strings.Contains(m[1], ":") {
			p.links = append(p.links, m[1])
		}
	}
	return p
}

// faults lists what is wrong with the pages in dir of fsys, in page order.
func faults(fsys fs.FS, dir string) ([]string, error) {
	names, err := fs.Glob(fsys, path.Join(dir, "*.md"))
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	pages := make(map[string]page, len(names))
	for _, name := range names {
		text, err := fs.ReadFile(fsys, name)
		if err != nil {
			return nil, err
		}
		pages[path.Base(name)] = parse(string(text))
	}

	var found []string
	report := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	titled := make(map[string]string)
	linked := make(map[string]bool)
	for _, name := range names {
		name = path.Base(name)
		p := pages[name]
		if len(p.titles) != 1 {
			report("%s: %d top-level headings, want 1", name, len(p.titles))
		}
		for _, title := range p.titles {
			if other, ok := titled[title]; ok {
				report("%s: title %q is also that of %s", name, title, other)
			}
			titled[title] = name
		}
		if p.words <= 150 {
			report("%s: %d words, want more than 150", name, p.words)
		}
		for i, anchor := range p.anchors {
			if slices.Contains(p.anchors[:i], anchor) {
				report("%s: two headings have the anchor #%s", name, anchor)
			}
		}
		for _, link := range p.links {
			target, anchor, hasAnchor := strings.Cut(link, "#")
			if target == "" {
				target = name
			}
			to, ok := pages[target]
			if !ok {
				report("%s: link to missing page %q", name, link)
				continue
			}
			if hasAnchor && !slices.Contains(to.anchors, anchor) {
				report("%s: link to missing heading %q", name, link)
			}
			if target != name {
				linked[target] = true
			}
		}
	}
	for _, name := range names {
		if name = path.Base(name); !linked[name] {
			report("%s: no other page links here", name)
		}
	}
	return found, nil
}

func TestDocs(t *testing.T) {
	found, err := faults(Docs, "docs")
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range found {
		t.Error(fault)
	}
	entries, err := fs.ReadDir(Docs, "docs")
	if err != nil {
		t.Fatal(err)
	}
	if n := len(entries); n < 38 || n > 45 {
		t.Errorf("%d pages, want 38 to 45", n)
	}
}

// TestFaults spoils a sound corpus of two pages in one way at a time.
func TestFaults(t *testing.T) {
	long := strings.Repeat("word ", 150)
	a := "# Alpha\n\nSee [beta](b.md#limits-of-it).\n\n## Use\n\n" + long
	b := "# Beta\n\nBack to [alpha](a.md) and [below](#limits-of-it), not to [outside](https://example.org/x.md).\n\n" +
		"## Limits of it\n\n```\n# no heading [no link](none.md)\n```\n\n" + long
	tests := []struct {
		name, a, b string
		want       string
	}{
		{"sound", a, b, ""},
		{"no title", strings.Replace(a, "# Alpha", "Alpha", 1), b, "a.md: 0 top-level headings, want 1"},
		{"two titles", a + "\n# Gamma\n", b, "a.md: 2 top-level headings, want 1"},
		{"title twice", a, strings.Replace(b, "# Beta", "# Alpha", 1), `b.md: title "Alpha" is also that of a.md`},
		{"short", "# Alpha\n\n[beta](b.md)\n", b, "a.md: 3 words, want more than 150"},
		{"same heading twice", a + "\n## Use\n", b, "a.md: two headings have the anchor #use"},
		{"missing page", strings.Replace(a, "See", "[See](c.md)", 1), b, `a.md: link to missing page "c.md"`},
		{"missing heading", strings.Replace(a, "#limits-of-it", "#limit", 1), b, `a.md: link to missing heading "b.md#limit"`},
		{"orphan", strings.Replace(a, "b.md", "a.md", 1) + "\n## Limits of it\n", b, "b.md: no other page links here"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			found, err := faults(fstest.MapFS{
				"d/a.md": {Data: []byte(test.a)},
				"d/b.md": {Data: []byte(test.b)},
			}, "d")
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(found, "; "); got != test.want {
				t.Errorf("faults = %q, want %q", got, test.want)
			}
		})
	}
}

func TestConversation(t *testing.T) {
	if len(Conversation) != 6 {
		t.Fatalf("%d turns, want 6", len(Conversation))
	}
	for i, turn := range Conversation {
		text, err := fs.ReadFile(Docs, "docs/"+turn.Page)
		if err != nil {
			t.Errorf("turn %d: %v", i, err)
			continue
		}
		if anchors := parse(string(text)).anchors; !slices.Contains(anchors, anchorOf(turn.Heading)) {
			t.Errorf("turn %d: %s has no heading %q", i, turn.Page, turn.Heading)
		}
	}
}

func Example() {
	for i, turn := range Conversation {
		fmt.Printf("%d. %s (%s: %s)\n", i+1, turn.Question, turn.Page, turn.Heading)
	}
	// Output:
	// 1. How long does an access token last? (access-tokens.md: Lifetime)
	// 2. How do I renew it? (access-tokens.md: Renewing)
	// 3. What happens when it expires? (access-tokens.md: When it expires)
	// 4. Is there a limit on how many I can have? (access-tokens.md: Limits)
	// 5. How often does the leader take a snapshot? (snapshots.md: Schedule)
	// 6. And how long is it kept? (snapshots.md: Retention)
}
