package qdrant_test

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	pb "github.com/qdrant/go-client/qdrant"
	"google.golang.org/grpc/codes"

	"github.com/mapmatched/mmplug/adapters/qdrant"
	"github.com/mapmatched/mmplug/integration/qdranttest"
	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/mapmatched/adaptertest"
)

// graphServer is the server under test with a client.
type graphServer struct {
	*target
	client *qdrant.Client
}

func newGraphServer(t testing.TB, change func(*qdrant.ClientOptions)) *graphServer {
	t.Helper()
	s := server(t)
	return &graphServer{s, s.client(change)}
}

// faults returns the server in the test; with a real one the test is skipped.
func (s *graphServer) faults() *qdranttest.Server {
	s.t.Helper()
	if s.fake == nil {
		s.t.Skipf("SKIP: faults are not injected into a real server; unset %s to run this", realServer)
	}
	return s.fake
}

// bare makes a collection as somebody else would, with a vector.
func (s *graphServer) bare(vector string, size int, distance pb.Distance) string {
	s.t.Helper()
	params := &pb.VectorParams{Size: uint64(size), Distance: distance}
	if vector != "" {
		return s.create(pb.NewVectorsConfigMap(map[string]*pb.VectorParams{vector: params}), nil)
	}
	return s.create(pb.NewVectorsConfig(params), nil)
}

// writeAs writes records of an identity with the writer.
func (s *graphServer) writeAs(collection string, identity mapmatched.CorpusIdentity, opts *qdrant.WriterOptions, all ...mapmatched.Record) string {
	s.t.Helper()
	w, err := qdrant.NewWriter(s.client, collection, opts)
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := w.WriteCorpus(s.t.Context(), identity, records(all...), nil); err != nil {
		s.t.Fatal(err)
	}
	return collection
}

// graphRecords are the chunks of a graph; an undirected edge is with both ends.
func graphRecords(nodes []string, edges []mapmatched.Edge, directed bool) []mapmatched.Record {
	records := make([]mapmatched.Record, len(nodes))
	place := map[string]int{}
	for i, id := range nodes {
		place[id] = i
		records[i] = mapmatched.Record{Chunk: mapmatched.Chunk{ID: id, Text: "text of " + id}, Vector: []float32{1}}
	}
	for _, e := range edges {
		r := &records[place[e.From]]
		r.Edges = append(r.Edges, e)
		if !directed && e.From != e.To {
			e.From, e.To = e.To, e.From
			r = &records[place[e.From]]
			r.Edges = append(r.Edges, e)
		}
	}
	return records
}

// foreignPoints are the same as somebody else would write them, under numbers.
func foreignPoints(records []mapmatched.Record) []*pb.PointStruct {
	points := make([]*pb.PointStruct, len(records))
	for i, r := range records {
		edges := make([]*pb.Value, len(r.Edges))
		for j, e := range r.Edges {
			edges[j] = pb.NewValueStruct(&pb.Struct{Fields: map[string]*pb.Value{
				"to": pb.NewValueString(e.To), "weight": pb.NewValueDouble(e.Weight), "type": pb.NewValueString(string(e.Type)),
			}})
		}
		points[i] = &pb.PointStruct{
			Id: pb.NewIDNum(uint64(i + 1)), Vectors: pb.NewVectors(r.Vector...),
			Payload: map[string]*pb.Value{
				"chunk_id": pb.NewValueString(r.Chunk.ID), "text": pb.NewValueString(r.Chunk.Text),
				"edges": pb.NewValueList(&pb.ListValue{Values: edges}),
			},
		}
	}
	return points
}

func mustGraph(t testing.TB, s *graphServer, collection string, opts *qdrant.GraphOptions) *qdrant.Graph {
	t.Helper()
	g, err := qdrant.NewGraph(t.Context(), s.client, collection, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.Close() })
	return g
}

func TestGraphConformance(t *testing.T) {
	for _, kind := range []string{"written", "foreign"} {
		t.Run(kind, func(t *testing.T) {
			s := newGraphServer(t, nil)
			collections := map[string]string{} // by spec: its graphs share one
			open := func(s *graphServer, spec adaptertest.GraphSpec) (mapmatched.CorpusGraph, error) {
				name, there := collections[spec.Name]
				opts := &qdrant.GraphOptions{Directed: spec.Directed}
				if kind == "foreign" {
					opts.MaximumDistance = spec.MaximumDistance
				}
				records := graphRecords(spec.Nodes, spec.Edges, spec.Directed)
				switch {
				case there:
				case kind == "foreign":
					name = s.bare("", 1, pb.Distance_Cosine)
					s.upsert(name, foreignPoints(records)...)
				default:
					name = s.writeAs(s.collection(), mapmatched.CorpusIdentity{Dimension: 1, MaximumDistance: spec.MaximumDistance}, nil, records...)
				}
				collections[spec.Name] = name
				return qdrant.NewGraph(t.Context(), s.client, name, opts)
			}
			h := adaptertest.GraphHarness{New: func(spec adaptertest.GraphSpec) (mapmatched.CorpusGraph, error) { return open(s, spec) }}
			if s.fake != nil {
				silent := newGraphServer(t, nil)
				h.Stalled = func(spec adaptertest.GraphSpec) (mapmatched.CorpusGraph, error) {
					spec.Name = "stalled"
					g, err := open(silent, spec)
					for _, method := range []string{"Points/Get", "Points/Scroll"} {
						silent.fake.Inject(qdranttest.Fault{Method: method, Delay: time.Hour})
					}
					return g, err
				}
			}
			adaptertest.Graph(t, h)
		})
	}
}

// chain is n edges of weight 1 in a row, c0 to cn.
func chain(n int) (nodes []string, edges []mapmatched.Edge) {
	nodes = append(nodes, "c0")
	for i := range n {
		nodes = append(nodes, fmt.Sprint("c", i+1))
		edges = append(edges, mapmatched.Edge{From: nodes[i], To: nodes[i+1], Weight: 1, Type: mapmatched.EdgeNext})
	}
	return nodes, edges
}

// TestGraphRoundTrips: never more round trips than hops, also when a ring has
// hundreds of chunks, and none for what was fetched before.
func TestGraphRoundTrips(t *testing.T) {
	s := newGraphServer(t, nil)
	server := s.faults()
	nodes, edges := chain(12)
	for i := range 600 { // a ring that is larger than one page of most things
		nodes = append(nodes, fmt.Sprint("leaf", i))
		edges = append(edges, mapmatched.Edge{From: "c0", To: fmt.Sprint("leaf", i), Weight: 1})
	}
	name := s.writeAs(s.collection(), mapmatched.CorpusIdentity{Dimension: 1, MaximumDistance: 10}, nil, graphRecords(nodes, edges, false)...)
	for _, c := range []struct {
		from, to string
		directed bool
		hops     int
		want     float64
		trips    int
	}{
		{"c1", "c2", false, 1, 1, 1},
		{"c1", "c3", false, 2, 2, 1},
		{"c1", "c4", false, 3, 3, 2},
		{"leaf0", "c7", false, 8, 8, 4},
		{"c2", "c12", false, 10, 10, 5},
		{"c0", "c12", false, 12, 10, 5},
		{"c2", "c5", true, 3, 3, 3},
	} {
		g := mustGraph(t, s, name, &qdrant.GraphOptions{Directed: c.directed})
		server.ResetCalls()
		d := make([]float64, 1)
		for range 2 { // the second time from memory
			if err := g.Distances(t.Context(), []string{c.from}, []string{c.to}, d); err != nil {
				t.Fatal(err)
			}
		}
		calls := server.Calls()
		if d[0] != c.want || calls["Points/Get"] != c.trips || len(calls) != 1 || c.trips > c.hops {
			t.Errorf("%s to %s: distance %v by calls %v, want %v by %d", c.from, c.to, d[0], calls, c.want, c.trips)
		}
		g.Forget()
		if err := g.Distances(t.Context(), []string{c.from}, []string{c.to}, d); err != nil {
			t.Fatal(err)
		}
		if got := server.Calls()["Points/Get"]; got != 2*c.trips {
			t.Errorf("%s to %s: %d calls with those after Forget, want %d", c.from, c.to, got, 2*c.trips)
		}
	}
	g := mustGraph(t, s, name, nil)
	server.ResetCalls()
	near, err := g.Neighborhood(t.Context(), "c0", 2)
	if err != nil {
		t.Fatal(err)
	}
	if got := server.Calls()["Points/Get"]; got != 2 || len(near) != 602 {
		t.Errorf("%d chunks within 2 by %d calls, want 602 by 2", len(near), got)
	}
}

func TestGraphMaximumDistance(t *testing.T) {
	s := newGraphServer(t, nil)
	records := graphRecords([]string{"a"}, nil, false)
	written := s.writeAs(s.collection(), mapmatched.CorpusIdentity{Dimension: 1, MaximumDistance: 2.5}, nil, records...)
	bare := s.writeAs(s.collection(), mapmatched.CorpusIdentity{Dimension: 1}, nil, records...)
	for _, c := range []struct {
		collection  string
		asked, want float64
		stale       bool
	}{
		{written, 0, 2.5, false},
		{written, 2.5, 2.5, false},
		{written, 3, 0, true},
		{bare, 0, mapmatched.DefaultMaximumDistance, false},
		{bare, 3, 3, false},
	} {
		g, err := qdrant.NewGraph(t.Context(), s.client, c.collection, &qdrant.GraphOptions{MaximumDistance: c.asked})
		if c.stale {
			if g != nil || !errors.Is(err, mapmatched.ErrStaleIndex) || !strings.Contains(err.Error(), "2.5") {
				t.Errorf("%v asked for: error %v, want ErrStaleIndex with both distances", c.asked, err)
			}
			continue
		}
		if err != nil || g.MaximumDistance() != c.want {
			t.Errorf("%v asked for: %v with error %v, want %v", c.asked, g, err, c.want)
		}
	}
}

func TestGraphOptions(t *testing.T) {
	s := newGraphServer(t, nil)
	name := s.bare("", 1, pb.Distance_Cosine)
	for _, c := range []struct {
		opts qdrant.GraphOptions
		want []string
	}{
		{qdrant.GraphOptions{MaximumDistance: -1, Keys: qdrant.PayloadKeys{Edges: qdrant.NoKey}}, []string{"MaximumDistance is -1", "PayloadKeys.Edges"}},
		{qdrant.GraphOptions{MaximumDistance: math.NaN()}, []string{"MaximumDistance is NaN"}},
		{qdrant.GraphOptions{Vector: "titles"}, []string{`no vector "titles"`, "unnamed"}},
	} {
		_, err := qdrant.NewGraph(t.Context(), s.client, name, &c.opts)
		if mapmatched.KindOf(err) != mapmatched.KindInvalid {
			t.Errorf("%+v: error %v of kind %q, want kind invalid", c.opts, err, mapmatched.KindOf(err))
			continue
		}
		for _, part := range c.want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%+v: error %q lacks %q", c.opts, err, part)
			}
		}
	}
	if _, err := qdrant.NewGraph(t.Context(), s.client, s.collection(), nil); mapmatched.KindOf(err) != mapmatched.KindNotFound {
		t.Errorf("no collection: error %v, want kind not found", err)
	}
}

// TestGraphTypes: the types of edges are chosen on this side.
func TestGraphTypes(t *testing.T) {
	s := newGraphServer(t, nil)
	edges := []mapmatched.Edge{
		{From: "a", To: "b", Weight: 1, Type: mapmatched.EdgeKNN},
		{From: "a", To: "b", Weight: 3, Type: mapmatched.EdgeNext},
		{From: "b", To: "c", Weight: 1, Type: mapmatched.EdgeLink},
	}
	name := s.writeAs(s.collection(), mapmatched.CorpusIdentity{Dimension: 1, MaximumDistance: 10}, nil, graphRecords([]string{"a", "b", "c"}, edges, false)...)
	g := mustGraph(t, s, name, &qdrant.GraphOptions{Types: []mapmatched.EdgeType{mapmatched.EdgeNext, mapmatched.EdgeParent}})
	d := make([]float64, 2)
	if err := g.Distances(t.Context(), []string{"a"}, []string{"b", "c"}, d); err != nil || !slices.Equal(d, []float64{3, 10}) {
		t.Errorf("distances %v with error %v, want 3 and 10", d, err)
	}
	var listed []mapmatched.Edge
	for e, err := range g.Edges(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		listed = append(listed, e)
	}
	if !slices.Equal(listed, edges[1:2]) {
		t.Errorf("edges %v, want %v", listed, edges[1:2])
	}
}

// TestGraphFilterIsRechecked: in a collection of another origin chunks are found
// by a filter on the payload. What it lets through beside them does not count:
// lists that have the chunk's ID among others, and a chunk whose own ID is the
// number asked for but that says it is another one. Of two points that say they
// are one chunk, the one with the smaller ID is.
func TestGraphFilterIsRechecked(t *testing.T) {
	s := newGraphServer(t, nil)
	name := s.bare("", 1, pb.Distance_Cosine)
	points := foreignPoints(graphRecords([]string{"1", "b", "c"}, []mapmatched.Edge{{From: "b", To: "c", Weight: 2}}, false))
	for i := range points {
		points[i].Id = pb.NewIDNum(uint64(i + 10))
	}
	edge := func(to string) *pb.Value {
		return pb.NewValueList(&pb.ListValue{Values: []*pb.Value{pb.NewValueStruct(&pb.Struct{Fields: map[string]*pb.Value{"to": pb.NewValueString(to), "weight": pb.NewValueDouble(0.5)}})}})
	}
	both := pb.NewValueList(&pb.ListValue{Values: []*pb.Value{pb.NewValueString("b"), pb.NewValueString("c")}})
	points = append(points,
		&pb.PointStruct{Id: pb.NewIDNum(2), Vectors: pb.NewVectors(1), Payload: map[string]*pb.Value{"chunk_id": both, "edges": edge("1")}},
		&pb.PointStruct{Id: pb.NewIDNum(4), Vectors: pb.NewVectors(1), Payload: map[string]*pb.Value{"chunk_id": both, "edges": edge("1")}},
		&pb.PointStruct{Id: pb.NewIDNum(50), Vectors: pb.NewVectors(1), Payload: map[string]*pb.Value{"chunk_id": pb.NewValueString("b"), "edges": edge("1")}}, // b again
		&pb.PointStruct{Id: pb.NewIDNum(1), Vectors: pb.NewVectors(1), Payload: map[string]*pb.Value{"chunk_id": pb.NewValueString("z"), "edges": edge("c")}},
		&pb.PointStruct{Id: pb.NewIDNum(3), Vectors: pb.NewVectors(1), Payload: map[string]*pb.Value{"edges": pb.NewValueNull()}}, // called 3
	)
	s.upsert(name, points...)
	g := mustGraph(t, s, name, nil)
	ids, d := []string{"1", "b", "c", "3", "missing"}, make([]float64, 25)
	if err := g.Distances(t.Context(), ids, ids, d); err != nil {
		t.Fatal(err)
	}
	for i, got := range d {
		want := 10.0
		switch from, to := ids[i/5], ids[i%5]; {
		case from == to:
			want = 0
		case from+to == "bc" || from+to == "cb":
			want = 2
		}
		if got != want {
			t.Errorf("%s to %s: %v, want %v", ids[i/5], ids[i%5], got, want)
		}
	}
	g.Forget()
	near, err := g.Neighborhood(t.Context(), "b", 3) // more points fit the filter than there are chunks to find
	if want := []mapmatched.Neighbor{{ChunkID: "c", Distance: 2}}; err != nil || !slices.Equal(near, want) {
		t.Errorf("neighborhood of b: %v with error %v, want %v", near, err, want)
	}
}

func TestGraphBadEdges(t *testing.T) {
	s := newGraphServer(t, nil)
	name := s.bare("", 1, pb.Distance_Cosine)
	object := func(fields map[string]*pb.Value) *pb.Value {
		return pb.NewValueList(&pb.ListValue{Values: []*pb.Value{pb.NewValueStruct(&pb.Struct{Fields: fields})}})
	}
	bad := map[string]*pb.Value{
		"text":      pb.NewValueString("b"),
		"no object": pb.NewValueList(&pb.ListValue{Values: []*pb.Value{pb.NewValueString("b")}}),
		"no end":    object(map[string]*pb.Value{"weight": pb.NewValueDouble(1)}),
		"no weight": object(map[string]*pb.Value{"to": pb.NewValueString("b")}),
		"wrong":     object(map[string]*pb.Value{"to": pb.NewValueString("b"), "weight": pb.NewValueString("1")}),
		"negative":  object(map[string]*pb.Value{"to": pb.NewValueString("b"), "weight": pb.NewValueDouble(-1)}),
		"zero":      object(map[string]*pb.Value{"to": pb.NewValueString("b"), "weight": pb.NewValueInt(0)}),
	}
	good := map[string]*pb.Value{
		"whole":  object(map[string]*pb.Value{"to": pb.NewValueString("b"), "weight": pb.NewValueInt(2)}),
		"number": object(map[string]*pb.Value{"to": pb.NewValueInt(7), "weight": pb.NewValueDouble(2)}),
		"null":   pb.NewValueNull(),
	}
	n := uint64(100)
	for _, values := range []map[string]*pb.Value{bad, good} {
		for id, edges := range values {
			n++
			s.upsert(name, &pb.PointStruct{Id: pb.NewIDNum(n), Vectors: pb.NewVectors(1), Payload: map[string]*pb.Value{"chunk_id": pb.NewValueString(id), "text": pb.NewValueString(id), "edges": edges}})
		}
	}
	g := mustGraph(t, s, name, nil)
	for id := range bad {
		_, err := g.Neighborhood(t.Context(), id, 3)
		if mapmatched.KindOf(err) != mapmatched.KindCorrupt || !strings.Contains(err.Error(), fmt.Sprintf("%q", id)) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error %v of kind %q, want kind corrupt and the chunk", id, err, mapmatched.KindOf(err))
		}
	}
	for id, want := range map[string][]mapmatched.Neighbor{"whole": {{ChunkID: "b", Distance: 2}}, "number": {{ChunkID: "7", Distance: 2}}, "null": nil} {
		if got, err := g.Neighborhood(t.Context(), id, 3); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v with error %v, want %v", id, got, err, want)
		}
	}
	for name, list := range map[string]func() error{
		"Edges": func() error {
			for _, err := range g.Edges(t.Context()) {
				if err != nil {
					return err
				}
			}
			return nil
		},
		"Records": func() error {
			for _, err := range g.Records(t.Context()) {
				if err != nil {
					return err
				}
			}
			return nil
		},
	} {
		if err := list(); mapmatched.KindOf(err) != mapmatched.KindCorrupt {
			t.Errorf("%s: error %v, want kind corrupt", name, err)
		}
	}
}

// TestGraphSplitsLargeReplies: a ring whose edges are larger than a message.
func TestGraphSplitsLargeReplies(t *testing.T) {
	s := newGraphServer(t, func(o *qdrant.ClientOptions) { o.MaxMessageBytes = 16 << 10 })
	nodes, edges := []string{"hub"}, []mapmatched.Edge(nil)
	for i := range 80 {
		id := fmt.Sprint("leaf", i)
		nodes = append(nodes, id)
		edges = append(edges, mapmatched.Edge{From: "hub", To: id, Weight: 1})
		for j := range 12 {
			edges = append(edges, mapmatched.Edge{From: id, To: fmt.Sprint("leaf", (i+j*7+1)%80), Weight: 2})
		}
	}
	name := s.writeAs(s.collection(), mapmatched.CorpusIdentity{Dimension: 1, MaximumDistance: 3}, nil, graphRecords(append(nodes, "far"), edges, false)...)
	want, err := mapmatched.NewGraph(edges, &mapmatched.GraphOptions{MaximumDistance: 3})
	if err != nil {
		t.Fatal(err)
	}
	g := mustGraph(t, s, name, nil)
	got, err := g.Neighborhood(t.Context(), "leaf5", 3)
	if err != nil {
		t.Fatal(err)
	}
	if expected, _ := want.Neighborhood(t.Context(), "leaf5", 3); !slices.Equal(got, expected) {
		t.Errorf("%d chunks, want %d", len(got), len(expected))
	}
}

// TestGraphServerDies: the error names the server, and the graph goes on when
// it is back.
func TestGraphServerDies(t *testing.T) {
	s := newGraphServer(t, func(o *qdrant.ClientOptions) { o.Retries = -1 })
	server := s.faults()
	nodes, edges := chain(6)
	name := s.writeAs(s.collection(), mapmatched.CorpusIdentity{Dimension: 1, MaximumDistance: 10}, nil, graphRecords(nodes, edges, false)...)
	g := mustGraph(t, s, name, nil)
	ask := func() ([]float64, error) {
		d := make([]float64, 2)
		return d, g.Distances(t.Context(), []string{"c0"}, []string{"c1", "c6"}, d)
	}
	server.Kill()
	if _, err := ask(); mapmatched.KindOf(err) != mapmatched.KindUnavailable || !strings.Contains(err.Error(), server.Addr()) {
		t.Errorf("error %v of kind %q, want kind unavailable and %s", err, mapmatched.KindOf(err), server.Addr())
	}
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
	server.Inject(qdranttest.Fault{Method: "Points/Get", Skip: 1, Times: 1, Code: codes.Unavailable, Message: "away"})
	sawError := false
	for range 200 { // the connection may be in its back-off
		d, err := ask()
		if err == nil {
			if !slices.Equal(d, []float64{1, 6}) {
				t.Errorf("distances %v, want 1 and 6", d)
			}
			break
		}
		sawError = true
		time.Sleep(20 * time.Millisecond)
	}
	if d, err := ask(); err != nil {
		t.Errorf("%v: %v, after a server that came back", d, err)
	}
	if !sawError {
		t.Error("no call failed, so the second ring was not asked for")
	}
}

// TestGraphConcurrentSessions decodes 64 conversations at once on one graph.
func TestGraphConcurrentSessions(t *testing.T) {
	s := newGraphServer(t, nil)
	r := rand.New(rand.NewPCG(1, 2))
	var nodes []string
	for i := range 60 {
		nodes = append(nodes, fmt.Sprint("c", i))
	}
	var edges []mapmatched.Edge
	for range 120 {
		edges = append(edges, mapmatched.Edge{From: nodes[r.IntN(60)], To: nodes[r.IntN(60)], Weight: 0.1 + r.Float64()})
	}
	name := s.writeAs(s.collection(), mapmatched.CorpusIdentity{Dimension: 1, MaximumDistance: 3}, nil, graphRecords(nodes, edges, false)...)
	inMemory, err := mapmatched.NewGraph(edges, &mapmatched.GraphOptions{MaximumDistance: 3})
	if err != nil {
		t.Fatal(err)
	}
	hosted := mustGraph(t, s, name, &qdrant.GraphOptions{CacheBytes: 10_000})
	decode := func(g mapmatched.CorpusGraph, seed uint64) ([]string, error) {
		r := rand.New(rand.NewPCG(seed, 3))
		session, err := mapmatched.NewSession(nil, g, nil)
		if err != nil {
			return nil, err
		}
		var path []string
		for range 4 {
			var turn []mapmatched.Candidate
			for _, i := range r.Perm(60)[:5] {
				turn = append(turn, mapmatched.Candidate{ChunkID: nodes[i], Score: r.Float64()})
			}
			result, err := session.Observe(t.Context(), "", turn)
			if err != nil {
				return nil, err
			}
			path = append(path, result.ChunkID)
		}
		return path, nil
	}
	var wg sync.WaitGroup
	for seed := range uint64(64) {
		wg.Go(func() {
			got, err := decode(hosted, seed)
			want, err2 := decode(inMemory, seed)
			if cmp.Or(err, err2) != nil || !slices.Equal(got, want) {
				t.Errorf("conversation %d: %v with error %v, want %v with error %v", seed, got, err, want, err2)
			}
		})
	}
	wg.Wait()
}
