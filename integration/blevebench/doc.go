// Package blevebench compares the lexical search of this module with that of
// bleve, side by side in one run. It is a module of its own, so that nobody who
// uses the main one is given bleve and what it needs.
package blevebench
