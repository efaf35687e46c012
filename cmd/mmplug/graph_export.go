package main

import (
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/mapmatched/mmplug/graphbuild"
)

func newGraphExport(std stdio) *cobra.Command {
	var format, out string
	cmd := &cobra.Command{
		Use:   "export GRAPH",
		Short: "Write a graph as JSON lines, DOT or GraphML",
		Long: `Write a graph for other programs. jsonl is one edge a line, sorted:
{"source":…,"target":…,"distance":…,"type":…}, with source < target when edges
have no direction; dot is for Graphviz, graphml for Gephi and the like.

` + graphArgument,
		Example: "  mmplug graph export --format jsonl docs.mmg\n  mmplug graph export --format dot docs.idx --out docs.dot",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains(graphbuild.ExportFormats(), graphbuild.ExportFormat(format)) {
				return usageError{fmt.Errorf("--format is %q: give jsonl, dot or graphml", format)}
			}
			g, done, err := openGraph(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			defer done()
			return writeFile(std, out, func(w io.Writer) error {
				return graphbuild.Export(cmd.Context(), w, g, graphbuild.ExportFormat(format))
			})
		},
	}
	cmd.Flags().StringVar(&format, "format", string(graphbuild.ExportJSONL), "jsonl, dot or graphml")
	cmd.Flags().StringVarP(&out, "out", "o", "-", "file to write; - is standard output")
	return cmd
}
