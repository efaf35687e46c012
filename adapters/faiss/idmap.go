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
func (m *idMap) label(at int) int64   { return m.id(m.inner.label(at)) }
func (m *idMap) row(at int) []float32 { return m.inner.row(at) }
func (m *idMap) describe() string     { return nested(m.head.code, m.inner) }

// noID is the label of a vector that cannot have one.
const noID = -1

// id translates a label of the inner index. parse has checked all, but the file
// may have been overwritten since: labels that are not in the map are noID.
func (m *idMap) id(label int64) int64 {
	if label < 0 || label >= int64(m.ids.len()) {
		return noID
	}
	return m.ids.at(int(label))
}

// renamed translates the labels of the inner index and then by name.
func (m *idMap) renamed(name func(int64) int64) func(int64) int64 {
	return func(label int64) int64 {
		if id := m.id(label); id >= 0 {
			return named(name, id)
		}
		return noID
	}
}

func (m *idMap) search(ctx context.Context, query []float32, k int, name func(int64) int64) ([]Hit, error) {
	return m.inner.search(ctx, query, k, m.renamed(name))
}

func (m *idMap) batch(ctx context.Context, queries [][]float32, k int, name func(int64) int64) ([][]Hit, error) {
	return m.inner.batch(ctx, queries, k, m.renamed(name))
}
