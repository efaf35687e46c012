package langchaingo

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"

	"github.com/tmc/langchaingo/embeddings"
	"github.com/tmc/langchaingo/llms/ollama"
	"github.com/tmc/langchaingo/llms/openai"

	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/mapmatched/registry"
)

// Scheme is the URL scheme of embedders: langchaingo:openai?model=… and
// langchaingo:ollama?model=….
const Scheme = "langchaingo"

const (
	openAIURL = "https://api.openai.com/v1"
	ollamaURL = "http://127.0.0.1:11434"
)

func init() {
	registry.RegisterEmbedder(Scheme, registry.EmbedderOpener{
		Doc: registry.Doc{
			Summary: "embedding services: langchaingo:openai (and compatible ones) and langchaingo:ollama",
			Example: "langchaingo:ollama?model=nomic-embed-text&server=http://127.0.0.1:11434",
			Parameters: []registry.Parameter{
				{Name: "model", Usage: "name of the embedding model; required"},
				{Name: "base_url", Usage: "openai: where the service is", Default: openAIURL},
				{Name: "api_key_env", Usage: "openai: environment variable that has the API key; without it none is sent"},
				{Name: "insecure", Usage: "openai: true sends the API key without TLS to another machine", Default: "false"},
				{Name: "server", Usage: "ollama: where the service is", Default: ollamaURL},
				{Name: "batch_size", Usage: "texts of one call, 1 to 2048", Default: fmt.Sprint(DefaultBatchSize)},
				{Name: "revision", Usage: "what the service runs, as you call it; stored with the vectors, which are refused under another"},
				{Name: "query", Usage: "true embeds every text as a query", Default: "false"},
			},
		},
		Open: openEmbedder,
	})
}

func openEmbedder(_ context.Context, at registry.Location, p *registry.Params) (mapmatched.Embedder, error) {
	model := p.String("model", "")
	_ = p.String("revision", "") // for those who store vectors; the service has no say
	opts := &EmbedderOptions{BatchSize: p.Int("batch_size", DefaultBatchSize, 1, 2048), Query: p.Bool("query", false)}
	service, err := at.File()
	if err != nil {
		return nil, fail("open", mapmatched.KindInvalid, "%w", err)
	}
	var client embeddings.EmbedderClient
	switch service {
	case "openai":
		client, err = openOpenAI(model, p)
	case "ollama":
		client, err = openOllama(model, p)
	default:
		return nil, fail("open", mapmatched.KindInvalid, "service %q is not known; write %s:openai or %s:ollama", service, Scheme, Scheme)
	}
	if err != nil {
		return nil, err
	}
	inner, err := embeddings.NewEmbedder(client, embeddings.WithStripNewLines(false), embeddings.WithBatchSize(opts.BatchSize))
	if err != nil {
		return nil, fail("open", mapmatched.KindInvalid, "%w", err)
	}
	return NewEmbedder(service+"/"+model, inner, opts)
}

var errNoModel = errors.New("parameter model is missing; name the embedding model")

func openOpenAI(model string, p *registry.Params) (embeddings.EmbedderClient, error) {
	base := p.String("base_url", openAIURL)
	key := p.Secret("api_key")
	insecure := p.Bool("insecure", false)
	if err := p.Err(); err != nil {
		return nil, err
	}
	if model == "" {
		return nil, fail("open", mapmatched.KindInvalid, "%w", errNoModel)
	}
	u, err := serviceURL("base_url", base)
	if err != nil {
		return nil, err
	}
	if key != "" && u.Scheme == "http" && !loopback(u.Hostname()) && !insecure {
		return nil, fail("open", mapmatched.KindInvalid, "the API key would go to %s without TLS; use https, or insecure=true if that is meant", u.Host)
	}
	// Everything is set here, so that no variable of the environment that the
	// URL does not name has a say.
	token := key
	if token == "" {
		token = "none" // the client refuses an empty one; keyless takes it out again
	}
	client, err := openai.New(openai.WithToken(token), openai.WithModel(model), openai.WithEmbeddingModel(model),
		openai.WithBaseURL(base), openai.WithOrganization(""), openai.WithHTTPClient(newDoer(key == "")))
	if err != nil {
		return nil, fail("open", mapmatched.KindInvalid, "%w", err)
	}
	return client, nil
}

func openOllama(model string, p *registry.Params) (embeddings.EmbedderClient, error) {
	server := p.String("server", ollamaURL)
	if err := p.Err(); err != nil {
		return nil, err
	}
	if model == "" {
		return nil, fail("open", mapmatched.KindInvalid, "%w", errNoModel)
	}
	if _, err := serviceURL("server", server); err != nil { // the client ends the program on a bad one
		return nil, err
	}
	client, err := ollama.New(ollama.WithModel(model), ollama.WithServerURL(server), ollama.WithHTTPClient(newClient(true)))
	if err != nil {
		return nil, fail("open", mapmatched.KindInvalid, "%w", err)
	}
	return client, nil
}

// serviceURL checks the address of a service. Its errors do not repeat what
// may be a secret.
func serviceURL(parameter, raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, fail("open", mapmatched.KindInvalid, "parameter %s is not of the form http://HOST:PORT/PATH or https://HOST/PATH", parameter)
	case u.User != nil:
		return nil, fail("open", mapmatched.KindInvalid, "parameter %s has a user name or password; name the variable with the API key in api_key_env", parameter)
	case u.RawQuery != "" || u.Fragment != "":
		return nil, fail("open", mapmatched.KindInvalid, "parameter %s has a query or fragment; paths are put behind it", parameter)
	}
	return u, nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
