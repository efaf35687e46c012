package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/mapmatched/mmplug/mapmatched"
)

// Opener opens a T at a location.
//
// Open reads all parameters, asks [Params.Err], and only then touches the disk
// or the network. It returns promptly when ctx is done; ctx governs the opening
// alone, not the life of what is opened. What needs to be closed implements
// io.Closer. Errors are best a *mapmatched.Error; any other is wrapped in one.
type Opener[T any] struct {
	Doc  Doc
	Open func(ctx context.Context, at Location, p *Params) (T, error)
}

// ProviderOpener opens candidate providers.
type ProviderOpener = Opener[mapmatched.CandidateProvider]

// GraphOpener opens corpus graphs.
type GraphOpener = Opener[mapmatched.CorpusGraph]

// EmbedderOpener opens embedders.
type EmbedderOpener = Opener[mapmatched.Embedder]

// RerankerOpener opens rerankers.
type RerankerOpener = Opener[mapmatched.Reranker]

// WriterOpener opens stores to write a corpus to.
type WriterOpener = Opener[mapmatched.CorpusWriter]

// Registry maps URL schemes to openers. The zero value is empty and ready for
// use. It is safe for concurrent use and must not be copied after first use.
type Registry struct {
	mu        sync.RWMutex
	providers map[string]ProviderOpener
	graphs    map[string]GraphOpener
	embedders map[string]EmbedderOpener
	rerankers map[string]RerankerOpener
	writers   map[string]WriterOpener
}

var defaultRegistry Registry

// Default is the registry that adapters fill when they are imported.
func Default() *Registry { return &defaultRegistry }

// RegisterProvider adds an opener of providers. It panics when the scheme is
// taken for this kind or not a lower-case scheme of two letters or more, and
// when the opener is incomplete.
func (r *Registry) RegisterProvider(scheme string, o ProviderOpener) {
	register(r, &r.providers, KindProvider, scheme, o)
}

// RegisterGraph adds an opener of graphs. It panics like RegisterProvider.
func (r *Registry) RegisterGraph(scheme string, o GraphOpener) {
	register(r, &r.graphs, KindGraph, scheme, o)
}

// RegisterEmbedder adds an opener of embedders. It panics like
// RegisterProvider.
func (r *Registry) RegisterEmbedder(scheme string, o EmbedderOpener) {
	register(r, &r.embedders, KindEmbedder, scheme, o)
}

// RegisterReranker adds an opener of rerankers. It panics like
// RegisterProvider.
func (r *Registry) RegisterReranker(scheme string, o RerankerOpener) {
	register(r, &r.rerankers, KindReranker, scheme, o)
}

// RegisterWriter adds an opener of stores to write to. It panics like
// RegisterProvider.
func (r *Registry) RegisterWriter(scheme string, o WriterOpener) {
	register(r, &r.writers, KindWriter, scheme, o)
}

// OpenProvider opens the provider at a URL. Every error is a *mapmatched.Error
// of operation "open"; its adapter is the scheme, or "registry" when the URL
// did not lead to an adapter. A context that is done opens nothing. When the
// provider implements io.Closer the caller closes it.
func (r *Registry) OpenProvider(ctx context.Context, rawURL string) (mapmatched.CandidateProvider, error) {
	return open(ctx, r, &r.providers, KindProvider, rawURL)
}

// OpenGraph opens the graph at a URL, otherwise like OpenProvider.
func (r *Registry) OpenGraph(ctx context.Context, rawURL string) (mapmatched.CorpusGraph, error) {
	return open(ctx, r, &r.graphs, KindGraph, rawURL)
}

// OpenEmbedder opens the embedder at a URL, otherwise like OpenProvider.
func (r *Registry) OpenEmbedder(ctx context.Context, rawURL string) (mapmatched.Embedder, error) {
	return open(ctx, r, &r.embedders, KindEmbedder, rawURL)
}

// OpenReranker opens the reranker at a URL, otherwise like OpenProvider.
func (r *Registry) OpenReranker(ctx context.Context, rawURL string) (mapmatched.Reranker, error) {
	return open(ctx, r, &r.rerankers, KindReranker, rawURL)
}

// OpenWriter opens the store at a URL for writing, otherwise like OpenProvider.
func (r *Registry) OpenWriter(ctx context.Context, rawURL string) (mapmatched.CorpusWriter, error) {
	return open(ctx, r, &r.writers, KindWriter, rawURL)
}

// Entries lists everything that is registered, by scheme and then in the order
// provider, graph, embedder, reranker, writer.
func (r *Registry) Entries() []Entry {
	r.mu.RLock()
	defer r.mu.RUnlock()
	var out []Entry
	out = appendEntries(out, r.providers, KindProvider)
	out = appendEntries(out, r.graphs, KindGraph)
	out = appendEntries(out, r.embedders, KindEmbedder)
	out = appendEntries(out, r.rerankers, KindReranker)
	out = appendEntries(out, r.writers, KindWriter)
	slices.SortStableFunc(out, func(a, b Entry) int { return strings.Compare(a.Scheme, b.Scheme) })
	return out
}

func appendEntries[T any](out []Entry, openers map[string]Opener[T], kind Kind) []Entry {
	for _, scheme := range slices.Sorted(maps.Keys(openers)) {
		doc := openers[scheme].Doc
		doc.Parameters = slices.Clone(doc.Parameters)
		out = append(out, Entry{Scheme: scheme, Kind: kind, Doc: doc})
	}
	return out
}

func register[T any](r *Registry, openers *map[string]Opener[T], kind Kind, scheme string, o Opener[T]) {
	if !validScheme(scheme) {
		panic(fmt.Sprintf("registry: %q is not a scheme: two or more of a-z, 0-9, '+', '-' and '.', a letter first", scheme))
	}
	if o.Open == nil {
		panic(fmt.Sprintf("registry: the %s opener of scheme %q has no Open function", kind, scheme))
	}
	if err := o.Doc.validate(); err != nil {
		panic(fmt.Sprintf("registry: the %s opener of scheme %q: %v", kind, scheme, err))
	}
	o.Doc.Parameters = slices.Clone(o.Doc.Parameters)
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, taken := (*openers)[scheme]; taken {
		panic(fmt.Sprintf("registry: scheme %q is registered twice for kind %s", scheme, kind))
	}
	if *openers == nil {
		*openers = map[string]Opener[T]{}
	}
	(*openers)[scheme] = o
}

func open[T any](ctx context.Context, r *Registry, openers *map[string]Opener[T], kind Kind, rawURL string) (T, error) {
	var none T
	at, query, err := parseURL(rawURL)
	if err != nil {
		return none, openError("registry", mapmatched.KindInvalid, fmt.Errorf("%s: %w", kind, err))
	}
	r.mu.RLock()
	o, ok := (*openers)[at.Scheme]
	known := slices.Sorted(maps.Keys(*openers))
	r.mu.RUnlock()
	if !ok {
		return none, openError("registry", mapmatched.KindInvalid, r.unknownScheme(kind, at.Scheme, known))
	}
	if err := ctx.Err(); err != nil {
		return none, wrap(at.Scheme, err)
	}
	params := newParams(at.Scheme, o.Doc, query)
	v, err := o.Open(ctx, at, params)
	if err != nil {
		return none, wrap(at.Scheme, err)
	}
	if any(v) == nil {
		return none, openError(at.Scheme, "", fmt.Errorf("the opener returned no %s and no error", kind))
	}
	if err := params.Err(); err != nil { // the opener did not ask
		if c, ok := any(v).(io.Closer); ok {
			_ = c.Close() // the caller learns of the fault in the URL instead
		}
		return none, err
	}
	return v, nil
}

// unknownScheme says which schemes there are for this kind, and for which
// other kinds the scheme stands.
func (r *Registry) unknownScheme(kind Kind, scheme string, known []string) error {
	var others []string
	for _, e := range r.Entries() {
		if e.Scheme == scheme {
			others = append(others, string(e.Kind))
		}
	}
	list := "none; import the adapter's package"
	if len(known) > 0 {
		list = strings.Join(known, ", ")
	}
	if len(others) > 0 {
		return fmt.Errorf("scheme %q opens a %s, not a %s; the known %s schemes are %s", scheme, strings.Join(others, " and a "), kind, kind, list)
	}
	return fmt.Errorf("unknown scheme %q; the known %s schemes are %s%s", scheme, kind, list, suggest(scheme, known))
}

// wrap makes an opener's error a *mapmatched.Error, once.
func wrap(scheme string, err error) error {
	var typed *mapmatched.Error
	if errors.As(err, &typed) {
		return err
	}
	var kind mapmatched.Kind
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		kind = mapmatched.KindDeadline
	case errors.Is(err, fs.ErrNotExist):
		kind = mapmatched.KindNotFound
	}
	return openError(scheme, kind, err)
}

func openError(adapter string, kind mapmatched.Kind, err error) error {
	return &mapmatched.Error{Op: "open", Adapter: adapter, Kind: kind, Err: err}
}

// RegisterProvider adds an opener of providers to the default registry. It
// panics like [Registry.RegisterProvider].
func RegisterProvider(scheme string, o ProviderOpener) { Default().RegisterProvider(scheme, o) }

// RegisterGraph adds an opener of graphs to the default registry. It panics
// like [Registry.RegisterProvider].
func RegisterGraph(scheme string, o GraphOpener) { Default().RegisterGraph(scheme, o) }

// RegisterEmbedder adds an opener of embedders to the default registry. It
// panics like [Registry.RegisterProvider].
func RegisterEmbedder(scheme string, o EmbedderOpener) { Default().RegisterEmbedder(scheme, o) }

// RegisterReranker adds an opener of rerankers to the default registry. It
// panics like [Registry.RegisterProvider].
func RegisterReranker(scheme string, o RerankerOpener) { Default().RegisterReranker(scheme, o) }

// OpenProvider opens the provider at a URL with the default registry. See
// [Registry.OpenProvider].
func OpenProvider(ctx context.Context, rawURL string) (mapmatched.CandidateProvider, error) {
	return Default().OpenProvider(ctx, rawURL)
}

// OpenGraph opens the graph at a URL with the default registry. See
// [Registry.OpenProvider].
func OpenGraph(ctx context.Context, rawURL string) (mapmatched.CorpusGraph, error) {
	return Default().OpenGraph(ctx, rawURL)
}

// OpenEmbedder opens the embedder at a URL with the default registry. See
// [Registry.OpenProvider].
func OpenEmbedder(ctx context.Context, rawURL string) (mapmatched.Embedder, error) {
	return Default().OpenEmbedder(ctx, rawURL)
}

// OpenReranker opens the reranker at a URL with the default registry. See
// [Registry.OpenProvider].
func OpenReranker(ctx context.Context, rawURL string) (mapmatched.Reranker, error) {
	return Default().OpenReranker(ctx, rawURL)
}

// OpenWriter opens the store at a URL for writing with the default registry.
// See [Registry.OpenProvider].
func OpenWriter(ctx context.Context, rawURL string) (mapmatched.CorpusWriter, error) {
	return Default().OpenWriter(ctx, rawURL)
}
