package qdrant_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	pb "github.com/qdrant/go-client/qdrant"

	"github.com/mapmatched/mmplug/adapters/qdrant"
	"github.com/mapmatched/mmplug/integration/qdranttest"
	"github.com/mapmatched/mmplug/mapmatched"
)

func by(v ...float32) mapmatched.Query { return mapmatched.Query{Vector: v} }

// ask returns candidates and fails on an error.
func ask(t *testing.T, p mapmatched.CandidateProvider, q mapmatched.Query, limit int) []mapmatched.Candidate {
	t.Helper()
	got, err := p.Candidates(t.Context(), q, limit)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-6*max(1, math.Abs(b)) }

// TestMetrics: the direction of scores and thresholds comes from the
// collection, and what is equal to the threshold stays.
func TestMetrics(t *testing.T) {
	s := server(t)
	c := s.client(nil)
	all := []mapmatched.Record{record("near", 3, 4), record("middle", 3, 0), record("far", -3, -4)}
	for _, m := range []struct {
		distance  qdrant.Distance
		scores    []float64 // of near, middle and far for (3, 4)
		threshold float64   // the score of middle
		distances bool
	}{
		{qdrant.DistanceCosine, []float64{1, 0.6, -1}, 0.6, false},
		{qdrant.DistanceDot, []float64{25, 9, -25}, 9, false},
		{qdrant.DistanceEuclid, []float64{0, -4, -10}, -4, true},
		{qdrant.DistanceManhattan, []float64{0, -4, -14}, -4, true},
	} {
		t.Run(string(m.distance), func(t *testing.T) {
			s := &target{t: t, address: s.address, opts: s.opts, fake: s.fake}
			name := s.write(c, &qdrant.WriterOptions{Distance: m.distance}, all...)
			got := ask(t, s.open(c, name, nil), by(3, 4), 10)
			if !slices.Equal(ids(got), []string{"near", "middle", "far"}) {
				t.Fatalf("candidates %q", ids(got))
			}
			for i, g := range got {
				if !near(g.Score, m.scores[i]) || math.Signbit(g.Score) && g.Score == 0 {
					t.Errorf("%s: score %v, want %v", g.ChunkID, g.Score, m.scores[i])
				}
				if d, ok := g.Parts["distance"]; ok != m.distances || ok && d != -g.Score {
					t.Errorf("%s: parts %v", g.ChunkID, g.Parts)
				}
			}
			at := func(threshold float64) []string {
				return ids(ask(t, s.open(c, name, &qdrant.Options{ScoreThreshold: &threshold}), by(3, 4), 10))
			}
			exactly := got[1].Score
			if got := at(exactly); !slices.Equal(got, []string{"near", "middle"}) {
				t.Errorf("threshold %v, the score of middle: %q", exactly, got)
			}
			if got := at(m.threshold + 0.01*math.Abs(m.threshold)); !slices.Equal(got, []string{"near"}) {
				t.Errorf("threshold above the score of middle: %q", got)
			}
			scored, err := s.open(c, name, &qdrant.Options{ScoreThreshold: &exactly}).ScoreChunks(t.Context(), by(3, 4), []string{"far", "no such", "near", "far"})
			if err != nil || len(scored) != 2 || scored[0].ChunkID != "far" || !near(scored[0].Score, m.scores[2]) || !near(scored[1].Score, m.scores[0]) {
				t.Errorf("scores of given chunks %v, error %v", scored, err)
			}
		})
	}
	name := s.write(c, &qdrant.WriterOptions{Distance: qdrant.DistanceEuclid}, all...)
	_, err := qdrant.NewProvider(t.Context(), c, name, &qdrant.Options{ScoreThreshold: new(0.5)})
	expect(t, err, mapmatched.KindInvalid, "negated distances", name)
}

// TestCosineNormalises: a cosine collection returns vectors of length 1, and a
// corpus of raw vectors and one of unit vectors give the same.
func TestCosineNormalises(t *testing.T) {
	s := server(t)
	c := s.client(nil)
	raw := s.open(c, s.write(c, nil, record("a", 3, 4), record("b", 0, 2), record("c", -8, 6)), nil)
	unit := s.open(c, s.write(c, nil, record("a", 0.6, 0.8), record("b", 0, 1), record("c", -0.8, 0.6)), nil)
	names := []string{"c", "a", "b"}
	for _, q := range []mapmatched.Query{by(1, 0), by(5, 0), by(0.3, -0.7)} {
		got, want := ask(t, raw, q, 3), ask(t, unit, q, 3)
		if !slices.Equal(ids(got), ids(want)) {
			t.Errorf("%v: %q and %q", q.Vector, ids(got), ids(want))
		}
		for i := range got {
			if !near(got[i].Score, want[i].Score) {
				t.Errorf("%v: scores %v and %v", q.Vector, got[i].Score, want[i].Score)
			}
		}
	}
	for _, p := range []*qdrant.Provider{raw, unit} {
		vectors, err := p.Vectors(t.Context(), names)
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range [][]float32{{-0.8, 0.6}, {0.6, 0.8}, {0, 1}} {
			if len(vectors[i]) != 2 || !near(float64(vectors[i][0]), float64(want[0])) || !near(float64(vectors[i][1]), float64(want[1])) {
				t.Errorf("vector of %s: %v, want %v", names[i], vectors[i], want)
			}
		}
	}
}

// TestTies: equal scores are ordered by chunk ID, whatever the limit.
func TestTies(t *testing.T) {
	s := server(t)
	c := s.client(nil)
	var all []mapmatched.Record
	var want []string
	for i := range 40 {
		id := fmt.Sprintf("tied %02d", i)
		all, want = append(all, record(id, 2, 1)), append(want, id)
	}
	slices.Reverse(all)
	all = append(all, record("best", 1, 0), record("worst", 0, 1))
	p := s.open(c, s.write(c, nil, all...), nil)
	want = append(append([]string{"best"}, want...), "worst")
	for _, limit := range []int{1, 2, 3, 7, 20, 41, 42, 100} {
		if got := ids(ask(t, p, by(1, 0), limit)); !slices.Equal(got, want[:min(limit, len(want))]) {
			t.Errorf("limit %d: %q", limit, got)
		}
	}
}

// TestTiesBounded: of many equal scores up to 1,000 beyond the limit are looked
// at, by ID alone, in one more round trip.
func TestTiesBounded(t *testing.T) {
	s := server(t)
	c := s.client(nil)
	const chunks, limit = 3000, 20
	var all []mapmatched.Record
	for i := range chunks {
		r := record(fmt.Sprintf("c%04d", i))
		r.Chunk.Text = "same " + strings.Repeat(" ", 4<<10)
		all = append(all, r)
	}
	name := s.write(c, &qdrant.WriterOptions{Sparse: "terms"}, all...)
	q := mapmatched.Query{Text: "same"}
	var report qdrant.Report
	opts := &qdrant.Options{Vector: "terms", SparseEncoder: qdrant.TermQuery, Report: func(_ context.Context, r qdrant.Report) { report = r }}
	p := s.open(s.client(func(o *qdrant.ClientOptions) { o.MaxMessageBytes = 256 << 10 }), name, opts)
	if s.fake != nil {
		s.fake.ResetCalls()
	}
	got := ask(t, p, q, limit)
	if len(got) != limit || !slices.IsSorted(ids(got)) {
		t.Fatalf("candidates %q", ids(got))
	}
	for _, g := range got {
		if len(g.Text) < 4<<10 || g.Score != got[0].Score {
			t.Errorf("%s: score %v, text of %d bytes", g.ChunkID, g.Score, len(g.Text))
		}
	}
	if report.Points != limit+1000 || report.Candidates != limit || report.Beyond != 1000 {
		t.Errorf("report %+v", report)
	}
	if s.fake == nil {
		return
	}
	if calls := s.fake.Calls(); !reflect.DeepEqual(calls, map[string]int{"Points/Query": 2, "Points/Get": 1}) {
		t.Errorf("calls %v, want 2 of Query and 1 of Get", calls)
	}
	// What does not fit into a message is left as it came.
	defer s.fake.Inject(qdranttest.Fault{Method: "Points/Query", Skip: 1, Padding: 512 << 10})()
	if got := ask(t, p, q, limit); len(got) != limit || got[0].Text == "" || report.Points != limit+4 {
		t.Errorf("too large: %d candidates, report %+v", len(got), report)
	}
	_, err := p.Candidates(t.Context(), q, limit)
	expect(t, err, mapmatched.KindInvalid, "larger than max")
}

// TestForeignInFront: points without a text do not take the places of chunks,
// wherever they are.
func TestForeignInFront(t *testing.T) {
	s := server(t)
	c := s.client(nil)
	name := s.create(pb.NewVectorsConfig(&pb.VectorParams{Size: 2, Distance: pb.Distance_Cosine}), nil)
	add := func(id uint64, x float32, key, value string) {
		s.upsert(name, &pb.PointStruct{Id: pb.NewIDNum(id), Vectors: pb.NewVectors(1, x), Payload: map[string]*pb.Value{key: pb.NewValueString(value)}})
	}
	for i := range uint64(6) {
		add(i, float32(i)/100, "note", "something else")
	}
	for i := range uint64(3) {
		add(10+i, 1+float32(i), "text", "good")
	}
	want := []string{"10", "11", "12"}
	var report qdrant.Report
	counted := &qdrant.Options{Report: func(_ context.Context, r qdrant.Report) { report = r }}
	p := s.open(c, name, counted)
	for limit, foreign := range map[int]int{1: 2, 3: 4, 5: 6, 9: 6} {
		got := ids(ask(t, p, by(1, 0), limit))
		if !slices.Equal(got, want[:min(limit, 3)]) || report.Foreign != foreign || report.Candidates != len(got) || report.Points != foreign+len(got)+report.Beyond {
			t.Errorf("limit %d: %q, report %+v, want %d foreign", limit, got, report, foreign)
		}
	}
	h, err := qdrant.NewHybridProvider(qdrant.Fusion{Method: qdrant.FusionRRF}, p, s.open(c, name, &qdrant.Options{Exact: true}))
	if err != nil {
		t.Fatal(err)
	}
	if got := ids(ask(t, h, by(1, 0), 2)); !slices.Equal(got, want[:2]) {
		t.Errorf("fused: %q", got)
	}
	only, err := qdrant.ParseFilter([]byte(`{"must":[{"has_id":[0,1]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if got := ask(t, s.open(c, name, &qdrant.Options{Filter: only}), by(1, 0), 1); len(got) != 0 {
		t.Errorf("behind a filter that only foreign points fit: %q", ids(got))
	}
	_, err = s.open(c, name, &qdrant.Options{Keys: qdrant.PayloadKeys{Text: "body"}}).Candidates(t.Context(), by(1, 0), 1)
	expect(t, err, mapmatched.KindInvalid, `under key "body"`, `"note"`)
}

// TestIntegerIDs: chunk IDs that a payload keeps as integers are found by ID.
func TestIntegerIDs(t *testing.T) {
	s := server(t)
	c := s.client(nil)
	name := s.create(pb.NewVectorsConfig(&pb.VectorParams{Size: 2, Distance: pb.Distance_Cosine}), nil)
	point := func(id uint64, chunk, to int64) *pb.PointStruct {
		edge := pb.NewValueFromFields(map[string]*pb.Value{"to": pb.NewValueInt(to), "weight": pb.NewValueInt(2)})
		return &pb.PointStruct{Id: pb.NewIDNum(id), Vectors: pb.NewVectors(1, float32(id)), Payload: map[string]*pb.Value{
			"chunk_id": pb.NewValueInt(chunk), "text": pb.NewValueString(fmt.Sprint("text ", chunk)), "edges": pb.NewValueFromList(edge),
		}}
	}
	s.upsert(name, point(1, 4001, -7), point(2, -7, 4001), point(3, 9007199254740993, -7))
	p := s.open(c, name, nil)
	names := []string{"4001", "-7", "9007199254740993", "04001"}
	chunks, err := p.Chunks(t.Context(), names)
	if err != nil || len(chunks) != 3 || chunks[0].Text != "text 4001" || chunks[1].ID != "-7" {
		t.Errorf("chunks %+v, error %v", chunks, err)
	}
	vectors, err := p.Vectors(t.Context(), names)
	if err != nil || vectors[0] == nil || vectors[1] == nil || vectors[2] == nil || vectors[3] != nil {
		t.Errorf("vectors %v, error %v", vectors, err)
	}
	scored, err := p.ScoreChunks(t.Context(), by(1, 0), names)
	if err != nil || len(scored) != 3 {
		t.Errorf("scores %v, error %v", scored, err)
	}
	g, err := qdrant.NewGraph(t.Context(), c, name, nil)
	if err != nil {
		t.Fatal(err)
	}
	d := make([]float64, 1)
	if err := g.Distances(t.Context(), []string{"4001"}, []string{"9007199254740993"}, d); err != nil || d[0] != 4 {
		t.Errorf("distance %v, error %v, want 4", d[0], err)
	}
}

// TestOddKeys: a key that is no plain word is still a key.
func TestOddKeys(t *testing.T) {
	s := server(t)
	c := s.client(nil)
	keys := qdrant.PayloadKeys{ChunkID: "the id", Text: "page's content", Title: "Überschrift", Section: "a/b", Edges: "e&dges"}
	a := record("a", 1, 0)
	a.Chunk.Title, a.Chunk.Section = "A", "S"
	a.Edges = []mapmatched.Edge{{From: "a", To: "b", Weight: 2}}
	name := s.write(c, &qdrant.WriterOptions{Keys: keys}, a, record("b", 0, 1))
	p := s.open(c, name, &qdrant.Options{Keys: keys, Metadata: []string{"the id"}})
	got := ask(t, p, by(1, 0), 5)
	if len(got) != 2 || got[0].Text != a.Chunk.Text || got[0].Metadata["title"] != "A" || got[0].Metadata["the id"] != "a" {
		t.Errorf("candidates %+v", got)
	}
	if chunks, err := p.Chunks(t.Context(), []string{"a"}); err != nil || len(chunks) != 1 || chunks[0] != a.Chunk {
		t.Errorf("chunks %+v, error %v", chunks, err)
	}
	g, err := qdrant.NewGraph(t.Context(), c, name, &qdrant.GraphOptions{Keys: keys})
	if err != nil {
		t.Fatal(err)
	}
	d := make([]float64, 1)
	if err := g.Distances(t.Context(), []string{"a"}, []string{"b"}, d); err != nil || d[0] != 2 {
		t.Errorf("distance %v, error %v", d[0], err)
	}
	foreign := s.create(pb.NewVectorsConfig(&pb.VectorParams{Size: 2, Distance: pb.Distance_Cosine}), nil)
	s.upsert(foreign, &pb.PointStruct{Id: pb.NewIDNum(1), Vectors: pb.NewVectors(1, 0), Payload: map[string]*pb.Value{"the id": pb.NewValueString("x"), "page's content": pb.NewValueString("t")}})
	p = s.open(c, foreign, &qdrant.Options{Keys: keys})
	if chunks, err := p.Chunks(t.Context(), []string{"x"}); err != nil || len(chunks) != 1 {
		t.Errorf("chunks of a foreign collection %+v, error %v", chunks, err)
	}
	for _, err := range p.NearestNeighbors(t.Context(), 1) {
		t.Errorf("neighbors of one point: %v", err)
	}
}

// TestOddNames: an error is one line whatever a collection is called.
func TestOddNames(t *testing.T) {
	s := faulty(t, nil)
	c := s.client(nil)
	for _, name := range []string{"two\nlines", "carriage\rreturn"} {
		if err := s.raw().CreateCollection(t.Context(), &pb.CreateCollection{CollectionName: name, VectorsConfig: pb.NewVectorsConfig(&pb.VectorParams{Size: 2, Distance: pb.Distance_Cosine})}); err != nil {
			t.Fatal(err)
		}
		_, err := qdrant.NewProvider(t.Context(), c, "none\nsuch", nil)
		expect(t, err, mapmatched.KindNotFound, fmt.Sprintf("%q", name), "/none%0Asuch makes it")
		p := s.open(c, name, nil)
		_, err = p.Candidates(t.Context(), by(1), 1)
		expect(t, err, mapmatched.KindInvalid, fmt.Sprintf("%q", name))
		s.upsert(name, &pb.PointStruct{Id: pb.NewIDNum(1), Vectors: pb.NewVectors(1, 0), Payload: map[string]*pb.Value{"odd\nkey": pb.NewValueString("x")}})
		_, err = p.Candidates(t.Context(), by(1, 0), 1)
		expect(t, err, mapmatched.KindInvalid, `"odd\nkey"`)
		if _, err := c.DeleteCollection(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		for _, f := range p.Diagnose(t.Context()) {
			if strings.ContainsAny(f.Detail+f.Hint, "\r\n") {
				t.Errorf("finding %+v is not one line", f)
			}
		}
	}
}

// TestCollectionMadeAnewWithAnotherMetric: where no search fails, health and
// identity say that the scores mean something else now.
func TestCollectionMadeAnewWithAnotherMetric(t *testing.T) {
	s := server(t)
	c := s.client(nil)
	name := s.write(c, nil, record("a", 1, 0))
	p := s.open(c, name, nil)
	if _, err := c.DeleteCollection(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	w := s.writer(c, name, &qdrant.WriterOptions{Distance: qdrant.DistanceEuclid})
	if _, err := w.WriteCorpus(t.Context(), identityOf(2), records(record("a", 1, 0)), nil); err != nil {
		t.Fatal(err)
	}
	expect(t, p.Health(t.Context()), mapmatched.KindInvalid, name, "made anew", "2 dimensions, Cosine", "2 dimensions, Euclid", "open it again")
	_, err := p.CorpusIdentity(t.Context())
	expect(t, err, mapmatched.KindInvalid, name, "made anew")
	if err := s.open(c, name, nil).Health(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestNotFinite: scores that are no numbers never win and are reported.
func TestNotFinite(t *testing.T) {
	s := faulty(t, nil)
	c := s.client(nil)
	name := s.write(c, nil, record("a", 1, 0), record("b", 1, 0.1), record("c", 1, 0.2), record("d", 1, 0.3), record("e", 1, 0.4))
	var reports []qdrant.Report
	p := s.open(c, name, &qdrant.Options{Report: func(_ context.Context, r qdrant.Report) { reports = append(reports, r) }})
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	s.fake.Inject(qdranttest.Fault{Method: "Points/Query", Scores: []float32{nan, inf, -inf}})
	got := ask(t, p, mapmatched.Query{Text: "q", Vector: []float32{1, 0}}, 4)
	if !slices.Equal(ids(got), []string{"d", "e"}) {
		t.Errorf("candidates %q, want those with a score", ids(got))
	}
	if want := (qdrant.Report{Query: "q", Points: 5, Candidates: 2, NonFinite: 3}); len(reports) != 1 || reports[0] != want {
		t.Errorf("reports %+v, want %+v", reports, want)
	}
	if scored, err := p.ScoreChunks(t.Context(), by(1, 0), []string{"a", "b", "c"}); err != nil || len(scored) != 0 {
		t.Errorf("scores of given chunks %v, error %v, want none", scored, err)
	}
}

// TestForeignPoints: points of another origin are called by their own IDs, and
// those without a text are skipped and reported.
func TestForeignPoints(t *testing.T) {
	s := server(t)
	c := s.client(nil)
	name := s.create(pb.NewVectorsConfig(&pb.VectorParams{Size: 2, Distance: pb.Distance_Cosine}), nil)
	const uuid = "5c56c793-69f3-4fbf-87e6-c4bf54c28c26"
	value := pb.NewValueString
	s.upsert(name,
		&pb.PointStruct{Id: pb.NewIDNum(7), Vectors: pb.NewVectors(1, 0), Payload: map[string]*pb.Value{"body": value("seven"), "lang": value("en")}},
		&pb.PointStruct{Id: pb.NewIDUUID(uuid), Vectors: pb.NewVectors(1, 0.1), Payload: map[string]*pb.Value{"body": value("uuid")}},
		&pb.PointStruct{Id: pb.NewIDNum(9), Vectors: pb.NewVectors(1, 0.2), Payload: map[string]*pb.Value{"body": value("nine"), "chunk_id": value("ninth")}},
		&pb.PointStruct{Id: pb.NewIDNum(10), Vectors: pb.NewVectors(1, 0.3), Payload: map[string]*pb.Value{"note": value("something else")}},
		&pb.PointStruct{Id: pb.NewIDNum(11), Vectors: pb.NewVectors(1, 0.25), Payload: map[string]*pb.Value{"body": value("again"), "chunk_id": value("ninth")}},
	)
	var report qdrant.Report
	p := s.open(c, name, &qdrant.Options{Keys: qdrant.PayloadKeys{Text: "body"}, Report: func(_ context.Context, r qdrant.Report) { report = r }})
	want := []string{"7", uuid, "ninth"}
	got := ask(t, p, by(1, 0), 10)
	if !slices.Equal(ids(got), want) || got[2].Text != "nine" {
		t.Errorf("candidates %q, text %q", ids(got), got[2].Text)
	}
	if wanted := (qdrant.Report{Points: 5, Candidates: 3, Foreign: 1, Duplicates: 1}); report != wanted {
		t.Errorf("report %+v, want %+v", report, wanted)
	}
	chunks, err := p.Chunks(t.Context(), []string{"ninth", "no such", "7", uuid})
	if err != nil || len(chunks) != 3 || chunks[0].ID != "ninth" || chunks[1].Text != "seven" || chunks[1].End != 5 || chunks[2].ID != uuid {
		t.Errorf("chunks %+v, error %v", chunks, err)
	}
	vectors, err := p.Vectors(t.Context(), []string{"7", "no such", uuid})
	if err != nil || len(vectors) != 3 || vectors[0] == nil || vectors[1] != nil || vectors[2] == nil {
		t.Errorf("vectors %v, error %v", vectors, err)
	}
	scored, err := p.ScoreChunks(t.Context(), by(1, 0), append(want, "no such"))
	if err != nil || len(scored) != 3 || scored[2].ChunkID != "ninth" {
		t.Errorf("scores %v, error %v", scored, err)
	}
	if id, err := p.CorpusIdentity(t.Context()); err != nil || id != (mapmatched.CorpusIdentity{}) {
		t.Errorf("identity %+v, error %v, want the zero one", id, err)
	}

	_, err = s.open(c, name, nil).Candidates(t.Context(), by(1, 0), 10)
	expect(t, err, mapmatched.KindInvalid, name, `none of the 5 points found has a text under key "text"`, "text_key=", "body")
	if got := ask(t, s.open(c, name, &qdrant.Options{Keys: qdrant.PayloadKeys{Text: qdrant.NoKey}}), by(1, 0), 10); len(got) != 4 || got[0].Text != "" {
		t.Errorf("without texts: %q", ids(got))
	}
	other := s.open(c, name, &qdrant.Options{Keys: qdrant.PayloadKeys{Text: "body", ChunkID: "lang"}, Metadata: []string{"lang"}})
	if got := ask(t, other, by(1, 0), 1); got[0].ChunkID != "en" || !reflect.DeepEqual(got[0].Metadata, map[string]any{"lang": "en"}) {
		t.Errorf("with another key for the ID: %+v", got)
	}
}

// TestIDs: any text is a chunk ID, and comes back as it was.
func TestIDs(t *testing.T) {
	s := server(t)
	c := s.client(nil)
	names := []string{"42", "042", "18446744073709551615", "18446744073709551616", "-1", " ", "a/b c", `say "hi"\n`, "故乡", "x\x00y",
		"5c56c793-69f3-4fbf-87e6-c4bf54c28c26", "5C56C793-69F3-4FBF-87E6-C4BF54C28C26", strings.Repeat("long", 500)}
	var all []mapmatched.Record
	for i, id := range names {
		all = append(all, record(id, float32(len(names)-i), 1))
	}
	p := s.open(c, s.write(c, nil, all...), nil)
	got := ids(ask(t, p, by(1, 0), 100))
	if !slices.Equal(got, names) {
		t.Errorf("candidates %q, want %q", got, names)
	}
	chunks, err := p.Chunks(t.Context(), names)
	if err != nil || len(chunks) != len(names) {
		t.Fatalf("%d chunks, error %v", len(chunks), err)
	}
	for i, chunk := range chunks {
		if chunk != all[i].Chunk {
			t.Errorf("chunk %+v, want %+v", chunk, all[i].Chunk)
		}
	}
	scored, err := p.ScoreChunks(t.Context(), by(1, 0), names)
	if err != nil || len(scored) != len(names) {
		t.Errorf("%d scores, error %v", len(scored), err)
	}
	// A chunk called 42 is not point 42.
	for id, want := range map[string]string{"roads/tunnel": "16871d6c-43c7-51d8-8a7b-488f496f2883", "42": "f27efe25-3eb3-50e9-be60-ce0bae25c2a9", "poems/故乡": "856d7314-c600-5822-8ea1-275a9ccad272"} {
		if got := qdrant.PointUUID(id); got != want {
			t.Errorf("point of %q: %s, want %s", id, got, want)
		}
	}
}

// TestPayloadValues: what is in a payload arrives as what it is.
func TestPayloadValues(t *testing.T) {
	s := server(t)
	c := s.client(nil)
	name := s.create(pb.NewVectorsConfig(&pb.VectorParams{Size: 2, Distance: pb.Distance_Cosine}), nil)
	s.upsert(name, &pb.PointStruct{Id: pb.NewIDNum(1), Vectors: pb.NewVectors(1, 0), Payload: map[string]*pb.Value{
		"text": pb.NewValueString("t"), "whole": pb.NewValueInt(42), "float": pb.NewValueDouble(42), "large": pb.NewValueInt(9007199254740993),
		"tags": pb.NewValueFromList(pb.NewValueString("a"), pb.NewValueNull(), pb.NewValueBool(true)), "ordinal": pb.NewValueDouble(3),
		"nested": pb.NewValueFromFields(map[string]*pb.Value{"x": pb.NewValueFromList(pb.NewValueInt(-1))}), "unasked": pb.NewValueString("not sent"),
	}})
	p := s.open(c, name, &qdrant.Options{Metadata: []string{"whole", "float", "large", "tags", "nested", "missing"}})
	want := map[string]any{
		"whole": int64(42), "float": float64(42), "large": int64(9007199254740993), "tags": []any{"a", nil, true},
		"nested": map[string]any{"x": []any{int64(-1)}}, "ordinal": 3,
	}
	if got := ask(t, p, by(1, 0), 1)[0].Metadata; !reflect.DeepEqual(got, want) {
		t.Errorf("metadata %#v, want %#v", got, want)
	}
}

// TestFilters: 42 is not 42.0, missing keys are not matched, and the JSON form
// is the Go form.
func TestFilters(t *testing.T) {
	s := server(t)
	c := s.client(nil)
	name := s.create(pb.NewVectorsConfig(&pb.VectorParams{Size: 2, Distance: pb.Distance_Cosine}), nil)
	point := func(id uint64, key string, v *pb.Value) {
		payload := map[string]*pb.Value{"text": pb.NewValueString(fmt.Sprint(id))}
		if key != "" {
			payload[key] = v
		}
		s.upsert(name, &pb.PointStruct{Id: pb.NewIDNum(id), Vectors: pb.NewVectors(1, float32(id)/100), Payload: payload})
	}
	point(1, "n", pb.NewValueInt(42))
	point(2, "n", pb.NewValueDouble(42.5))
	point(3, "n", pb.NewValueInt(9007199254740993))
	point(4, "lang", pb.NewValueString("en"))
	point(5, "lang", pb.NewValueFromList(pb.NewValueString("de"), pb.NewValueString("fr")))
	point(6, "", nil)
	for _, f := range []struct {
		filter string
		want   []string
	}{
		{`{"must":[{"key":"n","match":{"value":42}}]}`, []string{"1"}},
		{`{"must":[{"key":"n","range":{"gte":42,"lt":43}}]}`, []string{"1", "2"}},
		{`{"must":{"key":"n","match":{"value":9007199254740993}}}`, []string{"3"}},
		{`{"must":[{"key":"n","match":{"any":[9007199254740992,42]}}]}`, []string{"1"}},
		{`{"must":[{"key":"lang","match":{"any":["en","fr"]}}]}`, []string{"4", "5"}},
		{`{"must":[{"key":"lang","match":{"value":"de"}}]}`, []string{"5"}},
		{`{"must":[{"is_empty":{"key":"lang"}},{"is_empty":{"key":"n"}}]}`, []string{"6"}},
		{`{"must_not":[{"key":"n","range":{"gte":0}},{"is_empty":{"key":"lang"}}]}`, []string{"4", "5"}},
		{`{"should":[{"has_id":[6]},{"key":"lang","match":{"value":"en"}}]}`, []string{"4", "6"}},
		{`{"must":[{"should":[{"has_id":[1,2]}]},{"key":"n","values_count":{"gte":1}}]}`, []string{"1", "2"}},
		{`{"min_should":{"min_count":2,"conditions":[{"has_id":[1]},{"key":"n","match":{"value":42}},{"has_id":[2]}]}}`, []string{"1"}},
		{`{"must":[{"has_id":[]}]}`, nil},
		{`{}`, []string{"1", "2", "3", "4", "5", "6"}},
	} {
		parsed, err := qdrant.ParseFilter([]byte(f.filter))
		if err != nil {
			t.Errorf("%s: %v", f.filter, err)
			continue
		}
		if got := ids(ask(t, s.open(c, name, &qdrant.Options{Filter: parsed}), by(1, 0), 10)); !slices.Equal(got, f.want) && len(got)+len(f.want) > 0 {
			t.Errorf("%s: %q, want %q", f.filter, got, f.want)
		}
	}
	only := &pb.Filter{Must: []*pb.Condition{pb.NewMatchKeyword("lang", "en")}}
	p := s.open(c, name, &qdrant.Options{Filter: only})
	only.Must[0] = pb.NewMatchKeyword("lang", "de") // must not reach the provider
	if got := ids(ask(t, p, by(1, 0), 10)); !slices.Equal(got, []string{"4"}) {
		t.Errorf("the Go form: %q", got)
	}
	if scored, err := p.ScoreChunks(t.Context(), by(1, 0), []string{"4", "5"}); err != nil || len(scored) != 1 {
		t.Errorf("scores behind a filter %v, error %v, want that of 4", scored, err)
	}
	empty := &pb.Filter{MustNot: []*pb.Condition{pb.NewFilterAsCondition(&pb.Filter{Must: []*pb.Condition{pb.NewMatchExceptKeywords("lang")}})}}
	_, err := qdrant.NewProvider(t.Context(), c, name, &qdrant.Options{Filter: empty})
	expect(t, err, mapmatched.KindInvalid, `key "lang" with an empty list`)
}

// TestVectorNames: an unknown vector, and a name where there is none or none
// where there is one, say what there is.
func TestVectorNames(t *testing.T) {
	s := server(t)
	c := s.client(nil)
	named := s.create(pb.NewVectorsConfigMap(map[string]*pb.VectorParams{
		"dense": {Size: 2, Distance: pb.Distance_Dot},
		"multi": {Size: 2, Distance: pb.Distance_Dot, MultivectorConfig: &pb.MultiVectorConfig{Comparator: pb.MultiVectorComparator_MaxSim}},
	}), pb.NewSparseVectorsConfig(map[string]*pb.SparseVectorParams{"words": {}}))
	unnamed := s.create(pb.NewVectorsConfig(&pb.VectorParams{Size: 3, Distance: pb.Distance_Cosine}), nil)
	open := func(name string, opts qdrant.Options) error {
		_, err := qdrant.NewProvider(t.Context(), c, name, &opts)
		return err
	}
	expect(t, open(named, qdrant.Options{Vector: "dence"}), mapmatched.KindInvalid, named, `no vector "dence"`, `"dense" (dense, 2 dimensions, Dot)`, `"multi"`, `"words" (sparse)`)
	expect(t, open(named, qdrant.Options{}), mapmatched.KindInvalid, "no unnamed vector", "vector=NAME", `"dense"`)
	expect(t, open(unnamed, qdrant.Options{Vector: "dense"}), mapmatched.KindInvalid, "has no name, so leave the name out", "3 dimensions")
	expect(t, open(named, qdrant.Options{Vector: "words"}), mapmatched.KindInvalid, "SparseEncoder")
	expect(t, open(named, qdrant.Options{Vector: "multi", MMR: &qdrant.MMR{}}), mapmatched.KindInvalid, "MMR", "multi")
	err := open("no_such_collection", qdrant.Options{})
	expect(t, err, mapmatched.KindNotFound, "no_such_collection", s.address, "there are ", "mmplug index --to qdrant://")
	if s.fake != nil { // a real server may have too many to list
		expect(t, err, mapmatched.KindNotFound, fmt.Sprintf("%q, %q", named, unnamed))
	}
	expect(t, open("", qdrant.Options{}), mapmatched.KindInvalid, "name of the collection is missing")

	p := s.open(c, unnamed, nil)
	_, err = p.Candidates(t.Context(), by(1, 0), 3)
	expect(t, err, mapmatched.KindInvalid, "query vector has 2 dimensions", "has 3", unnamed, s.address)
	_, err = p.Candidates(t.Context(), by(0, 0, 0), 3)
	expect(t, err, mapmatched.KindInvalid, "zero")
	_, err = p.Candidates(t.Context(), by(1, float32(math.NaN()), 0), 3)
	expect(t, err, mapmatched.KindInvalid, "component 1 is NaN")
	_, err = p.Candidates(t.Context(), mapmatched.Query{Text: "words"}, 3)
	expect(t, err, mapmatched.KindInvalid, "Options.Embedder")
	if got := ask(t, p, by(1, 0, 0), 3); len(got) != 0 {
		t.Errorf("an empty collection: %v", got)
	}
	if got := ask(t, p, mapmatched.Query{Text: " \t"}, 3); len(got) != 0 {
		t.Errorf("a blank query: %v", got)
	}
}

// TestCollectionMadeAnew: a collection that changed while it was open is told
// from one that is gone.
func TestCollectionMadeAnew(t *testing.T) {
	s := server(t)
	c := s.client(nil)
	name := s.write(c, nil, record("a", 1, 0))
	p := s.open(c, name, nil)
	if there, err := c.DeleteCollection(t.Context(), name); err != nil || !there {
		t.Fatalf("deleted %v, error %v", there, err)
	}
	_, err := p.Candidates(t.Context(), by(1, 0), 1)
	expect(t, err, mapmatched.KindNotFound, name, "mmplug index")
	if err := s.raw().CreateCollection(t.Context(), &pb.CreateCollection{CollectionName: name, VectorsConfig: pb.NewVectorsConfig(&pb.VectorParams{Size: 3, Distance: pb.Distance_Dot})}); err != nil {
		t.Fatal(err)
	}
	_, err = p.Candidates(t.Context(), by(1, 0), 1)
	expect(t, err, mapmatched.KindInvalid, name, "made anew", "2 dimensions, Cosine", "3 dimensions, Dot")
}

func TestMultiVectors(t *testing.T) {
	s := server(t)
	c := s.client(nil)
	name := s.create(pb.NewVectorsConfigMap(map[string]*pb.VectorParams{
		"late": {Size: 2, Distance: pb.Distance_Dot, MultivectorConfig: &pb.MultiVectorConfig{Comparator: pb.MultiVectorComparator_MaxSim}},
	}), nil)
	point := func(id uint64, rows ...[]float32) {
		s.upsert(name, &pb.PointStruct{Id: pb.NewIDNum(id), Payload: map[string]*pb.Value{"text": pb.NewValueString("t")},
			Vectors: pb.NewVectorsMap(map[string]*pb.Vector{"late": pb.NewVectorMulti(rows)})})
	}
	point(1, []float32{1, 0}, []float32{0, 1})
	point(2, []float32{2, 0})
	// (1,0),(0,1): point 1 has 1 + 1 of them, point 2 has 2 + 0; (1,0) alone: 1 and 2.
	encoded := s.open(c, name, &qdrant.Options{Vector: "late", MultiEncoder: func(context.Context, string) ([][]float32, error) {
		return [][]float32{{1, 0}, {0, 3}}, nil
	}})
	got := ask(t, encoded, mapmatched.Query{Text: "q"}, 5)
	if !slices.Equal(ids(got), []string{"1", "2"}) || got[0].Score != 4 || got[1].Score != 2 {
		t.Errorf("two vectors: %+v", got)
	}
	got = ask(t, s.open(c, name, &qdrant.Options{Vector: "late"}), by(1, 0), 5)
	if !slices.Equal(ids(got), []string{"2", "1"}) || got[0].Score != 2 {
		t.Errorf("one vector: %+v", got)
	}
	if v, err := encoded.Vectors(t.Context(), []string{"1"}); err != nil || v[0] != nil {
		t.Errorf("vectors %v, error %v, want none for a multi-vector", v, err)
	}
	failing := s.open(c, name, &qdrant.Options{Vector: "late", MultiEncoder: func(context.Context, string) ([][]float32, error) {
		return nil, errors.New("model is not loaded")
	}})
	_, err := failing.Candidates(t.Context(), mapmatched.Query{Text: "q"}, 5)
	expect(t, err, mapmatched.KindInvalid, "model is not loaded")
}

func TestSparse(t *testing.T) {
	s := server(t)
	c := s.client(nil)
	name := s.create(pb.NewVectorsConfigMap(map[string]*pb.VectorParams{}), pb.NewSparseVectorsConfig(map[string]*pb.SparseVectorParams{"words": {}}))
	s.upsert(name,
		&pb.PointStruct{Id: pb.NewIDNum(1), Payload: map[string]*pb.Value{"text": pb.NewValueString("t")}, Vectors: pb.NewVectorsMap(map[string]*pb.Vector{"words": pb.NewVectorSparse([]uint32{1, 5}, []float32{2, 3})})},
		&pb.PointStruct{Id: pb.NewIDNum(2), Payload: map[string]*pb.Value{"text": pb.NewValueString("t")}, Vectors: pb.NewVectorsMap(map[string]*pb.Vector{"words": pb.NewVectorSparse([]uint32{9}, []float32{1})})},
	)
	open := func(v qdrant.SparseVector, err error) *qdrant.Provider {
		return s.open(c, name, &qdrant.Options{Vector: "words", SparseEncoder: func(context.Context, string) (qdrant.SparseVector, error) { return v, err }})
	}
	got := ask(t, open(qdrant.SparseVector{Indices: []uint32{5, 1}, Values: []float32{1, 10}}, nil), mapmatched.Query{Text: "q"}, 5)
	if !slices.Equal(ids(got), []string{"1"}) || got[0].Score != 23 {
		t.Errorf("candidates %+v, want 1 with 2·10 + 3·1", got)
	}
	if got := ask(t, open(qdrant.SparseVector{}, nil), mapmatched.Query{Text: "q"}, 5); len(got) != 0 {
		t.Errorf("an empty vector: %v", got)
	}
	for _, bad := range []qdrant.SparseVector{
		{Indices: []uint32{1}, Values: []float32{1, 2}}, {Indices: []uint32{1, 1}, Values: []float32{1, 2}}, {Indices: []uint32{1}, Values: []float32{float32(math.Inf(1))}},
	} {
		_, err := open(bad, nil).Candidates(t.Context(), mapmatched.Query{Text: "q"}, 5)
		expect(t, err, mapmatched.KindInvalid, "vector of the query")
	}
	_, err := open(qdrant.SparseVector{}, errors.New("no vocabulary")).Candidates(t.Context(), mapmatched.Query{Text: "q"}, 5)
	expect(t, err, mapmatched.KindInvalid, "no vocabulary")
}

// TestMMRAndFormula: both are the server's work and only passed on.
func TestMMRAndFormula(t *testing.T) {
	s := server(t)
	c := s.client(nil)
	name := s.write(c, nil, record("a", 1, 0), record("twin of a", 1, 0.01), record("other", 0.5, 0.85))
	plain := ask(t, s.open(c, name, nil), by(1, 0), 2)
	if !slices.Equal(ids(plain), []string{"a", "twin of a"}) {
		t.Fatalf("without: %q", ids(plain))
	}
	p := s.open(c, name, &qdrant.Options{MMR: &qdrant.MMR{Diversity: 0.9, Candidates: 3}})
	diverse := ask(t, p, by(1, 0), 2)
	if !slices.Equal(ids(diverse), []string{"a", "other"}) || diverse[0].Score < diverse[1].Score {
		t.Errorf("with MMR: %+v, want a and other, best first", diverse)
	}
	if scored, err := p.ScoreChunks(t.Context(), by(1, 0), []string{"twin of a"}); err != nil || len(scored) != 1 || !near(scored[0].Score, plain[1].Score) {
		t.Errorf("score of a given chunk %v, error %v, want %v", scored, err, plain[1].Score)
	}
	few := s.open(c, name, &qdrant.Options{MMR: &qdrant.MMR{Candidates: 1}})
	if scored, err := few.ScoreChunks(t.Context(), by(1, 0), []string{"a", "other", "twin of a"}); err != nil || len(scored) != 3 {
		t.Errorf("scores of given chunks %v, error %v, want three whatever is picked from", scored, err)
	}
	boost := &pb.Formula{Expression: pb.NewExpressionSum(&pb.SumExpression{Sum: []*pb.Expression{
		pb.NewExpressionVariable("$score"), pb.NewExpressionCondition(pb.NewMatchKeyword("chunk_id", "other")),
	}})}
	f := s.open(c, name, &qdrant.Options{Formula: boost, ScoreThreshold: new(0.99)})
	got := ask(t, f, by(1, 0), 5)
	if !slices.Equal(ids(got), []string{"other", "a", "twin of a"}) || !near(got[1].Score, 1) || got[0].Score < 1.4 {
		t.Errorf("with a formula: %+v", got)
	}
	scored, err := f.ScoreChunks(t.Context(), by(1, 0), []string{"other", "a"})
	if err != nil || len(scored) != 2 || !near(scored[0].Score, got[0].Score) || !near(scored[1].Score, got[1].Score) {
		t.Errorf("scores of given chunks %v, error %v, want those of %+v", scored, err, got)
	}
}

func TestOptionsRefused(t *testing.T) {
	s := server(t)
	c := s.client(nil)
	_, err := qdrant.NewProvider(t.Context(), c, "any", &qdrant.Options{
		ScoreThreshold: new(math.NaN()), HNSWEf: -1, Limit: -1, MMR: &qdrant.MMR{Diversity: 1.5, Candidates: -1}, Formula: &pb.Formula{}, FormulaCandidates: -1,
		Metadata: []string{"a.b"}, Keys: qdrant.PayloadKeys{Text: "x", Title: "x", Section: "a[0]"},
	})
	if !errors.Is(err, mapmatched.ErrInvalidConfig) {
		t.Errorf("error %v, want ErrInvalidConfig", err)
	}
	for _, part := range []string{"ScoreThreshold is NaN", "HNSWEf is -1", "Limit is -1", "Diversity is 1.5", "MMR.Candidates is -1", "MMR and Formula", "FormulaCandidates is -1", `"a.b"`, `Text and Title are both "x"`, `"a[0]"`} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("error %v lacks %q", err, part)
		}
	}
}

// liar is an embedder that returns something else than one vector.
type liar [][]float32

func (l liar) Embed(context.Context, []string) ([][]float32, error) { return l, nil }

func TestEmbedderFaults(t *testing.T) {
	s := server(t)
	c := s.client(nil)
	name := s.write(c, nil, record("a", 1, 0))
	for want, embedder := range map[string]mapmatched.Embedder{"0 vectors for 1 text": liar{}, "2 vectors for 1 text": liar{{1, 0}, {0, 1}}, "empty vector": liar{{}}, "3 dimensions": liar{{1, 2, 3}}} {
		_, err := s.open(c, name, &qdrant.Options{Embedder: embedder}).Candidates(t.Context(), mapmatched.Query{Text: "q"}, 1)
		expect(t, err, mapmatched.KindInvalid, want)
	}
}

// TestLimits: Limit bounds what a query asks for.
func TestLimits(t *testing.T) {
	s := server(t)
	c := s.client(nil)
	name := s.write(c, nil, record("a", 1, 0), record("b", 1, 1), record("c", 0, 1))
	p := s.open(c, name, &qdrant.Options{Limit: 2, Exact: true, HNSWEf: 64})
	if got := ids(ask(t, p, by(1, 0), 3)); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("limit 2 of 3: %q", got)
	}
	if got := ids(ask(t, p, by(1, 0), 1)); !slices.Equal(got, []string{"a"}) {
		t.Errorf("limit 1: %q", got)
	}
}
