package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/mapmatched/mmplug/adapters/embedded"
	"github.com/mapmatched/mmplug/graphbuild"
)

// graphCluster are the flags of graph cluster.
type graphCluster struct {
	vectors, ids, index, labels, out string
	threshold                        float64
	keywords                         int
	asJSON                           bool
	began                            time.Time
}

func newGraphCluster(std stdio) *cobra.Command {
	var c graphCluster
	cmd := &cobra.Command{
		Use:   "cluster --vectors FILE --ids FILE --out FILE",
		Short: "Divide chunks into clusters of near vectors",
		Long: `Divide chunks into clusters: two clusters are joined as long as the mean cosine
distance of their members is at most --threshold (average linkage). The file has
a cluster a line, with its members, centroid, medoid, radius and keywords, which
need the texts of the chunks: --index.

With --labels, a CSV file of chunk IDs and labels, the clusters are compared with
the labels: NMI (normalised by the mean entropy) and B-cubed.`,
		Example: `  mmplug graph cluster --vectors v.npy --ids ids.txt --out clusters.json
  mmplug graph cluster --vectors v.npy --ids ids.txt --index docs.idx --labels topics.csv --out clusters.json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c.began = time.Now()
			switch {
			case c.vectors == "" || c.ids == "":
				return usageError{errors.New("say what to cluster: --vectors FILE.npy and --ids FILE")}
			case c.out == "":
				return usageError{errors.New("say where to write the clusters: --out FILE.json")}
			case !(c.threshold > 0 && c.threshold <= 2):
				return usageError{fmt.Errorf("--threshold is %v: give a distance above 0 and up to 2", c.threshold)}
			case c.keywords < 1:
				return usageError{fmt.Errorf("--keywords is %d: give 1 or more", c.keywords)}
			case c.index == "" && cmd.Flags().Changed("keywords"):
				return usageError{errors.New("--keywords is about the texts of --index")}
			}
			return c.run(cmd.Context(), std)
		},
	}
	f := cmd.Flags()
	f.StringVar(&c.vectors, "vectors", "", "matrix of vectors, one row a chunk (.npy)")
	f.StringVar(&c.ids, "ids", "", "chunk IDs of the rows, one a line")
	f.Float64Var(&c.threshold, "threshold", graphbuild.DefaultClusterThreshold, "greatest mean distance at which clusters are joined")
	f.StringVar(&c.index, "index", "", "index directory with the texts of the chunks, for keywords")
	f.IntVar(&c.keywords, "keywords", graphbuild.DefaultKeywords, "keywords of a cluster, at most")
	f.StringVar(&c.labels, "labels", "", "labels to compare with (.csv: chunk ID, label)")
	f.StringVarP(&c.out, "out", "o", "", "file to write the clusters to")
	f.BoolVar(&c.asJSON, "json", false, "print what was made as JSON")
	return cmd
}

// clusterReport is what graph cluster prints.
type clusterReport struct {
	File       string                     `json:"file"`
	Policy     string                     `json:"policy"`
	Threshold  float64                    `json:"threshold"`
	Chunks     int                        `json:"chunks"`
	Clusters   int                        `json:"clusters"`
	Largest    int                        `json:"largest"`    // members
	Singletons int                        `json:"singletons"` // clusters of one
	Quality    *graphbuild.ClusterQuality `json:"quality,omitempty"`
}

func (c *graphCluster) run(ctx context.Context, std stdio) error {
	var labels map[string]string
	var err error
	if c.labels != "" {
		if labels, err = readFile(ctx, std, c.labels, graphbuild.ReadLabels); err != nil {
			return err
		}
	}
	source, err := graphbuild.OpenVectors(c.vectors, c.ids)
	if err != nil {
		return err
	}
	defer source.Close() //nolint:errcheck // only read
	bar := newProgress(std.err, "clustering", c.began)
	opts := graphbuild.ClusterOptions{Threshold: c.threshold, Keywords: c.keywords, Progress: bar.update}
	if c.index != "" {
		if opts.Text, err = c.texts(ctx, source); err != nil {
			return err
		}
	}
	clusters, err := graphbuild.Clusters(ctx, source, &opts)
	bar.done()
	if err != nil {
		return fmt.Errorf("%s: %w", c.vectors, err)
	}
	report := clusterReport{File: c.out, Policy: clusters.Policy, Threshold: clusters.Threshold, Chunks: clusters.Chunks, Clusters: len(clusters.Clusters)}
	for _, k := range clusters.Clusters {
		report.Largest = max(report.Largest, len(k.Members))
		if len(k.Members) == 1 {
			report.Singletons++
		}
	}
	if labels != nil {
		if report.Quality, err = graphbuild.MeasureClusters(clusters.Clusters, labels); err != nil {
			return fmt.Errorf("%s: %w", c.labels, err)
		}
	}
	if err := writeFile(std, c.out, clusters.WriteJSON); err != nil {
		return err
	}
	if c.out == "-" {
		return nil // the report would follow the clusters
	}
	if c.asJSON {
		return writeJSON(std.out, report)
	}
	return report.print(std.out)
}

// texts returns the texts of the chunks of an index.
func (c *graphCluster) texts(ctx context.Context, source graphbuild.VectorSource) (func(string) string, error) {
	x, err := embedded.Open(ctx, c.index, nil)
	if err != nil {
		return nil, err
	}
	defer x.Close() //nolint:errcheck // only read
	ids := make([]string, source.Len())
	for i := range ids {
		ids[i] = source.ID(i)
	}
	chunks, err := x.Chunks(ctx, slices.Compact(slices.Sorted(slices.Values(ids))))
	if err != nil {
		return nil, err
	}
	text := make(map[string]string, len(chunks))
	for _, chunk := range chunks {
		text[chunk.ID] = chunk.Text
	}
	for _, id := range ids {
		if _, known := text[id]; !known {
			return nil, fmt.Errorf("%s: there is no chunk %q, which %s has: give the index of the vectors", c.index, id, c.ids)
		}
	}
	return func(id string) string { return text[id] }, nil
}

func (r *clusterReport) print(w io.Writer) error {
	_, err := fmt.Fprintf(w, "%s: %s in %s, the largest with %d, %d alone (threshold %g)\n", r.File,
		count(r.Chunks, "chunk", "chunks"), count(r.Clusters, "cluster", "clusters"), r.Largest, r.Singletons, r.Threshold)
	if q := r.Quality; q != nil && err == nil {
		_, err = fmt.Fprintf(w, "against %s of %s: NMI %.4f, B-cubed precision %.4f, recall %.4f, F %.4f\n",
			count(q.Labels, "label", "labels"), count(q.Chunks, "chunk", "chunks"), q.NMI, q.BCubedPrecision, q.BCubedRecall, q.BCubedF)
	}
	return err
}
