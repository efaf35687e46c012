package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mapmatched/mmplug/adapters/embedded"
	"github.com/mapmatched/mmplug/graphbuild"
	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/mapmatched/registry"
	"github.com/mapmatched/mmplug/policy"
)

// wordCounter is an embedder whose components are how often words occur.
type wordCounter struct {
	words  []string
	failAt int // call that fails, from 1; 0 for none
	lose   int // vectors left out of every reply
	long   int // texts of more bytes than this count as truncated; 0 for none
	cut    int
	calls  int
	closed bool
}

func (w *wordCounter) Embed(_ context.Context, texts []string) ([][]float32, error) {
	w.calls++
	if w.calls == w.failAt {
		return nil, errors.New("the service went away")
	}
	vectors := make([][]float32, len(texts))
	for i, text := range texts {
		if w.long > 0 && len(text) > w.long {
			w.cut++
		}
		for _, word := range w.words {
			vectors[i] = append(vectors[i], 0.1+float32(strings.Count(strings.ToLower(text), word)))
		}
	}
	return vectors[w.lose:], nil
}

func (w *wordCounter) Truncated() int { return w.cut }

func (w *wordCounter) MaxTokens() int { return w.long }

func (w *wordCounter) Close() error {
	w.closed = true
	return nil
}

func init() {
	registry.RegisterEmbedder("testwords", registry.EmbedderOpener{
		Doc: registry.Doc{
			Summary: "counts words", Example: "testwords:?model=road,noise",
			Parameters: []registry.Parameter{{Name: "model", Usage: "the words"}, {Name: "fail_at", Usage: "call that fails"}, {Name: "long", Usage: "bytes of a long text"}, {Name: "revision", Usage: "any"}},
		},
		Open: func(_ context.Context, _ registry.Location, p *registry.Params) (mapmatched.Embedder, error) {
			_ = p.String("revision", "")
			return &wordCounter{words: strings.Split(p.String("model", ""), ","), failAt: p.Int("fail_at", 0, 0, 10), long: p.Int("long", 0, 0, 1000)}, p.Err()
		},
	})
}

const threeWords = "testwords:counter?model=road,noise,plain"

// embeddedDocs is an index of docs with vectors.
func embeddedDocs(t *testing.T, spec string, knn int) (string, embedded.Input) {
	t.Helper()
	roots, err := graphbuild.DirRoots(docs(t))
	if err != nil {
		t.Fatal(err)
	}
	corpus, err := graphbuild.BuildCorpus(t.Context(), roots, nil)
	if err != nil {
		t.Fatal(err)
	}
	in := embedded.Input{Chunks: corpus.Chunks, Edges: corpus.Edges, ChunkPolicy: "test"}
	flags := vectorFlags{embed: spec, knn: knn}
	model, err := flags.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer model.close()
	if err := model.addVectors(t.Context(), stdio{err: new(strings.Builder)}, time.Now(), &in, flags.knn); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "docs.idx")
	if err := embedded.Write(t.Context(), dir, in, nil); err != nil {
		t.Fatal(err)
	}
	return dir, in
}

func TestEmbedAndAsk(t *testing.T) {
	dir, in := embeddedDocs(t, threeWords, 2)
	knn := 0
	for _, e := range in.Edges {
		if e.Type == mapmatched.EdgeKNN {
			knn++
		}
	}
	if knn < len(in.Chunks)-1 {
		t.Errorf("%d knn edges join %d chunks", knn, len(in.Chunks))
	}
	flags := armFlags{embed: threeWords}
	x, model, err := flags.open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer model.close()
	defer x.Close() //nolint:errcheck // only read
	want := embedded.VectorIdentity{Provider: "testwords:counter", Model: "road,noise,plain", Dimension: 3, Normalization: "l2"}
	if got := *x.Manifest().Vectors; got != want {
		t.Errorf("vectors of %+v, want %+v", got, want)
	}
	candidates, err := x.Candidates(t.Context(), mapmatched.Query{Text: "road road"}, 1)
	if err != nil || len(candidates) != 1 || !strings.HasPrefix(candidates[0].ChunkID, "roads.md") {
		t.Errorf("got %+v, %v", candidates, err)
	}
	again, _ := embeddedDocs(t, threeWords, 2)
	for _, name := range names(t, dir) {
		if get(t, filepath.Join(dir, name)) != get(t, filepath.Join(again, name)) {
			t.Errorf("%s differs when the index is made again", name)
		}
	}
}

// Without flags there are no vectors, no edges by them and the lexical arm.
func TestNoEmbedding(t *testing.T) {
	dir, in := embeddedDocs(t, "", 0)
	if in.Vectors != nil {
		t.Errorf("vectors %v", in.Vectors)
	}
	for _, arm := range []string{"", "lexical"} {
		x, model, err := (&armFlags{arm: arm}).open(t.Context(), dir)
		if err != nil || model != nil {
			t.Fatalf("arm %q: model %v, error %v", arm, model, err)
		}
		candidates, err := x.Candidates(t.Context(), mapmatched.Query{Text: "Gaussian"}, 5)
		if err != nil || len(candidates) != 1 {
			t.Errorf("arm %q: %v, %v", arm, candidates, err)
		}
		if err := x.Close(); err != nil {
			t.Error(err)
		}
		model.close()
	}
	if _, _, err := (&armFlags{embed: threeWords}).open(t.Context(), dir); err == nil || !strings.Contains(err.Error(), "the index has none") {
		t.Errorf("dense on an index without vectors: %v", err)
	}
}

// A failure in the middle says where and leaves the input, and so the old
// index, as it was.
func TestEmbeddingFails(t *testing.T) {
	chunks := make([]mapmatched.Chunk, 150)
	for i := range chunks {
		chunks[i] = mapmatched.Chunk{ID: fmt.Sprintf("c%d", i), Text: "road"}
	}
	for _, test := range []struct {
		model wordCounter
		want  string
	}{
		{wordCounter{failAt: 2}, `cannot embed chunks 65 to 128 of 150, from "c64" on: the service went away`},
		{wordCounter{lose: 1}, `cannot embed chunks 1 to 64 of 150, from "c0" on: the embedder returned 63 vectors for 64 texts`},
	} {
		test.model.words = []string{"road"}
		in := embedded.Input{Chunks: chunks}
		e := &embedding{Embedder: &test.model}
		err := e.addVectors(t.Context(), stdio{err: new(strings.Builder)}, time.Now(), &in, 3)
		if err == nil || err.Error() != test.want || in.Vectors != nil || in.Edges != nil {
			t.Errorf("error %v, want %s; input has %d vectors", err, test.want, len(in.Vectors))
		}
		if e.close(); !test.model.closed {
			t.Error("the model was not closed")
		}
	}
}

// An unset variable of the shell is not the same as no flag.
func TestEmptyModel(t *testing.T) {
	for _, args := range [][]string{
		{"index", docs(t), "--out", filepath.Join(t.TempDir(), "x.idx"), "--embed", ""},
		{"chat", "--index", "x.idx", "--embed", " "},
	} {
		result := mmplug(t, "", args...)
		if result.code != 2 || !strings.Contains(result.err, "it names no model") {
			t.Errorf("%q: %+v", args, result)
		}
	}
}

// Chunks that are in the vectors in part only are counted.
func TestTruncatedChunks(t *testing.T) {
	dir := docs(t)
	for long, want := range map[string]string{"1": " longer than 1 tokens; the rest is not in the vectors\n", "1000": ""} {
		result := mmplug(t, "", "index", dir, "--out", filepath.Join(t.TempDir(), "x.idx"), "--embed", threeWords+"&long="+long, "--json")
		var report struct {
			Truncated *int `json:"truncated_chunks"`
		}
		if err := json.Unmarshal([]byte(result.out), &report); err != nil || report.Truncated == nil {
			t.Fatalf("%v of %+v", err, result)
		}
		if (*report.Truncated > 0) != (want != "") || want != "" && !strings.Contains(result.err, fmt.Sprintf("warning: %d of %[1]d chunks are", *report.Truncated)+want) || want == "" && strings.Contains(result.err, "longer") {
			t.Errorf("long=%s: %+v", long, result)
		}
	}
}

// Vectors of another revision of a service are stale.
func TestRevisionOfService(t *testing.T) {
	dir, _ := embeddedDocs(t, threeWords+"&revision=r1", 0)
	x, model, err := (&armFlags{embed: threeWords + "&revision=r1"}).open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	x.Close() //nolint:errcheck // only read
	model.close()
	if _, _, err = (&armFlags{embed: threeWords + "&revision=r2"}).open(t.Context(), dir); !errors.Is(err, mapmatched.ErrStaleIndex) || !strings.Contains(err.Error(), `revision is "r1", wanted "r2"`) {
		t.Errorf("error %v", err)
	}
}

func TestIdentityOf(t *testing.T) {
	for spec, want := range map[string][2]string{
		"langchaingo:ollama?model=nomic-embed-text&server=http://x:1": {"langchaingo:ollama", "nomic-embed-text"},
		"LangChainGo:openai?model=a%2Fb":                              {"langchaingo:openai", "a/b"},
		"test:some/place":                                             {"test", "some/place"},
		"test:some/place?limit=3":                                     {"test", "some/place"},
	} {
		id := identityOf(&wordCounter{}, spec)
		if id != (embedded.VectorIdentity{Provider: want[0], Model: want[1], Normalization: "l2"}) {
			t.Errorf("%s: %+v", spec, id)
		}
	}
}

func TestVectorFlags(t *testing.T) {
	for _, test := range []struct {
		flags vectorFlags
		usage bool
		want  string
	}{
		{vectorFlags{knn: 3}, true, "give a model with --embed"},
		{vectorFlags{knn: -1, embed: threeWords}, true, "--knn is -1"},
		{vectorFlags{embed: "no/such/model"}, false, "--embed no/such/model: there is no such directory"},
		{vectorFlags{embed: "embed.go"}, false, "embed.go is a file"},
		{vectorFlags{embed: "testword:x"}, false, `did you mean "testwords"?`},
		{vectorFlags{embed: "testwords:?fail_at=x"}, false, "fail_at"},
		{vectorFlags{embed: "onnx:no/such/model"}, false, "no/such/model"},
	} {
		model, err := test.flags.open(t.Context())
		var usage usageError
		if err == nil || model != nil || !strings.Contains(err.Error(), test.want) || errors.As(err, &usage) != test.usage {
			t.Errorf("%+v: error %v, want %q", test.flags, err, test.want)
		}
	}
}

// A policy that pins vectors is followed with that model only.
func TestPinnedModel(t *testing.T) {
	model, err := (&vectorFlags{embed: threeWords}).open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer model.close()
	free := policy.Default()
	right := policy.Default()
	right.Name = "team"
	right.Vectors = policy.Vectors{Provider: "testwords:counter", Model: "road,noise,plain", Dimension: 3, Normalization: "l2", MaxQueryTokens: 256}
	wrong := *right
	wrong.Vectors.Model, wrong.Vectors.Revision = "other", "r1"
	known := *model
	known.identity.Dimension = 4
	for _, test := range []struct {
		model *embedding
		p     *policy.Policy
		want  string
	}{
		{nil, free, ""},
		{model, free, ""},
		{model, right, ""},
		{nil, right, `policy team pins the vectors of model "road,noise,plain": give that model with --embed`},
		{model, &wrong, `policy team pins another model than --embed ` + threeWords + `: model is "road,noise,plain", wanted "other"; revision is "", wanted "r1"; give the pinned one, or pin this one`},
		{&known, right, `policy team pins another model than --embed ` + threeWords + `: dimension is 4, wanted 3; give the pinned one, or pin this one`},
	} {
		err := test.model.pinned(test.p)
		if got := fmt.Sprint(err); (err != nil || test.want != "") && got != test.want {
			t.Errorf("error %v, want %q", err, test.want)
		}
	}
}

func TestArmFlags(t *testing.T) {
	dir, _ := embeddedDocs(t, threeWords, 0)
	for _, test := range []struct {
		flags armFlags
		usage bool
		stale bool
		want  string
	}{
		{armFlags{arm: "dense"}, true, false, "with --embed"},
		{armFlags{arm: "lexical", embed: threeWords}, true, false, "leave out one of"},
		{armFlags{arm: "sparse"}, true, false, `there is no arm "sparse"`},
		{armFlags{embed: "nothing"}, false, false, "--embed nothing: there is no such directory"},
		{armFlags{embed: "testwords:counter?model=road"}, false, true, `its vectors are of another model than --embed testwords:counter?model=road: model is "road,noise,plain", wanted "road"`},
		{armFlags{embed: "testwords:other?model=road,noise,plain"}, false, true, `provider is "testwords:counter", wanted "testwords:other"`},
	} {
		x, model, err := test.flags.open(t.Context(), dir)
		var usage usageError
		if err == nil || x != nil || model != nil || !strings.Contains(err.Error(), test.want) ||
			errors.As(err, &usage) != test.usage || errors.Is(err, mapmatched.ErrStaleIndex) != test.stale {
			t.Errorf("%+v: error %v, want %q", test.flags, err, test.want)
		}
	}
}
