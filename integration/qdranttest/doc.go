// Package qdranttest is a Qdrant server inside the test process: the gRPC
// services of the public client on a loopback port, data in memory, exact
// search. It stands in for Qdrant 1.17 where a test needs the server's scores,
// orders, error codes and error texts, and it can be made to fail on demand:
// delays, dropped connections, refusals, oversized replies, a crash and a
// restart.
//
//	s, err := qdranttest.Start(nil)
//	if err != nil { ... }
//	defer s.Close()
//	host, port := s.HostPort()
//
// # What is modelled
//
// Collections with unnamed and named dense vectors (Cosine, Dot, Euclid,
// Manhattan), sparse vectors with and without the idf modifier, multivectors
// with max_sim, metadata, aliases and payload indexes. Points: upsert, get,
// delete, payload and vector changes, update batch, count, scroll, facets,
// distance matrix. Query and QueryBatch: nearest by vector or point ID, nested
// prefetch, reciprocal rank fusion (k = 2, ranks from 0, weights), DBSF,
// formulas, MMR, order_by, sample. API keys, TLS, keepalive enforcement.
//
// # What is not modelled
//
//   - Search is always exact. HNSW, quantization, oversampling, ACORN and
//     indexed_only are accepted and change nothing; scores of dense vectors are
//     summed from left to right in float32, where the real server uses SIMD, so
//     the last bits may differ.
//   - One shard, one replica. Shard keys, read consistency and write ordering
//     are accepted and change nothing; so are the time limits of a request.
//   - Equal scores come in ascending order of ID. The real server leaves the
//     order of equal scores open.
//   - A filter gives what the real server gives without an index on the field,
//     except that text, text_any and phrase use the tokens of a text index when
//     there is one. Stop words, stemming and folding of text indexes are not
//     modelled; the multilingual tokenizer splits like word.
//   - sample returns the same points every time (chosen by a hash of seed and
//     ID), the real one other points at each call.
//   - Writes with wait=false are applied after [Options.WriteDelay], in order,
//     whatever else happens; their errors are lost, as on the real server.
//   - An upsert stops at the first point that does not fit; the points before it
//     stay. The real server changes existing points first.
//   - UpdateCollection changes metadata and strict_mode_config; its other
//     settings are accepted and change nothing. Strict mode limits nothing: use
//     [Server.Inject] for refusals.
//   - Answered with Unimplemented: geo conditions and geo_distance, recommend,
//     discover, context and relevance feedback queries, QueryGroups, the
//     Search, Recommend and Discover calls from before Query, inference
//     (documents, images, objects), snapshots, shard and cluster calls.
package qdranttest
