// Command 02_custom_provider wraps a retriever of your own: one method, and
// the conversation is decoded instead of searched turn by turn.
package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"slices"
	"strings"

	"github.com/mapmatched/mmplug/mapmatched"
)

// keywords is a retriever that counts shared words. Yours calls your search
// engine here.
type keywords map[string]string // text by chunk ID

// order in which chunks are offered when they score the same.
var order = []string{"tokens/lifetime", "tokens/renew", "invites/lifetime", "invites/renew"}

// Candidates implements mapmatched.CandidateProvider.
func (k keywords) Candidates(ctx context.Context, q mapmatched.Query, limit int) ([]mapmatched.Candidate, error) {
	var found []mapmatched.Candidate
	for _, id := range order {
		score := 0.0
		for word := range strings.FieldsSeq(strings.ToLower(strings.Trim(q.Text, "?"))) {
			if strings.Contains(" "+k[id]+" ", " "+word+" ") {
				score++
			}
		}
		if score > 0 {
			found = append(found, mapmatched.Candidate{ChunkID: id, Score: score, Text: k[id]})
		}
	}
	slices.SortStableFunc(found, func(a, b mapmatched.Candidate) int { return cmp.Compare(b.Score, a.Score) })
	return found[:min(limit, len(found))], ctx.Err()
}

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, w io.Writer) error {
	provider := keywords{
		"tokens/lifetime":  "how long a token is valid : one hour",
		"tokens/renew":     "renew it with the refresh token",
		"invites/lifetime": "an invite is valid for seven days",
		"invites/renew":    "to renew it send a new link",
	}
	graph, err := mapmatched.NewGraph([]mapmatched.Edge{
		{From: "tokens/lifetime", To: "tokens/renew", Weight: 1, Type: mapmatched.EdgeNext},
		{From: "invites/lifetime", To: "invites/renew", Weight: 1, Type: mapmatched.EdgeNext},
	}, nil)
	if err != nil {
		return err
	}
	session, err := mapmatched.NewSession(provider, graph, nil)
	if err != nil {
		return err
	}
	for _, question := range []string{"How long is a token valid?", "How to renew it?"} {
		alone, err := provider.Candidates(ctx, mapmatched.Query{Text: question}, 1)
		if err != nil {
			return err
		}
		result, err := session.Ask(ctx, mapmatched.Query{Text: question})
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "%s\n  alone:   %s\n  decoded: %s\n", question, alone[0].ChunkID, result.ChunkID); err != nil {
			return err
		}
	}
	return nil
}
