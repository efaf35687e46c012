package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/mapmatched/mmplug/graphbuild"
	"github.com/mapmatched/mmplug/mapmatched"
)

func newGraphPicture(std stdio) *cobra.Command {
	var out, clusters, title string
	var most int
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "picture GRAPH --out FILE.svg",
		Short: "Draw a small corpus graph as SVG",
		Long: `Draw a corpus graph as an SVG file that stands for itself. Chunks are placed by
their distance in the graph and coloured by their document, or by cluster with
--clusters, a file of "mmplug graph cluster".

` + graphArgument + ` It may also be a list of edges (.csv, .tsv,
.jsonl, or node-link .json).`,
		Example: "  mmplug graph picture docs.idx --out docs.svg\n  mmplug graph picture g.mmg --clusters clusters.json --out g.svg",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			switch {
			case out == "":
				return usageError{errors.New("say where to write the picture: --out FILE.svg")}
			case most < 1:
				return usageError{fmt.Errorf("--max-nodes is %d: give 1 or more", most)}
			}
			opts := graphbuild.PictureOptions{Title: title, MaxNodes: most}
			if opts.Title == "" {
				opts.Title = filepath.Base(args[0])
			}
			if clusters != "" {
				c, err := readFile(ctx, std, clusters, graphbuild.ReadClustering)
				if err != nil {
					return err
				}
				opts.Group, opts.GroupName = c.Groups(), "clusters"
			}
			in, err := readGraph(ctx, std, args[0])
			if err != nil {
				return err
			}
			g, err := mapmatched.NewGraph(in.Edges, &mapmatched.GraphOptions{Nodes: in.Nodes, Directed: in.Directed, MaximumDistance: in.MaximumDistance})
			if err != nil {
				return err
			}
			err = writeFile(std, out, func(w io.Writer) error { return graphbuild.WritePicture(ctx, w, g, &opts) })
			if err != nil || out == "-" {
				return err
			}
			if asJSON {
				return writeJSON(std.out, map[string]any{"picture": out, "nodes": g.NumNodes(), "edges": g.NumEdges()})
			}
			_, err = fmt.Fprintf(std.out, "%s: %s, %s\n", out, count(g.NumNodes(), "chunk", "chunks"), count(g.NumEdges(), "edge", "edges"))
			return err
		},
	}
	f := cmd.Flags()
	f.StringVarP(&out, "out", "o", "", "file to write the picture to; - is standard output")
	f.StringVar(&clusters, "clusters", "", "file of clusters to colour by (.json)")
	f.StringVar(&title, "title", "", "title of the picture; the name of the graph if left out")
	f.IntVar(&most, "max-nodes", graphbuild.DefaultPictureNodes, "refuse graphs of more chunks")
	f.BoolVar(&asJSON, "json", false, "print what was made as JSON")
	return cmd
}
