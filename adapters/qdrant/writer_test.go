package qdrant_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	pb "github.com/qdrant/go-client/qdrant"

	"github.com/mapmatched/mmplug/adapters/qdrant"
	"github.com/mapmatched/mmplug/integration/qdranttest"
	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/mapmatched/adaptertest"
)

func (s *target) writer(c *qdrant.Client, collection string, opts *qdrant.WriterOptions) *qdrant.Writer {
	s.t.Helper()
	w, err := qdrant.NewWriter(c, collection, opts)
	if err != nil {
		s.t.Fatal(err)
	}
	return w
}

func TestWriteCorpus(t *testing.T) {
	s := server(t)
	c := s.client(nil)
	corpus := adaptertest.NewCorpus()
	all := corpusRecords(corpus)
	id := identityOf(len(corpus.Vectors[0]))
	name := s.collection()
	w := s.writer(c, name, &qdrant.WriterOptions{BatchPoints: 5})
	var done []int
	write := func(records iter.Seq2[mapmatched.Record, error]) (mapmatched.WriteReport, error) {
		done = nil
		return w.WriteCorpus(t.Context(), id, records, func(n int) { done = append(done, n) })
	}
	check := func(what string, got mapmatched.WriteReport, err error, want mapmatched.WriteReport) {
		t.Helper()
		if err != nil || got != want {
			t.Errorf("%s: report %+v, error %v, want %+v", what, got, err, want)
		}
	}
	got, err := write(records(all...))
	check("first", got, err, mapmatched.WriteReport{Created: true, Written: 12})
	if !slices.Equal(done, []int{5, 10, 12}) {
		t.Errorf("progress %v", done)
	}
	got, err = write(records(all...))
	check("again", got, err, mapmatched.WriteReport{Kept: 12})
	if !slices.Equal(done, []int{5, 10, 12}) {
		t.Errorf("progress %v", done)
	}
	changed := slices.Clone(all)
	changed[1].Chunk.Text = "changed"
	changed[4].Edges = nil
	changed[6].Vector = all[7].Vector
	got, err = write(records(changed...))
	check("three changed", got, err, mapmatched.WriteReport{Written: 3, Kept: 9})

	p := s.open(c, name, &qdrant.Options{Embedder: corpus})
	chunks, err := p.Chunks(t.Context(), []string{all[1].Chunk.ID, all[0].Chunk.ID})
	if err != nil || len(chunks) != 2 || chunks[0] != changed[1].Chunk || chunks[1] != all[0].Chunk {
		t.Errorf("chunks %+v, error %v", chunks, err)
	}
	if got, err := p.CorpusIdentity(t.Context()); err != nil || got != id {
		t.Errorf("identity %+v, error %v, want %+v", got, err, id)
	}
	points, err := s.raw().Get(t.Context(), &pb.GetPoints{CollectionName: name, Ids: []*pb.PointId{pb.NewIDUUID(qdrant.PointUUID(all[1].Chunk.ID)), pb.NewIDUUID(qdrant.PointUUID(all[0].Chunk.ID))}, WithPayload: pb.NewWithPayload(true)})
	if err != nil || len(points) != 2 {
		t.Fatalf("%d points, error %v", len(points), err)
	}
	for _, point := range points {
		edges := point.GetPayload()["edges"].GetListValue().GetValues()
		if point.GetPayload()["chunk_id"].GetStringValue() == all[0].Chunk.ID {
			if len(edges) != 0 {
				t.Errorf("edges %v where there are none", edges)
			}
			continue
		}
		e := edges[0].GetStructValue().GetFields()
		if len(edges) != 1 || e["to"].GetStringValue() != all[0].Chunk.ID || e["weight"].GetDoubleValue() != 1 || e["type"].GetStringValue() != "next" {
			t.Errorf("edges %v", edges)
		}
	}
}

// TestWriteResumes: after an interruption the same call writes what is missing.
func TestWriteResumes(t *testing.T) {
	s := server(t)
	c := s.client(nil)
	name := s.collection()
	w := s.writer(c, name, &qdrant.WriterOptions{BatchPoints: 2})
	var all []mapmatched.Record
	for i := range 10 {
		all = append(all, record(fmt.Sprint(i), float32(i), 1))
	}
	broken := errors.New("source broke")
	report, err := w.WriteCorpus(t.Context(), identityOf(2), func(yield func(mapmatched.Record, error) bool) {
		for _, r := range all[:5] {
			yield(r, nil)
		}
		yield(mapmatched.Record{}, broken)
	}, nil)
	if !errors.Is(err, broken) || report != (mapmatched.WriteReport{Created: true, Written: 4}) {
		t.Errorf("report %+v, error %v", report, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	report, err = w.WriteCorpus(ctx, identityOf(2), records(all...), func(done int) {
		if done == 6 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) || report != (mapmatched.WriteReport{Written: 2, Kept: 4}) {
		t.Errorf("report %+v, error %v", report, err)
	}
	report, err = w.WriteCorpus(t.Context(), identityOf(2), records(all...), nil)
	if err != nil || report != (mapmatched.WriteReport{Written: 4, Kept: 6}) {
		t.Errorf("report %+v, error %v", report, err)
	}
	if got := ask(t, s.open(c, name, nil), by(1, 0), 20); len(got) != 10 {
		t.Errorf("%d candidates, want 10", len(got))
	}
}

// health is that of a client.
type health struct{ *qdrant.Client }

func (h health) Health(ctx context.Context) error {
	_, err := h.Version(ctx)
	return err
}

// TestWriteThroughFaults: the server is busy, away for a moment and dead in the
// middle.
func TestWriteThroughFaults(t *testing.T) {
	s := faulty(t, nil)
	c := s.client(func(o *qdrant.ClientOptions) { o.RetryWait = time.Millisecond })
	name := s.collection()
	w := s.writer(c, name, &qdrant.WriterOptions{BatchPoints: 1})
	all := []mapmatched.Record{record("a", 1, 0), record("b", 0, 1), record("c", 1, 1)}
	s.fake.Inject(qdranttest.Fault{Method: "Points/Upsert", Skip: 1, Times: 2, Drop: true})
	report, err := w.WriteCorpus(t.Context(), identityOf(2), records(all[:2]...), nil)
	if err != nil || report.Written != 2 {
		t.Errorf("report %+v, error %v", report, err)
	}
	report, err = w.WriteCorpus(t.Context(), identityOf(2), records(all...), func(int) { s.fake.Kill() })
	expect(t, err, mapmatched.KindUnavailable, s.address, name)
	if report.Kept != 1 {
		t.Errorf("report %+v", report)
	}
	s.restart(health{c})
	report, err = w.WriteCorpus(t.Context(), identityOf(2), records(all...), nil)
	if err != nil || report != (mapmatched.WriteReport{Written: 1, Kept: 2}) {
		t.Errorf("report %+v, error %v", report, err)
	}
}

// TestWriteSizes: a batch that is too large for the server is sent in halves.
func TestWriteSizes(t *testing.T) {
	s := faulty(t, &qdranttest.Options{MaxReceive: 64 << 10})
	c := s.client(nil)
	var all []mapmatched.Record
	for i := range 8 {
		r := record(fmt.Sprint(i), float32(i), 1)
		r.Chunk.Text = strings.Repeat("x", 20<<10)
		all = append(all, r)
	}
	report, err := s.writer(c, s.collection(), nil).WriteCorpus(t.Context(), identityOf(2), records(all...), nil)
	if err != nil || report.Written != 8 {
		t.Errorf("report %+v, error %v", report, err)
	}
	s.fake.ResetCalls()
	report, err = s.writer(c, s.collection(), &qdrant.WriterOptions{BatchBytes: 45 << 10}).WriteCorpus(t.Context(), identityOf(2), records(all...), nil)
	if n := s.fake.Calls()["Points/Upsert"]; err != nil || report.Written != 8 || n != 4 {
		t.Errorf("report %+v, error %v, %d calls, want 4 of two records", report, err, n)
	}
	all[3].Chunk.Text = strings.Repeat("x", 100<<10)
	_, err = s.writer(c, s.collection(), nil).WriteCorpus(t.Context(), identityOf(2), records(all...), nil)
	expect(t, err, mapmatched.KindInvalid, "larger than max")
}

// TestWriteChecks: a collection that does not fit is refused with every
// difference, and one without an identity unless it is to be adopted.
func TestWriteChecks(t *testing.T) {
	s := server(t)
	c := s.client(nil)
	name := s.write(c, &qdrant.WriterOptions{Vector: "dense", Distance: qdrant.DistanceDot}, record("a", 1, 0))
	write := func(name string, opts qdrant.WriterOptions, id mapmatched.CorpusIdentity, all ...mapmatched.Record) error {
		_, err := s.writer(c, name, &opts).WriteCorpus(t.Context(), id, records(all...), nil)
		return err
	}
	other := identityOf(3)
	other.Model, other.MaximumDistance = "other", 5
	err := write(name, qdrant.WriterOptions{Vector: "dense", Sparse: "terms"}, other)
	expect(t, err, mapmatched.KindInvalid, name, `"dense" (dense, 2 dimensions, Dot), wanted "dense" (dense, 3 dimensions, Cosine)`, `no vector "terms"`,
		`model is "words", wanted "other"`, "dimension is 2, wanted 3", "maximum_distance is 10, wanted 5", "delete this one")
	if !errors.Is(err, mapmatched.ErrStaleIndex) {
		t.Errorf("error %v is not ErrStaleIndex", err)
	}
	if n := strings.Count(err.Error(), name); n != 1 {
		t.Errorf("error %q names the collection %d times", err, n)
	}
	expect(t, write(name, qdrant.WriterOptions{}, identityOf(2)), mapmatched.KindInvalid, "no unnamed vector")
	foreign := s.create(pb.NewVectorsConfig(&pb.VectorParams{Size: 2, Distance: pb.Distance_Cosine}), nil)
	err = write(foreign, qdrant.WriterOptions{}, identityOf(2), record("a", 1, 0))
	expect(t, err, mapmatched.KindInvalid, foreign, "does not say which model", "adopt=true")
	if !errors.Is(err, mapmatched.ErrStaleIndex) {
		t.Errorf("error %v is not ErrStaleIndex", err)
	}
	if err := write(foreign, qdrant.WriterOptions{Adopt: true}, identityOf(2), record("a", 1, 0)); err != nil {
		t.Error(err)
	}
	if err := write(foreign, qdrant.WriterOptions{}, identityOf(2), record("b", 1, 0)); err != nil {
		t.Errorf("after it was adopted: %v", err)
	}

	edge := func(e mapmatched.Edge) mapmatched.Record {
		r := record("a", 1, 0)
		r.Edges = []mapmatched.Edge{e}
		return r
	}
	text := record("a", 1, 0)
	text.Chunk.Text = "\xff"
	for want, bad := range map[string]mapmatched.Record{
		"empty chunk ID":                   record("", 1, 0),
		"3 dimensions and the identity":    record("a", 1, 0, 0),
		"component 1 is +Inf":              record("a", 1, float32(math.Inf(1))),
		`edge 0 begins at "b"`:             edge(mapmatched.Edge{From: "b", To: "c", Weight: 1}),
		"edge 0: empty chunk ID":           edge(mapmatched.Edge{From: "a", Weight: 1}),
		`edge to "c" has weight 0`:         edge(mapmatched.Edge{From: "a", To: "c"}),
		`edge to "c" has weight NaN`:       edge(mapmatched.Edge{From: "a", To: "c", Weight: math.NaN()}),
		`edge to "c" has weight +Inf`:      edge(mapmatched.Edge{From: "a", To: "c", Weight: math.Inf(1)}),
		"text of type string":              text,
		"its vector is zero":               record("a", 0, 0),
		"record 1, chunk \"good\": the ch": record("good", 1, 0),
	} {
		expect(t, write(s.collection(), qdrant.WriterOptions{}, identityOf(2), record("good", 1, 0), bad), mapmatched.KindInvalid, want, "record 1")
	}
	expect(t, write(s.collection(), qdrant.WriterOptions{}, identityOf(0), record("a")), mapmatched.KindInvalid, "no vectors", "sparse=NAME")
}

// TestWriteWithoutSomeVectors: a chunk without a vector is kept and not found
// by vectors.
func TestWriteWithoutSomeVectors(t *testing.T) {
	s := server(t)
	c := s.client(nil)
	for _, opts := range []qdrant.WriterOptions{{}, {Vector: "dense"}, {Sparse: "terms"}, {Vector: "dense", Sparse: "terms"}} {
		name := s.write(c, &opts, record("a", 1, 0), record("bare"))
		p := s.open(c, name, &qdrant.Options{Vector: opts.Vector})
		if got := ids(ask(t, p, by(1, 0), 5)); !slices.Equal(got, []string{"a"}) {
			t.Errorf("%+v: candidates %q", opts, got)
		}
		vectors, err := p.Vectors(t.Context(), []string{"bare", "a"})
		if err != nil || vectors[0] != nil || !slices.Equal(vectors[1], []float32{1, 0}) {
			t.Errorf("%+v: vectors %v, error %v", opts, vectors, err)
		}
		if chunks, err := p.Chunks(t.Context(), []string{"bare"}); err != nil || len(chunks) != 1 {
			t.Errorf("%+v: chunks %v, error %v", opts, chunks, err)
		}
	}
}

// TestWriteSparseOnly: without dense vectors chunks are found by their words,
// rare words first.
func TestWriteSparseOnly(t *testing.T) {
	s := server(t)
	c := s.client(nil)
	corpus := adaptertest.NewCorpus()
	var all []mapmatched.Record
	for _, chunk := range corpus.Chunks {
		all = append(all, mapmatched.Record{Chunk: chunk})
	}
	name := s.collection()
	if _, err := s.writer(c, name, &qdrant.WriterOptions{Sparse: "terms"}).WriteCorpus(t.Context(), identityOf(0), records(all...), nil); err != nil {
		t.Fatal(err)
	}
	p := s.open(c, name, &qdrant.Options{Vector: "terms", SparseEncoder: qdrant.TermQuery})
	for text, want := range map[string]string{"the pendulum": "town/clock", "ROAD tolls toll": "roads/toll", "故乡": "poems/故乡"} {
		if got := ids(ask(t, p, mapmatched.Query{Text: text}, 3)); len(got) == 0 || got[0] != want {
			t.Errorf("%q: %q, want %q first", text, got, want)
		}
	}
	if got := ask(t, p, mapmatched.Query{Text: "异国"}, 3); len(got) != 0 {
		t.Errorf("a word that no chunk has: %q", ids(got))
	}
}

// TestWriteWaits: what was written with wait is found at once; without, it is
// found when the server has got round to it.
func TestWriteWaits(t *testing.T) {
	s := faulty(t, &qdranttest.Options{WriteDelay: time.Hour})
	c := s.client(nil)
	name := s.write(c, nil, record("a", 1, 0))
	p := s.open(c, name, nil)
	if got := ids(ask(t, p, by(1, 0), 5)); !slices.Equal(got, []string{"a"}) {
		t.Errorf("with wait: %q", got)
	}
	report, err := s.writer(c, name, &qdrant.WriterOptions{NoWait: true}).WriteCorpus(t.Context(), identityOf(2), records(record("b", 1, 0.1)), nil)
	if err != nil || report.Written != 1 {
		t.Fatalf("report %+v, error %v", report, err)
	}
	if got := ids(ask(t, p, by(1, 0), 5)); !slices.Equal(got, []string{"a"}) {
		t.Errorf("without wait, at once: %q", got)
	}
	s.fake.Settle()
	if got := ids(ask(t, p, by(1, 0), 5)); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("without wait, later: %q", got)
	}
}

// TestWriteKeepsVectors: a writer that would leave vectors out, which replaces
// them by nothing, is refused with their names.
func TestWriteKeepsVectors(t *testing.T) {
	s := server(t)
	c := s.client(nil)
	a := record("a", 1, 0)
	name := s.write(c, &qdrant.WriterOptions{Sparse: "terms"}, a)
	a.Chunk.Text = "another text"
	write := func(opts qdrant.WriterOptions, id mapmatched.CorpusIdentity) error {
		_, err := s.writer(c, name, &opts).WriteCorpus(t.Context(), id, records(a), nil)
		return err
	}
	expect(t, write(qdrant.WriterOptions{}, identityOf(2)), mapmatched.KindInvalid, `"terms" (sparse) would be lost`, "sparse=terms")
	expect(t, write(qdrant.WriterOptions{Sparse: "terms"}, identityOf(0)), mapmatched.KindInvalid, "unnamed (dense, 2 dimensions, Cosine) would be lost")
	foreign := s.create(pb.NewVectorsConfigMap(map[string]*pb.VectorParams{"v": {Size: 2, Distance: pb.Distance_Cosine}, "w": {Size: 3, Distance: pb.Distance_Dot}}), nil)
	_, err := s.writer(c, foreign, &qdrant.WriterOptions{Vector: "v", Adopt: true}).WriteCorpus(t.Context(), identityOf(2), records(a), nil)
	expect(t, err, mapmatched.KindInvalid, `"w" (dense, 3 dimensions, Dot) would be lost`, "vector=w")
	p := s.open(c, name, &qdrant.Options{Vector: "terms", SparseEncoder: qdrant.TermQuery})
	if got := ids(ask(t, p, mapmatched.Query{Text: "text of a"}, 5)); !slices.Equal(got, []string{"a"}) {
		t.Errorf("by words: %q", got)
	}
	if err := write(qdrant.WriterOptions{Sparse: "terms"}, identityOf(2)); err != nil {
		t.Error(err)
	}
}

func TestWriterRefuses(t *testing.T) {
	s := server(t)
	c := s.client(nil)
	_, err := qdrant.NewWriter(c, "x", &qdrant.WriterOptions{Distance: "hamming", Vector: "v", Sparse: "v", BatchPoints: -1, Keys: qdrant.PayloadKeys{ChunkID: qdrant.NoKey}})
	for _, part := range []string{`"hamming"`, `both "v"`, "BatchPoints is -1", "ChunkID is NoKey"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("error %v lacks %q", err, part)
		}
	}
	_, err = qdrant.NewWriter(c, "x", &qdrant.WriterOptions{SparseEncoder: qdrant.TermDocument})
	expect(t, err, mapmatched.KindInvalid, "no effect without Sparse")
	_, err = qdrant.NewWriter(c, "x", &qdrant.WriterOptions{Keys: qdrant.PayloadKeys{Text: "digest", Edges: "digest"}})
	for _, part := range []string{`Keys.Text is "digest"`, `Keys.Edges is "digest"`, `Text and Edges are both "digest"`} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("error %v lacks %q", err, part)
		}
	}
	_, err = qdrant.NewWriter(c, "", nil)
	expect(t, err, mapmatched.KindInvalid, "name of the collection is missing")
	w := s.writer(c, "x", nil)
	if err := errors.Join(w.Close(), w.Close()); err != nil {
		t.Error(err)
	}
	if _, err := w.WriteCorpus(t.Context(), identityOf(2), records(), nil); !errors.Is(err, mapmatched.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// TestOldServer: one that keeps no metadata is refused before anything is made.
func TestOldServer(t *testing.T) {
	s := faulty(t, &qdranttest.Options{Version: "1.15.5"})
	c := s.client(nil)
	_, err := s.writer(c, "pages", nil).WriteCorpus(t.Context(), identityOf(2), records(record("a", 1, 0)), nil)
	expect(t, err, mapmatched.KindInvalid, "Qdrant 1.15.5", "1.16 or newer")
	if names, err := c.Collections(t.Context()); err != nil || len(names) != 0 {
		t.Errorf("collections %q, error %v", names, err)
	}
}
