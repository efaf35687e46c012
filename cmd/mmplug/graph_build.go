package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/mapmatched/mmplug/adapters/embedded"
	"github.com/mapmatched/mmplug/graphbuild"
)

// graphBuild are the flags of graph build.
type graphBuild struct {
	vectors, ids    string
	index           string
	edges           string
	store, take     string // see graph_store.go
	knn             graphbuild.KNNOptions
	method          string
	maximum         float64
	maximumGiven    bool
	table           string
	out             string
	asJSON          bool
	directed        bool
	tableLimit      int64
	began           time.Time
	neighborsReport *graphbuild.KNNReport
}

// tableModes are the values of --table.
var tableModes = map[string]graphbuild.DistanceMethod{
	"auto": graphbuild.DistancesAuto, "never": graphbuild.DistancesSearch,
	"always": graphbuild.DistancesTable, "labels": graphbuild.DistancesLabels,
}

func newGraphBuild(std stdio) *cobra.Command {
	var b graphBuild
	cmd := &cobra.Command{
		Use:   "build --vectors FILE --ids FILE | --index IDX | --edges FILE | --from URL",
		Short: "Make a graph file",
		Long: `Make a graph file from one of four sources: the nearest neighbours of vectors
(a matrix in an .npy file and the chunk ID of each row in a text file, one a
line), what a store has, the graph of an index directory, or a list of edges
(.csv, .tsv, .jsonl, or node-link .json).

Of a store, --take vectors finds the neighbours of its vectors here, --take
neighbors asks the store for those of every chunk, and --take edges takes the
edges that it keeps.

Distances are looked up in a table beside the graph if that fits in
--table-limit, else in labels if they do, else searched for. The answers are the
same; what was chosen, and why, is printed.`,
		Example: `  mmplug graph build --vectors v.npy --ids ids.txt --knn 10 --out g.mmg
  mmplug graph build --index docs.idx --out docs.mmg
  mmplug graph build --from qdrant://localhost:6334/docs --take edges --out docs.mmg`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			b.began = time.Now()
			b.maximumGiven = cmd.Flags().Changed("maximum-distance")
			if err := b.validate(cmd); err != nil {
				return usageError{err}
			}
			return b.run(cmd.Context(), std)
		},
	}
	f := cmd.Flags()
	f.StringVar(&b.vectors, "vectors", "", "matrix of vectors, one row a chunk (.npy)")
	f.StringVar(&b.ids, "ids", "", "chunk IDs of the rows, one a line")
	f.StringVar(&b.index, "index", "", "index directory whose graph to take")
	f.StringVar(&b.edges, "edges", "", "list of edges (.csv, .tsv, .jsonl, .json)")
	f.StringVar(&b.store, "from", "", "store to take a graph from (a URL such as faiss:x.faiss?ids=ids.jsonl)")
	f.StringVar(&b.take, "take", takeVectors, "what to take from --from: vectors, neighbors or edges")
	f.IntVar(&b.knn.K, "knn", graphbuild.DefaultK, "nearest others that each chunk selects")
	f.StringVar(&b.method, "method", "auto", "how neighbours are found: auto, exact or approximate")
	f.Float64Var(&b.maximum, "maximum-distance", graphbuild.DefaultMaximumDistance, "where distances are clamped; that of the index with --index, of the store with --take edges")
	f.Float64Var(&b.knn.MinimumEdgeDistance, "minimum-edge-distance", graphbuild.DefaultMinimumEdgeDistance, "shortest edge between neighbours")
	f.BoolVar(&b.directed, "directed", false, "edges of --edges lead one way only")
	f.StringVar(&b.table, "table", "auto", "distances: auto, never (search), always (table) or labels")
	f.Int64Var(&b.tableLimit, "table-limit", graphbuild.DefaultTableLimit, "bytes that a table or labels may take")
	f.StringVarP(&b.out, "out", "o", "", "graph file to write")
	f.BoolVar(&b.asJSON, "json", false, "print what was made as JSON")
	return cmd
}

// validate checks the flags against each other.
func (b *graphBuild) validate(cmd *cobra.Command) error {
	sources := 0
	for _, s := range []string{b.vectors, b.index, b.edges, b.store} {
		if s != "" {
			sources++
		}
	}
	_, known := tableModes[b.table]
	switch {
	case sources != 1:
		return errors.New("say what to make the graph of, one of --vectors, --index and --edges, or --from")
	case (b.vectors == "") != (b.ids == ""):
		return errors.New("--vectors and --ids belong together: give both")
	case b.out == "":
		return errors.New("say where to write the graph: --out FILE.mmg")
	case !known:
		return fmt.Errorf("--table is %q: give auto, never, always or labels", b.table)
	case b.tableLimit < 1:
		return fmt.Errorf("--table-limit is %d: give 1 byte or more", b.tableLimit)
	case b.knn.K < 1:
		return fmt.Errorf("--knn is %d: give 1 or more", b.knn.K)
	case !(b.maximum > 0):
		return fmt.Errorf("--maximum-distance is %v: give a positive number", b.maximum)
	case !(b.knn.MinimumEdgeDistance > 0):
		return fmt.Errorf("--minimum-edge-distance is %v: give a positive number", b.knn.MinimumEdgeDistance)
	}
	for _, name := range []string{"knn", "method", "minimum-edge-distance"} {
		if (b.vectors == "" && b.store == "" || b.store != "" && b.take == takeEdges) && cmd.Flags().Changed(name) {
			return fmt.Errorf("--%s is about the neighbours of --vectors and --from", name)
		}
	}
	switch {
	case b.store == "" && cmd.Flags().Changed("take"):
		return errors.New("--take is about --from")
	case b.take != takeVectors && b.take != takeNeighbors && b.take != takeEdges:
		return fmt.Errorf("--take is %q: give %s, %s or %s", b.take, takeVectors, takeNeighbors, takeEdges)
	case b.take == takeNeighbors && cmd.Flags().Changed("method"):
		return fmt.Errorf("--method is about neighbours that are found here: leave it out with --take %s", takeNeighbors)
	}
	if b.directed && b.edges == "" {
		return errors.New("--directed is about --edges")
	}
	switch b.method {
	case "auto":
	case "exact":
		b.knn.Method = graphbuild.KNNExact
	case "approximate":
		b.knn.Method = graphbuild.KNNApproximate
	default:
		return fmt.Errorf("--method is %q: give auto, exact or approximate", b.method)
	}
	b.knn.MaximumDistance = b.maximum
	return b.knn.Validate()
}

func (b *graphBuild) run(ctx context.Context, std stdio) error {
	var in graphbuild.GraphInput
	var err error
	switch {
	case b.vectors != "":
		in, err = b.fromVectors(ctx, std)
	case b.store != "":
		in, err = b.fromStore(ctx, std)
	case b.index != "":
		in, err = b.fromIndex(ctx)
	default:
		in, err = b.fromEdges(ctx, std)
	}
	if err != nil {
		return err
	}
	version, _ := toolVersion()
	in.Provenance.Tool = "mmplug " + version
	opts := graphbuild.WriteGraphOptions{Distances: tableModes[b.table], TableLimit: b.tableLimit}
	bar, current := newProgress(std.err, "", b.began), ""
	opts.Progress = func(step string, done, total int) {
		if step != current {
			bar.done()
			bar, current = newProgress(std.err, step, b.began), step
		}
		bar.update(done, total)
	}
	written, err := graphbuild.WriteGraph(ctx, b.out, in, &opts)
	bar.done()
	if err != nil {
		return err
	}
	return b.report(std.out, written)
}

func (b *graphBuild) report(w io.Writer, written *graphbuild.WrittenGraph) error {
	if b.asJSON {
		return writeJSON(w, struct {
			Graph string `json:"graph"`
			*graphbuild.WrittenGraph
			Neighbors *graphbuild.KNNReport `json:"neighbors,omitempty"`
		}{b.out, written, b.neighborsReport})
	}
	if r := b.neighborsReport; r != nil && r.Method == graphbuild.KNNApproximate {
		if _, err := fmt.Fprintf(w, "neighbours: approximate, recall %.4f measured on %s\n", r.Recall, count(r.Sample, "chunk", "chunks")); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "%s: %s, %s, %d bytes\ndistances by %s: %s\n", b.out,
		count(written.Nodes, "chunk", "chunks"), count(written.Edges, "edge", "edges"), written.Bytes,
		written.Distances.Method, written.Distances.Reason)
	return err
}

func (b *graphBuild) fromVectors(ctx context.Context, std stdio) (in graphbuild.GraphInput, err error) {
	source, err := graphbuild.OpenVectors(b.vectors, b.ids)
	if err != nil {
		return in, err
	}
	defer source.Close() //nolint:errcheck // only read
	return b.fromSource(ctx, std, source, b.vectors)
}

// fromSource makes the graph of the nearest neighbours of vectors; name is
// theirs in errors.
func (b *graphBuild) fromSource(ctx context.Context, std stdio, source graphbuild.VectorSource, name string) (in graphbuild.GraphInput, err error) {
	bar := newProgress(std.err, "neighbours", b.began)
	b.knn.Progress = bar.update
	edges, report, err := graphbuild.KNNBuild(ctx, source, &b.knn)
	bar.done()
	if err != nil {
		return in, fmt.Errorf("%s: %w", name, err)
	}
	b.neighborsReport = &report
	in.Edges, in.MaximumDistance = edges, b.maximum
	for i := range source.Len() {
		in.Nodes = append(in.Nodes, source.ID(i))
	}
	in.Provenance = graphbuild.Provenance{Method: graphbuild.FormulaKNN, Recall: report.Recall, Parameters: map[string]string{
		"k":                     strconv.Itoa(b.knn.K),
		"neighbours":            string(report.Method),
		"minimum_edge_distance": strconv.FormatFloat(b.knn.MinimumEdgeDistance, 'g', -1, 64),
	}}
	return in, nil
}

func (b *graphBuild) fromIndex(ctx context.Context) (in graphbuild.GraphInput, err error) {
	x, err := embedded.Open(ctx, b.index, nil)
	if err != nil {
		return in, err
	}
	defer x.Close() //nolint:errcheck // only read
	g, err := x.Graph(ctx)
	if err != nil {
		return in, err
	}
	in.Nodes, in.Directed, in.MaximumDistance = g.Nodes(), g.Directed(), g.MaximumDistance()
	if b.maximumGiven {
		in.MaximumDistance = b.maximum
	}
	for e, err := range g.Edges(ctx) {
		if err != nil {
			return in, err
		}
		in.Edges = append(in.Edges, e)
	}
	in.Provenance = graphbuild.Provenance{Method: "index", Parameters: map[string]string{
		"chunk_policy": x.Manifest().ChunkPolicy, "index_digest": x.Digest(),
	}}
	return in, nil
}

func (b *graphBuild) fromEdges(ctx context.Context, std stdio) (in graphbuild.GraphInput, err error) {
	format, err := graphbuild.EdgeFormatOf(b.edges)
	if err != nil {
		return in, usageError{err}
	}
	list, err := readFile(ctx, std, b.edges, func(r io.Reader) (*graphbuild.EdgeList, error) { return graphbuild.ReadEdges(r, format) })
	if err != nil {
		return in, err
	}
	return graphbuild.GraphInput{
		Nodes: list.Nodes, Edges: list.Edges, Directed: list.Directed || b.directed, MaximumDistance: b.maximum,
		Provenance: graphbuild.Provenance{Method: "edge list"},
	}, nil
}
