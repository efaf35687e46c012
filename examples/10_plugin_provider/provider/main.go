// Command provider is the plugin of the example: a retriever that counts shared
// words, in a process of its own.
package main

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/plugins"
)

var chunks = []mapmatched.Candidate{
	{ChunkID: "tokens/lifetime", Text: "how long a token is valid : one hour"},
	{ChunkID: "tokens/renew", Text: "renew it with the refresh token"},
	{ChunkID: "invites/lifetime", Text: "an invite is valid for seven days"},
	{ChunkID: "invites/renew", Text: "to renew it send a new link"},
}

type keywords struct{}

// Candidates implements mapmatched.CandidateProvider.
func (keywords) Candidates(ctx context.Context, q mapmatched.Query, limit int) ([]mapmatched.Candidate, error) {
	var found []mapmatched.Candidate
	for _, c := range chunks {
		for word := range strings.FieldsSeq(strings.ToLower(strings.Trim(q.Text, "?"))) {
			if strings.Contains(" "+c.Text+" ", " "+word+" ") {
				c.Score++
			}
		}
		if c.Score > 0 {
			found = append(found, c)
		}
	}
	slices.SortStableFunc(found, func(a, b mapmatched.Candidate) int { return cmp.Compare(b.Score, a.Score) })
	return found[:min(limit, len(found))], ctx.Err()
}

func main() {
	plugins.Serve(plugins.Plugin{Name: "keywords", Version: "1.0.0", Services: plugins.Services{Provider: keywords{}}})
}
