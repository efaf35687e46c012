// Package cmd is the directory of the plugins that come with this module, each
// a program of its own: the rerankers of package rerank, and Weaviate as a
// provider in a process of its own. This package has their tests.
package cmd
