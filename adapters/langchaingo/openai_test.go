package langchaingo_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/mapmatched/registry"
)

// serve runs a handler and returns its address.
func serve(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// embed embeds texts by a service at an address.
func embed(t *testing.T, at string, texts ...string) ([][]float32, error) {
	t.Helper()
	e, err := registry.OpenEmbedder(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	return e.Embed(t.Context(), texts)
}

// The index of an entry says which text it is of, not its place.
func TestOpenAIIndex(t *testing.T) {
	for _, test := range []struct {
		data, want string // the vectors, or the error
	}{
		{`{"index":0,"embedding":[1]},{"index":1,"embedding":[2]},{"index":2,"embedding":[3]}`, "[[1] [2] [3]]"},
		{`{"index":2,"embedding":[3]},{"index":0,"embedding":[1]},{"index":1,"embedding":[2]}`, "[[1] [2] [3]]"},
		{`{"embedding":[1]},{"embedding":[2]},{"embedding":[3]}`, "[[1] [2] [3]]"},
		{`{"index":0,"embedding":[1]},{"index":0,"embedding":[2]},{"index":2,"embedding":[3]}`, "two entries of data have the index 0"},
		{`{"index":0,"embedding":[1]},{"embedding":[2]},{"index":2,"embedding":[3]}`, "1 of 3 entries of data have no index"},
		{`{"index":1,"embedding":[1]},{"index":2,"embedding":[2]},{"index":3,"embedding":[3]}`, "has the index 3, and there are 3"},
		{`{"index":-1,"embedding":[1]},{"index":1,"embedding":[2]},{"index":2,"embedding":[3]}`, "has the index -1"},
		{`{"index":"0","embedding":[1]}`, "entry 0 of data"},
		{`{"index":1,"embedding":[2]},{"index":0,"embedding":[1]}`, "texts 0 to 2 of 3"},
		{`{`, "not the JSON"},
	} {
		base := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			_, _ = fmt.Fprintf(w, `{"object":"list","data":[%s]}`, test.data) // the client sees what is missing
		})
		vectors, err := embed(t, "langchaingo:openai?model=m&base_url="+base+"/v1", "a", "b", "c")
		got := fmt.Sprint(vectors)
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, test.want) {
			t.Errorf("%s: %s, want %s", test.data, got, test.want)
		}
	}
}

// Neither the key nor the texts go where the address does not say.
func TestRedirects(t *testing.T) {
	t.Setenv("EMBEDDING_KEY", "opensesame")
	reached := false
	elsewhere := serve(t, func(http.ResponseWriter, *http.Request) { reached = true })
	away := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere+r.URL.Path, http.StatusTemporaryRedirect)
	})
	within := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/new") {
			http.Redirect(w, r, "/new"+r.URL.Path, http.StatusTemporaryRedirect)
			return
		}
		_, _ = fmt.Fprint(w, `{"data":[{"index":0,"embedding":[1]}]}`) // the client sees what is missing
	})
	loop := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.URL.Path, http.StatusTemporaryRedirect)
	})
	for at, want := range map[string]string{
		"langchaingo:openai?model=m&base_url=" + away + "/v1":                             "which is another place",
		"langchaingo:openai?model=m&base_url=" + away + "/v1&api_key_env=EMBEDDING_KEY":   "the API key is not sent on",
		"langchaingo:openai?model=m&base_url=" + within + "/v1&api_key_env=EMBEDDING_KEY": "the API key is not sent on",
		"langchaingo:openai?model=m&base_url=" + loop + "/v1":                             "more than 10 times",
		"langchaingo:ollama?model=m&server=" + away:                                       "which is another place",
		"langchaingo:openai?model=m&revision=r1&base_url=" + within + "/v1":               "",
	} {
		_, err := embed(t, at, "a")
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want) || mapmatched.KindOf(err) != mapmatched.KindInvalid) {
			t.Errorf("%s: error %v, want %q", at, err, want)
		}
	}
	if reached {
		t.Error("the other place was asked")
	}
}

func TestNotFoundSaysWhere(t *testing.T) {
	base := serve(t, http.NotFound)
	for path, want := range map[string]string{"": base + "/embeddings: does base_url end in /v1?", "/v1": base + "/v1/embeddings: is the model there?"} {
		_, err := embed(t, "langchaingo:openai?model=m&base_url="+base+path, "a")
		if err == nil || !strings.Contains(err.Error(), want) || mapmatched.KindOf(err) != mapmatched.KindNotFound {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}
