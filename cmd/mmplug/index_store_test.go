package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mapmatched/mmplug/integration/qdranttest"
	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/mapmatched/registry"
	"github.com/mapmatched/mmplug/policy"
)

// qdrant starts a server and returns the URL of a collection on it that fails at
// once when the server is away.
func qdrant(t *testing.T) (*qdranttest.Server, string) {
	t.Helper()
	s, err := qdranttest.Start(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s, "qdrant://" + s.Addr() + "/pages?retries=0"
}

// storedDocs are docs in a collection.
func storedDocs(t *testing.T, more ...string) (s *qdranttest.Server, dir, at string) {
	t.Helper()
	s, at = qdrant(t)
	dir = docs(t)
	if r := mmplug(t, "", append([]string{"index", dir, "--to", at, "--embed", threeWords}, more...)...); r.code != exitOK {
		t.Fatalf("exit status %d, %s", r.code, r.err)
	}
	return s, dir, at
}

type indexedStore struct {
	Index string
	Store storeReport
}

func TestIndexToStore(t *testing.T) {
	s, at := qdrant(t)
	dir := docs(t)
	args := []string{"index", dir, "--to", at, "--embed", threeWords}
	r := mmplug(t, "", args...)
	if want := at + ": 5 chunks, 5 edges; collection made, 5 written, 0 kept\n"; r.code != exitOK || r.out != want {
		t.Fatalf("exit status %d, output %q, want %q; %s", r.code, r.out, want, r.err)
	}
	if want := "warning: 1 link leads nowhere; --broken-links lists them\n"; r.err != want {
		t.Errorf("standard error %q, want %q", r.err, want)
	}
	upserts := s.Calls()["Points/Upsert"]
	got := unmarshal[indexedStore](t, mmplug(t, "", append(args, "--json")...).out)
	want := storeReport{URL: at, Chunks: 5, Edges: 5, Kept: 5, Identity: mapmatched.CorpusIdentity{
		Provider: "testwords:counter", Model: "road,noise,plain", Dimension: 3, Normalization: "l2",
		ChunkPolicy: "markdown_v1+text_v1+html_v1", MaximumDistance: 10,
	}}
	if got.Store != want || got.Index != "" {
		t.Errorf("the same again: %+v, want %+v", got, want)
	}
	if n := s.Calls()["Points/Upsert"]; n != upserts {
		t.Errorf("the same again wrote %d times", n-upserts)
	}
	put(t, filepath.Join(dir, "notes", "plain.txt"), "other words\n")
	if r := mmplug(t, "", args...); !strings.HasSuffix(r.out, "collection was there, 1 written, 4 kept\n") {
		t.Errorf("after a change: %+v", r)
	}
	for _, c := range []struct {
		more  []string
		texts []string
	}{
		{nil, []string{"the corpus has no vectors", "--embed gives the chunks vectors"}},
		{[]string{"--embed", "testwords:counter?model=road,noise"}, []string{"stale index", `model is "road,noise,plain", wanted "road,noise"`, "dimension is 3, wanted 2"}},
		{[]string{"--embed", threeWords, "--policy", policyFile(t, "short.policy.yaml", func(p *policy.Policy) { p.Chunking.Limit = 100 })}, []string{"stale index", "chunk_policy is"}},
	} {
		r := mmplug(t, "", append([]string{"index", dir, "--to", at}, c.more...)...)
		_, complaint, _ := strings.Cut(r.err, "--broken-links lists them\n")
		if wantComplaint(t, complaint, c.texts...); r.code != exitFailed || r.out != "" {
			t.Errorf("%q: exit status %d, output %q", c.more, r.code, r.out)
		}
	}
}

// What is in a store is what is in an index: chunks, vectors of unit length, and
// every edge at both of its ends.
func TestIndexToStoreAndIndex(t *testing.T) {
	_, at := qdrant(t)
	dir, idx := docs(t), filepath.Join(t.TempDir(), "docs.idx")
	r := mmplug(t, "", "index", dir, "--out", idx, "--to", at, "--embed", threeWords, "--knn", "2", "--json")
	got := unmarshal[indexedStore](t, r.out)
	if got.Index != idx || got.Store.Written != 5 || !got.Store.Created {
		t.Fatalf("%+v; %s", got, r.err)
	}
	own, err := registry.OpenProvider(t.Context(), "embedded:"+idx)
	if err != nil {
		t.Fatal(err)
	}
	defer closeAll(own)
	stored, err := registry.OpenProvider(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	defer closeAll(stored)
	ends := map[string]int{}
	for r, err := range stored.(mapmatched.RecordLister).Records(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		chunks, err := own.(mapmatched.ChunkFetcher).Chunks(t.Context(), []string{r.Chunk.ID})
		if err != nil || len(chunks) != 1 || chunks[0] != r.Chunk {
			t.Errorf("chunk %+v, in the index %+v, %v", r.Chunk, chunks, err)
		}
		vectors, err := own.(mapmatched.VectorFetcher).Vectors(t.Context(), []string{r.Chunk.ID})
		if err != nil {
			t.Fatal(err)
		}
		for i, x := range r.Vector {
			if difference := x - vectors[0][i]; difference > 1e-6 || difference < -1e-6 {
				t.Errorf("%s: vector %v, in the index %v", r.Chunk.ID, r.Vector, vectors[0])
				break
			}
		}
		for _, e := range r.Edges {
			ends[fmt.Sprint(min(e.From, e.To), " ", max(e.From, e.To), " ", e.Type, " ", e.Weight)]++
		}
	}
	edges := 0
	for e, err := range own.(mapmatched.EdgeLister).Edges(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		edges++
		if key := fmt.Sprint(min(e.From, e.To), " ", max(e.From, e.To), " ", e.Type, " ", e.Weight); ends[key] != 2 {
			t.Errorf("edge %s is kept at %d ends", key, ends[key])
		}
	}
	if len(ends) != edges || edges != got.Store.Edges || edges < 6 {
		t.Errorf("%d edges in the store, %d in the index, %d reported", len(ends), edges, got.Store.Edges)
	}
}

// A run that ends in the middle is completed by the same command.
func TestIndexToStoreAgain(t *testing.T) {
	s, at := qdrant(t)
	dir := docs(t)
	args := []string{"index", dir, "--to", at + "&batch_points=2", "--embed", threeWords}
	s.Inject(qdranttest.Fault{Method: "Points/Upsert", Skip: 1, Times: 1, Code: qdranttest.Unavailable().Code, Message: "gone"})
	r := mmplug(t, "", args...)
	_, complaint, _ := strings.Cut(r.err, "--broken-links lists them\n")
	if wantComplaint(t, complaint, "gone", "2 of 5 chunks are there: run the same again for the rest"); r.code != exitFailed {
		t.Errorf("exit status %d", r.code)
	}
	if r := mmplug(t, "", args...); !strings.HasSuffix(r.out, "3 written, 2 kept\n") {
		t.Errorf("again: %+v", r)
	}
}

// A long corpus is embedded as it is written, in order, and an embedder that
// fails ends it.
func TestIndexToStoreStreams(t *testing.T) {
	_, at := qdrant(t)
	dir := t.TempDir()
	for i := range 2*embedBatch + 3 {
		put(t, filepath.Join(dir, fmt.Sprintf("%03d.txt", i)), fmt.Sprintf("page %d %s", i, strings.Repeat("road ", i%5)))
	}
	n := 2*embedBatch + 3
	fails(t, exitFailed, "", []string{"index", dir, "--to", at, "--embed", threeWords + "&fail_at=3"}, fmt.Sprintf("cannot embed chunks %d to %d of %d", 2*embedBatch+1, n, n), "went away")
	if out, want := fine(t, "", "index", dir, "--to", at, "--embed", threeWords), fmt.Sprintf("%d chunks, 0 edges; collection was there, %d written, 0 kept\n", n, n); !strings.HasSuffix(out, want) {
		t.Errorf("output %q, want %q", out, want)
	}
}

// What was written without waiting is found when the store has got round to it.
func TestIndexWait(t *testing.T) {
	s, err := qdranttest.Start(&qdranttest.Options{WriteDelay: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	dir := t.TempDir()
	put(t, filepath.Join(dir, "a.txt"), "plain words\n")
	found := func(at string) int {
		t.Helper()
		p, err := registry.OpenProvider(t.Context(), at)
		if err != nil {
			t.Fatal(err)
		}
		defer closeAll(p)
		got, err := p.Candidates(t.Context(), mapmatched.Query{Text: "plain", Vector: []float32{0, 0, 1}}, 5)
		if err != nil {
			t.Fatal(err)
		}
		return len(got)
	}
	for i, c := range []struct {
		parameters string
		more       []string
		atOnce     int
	}{{"", nil, 1}, {"?retries=0", []string{"--wait"}, 1}, {"", []string{"--wait=false"}, 0}, {"?retries=0", []string{"--wait=false"}, 0}} {
		at := fmt.Sprintf("qdrant://%s/pages%d%s", s.Addr(), i, c.parameters)
		out := fine(t, "", append([]string{"index", dir, "--to", at, "--embed", threeWords}, c.more...)...)
		if !strings.HasPrefix(out, at+": ") || !strings.HasSuffix(out, "1 written, 0 kept\n") {
			t.Errorf("%q: %s", c.more, out)
		}
		if n := found(at); n != c.atOnce {
			t.Errorf("%q: %d found at once, want %d", c.more, n, c.atOnce)
		}
		s.Settle()
		if n := found(at); n != 1 {
			t.Errorf("%q: %d found in the end, want 1", c.more, n)
		}
	}
	at := "qdrant://" + s.Addr() + "/pages"
	fails(t, exitUsage, "", []string{"index", dir, "--to", at + "?wait=true", "--wait=false"}, "--wait and the parameter wait", "leave one out")
	fails(t, exitUsage, "", []string{"index", dir, "--out", filepath.Join(dir, "x.idx"), "--wait=false"}, "--wait is for --to")
	fails(t, exitUsage, "", []string{"index", dir, "--to", "weaviate://127.0.0.1:1/Pages", "--wait=false"}, "a store of weaviate has no such choice")
}

func TestIndexToStoreRefuses(t *testing.T) {
	s, at := qdrant(t)
	dir := t.TempDir()
	put(t, filepath.Join(dir, "a.txt"), "plain words\n")
	to := func(at string, more ...string) []string { return append([]string{"index", dir, "--to", at}, more...) }
	fails(t, exitFailed, "", to(at), "the corpus has no vectors", "sparse=NAME", "--embed gives the chunks vectors")
	if out := fine(t, "", to(at+"&sparse=terms")...); !strings.HasSuffix(out, "1 written, 0 kept\n") {
		t.Errorf("words alone: %s", out)
	}
	fails(t, exitFailed, "", to("nowhere:x"), `unknown scheme "nowhere"`, "qdrant")
	fails(t, exitFailed, "", to("faiss:x"), "opens a provider, not a writer")
	fails(t, exitFailed, "", to(at+"&api_key=s3cret"), "secrets do not belong in a URL")
	s.Kill()
	fails(t, exitFailed, "", to(at, "--embed", threeWords), "qdrant: write corpus", s.Addr(), "connection refused")
}
