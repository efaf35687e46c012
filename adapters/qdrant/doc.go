// Package qdrant finds candidates in a collection of a Qdrant server and writes
// corpora to one, over the official gRPC client.
//
// A [Client] is a connection that providers, graphs and writers share. A
// [Provider] searches one vector of a collection: dense, named or not, sparse
// or multi-vector, whichever the collection says it is. Several of them are one
// round trip, either as a [HybridProvider], which the server fuses, or as a
// [Batch], whose lists the caller fuses.
//
// # Scores
//
// Higher is better. Cosine and Dot scores are the server's. Euclid and
// Manhattan are distances there: the score is the negated distance, and the
// distance itself is in Parts["distance"]. Which of them a vector has is read
// from the collection. Equal scores are ordered by chunk ID. Scores that are
// not finite are dropped and counted in [Report]; over gRPC the server has no
// way to send a score that is missing.
//
// Reciprocal rank fusion inside the server counts ranks from 0 with k = 2
// unless told otherwise; rrf_v1 of package policy counts from 1 with k = 60.
// [Fusion.K] sets the server's k: 61 there gives the scores of rrf_v1.
//
// # IDs
//
// A Qdrant point is called by an unsigned number or a UUID. A chunk is stored
// under the UUID of version 5 of its ID in the name space [Namespace], and the
// ID itself is kept in the payload. A point of another origin, without that
// key, is called by its own number or UUID.
package qdrant
