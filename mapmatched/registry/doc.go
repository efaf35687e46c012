// Package registry opens providers, graphs, embedders, rerankers and writers by
// URL.
//
// An adapter registers an opener under a URL scheme, usually for [Default] in
// an init function, and a program that imports the adapter opens it by URL:
//
//	p, err := registry.OpenProvider(ctx, "qdrant://localhost:6334/pages?vector=dense")
//	g, err := registry.OpenGraph(ctx, "embedded:path/to/index")
//
// One scheme may stand for several kinds: the same URL then opens the provider
// and the graph of one store.
//
// # URLs
//
// A URL is scheme://host:port/name?parameters for something on the network and
// scheme:path?parameters for something on disk, where path may be relative or
// absolute. In both, "%", "?" and "#" of a name are written %25, %3F and %23.
//
// Secrets are never in a URL. A parameter such as api_key_env=NAME says which
// environment variable has the secret; a literal one (api_key=…, user:password@)
// is refused, and no error repeats it.
package registry

import (
	"fmt"
	"slices"
	"strings"
)

// Kind is what an opener opens.
type Kind string

// The kinds.
const (
	KindProvider Kind = "provider"
	KindGraph    Kind = "graph"
	KindEmbedder Kind = "embedder"
	KindReranker Kind = "reranker"
	KindWriter   Kind = "writer"
)

// Doc describes an opener to its users.
type Doc struct {
	Summary    string      // one line: what is opened; required
	Example    string      // a URL that works, "" for none
	Parameters []Parameter // every parameter that the opener reads, in the order to print them
}

// Parameter describes one URL parameter.
type Parameter struct {
	Name    string // as in the URL, such as "limit" or "api_key_env"
	Usage   string // one line: meaning, unit and range
	Default string // as it would be written in the URL, "" for none
}

// names lists the names of the parameters in the order of the Doc.
func (d Doc) names() []string {
	names := make([]string, len(d.Parameters))
	for i, p := range d.Parameters {
		names[i] = p.Name
	}
	return names
}

// validate reports the first fault of the Doc.
func (d Doc) validate() error {
	if d.Summary == "" || strings.ContainsAny(d.Summary, "\r\n") {
		return fmt.Errorf("summary %q is not one line of text", d.Summary)
	}
	for i, p := range d.Parameters {
		switch {
		case !validName(p.Name):
			return fmt.Errorf("parameter name %q is not made of a-z, 0-9, '_', '-' and '.'", p.Name)
		case looksSecret(p.Name):
			return fmt.Errorf("parameter %q would put a secret into a URL; name it %s_env and read it with Params.Secret", p.Name, p.Name)
		case slices.Contains(d.names()[:i], p.Name):
			return fmt.Errorf("parameter %q is listed twice", p.Name)
		}
	}
	return nil
}

// validName reports whether s can be the name of a parameter.
func validName(s string) bool {
	for _, c := range s {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && !strings.ContainsRune("_-.", c) {
			return false
		}
	}
	return s != ""
}

// Entry is one registered opener.
type Entry struct {
	Scheme string
	Kind   Kind
	Doc    Doc
}
