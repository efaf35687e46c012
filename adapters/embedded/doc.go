// Package embedded is the default store: a corpus with its lexical index, its
// vectors and its graph in a directory, opened by memory map. No server, no
// daemon, no configuration.
//
// [Write] makes such a directory, [Open] serves it. An [Index] is a
// mapmatched.CandidateProvider with one arm: BM25 (package lexical) or an exact
// scan over the vectors. It also fetches chunks and vectors, scores given
// chunks and lists the edges of the corpus graph.
//
// # Format
//
// A directory holds these files and no other. Numbers are little-endian, and
// each .bin file is one flat array:
//
//	manifest.json   versions, parameters, counts, size and SHA-256 of each file
//	text.bin        bytes of all strings, chunk texts among them
//	chunks.bin      for each chunk 13 uint64: offset and length in text.bin of
//	                its ID, document, title, section and text, then its
//	                ordinal, start and end
//	order.bin       uint32 positions of the chunks in ascending order of ID
//	terms.bin       bytes of all terms, ascending
//	dictionary.bin  for each term 3 uint64: where it ends in terms.bin, where
//	                its postings end, the bits of its greatest impact
//	postings.bin    uint32 chunk positions, term by term
//	impacts.bin     float64 BM25 score of each posting
//	vectors.bin     float32 rows of unit length, in chunk order
//	edges.bin       for each edge 17 bytes: uint32 positions of both ends,
//	                float64 weight, index of the type in the manifest
//
// The position of a chunk is its place in Input.Chunks, from 0. A written
// directory never changes, the same input gives the same bytes, and no time of
// day is stored.
//
// # Replacing
//
// Write builds beside the target, in ".NAME.mmplug-new", makes everything
// durable, and exchanges the two directories in one step where the system can
// do that. Elsewhere it moves the old directory to ".NAME.mmplug-old" first;
// Open and Write look there when the directory itself is missing. A process
// killed at any moment leaves the old index, the new one, or, if there was no
// old one, none. What it leaves beside the target is cleared by the next Write.
// One writer at a time holds ".NAME.mmplug-lock". Indexes that are open keep
// serving what they opened.
package embedded
