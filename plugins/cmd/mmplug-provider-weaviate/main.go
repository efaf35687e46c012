// Command mmplug-provider-weaviate is a plugin that searches a Weaviate class. It
// runs Weaviate's client in a process of its own, so that an application may use
// any version of the modules that the client needs, langchaingo's among them.
//
// Its configuration has "url", such as weaviate://host:8080/Pages?grpc=50051, and
// may have "graph", the URL of the corpus graph, which it serves as well then.
// "mmplug adapters" lists the parameters. Variables that a parameter such as
// api_key_env names must be passed on by the host.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/mapmatched/mmplug/adapters/weaviate"
	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/mapmatched/registry"
	"github.com/mapmatched/mmplug/plugins"
)

const schema = `{
	"type": "object", "required": ["url"], "additionalProperties": false,
	"properties": {
		"url": {"type": "string", "description": "class to search, such as weaviate://host:8080/Pages?grpc=50051"},
		"graph": {"type": "string", "description": "class with the corpus graph, such as weaviate://host:8080/Pages; without it, no graph is served"}
	}
}`

func main() {
	plugins.Serve(plugins.Plugin{
		Name:        "weaviate",
		Version:     "1.0.0",
		Description: "searches a Weaviate class, and serves its corpus graph",
		Schema:      json.RawMessage(schema),
		Kinds:       []plugins.Kind{plugins.KindProvider},
		Configure:   configure,
	})
}

func configure(ctx context.Context, config json.RawMessage) (plugins.Services, error) {
	c, err := plugins.DecodeConfig[struct{ URL, Graph string }](config)
	if err != nil {
		return plugins.Services{}, err
	}
	for _, url := range []string{c.URL, c.Graph} {
		if url != "" && !strings.HasPrefix(url, weaviate.Scheme+"://") {
			err := fmt.Errorf("%q is no URL of a class: it begins with %s://", url, weaviate.Scheme)
			return plugins.Services{}, &mapmatched.Error{Op: "configure", Adapter: weaviate.Scheme, Kind: mapmatched.KindInvalid, Err: err}
		}
	}
	var s plugins.Services
	if s.Provider, err = registry.OpenProvider(ctx, c.URL); err != nil {
		return plugins.Services{}, err
	}
	if c.Graph == "" {
		return s, nil
	}
	if s.Graph, err = registry.OpenGraph(ctx, c.Graph); err != nil {
		if closer, ok := s.Provider.(io.Closer); ok {
			err = errors.Join(err, closer.Close())
		}
		return plugins.Services{}, err
	}
	return s, nil
}
