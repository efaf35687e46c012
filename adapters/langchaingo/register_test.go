package langchaingo_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/mapmatched/registry"
)

// embeddingServer speaks the protocols of OpenAI and Ollama, in the older and
// the newer form of the latter, and keeps the API keys it was sent. A vector is
// the length of the text in bytes.
type embeddingServer struct {
	*httptest.Server
	mu      sync.Mutex
	keys    []string
	batches []int
	status  int
}

func newEmbeddingServer(t *testing.T) *embeddingServer {
	t.Helper()
	s := &embeddingServer{status: http.StatusOK}
	reply := func(w http.ResponseWriter, body any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(s.status)
		_ = json.NewEncoder(w).Encode(body) // the client sees a reply that breaks off
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/embeddings", func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			Model string
			Input []string
		}
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil || in.Model != "small" {
			t.Errorf("request for model %q, error %v", in.Model, err)
		}
		s.mu.Lock()
		s.keys = append(s.keys, r.Header.Get("Authorization"))
		s.batches = append(s.batches, len(in.Input))
		s.mu.Unlock()
		var data []map[string]any
		for i, text := range in.Input {
			data = append(data, map[string]any{"index": i, "embedding": []float64{float64(len(text))}})
		}
		reply(w, map[string]any{"data": data})
	})
	mux.HandleFunc("POST /api/embeddings", func(w http.ResponseWriter, r *http.Request) {
		var in struct{ Model, Prompt string }
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil || in.Model != "small" {
			t.Errorf("request for model %q, error %v", in.Model, err)
		}
		reply(w, map[string]any{"embedding": []float64{float64(len(in.Prompt))}})
	})
	mux.HandleFunc("POST /api/embed", func(w http.ResponseWriter, r *http.Request) {
		var in struct{ Model, Input string }
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil || in.Model != "small" {
			t.Errorf("request for model %q, error %v", in.Model, err)
		}
		reply(w, map[string]any{"embeddings": [][]float64{{float64(len(in.Input))}}})
	})
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

func TestOpenEmbedder(t *testing.T) {
	// What the URL does not name has no say.
	t.Setenv("OPENAI_API_KEY", "not-this-one")
	t.Setenv("OPENAI_BASE_URL", "http://127.0.0.1:1")
	t.Setenv("OPENAI_ORGANIZATION", "nor-this")
	t.Setenv("OLLAMA_HOST", "127.0.0.1:1")
	t.Setenv("EMBEDDING_KEY", "opensesame")
	for _, tt := range []struct {
		name, parameters string
		key              string
		batches          []int
	}{
		{"openai", "&base_url=BASE/v1&batch_size=2", "", []int{2, 1}},
		{"openai", "&base_url=BASE/v1&api_key_env=EMBEDDING_KEY", "Bearer opensesame", []int{3}},
		{"openai", "&base_url=BASE/v1&query=true", "", []int{1, 1, 1}},
		{"ollama", "&server=BASE", "", nil},
	} {
		s := newEmbeddingServer(t)
		e, err := registry.OpenEmbedder(t.Context(), "langchaingo:"+tt.name+"?model=small"+strings.ReplaceAll(tt.parameters, "BASE", s.URL))
		if err != nil {
			t.Fatal(err)
		}
		vectors, err := e.Embed(t.Context(), []string{"a", "b\nb", "故"})
		if err != nil || len(vectors) != 3 || vectors[0][0] != 1 || vectors[1][0] != 3 || vectors[2][0] != 3 {
			t.Errorf("%s%s: vectors %v, error %v", tt.name, tt.parameters, vectors, err)
		}
		if !slices.Equal(s.batches, tt.batches) {
			t.Errorf("%s%s: batches %v, want %v", tt.name, tt.parameters, s.batches, tt.batches)
		}
		for _, key := range s.keys {
			if key != tt.key {
				t.Errorf("%s%s: authorization %q, want %q", tt.name, tt.parameters, key, tt.key)
			}
		}
	}
}

func TestEmbedderUnauthenticated(t *testing.T) {
	t.Setenv("EMBEDDING_KEY", "opensesame")
	s := newEmbeddingServer(t)
	s.status = http.StatusUnauthorized
	for parameters, want := range map[string]string{"": "name the variable that has it in api_key_env", "&api_key_env=EMBEDDING_KEY": "the API key is wrong"} {
		e, err := registry.OpenEmbedder(t.Context(), "langchaingo:openai?model=small&base_url="+s.URL+"/v1"+parameters)
		if err != nil {
			t.Fatal(err)
		}
		_, err = e.Embed(t.Context(), []string{"a"})
		if mapmatched.KindOf(err) != mapmatched.KindUnauthenticated || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "opensesame") {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

func TestOpenEmbedderFaults(t *testing.T) {
	t.Setenv("EMBEDDING_KEY", "opensesame")
	for at, want := range map[string]string{
		"langchaingo:":                                  "the path is missing",
		"langchaingo://openai?model=m":                  "is read as a host",
		"langchaingo:cohere?model=m":                    `service "cohere" is not known`,
		"langchaingo:openai":                            "parameter model is missing",
		"langchaingo:ollama":                            "parameter model is missing",
		"langchaingo:openai?model=m&api_key_env=UNSET1": "the environment variable UNSET1 is not set",
		"langchaingo:openai?model=m&server=http://h":    "has no effect",
		"langchaingo:ollama?model=m&base_url=http://h":  "has no effect",
		"langchaingo:ollama?model=m&batch_size=0":       `batch_size="0"`,
		"langchaingo:openai?model=m&models=m":           `did you mean "model"`,
		"langchaingo:openai?model=m&api_key=opensesame": "secrets do not belong in a URL",
		"langchaingo:ollama?model=m&server=localhost":   "parameter server is not of the form",
		"langchaingo:ollama?model=m&server=%3A%3A":      "parameter server is not of the form",
		"langchaingo:openai?model=m&base_url=" + url.QueryEscape("http://u:opensesame@h/v1"):              "has a user name or password",
		"langchaingo:openai?model=m&base_url=" + url.QueryEscape("http://h/v1?key=opensesame"):            "has a query or fragment",
		"langchaingo:openai?model=m&base_url=http://example.com/v1&api_key_env=EMBEDDING_KEY":             "without TLS",
		"langchaingo:openai?model=m&base_url=http://example.com/v1&api_key_env=EMBEDDING_KEY&insecure=no": `insecure="no"`,
	} {
		_, err := registry.OpenEmbedder(t.Context(), at)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "opensesame") {
			t.Errorf("%s: error %v, want %q and no secret", at, err, want)
		}
	}
	for _, at := range []string{
		"langchaingo:openai?model=m&base_url=https://example.com/v1&api_key_env=EMBEDDING_KEY",
		"langchaingo:openai?model=m&base_url=http://example.com/v1&api_key_env=EMBEDDING_KEY&insecure=true",
		"langchaingo:openai?model=m&base_url=http://localhost:8080/v1&api_key_env=EMBEDDING_KEY",
		"langchaingo:openai?model=m&base_url=http://example.com/v1",
	} {
		if _, err := registry.OpenEmbedder(t.Context(), at); err != nil {
			t.Errorf("%s: %v", at, err)
		}
	}
}
