package graphbuild

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/mapmatched/mmplug/mapmatched"
)

func TestLowestBit(t *testing.T) {
	for x, want := range map[float64]float64{
		1: 1, 3: 1, 6: 2, 0.75: 0.25, 1.0 / 64: 1.0 / 64, 0.1: 0x1p-55, 1e300: math.Ldexp(1, 996-52+1), 5e-324: 5e-324, 0x1p-1060: 0x1p-1060, 1 << 60: 1 << 60,
	} {
		got := lowestBit(x)
		if x == 1e300 { // its odd part is what matters
			if q := x / got; q != math.Trunc(q) || math.Mod(q, 2) != 1 {
				t.Errorf("lowest bit of %v: %v", x, got)
			}
			continue
		}
		if got != want {
			t.Errorf("lowest bit of %v: %v, want %v", x, got, want)
		}
	}
}

func TestLabelSlack(t *testing.T) {
	graph := func(weights ...float64) *mapmatched.Adjacency {
		var edges []mapmatched.Edge
		for i, w := range weights {
			edges = append(edges, mapmatched.Edge{From: "hub", To: string(rune('a' + i)), Weight: w})
		}
		g, err := mapmatched.NewGraph(edges, nil)
		if err != nil {
			t.Fatal(err)
		}
		return g.Adjacency()
	}
	for _, c := range []struct {
		weights []float64
		maximum float64
		exact   bool
	}{
		{nil, 10, true},
		{[]float64{1, 2, 3}, 10, true},
		{[]float64{0.5, 0.25, 100.1}, 10, true}, // the last one is never passed
		{[]float64{0.1}, 10, false},
		{[]float64{0x1p-19}, 16, true},
		{[]float64{0x1p-20}, 16, false}, // 2·16 is 2²⁵ of it
		{[]float64{float64(float32(0.3))}, 10, false},
		{[]float64{5e-324}, 5e-324, false}, // too small for float32
	} {
		s := newLabelSlack(graph(c.weights...), c.maximum)
		if s.exact != c.exact || !c.exact && !(s.build > 0 && s.query > s.build) && c.maximum > 1e-30 {
			t.Errorf("weights %v up to %v: %+v, want exact %t", c.weights, c.maximum, s, c.exact)
		}
	}
}

// TestLabelsSeeTies: two paths whose lengths are the same without rounding and
// not with it. Adding up one of them would be wrong by the last bit.
func TestLabelsSeeTies(t *testing.T) {
	edge := func(a, b string, w float64) mapmatched.Edge { return mapmatched.Edge{From: a, To: b, Weight: w} }
	in := GraphInput{MaximumDistance: 3, Edges: []mapmatched.Edge{
		edge("s", "a", 0.1), edge("a", "b", 0.2), edge("b", "t", 0.3), // 0.6000000000000001
		edge("s", "c", 0.3), edge("c", "d", 0.2), edge("d", "t", 0.1), // 0.6
	}}
	for _, ends := range [][2]string{{"s", "t"}, {"t", "s"}} {
		for _, method := range allMethods {
			g, _ := writeTestGraph(t, in, &WriteGraphOptions{Distances: method})
			var d [1]float64
			if err := g.Distances(t.Context(), ends[:1], ends[1:], d[:]); err != nil || d[0] != 0.6 {
				t.Errorf("%s: %v from %s to %s, want 0.6, error %v", method, d[0], ends[0], ends[1], err)
			}
		}
	}
}

func TestChoiceOfDistances(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 51))
	in := randomInput(r, 400, 1600, weightings[0].draw)
	in.MaximumDistance, in.Directed = 3, false
	sizes := map[DistanceMethod]int64{}
	for _, method := range allMethods {
		g, _ := writeTestGraph(t, in, &WriteGraphOptions{Distances: method})
		sizes[method] = g.Method().Bytes
	}
	if sizes[DistancesLabels] >= sizes[DistancesTable]/2 || sizes[DistancesSearch] != 0 {
		t.Fatalf("sizes %v", sizes)
	}
	for _, c := range []struct {
		limit  int64
		want   DistanceMethod
		reason string
	}{
		{0, DistancesTable, "so the table takes about"},
		{sizes[DistancesTable] * 2, DistancesTable, "so the table takes about"},
		{sizes[DistancesTable] / 2, DistancesLabels, "so a table would take about"},
		{sizes[DistancesLabels], DistancesLabels, "over the limit of"},
		{sizes[DistancesLabels] * 3 / 4, DistancesSearch, "and so do labels"},
		{sizes[DistancesTable] / 40, DistancesSearch, "more than 16 times the limit of"},
	} {
		g, _ := writeTestGraph(t, in, &WriteGraphOptions{TableLimit: c.limit})
		if got := g.Method(); got.Method != c.want || !strings.Contains(got.Reason, c.reason) || math.Abs(got.Reach-400) > 200 {
			t.Errorf("limit %d: %+v, want %s because %s", c.limit, got, c.want, c.reason)
		}
		if err := g.Check(t.Context()); err != nil {
			t.Error(err)
		}
	}
	whole, _ := writeTestGraph(t, in, nil)
	adj := &whole.adj
	if _, _, _, err := buildLabels(t.Context(), adj, false, 3, math.MaxInt64, 1000, nil); !errors.Is(err, errLabelWork) {
		t.Errorf("labels with little work: %v", err)
	}
	if _, _, _, err := buildLabels(t.Context(), adj, false, 3, math.MaxInt64, labelWork, nil); err != nil {
		t.Errorf("labels with the usual work: %v", err)
	}
	g, _ := writeTestGraph(t, GraphInput{Nodes: []string{"a", "b"}}, nil)
	if got := g.Method(); got.Method != DistancesSearch || got.Reason != "there are no edges to search" {
		t.Errorf("without edges: %+v", got)
	}
	huge := in
	huge.MaximumDistance = 1e35
	g, _ = writeTestGraph(t, huge, &WriteGraphOptions{TableLimit: sizes[DistancesTable] / 4})
	if got := g.Method(); got.Method != DistancesSearch || !strings.Contains(got.Reason, "labels need a maximum distance between") {
		t.Errorf("beyond float32: %+v", got)
	}
}

// TestTableEstimate: it is the mean of the sample, stops as soon as the outcome
// is certain and on any number of cores at the same place, and a search that is
// asked for needs none.
func TestTableEstimate(t *testing.T) {
	in := randomInput(rand.New(rand.NewPCG(4, 51)), 500, 2000, weightings[0].draw)
	in.MaximumDistance = 3
	g, _ := writeTestGraph(t, in, &WriteGraphOptions{Distances: DistancesSearch})
	if c := g.Method(); c.Reach != 0 || c.Reason != "a search was asked for" {
		t.Errorf("a search: %+v", c)
	}
	n := g.NumNodes()
	s := mapmatched.NewSearch(n)
	words, reached, batches := 0, 0, estimateSources/estimateBatch
	early, earlyReach := 0, 0
	for i := range estimateSources {
		if err := s.Within(t.Context(), &g.adj, int32(i*n/estimateSources), 3); err != nil {
			t.Fatal(err)
		}
		row := len(s.Settled()) - 1
		words, reached = words+rowWords(row), reached+row
		if i%batches == 0 {
			early, earlyReach = early+rowWords(row), earlyReach+row
		}
	}
	for _, cores := range []int{1, 3, 16} {
		before := runtime.GOMAXPROCS(cores)
		last := 0
		p := newProgress(func(done, total int) {
			if done <= last || done > total {
				t.Errorf("progress %d of %d after %d", done, total, last)
			}
			last = done
		})
		bytes, reach, err := tableBytes(t.Context(), &g.adj, 3, math.MaxInt64, p)
		if want := int64(8*float64(words)*float64(n)/estimateSources) + int64(8*(n+1)); err != nil || bytes != want || reach != float64(reached)/estimateSources || last != progressTotal {
			t.Errorf("%d cores: %d bytes, reach %v, progress %d, error %v, want %d", cores, bytes, reach, last, err, want)
		}
		bytes, reach, err = tableBytes(t.Context(), &g.adj, 3, 100, nil)
		if want := int64(8*float64(early)*float64(n)/estimateBatch) + int64(8*(n+1)); err != nil || bytes != want || reach != float64(earlyReach)/estimateBatch {
			t.Errorf("%d cores: %d bytes, reach %v, error %v when 100 are enough, want %d", cores, bytes, reach, err, want)
		}
		runtime.GOMAXPROCS(before)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := tableBytes(cancelled, &g.adj, 3, math.MaxInt64, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// TestTableLargerThanItsEstimate: the sample misses the few nodes that reach
// many others, so the table is given up while it is written.
func TestTableLargerThanItsEstimate(t *testing.T) {
	var in GraphInput
	id := func(i int) string { return string([]byte{'a' + byte(i/26/26), 'a' + byte(i/26%26), 'a' + byte(i%26)}) }
	for i := range 2000 {
		in.Nodes = append(in.Nodes, id(i))
		if at := i % 2000 * estimateSources % 2000; at >= estimateSources && i > 1 && i < 400 && i%31 != 0 {
			in.Edges = append(in.Edges, mapmatched.Edge{From: id(1), To: id(i), Weight: 0.1})
		}
	}
	g, path := writeTestGraph(t, in, &WriteGraphOptions{Distances: DistancesTable})
	real := g.Method().Bytes
	estimate, _, err := tableBytes(t.Context(), &g.adj, in.MaximumDistance+10, math.MaxInt64, nil)
	if err != nil {
		t.Fatal(err)
	}
	if estimate >= real {
		t.Fatalf("the estimate %d is not below %d: the test tests nothing", estimate, real)
	}
	limit := (estimate + real) / 2
	if _, err := WriteGraph(t.Context(), path+"2", in, &WriteGraphOptions{Distances: DistancesTable, TableLimit: limit}); err == nil || !strings.Contains(err.Error(), "takes more than the limit") {
		t.Errorf("a table over the limit: %v", err)
	}
	auto, _ := writeTestGraph(t, in, &WriteGraphOptions{TableLimit: limit})
	if got := auto.Method(); got.Method != DistancesLabels || !strings.Contains(got.Reason, "so a table takes more than the limit") {
		t.Errorf("chose %+v", got)
	}
	if err := auto.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestWriteGraphIsCancelledInTheMiddle(t *testing.T) {
	in := randomInput(rand.New(rand.NewPCG(2, 52)), 300, 900, weightings[0].draw)
	for _, method := range allMethods {
		path := t.TempDir() + "/g.mmg"
		cancelled := 0
		for looks := 0; ; looks = looks*2 + 1 {
			_, err := WriteGraph(expiring(t.Context(), looks), path, in, &WriteGraphOptions{Distances: method})
			if err == nil {
				break
			}
			cancelled++
			if !errors.Is(err, context.Canceled) || mapmatched.KindOf(err) != mapmatched.KindDeadline {
				t.Fatalf("%s, %d looks: %v", method, looks, err)
			}
		}
		if cancelled < 2 {
			t.Errorf("%s: cancelled %d times", method, cancelled)
		}
	}
}

func TestWriteGraphProgress(t *testing.T) {
	in := randomInput(rand.New(rand.NewPCG(3, 53)), 300, 900, weightings[0].draw)
	for _, method := range []DistanceMethod{DistancesTable, DistancesLabels} {
		last, total := 0, 0
		var steps []string
		opts := WriteGraphOptions{Distances: method, Progress: func(step string, done, all int) {
			if len(steps) == 0 || steps[len(steps)-1] != step {
				steps, last = append(steps, step), 0
			}
			if done <= last || done > all {
				t.Errorf("%s: %s %d of %d after %d", method, step, done, all, last)
			}
			last, total = done, all
		}}
		g, _ := writeTestGraph(t, in, &opts)
		if last != total || total != g.NumNodes() || len(steps) != 2 || steps[0] != "size of a table" {
			t.Errorf("%s: ended at %d of %d after steps %q", method, last, total, steps)
		}
	}
}
