// Command 04_index_and_ask builds an index of a directory of Markdown files and
// holds a conversation on it: the same as mmplug index and mmplug ask, as a
// library.
package main

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"log"
	"os"
	"path/filepath"

	"github.com/mapmatched/mmplug/adapters/embedded"
	"github.com/mapmatched/mmplug/examples/handbook"
	"github.com/mapmatched/mmplug/graphbuild"
	"github.com/mapmatched/mmplug/mapmatched"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, w io.Writer) (err error) {
	// Any fs.FS will do; graphbuild.DirRoots("docs") reads a directory.
	docs, err := fs.Sub(handbook.Docs, "docs")
	if err != nil {
		return err
	}
	corpus, err := graphbuild.BuildCorpus(ctx, []graphbuild.Root{{FS: docs}}, nil)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "handbook-")
	if err != nil {
		return err
	}
	defer func() {
		if rerr := os.RemoveAll(dir); err == nil {
			err = rerr
		}
	}()
	path := filepath.Join(dir, "index")
	if err := embedded.Write(ctx, path, embedded.Input{Chunks: corpus.Chunks, Edges: corpus.Edges}, nil); err != nil {
		return err
	}

	index, err := embedded.Open(ctx, path, nil)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := index.Close(); err == nil {
			err = cerr
		}
	}()
	graph, err := index.Graph(ctx)
	if err != nil {
		return err
	}
	session, err := mapmatched.NewSession(index, graph, nil)
	if err != nil {
		return err
	}
	for _, question := range []string{
		"How long does an access token last?",
		"How do I renew it?",
		"What happens when it expires?",
	} {
		result, err := session.Ask(ctx, mapmatched.Query{Text: question})
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "%s\n  %s\n", question, result.ChunkID); err != nil {
			return err
		}
	}
	return nil
}
