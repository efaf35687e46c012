package langchaingo_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/tmc/langchaingo/schema"

	"github.com/mapmatched/mmplug/adapters/langchaingo"
	"github.com/mapmatched/mmplug/mapmatched"
)

// scored are n documents with falling similarities.
func scored(n int) fixed {
	documents := many(n)
	for i := range documents {
		documents[i].Score = 0.987 - 0.0123*float32(i)
		documents[i].Metadata["document"] = fmt.Sprintf("page-%d", i/3)
	}
	return documents
}

// BenchmarkProvider compares a retriever alone and wrapped, on twenty
// documents: one that answers at once, which shows what the wrap costs, and one
// that takes a millisecond, as a store near by does.
func BenchmarkProvider(b *testing.B) {
	for _, delay := range []time.Duration{0, time.Millisecond} {
		documents := scored(20)
		bare := retrieverFunc(func(context.Context, string) ([]schema.Document, error) {
			time.Sleep(delay)
			return documents, nil
		})
		b.Run(fmt.Sprintf("delay=%v/bare", delay), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := bare.GetRelevantDocuments(b.Context(), "q"); err != nil {
					b.Fatal(err)
				}
			}
		})
		for _, id := range []struct {
			name string
			of   langchaingo.Identity
		}{{"key", langchaingo.IDFromKey("id")}, {"content", langchaingo.IDFromContent("document")}} {
			p, err := langchaingo.NewRetrieverProvider("pages", bare, id.of, langchaingo.ScoreSimilarity, nil)
			if err != nil {
				b.Fatal(err)
			}
			b.Run(fmt.Sprintf("delay=%v/wrapped/id=%s", delay, id.name), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, err := p.Candidates(b.Context(), mapmatched.Query{Text: "q"}, 20); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkConversations is a turn as a chain sees it: the session's decoding
// with the candidates at hand, and the documents.
func BenchmarkConversations(b *testing.B) {
	c := conversations(b, &pages{}, nil)
	r := c.Retriever("alice")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.GetRelevantDocuments(b.Context(), "tokens"); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkSplitText finds the offsets of the chunks of a document of 1 MB that
// repeats itself all the time.
func BenchmarkSplitText(b *testing.B) {
	const line = "the same line of words again\n"
	var text string
	var cut pieces
	for range 1 << 20 / len(line) / 10 {
		var piece string
		for range 10 {
			piece += line
		}
		text += piece
		cut = append(cut, piece)
	}
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := langchaingo.SplitText(cut, "d", text); err != nil {
			b.Fatal(err)
		}
	}
}
