// Package faiss searches index files that FAISS wrote.
//
// [Open] makes a candidate provider of an index file and a file with the chunk
// of each vector; [OpenIndex] opens the index alone; [WriteFlat] writes an index
// that FAISS reads. In URLs the scheme is faiss:
//
//	faiss:/path/index.faiss?ids=/path/ids.jsonl&mode=similarity
//
// # What is read without FAISS
//
// Flat indexes for inner product and L2, IVF and HNSW over flat storage, and ID
// maps over any of them, are read by Go code from a memory map. Everything else
// (product quantisers, transforms, files of inverted lists on disk) needs
// libfaiss: build with cgo and the tag faiss. Options choose between the two
// where both can read a file.
//
// # Scores
//
// Scores are higher-is-better. An inner product is its own score, and so is a
// cosine, which is the inner product of vectors of length 1. Distances are
// negated, and the L2 of FAISS is the square of the Euclidean distance: the
// score of [3, 4] for [0, 0] is −25. Equal scores are ordered by FAISS ID.
//
// # Exact and approximate
//
// A flat index is searched through. IVF looks into as many lists, and HNSW keeps
// as many nodes in view, as the file says or the options do;
// [IndexOptions.Exact] searches all vectors of such an index as if it were flat.
package faiss
