package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// docs writes two pages that link to each other and one link that is broken.
func docs(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	put(t, filepath.Join(dir, "matching.md"), "# Map matching\n\nA track is matched to roads.\n\n## Noise\n\nNoise is modelled by a Gaussian, see [roads](roads.md#jumps).\n")
	put(t, filepath.Join(dir, "roads.md"), "# Roads\n\nRoads are joined at crossings.\n\n## Jumps\n\nA jump leaves the road. See [nothing](gone.md).\n")
	put(t, filepath.Join(dir, "notes", "plain.txt"), "plain words about noise\n")
	return dir
}

func TestIndex(t *testing.T) {
	dir, out := docs(t), filepath.Join(t.TempDir(), "docs.idx")
	r := mmplug(t, "", "index", dir, "--out", out)
	if want := out + ": 3 documents, 5 chunks, 20 terms, 5 edges (1 link, 2 next, 2 parent)\n"; r.code != exitOK || r.out != want {
		t.Errorf("exit status %d, output %q, want %q", r.code, r.out, want)
	}
	if want := "warning: 1 link leads nowhere; --broken-links lists them\n"; r.err != want {
		t.Errorf("standard error %q, want %q", r.err, want)
	}
	r = mmplug(t, "", "index", dir, "--out", out, "--broken-links", "--json")
	if want := "warning: roads.md#jumps: link to gone.md: there is no document gone.md\n"; r.code != exitOK || r.err != want {
		t.Errorf("exit status %d, standard error %q, want %q", r.code, r.err, want)
	}
	got := unmarshal[struct {
		Index       string
		Digest      string
		BrokenLinks int `json:"broken_links"`
		LeftOut     int `json:"left_out"`
		Manifest    struct {
			Counts map[string]int
			Source struct{ Files, Bytes int }
		}
	}](t, r.out)
	if got.Index != out || len(got.Digest) != 64 || got.BrokenLinks != 1 || got.LeftOut != 0 || got.Manifest.Counts["chunks"] != 5 {
		t.Errorf("got %+v", got)
	}
	size := 0
	for _, name := range []string{"matching.md", "roads.md", "notes/plain.txt"} {
		size += len(get(t, filepath.Join(dir, name)))
	}
	if got.Manifest.Source.Files != 3 || got.Manifest.Source.Bytes != size {
		t.Errorf("source %+v, want 3 files of %d bytes", got.Manifest.Source, size)
	}
	if again := mmplug(t, "", "index", dir, "--out", out, "--broken-links", "--json"); again != r {
		t.Errorf("made again it says %v, not %v", again, r)
	}
	if left := names(t, filepath.Dir(out)); !slices.Equal(left, []string{"docs.idx"}) {
		t.Errorf("left beside the index: %q", left)
	}
}

// Every file that cannot be used is one warning line and no failure.
func TestIndexWarnsOncePerFile(t *testing.T) {
	dir := docs(t)
	want := []string{
		"binary.md: binary: NUL at byte 3",
		"empty.md: empty",
		"huge.md: 2001 bytes, over the limit of 2000",
		"latin.md: binary or not UTF-8: byte 3 is 0xe9",
		"white.txt: white space only",
	}
	put(t, filepath.Join(dir, "binary.md"), "abc\x00def")
	put(t, filepath.Join(dir, "empty.md"), "")
	put(t, filepath.Join(dir, "huge.md"), strings.Repeat("x", 2001))
	put(t, filepath.Join(dir, "latin.md"), "caf\xe9")
	put(t, filepath.Join(dir, "white.txt"), " \n\n")
	put(t, filepath.Join(dir, "code.go"), "\x00") // no document at all
	if runtime.GOOS != "windows" {
		want = append(want, `"esc\x1b[31m.md": name is not UTF-8 or not printable`, "dead.md: symbolic link, not followed")
		put(t, filepath.Join(dir, "esc\x1b[31m.md"), "# Red")
		if err := os.Symlink("nowhere", filepath.Join(dir, "dead.md")); err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(want)
	r := mmplug(t, "", "index", dir, "--out", filepath.Join(t.TempDir(), "x"), "--max-file-bytes", "2000")
	got := strings.Split(strings.TrimSuffix(r.err, "\n"), "\n")
	for i, line := range got {
		got[i] = strings.TrimPrefix(line, "warning: ")
	}
	if want = append(want, "1 link leads nowhere; --broken-links lists them"); r.code != exitOK || !slices.Equal(got, want) {
		t.Errorf("exit status %d, warnings\n%s\nwant\n%s", r.code, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// HTML is read like the rest, its links and headings too, and a conversation
// takes the index.
func TestIndexReadsHTML(t *testing.T) {
	dir, out := docs(t), filepath.Join(t.TempDir(), "docs.idx")
	page := "<html><head><title>Tiles</title><script>var hidden</script></head><body><h1>Tiles</h1><p>Tiles cover the map, see <a href=\"roads.md#jumps\">jumps</a>.</p><h2 id=\"seams\">Seams</h2><p>A seam joins two tiles.</p></body></html>\n"
	put(t, filepath.Join(dir, "tiles.html"), page)
	put(t, filepath.Join(dir, "OLD.HTM"), "<p>Parchment was used before.</p>")
	put(t, filepath.Join(dir, "empty.html"), "<title>x</title>")
	put(t, filepath.Join(dir, "roads.md"), get(t, filepath.Join(dir, "roads.md"))+"\nThe [seam](tiles.html#seams) is not a road.\n")
	r := mmplug(t, "", "index", dir, "--out", out, "--json")
	if want := "warning: empty.html: no visible text\nwarning: 1 link leads nowhere; --broken-links lists them\n"; r.code != exitOK || r.err != want {
		t.Errorf("exit status %d, standard error %q, want %q", r.code, r.err, want)
	}
	got := unmarshal[struct {
		Manifest struct {
			ChunkPolicy string `json:"chunk_policy"`
			Source      struct{ Files, Bytes int }
		}
	}](t, r.out)
	size := 0
	for _, name := range []string{"matching.md", "roads.md", "notes/plain.txt", "tiles.html", "OLD.HTM"} {
		size += len(get(t, filepath.Join(dir, name)))
	}
	if got.Manifest.ChunkPolicy != "markdown_v1+text_v1+html_v1" || got.Manifest.Source.Files != 5 || got.Manifest.Source.Bytes != size {
		t.Errorf("manifest %+v, want 5 files of %d bytes", got.Manifest, size)
	}
	if edges := export(t, out); !strings.Contains(edges, "roads.md#jumps tiles.html ") && !strings.Contains(edges, "roads.md#jumps tiles.html#tiles ") || !strings.Contains(edges, "roads.md#jumps tiles.html#seams ") {
		t.Errorf("edges\n%s", edges)
	}
	for word, want := range map[string]string{"seam": "tiles.html#seams", "parchment": "OLD.HTM"} {
		if got := fine(t, "", "ask", "--index", out, word); !strings.Contains(got, "decoded   "+want) {
			t.Errorf("asked for %s:\n%s", word, got)
		}
	}
	if got := fine(t, "", "ask", "--index", out, "hidden"); strings.Contains(got, "tiles.html") {
		t.Errorf("a script is searched:\n%s", got)
	}
}

func TestIndexRefuses(t *testing.T) {
	dir := docs(t)
	file := filepath.Join(dir, "roads.md")
	free := filepath.Join(t.TempDir(), "free")
	for _, c := range []struct {
		code  int
		args  []string
		texts []string
	}{
		{exitUsage, []string{}, []string{"0 arguments given; usage: mmplug index DIR… --out IDX"}},
		{exitUsage, []string{dir}, []string{"say where to write the index: --out IDX"}},
		{exitUsage, []string{dir, "--out", free, "--max-file-bytes", "-1"}, []string{"--max-file-bytes is -1: give 1 or more, or 0 for 16777216"}},
		{exitUsage, []string{dir, "--out", free, "--max-file-bytes", "big"}, []string{`invalid argument "big"`, `see "mmplug index --help"`}},
		{exitFailed, []string{filepath.Join(dir, "gone"), "--out", free}, []string{"gone: no such file or directory; check the path"}},
		{exitFailed, []string{file, "--out", free}, []string{file + " is not a directory; name the directory it is in"}},
		{exitFailed, []string{dir, filepath.Join(dir, "notes"), "--out", free}, []string{"overlap"}},
		{exitFailed, []string{t.TempDir(), "--out", free}, []string{"no documents found; .md, .markdown, .html, .htm, .txt and .text files are read"}},
	} {
		fails(t, c.code, "", append([]string{"index"}, c.args...), c.texts...)
	}
	for _, out := range []string{file, dir, filepath.Join(file, "x"), filepath.Join(dir, "none", "x")} {
		r := mmplug(t, "", "index", dir, "--out", out)
		_, complaint, _ := strings.Cut(r.err, "--broken-links lists them\n")
		wantComplaint(t, complaint, "embedded: write: ")
		if r.code != exitFailed || r.out != "" {
			t.Errorf("--out %s: exit status %d, output %q", out, r.code, r.out)
		}
	}
	if left := names(t, filepath.Dir(free)); len(left) != 0 {
		t.Errorf("left: %q", left)
	}
}

// Of several directories the document IDs begin with their names.
func TestIndexSeveralDirectories(t *testing.T) {
	dir := t.TempDir()
	for i := range 3 {
		put(t, filepath.Join(dir, fmt.Sprint(i), "docs", "a.md"), fmt.Sprintf("# Page\n\nword%d\n", i))
	}
	out := filepath.Join(dir, "x")
	fine(t, "", "index", filepath.Join(dir, "0", "docs"), filepath.Join(dir, "1", "docs"), filepath.Join(dir, "2"), "--out", out)
	for i, want := range []string{"docs/a.md#page", "docs-2/a.md#page", "2/docs/a.md#page"} {
		if got := fine(t, "", "ask", "--index", out, fmt.Sprint("word", i)); !strings.Contains(got, "decoded   "+want+" ") {
			t.Errorf("word%d is in\n%s\nwant %s", i, got, want)
		}
	}
}
