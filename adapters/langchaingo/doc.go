// Package langchaingo joins langchaingo and the decoder, both ways round:
//
//   - [NewRetrieverProvider] and [NewStoreProvider] make a candidate provider
//     of any schema.Retriever and any vectorstores.VectorStore, so a session
//     decodes what they find.
//   - [NewConversations] makes a schema.Retriever of a provider and a graph: one
//     session for each conversation, for use inside chains.NewRetrievalQAFromLLM
//     and chains.NewConversationalRetrievalQAFromLLM.
//   - [NewEmbedder] and [AsEmbedder] turn embedders into each other,
//     [SplitText] makes chunks with byte offsets by any text splitter, and
//     [Rewriter] is an optional query rewriter over any language model, for
//     comparisons.
//
// # What a score means
//
// schema.Document has one field for scores, and every store puts something
// else there, so a provider is told the [ScoreKind]. Of the stores that come
// with langchaingo v0.1.13, chroma and pgvector report 1 − distance, qdrant the
// score of its collection (similarity for Cosine and Dot, a distance for Euclid
// and Manhattan), weaviate certainty, redisvector a distance, and milvus the
// number of its metric type.
//
// # Vectors of services
//
// What a service runs under the name of a model can change, and two servers may
// have different models of one name. Neither shows in the vectors. The
// parameter revision of the URL is for telling them apart: vectors are stored
// with it, and questions embedded under another are refused. Where a service is
// (base_url, server) is not stored.
//
// # Limits that lie in the stores
//
// A document without text is left out and counted, but the stores of
// langchaingo for qdrant and weaviate fail the whole query themselves when a
// stored point has no text. The one for qdrant also sends a score threshold of
// 0 when none is set, with which a collection of metric Euclid or Manhattan
// finds nothing, and the one for chroma drops what has a distance above 1.
package langchaingo
