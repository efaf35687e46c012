package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/plugins"
)

// pluginQuestion is what plugin run reads.
type pluginQuestion struct {
	Query struct {
		Text    string    `json:"text"`
		Vector  []float32 `json:"vector"`
		Turn    int       `json:"turn"`
		History []string  `json:"history"`
		Path    []string  `json:"path"`
	} `json:"query"`
	Limit      *int              `json:"limit"`
	Candidates []pluginCandidate `json:"candidates"`
}

// pluginCandidate is a candidate in JSON.
type pluginCandidate struct {
	ChunkID  string             `json:"chunk_id"`
	Score    float64            `json:"score"`
	Text     string             `json:"text,omitempty"`
	Metadata map[string]any     `json:"metadata,omitempty"`
	Parts    map[string]float64 `json:"parts,omitempty"`
}

func newPluginRun(std stdio) *cobra.Command {
	var flags pluginFlags
	var asJSON, allowUnlocked bool
	var kind string
	cmd := &cobra.Command{
		Use:   "run BINARY",
		Short: "Ask a plugin one question, read as JSON from standard input",
		Long: `Start a plugin, ask it one question and print the answer. The question is a JSON
object on standard input: "query" (text, vector, turn, history, path) and, for a
provider, "limit" (default 10); for a reranker, "candidates" (chunk_id, score,
text, metadata, parts).

The plugin must be in the plugins.lock beside it, unless --allow-unlocked is given.`,
		Example: `  echo '{"query": {"text": "renew a token"}, "limit": 3}' | mmplug plugin run plugins/mmplug-provider-wiki`,
		Args:    cobra.ExactArgs(1), ValidArgsFunction: completeBinary,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			ctx := cmd.Context()
			opts, err := flags.options(cmd, std)
			if err != nil {
				return err
			}
			opts.AllowUnlocked, opts.Kind = allowUnlocked, plugins.Kind(kind)
			if err := opts.Validate(); err != nil {
				return usageError{fmt.Errorf("--kind: %w", err)}
			}
			question, err := readFile(ctx, std, "-", readQuestion)
			if err != nil {
				return err
			}
			host, err := plugins.Open(ctx, binaryPath(args[0]), opts)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, host.Close()) }()
			answer, err := question.ask(ctx, host, opts.Kind)
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(std.out, map[string]any{"candidates": answer})
			}
			rows := make([][]string, len(answer))
			for i, c := range answer {
				rows[i] = []string{fmt.Sprint(i + 1), printable(c.ChunkID), fmt.Sprintf("%.6g", c.Score), snippet(c.Text, 60)}
			}
			return table(std.out, []string{"rank", "chunk", "score", "text"}, rows, 0, 2)
		},
	}
	flags.add(cmd)
	cmd.Flags().StringVar(&kind, "kind", "", "what to ask of a plugin that is several: provider or reranker")
	cmd.Flags().BoolVar(&allowUnlocked, "allow-unlocked", false, "start a plugin that plugins.lock does not list")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func readQuestion(r io.Reader) (*pluginQuestion, error) {
	d := json.NewDecoder(r)
	d.DisallowUnknownFields()
	d.UseNumber() // integers of metadata keep every digit
	q := &pluginQuestion{}
	if err := d.Decode(q); err != nil {
		return nil, fmt.Errorf("it is not a question to a plugin (see \"mmplug plugin run --help\"): %w", err)
	}
	if d.More() {
		return nil, errors.New("there is something after the question: one JSON object is read")
	}
	return q, nil
}

// ask asks the plugin as what it is: a reranker when there are candidates to
// rerank, and else a provider, unless kind says.
func (q *pluginQuestion) ask(ctx context.Context, host *plugins.Host, kind plugins.Kind) ([]pluginCandidate, error) {
	info := host.Info()
	if kind == "" {
		kind = plugins.KindProvider
		if !info.Serves(kind) || q.Candidates != nil && info.Serves(plugins.KindReranker) {
			kind = plugins.KindReranker
		}
	}
	query := mapmatched.Query{Text: q.Query.Text, Vector: q.Query.Vector, Turn: q.Query.Turn, History: q.Query.History, Path: q.Query.Path}
	answer := []pluginCandidate{}
	switch {
	case kind == plugins.KindProvider && q.Candidates != nil:
		return nil, errors.New("the plugin is asked as a provider, which is given no candidates: leave them out, or say --kind reranker")
	case kind == plugins.KindProvider:
		limit := 10
		if q.Limit != nil {
			limit = *q.Limit
		}
		provider, err := host.Provider()
		if err != nil {
			return nil, err
		}
		found, err := provider.Candidates(ctx, query, limit)
		for _, c := range found {
			answer = append(answer, pluginCandidate(c))
		}
		return answer, err
	case kind != plugins.KindReranker || !info.Serves(kind):
		return nil, fmt.Errorf("%s is asked as the kind %s, and it serves %s: run asks providers and rerankers", info.Name, kind, kindsText(info.Kinds))
	case q.Limit != nil:
		return nil, errors.New("the plugin is asked as a reranker, which has no limit: leave it out, or say --kind provider")
	}
	reranker, err := host.Reranker()
	if err != nil {
		return nil, err
	}
	given := make([]mapmatched.Candidate, len(q.Candidates))
	texts := map[string]string{}
	for i, c := range q.Candidates {
		given[i] = mapmatched.Candidate(c)
		texts[c.ChunkID] = c.Text
	}
	scored, err := reranker.Rerank(ctx, query, given)
	slices.SortStableFunc(scored, func(a, b mapmatched.Scored) int { return cmp.Compare(b.Score, a.Score) })
	for _, s := range scored {
		answer = append(answer, pluginCandidate{ChunkID: s.ChunkID, Score: s.Score, Text: texts[s.ChunkID]})
	}
	return answer, err
}
