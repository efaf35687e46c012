package qdrant_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	pb "github.com/qdrant/go-client/qdrant"
	"google.golang.org/grpc/codes"

	"github.com/mapmatched/mmplug/adapters/qdrant"
	"github.com/mapmatched/mmplug/integration/qdranttest"
	"github.com/mapmatched/mmplug/mapmatched"
)

// snapshotRecords are chunks with texts of many sizes, vectors and edges.
func snapshotRecords(n int) []mapmatched.Record {
	records := make([]mapmatched.Record, n)
	for i := range records {
		id := fmt.Sprintf("doc/%d", i)
		text := fmt.Sprint("chunk ", i, strings.Repeat(" more", i%50*20))
		records[i] = mapmatched.Record{
			Chunk:  mapmatched.Chunk{ID: id, Document: "doc", Title: "Title", Section: "A > B", Ordinal: i, Start: 10 * i, End: 10*i + len(text), Text: text},
			Vector: []float32{0.6, 0.8, 0, 0},
			Edges:  []mapmatched.Edge{{From: id, To: fmt.Sprintf("doc/%d", (i+1)%n), Weight: 0.1 + float64(i), Type: mapmatched.EdgeNext}},
		}
		if i%7 == 0 {
			records[i].Edges = nil
		}
		if i%11 == 0 {
			records[i].Vector = nil
		}
	}
	return records
}

var snapshotIdentity = mapmatched.CorpusIdentity{Dimension: 4, MaximumDistance: 10, Model: "test"}

func sameRecord(a, b mapmatched.Record) bool {
	return a.Chunk == b.Chunk && slices.Equal(a.Vector, b.Vector) && slices.Equal(a.Edges, b.Edges)
}

// expectRecords compares a listing with what was written, whatever the order.
func expectRecords(t *testing.T, what string, lister mapmatched.RecordLister, want []mapmatched.Record, between func(n int)) {
	t.Helper()
	left := map[string]mapmatched.Record{}
	for _, r := range want {
		left[r.Chunk.ID] = r
	}
	n := 0
	for r, err := range lister.Records(t.Context()) {
		if err != nil {
			t.Fatalf("%s: after %d records: %v", what, n, err)
		}
		n++
		if between != nil {
			between(n)
		}
		expected, there := left[r.Chunk.ID]
		if strings.HasPrefix(r.Chunk.ID, "late/") {
			there, expected = left[r.Chunk.ID].Chunk.ID == "", r // any of these, once
			left[r.Chunk.ID] = r
		} else {
			delete(left, r.Chunk.ID)
		}
		if !there || !sameRecord(r, expected) {
			t.Errorf("%s: record %+v, want %+v once", what, r, expected)
		}
	}
	for id := range left {
		if !strings.HasPrefix(id, "late/") {
			t.Errorf("%s: record %q is missing", what, id)
		}
	}
}

func TestSnapshot(t *testing.T) {
	for _, vector := range []string{"", "dense"} {
		s := newGraphServer(t, nil)
		records := snapshotRecords(300)
		name := s.writeAs(s.collection(), snapshotIdentity, &qdrant.WriterOptions{Vector: vector}, records...)
		g := mustGraph(t, s, name, nil) // takes the only vector there is
		expectRecords(t, "graph", g, records, nil)
		p, err := qdrant.NewProvider(t.Context(), s.client, name, &qdrant.Options{Vector: vector})
		if err != nil {
			t.Fatal(err)
		}
		expectRecords(t, "provider", p, records, nil)
		count := 0
		for _, err := range g.Records(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			if count++; count == 3 {
				break
			}
		}
	}
}

// TestSnapshotWhileWriting: points that come meanwhile, before and behind the
// cursor, change nothing about those that were there.
func TestSnapshotWhileWriting(t *testing.T) {
	s := newGraphServer(t, nil)
	records := snapshotRecords(300)
	name := s.writeAs(s.collection(), snapshotIdentity, nil, records...)
	g := mustGraph(t, s, name, nil)
	expectRecords(t, "while writing", g, records, func(n int) {
		if n%10 != 0 {
			return
		}
		late := mapmatched.Record{Chunk: mapmatched.Chunk{ID: fmt.Sprint("late/", n), Text: "x", End: 1}, Vector: []float32{0, 0, 1, 0}}
		s.writeAs(name, snapshotIdentity, nil, late, records[n%300])
	})
}

// TestSnapshotGoesOn: a call that fails on the way is made again from where the
// listing is, after errors and after the end of the server.
func TestSnapshotGoesOn(t *testing.T) {
	s := newGraphServer(t, func(o *qdrant.ClientOptions) { o.RetryWait, o.Retries = time.Millisecond, 20 })
	server := s.faults()
	records := snapshotRecords(500)
	name := s.writeAs(s.collection(), snapshotIdentity, nil, records...)
	g := mustGraph(t, s, name, nil)
	server.ResetCalls()
	server.Inject(qdranttest.Fault{Method: "Points/Scroll", Skip: 1, Times: 2, Code: codes.Unavailable, Message: "away"})
	server.Inject(qdranttest.Fault{Method: "Points/Scroll", Skip: 3, Times: 1, Drop: true})
	expectRecords(t, "with errors", g, records, func(n int) {
		if n == 70 {
			server.Kill()
			if err := server.Restart(); err != nil {
				t.Fatal(err)
			}
		}
	})
	if got := server.Calls()["Points/Scroll"]; got < 6 {
		t.Errorf("%d calls, so the faults did not strike", got)
	}
	server.Inject(qdranttest.Fault{Method: "Points/Scroll", Skip: 1, Code: codes.PermissionDenied, Message: "no more"})
	count, last := 0, error(nil)
	for _, err := range g.Records(t.Context()) {
		if count, last = count+1, err; err == nil && count > 500 {
			break
		}
	}
	if mapmatched.KindOf(last) != mapmatched.KindUnauthenticated || count != 65 {
		t.Errorf("%d records and error %v, want the first page of 64 and the error", count-1, last)
	}
}

// TestSnapshotPages: pages stay far below the 4 MiB of a message where texts
// are long, and one that is too large all the same is asked for in halves.
func TestSnapshotPages(t *testing.T) {
	s := newGraphServer(t, nil)
	var records []mapmatched.Record
	for i := range 120 { // 6 MB of text
		text := strings.Repeat(fmt.Sprintf("%04d ", i), 10_000)
		records = append(records, mapmatched.Record{Chunk: mapmatched.Chunk{ID: fmt.Sprint("long/", i), Text: text, End: len(text)}, Vector: []float32{0, 1, 0, 0}})
	}
	name := s.writeAs(s.collection(), snapshotIdentity, nil, records...)
	limited := func(bytes int) *qdrant.Client {
		return s.target.client(func(o *qdrant.ClientOptions) { o.MaxMessageBytes = bytes })
	}
	for _, c := range []struct {
		client *qdrant.Client
		pages  int
	}{{s.client, 4}, {limited(300 << 10), 24}} { // the first of 64 records and 3 of 20; 5 records or fewer
		g, err := qdrant.NewGraph(t.Context(), c.client, name, nil)
		if err != nil {
			t.Fatal(err)
		}
		if s.fake != nil {
			s.fake.ResetCalls()
		}
		expectRecords(t, "long texts", g, records, nil)
		if s.fake != nil && s.fake.Calls()["Points/Scroll"] < c.pages {
			t.Errorf("%d pages for 6 MB, want %d or more", s.fake.Calls()["Points/Scroll"], c.pages)
		}
	}
	g, err := qdrant.NewGraph(t.Context(), limited(10<<10), name, nil)
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, err := range g.Records(t.Context()) {
		count++
		if err == nil || !strings.Contains(err.Error(), "MaxMessageBytes") {
			t.Errorf("a record larger than a message: error %v, want the limit named", err)
		}
	}
	if count != 1 {
		t.Errorf("records larger than a message: %d of them and errors, want one error", count)
	}
}

func TestSnapshotOfForeignPoints(t *testing.T) {
	s := newGraphServer(t, nil)
	name := s.bare("", 2, pb.Distance_Dot)
	s.upsert(name,
		&pb.PointStruct{Id: pb.NewIDNum(18446744073709551615), Vectors: pb.NewVectors(3, 4), Payload: map[string]*pb.Value{"body": pb.NewValueString("größer")}},
		&pb.PointStruct{Id: pb.NewIDNum(1), Vectors: pb.NewVectors(1, 2), Payload: map[string]*pb.Value{"other": pb.NewValueInt(1)}},
		&pb.PointStruct{Id: pb.NewIDUUID("550e8400-e29b-41d4-a716-446655440000"), Vectors: pb.NewVectors(0, 1), Payload: map[string]*pb.Value{"body": pb.NewValueString("b"), "name": pb.NewValueString("chunk b")}},
	)
	keys := qdrant.PayloadKeys{Text: "body", ChunkID: "name"}
	var got []mapmatched.Record
	for r, err := range mustGraph(t, s, name, &qdrant.GraphOptions{Keys: keys}).Records(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, r)
	}
	want := []mapmatched.Record{
		{Chunk: mapmatched.Chunk{ID: "18446744073709551615", Text: "größer", End: len("größer")}, Vector: []float32{3, 4}},
		{Chunk: mapmatched.Chunk{ID: "chunk b", Text: "b", End: 1}, Vector: []float32{0, 1}},
	}
	if !slices.EqualFunc(got, want, sameRecord) {
		t.Errorf("records %+v, want %+v", got, want)
	}
	count := 0
	for _, err := range mustGraph(t, s, name, nil).Records(t.Context()) {
		count++
		if mapmatched.KindOf(err) != mapmatched.KindInvalid || !strings.Contains(err.Error(), "text_key") {
			t.Errorf("no point has a text under the key: error %v, want the key named", err)
		}
	}
	if count != 1 {
		t.Errorf("no point has a text under the key: %d records and errors, want one error", count)
	}
}

// TestSnapshotNeedsAVectorName: with two dense vectors one has to be chosen.
func TestSnapshotNeedsAVectorName(t *testing.T) {
	s := newGraphServer(t, nil)
	params := &pb.VectorParams{Size: 1, Distance: pb.Distance_Cosine}
	name := s.create(pb.NewVectorsConfigMap(map[string]*pb.VectorParams{"a": params, "b": params}), nil)
	s.upsert(name, &pb.PointStruct{Id: pb.NewIDNum(1), Payload: map[string]*pb.Value{"text": pb.NewValueString("x")}, Vectors: pb.NewVectorsMap(map[string]*pb.Vector{"b": pb.NewVector(-2)})})
	count := 0
	for _, err := range mustGraph(t, s, name, nil).Records(t.Context()) {
		count++
		if mapmatched.KindOf(err) != mapmatched.KindInvalid || !strings.Contains(err.Error(), `"a"`) {
			t.Errorf("error %v, want the vectors there are", err)
		}
	}
	for r, err := range mustGraph(t, s, name, &qdrant.GraphOptions{Vector: "b"}).Records(t.Context()) {
		count++
		if err != nil || !slices.Equal(r.Vector, []float32{-1}) {
			t.Errorf("record %+v with error %v, want the vector b", r, err)
		}
	}
	if count != 2 {
		t.Errorf("%d records and errors, want one each", count)
	}
}
