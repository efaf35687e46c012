package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/mapmatched/mmplug/adapters/embedded"
	"github.com/mapmatched/mmplug/adapters/embedded/lexical"
	"github.com/mapmatched/mmplug/graphbuild"
	"github.com/mapmatched/mmplug/graphbuild/tokenizer"
	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/policy"
)

// policyUsage is the help of the flag --policy.
const policyUsage = "policy to follow: a file, or the name of one that is built in"

// usedPolicy is the policy of a running command.
type usedPolicy struct {
	*policy.Policy
	name string       // as it was given
	lock *policy.Lock // nil for one that is built in
	said string       // the last warning
}

// usePolicy opens the policy of a command.
func usePolicy(name string) (*usedPolicy, error) {
	if _, err := policy.FormatOf(name); err != nil {
		p, err := policy.Open(name)
		if err != nil {
			return nil, fmt.Errorf("policy: %w", err)
		}
		return &usedPolicy{Policy: p, name: name}, nil
	}
	lock, err := policy.NewLock(name)
	if err != nil {
		return nil, fmt.Errorf("policy: %w", err)
	}
	return &usedPolicy{Policy: lock.Policy(), name: name, lock: lock}, nil
}

// warnOfChange says in one line, once, that the file is no longer what is
// followed.
func (u *usedPolicy) warnOfChange(w io.Writer) {
	if u.lock == nil {
		return
	}
	said := ""
	if err := u.lock.Check(); err != nil {
		said = err.Error()
	}
	if said != "" && said != u.said {
		fmt.Fprintln(w, "warning: policy: "+oneLine(printable(said))) //nolint:errcheck // stderr may be gone
	}
	u.said = said
}

// corpusOptions are the settings that the policy gives an index. A policy that
// no index can be made under is refused.
func (u *usedPolicy) corpusOptions() (*graphbuild.CorpusOptions, error) {
	if got := u.Lexical.StopwordsSHA256; got != lexical.StopwordsSHA256 {
		return nil, fmt.Errorf("policy %s: lexical.stopwords_sha256 is %s: the only stopwords there are have %s", u.Name, got, lexical.StopwordsSHA256)
	}
	if err := (embedded.BM25{K1: u.Lexical.K1, B: u.Lexical.B}).Validate(); err != nil {
		return nil, fmt.Errorf("policy %s: lexical: %w", u.Name, err)
	}
	weight := func(t mapmatched.EdgeType) float64 { return u.Graph.Weights[string(t)] } // 0 is the default
	opts := &graphbuild.CorpusOptions{Structure: graphbuild.StructureOptions{
		Next: weight(mapmatched.EdgeNext), Parent: weight(mapmatched.EdgeParent),
		Section: weight(mapmatched.EdgeSection), Link: weight(mapmatched.EdgeLink),
	}}
	c := u.Chunking
	if c.Version == policy.MarkdownV1 {
		opts.Tree.Chunk.MaxBytes = c.Limit
		return opts, opts.Tree.Validate()
	}
	var tok *tokenizer.Tokenizer
	if c.Unit == policy.UnitTokens {
		file := filepath.FromSlash(c.Tokenizer)
		if u.lock != nil && !filepath.IsAbs(file) {
			file = filepath.Join(filepath.Dir(u.name), file)
		}
		var err error
		if tok, err = tokenizer.Load(file, c.TokenizerSHA256); err != nil {
			return nil, fmt.Errorf("policy %s: chunking.tokenizer %q: %w", u.Name, c.Tokenizer, err)
		}
	}
	limit := &graphbuild.TokenOptions{Limit: c.Limit}
	cut := func(d graphbuild.Document) (graphbuild.Chunked, error) {
		return graphbuild.ChunkFixed(d, graphbuild.UnitBytes, nil, limit)
	}
	switch {
	case c.Version == policy.M7ChunkPreV1:
		cut = func(d graphbuild.Document) (graphbuild.Chunked, error) { return graphbuild.ChunkPara(d, tok, limit) }
	case c.Unit == policy.UnitTokens:
		cut = func(d graphbuild.Document) (graphbuild.Chunked, error) {
			return graphbuild.ChunkFixed(d, graphbuild.UnitTokens, tok, limit)
		}
	}
	// These cut the bytes of a file as they are, so tags would be words.
	opts.Tree.Cut = func(d graphbuild.Document) (graphbuild.Chunked, error) {
		if ext := path.Ext(d.ID); strings.EqualFold(ext, ".html") || strings.EqualFold(ext, ".htm") {
			return graphbuild.Chunked{}, graphbuild.LeftOut("HTML, which " + c.Version + " does not read")
		}
		return cut(d)
	}
	return opts, nil
}

// identity is what an index was made from, in the words of a policy.
func (u *usedPolicy) identity(x *embedded.Index) policy.IndexIdentity {
	m := x.Manifest()
	id := policy.IndexIdentity{
		ChunkPolicy: m.ChunkPolicy,
		Lexical:     &policy.LexicalIdentity{Version: m.Lexical.Analyzer, K1: m.Lexical.K1, B: m.Lexical.B, StopwordsSHA256: m.Lexical.StopwordsSHA256},
		Rebuild:     "mmplug index DIR --out IDX --policy " + u.name,
	}
	if v := m.Vectors; v != nil {
		id.Vectors = &policy.VectorIdentity{Provider: v.Provider, Model: v.Model, Revision: v.Revision, Dimension: v.Dimension, Normalization: v.Normalization}
	}
	return id
}

// wordsOf searches an index by words, also by weighted ones.
type wordsOf struct{ *embedded.Index }

// SearchTerms implements policy.TermSearcher.
func (w wordsOf) SearchTerms(ctx context.Context, terms []policy.WeightedTerm, limit int) ([]mapmatched.Candidate, error) {
	own := make([]embedded.WeightedTerm, len(terms))
	for i, t := range terms {
		own[i] = embedded.WeightedTerm(t)
	}
	return w.Index.SearchTerms(ctx, own, limit)
}

// edgesOf are the edges of a graph, read when they are first followed.
type edgesOf struct {
	lister   mapmatched.EdgeLister
	directed bool
	mu       sync.Mutex
	list     *policy.EdgeList
}

// Links implements policy.Adjacency.
func (e *edgesOf) Links(ctx context.Context, chunkIDs []string) ([][]policy.Link, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.list == nil {
		list, err := policy.NewEdgeList(e.lister.Edges(ctx), e.directed)
		if err != nil {
			return nil, err
		}
		e.list = list
	}
	return e.list.Links(ctx, chunkIDs)
}

// arms are what an index at dir, opened as x, is searched by: the way it was
// opened, or what a policy fuses that pins a model, which is then there.
func (u *usedPolicy) arms(ctx context.Context, dir string, x *embedded.Index, model *embedding) (arms []policy.FusedArm, err error) {
	if u.Vectors.Provider == "" {
		if model != nil {
			return []policy.FusedArm{{Name: policy.ArmDense, Provider: x}}, nil
		}
		return []policy.FusedArm{{Name: policy.ArmLexical, Provider: wordsOf{x}}}, nil
	}
	for _, name := range slices.Sorted(maps.Keys(u.Fusion.Arms)) {
		switch name {
		case policy.ArmDense:
			arms = append(arms, policy.FusedArm{Name: name, Provider: x})
		case policy.ArmLexical:
			words, err := embedded.Open(ctx, dir, &embedded.Options{SkipChecksums: true}) // x was checked
			if err != nil {
				return nil, err
			}
			arms = append(arms, policy.FusedArm{Name: name, Provider: wordsOf{words}})
		default:
			return nil, fmt.Errorf("policy %s: there is no arm for fusion.arms.%s: an index has %s and %s", u.Name, name, policy.ArmDense, policy.ArmLexical)
		}
	}
	return arms, nil
}

// retrieverParts are what a conversation on an index is made of.
func (u *usedPolicy) retrieverParts(ctx context.Context, x *embedded.Index) (policy.Parts, error) {
	graph, err := x.Graph(ctx)
	if err != nil {
		return policy.Parts{}, err
	}
	parts := policy.Parts{
		Graph: graph, Edges: &edgesOf{lister: x, directed: x.Manifest().Graph.Directed}, Chunks: x, Analyze: lexical.Analyze, IDF: x.IDF, Corpus: x.Digest(),
		Identify: func(context.Context) (policy.IndexIdentity, error) { return u.identity(x), nil },
	}
	if x.Manifest().Vectors != nil {
		parts.Vectors = x
	}
	return parts, nil
}

// clustersOf reads the cluster of each chunk from a file that graph cluster
// wrote.
func clustersOf(ctx context.Context, std stdio, path string) (map[string]int, error) {
	c, err := readFile(ctx, std, path, graphbuild.ReadClustering)
	if err != nil {
		return nil, err
	}
	clusters := map[string]int{}
	for i := range c.Clusters {
		for _, id := range c.Clusters[i].Members {
			clusters[id] = i
		}
	}
	return clusters, nil
}

// decodeUnder is the problem under a policy, whose settings its own options may
// repeat but not contradict. All that do are named at once, and so is what the
// policy does beside decoding.
func decodeUnder(p *policy.Policy, problem *mapmatched.Problem) error {
	want, err := p.Config()
	if err != nil {
		return err
	}
	var errs []error
	for _, s := range []struct {
		key, value string
		active     bool
	}{
		{"arms.stage", string(p.Arms.Stage), p.Arms.Stage == policy.StageActive},
		{"transition.stage", string(p.Transition.Stage), p.Transition.Stage == policy.StageActive},
		{"reply.stage", string(p.Reply.Stage), p.Reply.Stage == policy.StageActive},
		{"proposals.stage", string(p.Proposals.Stage), p.Proposals.Stage == policy.StageActive},
		{"decay.stage", string(p.Decay.Stage), p.Decay.Stage == policy.StageActive},
		{"clustering.stage", string(p.Clustering.Stage), p.Clustering.Stage == policy.StageActive},
		{"rerank.mode", string(p.Rerank.Mode), p.Rerank.Mode != policy.RerankOff},
		{"activation.stage", string(p.Activation.Stage), p.Activation.Stage == policy.StageActive},
	} {
		if s.active {
			errs = append(errs, fmt.Errorf("policy %s: %s is %s, which decode cannot follow, as it has candidates only: set it to off", p.Name, s.key, s.value))
		}
	}
	contradicts := func(key string, own, policy any) {
		if own != policy {
			errs = append(errs, fmt.Errorf("options.%s is %v, policy %s says %v: leave it out", key, own, p.Name, policy))
		}
	}
	number := func(key string, own, policy *float64) {
		if own != nil {
			contradicts(key, *own, *policy)
		}
	}
	count := func(key string, own, policy *int) {
		switch {
		case own != nil && policy == nil:
			contradicts(key, *own, "null")
		case own != nil:
			contradicts(key, *own, *policy)
		}
	}
	own := &problem.Config
	number("emission_weight", own.EmissionWeight, want.EmissionWeight)
	number("transition_weight", own.TransitionWeight, want.TransitionWeight)
	number("context_radius", own.ContextRadius, want.ContextRadius)
	count("fixed_lag", own.FixedLag, want.FixedLag)
	count("context_limit", own.ContextLimit, want.ContextLimit)
	for _, o := range []struct {
		key         string
		own, policy any
		given       bool
	}{
		{"score_normalization", own.ScoreNormalization, want.ScoreNormalization, own.ScoreNormalization != ""},
		{"on_empty", own.OnEmpty, want.OnEmpty, own.OnEmpty != ""},
		{"rank_by", own.RankBy, want.RankBy, own.RankBy != ""},
		{"candidate_limit", own.CandidateLimit, want.CandidateLimit, own.CandidateLimit != 0},
		{"beam", own.Beam, want.Beam, own.Beam != 0},
		{"break_distance", own.BreakDistance, want.BreakDistance, own.BreakDistance != 0},
		{"temperature", own.Temperature, want.Temperature, own.Temperature != 0},
	} {
		if o.given {
			contradicts(o.key, o.own, o.policy)
		}
	}
	switch m := problem.Graph.MaximumDistance; m {
	case 0:
		problem.Graph.MaximumDistance = p.Graph.MaximumDistance
	case p.Graph.MaximumDistance:
	default:
		errs = append(errs, fmt.Errorf("graph.maximum_distance is %v, policy %s says %v: leave it out", m, p.Name, p.Graph.MaximumDistance))
	}
	problem.Config = *want
	return errors.Join(errs...)
}
