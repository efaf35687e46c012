package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"

	"github.com/mapmatched/mmplug/adapters/embedded"
	"github.com/mapmatched/mmplug/adapters/embedded/lexical"
	_ "github.com/mapmatched/mmplug/adapters/qdrant"
	_ "github.com/mapmatched/mmplug/adapters/weaviate"
	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/mapmatched/registry"
	"github.com/mapmatched/mmplug/policy"
)

// store is what a conversation asks at a URL instead of an index directory: a
// provider and a graph.
type store struct {
	url, graphURL string
	provider      mapmatched.CandidateProvider
	graph         mapmatched.CorpusGraph // nil when none is needed
}

// openStore opens the provider at a URL, and a graph if the policies need one:
// that at its own URL, or the one that the store has beside its passages.
func openStore(ctx context.Context, at, graphAt string, policies ...*policy.Policy) (*store, error) {
	provider, err := registry.OpenProvider(ctx, at)
	if err != nil {
		return nil, err
	}
	s := &store{url: at, graphURL: graphAt, provider: provider}
	if err := s.openGraph(ctx, policies); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *store) openGraph(ctx context.Context, policies []*policy.Policy) error {
	given := s.graphURL != ""
	if !given {
		needs := slices.IndexFunc(policies, needsGraph)
		if needs < 0 {
			return nil
		}
		const hint = "name a graph with --graph URL, or use a policy with decode.transition_weight 0"
		if s.graphURL = graphURL(s.url); s.graphURL == "" {
			return fmt.Errorf("policy %s needs a graph, and %s has none: %s", policies[needs].Name, s.url, hint)
		}
		graph, err := registry.OpenGraph(ctx, s.graphURL)
		if err != nil {
			return fmt.Errorf("the graph at the same place: %w; %s", err, hint)
		}
		s.graph = graph
		return nil
	}
	graph, err := registry.OpenGraph(ctx, s.graphURL)
	s.graph = graph
	return err
}

// needsGraph reports whether a conversation under a policy follows a graph.
func needsGraph(p *policy.Policy) bool {
	return p.Decode.TransitionWeight > 0 || p.Transition.Stage != policy.StageOff || p.Proposals.Stage != policy.StageOff || p.Decay.Stage != policy.StageOff
}

// graphURL is the URL of the graph that a store has beside its passages: the
// same one, with the parameters that its graph takes. It is "" when its scheme
// opens no graph.
func graphURL(at string) string {
	e := opener(registry.KindGraph, at)
	if e == nil {
		return ""
	}
	return withParameters(at, func(name string) bool {
		return slices.ContainsFunc(e.Doc.Parameters, func(p registry.Parameter) bool { return p.Name == name })
	})
}

// opens reports whether the scheme of a URL opens something of a kind.
func opens(kind registry.Kind, at string) bool { return opener(kind, at) != nil }

// opener is the entry for what the scheme of a URL opens of a kind, nil when it
// opens nothing.
func opener(kind registry.Kind, at string) *registry.Entry {
	scheme, _, _ := strings.Cut(at, ":")
	for _, e := range registry.Default().Entries() {
		if e.Kind == kind && e.Scheme == strings.ToLower(scheme) {
			return &e
		}
	}
	return nil
}

// withParameters is a URL with some of its parameters.
func withParameters(at string, keep func(name string) bool) string {
	place, query, _ := strings.Cut(at, "?")
	var kept []string
	for piece := range strings.SplitSeq(query, "&") {
		name, _, _ := strings.Cut(piece, "=")
		if plain, err := url.QueryUnescape(name); err == nil && piece != "" && keep(plain) {
			kept = append(kept, piece)
		}
	}
	if len(kept) == 0 {
		return place
	}
	return place + "?" + strings.Join(kept, "&")
}

// placeOf is a URL without what only says how to get in.
func placeOf(at string) string {
	return withParameters(at, func(name string) bool { return !strings.HasSuffix(name, "_env") })
}

// capability is the first of several things that can do what T asks for, nil
// when none can.
func capability[T any](of ...any) (can T) {
	for _, v := range of {
		if able, ok := v.(T); ok {
			return able
		}
	}
	return can
}

func closeAll(all ...any) {
	for _, v := range all {
		if c, ok := v.(io.Closer); ok {
			c.Close() //nolint:errcheck // only read
		}
	}
}

// name implements searched.
func (s *store) name() string { return s.url }

// close implements searched.
func (s *store) close() { closeAll(s.graph, s.provider) }

// chunks implements searched.
func (s *store) chunks() mapmatched.ChunkFetcher {
	return capability[mapmatched.ChunkFetcher](s.provider, s.graph)
}

// usualIDF stands for the inverse document frequency of every term of a question
// put to a store, which does not say in how many chunks a term is. It is the mean
// over the content words of questions on some thousand chunks of government pages.
const usualIDF = 3.4

// parts implements searched. What the store cannot do is missing in them, which
// policy.New reports where the policy needs it.
func (s *store) parts(ctx context.Context, u *usedPolicy, model *embedding) (policy.Parts, error) {
	identity, err := storeIdentity(ctx, u, s.provider)
	if err != nil {
		return policy.Parts{}, err
	}
	parts := policy.Parts{
		Graph: s.graph, Chunks: s.chunks(), Vectors: capability[mapmatched.VectorFetcher](s.provider, s.graph),
		Arms:    []policy.FusedArm{{Name: policy.ArmLexical, Provider: s.provider}},
		Analyze: lexical.Analyze, IDF: func(string) (float64, bool) { return usualIDF, true },
	}
	if model != nil {
		parts.Arms[0].Name = policy.ArmDense
	}
	if identity != nil {
		if err := u.Fits(*identity); err != nil {
			return parts, fmt.Errorf("%s: %w", s.url, err)
		}
		if err := model.madeStore(s.url, identity.Vectors); err != nil {
			return parts, err
		}
		parts.Identify = func(ctx context.Context) (policy.IndexIdentity, error) {
			now, err := storeIdentity(ctx, u, s.provider)
			switch {
			case err != nil:
				return policy.IndexIdentity{}, err
			case now == nil:
				return policy.IndexIdentity{}, fmt.Errorf("%s: %w: it no longer says what it was made by", s.url, mapmatched.ErrStaleIndex)
			}
			return *now, nil
		}
	}
	if s.graph != nil {
		if err := fitsGraph(s.graphURL, s.graph, u.Policy); err != nil {
			return parts, err
		}
		if lister, ok := s.graph.(mapmatched.EdgeLister); ok {
			directed, _ := s.graph.(interface{ Directed() bool })
			parts.Edges = &edgesOf{lister: lister, directed: directed != nil && directed.Directed()}
		}
	}
	parts.Corpus, err = s.corpus(ctx)
	return parts, err
}

// corpus is what a session file keeps of the store: where it is and what it was
// made by.
func (s *store) corpus(ctx context.Context) (string, error) {
	made := ""
	if x, ok := s.provider.(*embedded.Index); ok {
		made = x.Digest()
	} else if who, ok := s.provider.(mapmatched.CorpusIdentifier); ok {
		identity, err := who.CorpusIdentity(ctx)
		if err != nil {
			return "", err
		}
		text, err := json.Marshal(identity)
		if err != nil {
			return "", err
		}
		made = string(text)
	}
	return strings.Join([]string{placeOf(s.url), placeOf(s.graphURL), made}, " "), nil
}

// fitsGraph refuses a graph that was made for another maximum distance than the
// policy's.
func fitsGraph(at string, g mapmatched.CorpusGraph, p *policy.Policy) error {
	if got, want := g.MaximumDistance(), p.Graph.MaximumDistance; got != want {
		return fmt.Errorf("%s: %w: the maximum distance of the graph is %v, graph.maximum_distance of policy %s is %v: build the graph under this policy", at, mapmatched.ErrStaleIndex, got, p.Name, want)
	}
	return nil
}

// storeIdentity is what a store was made by, in the words of a policy; nil when
// it does not say.
func storeIdentity(ctx context.Context, u *usedPolicy, provider mapmatched.CandidateProvider) (*policy.IndexIdentity, error) {
	if x, ok := provider.(*embedded.Index); ok {
		identity := u.identity(x)
		return &identity, nil
	}
	who, ok := provider.(mapmatched.CorpusIdentifier)
	if !ok {
		return nil, nil
	}
	id, err := who.CorpusIdentity(ctx)
	if err != nil || id == (mapmatched.CorpusIdentity{}) {
		return nil, err
	}
	x := &policy.IndexIdentity{ChunkPolicy: id.ChunkPolicy, Rebuild: "mmplug index DIR --policy " + u.name + " --to the URL of a new one"}
	if id.Dimension > 0 {
		x.Vectors = &policy.VectorIdentity{Provider: id.Provider, Model: id.Model, Revision: id.Revision, Dimension: id.Dimension, Normalization: id.Normalization}
	}
	return x, nil
}

// madeStore refuses a store with the vectors of another model, or none.
func (e *embedding) madeStore(at string, v *policy.VectorIdentity) error {
	switch {
	case e == nil:
		return nil
	case v == nil:
		return fmt.Errorf("%s: %w: it was written without vectors: leave out --embed, or write it again with --embed %s", at, mapmatched.ErrStaleIndex, e.spec)
	}
	want := e.identity
	if want.Dimension == 0 { // the store itself compares it with the first question's
		want.Dimension = v.Dimension
	}
	got := embedded.VectorIdentity{Provider: v.Provider, Model: v.Model, Revision: v.Revision, Dimension: v.Dimension, Normalization: v.Normalization}
	if diff := got.Differences(want); diff != nil {
		return fmt.Errorf("%s: %w: its vectors are of another model than --embed %s: %s; give the model that made them, or write the corpus again with this one",
			at, mapmatched.ErrStaleIndex, e.spec, strings.Join(diff, "; "))
	}
	return nil
}

// checkStoreFlags refuses flags of a conversation that do not go together.
func (f *conversationFlags) checkStoreFlags() error {
	switch {
	case f.index == "" && f.provider == "":
		return usageError{errors.New("say which index to ask: --index IDX (made by mmplug index), or --provider URL for a store")}
	case f.index != "" && f.provider != "":
		return usageError{errors.New("--index and --provider are both given: a conversation is about one corpus, so leave one out")}
	case f.graph != "" && f.provider == "":
		return usageError{errors.New("--graph is for --provider: an index has its graph")}
	case f.arm.arm != "" && f.provider != "":
		return usageError{errors.New("--arm is for --index: the URL of --provider says how passages are found")}
	}
	return nil
}
