// Package weaviate searches the classes of a Weaviate server, writes corpora to
// them and reads corpus graphs from their cross-references.
//
// [Open] and [OpenHybrid] make candidate providers, [OpenGraph] a corpus graph
// and [OpenWriter] a store to write to. In URLs the scheme is weaviate:
//
//	weaviate://host:8080/Class?grpc=50051&tls=true&api_key_env=WEAVIATE_API_KEY
//
// # Transport
//
// The official client does schema, objects and GraphQL. With a gRPC port,
// searches and batches go by the server's gRPC protocol, over a connection of
// this package: the client's own does not verify certificates. Without one they
// go by GraphQL and REST. Both give the same ranking and the same scores. Of
// GraphQL one has to know that integers beyond 32 bits come back as null; over
// both, the server keeps integers as float64, exact to 2^53.
//
// # Scores
//
// Scores are higher-is-better. What one is follows from the mode and from the
// metric of the class:
//
//	vector, cosine                       1 − distance, the cosine
//	vector, dot                          −distance, the inner product
//	vector, l2-squared                   −distance, minus the squared Euclidean distance
//	vector, manhattan, hamming           −distance
//	vector, several targets              −distance, the distances combined
//	bm25                                 the BM25 score
//	hybrid                               the fused score, relative to the other hits
//
// Candidate.Parts has the distance under "distance", or the score under "bm25",
// "relative_score" or "ranked" with the weight of vectors under "alpha". The
// certainty of Weaviate is (1 + cosine)/2 and exists for cosine alone. Equal
// scores are ordered by chunk ID; where more are equal than fit the limit, the
// first IDs of all of them are kept, as far as the server shows them.
//
// A hybrid score says how a hit compares with the others of its query, so given
// chunks cannot be scored alone and [HybridProvider] does not implement
// mapmatched.ChunkScorer.
//
// # Words that were just written
//
// Servers without the fix of Weaviate's pull request 11780 (June 2026), version
// 1.35.2 among them, give wrong best hits for queries of several words while the
// words are only in memory: chunks with many of the words are left out for chunks
// with few, in bm25 and hybrid, whenever more match than are asked for.
// Words go to disk about a minute after they were written
// (PERSISTENCE_MEMTABLES_FLUSH_DIRTY_AFTER_SECONDS), and when the server is
// stopped in order and started again; then they are ranked rightly. So wait,
// restart such a server after a write, or use one with the fix. Of words that a
// single chunk has, 1.35.2 may leave out the chunk even then (pull request 11772).
// [Provider.Diagnose] warns where a chunk is not the best hit for its own text.
//
// # What is written
//
// A chunk is an object whose UUID follows from the chunk ID (version 5), so that
// writing it again replaces it. Its fields are properties of the same names,
// and its edges are both cross-references, one property for each type
// (edge_next, edge_link), and the property edges, which has their weights as
// JSON, because references cannot carry any. The property digest tells whether
// an object is up to date, and the reference confirmed, to the object itself,
// that the server confirmed it, so that a write that was interrupted, also by a
// server that died, is taken up by the same call again. In a class that was there
// before, objects that are new to it are deleted by their UUIDs first: a server
// that died may hold them where no search finds them. The identity of the corpus is in the
// description of the class.
package weaviate
