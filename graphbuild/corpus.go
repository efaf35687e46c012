package graphbuild

import (
	"context"

	"github.com/mapmatched/mmplug/mapmatched"
)

// CorpusOptions are the settings of [BuildCorpus]. The zero value, and nil,
// mean the defaults.
type CorpusOptions struct {
	Tree      TreeOptions
	Structure StructureOptions
}

// Corpus is a corpus with its structure graph, ready to be indexed.
type Corpus struct {
	Documents []string           // document IDs, sorted
	Chunks    []mapmatched.Chunk // by document and place in it
	Edges     []mapmatched.Edge  // as Structure returns them
	Warnings  []Warning          // what was left out, sorted by path
	Broken    []BrokenLink       // links to nothing, by document
}

// BuildCorpus reads directory trees and makes chunks and structure edges of
// them: [ReadTree], [ResolveLinks] and [Structure] in one go. Trees without
// documents are an empty corpus and no error.
func BuildCorpus(ctx context.Context, roots []Root, opts *CorpusOptions) (*Corpus, error) {
	if opts == nil {
		opts = &CorpusOptions{}
	}
	if err := opts.Structure.Validate(); err != nil {
		return nil, err
	}
	tree, err := ReadTree(ctx, roots, &opts.Tree)
	if err != nil {
		return nil, err
	}
	linkOpts := &LinkOptions{Exists: tree.Exists}
	for _, r := range roots {
		if r.Name != "" {
			linkOpts.Roots = append(linkOpts.Roots, r.Name)
		}
	}
	c := &Corpus{Warnings: tree.Warnings}
	for _, d := range tree.Documents {
		c.Documents = append(c.Documents, d.Document)
		c.Chunks = append(c.Chunks, d.Chunks...)
	}
	links, broken := ResolveLinks(tree.Documents, linkOpts)
	c.Broken = broken
	if c.Edges, err = Structure(c.Chunks, links, &opts.Structure); err != nil {
		return nil, err
	}
	return c, nil
}
