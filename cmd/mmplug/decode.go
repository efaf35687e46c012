package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/mapmatched/mmplug/mapmatched"
)

func newDecode(std stdio) *cobra.Command {
	var asJSON bool
	var policyName string
	cmd := &cobra.Command{
		Use:   "decode FILE|-",
		Short: "Decode candidates that are given in a file",
		Long: `Decode a conversation in the exchange form: a JSON object with "graph"
(maximum_distance, directed, nodes, edges [[from, to, weight], …]), "options"
(emission_weight, transition_weight, score_normalization, fixed_lag,
candidate_limit, context_radius, context_limit, beam, break_distance, on_empty,
temperature) and "turns" (for each turn its candidates [[chunk_id, score], …],
best first). What is left out takes its default. With --policy the settings are
those of the section decode, and the options of the file may not contradict them.
A policy that does more with a turn (context arms, costs by move, decay, clusters,
rerank, activation) is refused: the file has candidates only.

With --json every turn's streaming answer is printed: chunk_id, confidence,
context_chunk_ids, ranking ([[chunk_id, path score], …]), path and trace.`,
		Example: `  mmplug decode conversation.json
  mmplug decode --json - < conversation.json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			problem, err := readFile(cmd.Context(), std, args[0], mapmatched.ReadProblem)
			if err != nil {
				return err
			}
			if policyName != "" {
				used, err := usePolicy(policyName)
				if err != nil {
					return err
				}
				if err := decodeUnder(used.Policy, problem); err != nil {
					return fmt.Errorf("%s: %w", inputName(args[0]), err)
				}
			}
			session, err := problem.Play(cmd.Context(), nil)
			if err != nil {
				return fmt.Errorf("%s: %w", inputName(args[0]), err)
			}
			if asJSON { // played again, turn by turn: every answer has the whole trace so far
				return writeTurns(std.out, func(write func(any) error) error {
					_, err := problem.Play(cmd.Context(), func(s *mapmatched.Session, r *mapmatched.Result) error {
						return write(mapmatched.NewAnswer(s, r))
					})
					return err
				})
			}
			if len(problem.Turns) == 0 {
				_, err := fmt.Fprintln(std.out, "no turns")
				return err
			}
			_, err = fmt.Fprintln(std.out, session.Trace().Text())
			return err
		},
	}
	cmd.Flags().StringVar(&policyName, "policy", "", policyUsage+" (default: the options of the file)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the answer after every turn as JSON")
	return cmd
}
