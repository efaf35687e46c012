package mapmatched

import (
	"bytes"
	"container/heap"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"testing"
)

// benchGraph joins nodes at random by edges with weights U(low, high).
func benchGraph(tb testing.TB, nodes, edges int, low, high float64) ([]Edge, *Graph) {
	tb.Helper()
	r := rand.New(rand.NewPCG(1, 51))
	list := make([]Edge, edges)
	for i := range list {
		list[i] = Edge{From: chunkID(r.IntN(nodes)), To: chunkID(r.IntN(nodes)), Weight: low + (high-low)*r.Float64()}
	}
	ids := make([]string, nodes)
	for i := range ids {
		ids[i] = chunkID(i)
	}
	return list, mustGraph(tb, list, &GraphOptions{Nodes: ids, MaximumDistance: 4})
}

func chunkID(i int) string { return fmt.Sprintf("chunk-%05d", i) }

// benchTurns draws candidates anywhere in the graph, best first, which is the
// hardest case for the searches: none is near another.
func benchTurns(turns, candidates, nodes int) [][]Candidate {
	r := rand.New(rand.NewPCG(2, 52))
	list := make([][]Candidate, turns)
	for t := range list {
		for _, i := range r.Perm(nodes)[:candidates] {
			list[t] = append(list[t], Candidate{ChunkID: chunkID(i), Score: r.NormFloat64()})
		}
		slices.SortFunc(list[t], func(a, b Candidate) int { return compareFloats(b.Score, a.Score) })
	}
	return list
}

// reach is the mean number of nodes that a search from a node can come to.
func reach(tb testing.TB, g *Graph) float64 {
	tb.Helper()
	total, nodes := 0, 0
	for v := 0; v < len(g.ids); v += max(1, len(g.ids)/200) {
		near, err := g.Neighborhood(tb.Context(), g.ids[v], math.Inf(1))
		if err != nil {
			tb.Fatal(err)
		}
		total += len(near)
		nodes++
	}
	return float64(total) / float64(nodes)
}

func feed(tb testing.TB, s *Session, turns [][]Candidate) {
	for _, turn := range turns {
		if _, err := s.Observe(tb.Context(), "", turn); err != nil {
			tb.Fatal(err)
		}
	}
}

// Cost of a turn by how many there were before it. It has to be flat.
func BenchmarkTurn(b *testing.B) {
	const nodes = 10_000
	_, g := benchGraph(b, nodes, 50_000, 0.5, 3.5)
	turns := benchTurns(256, 20, nodes)
	at := func(i int) [][]Candidate { return turns[i%256 : i%256+1] }
	for _, before := range []int{10, 100, 1_000, 10_000} {
		b.Run(fmt.Sprint("at=", before), func(b *testing.B) {
			s := mustSession(b, nil, g, nil)
			for i := range before {
				feed(b, s, at(i))
			}
			saved := []byte(savedBytes(b, s))
			timed := max(10, before/10) // turns an op
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				s, err := RestoreSession(bytes.NewReader(saved), nil, g, nil)
				if err != nil {
					b.Fatal(err)
				}
				runtime.GC()
				b.StartTimer()
				for i := range timed {
					feed(b, s, at(before+i))
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*timed), "ns/turn")
		})
	}
}

// A turn of 50 candidates on a graph of 10,000 chunks and 50,000 edges, with
// its 2,500 distances.
func BenchmarkLargeGraph(b *testing.B) {
	const nodes = 10_000
	turns := benchTurns(256, 50, nodes)
	for _, high := range []float64{3.5, 1.5} {
		b.Run(fmt.Sprintf("candidates=50/weights=0.5-%v", high), func(b *testing.B) {
			_, g := benchGraph(b, nodes, 50_000, 0.5, high)
			inReach := reach(b, g)
			s := mustSession(b, nil, g, &Config{CandidateLimit: 50})
			feed(b, s, turns[:2])
			i := 0
			b.ReportAllocs()
			for b.Loop() {
				feed(b, s, turns[i%256:i%256+1])
				i++
			}
			b.ReportMetric(inReach, "reach")
		})
	}
	_, g := benchGraph(b, nodes, 50_000, 0.5, 3.5)
	b.Run("candidates=50/distances", func(b *testing.B) {
		d := make([]float64, 2500)
		ids := func(turn []Candidate) []string {
			var list []string
			for _, c := range turn {
				list = append(list, c.ChunkID)
			}
			return list
		}
		from, to := ids(turns[0]), ids(turns[1])
		b.ReportAllocs()
		for b.Loop() {
			if err := g.Distances(b.Context(), from, to, d); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("candidates=50/without searches", func(b *testing.B) {
		s := mustSession(b, nil, maximumOnly(4), &Config{CandidateLimit: 50})
		i := 0
		b.ReportAllocs()
		for b.Loop() {
			feed(b, s, turns[i%256:i%256+1])
			i++
		}
	})
}

// A whole conversation of 200 turns with 100 candidates each.
func BenchmarkDecode(b *testing.B) {
	const nodes = 10_000
	_, g := benchGraph(b, nodes, 50_000, 0.5, 3.5)
	turns := benchTurns(200, 100, nodes)
	cfg := &Config{CandidateLimit: 100}
	s := mustSession(b, nil, g, cfg)
	feed(b, s, turns)
	trellis, err := s.Trellis()
	if err != nil {
		b.Fatal(err)
	}
	b.Run("turns=200/candidates=100/trellis", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := (Viterbi{}).Decode(b.Context(), trellis); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("turns=200/candidates=100/session", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			feed(b, mustSession(b, nil, g, cfg), turns)
		}
	})
}

// 100,000 turns of one conversation, and what memory they take.
func BenchmarkHundredThousandTurns(b *testing.B) {
	const turns = 100_000
	g := walkGraph(b)
	list := make([][]Candidate, 997)
	for i := range list {
		list[i] = walkTurn(3, i, 4)
	}
	for b.Loop() {
		runtime.GC()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		s := mustSession(b, nil, g, nil)
		for i := range turns {
			feed(b, s, list[i%997:i%997+1])
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric((float64(after.HeapAlloc)-float64(before.HeapAlloc))/turns, "heap-B/turn")
		if pages, ok := residentPages(); ok {
			b.ReportMetric(float64(pages*os.Getpagesize())/1e6, "RSS-MB")
		}
		runtime.KeepAlive(s)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*turns), "ns/turn")
}

// residentPages is the resident set of the process, where the system tells.
func residentPages() (int, bool) {
	raw, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, false
	}
	var size, resident int
	if _, err := fmt.Sscan(string(raw), &size, &resident); err != nil {
		return 0, false
	}
	return resident, true
}

// textbook decodes as the algorithm is written down: tables of slices, filled
// from the first turn on at every turn, and Dijkstra's search over maps from
// each candidate of the turn before.
type textbook struct {
	adjacent map[string]map[string]float64
	maximum  float64
}

func newTextbook(edges []Edge, maximum float64) *textbook {
	b := &textbook{map[string]map[string]float64{}, maximum}
	join := func(from, to string, w float64) {
		if b.adjacent[from] == nil {
			b.adjacent[from] = map[string]float64{}
		}
		if old, known := b.adjacent[from][to]; !known || w < old {
			b.adjacent[from][to] = w
		}
	}
	for _, e := range edges {
		join(e.From, e.To, e.Weight)
		join(e.To, e.From, e.Weight)
	}
	return b
}

type textbookItem struct {
	id       string
	distance float64
}

type textbookQueue []textbookItem

func (q textbookQueue) Len() int           { return len(q) }
func (q textbookQueue) Less(i, j int) bool { return q[i].distance < q[j].distance }
func (q textbookQueue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *textbookQueue) Push(x any)        { *q = append(*q, x.(textbookItem)) }
func (q *textbookQueue) Pop() any {
	last := len(*q) - 1
	x := (*q)[last]
	*q = (*q)[:last]
	return x
}

// dijkstra is kinder than the textbook in one way: it stops at the maximum.
func (b *textbook) dijkstra(source string) map[string]float64 {
	distance := map[string]float64{source: 0}
	done := map[string]bool{}
	queue := &textbookQueue{{source, 0}}
	for queue.Len() > 0 {
		at := heap.Pop(queue).(textbookItem)
		if done[at.id] {
			continue
		}
		done[at.id] = true
		for id, w := range b.adjacent[at.id] {
			d := at.distance + w
			if old, seen := distance[id]; d <= b.maximum && (!seen || d < old) {
				distance[id] = d
				heap.Push(queue, textbookItem{id, d})
			}
		}
	}
	return distance
}

func (b *textbook) decode(tb testing.TB, turns [][]Candidate) []string {
	delta := make([][]float64, len(turns))
	psi := make([][]int, len(turns))
	for t, turn := range turns {
		raw := make([]float64, len(turn))
		for x, c := range turn {
			raw[x] = c.Score
		}
		emission, err := Normalize(raw, NormalizeZScore)
		if err != nil {
			tb.Fatal(err)
		}
		delta[t], psi[t] = make([]float64, len(turn)), make([]int, len(turn))
		if t == 0 {
			copy(delta[t], emission)
			continue
		}
		for x := range turn {
			delta[t][x] = math.Inf(-1)
		}
		for y, before := range turns[t-1] {
			distance := b.dijkstra(before.ChunkID)
			for x, c := range turn {
				d, reached := distance[c.ChunkID]
				if !reached {
					d = b.maximum
				}
				if v := delta[t-1][y] - d; v > delta[t][x] {
					delta[t][x], psi[t][x] = v, y
				}
			}
		}
		for x := range turn {
			delta[t][x] += emission[x]
		}
	}
	last := len(turns) - 1
	at := 0
	for x, v := range delta[last] {
		if v > delta[last][at] {
			at = x
		}
	}
	path := make([]string, len(turns))
	for t := last; t >= 0; t-- {
		path[t] = turns[t][at].ChunkID
		at = psi[t][at]
	}
	return path
}

func TestTextbookAgrees(t *testing.T) {
	edges, g := benchGraph(t, 60, 120, 0.5, 3.5)
	turns := benchTurns(40, 12, 60)
	b := newTextbook(edges, 4)
	s := mustSession(t, nil, g, nil)
	for i := range turns {
		feed(t, s, turns[i:i+1])
		if got, want := b.decode(t, turns[:i+1]), s.Path(); !slices.Equal(got, want) {
			t.Fatalf("turn %d: the textbook decodes\n%v\nthe session\n%v", i, got, want)
		}
	}
}

// Turn 200 of a conversation with 50 candidates a turn, as the textbook has it
// and as a session does.
func BenchmarkTurn200(b *testing.B) {
	const nodes = 10_000
	edges, g := benchGraph(b, nodes, 50_000, 0.5, 3.5)
	turns := benchTurns(256, 50, nodes)
	b.Run("textbook", func(b *testing.B) {
		book := newTextbook(edges, 4)
		b.ReportAllocs()
		for b.Loop() {
			book.decode(b, turns[:200])
		}
	})
	b.Run("session", func(b *testing.B) { // turn 200 and those after it
		s := mustSession(b, nil, g, &Config{CandidateLimit: 50})
		feed(b, s, turns[:199])
		i := 199
		b.ReportAllocs()
		for b.Loop() {
			feed(b, s, turns[i%256:i%256+1])
			i++
		}
	})
}
