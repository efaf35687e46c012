package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/llms/ollama"
	"github.com/tmc/langchaingo/llms/openai"

	"github.com/mapmatched/mmplug/adapters/langchaingo"
	"github.com/mapmatched/mmplug/mapmatched/eval"
)

// rewriterUsage says what --rewriter takes.
const rewriterUsage = "langchaingo:ollama?model=NAME&server=URL, or langchaingo:openai?model=NAME&base_url=URL&api_key_env=VARIABLE; replies are kept in --cache"

// openRewriter opens the language model that --rewriter names. Its replies are
// kept below the directory of --cache.
func openRewriter(spec, cache string) (eval.RewriteFunc, string, error) {
	switch {
	case spec == "":
		return nil, "", usageError{errors.New("the baseline llm needs a language model: give --rewriter " + rewriterUsage)}
	case cache == "":
		return nil, "", usageError{errors.New("the baseline llm needs a directory for the replies: give --cache DIR")}
	}
	model, name, err := openLanguageModel(spec)
	if err != nil {
		return nil, "", usageError{fmt.Errorf("--rewriter: %w", err)}
	}
	rewriter, err := langchaingo.NewRewriter(model, name, filepath.Join(cache, "rewrites"))
	if err != nil {
		return nil, "", err
	}
	return func(ctx context.Context, history []string, question string) (string, error) {
		r, err := rewriter.Rewrite(ctx, history, question)
		return r.Effective, err
	}, name, nil
}

// openLanguageModel opens a model and names it: the service, where it is and
// what it is called.
func openLanguageModel(spec string) (llms.Model, string, error) {
	u, err := url.Parse(spec)
	if err != nil || u.Scheme != langchaingo.Scheme {
		return nil, "", errors.New("wanted " + rewriterUsage)
	}
	values, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, "", errors.New("the parameters cannot be read; escape them as in a URL")
	}
	parameter, fallback, allowed := "server", "http://127.0.0.1:11434", []string{"model", "server"}
	switch u.Opaque {
	case "ollama":
	case "openai":
		parameter, fallback, allowed = "base_url", "https://api.openai.com/v1", []string{"model", "base_url", "api_key_env"}
	default:
		return nil, "", fmt.Errorf("service %q is not known; write langchaingo:ollama or langchaingo:openai", u.Opaque)
	}
	for key := range values {
		if !strings.Contains(" "+strings.Join(allowed, " ")+" ", " "+key+" ") {
			return nil, "", fmt.Errorf("parameter %q is not known; %s takes %s", key, u.Opaque, strings.Join(allowed, ", "))
		}
	}
	model, place := values.Get("model"), values.Get(parameter)
	if model == "" {
		return nil, "", errors.New("parameter model is missing; name the language model")
	}
	if place == "" {
		place = fallback
	}
	at, err := url.Parse(place)
	if err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Host == "" || at.User != nil {
		return nil, "", fmt.Errorf("parameter %s is not of the form http://HOST:PORT or https://HOST", parameter)
	}
	name := u.Opaque + "/" + model
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error {
		return fmt.Errorf("the service redirects; name the right address in %s", parameter)
	}}
	if u.Opaque == "ollama" {
		m, err := ollama.New(ollama.WithModel(model), ollama.WithServerURL(place), ollama.WithHTTPClient(client))
		return m, name, err
	}
	key := "none" // the client refuses an empty one
	if variable := values.Get("api_key_env"); variable != "" {
		if key = os.Getenv(variable); key == "" {
			return nil, "", fmt.Errorf("the environment variable %s of api_key_env is not set", variable)
		}
		if ip := net.ParseIP(at.Hostname()); at.Scheme == "http" && at.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback()) {
			return nil, "", fmt.Errorf("the API key would go to %s without TLS; use https", at.Host)
		}
	}
	m, err := openai.New(openai.WithToken(key), openai.WithModel(model), openai.WithBaseURL(place), openai.WithOrganization(""), openai.WithHTTPClient(client))
	return m, name, err
}
