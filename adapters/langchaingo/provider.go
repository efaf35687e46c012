package langchaingo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/tmc/langchaingo/callbacks"
	"github.com/tmc/langchaingo/schema"
	"github.com/tmc/langchaingo/vectorstores"

	"github.com/mapmatched/mmplug/mapmatched"
)

// maxDocuments is the most documents a vector store is asked for at once.
// Stores convert the number to 32 bits or refuse more.
const maxDocuments = 10_000

// ProviderOptions set a [Provider]. The zero value, and nil, mean the defaults.
type ProviderOptions struct {
	// MinScore leaves out candidates whose score, converted as ScoreKind says,
	// is below it; one that is equal stays. It is checked here, whatever the
	// store does, and compared as float32. Finite; nil means no limit. Not for
	// ScoreNone.
	MinScore *float64
	// AllowZeroScores accepts documents that all have the score 0. Otherwise
	// they are an error, because a score that was never set reads as 0; say
	// ScoreNone for a retriever that sets none. Of the distances, which are 0
	// to the question's own words, two or more documents of different texts
	// are.
	AllowZeroScores bool
	// Search is passed on to a vector store with every query: filters, name
	// space, score threshold (in the store's own terms), embedder,
	// deduplicater. What is not here is not sent. Not for retrievers, which
	// have their own.
	Search []vectorstores.Option
	// Callbacks are told of every retrieval, failed ones too: start, then end
	// with the documents; on failure HandleChainError and then end with none.
	// A retriever with callbacks of its own calls those as well.
	Callbacks callbacks.Handler
	// Report is called after every query that was answered, before Candidates
	// returns. It may be called from several goroutines at once.
	Report func(context.Context, Report)
}

// Report says what became of the documents of a query. Documents is the sum of
// the other numbers.
type Report struct {
	Query        string
	Documents    int  // returned by the retriever
	Candidates   int  // offered to the decoder
	Foreign      int  // without text: something else in the same collection
	NonFinite    int  // with a score that is NaN or infinite
	BelowMinimum int  // with a score below MinScore
	Duplicates   int  // of a chunk that came with a better score, or earlier
	BeyondLimit  int  // good ones beyond the limit of the query
	WorstFirst   bool // three or more came, each with a better score than the one before: is ScoreKind right?
}

// Provider is a mapmatched.CandidateProvider over a retriever or a vector
// store of langchaingo.
type Provider struct {
	name   string
	kind   ScoreKind
	id     Identity
	search func(ctx context.Context, query string, limit int) ([]schema.Document, error)
	opts   ProviderOptions
}

// NewRetrieverProvider wraps a retriever. The name is the provider's in errors.
//
// A retriever decides by itself how many documents it returns; a query takes
// the best of them up to its limit. Have it return as many as the session's
// CandidateLimit.
func NewRetrieverProvider(name string, r schema.Retriever, id Identity, kind ScoreKind, opts *ProviderOptions) (*Provider, error) {
	if r == nil {
		return nil, fail("new provider", mapmatched.KindInvalid, "provider %q: no retriever", name)
	}
	if opts != nil && len(opts.Search) > 0 {
		return nil, fail("new provider", mapmatched.KindInvalid, "provider %q: %w: a retriever takes no search options; give them to vectorstores.ToRetriever or use NewStoreProvider",
			name, mapmatched.ErrInvalidConfig)
	}
	return newProvider(name, id, kind, opts, func(ctx context.Context, query string, _ int) ([]schema.Document, error) {
		return r.GetRelevantDocuments(ctx, query)
	})
}

// NewStoreProvider wraps a vector store. The name is the provider's in errors.
// The store is asked for as many documents as the query's limit says, at most
// 10,000.
func NewStoreProvider(name string, s vectorstores.VectorStore, id Identity, kind ScoreKind, opts *ProviderOptions) (*Provider, error) {
	if s == nil {
		return nil, fail("new provider", mapmatched.KindInvalid, "provider %q: no vector store", name)
	}
	var search []vectorstores.Option
	if opts != nil {
		search = slices.Clone(opts.Search)
	}
	return newProvider(name, id, kind, opts, func(ctx context.Context, query string, limit int) ([]schema.Document, error) {
		return s.SimilaritySearch(ctx, query, min(limit, maxDocuments), slices.Clip(search)...)
	})
}

func newProvider(name string, id Identity, kind ScoreKind, opts *ProviderOptions,
	search func(context.Context, string, int) ([]schema.Document, error),
) (*Provider, error) {
	p := &Provider{name: name, id: id, kind: kind, search: search}
	if opts != nil {
		p.opts = *opts
	}
	faults := []error{checkIdentity(id), kind.Validate()}
	if name == "" {
		faults = append(faults, errors.New("the name is empty; errors tell providers apart by it"))
	}
	if m := p.opts.MinScore; m != nil {
		switch {
		case math.IsNaN(*m) || math.IsInf(*m, 0):
			faults = append(faults, fmt.Errorf("%w: MinScore is %v, want a finite number or nil for no limit", mapmatched.ErrInvalidConfig, *m))
		case kind == ScoreNone:
			faults = append(faults, fmt.Errorf("%w: MinScore is %v, but there are no scores to compare with", mapmatched.ErrInvalidConfig, *m))
		}
		p.opts.MinScore = new(*m)
	}
	if err := errors.Join(faults...); err != nil {
		return nil, fail("new provider", mapmatched.KindInvalid, "provider %q: %w", name, err)
	}
	return p, nil
}

// Candidates implements mapmatched.CandidateProvider: best first, equal scores
// in the order of the store, which is the order that its own limit cuts. Only
// the text of the query is used.
//
// Documents without text, with a score that is not finite or below MinScore,
// and repeated chunks are left out and counted in the report. A document
// without a chunk ID is an error that names the provider. A context that is done
// ends the call at once; a store that does not look at it goes on by itself, and
// its answer is discarded.
func (p *Provider) Candidates(ctx context.Context, q mapmatched.Query, limit int) ([]mapmatched.Candidate, error) {
	if err := ctx.Err(); err != nil {
		return nil, failed(ctx, "candidates", p.label(), err)
	}
	if limit <= 0 {
		return nil, nil
	}
	var candidates []mapmatched.Candidate
	var report Report
	_, err := observed(ctx, p.opts.Callbacks, q.Text, func() ([]schema.Document, error) {
		documents, err := p.searched(ctx, q.Text, limit)
		if err != nil {
			return nil, failed(ctx, "candidates", p.label(), err)
		}
		if candidates, report, err = p.convert(documents, limit); err != nil {
			return nil, fail("candidates", mapmatched.KindInvalid, "%s: %w", p.label(), err)
		}
		return documents, nil
	})
	if err != nil {
		return nil, err
	}
	if p.opts.Report != nil {
		report.Query = q.Text
		p.opts.Report(ctx, report)
	}
	return candidates, nil
}

// searched is search, but it does not wait for one that ignores its context. A
// panic of the store is one of the caller.
func (p *Provider) searched(ctx context.Context, query string, limit int) ([]schema.Document, error) {
	if ctx.Done() == nil {
		return p.search(ctx, query, limit)
	}
	type reply struct {
		documents []schema.Document
		err       error
		panicked  any
	}
	replies := make(chan reply, 1)
	go func() {
		var r reply
		defer func() {
			r.panicked = recover()
			replies <- r
		}()
		r.documents, r.err = p.search(ctx, query, limit)
	}()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case r := <-replies:
		if r.panicked != nil {
			panic(r.panicked)
		}
		if r.err == nil {
			r.err = ctx.Err()
		}
		return r.documents, r.err
	}
}

func (p *Provider) label() string { return fmt.Sprintf("provider %q", p.name) }

// convert makes candidates of documents.
func (p *Provider) convert(documents []schema.Document, limit int) ([]mapmatched.Candidate, Report, error) {
	report := Report{Documents: len(documents)}
	if err := p.checkScored(documents); err != nil {
		return nil, report, err
	}
	candidates := make([]mapmatched.Candidate, 0, len(documents))
	var ranks ranking
	for i := range documents {
		d := &documents[i]
		if d.PageContent == "" {
			report.Foreign++
			continue
		}
		id, err := p.id(*d)
		if err == nil && id == "" {
			err = mapmatched.ErrEmptyChunkID
		}
		if err != nil {
			return nil, report, fmt.Errorf("document %d: %w", i, err)
		}
		if p.kind != ScoreNone && !finite(d.Score) {
			report.NonFinite++
			continue
		}
		rank := 0
		if p.kind == ScoreNone {
			rank = ranks.of(d.PageContent)
		}
		score, err := p.kind.emission(d.Score, rank)
		if err != nil {
			return nil, report, fmt.Errorf("document %d, chunk %q: %w", i, id, err)
		}
		if m := p.opts.MinScore; m != nil && float32(score) < float32(*m) {
			report.BelowMinimum++
			continue
		}
		candidates = append(candidates, mapmatched.Candidate{ChunkID: id, Score: score, Text: d.PageContent, Metadata: maps.Clone(d.Metadata)})
	}
	report.WorstFirst = worstFirst(candidates)
	slices.SortStableFunc(candidates, func(a, b mapmatched.Candidate) int {
		return cmp.Compare(b.Score, a.Score)
	})
	all := len(candidates)
	candidates = unique(candidates)
	report.Duplicates = all - len(candidates)
	report.Candidates = min(limit, len(candidates))
	report.BeyondLimit = len(candidates) - report.Candidates
	return candidates[:report.Candidates:report.Candidates], report, nil
}

// ranking counts documents from 1. A text that came before has the rank that
// it had, as the same text answers a question equally well.
type ranking struct {
	texts map[string]int
	count int
}

func (r *ranking) of(text string) int {
	r.count++
	if rank, again := r.texts[text]; again {
		return rank
	}
	if r.texts == nil {
		r.texts = map[string]int{}
	}
	r.texts[text] = r.count
	return r.count
}

// checkScored refuses documents whose scores were never set.
func (p *Provider) checkScored(documents []schema.Document) error {
	if p.opts.AllowZeroScores || len(documents) == 0 || p.kind == ScoreNone ||
		slices.ContainsFunc(documents, func(d schema.Document) bool { return d.Score != 0 }) {
		return nil
	}
	if p.kind != ScoreSimilarity && p.kind != ScoreCertainty &&
		!slices.ContainsFunc(documents, func(d schema.Document) bool { return d.PageContent != documents[0].PageContent }) {
		return nil
	}
	return fmt.Errorf("%w: the score of every document, %d of them, is 0, as when it was never set; use ScoreNone, or AllowZeroScores if they are zeros",
		mapmatched.ErrInvalidConfig, len(documents))
}

// unique drops all but the first candidate of each chunk, in place.
func unique(candidates []mapmatched.Candidate) []mapmatched.Candidate {
	seen := make(map[string]struct{}, len(candidates))
	return slices.DeleteFunc(candidates, func(c mapmatched.Candidate) bool {
		_, twice := seen[c.ChunkID]
		seen[c.ChunkID] = struct{}{}
		return twice
	})
}

// worstFirst reports whether three or more candidates come in strictly
// ascending order of score.
func worstFirst(candidates []mapmatched.Candidate) bool {
	for i := 1; i < len(candidates); i++ {
		if candidates[i].Score <= candidates[i-1].Score {
			return false
		}
	}
	return len(candidates) >= 3
}

func finite(x float32) bool { return !math.IsNaN(float64(x)) && !math.IsInf(float64(x), 0) }
