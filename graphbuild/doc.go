// Package graphbuild makes the input of a corpus: chunks out of documents and
// edges between the chunks.
//
// The way of the data is
//
//	files → ReadTree → Chunked documents → ResolveLinks → Structure → edges
//
// and [BuildCorpus] goes all of it. [KNN] makes edges out of vectors for
// corpora that have no structure.
//
// # Chunk IDs
//
// A chunk ID can be read and stays the same as long as the headings do:
//
//	guide/setup.md             text before the first heading, or without any
//	guide/setup.md#install     the section under the heading "Install"
//	guide/setup.md#install-1   the section under the second such heading
//	guide/setup.md#install~2   the second part of a section cut in parts
//
// What follows "#" is the anchor that GitHub gives the heading, so a link to
// it and the chunk ID look the same. The characters "%", "#" and "~" of a
// document ID are percent-encoded, which keeps chunk IDs unique in a corpus
// whose document IDs are.
package graphbuild
