package tokenizer

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// goldenEnv names a directory with more tokenizers and what the reference
// implementation makes of texts with them, in the form of testdata.
const goldenEnv = "MMPLUG_TOKENIZER_GOLDEN"

// reference is what the reference implementation (Hugging Face tokenizers 0.23,
// without special tokens) makes of a text: ID, first and last byte offset of
// each token.
type reference [][3]int

// readLines decodes every line of a file of JSON lines.
func readLines[T any](t testing.TB, path string) []T {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	var all []T
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var v T
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		all = append(all, v)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

func parseFile(t testing.TB, path string) *Tokenizer {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	tok, err := Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// compareReference reports how many texts have the same IDs, and of those the
// same offsets, as in the reference.
func compareReference(t *testing.T, dir, name string, differs func(text string, got []Token, want reference)) (texts, ids, offsets int) {
	t.Helper()
	tok := parseFile(t, filepath.Join(dir, name+".json"))
	all := readLines[string](t, filepath.Join(dir, "texts.jsonl"))
	wants := readLines[reference](t, filepath.Join(dir, name+".golden.jsonl"))
	if len(all) != len(wants) || len(all) == 0 {
		t.Fatalf("%d texts, but %d lines of tokens", len(all), len(wants))
	}
	for i, text := range all {
		got, err := tok.Encode(text)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		sameIDs := slices.EqualFunc(got, wants[i], func(a Token, b [3]int) bool { return a.ID == b[0] })
		same := slices.EqualFunc(got, wants[i], func(a Token, b [3]int) bool { return a == Token{b[0], b[1], b[2]} })
		if !same {
			differs(text, got, wants[i])
		} else {
			offsets++
		}
		if sameIDs {
			ids++
		}
	}
	return len(all), ids, offsets
}

func goldenNames(t testing.TB, dir string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.golden.jsonl"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no golden files in %s: %v", dir, err)
	}
	for i, p := range paths {
		paths[i] = strings.TrimSuffix(filepath.Base(p), ".golden.jsonl")
	}
	return paths
}

// The tokenizers in testdata are small ones, trained with the reference
// implementation on a page of sentences written for it: every model, most
// normalisers and pre-tokenizers, added tokens. The texts are sentences and
// random mixtures of words, special tokens and characters.
func TestReference(t *testing.T) {
	for _, name := range goldenNames(t, "testdata") {
		t.Run(name, func(t *testing.T) {
			compareReference(t, "testdata", name, func(text string, got []Token, want reference) {
				t.Errorf("%q:\n got %v\nwant %v", text, got, want)
			})
		})
	}
}

// With large tokenizers and many random texts a few differ: characters that
// are newer than the reference's Unicode tables, and control characters that a
// charsmap drops at the beginning of a text, after which the reference's
// offsets are short by what was dropped.
func TestReferenceMore(t *testing.T) {
	dir := os.Getenv(goldenEnv)
	if dir == "" {
		t.Skipf("%s names no directory", goldenEnv)
	}
	for _, name := range goldenNames(t, dir) {
		t.Run(name, func(t *testing.T) {
			shown := 0
			texts, ids, offsets := compareReference(t, dir, name, func(text string, got []Token, want reference) {
				if shown++; shown <= 3 {
					t.Logf("%q:\n got %v\nwant %v", text, got, want)
				}
			})
			t.Logf("%d texts: %.2f%% with the same IDs, %.2f%% with the same offsets",
				texts, 100*float64(ids)/float64(texts), 100*float64(offsets)/float64(texts))
			if ids*1000 < texts*995 || offsets*100 < texts*98 {
				t.Errorf("of %d texts, %d have the same IDs and %d the same offsets", texts, ids, offsets)
			}
		})
	}
}
