package qdrant_test

import (
	"errors"
	"io"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"

	pb "github.com/qdrant/go-client/qdrant"

	"github.com/mapmatched/mmplug/adapters/qdrant"
	"github.com/mapmatched/mmplug/integration/qdranttest"
	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/mapmatched/adaptertest"
	"github.com/mapmatched/mmplug/mapmatched/registry"
)

// at is the URL of a collection, with the parameters of the server under test.
func (s *target) at(collection, parameters string) string {
	if s.opts.APIKey != "" {
		s.t.Setenv("MMPLUG_TEST_KEY", s.opts.APIKey)
		parameters += "&api_key_env=MMPLUG_TEST_KEY"
	}
	if s.opts.AllowPlaintextKey {
		parameters += "&allow_plaintext_key=true"
	}
	if s.opts.TLS {
		parameters += "&tls=true"
	}
	return "qdrant://" + s.address + "/" + collection + "?" + parameters
}

func TestOpenByURL(t *testing.T) {
	s := server(t)
	corpus := adaptertest.NewCorpus()
	name := s.collection()
	w, err := registry.OpenWriter(t.Context(), s.at(name, "vector=dense&sparse=terms&wait=true&batch_points=3"))
	if err != nil {
		t.Fatal(err)
	}
	if report, err := w.WriteCorpus(t.Context(), identityOf(len(corpus.Vectors[0])), records(corpusRecords(corpus)...), nil); err != nil || report.Written != 12 {
		t.Fatalf("report %+v, error %v", report, err)
	}
	if err := w.(io.Closer).Close(); err != nil {
		t.Error(err)
	}
	if _, err := w.WriteCorpus(t.Context(), identityOf(2), records(), nil); !errors.Is(err, mapmatched.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	filter := url.QueryEscape(`{"must_not":[{"key":"document","match":{"value":"town"}}]}`)
	for parameters, want := range map[string]string{
		"vector=dense": "orchard/bees",
		"vector=dense&limit=1&exact=true&hnsw_ef=32&timeout=5s&retries=0": "orchard/bees",
		"sparse=terms": "orchard/bees",
		"sparse=terms&sparse_encoder=terms&score_threshold=0.01":                                    "orchard/bees",
		"vector=dense&sparse=terms&fusion=rrf&rrf_k=61&prefetch=50":                                 "orchard/bees",
		"vector=dense&sparse=terms&fusion=dbsf&metadata=digest":                                     "orchard/bees",
		"vector=dense&mmr=0.3&mmr_candidates=12&filter=" + filter:                                   "orchard/bees",
		"vector=dense&maximum_distance=10&types=next&directed=true&cache_bytes=0":                   "orchard/bees", // of the graph
		"vector=dense&read_consistency=majority&pool_size=1&max_message_bytes=1000000&keepalive=5m": "orchard/bees",
	} {
		p, err := registry.OpenProvider(t.Context(), s.at(name, parameters))
		if err != nil {
			t.Errorf("%s: %v", parameters, err)
			continue
		}
		q := mapmatched.Query{Text: "bees store honey"}
		vectors, err := corpus.Embed(t.Context(), []string{q.Text})
		if err != nil {
			t.Fatal(err)
		}
		q.Vector = vectors[0]
		got, err := p.Candidates(t.Context(), q, 5)
		if err != nil || len(got) == 0 || got[0].ChunkID != want {
			t.Errorf("%s: %q, error %v", parameters, ids(got), err)
		}
		if err := p.(io.Closer).Close(); err != nil {
			t.Error(err)
		}
		if _, err := p.Candidates(t.Context(), q, 5); !errors.Is(err, mapmatched.ErrClosed) {
			t.Errorf("%s: after Close: %v", parameters, err)
		}
	}
}

func TestURLRefused(t *testing.T) {
	const base = "qdrant://127.0.0.1:1/pages?"
	for raw, want := range map[string][]string{
		base + "timeout=10":                      {`timeout="10" has no unit`, "10s"},
		base + "keepalive=1s":                    {`keepalive="1s"`, "from 10s"},
		base + "api_key=s3cret":                  {"api_key_env"},
		base + "api_key_env=NOT_SET_":            {"NOT_SET_ is not set"},
		base + "api_key_env=MMPLUG_TEST_SET_KEY": {"without TLS", "allow_plaintext_key=true"},
		base + "limit=0":                         {`limit="0"`},
		base + "vektor=x":                        {`did you mean "vector"?`},
		base + "fusion=rrf":                      {"second vector", "sparse"},
		base + "vector=a&sparse=b":               {"fusion=rrf"},
		base + "sparse_encoder=terms":            {"sparse_encoder has no effect without sparse=NAME"},
		base + "rrf_k=3&mmr_candidates=5":        {"rrf_k and prefetch have no effect", "mmr_candidates has no effect"},
		base + "sparse=b&fusion=rrf&mmr=0.5":     {"no effect on fused scores"},
		base + "filter=" + url.QueryEscape(`{"must":[{"key":"n","match":{"value":42.0}}]}`): {"parameter filter", "42.0 is not a whole number"},
		base + "text_key=a.b":          {`"a.b"`},
		base + "ca_file=x":             {"no effect without TLS"},
		base + "read_consistency=most": {`"most"`},
		"qdrant://127.0.0.1:1":         {"qdrant://HOST:6334/COLLECTION"},
		"qdrant://127.0.0.1:1/":        {"qdrant://HOST:6334/COLLECTION"},
		"qdrant://127.0.0.1:1/a/b":     {"one name behind the host"},
		"qdrant:pages":                 {"qdrant://HOST:6334/COLLECTION"},
	} {
		t.Setenv("MMPLUG_TEST_SET_KEY", "s3cret")
		p, err := registry.OpenProvider(t.Context(), raw)
		if err == nil || p != nil {
			t.Errorf("%s: opened %v, error %v", raw, p, err)
			continue
		}
		for _, part := range want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: error %q lacks %q", raw, err, part)
			}
		}
		if strings.Contains(err.Error(), "s3cret") || strings.Contains(err.Error(), "\n") || mapmatched.KindOf(err) != mapmatched.KindInvalid {
			t.Errorf("%s: error %q of kind %q", raw, err, mapmatched.KindOf(err))
		}
	}
	for raw, want := range map[string]string{base + "distance=hamming": "hamming", base + "vector=a&sparse=a": `both "a"`, base + "limit=3": "limit", base + "batch_bytes=1": "batch_bytes"} {
		if w, err := registry.OpenWriter(t.Context(), raw); err == nil || w != nil || !strings.Contains(err.Error(), want) {
			t.Errorf("writer %s: %v, error %v", raw, w, err)
		}
	}
}

// TestForeignSparse: a sparse vector that someone else made is not searched by
// an encoder that was not named.
func TestForeignSparse(t *testing.T) {
	s := server(t)
	name := s.create(pb.NewVectorsConfigMap(map[string]*pb.VectorParams{}), pb.NewSparseVectorsConfig(map[string]*pb.SparseVectorParams{"splade": {}}))
	_, err := registry.OpenProvider(t.Context(), s.at(name, "sparse=splade"))
	expect(t, err, mapmatched.KindInvalid, name, "sparse_encoder=terms")
	p, err := registry.OpenProvider(t.Context(), s.at(name, "sparse=splade&sparse_encoder=terms"))
	if err != nil {
		t.Fatal(err)
	}
	if got := ask(t, p, mapmatched.Query{Text: "bridge"}, 5); len(got) != 0 {
		t.Errorf("an empty collection: %q", ids(got))
	}
	_ = p.(io.Closer).Close()
}

// TestSparseHint: what the error of a collection without dense vectors says to
// write opens it.
func TestSparseHint(t *testing.T) {
	s := server(t)
	name := s.write(s.client(nil), &qdrant.WriterOptions{Sparse: "the terms"}, record("a"))
	_, err := registry.OpenProvider(t.Context(), s.at(name, ""))
	expect(t, err, mapmatched.KindInvalid, name, "no dense vector", "sparse=the+terms;")
	_, err = registry.OpenProvider(t.Context(), s.at(name, "vector=the+terms"))
	expect(t, err, mapmatched.KindInvalid, "sparse=NAME instead of vector=NAME")
	p, err := registry.OpenProvider(t.Context(), s.at(name, "sparse=the+terms"))
	if err != nil {
		t.Fatal(err)
	}
	if got := ids(ask(t, p, mapmatched.Query{Text: "text"}, 5)); !slices.Equal(got, []string{"a"}) {
		t.Errorf("candidates %q", got)
	}
	findings := p.(mapmatched.Diagnoser).Diagnose(t.Context())
	at := slices.IndexFunc(findings, func(f mapmatched.Finding) bool { return f.Check == "identity" })
	if f := findings[at]; f.Status != mapmatched.StatusOK || !strings.Contains(f.Detail, "without dense vectors") || !strings.Contains(f.Detail, "para-512-noov") {
		t.Errorf("finding %+v", f)
	}
	_ = p.(io.Closer).Close()
}

func checksOf(findings []mapmatched.Finding) (checks []string, statuses map[string]mapmatched.Status) {
	statuses = map[string]mapmatched.Status{}
	for _, f := range findings {
		checks = append(checks, f.Check)
		statuses[f.Check] = f.Status
	}
	return checks, statuses
}

func TestDiagnose(t *testing.T) {
	s := server(t)
	c := s.client(nil)
	corpus := adaptertest.NewCorpus()
	name := s.write(c, &qdrant.WriterOptions{Vector: "dense", Sparse: "terms"}, corpusRecords(corpus)...)
	p := s.open(c, name, &qdrant.Options{Vector: "dense", Embedder: corpus})
	all := []string{"reach", "version", "collection", "vectors", "identity", "points", "sample query"}
	findings := p.Diagnose(t.Context())
	checks, _ := checksOf(findings)
	if !slices.Equal(checks, all) {
		t.Fatalf("checks %q, want %q", checks, all)
	}
	for _, f := range findings {
		if f.Status != mapmatched.StatusOK && f.Check != "collection" { // which may be busy
			t.Errorf("%s: %s: %s", f.Check, f.Status, f.Detail)
		}
		if strings.Contains(f.Detail+f.Hint, "\n") {
			t.Errorf("%s: %q is not one line", f.Check, f.Detail)
		}
	}
	for check, part := range map[string]string{"reach": s.address, "vectors": "dimensions, Cosine", "identity": `"words"`, "points": "12", "sample query": "10 points in "} {
		if f := findings[slices.Index(all, check)]; !strings.Contains(f.Detail, part) {
			t.Errorf("%s: %q lacks %q", check, f.Detail, part)
		}
	}
	sparse := s.open(c, name, &qdrant.Options{Vector: "terms", SparseEncoder: qdrant.TermQuery})
	h, err := qdrant.NewHybridProvider(qdrant.Fusion{Method: qdrant.FusionRRF}, sparse, p)
	if err != nil {
		t.Fatal(err)
	}
	if _, statuses := checksOf(h.Diagnose(t.Context())); statuses["sample query"] != mapmatched.StatusOK {
		t.Errorf("hybrid: %v", statuses)
	}
	empty := s.open(c, s.write(c, nil, record("a", 1, 0), record("b", 0, 1)), &qdrant.Options{Keys: qdrant.PayloadKeys{Text: "body"}})
	if _, statuses := checksOf(empty.Diagnose(t.Context())); statuses["sample query"] != mapmatched.StatusWarning {
		t.Errorf("another text key: %v", statuses)
	}
	if _, err := c.DeleteCollection(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	if _, statuses := checksOf(p.Diagnose(t.Context())); statuses["collection"] != mapmatched.StatusFailed || statuses["sample query"] != mapmatched.StatusSkipped {
		t.Errorf("without the collection: %v", statuses)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if _, statuses := checksOf(p.Diagnose(t.Context())); statuses["reach"] != mapmatched.StatusFailed {
		t.Errorf("after Close: %v", statuses)
	}
}

// TestDiagnoseFaults: an old server, a collection without identity and points,
// and no server at all.
func TestDiagnoseFaults(t *testing.T) {
	s := faulty(t, &qdranttest.Options{Version: "1.12.0"})
	name := s.create(pb.NewVectorsConfig(&pb.VectorParams{Size: 2, Distance: pb.Distance_Cosine}), nil)
	p := s.open(s.client(func(o *qdrant.ClientOptions) { o.Retries = -1 }), name, nil)
	_, statuses := checksOf(p.Diagnose(t.Context()))
	want := map[string]mapmatched.Status{
		"reach": mapmatched.StatusOK, "version": mapmatched.StatusWarning, "collection": mapmatched.StatusOK, "vectors": mapmatched.StatusOK,
		"identity": mapmatched.StatusWarning, "points": mapmatched.StatusWarning, "sample query": mapmatched.StatusSkipped,
	}
	if !maps.Equal(statuses, want) {
		t.Errorf("statuses %v, want %v", statuses, want)
	}
	s.fake.Kill()
	findings := p.Diagnose(t.Context())
	if findings[0].Status != mapmatched.StatusFailed || !strings.Contains(findings[0].Detail, s.address) || findings[0].Hint == "" || findings[6].Status != mapmatched.StatusSkipped {
		t.Errorf("without a server: %+v", findings)
	}
}
