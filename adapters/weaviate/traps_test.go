package weaviate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/weaviate/weaviate/entities/models"

	"github.com/mapmatched/mmplug/integration/weaviatetest"
	"github.com/mapmatched/mmplug/mapmatched"
)

// awkward texts break query languages.
var awkward = []string{
	"say \"hi\"\n\a", `Doc){x}} {Get{Secret`, `back\slash`, `"`, `\"`, `"""`, "tab\tand\rreturn", "\x01\x02\x1f\x7f", "a\x00b",
	"🚀 \U0001F680 故乡", "e\u0301\u200b\ufeff\u2028\u2029", `\u0041 \x41 \a`, "%s %d {{.}}", "${x} $x #x", "'; DROP TABLE chunks; --",
	"valueText: \"x\"}) {_additional{id}}", strings.Repeat("long ", 2000),
}

// Every text arrives as it is, over both transports and both ways: as a query,
// in a filter and out of the store.
func TestAwkwardTextsArriveIntact(t *testing.T) {
	s := sharedServer(t)
	var records []mapmatched.Record
	for i, text := range awkward {
		records = append(records, mapmatched.Record{Chunk: mapmatched.Chunk{ID: fmt.Sprintf("%d %s", i, text[:min(len(text), 40)]), Section: text, Text: text + " needle", End: len(text)}, Vector: []float32{1, float32(i)}})
	}
	for _, writer := range transports {
		class := newClass(t, s)
		write(t, s, class, writer, mapmatched.CorpusIdentity{Dimension: 2}, records)
		for _, reader := range transports {
			for i, text := range awkward {
				where := &models.WhereFilter{Operator: "Equal", Path: []string{"section"}, ValueText: &text}
				p := open(t, s, class, reader, Options{Mode: ModeBM25, Where: where})
				found, err := p.Candidates(t.Context(), mapmatched.Query{Text: text + " needle"}, 100)
				if err != nil {
					t.Errorf("%s: %q: %v", reader, text, err)
					continue
				}
				if len(found) != 1 || found[0].ChunkID != records[i].Chunk.ID || found[0].Text != records[i].Chunk.Text || found[0].Metadata["section"] != text {
					t.Errorf("%s to %s: a search for %.40q restricted to it finds %.300q", writer, reader, text, fmt.Sprint(found))
				}
				chunks, err := p.Chunks(t.Context(), []string{records[i].Chunk.ID})
				if err != nil || len(chunks) != 1 || chunks[0] != records[i].Chunk {
					t.Errorf("%s to %s: chunk %.300q, %v", writer, reader, fmt.Sprint(chunks), err)
				}
			}
		}
	}
}

// What is no name is refused before anything is sent.
func TestNamesAreChecked(t *testing.T) {
	s := sharedServer(t)
	class := suiteClass(t, s)
	const bad = `Doc){x}} {Get{Secret`
	for _, transport := range transports {
		connection := connectionTo(s, transport)
		for _, c := range []struct {
			class string
			o     Options
		}{
			{bad, Options{}},
			{"", Options{}},
			{class, Options{Place: Place{IDProperty: bad}}},
			{class, Options{Place: Place{TextProperty: bad}}},
			{class, Options{Place: Place{Tenant: bad}}},
			{class, Options{Properties: []string{bad}}},
			{class, Options{Vectors: []string{bad}}},
			{class, Options{Mode: ModeBM25, SearchProperties: []string{bad}}},
			{class, Options{Where: &models.WhereFilter{Operator: "Equal", Path: []string{bad}, ValueText: new(string)}}},
			{class, Options{Where: &models.WhereFilter{Operator: bad, Path: []string{"text"}, ValueText: new(string)}}},
		} {
			c.o.Connection = connection
			p, err := Open(t.Context(), s.Host, c.class, &c.o)
			if p != nil {
				t.Errorf("class %q with %+v: opened", c.class, c.o)
				continue
			}
			wantError(t, err, mapmatched.KindInvalid)
		}
	}
}

// A class is found whatever the case of its first letter; two properties that
// differ in that alone are one.
func TestNamesAreCapitalisedOnce(t *testing.T) {
	s := sharedServer(t)
	class := suiteClass(t, s)
	p := open(t, s, strings.ToLower(class[:1])+class[1:], "grpc", Options{Properties: []string{"Section"}})
	found, err := p.Candidates(t.Context(), mapmatched.Query{Vector: suiteVector(t, "roads/tunnel")}, 1)
	if err != nil || len(found) != 1 || found[0].Metadata["section"] != "Crossings" {
		t.Errorf("%+v, %v", found, err)
	}
	_, err = Open(t.Context(), s.Host, class, &Options{Connection: connectionTo(s, "grpc"), Properties: []string{"section", "Section"}})
	wantError(t, err, mapmatched.KindInvalid, `"section" and "Section" are the same property`)
	_, err = Open(t.Context(), s.Host, class, &Options{Connection: connectionTo(s, "grpc"), Properties: []string{"sektion"}})
	wantError(t, err, mapmatched.KindInvalid, `no property "sektion"`, "chunk_id, document")
	identity, records := suiteRecords()
	_, err = tryWrite(t, s, strings.ToUpper(class), "grpc", "", identity, records)
	wantError(t, err, mapmatched.KindInvalid, "similar class", "as it is there")
}

// suiteVector is the vector of a chunk of the suite's corpus.
func suiteVector(t testing.TB, id string) []float32 {
	t.Helper()
	_, records := suiteRecords()
	i := slices.IndexFunc(records, func(r mapmatched.Record) bool { return r.Chunk.ID == id })
	if i < 0 {
		t.Fatalf("no chunk %q", id)
	}
	return records[i].Vector
}

// Scores are on the scale that the documentation names, by each metric.
func TestScoresByMetric(t *testing.T) {
	s := sharedServer(t)
	vectors := map[string][]float32{"a": {3, 4}, "b": {1, 0}, "c": {-1, 1}}
	query := []float32{1, 2}
	length := func(v []float32) float64 { return math.Hypot(float64(v[0]), float64(v[1])) }
	dot := func(v []float32) float64 { return float64(v[0]*query[0] + v[1]*query[1]) }
	for m, score := range map[metric]func(v []float32) float64{
		metricCosine:    func(v []float32) float64 { return dot(v) / length(v) / length(query) },
		metricDot:       dot,
		metricSquared:   func(v []float32) float64 { return -math.Pow(length([]float32{v[0] - query[0], v[1] - query[1]}), 2) },
		metricManhattan: func(v []float32) float64 { return -math.Abs(float64(v[0]-query[0])) - math.Abs(float64(v[1]-query[1])) },
		metricHamming: func(v []float32) float64 {
			differ := 0.0
			for i := range v {
				if v[i] != query[i] {
					differ--
				}
			}
			return differ
		},
	} {
		class := foreignClass(t, s, &models.Class{VectorIndexConfig: map[string]any{"distance": string(m)}}, func(id string) *models.Object {
			return &models.Object{Vector: vectors[id]}
		}, "a", "b", "c")
		for _, transport := range transports {
			p := open(t, s, class, transport, Options{Place: Place{IDProperty: "name"}})
			found, err := p.Candidates(t.Context(), mapmatched.Query{Vector: query}, 10)
			if err != nil || len(found) != 3 {
				t.Fatalf("%s: %v, %v", m, found, err)
			}
			for i, c := range found {
				if want := score(vectors[c.ChunkID]); math.Abs(c.Score-want) > 1e-6 || i > 0 && c.Score > found[i-1].Score {
					t.Errorf("%s over %s: chunk %s has score %v, want %v", m, transport, c.ChunkID, c.Score, want)
				}
			}
			if m == metricCosine {
				certain := open(t, s, class, transport, Options{Place: Place{IDProperty: "name"}, MinCertainty: new(0.9)})
				found, err := certain.Candidates(t.Context(), mapmatched.Query{Vector: query}, 10)
				if err != nil || len(found) != 1 || found[0].ChunkID != "a" {
					t.Errorf("certainty 0.9 over %s: %+v, %v", transport, found, err)
				}
			} else {
				_, err := Open(t.Context(), s.Host, class, &Options{Connection: connectionTo(s, transport), Place: Place{IDProperty: "name"}, MinCertainty: new(0.5)})
				wantError(t, err, mapmatched.KindInvalid, "only cosine has a certainty", string(m))
			}
			near := open(t, s, class, transport, Options{Place: Place{IDProperty: "name"}, MaxDistance: new(-score(vectors["a"]) + 0.01)})
			if m == metricCosine {
				near = open(t, s, class, transport, Options{Place: Place{IDProperty: "name"}, MaxDistance: new(1 - score(vectors["a"]) + 0.01)})
			}
			if found, err := near.Candidates(t.Context(), mapmatched.Query{Vector: query}, 10); err != nil || len(found) == 0 || found[0].Score < found[len(found)-1].Score || m == metricCosine && len(found) != 1 {
				t.Errorf("max distance by %s over %s: %+v, %v", m, transport, found, err)
			}
		}
	}
}

// foreignClass makes a class as others do, with a text property name that has
// the ID, and an object for each ID.
func foreignClass(t testing.TB, s *weaviatetest.Server, c *models.Class, object func(id string) *models.Object, ids ...string) string {
	t.Helper()
	server, err := connect(t.Context(), s.Host, &Connection{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := server.close(); err != nil {
			t.Error(err)
		}
	}()
	c.Class = newClass(t, s)
	c.Vectorizer = "none"
	if c.VectorConfig != nil {
		c.Vectorizer = ""
	}
	c.Properties = append(c.Properties, &models.Property{Name: "name", DataType: []string{"text"}, Tokenization: "field"})
	if err := server.schema.ClassCreator().WithClass(c).Do(t.Context()); err != nil {
		t.Fatal(translate(err))
	}
	if len(ids) == 0 {
		return c.Class
	}
	batcher := server.batches.ObjectsBatcher()
	for _, id := range ids {
		o := object(id)
		o.Class = c.Class
		fields, _ := o.Properties.(map[string]any)
		if fields == nil {
			fields = map[string]any{}
		}
		fields["name"] = id
		o.Properties = fields
		batcher.WithObjects(o)
	}
	replies, err := batcher.Do(t.Context())
	if err != nil {
		t.Fatal(translate(err))
	}
	for _, r := range replies {
		if *r.Result.Status != models.ObjectsGetResponseAO2ResultStatusSUCCESS {
			t.Fatal(errorsOf(r.Result.Errors))
		}
	}
	return c.Class
}

// The fusion that is asked for is the one that is used, and it is recorded. A
// hit that is alone does not vanish.
func TestHybrid(t *testing.T) {
	s := sharedServer(t)
	class := suiteClass(t, s)
	q := mapmatched.Query{Text: "tunnel beneath the mountain", Vector: suiteVector(t, "roads/tunnel")}
	for _, transport := range transports {
		relative, err := openHybrid(t, s, class, transport, Options{Alpha: new(0.5)}).Candidates(t.Context(), q, 5)
		if err != nil {
			t.Fatal(err)
		}
		ranked, err := openHybrid(t, s, class, transport, Options{Fusion: FusionRanked, Alpha: new(0.5)}).Candidates(t.Context(), q, 5)
		if err != nil {
			t.Fatal(err)
		}
		if relative[0].ChunkID != "roads/tunnel" || math.Abs(relative[0].Score-1) > 1e-6 || relative[0].Parts["relative_score"] != relative[0].Score || relative[0].Parts["alpha"] != 0.5 {
			t.Errorf("%s: relative_score: %+v, want the tunnel with score 1", transport, relative[0])
		}
		if want := 1.0 / 60; ranked[0].ChunkID != "roads/tunnel" || math.Abs(ranked[0].Score-want) > 1e-6 || ranked[0].Parts["ranked"] != ranked[0].Score {
			t.Errorf("%s: ranked: %+v, want the tunnel with score 0.5/60 + 0.5/60", transport, ranked[0])
		}
		section := "Money"
		for _, fusion := range []Fusion{FusionRelativeScore, FusionRanked} {
			alone, err := openHybrid(t, s, class, transport, Options{Fusion: fusion, Where: &models.WhereFilter{Operator: "Equal", Path: []string{"section"}, ValueText: &section}}).
				Candidates(t.Context(), mapmatched.Query{Text: "toll in coins", Vector: suiteVector(t, "roads/toll")}, 5)
			if err != nil || len(alone) != 1 || alone[0].ChunkID != "roads/toll" || !(alone[0].Score > 0) {
				t.Errorf("%s, %s: the only chunk of the section: %+v, %v", transport, fusion, alone, err)
			}
		}
		words, err := openHybrid(t, s, class, transport, Options{Alpha: new(0.0)}).Candidates(t.Context(), mapmatched.Query{Text: "toll", Vector: suiteVector(t, "roads/bridge")}, 5)
		if err != nil || len(words) == 0 || words[0].ChunkID != "roads/toll" {
			t.Errorf("%s: alpha 0 is words alone, also where 0 is what an unset field looks like: %+v, %v", transport, words, err)
		}
	}
}

// The server's cursor and a filter exclude each other; that is said before
// anything is sent.
func TestListingTakesNoFilter(t *testing.T) {
	s := sharedServer(t)
	class := suiteClass(t, s)
	text := "x"
	p := open(t, s, class, "grpc", Options{Where: &models.WhereFilter{Operator: "Equal", Path: []string{"section"}, ValueText: &text}})
	for _, err := range p.Records(t.Context()) {
		wantError(t, err, mapmatched.KindInvalid, "cursor takes no filter")
	}
	for _, err := range p.NearestNeighbors(t.Context(), 2) {
		wantError(t, err, mapmatched.KindInvalid, "cursor takes no filter")
	}
}

// The server answers a batch without an error of its own and says of each
// object whether it was taken.
func TestRefusedObjectsAreNamed(t *testing.T) {
	s := sharedServer(t)
	for _, transport := range transports {
		class := newClass(t, s)
		identity := mapmatched.CorpusIdentity{Dimension: 3}
		good := mapmatched.Record{Chunk: mapmatched.Chunk{ID: "good", Text: "x"}, Vector: []float32{1, 2, 3}}
		write(t, s, class, transport, identity, []mapmatched.Record{good})
		w, err := OpenWriter(t.Context(), s.Host, class, &WriterOptions{Connection: connectionTo(s, transport)})
		if err != nil {
			t.Fatal(err)
		}
		in, err := w.prepare(t.Context(), identity)
		if err != nil {
			t.Fatal(err)
		}
		other, err := in.prepare(mapmatched.Record{Chunk: mapmatched.Chunk{ID: "fine", Text: "y"}, Vector: []float32{3, 2, 1}})
		if err != nil {
			t.Fatal(err)
		}
		bad := other
		bad.record.Chunk.ID, bad.record.Vector, bad.uuid[0] = "bad one", []float32{1, 2}, 7
		err = classify("write corpus", in.write(t.Context(), []prepared{other, bad}, nil))
		wantError(t, err, mapmatched.KindInvalid, `1 of 2 objects were refused: chunk "bad one"`, "vector")
		closing(t, w)
	}
}

// More results than the server gives, in one clear line; as many as it gives
// are answered.
func TestTooManyResults(t *testing.T) {
	s := sharedServer(t)
	class := suiteClass(t, s)
	for _, transport := range transports {
		for _, mode := range []Mode{ModeVector, ModeBM25} {
			p := open(t, s, class, transport, Options{Mode: mode})
			q := mapmatched.Query{Text: "road", Vector: suiteVector(t, "roads/toll")}
			if found, err := p.Candidates(t.Context(), q, 10000); err != nil || len(found) == 0 {
				t.Errorf("%s, %s, limit 10000: %d candidates, %v", transport, mode, len(found), err)
			}
			for _, limit := range []int{10001, 1 << 20, math.MaxInt32} {
				_, err := p.Candidates(t.Context(), q, limit)
				wantError(t, err, mapmatched.KindInvalid, "QUERY_MAXIMUM_RESULTS", "ask for fewer")
			}
		}
	}
}

func TestTenants(t *testing.T) {
	s := sharedServer(t)
	class := newClass(t, s)
	identity, records := suiteRecords()
	for _, transport := range transports {
		if _, err := tryWrite(t, s, class, transport, "tenant-"+transport, identity, records); err != nil {
			t.Fatal(err)
		}
		if report, err := tryWrite(t, s, class, transport, "tenant-"+transport, identity, records); err != nil || report.Kept != len(records) || report.Written != 0 {
			t.Errorf("written again: %+v, %v", report, err)
		}
	}
	if _, err := tryWrite(t, s, class, "grpc", "empty", identity, nil); err != nil {
		t.Fatal(err)
	}
	_, err := tryWrite(t, s, class, "grpc", "", identity, records)
	wantError(t, err, mapmatched.KindInvalid, "has tenants", "Tenant")
	plain := suiteClass(t, s)
	_, err = tryWrite(t, s, plain, "grpc", "x", identity, records)
	wantError(t, err, mapmatched.KindInvalid, "has no tenants")
	for _, transport := range transports {
		connection := connectionTo(s, transport)
		_, err := Open(t.Context(), s.Host, class, &Options{Connection: connection})
		wantError(t, err, mapmatched.KindInvalid, "has tenants", "name one in Tenant")
		_, err = Open(t.Context(), s.Host, class, &Options{Connection: connection, Place: Place{Tenant: "nobody"}})
		wantError(t, err, mapmatched.KindNotFound, `no tenant "nobody"`)
		_, err = Open(t.Context(), s.Host, plain, &Options{Connection: connection, Place: Place{Tenant: "x"}})
		wantError(t, err, mapmatched.KindInvalid, "has no tenants", `"x"`)
		for tenant, want := range map[string]int{"tenant-grpc": len(records), "empty": 0} {
			o := Options{Connection: connection, Place: Place{Tenant: tenant}}
			p, err := Open(t.Context(), s.Host, class, &o)
			if err != nil {
				t.Fatal(err)
			}
			found, err := p.Candidates(t.Context(), mapmatched.Query{Vector: records[0].Vector}, 100)
			if err != nil || len(found) != want {
				t.Errorf("%s, tenant %s: %d candidates, %v, want %d", transport, tenant, len(found), err, want)
			}
			listed := 0
			for r, err := range p.Records(t.Context()) {
				if err != nil || r.Vector == nil {
					t.Fatalf("%+v, %v", r, err)
				}
				listed++
			}
			if listed != want {
				t.Errorf("%s, tenant %s: %d records, want %d", transport, tenant, listed, want)
			}
			closing(t, p)
		}
		// A tenant that goes away while a provider is open.
		if _, err := tryWrite(t, s, class, transport, "leaving", identity, records[:1]); err != nil {
			t.Fatal(err)
		}
		o := Options{Connection: connection, Place: Place{Tenant: "leaving"}}
		p, err := Open(t.Context(), s.Host, class, &o)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.server.schema.TenantsDeleter().WithClassName(class).WithTenants("leaving").Do(t.Context()); err != nil {
			t.Fatal(translate(err))
		}
		_, err = p.Candidates(t.Context(), mapmatched.Query{Vector: records[0].Vector}, 3)
		wantError(t, err, mapmatched.KindNotFound, "tenant not found", "leaving")
		closing(t, p)
	}
}

func TestKeys(t *testing.T) {
	s := weaviatetest.StartOwned(t, weaviatetest.Options{APIKeys: []string{"writes"}, ReadOnlyKeys: []string{"reads"}})
	identity, records := suiteRecords()
	for _, transport := range transports {
		with := func(key string) Connection {
			c := connectionTo(s, transport)
			c.APIKey = key
			return c
		}
		class := "Keys" + transport
		w, err := OpenWriter(t.Context(), s.Host, class, &WriterOptions{Connection: with("writes")})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.WriteCorpus(t.Context(), identity, seq(records), nil); err != nil {
			t.Fatal(err)
		}
		closing(t, w)
		for _, key := range []string{"writes", "reads"} {
			p, err := Open(t.Context(), s.Host, class, &Options{Connection: with(key)})
			if err != nil {
				t.Fatal(err)
			}
			found, err := p.Candidates(t.Context(), mapmatched.Query{Vector: records[0].Vector}, 3)
			if err != nil || len(found) != 3 {
				t.Errorf("%s with key %q: %d candidates, %v", transport, key, len(found), err)
			}
			if chunks, err := p.Chunks(t.Context(), []string{records[0].Chunk.ID}); err != nil || len(chunks) != 1 {
				t.Errorf("%s with key %q: %d chunks, %v", transport, key, len(chunks), err)
			}
			closing(t, p)
		}
		// A key that may only read: said when writing, to an old class and a new one.
		for _, c := range []string{class, class + "New"} {
			w, err = OpenWriter(t.Context(), s.Host, c, &WriterOptions{Connection: with("reads")})
			if err != nil {
				t.Fatal(err)
			}
			changed := slices.Clone(records)
			changed[0].Chunk.Text += " changed"
			_, err = w.WriteCorpus(t.Context(), identity, seq(changed), nil)
			wantError(t, err, mapmatched.KindUnauthenticated, mayNot)
			if err != nil && strings.Count(err.Error(), mayNot) != 1 {
				t.Errorf("error %q says what to do more than once", err)
			}
			closing(t, w)
		}
		_, err = Open(t.Context(), s.Host, class, &Options{Connection: with("wrong")})
		wantError(t, err, mapmatched.KindUnauthenticated, "key")
		_, err = Open(t.Context(), s.Host, class, &Options{Connection: with("")})
		wantError(t, err, mapmatched.KindUnauthenticated, "the server wants a key")
	}
	// A key changed behind an open provider: both transports say so.
	for _, transport := range transports {
		c := connectionTo(s, transport)
		c.APIKey = "reads"
		o := &Options{Connection: c}
		p, err := Open(t.Context(), s.Host, "Keysgrpc", o)
		if err != nil {
			t.Fatal(err)
		}
		p.server.tokens.connection = &Connection{APIKey: "stale"}
		_, err = p.Candidates(t.Context(), mapmatched.Query{Vector: records[0].Vector}, 3)
		wantError(t, err, mapmatched.KindUnauthenticated, "key")
		closing(t, p)
	}
}

func TestKeyToAServerWithout(t *testing.T) {
	s := sharedServer(t)
	class := suiteClass(t, s)
	for _, transport := range transports {
		c := connectionTo(s, transport)
		c.APIKey = "needless"
		_, err := Open(t.Context(), s.Host, class, &Options{Connection: c})
		wantError(t, err, mapmatched.KindUnauthenticated, "takes no keys", "leave the key out")
		if err != nil && strings.Contains(err.Error(), "needless") {
			t.Errorf("error %q repeats the key", err)
		}
		c.APIKey, c.ClientSecret = "", "needless"
		_, err = Open(t.Context(), s.Host, class, &Options{Connection: c})
		wantError(t, err, mapmatched.KindUnauthenticated, "takes no OIDC tokens", "leave ClientSecret out")
	}
}

func TestUnknownClassAndVector(t *testing.T) {
	s := sharedServer(t)
	class := suiteClass(t, s)
	for _, transport := range transports {
		c := connectionTo(s, transport)
		_, err := Open(t.Context(), s.Host, "Nowhere", &Options{Connection: c})
		wantError(t, err, mapmatched.KindNotFound, "no class Nowhere")
		_, err = Open(t.Context(), s.Host, class, &Options{Connection: c, Vectors: []string{"title"}})
		wantError(t, err, mapmatched.KindInvalid, `no vector "title"`, "has no name")
		p := open(t, s, class, transport, Options{})
		_, err = p.Candidates(t.Context(), mapmatched.Query{Vector: []float32{1, 2}}, 3)
		wantError(t, err, mapmatched.KindInvalid, "2 dimensions", "words")
		_, err = p.Candidates(t.Context(), mapmatched.Query{Text: "no vector"}, 3)
		wantError(t, err, mapmatched.KindInvalid, "Embedder")
		// The server's own words, where the class does not say its dimension.
		p.class.identity.Dimension = 0
		_, err = p.Candidates(t.Context(), mapmatched.Query{Vector: []float32{1, 2}}, 3)
		wantError(t, err, mapmatched.KindInvalid, "vector lengths don't match", "use the model")
	}
	// A class deleted behind an open provider.
	for _, transport := range transports {
		gone := suiteClass(t, s)
		p := open(t, s, gone, transport, Options{})
		deleteClass(t, s, gone)
		_, err := p.Candidates(t.Context(), mapmatched.Query{Vector: suiteVector(t, "roads/toll")}, 3)
		wantError(t, err, mapmatched.KindNotFound, gone)
	}
}

func TestNamedVectors(t *testing.T) {
	s := sharedServer(t)
	title := map[string][]float32{"a": {1, 0}, "b": {0, 1}, "c": {1, 1}}
	body := map[string][]float32{"a": {0, 1}, "b": {1, 0.2}, "c": {1, 1}}
	index := func() models.VectorConfig {
		return models.VectorConfig{VectorIndexType: "hnsw", Vectorizer: map[string]any{"none": map[string]any{}}, VectorIndexConfig: map[string]any{"distance": "cosine"}}
	}
	class := foreignClass(t, s, &models.Class{VectorConfig: map[string]models.VectorConfig{"title": index(), "body": index()}}, func(id string) *models.Object {
		return &models.Object{Vectors: models.Vectors{"title": title[id], "body": body[id]}}
	}, "a", "b", "c")
	place := Place{IDProperty: "name"}
	_, err := Open(t.Context(), s.Host, class, &Options{Connection: connectionTo(s, "grpc"), Place: place})
	wantError(t, err, mapmatched.KindInvalid, "body, title", "Vectors")
	_, err = Open(t.Context(), s.Host, class, &Options{Connection: connectionTo(s, "grpc"), Place: place, Vectors: []string{"titel"}})
	wantError(t, err, mapmatched.KindInvalid, `no vector "titel"`, "body, title")
	query := mapmatched.Query{Text: "a", Vector: []float32{1, 0}}
	for _, transport := range transports {
		for _, c := range []struct {
			o    Options
			want []string
		}{
			{Options{Vectors: []string{"title"}}, []string{"a", "c", "b"}},
			{Options{Vectors: []string{"body"}}, []string{"b", "c", "a"}},
			{Options{Vectors: []string{"title", "body"}}, []string{"a", "b", "c"}},
			{Options{Vectors: []string{"title", "body"}, Combination: CombineAverage}, []string{"c", "a", "b"}},
			{Options{Vectors: []string{"title", "body"}, Combination: CombineSum}, []string{"c", "a", "b"}},
			{Options{Vectors: []string{"title", "body"}, Combination: CombineManualWeights, Weights: []float64{1, 0}}, []string{"a", "c", "b"}},
			{Options{Vectors: []string{"body", "title"}, Combination: CombineManualWeights, Weights: []float64{1, 0}}, []string{"b", "c", "a"}},
			{Options{Vectors: []string{"title", "body"}, Combination: CombineRelativeScore, Weights: []float64{1, 0.001}}, []string{"a", "c", "b"}},
		} {
			c.o.Place = place
			found, err := open(t, s, class, transport, c.o).Candidates(t.Context(), query, 3)
			if got := ids(found); err != nil || !slices.Equal(got, c.want) {
				t.Errorf("%s: %q combined by %q with %v: %q, %v, want %q", transport, c.o.Vectors, c.o.Combination, c.o.Weights, got, err, c.want)
			}
		}
		p := open(t, s, class, transport, Options{Place: place, Vectors: []string{"body"}})
		vectors, err := p.Vectors(t.Context(), []string{"b", "unknown", "a"})
		if err != nil || !slices.Equal(vectors[0], body["b"]) || vectors[1] != nil || !slices.Equal(vectors[2], body["a"]) {
			t.Errorf("%s: vectors %v, %v", transport, vectors, err)
		}
		for r, err := range p.Records(t.Context()) {
			if err != nil || !slices.Equal(r.Vector, body[r.Chunk.ID]) {
				t.Errorf("%s: record %+v, %v", transport, r, err)
			}
		}
		for e, err := range p.NearestNeighbors(t.Context(), 1) {
			if want := map[string]string{"a": "c", "b": "c", "c": "b"}[e.From]; err != nil || e.To != want || e.Type != mapmatched.EdgeKNN {
				t.Errorf("%s: neighbour %+v, %v, want %s", transport, e, err, want)
			}
		}
		hybrid, err := openHybrid(t, s, class, transport, Options{Place: place, Vectors: []string{"title"}}).Candidates(t.Context(), query, 3)
		if err != nil || hybrid[0].ChunkID != "a" {
			t.Errorf("%s: hybrid %+v, %v", transport, hybrid, err)
		}
	}
}

func ids(candidates []mapmatched.Candidate) []string {
	list := make([]string, len(candidates))
	for i, c := range candidates {
		list[i] = c.ChunkID
	}
	return list
}

// Objects without an ID and such that share one do not fail a query.
func TestForeignObjectsAreSkipped(t *testing.T) {
	s := sharedServer(t)
	class := foreignClass(t, s, &models.Class{Properties: []*models.Property{{Name: "ref", DataType: []string{"text"}, Tokenization: "field"}, {Name: "content", DataType: []string{"text"}}}}, func(id string) *models.Object {
		fields := map[string]any{"content": "road " + id}
		if id != "none" {
			fields["ref"] = strings.TrimRight(id, "'")
		}
		return &models.Object{Vector: []float32{1, float32(len(id))}, Properties: fields}
	}, "a", "a'", "bb", "none")
	for _, transport := range transports {
		p := open(t, s, class, transport, Options{Place: Place{IDProperty: "ref"}})
		found, err := p.Candidates(t.Context(), mapmatched.Query{Vector: []float32{1, 1}}, 10)
		if got := ids(found); err != nil || !slices.Equal(got, []string{"a", "bb"}) || p.Stats().Skipped != 2 {
			t.Errorf("%s: %q, %v, skipped %d, want a and bb, and 2 skipped", transport, got, err, p.Stats().Skipped)
		}
		if found[0].Text != "road a" || found[0].Metadata["name"] != "a" {
			t.Errorf("%s: %+v", transport, found[0])
		}
		scored, err := p.ScoreChunks(t.Context(), mapmatched.Query{Vector: []float32{1, 1}}, []string{"bb", "a"})
		if err != nil || len(scored) != 2 || scored[0].ChunkID != "bb" || scored[1].Score != found[0].Score {
			t.Errorf("%s: scored %+v, %v", transport, scored, err)
		}
	}
	// By UUID every object is a chunk.
	p := open(t, s, class, "grpc", Options{Place: Place{IDProperty: "id"}})
	if found, err := p.Candidates(t.Context(), mapmatched.Query{Vector: []float32{1, 1}}, 10); err != nil || len(found) != 4 || !isUUID(found[0].ChunkID) {
		t.Errorf("%+v, %v", found, err)
	}
	// Words of a property cut into words do not look chunks up.
	words := open(t, s, class, "grpc", Options{Place: Place{IDProperty: "content", TextProperty: "content"}})
	_, err := words.Chunks(t.Context(), []string{"road a"})
	wantError(t, err, mapmatched.KindInvalid, "tokenization", "field")
}

// Values keep their types over both transports.
func TestMetadataTypes(t *testing.T) {
	s := sharedServer(t)
	var properties []*models.Property
	values := map[string]any{
		"t": "text", "i": int64(42), "n": 42.5, "b": true, "d": "2026-11-30T12:00:00Z", "u": "8a077336-8817-5c29-bf09-1ead2b1e58ea",
		"ts": []string{"x", "y"}, "is": []int64{1, 2}, "ns": []float64{0.5, 2}, "bs": []bool{true, false}, "us": []string{"8a077336-8817-5c29-bf09-1ead2b1e58ea"},
	}
	for name, dataType := range map[string]string{"t": "text", "i": "int", "n": "number", "b": "boolean", "d": "date", "u": "uuid", "ts": "text[]", "is": "int[]", "ns": "number[]", "bs": "boolean[]", "us": "uuid[]", "absent": "int"} {
		properties = append(properties, &models.Property{Name: name, DataType: []string{dataType}})
	}
	class := foreignClass(t, s, &models.Class{Properties: properties}, func(string) *models.Object {
		fields := map[string]any{}
		for name, v := range values {
			fields[name] = v
		}
		return &models.Object{Vector: []float32{1, 1}, Properties: fields}
	}, "only")
	for _, transport := range transports {
		p := open(t, s, class, transport, Options{Place: Place{IDProperty: "name", TextProperty: "t"}})
		found, err := p.Candidates(t.Context(), mapmatched.Query{Vector: []float32{1, 1}}, 10)
		if err != nil || len(found) != 1 || found[0].Text != "text" {
			t.Fatalf("%+v, %v", found, err)
		}
		got := found[0].Metadata
		if len(got) != len(values)-1 { // t is the text
			t.Errorf("%s: %d values, want %d: %v", transport, len(got), len(values)-1, got)
		}
		for name, want := range values {
			if name != "t" && fmt.Sprintf("%#v", got[name]) != fmt.Sprintf("%#v", want) {
				t.Errorf("%s: %s is %#v, want %#v", transport, name, got[name], want)
			}
		}
		some := open(t, s, class, transport, Options{Place: Place{IDProperty: "name", TextProperty: "t"}, Properties: []string{"i"}})
		if found, err := some.Candidates(t.Context(), mapmatched.Query{Vector: []float32{1, 1}}, 10); err != nil || len(found[0].Metadata) != 1 || found[0].Metadata["i"] != int64(42) {
			t.Errorf("%s: %+v, %v", transport, found, err)
		}
	}
}

// Filters mean the same over both transports.
func TestFilters(t *testing.T) {
	s := sharedServer(t)
	class := suiteClass(t, s)
	for where, want := range map[string]int{
		`{"path":["section"],"operator":"Equal","valueText":"Crossings"}`:                                                                                                  3,
		`{"path":["section"],"operator":"NotEqual","valueText":"Crossings"}`:                                                                                               9,
		`{"path":["ordinal"],"operator":"LessThan","valueInt":1}`:                                                                                                          4,
		`{"path":["ordinal"],"operator":"GreaterThanEqual","valueInt":4}`:                                                                                                  1,
		`{"path":["document"],"operator":"Like","valueText":"ro*"}`:                                                                                                        5,
		`{"path":["document"],"operator":"ContainsAny","valueTextArray":["town","orchard"]}`:                                                                               6,
		`{"path":["id"],"operator":"Equal","valueText":"` + UUID("roads/toll") + `"}`:                                                                                      1,
		`{"operator":"Or","operands":[{"path":["document"],"operator":"Equal","valueText":"poems"},{"path":["ordinal"],"operator":"Equal","valueInt":0}]}`:                 4,
		`{"operator":"And","operands":[{"path":["document"],"operator":"Equal","valueText":"town"},{"path":["section"],"operator":"Equal","valueText":"Trades"}]}`:         2,
		`{"operator":"Not","operands":[{"path":["document"],"operator":"Equal","valueText":"roads"}]}`:                                                                     7,
		`{"path":["document"],"operator":"ContainsNone","valueTextArray":["town","orchard"]}`:                                                                              6,
		`{"path":["_creationTimeUnix"],"operator":"GreaterThan","valueDate":"2020-01-01T00:00:00Z"}`:                                                                       -1,
		`{"operator":"And","operands":[{"path":["id"],"operator":"ContainsAny","valueTextArray":["` + UUID("roads/toll") + `","` + UUID("orchard/bees") + `","bad id"]}]}`: 2,
	} {
		w, err := ParseWhere(where)
		if err != nil {
			t.Errorf("%s: %v", where, err)
			continue
		}
		var got [2][]string
		var errs [2]error
		for i, transport := range transports {
			found, err := open(t, s, class, transport, Options{Where: w}).Candidates(t.Context(), mapmatched.Query{Vector: suiteVector(t, "roads/toll")}, 100)
			slices.SortFunc(found, func(a, b mapmatched.Candidate) int { return strings.Compare(a.ChunkID, b.ChunkID) })
			got[i], errs[i] = ids(found), err
		}
		if want < 0 { // the class keeps no timestamps to filter by
			for _, err := range errs {
				wantError(t, err, mapmatched.KindInvalid, "imestamp")
			}
			continue
		}
		if err := errors.Join(errs[:]...); err != nil || len(got[0]) != want || !slices.Equal(got[0], got[1]) {
			t.Errorf("%s: %q by gRPC, %q by GraphQL, %v, want %d", where, got[0], got[1], err, want)
		}
	}
}

// An unfinished query ends with the error of its context.
func TestDeadlineIsADeadline(t *testing.T) {
	s := sharedServer(t)
	class := suiteClass(t, s)
	for _, transport := range transports {
		address, grpcPort, goSilent := relayed(t, s)
		c := Connection{Timeout: 0}
		if transport == "grpc" {
			c.GRPC = grpcPort
		}
		p, err := Open(t.Context(), address, class, &Options{Connection: c})
		if err != nil {
			t.Fatal(err)
		}
		goSilent()
		ctx, cancel := context.WithTimeout(t.Context(), 50*1e6)
		_, err = p.Candidates(ctx, mapmatched.Query{Vector: suiteVector(t, "roads/toll")}, 3)
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: error %v, want context.DeadlineExceeded", transport, err)
		}
		wantError(t, err, mapmatched.KindDeadline)
		p.server.timeout = 50 * 1e6
		_, err = p.Candidates(t.Context(), mapmatched.Query{Vector: suiteVector(t, "roads/toll")}, 3)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: error %v, want context.DeadlineExceeded", transport, err)
		}
		wantError(t, err, mapmatched.KindDeadline, "no answer within 50ms")
		closing(t, p)
	}
}
