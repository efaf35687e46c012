package faiss

import (
	"context"
	"sort"
)

// ivf has its vectors in lists, each near a centroid.
type ivf struct {
	head      header
	quantizer node // finds centroids; the label of one is the number of its list
	lists     []list
	probes    int // how many lists a search looks into
}

// list is an inverted list.
type list struct {
	count, start int // vectors, and the position of the first
	data         []float32
	ids          int64s
}

func (x *ivf) header() *header  { return &x.head }
func (x *ivf) len() int         { return x.head.count }
func (x *ivf) describe() string { return nested(x.head.code, x.quantizer) }

// place finds the list that has a position.
func (x *ivf) place(at int) (l *list, within int) {
	i := sort.Search(len(x.lists), func(i int) bool { return x.lists[i].start+x.lists[i].count > at })
	return &x.lists[i], at - x.lists[i].start
}

func (x *ivf) label(at int) int64 {
	l, within := x.place(at)
	return l.ids.at(within)
}

func (x *ivf) row(at int) []float32 {
	l, within := x.place(at)
	return rowOf(l.data, within, x.head.dimension)
}

func (x *ivf) search(ctx context.Context, query []float32, k int, name func(int64) int64) ([]Hit, error) {
	centroids, err := x.quantizer.search(ctx, query, x.probes, nil)
	if err != nil {
		return nil, err
	}
	b, s := newBest(k, x.len()), newScan(x.head.metric, query)
	for _, c := range centroids {
		if c.ID < 0 || c.ID >= int64(len(x.lists)) {
			return nil, damaged("a centroid has the number %d of %d lists", c.ID, len(x.lists))
		}
		l := &x.lists[c.ID]
		id := func(at int) int64 { return named(name, l.ids.at(at)) }
		if err := s.rows(ctx, b, l.data, id); err != nil {
			return nil, err
		}
	}
	return b.sorted(), nil
}

func (x *ivf) batch(ctx context.Context, queries [][]float32, k int, name func(int64) int64) ([][]Hit, error) {
	return oneByOne(ctx, x, queries, k, name)
}
