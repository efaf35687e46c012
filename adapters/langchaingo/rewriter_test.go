package langchaingo_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tmc/langchaingo/llms"

	"github.com/mapmatched/mmplug/adapters/langchaingo"
	"github.com/mapmatched/mmplug/mapmatched"
)

// modelFunc is a language model made of a function.
type modelFunc func(prompt string, o llms.CallOptions) (string, error)

// GenerateContent implements llms.Model.
func (f modelFunc) GenerateContent(_ context.Context, messages []llms.MessageContent, options ...llms.CallOption) (*llms.ContentResponse, error) {
	o := llms.CallOptions{Temperature: -1}
	for _, option := range options {
		option(&o)
	}
	text, err := f(messages[0].Parts[0].(llms.TextContent).Text, o)
	if err != nil {
		return nil, err
	}
	return &llms.ContentResponse{Choices: []*llms.ContentChoice{{Content: text}}}, nil
}

// Call implements llms.Model.
func (f modelFunc) Call(ctx context.Context, prompt string, options ...llms.CallOption) (string, error) {
	return llms.GenerateFromSinglePrompt(ctx, f, prompt, options...)
}

func rewriter(t *testing.T, name, dir string, model modelFunc) *langchaingo.Rewriter {
	t.Helper()
	r, err := langchaingo.NewRewriter(model, name, dir)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRewrite(t *testing.T) {
	dir := t.TempDir()
	var prompts []string
	model := func(prompt string, o llms.CallOptions) (string, error) {
		prompts = append(prompts, prompt)
		if o.Temperature != 0 {
			return "", fmt.Errorf("temperature %v", o.Temperature)
		}
		return fmt.Sprintf("  How do I renew\na token?  #%d", len(prompts)), nil
	}
	history := []string{"How long does a token last?", "a\nb"}
	r := rewriter(t, "m", dir, model)
	for i, tt := range []struct {
		r        *langchaingo.Rewriter
		history  []string
		question string
		want     langchaingo.Rewrite
		asked    int // prompts so far
	}{
		{r, nil, "How long?", langchaingo.Rewrite{Question: "How long?", Effective: "How long?"}, 0},
		{r, history, "And renew it?", langchaingo.Rewrite{Question: "And renew it?", Effective: "How do I renew a token? #1"}, 1},
		{r, history, "And renew it?", langchaingo.Rewrite{Question: "And renew it?", Effective: "How do I renew a token? #1", Cached: true}, 1},
		{rewriter(t, "m", dir, model), history, "And renew it?", langchaingo.Rewrite{Question: "And renew it?", Effective: "How do I renew a token? #1", Cached: true}, 1},
		{rewriter(t, "m2", dir, model), history, "And renew it?", langchaingo.Rewrite{Question: "And renew it?", Effective: "How do I renew a token? #2"}, 2},
		{r, history[:1], "And renew it?", langchaingo.Rewrite{Question: "And renew it?", Effective: "How do I renew a token? #3"}, 3},
		{r, history, "And renew it", langchaingo.Rewrite{Question: "And renew it", Effective: "How do I renew a token? #4"}, 4},
		{r, []string{history[0] + "a\nb"}, "And renew it?", langchaingo.Rewrite{Question: "And renew it?", Effective: "How do I renew a token? #5"}, 5},
		{r, []string{"\xff"}, "\xfe", langchaingo.Rewrite{Question: "\xfe", Effective: "How do I renew a token? #6"}, 6},
		{r, []string{"\xff"}, "\xfe", langchaingo.Rewrite{Question: "\xfe", Effective: "How do I renew a token? #6", Cached: true}, 6},
	} {
		got, err := tt.r.Rewrite(t.Context(), tt.history, tt.question)
		if err != nil || got != tt.want || len(prompts) != tt.asked {
			t.Errorf("%d: %+v after %d prompts, error %v; want %+v after %d", i, got, len(prompts), err, tt.want, tt.asked)
		}
	}
	if p := prompts[0]; !strings.Contains(p, "How long does a token last?\na b\n") || !strings.Contains(p, "And renew it?") {
		t.Errorf("prompt %q", p)
	}
}

func TestRewriteFaults(t *testing.T) {
	ctx := t.Context()
	dir := t.TempDir()
	history := []string{"first"}
	down := errors.New("no model today")
	answer, failure := "", down
	r := rewriter(t, "m", dir, func(string, llms.CallOptions) (string, error) { return answer, failure })
	if _, err := r.Rewrite(ctx, history, "q"); !errors.Is(err, down) || mapmatched.KindOf(err) != mapmatched.KindUnavailable {
		t.Errorf("error %v", err)
	}
	failure = nil
	if _, err := r.Rewrite(ctx, history, "q"); err == nil || !strings.Contains(err.Error(), "the reply is empty") {
		t.Errorf("error %v for an empty reply", err)
	}
	answer = "<think> The user means the token, so"
	if _, err := r.Rewrite(ctx, history, "q"); err == nil || !strings.Contains(err.Error(), "ends within <think>") {
		t.Errorf("error %v for a reply that is all thought", err)
	}
	answer = "<think>hm</think>\n"
	if _, err := r.Rewrite(ctx, history, "q"); err == nil || !strings.Contains(err.Error(), "the reply is empty") {
		t.Errorf("error %v for a reply of thoughts alone", err)
	}
	for _, answer = range []string{"<think>\nThe token.\n</think>\n\nRenew a token?", "The token.</think>Renew a token?"} {
		thinks := rewriter(t, "m", t.TempDir(), func(string, llms.CallOptions) (string, error) { return answer, nil })
		if got, err := thinks.Rewrite(ctx, history, "q"); err != nil || got.Effective != "Renew a token?" {
			t.Errorf("%q: %+v, error %v", answer, got, err)
		}
	}
	// A failure stores nothing; the next run asks again.
	answer = "good"
	if got, err := r.Rewrite(ctx, history, "q"); err != nil || got.Cached || got.Effective != "good" {
		t.Errorf("rewrite %+v, error %v", got, err)
	}
	files := stored(t, dir)
	if len(files) != 1 {
		t.Fatalf("files %q, want one and no temporary ones", files)
	}
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := r.Rewrite(canceled, history, "q"); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that the context was cancelled", err)
	}
	good, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"", "{", "null", string(good) + "{}", strings.Replace(string(good), `"m"`, `"n"`, 1),
		strings.Replace(string(good), "good", "", 1), strings.Replace(string(good), `"model"`, `"modell"`, 1)} {
		if err := os.WriteFile(files[0], []byte(bad), 0o666); err != nil {
			t.Fatal(err)
		}
		if got, err := r.Rewrite(ctx, history, "q"); mapmatched.KindOf(err) != mapmatched.KindCorrupt || !strings.Contains(err.Error(), "delete the file") {
			t.Errorf("stored %q: %+v, error %v", bad, got, err)
		}
	}
	for _, tt := range []struct {
		model     llms.Model
		name, dir string
		want      string
	}{{nil, "m", dir, "no model"}, {modelFunc(nil), "", dir, "the name of the model is empty"}, {modelFunc(nil), "m", "", "no directory"}} {
		if _, err := langchaingo.NewRewriter(tt.model, tt.name, tt.dir); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("error %v, want %q", err, tt.want)
		}
	}
}

func stored(t *testing.T, dir string) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// The same question at the same time is asked once, and all get one reply.
func TestRewriteOnce(t *testing.T) {
	var asked atomic.Int32
	r := rewriter(t, "m", t.TempDir(), func(string, llms.CallOptions) (string, error) {
		return fmt.Sprintf("reply %d", asked.Add(1)), nil
	})
	var wg sync.WaitGroup
	replies := make([]string, 16)
	for i := range replies {
		wg.Go(func() {
			got, err := r.Rewrite(t.Context(), []string{"first"}, "q")
			replies[i] = fmt.Sprint(got.Effective, err)
		})
	}
	wg.Wait()
	if asked.Load() != 1 || len(slices.Compact(replies)) != 1 {
		t.Errorf("asked %d times, replies %q", asked.Load(), replies)
	}
}

func TestRewritingProvider(t *testing.T) {
	p := &pages{}
	r := rewriter(t, "m", t.TempDir(), func(string, llms.CallOptions) (string, error) { return "tokens last how long?", nil })
	s, err := mapmatched.NewSession(r.Provider(p), graph(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"invites last?", "tokens last how long?"} {
		result, err := s.Ask(t.Context(), mapmatched.Query{Text: []string{"invites last?", "and those?"}[i], Vector: []float32{1}})
		if err != nil {
			t.Fatal(err)
		}
		if got := result.Ranking[0].Metadata[langchaingo.MetaEffectiveQuery]; got != want {
			t.Errorf("effective query %v, want %q", got, want)
		}
		if q := p.queries[i]; q.Text != want || (q.Vector == nil) != (i == 1) {
			t.Errorf("query %+v, want %q, with the vector where the words are the same", q, want)
		}
	}
	if got, err := r.Provider(p).Candidates(t.Context(), mapmatched.Query{Text: "tokens"}, 0); len(got) != 0 || err != nil {
		t.Errorf("candidates %v, error %v at limit 0", got, err)
	}
	p.err = errors.New("down")
	if _, err := s.Ask(t.Context(), mapmatched.Query{Text: "and those?"}); !errors.Is(err, p.err) {
		t.Errorf("error %v", err)
	}
}
