package langchaingo

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/tmc/langchaingo/llms"

	"github.com/mapmatched/mmplug/mapmatched"
)

// RewritePrompt is the tag of the prompt of a [Rewriter]. What a question
// becomes under it depends on the model alone.
const RewritePrompt = "rewrite_v1"

// MetaEffectiveQuery is the key, in the metadata of candidates, of the query
// that was asked in place of the turn's words.
const MetaEffectiveQuery = "mmplug_effective_query"

// Rewriter makes a follow-up question stand on its own, by a language model
// that is shown the questions before it. It is there to compare with: nothing
// in this module rewrites a query unless a program sets this up.
//
// Replies are kept in a directory, one file each, so that a run that was
// interrupted goes on where it was and a second run asks nothing. A file holds
// everything that its name is the digest of. Rewriter is safe for concurrent
// use; a question that is being asked is not asked again.
type Rewriter struct {
	model llms.Model
	name  string
	dir   string

	mu      sync.Mutex
	running map[string]chan struct{} // by key; closed when the reply is there
}

// Rewrite is a question and what became of it.
type Rewrite struct {
	Question  string // as asked
	Effective string // what is searched for; the question itself when there is no history
	Cached    bool   // the reply was on disk
}

// NewRewriter returns a rewriter that asks a model and keeps replies below the
// directory dir, which it makes. The name identifies the model, revision
// included, since replies are found by it.
func NewRewriter(model llms.Model, name, dir string) (*Rewriter, error) {
	var faults []error
	if model == nil {
		faults = append(faults, errors.New("no model"))
	}
	if name == "" {
		faults = append(faults, errors.New("the name of the model is empty; replies on disk are found by it"))
	}
	if dir == "" {
		faults = append(faults, errors.New("no directory for the replies"))
	}
	if err := errors.Join(faults...); err != nil {
		return nil, fail("new rewriter", mapmatched.KindInvalid, "%w", err)
	}
	return &Rewriter{model: model, name: name, dir: dir, running: map[string]chan struct{}{}}, nil
}

// Rewrite makes a question stand on its own, given the questions before it,
// oldest first. Without any it is returned as it is. The model is asked at
// temperature 0; its reply is put on one line, without the thoughts between
// <think> and </think> that some models put before it. A reply that is empty
// then, or does not stop thinking, is an error.
func (r *Rewriter) Rewrite(ctx context.Context, history []string, question string) (Rewrite, error) {
	if len(history) == 0 {
		return Rewrite{Question: question, Effective: question}, nil
	}
	entry := rewriteEntry{Schema: rewriteSchema, Model: r.name, Prompt: RewritePrompt, History: history, Question: question}
	key := entry.key()
	release, err := r.acquire(ctx, key)
	if err != nil {
		return Rewrite{}, failed(ctx, "rewrite", r.label(question), err)
	}
	defer release()
	found, err := readRewrite(r.dir, key, entry)
	if err != nil {
		return Rewrite{}, err
	}
	if found != "" {
		return Rewrite{question, found, true}, nil
	}
	reply, err := llms.GenerateFromSinglePrompt(ctx, r.model, prompt(history, question), llms.WithTemperature(0))
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return Rewrite{}, failed(ctx, "rewrite", r.label(question), err)
	}
	said, err := withoutThoughts(reply)
	if err != nil {
		return Rewrite{}, fail("rewrite", mapmatched.KindInvalid, "%s: %w", r.label(question), err)
	}
	entry.Rewrite = strings.Join(strings.Fields(strings.ToValidUTF8(said, "\uFFFD")), " ")
	if entry.Rewrite == "" {
		return Rewrite{}, fail("rewrite", mapmatched.KindInvalid, "%s: the reply is empty", r.label(question))
	}
	if err := writeRewrite(r.dir, key, entry); err != nil {
		return Rewrite{}, err
	}
	return Rewrite{question, entry.Rewrite, false}, nil
}

// withoutThoughts is what a reasoning model says after its thoughts. The
// template of some models has the opening tag already.
func withoutThoughts(reply string) (string, error) {
	if _, said, found := strings.Cut(reply, "</think>"); found {
		return said, nil
	}
	if strings.HasPrefix(strings.TrimSpace(reply), "<think>") {
		return "", errors.New("the reply ends within <think>; let the model answer longer, or without thinking")
	}
	return reply, nil
}

func (r *Rewriter) label(question string) string {
	return fmt.Sprintf("model %q, question %s", r.name, quote(question))
}

// acquire waits until nobody else asks for the key.
func (r *Rewriter) acquire(ctx context.Context, key string) (release func(), err error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		r.mu.Lock()
		running, busy := r.running[key]
		if !busy {
			done := make(chan struct{})
			r.running[key] = done
			r.mu.Unlock()
			return func() {
				r.mu.Lock()
				delete(r.running, key)
				r.mu.Unlock()
				close(done)
			}, nil
		}
		r.mu.Unlock()
		select {
		case <-running:
		case <-ctx.Done():
		}
	}
}

// prompt is the prompt RewritePrompt.
func prompt(history []string, question string) string {
	var b strings.Builder
	b.WriteString("Somebody searches a collection of texts in a conversation. These are the questions so far, one a line:\n\n")
	for _, q := range history {
		b.WriteString(strings.Join(strings.Fields(q), " "))
		b.WriteString("\n")
	}
	b.WriteString("\nThe next question is:\n\n")
	b.WriteString(strings.Join(strings.Fields(question), " "))
	b.WriteString("\n\nWrite that question so that it can be understood without the earlier ones: replace pronouns and fill in what is " +
		"left unsaid. Add nothing else, do not answer it, and keep its language. If it can stand alone, repeat it. Reply with the question only.")
	return b.String()
}

// Provider returns a provider that asks p the rewritten question. Its
// candidates carry it in their metadata as [MetaEffectiveQuery]. The query's
// vector, which is of the words as they were, is left out.
func (r *Rewriter) Provider(p mapmatched.CandidateProvider) mapmatched.CandidateProvider {
	return rewriting{r, p}
}

type rewriting struct {
	rewriter *Rewriter
	provider mapmatched.CandidateProvider
}

// Candidates implements mapmatched.CandidateProvider.
func (p rewriting) Candidates(ctx context.Context, q mapmatched.Query, limit int) ([]mapmatched.Candidate, error) {
	if limit <= 0 {
		return nil, nil
	}
	rewrite, err := p.rewriter.Rewrite(ctx, q.History, q.Text)
	if err != nil {
		return nil, err
	}
	if rewrite.Effective != q.Text {
		q.Text, q.Vector = rewrite.Effective, nil
	}
	candidates, err := p.provider.Candidates(ctx, q, limit)
	if err != nil {
		return nil, err
	}
	candidates = slices.Clone(candidates)
	for i := range candidates {
		c := &candidates[i]
		if c.Metadata = maps.Clone(c.Metadata); c.Metadata == nil {
			c.Metadata = map[string]any{}
		}
		c.Metadata[MetaEffectiveQuery] = rewrite.Effective
	}
	return candidates, nil
}
