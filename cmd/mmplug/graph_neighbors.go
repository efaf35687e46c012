package main

import (
	"fmt"
	"math"

	"github.com/spf13/cobra"

	"github.com/mapmatched/mmplug/graphbuild"
)

// jsonNeighbor is a chunk near another one.
type jsonNeighbor struct {
	ChunkID  string  `json:"chunk_id"`
	Distance float64 `json:"distance"`
}

func newGraphNeighbors(std stdio) *cobra.Command {
	var asJSON bool
	var radius float64
	var limit int
	cmd := &cobra.Command{
		Use:     "neighbors GRAPH CHUNK",
		Short:   "List the chunks near a chunk",
		Long:    "List the chunks within a radius of a chunk, nearest first.\n\n" + graphArgument,
		Example: "  mmplug graph neighbors docs.mmg guide/setup.md#install --radius 2",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !(radius >= 0) {
				return usageError{fmt.Errorf("--radius is %v: give 0 or more", radius)}
			}
			if limit < 0 {
				return usageError{fmt.Errorf("--limit is %d: give 0 for all or more", limit)}
			}
			g, done, err := openGraph(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			defer done()
			if err := graphbuild.KnownChunk(g, args[1]); err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			if !cmd.Flags().Changed("radius") {
				radius = math.Inf(1)
			}
			near, err := g.Neighborhood(cmd.Context(), args[1], radius)
			if err != nil {
				return err
			}
			all := len(near)
			if limit > 0 {
				near = near[:min(limit, all)]
			}
			if asJSON {
				list := make([]jsonNeighbor, len(near))
				for i, n := range near {
					list[i] = jsonNeighbor(n)
				}
				return writeJSON(std.out, map[string]any{"chunk_id": args[1], "within_radius": all, "neighbors": list})
			}
			rows := make([][]string, len(near))
			for i, n := range near {
				rows[i] = []string{fmt.Sprintf("%.6g", n.Distance), printable(n.ChunkID)}
			}
			if err := table(std.out, []string{"distance", "chunk"}, rows, 0); err != nil {
				return err
			}
			_, err = fmt.Fprintf(std.out, "\n%d of %s within %g\n", len(near), count(all, "chunk", "chunks"), min(radius, g.MaximumDistance()))
			return err
		},
	}
	cmd.Flags().Float64Var(&radius, "radius", 0, "how far to look (default the maximum distance)")
	cmd.Flags().IntVar(&limit, "limit", 50, "list at most so many, 0 for all")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
