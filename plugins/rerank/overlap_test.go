package rerank

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/mapmatched/mmplug/mapmatched"
)

// texts are candidates a, b, c, … with these texts.
func texts(list ...string) []mapmatched.Candidate {
	c := make([]mapmatched.Candidate, len(list))
	for i, text := range list {
		c[i] = mapmatched.Candidate{ChunkID: string(rune('a' + i)), Score: float64(len(list) - i), Text: text}
	}
	return c
}

func TestTerms(t *testing.T) {
	for _, c := range []struct {
		text string
		want []string
	}{
		{"", nil},
		{" …!? ", nil},
		{"What is it?", nil},
		{"Renew the Token, renew!", []string{"renew", "token", "renew"}},
		{"v1.2 max_size", []string{"v1", "2", "max", "size"}},
		{"Äpfel naïve e\u0301te\u0301", []string{"äpfel", "naïve", "e\u0301te\u0301"}},
		{"故乡", []string{"故乡"}},
		{"我的故乡在API里", []string{"我的", "的故", "故乡", "乡在", "api", "里"}},
		{"token故", []string{"token", "故"}},
		{"bad\xffutf", []string{"bad", "utf"}},
		{"\u0301token", []string{"token"}},
	} {
		if got := Terms(c.text); !slices.Equal(got, c.want) {
			t.Errorf("%q: terms %q, want %q", c.text, got, c.want)
		}
	}
}

func TestOverlap(t *testing.T) {
	const question = "How do I renew a token token?" // {renew, token}
	candidates := texts(
		"tea with milk",               // nothing
		"renew renew",                 // 1 of {renew, token}
		"a token, valid one hour",     // {token, valid, one, hour}: 1 of 5
		"TOKEN: renew it",             // both of 2
		"renew token before midnight", // {renew, token, midnight}: 2 of 3
		"",
	)
	for _, c := range []struct {
		name    string
		overlap Overlap
		query   string
		want    []mapmatched.Scored
	}{
		{"jaccard", Overlap{}, question, []mapmatched.Scored{{ChunkID: "d", Score: 1}, {ChunkID: "e", Score: 2.0 / 3}, {ChunkID: "b", Score: 0.5}, {ChunkID: "c", Score: 0.2}, {ChunkID: "a"}, {ChunkID: "f"}}},
		{"coverage", Overlap{Measure: Coverage}, question, []mapmatched.Scored{{ChunkID: "d", Score: 1}, {ChunkID: "e", Score: 1}, {ChunkID: "b", Score: 0.5}, {ChunkID: "c", Score: 0.5}, {ChunkID: "a"}, {ChunkID: "f"}}},
		{"no content terms", Overlap{}, "What is it?", []mapmatched.Scored{{ChunkID: "a"}, {ChunkID: "b"}, {ChunkID: "c"}, {ChunkID: "d"}, {ChunkID: "e"}, {ChunkID: "f"}}},
	} {
		got, err := c.overlap.Rerank(t.Context(), mapmatched.Query{Text: c.query}, candidates)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, error %v, want %v", c.name, got, err, c.want)
		}
	}
}

// Both rerankers refuse the same questions in the same way.
func TestRefused(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	fine := texts("one", "two")
	for _, c := range []struct {
		name string
		ctx  context.Context
		r    mapmatched.Reranker
		c    []mapmatched.Candidate
		is   error
		kind mapmatched.Kind
	}{
		{"measure", t.Context(), Overlap{Measure: "cosine"}, fine, nil, mapmatched.KindInvalid},
		{"lambda above 1", t.Context(), MMR{Lambda: new(1.5)}, fine, nil, mapmatched.KindInvalid},
		{"lambda below 0", t.Context(), MMR{Lambda: new(-0.1)}, fine, nil, mapmatched.KindInvalid},
		{"twice", t.Context(), Overlap{}, append(texts("one"), fine...), mapmatched.ErrDuplicateCandidate, mapmatched.KindInvalid},
		{"twice", t.Context(), MMR{}, append(texts("one"), fine...), mapmatched.ErrDuplicateCandidate, mapmatched.KindInvalid},
		{"no ID", t.Context(), Overlap{}, make([]mapmatched.Candidate, 1), mapmatched.ErrEmptyChunkID, mapmatched.KindInvalid},
		{"no ID", t.Context(), MMR{}, make([]mapmatched.Candidate, 1), mapmatched.ErrEmptyChunkID, mapmatched.KindInvalid},
		{"cancelled", ctx, Overlap{}, fine, context.Canceled, mapmatched.KindDeadline},
		{"cancelled", ctx, MMR{}, fine, context.Canceled, mapmatched.KindDeadline},
	} {
		got, err := c.r.Rerank(c.ctx, mapmatched.Query{Text: "one"}, c.c)
		if got != nil || err == nil || c.is != nil && !errors.Is(err, c.is) || mapmatched.KindOf(err) != c.kind {
			t.Errorf("%T, %s: %v, error %v of kind %q, want %v of kind %q", c.r, c.name, got, err, mapmatched.KindOf(err), c.is, c.kind)
		}
	}
}

func TestNothingToRerank(t *testing.T) {
	for _, r := range []mapmatched.Reranker{Overlap{}, MMR{}} {
		if got, err := r.Rerank(t.Context(), mapmatched.Query{Text: "one"}, nil); len(got) > 0 || err != nil {
			t.Errorf("%T: %v, error %v, want nothing", r, got, err)
		}
	}
}

func ExampleOverlap() {
	scored, err := Overlap{}.Rerank(context.Background(), mapmatched.Query{Text: "How do I renew a token?"}, []mapmatched.Candidate{
		{ChunkID: "invites/renew", Score: 2, Text: "Renew a link by sending it again."},
		{ChunkID: "tokens/renew", Score: 1, Text: "Renew the token before the hour is over."},
	})
	if err != nil {
		fmt.Println(err)
	}
	for _, s := range scored {
		fmt.Printf("%s %.2f\n", s.ChunkID, s.Score)
	}
	// Output:
	// tokens/renew 0.67
	// invites/renew 0.25
}
