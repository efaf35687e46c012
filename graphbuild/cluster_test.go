package graphbuild

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
)

func clustersOf(t testing.TB, ids []string, vectors [][]float32, opts *ClusterOptions) *Clustering {
	t.Helper()
	source, err := newSliceSource(ids, vectors)
	if err != nil {
		t.Fatal(err)
	}
	c, err := Clusters(context.Background(), source, opts)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func membership(c *Clustering) [][]string {
	var out [][]string
	for _, k := range c.Clusters {
		out = append(out, k.Members)
	}
	return out
}

// naiveClusters is the definition: a matrix of all distances, and again and
// again the least mean of a block of it.
func naiveClusters(ids []string, vectors [][]float32, threshold float64) [][]string {
	n := len(ids)
	matrix := make([][]float64, n)
	for i := range n {
		matrix[i] = make([]float64, n)
		for j := range n {
			product, a, b := 0.0, 0.0, 0.0
			for d := range vectors[i] {
				x, y := float64(vectors[i][d]), float64(vectors[j][d])
				product, a, b = product+x*y, a+x*x, b+y*y
			}
			matrix[i][j] = 1 - product/math.Sqrt(a)/math.Sqrt(b)
		}
	}
	clusters := make([][]int, n)
	for i := range n {
		clusters[i] = []int{i}
	}
	for {
		least, a, b := threshold, -1, -1
		for i := range clusters {
			for j := range i {
				sum := 0.0
				for _, x := range clusters[i] {
					for _, y := range clusters[j] {
						sum += matrix[x][y]
					}
				}
				if mean := sum / float64(len(clusters[i])*len(clusters[j])); mean <= least {
					least, a, b = mean, j, i
				}
			}
		}
		if a < 0 {
			break
		}
		clusters[a] = append(clusters[a], clusters[b]...)
		clusters = slices.Delete(clusters, b, b+1)
	}
	out := make([][]string, len(clusters))
	for i, members := range clusters {
		for _, m := range members {
			out[i] = append(out[i], ids[m])
		}
		slices.Sort(out[i])
	}
	slices.SortFunc(out, slices.Compare)
	return out
}

// blobs makes vectors around a few centres.
func blobs(r *rand.Rand, n, dim, centres int, spread float64) ([]string, [][]float32, []int) {
	ids, vectors := randomVectors(r, n, dim)
	_, middle := randomVectors(r, centres, dim)
	of := make([]int, n)
	for i, v := range vectors {
		of[i] = r.IntN(centres)
		for j := range v {
			v[j] = middle[of[i]][j] + float32(spread)*v[j]
		}
	}
	return ids, vectors, of
}

func TestClustersMatchDefinition(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 1))
	for _, n := range []int{0, 1, 2, 3, 17, 60, 110} {
		for _, dim := range []int{2, 5, 16} {
			for _, spread := range []float64{0.2, 0.7, 3} {
				for _, threshold := range []float64{0.05, 0.3, 0.8, 2} {
					ids, vectors, _ := blobs(r, n, dim, 5, spread)
					for i := range n / 4 { // some copies
						copy(vectors[i], vectors[i/2])
					}
					got := membership(clustersOf(t, ids, vectors, &ClusterOptions{Threshold: threshold}))
					if want := naiveClusters(ids, vectors, threshold); len(got)+len(want) > 0 && !reflect.DeepEqual(got, want) {
						t.Fatalf("n=%d dim=%d spread=%v threshold=%v: %d clusters, want %d\n%v\n%v", n, dim, spread, threshold, len(got), len(want), got, want)
					}
				}
			}
		}
	}
}

// With and without the list of near pairs the clusters are the same.
func TestClustersWithoutPairs(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 2))
	ids, vectors, _ := blobs(r, 900, 3, 4, 0.4)
	source, err := newSliceSource(ids, vectors)
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	rows, err := newRowSet(ctx, source)
	if err != nil {
		t.Fatal(err)
	}
	run := func(near *nearPairs) [][]int32 {
		c := newAgglomeration(rows, near, 0.3)
		if err := c.run(ctx, nil); err != nil {
			t.Fatal(err)
		}
		return c.clusters()
	}
	near, err := rows.pairsWithin(ctx, 0.3, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !near.kept {
		t.Fatal("too many pairs for this test")
	}
	with := run(near)
	near.kept = false
	without := run(near)
	if !reflect.DeepEqual(with, without) || len(with) < 3 {
		t.Errorf("%d clusters with pairs, %d without", len(with), len(without))
	}
	// More than pairsPerRow for each row.
	for _, v := range vectors {
		v[0] += 20
	}
	if rows, err = newRowSet(ctx, source); err != nil {
		t.Fatal(err)
	}
	if near, err = rows.pairsWithin(ctx, 0.3, nil); err != nil || near.kept || near.parts() != 1 {
		t.Errorf("dense vectors: kept %v, %d parts, %v", near.kept, near.parts(), err)
	}
	if c := clustersOf(t, ids, vectors, nil); len(c.Clusters) != 1 || c.Chunks != 900 {
		t.Errorf("dense vectors: %d clusters", len(c.Clusters))
	}
}

func TestClustersAreDeterministic(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 3))
	ids, vectors, _ := blobs(r, 400, 8, 20, 0.5)
	for i := range 40 {
		copy(vectors[i], vectors[i+40])
	}
	for i := range vectors { // ties: few different values
		for j := range vectors[i] {
			vectors[i][j] = float32(math.Round(float64(vectors[i][j])))
		}
		vectors[i][0] += 5
	}
	var want []byte
	for _, procs := range []int{1, 2, 7} {
		old := runtime.GOMAXPROCS(procs)
		var b bytes.Buffer
		err := clustersOf(t, ids, vectors, nil).WriteJSON(&b)
		runtime.GOMAXPROCS(old)
		if err != nil {
			t.Fatal(err)
		}
		if want == nil {
			want = b.Bytes()
		}
		if !bytes.Equal(b.Bytes(), want) {
			t.Errorf("GOMAXPROCS=%d: other clusters", procs)
		}
		r.Shuffle(len(ids), func(i, j int) {
			ids[i], ids[j] = ids[j], ids[i]
			vectors[i], vectors[j] = vectors[j], vectors[i]
		})
	}
}

func TestClusterDescription(t *testing.T) {
	ids := []string{"d", "c", "b", "a", "e"}
	vectors := [][]float32{{2, 0}, {12, 5}, {12, -5}, {0, -5}, {1, 0}}
	texts := map[string]string{
		"d": "The kite flies. Kite!", "c": "A kite needs wind", "b": "Wind, the wind: 2024", "a": "Boats", "e": "Kites, the kite and wind",
	}
	c := clustersOf(t, ids, vectors, &ClusterOptions{Text: func(id string) string { return texts[id] }, Keywords: 3})
	if c.Policy != PolicyClusters || c.Threshold != 0.3 || c.Dimension != 2 || c.Chunks != 5 || len(c.Clusters) != 2 {
		t.Fatalf("clusters %+v", c)
	}
	// a: (0, −1), 8/13 from b. The others: their centroid is (1, 0) and so are d
	// and e, and c and b are 1/13 from it.
	a, b := c.Clusters[0], c.Clusters[1]
	if !reflect.DeepEqual(a, Cluster{Members: []string{"a"}, Centroid: []float32{0, -1}, Medoid: "a", Keywords: []string{"boats"}}) {
		t.Errorf("cluster %+v", a)
	}
	if !reflect.DeepEqual(b.Members, []string{"b", "c", "d", "e"}) || b.Medoid != "d" || !close9(b.Radius, 1./13) ||
		!close9(float64(b.Centroid[0]), 1) || !close9(float64(b.Centroid[1]), 0) {
		t.Errorf("cluster %+v", b)
	}
	// "kite" is in 3 of 5 chunks and "the" and "wind" too; idf is the same.
	if want := []string{"kite", "the", "wind"}; !reflect.DeepEqual(b.Keywords, want) {
		t.Errorf("keywords %q, want %q", b.Keywords, want)
	}
	c = clustersOf(t, ids, vectors, &ClusterOptions{
		Text: func(id string) string { return texts[id] }, Terms: strings.Fields,
		IDF: func(term string) float64 { return float64(len(term)) - 4 },
	})
	if got := c.Clusters[1].Keywords; !reflect.DeepEqual(got, []string{"Kites,", "flies.", "Kite!", "Wind,", "needs", "wind:"}) {
		t.Errorf("keywords %q", got)
	}
	// Opposite vectors cancel out.
	c = clustersOf(t, []string{"a", "b"}, [][]float32{{1, 0}, {-1, 0}}, &ClusterOptions{Threshold: 2})
	if !reflect.DeepEqual(c.Clusters, []Cluster{{Members: []string{"a", "b"}, Centroid: []float32{0, 0}, Medoid: "a", Radius: 1, Keywords: []string{}}}) {
		t.Errorf("clusters %+v", c.Clusters)
	}
}

func TestWords(t *testing.T) {
	for text, want := range map[string][]string{
		"":                        nil,
		"The cat-flap IS 2024 v2": {"the", "cat", "flap"},
		"Größe über x1y":          {"größe", "über", "x1y"},
		"混合检索abc 故":               {"混合", "合检", "检索", "abc"},
	} {
		if got := Words(text); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestClustersErrors(t *testing.T) {
	ctx := context.Background()
	for _, c := range []struct {
		id   string
		v    []float32
		opts *ClusterOptions
		want string
	}{
		{"b", []float32{1, 0}, &ClusterOptions{Threshold: -1, Keywords: -1}, "Threshold is -1, want 0 for the default or a distance up to 2\ninvalid configuration: Keywords is -1"},
		{"b", []float32{1, 0}, &ClusterOptions{Threshold: math.NaN()}, "Threshold is NaN"},
		{"b", []float32{0, 0}, nil, `row 1 (chunk "b") is the zero vector`},
		{"a", []float32{1, 0}, nil, `chunk ID "a" is at row 0 and at row 1`},
		{"b\xff", []float32{1, 0}, nil, `chunk ID "b\xff" at row 1 is not UTF-8`},
	} {
		source, err := newSliceSource([]string{"a", c.id}, [][]float32{{1, 1}, c.v})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Clusters(ctx, source, c.opts); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %q", err, c.want)
		}
	}
	r := rand.New(rand.NewPCG(7, 4))
	ids, vectors, _ := blobs(r, 2000, 8, 3, 0.3)
	source, err := newSliceSource(ids, vectors)
	if err != nil {
		t.Fatal(err)
	}
	// Cancelled at the first, a middle and a late call of Progress.
	for _, at := range []int{1, 500, 990} {
		ctx, cancel := context.WithCancel(ctx)
		last := 0
		_, err := Clusters(ctx, source, &ClusterOptions{Progress: func(done, total int) {
			if done <= last || total != progressTotal {
				t.Errorf("progress %d of %d after %d", done, total, last)
			}
			if last = done; done >= at {
				cancel()
			}
		}})
		cancel()
		if !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled at %d: error %v", at, err)
		}
	}
}

func TestClusteringFile(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 5))
	ids, vectors, _ := blobs(r, 60, 4, 6, 0.3)
	ids[0] = "<a> \"&\" 故\u2028"
	c := clustersOf(t, ids, vectors, &ClusterOptions{Text: func(id string) string { return "text of " + id }})
	var b bytes.Buffer
	if err := c.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	if lines := bytes.Count(b.Bytes(), []byte("\n")); lines != len(c.Clusters)+1 {
		t.Errorf("%d lines for %d clusters", lines, len(c.Clusters))
	}
	got, err := ReadClustering(bytes.NewReader(b.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, c) {
		t.Error("read back differently")
	}
	for end := range b.Len() - 1 {
		if _, err := ReadClustering(bytes.NewReader(b.Bytes()[:end])); err == nil {
			t.Fatalf("no error when cut after %d bytes", end)
		}
	}
	empty := clustersOf(t, nil, nil, nil)
	b.Reset()
	if err := empty.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	if got, err := ReadClustering(&b); err != nil || !reflect.DeepEqual(got, empty) {
		t.Errorf("no clusters: %+v, %v", got, err)
	}

	const good = `{"policy":"cluster_shadow_pre_v1","threshold":0.3,"dimension":1,"chunks":2,"clusters":[
{"members":["a"],"centroid":[1],"medoid":"a","radius":0,"keywords":[]},
{"members":["b"],"centroid":[-1],"medoid":"b","radius":0,"keywords":[]}]}`
	if _, err := ReadClustering(strings.NewReader(good)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ old, new, want string }{
		{"shadow_pre_v1", "v2", `stale index: they were made by "cluster_v2" and this program reads "cluster_shadow_pre_v1": cluster again`},
		{`"chunks"`, `"chnks"`, `unknown field "chnks"`},
		{"0.3", "0", "threshold 0, dimension 1 or"},
		{`"chunks":2`, `"chunks":3`, "there are 2 chunks in clusters, want 3"},
		{`["a"]`, `[]`, "cluster 0 has no members"},
		{`["a"]`, `[""]`, "cluster 0: empty chunk ID"},
		{`["b"]`, `["a"]`, `chunk "a" is in cluster 0 and in cluster 1`},
		{`["a"],"centroid":[1],"medoid":"a"`, `["z"],"centroid":[1],"medoid":"z"`, "members or clusters are not in order"},
		{`"medoid":"a"`, `"medoid":"b"`, `cluster 0: the medoid "b" is no member`},
		{"[1]", "[1,2]", "a centroid of 2 dimensions, want 1"},
		{"[1]", "[3]", "the centroid has the value 3"},
		{`"radius":0`, `"radius":-1`, "cluster 0 has radius -1"},
		{"]}]}", "]}]}x", "something follows the JSON value"},
	} {
		_, err := ReadClustering(strings.NewReader(strings.Replace(good, c.old, c.new, 1)))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.new, err, c.want)
		}
	}
}

func FuzzReadClustering(f *testing.F) {
	f.Add(`{"policy":"cluster_shadow_pre_v1","threshold":0.3,"dimension":1,"chunks":1,"clusters":[{"members":["a"],"centroid":[1],"medoid":"a","radius":0,"keywords":["x"]}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		c, err := ReadClustering(strings.NewReader(text))
		if err != nil {
			return
		}
		var b bytes.Buffer
		if err := c.WriteJSON(&b); err != nil {
			t.Fatal(err)
		}
		if again, err := ReadClustering(bytes.NewReader(b.Bytes())); err != nil || len(again.Clusters) != len(c.Clusters) {
			t.Errorf("written and read: %v", err)
		}
	})
}

func TestMeasureClusters(t *testing.T) {
	cluster := func(members string) Cluster { return Cluster{Members: strings.Fields(members)} }
	labels := func(text string) map[string]string {
		m := map[string]string{}
		for _, f := range strings.Fields(text) {
			id, label, _ := strings.Cut(f, "=")
			m[id] = label
		}
		return m
	}
	ln2, ln3 := math.Log(2), math.Log(3)
	for _, c := range []struct {
		name     string
		clusters []Cluster
		labels   string
		want     ClusterQuality
	}{
		{"perfect", []Cluster{cluster("a b"), cluster("c")}, "a=x b=x c=y", ClusterQuality{3, 2, 2, 1, 1, 1, 1}},
		{"one of each", []Cluster{cluster("a b")}, "a=x b=x", ClusterQuality{2, 1, 1, 1, 1, 1, 1}},
		{"one cluster", []Cluster{cluster("a b c d")}, "a=x b=x c=y d=y", ClusterQuality{4, 1, 2, 0, 0.5, 1, 2. / 3}},
		{"singletons", []Cluster{cluster("a"), cluster("b"), cluster("c"), cluster("d")}, "a=x b=x c=y d=y",
			// I = H(labels) = ln 2, H(clusters) = 2 ln 2.
			ClusterQuality{4, 4, 2, 2. / 3, 1, 0.5, 2. / 3}},
		{"independent", []Cluster{cluster("a c"), cluster("b d")}, "a=x b=x c=y d=y", ClusterQuality{4, 2, 2, 0, 0.5, 0.5, 0.5}},
		{"mixed", []Cluster{cluster("a b c"), cluster("d e f")}, "a=x b=x c=y d=y e=y f=y",
			// I = 1/3 ln 2 + 1/6 ln(1/2) + 1/2 ln(3/2); H = ln 2 and ln 3 − 2/3 ln 2.
			// Precision (2·2/3 + 1/3 + 3)/6; recall (2 + 1/4 + 3·3/4)/6.
			ClusterQuality{6, 2, 2, (ln2/3 - ln2/6 + (ln3-ln2)/2) / ((ln2 + ln3 - 2*ln2/3) / 2), 14. / 18, 4.5 / 6, 2 * (14. / 18) * 0.75 / (14./18 + 0.75)}},
		{"some without label", []Cluster{cluster("a b u"), cluster("c v"), cluster("w")}, "a=x b=x c=y", ClusterQuality{3, 2, 2, 1, 1, 1, 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := MeasureClusters(c.clusters, labels(c.labels))
			if err != nil {
				t.Fatal(err)
			}
			w := c.want
			if got.Chunks != w.Chunks || got.Clusters != w.Clusters || got.Labels != w.Labels || !close9(got.NMI, w.NMI) ||
				!close9(got.BCubedPrecision, w.BCubedPrecision) || !close9(got.BCubedRecall, w.BCubedRecall) || !close9(got.BCubedF, w.BCubedF) {
				t.Errorf("got  %+v\nwant %+v", *got, w)
			}
		})
	}
	if _, err := MeasureClusters([]Cluster{cluster("a")}, labels("a=x z=y b=y")); err == nil || !strings.Contains(err.Error(), `chunk "b" has the label "y" and is in no cluster`) {
		t.Errorf("error %v", err)
	}
	if _, err := MeasureClusters([]Cluster{cluster("a")}, nil); err == nil {
		t.Error("no error without labels")
	}
}

func TestReadLabels(t *testing.T) {
	for _, text := range []string{"chunk_id,label\na,x\n\"b,c\",y\n", "\uFEFFid,label\r\na,x\r\n\"b,c\",y", "a,x\n\"b,c\",y\n"} {
		got, err := ReadLabels(strings.NewReader(text))
		if err != nil || !reflect.DeepEqual(got, map[string]string{"a": "x", "b,c": "y"}) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{
		"a\n":        "line 1: there are 1 columns, want a chunk ID and its label",
		"a,x\n,y\n":  "line 2, column 1: empty chunk ID",
		"a,\n":       `line 1, column 2: the label is empty; leave the line out if chunk "a" has none`,
		"a,x\na,y\n": `line 2, column 1: chunk "a" has a label already`,
		"a,\xff\n":   "line 1, column 2: it is not UTF-8",
		"a,\"x":      "line 1, column ",
	} {
		if _, err := ReadLabels(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
}

func ExampleClusters() {
	ids := []string{"kites", "sails", "soup"}
	vectors := [][]float32{{0.9, 0.1}, {0.8, 0.3}, {0.1, 0.9}}
	source := exampleVectors{ids, vectors}
	c, err := Clusters(context.Background(), source, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, k := range c.Clusters {
		fmt.Printf("%v medoid %s radius %.3f\n", k.Members, k.Medoid, k.Radius)
	}
	// Output:
	// [kites sails] medoid kites radius 0.008
	// [soup] medoid soup radius 0.000
}

// exampleVectors are vectors in memory.
type exampleVectors struct {
	ids     []string
	vectors [][]float32
}

func (v exampleVectors) Len() int                           { return len(v.ids) }
func (v exampleVectors) Dimension() int                     { return 2 }
func (v exampleVectors) ID(row int) string                  { return v.ids[row] }
func (v exampleVectors) Row(row int, _ []float32) []float32 { return v.vectors[row] }

var benchClusters *Clustering

func BenchmarkClusters(b *testing.B) {
	for _, kind := range []string{"clustered", "unclustered"} {
		for _, n := range []int{500, 2000} {
			b.Run(fmt.Sprintf("%s/chunks=%d", kind, n), func(b *testing.B) {
				centres, spread := n/40, 0.5
				if kind == "unclustered" {
					centres, spread = 1, 100
				}
				ids, vectors, _ := blobs(rand.New(rand.NewPCG(1, 1)), n, 384, centres, spread)
				for b.Loop() {
					benchClusters = clustersOf(b, ids, vectors, nil)
				}
				b.ReportMetric(float64(len(benchClusters.Clusters)), "clusters")
			})
		}
	}
}
