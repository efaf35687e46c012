package weaviate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/weaviate/weaviate/entities/models"

	"github.com/mapmatched/mmplug/integration/weaviatetest"
	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/mapmatched/registry"
)

// A session goes on after the server was killed and restarted: the turn in
// between fails as unavailable and leaves the session as it was.
func TestKilledInMidSession(t *testing.T) {
	s := weaviatetest.StartOwned(t, weaviatetest.Options{})
	identity, records := suiteRecords()
	identity.MaximumDistance = 8
	for i := 1; i < len(records); i++ {
		a, b := &records[i-1], &records[i]
		a.Edges = append(a.Edges, mapmatched.Edge{From: a.Chunk.ID, To: b.Chunk.ID, Weight: 1, Type: mapmatched.EdgeNext})
		b.Edges = append(b.Edges, mapmatched.Edge{From: b.Chunk.ID, To: a.Chunk.ID, Weight: 1, Type: mapmatched.EdgeNext})
	}
	write(t, s, "Pages", "grpc", identity, records)
	type conversation struct {
		session *mapmatched.Session
		name    string
	}
	var conversations []conversation
	for _, transport := range transports {
		c := connectionTo(s, transport)
		p, err := Open(t.Context(), s.Host, "Pages", &Options{Connection: c})
		if err != nil {
			t.Fatal(err)
		}
		defer closing(t, p)
		g, err := OpenGraph(t.Context(), s.Host, "Pages", &GraphOptions{Connection: c})
		if err != nil {
			t.Fatal(err)
		}
		defer closing(t, g)
		session, err := mapmatched.NewSession(p, g, nil)
		if err != nil {
			t.Fatal(err)
		}
		conversations = append(conversations, conversation{session, transport})
	}
	turn := func(c conversation, id string) {
		t.Helper()
		result, err := c.session.Ask(t.Context(), mapmatched.Query{Text: id, Vector: suiteVector(t, id)})
		if err != nil || result.Pointwise().ChunkID != id {
			t.Errorf("%s: turn for %q: %+v, %v", c.name, id, result, err)
		}
	}
	for _, c := range conversations {
		turn(c, "roads/tunnel")
	}
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	for _, c := range conversations {
		before := c.session.Turns()
		_, err := c.session.Ask(t.Context(), mapmatched.Query{Text: "bridge", Vector: suiteVector(t, "roads/bridge")})
		if mapmatched.KindOf(err) != mapmatched.KindUnavailable {
			t.Errorf("%s: error %v of kind %q, want unavailable", c.name, err, mapmatched.KindOf(err))
		}
		if c.session.Turns() != before {
			t.Errorf("%s: the failed turn counts", c.name)
		}
	}
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, c := range conversations {
		turn(c, "roads/bridge")
		turn(c, "roads/ferry")
	}
}

// Written again, nothing changes; changed, what changed is written; with
// another identity it is refused with every difference.
func TestWriteAgain(t *testing.T) {
	s := sharedServer(t)
	for _, transport := range transports {
		class := newClass(t, s)
		identity := mapmatched.CorpusIdentity{Provider: "test", Model: "m", Revision: "1", Dimension: 2, Normalization: "l2", ChunkPolicy: "p", MaximumDistance: 4}
		record := func(id string, text string, edges ...mapmatched.Edge) mapmatched.Record {
			return mapmatched.Record{Chunk: mapmatched.Chunk{ID: id, Document: "d", Title: "T", Section: "S > s", Ordinal: 3, Start: 5, End: 5 + len(text), Text: text}, Vector: []float32{0.6, 0.8}, Edges: edges}
		}
		edge := func(from, to string, weight float64, kind mapmatched.EdgeType) mapmatched.Edge {
			return mapmatched.Edge{From: from, To: to, Weight: weight, Type: kind}
		}
		records := []mapmatched.Record{
			record("a", "first", edge("a", "b", 1, mapmatched.EdgeNext), edge("a", "c", 0.1, "See also/é")),
			record("b", "second", edge("b", "a", 1, mapmatched.EdgeNext), edge("b", "a", 0.5, mapmatched.EdgeLink), edge("b", "a", 0.7, mapmatched.EdgeLink)),
			record("c", "", edge("c", "c", 2, mapmatched.EdgeLink)),
			{Chunk: mapmatched.Chunk{ID: "no vector"}},
		}
		var progress []int
		w, err := OpenWriter(t.Context(), s.Host, class, &WriterOptions{Connection: connectionTo(s, transport), BatchSize: 1})
		if err != nil {
			t.Fatal(err)
		}
		report, err := w.WriteCorpus(t.Context(), identity, seq(records), func(done int) { progress = append(progress, done) })
		if err != nil || report != (mapmatched.WriteReport{Created: true, Written: 4}) || !slices.Equal(progress, []int{1, 2, 3, 4}) {
			t.Fatalf("%s: %+v, %v, progress %v", transport, report, err, progress)
		}
		checkStored(t, s, class, transport, records)
		report = write(t, s, class, transport, identity, records)
		if report != (mapmatched.WriteReport{Kept: 4}) {
			t.Errorf("%s: again: %+v", transport, report)
		}
		checkStored(t, s, class, transport, records)
		records[0].Chunk.Text, records[0].Chunk.End = "changed", 12
		records[1].Vector = []float32{1, 0}
		report = write(t, s, class, transport, identity, records)
		if report != (mapmatched.WriteReport{Written: 2, Kept: 2}) {
			t.Errorf("%s: changed: %+v", transport, report)
		}
		checkStored(t, s, class, transport, records)
		found, err := open(t, s, class, transport, Options{}).Candidates(t.Context(), mapmatched.Query{Vector: []float32{1, 0}}, 1)
		if err != nil || len(found) != 1 || found[0].ChunkID != "b" {
			t.Errorf("%s: a search for the changed vector: %+v, %v", transport, found, err)
		}
		got, err := w.CorpusIdentity(t.Context())
		if err != nil || got != identity {
			t.Errorf("%s: identity %+v, %v", transport, got, err)
		}
		_, err = tryWrite(t, s, class, transport, "", mapmatched.CorpusIdentity{Provider: "other", Dimension: 3}, nil)
		wantError(t, err, mapmatched.KindInvalid, `provider is "test", wanted "other"`, "dimension is 2, wanted 3", "model", "revision", "normalization", "chunk_policy", "maximum_distance")
		if !errors.Is(err, mapmatched.ErrStaleIndex) {
			t.Errorf("error %v does not wrap ErrStaleIndex", err)
		}
		closing(t, w)
	}
}

// checkStored compares all records with the store, and the references with the
// edges.
func checkStored(t *testing.T, s *weaviatetest.Server, class, transport string, records []mapmatched.Record) {
	t.Helper()
	p := open(t, s, class, transport, Options{})
	stored := map[string]mapmatched.Record{}
	for r, err := range p.Records(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		stored[r.Chunk.ID] = r
	}
	for _, want := range records {
		if got := stored[want.Chunk.ID]; got.Chunk != want.Chunk || !slices.Equal(got.Vector, want.Vector) || !slices.Equal(got.Edges, want.Edges) {
			t.Errorf("%s: stored %+v, want %+v", transport, got, want)
		}
		hits, err := p.server.find(t.Context(), &search{class: p.class, properties: []string{propertyDigest}, references: p.class.references(), targetID: propertyChunkID,
			where: anyOf([]string{uuidProperty}, []string{UUID(want.Chunk.ID)}), limit: 1})
		if err != nil || len(hits) != 1 {
			t.Fatalf("%d objects, %v", len(hits), err)
		}
		references := map[string]int{}
		for name, targets := range hits[0].references {
			for _, target := range targets {
				if name == propertyConfirmed && target.id == want.Chunk.ID {
					continue
				}
				references[name+" "+target.id]++
			}
		}
		wanted := map[string]int{}
		for _, e := range want.Edges {
			wanted[edgeProperty(e.Type)+" "+e.To] = 1
		}
		if fmt.Sprint(references) != fmt.Sprint(wanted) || hits[0].properties[propertyDigest] == nil || len(hits[0].references[propertyConfirmed]) != 1 {
			t.Errorf("%s: chunk %q has references %v and digest %v, want %v", transport, want.Chunk.ID, references, hits[0].properties[propertyDigest], wanted)
		}
	}
	if len(stored) != len(records) {
		t.Errorf("%s: %d records stored, want %d", transport, len(stored), len(records))
	}
}

// An interrupted call is taken up: what it left unconfirmed is indexed again,
// and references that are missing are written.
func TestWriteGoesOn(t *testing.T) {
	s := sharedServer(t)
	for _, transport := range transports {
		class := newClass(t, s)
		identity, records := suiteRecords()
		for i := range records[1:] {
			records[i].Edges = []mapmatched.Edge{{From: records[i].Chunk.ID, To: records[i+1].Chunk.ID, Weight: 1, Type: mapmatched.EdgeNext}}
		}
		w, err := OpenWriter(t.Context(), s.Host, class, &WriterOptions{Connection: connectionTo(s, transport), BatchSize: 2})
		if err != nil {
			t.Fatal(err)
		}
		interrupted := errors.New("interrupted")
		report, err := w.WriteCorpus(t.Context(), identity, func(yield func(mapmatched.Record, error) bool) {
			for i, r := range records {
				if i == 6 {
					yield(mapmatched.Record{}, interrupted)
					return
				}
				if !yield(r, nil) {
					return
				}
			}
		}, nil)
		if !errors.Is(err, interrupted) || report.Written > 6 {
			t.Errorf("%s: %+v, %v", transport, report, err)
		}
		// Two objects as a server leaves them that died in a batch.
		in, err := w.prepare(t.Context(), identity)
		if err != nil {
			t.Fatal(err)
		}
		var left []prepared
		for _, r := range records[8:10] {
			p, err := in.prepare(r)
			if err != nil {
				t.Fatal(err)
			}
			left = append(left, p)
		}
		if err := in.send(t.Context(), left); err != nil {
			t.Fatal(err)
		}
		again, err := w.WriteCorpus(t.Context(), identity, seq(records), nil)
		if err != nil || again.Created || again.Kept != report.Written || again.Written != len(records)-report.Written {
			t.Errorf("%s: %+v then %+v, %v", transport, report, again, err)
		}
		checkStored(t, s, class, transport, records)
		closing(t, w)
	}
}

func TestWriteRefuses(t *testing.T) {
	s := sharedServer(t)
	identity := mapmatched.CorpusIdentity{Dimension: 2}
	good := mapmatched.Record{Chunk: mapmatched.Chunk{ID: "good"}, Vector: []float32{1, 2}}
	for _, transport := range transports {
		class := newClass(t, s)
		for name, c := range map[string]struct {
			record mapmatched.Record
			want   []string
		}{
			"no ID":      {mapmatched.Record{}, []string{"empty chunk ID"}},
			"twice":      {good, []string{`chunk "good" is there twice`}},
			"dimension":  {mapmatched.Record{Chunk: mapmatched.Chunk{ID: "x"}, Vector: []float32{1}}, []string{"1 dimensions", "2"}},
			"zero":       {mapmatched.Record{Chunk: mapmatched.Chunk{ID: "x"}, Vector: []float32{0, 0}}, []string{"zero"}},
			"infinite":   {mapmatched.Record{Chunk: mapmatched.Chunk{ID: "x"}, Vector: []float32{1, inf}}, []string{"finite"}},
			"not UTF-8":  {mapmatched.Record{Chunk: mapmatched.Chunk{ID: "x", Text: "\xff"}}, []string{"UTF-8"}},
			"from other": {mapmatched.Record{Chunk: mapmatched.Chunk{ID: "x"}, Edges: []mapmatched.Edge{{From: "y", To: "x", Weight: 1}}}, []string{`begins at "y"`}},
			"weight":     {mapmatched.Record{Chunk: mapmatched.Chunk{ID: "x"}, Edges: []mapmatched.Edge{{From: "x", To: "y"}}}, []string{"weight 0"}},
			"to nobody":  {mapmatched.Record{Chunk: mapmatched.Chunk{ID: "x"}, Edges: []mapmatched.Edge{{From: "x", To: "nobody", Weight: 1, Type: "next"}}}, []string{`"nobody"`, "neither among the records"}},
		} {
			_, err := tryWrite(t, s, class, transport, "", identity, []mapmatched.Record{good, c.record})
			t.Run(name, func(t *testing.T) { wantError(t, err, mapmatched.KindInvalid, c.want...) })
		}
	}
	// A class of others is not written to.
	class := foreignClass(t, s, &models.Class{VectorIndexConfig: map[string]any{"distance": "dot"}}, nil)
	_, err := tryWrite(t, s, class, "grpc", "", mapmatched.CorpusIdentity{}, nil)
	wantError(t, err, mapmatched.KindInvalid, "not written by this module", `property chunk_id is "", wanted "text"`, `"dot", wanted "cosine"`)
}

// References of a class of others are edges, passable both ways where the graph
// is undirected.
func TestReferencesOfOthers(t *testing.T) {
	s := sharedServer(t)
	class := foreignClass(t, s, &models.Class{}, func(string) *models.Object {
		return &models.Object{}
	}, "a", "b", "c", "d")
	server, err := connect(t.Context(), s.Host, &Connection{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := server.close(); err != nil {
			t.Error(err)
		}
	}()
	for _, name := range []string{"next", "cites"} {
		if err := server.schema.PropertyCreator().WithClassName(class).WithProperty(&models.Property{Name: name, DataType: []string{class}}).Do(t.Context()); err != nil {
			t.Fatal(translate(err))
		}
	}
	uuids := map[string]string{}
	objects, err := server.objects.ObjectsGetter().WithClassName(class).WithLimit(10).Do(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		uuids[o.Properties.(map[string]any)["name"].(string)] = o.ID.String()
	}
	for _, r := range [][3]string{{"a", "next", "b"}, {"b", "next", "c"}, {"d", "cites", "a"}} {
		payload := server.batches.ReferencePayloadBuilder().WithFromClassName(class).WithFromRefProp(r[1]).WithFromID(uuids[r[0]]).WithToClassName(class).WithToID(uuids[r[2]]).Payload()
		if _, err := server.batches.ReferencesBatcher().WithReferences(payload).Do(t.Context()); err != nil {
			t.Fatal(translate(err))
		}
	}
	nodes := []string{"a", "b", "c", "d"}
	for _, transport := range transports {
		for _, c := range []struct {
			o    GraphOptions
			want []float64
			list int
		}{
			{GraphOptions{MaximumDistance: 9}, []float64{0, 1, 2, 1, 1, 0, 1, 2, 2, 1, 0, 3, 1, 2, 3, 0}, 3},
			{GraphOptions{MaximumDistance: 9, Directed: true, Weight: 2}, []float64{0, 2, 4, 9, 9, 0, 2, 9, 9, 9, 0, 9, 2, 4, 6, 0}, 3},
			{GraphOptions{MaximumDistance: 9, Types: []mapmatched.EdgeType{"next"}}, []float64{0, 1, 2, 9, 1, 0, 1, 9, 2, 1, 0, 9, 9, 9, 9, 0}, 2},
		} {
			for _, byUUID := range []bool{false, true} {
				c.o.Connection, c.o.Place = connectionTo(s, transport), Place{IDProperty: "name"}
				asked := nodes
				if byUUID {
					c.o.Place = Place{IDProperty: "id"}
					asked = []string{uuids["a"], uuids["b"], uuids["c"], uuids["d"]}
				}
				g, err := OpenGraph(t.Context(), s.Host, class, &c.o)
				if err != nil {
					t.Fatal(err)
				}
				got := make([]float64, 16)
				if err := g.Distances(t.Context(), asked, asked, got); err != nil || !slices.Equal(got, c.want) {
					t.Errorf("%s, %+v: %v, %v, want %v", transport, c.o, got, err, c.want)
				}
				listed := 0
				for e, err := range g.Edges(t.Context()) {
					if err != nil || !slices.Contains(asked, e.From) || !slices.Contains(asked, e.To) {
						t.Errorf("%s: %+v, %v", transport, e, err)
					}
					listed++
				}
				if listed != c.list {
					t.Errorf("%s: %d edges listed, want %d", transport, listed, c.list)
				}
				closing(t, g)
			}
		}
		_, err := OpenGraph(t.Context(), s.Host, class, &GraphOptions{Connection: connectionTo(s, transport), Types: []mapmatched.EdgeType{"nxt"}})
		wantError(t, err, mapmatched.KindInvalid, `no reference "nxt"`, "cites", "next")
	}
	plain := foreignClass(t, s, &models.Class{}, nil)
	_, err = OpenGraph(t.Context(), s.Host, plain, nil)
	wantError(t, err, mapmatched.KindInvalid, "no references to itself")
}

func TestNearestNeighbors(t *testing.T) {
	s := sharedServer(t)
	class := suiteClass(t, s)
	_, records := suiteRecords()
	for _, transport := range transports {
		p := open(t, s, class, transport, Options{})
		count := map[string]int{}
		for e, err := range p.NearestNeighbors(t.Context(), 3) {
			if err != nil {
				t.Fatal(err)
			}
			if e.From == e.To || e.Weight < 0 || e.Type != mapmatched.EdgeKNN {
				t.Errorf("%s: %+v", transport, e)
			}
			if count[e.From] == 0 && e.From == "town/harbour east" && (e.To != "town/harbour west" || e.Weight > 1e-6) {
				t.Errorf("%s: the chunk of the same text is not the nearest: %+v", transport, e)
			}
			count[e.From]++
		}
		for _, r := range records {
			if count[r.Chunk.ID] != 3 {
				t.Errorf("%s: chunk %q has %d neighbours, want 3", transport, r.Chunk.ID, count[r.Chunk.ID])
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for _, err := range p.NearestNeighbors(ctx, 3) {
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%s: error %v, want context.Canceled", transport, err)
			}
		}
	}
}

func TestDiagnose(t *testing.T) {
	s := sharedServer(t)
	class := suiteClass(t, s)
	for _, transport := range transports {
		for _, mode := range []Mode{ModeVector, ModeBM25} {
			for _, f := range open(t, s, class, transport, Options{Mode: mode}).Diagnose(t.Context()) {
				if want := mapmatched.StatusOK; f.Status != want && (transport == "grpc" || f.Check != "grpc" || f.Status != mapmatched.StatusWarning) {
					t.Errorf("%s, %s: %+v", transport, mode, f)
				}
			}
		}
	}
	p := open(t, s, class, "grpc", Options{})
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	findings := p.Diagnose(t.Context())
	if findings[0].Status != mapmatched.StatusFailed || findings[1].Status != mapmatched.StatusSkipped {
		t.Errorf("closed: %+v", findings)
	}
}

func TestByURL(t *testing.T) {
	s := sharedServer(t)
	class := newClass(t, s)
	ctx := t.Context()
	w, err := registry.OpenWriter(ctx, s.URL(class, "batch_size=5"))
	if err != nil {
		t.Fatal(err)
	}
	defer closing(t, w.(io.Closer))
	identity, records := suiteRecords()
	if _, err := w.WriteCorpus(ctx, identity, seq(records), nil); err != nil {
		t.Fatal(err)
	}
	q := mapmatched.Query{Text: "toll in coins", Vector: suiteVector(t, "roads/toll")}
	for _, params := range [][]string{
		nil, {"mode=bm25", "search=text^2"}, {"mode=hybrid", "fusion=ranked", "alpha=0.3"},
		{"mode=vector", "properties=none", "max_distance=0.9", `where={"path":["document"],"operator":"Equal","valueText":"roads"}`},
		{"id=chunk_id", "text=text", "timeout=5s", "retries=0", "min_certainty=0.5"},
	} {
		for _, raw := range []string{s.URL(class, params...), s.URLWithout(class, params...)} {
			p, err := registry.OpenProvider(ctx, raw)
			if err != nil {
				t.Errorf("%s: %v", raw, err)
				continue
			}
			found, err := p.Candidates(ctx, q, 1)
			if err != nil || len(found) != 1 || found[0].ChunkID != "roads/toll" {
				t.Errorf("%s: %+v, %v", raw, found, err)
			}
			closing(t, p.(io.Closer))
		}
	}
	g, err := registry.OpenGraph(ctx, s.URL(class, "maximum_distance=3"))
	if err != nil || g.MaximumDistance() != 3 {
		t.Fatalf("%v, %v", g, err)
	}
	closing(t, g.(io.Closer))
}

// Close while searches run: each ends with its answer or with ErrClosed, and
// closing twice is no fault.
func TestCloseWhileSearching(t *testing.T) {
	s := sharedServer(t)
	class := suiteClass(t, s)
	for _, transport := range transports {
		p, err := Open(t.Context(), s.Host, class, &Options{Connection: connectionTo(s, transport)})
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				_, err := p.Candidates(t.Context(), mapmatched.Query{Vector: suiteVector(t, "roads/toll")}, 5)
				if err != nil && !errors.Is(err, mapmatched.ErrClosed) {
					t.Errorf("%s: %v", transport, err)
				}
			})
		}
		closing(t, p)
		wg.Wait()
		closing(t, p)
		if _, err := p.Candidates(t.Context(), mapmatched.Query{Vector: suiteVector(t, "roads/toll")}, 5); !errors.Is(err, mapmatched.ErrClosed) || !strings.Contains(err.Error(), "candidates") {
			t.Errorf("%s: %v", transport, err)
		}
	}
}
