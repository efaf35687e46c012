// Package mapmatched decodes multi-turn retrieval as map matching.
//
// Every turn of a conversation is a noisy observation of where the
// conversation is in a corpus. The candidates that a retriever offers for a
// turn are its possible positions, the corpus graph is the road network, and
// the decoder finds the most plausible path of chunks through all turns with
// the Viterbi algorithm, as Newson and Krumm (2009) match a GPS track to
// roads.
//
// The vocabulary is small:
//
//   - a [CandidateProvider] offers candidates for a turn, best first;
//   - a [CorpusGraph] answers how far apart two chunks are;
//   - a [Session] decodes one conversation turn by turn: [Session.Ask];
//   - a [Trace] says why each chunk was chosen.
//
// The objective (tag "decode_v1"), for turns 1..T with candidate sets S_t,
// normalised scores s_t and graph distance d, is
//
//	path = argmax Σ_t λ·s_t(x_t) − Σ_{t≥2} β·d(x_{t−1}, x_t)
//
// with the emission weight λ and the transition weight β.
//
// The package imports the standard library only. Stores, graphs on disk,
// policies and plugins live beside it and are reached through the interfaces
// above.
package mapmatched
