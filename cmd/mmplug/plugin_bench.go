package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/plugins/plugintest"
)

func newPluginBench(std stdio) *cobra.Command {
	var flags pluginFlags
	var queries []string
	var runs int
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "bench BINARY",
		Short: "Measure a plugin: its start, an empty call, and what its kinds do",
		Long: `Start a plugin, whether plugins.lock lists it or not, and measure its start, an empty
call and, by its kinds, 100 candidates, a rerank of 100 texts of 1 KB, distances,
embeddings and decoding. The median of all runs is printed, and the slowest.`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeBinary,
		RunE: func(cmd *cobra.Command, args []string) error {
			if runs < 1 {
				return usageError{fmt.Errorf("--runs is %d: it must be 1 or more", runs)}
			}
			opts, err := flags.options(cmd, std)
			if err != nil {
				return err
			}
			var suite plugintest.Options
			for _, text := range queries {
				suite.Queries = append(suite.Queries, mapmatched.Query{Text: text})
			}
			measured, err := plugintest.Measure(cmd.Context(), plugintest.Binary(binaryPath(args[0]), opts), runs, &suite)
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(std.out, map[string]any{"measurements": measured})
			}
			rows := make([][]string, len(measured))
			for i, m := range measured {
				rows[i] = []string{m.Name, fmt.Sprint(m.Runs), milliseconds(m.Median), milliseconds(m.Slowest)}
			}
			return table(std.out, []string{"what", "runs", "median ms", "slowest ms"}, rows, 1, 2, 3)
		},
	}
	flags.add(cmd)
	cmd.Flags().IntVar(&runs, "runs", 200, "calls of each kind; a tenth as many starts")
	cmd.Flags().StringArrayVar(&queries, "query", nil, "query to ask of a provider")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func milliseconds(d time.Duration) string { return fmt.Sprintf("%.3f", d.Seconds()*1e3) }
