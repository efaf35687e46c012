package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/mapmatched/mmplug/graphbuild"
)

// jsonStep is an edge of a path.
type jsonStep struct {
	Source   string  `json:"source"`
	Target   string  `json:"target"`
	Distance float64 `json:"distance"`
	Type     string  `json:"type"`
}

func newGraphPath(std stdio) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "path GRAPH FROM TO",
		Short:   "Print the shortest path between two chunks",
		Long:    "Print the edges of a shortest path between two chunks and the distance.\n\n" + graphArgument,
		Example: "  mmplug graph path docs.mmg guide/setup.md#install guide/usage.md",
		Args:    cobra.ExactArgs(3),
		RunE: func(cmd *cobra.Command, args []string) error {
			g, done, err := openGraph(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			defer done()
			from, to := args[1], args[2]
			for _, id := range []string{from, to} {
				if err := graphbuild.KnownChunk(g, id); err != nil {
					return fmt.Errorf("%s: %w", args[0], err)
				}
			}
			path, err := g.ShortestPath(cmd.Context(), from, to)
			if err != nil {
				return err
			}
			steps, distance := []jsonStep{}, 0.0
			var rows [][]string
			for _, e := range path {
				distance += e.Weight
				steps = append(steps, jsonStep{e.From, e.To, e.Weight, string(e.Type)})
				rows = append(rows, []string{printable(e.From), printable(e.To), printable(string(e.Type)), fmt.Sprintf("%.6g", e.Weight), fmt.Sprintf("%.6g", distance)})
			}
			reached := len(path) > 0 || from == to
			if !reached {
				distance = g.MaximumDistance()
			}
			switch {
			case asJSON:
				return writeJSON(std.out, map[string]any{"source": from, "target": to, "reached": reached, "distance": distance, "edges": steps})
			case !reached:
				_, err = fmt.Fprintf(std.out, "%s is out of reach of %s within %g\n", printable(to), printable(from), distance)
				return err
			case from == to:
				_, err = fmt.Fprintln(std.out, "the chunks are the same: distance 0")
				return err
			}
			return table(std.out, []string{"from", "to", "type", "length", "distance"}, rows, 3, 4)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
