package qdrant_test

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	pb "github.com/qdrant/go-client/qdrant"

	"github.com/mapmatched/mmplug/adapters/qdrant"
	"github.com/mapmatched/mmplug/mapmatched"
)

// neighborPoints are points with vectors of few different values, so that many
// are equally near.
func neighborPoints(n, dimension int, vector string) []*pb.PointStruct {
	r := rand.New(rand.NewPCG(4, 4))
	points := make([]*pb.PointStruct, n)
	for i := range points {
		v := make([]float32, dimension)
		for j := range v {
			v[j] = float32(1 + r.IntN(3))
		}
		vectors := pb.NewVectors(v...)
		if vector != "" {
			vectors = pb.NewVectorsMap(map[string]*pb.Vector{vector: pb.NewVector(v...)})
		}
		points[i] = &pb.PointStruct{Id: pb.NewIDNum(uint64(i + 1)), Vectors: vectors, Payload: map[string]*pb.Value{
			"chunk_id": pb.NewValueString(fmt.Sprintf("c%03d", (i*37)%n)), "text": pb.NewValueString("text"),
		}}
	}
	return points
}

func pointVector(p *pb.PointStruct, name string) []float32 {
	if name == "" {
		return p.GetVectors().GetVector().GetDense().GetData()
	}
	return p.GetVectors().GetVectors().GetVectors()[name].GetDense().GetData()
}

// distance is the right weight, in float64.
func distance(metric pb.Distance, a, b []float32) float64 {
	var dot, aa, bb, sum float64
	for i := range a {
		x, y := float64(a[i]), float64(b[i])
		dot, aa, bb = dot+x*y, aa+x*x, bb+y*y
		if metric == pb.Distance_Manhattan {
			sum += math.Abs(x - y)
		} else {
			sum += (x - y) * (x - y)
		}
	}
	switch metric {
	case pb.Distance_Cosine:
		return 1 - dot/math.Sqrt(aa*bb)
	case pb.Distance_Euclid:
		return math.Sqrt(sum)
	}
	return sum
}

func neighborsByChunk(t *testing.T, edges iter.Seq2[mapmatched.Edge, error]) map[string][]mapmatched.Edge {
	t.Helper()
	lists, previous := map[string][]mapmatched.Edge{}, ""
	for e, err := range edges {
		if err != nil {
			t.Fatal(err)
		}
		if len(lists[e.From]) > 0 && previous != e.From {
			t.Errorf("the edges of %q are not together", e.From)
		}
		previous = e.From
		lists[e.From] = append(lists[e.From], e)
	}
	return lists
}

// TestNeighbors compares with all distances worked out here.
func TestNeighbors(t *testing.T) {
	const n = 70 // more than one page and one batch
	for _, metric := range []pb.Distance{pb.Distance_Cosine, pb.Distance_Euclid, pb.Distance_Manhattan} {
		for _, vector := range []string{"", "named"} {
			t.Run(fmt.Sprintf("%v/%q", metric, vector), func(t *testing.T) {
				s := newGraphServer(t, nil)
				name := s.bare(vector, 3, metric)
				points := neighborPoints(n, 3, vector)
				s.upsert(name, points...)
				g := mustGraph(t, s, name, nil)
				if s.fake != nil {
					s.fake.ResetCalls()
				}
				for _, k := range []int{1, 7, n + 10} {
					lists := neighborsByChunk(t, g.NearestNeighbors(t.Context(), k))
					if len(lists) != n {
						t.Errorf("k=%d: %d chunks have neighbors, want %d", k, len(lists), n)
					}
					for _, p := range points {
						compareNeighbors(t, metric, vector, p, points, lists, k)
					}
				}
				if s.fake == nil {
					return
				}
				// 2 batches for each k, and more where equally near chunks were cut off.
				if calls := s.fake.Calls(); calls["Points/QueryBatch"] < 6 || calls["Points/QueryBatch"] > 6+2*4*3 || calls["Points/Query"] > 0 {
					t.Errorf("calls %v", calls)
				}
			})
		}
	}
}

func compareNeighbors(t *testing.T, metric pb.Distance, vector string, p *pb.PointStruct, points []*pb.PointStruct, lists map[string][]mapmatched.Edge, k int) {
	t.Helper()
	id := p.GetPayload()["chunk_id"].GetStringValue()
	type near struct {
		id     string
		weight float64
	}
	var want []near
	for _, other := range points {
		if to := other.GetPayload()["chunk_id"].GetStringValue(); to != id {
			d := distance(metric, pointVector(p, vector), pointVector(other, vector))
			want = append(want, near{to, math.Round(d*1e6) / 1e6})
		}
	}
	slices.SortFunc(want, func(a, b near) int {
		return cmp.Or(cmp.Compare(a.weight, b.weight), strings.Compare(a.id, b.id))
	})
	want = want[:min(k, len(want))]
	got := lists[id]
	if len(got) != len(want) {
		t.Errorf("k=%d: %q has %d neighbors, want %d", k, id, len(got), len(want))
		return
	}
	seen := map[string]bool{}
	for i, e := range got {
		if e.To == id || seen[e.To] || e.Type != mapmatched.EdgeKNN || math.Abs(e.Weight-want[i].weight) > 2e-6 {
			t.Errorf("k=%d: neighbor %d of %q is %+v, want %+v", k, i, id, e, want[i])
			return
		}
		seen[e.To] = true
		if i > 0 && (got[i-1].Weight > e.Weight || got[i-1].Weight == e.Weight && got[i-1].To > e.To) {
			t.Errorf("k=%d: the neighbors of %q are not in order at %d", k, id, i)
		}
	}
}

// TestNeighborsTies: of many chunks at the same place the first by ID are taken,
// though the server puts others first.
func TestNeighborsTies(t *testing.T) {
	s := newGraphServer(t, nil)
	name := s.bare("", 2, pb.Distance_Euclid)
	var points []*pb.PointStruct
	for i := range 90 {
		points = append(points, &pb.PointStruct{Id: pb.NewIDNum(uint64(i)), Vectors: pb.NewVectors(0, 1), Payload: map[string]*pb.Value{
			"chunk_id": pb.NewValueString(fmt.Sprintf("c%02d", 89-i)), "text": pb.NewValueString("same"),
		}})
	}
	s.upsert(name, points...)
	for id, list := range neighborsByChunk(t, mustGraph(t, s, name, nil).NearestNeighbors(t.Context(), 3)) {
		var got, want []string
		for _, e := range list {
			got = append(got, e.To)
			if e.Weight != 0 {
				t.Errorf("%q to %q: weight %v, want 0", id, e.To, e.Weight)
			}
		}
		for _, to := range []string{"c00", "c01", "c02", "c03"} {
			if to != id && len(want) < 3 {
				want = append(want, to)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("neighbors of %q are %q, want %q", id, got, want)
		}
	}
}

// TestNeighborsTiesBounded: of more equals than are looked at, one more round
// trip a batch is made and no further one.
func TestNeighborsTiesBounded(t *testing.T) {
	s := newGraphServer(t, nil)
	name := s.bare("", 2, pb.Distance_Euclid)
	var points []*pb.PointStruct
	for i := range 1100 {
		points = append(points, &pb.PointStruct{Id: pb.NewIDNum(uint64(i)), Vectors: pb.NewVectors(0, 1), Payload: map[string]*pb.Value{"text": pb.NewValueString("same")}})
	}
	s.upsert(name, points...)
	g := mustGraph(t, s, name, nil)
	if s.fake != nil {
		s.fake.ResetCalls()
	}
	count := 0
	for _, err := range g.NearestNeighbors(t.Context(), 2) {
		if err != nil {
			t.Fatal(err)
		}
		if count++; count == 2*64 {
			break
		}
	}
	if s.fake != nil && s.fake.Calls()["Points/QueryBatch"] != 2 {
		t.Errorf("calls %v, want 2 of QueryBatch for 64 chunks", s.fake.Calls())
	}
}

// TestNeighborsOfZero: a vector of zeros has no angle and is an error that names
// its chunk; one that is at right angles to all others is none.
func TestNeighborsOfZero(t *testing.T) {
	s := newGraphServer(t, nil)
	point := func(n uint64, x, y float32) *pb.PointStruct {
		return &pb.PointStruct{Id: pb.NewIDNum(n), Vectors: pb.NewVectors(x, y), Payload: map[string]*pb.Value{"text": pb.NewValueString("x"), "chunk_id": pb.NewValueString(fmt.Sprint("c", n))}}
	}
	for _, metric := range []pb.Distance{pb.Distance_Cosine, pb.Distance_Euclid} {
		name := s.bare("", 2, metric)
		s.upsert(name, point(1, 1, 0), point(2, 0, 1))
		if lists := neighborsByChunk(t, mustGraph(t, s, name, nil).NearestNeighbors(t.Context(), 1)); len(lists) != 2 {
			t.Errorf("%v: right angles: %v", metric, lists)
		}
		s.upsert(name, point(3, 0, 0))
		var last error
		for _, err := range mustGraph(t, s, name, nil).NearestNeighbors(t.Context(), 1) {
			last = err
		}
		if metric == pb.Distance_Euclid {
			if last != nil {
				t.Errorf("the origin of a plane: %v", last)
			}
			continue
		}
		expect(t, last, mapmatched.KindInvalid, `chunk "c3" is zero`, name)
	}
}

// TestNeighborsLeaveOut: points without the vector, points without a text, and
// points that go away while the listing runs.
func TestNeighborsLeaveOut(t *testing.T) {
	s := newGraphServer(t, nil)
	name := s.bare("v", 2, pb.Distance_Cosine)
	point := func(n uint64, payload string, vectors map[string]*pb.Vector) *pb.PointStruct {
		return &pb.PointStruct{Id: pb.NewIDNum(n), Vectors: pb.NewVectorsMap(vectors), Payload: map[string]*pb.Value{payload: pb.NewValueString("x")}}
	}
	v := func(x, y float32) map[string]*pb.Vector { return map[string]*pb.Vector{"v": pb.NewVector(x, y)} }
	s.upsert(name, point(1, "text", v(1, 0)), point(2, "text", v(0, 1)), point(3, "text", map[string]*pb.Vector{}), point(4, "other", v(1, 1)))
	for n := range uint64(100) { // more than a page and a batch
		s.upsert(name, point(10+n, "text", v(float32(n+1), 1)))
	}
	g := mustGraph(t, s, name, nil)
	deleted := false
	lists := map[string]int{}
	for e, err := range g.NearestNeighbors(t.Context(), 2) {
		if err != nil {
			t.Fatal(err)
		}
		lists[e.From]++
		if e.To == "3" || e.To == "4" {
			t.Errorf("%+v leads to a point that is to be left out", e)
		}
		if !deleted { // one of the second batch, which the first page may have listed already
			deleted = true
			if _, err := s.raw().Delete(t.Context(), &pb.DeletePoints{CollectionName: name, Wait: new(true), Points: pb.NewPointsSelector(pb.NewIDNum(90), pb.NewIDNum(109))}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(lists) != 100 || lists["3"] > 0 || lists["4"] > 0 || lists["90"] > 0 || lists["108"] != 2 {
		t.Errorf("%d chunks have neighbors (%v), want 100", len(lists), lists)
	}
}

// TestNeighborsOfADeletedPoint: a page was listed, and then one of its points
// went away.
func TestNeighborsOfADeletedPoint(t *testing.T) {
	s := newGraphServer(t, nil)
	name := s.bare("", 2, pb.Distance_Cosine)
	points := neighborPoints(64, 2, "") // one page, one batch
	s.upsert(name, points...)
	g := mustGraph(t, s, name, nil)
	gone := points[20].GetPayload()["chunk_id"].GetStringValue()
	if s.fake == nil {
		t.Skip("SKIP: the moment between listing and asking is met in the process only; run it without MMPLUG_QDRANT_URL")
	}
	ctx := &onSecondCall{Context: t.Context(), do: func() {
		if s.fake.Calls()["Points/Scroll"] == 0 || s.fake.Calls()["Points/Delete"] > 0 {
			return
		}
		if _, err := s.raw().Delete(context.Background(), &pb.DeletePoints{CollectionName: name, Wait: new(true), Points: pb.NewPointsSelector(points[20].GetId())}); err != nil {
			t.Error(err)
		}
	}}
	lists := neighborsByChunk(t, g.NearestNeighbors(ctx, 2))
	if _, there := lists[gone]; there || len(lists) != 63 {
		t.Errorf("%d chunks have neighbors, the deleted one among them: %v; want 63 without it", len(lists), there)
	}
	if _, err := s.client.DeleteCollection(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	for _, err := range g.NearestNeighbors(t.Context(), 2) {
		if mapmatched.KindOf(err) != mapmatched.KindNotFound {
			t.Errorf("the collection is gone: error %v, want kind not found", err)
		}
	}
}

// onSecondCall is a context that does something whenever it is asked.
type onSecondCall struct {
	context.Context
	do func()
}

// Err implements context.Context.
func (c *onSecondCall) Err() error {
	c.do()
	return c.Context.Err()
}

// TestNeighborsOfOneChunkInTwoPoints: a chunk is not its own neighbor.
func TestNeighborsOfOneChunkInTwoPoints(t *testing.T) {
	s := newGraphServer(t, nil)
	name := s.bare("", 1, pb.Distance_Euclid)
	for i, id := range []string{"a", "a", "b"} {
		s.upsert(name, &pb.PointStruct{Id: pb.NewIDNum(uint64(i)), Vectors: pb.NewVectors(float32(i)), Payload: map[string]*pb.Value{"chunk_id": pb.NewValueString(id), "text": pb.NewValueString(id)}})
	}
	var got []mapmatched.Edge
	for e, err := range mustGraph(t, s, name, nil).NearestNeighbors(t.Context(), 2) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, e)
	}
	edge := func(from, to string, weight float64) mapmatched.Edge {
		return mapmatched.Edge{From: from, To: to, Weight: weight, Type: mapmatched.EdgeKNN}
	}
	if want := []mapmatched.Edge{edge("a", "b", 2), edge("a", "b", 1), edge("b", "a", 1)}; !slices.Equal(got, want) {
		t.Errorf("edges %v, want %v", got, want)
	}
}

func TestNeighborsRefused(t *testing.T) {
	s := newGraphServer(t, nil)
	dot := s.bare("", 2, pb.Distance_Dot)
	unit := s.writeAs(s.collection(), mapmatched.CorpusIdentity{Dimension: 2, Normalization: "l2"}, &qdrant.WriterOptions{Distance: qdrant.DistanceDot},
		mapmatched.Record{Chunk: mapmatched.Chunk{ID: "a", Text: "a"}, Vector: []float32{1, 0}},
		mapmatched.Record{Chunk: mapmatched.Chunk{ID: "b", Text: "b"}, Vector: []float32{0.6, 0.8}},
	)
	for _, c := range []struct {
		collection string
		k          int
		want       string
	}{
		{dot, 1, "unit length"},
		{unit, 0, "0 neighbors"},
		{unit, -1, "-1 neighbors"},
		{unit, 10_001, "want 1 to 10000"},
	} {
		count := 0
		for _, err := range mustGraph(t, s, c.collection, nil).NearestNeighbors(t.Context(), c.k) {
			count++
			if mapmatched.KindOf(err) != mapmatched.KindInvalid || !strings.Contains(err.Error(), c.want) {
				t.Errorf("k=%d: error %v, want %q", c.k, err, c.want)
			}
		}
		if count != 1 {
			t.Errorf("k=%d: %d edges and errors, want one error", c.k, count)
		}
	}
	for id, list := range neighborsByChunk(t, mustGraph(t, s, unit, nil).NearestNeighbors(t.Context(), 5)) {
		if len(list) != 1 || math.Abs(list[0].Weight-0.4) > 1e-6 {
			t.Errorf("neighbors of %q: %v, want one at 0.4", id, list)
		}
	}
}
