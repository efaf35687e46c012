package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
)

func newAsk(std stdio) *cobra.Command {
	var flags conversationFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "ask (--index IDX | --provider URL) QUESTION…",
		Short: "Ask one question, or several as one conversation",
		Long: `Decode the questions as the turns of one conversation and print the passage for
each. The corpus is an index directory or, with --provider, what a store has. With --session the conversation is kept in a file and continued by the
next call; it is written after every turn.`,
		Example: `  mmplug ask --index docs.idx "How long does an access token last?" "How do I renew it?"
  mmplug ask --index docs.idx --session talk.json "What happens when it expires?"
  mmplug ask --provider qdrant://localhost:6334/docs --embed models/minilm "How do I renew it?"`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageError{errors.New(`no question; write it in quotes: mmplug ask --index IDX "How do I …?"`)}
			}
			questions := make([]string, len(args))
			for i, text := range args {
				if questions[i] = asked(text); questions[i] == "" {
					return usageError{fmt.Errorf("question %d is empty", i+1)}
				}
			}
			ctx := cmd.Context()
			c, err := converse(ctx, std, flags)
			if err != nil {
				return err
			}
			defer c.close()
			turns := make([]*turn, 0, len(args))
			for _, question := range questions {
				r, err := c.ask(ctx, question)
				if err != nil {
					return err
				}
				if !asJSON {
					if err := c.print(ctx, question, r, 3); err != nil {
						return err
					}
					continue
				}
				t, err := c.turn(ctx, question, r)
				if err != nil {
					return err
				}
				turns = append(turns, t)
			}
			if err := c.writeHTML(ctx); err != nil || !asJSON {
				return err
			}
			return writeJSON(std.out, map[string]any{"turns": turns})
		},
	}
	flags.add(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the answer to every question as JSON")
	return cmd
}
