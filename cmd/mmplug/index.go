package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mapmatched/mmplug/adapters/embedded"
	"github.com/mapmatched/mmplug/graphbuild"
	"github.com/mapmatched/mmplug/policy"
)

func newIndex(std stdio) *cobra.Command {
	var out, to, policyName string
	var asJSON, links, wait bool
	var maxFile int64
	var vectors vectorFlags
	cmd := &cobra.Command{
		Use:   "index DIR… --out IDX | --to URL",
		Short: "Index directories of Markdown, HTML and plain text",
		Long: `Cut the .md, .markdown, .html, .htm, .txt and .text files below the given
directories into chunks, join the chunks by order, headings and links, and write
a lexical index with the graph to the directory IDX. An index that is there
already is replaced in one step. With --to they are written to a store, such as
a collection of Qdrant or a class of Weaviate, which is made if it is not there;
what is there and equal is kept, so a run that was interrupted is completed by
the same command. Chunks that no longer are in the directories stay in a store.
A file that cannot be used is left out with one
warning. The policy says how documents are cut and how long edges are; one that
cuts by fixed_v1 or m7_chunk_pre_v1 leaves HTML out, which these do not read.
With --embed the chunks are embedded too.`,
		Example: `  mmplug index docs --out docs.idx
  mmplug index docs --to qdrant://localhost:6334/docs --embed models/minilm
  mmplug chat --index docs.idx`,
		Args: cobra.MinimumNArgs(1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if out == "" && to == "" {
				return usageError{errors.New("say where to write the index: --out IDX, or --to URL for a store")}
			}
			if maxFile < 0 {
				return usageError{fmt.Errorf("--max-file-bytes is %d: give 1 or more, or 0 for %d", maxFile, graphbuild.DefaultMaxFileBytes)}
			}
			roots, err := graphbuild.DirRoots(args...)
			if err != nil {
				return err
			}
			used, err := usePolicy(policyName)
			if err != nil {
				return err
			}
			cmd.SetContext(used.trusting(cmd.Context()))
			opts, err := used.corpusOptions()
			if err != nil {
				return err
			}
			model, err := vectors.open(cmd.Context())
			if err != nil {
				return err
			}
			defer model.close()
			if err := model.pinned(used.Policy); err != nil {
				return err
			}
			var said *bool
			if cmd.Flags().Changed("wait") {
				said = &wait
			}
			target, err := openTarget(cmd.Context(), to, said)
			if err != nil {
				return err
			}
			defer target.close()
			opts.Tree.MaxFileBytes = maxFile
			corpus, err := buildIndex(cmd.Context(), std, roots, opts, indexing{used, model, vectors.knn, target}, strings.Join(args, " "), out)
			if corpus != nil {
				warn(std.err, corpus, links)
				model.warnTruncated(std.err, len(corpus.Chunks))
			}
			if err != nil {
				return err
			}
			return reportIndex(cmd.Context(), std, out, corpus, indexing{used, model, vectors.knn, target}, asJSON)
		},
	}
	cmd.Flags().StringVarP(&out, "out", "o", "", "directory to write the index to")
	_ = cmd.MarkFlagDirname("out") // for completion; the flag is there
	cmd.Flags().StringVar(&to, "to", "", "URL of a store to write the corpus to, such as qdrant://localhost:6334/docs (see mmplug adapters)")
	cmd.Flags().BoolVar(&wait, "wait", true, "with --to, wait until what was written can be found; --wait=false where the store can do without")
	cmd.Flags().StringVar(&policyName, "policy", policy.Plain, policyUsage)
	vectors.add(cmd)
	cmd.Flags().Int64Var(&maxFile, "max-file-bytes", graphbuild.DefaultMaxFileBytes, "leave out files larger than this many bytes")
	cmd.Flags().BoolVar(&links, "broken-links", false, "list every link that leads nowhere")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print what was made as JSON")
	return cmd
}

// indexing is how an index is made of a corpus.
type indexing struct {
	*usedPolicy
	model *embedding // nil for no vectors
	knn   int        // nearest ones that each chunk is joined to
	to    *target    // store to write to, nil for none
}

// buildIndex reads trees and writes an index of them, unless out is "", and to a
// store, if there is one. The corpus is returned with its warnings once it is
// read, also when writing fails.
func buildIndex(ctx context.Context, std stdio, roots []graphbuild.Root, opts *graphbuild.CorpusOptions, how indexing, source, out string) (*graphbuild.Corpus, error) {
	began := time.Now()
	reading := newProgress(std.err, "reading", began)
	opts.Tree.Progress = reading.update
	corpus, err := graphbuild.BuildCorpus(ctx, roots, opts)
	reading.done()
	if err != nil {
		return nil, err
	}
	if len(corpus.Chunks) == 0 {
		return corpus, fmt.Errorf("%s: no documents found; .md, .markdown, .html, .htm, .txt and .text files are read", source)
	}
	bytes := int64(0)
	for i := range corpus.Chunks { // every byte of a file is in one of its chunks
		bytes += int64(corpus.Chunks[i].End - corpus.Chunks[i].Start)
	}
	version, _ := toolVersion()
	in := embedded.Input{
		Chunks: corpus.Chunks,
		Edges:  corpus.Edges,

		MaximumDistance: how.Graph.MaximumDistance,
		BM25:            &embedded.BM25{K1: how.Lexical.K1, B: how.Lexical.B},
		ChunkPolicy:     how.ChunkPolicy(),
		Source:          embedded.Source{Name: source, Files: len(corpus.Documents), Bytes: bytes},
	}
	if out != "" || how.knn > 0 { // a store alone is embedded as it is written
		if err := how.model.addVectors(ctx, std, began, &in, how.knn); err != nil {
			return corpus, err
		}
	}
	if out != "" {
		bar := newProgress(std.err, "indexing", began)
		err = embedded.Write(ctx, out, in, &embedded.WriteOptions{Tool: "mmplug " + version, Progress: bar.update})
		bar.done()
		if err != nil {
			return corpus, err
		}
	}
	return corpus, how.to.write(ctx, std, began, &in, how.model)
}

func warn(w io.Writer, corpus *graphbuild.Corpus, links bool) {
	for _, warning := range corpus.Warnings {
		fmt.Fprintln(w, "warning: "+oneLine(printable(warning.String()))) //nolint:errcheck // stderr may be gone
	}
	if links {
		for _, link := range corpus.Broken {
			fmt.Fprintln(w, "warning: "+oneLine(printable(fmt.Sprintf("%s: link to %s: %s", link.ChunkID, link.Target, link.Reason)))) //nolint:errcheck // stderr may be gone
		}
	} else if n := len(corpus.Broken); n > 0 {
		fmt.Fprintf(w, "warning: %s nowhere; --broken-links lists them\n", count(n, "link leads", "links lead")) //nolint:errcheck // stderr may be gone
	}
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func reportIndex(ctx context.Context, std stdio, dir string, corpus *graphbuild.Corpus, how indexing, asJSON bool) error {
	truncated, _ := how.model.truncated()
	report := map[string]any{
		"truncated_chunks": truncated, // longer than the model takes
		"left_out":         len(corpus.Warnings), "broken_links": len(corpus.Broken),
		"policy": namedPolicy{how.Name, how.Digest()},
	}
	text := ""
	if dir != "" {
		x, err := embedded.Open(ctx, dir, nil)
		if err != nil {
			return err
		}
		defer x.Close() //nolint:errcheck // only read
		m := x.Manifest()
		report["index"], report["digest"], report["manifest"] = dir, x.Digest(), m
		var kinds []string
		for _, k := range m.Graph.EdgeTypes {
			kinds = append(kinds, fmt.Sprintf("%d %s", k.Count, k.Type))
		}
		text = fmt.Sprintf("%s: %s, %s, %s, %s (%s)\n", dir,
			count(m.Counts.Documents, "document", "documents"), count(m.Counts.Chunks, "chunk", "chunks"),
			count(m.Counts.Terms, "term", "terms"), count(m.Counts.Edges, "edge", "edges"), strings.Join(kinds, ", "))
	}
	if how.to != nil {
		report["store"] = how.to.report
		text += how.to.report.String()
	}
	if asJSON {
		return writeJSON(std.out, report)
	}
	_, err := io.WriteString(std.out, text)
	return err
}
