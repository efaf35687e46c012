package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mapmatched/mmplug/adapters/embedded"
	"github.com/mapmatched/mmplug/graphbuild"
	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/mapmatched/registry"
)

func newGraph(std stdio) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "graph",
		Short: "Look at corpus graphs",
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newGraphStats(std))
	return cmd
}

func newGraphStats(std stdio) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "stats IDX|URL",
		Short: "Describe a corpus graph: size, degrees, components, reach",
		Long: `Describe the corpus graph of an index directory, or of a graph URL (see
"mmplug adapters") that can list its edges.`,
		Example: "  mmplug graph stats docs.idx\n  mmplug graph stats embedded:docs.idx --json",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			graph, err := openGraph(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			stats, err := graphbuild.Measure(cmd.Context(), graph)
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(std.out, stats)
			}
			return printStats(std.out, stats)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// openGraph opens a graph by URL or by the path of an index directory.
func openGraph(ctx context.Context, at string) (*mapmatched.Graph, error) {
	if _, err := os.Stat(at); err == nil || !strings.Contains(at, ":") {
		at = embedded.Scheme + ":" + filepath.ToSlash(at)
	}
	g, err := registry.OpenGraph(ctx, at)
	if err != nil {
		return nil, err
	}
	if closer, ok := g.(io.Closer); ok {
		defer closer.Close() //nolint:errcheck // only read
	}
	if graph, ok := g.(*mapmatched.Graph); ok {
		return graph, nil
	}
	lister, ok := g.(mapmatched.EdgeLister)
	if !ok {
		return nil, fmt.Errorf("%s: this graph cannot list its edges", at)
	}
	var edges []mapmatched.Edge
	for e, err := range lister.Edges(ctx) {
		if err != nil {
			return nil, err
		}
		edges = append(edges, e)
	}
	return mapmatched.NewGraph(edges, &mapmatched.GraphOptions{MaximumDistance: g.MaximumDistance()})
}

func printStats(w io.Writer, s *graphbuild.Stats) error {
	rows := [][]string{{"nodes", fmt.Sprint(s.Nodes)}, {"edges", fmt.Sprint(s.Edges)}}
	for _, t := range s.EdgesByType {
		name := string(t.Type)
		if name == "" {
			name = "(no type)"
		}
		rows = append(rows, []string{"  " + printable(name), fmt.Sprint(t.Count)})
	}
	direction := "undirected"
	if s.Directed {
		direction = "directed"
	}
	rows = append(rows,
		[]string{"direction", direction},
		[]string{"maximum distance", fmt.Sprintf("%g", s.MaximumDistance)},
		[]string{"degree least / median / mean / most", fmt.Sprintf("%d / %d / %.2f / %d", s.Degree.Least, s.Degree.Median, s.Degree.Mean, s.Degree.Most)},
		[]string{"isolated nodes", fmt.Sprint(s.Isolated)},
		[]string{"components (largest)", fmt.Sprintf("%d (%d nodes)", s.Components, s.LargestComponent)},
		[]string{"reach of a node, mean", fmt.Sprintf("%.1f", s.MeanReach)},
		[]string{"pairs out of reach", fmt.Sprintf("%.1f%%", 100*s.ClampedShare)},
	)
	if err := table(w, []string{"what", "value"}, rows, 1); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\n%s\n", s.Verdict())
	return err
}
