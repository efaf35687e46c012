// Command 09_faiss searches an index file in the format of FAISS, makes the
// corpus graph of the same file, and decodes a conversation with both. The
// index is written here; one that Python wrote is opened in the same way.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"strings"

	"github.com/mapmatched/mmplug/adapters/faiss"
	"github.com/mapmatched/mmplug/graphbuild"
	"github.com/mapmatched/mmplug/mapmatched"
)

// model is a toy embedding model: one dimension for each word it knows. Yours
// is the model that made the vectors of the index.
var model = words{"token", "invite", "valid", "renew", "link", "hour", "days"}

type words []string

// Embed implements mapmatched.Embedder.
func (m words) Embed(_ context.Context, texts []string) ([][]float32, error) {
	vectors := make([][]float32, len(texts))
	for i, text := range texts {
		vectors[i] = make([]float32, len(m))
		for j, word := range m {
			vectors[i][j] = 0.1 + float32(strings.Count(strings.ToLower(text), word))
		}
	}
	return vectors, nil
}

const ids = `{"id": "tokens/lifetime", "text": "A token is valid for one hour."}
{"id": "tokens/renew", "text": "Renew the token before the hour is over."}
{"id": "invites/lifetime", "text": "An invite is a link, valid for seven days."}
{"id": "invites/renew", "text": "Renew a link by sending it again."}
`

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, w io.Writer) (err error) {
	dir, err := os.MkdirTemp("", "faiss")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	indexPath, idsPath := filepath.Join(dir, "index.faiss"), filepath.Join(dir, "ids.jsonl")
	if err := write(ctx, indexPath, idsPath); err != nil {
		return err
	}

	provider, err := faiss.Open(ctx, indexPath, idsPath, &faiss.Options{
		Mode:     faiss.ModeDistance, // refuse an index for inner products
		Vectors:  true,               // the edges need them
		Embedder: model,
		Model:    "toy",
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, provider.Close()) }()
	info := provider.Info()
	if _, err := fmt.Fprintf(w, "%s, %d vectors of %d dimensions, read by the %s engine\n", info.Type, info.Count, info.Dimension, info.Engine); err != nil {
		return err
	}

	edges, _, err := graphbuild.StoreKNN(ctx, provider, nil, &graphbuild.KNNOptions{K: 1})
	if err != nil {
		return err
	}
	graph, err := mapmatched.NewGraph(edges, nil)
	if err != nil {
		return err
	}
	// The distances between these chunks are below 1, so they count for more.
	session, err := mapmatched.NewSession(provider, graph, &mapmatched.Config{TransitionWeight: new(4.0)})
	if err != nil {
		return err
	}
	for _, question := range []string{"How long is a token valid?", "How do I renew it?"} {
		nearest, err := provider.Candidates(ctx, mapmatched.Query{Text: question}, 1)
		if err != nil {
			return err
		}
		result, err := session.Ask(ctx, mapmatched.Query{Text: question})
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "%s\n  nearest: %s, distance² %.2f\n  decoded: %s\n", question, nearest[0].ChunkID, -nearest[0].Score, result.ChunkID); err != nil {
			return err
		}
	}
	return nil
}

// write makes the index and the file of chunk IDs.
func write(ctx context.Context, indexPath, idsPath string) error {
	entries, err := faiss.ParseEntries([]byte(ids))
	if err != nil {
		return err
	}
	texts := make([]string, len(entries))
	for i, e := range entries {
		texts[i] = e.Text
	}
	vectors, err := model.Embed(ctx, texts)
	if err != nil {
		return err
	}
	if err := faiss.WriteFlatFile(indexPath, faiss.MetricL2, 0, vectors, nil); err != nil {
		return err
	}
	return os.WriteFile(idsPath, []byte(ids), 0o600)
}
