package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/mapmatched/mmplug/graphbuild"
	"github.com/mapmatched/mmplug/mapmatched"
)

func newGraphCheck(std stdio) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "check GRAPH",
		Short: "Check a graph: checksums, order, distances against a search",
		Long: `Check that a graph is what it was when it was made: every checksum, that edges
lead both ways and are in order, and on a sample of chunks that the distances of
the table or labels are those of a search. The exit status is 3 when something
does not hold.

` + graphArgument,
		Example: "  mmplug graph check docs.mmg",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			g, done, err := openGraph(cmd.Context(), args[0])
			if err == nil {
				defer done()
				if file, ok := g.(*graphbuild.GraphFile); ok {
					err = file.Check(cmd.Context())
				}
			}
			_, missing := os.Stat(args[0])
			kind := mapmatched.KindOf(err)
			broken := kind == mapmatched.KindCorrupt || kind == mapmatched.KindInvalid && missing == nil // something else is there
			if err != nil && !broken {
				return err
			}
			if err != nil {
				if asJSON {
					if werr := writeJSON(std.out, map[string]any{"graph": args[0], "ok": false, "fault": err.Error()}); werr != nil {
						return werr
					}
				}
				return checkError{err}
			}
			if asJSON {
				return writeJSON(std.out, map[string]any{"graph": args[0], "ok": true, "nodes": g.NumNodes(), "edges": g.NumEdges()})
			}
			_, err = fmt.Fprintf(std.out, "%s holds: %s, %s\n", args[0], count(g.NumNodes(), "chunk", "chunks"), count(g.NumEdges(), "edge", "edges"))
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
