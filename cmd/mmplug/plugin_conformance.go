package main

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/plugins/plugintest"
)

func newPluginTest(std stdio) *cobra.Command {
	var flags pluginFlags
	var queries []string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "test BINARY",
		Short: "Run the conformance suite on a plugin in any language; exit status 3 when a check fails",
		Long: `Start a plugin, whether plugins.lock lists it or not, and check that it keeps what the
protocol asks: that it starts and ends, bears deadlines, answers calls that overlap, takes
large messages, refuses bad input, and for each of its kinds the right answers. The exit status is
0 when every check holds, 3 when one does not.

A provider with the capability "load" is given a small corpus. Another is asked the
queries given with --query, and checked for what holds whatever the answer is.`,
		Example: `  mmplug plugin test ./mmplug-reranker-mine
  mmplug plugin test --config wiki.json --env WIKI_KEY --query "opening hours" ./mmplug-provider-wiki`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeBinary,
		RunE: func(cmd *cobra.Command, args []string) error {
			opts, err := flags.options(cmd, std)
			if err != nil {
				return err
			}
			path := binaryPath(args[0])
			if _, err := os.Stat(path); err != nil {
				return cannot("run", args[0], err)
			}
			opts.Logger = nil // what a plugin says of bad input is not news
			var suite plugintest.Options
			for _, text := range queries {
				suite.Queries = append(suite.Queries, mapmatched.Query{Text: text})
			}
			report := plugintest.Check(cmd.Context(), plugintest.Binary(path, opts), &suite)
			if err := cmd.Context().Err(); err != nil {
				return err
			}
			if asJSON {
				err = writeJSON(std.out, report)
			} else {
				err = printConformance(std.out, report)
			}
			if err == nil && !report.OK() {
				err = checkError{}
			}
			return err
		},
	}
	flags.add(cmd)
	cmd.Flags().StringArrayVar(&queries, "query", nil, "query to ask of a provider; may be given several times")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the report as JSON")
	return cmd
}

func printConformance(w io.Writer, report plugintest.Report) error {
	rows := make([][]string, len(report.Results))
	for i, r := range report.Results {
		rows[i] = []string{string(r.Status), r.Group, printable(r.Check), printable(oneLine(r.Detail))}
	}
	if report.Info.Name != "" {
		if _, err := fmt.Fprintf(w, "%s %s: %s\n\n", printable(report.Info.Name), printable(report.Info.Version), kindsText(report.Info.Kinds)); err != nil {
			return err
		}
	}
	if err := table(w, []string{"status", "group", "check", "what"}, rows); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\n%d ok, %d failed, %d skipped\n", report.Count(mapmatched.StatusOK), report.Count(mapmatched.StatusFailed), report.Count(mapmatched.StatusSkipped))
	return err
}
