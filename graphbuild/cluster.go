package graphbuild

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/mapmatched/mmplug/mapmatched"
)

// PolicyClusters is the tag of the clusters that [Clusters] makes.
const PolicyClusters = "cluster_shadow_pre_v1"

// The defaults of ClusterOptions.
const (
	DefaultClusterThreshold = 0.3
	DefaultKeywords         = 8
)

// ClusterOptions are the settings of [Clusters]. The zero value, and nil, mean
// the defaults.
type ClusterOptions struct {
	// Threshold is the greatest mean distance at which two clusters are
	// joined, in (0, 2]. 0 means DefaultClusterThreshold.
	Threshold float64

	// Text returns the text of a chunk, from which keywords are taken. nil
	// means no keywords.
	Text func(chunkID string) string
	// Terms cuts a text into terms. nil means [Words].
	Terms func(text string) []string
	// IDF is how telling a term is in the corpus, 0 or less for a term that
	// is not to be a keyword. nil means ln(1 + (N − n + 0.5)/(n + 0.5)) for a
	// term in n of the N clustered chunks.
	IDF func(term string) float64
	// Keywords is how many keywords a cluster has at most. 0 means
	// DefaultKeywords.
	Keywords int

	// Progress, if set, is told how much of the work is done, one call at a
	// time, done ascending. It must not block for long.
	Progress func(done, total int)
}

// Validate reports every value that is out of range.
func (o *ClusterOptions) Validate() error {
	if o == nil {
		return nil
	}
	var errs []error
	if !(o.Threshold >= 0 && o.Threshold <= 2) {
		errs = append(errs, fmt.Errorf("%w: Threshold is %v, want 0 for the default or a distance up to 2", mapmatched.ErrInvalidConfig, o.Threshold))
	}
	if o.Keywords < 0 {
		errs = append(errs, fmt.Errorf("%w: Keywords is %d, want 0 for the default or more", mapmatched.ErrInvalidConfig, o.Keywords))
	}
	return errors.Join(errs...)
}

// Cluster is a set of chunks that are near each other.
type Cluster struct {
	Members []string `json:"members"` // ascending
	// Centroid is the mean of the members' vectors of length 1, scaled to
	// length 1; all zero where they cancel out.
	Centroid []float32 `json:"centroid"`
	// Medoid is the member with the least mean distance to all members, the
	// least ID of several.
	Medoid string `json:"medoid"`
	// Radius is the greatest cosine distance of a member from the centroid.
	Radius float64 `json:"radius"`
	// Keywords are the most telling terms of the members' texts, best first.
	Keywords []string `json:"keywords"`
}

// Clustering divides chunks into clusters.
type Clustering struct {
	Policy    string    `json:"policy"` // PolicyClusters
	Threshold float64   `json:"threshold"`
	Dimension int       `json:"dimension"` // of the vectors
	Chunks    int       `json:"chunks"`
	Clusters  []Cluster `json:"clusters"` // ascending by their first member
}

// Clusters divides chunks into clusters of near vectors (tag
// [PolicyClusters]).
//
// Agglomerative clustering with average linkage (UPGMA): beginning with a
// cluster for each chunk, the two clusters with the least mean distance between
// a member of one and a member of the other are joined, as long as that is at
// most the threshold. The distance of two chunks is 1 − cos.
//
// The order of the joins is that of the nearest-neighbour chain (Benzécri 1982,
// Murtagh 1983), which makes the same clusters because average linkage is
// reducible: joining two clusters brings neither nearer to a third than the
// nearer one was. Since the mean of products is the product of means, the mean
// distance of clusters A and B is 1 − ΣA·ΣB/(|A|·|B|) with the sums of their
// vectors of length 1, and no matrix of distances is needed. Where distances
// are equal, the cluster with the least member ID is joined first; then, and
// only then, other implementations may find other clusters.
//
// Sums are in float64 in a fixed order: the result is the same whatever the
// order of the rows, the number of cores and the instructions of the machine.
//
// First all pairs within the threshold are found, with float32 kernels and a
// margin for their error: chunks that no chain of such pairs joins are never in
// one cluster. If the pairs are at most 256·N they are kept, and a cluster is
// compared only with those that a pair joins it to; otherwise with all that a
// chain of pairs joins it to. The time is of the order of N²·d for N vectors of
// d dimensions, with a small factor for the first step and a greater one if
// nearly all chunks are within the threshold of each other; the memory is about
// 12·N·d bytes and 2 KB·N for pairs, beside the source.
//
// Vectors and IDs that [KNN] refuses are errors, and so are IDs that are not
// UTF-8. No chunks have no clusters.
func Clusters(ctx context.Context, source VectorSource, opts *ClusterOptions) (*Clustering, error) {
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	var o ClusterOptions
	if opts != nil {
		o = *opts
	}
	o.Threshold = cmp.Or(o.Threshold, DefaultClusterThreshold)
	o.Keywords = cmp.Or(o.Keywords, DefaultKeywords)
	rows, err := newRowSet(ctx, source)
	if err != nil {
		return nil, err
	}
	for i := range source.Len() {
		if id := source.ID(i); !utf8.ValidString(id) {
			return nil, fmt.Errorf("chunk ID %q at row %d is not UTF-8; rename the chunk", id, i)
		}
	}
	p := newProgress(o.Progress)
	near, err := rows.pairsWithin(ctx, o.Threshold, p)
	if err != nil {
		return nil, err
	}
	c := newAgglomeration(rows, near, o.Threshold)
	p.stage(progressTotal, rows.len())
	if err := c.run(ctx, p); err != nil {
		return nil, err
	}
	out := &Clustering{Policy: PolicyClusters, Threshold: o.Threshold, Dimension: source.Dimension(), Chunks: source.Len(), Clusters: []Cluster{}}
	keywords := newKeywordFinder(source, &o)
	for _, members := range c.clusters() {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		cluster := c.describe(members)
		cluster.Keywords = keywords.of(cluster.Members)
		out.Clusters = append(out.Clusters, cluster)
	}
	return out, nil
}

// agglomeration joins clusters by the nearest-neighbour chain.
//
// A cluster is known by its least row; rows are in the order of chunk IDs, so
// that is the one with the least member ID.
type agglomeration struct {
	rows      *rowSet
	near      *nearPairs
	threshold float64

	sums  []float64 // of the vectors of each cluster, row-major
	size  []float64 // chunks in each cluster, 0 when it is part of another
	into  []int32   // cluster that a row is part of, by way of others; itself when it is one
	lists [][]int32 // rows of each cluster

	active []int32 // clusters of the part at hand that may still be joined
	place  []int32 // of each cluster in active
	seen   []int32 // last search that met a cluster
	search int32
}

func newAgglomeration(rows *rowSet, near *nearPairs, threshold float64) *agglomeration {
	n := rows.len()
	c := &agglomeration{
		rows: rows, near: near, threshold: threshold,
		sums: make([]float64, n*rows.dim), size: make([]float64, n), into: make([]int32, n), lists: make([][]int32, n),
		place: make([]int32, n), seen: make([]int32, n),
	}
	buffer := make([]float32, rows.dim)
	for u := range n {
		c.into[u] = int32(u)
		c.lists[u] = []int32{int32(u)}
		c.size[u] = float64(len(rows.copiesOf(int32(u))))
		sum := c.sum(int32(u))
		for j, x := range rows.vector(int32(u), buffer) {
			sum[j] = float64(c.size[u] * (float64(x) / rows.length[u]))
		}
	}
	return c
}

func (c *agglomeration) sum(a int32) []float64 {
	d := c.rows.dim
	return c.sums[int(a)*d : (int(a)+1)*d : (int(a)+1)*d]
}

// distance returns the mean distance of two clusters. distance(a, b) and
// distance(b, a) have the same bits.
func (c *agglomeration) distance(a, b int32) float64 {
	cosine := dot(c.sum(a), c.sum(b)) / (c.size[a] * c.size[b])
	return 1 - min(max(cosine, -1), 1)
}

// run joins clusters until none are within the threshold, part by part.
func (c *agglomeration) run(ctx context.Context, p *progress) error {
	for part := range c.near.parts() {
		c.active = append(c.active[:0], c.near.part(part)...)
		for i, a := range c.active {
			c.place[a] = int32(i)
		}
		var stack []int32 // each one's nearest is the next
		for next := 0; ; {
			if err := ctx.Err(); err != nil {
				return err
			}
			if len(stack) == 0 {
				rows := c.near.part(part)
				for next < len(rows) && c.place[rows[next]] < 0 {
					next++
				}
				if next == len(rows) {
					break
				}
				stack = append(stack, rows[next])
			}
			tip, before := stack[len(stack)-1], int32(-1)
			if len(stack) > 1 {
				before = stack[len(stack)-2]
			}
			best := c.nearest(tip, before)
			switch at := slices.Index(stack, best.row); {
			case !(best.distance <= c.threshold):
				// Nothing will ever be within the threshold of it: joining
				// others brings none of them nearer.
				c.remove(tip)
				p.step()
				stack = stack[:len(stack)-1]
			case best.row == before:
				c.join(tip, before)
				p.step()
				stack = stack[:len(stack)-2]
			case at >= 0: // rounding made the loop shorter
				stack = stack[:at+1]
			default:
				stack = append(stack, best.row)
			}
		}
	}
	return nil
}

// better reports whether e is to be joined rather than f: it is nearer or, at
// the same distance, is first or has the lesser row.
func better(e, f nearest, first int32) bool {
	return e.distance < f.distance || e.distance == f.distance && f.row != first && (e.row == first || e.row < f.row)
}

// nearest returns the nearest active cluster of a cluster; of equally near ones
// first if it is among them. Beyond the threshold it may be any, or row −1.
func (c *agglomeration) nearest(a, first int32) nearest {
	best := nearest{math.Inf(1), -1}
	if c.near.kept {
		c.search++
		c.seen[a] = c.search
		for _, u := range c.lists[a] {
			for _, v := range c.near.of(u) {
				b := c.cluster(v)
				if c.seen[b] == c.search || c.place[b] < 0 {
					continue
				}
				c.seen[b] = c.search
				if e := (nearest{c.distance(a, b), b}); better(e, best, first) {
					best = e
				}
			}
		}
		return best
	}
	const most = 1 << 16 // numbers that one core multiplies
	share := max(most/c.rows.dim, 1)
	found := make([]nearest, (len(c.active)+share-1)/share)
	// The context of a scan, which takes milliseconds, is looked at before it.
	_ = forEach(context.Background(), len(found), nil, func() func(int) {
		return func(i int) {
			mine := nearest{math.Inf(1), -1}
			for _, b := range c.active[i*share : min((i+1)*share, len(c.active))] {
				if b == a {
					continue
				}
				if e := (nearest{c.distance(a, b), b}); better(e, mine, first) {
					mine = e
				}
			}
			found[i] = mine
		}
	})
	for _, e := range found {
		if better(e, best, first) {
			best = e
		}
	}
	return best
}

// cluster returns the cluster that a row is part of.
func (c *agglomeration) cluster(u int32) int32 {
	for c.into[u] != u {
		c.into[u] = c.into[c.into[u]]
		u = c.into[u]
	}
	return u
}

// join makes one cluster of two.
func (c *agglomeration) join(a, b int32) {
	if a > b {
		a, b = b, a
	}
	sum := c.sum(a)
	for j, x := range c.sum(b) {
		sum[j] += x
	}
	c.size[a] += c.size[b]
	c.size[b] = 0
	c.into[b] = a
	c.lists[a] = append(c.lists[a], c.lists[b]...)
	c.lists[b] = nil
	c.remove(b)
}

// remove takes a cluster out of those that may still be joined.
func (c *agglomeration) remove(a int32) {
	last := c.active[len(c.active)-1]
	c.active[c.place[a]] = last
	c.place[last] = c.place[a]
	c.place[a] = -1
	c.active = c.active[:len(c.active)-1]
}

// clusters lists the rows of each cluster, ascending.
func (c *agglomeration) clusters() [][]int32 {
	var out [][]int32
	for u, list := range c.lists {
		if c.size[u] > 0 {
			slices.Sort(list)
			out = append(out, list)
		}
	}
	return out
}

// describe describes the cluster of some rows.
func (c *agglomeration) describe(rows []int32) Cluster {
	var out Cluster
	sum := c.sum(rows[0])
	length := math.Sqrt(dot(sum, sum))
	centroid := make([]float64, len(sum))
	out.Centroid = make([]float32, len(sum))
	if length > 1e-9*c.size[rows[0]] {
		for j, x := range sum {
			centroid[j] = x / length
			out.Centroid[j] = float32(centroid[j])
		}
	}
	buffer, unit := make([]float32, len(sum)), make([]float64, len(sum))
	best := math.Inf(-1)
	for _, u := range rows {
		for j, x := range c.rows.vector(u, buffer) {
			unit[j] = float64(x) / c.rows.length[u]
		}
		for _, at := range c.rows.copiesOf(u) {
			out.Members = append(out.Members, c.rows.source.ID(int(c.rows.order[at])))
		}
		if product := dot(unit, sum); product > best {
			best = product
			out.Medoid = c.rows.source.ID(int(c.rows.order[c.rows.first[u]]))
		}
		out.Radius = max(out.Radius, 1-min(max(dot(unit, centroid), -1), 1))
	}
	slices.Sort(out.Members)
	return out
}
