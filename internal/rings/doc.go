// Package rings searches a corpus graph that a hosted store keeps chunk by
// chunk, with as few round trips as a search of one ring after the other takes.
//
// A [Source] answers, in one round trip, the edges that begin at each of many
// chunks. A [Graph] over it is a mapmatched.CorpusGraph with the answers, to the
// bit, that mapmatched.Graph gives for the same edges.
//
// # Rings
//
// A search fetches the chunks it starts from (ring 0), then all chunks they
// lead to (ring 1), and so on: each ring is one call of the source for all
// starts together. A chunk is left out when nothing behind it can change an
// answer, and the search ends when no chunk is left. Distances of an undirected
// graph are searched from both sides at once, so that n round trips know every
// path of up to 2n edges; a path of h edges takes (h+1)/2 round trips where all
// edges weigh the same. In a directed graph only the near side can be asked,
// and n round trips know the paths of up to n edges.
//
// # What the source must hold
//
// Of a directed graph, every edge at the chunk where it begins. Of an undirected
// graph, every edge at both ends, once as from a to b and once as from b to a: a
// hosted store finds only what is kept with the chunk it is asked for. An edge
// that is kept at one end alone is passable from there; whether it is from the
// other side is not defined.
package rings
