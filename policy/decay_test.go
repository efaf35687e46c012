package policy

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/mapmatched/mmplug/mapmatched"
)

// edgeSeq yields edges as an EdgeLister does.
func edgeSeq(edges ...mapmatched.Edge) iter.Seq2[mapmatched.Edge, error] {
	return func(yield func(mapmatched.Edge, error) bool) {
		for _, e := range edges {
			if !yield(e, nil) {
				return
			}
		}
	}
}

func mustEdgeList(t testing.TB, directed bool, edges ...mapmatched.Edge) *EdgeList {
	t.Helper()
	l, err := NewEdgeList(edgeSeq(edges...), directed)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func mustExpand(t testing.TB, g Adjacency, roots []string, d Decay, opts *ExpandOptions) []Reached {
	t.Helper()
	reached, err := Expand(t.Context(), g, roots, d, opts)
	if err != nil {
		t.Fatal(err)
	}
	return reached
}

// goldenEdges are the edges of the golden graph of twelve chunks:
//
//	a –next– b –next– c –next– d –next– e
//	a –parent– f –parent– g –next– l –parent– c
//	a –link– h –link– i
//	a –link– j –parent– f,  j –next– k
func goldenEdges() []mapmatched.Edge {
	var edges []mapmatched.Edge
	for _, e := range [][3]string{
		{"a", "b", "next"}, {"b", "c", "next"}, {"c", "d", "next"}, {"d", "e", "next"},
		{"a", "f", "parent"}, {"f", "g", "parent"}, {"g", "l", "next"}, {"c", "l", "parent"},
		{"a", "h", "link"}, {"h", "i", "link"},
		{"a", "j", "link"}, {"f", "j", "parent"}, {"j", "k", "next"},
	} {
		edges = append(edges, mapmatched.Edge{From: e[0], To: e[1], Weight: 1, Type: mapmatched.EdgeType(e[2])})
	}
	return edges
}

// goldenDecay keeps 0.9 over a parent edge, 0.2 over a link and 0.7 over any
// other, over three edges, down to 0.05.
func goldenDecay(version string) Decay {
	d := DefaultDecay()
	d.Version = version
	d.Weights = map[string]float64{"parent": 0.9, "link": 0.2}
	return d
}

// goldenReached is what is reached from a, worked out by hand. The products are
// those of float64: 0.7·0.7 is 0.48999999999999994, and that times 0.7 is
// 0.3429999999999999.
//
//	1 hop:  b 0.7 (next)   f 0.9 (parent)   h 0.2 (link)   j 0.2 (link)
//	2 hops: c = b·0.7   g = f·0.9 = 0.81   k = j·0.7 = 0.14
//	        i = h·0.2 = 0.04 is below 0.05 and cut off
//	3 hops: d = c·0.7   l = max(g·0.7, c·0.9) = max(0.567, 0.441)
//	4 hops: e is too far
//
// decay_exact_v1 differs at j, where a–f–j is 0.81 in 2 hops, and at k behind
// it: 0.81·0.7 = 0.567 in 3 hops.
func goldenReached(version string) []Reached {
	j, k := Reached{"j", 0.2, 1, "a"}, Reached{"k", 0.13999999999999999, 2, "a"}
	if version == DecayExactV1 {
		return []Reached{{"a", 1, 0, "a"}, {"f", 0.9, 1, "a"}, {"g", 0.81, 2, "a"}, {"j", 0.81, 2, "a"}, {"b", 0.7, 1, "a"},
			{"k", 0.567, 3, "a"}, {"l", 0.567, 3, "a"}, {"c", 0.48999999999999994, 2, "a"}, {"d", 0.3429999999999999, 3, "a"}, {"h", 0.2, 1, "a"}}
	}
	return []Reached{{"a", 1, 0, "a"}, {"f", 0.9, 1, "a"}, {"g", 0.81, 2, "a"}, {"b", 0.7, 1, "a"}, {"l", 0.567, 3, "a"},
		{"c", 0.48999999999999994, 2, "a"}, {"d", 0.3429999999999999, 3, "a"}, {"h", 0.2, 1, "a"}, j, k}
}

func TestExpandGoldenGraph(t *testing.T) {
	edges, r := goldenEdges(), rand.New(rand.NewPCG(1, 2))
	for _, version := range []string{DecayV1, DecayExactV1} {
		want := goldenReached(version)
		for range 20 {
			r.Shuffle(len(edges), func(i, j int) { edges[i], edges[j] = edges[j], edges[i] })
			if got := mustExpand(t, mustEdgeList(t, false, edges...), []string{"a"}, goldenDecay(version), nil); !reflect.DeepEqual(got, want) {
				t.Fatalf("%s:\n got %v\nwant %v", version, got, want)
			}
		}
	}
}

func TestCompareDecayReportsWhereTheTwoDiffer(t *testing.T) {
	g := mustEdgeList(t, false, goldenEdges()...)
	got, err := CompareDecay(t.Context(), g, []string{"a"}, goldenDecay(DecayV1), &ExpandOptions{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	want := []DecayDifference{{"j", 0.2, 1, 0.81, 2}, {"k", 0.13999999999999999, 2, 0.567, 3}}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	uniform := DefaultDecay()
	if got, err = CompareDecay(t.Context(), g, []string{"a"}, uniform, nil); err != nil || len(got) != 0 {
		t.Errorf("with equal weights they differ at %v (%v)", got, err)
	}
	onlyJ := &ExpandOptions{Filter: func(id string) bool { return id != "k" }}
	if got, err = CompareDecay(t.Context(), g, []string{"a"}, goldenDecay(DecayV1), onlyJ); err != nil || !slices.Equal(got, want[:1]) {
		t.Errorf("with a filter: %v (%v), want %v", got, err, want[:1])
	}
}

// Above a floor of 0 there are chunks that only decay_exact_v1 reaches.
func TestCompareDecayListsWhatOnlyTheExactFormulaReaches(t *testing.T) {
	edge := func(from, to, kind string) mapmatched.Edge {
		return mapmatched.Edge{From: from, To: to, Weight: 1, Type: mapmatched.EdgeType(kind)}
	}
	g := mustEdgeList(t, true, edge("r", "b", "weak"), edge("r", "a", "strong"), edge("a", "b", "strong"), edge("b", "c", "middling"))
	d := DefaultDecay()
	d.Depth, d.Floor = 3, 0.05
	d.Weights = map[string]float64{"weak": 0.1, "strong": 0.95, "middling": 0.3}
	strong := 0.95 // no constant: products are those of float64
	got, err := CompareDecay(t.Context(), g, []string{"r"}, d, nil)
	want := []DecayDifference{{"b", 0.1, 1, strong * strong, 2}, {"c", 0, -1, strong * strong * 0.3, 3}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v (%v), want %v", got, err, want)
	}
	r := rand.New(rand.NewPCG(23, 29))
	only := 0
	for range 2000 {
		edges, d := randomEdges(r), randomDecay(r)
		d.Version = DecayV1
		g := mustEdgeList(t, false, edges...)
		want := map[string]DecayDifference{}
		for id, byHops := range walkAll(edges, "a", d) {
			w := DecayDifference{ChunkID: id, Hops: -1}
			for hops, decay := range byHops {
				if decay > w.Exact || decay == w.Exact && hops < w.ExactHops {
					w.Exact, w.ExactHops = decay, hops
				}
			}
			want[id] = w
		}
		for _, reached := range mustExpand(t, g, []string{"a"}, d, nil) {
			w := want[reached.ChunkID]
			w.Decay, w.Hops = reached.Decay, reached.Hops
			want[reached.ChunkID] = w
		}
		got, err := CompareDecay(t.Context(), g, []string{"a"}, d, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, difference := range got {
			if difference != want[difference.ChunkID] || difference.Exact == difference.Decay {
				t.Fatalf("got %+v, want %+v\n%+v\n%v", difference, want[difference.ChunkID], d, edges)
			}
			if difference.Hops < 0 {
				only++
			}
			delete(want, difference.ChunkID)
		}
		for _, w := range want {
			if w.Exact != w.Decay {
				t.Fatalf("%+v is missing\n%+v\n%v", w, d, edges)
			}
		}
	}
	if only == 0 {
		t.Error("the exact formula never reached more: the test tests little")
	}
}

// A floor is compared with the product as float64 has it.
func TestFloorComparesTheProductOfFloat64(t *testing.T) {
	chain := mustEdgeList(t, false, mapmatched.Edge{From: "a", To: "b", Weight: 1}, mapmatched.Edge{From: "b", To: "c", Weight: 1}, mapmatched.Edge{From: "c", To: "d", Weight: 1})
	for _, c := range []struct {
		floor float64
		want  int
	}{
		{0.343, 3}, {0.3429999999999999, 4}, // 0.7·0.7·0.7 is just below 0.343
		{0.49, 2}, {0.48999999999999994, 3}, // 0.7·0.7 is just below 0.49
		{0.7, 2},
	} {
		for _, version := range []string{DecayV1, DecayExactV1} {
			d := Decay{Version: version, DefaultWeight: 0.7, Depth: 3, Floor: c.floor}
			if got := mustExpand(t, chain, []string{"a"}, d, nil); len(got) != c.want {
				t.Errorf("%s, floor %v: %v, want %d chunks", version, c.floor, got, c.want)
			}
		}
	}
}

func TestExpandFloorAndDepth(t *testing.T) {
	// A chain of eleven chunks: the decay after n edges is 0.7 to the n.
	var edges []mapmatched.Edge
	for i := range 11 {
		edges = append(edges, mapmatched.Edge{From: fmt.Sprintf("%02d", i), To: fmt.Sprintf("%02d", i+1), Weight: 1, Type: "next"})
	}
	g := mustEdgeList(t, false, edges...)
	for _, c := range []struct {
		name        string
		depth       int
		floor, rest float64
		want        int // chunks beside the root
	}{
		{"three hops of 0.7 are 0.343, above a floor of 0.05", 3, 0.05, 0.7, 3},
		{"the floor binds after eight hops, 0.7^8 = 0.0576, 0.7^9 = 0.0404", 11, 0.05, 0.7, 8},
		{"a decay equal to the floor is not below it", 11, 0.25, 0.5, 2},
		{"a decay just under the floor is", 11, math.Nextafter(0.25, 1), 0.5, 1},
		{"a floor of 0 cuts nothing", 11, 0, 0.7, 11},
		{"a floor of 1 keeps edges that lose nothing", 11, 1, 1, 11},
		{"depth 0 expands nothing", 0, 0, 0.7, 0},
		{"what is too small for a float64 is cut off", 11, 0, 1e-200, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, version := range []string{DecayV1, DecayExactV1} {
				d := Decay{Version: version, DefaultWeight: c.rest, Depth: c.depth, Floor: c.floor}
				got := mustExpand(t, g, []string{"00"}, d, nil)
				if len(got) != c.want+1 {
					t.Errorf("%s: reached %v, want %d chunks beside the root", version, got, c.want)
				}
				if got[0] != (Reached{"00", 1, 0, "00"}) {
					t.Errorf("%s: the root is %v, want decay 1", version, got[0])
				}
			}
		})
	}
}

func TestExpandCutPathDoesNotReach(t *testing.T) {
	// Two hops over links are cut off, so n is first reached with three.
	e := func(from, to, kind string) mapmatched.Edge {
		return mapmatched.Edge{From: from, To: to, Weight: 1, Type: mapmatched.EdgeType(kind)}
	}
	g := mustEdgeList(t, false, e("r", "x", "link"), e("x", "n", "link"), e("r", "a", "next"), e("a", "b", "next"), e("b", "n", "next"))
	d := goldenDecay(DecayV1)
	got := mustExpand(t, g, []string{"r"}, d, nil)
	i := slices.IndexFunc(got, func(r Reached) bool { return r.ChunkID == "n" })
	if i < 0 || got[i] != (Reached{"n", 0.3429999999999999, 3, "r"}) {
		t.Errorf("reached %v, want n with 0.343 over 3 hops", got)
	}
}

func TestExpandFilterAppliesOnEveryHop(t *testing.T) {
	g := mustEdgeList(t, false, goldenEdges()...)
	for _, c := range []struct{ refused, want string }{
		{"b", "afglchjk"}, // c is still reached, over l; that is 4 hops
		{"c", "afgblhjk"},
		{"f", "abcdeglhjk"}, // g is reached from behind, over l
		{"a", ""},
	} {
		opts := &ExpandOptions{Filter: func(id string) bool { return id != c.refused }}
		d := goldenDecay(DecayV1)
		d.Depth = 4
		var got []string
		for _, r := range mustExpand(t, g, []string{"a"}, d, opts) {
			got = append(got, r.ChunkID)
		}
		slices.Sort(got)
		want := []string{}
		for _, r := range c.want {
			want = append(want, string(r))
		}
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("without %s: reached %q, want %q", c.refused, got, want)
		}
	}
}

func TestExpandLimitIsInTotal(t *testing.T) {
	g := mustEdgeList(t, false, goldenEdges()...)
	all := mustExpand(t, g, []string{"a", "h"}, goldenDecay(DecayV1), nil)
	for limit := 1; limit <= len(all)+1; limit++ {
		got := mustExpand(t, g, []string{"a", "h"}, goldenDecay(DecayV1), &ExpandOptions{Limit: limit})
		if want := all[:min(limit, len(all))]; !slices.Equal(got, want) {
			t.Errorf("limit %d: %v, want %v", limit, got, want)
		}
	}
}

func TestExpandSeveralRoots(t *testing.T) {
	e := func(from, to string) mapmatched.Edge {
		return mapmatched.Edge{From: from, To: to, Weight: 1, Type: "next"}
	}
	g := mustEdgeList(t, false, e("q", "m"), e("p", "m"), e("p", "n"))
	got := mustExpand(t, g, []string{"q", "p", "q", "unknown"}, Decay{Version: DecayV1, DefaultWeight: 0.5, Depth: 1}, nil)
	want := []Reached{{"q", 1, 0, "q"}, {"p", 1, 0, "p"}, {"unknown", 1, 0, "unknown"}, {"m", 0.5, 1, "q"}, {"n", 0.5, 1, "p"}}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v: the first root wins ties", got, want)
	}
	if got := mustExpand(t, g, nil, DefaultDecay(), nil); len(got) != 0 {
		t.Errorf("without roots: %v", got)
	}
}

func TestExpandDirected(t *testing.T) {
	g := mustEdgeList(t, true, mapmatched.Edge{From: "a", To: "b", Weight: 1, Type: "link"})
	if got := mustExpand(t, g, []string{"b"}, DefaultDecay(), nil); len(got) != 1 {
		t.Errorf("reached %v against the direction", got)
	}
	if got := mustExpand(t, g, []string{"a"}, DefaultDecay(), nil); len(got) != 2 {
		t.Errorf("reached %v along the direction", got)
	}
}

func TestExpandReadsAGraph(t *testing.T) {
	graph, err := mapmatched.NewGraph(goldenEdges(), nil)
	if err != nil {
		t.Fatal(err)
	}
	l, err := NewEdgeList(graph.Edges(t.Context()), graph.Directed())
	if err != nil {
		t.Fatal(err)
	}
	if got, want := mustExpand(t, l, []string{"a"}, goldenDecay(DecayV1), nil), goldenReached(DecayV1); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

type brokenGraph struct{ err error }

func (g brokenGraph) Links(context.Context, []string) ([][]Link, error) { return nil, g.err }

func TestExpandErrors(t *testing.T) {
	broken := errors.New("store is away")
	if _, err := Expand(t.Context(), brokenGraph{broken}, []string{"a"}, DefaultDecay(), nil); !errors.Is(err, broken) {
		t.Errorf("error %v, want that of the graph", err)
	}
	if _, err := Expand(t.Context(), brokenGraph{}, []string{"a"}, DefaultDecay(), nil); err == nil {
		t.Error("an answer without lists was accepted")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Expand(ctx, mustEdgeList(t, false, goldenEdges()...), []string{"a"}, DefaultDecay(), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
	if _, err := CompareDecay(ctx, mustEdgeList(t, false, goldenEdges()...), []string{"a"}, DefaultDecay(), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
	failing := func(yield func(mapmatched.Edge, error) bool) { yield(mapmatched.Edge{}, broken) }
	if _, err := NewEdgeList(failing, false); !errors.Is(err, broken) {
		t.Errorf("error %v, want that of the lister", err)
	}
	if _, err := NewEdgeList(edgeSeq(mapmatched.Edge{From: "a"}), false); !errors.Is(err, mapmatched.ErrEmptyChunkID) {
		t.Errorf("error %v, want ErrEmptyChunkID", err)
	}
}

// countingGraph counts the questions and refuses to be asked a chunk twice.
type countingGraph struct {
	*EdgeList
	t     *testing.T
	asked map[string]bool
	calls int
}

func (g *countingGraph) Links(ctx context.Context, ids []string) ([][]Link, error) {
	g.calls++
	for _, id := range ids {
		if g.asked[id] {
			g.t.Errorf("asked for %q again", id)
		}
		g.asked[id] = true
	}
	return g.EdgeList.Links(ctx, ids)
}

func TestExpandAsksTheGraphOnceAHop(t *testing.T) {
	g := &countingGraph{mustEdgeList(t, false, goldenEdges()...), t, map[string]bool{}, 0}
	d := goldenDecay(DecayExactV1)
	mustExpand(t, g, []string{"a", "f", "h"}, d, nil)
	if g.calls != d.Depth {
		t.Errorf("%d calls for %d hops from 3 roots", g.calls, d.Depth)
	}
}

// randomEdges are edges of three types between a few chunks.
func randomEdges(r *rand.Rand) []mapmatched.Edge {
	nodes := 2 + r.IntN(6)
	var edges []mapmatched.Edge
	for range r.IntN(3 * nodes) {
		edges = append(edges, mapmatched.Edge{From: string(rune('a' + r.IntN(nodes))), To: string(rune('a' + r.IntN(nodes))), Weight: 1,
			Type: mapmatched.EdgeType([]string{"next", "parent", "link"}[r.IntN(3)])})
	}
	return edges
}

func randomDecay(r *rand.Rand) Decay {
	return Decay{Version: []string{DecayV1, DecayExactV1}[r.IntN(2)], DefaultWeight: 1 - r.Float64(),
		Weights: map[string]float64{"parent": 1 - r.Float64(), "link": 1 - r.Float64()},
		Depth:   r.IntN(5), Floor: []float64{0, 0.05, 0.3}[r.IntN(3)]}
}

// walkAll lists the decay of every path of up to d.Depth edges from a root, by
// brute force: best[chunk][hops] is the largest.
func walkAll(edges []mapmatched.Edge, root string, d Decay) map[string]map[int]float64 {
	best := map[string]map[int]float64{}
	var walk func(at string, decay float64, hops int)
	walk = func(at string, decay float64, hops int) {
		if best[at] == nil {
			best[at] = map[int]float64{}
		}
		best[at][hops] = max(best[at][hops], decay)
		if hops == d.Depth {
			return
		}
		for _, e := range edges {
			for _, ends := range [][2]string{{e.From, e.To}, {e.To, e.From}} {
				if next := decay * d.EdgeWeight(e.Type); ends[0] == at && next >= d.Floor {
					walk(ends[1], next, hops+1)
				}
			}
		}
	}
	walk(root, 1, 0)
	return best
}

func TestExpandAgainstAllPaths(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 11))
	for range 300 {
		edges, d := randomEdges(r), randomDecay(r)
		if len(edges) > 10 {
			d.Depth = min(d.Depth, 3)
		}
		got := mustExpand(t, mustEdgeList(t, false, edges...), []string{"a"}, d, nil)
		want := walkAll(edges, "a", d)
		if len(got) != len(want) {
			t.Fatalf("reached %v, all paths %v", got, want)
		}
		for _, reached := range got {
			decay, hops := 0.0, -1
			for n := 0; n <= d.Depth; n++ {
				value, some := want[reached.ChunkID][n]
				if some && (hops < 0 || d.Version == DecayExactV1 && value > decay) {
					decay, hops = value, n
				}
			}
			if reached.Decay != decay || reached.Hops != hops {
				t.Fatalf("%s: %v, all paths say %v in %d hops (edges %v, %+v)", d.Version, reached, decay, hops, edges, d)
			}
		}
	}
}

func TestDecayIsMonotoneInEveryWeight(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 5))
	for range 300 {
		edges, d := randomEdges(r), randomDecay(r)
		g := mustEdgeList(t, false, edges...)
		// A floor could hand a chunk to a longer path with less decay.
		if d.Version == DecayV1 {
			d.Floor = 0
		}
		before := mustExpand(t, g, []string{"a"}, d, nil)
		raised := d
		raised.Weights = map[string]float64{"parent": d.Weights["parent"], "link": d.Weights["link"]}
		switch r.IntN(3) {
		case 0:
			raised.DefaultWeight += r.Float64() * (1 - d.DefaultWeight)
		case 1:
			raised.Weights["parent"] += r.Float64() * (1 - d.Weights["parent"])
		default:
			raised.Weights["link"] += r.Float64() * (1 - d.Weights["link"])
		}
		after := map[string]float64{}
		for _, reached := range mustExpand(t, g, []string{"a"}, raised, nil) {
			after[reached.ChunkID] = reached.Decay
		}
		for _, reached := range before {
			if now, still := after[reached.ChunkID]; !still || now < reached.Decay {
				t.Fatalf("chunk %s fell from %v to %v (reached %v) when a weight rose\n%+v\n%+v", reached.ChunkID, reached.Decay, now, still, d, raised)
			}
		}
	}
}

func TestDecayFallsWithPathLength(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 17))
	for range 200 {
		d := randomDecay(r)
		d.Depth, d.Floor = 12, 0
		var edges []mapmatched.Edge
		for i := range 12 {
			edges = append(edges, mapmatched.Edge{From: fmt.Sprintf("%02d", i), To: fmt.Sprintf("%02d", i+1), Weight: 1, Type: "next"})
		}
		got := mustExpand(t, mustEdgeList(t, false, edges...), []string{"00"}, d, nil)
		for i := 1; i < len(got); i++ {
			if got[i].Hops < got[i-1].Hops || got[i].Decay > got[i-1].Decay || !(got[i].Decay > 0 && got[i].Decay <= 1) {
				t.Fatalf("%v comes after %v", got[i], got[i-1])
			}
		}
	}
}

func ExampleExpand() {
	edges := func(yield func(mapmatched.Edge, error) bool) {
		_ = yield(mapmatched.Edge{From: "tides", To: "moon", Weight: 1, Type: mapmatched.EdgeLink}, nil) &&
			yield(mapmatched.Edge{From: "moon", To: "phases", Weight: 1, Type: mapmatched.EdgeNext}, nil)
	}
	graph, err := NewEdgeList(edges, false)
	if err != nil {
		fmt.Println(err)
		return
	}
	decay := DefaultDecay()
	decay.Weights = map[string]float64{"link": 0.5}
	reached, err := Expand(context.Background(), graph, []string{"tides"}, decay, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range reached {
		fmt.Printf("%s %.2f after %d edges\n", r.ChunkID, r.Decay, r.Hops)
	}
	// Output:
	// tides 1.00 after 0 edges
	// moon 0.50 after 1 edges
	// phases 0.35 after 2 edges
}
