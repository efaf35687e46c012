package langchaingo_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tmc/langchaingo/callbacks"
	"github.com/tmc/langchaingo/schema"
	"github.com/tmc/langchaingo/vectorstores"

	"github.com/mapmatched/mmplug/adapters/langchaingo"
	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/mapmatched/adaptertest"
)

func TestConformance(t *testing.T) {
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		t.Run("store/"+string(kind), func(t *testing.T) {
			adaptertest.Provider(t, adaptertest.ProviderHarness{
				New: func(c adaptertest.Corpus) (mapmatched.CandidateProvider, error) {
					return langchaingo.NewStoreProvider("pages", memoryStore{c, kinds[kind]}, langchaingo.IDFromKey("id"), kind, nil)
				},
				Stalled: func(adaptertest.Corpus) (mapmatched.CandidateProvider, error) {
					return langchaingo.NewRetrieverProvider("pages", silent, langchaingo.IDFromKey("id"), kind, nil)
				},
			})
		})
		t.Run("retriever/"+string(kind), func(t *testing.T) {
			adaptertest.Provider(t, adaptertest.ProviderHarness{
				New: func(c adaptertest.Corpus) (mapmatched.CandidateProvider, error) {
					r := vectorstores.ToRetriever(memoryStore{c, kinds[kind]}, 100)
					return langchaingo.NewRetrieverProvider("pages", r, langchaingo.IDFromKey("id"), kind, nil)
				},
			})
		})
	}
}

// silent never answers.
var silent = retrieverFunc(func(ctx context.Context, _ string) ([]schema.Document, error) {
	<-ctx.Done()
	return nil, ctx.Err()
})

// ask wraps documents and asks for ten candidates.
func ask(t *testing.T, documents []schema.Document, id langchaingo.Identity, kind langchaingo.ScoreKind, opts langchaingo.ProviderOptions) ([]mapmatched.Candidate, langchaingo.Report, error) {
	t.Helper()
	var report langchaingo.Report
	opts.Report = func(_ context.Context, r langchaingo.Report) { report = r }
	p, err := langchaingo.NewRetrieverProvider("pages", fixed(documents), id, kind, &opts)
	if err != nil {
		t.Fatal(err)
	}
	got, err := p.Candidates(t.Context(), mapmatched.Query{Text: "q"}, 10)
	return got, report, err
}

func summary(candidates []mapmatched.Candidate) string {
	var parts []string
	for _, c := range candidates {
		parts = append(parts, fmt.Sprintf("%s %v", c.ChunkID, c.Score))
	}
	return strings.Join(parts, ", ")
}

func TestCandidates(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	byID := langchaingo.IDFromKey("id")
	for _, tt := range []struct {
		name      string
		documents []schema.Document
		id        langchaingo.Identity
		kind      langchaingo.ScoreKind
		opts      langchaingo.ProviderOptions
		want      string
		report    langchaingo.Report
		err       string
	}{
		{name: "distances with a threshold", documents: []schema.Document{doc("a", "A", 0.1), doc("b", "B", 0.4)}, id: byID,
			kind: langchaingo.ScoreCosineDistance, opts: langchaingo.ProviderOptions{MinScore: new(0.8)},
			want: "a 0.9", report: langchaingo.Report{Documents: 2, Candidates: 1, BelowMinimum: 1}},
		{name: "equality at the threshold", documents: []schema.Document{doc("a", "A", 0.1), doc("b", "B", 0.9)}, id: byID,
			kind: langchaingo.ScoreCosineDistance, opts: langchaingo.ProviderOptions{MinScore: new(0.1)},
			want: "a 0.9, b 0.09999999999999998", report: langchaingo.Report{Documents: 2, Candidates: 2}},
		{name: "a threshold of a distance", documents: []schema.Document{doc("a", "A", 1.5), doc("b", "B", 4)}, id: byID,
			kind: langchaingo.ScoreEuclideanDistance, opts: langchaingo.ProviderOptions{MinScore: new(-2.0)},
			want: "a -1.5", report: langchaingo.Report{Documents: 2, Candidates: 1, BelowMinimum: 1}},
		{name: "a foreign document", documents: []schema.Document{doc("a", "A", 0.9), {Score: 0.8}, doc("c", "C", 0.7)}, id: byID,
			kind: langchaingo.ScoreSimilarity,
			want: "a 0.9, c 0.7", report: langchaingo.Report{Documents: 3, Candidates: 2, Foreign: 1}},
		{name: "only foreign documents", documents: []schema.Document{{Score: 0.8}}, id: byID,
			kind: langchaingo.ScoreSimilarity, report: langchaingo.Report{Documents: 1, Foreign: 1}},
		{name: "no hits", id: byID, kind: langchaingo.ScoreSimilarity},
		{name: "scores that are not finite", documents: []schema.Document{doc("n", "N", nan), doc("a", "A", 0.5), doc("i", "I", inf)}, id: byID,
			kind: langchaingo.ScoreSimilarity,
			want: "a 0.5", report: langchaingo.Report{Documents: 3, Candidates: 1, NonFinite: 2}},
		{name: "unsorted, with ties", documents: []schema.Document{doc("c", "C", 0.5), doc("b", "B", 0.5), doc("a", "A", 0.75)}, id: byID,
			kind: langchaingo.ScoreSimilarity,
			want: "a 0.75, c 0.5, b 0.5", report: langchaingo.Report{Documents: 3, Candidates: 3}},
		{name: "worst first", documents: []schema.Document{doc("a", "A", 0.1), doc("b", "B", 0.2), doc("c", "C", 0.3)}, id: byID,
			kind: langchaingo.ScoreSimilarity,
			want: "c 0.3, b 0.2, a 0.1", report: langchaingo.Report{Documents: 3, Candidates: 3, WorstFirst: true}},
		{name: "a chunk twice", documents: []schema.Document{doc("a", "A", 0.25), doc("a", "A", 0.75), doc("b", "B", 0.5)}, id: byID,
			kind: langchaingo.ScoreSimilarity,
			want: "a 0.75, b 0.5", report: langchaingo.Report{Documents: 3, Candidates: 2, Duplicates: 1}},
		{name: "more than the limit", documents: many(12), id: byID, kind: langchaingo.ScoreNone,
			want:   "d00 0, d01 -0.6931471805599453, d02 -1.0986122886681096, d03 -1.3862943611198906, d04 -1.6094379124341003, d05 -1.791759469228055, d06 -1.9459101490553132, d07 -2.0794415416798357, d08 -2.1972245773362196, d09 -2.302585092994046",
			report: langchaingo.Report{Documents: 12, Candidates: 10, BeyondLimit: 2}},
		{name: "no score, by rank", documents: []schema.Document{doc("z", "Z", 0), doc("a", "A", 0), {}, doc("y", "Z", 0)}, id: byID,
			kind: langchaingo.ScoreNone,
			want: "z 0, y 0, a -0.6931471805599453", report: langchaingo.Report{Documents: 4, Candidates: 3, Foreign: 1}},
		{name: "a score that was never set", documents: []schema.Document{doc("a", "A", 0), doc("b", "B", 0)}, id: byID,
			kind: langchaingo.ScoreSimilarity,
			err:  `the score of every document, 2 of them, is 0, as when it was never set; use ScoreNone`},
		{name: "zeros that are meant", documents: []schema.Document{doc("a", "A", 0), doc("b", "B", 0)}, id: byID,
			kind: langchaingo.ScoreSimilarity, opts: langchaingo.ProviderOptions{AllowZeroScores: true},
			want: "a 0, b 0", report: langchaingo.Report{Documents: 2, Candidates: 2}},
		{name: "a distance that was never set", documents: []schema.Document{doc("a", "A", 0), doc("b", "B", 0)}, id: byID,
			kind: langchaingo.ScoreCosineDistance, err: `the score of every document, 2 of them, is 0`},
		{name: "an inner product that was never set", documents: []schema.Document{doc("a", "A", 0), doc("b", "B", 0)}, id: byID,
			kind: langchaingo.ScoreNegativeInnerProduct, err: `the score of every document, 2 of them, is 0`},
		{name: "distances of zero that are meant", documents: []schema.Document{doc("a", "A", 0), doc("b", "B", 0)}, id: byID,
			kind: langchaingo.ScoreCosineDistance, opts: langchaingo.ProviderOptions{AllowZeroScores: true},
			want: "a 1, b 1", report: langchaingo.Report{Documents: 2, Candidates: 2}},
		{name: "the question's words twice", documents: []schema.Document{doc("a", "A", 0), doc("b", "A", 0)}, id: byID,
			kind: langchaingo.ScoreCosineDistance, want: "a 1, b 1", report: langchaingo.Report{Documents: 2, Candidates: 2}},
		{name: "a distance of zero", documents: []schema.Document{doc("a", "A", 0)}, id: byID,
			kind: langchaingo.ScoreEuclideanDistance, want: "a 0", report: langchaingo.Report{Documents: 1, Candidates: 1}},
		{name: "the wrong kind", documents: []schema.Document{doc("a", "A", 0.5), doc("b", "B", 12.5)}, id: byID,
			kind: langchaingo.ScoreCosineDistance,
			err:  `provider "pages": document 1, chunk "b": invalid configuration: score 12.5 is not of kind "distance:cosine" (0 to 2)`},
		{name: "a missing ID", documents: []schema.Document{doc("a", "A", 1), {PageContent: "B", Score: 1}}, id: byID,
			kind: langchaingo.ScoreSimilarity,
			err:  `provider "pages": document 1: no chunk ID: empty chunk ID: the metadata has no key "id"`},
		{name: "an empty ID of one's own", documents: []schema.Document{doc("a", "A", 1)}, id: func(schema.Document) (string, error) { return "", nil },
			kind: langchaingo.ScoreSimilarity, err: `provider "pages": document 0: empty chunk ID`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, report, err := ask(t, tt.documents, tt.id, tt.kind, tt.opts)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) || mapmatched.KindOf(err) != mapmatched.KindInvalid {
					t.Fatalf("error %v of kind %q, want %q", err, mapmatched.KindOf(err), tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if s := summary(got); s != tt.want {
				t.Errorf("candidates %s, want %s", s, tt.want)
			}
			tt.report.Query = "q"
			if report != tt.report {
				t.Errorf("report %+v, want %+v", report, tt.report)
			}
			if r := report; r.Candidates+r.Foreign+r.NonFinite+r.BelowMinimum+r.Duplicates+r.BeyondLimit != r.Documents {
				t.Errorf("report %+v does not add up", r)
			}
		})
	}
}

func many(n int) fixed {
	var documents fixed
	for i := range n {
		id := fmt.Sprintf("d%02d", i)
		documents = append(documents, doc(id, "text of "+id, 0))
	}
	return documents
}

func TestMetadataIsCopied(t *testing.T) {
	documents := []schema.Document{doc("a", "A", 1)}
	p, err := langchaingo.NewRetrieverProvider("pages", retrieverFunc(func(context.Context, string) ([]schema.Document, error) {
		return documents, nil
	}), langchaingo.IDFromKey("id"), langchaingo.ScoreSimilarity, nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := p.Candidates(t.Context(), mapmatched.Query{Text: "q"}, 1)
	if err != nil {
		t.Fatal(err)
	}
	got[0].Metadata["id"] = "changed"
	if documents[0].Metadata["id"] != "a" {
		t.Error("a change to a candidate reached the retriever's document")
	}
}

func TestNewProviderFaults(t *testing.T) {
	byID := langchaingo.IDFromKey("id")
	for _, tt := range []struct {
		name string
		r    schema.Retriever
		id   langchaingo.Identity
		kind langchaingo.ScoreKind
		opts *langchaingo.ProviderOptions
		want []string
	}{
		{"p", nil, byID, langchaingo.ScoreNone, nil, []string{"no retriever"}},
		{"", fixed(nil), nil, "", nil, []string{"no Identity", `score kind ""`, "similarity, certainty", "the name is empty"}},
		{"p", fixed(nil), byID, "cosine", nil, []string{`score kind "cosine"`}},
		{"p", fixed(nil), byID, langchaingo.ScoreNone, &langchaingo.ProviderOptions{MinScore: new(0.5)}, []string{"MinScore is 0.5"}},
		{"p", fixed(nil), byID, langchaingo.ScoreSimilarity, &langchaingo.ProviderOptions{MinScore: new(math.NaN())}, []string{"MinScore is NaN"}},
		{"p", fixed(nil), byID, langchaingo.ScoreSimilarity, &langchaingo.ProviderOptions{Search: []vectorstores.Option{vectorstores.WithNameSpace("x")}},
			[]string{"takes no search options"}},
	} {
		_, err := langchaingo.NewRetrieverProvider(tt.name, tt.r, tt.id, tt.kind, tt.opts)
		for _, want := range tt.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v, want one with %q", err, want)
			}
		}
	}
	if _, err := langchaingo.NewStoreProvider("p", nil, byID, langchaingo.ScoreNone, nil); err == nil || !strings.Contains(err.Error(), "no vector store") {
		t.Errorf("error %v for no vector store", err)
	}
}

// recordingStore keeps what it was asked.
type recordingStore struct {
	memoryStore
	limit   int
	options vectorstores.Options
}

func (s *recordingStore) SimilaritySearch(_ context.Context, _ string, n int, options ...vectorstores.Option) ([]schema.Document, error) {
	s.limit, s.options = n, vectorstores.Options{}
	for _, o := range options {
		o(&s.options)
	}
	return nil, nil
}

func TestSearchOptionsPassThrough(t *testing.T) {
	filter := map[string]any{"lang": "en"}
	known := func(context.Context, schema.Document) bool { return true }
	embedder := langchaingo.AsEmbedder(adaptertest.NewCorpus())
	for _, tt := range []struct {
		name  string
		opts  *langchaingo.ProviderOptions
		limit int
		want  vectorstores.Options
		asked int
	}{
		{"nothing set", nil, 7, vectorstores.Options{}, 7},
		{"a minimum of ours is not sent", &langchaingo.ProviderOptions{MinScore: new(0.5)}, 7, vectorstores.Options{}, 7},
		{"filters", &langchaingo.ProviderOptions{Search: []vectorstores.Option{vectorstores.WithFilters(filter)}}, 7, vectorstores.Options{Filters: filter}, 7},
		{"name space and threshold", &langchaingo.ProviderOptions{Search: []vectorstores.Option{vectorstores.WithNameSpace("n"), vectorstores.WithScoreThreshold(0.25)}}, 7,
			vectorstores.Options{NameSpace: "n", ScoreThreshold: 0.25}, 7},
		{"embedder", &langchaingo.ProviderOptions{Search: []vectorstores.Option{vectorstores.WithEmbedder(embedder)}}, 7, vectorstores.Options{Embedder: embedder}, 7},
		{"a limit without bounds", nil, math.MaxInt, vectorstores.Options{}, 10_000},
	} {
		t.Run(tt.name, func(t *testing.T) {
			store := &recordingStore{}
			p, err := langchaingo.NewStoreProvider("p", store, langchaingo.IDFromKey("id"), langchaingo.ScoreSimilarity, tt.opts)
			if err != nil {
				t.Fatal(err)
			}
			got, err := p.Candidates(t.Context(), mapmatched.Query{Text: "q"}, tt.limit)
			if err != nil || len(got) != 0 {
				t.Fatalf("candidates %v, error %v; want none, as a value", got, err)
			}
			if store.limit != tt.asked {
				t.Errorf("asked for %d, want %d", store.limit, tt.asked)
			}
			want, have := tt.want, store.options
			if (want.Embedder == nil) != (have.Embedder == nil) {
				t.Errorf("embedder %v, want %v", have.Embedder, want.Embedder)
			}
			want.Embedder, have.Embedder = nil, nil
			if !reflect.DeepEqual(have, want) {
				t.Errorf("options %+v, want %+v", have, want)
			}
		})
	}
	store := &recordingStore{}
	p, err := langchaingo.NewStoreProvider("p", store, langchaingo.IDFromKey("id"), langchaingo.ScoreSimilarity,
		&langchaingo.ProviderOptions{Search: []vectorstores.Option{vectorstores.WithDeduplicater(known)}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Candidates(t.Context(), mapmatched.Query{Text: "q"}, 1); err != nil {
		t.Fatal(err)
	}
	if d := store.options.Deduplicater; d == nil || !d(t.Context(), schema.Document{}) {
		t.Error("the deduplicater did not arrive")
	}
}

// recorder is a callback handler that writes down what it is told.
type recorder struct {
	callbacks.SimpleHandler
	calls []string
}

func (r *recorder) HandleRetrieverStart(_ context.Context, query string) {
	r.calls = append(r.calls, "start "+query)
}

func (r *recorder) HandleRetrieverEnd(_ context.Context, query string, documents []schema.Document) {
	r.calls = append(r.calls, fmt.Sprintf("end %s %d", query, len(documents)))
}

func (r *recorder) HandleChainError(_ context.Context, err error) {
	r.calls = append(r.calls, "error "+err.Error())
}

func TestCallbacks(t *testing.T) {
	boom := errors.New("boom")
	for _, tt := range []struct {
		retriever schema.Retriever
		want      []string
	}{
		{fixed{doc("a", "A", 1)}, []string{"start q", "end q 1"}},
		{fixed(nil), []string{"start q", "end q 0"}},
		{retrieverFunc(func(context.Context, string) ([]schema.Document, error) { return nil, boom }), []string{"start q", `error langchaingo: candidates: provider "pages": boom`, "end q 0"}},
		{fixed{{PageContent: "A", Score: 1}}, []string{"start q", `error langchaingo: candidates: provider "pages": document 0: no chunk ID: empty chunk ID: ` +
			`the metadata has no key "id"; store one with every document or name another key`, "end q 0"}},
	} {
		r := &recorder{}
		p, err := langchaingo.NewRetrieverProvider("pages", tt.retriever, langchaingo.IDFromKey("id"), langchaingo.ScoreSimilarity, &langchaingo.ProviderOptions{Callbacks: r})
		if err != nil {
			t.Fatal(err)
		}
		_, err = p.Candidates(t.Context(), mapmatched.Query{Text: "q"}, 5)
		if failed := len(tt.want) == 3; failed != (err != nil) {
			t.Errorf("error %v", err)
		}
		if !slices.Equal(r.calls, tt.want) {
			t.Errorf("callbacks %q, want %q", r.calls, tt.want)
		}
	}
}

// opaque hides its cause, as the error types of some clients do.
type opaque struct{ error }

func TestErrorKinds(t *testing.T) {
	timeout, cancel := context.WithCancelCause(t.Context())
	cancel(nil)
	for _, tt := range []struct {
		name string
		ctx  context.Context
		err  error
		kind mapmatched.Kind
		is   error
	}{
		{"down", t.Context(), errors.New("connection refused"), mapmatched.KindUnavailable, nil},
		{"deadline", t.Context(), fmt.Errorf("search: %w", context.DeadlineExceeded), mapmatched.KindDeadline, context.DeadlineExceeded},
		{"hidden deadline", nil, opaque{errors.New("status code: -1")}, mapmatched.KindDeadline, context.DeadlineExceeded},
		{"typed", t.Context(), &mapmatched.Error{Op: "x", Adapter: "y", Kind: mapmatched.KindUnauthenticated, Err: errors.New("no key")}, mapmatched.KindUnauthenticated, nil},
		{"done before", timeout, nil, mapmatched.KindDeadline, context.Canceled},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx := tt.ctx
			if ctx == nil {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(t.Context(), 1)
				defer cancel()
			}
			p, err := langchaingo.NewRetrieverProvider("pages", retrieverFunc(func(ctx context.Context, _ string) ([]schema.Document, error) {
				if tt.is == context.DeadlineExceeded && tt.ctx == nil {
					<-ctx.Done()
				}
				return nil, tt.err
			}), langchaingo.IDFromKey("id"), langchaingo.ScoreSimilarity, nil)
			if err != nil {
				t.Fatal(err)
			}
			_, err = p.Candidates(ctx, mapmatched.Query{Text: "q"}, 5)
			if err == nil || mapmatched.KindOf(err) != tt.kind || !strings.Contains(err.Error(), `provider "pages"`) {
				t.Fatalf("error %v of kind %q, want kind %q and the provider's name", err, mapmatched.KindOf(err), tt.kind)
			}
			if tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("error %v is not %v", err, tt.is)
			}
		})
	}
}

// An answer that comes after the context is done is not used.
func TestLateAnswer(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	p, err := langchaingo.NewRetrieverProvider("pages", retrieverFunc(func(context.Context, string) ([]schema.Document, error) {
		cancel()
		return fixed{doc("a", "A", 1)}, nil
	}), langchaingo.IDFromKey("id"), langchaingo.ScoreSimilarity, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := p.Candidates(ctx, mapmatched.Query{Text: "q"}, 5); !errors.Is(err, context.Canceled) || got != nil {
		t.Errorf("candidates %v, error %v; want none and that the context was cancelled", got, err)
	}
}

// A retriever that does not look at its context holds nobody up.
func TestDeadRetriever(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	ctx, cancel := context.WithCancel(t.Context())
	p, err := langchaingo.NewRetrieverProvider("pages", retrieverFunc(func(context.Context, string) ([]schema.Document, error) {
		cancel()
		<-release
		return nil, nil
	}), langchaingo.IDFromKey("id"), langchaingo.ScoreSimilarity, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Candidates(ctx, mapmatched.Query{Text: "q"}, 5); !errors.Is(err, context.Canceled) || mapmatched.KindOf(err) != mapmatched.KindDeadline {
		t.Errorf("error %v", err)
	}
}

// A panic of the retriever is the caller's, and the callbacks are told of the
// end.
func TestPanic(t *testing.T) {
	background := context.WithoutCancel(t.Context())
	for _, ctx := range []context.Context{t.Context(), background} {
		r := &recorder{}
		p, err := langchaingo.NewRetrieverProvider("pages", retrieverFunc(func(context.Context, string) ([]schema.Document, error) { panic("boom") }),
			langchaingo.IDFromKey("id"), langchaingo.ScoreSimilarity, &langchaingo.ProviderOptions{Callbacks: r})
		if err != nil {
			t.Fatal(err)
		}
		func() {
			defer func() {
				if got := recover(); got != "boom" {
					t.Errorf("panic %v", got)
				}
			}()
			_, err = p.Candidates(ctx, mapmatched.Query{Text: "q"}, 5)
			t.Errorf("no panic, error %v", err)
		}()
		if want := []string{"start q", "end q 0"}; !slices.Equal(r.calls, want) {
			t.Errorf("callbacks %q, want %q", r.calls, want)
		}
	}
}
