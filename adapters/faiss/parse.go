package faiss

import (
	"context"
	"fmt"
	"math"
	"strings"
)

// node is an index as the Go code reads it. Its vectors have positions from 0
// to len − 1 in the order of the file.
type node interface {
	header() *header
	len() int
	label(at int) int64   // FAISS ID of the vector at a position
	row(at int) []float32 // the vector at a position
	// search returns the k best vectors for a query. name translates the label
	// of a vector, nil for labels that are not translated.
	search(ctx context.Context, query []float32, k int, name func(int64) int64) ([]Hit, error)
	// batch is search for several queries, with the same results.
	batch(ctx context.Context, queries [][]float32, k int, name func(int64) int64) ([][]Hit, error)
	// describe names the type, such as IndexIDMap2(IndexFlatIP).
	describe() string
}

// header is what every index begins with.
type header struct {
	code      string
	dimension int
	count     int
	trained   bool
	metric    Metric
}

// maxDepth bounds how many indexes may be within each other.
const maxDepth = 8

// parse reads the index that a file holds.
func parse(data []byte) (node, error) {
	if err := checkForeign(data[:min(len(data), 64)]); err != nil {
		return nil, err
	}
	c := &cursor{data: data}
	n, err := parseIndex(c, 0)
	if err != nil {
		return nil, err
	}
	if left := len(c.data) - c.at; left > 0 {
		return nil, damaged("%d bytes are left after the end of the %s; the file was joined with another or made by a newer version", left, n.describe())
	}
	return n, nil
}

func parseIndex(c *cursor, depth int) (node, error) {
	code := c.code("the type of an index")
	if c.err != nil {
		return nil, c.err
	}
	if depth == maxDepth {
		return nil, damaged("more than %d indexes are within each other", maxDepth)
	}
	switch code {
	case "IxFI", "IxF2", "IxFl":
		return parseFlat(c, code)
	case "IxMp", "IxM2":
		return parseIDMap(c, code, depth)
	case "IHNf":
		return parseHNSW(c, code, depth)
	case "IwFl":
		return parseIVF(c, code, depth)
	}
	name, known := typeNames[code]
	if !known {
		return nil, damaged("the four-character code %q at byte %d is of no type of index up to FAISS 1.15; made by a newer version?", code, c.at-4)
	}
	return nil, beyondGo("it does not read %s (%q)", name, code)
}

// parseHeader reads the header of a type that the Go code reads.
func parseHeader(c *cursor, code string) (header, error) {
	h, err := readHeader(c, code)
	if err == nil && h.metric != MetricInnerProduct && h.metric != MetricL2 {
		return h, beyondGo("it does not know the metric of %s, %v", typeNames[code], h.metric)
	}
	return h, err
}

// readHeader reads the header of any type.
func readHeader(c *cursor, code string) (header, error) {
	h := header{code: code}
	what := "the header of the " + typeNames[code]
	dimension, count := c.int32(what), c.uint64(what)
	c.take(16, what) // two numbers without a meaning
	trained := c.byte(what)
	h.metric = Metric(c.int32(what))
	if h.metric > MetricL2 {
		c.take(4, what) // the argument of the metric
	}
	switch {
	case c.err != nil:
		return h, c.err
	case dimension < 1:
		return h, damaged("%s says %d dimensions", what, dimension)
	case count >= math.MaxInt:
		return h, damaged("%s says %d vectors", what, count)
	case trained > 1:
		return h, damaged("%s says %d for whether it is trained, want 0 or 1", what, trained)
	}
	h.dimension, h.count, h.trained = int(dimension), int(count), trained == 1
	return h, nil
}

// inner reads an index within another, which must compare vectors of the same
// dimension.
func inner(c *cursor, outer header, depth int) (node, error) {
	n, err := parseIndex(c, depth+1)
	if err != nil {
		return nil, err
	}
	if h := n.header(); h.dimension != outer.dimension {
		return nil, damaged("%s has %d dimensions and the %s in it %d", typeNames[outer.code], outer.dimension, n.describe(), h.dimension)
	}
	return n, nil
}

// sameMetric checks that the index within another compares like it.
func sameMetric(outer header, n node) error {
	if m := n.header().metric; m != outer.metric {
		return damaged("%s has metric %v and the %s in it %v", typeNames[outer.code], outer.metric, n.describe(), m)
	}
	return nil
}

func parseFlat(c *cursor, code string) (node, error) {
	h, err := parseHeader(c, code)
	if err != nil {
		return nil, err
	}
	if code == "IxFI" && h.metric != MetricInnerProduct || code == "IxF2" && h.metric != MetricL2 {
		return nil, damaged("%s has metric %v", typeNames[code], h.metric)
	}
	data := c.array(4, "the vectors")
	if c.err != nil {
		return nil, c.err
	}
	f := &flat{head: h, data: floats(data)}
	if len(f.data)%h.dimension != 0 || len(f.data)/h.dimension != h.count {
		return nil, damaged("%s says %d vectors of %d dimensions and has %d numbers", typeNames[code], h.count, h.dimension, len(f.data))
	}
	return f, nil
}

func parseIDMap(c *cursor, code string, depth int) (node, error) {
	h, err := parseHeader(c, code)
	if err != nil {
		return nil, err
	}
	m := &idMap{head: h}
	if m.inner, err = inner(c, h, depth); err != nil {
		return nil, err
	}
	if err := sameMetric(h, m.inner); err != nil {
		return nil, err
	}
	m.ids = int64s(c.array(8, "the ID map"))
	if c.err != nil {
		return nil, c.err
	}
	if n := m.ids.len(); n != h.count || m.inner.len() != n {
		return nil, damaged("%s says %d vectors, its ID map has %d and the %s in it %d", typeNames[code], h.count, n, m.inner.describe(), m.inner.len())
	}
	for at := range m.inner.len() {
		if l := m.inner.label(at); l < 0 || l >= int64(h.count) {
			return nil, damaged("the %s in an ID map of %d has a vector of ID %d", m.inner.describe(), h.count, l)
		}
		if id := m.ids.at(at); id < 0 {
			return nil, damaged("the ID map has %d at position %d; negative IDs stand for no vector", id, at)
		}
	}
	return m, nil
}

func parseHNSW(c *cursor, code string, depth int) (node, error) {
	h, err := parseHeader(c, code)
	if err != nil {
		return nil, err
	}
	x := &hnsw{head: h}
	c.array(8, "the probabilities of HNSW levels")
	x.slots = int32s(c.array(4, "the neighbours for each HNSW level"))
	x.levels = int32s(c.array(4, "the HNSW levels"))
	x.offsets = int64s(c.array(8, "the offsets of HNSW neighbours"))
	x.neighbors = int32s(c.array(4, "the HNSW neighbours"))
	x.entry = int(c.int32("the HNSW entry point"))
	x.top = int(c.int32("the HNSW levels"))
	c.int32("efConstruction") // of no matter for a search
	x.ef = int(c.int32("efSearch"))
	c.int32("the width of the search in upper levels") // always 1
	if c.err != nil {
		return nil, c.err
	}
	storage, err := inner(c, h, depth)
	if err != nil {
		return nil, err
	}
	if err := sameMetric(h, storage); err != nil {
		return nil, err
	}
	var ok bool
	if x.storage, ok = storage.(*flat); !ok {
		return nil, beyondGo("it reads HNSW over flat storage, not over %s", storage.describe())
	}
	return x, x.check()
}

func parseIVF(c *cursor, code string, depth int) (node, error) {
	h, err := parseHeader(c, code)
	if err != nil {
		return nil, err
	}
	x := &ivf{head: h}
	lists, probes := c.uint64("the number of lists"), c.uint64("nprobe")
	if x.quantizer, err = inner(c, h, depth); err != nil {
		return nil, fmt.Errorf("quantiser of %s: %w", typeNames[code], err)
	}
	if !h.trained {
		return nil, fmt.Errorf("the %s is not trained, so it cannot hold vectors: train it and add them", typeNames[code])
	}
	if n := x.quantizer.len(); uint64(n) != lists {
		return nil, damaged("%s says %d lists and has %d centroids", typeNames[code], lists, n)
	}
	if probes < 1 {
		return nil, damaged("%s says to probe no list", typeNames[code])
	}
	x.probes = int(min(probes, lists, math.MaxInt32))
	if err := skipDirectMap(c); err != nil {
		return nil, err
	}
	return x, x.parseLists(c)
}

// skipDirectMap reads over the map from ID to place in a list.
func skipDirectMap(c *cursor) error {
	kind := c.byte("the direct map")
	c.array(8, "the direct map")
	if kind == 2 { // a hash table, by pairs
		c.array(16, "the direct map")
	}
	if c.err == nil && kind > 2 {
		return damaged("the direct map is of kind %d, want 0 to 2", kind)
	}
	return c.err
}

// parseLists reads inverted lists of vectors.
func (x *ivf) parseLists(c *cursor) error {
	switch code := c.code("the inverted lists"); {
	case c.err != nil:
		return c.err
	case code == "il00":
		return unsupported("the file does not have the inverted lists of the %s", x.describe())
	case code == "ilod":
		return beyondGo("the inverted lists are in another file")
	case code != "ilar":
		return beyondGo("it does not read inverted lists of type %q", code)
	}
	lists, size := c.uint64("the number of lists"), c.uint64("the size of vectors")
	if c.err == nil && (lists != uint64(x.quantizer.len()) || size != 4*uint64(x.head.dimension)) {
		return damaged("there are %d inverted lists of vectors of %d bytes, want %d of %d", lists, size, x.quantizer.len(), 4*x.head.dimension)
	}
	if c.err != nil {
		return c.err
	}
	x.lists = make([]list, lists) // as many as there are centroids in the file
	if err := x.parseSizes(c); err != nil {
		return err
	}
	start := 0
	for i := range x.lists {
		l := &x.lists[i]
		l.start = start
		if l.count == 0 {
			continue
		}
		if uint64(l.count) > math.MaxInt/size {
			return damaged("list %d would have %d vectors", i, l.count)
		}
		l.data = floats(c.take(uint64(l.count)*size, "an inverted list"))
		l.ids = int64s(c.take(uint64(l.count)*8, "the IDs of an inverted list"))
		if c.err != nil {
			return c.err
		}
		for j := range l.count {
			if id := l.ids.at(j); id < 0 {
				return damaged("list %d has the ID %d; negative IDs stand for no vector", i, id)
			}
		}
		start += l.count
	}
	if start != x.head.count {
		return damaged("%s says %d vectors and its lists have %d", typeNames[x.head.code], x.head.count, start)
	}
	return nil
}

// parseSizes reads the numbers of vectors in the lists: of all, or of those
// that have any.
func (x *ivf) parseSizes(c *cursor) error {
	kind := c.code("the kind of list sizes")
	sizes := int64s(c.array(8, "the sizes of lists"))
	if c.err != nil {
		return c.err
	}
	set := func(at, count int64) error {
		if at < 0 || at >= int64(len(x.lists)) || count < 0 || count > int64(x.head.count) {
			return damaged("list %d of %d has %d vectors of %d", at, len(x.lists), count, x.head.count)
		}
		x.lists[at].count = int(count)
		return nil
	}
	switch {
	case kind == "full" && sizes.len() == len(x.lists):
		for i := range x.lists {
			if err := set(int64(i), sizes.at(i)); err != nil {
				return err
			}
		}
	case kind == "sprs" && sizes.len()%2 == 0:
		for i := 0; i < sizes.len(); i += 2 {
			if err := set(sizes.at(i), sizes.at(i+1)); err != nil {
				return err
			}
		}
	case kind != "full" && kind != "sprs":
		return damaged("the sizes of lists are of kind %q", kind)
	default:
		return damaged("%d list sizes of kind %q for %d lists", sizes.len(), kind, len(x.lists))
	}
	return nil
}

// nested describes an index with others in it.
func nested(code string, in ...node) string {
	names := make([]string, len(in))
	for i, n := range in {
		names[i] = n.describe()
	}
	return typeNames[code] + "(" + strings.Join(names, ", ") + ")"
}
