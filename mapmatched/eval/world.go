package eval

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/mapmatched/mmplug/adapters/embedded"
	"github.com/mapmatched/mmplug/adapters/embedded/lexical"
	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/policy"
)

// Scope says which chunks compete for the turns of a conversation.
type Scope string

// The scopes.
const (
	// ScopeAll: the whole corpus.
	ScopeAll Scope = "all"
	// ScopeDomain: the chunks of the conversation's domain, as an index of
	// their own: inverse document frequencies are those of the domain.
	ScopeDomain Scope = "domain"
	// ScopeDocument: the chunks of the conversation's document, filtered out
	// of an index of the whole corpus, whose inverse document frequencies
	// count.
	ScopeDocument Scope = "doc_scope"
)

// Scopes lists the scopes.
func Scopes() []Scope { return []Scope{ScopeAll, ScopeDomain, ScopeDocument} }

// Arm says what candidates are found by.
type Arm string

// The arms.
const (
	ArmLexical Arm = "lexical" // words, BM25
	ArmDense   Arm = "dense"   // vectors, cosine
	ArmHybrid  Arm = "hybrid"  // both, fused
)

// GraphSource says where the edges of the corpus graph come from.
type GraphSource string

// The sources.
const (
	GraphStructure GraphSource = "structure" // order, headings and links, as mmplug index makes them
	GraphNoLinks   GraphSource = "no_links"  // the same without links between documents
	GraphNext      GraphSource = "next"      // order of the chunks of a document alone
	GraphKNN       GraphSource = "knn"       // the nearest vectors of each chunk, graph.k of the policy
	GraphNone      GraphSource = "none"      // no edges: every other chunk is at the maximum distance
)

// WorldOptions are the settings of NewWorld. The zero value, and nil, are the
// defaults.
type WorldOptions struct {
	// Scope says which chunks compete; "" means ScopeAll.
	Scope Scope
	// Vectors of chunks and queries; nil searches words alone.
	Vectors *Vectors
	// Arm finds the candidates of the baselines, and of policies that pin no
	// vectors; "" means ArmLexical. The others need vectors.
	Arm Arm
	// NoReplies withholds the assistant's replies, as for an application that
	// does not pass them.
	NoReplies bool
}

// World is a data set that is ready to be searched: indexes and graphs in
// memory, made when they are first asked for and kept. It is safe for
// concurrent use.
type World struct {
	data    *Data
	scope   Scope
	arm     Arm
	vectors *Vectors
	replies bool // policies see the assistant's replies

	mu      sync.Mutex
	indexes map[indexKey]*lazy[*index]
	graphs  map[graphKey]*lazy[*corpusGraph]
}

type indexKey struct {
	domain string
	k1, b  float64
}

type graphKey struct {
	domain  string
	source  GraphSource
	weights string
	maximum float64
}

// NewWorld checks that every conversation has its scope and every gold chunk is
// in it.
func NewWorld(d *Data, opts *WorldOptions) (*World, error) {
	if opts == nil {
		opts = &WorldOptions{}
	}
	w := &World{data: d, scope: opts.Scope, arm: opts.Arm, vectors: opts.Vectors, replies: !opts.NoReplies,
		indexes: map[indexKey]*lazy[*index]{}, graphs: map[graphKey]*lazy[*corpusGraph]{}}
	if opts.NoReplies {
		w.data = d.withoutReplies()
	}
	if w.scope == "" {
		w.scope = ScopeAll
	}
	if w.arm == "" {
		w.arm = ArmLexical
	}
	if !slices.Contains(Scopes(), w.scope) {
		return nil, fmt.Errorf("there is no scope %q: use %s, %s or %s", w.scope, ScopeAll, ScopeDomain, ScopeDocument)
	}
	switch w.arm {
	case ArmLexical:
	case ArmDense, ArmHybrid:
		if w.vectors == nil {
			return nil, fmt.Errorf("the arm %s needs vectors: give an embedding model or a file of vectors", w.arm)
		}
	default:
		return nil, fmt.Errorf("there is no arm %q: use %s, %s or %s", w.arm, ArmLexical, ArmDense, ArmHybrid)
	}
	if w.vectors != nil {
		if err := w.vectors.check(d); err != nil {
			return nil, err
		}
	}
	return w, w.check()
}

// Data returns what the world was made of.
func (w *World) Data() *Data { return w.data }

// Scope returns which chunks compete.
func (w *World) Scope() Scope { return w.scope }

// Arm returns what candidates are found by.
func (w *World) Arm() Arm { return w.arm }

// check reports the first conversation that has no scope, or a gold outside it.
func (w *World) check() error {
	known := map[string]bool{}
	for i := range w.data.Corpus.Chunks {
		c := &w.data.Corpus.Chunks[i]
		switch w.scope {
		case ScopeDomain:
			known[c.Domain] = true
		case ScopeDocument:
			known[c.Document] = true
		}
	}
	for i := range w.data.Conversations {
		c := &w.data.Conversations[i]
		value := w.scopeValue(c)
		if w.scope != ScopeAll && value == "" {
			return fmt.Errorf("scope %s: conversation %q has none: use another scope", w.scope, c.ID)
		}
		if w.scope != ScopeAll && !known[value] {
			return fmt.Errorf("scope %s: conversation %q has %q, and no chunk does: use another scope", w.scope, c.ID, value)
		}
		for t := range c.Turns {
			for _, g := range c.Turns[t].Gold {
				if !w.inScope(c, w.data.Corpus.Find(g.ChunkID)) {
					return fmt.Errorf("scope %s: conversation %q, turn %d: gold %q is outside %q: use another scope", w.scope, c.ID, t+1, g.ChunkID, value)
				}
			}
		}
	}
	return nil
}

// scopeValue is what a chunk has to have to compete for a conversation.
func (w *World) scopeValue(c *Conversation) string {
	switch w.scope {
	case ScopeDomain:
		return c.Domain
	case ScopeDocument:
		return c.Document
	}
	return ""
}

func (w *World) inScope(c *Conversation, chunk *Chunk) bool {
	switch w.scope {
	case ScopeDomain:
		return chunk.Domain == c.Domain
	case ScopeDocument:
		return chunk.Document == c.Document
	}
	return true
}

// Collection returns the chunks that compete for a conversation, searched and
// joined as the policy says.
func (w *World) Collection(ctx context.Context, c *Conversation, p *policy.Policy) (*Collection, error) {
	return w.collection(ctx, c, p, GraphStructure)
}

func (w *World) collection(ctx context.Context, c *Conversation, p *policy.Policy, source GraphSource) (*Collection, error) {
	domain := ""
	if w.scope == ScopeDomain {
		domain = c.Domain
	}
	ix, err := once(w, w.indexes, indexKey{domain, p.Lexical.K1, p.Lexical.B}, func() (*index, error) {
		return w.newIndex(ctx, domain, embedded.BM25{K1: p.Lexical.K1, B: p.Lexical.B})
	})
	if err != nil {
		return nil, err
	}
	key := graphKey{domain, source, fmt.Sprint(p.Graph.Weights), p.Graph.MaximumDistance}
	if source == GraphKNN {
		key.weights = fmt.Sprint(p.Graph.K, p.Graph.MinimumEdgeDistance)
	}
	graph, err := once(w, w.graphs, key, func() (*corpusGraph, error) { return w.newGraph(ctx, ix, p, source) })
	if err != nil {
		return nil, err
	}
	collection := &Collection{index: ix, graph: graph, arm: w.arm, vectors: w.vectors}
	if w.scope == ScopeDocument {
		collection.only = ix.documents[c.Document]
	}
	return collection, nil
}

// lazy is a value that is made once.
type lazy[T any] struct {
	once  sync.Once
	value T
	err   error
}

// once returns the value of a key, making it if nobody has. A failure is
// returned to all who wait for it and not kept.
func once[K comparable, T any](w *World, values map[K]*lazy[T], key K, create func() (T, error)) (T, error) {
	w.mu.Lock()
	l, found := values[key]
	if !found {
		l = &lazy[T]{}
		values[key] = l
	}
	w.mu.Unlock()
	l.once.Do(func() { l.value, l.err = create() })
	if l.err != nil {
		w.mu.Lock()
		if values[key] == l {
			delete(values, key)
		}
		w.mu.Unlock()
	}
	return l.value, l.err
}

// index searches the chunks of the corpus, or of one domain of it.
type index struct {
	chunks    []*Chunk // by position, in the order of the corpus
	position  map[string]uint32
	documents map[string][]uint32 // positions of the chunks of each document, ascending
	found     []mapmatched.Candidate
	words     *lexical.Index
	bm25      embedded.BM25
	vectors   [][]float32 // by position, of unit length; nil without

	tfidf func() []sparse // for similarity of chunks
}

// newIndex makes the index of a domain, "" being the whole corpus.
func (w *World) newIndex(ctx context.Context, domain string, bm25 embedded.BM25) (*index, error) {
	ix := &index{position: map[string]uint32{}, documents: map[string][]uint32{}, bm25: bm25}
	for i := range w.data.Corpus.Chunks {
		c := &w.data.Corpus.Chunks[i]
		if domain != "" && c.Domain != domain {
			continue
		}
		at := uint32(len(ix.chunks))
		ix.position[c.ID] = at
		ix.documents[c.Document] = append(ix.documents[c.Document], at)
		ix.chunks = append(ix.chunks, c)
		ix.found = append(ix.found, mapmatched.Candidate{ChunkID: c.ID, Text: c.Text, Metadata: map[string]any{
			"document": c.Document, "title": c.Title, "section": c.Section, "ordinal": c.Ordinal, "start": c.Start, "end": c.End,
		}})
		if w.vectors != nil {
			ix.vectors = append(ix.vectors, w.vectors.Chunks[c.ID])
		}
	}
	var err error
	ix.words, err = lexical.Build(ctx, bm25, len(ix.chunks), ix.text)
	if err != nil {
		return nil, fmt.Errorf("index: %w", err)
	}
	ix.tfidf = sync.OnceValue(ix.termVectors)
	return ix, nil
}

// text is what is searched of a chunk: its embedded.DefaultFields.
func (ix *index) text(i int) string {
	c := ix.chunks[i]
	return c.Title + "\n" + c.Section + "\n" + c.Text
}

// errNoVectors: a graph or arm needs vectors.
var errNoVectors = errors.New("there are no vectors: give an embedding model or a file of vectors")
