// Package kernel multiplies float32 vectors with the vector instructions of the
// machine.
//
// [Dot] takes one pair of vectors and gives the same bits on every machine.
// [Products] takes two panels of [PanelRows] vectors each and gives all their
// products at once, several times as fast for a pair, with an error that
// [ProductError] bounds. Both are written for AVX2, AVX-512 and NEON, chosen
// when the program starts, and in Go for everything else; the build tag purego
// leaves the Go code alone.
//
// # Why not a library
//
// The vector libraries for Go of 2026 multiply one pair at a time, do not fix
// the order of a sum, and mostly know amd64 alone. The order is what makes
// scores comparable between machines, and products of whole panels are where
// the time of a nearest-neighbour graph goes.
package kernel
