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
// The Go code checks what it reads: a damaged file gives an error. libfaiss
// trusts the file, and a damaged one may end the program, in a way that Go
// cannot catch. The header, and the numbers of vectors that parts of the index
// say they have, are compared first; that does not find all damage.
// [EngineAuto] hands a file to libfaiss only when it begins as a type of FAISS
// that the Go code does not read. For files from others choose [EngineGo].
//
// # Scores
//
// Scores are higher-is-better. An inner product is its own score, and so is a
// cosine, which is the inner product of vectors of length 1. Distances are
// negated, and the L2 of FAISS is the square of the Euclidean distance: the
// score of [3, 4] for [0, 0] is −25. Equal scores are ordered by FAISS ID, and
// the lowest are kept where there are more than asked for. HNSW chooses among
// those that the walk meets: it need not meet all that are equal.
//
// # Exact and approximate
//
// A flat index is searched through. IVF looks into as many lists, and HNSW keeps
// as many nodes in view, as the file says or the options do;
// [IndexOptions.Exact] searches all vectors of such an index as if it were flat.
//
// HNSW is walked as libfaiss 1.7.4 and later do with their defaults, for k below
// and above efSearch, with these differences. Scores of L2 are summed in float64
// and inner products in another order than there, so nodes whose scores differ
// by rounding alone may be met in another order; equal scores may be too.
// Versions before 1.7.4 count the nodes in view wrongly and stop too early when k
// is not above efSearch: they find the same or less. [EngineNative] asks libfaiss
// for one vector more than wanted, to see ties, so with k at or above efSearch it
// looks farther than libfaiss does for k.
package faiss
