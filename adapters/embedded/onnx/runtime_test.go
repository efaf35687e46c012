//go:build onnx && cgo

package onnx

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/mapmatched/registry"
)

// tryLibrary, in the environment, makes the test binary a program that opens
// the tiny model with that library and prints the error.
const tryLibrary = "MMPLUG_TEST_LIBRARY"

func TestMain(m *testing.M) {
	if library, try := os.LookupEnv(tryLibrary); try {
		e, err := Open(context.Background(), "testdata/tiny", &Options{Library: library})
		if err == nil {
			err = e.Close()
		}
		fmt.Println(err, "kind", mapmatched.KindOf(err)) // to the test that started this
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func mustOpen(t testing.TB, dir string, opts *Options) *Embedder {
	t.Helper()
	e, err := Open(t.Context(), dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// The tiny model, padded among others, gives what is worked out by hand.
func TestModelByHand(t *testing.T) {
	for _, p := range []pooling{poolMean, poolCLS, poolMax} {
		for _, file := range []string{"", "onnx/no_types.onnx"} {
			for _, opts := range []Options{{}, {BatchTokens: 1}, {BatchTokens: 12, Threads: 2}} {
				opts.ModelFile = file
				e := mustOpen(t, tiny(t, poolingFile(p)), &opts)
				vectors, err := e.Embed(t.Context(), sampleTexts())
				if err != nil {
					t.Fatal(err)
				}
				for i, s := range samples {
					near(t, fmt.Sprintf("%s, %+v: %q", p, opts, s.text), vectors[i], byHand(p, s.ids), 1e-6)
				}
			}
		}
	}
}

func TestURLOpensModel(t *testing.T) {
	e, err := registry.OpenEmbedder(t.Context(), "onnx:testdata/tiny?file=onnx/no_types.onnx&max_tokens=4&name=mine&threads=2&batch_tokens=8")
	if err != nil {
		t.Fatal(err)
	}
	x := e.(*Embedder)
	defer x.Close() //nolint:errcheck // nothing was written
	if x.Identity().Model != "mine" || x.MaxTokens() != 4 || x.batchTokens != 8 || x.dir.modelFile != "onnx/no_types.onnx" {
		t.Errorf("got %+v", x)
	}
	vectors, err := e.Embed(t.Context(), []string{"map noise turn"})
	if err != nil {
		t.Fatal(err)
	}
	near(t, "cut to 4 tokens", vectors[0], byHand(poolMean, []int64{2, 4, 6, 3}), 1e-6)
}

// What a model has that cannot be used is listed.
func TestModelFaults(t *testing.T) {
	whole, err := os.ReadFile("testdata/tiny/onnx/model.onnx")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		file    string
		changes map[string]string
		kind    mapmatched.Kind
		want    []string
	}{
		{"dimension.onnx", nil, mapmatched.KindInvalid, []string{`"last_hidden_state" (float, [-1 -1 5])`, "says 4"}},
		{"extra_input.onnx", nil, mapmatched.KindInvalid, []string{`wants the input "position_ids"`, `"input_ids" (int64, [-1 -1]), "attention_mask" (int64`}},
		{"fixed.onnx", nil, mapmatched.KindInvalid, []string{`"input_ids" (int64, [1 16])`, "dynamic axes"}},
		{"int32.onnx", nil, mapmatched.KindInvalid, []string{`"input_ids" (int32, [-1 -1])`, "want int64"}},
		{"no_mask.onnx", nil, mapmatched.KindInvalid, []string{"lacks one of the inputs input_ids and attention_mask"}},
		{"half.onnx", nil, mapmatched.KindInvalid, []string{`"last_hidden_state" (float16, [-1 -1 4])`}},
		{"pooled.onnx", nil, mapmatched.KindInvalid, []string{"no output last_hidden_state or token_embeddings", `"sentence_embedding" (float, [-1 4])`}},
		{"two_outputs.onnx", nil, mapmatched.KindInvalid, []string{`"one_of_two" (float`, `"two_of_two" (float`}},
		{"external.onnx", nil, mapmatched.KindInvalid, []string{"keeps weights in another file"}},
		{"none.onnx", nil, mapmatched.KindNotFound, []string{"has no onnx/none.onnx"}},
		{"text.onnx", map[string]string{"onnx/text.onnx": "not a model"}, mapmatched.KindCorrupt, []string{"damaged or not a model"}},
		{"short.onnx", map[string]string{"onnx/short.onnx": string(whole[:len(whole)/2])}, mapmatched.KindCorrupt, []string{"damaged or not a model"}},
		{"pointer.onnx", map[string]string{"onnx/pointer.onnx": "version https://git-lfs.github.com/spec/v1\n"}, mapmatched.KindCorrupt, []string{"Git LFS pointer"}},
	} {
		e, err := Open(t.Context(), tiny(t, test.changes), &Options{ModelFile: "onnx/" + test.file})
		if err == nil {
			t.Errorf("%s was opened as %+v", test.file, e)
			continue
		}
		for _, want := range append(test.want, "onnx: open: ", test.file) {
			if !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s: error %v, want %q", test.file, err, want)
			}
		}
		if mapmatched.KindOf(err) != test.kind {
			t.Errorf("%s: kind %q, want %q", test.file, mapmatched.KindOf(err), test.kind)
		}
	}
}

// The vocabulary of the tokenizer is larger than the model's.
func TestTokenBeyondModel(t *testing.T) {
	tokens := `{"version": "1.0", "model": {"type": "WordLevel", "vocab": {"a": 0, "map": 900}}, "pre_tokenizer": {"type": "Whitespace"}}`
	e := mustOpen(t, tiny(t, map[string]string{"tokenizer.json": tokens}), nil)
	_, err := e.Embed(t.Context(), []string{"map"})
	if err == nil || !strings.Contains(err.Error(), "onnx: embed: the model failed on 1 texts of up to 1 tokens: ") || !strings.Contains(err.Error(), "900") {
		t.Errorf("error %v", err)
	}
}

func TestConcurrentUse(t *testing.T) {
	e := mustOpen(t, tiny(t, nil), nil)
	want, err := e.Embed(t.Context(), sampleTexts())
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 20 {
				got, err := e.Embed(t.Context(), sampleTexts())
				if err != nil || !slices.EqualFunc(got, want, slices.Equal[[]float32]) {
					t.Errorf("got %v, %v", got, err)
				}
			}
		})
	}
	group.Wait()
}

// A run under way ends when its context does, and the model works on.
func TestRunStops(t *testing.T) {
	e := mustOpen(t, tiny(t, nil), nil)
	ids := make([]int64, 1<<21) // long enough to be met under way most of the time
	for _, after := range []time.Duration{0, time.Millisecond, 3 * time.Millisecond} {
		ctx, cancel := context.WithTimeout(t.Context(), after)
		if _, err := e.encode(ctx, ids, ids, 1, len(ids)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("after %v: error %v", after, err)
		}
		cancel()
	}
	vectors, err := e.Embed(t.Context(), []string{"map noise"})
	if err != nil {
		t.Fatal(err)
	}
	near(t, "afterwards", vectors[0], byHand(poolMean, samples[0].ids), 1e-6)
}

// Every way in which the library cannot be loaded has its own message. A
// process loads one library, so each is tried in its own.
func TestLibraryFaults(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text.so")
	if err := os.WriteFile(text, []byte("not a library"), 0o644); err != nil {
		t.Fatal(err)
	}
	// Libraries that answer like an onnxruntime that is too old, and like none.
	build := func(name, source string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file+".c", []byte(source), 0o644); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("cc", "-shared", "-fPIC", "-o", file, file+".c").CombinedOutput(); err != nil {
			t.Fatalf("cc: %v: %s", err, out)
		}
		return file
	}
	old := build("old.so", `
static const void *api(unsigned version) { return 0; }
static const char *version(void) { return "1.2.3"; }
static const struct { const void *(*api)(unsigned); const char *(*version)(void); } base = {api, version};
const void *OrtGetApiBase(void) { return &base; }`)
	other := build("other.so", `int nothing(void) { return 0; }`)
	missing := filepath.Join(dir, "missing.so")
	for library, want := range map[string][]string{
		missing: {missing + " is missing: get onnxruntime 1.24 or newer", "MMPLUG_ONNXRUNTIME", "kind not found"},
		dir:     {dir + " is a directory", "kind unavailable"},
		text:    {"the library " + text + " cannot be loaded", "kind unavailable"},
		other:   {"the library " + other + " cannot be loaded", "OrtGetApiBase", "kind unavailable"},
		old:     {"the library " + old + " is of an onnxruntime older than 1.24", "kind unavailable"},
	} {
		out := openWith(t, library, os.Getenv(LibraryVariable))
		for _, part := range append(want, "onnx: open: ") {
			if !strings.Contains(out, part) || strings.Count(out, "\n") != 1 {
				t.Errorf("%s: %q, want %q", library, out, part)
			}
		}
	}
	if out := openWith(t, "", ""); !strings.Contains(out, "there is no library libonnxruntime.so.1") && !strings.HasPrefix(out, "<nil>") && runtime.GOOS == "linux" {
		t.Errorf("without a name: %q", out)
	}
	if out := openWith(t, "", missing); !strings.Contains(out, missing+" is missing") {
		t.Errorf("with the variable: %q", out)
	}
	if out := openWith(t, "", os.Getenv(LibraryVariable)); out != "<nil> kind \n" {
		t.Errorf("with the right one: %q", out)
	}
	mustOpen(t, tiny(t, nil), nil)
	if _, err := Open(t.Context(), tiny(t, nil), &Options{Library: other}); err == nil || !strings.Contains(err.Error(), "is loaded already") {
		t.Errorf("another library: %v", err)
	}
	if name := os.Getenv(LibraryVariable); name != "" { // the same one again
		mustOpen(t, tiny(t, nil), &Options{Library: name})
	}
}

func openWith(t *testing.T, library, variable string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), tryLibrary+"="+library, LibraryVariable+"="+variable)
	var out bytes.Buffer
	cmd.Stdout = &out
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// miniLM, in the environment, is a directory of all-MiniLM-L6-v2 with its ONNX
// file.
const miniLM = "MMPLUG_TEST_MINILM"

// The vectors of a real model are those computed from its weights by another
// program, see testdata/minilm_reference.py.
func TestMiniLM(t *testing.T) {
	dir := os.Getenv(miniLM)
	if dir == "" {
		t.Skipf("%s does not name a model directory", miniLM)
	}
	raw, err := os.ReadFile("testdata/minilm.json")
	if err != nil {
		t.Fatal(err)
	}
	var reference []struct {
		Text   string
		Tokens int
		Vector []float64
	}
	if err := json.Unmarshal(raw, &reference); err != nil {
		t.Fatal(err)
	}
	e := mustOpen(t, dir, nil)
	var texts []string
	for _, r := range reference {
		texts = append(texts, r.Text)
	}
	vectors, err := e.Embed(t.Context(), texts)
	if err != nil {
		t.Fatal(err)
	}
	worst := 0.0
	for i, r := range reference {
		ids, _, err := e.tokens(r.Text)
		if err != nil || len(ids) != r.Tokens {
			t.Errorf("%.30q: %d tokens, %v, want %d", r.Text, len(ids), err, r.Tokens)
		}
		near(t, fmt.Sprintf("%.30q", r.Text), vectors[i], r.Vector, 2e-6)
		for j, x := range r.Vector {
			worst = max(worst, math.Abs(x-float64(vectors[i][j])))
		}
	}
	t.Logf("largest difference of a component: %.1e", worst)
}

func BenchmarkMiniLM(b *testing.B) {
	dir := os.Getenv(miniLM)
	if dir == "" {
		b.Skipf("%s does not name a model directory", miniLM)
	}
	for _, threads := range []int{1, 2} {
		for _, batch := range []int{1, 512, 1024, 4096} {
			e := mustOpen(b, dir, &Options{Threads: threads, BatchTokens: batch})
			for _, tokens := range []int{16, 128, 256} {
				texts := slices.Repeat([]string{strings.Repeat("road ", tokens-2)}, 16)
				b.Run(fmt.Sprintf("threads=%d/batch=%d/tokens=%d", threads, batch, tokens), func(b *testing.B) {
					for b.Loop() {
						if _, err := e.Embed(b.Context(), texts); err != nil {
							b.Fatal(err)
						}
					}
					b.ReportMetric(float64(b.Elapsed().Microseconds())/1e3/float64(b.N*len(texts)), "ms/text")
				})
			}
		}
	}
}

func BenchmarkOpenMiniLM(b *testing.B) {
	dir := os.Getenv(miniLM)
	if dir == "" {
		b.Skipf("%s does not name a model directory", miniLM)
	}
	for b.Loop() {
		e, err := Open(b.Context(), dir, nil)
		if err != nil {
			b.Fatal(err)
		}
		if err := e.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
