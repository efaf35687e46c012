package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mapmatched/mmplug/adapters/embedded"
	"github.com/mapmatched/mmplug/adapters/graphfile"
	"github.com/mapmatched/mmplug/graphbuild"
	"github.com/mapmatched/mmplug/mapmatched/registry"
)

func newGraph(std stdio) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "graph",
		Short: "Make corpus graphs and look at them",
	}
	cmd.AddCommand(
		newGraphBuild(std), newGraphStats(std), newGraphCheck(std),
		newGraphExport(std), newGraphNeighbors(std), newGraphPath(std),
		newGraphUnion(std), newGraphCluster(std), newGraphPicture(std),
	)
	return cmd
}

// graphArgument says what GRAPH may be.
const graphArgument = `GRAPH is a graph file, an index directory, or a graph URL (see "mmplug
adapters") that can list its edges.`

func newGraphStats(std stdio) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "stats GRAPH",
		Short:   "Describe a corpus graph: size, degrees, components, reach",
		Long:    "Describe a corpus graph.\n\n" + graphArgument,
		Example: "  mmplug graph stats docs.idx\n  mmplug graph stats docs.mmg\n  mmplug graph stats embedded:docs.idx --json",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			graph, done, err := openGraph(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			defer done()
			measured, err := graphbuild.Measure(cmd.Context(), graph)
			if err != nil {
				return err
			}
			stats := graphStats{Stats: measured}
			if file, ok := graph.(*graphbuild.GraphFile); ok {
				distances, provenance := file.Method(), file.Provenance()
				stats.Distances, stats.Provenance = &distances, &provenance
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

// openGraph opens a graph by URL, by the path of an index directory or by that
// of a graph file. The caller calls done in the end.
func openGraph(ctx context.Context, at string) (g graphbuild.ListedGraph, done func(), err error) {
	info, err := os.Stat(at)
	if err == nil || !strings.Contains(at, ":") {
		scheme := embedded.Scheme
		if err == nil && !info.IsDir() || err != nil && strings.HasSuffix(at, ".mmg") {
			scheme = graphfile.Scheme
		}
		path := url.URL{Path: filepath.ToSlash(at)}
		at = scheme + ":" + path.EscapedPath()
	}
	opened, err := registry.OpenGraph(ctx, at)
	if err != nil {
		return nil, nil, err
	}
	done = func() {
		if closer, ok := opened.(io.Closer); ok {
			_ = closer.Close() // only read
		}
	}
	if g, err = graphbuild.ListGraph(ctx, opened); err != nil {
		done()
		return nil, nil, fmt.Errorf("%s: %w", at, err)
	}
	return g, done, nil
}

// graphStats is what stats says of a graph.
type graphStats struct {
	*graphbuild.Stats
	Distances  *graphbuild.DistanceChoice `json:"distances,omitempty"`  // of a graph file
	Provenance *graphbuild.Provenance     `json:"provenance,omitempty"` // of a graph file
}

func printStats(w io.Writer, s graphStats) error {
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
	sample := ""
	if s.Sampled() {
		sample = fmt.Sprintf(" (sample of %d)", s.Sources)
	}
	rows = append(rows,
		[]string{"direction", direction},
		[]string{"maximum distance", fmt.Sprintf("%g", s.MaximumDistance)},
		[]string{"degree least / median / mean / most", fmt.Sprintf("%d / %d / %.2f / %d", s.Degree.Least, s.Degree.Median, s.Degree.Mean, s.Degree.Most)},
		[]string{"isolated nodes", fmt.Sprint(s.Isolated)},
		[]string{"components (largest)", fmt.Sprintf("%d (%d nodes)", s.Components, s.LargestComponent)},
		[]string{"reach of a node, mean", fmt.Sprintf("%.1f", s.MeanReach) + sample},
		[]string{"pairs out of reach", graphbuild.Percent(s.ClampedShare) + sample},
	)
	if p := s.Provenance; p != nil && p.Method != "" {
		rows = append(rows, []string{"made by", printable(p.Method)})
		if p.Recall > 0 {
			rows = append(rows, []string{"recall of neighbours", fmt.Sprintf("%.4f", p.Recall)})
		}
		for _, name := range slices.Sorted(maps.Keys(p.Parameters)) {
			rows = append(rows, []string{"  " + printable(name), printable(p.Parameters[name])})
		}
	}
	if s.Distances != nil {
		rows = append(rows, []string{"distances by", string(s.Distances.Method)})
	}
	if err := table(w, []string{"what", "value"}, rows, 1); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\n%s\n", s.Verdict())
	return err
}
