package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mapmatched/mmplug/graphbuild"
	"github.com/mapmatched/mmplug/mapmatched"
)

// graphUnion are the flags of graph union.
type graphUnion struct {
	weights, caps, mutual []string
	factors               []float64
	maxDegree, minDegree  int
	maximum               float64
	vectors, ids          string
	table                 string
	tableLimit            int64
	out                   string
	asJSON                bool
	began                 time.Time

	typeFactors map[mapmatched.EdgeType]float64
	typeCaps    map[mapmatched.EdgeType]int
	prune       graphbuild.PruneOptions
}

func newGraphUnion(std stdio) *cobra.Command {
	var u graphUnion
	cmd := &cobra.Command{
		Use:   "union GRAPH… --out FILE",
		Short: "Join graphs, with weights, caps and pruning",
		Long: `Join graphs into a graph file. ` + graphArgument + ` It may
also be a list of edges (.csv, .tsv, .jsonl, or node-link .json).

Lengths are multiplied by the factors of --weight and --factors; a factor above 1
makes edges count for less. --cap keeps at most so many edges of a type at a
chunk, in total, the shortest first. --max-degree keeps at most so many
neighbours of a chunk, whatever types of edges join them. --mutual keeps an edge
of a type only if it is among the shortest (10, or as many as given) at both
ends. --min-degree gives chunks with fewer neighbours removed edges back. A graph
file has one edge between two chunks: the shortest of all types that are left.
With --vectors and --ids, chunks without any edge are joined to the chunk with
the nearest vector. Chunks that stay without an edge are reported.`,
		Example: `  mmplug graph union docs.idx knn.mmg --weight knn=4 --cap knn=5 --out g.mmg
  mmplug graph union knn.mmg --mutual knn=10 --min-degree 1 --out g.mmg`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			u.began = time.Now()
			if err := u.validate(args); err != nil {
				return usageError{err}
			}
			return u.run(cmd.Context(), std, args)
		},
	}
	f := cmd.Flags()
	f.StringArrayVar(&u.weights, "weight", nil, "TYPE=FACTOR for the lengths of the edges of a type; may repeat")
	f.Float64SliceVar(&u.factors, "factors", nil, "factor for the lengths of each graph, in order")
	f.StringArrayVar(&u.caps, "cap", nil, "TYPE=N edges of a type that a chunk keeps; may repeat")
	f.StringArrayVar(&u.mutual, "mutual", nil, "TYPE or TYPE=K: keep edges that are among the K shortest at both ends; may repeat")
	f.IntVar(&u.maxDegree, "max-degree", 0, "neighbours that a chunk keeps, 0 for no limit")
	f.IntVar(&u.minDegree, "min-degree", 0, "neighbours that a chunk gets back when pruning leaves it fewer")
	f.Float64Var(&u.maximum, "maximum-distance", 0, "where distances are clamped; 0 means the greatest of the graphs")
	f.StringVar(&u.vectors, "vectors", "", "vectors to join chunks without edges by (.npy)")
	f.StringVar(&u.ids, "ids", "", "chunk IDs of the vectors, one a line")
	f.StringVar(&u.table, "table", "auto", "distances: auto, never (search), always (table) or labels")
	f.Int64Var(&u.tableLimit, "table-limit", graphbuild.DefaultTableLimit, "bytes that a table or labels may take")
	f.StringVarP(&u.out, "out", "o", "", "graph file to write")
	f.BoolVar(&u.asJSON, "json", false, "print what was made as JSON")
	return cmd
}

// validate reads the flags.
func (u *graphUnion) validate(args []string) error {
	_, known := tableModes[u.table]
	switch {
	case u.out == "":
		return errors.New("say where to write the graph: --out FILE.mmg")
	case (u.vectors == "") != (u.ids == ""):
		return errors.New("--vectors and --ids belong together: give both")
	case len(u.factors) > 0 && len(u.factors) != len(args):
		return fmt.Errorf("--factors has %s for %s: give one for each", count(len(u.factors), "factor", "factors"), count(len(args), "graph", "graphs"))
	case !known:
		return fmt.Errorf("--table is %q: give auto, never, always or labels", u.table)
	case u.tableLimit < 1:
		return fmt.Errorf("--table-limit is %d: give 1 byte or more", u.tableLimit)
	case !(u.maximum >= 0) || math.IsInf(u.maximum, 0):
		return fmt.Errorf("--maximum-distance is %v: give a positive number, or 0 for that of the graphs", u.maximum)
	}
	for _, f := range u.factors {
		if !(f > 0) || math.IsInf(f, 0) {
			return fmt.Errorf("--factors has %v: give positive numbers", f)
		}
	}
	u.typeFactors, u.typeCaps = map[mapmatched.EdgeType]float64{}, map[mapmatched.EdgeType]int{}
	for _, text := range u.weights {
		kind, value, found := cutLast(text)
		factor, err := strconv.ParseFloat(value, 64)
		if !found || err != nil || !(factor > 0) || math.IsInf(factor, 0) {
			return fmt.Errorf("--weight is %q: give an edge type and a positive factor, such as knn=2", text)
		}
		if _, twice := u.typeFactors[kind]; twice {
			return fmt.Errorf("--weight is given twice for edge type %q", kind)
		}
		u.typeFactors[kind] = factor
	}
	for _, text := range u.caps {
		kind, value, found := cutLast(text)
		n, err := strconv.Atoi(value)
		if !found || err != nil || n < 0 {
			return fmt.Errorf("--cap is %q: give an edge type and a number of edges, such as knn=5", text)
		}
		if _, twice := u.typeCaps[kind]; twice {
			return fmt.Errorf("--cap is given twice for edge type %q", kind)
		}
		u.typeCaps[kind] = n
	}
	u.prune = graphbuild.PruneOptions{MaxDegree: u.maxDegree, MinDegree: u.minDegree}
	for _, text := range u.mutual {
		kind, value, found := cutLast(text)
		k := graphbuild.DefaultK
		if found {
			var err error
			if k, err = strconv.Atoi(value); err != nil || k < 1 {
				return fmt.Errorf("--mutual is %q: give an edge type and how many edges an end wants, such as knn=10", text)
			}
		}
		u.prune.Mutual = append(u.prune.Mutual, graphbuild.MutualRule{Type: kind, Nearest: k})
	}
	return u.prune.Validate()
}

// cutLast cuts a flag at its last "=".
func cutLast(text string) (kind mapmatched.EdgeType, value string, found bool) {
	at := strings.LastIndexByte(text, '=')
	if at < 0 {
		return mapmatched.EdgeType(text), "", false
	}
	return mapmatched.EdgeType(text[:at]), text[at+1:], true
}

// unionSource is a graph of the union as it is reported.
type unionSource struct {
	Graph string `json:"graph"`
	Nodes int    `json:"nodes"`
	Edges int    `json:"edges"`
}

// unionReport is what graph union prints.
type unionReport struct {
	Graph string `json:"graph"`
	*graphbuild.WrittenGraph
	Sources  []unionSource `json:"sources"`
	Loops    int           `json:"loops"`          // edges from a chunk to itself
	Repeated int           `json:"repeated_edges"` // of the same ends and type as a shorter one
	Capped   int           `json:"capped_edges"`
	Joined   int           `json:"edges_before_pruning"`
	Pruned   int           `json:"edges_after_pruning"`
	ByVector int           `json:"edges_by_vector"`
	Parallel int           `json:"parallel_edges"` // of the same ends as a shorter one of another type
	Isolated []string      `json:"isolated"`
}

func (u *graphUnion) run(ctx context.Context, std stdio, args []string) error {
	var (
		sources []graphbuild.UnionSource
		report  = unionReport{Graph: u.out, Isolated: []string{}}
		maximum = u.maximum
		types   []string
	)
	for i, at := range args {
		in, err := readGraph(ctx, std, at)
		if err != nil {
			return err
		}
		if i > 0 && in.Directed != u.prune.Directed {
			return fmt.Errorf("%s and %s: one is directed and one is not: join graphs of one kind", args[0], at)
		}
		u.prune.Directed = in.Directed
		if u.maximum == 0 {
			maximum = max(maximum, in.MaximumDistance)
		}
		source := graphbuild.UnionSource{Name: at, Nodes: in.Nodes, Edges: in.Edges, TypeFactors: u.typeFactors}
		if len(u.factors) > 0 {
			source.Factor = u.factors[i]
		}
		sources = append(sources, source)
		report.Sources = append(report.Sources, unionSource{at, len(in.Nodes), len(in.Edges)})
		for _, e := range in.Edges {
			if at, found := slices.BinarySearch(types, string(e.Type)); !found {
				types = slices.Insert(types, at, string(e.Type))
			}
		}
	}
	if err := u.knownTypes(types); err != nil {
		return err
	}
	joined, err := graphbuild.Union(sources, &graphbuild.UnionOptions{Directed: u.prune.Directed, Caps: u.typeCaps})
	if err != nil {
		return err
	}
	edges, err := graphbuild.Prune(joined.Edges, &u.prune)
	if err != nil {
		return err
	}
	report.Loops, report.Repeated, report.Capped = joined.Loops, joined.Repeated, joined.Capped
	report.Joined, report.Pruned = len(joined.Edges), len(edges)
	isolated := graphbuild.Isolated(joined.Nodes, edges)
	if u.vectors != "" && len(isolated) > 0 {
		near, err := u.joinByVector(ctx, std, isolated, joined.Nodes)
		if err != nil {
			return err
		}
		report.ByVector = len(near)
		edges = append(edges, near...)
		isolated = graphbuild.Isolated(joined.Nodes, edges)
	}
	report.Isolated = append(report.Isolated, isolated...)

	version, _ := toolVersion()
	in := graphbuild.GraphInput{
		Nodes: joined.Nodes, Edges: edges, Directed: u.prune.Directed, MaximumDistance: maximum,
		Provenance: graphbuild.Provenance{Method: "union", Tool: "mmplug " + version, Parameters: u.parameters()},
	}
	bar := newProgress(std.err, "writing", u.began)
	report.WrittenGraph, err = graphbuild.WriteGraph(ctx, u.out, in, &graphbuild.WriteGraphOptions{
		Distances: tableModes[u.table], TableLimit: u.tableLimit,
		Progress: func(_ string, done, total int) { bar.update(done, total) },
	})
	bar.done()
	if err != nil {
		return err
	}
	report.Parallel = len(edges) - report.Edges
	if u.asJSON {
		return writeJSON(std.out, report)
	}
	return report.print(std.out)
}

// knownTypes checks that the flags speak of edges that there are.
func (u *graphUnion) knownTypes(types []string) error {
	type named struct {
		flag string
		kind mapmatched.EdgeType
	}
	var all []named
	for _, text := range u.weights {
		kind, _, _ := cutLast(text)
		all = append(all, named{"weight", kind})
	}
	for _, text := range u.caps {
		kind, _, _ := cutLast(text)
		all = append(all, named{"cap", kind})
	}
	for _, rule := range u.prune.Mutual {
		all = append(all, named{"mutual", rule.Type})
	}
	for _, n := range all {
		if !slices.Contains(types, string(n.kind)) {
			return usageError{fmt.Errorf("--%s is about edge type %q, which no graph has: the types are %q", n.flag, n.kind, types)}
		}
	}
	return nil
}

// parameters are the flags that shaped the graph.
func (u *graphUnion) parameters() map[string]string {
	p := map[string]string{}
	for name, values := range map[string][]string{"weight": u.weights, "cap": u.caps, "mutual": u.mutual} {
		if len(values) > 0 {
			p[name] = strings.Join(slices.Sorted(slices.Values(values)), " ")
		}
	}
	if len(u.factors) > 0 {
		p["factors"] = strings.Trim(fmt.Sprint(u.factors), "[]")
	}
	for name, n := range map[string]int{"max_degree": u.maxDegree, "min_degree": u.minDegree} {
		if n > 0 {
			p[name] = strconv.Itoa(n)
		}
	}
	return p
}

// joinByVector joins isolated chunks to others of the graph.
func (u *graphUnion) joinByVector(ctx context.Context, std stdio, isolated, nodes []string) ([]mapmatched.Edge, error) {
	source, err := graphbuild.OpenVectors(u.vectors, u.ids)
	if err != nil {
		return nil, err
	}
	defer source.Close() //nolint:errcheck // only read
	bar := newProgress(std.err, "joining", u.began)
	defer bar.done()
	edges, _, err := graphbuild.JoinByVector(ctx, isolated, source, &graphbuild.KNNOptions{Progress: bar.update})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", u.vectors, err)
	}
	for _, e := range edges {
		for _, id := range []string{e.From, e.To} {
			if _, known := slices.BinarySearch(nodes, id); !known {
				return nil, fmt.Errorf("%s: chunk %q is in no graph: give the vectors of the chunks of the graphs only", u.ids, id)
			}
		}
	}
	return edges, nil
}

func (r *unionReport) print(w io.Writer) error {
	for _, s := range r.Sources {
		if _, err := fmt.Fprintf(w, "%s: %s, %s\n", s.Graph, count(s.Nodes, "chunk", "chunks"), count(s.Edges, "edge", "edges")); err != nil {
			return err
		}
	}
	line := fmt.Sprintf("%s: %s, %s", r.Graph, count(r.Nodes, "chunk", "chunks"), count(r.Edges, "edge", "edges"))
	line += r.account() + fmt.Sprintf("\ndistances by %s: %s\n", r.Distances.Method, r.Distances.Reason)
	if n := len(r.Isolated); n > 0 {
		const most = 5
		names := make([]string, 0, most)
		for _, id := range r.Isolated[:min(n, most)] {
			names = append(names, printable(id))
		}
		more := ""
		if n > most {
			more = " …"
		}
		line += fmt.Sprintf("%s without any edge: %s%s\n", count(n, "chunk", "chunks"), strings.Join(names, ", "), more)
	}
	_, err := io.WriteString(w, line)
	return err
}

// account says what became of the edges that were read, if anything did. It
// adds up: those in, less and plus the others, are those of the graph.
func (r *unionReport) account() string {
	read := 0
	for _, s := range r.Sources {
		read += s.Edges
	}
	var parts []string
	part := func(n int, what string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, what))
		}
	}
	part(r.Loops, "from a chunk to itself")
	part(r.Repeated, "repeated")
	part(r.Capped, "over a cap")
	part(r.Joined-r.Pruned, "pruned")
	part(r.Parallel, "beside a shorter one of another type")
	part(r.ByVector, "made by nearest vector")
	if len(parts) == 0 {
		return ""
	}
	return fmt.Sprintf("\n%s in: %s", count(read, "edge", "edges"), strings.Join(parts, ", "))
}

// readGraph reads a graph of any kind: a list of edges, or what openGraph
// opens.
func readGraph(ctx context.Context, std stdio, at string) (in graphbuild.GraphInput, err error) {
	if format, err := graphbuild.EdgeFormatOf(at); err == nil {
		if info, err := os.Stat(at); err == nil && !info.IsDir() || !strings.Contains(at, ":") {
			list, err := readFile(ctx, std, at, func(r io.Reader) (*graphbuild.EdgeList, error) { return graphbuild.ReadEdges(r, format) })
			if err != nil {
				return in, err
			}
			g, err := mapmatched.NewGraph(list.Edges, &mapmatched.GraphOptions{Nodes: list.Nodes, Directed: list.Directed})
			if err != nil {
				return in, fmt.Errorf("%s: %w", at, err)
			}
			return graphbuild.GraphInput{Nodes: g.Nodes(), Edges: list.Edges, Directed: list.Directed, MaximumDistance: mapmatched.DefaultMaximumDistance}, nil
		}
	}
	g, done, err := openGraph(ctx, at)
	if err != nil {
		return in, err
	}
	defer done()
	in = graphbuild.GraphInput{Nodes: g.Nodes(), Directed: g.Directed(), MaximumDistance: g.MaximumDistance()}
	for e, err := range g.Edges(ctx) {
		if err != nil {
			return in, fmt.Errorf("%s: %w", at, err)
		}
		in.Edges = append(in.Edges, e)
	}
	return in, nil
}
