// Command 11_plugin_reranker lets a reranker that runs in a process of its own
// look at the ranking of every turn, within a budget. When it is too slow, fails
// or is gone, the order stays what it was and the record says why.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/plugins"
	"github.com/mapmatched/mmplug/policy"
)

// found is what a vector search gave for each turn.
var found = [][]mapmatched.Candidate{
	{
		{ChunkID: "tokens/about", Score: 0.9, Text: "Tokens prove who you are."},
		{ChunkID: "tokens/lifetime", Score: 0.8, Text: "A token is valid for one hour."},
	},
	{
		{ChunkID: "tokens/lifetime", Score: 0.9, Text: "A token is valid for one hour."},
		{ChunkID: "tokens/renew", Score: 0.8, Text: "Renew a token before the hour is over."},
	},
	{
		{ChunkID: "tokens/renew", Score: 0.7, Text: "Renew a token before the hour is over."},
		{ChunkID: "tokens/revoke", Score: 0.6, Text: "Revoke a token in the settings."},
	},
}

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, w io.Writer) (err error) {
	dir, err := os.MkdirTemp("", "plugins")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	binary := filepath.Join(dir, "mmplug-reranker-shared-words")
	build := exec.CommandContext(ctx, "go", "build", "-o", binary, "github.com/mapmatched/mmplug/examples/11_plugin_reranker/reranker")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w: %s", err, out)
	}
	// The binary was built a moment ago, so nobody has locked it.
	host, err := plugins.Open(ctx, binary, &plugins.Options{AllowUnlocked: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, host.Close()) }()
	reranker, err := host.Reranker()
	if err != nil {
		return err
	}

	p := policy.Default()
	p.Name = "reranked"
	p.Rerank.Mode, p.Rerank.BudgetMS = policy.RerankSync, 5000
	provider, err := mapmatched.NewSliceProvider(found)
	if err != nil {
		return err
	}
	graph, err := mapmatched.NewGraph([]mapmatched.Edge{
		{From: "tokens/about", To: "tokens/lifetime", Weight: 1, Type: mapmatched.EdgeNext},
		{From: "tokens/lifetime", To: "tokens/renew", Weight: 1, Type: mapmatched.EdgeNext},
	}, nil)
	if err != nil {
		return err
	}
	retriever, err := policy.New(ctx, p, policy.Parts{
		Arms:     []policy.FusedArm{{Name: policy.ArmDense, Provider: provider}},
		Graph:    graph,
		Reranker: reranker,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, retriever.Close()) }()
	for turn, question := range []string{"How long is a token valid?", "How do I renew a token?", "How do I revoke a token?"} {
		if turn == 2 { // the last question finds the plugin gone
			if err := host.Close(); err != nil {
				return err
			}
		}
		answer, err := retriever.Ask(ctx, policy.Query{Text: question})
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "%s\n  decoded: %s\n  first:   %s (%s)\n", question, answer.ChunkID, answer.Order[0].ChunkID, answer.Rerank.Outcome); err != nil {
			return err
		}
		if err := answer.Rerank.Err(); err != nil {
			if _, err := fmt.Fprintf(w, "  %v\n", err); err != nil {
				return err
			}
		}
	}
	return nil
}
