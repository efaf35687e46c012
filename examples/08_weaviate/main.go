// Command 08_weaviate writes a small corpus with its edges to a Weaviate class,
// and decodes a conversation with the class as provider and as graph.
//
// It uses the server that MMPLUG_WEAVIATE_URL names
// (weaviate://localhost:8080?grpc=50051), or starts weaviate-server where that
// is installed; otherwise it says what to do.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"strings"

	_ "github.com/mapmatched/mmplug/adapters/weaviate" // the scheme weaviate
	"github.com/mapmatched/mmplug/integration/weaviatetest"
	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/mapmatched/registry"
)

// class holds the corpus of this example.
const class = "MmplugExample"

// known are the words of a toy embedding model, one dimension for each.
var known = words{"token", "invite", "valid", "renew", "link", "hour", "days"}

// model is the toy. Yours is the model that made the vectors of the class.
var model mapmatched.Embedder = known

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

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, w io.Writer) (err error) {
	server, err := weaviatetest.Run(ctx, weaviatetest.Options{})
	if errors.Is(err, weaviatetest.ErrUnavailable) {
		_, err := fmt.Fprintf(w, "SKIP: %v\n", err)
		return err
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	if err := write(ctx, w, server.URL(class)); err != nil {
		return err
	}

	graph, err := registry.OpenGraph(ctx, server.URL(class))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, graph.(io.Closer).Close()) }()
	// The URL brings the parameters of the server along, such as its key and TLS.
	provider, err := registry.OpenProvider(ctx, server.URL(class, "mode=hybrid", "fusion=relative_score"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, provider.(io.Closer).Close()) }()

	session, err := mapmatched.NewSession(provider, graph, nil)
	if err != nil {
		return err
	}
	for _, question := range []string{"How long is a token valid?", "How do I renew it?"} {
		vectors, err := model.Embed(ctx, []string{question})
		if err != nil {
			return err
		}
		result, err := session.Ask(ctx, mapmatched.Query{Text: question, Vector: vectors[0]})
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "%s\n  first hit: %s\n  decoded:   %s\n", question, result.Pointwise().ChunkID, result.ChunkID); err != nil {
			return err
		}
	}
	return nil
}

// write writes the corpus. Done again, it changes nothing.
func write(ctx context.Context, w io.Writer, url string) (err error) {
	chunks := []mapmatched.Chunk{
		{ID: "tokens/lifetime", Document: "tokens", Text: "A token is valid for one hour."},
		{ID: "tokens/renew", Document: "tokens", Ordinal: 1, Text: "Renew the token before the hour is over."},
		{ID: "invites/lifetime", Document: "invites", Text: "An invite is a link, valid for seven days."},
		{ID: "invites/renew", Document: "invites", Ordinal: 1, Text: "Renew a link: renew by sending it again."},
	}
	texts := make([]string, len(chunks))
	for i, c := range chunks {
		texts[i] = c.Text
	}
	vectors, err := model.Embed(ctx, texts)
	if err != nil {
		return err
	}
	// Each edge is kept at both its ends.
	edges := map[string][]mapmatched.Edge{}
	for _, e := range [][2]string{{"tokens/lifetime", "tokens/renew"}, {"invites/lifetime", "invites/renew"}} {
		edges[e[0]] = append(edges[e[0]], mapmatched.Edge{From: e[0], To: e[1], Weight: 1, Type: mapmatched.EdgeNext})
		edges[e[1]] = append(edges[e[1]], mapmatched.Edge{From: e[1], To: e[0], Weight: 1, Type: mapmatched.EdgeNext})
	}
	writer, err := registry.OpenWriter(ctx, url)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, writer.(io.Closer).Close()) }()
	identity := mapmatched.CorpusIdentity{Provider: "example", Model: "words", Dimension: len(known), MaximumDistance: 4}
	report, err := writer.WriteCorpus(ctx, identity, func(yield func(mapmatched.Record, error) bool) {
		for i, c := range chunks {
			c.End = len(c.Text)
			if !yield(mapmatched.Record{Chunk: c, Vector: vectors[i], Edges: edges[c.ID]}, nil) {
				return
			}
		}
	}, nil)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%d chunks in the class\n", report.Written+report.Kept)
	return err
}
