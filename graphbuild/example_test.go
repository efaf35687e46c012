package graphbuild_test

import (
	"context"
	"fmt"
	"testing/fstest"

	"github.com/mapmatched/mmplug/graphbuild"
)

func ExampleChunkMarkdown() {
	doc := graphbuild.Document{ID: "guide/pump.md", Text: `# Pump

## Check the seal

Look for oil. See [parts](parts.md#seals).

## Replace the seal

Drain the pump first.
`}
	c, err := graphbuild.ChunkMarkdown(doc, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, chunk := range c.Chunks {
		fmt.Printf("%s [%d:%d] %s\n", chunk.ID, chunk.Start, chunk.End, chunk.Section)
	}
	for _, link := range c.Links {
		fmt.Printf("%s links to %s\n", link.ChunkID, link.Target)
	}
	// Output:
	// guide/pump.md#check-the-seal [0:71] Pump > Check the seal
	// guide/pump.md#replace-the-seal [71:114] Pump > Replace the seal
	// guide/pump.md#check-the-seal links to parts.md#seals
}

func ExampleChunkText() {
	doc := graphbuild.Document{ID: "notes.txt", Text: "One paragraph.\n\nAnother one.\n\nThe last.\n"}
	c, err := graphbuild.ChunkText(doc, &graphbuild.ChunkOptions{MaxBytes: 32})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, chunk := range c.Chunks {
		fmt.Printf("%s %q\n", chunk.ID, chunk.Text)
	}
	// Output:
	// notes.txt "One paragraph.\n\nAnother one.\n\n"
	// notes.txt~2 "The last.\n"
}

func ExampleStructure() {
	doc := graphbuild.Document{ID: "a.md", Text: "# A\nIntro.\n## B\nSee [C](#c).\n## C\nEnd.\n"}
	c, err := graphbuild.ChunkMarkdown(doc, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	links, _ := graphbuild.ResolveLinks([]graphbuild.Chunked{c}, nil)
	edges, err := graphbuild.Structure(c.Chunks, links, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, e := range edges {
		fmt.Println(e.From, e.To, e.Type, e.Weight)
	}
	// Output:
	// a.md#a a.md#b next 1
	// a.md#a a.md#b parent 1
	// a.md#a a.md#c parent 1
	// a.md#b a.md#c link 2
	// a.md#b a.md#c next 1
}

func ExampleKNN() {
	ids := []string{"north", "north-east", "east", "south"}
	vectors := [][]float32{{0, 1}, {1, 1}, {1, 0}, {0, -1}}
	edges, err := graphbuild.KNN(context.Background(), ids, vectors, &graphbuild.KNNOptions{K: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, e := range edges {
		fmt.Printf("%s %s %s %.4f\n", e.From, e.To, e.Type, e.Weight)
	}
	// Output:
	// east north-east knn 0.2929
	// east south knn 1.0000
	// north north-east knn 0.2929
}

func ExampleBuildCorpus() {
	files := fstest.MapFS{
		"index.md":   {Data: []byte("# Home\n\nStart with [setup](setup.md) or [help](help.md).\n")},
		"setup.md":   {Data: []byte("# Setup\n\nPlug it in.\n")},
		"broken.txt": {Data: []byte("\x00\x01")},
	}
	corpus, err := graphbuild.BuildCorpus(context.Background(), []graphbuild.Root{{FS: files}}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(corpus.Documents, len(corpus.Chunks), "chunks")
	for _, e := range corpus.Edges {
		fmt.Println(e.From, e.To, e.Type)
	}
	for _, w := range corpus.Warnings {
		fmt.Println(w)
	}
	for _, b := range corpus.Broken {
		fmt.Println(b.Document, b.Target, b.Reason)
	}
	// Output:
	// [index.md setup.md] 2 chunks
	// index.md#home setup.md#setup link
	// broken.txt: binary: NUL at byte 0
	// index.md help.md there is no document help.md
}
