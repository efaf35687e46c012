package langchaingo_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/tmc/langchaingo/schema"
	"github.com/tmc/langchaingo/vectorstores"
	"github.com/tmc/langchaingo/vectorstores/chroma"
	"github.com/tmc/langchaingo/vectorstores/qdrant"
	"github.com/tmc/langchaingo/vectorstores/weaviate"

	"github.com/mapmatched/mmplug/adapters/langchaingo"
	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/mapmatched/adaptertest"
)

// server is a vector database in memory that records what it is sent. The
// handlers below give it the protocol of one store each.
type server struct {
	mu       sync.Mutex
	points   []point
	requests []string // "METHOD path body"
}

type point struct {
	vector  []float32
	payload map[string]any
}

type found struct {
	cosine  float64
	payload map[string]any
}

// nearest finds the points with the greatest cosine to v.
func (s *server) nearest(v []float32, limit int, keep func(map[string]any) bool) []found {
	s.mu.Lock()
	defer s.mu.Unlock()
	var hits []found
	for _, p := range s.points {
		if keep == nil || keep(p.payload) {
			hits = append(hits, found{dot(v, p.vector), p.payload})
		}
	}
	slices.SortStableFunc(hits, func(a, b found) int { return cmp.Compare(b.cosine, a.cosine) })
	return hits[:min(limit, len(hits))]
}

// add keeps points.
func (s *server) add(points ...point) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.points = append(s.points, points...)
}

// last is the latest request whose path ends in the suffix.
func (s *server) last(suffix string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range slices.Backward(s.requests) {
		if path, _, _ := strings.Cut(r, " "); strings.HasSuffix(path, suffix) {
			return r
		}
	}
	return ""
}

// serve starts the server with handlers by method and path.
func (s *server) serve(t *testing.T, routes map[string]func(body []byte) any) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	for pattern, handle := range routes {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			s.mu.Lock()
			s.requests = append(s.requests, r.URL.Path+" "+string(body))
			s.mu.Unlock()
			w.Header().Set("Content-Type", "application/json")
			reply, err := json.Marshal(handle(body))
			if err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			_, _ = w.Write(reply) // the client sees a reply that breaks off
		})
	}
	web := httptest.NewServer(mux)
	t.Cleanup(web.Close)
	return web
}

// unmarshal reads a request; a bad one is a fault of the test.
func unmarshal(t *testing.T, raw []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(raw, into); err != nil {
		t.Errorf("request %s: %v", raw, err)
	}
}

// newQdrant is langchaingo's store for Qdrant, on a collection of metric Cosine.
func newQdrant(t *testing.T, embedder mapmatched.Embedder) (vectorstores.VectorStore, *server) {
	t.Helper()
	s := &server{}
	web := s.serve(t, map[string]func([]byte) any{
		"PUT /collections/pages/points": func(body []byte) any {
			var r struct {
				Batch struct {
					Vectors  [][]float32
					Payloads []map[string]any
				}
			}
			unmarshal(t, body, &r)
			for i, v := range r.Batch.Vectors {
				s.add(point{v, r.Batch.Payloads[i]})
			}
			return map[string]any{"status": "ok", "result": map[string]any{"status": "completed"}}
		},
		"POST /collections/pages/points/search": func(body []byte) any {
			var r struct {
				Vector         []float32
				Limit          int
				ScoreThreshold float64 `json:"score_threshold"`
				Filter         *struct {
					Must []struct {
						Key   string
						Match struct{ Value any }
					}
				}
			}
			unmarshal(t, body, &r)
			hits := s.nearest(r.Vector, r.Limit, func(payload map[string]any) bool {
				return r.Filter == nil || payload[r.Filter.Must[0].Key] == r.Filter.Must[0].Match.Value
			})
			result := []map[string]any{}
			for _, h := range hits {
				if h.cosine >= r.ScoreThreshold {
					result = append(result, map[string]any{"id": 1, "version": 0, "score": h.cosine, "payload": h.payload})
				}
			}
			return map[string]any{"status": "ok", "result": result}
		},
	})
	at, err := url.Parse(web.URL)
	if err != nil {
		t.Fatal(err)
	}
	store, err := qdrant.New(qdrant.WithURL(*at), qdrant.WithCollectionName("pages"), qdrant.WithEmbedder(langchaingo.AsEmbedder(embedder)))
	if err != nil {
		t.Fatal(err)
	}
	return store, s
}

// newChroma is langchaingo's store for Chroma, with cosine distances.
func newChroma(t *testing.T, embedder mapmatched.Embedder) (vectorstores.VectorStore, *server) {
	t.Helper()
	s := &server{}
	web := s.serve(t, map[string]func([]byte) any{
		"GET /api/v1/heartbeat": func([]byte) any { return map[string]any{"nanosecond heartbeat": 1} },
		"GET /api/v1/version":   func([]byte) any { return "0.4.14" },
		"POST /api/v1/collections": func(body []byte) any {
			var r struct{ Name string }
			unmarshal(t, body, &r)
			return map[string]any{"id": "c1", "name": r.Name, "metadata": map[string]any{"hnsw:space": "cosine"}}
		},
		"POST /api/v1/collections/c1/add": func(body []byte) any {
			var r struct {
				Embeddings [][]float32
				Metadatas  []map[string]any
				Documents  []string
			}
			unmarshal(t, body, &r)
			for i, v := range r.Embeddings {
				s.add(point{v, map[string]any{"document": r.Documents[i], "metadata": r.Metadatas[i]}})
			}
			return true
		},
		"POST /api/v1/collections/c1/query": func(body []byte) any {
			var r struct {
				QueryEmbeddings [][]float32    `json:"query_embeddings"`
				NResults        int            `json:"n_results"`
				Where           map[string]any `json:"where"`
			}
			unmarshal(t, body, &r)
			var documents, metadatas, distances, ids []any
			for _, h := range s.nearest(r.QueryEmbeddings[0], r.NResults, nil) {
				documents = append(documents, h.payload["document"])
				metadatas = append(metadatas, h.payload["metadata"])
				distances = append(distances, 1-h.cosine)
				ids = append(ids, "x")
			}
			return map[string]any{"ids": []any{ids}, "documents": []any{documents}, "metadatas": []any{metadatas}, "distances": []any{distances}}
		},
	})
	store, err := chroma.New(chroma.WithChromaURL(web.URL), chroma.WithNameSpace("pages"), chroma.WithDistanceFunction("cosine"),
		chroma.WithEmbedder(langchaingo.AsEmbedder(embedder)))
	if err != nil {
		t.Fatal(err)
	}
	return store, s
}

var (
	gqlVector    = regexp.MustCompile(`vector:\s*\[([^\]]*)\]`)
	gqlLimit     = regexp.MustCompile(`limit:\s*(\d+)`)
	gqlNameSpace = regexp.MustCompile(`valueString:\s*"([^"]*)"`)
)

// newWeaviate is langchaingo's store for Weaviate, on a class of metric cosine.
func newWeaviate(t *testing.T, embedder mapmatched.Embedder) (vectorstores.VectorStore, *server) {
	t.Helper()
	s := &server{}
	web := s.serve(t, map[string]func([]byte) any{
		"GET /v1/meta": func([]byte) any { return map[string]any{"version": "1.27.0"} },
		"POST /v1/batch/objects": func(body []byte) any {
			var r struct {
				Objects []struct {
					Vector     []float32
					Properties map[string]any
				}
			}
			unmarshal(t, body, &r)
			var reply []map[string]any
			for _, o := range r.Objects {
				s.add(point{o.Vector, o.Properties})
				reply = append(reply, map[string]any{"result": map[string]any{"status": "SUCCESS"}})
			}
			return reply
		},
		"POST /v1/graphql": func(body []byte) any {
			var r struct{ Query string }
			unmarshal(t, body, &r)
			vector, limit := gqlVector.FindStringSubmatch(r.Query), gqlLimit.FindStringSubmatch(r.Query)
			nameSpace := gqlNameSpace.FindStringSubmatch(r.Query)
			if vector == nil || limit == nil || nameSpace == nil {
				return map[string]any{"errors": []any{map[string]any{"message": "cannot parse " + r.Query}}}
			}
			var v []float32
			for text := range strings.SplitSeq(vector[1], ",") {
				x, err := strconv.ParseFloat(strings.TrimSpace(text), 32)
				if err != nil {
					t.Errorf("vector of %s: %v", r.Query, err)
				}
				v = append(v, float32(x))
			}
			n, err := strconv.Atoi(limit[1])
			if err != nil {
				t.Errorf("limit of %s: %v", r.Query, err)
			}
			hits := []map[string]any{}
			for _, h := range s.nearest(v, n, func(p map[string]any) bool { return p["nameSpace"] == nameSpace[1] }) {
				hit := map[string]any{"_additional": map[string]any{"certainty": (1 + h.cosine) / 2}}
				for _, property := range []string{"text", "nameSpace", "chunk"} {
					hit[property] = h.payload[property]
				}
				hits = append(hits, hit)
			}
			return map[string]any{"data": map[string]any{"Get": map[string]any{"Page": hits}}}
		},
	})
	store, err := weaviate.New(weaviate.WithScheme("http"), weaviate.WithHost(strings.TrimPrefix(web.URL, "http://")), weaviate.WithIndexName("Page"),
		weaviate.WithQueryAttrs([]string{"text", "nameSpace", "chunk"}), weaviate.WithEmbedder(langchaingo.AsEmbedder(embedder)))
	if err != nil {
		t.Fatal(err)
	}
	return store, s
}

// hosted are the stores with the kind of their scores.
var hosted = []struct {
	name string
	kind langchaingo.ScoreKind
	new  func(*testing.T, mapmatched.Embedder) (vectorstores.VectorStore, *server)
}{
	{"qdrant", langchaingo.ScoreSimilarity, newQdrant},
	{"chroma", langchaingo.ScoreSimilarity, newChroma},
	{"weaviate", langchaingo.ScoreCertainty, newWeaviate},
}

// fill stores the chunks of a corpus.
func fill(store vectorstores.VectorStore, c adaptertest.Corpus) error {
	var documents []schema.Document
	for _, chunk := range c.Chunks {
		documents = append(documents, schema.Document{PageContent: chunk.Text, Metadata: map[string]any{"chunk": chunk.ID}})
	}
	ids, err := store.AddDocuments(context.Background(), documents)
	if err == nil && len(ids) != len(documents) {
		err = fmt.Errorf("%d IDs for %d documents", len(ids), len(documents))
	}
	return err
}

func TestHostedConformance(t *testing.T) {
	for _, h := range hosted {
		t.Run(h.name, func(t *testing.T) {
			adaptertest.Provider(t, adaptertest.ProviderHarness{
				AlwaysHits: true,
				New: func(c adaptertest.Corpus) (mapmatched.CandidateProvider, error) {
					store, _ := h.new(t, c)
					if err := fill(store, c); err != nil {
						return nil, err
					}
					// The vectors of the suite count words: those without a word in common are at 0.
					return langchaingo.NewStoreProvider(h.name, store, langchaingo.IDFromKey("chunk"), h.kind, &langchaingo.ProviderOptions{AllowZeroScores: true})
				},
			})
		})
	}
}

func TestHostedExchange(t *testing.T) {
	c := adaptertest.NewCorpus()
	for _, tt := range []struct {
		store   int
		search  []vectorstores.Option
		path    string
		want    []string // in the request
		without []string
	}{
		{0, nil, "/points/search", []string{`"limit":3`, `"filter":null`, `"score_threshold":0,`}, nil},
		{0, []vectorstores.Option{vectorstores.WithScoreThreshold(0.25), vectorstores.WithFilters(map[string]any{
			"must": []any{map[string]any{"key": "chunk", "match": map[string]any{"value": "roads/tunnel"}}},
		})}, "/points/search", []string{`"score_threshold":0.25`, `"filter":{"must":[{"key":"chunk","match":{"value":"roads/tunnel"}}]}`}, nil},
		{1, nil, "/query", []string{`"n_results":3`}, []string{"lang"}},
		{1, []vectorstores.Option{vectorstores.WithFilters(map[string]any{"lang": "en"})}, "/query", []string{`"lang":"en"`}, nil},
		{2, nil, "/graphql", []string{"limit: 3", `valueString: \"default\"`}, nil},
		{2, []vectorstores.Option{vectorstores.WithNameSpace("default"), vectorstores.WithScoreThreshold(0.5)}, "/graphql", []string{"certainty: 0.5"}, nil},
	} {
		h := hosted[tt.store]
		t.Run(fmt.Sprintf("%s with %d options", h.name, len(tt.search)), func(t *testing.T) {
			store, s := h.new(t, c)
			if err := fill(store, c); err != nil {
				t.Fatal(err)
			}
			p, err := langchaingo.NewStoreProvider(h.name, store, langchaingo.IDFromKey("chunk"), h.kind, &langchaingo.ProviderOptions{Search: tt.search})
			if err != nil {
				t.Fatal(err)
			}
			got, err := p.Candidates(t.Context(), mapmatched.Query{Text: "tunnel beneath the mountain"}, 3)
			if err != nil || len(got) == 0 || got[0].ChunkID != "roads/tunnel" || got[0].Text == "" {
				t.Fatalf("candidates %v, error %v; want roads/tunnel first", got, err)
			}
			request := s.last(tt.path)
			for _, want := range tt.want {
				if !strings.Contains(strings.ReplaceAll(request, `\n`, " "), want) {
					t.Errorf("request %s, want %s in it", request, want)
				}
			}
			for _, not := range tt.without {
				if strings.Contains(request, not) {
					t.Errorf("request %s, want no %s in it", request, not)
				}
			}
		})
	}
}

// The store for Chroma gives a document without content as an empty one: it is
// left out and counted. Those for Qdrant and Weaviate fail; the error says what
// for.
func TestHostedForeignDocument(t *testing.T) {
	c := adaptertest.NewCorpus()
	const question = "tunnel beneath the mountain"
	vectors, err := c.Embed(t.Context(), []string{question})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"payload does not contain content key", "", "missing text key"} {
		h := hosted[i]
		t.Run(h.name, func(t *testing.T) {
			store, s := h.new(t, c)
			if err := fill(store, c); err != nil {
				t.Fatal(err)
			}
			s.add(point{vectors[0], map[string]any{"nameSpace": "default"}})
			var report langchaingo.Report
			p, err := langchaingo.NewStoreProvider(h.name, store, langchaingo.IDFromKey("chunk"), h.kind, &langchaingo.ProviderOptions{
				Report: func(_ context.Context, r langchaingo.Report) { report = r },
			})
			if err != nil {
				t.Fatal(err)
			}
			got, err := p.Candidates(t.Context(), mapmatched.Query{Text: question}, 3)
			if want != "" {
				if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), h.name) {
					t.Errorf("candidates %v, error %v; want %q and the provider's name", got, err, want)
				}
				return
			}
			if err != nil || len(got) != 2 || got[0].ChunkID != "roads/tunnel" || report.Foreign != 1 {
				t.Errorf("candidates %v, report %+v, error %v; want roads/tunnel first and one document skipped", got, report, err)
			}
		})
	}
}

// An empty collection is no hits, not an error.
func TestHostedNoHits(t *testing.T) {
	for _, h := range hosted {
		store, _ := h.new(t, adaptertest.NewCorpus())
		p, err := langchaingo.NewStoreProvider(h.name, store, langchaingo.IDFromKey("chunk"), h.kind, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := p.Candidates(t.Context(), mapmatched.Query{Text: "tunnel"}, 3); err != nil || len(got) != 0 {
			t.Errorf("%s: candidates %v, error %v; want none", h.name, got, err)
		}
	}
}
