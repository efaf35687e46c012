package faiss

import "context"

// idMap gives the vectors of an index other IDs.
type idMap struct {
	head  header
	inner node
	ids   int64s // by the label of the inner index
}

func (m *idMap) header() *header      { return &m.head }
func (m *idMap) len() int             { return m.head.count }
func (m *idMap) label(at int) int64   { return m.ids.at(int(m.inner.label(at))) }
func (m *idMap) row(at int) []float32 { return m.inner.row(at) }
func (m *idMap) describe() string     { return nested(m.head.code, m.inner) }

// renamed translates the labels of the inner index, which parse has checked.
func (m *idMap) renamed(name func(int64) int64) func(int64) int64 {
	return func(label int64) int64 { return named(name, m.ids.at(int(label))) }
}

func (m *idMap) search(ctx context.Context, query []float32, k int, name func(int64) int64) ([]Hit, error) {
	return m.inner.search(ctx, query, k, m.renamed(name))
}

func (m *idMap) batch(ctx context.Context, queries [][]float32, k int, name func(int64) int64) ([][]Hit, error) {
	return m.inner.batch(ctx, queries, k, m.renamed(name))
}
