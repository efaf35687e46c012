package weaviate

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weaviate/weaviate/entities/models"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	pb "github.com/weaviate/weaviate/grpc/generated/protocol/v1"

	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/mapmatched/registry"
)

// fake is a server that knows one class, Doc, and answers searches as told.
type fake struct {
	pb.UnimplementedWeaviateServer
	graphql http.HandlerFunc
	search  func(ctx context.Context, r *pb.SearchRequest) (*pb.SearchReply, error)
	batch   func(r *pb.BatchObjectsRequest) (*pb.BatchObjectsReply, error)
	routes  map[string]http.HandlerFunc // further paths
	// starting says that the server is not ready.
	starting atomic.Bool
	mu       sync.Mutex
	seen     []string // Authorization headers
}

const docClass = `{"class":"Doc","vectorizer":"none","vectorIndexType":"hnsw","vectorIndexConfig":{"distance":"cosine"},
 "properties":[{"name":"chunk_id","dataType":["text"],"tokenization":"field"},{"name":"text","dataType":["text"]},{"name":"n","dataType":["int"]}]}`

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.note(r.Header.Get("Authorization"))
	if h, ok := f.routes[r.URL.Path]; ok {
		h(w, r)
		return
	}
	switch r.URL.Path {
	case "/v1/.well-known/ready":
		if f.starting.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	case "/v1/meta":
		answer(w, `{"version":"1.35.2"}`)
	case "/v1/schema/Doc":
		answer(w, docClass)
	case "/v1/graphql":
		f.graphql(w, r)
	default:
		http.NotFound(w, r)
	}
}

func answer(w http.ResponseWriter, body string) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write([]byte(body)) // a client that is gone shows in the test
}

func (f *fake) note(authorization string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen = append(f.seen, authorization)
}

func (f *fake) Search(ctx context.Context, r *pb.SearchRequest) (*pb.SearchReply, error) {
	md, _ := metadata.FromIncomingContext(ctx)
	f.note(strings.Join(md.Get("authorization"), ","))
	return f.search(ctx, r)
}

func (f *fake) BatchObjects(_ context.Context, r *pb.BatchObjectsRequest) (*pb.BatchObjectsReply, error) {
	return f.batch(r)
}

// start serves HTTP and gRPC on the loopback interface, with TLS when the
// server has a certificate.
func (f *fake) start(t testing.TB, web *httptest.Server) (address, grpcPort string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var options []grpc.ServerOption
	if web.TLS != nil {
		options = append(options, grpc.Creds(credentials.NewServerTLSFromCert(&web.TLS.Certificates[0])))
	}
	s := grpc.NewServer(options...)
	pb.RegisterWeaviateServer(s, f)
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := s.Serve(l); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		s.Stop()
		wg.Wait()
		web.Close()
	})
	_, grpcPort, _ = strings.Cut(l.Addr().String(), ":")
	return web.Listener.Addr().String(), grpcPort
}

func (f *fake) open(t testing.TB, transport string, o Options) *Provider {
	t.Helper()
	address, grpcPort := f.start(t, httptest.NewServer(f))
	if transport == "grpc" {
		o.GRPC = grpcPort
	}
	p, err := Open(t.Context(), address, "Doc", &o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closing(t, p) })
	return p
}

var anyQuery = mapmatched.Query{Text: "words", Vector: []float32{1, 2}}

// Escaped text is what GraphQL and JSON read back alike, but for 0x7f, which is
// escaped without need.
func TestQueryText(t *testing.T) {
	for _, text := range append(awkward, "", "plain", "\u2028") {
		var q query
		q.text(text)
		var back string
		if err := json.Unmarshal([]byte(q.String()), &back); err != nil || back != text {
			t.Errorf("%q is written %s and read %q, %v", text, q.String(), back, err)
		}
		for _, c := range []byte(q.String()) {
			if c < 0x20 || c == 0x7f {
				t.Errorf("%q is written %s, with a control character", text, q.String())
			}
		}
	}
}

func FuzzQueryText(f *testing.F) {
	for _, text := range awkward {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var q query
		q.text(text)
		var back string
		if err := json.Unmarshal([]byte(q.String()), &back); err != nil || back != strings.ToValidUTF8(text, "\ufffd") && back != text && !strings.ContainsRune(back, '\ufffd') {
			t.Errorf("%q is written %s and read %q, %v", text, q.String(), back, err)
		}
	})
}

func FuzzParseWhere(f *testing.F) {
	f.Add(`{"path":["a"],"operator":"Equal","valueText":"x"}`)
	f.Add(`{"operator":"And","operands":[{"path":["a","B","c"],"operator":"ContainsAny","valueIntArray":[1]},{"operator":"Not","operands":[null]}]}`)
	f.Add(`{"path":["a"],"operator":"WithinGeoRange","valueGeoRange":{"geoCoordinates":{"latitude":1,"longitude":2},"distance":{"max":3}}}`)
	f.Fuzz(func(t *testing.T, text string) {
		w, err := ParseWhere(text)
		if err != nil {
			return
		}
		var q query
		whereGraphQL(&q, w)
		if q.String() == "" || whereGRPC(w) == nil {
			t.Errorf("%s is accepted and written as nothing", text)
		}
	})
}

func FuzzDecodeEdges(f *testing.F) {
	f.Add(`[{"to":"b","type":"next","weight":1.5}]`)
	f.Add(`[{"to":1}]`)
	f.Fuzz(func(t *testing.T, text string) {
		edges, err := decodeEdges("a", text)
		for _, e := range edges {
			if err != nil || e.From != "a" {
				t.Errorf("%q: %+v, %v", text, e, err)
			}
		}
	})
}

func TestNames(t *testing.T) {
	for name, want := range map[string]string{"pages": "Pages", "Pages": "Pages", "a_1": "A_1", "": "", "1a": "", "a-b": "", "Ä": "", `Doc){x}} {Get{Secret`: "", "a b": "", strings.Repeat("a", 256): ""} {
		if got, err := className(name); got != want || (err == nil) != (want != "") {
			t.Errorf("class %q: %q, %v, want %q", name, got, err, want)
		}
	}
	for name, good := range map[string]bool{"text": true, "_x": true, "a1": true, "a.b": false, "a^2": false, "1": false, "": false, "a\nb": false} {
		if err := checkName("property", name); (err == nil) != good {
			t.Errorf("property %q: %v", name, err)
		}
	}
	for name, good := range map[string]bool{"a-b_1": true, "": false, "a b": false, `"`: false, strings.Repeat("x", 65): false} {
		if err := checkTenant(name); (err == nil) != good {
			t.Errorf("tenant %q: %v", name, err)
		}
	}
	seen := map[string]mapmatched.EdgeType{}
	for _, e := range []mapmatched.EdgeType{"next", "Next", "_6eext", "see also", "see_also", "", "é", "_"} {
		name := edgeProperty(e)
		if first, again := seen[name]; again || checkName("property", name) != nil || name != strings.ToLower(name) {
			t.Errorf("edge types %q and %q are both property %q", first, e, name)
		}
		seen[name] = e
	}
}

// Scores are texts in GraphQL; what is no number is an error and never 0.
func TestScoresAreParsed(t *testing.T) {
	for raw, want := range map[any]float64{"0.91493666": float64(float32(0.91493666)), "0": 0, "1e-05": float64(float32(1e-05)), 0.25: 0.25, -3.0: -3} {
		if got, err := scoreGraphQL(raw); err != nil || got != want {
			t.Errorf("%#v: %v, %v, want %v", raw, got, err, want)
		}
	}
	for _, raw := range []any{nil, "", "abc", "NaN", "Inf", "-inf", "1e99", math.Inf(1), math.NaN(), true, "0.5 "} {
		if got, err := scoreGraphQL(raw); err == nil {
			t.Errorf("%#v: score %v and no error", raw, got)
		}
	}
	f := &fake{}
	p := f.open(t, "graphql", Options{Mode: ModeBM25})
	for _, score := range []string{`null`, `"abc"`, `"NaN"`, `{}`} {
		f.graphql = func(w http.ResponseWriter, _ *http.Request) {
			answer(w, `{"data":{"Get":{"Doc":[{"chunk_id":"a","_additional":{"id":"u","score":`+score+`}}]}}}`)
		}
		_, err := p.Candidates(t.Context(), anyQuery, 3)
		wantError(t, err, mapmatched.KindCorrupt, "score")
	}
}

// Scores that are absent or not finite over gRPC are errors too.
func TestScoresOfGRPC(t *testing.T) {
	f := &fake{}
	p := f.open(t, "grpc", Options{})
	for _, m := range []*pb.MetadataResult{{Id: "u"}, {Id: "u", Distance: float32(math.NaN()), DistancePresent: true}, {Id: "u", Distance: inf, DistancePresent: true}, {DistancePresent: true}} {
		f.search = func(context.Context, *pb.SearchRequest) (*pb.SearchReply, error) {
			return &pb.SearchReply{Results: []*pb.SearchResult{{Metadata: m, Properties: &pb.PropertiesResult{}}}}, nil
		}
		_, err := p.Candidates(t.Context(), anyQuery, 3)
		wantError(t, err, mapmatched.KindCorrupt)
	}
}

// GraphQL says what is wrong with HTTP status 200 and no error of the client.
func TestGraphQLErrors(t *testing.T) {
	f := &fake{}
	p := f.open(t, "graphql", Options{Connection: Connection{Retries: -1}})
	for body, want := range map[string]struct {
		kind  mapmatched.Kind
		parts []string
	}{
		`{"errors":[{"message":"first\nline"},{"message":"second"}]}`:                               {mapmatched.KindInvalid, []string{"first line; second"}},
		`{"data":{"Get":{"Doc":[]}},"errors":[{"message":"half"}]}`:                                 {mapmatched.KindInvalid, []string{"half"}},
		`{"data":{"Get":{"Doc":null}},"errors":[{"message":"... query maximum results exceeded"}]}`: {mapmatched.KindInvalid, []string{"QUERY_MAXIMUM_RESULTS"}},
		`{"errors":[{"message":"tenant not found: \"b\""}]}`:                                        {mapmatched.KindNotFound, []string{"Tenant"}},
		`{"errors":[null]}`:                  {mapmatched.KindInvalid, nil},
		`{"data":{"Get":{"Doc":null}}}`:      {mapmatched.KindCorrupt, []string{"no list of Doc"}},
		`{"data":{}}`:                        {mapmatched.KindCorrupt, nil},
		`{}`:                                 {mapmatched.KindCorrupt, nil},
		`null`:                               {mapmatched.KindCorrupt, nil},
		`{"data":{"Get":{"Doc":[1]}}}`:       {mapmatched.KindCorrupt, nil},
		`{"data":{"Get":{"Doc":[{"n":1}]}}}`: {mapmatched.KindCorrupt, []string{"UUID"}},
		`<html>`:                             {mapmatched.KindCorrupt, []string{"JSON"}},
		``:                                   {mapmatched.KindCorrupt, nil},
		`{"data":{"Get":{"Doc":[{"n":"x","_additional":{"id":"u","distance":1}}]}}}`: {mapmatched.KindCorrupt, []string{"property n"}},
	} {
		f.graphql = func(w http.ResponseWriter, _ *http.Request) { answer(w, body) }
		found, err := p.Candidates(t.Context(), anyQuery, 3)
		if err == nil {
			t.Errorf("%s: %+v and no error", body, found)
			continue
		}
		t.Run(body, func(t *testing.T) { wantError(t, err, want.kind, want.parts...) })
	}
}

// What is sent: only what is read, no threshold that was not asked for, and the
// fusion always.
func TestWhatIsAskedFor(t *testing.T) {
	f := &fake{}
	var byGraphQL string
	f.graphql = func(w http.ResponseWriter, r *http.Request) {
		var body struct{ Query string }
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		byGraphQL = body.Query
		answer(w, `{"data":{"Get":{"Doc":[]}}}`)
	}
	var byGRPC *pb.SearchRequest
	f.search = func(_ context.Context, r *pb.SearchRequest) (*pb.SearchReply, error) {
		byGRPC = r
		return &pb.SearchReply{}, nil
	}
	p := f.open(t, "graphql", Options{Properties: []string{}})
	if _, err := p.Candidates(t.Context(), anyQuery, 3); err != nil {
		t.Fatal(err)
	}
	if want := `{Get{Doc(limit:4 nearVector:{vector:[1,2]}){chunk_id text _additional{id distance}}}}`; byGraphQL != want {
		t.Errorf("asked %s, want %s", byGraphQL, want)
	}
	p = f.open(t, "grpc", Options{Properties: []string{}})
	if _, err := p.Candidates(t.Context(), anyQuery, 3); err != nil {
		t.Fatal(err)
	}
	want := &pb.SearchRequest{
		Collection: "Doc", Limit: 4, Uses_127Api: true,
		Properties: &pb.PropertiesRequest{NonRefProperties: []string{"chunk_id", "text"}},
		Metadata:   &pb.MetadataRequest{Uuid: true, Distance: true},
		NearVector: &pb.NearVector{VectorBytes: vectorBytes([]float32{1, 2})},
	}
	if !proto.Equal(byGRPC, want) {
		t.Errorf("asked %v, want %v", byGRPC, want)
	}
	for _, fusion := range []Fusion{"", FusionRelativeScore, FusionRanked} {
		address, grpcPort := f.start(t, httptest.NewServer(f))
		for _, transport := range transports {
			o := &Options{Fusion: fusion, Alpha: new(0.0)}
			if transport == "grpc" {
				o.GRPC = grpcPort
			}
			h, err := OpenHybrid(t.Context(), address, "Doc", o)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := h.Candidates(t.Context(), anyQuery, 3); err != nil {
				t.Fatal(err)
			}
			closing(t, h)
		}
		wantText, wantType := "fusionType:relativeScoreFusion", pb.Hybrid_FUSION_TYPE_RELATIVE_SCORE
		if fusion == FusionRanked {
			wantText, wantType = "fusionType:rankedFusion", pb.Hybrid_FUSION_TYPE_RANKED
		}
		if !strings.Contains(byGraphQL, wantText) || !strings.Contains(byGraphQL, "alpha:0 ") || byGRPC.GetHybridSearch().GetFusionType() != wantType {
			t.Errorf("fusion %q: asked %s and %v", fusion, byGraphQL, byGRPC)
		}
	}
	// The order is left to the text and the vector: history is not sent.
	if strings.Contains(byGraphQL, "autocut") || byGRPC.GetAutocut() != 0 {
		t.Errorf("autocut was sent: %s, %v", byGraphQL, byGRPC)
	}
}

// A server that cannot take a request is asked again, and one that refuses it is
// not.
func TestRetries(t *testing.T) {
	f := &fake{}
	var calls atomic.Int64
	fail := int64(2)
	good := `{"data":{"Get":{"Doc":[]}}}`
	p := f.open(t, "graphql", Options{Connection: Connection{Retries: 2}})
	for _, code := range []int{http.StatusServiceUnavailable, http.StatusBadGateway, http.StatusGatewayTimeout, http.StatusTooManyRequests} {
		calls.Store(0)
		f.graphql = func(w http.ResponseWriter, _ *http.Request) {
			if calls.Add(1) <= fail {
				w.WriteHeader(code)
			}
			answer(w, good)
		}
		if _, err := p.Candidates(t.Context(), anyQuery, 3); err != nil || calls.Load() != 3 {
			t.Errorf("HTTP %d twice: %v after %d calls", code, err, calls.Load())
		}
	}
	calls.Store(0)
	f.graphql = func(w http.ResponseWriter, _ *http.Request) {
		calls.Add(1)
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_, err := p.Candidates(t.Context(), anyQuery, 3)
	wantError(t, err, mapmatched.KindUnavailable, "503")
	if calls.Load() != 3 {
		t.Errorf("%d calls, want 3", calls.Load())
	}
	for code, kind := range map[int]mapmatched.Kind{401: mapmatched.KindUnauthenticated, 403: mapmatched.KindUnauthenticated, 404: mapmatched.KindNotFound, 422: mapmatched.KindInvalid, 302: mapmatched.KindInvalid, 500: mapmatched.KindInvalid} {
		calls.Store(0)
		f.graphql = func(w http.ResponseWriter, _ *http.Request) {
			calls.Add(1)
			w.Header().Set("Location", "/v1/elsewhere")
			w.WriteHeader(code)
			answer(w, `{"error":[{"message":"said so"}]}`)
		}
		_, err := p.Candidates(t.Context(), anyQuery, 3)
		wantError(t, err, kind, "said so")
		if calls.Load() != 1 {
			t.Errorf("HTTP %d: %d calls, want 1", code, calls.Load())
		}
	}
	q := f.open(t, "grpc", Options{Connection: Connection{Retries: 2}})
	for code, kind := range map[codes.Code]mapmatched.Kind{codes.Unavailable: "", codes.ResourceExhausted: "", codes.Internal: mapmatched.KindInvalid, codes.Unknown: mapmatched.KindInvalid,
		codes.Unauthenticated: mapmatched.KindUnauthenticated, codes.PermissionDenied: mapmatched.KindUnauthenticated, codes.NotFound: mapmatched.KindNotFound, codes.Unimplemented: mapmatched.KindInvalid} {
		calls.Store(0)
		f.search = func(context.Context, *pb.SearchRequest) (*pb.SearchReply, error) {
			if calls.Add(1) <= fail {
				return nil, status.Error(code, "said so")
			}
			return &pb.SearchReply{}, nil
		}
		_, err := q.Candidates(t.Context(), anyQuery, 3)
		if kind != "" {
			wantError(t, err, kind, "said so")
			if calls.Load() != 1 {
				t.Errorf("%v: %d calls, want 1", code, calls.Load())
			}
		} else if err != nil || calls.Load() != 3 {
			t.Errorf("%v twice: %v after %d calls", code, err, calls.Load())
		}
	}
	for range 100 {
		for attempt, most := range []time.Duration{100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond} {
			if got := pause(attempt); got < most/2 || got > most {
				t.Errorf("pause before attempt %d: %v, want %v to %v", attempt, got, most/2, most)
			}
		}
		if got := pause(1000); got < time.Second || got > 2*time.Second {
			t.Errorf("late pause: %v, want 1 s to 2 s", got)
		}
	}
}

// A server that starts knows no classes yet; that is no reason to say that they
// are gone.
func TestServerThatStarts(t *testing.T) {
	f := &fake{}
	p := f.open(t, "grpc", Options{Connection: Connection{Retries: 2}})
	for message, want := range map[string]mapmatched.Kind{"could not find class Doc in schema": mapmatched.KindNotFound, "tried to browse non-existing index for Doc": mapmatched.KindUnavailable} {
		calls := 0
		f.search = func(context.Context, *pb.SearchRequest) (*pb.SearchReply, error) {
			if calls++; calls == 2 {
				f.starting.Store(false)
				return &pb.SearchReply{}, nil
			}
			return nil, status.Error(codes.Unknown, message)
		}
		f.starting.Store(true)
		if _, err := p.Candidates(t.Context(), anyQuery, 3); err != nil || calls != 2 {
			t.Errorf("%s from a server that starts: %v after %d calls", message, err, calls)
		}
		f.search = func(context.Context, *pb.SearchRequest) (*pb.SearchReply, error) {
			return nil, status.Error(codes.Unknown, message)
		}
		_, err := p.Candidates(t.Context(), anyQuery, 3)
		wantError(t, err, want, message)
	}
}

// The client's error type hides the cause from errors.Is; here it is found.
func TestDeadlineThroughTheClient(t *testing.T) {
	f := &fake{}
	release := make(chan struct{})
	f.graphql = func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-release:
		}
	}
	p := f.open(t, "graphql", Options{Connection: Connection{Timeout: time.Minute}})
	t.Cleanup(func() { close(release) })
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err := p.Candidates(ctx, anyQuery, 3)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want context.DeadlineExceeded", err)
	}
	wantError(t, err, mapmatched.KindDeadline)
	ctx, stop := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, stop)
	if _, err = p.Candidates(ctx, anyQuery, 3); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
	p.server.timeout = 20 * time.Millisecond
	_, err = p.Candidates(t.Context(), anyQuery, 3)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want context.DeadlineExceeded", err)
	}
	wantError(t, err, mapmatched.KindDeadline, "no answer within 20ms")
}

// Opening a server that does not answer ends with the caller's deadline.
func TestOpenSilentServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	_, err = Open(ctx, l.Addr().String(), "Doc", nil)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want context.DeadlineExceeded", err)
	}
	_, err = Open(t.Context(), "127.0.0.1:1", "Doc", &Options{Connection: Connection{Retries: -1}})
	wantError(t, err, mapmatched.KindUnavailable, "refused")
}

// A certificate that is not trusted is refused over both interfaces, and
// accepted when its issuer is named.
func TestTLSIsVerified(t *testing.T) {
	f := &fake{search: func(context.Context, *pb.SearchRequest) (*pb.SearchReply, error) { return &pb.SearchReply{}, nil }}
	f.graphql = func(w http.ResponseWriter, _ *http.Request) { answer(w, `{"data":{"Get":{"Doc":[]}}}`) }
	web := httptest.NewUnstartedServer(f)
	web.Config.ErrorLog = log.New(io.Discard, "", 0) // it reports the client that refuses it
	web.StartTLS()
	address, grpcPort := f.start(t, web)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: web.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Open(t.Context(), address, "Doc", &Options{Connection: Connection{TLS: true}})
	wantError(t, err, mapmatched.KindUnavailable, "certificate", "CAFile")
	for _, grpcSetting := range []string{"", grpcPort} {
		p, err := Open(t.Context(), address, "Doc", &Options{Connection: Connection{TLS: true, CAFile: ca, GRPC: grpcSetting, APIKey: "k"}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Candidates(t.Context(), anyQuery, 3); err != nil {
			t.Error(err)
		}
		closing(t, p)
	}
	// The gRPC interface on its own: HTTP without TLS, so that only it is asked.
	s := &server{life: t.Context(), timeout: time.Minute, retries: 4}
	config, err := tlsConfig(&Connection{TLS: true})
	if err != nil {
		t.Fatal(err)
	}
	s.tokens = newTokenSource(&Connection{}, nil, "")
	if err := s.dial("127.0.0.1", &Connection{TLS: true, GRPC: grpcPort}, config); err != nil {
		t.Fatal(err)
	}
	_, err = s.find(t.Context(), &search{class: &class{name: "Doc"}, limit: 1})
	wantError(t, classify("find", err), mapmatched.KindUnavailable, "certificate", "CAFile")
	closing(t, s.grpcConn)
	for name, kind := range map[string]mapmatched.Kind{"missing": mapmatched.KindNotFound, "no certificate": mapmatched.KindInvalid} {
		file := filepath.Join(t.TempDir(), "x.pem")
		if name != "missing" {
			if err := os.WriteFile(file, []byte(name), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		_, err := Open(t.Context(), address, "Doc", &Options{Connection: Connection{TLS: true, CAFile: file}})
		wantError(t, err, kind, "CAFile")
	}
}

// A key goes with every request over both interfaces, and never without TLS to
// another machine unless that is asked for.
func TestAPIKey(t *testing.T) {
	f := &fake{search: func(context.Context, *pb.SearchRequest) (*pb.SearchReply, error) { return &pb.SearchReply{}, nil }}
	p := f.open(t, "grpc", Options{Connection: Connection{APIKey: "sesame"}})
	if _, err := p.Candidates(t.Context(), anyQuery, 3); err != nil {
		t.Fatal(err)
	}
	if want := []string{"Bearer sesame", "Bearer sesame", "Bearer sesame"}; !slices.Equal(f.seen, want) {
		t.Errorf("sent %q, want it with meta, schema and search", f.seen)
	}
	_, err := Open(t.Context(), "192.0.2.1:8080", "Doc", &Options{Connection: Connection{APIKey: "sesame"}})
	wantError(t, err, mapmatched.KindInvalid, "without encryption", "192.0.2.1:8080")
	_, err = Open(t.Context(), "127.0.0.1:8080", "Doc", &Options{Connection: Connection{APIKey: "sesame", GRPC: "192.0.2.1:50051"}})
	wantError(t, err, mapmatched.KindInvalid, "without encryption", "192.0.2.1:50051")
	if strings.Contains(err.Error(), "sesame") {
		t.Errorf("error %q repeats the key", err)
	}
}

// Tokens come from the issuer that the server names, once, and go over both
// interfaces.
func TestOIDC(t *testing.T) {
	var issuer *httptest.Server
	var granted atomic.Int64
	lifetime := 3600
	issuer = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/.well-known/openid-configuration":
			answer(w, `{"token_endpoint":"`+issuer.URL+`/token"}`)
		case "/token":
			id, secret, _ := r.BasicAuth()
			if err := r.ParseForm(); err != nil || secret != "s3cret" || id != "client" || r.Form.Get("grant_type") != "client_credentials" || r.Form.Get("scope") != "mine theirs" {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(http.StatusUnauthorized)
				answer(w, `{"error":"invalid_client","error_description":"s3cret is wrong"}`)
				return
			}
			answer(w, fmt.Sprintf(`{"access_token":"token%d","token_type":"bearer","expires_in":%d}`, granted.Add(1), lifetime))
		}
	}))
	defer issuer.Close()
	f := &fake{search: func(context.Context, *pb.SearchRequest) (*pb.SearchReply, error) { return &pb.SearchReply{}, nil }}
	f.routes = map[string]http.HandlerFunc{"/v1/.well-known/openid-configuration": func(w http.ResponseWriter, _ *http.Request) {
		answer(w, `{"href":"`+issuer.URL+`/.well-known/openid-configuration","clientId":"client","scopes":["theirs"]}`)
	}}
	address, grpcPort := f.start(t, httptest.NewServer(f))
	connection := Connection{GRPC: grpcPort, ClientSecret: "s3cret", Scopes: []string{"mine"}}
	p, err := Open(t.Context(), address, "Doc", &Options{Connection: connection})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if _, err := p.Candidates(t.Context(), anyQuery, 3); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	closing(t, p)
	f.seen = slices.DeleteFunc(f.seen, func(s string) bool { return s == "" }) // the look-up of the issuer goes without
	if len(f.seen) != 10 || slices.ContainsFunc(f.seen, func(s string) bool { return s != "Bearer token1" }) || granted.Load() != 1 {
		t.Errorf("sent %q with %d tokens granted, want one token 10 times", f.seen, granted.Load())
	}
	lifetime = 1 // over before it is used
	p, err = Open(t.Context(), address, "Doc", &Options{Connection: connection})
	if err != nil {
		t.Fatal(err)
	}
	closing(t, p)
	if granted.Load() < 3 {
		t.Errorf("%d tokens granted, want a new one when the old one is over", granted.Load())
	}
	connection.ClientSecret = "wrong"
	_, err = Open(t.Context(), address, "Doc", &Options{Connection: connection})
	wantError(t, err, mapmatched.KindUnauthenticated, "gives no token", "invalid_client")
	if strings.Contains(err.Error(), "s3cret") || strings.Contains(err.Error(), "wrong") {
		t.Errorf("error %q repeats the secret", err)
	}
	connection.ClientSecret = "s3cret"
	f.routes["/v1/.well-known/openid-configuration"] = func(w http.ResponseWriter, _ *http.Request) {
		answer(w, `{"href":"http://192.0.2.1/issuer"}`)
	}
	_, err = Open(t.Context(), address, "Doc", &Options{Connection: connection})
	wantError(t, err, mapmatched.KindInvalid, "without encryption", "192.0.2.1")
}

// A client that does not know the version lists all classes; the class is
// looked at here.
func TestListingIsOfTheClass(t *testing.T) {
	f := &fake{}
	var pages atomic.Int64
	f.routes = map[string]http.HandlerFunc{"/v1/objects": func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("class") != "Doc" || r.URL.Query().Get("after") == "" {
			t.Errorf("asked %s", r.URL.RawQuery)
		}
		pages.Add(1)
		answer(w, `{"objects":[{"class":"Doc","id":"00000000-0000-0000-0000-000000000001","properties":{"chunk_id":"a","text":"x"},"vector":[1,2]},
			{"class":"Secret","id":"00000000-0000-0000-0000-000000000002","properties":{"chunk_id":"b"}}]}`)
	}}
	p := f.open(t, "graphql", Options{})
	var got []string
	for r, err := range p.Records(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, r.Chunk.ID)
	}
	if !slices.Equal(got, []string{"a"}) || pages.Load() != 1 {
		t.Errorf("listed %q in %d pages, want a", got, pages.Load())
	}
	// A cursor that stands still does not go on for ever.
	f.routes["/v1/objects"] = func(w http.ResponseWriter, _ *http.Request) {
		object := `{"class":"Doc","id":"00000000-0000-0000-0000-000000000001"}`
		answer(w, `{"objects":[`+strings.Repeat(object+",", pageSize-1)+object+`]}`)
	}
	var last error
	for _, err := range p.Records(t.Context()) {
		last = err
	}
	wantError(t, last, mapmatched.KindCorrupt, "does not go on")
}

// The server answers a batch without an error and names the objects that it
// refused.
func TestBatchErrors(t *testing.T) {
	f := &fake{batch: func(r *pb.BatchObjectsRequest) (*pb.BatchObjectsReply, error) {
		return &pb.BatchObjectsReply{Errors: []*pb.BatchObjectsReply_BatchError{{Index: 1, Error: "no\nroom"}, {Index: 9, Error: "odd"}}}, nil
	}}
	f.routes = map[string]http.HandlerFunc{"/v1/batch/objects": func(w http.ResponseWriter, _ *http.Request) {
		answer(w, `[{"result":{"status":"SUCCESS"}},{"result":{"status":"FAILED","errors":{"error":[{"message":"no room"}]}}}]`)
	}}
	address, grpcPort := f.start(t, httptest.NewServer(f))
	for transport, o := range map[string]Connection{"grpc": {GRPC: grpcPort}, "graphql": {}} {
		w, err := OpenWriter(t.Context(), address, "Doc", &WriterOptions{Connection: o})
		if err != nil {
			t.Fatal(err)
		}
		in := newIngest(w, mapmatched.CorpusIdentity{})
		in.store = &store{server: w.server}
		var batch []prepared
		for _, id := range []string{"a", "b"} {
			p, err := in.prepare(mapmatched.Record{Chunk: mapmatched.Chunk{ID: id}})
			if err != nil {
				t.Fatal(err)
			}
			batch = append(batch, p)
		}
		err = classify("write corpus", in.write(t.Context(), batch, nil))
		wantError(t, err, mapmatched.KindInvalid, `chunk "b": no room`)
		if transport == "grpc" {
			wantError(t, err, mapmatched.KindInvalid, "object 9: odd")
		}
		closing(t, w)
	}
}

func TestParseWhere(t *testing.T) {
	for text, want := range map[string]string{
		``:                     "EOF",
		`null`:                 "null",
		`[]`:                   "array",
		`{} {}`:                "more after",
		`{"operator":"Equal"}`: "0 values",
		`{"operator":"Equals","path":["a"],"valueText":"x"}`:                 `"Equals" is unknown`,
		`{"operator":"Equal","path":["a"],"valueText":"x","valueInt":1}`:     "2 values",
		`{"operator":"Equal","path":["a"],"valueTxt":"x"}`:                   "valueTxt",
		`{"operator":"Equal","path":["a","B"],"valueText":"x"}`:              "property, class, property",
		`{"operator":"Equal","path":[],"valueText":"x"}`:                     "path",
		`{"operator":"Equal","path":["a){x}} {Get{Secret"],"valueText":"x"}`: "not the name",
		`{"operator":"Equal","path":["a"],"valueTextArray":["x"]}`:           "list",
		`{"operator":"ContainsAny","path":["a"],"valueText":"x"}`:            "list",
		`{"operator":"ContainsAny","path":["a"],"valueTextArray":[]}`:        "empty",
		`{"operator":"ContainsNone","path":["a"],"valueIntArray":[]}`:        "empty",
		`{"operator":"And"}`:                   "operands",
		`{"operator":"And","operands":[null]}`: "null",
		`{"operator":"Not","operands":[{"operator":"Equal","path":["a"],"valueInt":1},{"operator":"Equal","path":["a"],"valueInt":1}]}`:    "one operand",
		`{"operator":"Equal","path":["a"],"valueDate":"yesterday"}`:                                                                        "date",
		`{"operator":"WithinGeoRange","path":["a"],"valueGeoRange":{}}`:                                                                    "geoCoordinates",
		strings.Repeat(`{"operator":"Not","operands":[`, 40) + `{"operator":"Equal","path":["a"],"valueInt":1}` + strings.Repeat(`]}`, 40): "deeper",
	} {
		if _, err := ParseWhere(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", text, err, want)
		}
	}
	text := `{"operator":"And","operands":[{"operator":"Like","path":["a"],"valueText":"x\"y"},{"operator":"WithinGeoRange","path":["g"],"valueGeoRange":{"geoCoordinates":{"latitude":1.5,"longitude":-2},"distance":{"max":300}}},
		{"operator":"ContainsAll","path":["next","Page","tags"],"valueTextArray":["p","q"]},{"operator":"IsNull","path":["b"],"valueBoolean":true},{"operator":"GreaterThan","path":["len(a)"],"valueInt":5},{"operator":"ContainsAny","path":["n"],"valueNumberArray":[0.5,1e30]}]}`
	w, err := ParseWhere(text)
	if err != nil {
		t.Fatal(err)
	}
	var q query
	whereGraphQL(&q, w)
	want := `operator:And operands:[{operator:Like path:["a"] valueText:"x\"y"}{operator:WithinGeoRange path:["g"] valueGeoRange:{geoCoordinates:{latitude:1.5 longitude:-2} distance:{max:300}}}` +
		`{operator:ContainsAll path:["next""Page""tags"] valueText:["p","q"]}{operator:IsNull path:["b"] valueBoolean:true}{operator:GreaterThan path:["len(a)"] valueInt:5}{operator:ContainsAny path:["n"] valueNumber:[0.5,1e+30]}]`
	if q.String() != want {
		t.Errorf("GraphQL %s, want %s", q.String(), want)
	}
	message := whereGRPC(w)
	if target := message.Filters[2].GetTarget().GetMultiTarget(); target.GetOn() != "next" || target.GetTargetCollection() != "Page" || target.GetTarget().GetProperty() != "tags" || len(message.Filters) != 6 {
		t.Errorf("gRPC %v", message)
	}
	if both(nil, w) != w || both(w, nil) != w || len(both(w, w).Operands) != 2 {
		t.Error("both joins wrongly")
	}
}

// All faults are reported at once.
func TestValidate(t *testing.T) {
	bad := &Options{
		Connection: Connection{GRPC: "port", CAFile: "x", APIKey: "a", ClientSecret: "b", Timeout: -1, Retries: -2},
		Place:      Place{Tenant: "a b", IDProperty: "1", TextProperty: "-"},
		Mode:       "best", Alpha: new(1.5), Fusion: "mix", Vectors: []string{"a", "a", "b c"}, Combination: "most", Weights: []float64{-1, math.NaN()},
		SearchProperties: []string{"a^x", "a"}, Properties: []string{"x y"}, Where: &models.WhereFilter{}, Autocut: -1,
		MaxDistance: new(math.Inf(1)), MinCertainty: new(2.0),
	}
	err := bad.Validate()
	for _, part := range []string{"GRPC", "CAFile", "APIKey and ClientSecret", "Timeout", "Retries", "tenant", `"1"`, `"-"`, "Mode", "Alpha", "Fusion", `"a" twice`, `"b c"`, "Combination", "Weights have no effect",
		"Weights[0]", "Weights[1]", `"a^x"`, "the same property", `"x y"`, "Where", "Autocut", "MaxDistance is", "MinCertainty is", "give one"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("error %q lacks %q", err, part)
		}
	}
	if !errors.Is(err, mapmatched.ErrInvalidConfig) {
		t.Errorf("error %v does not wrap ErrInvalidConfig", err)
	}
	for _, o := range []*Options{nil, {}, {Mode: ModeHybrid, Alpha: new(0.0), Fusion: FusionRanked}, {Vectors: []string{"a", "b"}, Combination: CombineManualWeights, Weights: []float64{0, 1}}, {Connection: Connection{GRPC: "grpc.example.com:443", TLS: true, Retries: -1}}} {
		if err := o.Validate(); err != nil {
			t.Errorf("%+v: %v", o, err)
		}
	}
	for _, o := range []*Options{{Alpha: new(0.5)}, {Mode: ModeBM25, Vectors: []string{"a"}}, {Mode: ModeHybrid, MaxDistance: new(1.0)}, {SearchProperties: []string{"a"}}, {Connection: Connection{ClientID: "x"}}, {Vectors: []string{"a"}, Combination: CombineSum},
		{Vectors: []string{"a", "b"}, Combination: CombineRelativeScore, Weights: []float64{0, 0}}} {
		if err := o.Validate(); err == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
	for _, err := range []error{(&WriterOptions{Tenant: " ", Tokenization: "x", BatchSize: -1}).Validate(), (&GraphOptions{MaximumDistance: math.NaN(), Weight: -1}).Validate()} {
		if err == nil {
			t.Error("bad options are accepted")
		}
	}
}

func TestURLFaults(t *testing.T) {
	for raw, want := range map[string]string{
		"weaviate:Pages":                                     "write weaviate://host:8080/Class",
		"weaviate://host":                                    "class is missing",
		"weaviate://host/Pages?mode=best":                    "vector, bm25, hybrid",
		"weaviate://host/Pages?alpha=2":                      "alpha",
		"weaviate://host/Pages?where={":                      "where",
		"weaviate://host/Pages?weights=x&vectors=a,b":        "weights",
		"weaviate://host/Pages?api_key=x":                    "api_key_env",
		"weaviate://host/Pages?timeout=5":                    "unit",
		"weaviate://host/Pages?grpc=x":                       "GRPC",
		"weaviate://host/Pages?nope=1":                       "unknown",
		"weaviate://host/Pa/ges":                             "not the name of a class",
		"weaviate://host/Doc%29%7Bx%7D%7D%20%7BGet%7BSecret": "not the name of a class",
	} {
		_, err := registry.OpenProvider(t.Context(), raw)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", raw, err, want)
		}
	}
}

func TestEdgesAndUUIDs(t *testing.T) {
	if got, want := UUID("roads/toll"), "eb3b349e-0889-5f5a-a0ab-6c229bfcf6be"; got != want || !isUUID(got) {
		t.Errorf("UUID %s, want %s", got, want)
	}
	edges := []mapmatched.Edge{{From: "a", To: `b"é`, Weight: 0.1, Type: "next"}, {From: "a", To: "c", Weight: math.SmallestNonzeroFloat64, Type: ""}, {From: "a", To: "c", Weight: math.MaxFloat64, Type: "x"}}
	text, err := encodeEdges("a", edges)
	if err != nil {
		t.Fatal(err)
	}
	back, err := decodeEdges("a", text)
	if err != nil || !slices.Equal(back, edges) {
		t.Errorf("%+v, %v", back, err)
	}
	a := mapmatched.Record{Chunk: mapmatched.Chunk{ID: "ab", Document: "c"}}
	b := mapmatched.Record{Chunk: mapmatched.Chunk{ID: "a", Document: "bc"}}
	if digest(a, "") == digest(b, "") || digest(a, "x") == digest(a, "") {
		t.Error("digests do not tell records apart")
	}
}
