package weaviate

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/weaviate/weaviate/entities/models"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/weaviate/weaviate/grpc/generated/protocol/v1"

	"github.com/mapmatched/mmplug/integration/weaviatetest"
	"github.com/mapmatched/mmplug/mapmatched"
)

// A server that answers few results is asked for few at a time: everything that
// is not one search works, and a search says what its limit is.
func TestServerThatAnswersFew(t *testing.T) {
	const most, n = 30, 120
	s := weaviatetest.StartOwned(t, weaviatetest.Options{Env: []string{"QUERY_MAXIMUM_RESULTS=" + strconv.Itoa(most)}})
	identity := mapmatched.CorpusIdentity{Dimension: scaleDimension, MaximumDistance: 8}
	records, ids := make([]mapmatched.Record, n), make([]string, n)
	for i := range records {
		records[i] = scaleRecord(i, n)
		ids[i] = records[i].Chunk.ID
	}
	others := foreignClass(t, s, &models.Class{}, func(string) *models.Object { return &models.Object{Vector: []float32{1, 1}} }, ids...)
	for _, transport := range transports {
		class := "Few" + transport
		write(t, s, class, transport, identity, records)
		if report := write(t, s, class, transport, identity, records); report != (mapmatched.WriteReport{Kept: n}) {
			t.Errorf("%s: again: %+v", transport, report)
		}
		checkStored(t, s, class, transport, records)
		p := open(t, s, class, transport, Options{})
		chunks, err := p.Chunks(t.Context(), ids)
		if err != nil || len(chunks) != n {
			t.Errorf("%s: %d chunks, %v, want %d", transport, len(chunks), err, n)
		}
		for _, limit := range []int{1, most - 1, most} {
			found, err := p.Candidates(t.Context(), mapmatched.Query{Vector: records[0].Vector}, limit)
			if err != nil || len(found) != limit {
				t.Errorf("%s: limit %d: %d candidates, %v", transport, limit, len(found), err)
			}
		}
		_, err = p.Candidates(t.Context(), mapmatched.Query{Vector: records[0].Vector}, most+1)
		wantError(t, err, mapmatched.KindInvalid, "QUERY_MAXIMUM_RESULTS", "ask for fewer")
		neighbors := 0
		for _, err := range p.NearestNeighbors(t.Context(), 1) {
			if err != nil {
				t.Fatal(err)
			}
			neighbors++
		}
		if neighbors != n {
			t.Errorf("%s: %d neighbours, want %d", transport, neighbors, n)
		}
		g, err := OpenGraph(t.Context(), s.Host, class, &GraphOptions{Connection: connectionTo(s, transport)})
		if err != nil {
			t.Fatal(err)
		}
		listed := 0
		for _, err := range g.Edges(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			listed++
		}
		if want := n - 1 + n/2 - 1; listed != want {
			t.Errorf("%s: %d edges, want %d", transport, listed, want)
		}
		closing(t, g)
		// Objects of others may share an ID, so the answers may be longer.
		o := open(t, s, others, transport, Options{Place: Place{IDProperty: "name"}})
		chunks, err = o.Chunks(t.Context(), ids)
		if err != nil || len(chunks) != n {
			t.Errorf("%s: of others: %d chunks, %v, want %d", transport, len(chunks), err, n)
		}
	}
}

// A limit is asked for one higher, unless the server is known to refuse that.
func TestSpareWithinTheServersMaximum(t *testing.T) {
	const most = 100
	var asked []int
	f := &fake{search: func(_ context.Context, r *pb.SearchRequest) (*pb.SearchReply, error) {
		asked = append(asked, int(r.Limit))
		if r.Limit > most {
			return nil, status.Error(codes.Unknown, maximumResults)
		}
		reply := &pb.SearchReply{}
		for i := range r.Limit { // all alike, so that more are wanted
			id := UUID(strconv.Itoa(int(i)))
			reply.Results = append(reply.Results, &pb.SearchResult{Metadata: &pb.MetadataResult{Id: id, Distance: 0.5, DistancePresent: true},
				Properties: &pb.PropertiesResult{NonRefProps: &pb.Properties{Fields: map[string]*pb.Value{"chunk_id": {Kind: &pb.Value_TextValue{TextValue: id}}}}}})
		}
		return reply, nil
	}}
	p := f.open(t, "grpc", Options{})
	for _, c := range []struct {
		limit int
		want  []int
	}{
		{60, []int{61, 244, 122, 61}},
		{100, []int{101, 100}},
		{60, []int{61}},
		{10, []int{11, 44, 50}},
	} {
		asked = nil
		found, err := p.Candidates(t.Context(), anyQuery, c.limit)
		if err != nil || len(found) != c.limit || !slices.Equal(asked, c.want) {
			t.Errorf("limit %d: %d candidates, %v, asked for %d, want %d", c.limit, len(found), err, asked, c.want)
		}
	}
}

// Filters name properties as everything else does, and what the class does not
// have is refused when the provider is opened.
func TestFilterFitsTheClass(t *testing.T) {
	c := &class{name: "Doc", properties: []property{
		{name: "text", dataType: "text"}, {name: "n", dataType: "int"}, {name: "x", dataType: "number"}, {name: "xs", dataType: "number[]"},
		{name: "next", targets: []string{"Doc"}}, {name: "of", targets: []string{"Author"}},
	}}
	for text, want := range map[string]string{
		`{"path":["Text"],"operator":"Equal","valueText":"a"}`:                           `operator:Equal path:["text"] valueText:"a"`,
		`{"path":["N"],"operator":"Equal","valueNumber":3}`:                              `operator:Equal path:["n"] valueInt:3`,
		`{"path":["x"],"operator":"Equal","valueInt":3}`:                                 `operator:Equal path:["x"] valueNumber:3`,
		`{"path":["n"],"operator":"ContainsAny","valueNumberArray":[1,2]}`:               `operator:ContainsAny path:["n"] valueInt:[1,2]`,
		`{"path":["xs"],"operator":"ContainsAny","valueIntArray":[1]}`:                   `operator:ContainsAny path:["xs"] valueNumber:[1]`,
		`{"path":["len(Text)"],"operator":"GreaterThan","valueNumber":5}`:                `operator:GreaterThan path:["len(text)"] valueInt:5`,
		`{"path":["Next","doc","N"],"operator":"Equal","valueNumber":1}`:                 `operator:Equal path:["next""Doc""n"] valueInt:1`,
		`{"path":["of","author","Name"],"operator":"Equal","valueText":"b"}`:             `operator:Equal path:["of""Author""name"] valueText:"b"`,
		`{"path":["next"],"operator":"GreaterThan","valueInt":1}`:                        `operator:GreaterThan path:["next"] valueInt:1`,
		`{"path":["n"],"operator":"IsNull","valueBoolean":true}`:                         `operator:IsNull path:["n"] valueBoolean:true`,
		`{"path":["id"],"operator":"Equal","valueText":"u"}`:                             `operator:Equal path:["id"] valueText:"u"`,
		`{"operator":"Not","operands":[{"path":["N"],"operator":"Equal","valueInt":1}]}`: `operator:Not operands:[{operator:Equal path:["n"] valueInt:1}]`,
	} {
		w, err := ParseWhere(text)
		if err != nil {
			t.Fatal(err)
		}
		fitted, err := c.where(w)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		var q query
		if whereGraphQL(&q, fitted); q.String() != want {
			t.Errorf("%s: %s, want %s", text, q.String(), want)
		}
	}
	for text, want := range map[string]string{
		`{"path":["sektion"],"operator":"Equal","valueText":"a"}`:                                                                       `no property "sektion"`,
		`{"path":["len(sektion)"],"operator":"Equal","valueInt":1}`:                                                                     `no property "sektion"`,
		`{"path":["text","Doc","n"],"operator":"Equal","valueInt":1}`:                                                                   "no reference to class Doc",
		`{"path":["next","Doc","nn"],"operator":"Equal","valueInt":1}`:                                                                  `no property "nn"`,
		`{"path":["n"],"operator":"Equal","valueNumber":1.5}`:                                                                           "1.5 is no integer",
		`{"path":["n"],"operator":"ContainsAny","valueNumberArray":[1,1e300]}`:                                                          "1e+300 is no integer",
		`{"operator":"Or","operands":[{"path":["n"],"operator":"Equal","valueInt":1},{"path":["nn"],"operator":"Equal","valueInt":1}]}`: `no property "nn"`,
	} {
		w, err := ParseWhere(text)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.where(w); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", text, err, want)
		}
	}
	f := &fake{}
	address, _ := f.start(t, httptest.NewServer(f))
	name := "a"
	_, err := Open(t.Context(), address, "Doc", &Options{Where: &models.WhereFilter{Operator: "Equal", Path: []string{"nowhere"}, ValueText: &name}, Properties: []string{"nothing"}})
	wantError(t, err, mapmatched.KindInvalid, `no property "nowhere"`, `no property "nothing"`)
}

// Several faults are shown in one line and stay apart for errors.Is.
func TestFaultsInOneLine(t *testing.T) {
	_, err := Open(t.Context(), "localhost:1", "Doc", &Options{Autocut: -1, Mode: "best"})
	wantError(t, err, mapmatched.KindInvalid, "Autocut", "; ", "Mode")
}

// A gRPC port that is none is named, with what to do.
func TestWrongGRPCPort(t *testing.T) {
	f := &fake{}
	address, _ := f.start(t, httptest.NewServer(f))
	_, port, _ := strings.Cut(address, ":")
	for _, grpcPort := range []string{port, "1"} {
		p, err := Open(t.Context(), address, "Doc", &Options{Connection: Connection{GRPC: grpcPort, Retries: -1}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = p.Candidates(t.Context(), anyQuery, 3)
		wantError(t, err, mapmatched.KindUnavailable, "gRPC at 127.0.0.1:"+grpcPort, "its gRPC port?")
		closing(t, p)
	}
}

// A chunk that is too large for a message is named, and goes alone.
func TestHugeChunk(t *testing.T) {
	f := &fake{batch: func(*pb.BatchObjectsRequest) (*pb.BatchObjectsReply, error) { return &pb.BatchObjectsReply{}, nil }}
	f.routes = map[string]http.HandlerFunc{"/v1/batch/references": func(w http.ResponseWriter, r *http.Request) {
		var batch []any
		if err := json.NewDecoder(r.Body).Decode(&batch); err != nil {
			t.Error(err)
		}
		answer(w, "["+strings.Join(slices.Repeat([]string{`{"result":{"status":"SUCCESS"}}`}, len(batch)), ",")+"]")
	}}
	address, grpcPort := f.start(t, httptest.NewServer(f))
	w, err := OpenWriter(t.Context(), address, "Doc", &WriterOptions{Connection: Connection{GRPC: grpcPort}})
	if err != nil {
		t.Fatal(err)
	}
	defer closing(t, w)
	in := newIngest(w, mapmatched.CorpusIdentity{})
	in.store = &store{server: w.server}
	var batch []prepared
	for id, size := range map[string]int{"small": 1, "huge": maxMessage + 1} {
		p, err := in.prepare(mapmatched.Record{Chunk: mapmatched.Chunk{ID: id, Text: strings.Repeat("x", size)}})
		if err != nil {
			t.Fatal(err)
		}
		batch = append(batch, p)
	}
	wantError(t, classify("write corpus", in.write(t.Context(), batch, nil)), mapmatched.KindInvalid, `chunk "huge" is too large`)
	// Batches are cut before they grow beyond the bound.
	in.store.class, in.report.Created = &class{}, true
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	in.cancel = cancel
	for _, size := range []int{10, maxBatchBytes - 1000, 2000} {
		id := strconv.Itoa(size)
		if err := in.add(ctx, mapmatched.Record{Chunk: mapmatched.Chunk{ID: id, Text: strings.Repeat("x", size)}}); err != nil {
			t.Fatal(err)
		}
		if len(in.batch) > 1 {
			t.Errorf("%d objects of %d bytes wait together", len(in.batch), in.bytes)
		}
	}
	if err := in.wait(ctx); err != nil {
		t.Error(err)
	}
}

// The server keeps integers as float64, so those that would change are refused.
func TestIntegersThatWouldChange(t *testing.T) {
	in := newIngest(nil, mapmatched.CorpusIdentity{})
	for name, chunk := range map[string]mapmatched.Chunk{
		"ordinal": {ID: "o", Ordinal: maxExact + 1}, "start": {ID: "s", Start: -maxExact - 1}, "end": {ID: "e", End: 1 << 62},
	} {
		_, err := in.prepare(mapmatched.Record{Chunk: chunk})
		if err == nil || !strings.Contains(err.Error(), name+" is ") || !strings.Contains(err.Error(), `"`+chunk.ID+`"`) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	if _, err := in.prepare(mapmatched.Record{Chunk: mapmatched.Chunk{ID: "good", Ordinal: maxExact, Start: -maxExact}}); err != nil {
		t.Error(err)
	}
}
