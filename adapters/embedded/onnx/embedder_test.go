package onnx

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mapmatched/mmplug/adapters/embedded"
	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/mapmatched/registry"
)

func TestEmbed(t *testing.T) {
	for _, p := range []pooling{poolMean, poolCLS, poolMax} {
		e, _ := tinyEmbedder(t, poolingFile(p), Options{})
		vectors, err := e.Embed(t.Context(), sampleTexts())
		if err != nil {
			t.Fatal(err)
		}
		for i, s := range samples {
			near(t, fmt.Sprintf("%s of %q", p, s.text), vectors[i], byHand(p, s.ids), 1e-6)
		}
	}
}

// Texts go through the model by length, as many as fit.
func TestEmbedBatches(t *testing.T) {
	for _, test := range []struct {
		tokens int
		want   [][2]int
	}{
		{1, [][2]int{{1, 2}, {1, 3}, {1, 4}, {1, 4}, {1, 4}, {1, 7}, {1, 10}}},
		{9, [][2]int{{2, 3}, {2, 4}, {1, 4}, {1, 7}, {1, 10}}}, // a third text would pad the first two
		{12, [][2]int{{3, 4}, {2, 4}, {1, 7}, {1, 10}}},
		{0, [][2]int{{7, 10}}},
	} {
		e, g := tinyEmbedder(t, nil, Options{BatchTokens: test.tokens})
		if _, err := e.Embed(t.Context(), sampleTexts()); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(g.shapes, test.want) {
			t.Errorf("BatchTokens %d: calls of %v, want %v", test.tokens, g.shapes, test.want)
		}
	}
	e, g := tinyEmbedder(t, nil, Options{})
	if vectors, err := e.Embed(t.Context(), nil); err != nil || len(vectors) != 0 || g.shapes != nil {
		t.Errorf("no texts: %v, %v, calls %v", vectors, err, g.shapes)
	}
}

// A text has the vector it has alone, wherever it stands among others.
func TestEmbedKeepsOrder(t *testing.T) {
	e, _ := tinyEmbedder(t, nil, Options{BatchTokens: 30})
	words := []string{"map", "track", "noise", "roads", "turn", "a", "the", "?"}
	r := rand.New(rand.NewPCG(1, 2))
	var texts []string
	for range 200 {
		text := ""
		for range r.IntN(12) {
			text += words[r.IntN(len(words))] + " "
		}
		texts = append(texts, text)
	}
	before := slices.Clone(texts)
	vectors, err := e.Embed(t.Context(), texts)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(texts, before) {
		t.Error("the caller's texts were changed")
	}
	for i, text := range texts {
		alone, err := e.Embed(t.Context(), []string{text})
		if err != nil || !slices.Equal(alone[0], vectors[i]) {
			t.Fatalf("text %d: %v among others, %v alone, error %v", i, vectors[i], alone, err)
		}
	}
}

func TestIdentity(t *testing.T) {
	e, _ := tinyEmbedder(t, nil, Options{})
	want := embedded.VectorIdentity{Provider: "onnx", Model: "tiny-model", Revision: e.dir.revision(0), Dimension: 4, Normalization: "l2"}
	if got := e.Identity(); got != want || len(got.Revision) != 64 || e.MaxTokens() != 10 {
		t.Errorf("identity %+v, want %+v; MaxTokens %d", got, want, e.MaxTokens())
	}
	e, _ = tinyEmbedder(t, nil, Options{Name: "mine", MaxTokens: 7})
	if e.Identity().Model != "mine" || e.MaxTokens() != 7 {
		t.Errorf("identity %+v, MaxTokens %d", e.Identity(), e.MaxTokens())
	}
	if got := e.Identity().Revision; got == want.Revision {
		t.Errorf("revision %s with 7 tokens, as with all", got)
	}
	if e, _ = tinyEmbedder(t, nil, Options{MaxTokens: 10}); e.Identity() != want {
		t.Errorf("identity %+v with the limit of the directory, want %+v", e.Identity(), want)
	}
}

// Texts that are cut are counted, once they are embedded.
func TestTruncated(t *testing.T) {
	long := strings.Repeat("map ", 8)
	e, g := tinyEmbedder(t, nil, Options{})
	for i, test := range []struct {
		texts []string
		want  int
	}{
		{[]string{"map", long}, 0}, {[]string{long + "map", "map", long + long}, 2}, {[]string{long + "track"}, 3},
	} {
		if _, err := e.Embed(t.Context(), test.texts); err != nil || e.Truncated() != test.want {
			t.Errorf("%d: %d texts were cut, error %v, want %d", i, e.Truncated(), err, test.want)
		}
	}
	g.failure = errors.New("no memory")
	if _, err := e.Embed(t.Context(), []string{long + long}); err == nil || e.Truncated() != 3 {
		t.Errorf("%d texts were cut, error %v", e.Truncated(), err)
	}
}

func TestEmbedFaults(t *testing.T) {
	bad := func(change func(*goEncoder), changes map[string]string, texts ...string) error {
		e, g := tinyEmbedder(t, changes, Options{})
		change(g)
		vectors, err := e.Embed(t.Context(), texts)
		if vectors != nil {
			t.Errorf("vectors with error %v", err)
		}
		return err
	}
	none := func(*goEncoder) {}
	bare := `{"version": "1.0", "model": {"type": "WordPiece", "vocab": {"[UNK]": 0}}}`
	for _, test := range []struct {
		err  error
		want string
	}{
		{bad(none, nil, "map", "a\xff"), "onnx: embed: text 2 of 2: text is not UTF-8 at byte 1; convert it to UTF-8"},
		{bad(none, map[string]string{"tokenizer.json": bare}, " "), "onnx: embed: text 1 of 1: it has no tokens, so there is nothing to embed"},
		{bad(func(g *goEncoder) { g.lose = 4 }, nil, "map"), "onnx: embed: the model returns 8 numbers for 3 tokens and the pooling configuration says 4 for each: take both from one model"},
		{bad(func(g *goEncoder) { g.failure = errors.New("no memory") }, nil, "map"), "onnx: embed: no memory"},
	} {
		if test.err == nil || test.err.Error() != test.want || mapmatched.KindOf(test.err) != mapmatched.KindInvalid {
			t.Errorf("error %v, want %s", test.err, test.want)
		}
	}
}

// A context that is done between two calls of the model ends the work.
func TestEmbedStops(t *testing.T) {
	e, g := tinyEmbedder(t, nil, Options{BatchTokens: 1})
	ctx, cancel := context.WithCancel(t.Context())
	g.before = func(call int) {
		if call == 2 {
			cancel()
		}
	}
	_, err := e.Embed(ctx, sampleTexts())
	if !errors.Is(err, context.Canceled) || mapmatched.KindOf(err) != mapmatched.KindDeadline || len(g.shapes) != 2 {
		t.Errorf("error %v after %d calls", err, len(g.shapes))
	}
	if _, err := e.Embed(ctx, []string{"map"}); !errors.Is(err, context.Canceled) || len(g.shapes) != 2 {
		t.Errorf("error %v after %d calls", err, len(g.shapes))
	}
	if _, err := Open(ctx, tiny(t, nil), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("open: %v", err)
	}
}

func TestClose(t *testing.T) {
	e, g := tinyEmbedder(t, nil, Options{})
	for range 2 {
		if err := e.Close(); err != nil || g.closed != 1 {
			t.Errorf("error %v, closed %d times", err, g.closed)
		}
	}
	if _, err := e.Embed(t.Context(), []string{"map"}); !errors.Is(err, mapmatched.ErrClosed) || mapmatched.KindOf(err) != mapmatched.KindUnavailable {
		t.Errorf("embed after close: %v", err)
	}
	e, g = tinyEmbedder(t, nil, Options{})
	g.failure = errors.New("stuck")
	if err := e.Close(); err == nil || err.Error() != "onnx: close: stuck" {
		t.Errorf("error %v", err)
	}
}

// Close waits for the model; whoever comes later is told.
func TestCloseWhileEmbedding(t *testing.T) {
	e, g := tinyEmbedder(t, nil, Options{BatchTokens: 1})
	started := make(chan struct{})
	var once sync.Once
	g.before = func(int) {
		once.Do(func() { close(started) })
		if g.closed > 0 {
			t.Error("the model runs after it was closed")
		}
	}
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 20 {
				vectors, err := e.Embed(t.Context(), sampleTexts())
				if err != nil && !errors.Is(err, mapmatched.ErrClosed) {
					t.Error(err)
				}
				if err == nil && len(vectors) != len(samples) {
					t.Errorf("%d vectors", len(vectors))
				}
			}
		})
	}
	<-started
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	group.Wait()
}

func TestOptions(t *testing.T) {
	if err := (&Options{}).Validate(); err != nil {
		t.Error(err)
	}
	err := (&Options{MaxTokens: -1, Threads: -2, BatchTokens: -3, ModelFile: "../x.onnx"}).Validate()
	for _, want := range []string{"MaxTokens is -1", "Threads is -2", "BatchTokens is -3", `ModelFile "../x.onnx"`} {
		if !errors.Is(err, mapmatched.ErrInvalidConfig) || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	if _, err := Open(t.Context(), tiny(t, nil), &Options{Threads: -1}); mapmatched.KindOf(err) != mapmatched.KindInvalid {
		t.Errorf("open: %v", err)
	}
}

func TestURL(t *testing.T) {
	for url, want := range map[string]string{
		"onnx:":                         "the path is missing",
		"onnx://host/model":             "write onnx:PATH",
		"onnx:model?threads=0":          "threads",
		"onnx:model?max_tokens=lots":    "max_tokens",
		"onnx:model?treads=2":           `did you mean "threads"?`,
		"onnx:testdata?file=model.onnx": "testdata: modules.json: no such file",
	} {
		_, err := registry.OpenEmbedder(t.Context(), url)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", url, err, want)
		}
	}
}
