// Command 07_qdrant writes a small handbook with its links to a collection of a
// Qdrant server and decodes a conversation on it. Candidates and graph are both
// asked of the server. It runs against a server inside the program, or against
// a real one:
//
//	MMPLUG_QDRANT_URL=qdrant://localhost:6334 go run ./examples/07_qdrant
//
// The URL takes the parameters of the adapter, such as ?api_key_env=NAME. The
// collection mmplug_example_07 is made there and removed again.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"log"
	"net/url"
	"os"

	"github.com/mapmatched/mmplug/adapters/qdrant"
	"github.com/mapmatched/mmplug/examples/handbook"
	"github.com/mapmatched/mmplug/graphbuild"
	"github.com/mapmatched/mmplug/integration/qdranttest"
	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/mapmatched/registry"
)

const collection = "mmplug_example_07"

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, w io.Writer) (err error) {
	server := os.Getenv("MMPLUG_QDRANT_URL")
	if server == "" {
		inside, err := qdranttest.Start(nil)
		if err != nil {
			return err
		}
		defer func() { _ = inside.Close() }() // it has nothing to say
		server = "qdrant://" + inside.Addr()
	}
	at, err := url.Parse(server)
	if err != nil {
		return err
	}
	at.Path = "/" + collection

	if err := ingest(ctx, w, at.String()); err != nil {
		return err
	}
	// Provider, graph and writer open the same URL.
	provider, err := registry.OpenProvider(ctx, at.String())
	if err != nil {
		return err
	}
	found := provider.(*qdrant.Provider)
	defer func() {
		_, rerr := found.Client().DeleteCollection(ctx, collection)
		err = errors.Join(err, rerr, found.Close())
	}()
	graph, err := registry.OpenGraph(ctx, at.String())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, graph.(io.Closer).Close()) }()
	return converse(ctx, w, provider, graph)
}

// ingest writes the handbook with vectors and edges. Doing it again would
// change nothing.
func ingest(ctx context.Context, w io.Writer, at string) (err error) {
	docs, err := fs.Sub(handbook.Docs, "docs")
	if err != nil {
		return err
	}
	corpus, err := graphbuild.BuildCorpus(ctx, []graphbuild.Root{{FS: docs}}, nil)
	if err != nil {
		return err
	}
	writer, err := registry.Default().OpenWriter(ctx, at)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, writer.(io.Closer).Close()) }()
	identity := mapmatched.CorpusIdentity{
		Provider: "example", Model: "hashed words", Dimension: dimension, Normalization: "l2",
		ChunkPolicy: "sections", MaximumDistance: mapmatched.DefaultMaximumDistance,
	}
	report, err := writer.WriteCorpus(ctx, identity, records(corpus), nil)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%d chunks of %d pages written, %d edges\n", report.Written+report.Kept, len(corpus.Documents), len(corpus.Edges))
	return err
}

// records lists the chunks with their vectors and edges. The store finds an
// edge only from a chunk that has it, so each is kept with both of its ends.
func records(corpus *graphbuild.Corpus) iter.Seq2[mapmatched.Record, error] {
	edges := map[string][]mapmatched.Edge{}
	for _, e := range corpus.Edges {
		edges[e.From] = append(edges[e.From], e)
		e.From, e.To = e.To, e.From
		edges[e.From] = append(edges[e.From], e)
	}
	return func(yield func(mapmatched.Record, error) bool) {
		for _, c := range corpus.Chunks {
			vector := embed(c.Title + "\n" + c.Section + "\n" + c.Text)
			if !yield(mapmatched.Record{Chunk: c, Vector: vector, Edges: edges[c.ID]}, nil) {
				return
			}
		}
	}
}

// converse asks the questions, each alone and as a part of the conversation.
func converse(ctx context.Context, w io.Writer, provider mapmatched.CandidateProvider, graph mapmatched.CorpusGraph) error {
	// With weight 1 the fifth question, a new subject, would be held back on the
	// old one: hashed words tell chunks apart less well than a model does.
	session, err := mapmatched.NewSession(provider, graph, &mapmatched.Config{TransitionWeight: new(0.7)})
	if err != nil {
		return err
	}
	for _, turn := range handbook.Conversation {
		q := mapmatched.Query{Text: turn.Question, Vector: embed(turn.Question)}
		alone, err := provider.Candidates(ctx, q, 1)
		if err != nil {
			return err
		}
		result, err := session.Ask(ctx, q)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "%s\n  alone:   %s\n  decoded: %s\n", turn.Question, alone[0].ChunkID, result.ChunkID); err != nil {
			return err
		}
	}
	return nil
}
